# SPDX-License-Identifier: GPL-2.0-only
"""The order of who is due, proved for any events by the model checker CBMC (tests/cbmc/due.c)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from said import ROOT, ran

PARTS = ["compat", "core", "tests/cbmc"]

pytestmark = pytest.mark.skipif(
    not all(shutil.which(name) for name in ("cbmc", "goto-cc", "goto-instrument")),
    reason="cbmc is missing: it is a Debian package, from Debian 13 on",
)


def prove(root: Path, build: Path, turns: str) -> subprocess.CompletedProcess[str]:
    """What the model checker says, where it is the turn of one of @turns."""
    return ran(
        root / "tests" / "cbmc" / "run.sh", env={**os.environ, "BUILD": str(build), "TURNS": turns}
    )


@pytest.mark.parametrize("turn", ["none", "0", "1", "2", "3"])
def test_the_order_of_who_is_due_holds_after_any_event(turn: str, tmp_path: Path) -> None:
    """With four parties: two streams, the rest, and write-back."""
    done = prove(ROOT, tmp_path, turn)
    assert done.stdout == f"turn {turn}: proved\n", done.stdout + done.stderr


# A text of core/stream/party.c or turn.c, what stands there instead, what is found, in which turn.
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
        "	return now_ns + policy->value[STREAM_WAIT_TARGET];",
        "	return now_ns + 2 * policy->value[STREAM_WAIT_TARGET];",
        "due within the target",
        "0",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_the_order_is_found(bug: str, tmp_path: Path) -> None:
    file, old, new, found, turn = BUGS[bug]
    for part in PARTS:
        shutil.copytree(ROOT / part, tmp_path / part)
    source = tmp_path / "core" / "stream" / file
    text = source.read_text()
    assert text.count(old) == 1
    source.write_text(text.replace(old, new))
    done = prove(tmp_path, tmp_path / "build", turn)
    assert done.returncode == 1
    assert f"{found}: FAILURE" in done.stdout, done.stdout
