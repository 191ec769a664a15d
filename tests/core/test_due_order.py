# SPDX-License-Identifier: GPL-2.0-only
"""The order of who is due, proved for any events by the model checker CBMC (tests/cbmc/due.c).

Where there is no CBMC the proof is still compiled, and the bugs' texts are looked for.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from said import ROOT, ran

PARTS = ["compat", "core", "tests/cbmc"]

RUN = ROOT / "tests" / "cbmc" / "run.sh"

needs_cbmc = pytest.mark.skipif(
    ran(RUN, "--check").returncode != 0,
    reason="CBMC is missing: make test as root installs it (tools/setup.sh proof)",
)


def prove(root: Path, build: Path, case: str) -> subprocess.CompletedProcess[str]:
    """What the model checker says of @case, which is a party that has the turn, none, or choice."""
    return ran(RUN, env={**os.environ, "TREE": str(root), "BUILD": str(build), "CASES": case})


@needs_cbmc
@pytest.mark.parametrize("turn", ["none", "0", "1", "2", "3"])
def test_the_order_of_who_is_due_holds_after_any_event(turn: str, tmp_path: Path) -> None:
    """With four parties: two streams, the rest, and write-back."""
    done = prove(ROOT, tmp_path, turn)
    assert done.stdout == f"{turn}: proved\n", done.stdout + done.stderr


@needs_cbmc
def test_a_write_that_waits_for_no_head_passes_nobody_who_is_overdue(tmp_path: Path) -> None:
    done = prove(ROOT, tmp_path, "choice")
    assert done.stdout == "choice: proved\n", done.stdout + done.stderr


# Stand-ins for what the model checker brings.
MODEL = """
#include <linux/types.h>
u64 nondet_u64(void) { return 0; }
u32 nondet_u32(void) { return 0; }
bool nondet_bool(void) { return false; }
"""


@pytest.mark.parametrize("define", ["NO_TURN", "TURN=0", "CHOICE"])
def test_the_proof_is_of_todays_code(define: str, tmp_path: Path) -> None:
    """Linked, too: of a function that it lacks the model checker assumes that it does nothing."""
    model = tmp_path / "model.c"
    model.write_text(MODEL)
    flags = ["-std=gnu11", "-Werror", f"-D{define}", "-Itests/cbmc", "-Icompat"]
    flags += [
        f"-D__CPROVER_{name}=((void)(cond))" for name in ("assume(cond)", "assert(cond,text)")
    ]
    compiler = shlex.split(os.environ.get("CC", "cc"))
    files = ["-o", tmp_path / "due", "tests/cbmc/due.c", model]
    done = ran(*compiler, *flags, *files, cwd=ROOT)
    assert done.returncode == 0, done.stderr


# A text of a file of core/stream, what stands there instead, what is found, in which case.
BUGS = {
    "the one due last is first": (
        "party.c",
        "due_node)->due_ns <\n",
        "due_node)->due_ns >\n",
        "the order is by due_ns",
        "none",
    ),
    "a party with nothing pending stays in the order": (
        "party.c",
        "	party->light = false;\n	ss_party_leaves(all, party);",
        "	party->light = false;",
        "each that waits for a turn is in the order once",
        "none",
    ),
    "a party that was idle keeps the time it was due at": (
        "party.c",
        "	party->due_ns = rq->arrival_ns + policy->value[STREAM_WAIT_TARGET];\n",
        "",
        "due within the target",
        "none",
    ),
    "who is due first is not noted anew": (
        "party.c",
        "	if (rb_add_cached(&party->due_node, &all->due, party_is_before))\n		all",
        "	if (rb_add_cached(&party->due_node, &all->due, party_is_before) &&\n"
        "	    !all->first_due)\n		all",
        "first_due is its first",
        "none",
    ),
    "who has had a turn is in no order any more": (
        "turn.c",
        "	if (before && before != party && before->nr_pending)\n"
        "		ss_party_queues(all, before);\n",
        "",
        "each that waits for a turn is in the order once",
        "0",
    ),
    "the next turn is due a target too late": (
        "turn.c",
        "since_ns + policy->value[STREAM_WAIT_TARGET];",
        "since_ns + 2 * policy->value[STREAM_WAIT_TARGET];",
        "due within the target",
        "0",
    ),
    "the rest is due after its turn like a stream": (
        "turn.c",
        "				ss_party_rest_due_ns(policy) :\n",
        "				now_ns + 2 * policy->value[STREAM_WAIT_TARGET] :\n",
        "due within the target",
        "2",
    ),
    "a write that waited for no head is remembered when it has gone": (
        "party.c",
        "	if (all->cached == rq)\n		all->cached = NULL;\n",
        "",
        "what waits for no head is pending",
        "none",
    ),
    "a write that waits for no head passes everybody": (
        "choose.c",
        "	if (all->cached && !choose_is_overdue(policy, now_ns))",
        "	if (all->cached)",
        "nobody overdue waits for what needs no head",
        "choice",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bugs_text_stands_in_its_file_once(bug: str) -> None:
    file, old, new, found, _ = BUGS[bug]
    text = (ROOT / "core" / "stream" / file).read_text()
    assert text.count(old) == 1, f"{file} has another text now: mend BUGS"
    assert old != new
    proof = "".join(path.read_text() for path in (ROOT / "tests" / "cbmc").glob("**/*.[ch]"))
    assert f'"{found}"' in proof


@needs_cbmc
@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_the_order_is_found(bug: str, tmp_path: Path) -> None:
    file, old, new, found, case = BUGS[bug]
    for part in PARTS:
        shutil.copytree(ROOT / part, tmp_path / part)
    source = tmp_path / "core" / "stream" / file
    source.write_text(source.read_text().replace(old, new))
    done = prove(tmp_path, tmp_path / "build", case)
    assert done.returncode == 1
    assert f"{found}: FAILURE" in done.stdout, done.stdout
