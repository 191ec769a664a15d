# SPDX-License-Identifier: GPL-2.0-only
"""What a series for mainline Linux has to stand: each check prints one line.

The patches are applied one after the other to the pristine tree, and what each adds is compiled.
Whatever the compiler, sparse or checkpatch.pl say about files of the series is a finding; what
does not count is in NOT_COUNTED, with a reason, and is printed.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from upstream_source import FOLDER
from upstream_tree import Tree, call, clean_environment

from streamsched.base.errors import StreamschedError

# What checkpatch.pl --strict says that does not count: its type, of which files, and why.
NOT_COUNTED = (
    ("FILE_PATH_CHANGES", "*", "the last patch has the entry in MAINTAINERS"),
    ("COMPLEX_MACRO", f"{FOLDER}/sysfs.c", "tables of rows are no expressions"),
    ("MACRO_ARG_REUSE", f"{FOLDER}/sysfs.c", "the argument is a macro's name"),
    ("COMPLEX_MACRO", f"{FOLDER}/iosched.h", "the head of a loop is no expression"),
    ("MACRO_ARG_REUSE", f"{FOLDER}/iosched.h", "as list_for_each_entry()"),
    ("MACRO_ARG_PRECEDENCE", f"{FOLDER}/iosched.h", "the argument is a name to be declared"),
    ("BIT_MACRO", f"{FOLDER}/sched.c", "a number of sectors is no flag"),
    ("MULTIPLE_ASSIGNMENTS", f"{FOLDER}/areas.c", "an end and a link to it are the same"),
    ("LONG_LINE_STRING", f"{FOLDER}/stream.c", "what a tunable is, in one sentence"),
    ("OPEN_ENDED_LINE", f"{FOLDER}/trace.h", "as all headers of trace events"),
    ("PARENTHESIS_ALIGNMENT", f"{FOLDER}/trace.h", "as all headers of trace events"),
)
# What 32-bit code calls for a 64-bit division that the kernel does not have.
DIVISIONS = {"__udivdi3", "__umoddi3", "__divdi3", "__moddi3"}
# Options that bring in all that the scheduler has.
FULL = ("CGROUPS", "BLK_CGROUP", "DEBUG_FS", "BLK_DEV_IO_TRACE")
SYMBOL = "MQ_IOSCHED_STREAM"


class FoundError(Exception):
    """The check has failed; its lines say how."""


class MissingError(Exception):
    """A tool is not there; the message says what to install."""


class Report:
    """Prints one line for each check and remembers whether one has failed."""

    def __init__(self) -> None:
        self.failed = False

    def run(self, name: str, check: Callable[[], str]) -> None:
        """One check, which gives what is to be said beside its name."""
        try:
            more = check()
            print(f"ok      {name}{f': {more}' if more else ''}", flush=True)
        except MissingError as error:
            print(f"skipped {name}: {error}", flush=True)
        except (FoundError, StreamschedError) as error:
            self.failed = True
            print(f"FAILED  {name}\n{error}", flush=True)


def apply(patches: Sequence[Path], where: Path) -> None:
    """On top of what is there."""
    person = {"GIT_COMMITTER_NAME": "base", "GIT_COMMITTER_EMAIL": "base@localhost"}
    call(["git", "am", "-q", *[patch.resolve() for patch in patches]], where, person)


def reset(where: Path) -> None:
    """The pristine tree again."""
    call(["git", "reset", "-q", "--hard"], where)
    subprocess.run(["git", "am", "--abort"], cwd=where, capture_output=True, check=False)
    call(["git", "checkout", "-q", "-f", "-B", "series", "base"], where)
    call(["git", "clean", "-q", "-f", "-d", "--", "block", "Documentation/block"], where)


def applies(tree: Tree, patches: Sequence[Path], copy: Path) -> str:
    """By git am in a copy, which then has the whole series."""
    call(["git", "clone", "-q", "--shared", "-b", "base", tree.source, copy], tree.folder)
    apply(patches, copy)
    return f"git am of {len(patches)} patches on the pristine tree"


def checkpatch(tree: Tree, patch: Path) -> str:
    """Findings that count; the others are named."""
    if not shutil.which("perl"):
        raise MissingError("perl is missing: install the Debian package perl")
    options = ["--strict", "--showfile", "--terse", "--show-types", "--no-summary"]
    # With git it would call spdxcheck.py, which needs Python packages that few machines have.
    done = subprocess.run(
        ["perl", tree.source / "scripts" / "checkpatch.pl", *options, patch.resolve()],
        cwd=tree.source,
        env=clean_environment() | {"GIT_DIR": "/nonexistent"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    found, ignored = [], Counter[str]()
    for line in done.stdout.splitlines():
        match = re.match(r"(?:(\S+?):\d+: )?(?:ERROR|WARNING|CHECK):(\w+):", line)
        reasons = [
            reason
            for kind, pattern, reason in NOT_COUNTED
            if match and kind == match[2] and fnmatch.fnmatch(match[1] or "", pattern)
        ]
        if match and reasons:
            ignored[f"{match[2]}: {reasons[0]}"] += 1
        else:
            found.append(line)
    if found:
        raise FoundError("\n".join(found))
    rest = "; ".join(f"{count} {what}" for what, count in ignored.items())
    return "0 errors, 0 warnings, 0 checks" + (f" (not counted: {rest})" if rest else "")


def of_old_sparse(line: str) -> bool:
    """Whether it is what sparse 0.6.4 says of each MODULE_LICENSE() and the like, in any module."""
    match = re.match(r"(\S+):(\d+):\d+: error: bad constant expression$", line)
    if not match:
        return False
    lines = Path(match[1]).read_text().splitlines()
    return lines[int(match[2]) - 1].startswith("MODULE_")


@dataclass(frozen=True)
class Build:
    """A folder in which a kernel is configured, and compiled in part."""

    tree: Tree
    name: str
    config: str
    arch: str = "x86_64"

    @property
    def folder(self) -> Path:
        """Beside the source."""
        return self.tree.folder / self.name

    def make(self, *arguments: str) -> str:
        """What it prints; FoundError with its errors when it fails."""
        where = [f"O={self.folder}", f"ARCH={self.arch}", f"CC={os.environ.get('CC', 'gcc')}"]
        done = subprocess.run(
            ["nice", "make", f"-j{os.cpu_count() or 1}", *where, *arguments],
            cwd=self.tree.source,
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            lines = done.stdout.replace(f"{self.tree.source}/", "").splitlines()
            errors = [line for line in lines if re.search(r"error:|ERROR", line)]
            raise FoundError("\n".join(errors[:20] or lines[-5:]))
        return done.stdout

    def configure(self, **options: str) -> None:
        """Set options: y, m or n."""
        self.folder.mkdir(exist_ok=True)
        if not (self.folder / ".config").exists():
            self.make("-s", self.config)
        script = self.tree.source / "scripts" / "config"
        flags = {"y": "-e", "m": "-m", "n": "-d"}
        words = [word for name, value in options.items() for word in (flags[value], name)]
        call([script, "--file", self.folder / ".config", *words], self.folder)
        self.make("-s", "olddefconfig")
        text = (self.folder / ".config").read_text()
        lost = [
            name
            for name, value in options.items()
            if (f"\nCONFIG_{name}={value}\n" in text) != (value != "n")
            and (value != "n" or f"\nCONFIG_{name}=" in text)
        ]
        if lost:
            raise FoundError(f"{self.name}: Kconfig does not take {', '.join(lost)}")
        self.make("-s", "prepare", "modules_prepare")

    def block(self, *arguments: str) -> list[str]:
        """Compile block/; which of our objects there are then. Findings are raised."""
        said = self.make(*arguments, "block/")
        findings = [
            line
            for line in said.splitlines()
            if f"{FOLDER}/" in line
            and re.search(r"\b(warning|error|note):", line)
            and not of_old_sparse(line)
        ]
        if findings:
            raise FoundError("\n".join(findings))
        if "C=2" in arguments:
            sources = {path.name for path in (self.tree.source / FOLDER).glob("*.c")}
            seen = set(re.findall(rf"CHECK\s+\S*{FOLDER}/(\S+)", said))
            if sources - seen:
                raise FoundError(f"sparse was not run on {', '.join(sorted(sources - seen))}")
        return [path.name for path in (self.folder / FOLDER).glob("*.o")]

    def undefined(self) -> set[str]:
        """Symbols that our objects want of the rest of the kernel."""
        objects = sorted((self.folder / FOLDER).glob("*.o"))
        wanted = call(["nm", "-u", *objects], self.folder)
        given = call(["nm", "--defined-only", *objects], self.folder)
        names = re.compile(r"^(?:[0-9a-f]+ | +)[A-Za-z] (\S+)$", re.MULTILINE)
        return set(names.findall(wanted)) - set(names.findall(given))


def compile_alone(build: Build) -> str:
    """What is not yet reached by block/Makefile, as the parts of a module of its own."""
    with tempfile.TemporaryDirectory(prefix="streamsched-upstream-") as name:
        work = Path(name)
        for path in (build.tree.source / FOLDER).glob("*.[ch]"):
            shutil.copy(path, work)
        objects = [path.stem + ".o" for path in sorted(work.glob("*.c"))]
        (work / "Kbuild").write_text(f"obj-m := part.o\npart-y := {' '.join(objects)}\n")
        said = build.make(f"M={work}", "W=1", "part.o")
        findings = [line for line in said.splitlines() if "warning:" in line]
        if findings:
            raise FoundError("\n".join(findings))
        missing = [name for name in objects if not (work / name).is_file()]
        if missing:
            raise FoundError(f"make has not compiled {', '.join(missing)}")
    return f"{len(objects)} objects, by themselves"


def step(build: Build, patch: Path) -> str:
    """Apply it and compile what there is then."""
    apply([patch], build.tree.source)
    if not (build.tree.source / FOLDER / "Makefile").is_file():
        build.make("-s", "block/")
        return f"make block/; {compile_alone(build)}"
    build.configure(**{SYMBOL: "y"})
    return f"make block/ with {len(build.block())} objects in {FOLDER}/"


def as_module(build: Build) -> str:
    """=m with W=1; what it wants of the kernel is exported."""
    build.configure(**{SYMBOL: "m"})
    build.block("W=1")
    exported = set()
    for folder in ("block", "kernel", "lib", "mm", "fs", "arch/x86"):
        found = subprocess.run(
            ["grep", "-rhoE", r"EXPORT_(SYMBOL|PER_CPU|TRACEPOINT)\w*\(\w+", folder],
            cwd=build.tree.source,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        exported |= {line.split("(")[1] for line in found.stdout.splitlines()}
    # What the compiler and the tracer call has other ways to be exported.
    wanted = {name for name in build.undefined() if not name.startswith("__")}
    lost = wanted - exported
    if lost:
        raise FoundError(f"a module cannot have {', '.join(sorted(lost))}: not exported")
    return f"W=1; all {len(wanted)} symbols that it uses are exported"


def sparse(build: Build) -> str:
    """With make C=2 block/."""
    if not shutil.which("sparse"):
        raise MissingError("sparse is missing: install the Debian package sparse")
    script = build.tree.source / "scripts" / "checker-valid.sh"
    if not script.is_file() or call(["sh", script, "sparse"], build.tree.source).strip() == "1":
        build.block("C=2")
        return "no warning about the series"
    # The kernel refuses a sparse that does not know this word, as Debian's 0.6.4: say it for it.
    build.block("C=2", "CHECK=sparse -D__typeof_unqual__=__typeof__")
    return "no warning about the series, by a sparse that does not know __typeof_unqual__"


def small(build: Build) -> str:
    """32 bits, and without what is optional."""
    build.configure(**{SYMBOL: "y"} | dict.fromkeys(FULL, "y"))
    build.block("W=1")
    divisions = build.undefined() & DIVISIONS
    if divisions:
        raise FoundError(f"divides with {', '.join(sorted(divisions))}: use div_u64() and the like")
    build.configure(BLK_DEBUG_FS="n", BLK_CGROUP="n")
    build.block("W=1")
    return "W=1, no 64-bit division; also without debugfs and cgroups"


def everything(build: Build) -> str:
    """With allyesconfig."""
    build.make("-s", "allyesconfig")
    build.configure(**{SYMBOL: "y"})
    return f"{len(build.block())} objects in {FOLDER}/"


def documentation(tree: Tree) -> str:
    """Sphinx, of Documentation/block alone."""
    if not shutil.which("sphinx-build"):
        raise MissingError("sphinx-build is missing: install the Debian package python3-sphinx")
    said = Build(tree, "docs", "defconfig").make("SPHINXDIRS=block", "htmldocs")
    findings = [line for line in said.splitlines() if "stream-iosched" in line and ": " in line]
    if [line for line in findings if re.search(r"WARNING|ERROR|warning|error", line)]:
        raise FoundError("\n".join(findings))
    pages = list((tree.folder / "docs").rglob("stream-iosched.html"))
    if not pages:
        raise FoundError("make htmldocs has made no stream-iosched.html")
    return "make SPHINXDIRS=block htmldocs without a warning about it"


def maintainer(tree: Tree) -> str:
    """Does get_maintainer.pl find the entry."""
    script = tree.source / "scripts" / "get_maintainer.pl"
    said = call(
        ["perl", script, "--nogit", "--nogit-fallback", "-f", f"{FOLDER}/main.c"], tree.source
    )
    found = [line for line in said.splitlines() if "STREAM I/O SCHEDULER" in line]
    if not found:
        raise FoundError(f"get_maintainer.pl knows nobody for {FOLDER}/: {said}")
    return f"{len(found)} addresses for {FOLDER}/"


def check(tree: Tree, patches: Sequence[Path], quick: bool) -> int:
    """All checks; @quick: none that compiles. 1 if one has failed."""
    report = Report()
    series = patches[1:]
    with tempfile.TemporaryDirectory(prefix="streamsched-upstream-") as name:
        copy = Path(name) / "linux"
        report.run("the series applies", lambda: applies(tree, series, copy))
    for patch in series:
        report.run(f"checkpatch {patch.name[:4]}", partial(checkpatch, tree, patch))
    if not quick and not report.failed:
        with tree.locked():
            compiled(tree, series, report)
    return int(report.failed)


def compiled(tree: Tree, series: Sequence[Path], report: Report) -> None:
    """Everything that needs the compiler, and the whole tree."""
    full = Build(tree, "x86", "defconfig")
    reset(tree.source)
    try:
        full.configure(**dict.fromkeys(FULL, "y"))
    except FoundError as error:
        raise StreamschedError(f"the kernel cannot be configured: {error}") from None
    for patch in series:
        report.run(f"patch {patch.name[:4]} compiles", partial(step, full, patch))
        if report.failed:
            return
    report.run("as a module", lambda: as_module(full))
    report.run("sparse", lambda: sparse(full))
    report.run("32-bit", lambda: small(Build(tree, "i386", "i386_defconfig", "i386")))
    report.run("allyesconfig", lambda: everything(Build(tree, "all", "allyesconfig")))
    report.run("documentation", lambda: documentation(tree))
    report.run("MAINTAINERS", lambda: maintainer(tree))
