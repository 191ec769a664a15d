# SPDX-License-Identifier: GPL-2.0-only
"""The packages of distributions (packaging/): what is in them, and that they come and go cleanly.

make test builds those of this machine's suite and looks at them. As root it also builds,
installs, upgrades and removes them in bare roots of Debian 12 and 13 (package_guest.sh), which
are kept in the cache. make test-all does so in Ubuntu 24.04 and 26.04, too, where DKMS builds the
module for Ubuntu's own headers, and builds the RPM and the Arch packages with the tools that
Debian has.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from said import ROOT, transcript

PACKAGING = ROOT / "packaging"
ROOTS = PACKAGING / "root.sh"
SPEC = PACKAGING / "rpm" / "streamsched.spec"
AUR = PACKAGING / "aur"
VERSION = re.search(r"^  version: '(.*)'", (ROOT / "meson.build").read_text(), re.MULTILINE)[1]
OURS = ("streamsched", "streamsched-dkms", "nbdkit-plugin-streamsched")
UBUNTU = [pytest.param(suite, marks=pytest.mark.long) for suite in ("noble", "resolute")]
SUITES = ("bookworm", "trixie", *UBUNTU)
MINUTES = 60

pytestmark = pytest.mark.packages


def run(*command: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """The command with what it printed; not with the virtual environment's programs."""
    environment = dict(os.environ, PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C.UTF-8")
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "VENV", "PYTHON"):
        environment.pop(name, None)
    environment |= more.pop("env", {})
    return transcript(*command, env=environment, timeout=30 * MINUTES, **more)


def need(program: str, package: str) -> None:
    if not shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin"):
        pytest.skip(f"{program} is missing: install the Debian package {package}")


def copy_of_the_tree(to: Path) -> Path:
    """What is built from, without what was built there."""
    ignored = shutil.ignore_patterns(".*", "build", "__pycache__", "tests", "bench")
    shutil.copytree(ROOT, to, ignore=ignored, symlinks=True)
    return to


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree in which make repo was run, by the worker that came first."""
    run_id = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    base = tmp_path_factory.getbasetemp()
    tree = (base.parent if run_id else base) / f"packages-{run_id}"
    log = tree.with_suffix(".log")
    with tree.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not log.exists():
            copy_of_the_tree(tree)
            done = run("make", "repo", cwd=tree)
            log.write_text(f"{done.returncode}\n{done.stdout}")
    status, _, said = log.read_text().partition("\n")
    missing = re.search(r"deb.sh: install the Debian packages .*|repo.sh: .* is missing: .*", said)
    if missing:
        pytest.skip(missing[0])
    assert status == "0", said[-4000:]
    return tree


def package(tree: Path, name: str) -> Path:
    (found,) = (tree / "build").glob(f"{name}_*.deb")
    return found


def files(path: Path) -> set[str]:
    listed = run("dpkg-deb", "--contents", path).stdout.splitlines()
    return {line.split()[5].removeprefix(".") for line in listed if not line.endswith("/")}


def fields(path: Path) -> dict[str, str]:
    text = run("dpkg-deb", "--field", path).stdout
    return dict(re.findall(r"^([\w-]+): (.*)$", text, re.MULTILINE))


# ---- the packages of this machine's suite ----


def test_control_fields(built: Path) -> None:
    told = {name: fields(package(built, name)) for name in OURS}
    assert told["streamsched-dkms"]["Version"] == VERSION
    assert told["streamsched-dkms"]["Architecture"] == "all"
    for name in ("streamsched", "nbdkit-plugin-streamsched"):
        assert re.fullmatch(rf"{re.escape(VERSION)}\+[\w.]+", told[name]["Version"])
        assert told[name]["Architecture"] != "all"
    depends = {name: told[name]["Depends"] for name in OURS}
    assert "dkms" in depends["streamsched-dkms"] and "pahole" in depends["streamsched-dkms"]
    # The extension is this Python's; what is not brought along is Debian's.
    assert re.search(r"python3 \(<< 3\.\d+\)", depends["streamsched"])
    assert "python3-zstandard" in depends["streamsched"]
    brought = any("/usr/lib/streamsched/typer/" in one for one in files(package(built, OURS[0])))
    assert ("python3-typer" in depends["streamsched"]) != brought
    assert re.search(r"nbdkit \(>= 1\.\d+\).*liburing2", depends["nbdkit-plugin-streamsched"])


def test_what_is_in_them(built: Path) -> None:
    inside = {name: files(package(built, name)) for name in OURS}
    command = inside["streamsched"]
    for path in (
        "/usr/bin/streamsched",
        "/usr/lib/systemd/system/streamsched-auto@.service",
        "/usr/lib/systemd/system/streamsched-weights.service",
        "/usr/share/bash-completion/completions/streamsched",
        "/usr/share/fish/vendor_completions.d/streamsched.fish",
        *(f"/usr/share/man/man1/{page.name}.gz" for page in (ROOT / "man").glob("*.1")),
        "/usr/share/streamsched/61-stream-array.rules",
        "/usr/share/streamsched/release-enabled",
        "/usr/share/streamsched/jobs",
        "/usr/share/streamsched/examples",
        "/usr/share/zsh/vendor-completions/_streamsched",
        "/usr/lib/streamsched/streamsched/data/traces/pg-scan.blktrace.zst",
    ):
        assert path in command, path
    there = {path.relative_to(ROOT) for path in (ROOT / "streamsched").rglob("*.py")}
    assert {f"/usr/lib/streamsched/{name}" for name in there} - command == set()
    # With meson 1.3 or later it is for the stable ABI.
    assert any(re.search(r"/_core\.(cpython-\d+-.*|abi3)\.so$", path) for path in command)
    assert not [path for path in command if "__pycache__" in path or "/usr/local" in path]
    dkms = inside["streamsched-dkms"]
    source = f"/usr/src/streamsched-{VERSION}"
    for path in ("dkms.conf", "Makefile", "private-headers.sh", "kernel/iosched/stream-iosched.c"):
        assert f"{source}/{path}" in dkms
    assert "/usr/share/streamsched-dkms/60-stream-iosched.rules" in dkms
    assert "/usr/share/streamsched-dkms/release-enabled" in dkms
    plugin = inside["nbdkit-plugin-streamsched"]
    assert [path for path in plugin if path.endswith("/plugins/nbdkit-streamsched-plugin.so")]
    assert "/usr/share/man/man1/nbdkit-streamsched-plugin.1.gz" in plugin
    # No file is in two of them.
    assert sum(map(len, inside.values())) == len(set().union(*inside.values()))


def test_no_service_is_enabled(built: Path) -> None:
    """Weights are followed where somebody asks for it; a service that runs is stopped."""
    path = package(built, "streamsched")
    scripts = ("postinst", "prerm", "postrm")
    text = "\n".join(run("dpkg-deb", "--info", path, name).stdout for name in scripts)
    assert not re.search(r"deb-systemd-helper enable|deb-systemd-invoke start\b", text), text
    assert "deb-systemd-invoke stop streamsched-weights.service" in text


def test_what_is_brought_along_has_its_licence(built: Path) -> None:
    """All that vendored.txt pins, in debian/copyright and in its own words."""
    text = (PACKAGING / "debian" / "copyright").read_text()
    inside = files(package(built, "streamsched"))
    pinned = re.findall(r"^([\w-]+)==", (PACKAGING / "vendored.txt").read_text(), re.MULTILINE)
    assert len(pinned) >= 2
    for name in (one.replace("-", "_") for one in pinned):
        assert f"usr/lib/streamsched/{name.removesuffix('_py')}*" in text, name
        folders = [path for path in inside if path.startswith(f"/usr/lib/streamsched/{name}-")]
        assert not folders or any("LICENSE" in path for path in folders), name


def test_lintian_is_content(built: Path) -> None:
    need("lintian", "lintian")
    done = run(
        *["lintian", "--allow-root", "--fail-on", "error,warning"],
        *(package(built, name) for name in OURS),
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_every_override_has_a_reason() -> None:
    for path in (PACKAGING / "debian").glob("*.lintian-overrides"):
        lines = path.read_text().splitlines()
        for before, line in zip(["", *lines], lines, strict=False):
            assert line.startswith("#") or before.startswith("#"), f"{path.name}: {line}"


def test_the_installed_command_runs(built: Path, tmp_path: Path) -> None:
    """Unpacked at another place, it is the package's own files that run."""
    run("dpkg-deb", "--extract", package(built, "streamsched"), tmp_path)
    start = tmp_path / "usr" / "bin" / "streamsched"
    start.write_text(start.read_text().replace('"/usr/lib', f'"{tmp_path}/usr/lib'))
    done = run(start, "--version")
    if re.search("No module named '(?!streamsched)", done.stdout):
        pytest.skip(f"Debian's own Python packages are missing: {done.stdout.strip()}")
    assert done.stdout == f"streamsched {VERSION}\n"
    asked = {"_STREAMSCHED_COMPLETE": "complete_bash", "COMP_WORDS": "s re", "COMP_CWORD": "1"}
    assert run(start, env=asked).stdout.split() == ["replay", "report", "research"]


def test_apt_reads_the_repository(built: Path, tmp_path: Path) -> None:
    need("apt-get", "apt")
    (line,) = re.findall(
        r"^deb \[trusted=yes\] .*$", (built.with_suffix(".log")).read_text(), re.MULTILINE
    )
    candidates = apt_candidates(line, tmp_path)
    assert candidates["streamsched-dkms"] == VERSION
    assert candidates["streamsched"].startswith(f"{VERSION}+")


def test_a_signed_repository(built: Path, tmp_path: Path) -> None:
    need("gpg", "gnupg")
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    gpg = {"GNUPGHOME": str(home)}
    key = ["--batch", "--passphrase", "", "--quick-generate-key", "packages@streamsched.invalid"]
    assert run("gpg", *key, env=gpg).returncode == 0
    more = {"REPO_KEY": "packages@streamsched.invalid", "REPO_DIR": str(tmp_path / "repo")}
    done = run(built / "packaging" / "repo.sh", env=gpg | more)
    run("gpgconf", "--kill", "all", env=gpg)
    assert done.returncode == 0, done.stdout
    (line,) = done.stdout.splitlines()
    assert line.startswith("deb [signed-by=")
    assert apt_candidates(line, tmp_path)["streamsched-dkms"] == VERSION
    packages = next((tmp_path / "repo").glob("dists/*/main/*/Packages"))
    for file in (packages, packages.with_suffix(".gz")):
        file.write_bytes(file.read_bytes() + b"\n")
    assert not apt_candidates(line, tmp_path), "apt takes a list that was changed"


def apt_candidates(line: str, tmp_path: Path) -> dict[str, str]:
    """What an apt that knows this repository only would install."""
    base = tmp_path / "apt"
    shutil.rmtree(base, ignore_errors=True)
    for folder in ("etc/apt.conf.d", "etc/preferences.d", "lists/partial", "cache/archives"):
        (base / folder).mkdir(parents=True)
    (base / "sources.list").write_text(line + "\n")
    (base / "status").touch()
    config = base / "apt.conf"
    config.write_text(
        f'Dir::Etc "{base}/etc"; Dir::Etc::SourceList "{base}/sources.list";\n'
        f'Dir::State::Lists "{base}/lists"; Dir::State::Status "{base}/status";\n'
        f'Dir::Cache "{base}/cache"; APT::Sandbox::User "root";\n'
    )
    asked = {"APT_CONFIG": str(config)}
    run("apt-get", "update", env=asked)
    said = run("apt-cache", "policy", *OURS, env=asked).stdout
    return dict(re.findall(r"^(\S+):\n.*\n  Candidate: (\d\S*)$", said, re.MULTILINE))


@pytest.mark.parametrize(
    ("script", "words", "says"),
    [
        ("deb.sh", ["--all"], "takes only --dkms, --needs or --check"),
        ("repo.sh", ["--all"], "takes only --check"),
        ("install.sh", ["command"], "usage: packaging/install.sh modules|command DEST"),
        ("root.sh", ["make", "bookworm"], "usage: root.sh make SUITE ROOT"),
        ("root.sh", ["keep", "bookworm", "all"], "root.sh keep SUITE build|install"),
        ("root.sh", ["run", "/nowhere", "root", "true"], "/nowhere is no root directory"),
    ],
)
def test_mistakes_are_one_sentence(script: str, words: list[str], says: str) -> None:
    done = run(PACKAGING / script, *words)
    assert done.returncode and says in done.stdout and done.stdout.count("\n") == 1


def test_a_key_that_is_missing_is_said_before_packages_are_built(tmp_path: Path) -> None:
    need("apt-ftparchive", "apt-utils")
    need("gpg", "gnupg")
    mine = {"GNUPGHOME": str(tmp_path), "REPO_KEY": "nobody@streamsched.invalid"}
    done = run("make", "repo", cwd=ROOT, env=mine)
    said, of_make = done.stdout.splitlines()
    assert said.startswith("repo.sh: gpg has no key REPO_KEY=nobody@streamsched.invalid ")
    assert of_make.startswith("make: ")


def test_a_folder_of_others_is_no_repository(built: Path, tmp_path: Path) -> None:
    (tmp_path / "dists").mkdir()
    done = run(built / "packaging" / "repo.sh", env={"REPO_DIR": str(tmp_path)})
    assert done.returncode == 1 and "name another folder" in done.stdout
    assert (tmp_path / "dists").is_dir()


# ---- RPM and Arch ----


def test_the_spec_is_of_this_version() -> None:
    need("rpmspec", "rpm")
    done = run("rpmspec", "--parse", SPEC)
    assert done.returncode == 0, done.stdout
    assert re.search(rf"^Version: +{re.escape(VERSION)}$", done.stdout, re.MULTILINE)


def test_rpmlint_is_content() -> None:
    need("rpmlint", "rpmlint")
    done = run("rpmlint", SPEC)
    assert "0 errors" in done.stdout, done.stdout


def test_the_pkgbuild_is_of_this_version(aur: Path) -> None:
    text = (AUR / "PKGBUILD").read_text()
    assert run("bash", "-n", AUR / "PKGBUILD").returncode == 0
    assert f"\npkgver={VERSION}\n" in text
    need("makepkg", "makepkg")
    done = makepkg(aur, "--printsrcinfo")
    assert re.findall(r"^pkgname = (.*)$", done.stdout, re.MULTILINE) == list(OURS), done.stdout


@pytest.fixture
def aur() -> Iterator[Path]:
    """A copy of packaging/aur in which makepkg can work, which refuses root."""
    with tempfile.TemporaryDirectory() as name:
        folder = shutil.copytree(AUR, name, dirs_exist_ok=True)
        yield Path(folder)


def makepkg(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """There is no pacman on Debian, and it is not asked to install anything."""
    as_user = []
    if os.getuid() == 0:
        run("chown", "-R", "nobody", folder)
        as_user = ["runuser", "-u", "nobody", "--"]
    environment = {"PACMAN": "true", "HOME": str(folder), "PKG_CONFIG_PATH": str(folder / "pc")}
    return run(*as_user, "makepkg", *words, cwd=folder, env=environment)


def archive(to: Path) -> Path:
    """The sources as the spec and the PKGBUILD say that they are packed."""
    name = f"streamsched-{VERSION}"
    tree = copy_of_the_tree(to.parent / "archived" / name)
    run("tar", "-C", tree.parent, "-czf", to / f"{name}.tar.gz", name)
    shutil.rmtree(tree.parent)
    return to


@pytest.mark.long
def test_the_rpms_are_built(tmp_path: Path) -> None:
    """With Debian's rpmbuild, which knows no package that the spec needs, nor Fedora's macros."""
    need("rpmbuild", "rpm")
    need("meson", "meson")
    need("dpkg-architecture", "dpkg-dev")
    libraries = f"/usr/lib/{run('dpkg-architecture', '-qDEB_HOST_MULTIARCH').stdout.strip()}"
    (tmp_path / "SOURCES").mkdir()
    archive(tmp_path / "SOURCES")
    macros = {
        "_topdir": tmp_path,
        "_unitdir": "/usr/lib/systemd/system",
        "_libdir": libraries,
        "debug_package": "%{nil}",
    }
    defines = [word for name, value in macros.items() for word in ("--define", f"{name} {value}")]
    done = run("rpmbuild", "-bb", "--nodeps", *defines, SPEC)
    assert done.returncode == 0, done.stdout[-4000:]
    found = {path.name.partition(f"-{VERSION}-")[0]: path for path in tmp_path.glob("RPMS/*/*")}
    assert set(found) == {"streamsched", "streamsched-dkms", "nbdkit-streamsched-plugin"}
    listed = run("rpm", "-qlp", found["streamsched"]).stdout.splitlines()
    assert "/usr/bin/streamsched" in listed
    listed = run("rpm", "-qlp", found["streamsched-dkms"]).stdout.splitlines()
    assert f"/usr/src/streamsched-{VERSION}/dkms.conf" in listed
    scripts = run("rpm", "-qp", "--scripts", found["streamsched-dkms"]).stdout
    assert "/usr/share/streamsched-dkms/release-disks remove" in scripts


@pytest.mark.long
def test_the_arch_packages_are_built(aur: Path) -> None:
    """With Debian's makepkg, and nbdkit's folder as Arch has it."""
    need("makepkg", "makepkg")
    need("bsdtar", "libarchive-tools")
    need("meson", "meson")
    archive(aur)
    (aur / "pc").mkdir()
    found = run("pkg-config", "--variable=pcfiledir", "nbdkit").stdout.strip()
    told = Path(found or "/nowhere") / "nbdkit.pc"
    if not told.exists():
        pytest.skip("nbdkit.pc is missing: install the Debian package nbdkit-plugin-dev")
    (aur / "pc" / "nbdkit.pc").write_text(re.sub(r"/[\w-]+-linux-gnu\b", "", told.read_text()))
    done = makepkg(aur, "--nodeps")
    assert done.returncode == 0, done.stdout[-4000:]
    inside = {
        name: run("tar", "-tf", *aur.glob(f"{name}-{VERSION}-*.pkg.tar.gz")).stdout.splitlines()
        for name in OURS
    }
    assert {"usr/bin/streamsched", ".INSTALL"} <= set(inside["streamsched"])
    assert f"usr/src/streamsched-{VERSION}/dkms.conf" in inside["streamsched-dkms"]
    plugin = "usr/lib/nbdkit/plugins/nbdkit-streamsched-plugin.so"
    assert plugin in inside["nbdkit-plugin-streamsched"]
    assert plugin not in inside["streamsched"]


# ---- the packages' life in bare roots ----


def older(package: Path, to: Path) -> None:
    """The same package as of version 0.0.9."""
    tree = to / package.stem
    run("dpkg-deb", "--raw-extract", package, tree)
    sources = tree / "usr" / "src" / f"streamsched-{VERSION}"
    changed = [path for path in (tree / "DEBIAN").iterdir() if path.is_file()]
    if sources.exists():
        sources = sources.rename(sources.with_name("streamsched-0.0.9"))
        changed.append(sources / "dkms.conf")
    for path in changed:
        path.write_text(path.read_text().replace(VERSION, "0.0.9"))
    done = run("dpkg-deb", "-Znone", "--root-owner-group", "--build", tree, to)
    assert done.returncode == 0, done.stdout
    shutil.rmtree(tree)


BUILD = """
cp -r /source /root/source && cd /root/source && REPO_DIR=/packages/repo make repo &&
lintian --allow-root --fail-on error,warning build/*.deb
"""


def kept_root(suite: str, kind: str) -> Path:
    """The root of the cache, in which commands can be run; else the test is skipped."""
    if os.getuid() != 0:
        pytest.skip("only root can make root directories")
    need("mmdebstrap", "mmdebstrap")
    made = run(ROOTS, "keep", suite, kind)
    if made.returncode:
        pytest.skip(f"{suite}: {made.stdout.strip().splitlines()[-1]}")
    root = Path(made.stdout.splitlines()[-1])
    entered = run(ROOTS, "run", "--throw-away", root, "root", "true")
    if entered.returncode:
        pytest.skip(f"no root directory can be entered here: {entered.stdout.strip()}")
    return root


@pytest.mark.parametrize("suite", SUITES)
def test_they_come_and_go(suite: str, tmp_path: Path) -> None:
    roots = {kind: kept_root(suite, kind) for kind in ("build", "install")}
    packages, archives = tmp_path / "packages", roots["install"].with_name(f"{suite}-archives")
    for folder in (packages / "old", archives / "partial"):
        folder.mkdir(parents=True, exist_ok=True)
    source = copy_of_the_tree(tmp_path / "source")
    binds = ["--bind", f"{packages}:/packages", "--bind", f"{source}:/source"]
    done = run(ROOTS, "run", "--throw-away", *binds, roots["build"], "root", BUILD)
    assert done.returncode == 0, done.stdout[-4000:]
    (line,) = re.findall(r"^deb \[trusted=yes\] .*$", done.stdout, re.MULTILINE)
    for one in (packages / "repo" / "pool").glob("*.deb"):
        older(one, packages / "old")
    shutil.copy(ROOT / "tests" / "house" / "package_guest.sh", packages)
    script = f"bash /packages/package_guest.sh {VERSION} '{line}'"
    # What is fetched once need not be fetched again.
    binds[2:] = ["--bind", f"{archives}:/var/cache/apt/archives"]
    done = run(ROOTS, "run", "--throw-away", *binds, roots["install"], "root", script)
    assert done.returncode == 0, done.stdout[-4000:]
    assert done.stdout.endswith("all done\n")
