# SPDX-License-Identifier: GPL-2.0-only
"""Rows of Love, "Kernel Korner: I/O Schedulers", Linux Journal 2004, Table 1, and of Seelam,
Romero, Teller and Buros, "Enhancements to Linux I/O Scheduling", OLS 2005: Tables 1 to 3 and the
four profiles of file servers, from their slides.

Both pairs of programs are the same. Seelam's kernel is 2.6.9, whose anticipatory scheduler does
not know yet that others may go on where a process has exited: cooperation=0. Love's rows are
with the anticipatory scheduler as it is here (2.6.31). Both had the older deadline scheduler,
whose batches end at a gap: batch_over_gaps=0. Of Linux 2.4 Love names no release; in February
2004 2.4.22 to 2.4.24 were current.
"""

from __future__ import annotations

from streamsched.sim.experiment import (
    Case,
    Figure,
    Origin,
    Row,
    Runs,
    factor_row,
    figure_row,
    order_row,
    within,
    work_case,
)
from streamsched.sim.workloads import SEELAM_DISK

LOVE = "Love, Linux Journal 2004"
SEELAM = "Seelam et al., OLS 2005"
WRITES, STREAM_TREE = "writes-and-read", "stream-and-tree"


def _seconds(runs: Runs, case: Case) -> float:
    """What its last process took: the one that is timed."""
    return runs[case].jobs[-1].duration_ns / 1e9


# ---- Love, Table 1 ----

LOVE_POLICIES = ("linus", "deadline", "anticipatory")
# Linux 2.4.22, include/linux/elevator.h: ELV_LINUS_SEEK_COST, and what may pass a read or a write;
# include/linux/blkdev.h, MAX_QUEUE_SECTORS: 4 MiB are in the queue at most, of an IDE disk's
# requests of 128 KiB.
LINUS = (("seek_cost", 1), ("read_passovers", 128), ("write_passovers", 512))
LINUS_REQUESTS = 32
# In seconds.
LOVE_TESTS = {
    WRITES: ("test 1, a read beside a stream of writes", (45.0, 40.0, 4.6)),
    STREAM_TREE: ("test 2, a source tree beside a stream of reads", (1828.0, 210.0, 15.0)),
}


# What Linux 2.6.9 had otherwise than 2.6.31: drivers/block/deadline-iosched.c and as-iosched.c.
OLD_DEADLINE = (("batch_over_gaps", 0),)
OLD_TUNABLES = {"deadline": OLD_DEADLINE, "anticipatory": (("cooperation", 0),)}


def _love_case(work: str, policy: str) -> Case:
    if policy == "linus":
        return work_case(work, policy, tunables=LINUS, nr_requests=LINUS_REQUESTS)
    return work_case(work, policy, tunables=OLD_DEADLINE if policy == "deadline" else ())


def _love_cases() -> list[Case]:
    return [_love_case(work, policy) for work in LOVE_TESTS for policy in LOVE_POLICIES]


def _love_rows(runs: Runs) -> list[Row]:
    rows = []
    for work, (what, paper) in LOVE_TESTS.items():
        ours = [_seconds(runs, _love_case(work, policy)) for policy in LOVE_POLICIES]
        shown = ", ".join(f"{seconds:g}" for seconds in paper)
        rows += [
            order_row(what, f"{shown} s", list(zip(LOVE_POLICIES, ours, strict=True)), "s"),
            factor_row(f"{what}, linus to deadline", paper[0] / paper[1], ours[0] / ours[1]),
            factor_row(f"{what}, deadline to anticipatory", paper[1] / paper[2], ours[1] / ours[2]),
        ]
        rows += [
            figure_row(f"{what}, {policy}", seconds, mine, "s")
            for policy, seconds, mine in zip(LOVE_POLICIES, paper, ours, strict=True)
        ]
    return rows


# ---- Seelam, Tables 1 to 3 ----


def _case(work: str, policy: str) -> Case:
    return work_case(work, policy, tunables=OLD_TUNABLES.get(policy, ()))


TABLE_POLICIES = ("deadline", "anticipatory", "cooperative")
# Seconds of the program that is timed, and MB/s of all, in the order of TABLE_POLICIES.
TABLE_SECONDS = {"Table 1": (WRITES, (129, 10, 9)), "Table 2": (STREAM_TREE, (297, 4767, 255))}
TABLE_RATES = {
    "Table 1": (WRITES, (25, 33, 33)),
    "Table 2": (STREAM_TREE, (9, 35, 34)),
    "Table 3, one tree": ("one-tree", (14.5, 15.5, 15.5)),
    "Table 3, two trees": ("two-trees", (4.0, 4.0, 11.6)),
}


def _tables_cases() -> list[Case]:
    works = (WRITES, STREAM_TREE, "one-tree", "two-trees")
    return [_case(work, policy) for work in works for policy in TABLE_POLICIES]


def _tables_rows(runs: Runs) -> list[Row]:
    def seconds(work: str, policy: str) -> float:
        return _seconds(runs, _case(work, policy))

    def rate(work: str, policy: str) -> float:
        return runs[_case(work, policy)].mb_s

    def ratio(work: str, first: str, second: str) -> float:
        return seconds(work, first) / seconds(work, second)

    def times(work: str, *policies: str) -> list[tuple[str, float]]:
        return [(policy, seconds(work, policy)) for policy in policies]

    las, cas = "anticipatory", "cooperative"
    return [
        order_row(
            "Table 1, a read beside writes",
            "129, 10, 9 s",
            times(WRITES, "deadline", las, cas),
            "s",
        ),
        factor_row("Table 1, deadline to anticipatory", 129 / 10, ratio(WRITES, "deadline", las)),
        factor_row("Table 1, anticipatory to cooperative", 10 / 9, ratio(WRITES, las, cas)),
        order_row(
            "Table 2, program B beside a stream",
            "4767, 297, 255 s",
            times(STREAM_TREE, las, "deadline", cas),
            "s",
        ),
        factor_row(
            "Table 2, anticipatory to cooperative", 4767 / 255, ratio(STREAM_TREE, las, cas)
        ),
        factor_row(
            "Table 2, deadline to cooperative", 297 / 255, ratio(STREAM_TREE, "deadline", cas)
        ),
        factor_row(
            "Table 2, MB/s of cooperative to deadline",
            34 / 9,
            rate(STREAM_TREE, cas) / rate(STREAM_TREE, "deadline"),
        ),
        factor_row(
            "Table 2, MB/s of anticipatory to deadline",
            35 / 9,
            rate(STREAM_TREE, las) / rate(STREAM_TREE, "deadline"),
        ),
        *(
            _near_row(
                f"Table 3, one tree, MB/s of {policy} to deadline",
                15.5 / 14.5,
                rate("one-tree", policy) / rate("one-tree", "deadline"),
            )
            for policy in (las, cas)
        ),
        _near_row(
            "Table 3, two trees, MB/s of anticipatory to deadline",
            4.0 / 4.0,
            rate("two-trees", las) / rate("two-trees", "deadline"),
        ),
        factor_row(
            "Table 3, two trees, MB/s of cooperative to deadline",
            11.6 / 4.0,
            rate("two-trees", cas) / rate("two-trees", "deadline"),
        ),
        *(
            figure_row(f"{table}, {policy}", paper, seconds(work, policy), "s")
            for table, (work, figures) in TABLE_SECONDS.items()
            for policy, paper in zip(TABLE_POLICIES, figures, strict=True)
        ),
        *(
            figure_row(f"{table}, {policy}, all programs", paper, rate(work, policy), "MB/s")
            for table, (work, figures) in TABLE_RATES.items()
            for policy, paper in zip(TABLE_POLICIES, figures, strict=True)
        ),
    ]


def _near_row(what: str, paper: float, ours: float) -> Row:
    return Row(what, f"{paper:.2f}x", f"{ours:.2f}x", "+-10 %", within(ours, paper, 0.1))


# ---- Seelam, profiles ----

# CFQ has time slices and waits only since December 2004. That of 2.6.9 keeps a queue for each
# thread group (tgid), so one for all of FFSB's threads, and lets queues take turns request by
# request (drivers/block/cfq-iosched.c): of the policies here that is stride with equal shares.
OLD_CFQ = {"policy": "stride", "owners": "group"}

# In seconds, for 80,000 operations.
PROFILE_POLICIES = ("deadline", "anticipatory", "cooperative", "cfq", "noop")
PROFILES = {
    "web": (924, 863, 855, 931, 910),
    "mail": (118, 177, 109, 112, 125),
    "file": (1127, 916, 890, 1099, 1127),
    "meta": (305, 295, 288, 253, 319),
}
# How far the slides say that runs of a profile were apart, in per cent.
DEVIATION = {"web": 4.0, "mail": 3.5, "file": 4.5, "meta": 7.7}


def _profile_case(name: str, policy: str) -> Case:
    work = f"ffsb-{name}"
    return work_case(work, **OLD_CFQ) if policy == "cfq" else _case(work, policy)


def _profiles_cases() -> list[Case]:
    return [_profile_case(name, policy) for name in PROFILES for policy in PROFILE_POLICIES]


def _profiles_rows(runs: Runs) -> list[Row]:
    rows = []
    for name, seconds in PROFILES.items():
        paper = dict(zip(PROFILE_POLICIES, seconds, strict=True))
        ours = {p: runs[_profile_case(name, p)].seconds for p in PROFILE_POLICIES}
        best = min(paper, key=lambda policy: paper[policy])
        first = min(ours, key=lambda policy: ours[policy])
        rows.append(
            Row(
                f"{name}, the fastest",
                f"{best}, {paper[best]} s",
                f"{first} {ours[first]:.0f} s, {best} {ours[best]:.0f} s",
                f"{best}, or within {DEVIATION[name]:g} % of it",
                ours[best] <= (1 + DEVIATION[name] / 100) * ours[first],
            )
        )
        rows += [
            _near_row(
                f"{name}, time of {policy} to cooperative",
                paper[policy] / paper["cooperative"],
                ours[policy] / ours["cooperative"],
            )
            for policy in PROFILE_POLICIES
            if policy != "cooperative"
        ]
        rows += [
            figure_row(f"{name}, {policy}", paper[policy], ours[policy], "s")
            for policy in PROFILE_POLICIES
        ]
    return rows


TRIED = Origin(before=False, changed="workload")
# What fork, exec and exit take was chosen so that a tree can be read as fast as in Table 3.
TREES = Origin(before=False, fitted="spawn", changed="workload")
FIGURES = {
    "love": Figure("Table 1", _love_cases, _love_rows, LOVE, SEELAM_DISK, TREES),
    "seelam": Figure("Tables 1 to 3", _tables_cases, _tables_rows, SEELAM, SEELAM_DISK, TREES),
    "profiles": Figure(
        "Profiles of servers", _profiles_cases, _profiles_rows, SEELAM, SEELAM_DISK, TRIED
    ),
}
