# SPDX-License-Identifier: GPL-2.0-only
"""What a series for mainline Linux has to stand: each check prints one line.

The patches are applied one after the other to the pristine tree, and what each adds is compiled.
Whatever the compiler, sparse or checkpatch.pl say about files of the series is a finding; what
does not count is in NOT_COUNTED, with a reason, and is printed.
"""

from __future__ import annotations

import fcntl
import fnmatch
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from upstream_source import FOLDER
from upstream_tree import Tree, call, said

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
    ("MULTIPLE_ASSIGNMENTS", f"{FOLDER}/a*.c", "two names of one value"),
    ("LONG_LINE_STRING", f"{FOLDER}/stream.c", "what a tunable is, in one sentence"),
    ("OPEN_ENDED_LINE", f"{FOLDER}/trace.h", "as all headers of trace events"),
    ("PARENTHESIS_ALIGNMENT", f"{FOLDER}/trace.h", "as all headers of trace events"),
)
# What 32-bit code calls for a 64-bit division that the kernel does not have.
DIVISIONS = {"__udivdi3", "__umoddi3", "__divdi3", "__moddi3"}
# Options that bring in all that the scheduler has.
FULL = ("CGROUPS", "BLK_CGROUP", "DEBUG_FS", "BLK_DEV_IO_TRACE")
SYMBOL = "MQ_IOSCHED_STREAM"


class FoundError(StreamschedError):
    """The check has failed; its lines say how."""


class MissingError(Exception):
    """A tool is not there; the message says what to install."""


class Report:
    """Prints one line for each check and remembers whether one has failed."""

    failed = False

    def run(self, name: str, check: Callable[[], str]) -> None:
        """One check, which gives what is to be said beside its name."""
        try:
            print(f"ok      {name}: {check()}", flush=True)
        except MissingError as error:
            print(f"skipped {name}: {error}", flush=True)
        except StreamschedError as error:
            self.failed = True
            print(f"FAILED  {name}\n{error}", flush=True)


def need(tool: str, package: str) -> None:
    """For the check that is under way."""
    if not shutil.which(tool):
        raise MissingError(f"{tool} is missing: install the Debian package {package}")


def none(findings: Sequence[str]) -> None:
    """Findings are raised."""
    if findings:
        raise FoundError("\n".join(findings))


def apply(patches: Sequence[Path], where: Path) -> str:
    """On top of what is there."""
    person = ["-c", "user.name=base", "-c", "user.email=base@localhost"]
    call(["git", *person, "am", "-q", *[patch.resolve() for patch in patches]], where)
    return f"git am of {len(patches)} patches on the pristine tree"


def checkpatch(tree: Tree, patch: Path) -> str:
    """Findings that count; the others are named."""
    need("perl", "perl")
    options = ["--strict", "--showfile", "--terse", "--show-types", "--no-summary"]
    # With git it would call spdxcheck.py, which needs Python packages that few machines have.
    command = ["perl", "scripts/checkpatch.pl", *options, str(patch.resolve())]
    found, ignored = [], Counter[str]()
    for line in said(command, tree.source, GIT_DIR="/nonexistent")[1].splitlines():
        match = re.match(r"(?:(\S+?):\d+: )?(?:ERROR|WARNING|CHECK):(\w+):", line)
        for kind, pattern, reason in NOT_COUNTED:
            if match and kind == match[2] and fnmatch.fnmatch(match[1] or "", pattern):
                ignored[f"{kind}: {reason}"] += 1
                break
        else:
            found.append(line)
    none(found)
    rest = "; ".join(f"{count} {what}" for what, count in ignored.items())
    return "0 errors, 0 warnings, 0 checks" + (f" (not counted: {rest})" if rest else "")


def of_old_sparse(line: str) -> bool:
    """Whether it is what sparse 0.6.4 says of each MODULE_LICENSE() and the like, in any module."""
    match = re.match(r"(\S+):(\d+):\d+: error: bad constant expression$", line)
    if not match:
        return False
    return Path(match[1]).read_text().splitlines()[int(match[2]) - 1].startswith("MODULE_")


@dataclass(frozen=True)
class Build:
    """A folder beside the source in which a kernel is configured, and compiled in part."""

    tree: Tree
    name: str
    config: str
    arch: str = "x86_64"

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self.tree.folder / self.name

    def make(self, *arguments: str) -> str:
        """What it prints; its errors are raised."""
        where = [f"O={self.folder}", f"ARCH={self.arch}", f"CC={os.environ.get('CC', 'gcc')}"]
        jobs = f"-j{os.cpu_count() or 1}"
        code, text = said(["nice", "make", jobs, *where, *arguments], self.tree.source)
        if code:
            lines = text.replace(f"{self.tree.source}/", "").splitlines()
            errors = [line for line in lines if re.search(r"error:|ERROR", line)]
            none(errors[:20] or lines[-5:])
        return text

    def configure(self, **options: str) -> None:
        """Set options: y, m or n."""
        self.folder.mkdir(exist_ok=True)
        config = self.folder / ".config"
        if not config.exists():
            self.make("-s", self.config)
        flags = {"y": "-e", "m": "-m", "n": "-d"}
        words = [word for name, value in options.items() for word in (flags[value], name)]
        call([self.tree.source / "scripts" / "config", "--file", config, *words], self.folder)
        self.make("-s", "olddefconfig")
        is_set = dict(re.findall(r"^CONFIG_(\w+)=(\w+)$", config.read_text(), re.MULTILINE))
        lost = [name for name, value in options.items() if is_set.get(name, "n") != value]
        none([f"{self.name}: Kconfig does not take {', '.join(lost)}"] if lost else [])
        self.make("-s", "prepare", "modules_prepare")

    def block(self, *arguments: str) -> str:
        """Compile block/; findings about the series are raised."""
        text = self.make(*arguments, "block/")
        word = re.compile(rf"{FOLDER}/.*\b(warning|error|note):")
        none([line for line in text.splitlines() if word.search(line) and not of_old_sparse(line)])
        if "C=2" in arguments:
            sources = {path.name for path in (self.tree.source / FOLDER).glob("*.c")}
            lost = sources - set(re.findall(rf"CHECK\s+\S*{FOLDER}/(\S+)", text))
            none([f"sparse was not run on {name}" for name in sorted(lost)])
        return f"{len(list((self.folder / FOLDER).glob('*.o')))} objects in {FOLDER}/"

    def undefined(self) -> set[str]:
        """Symbols that our objects want of the rest of the kernel."""
        objects = sorted((self.folder / FOLDER).glob("*.o"))
        names = re.compile(r"^(?:[0-9a-f]+ | +)[A-Za-z] (\S+)$", re.MULTILINE)
        wanted, given = (
            call(["nm", one, *objects], self.folder) for one in ("-u", "--defined-only")
        )
        return set(names.findall(wanted)) - set(names.findall(given))


def compile_alone(build: Build) -> str:
    """What is not yet reached by block/Makefile, as the parts of a module of its own."""
    with tempfile.TemporaryDirectory(prefix="streamsched-upstream-") as name:
        work = Path(name)
        shutil.copytree(build.tree.source / FOLDER, work, dirs_exist_ok=True)
        objects = [path.stem + ".o" for path in sorted(work.glob("*.c"))]
        (work / "Kbuild").write_text(f"obj-m := part.o\npart-y := {' '.join(objects)}\n")
        text = build.make(f"M={work}", "W=1", "part.o")
        none([line for line in text.splitlines() if "warning:" in line])
        none([f"make has not compiled {file}" for file in objects if not (work / file).is_file()])
    return f"make block/; {len(objects)} objects, by themselves"


def step(build: Build, patch: Path) -> str:
    """Apply it and compile what there is then."""
    apply([patch], build.tree.source)
    if not (build.tree.source / FOLDER / "Makefile").is_file():
        build.make("-s", "block/")
        return compile_alone(build)
    build.configure(**{SYMBOL: "y"})
    return f"make block/ with {build.block()}"


def as_module(build: Build) -> str:
    """=m with W=1; what it wants of the kernel is exported."""
    build.configure(**{SYMBOL: "m"})
    build.block("W=1")
    folders = ("block", "kernel", "lib", "mm", "fs", "arch/x86")
    grep = ["grep", "-rhoE", r"EXPORT_(SYMBOL|PER_CPU|TRACEPOINT)\w*\(\w+", *folders]
    exported = {line.split("(")[1] for line in call(grep, build.tree.source).splitlines()}
    # What the compiler and the tracer call has other ways to be exported.
    wanted = {name for name in build.undefined() if not name.startswith("__")}
    none([f"a module cannot have {name}: not exported" for name in sorted(wanted - exported)])
    return f"W=1; all {len(wanted)} symbols that it uses are exported"


def sparse(build: Build) -> str:
    """With make C=2 block/."""
    need("sparse", "sparse")
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
    divisions = sorted(build.undefined() & DIVISIONS)
    none([f"divides with {name}: use div_u64() and the like" for name in divisions])
    build.configure(BLK_DEBUG_FS="n", BLK_CGROUP="n")
    build.block("W=1")
    return "W=1, no 64-bit division; also without debugfs and cgroups"


def everything(build: Build) -> str:
    """With allyesconfig."""
    build.make("-s", "allyesconfig")
    build.configure(**{SYMBOL: "y"})
    return build.block()


def documentation(tree: Tree) -> str:
    """Sphinx, of Documentation/block alone."""
    need("sphinx-build", "python3-sphinx")
    text = Build(tree, "docs", "defconfig").make("SPHINXDIRS=block", "htmldocs")
    none(re.findall(r"^.*stream-iosched.*: .*(?:WARNING|ERROR|warning|error).*$", text, re.M))
    if not list((tree.folder / "docs").rglob("stream-iosched.html")):
        raise FoundError("make htmldocs has made no stream-iosched.html")
    return "make SPHINXDIRS=block htmldocs without a warning about it"


def maintainer(tree: Tree) -> str:
    """Does get_maintainer.pl find the entry."""
    command = ["perl", "scripts/get_maintainer.pl", "--nogit", "--nogit-fallback", "-f"]
    text = call([*command, f"{FOLDER}/main.c"], tree.source)
    if "STREAM I/O SCHEDULER" not in text:
        raise FoundError(f"get_maintainer.pl knows nobody for {FOLDER}/: {text}")
    return f"{text.count('STREAM I/O SCHEDULER')} addresses for {FOLDER}/"


def check(tree: Tree, patches: Sequence[Path], quick: bool) -> int:
    """All checks; @quick: none that compiles. 1 if one has failed."""
    report, series = Report(), patches[1:]
    with tempfile.TemporaryDirectory(prefix="streamsched-upstream-") as name:
        call(["git", "clone", "-q", "--shared", "-b", "base", tree.source, name], tree.folder)
        report.run("the series applies", lambda: apply(series, Path(name)))
    for patch in series:
        report.run(f"checkpatch {patch.name[:4]}", partial(checkpatch, tree, patch))
    if not quick and not report.failed:
        # Others that want to build in it wait.
        with (tree.folder / "lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            compiled(tree, series, report)
    return int(report.failed)


def compiled(tree: Tree, series: Sequence[Path], report: Report) -> None:
    """Everything that needs the compiler, and the whole tree, which is pristine to begin with."""
    said(["git", "am", "--abort"], tree.source)
    call(["git", "checkout", "-q", "-f", "-B", "series", "base"], tree.source)
    call(["git", "clean", "-q", "-f", "-d", "--", "block", "Documentation/block"], tree.source)
    full = Build(tree, "x86", "defconfig")
    full.configure(**dict.fromkeys(FULL, "y"))
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
