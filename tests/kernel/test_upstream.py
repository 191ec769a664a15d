# SPDX-License-Identifier: GPL-2.0-only
"""The patches for mainline Linux (make upstream): how they are made, and its checks.

What needs a kernel source is skipped where none is in the cache; make upstream fetches one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from said import ROOT, ran

sys.path.insert(0, str(ROOT / "tools"))
import upstream
import upstream_source

from streamsched.base.errors import StreamschedError, UsageError
from streamsched.hosts import rig


def run(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """The command as make calls it."""
    return ran(
        sys.executable, ROOT / "tools" / "upstream.py", *arguments, cwd=ROOT, env=os.environ | extra
    )


def need_git() -> None:
    if not shutil.which("git"):
        pytest.skip("git is missing: install the Debian package git")


def source() -> Path:
    """A kernel source; nothing is fetched for a test."""
    need_git()
    cache = rig.cache()
    packages = sorted(cache.glob("source/newest/linux-source-*.deb"))
    if not packages or not list(cache.parent.glob("upstream/*/source")):
        pytest.skip("there is no kernel source in the cache; make upstream fetches one")
    return upstream.find("")


def patch_of(series: upstream_source.Series, file: str) -> int:
    """The number of the patch that brings this file."""
    return next(number for number, patch in enumerate(series.patch) if file in patch.files)


def test_quick(tmp_path: Path) -> None:
    """Generated, applied, and without findings of checkpatch.pl; the same each time."""
    source()
    done = run("--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len([line for line in lines if line.startswith("ok      checkpatch")]) == 6
    first = {path.name: path.read_text() for path in upstream.OUTPUT.glob("*.patch")}
    assert len(first) == 7
    again = upstream.generate(source(), tmp_path / "again")
    hashes = re.compile(r"^From [0-9a-f]{40}", re.MULTILINE)
    assert first == {path.name: path.read_text() for path in again}
    assert all(hashes.search(text) for text in first.values())


@pytest.mark.long
def test_all() -> None:
    """Everything that make upstream checks."""
    source()
    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout


def compiled(tmp_path: Path, name: str, folders: list[Path], files: list[Path]) -> Path:
    """tests/kernel/upstream_same.c with these sources."""
    # 64-bit numbers are another type in the kernel, where %llu is right for them.
    options = ["-std=gnu11", "-O2", "-Wno-format", "-include", "stdio.h", "-Dscnprintf=snprintf"]
    include = [f"-I{folder}" for folder in (ROOT / "compat", *folders)]
    ours = [ROOT / "tests" / "kernel" / "upstream_same.c", ROOT / "compat" / "rbtree.c"]
    program = tmp_path / name
    compiler = os.environ.get("CC", "gcc")
    subprocess.run([compiler, *options, *include, *ours, *files, "-o", program], check=True)
    return program


def test_the_series_decides_as_the_core(tmp_path: Path) -> None:
    """All that is edited away changes no decision, over 40,000 requests of four workloads."""
    series = upstream_source.load()
    texts = upstream_source.generate(series, patch_of(series, "deadline.c"))
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    core = ROOT / "core"
    sources = [*core.glob("*.c"), *core.glob("policy/*.c"), *core.glob("stream/*.c")]
    before = compiled(tmp_path, "before", [core], sources)
    after = compiled(tmp_path, "after", [tmp_path], [tmp_path / n for n in texts if n[-1] == "c"])
    seen = set()
    for spec in ("stream:deadline", "deadline"):
        for seed in "1234":
            said = [ran(one, spec, seed, "5000", check=True) for one in (before, after)]
            assert said[0].stdout == said[1].stdout
            seen |= set(said[0].stdout.split()[1::2])
    assert seen >= {"order", "own", "oldest", "light", "back"}


def test_nothing_of_this_tree_is_left() -> None:
    """No compatibility, no arrays, no policies of the past, no private headers."""
    series = upstream_source.load()
    texts = upstream_source.generate(series, len(series.patch) - 1)
    for name, text in texts.items():
        found = re.search(
            r"compat|private\.h|LINUX_VERSION|coordinator|takes_turns|\bcfq\b|historic|core/|kernel/(?!debug)",
            text,
            re.IGNORECASE,
        )
        assert not found, f"{name}: {found}"
        for header in re.findall(r'^#include "([^"]*)"', text, re.MULTILINE):
            assert header.startswith("../") or header in texts, f"{name} includes {header}"


def test_trace_events_come_with_their_patch() -> None:
    series = upstream_source.load()
    before = upstream_source.generate(series, patch_of(series, "trace.c") - 1)
    after = upstream_source.generate(series, patch_of(series, "trace.c"))
    assert "trace.h" not in before["main.c"]
    assert "queue_debugfs_attrs" not in before["main.c"]
    assert "trace_stream_choose" in after["trace.c"]
    assert "stream_trace(" not in before["main.c"]
    assert "stream_trace(sched);" in after["main.c"]


def left_out(code: str, name: str = "gone") -> str:
    """The function around this code, without what has the name."""
    text = f"int f(struct x *x)\n{{\n{code}}}\n"
    text = upstream_source.drop_statements(text, name, "a.c")
    return text.removeprefix("int f(struct x *x)\n{\n").removesuffix("}\n")


@pytest.mark.parametrize(
    ("code", "rest"),
    [
        ("\tif (x->gone)\n\t\ta();\n\tb();\n", "\tb();\n"),
        ("\t/* Why. */\n\tif (x->gone &&\n\t    a()) {\n\t\tb();\n\t}\n\tc();\n", "\tc();\n"),
        ("\tif (!ret)\n\t\tret = gone(x);\n\treturn ret;\n", "\treturn ret;\n"),
        ("\tx->gone =\n\t\ta(x);\n\tINIT(&x->gone);\n\tb();\n", "\tb();\n"),
        ("\treturn !x->gone && a();\n", "\treturn a();\n"),
        ("\tif (a() &&\n\t    !gone(x, 1))\n\t\tb();\n", "\tif (a())\n\t\tb();\n"),
        ("\tif (x->gone || a())\n\t\tb();\n", "\tif (a())\n\t\tb();\n"),
        ("\tx->flags = A | gone;\n", "\tx->flags = A;\n"),
        ("\t/* gone() */\n\ta();\n", "\t/* gone() */\n\ta();\n"),
    ],
)
def test_what_has_a_name_that_is_left_out_goes(code: str, rest: str) -> None:
    """The name is NULL, 0 or false, or a function that does nothing."""
    assert left_out(code) == rest


@pytest.mark.parametrize(
    "code",
    [
        "\tif (a() && x->gone)\n\t\tb();\n",
        "\tif (!x->gone)\n\t\tb();\n",
        "\tif (x->gone == a())\n\t\tb();\n",
        "\tif ((x->gone && a()) || b())\n\t\tc();\n",
        "\tif (x->gone && a() || b())\n\t\tc();\n",
        "\treturn x->gone;\n",
        "\tfor_each(x)\n\t\tif (a() == x->gone)\n\t\t\tb();\n",
        "\tif (x->gone)\n\t\ta();\n\telse\n\t\tb();\n",
        "\tx->kept |= gone;\n",
    ],
)
def test_what_cannot_be_left_out_is_an_error(code: str) -> None:
    with pytest.raises(StreamschedError, match=r"a\.c: gone cannot be left out"):
        left_out(code)


def test_a_name_that_no_file_has_is_an_error() -> None:
    series = upstream_source.load()
    series.left_out.append("never_there")
    with pytest.raises(StreamschedError, match="no file has never_there to leave out"):
        upstream_source.leave_out(series, 0)


def test_declarations_are_dropped_with_their_comment() -> None:
    text = """int kept(void);

/* What it does. */
static int gone(int a,
		int (*b)(int))
{
	return b(a);
}

struct x {
	int kept;
	/* Of one line. */
	struct y *gone; /* NULL: none */
};

int kept(void)
{
	return 1;
}
"""
    dropped = upstream_source.drop_declarations(text, "gone")
    dropped = upstream_source.tidy(upstream_source.drop_statements(dropped, "gone", "a.c"))
    assert dropped == (
        "int kept(void);\n\nstruct x {\n\tint kept;\n};\n\nint kept(void)\n{\n\treturn 1;\n}\n"
    )


def test_dead_code_is_found() -> None:
    """What is only declared and defined, also if a comment names it, and what that uses."""
    texts = {
        "a.h": "#define SS_DEAD 1\n#define SS_USED 2\nint used(void);\nint dead(void);\n",
        "a.c": "static int of_dead(void)\n{\n\treturn SS_DEAD;\n}\n\n"
        "int used(void)\n{\n\treturn SS_USED;\n}\n\n"
        "/* dead() */\nint dead(void)\n{\n\treturn used() + of_dead();\n}\n"
        "module_init(used);\n",
    }
    assert list(upstream_source.unused(texts)) == ["dead", "of_dead", "SS_DEAD"]


def test_the_series_has_no_dead_code() -> None:
    series = upstream_source.load()
    assert not list(upstream_source.unused(upstream_source.generate(series, len(series.patch) - 1)))


def test_measured_tables_are_those_of_the_document() -> None:
    """Every figure of the cover letter is in a document, and 80 columns are enough."""
    text = upstream.cover_letter("1.2.3")
    document = "".join(
        (ROOT / "docs" / name).read_text() for name in ("results/kernel.md", "results/nullblk.md")
    )
    assert "@" not in text
    assert max(len(line) for line in text.splitlines()) <= 80
    figures = set(re.findall(r"\b\d+\.\d+\b", text)) - {"1.2", "6.12"}
    assert len(figures) > 50
    assert not [figure for figure in figures if figure not in document]


def test_tunables_are_those_that_are_sent() -> None:
    text = upstream.tunables('.name = "wait_target" .name = "fifo_batch"')
    assert text.startswith("wait_target (500ms, from 10ms to 60s)\n\t")
    assert "fifo_batch (16, from 1 to 1000000)" in text
    assert "read_expire" not in text
    series = upstream_source.load()
    sent = "".join(upstream_source.generate(series, len(series.patch) - 1).values())
    names = re.findall(r"^(\w+) \(", upstream.tunables(sent), re.MULTILINE)
    assert set(names) >= {"stream_threshold", "wait_target", "read_expire", "fifo_batch"}
    assert "batch_over_gaps" not in names


def test_without_git_it_says_what_is_missing(tmp_path: Path) -> None:
    done = run("--quick", PATH=str(tmp_path))
    said = "streamsched: git, which makes patches, is missing: install the Debian package git\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_without_an_author_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    need_git()
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "")
    with pytest.raises(UsageError, match=r"git knows no user\.name here"):
        upstream.person()


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (None, "is no kernel source: there is no block/elevator.h in it"),
        ("void (*depth_updated)(struct blk_mq_hw_ctx *);", "the series needs a newer one"),
    ],
)
def test_wrong_sources_are_refused(tmp_path: Path, header: str | None, said: str) -> None:
    need_git()
    (tmp_path / "block").mkdir()
    version = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\nEXTRAVERSION =\n"
    (tmp_path / "Makefile").write_text(version)
    if header:
        (tmp_path / "block" / "elevator.h").write_text(header)
    done = run("--quick", LINUX=str(tmp_path))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
