# SPDX-License-Identifier: GPL-2.0-only
"""The build takes in every source, and the binding offers every interface."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.resources
import os
import platform
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from said import ran

from streamsched import _build_core

Core = tuple[Any, Any]

FOLDERS = (
    "compat",
    "compat/linux",
    "core",
    "core/policy",
    "core/stream",
    "disk",
    "sim",
    "streamsched",
)


def listed(root: Path) -> set[str]:
    """The files that meson.build names."""
    return set(re.findall(r"'([\w/]+\.(?:c|h|py|pyi))'", (root / "meson.build").read_text()))


@pytest.mark.parametrize("folder", FOLDERS)
def test_meson_build_names_every_source(root: Path, folder: str) -> None:
    there = {
        path.relative_to(root).as_posix()
        for path in (root / folder).iterdir()
        if path.suffix in {".c", ".h", ".py", ".pyi"}
    }
    assert there - listed(root) == set()


@pytest.mark.parametrize("folder", ["disks", "jobs", "traces", "examples"])
def test_data_is_installed(root: Path, folder: str) -> None:
    data = importlib.resources.files("streamsched") / "data" / folder
    assert {entry.name for entry in data.iterdir() if entry.name != "__pycache__"} == {
        path.name
        for path in (root / folder).iterdir()
        # What was recorded of old drives is for this source tree's own tests.
        if path.suffix != ".md" and path.name not in ("recorded", "__pycache__")
    }


def test_every_public_function_is_in_the_binding(root: Path, core: Core) -> None:
    _, lib = core
    text = (root / "meson.build").read_text()
    interfaces = re.findall(r"'([\w/]+\.h)'", text.partition("interfaces = [")[2].split("]")[0])
    assert "core/sched.h" in interfaces and "sim/sim.h" in interfaces
    for header in interfaces:
        code = re.sub(r"/\*.*?\*/", "", (root / header).read_text(), flags=re.DOTALL)
        names = re.findall(r"^[a-z][\w \*]*?\b((?:ss|hdd|trace|sim)_\w+)\(", code, re.MULTILINE)
        for name in names:
            assert callable(getattr(lib, name)), f"{header}: {name}"


def test_constants_and_enums_are_in_the_binding(core: Core) -> None:
    ffi, lib = core
    assert lib.SS_MSEC == 1_000_000
    assert lib.SS_FOREVER == 2**64 - 1
    assert ffi.sizeof(ffi.new("struct ss_sched *").state) == lib.SS_STATE_BYTES
    assert [lib.SS_NOTHING, lib.SS_DISPATCH, lib.SS_WAIT] == [0, 1, 2]


def test_a_request_goes_through_the_core(core: Core) -> None:
    ffi, lib = core
    sched = ffi.new("struct ss_sched *")
    why = ffi.new("char[160]")
    assert lib.ss_sched_init(sched, b"deadline", 1 << 30, why, 160) == 0
    rq = ffi.new("struct ss_request *", {"sector": 8, "nr_sectors": 8, "direction": lib.SS_READ})
    lib.ss_sched_arrived(sched, rq, 1000)
    decision = lib.ss_sched_choose(sched, 1000)
    assert decision.verdict == lib.SS_DISPATCH
    assert decision.rq == rq
    lib.ss_sched_dispatched(sched, rq, decision.why, 1000)
    assert sched.head_sector == lib.ss_request_end(rq) == 16
    lib.ss_sched_completed(sched, rq, 2000)
    assert lib.ss_sched_choose(sched, 2000).verdict == lib.SS_NOTHING
    assert sched.counters.completions == 1


def test_a_refused_policy_says_why(core: Core) -> None:
    ffi, lib = core
    why = ffi.new("char[160]")
    assert lib.ss_sched_init(ffi.new("struct ss_sched *"), b"no-such", 1 << 30, why, 160) < 0
    assert b"no-such" in ffi.string(why)


def test_the_version_is_the_projects(root: Path) -> None:
    said = re.search(r"version: '([^']+)'", (root / "meson.build").read_text())
    assert said and importlib.metadata.version("streamsched") == said.group(1)


@pytest.mark.parametrize(
    ("expression", "value"),
    [("36", 36), ("1 << 8", 256), ("65536 / sizeof(u64)", 8192), ("2 * (3 + 0x10U)", 38)],
)
def test_array_sizes_are_evaluated(expression: str, value: int) -> None:
    assert _build_core.evaluate(expression) == value


def test_an_array_size_that_is_no_constant_is_refused() -> None:
    with pytest.raises(ValueError, match="not an integer constant"):
        _build_core.evaluate("count")


def test_bodies_are_left_out_and_prototypes_stay() -> None:
    text = "struct a { int b[1 << 2]; };\nstatic inline int f(struct a *a)\n{ return a->b[0]; }\n"
    found = [_build_core.declaration(s, shim=False) for s in _build_core.statements(text)]
    assert found == ["struct a { int b[4]; };", "int f(struct a *a);"]


BAD_FILES = {
    "core/a.c": ("// SPDX-License-Identifier: GPL-2.0-only\nfloat x;\n", "floating point"),
    "core/b.c": ("// SPDX-License-Identifier: GPL-2.0-only\n#include <stdio.h>\n", "only <linux/"),
    "core/c.c": (
        '// SPDX-License-Identifier: GPL-2.0-only\n#include "../disk/hdd.h"\n',
        "may not include from disk/",
    ),
    "disk/a.c": (
        '// SPDX-License-Identifier: GPL-2.0-only\n#include "../core/sched.h"\n',
        "may not include from core/",
    ),
    "core/stream/a.c": (
        '// SPDX-License-Identifier: GPL-2.0-only\n#include "../policy/shares.h"\n',
        "may not include from core/policy/",
    ),
    "core/stream/wait.c": (
        '// SPDX-License-Identifier: GPL-2.0-only\n#include "turn.h"\n',
        "wait.c may not include turn.h, which is above it",
    ),
    "core/stream/new.c": (
        "// SPDX-License-Identifier: GPL-2.0-only\n",
        "new.c is missing in the list of files in core/stream/stream.c",
    ),
    "core/l.c": (
        '// SPDX-License-Identifier: GPL-2.0-only\n#include "array/array.h"\n',
        "may not include from core/array/",
    ),
    "core/d.c": ("// SPDX-License-Identifier: GPL-2.0-only\n#ifdef __KERNEL__\n#endif\n", "every"),
    "core/e.c": ("// SPDX-License-Identifier: GPL-2.0-only\nvoid *p = malloc(1);\n", "allocation"),
    "core/f.c": ("int x;\n", "SPDX"),
    "core/g.c": ("// SPDX-License-Identifier: GPL-2.0-only\n// more\n", "comment with //"),
    "core/h.c": (
        "// SPDX-License-Identifier: GPL-2.0-only\nvoid f(void)\n{\n" + "\n" * 90 + "}\n",
        "function of 90 lines",
    ),
    "core/i.c": ("// SPDX-License-Identifier: GPL-2.0-only\n        int x;\n", "tabs"),
    "core/j.c": ("// SPDX-License-Identifier: GPL-2.0-only\nint x; \n", "blank"),
    "core/k.c": (f"// SPDX-License-Identifier: GPL-2.0-only\nint {'x' * 80};\n", "80 columns"),
    "tools/a.py": ("x = 1\n", "SPDX"),
    "docs/a.md": ("# A\n\nIt reads 71 MB/s.\n", "a.md:3: 71 MB/s: a figure"),
    "docs/guide/b.md": ("It has x3.67.\n<!-- constants: x3.6 -->\n", "b.md:1: x3.67: a figure"),
    "docs/guide/c.md": ("`7 ms`\n<!-- constants: 7 ms -->\n", "7 ms: listed as a constant"),
    "streamsched/sim/a.py": (
        "# SPDX-License-Identifier: GPL-2.0-only\n    from streamsched.cli import run\n",
        "streamsched/sim/ may not import from cli/",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_the_style_check_finds(tmp_path: Path, root: Path, name: str) -> None:
    text, message = BAD_FILES[name]
    checker = tmp_path / "tools" / "check_style.py"
    for file in (checker, tmp_path / "core" / "stream" / "stream.c"):
        file.parent.mkdir(parents=True)
        file.write_bytes((root / file.relative_to(tmp_path)).read_bytes())
    bad = tmp_path / name
    bad.parent.mkdir(parents=True, exist_ok=True)
    bad.write_text(text)
    done = ran(sys.executable, checker, bad)
    assert done.returncode == 1
    assert f"{name}:" in done.stdout and message in done.stdout


def test_the_benchmarks_programs_compile(root: Path) -> None:
    """They are built when something is measured, by hand; here they are only looked at."""
    programs = sorted((root / "bench").glob("*.c"))
    assert len(programs) >= 3
    for program in programs:
        # bench.py writes the disk's parameters there.
        command = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-fsyntax-only", "-DPARAMS=0"]
        subprocess.run([*command, f"-I{root / 'compat'}", program], check=True)


def test_the_core_divides_as_a_32_bit_kernel_can(root: Path, tmp_path: Path) -> None:
    """
    A 32-bit kernel has no `/` for 64 bits: only <linux/math64.h> divides them there. The core is
    compiled for 32 bits with its functions declared but not defined; whatever else the compiler
    would call for a division is then undefined, too.
    """
    if platform.machine() != "x86_64":
        pytest.skip("needs a compiler for x86, which makes 32-bit code with -m32")
    math64 = (root / "compat/linux/math64.h").read_text()
    declared = re.sub(r"static inline ([^{;]*?)\n\{.*?\n\}", r"\1;", math64, flags=re.DOTALL)
    assert "div_u64(u64 dividend, u32 divisor);" in declared and "return" not in declared
    for header, text in {"linux/math64.h": declared, "gnu/stubs-32.h": ""}.items():
        (tmp_path / header).parent.mkdir()
        (tmp_path / header).write_text(text)
    folders = [tmp_path, root / "compat", root, root / "core"]
    command = ["cc", "-c", "-m32", "-ffreestanding", "-fno-pic", "-O2", "-std=gnu11", "-Werror"]
    command += [f"-I{folder}" for folder in folders] + ["-isystem", "/usr/include/x86_64-linux-gnu"]
    sources = sorted((root / "core").rglob("*.c"))
    subprocess.run([*command, *sources], cwd=tmp_path, check=True)
    objects = sorted(tmp_path.glob("*.o"))
    found = ran("nm", "-u", "-j", *objects, check=True)
    called = set(found.stdout.split())
    assert "div_u64" in called
    assert {name for name in called if re.fullmatch(r"__\w*(div|mod|mul)\w*[ds]i\d", name)} == set()


def test_without_libfuzzer_fuzzing_is_skipped_by_name(root: Path, tmp_path: Path) -> None:
    """It is no failure of a machine that it has no clang; the totals have a line all the same."""
    totals = tmp_path / "totals"
    variables = {**os.environ, "CLANG": "no-such-clang", "FUZZ_TOTALS": str(totals)}
    done = ran(root / "tests" / "fuzz" / "run.sh", env=variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "fuzz core array trace wait skipped: no-such-clang with libFuzzer is missing; "
        "install the Debian packages clang and libclang-rt-dev\n"
    )
    assert totals.read_text() == "fuzz 0 0 4\n"


def test_lint_looks_at_the_same_files_without_git(root: Path, tmp_path: Path) -> None:
    """In a release archive, or where git is not installed, what make made is left out too."""
    check = [sys.executable, root / "tools" / "check_style.py"]
    done = ran(*check, env={"PATH": str(tmp_path)})
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    ruff = [Path(sys.executable).parent / "ruff", "check", "--no-respect-gitignore", "--show-files"]
    shown = ran(*ruff, ".", cwd=root, check=True)
    assert str(root / "tools" / "check_style.py") in shown.stdout
    assert not [line for line in shown.stdout.splitlines() if line.startswith(f"{root}/build/")]


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("SUITES", "buster", "SUITES: 'buster' is unknown; write some of: bookworm trixie"),
        ("FRESH_AS", "me", "FRESH_AS: 'me' is unknown; write some of: user root again"),
        ("FRESH_ONLY", "all", "FRESH_ONLY: 'all' is unknown; write some of: setup"),
    ],
)
def test_a_fresh_root_of_nothing_known_is_refused(
    root: Path, variable: str, value: str, said: str
) -> None:
    done = ran(root / "tools" / "fresh.sh", env={**os.environ, variable: value})
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"fresh.sh: {said}\n")


def test_every_mutant_fits_the_tree(root: Path) -> None:
    """A text that has moved, or stands there twice, is refused before anything runs."""
    tool = [sys.executable, root / "tools" / "mutants.py", "--list"]
    done = ran(*tool)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) >= 30


def test_the_core_needs_no_more_than_a_compiler_and_what_runs_tests(root: Path) -> None:
    """make unit: no linter, no plotting, no Debian package; and its tests import nothing else."""
    command = ["make", "--dry-run", "--what-if=pyproject.toml", "unit"]
    done = ran(*command, cwd=root, check=True)
    steps = re.findall(r"^tools/setup\.sh (\w+)$", done.stdout, re.MULTILINE)
    assert steps == ["tools", "package", "unit"]
    tool = [sys.executable, root / "tools" / "requirements.py", "unit"]
    said = ran(*tool, check=True).stdout
    assert re.findall(r"^[\w-]+", said, re.MULTILINE) == [
        "pytest",
        "pytest-xdist",
        "hypothesis",
        "setuptools",  # cffi's compiler
    ]
    drawn = root / "bench" / "workloads.py"
    files = [root / "tests" / "conftest.py", drawn, *(root / "tests" / "core").glob("*.py")]
    ours = {path.stem for path in [drawn, *(root / "tests").rglob("*.py")]}
    trees = [ast.parse(path.read_text()) for path in files]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = [one.name for node in nodes if isinstance(node, ast.Import) for one in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    imported = {name.partition(".")[0] for name in names}
    needed = {"cffi", "hypothesis", "pytest", "streamsched"}
    assert imported - ours - sys.stdlib_module_names == needed


def test_all_extras_are_one_command(root: Path) -> None:
    """README names those that a user may want, and `all` has them."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    developers = {"applications", "dev", "site", "unit"}
    named = set(extras) - developers - {"all"}
    assert extras["all"] == [f"streamsched[{','.join(sorted(named))}]"]
    text = (root / "README.md").read_text()
    table = text.partition("| extra | for |\n|---|---|\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == named
    assert "pip install 'streamsched[all]'" in text


def test_makes_help_fits_a_terminal(root: Path) -> None:
    done = ran("make", "help", cwd=root, check=True)
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


def test_unit_of_a_file_that_is_not_there(root: Path) -> None:
    stamp = ".venv/stamp-unit"  # so that nothing is made first
    done = ran("make", f"--old-file={stamp}", "unit", "TESTS=nowhere.py", cwd=root)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "make unit: TESTS=nowhere.py: there is no such file"


def test_what_takes_long_says_that_it_goes_on(root: Path, tmp_path: Path) -> None:
    """Seconds, and ninja's steps; what it ends with is the command's, and nothing stays behind."""
    script = (
        '. "$0/tools/progress.sh"; watched "$1" sh -c '
        "'echo \"  [3/9] Compiling C object\"; echo wrong >&2; sleep 1.5; exit 7'"
    )
    log = tmp_path / "log"
    done = ran("bash", "-c", script, root, log, env={**os.environ, "EVERY_S": "1"})
    assert (done.returncode, done.stdout) == (7, "")
    assert re.fullmatch(r"    \d s, step 3 of 9\n", done.stderr)
    assert log.read_text() == "  [3/9] Compiling C object\nwrong\n"


def test_make_run_does_the_main_job(root: Path) -> None:
    """README's first command: all three parts print, and it succeeds."""
    done = ran("make", "run", cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    for printed in ("stream:deadline", "agree; ", "pg-scan.blktrace.zst (blktrace), closed"):
        assert printed in done.stdout
