# SPDX-License-Identifier: GPL-2.0-only
"""stream: shares by the weights of requests, whoever sent them."""

from __future__ import annotations

import pytest

from streamsched.base.errors import UsageError
from streamsched.sim.diskfile import load_disk
from streamsched.sim.policies import parse_weights
from streamsched.sim.simulate import Run, Setup, run_jobs
from streamsched.work.jobfile import parse_jobs

SPEC = "stream:deadline"
TARGET_MS = 500

# Each a kind of process, alone in its tenth of the disk.
KINDS = {
    "stream": "rw=read\nbs=64k",
    "thinking": "rw=read\nbs=64k\nthinktime=1ms",
    "random": "rw=randread\nbs=16k",
    "deep": "rw=randread\nbs=16k\niodepth=4\nioengine=libaio",
    "writer": "rw=write\nbs=64k",
}


def shares_of(
    kinds: list[str], weights: list[int], seed: int = 1, spec: str = SPEC
) -> tuple[Run, list[float]]:
    """A run of ten seconds with hidden owners, and what each has of what it has alone."""
    text = "[global]\nsize=8g\ndirect=1\nruntime=10\ntime_based\n" + "".join(
        f"[p{i}]\n{KINDS[kind]}\noffset={5 + 12 * i}%\nstartdelay={i * seed % 50 + 1}ms\n"
        f"owner_weight={weight}\n"
        for i, (kind, weight) in enumerate(zip(kinds, weights, strict=True))
    )
    disk = load_disk("wd5000aaks")
    jobs = parse_jobs(text, seed=seed, capacity_bytes=disk.capacity_sectors * 512)
    known = parse_weights([], [spec], jobs, "none")
    setup = Setup(disk, spec, owners="none", queue_depth=32, weights=known)
    run = run_jobs(setup, jobs)
    alone = [run_jobs(setup, [job]).jobs[0].bytes for job in jobs]
    return run, [job.bytes / most for job, most in zip(run.jobs, alone, strict=True)]


@pytest.mark.parametrize("weights", [[1, 2, 4], [4, 1, 2], [2, 4, 1], [1, 3, 6]])
@pytest.mark.parametrize("kind", ["stream", "random", "writer"])
def test_shares_are_as_the_weights(kind: str, weights: list[int]) -> None:
    run, shares = shares_of([kind] * 3, weights)
    for share, weight in zip(shares, weights, strict=True):
        assert share / sum(shares) == pytest.approx(weight / sum(weights), rel=0.2), shares
    assert sum(shares) >= 0.85, shares
    # As long as all turns, and what the disk has.
    assert run.response.max <= 1.1 * TARGET_MS


def test_three_streams_of_weights_1_2_4_share_within_a_tenth() -> None:
    _, shares = shares_of(["stream"] * 3, [1, 2, 4])
    for share, weight in zip(shares, [1, 2, 4], strict=True):
        assert share / sum(shares) == pytest.approx(weight / 7, rel=0.1), shares
    assert sum(shares) >= 0.9, shares


@pytest.mark.parametrize("kinds", [["stream", "random", "deep"], ["thinking", "deep", "stream"]])
def test_who_weighs_more_has_more_of_whatever_kind(kinds: list[str]) -> None:
    for heavy in range(3):
        weights = [4 if i == heavy else 1 for i in range(3)]
        equal = shares_of(kinds, [1, 1, 1])[1]
        _, shares = shares_of(kinds, weights)
        # Of light ones that are in no stream only one counts.
        assert shares[heavy] > max(equal[heavy], 0.59), (equal, shares)


def test_equal_weights_are_none() -> None:
    """Streams of three times the usual weight share as those of the usual one."""
    (usual, _), (thrice, _) = (shares_of(["stream"] * 3, [weight] * 3) for weight in (1, 3))
    assert [job.bytes for job in usual.jobs] == pytest.approx(
        [job.bytes for job in thrice.jobs], rel=0.1
    )


def test_a_light_weight_is_no_exclusion() -> None:
    run, shares = shares_of(["stream", "stream"], [1, 100])
    # A slice is never less than two switches.
    assert 0.02 < shares[0] < 0.12
    assert run.response.max <= 1.1 * TARGET_MS


def test_readers_of_the_same_blocks_share_by_weight() -> None:
    text = (
        "[global]\nfilename=/dev/sdx\nrw=read\nbs=256k\niodepth=4\nioengine=libaio\n"
        "direct=1\nruntime=10\ntime_based\n"
    )
    disk = load_disk("wd5000aaks")
    jobs = parse_jobs(
        f"{text}[light]\nowner_weight=1\n[heavy]\nowner_weight=4\n",
        capacity_bytes=disk.capacity_sectors * 512,
    )
    known = parse_weights([], [SPEC], jobs, "none")
    light, heavy = run_jobs(Setup(disk, SPEC, owners="none", weights=known), jobs).jobs
    assert 3 * light.bytes < heavy.bytes < 5 * light.bytes


def test_weights_go_by_group_where_owners_are_hidden() -> None:
    text = "[a]\nrw=read\nsize=1m\nnumjobs=2\n[b]\nrw=read\nsize=1m\nowner_weight=3\n"
    jobs = parse_jobs(text, capacity_bytes=1 << 30)
    assert parse_weights([], [SPEC], jobs, "none") == ((2, 3),)
    assert parse_weights(["a=2"], [SPEC], jobs, "none") == ((1, 2), (2, 3))
    with pytest.raises(UsageError, match="with --owners none nobody's share"):
        parse_weights(["a=2"], [SPEC, "wfq"], jobs, "none")
