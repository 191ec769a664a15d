# SPDX-License-Identifier: GPL-2.0-only
"""What a series for mainline Linux has to stand: each check prints one line.

The patches are applied one after the other to the pristine tree, and what each adds is compiled.
Whatever the compiler, sparse or checkpatch.pl say about files of the series is a finding; what
does not count is in NOT_COUNTED, with a reason, and is printed.
"""

from __future__ import annotations

import fcntl
import linecache
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from check_kernel import Command, MissingError, Variables, need, run
from upstream_source import FOLDER

from streamsched.base.errors import StreamschedError

# What checkpatch.pl --strict says that does not count: of which files, its types, and why.
NOT_COUNTED = (
    ("*", "FILE_PATH_CHANGES", "the last patch has the entry in MAINTAINERS"),
    ("*/sysfs.c", "COMPLEX_MACRO MACRO_ARG_REUSE", "rows of tables, of a macro's name"),
    (
        "*/iosched.h",
        "COMPLEX_MACRO MACRO_ARG_REUSE",
        "the head of a loop, as list_for_each_entry()",
    ),
    ("*/iosched.h", "MACRO_ARG_PRECEDENCE", "the argument is a name to be declared"),
    ("*/sched.c", "BIT_MACRO", "a number of sectors is no flag"),
    ("*/trace.h", "OPEN_ENDED_LINE PARENTHESIS_ALIGNMENT", "as all headers of trace events"),
)
# What 32-bit code calls for a 64-bit division that the kernel does not have.
DIVISIONS = {"__udivdi3", "__umoddi3", "__divdi3", "__moddi3"}
# Options that bring in all that the scheduler has.
FULL = dict.fromkeys(("CGROUPS", "BLK_CGROUP", "DEBUG_FS", "BLK_DEV_IO_TRACE"), "y")


def passes(name: str, check: Callable[..., str], *arguments: object) -> bool:
    """One check, which gives what is to be said beside its name."""
    try:
        print(f"ok      {name}: {check(*arguments)}", flush=True)
    except MissingError as error:
        print(f"skipped {name}: {error}", flush=True)
    except StreamschedError as error:
        print(f"FAILED  {name}\n{error}", flush=True)
        return False
    return True


def call(command: Command, folder: Path, extra: Variables = None) -> str:
    """What it prints; an error with its last line if it fails."""
    done = run(command, folder, extra)
    if done.returncode:
        words = " ".join(map(str, command[:3]))
        last = (done.stdout.strip().splitlines() or ["nothing"])[-1]
        raise StreamschedError(f"{words} failed with {done.returncode}: {last}")
    return done.stdout


def none(findings: Sequence[str]) -> None:
    """Findings are raised."""
    if findings:
        raise StreamschedError("\n".join(findings))


def apply(patches: Sequence[Path], where: Path) -> str:
    """On top of what is there."""
    who = {"GIT_COMMITTER_NAME": "base", "GIT_COMMITTER_EMAIL": "base@localhost"}
    call(["git", "am", "-q", *[patch.resolve() for patch in patches]], where, who)
    return f"git am of {len(patches)} patches on the pristine tree"


def checkpatch(source: Path, patch: Path) -> str:
    """Findings that count; the others are named."""
    need("perl", "perl")
    options = ["--strict", "--showfile", "--terse", "--show-types", "--no-summary"]
    # With git it would call spdxcheck.py, which needs Python packages that few machines have.
    command = ["perl", "scripts/checkpatch.pl", *options, str(patch.resolve())]
    found, ignored = [], Counter[str]()
    for line in run(command, source, {"GIT_DIR": "/nonexistent"}).stdout.splitlines():
        match = re.match(r"(?:(\S+?):\d+: )?(?:ERROR|WARNING|CHECK):(\w+):", line)
        file, kind = match.groups("") if match else ("", "")
        rows = [row for row in NOT_COUNTED if kind in row[1].split() and fnmatch(file, row[0])]
        if rows:
            ignored[f"{kind}: {rows[0][2]}"] += 1
        else:
            found.append(line)
    none(found)
    rest = "; ".join(f"{count} {what}" for what, count in ignored.items())
    return "0 errors, 0 warnings, 0 checks" + (f" (not counted: {rest})" if rest else "")


def of_old_sparse(line: str) -> bool:
    """Whether it is what sparse 0.6.4 says of each MODULE_LICENSE() and the like, in any module."""
    match = re.match(r"(\S+):(\d+):\d+: error: bad constant expression$", line)
    return bool(match and linecache.getline(match[1], int(match[2])).startswith("MODULE_"))


class Build(NamedTuple):
    """A folder beside the source in which a kernel is configured, and compiled in part."""

    source: Path
    name: str
    config: str
    arch: str = "x86_64"

    @property
    def folder(self) -> Path:
        return self.source.parent / self.name

    @property
    def objects(self) -> list[Path]:
        return sorted((self.folder / FOLDER).glob("*.o"))

    def make(self, *arguments: str) -> str:
        """What it prints; its errors are raised."""
        where = [f"O={self.folder}", f"ARCH={self.arch}", f"CC={os.environ.get('CC', 'gcc')}"]
        where.append(f"-j{os.cpu_count() or 1}")
        done = run(["nice", "make", *where, *arguments], self.source)
        if done.returncode:
            text = done.stdout.replace(f"{self.source}/", "")
            none(re.findall(r".*(?:error:|ERROR).*", text)[:20] or text.splitlines()[-5:])
        return done.stdout

    def configure(self, **options: str) -> None:
        """Set options: y, m or n."""
        config = self.folder / ".config"
        if not config.exists():
            self.make("-s", self.config)
        words = [word for option in options.items() for word in ("--set-val", *option)]
        call(["scripts/config", "--file", config, *words], self.source)
        self.make("-s", "olddefconfig")
        is_set = dict(re.findall(r"^CONFIG_(\w+)=(\w+)$", config.read_text(), re.MULTILINE))
        lost = [name for name, value in options.items() if is_set.get(name, "n") != value]
        none([f"{self.name}: Kconfig does not take {name}" for name in lost])
        self.make("-s", "prepare", "modules_prepare")

    def block(self, *arguments: str, **options: str) -> str:
        """Compile block/ with all there is but for these options; findings are raised."""
        self.configure(**FULL | options)
        text = self.make(*arguments, "block/")
        word = re.compile(rf"{FOLDER}/.*\b(warning|error|note):")
        none([line for line in text.splitlines() if word.search(line) and not of_old_sparse(line)])
        if "C=2" in arguments:
            checked = re.findall(rf"CHECK\s+\S*({FOLDER}/\S+)", text)
            files = [f"{FOLDER}/{path.name}" for path in (self.source / FOLDER).glob("*.c")]
            none([f"sparse was not run on {file}" for file in files if file not in checked])
        return f"{len(self.objects)} objects in {FOLDER}/"

    def undefined(self) -> set[str]:
        """Symbols that our objects want of the rest of the kernel."""
        text = call(["nm", "-P", *self.objects], self.folder)
        rows = re.findall(r"^(\S+) ([A-Za-z])\b", text, re.MULTILINE)
        return {name for name, _ in rows} - {name for name, kind in rows if kind not in "Uvw"}


def step(build: Build, patch: Path) -> str:
    """Apply it and compile what there is then."""
    apply([patch], build.source)
    ours = build.source / FOLDER
    if (ours / "Makefile").is_file():
        return f"make block/ with {build.block(MQ_IOSCHED_STREAM='y')}"
    build.make("-s", "block/")
    # What is not yet reached by block/Makefile, as the parts of a module of its own.
    with tempfile.TemporaryDirectory(prefix="streamsched-upstream-") as name:
        work = shutil.copytree(ours, Path(name), dirs_exist_ok=True)
        objects = [path.stem + ".o" for path in sorted(work.glob("*.c"))]
        (work / "Kbuild").write_text(f"obj-m := part.o\npart-y := {' '.join(objects)}\n")
        none(re.findall(r".*warning:.*", build.make(f"M={work}", "W=1", "part.o")))
        none([f"make has not compiled {file}" for file in objects if not (work / file).is_file()])
    return f"make block/; {len(objects)} objects, by themselves"


def as_module(build: Build) -> str:
    """=m with W=1; what it wants of the kernel is exported."""
    build.block("W=1", MQ_IOSCHED_STREAM="m")
    folders = ("block", "kernel", "lib", "mm", "fs", "arch/x86")
    grep = ["grep", "-rhoE", r"EXPORT_(SYMBOL|PER_CPU|TRACEPOINT)\w*\(\w+", *folders]
    exported = {line.split("(")[1] for line in call(grep, build.source).splitlines()}
    # What the compiler and the tracer call has other ways to be exported.
    wanted = {name for name in build.undefined() if not name.startswith("__")}
    none([f"a module cannot have {name}: not exported" for name in sorted(wanted - exported)])
    return f"W=1; all {len(wanted)} symbols that it uses are exported"


def sparse(build: Build) -> str:
    """With make C=2 block/."""
    need("sparse", "sparse")
    # The kernel refuses a sparse that does not know this word, as Debian's 0.6.4: say it for it.
    old = run(["sh", "scripts/checker-valid.sh", "sparse"], build.source).stdout == "0\n"
    build.block("C=2", *(["CHECK=sparse -D__typeof_unqual__=__typeof__"] if old else []))
    return f"no warning{', by a sparse that does not know __typeof_unqual__' if old else ''}"


def small(build: Build) -> str:
    """32 bits, and without what is optional."""
    build.block("W=1", MQ_IOSCHED_STREAM="y")
    none([f"divides with {name}: use div_u64()" for name in build.undefined() & DIVISIONS])
    build.block("W=1", BLK_DEBUG_FS="n", BLK_CGROUP="n")
    return "W=1, no 64-bit division; also without debugfs and cgroups"


def documentation(build: Build) -> str:
    """Sphinx, of Documentation/block alone."""
    need("sphinx-build", "python3-sphinx")
    text = build.make("SPHINXDIRS=block", "htmldocs")
    none(re.findall(r"^.*stream-iosched.*: .*(?:WARNING|ERROR|warning|error).*$", text, re.M))
    made = list(build.folder.rglob("stream-iosched.html"))
    none([] if made else ["make htmldocs has made no stream-iosched.html"])
    return "make SPHINXDIRS=block htmldocs without a warning about it"


def maintainer(source: Path) -> str:
    """Does get_maintainer.pl find the entry."""
    command = ["perl", "scripts/get_maintainer.pl", "--nogit", "--nogit-fallback", "-f"]
    text = call([*command, f"{FOLDER}/main.c"], source)
    count = text.count("STREAM I/O SCHEDULER")
    none([] if count else [f"get_maintainer.pl knows nobody for {FOLDER}/: {text}"])
    return f"{count} addresses for {FOLDER}/"


def check(source: Path, patches: Sequence[Path], quick: bool) -> bool:
    """Whether all checks pass; @quick: without those that compile."""
    with tempfile.TemporaryDirectory(prefix="streamsched-upstream-") as name:
        call(["git", "clone", "-q", "--shared", "-b", "base", source, name], source)
        passed = [passes("the series applies", apply, patches, Path(name))]
    numbered = [(patch.name[:4], patch) for patch in patches]
    passed += [passes(f"checkpatch {nr}", checkpatch, source, patch) for nr, patch in numbered]
    if quick or not all(passed):
        return all(passed)
    # Others that want to build in it wait; then it is pristine.
    with (source.parent / "lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        run(["git", "am", "--abort"], source)
        call(["git", "checkout", "-q", "-f", "-B", "series", "base"], source)
        call(["git", "clean", "-q", "-f", "-d", "--", "block", "Documentation/block"], source)
        full, everything = Build(source, "x86", "defconfig"), Build(source, "all", "allyesconfig")
        full.configure(**FULL)
        if not all(passes(f"patch {nr} compiles", step, full, patch) for nr, patch in numbered):
            return False
        passed = [
            passes("as a module", as_module, full),
            passes("sparse", sparse, full),
            passes("32-bit", small, Build(source, "i386", "i386_defconfig", "i386")),
            passes("allyesconfig", lambda: everything.block(MQ_IOSCHED_STREAM="y")),
            passes("documentation", documentation, Build(source, "docs", "defconfig")),
            passes("MAINTAINERS", maintainer, source),
        ]
        return all(passed)
