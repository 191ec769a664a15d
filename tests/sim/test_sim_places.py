# SPDX-License-Identifier: GPL-2.0-only
"""Where random blocks lie: every distribution of fio's against its theory."""

from __future__ import annotations

import collections
import math
from itertools import pairwise

import pytest
from finished import finished

from streamsched.sim.diskfile import load_disk
from streamsched.sim.simulate import Setup
from streamsched.work import fio_places
from streamsched.work.jobfile import parse_jobs

SSD = load_disk("ssd")
BLOCKS = 16384  # of 64 MiB
DRAWS = 100_000
RANDOM = f"direct=1\nioengine=libaio\niodepth=32\nbs=4k\nsize=64m\nio_size={DRAWS * 4}k\n"
IN_ORDER = "direct=1\nbs=4k\nsize=64k\n"


def places(text: str) -> list[tuple[int, int, int]]:
    """(block, sectors, job) of each request in the order they were sent."""
    processes = parse_jobs(text, capacity_bytes=SSD.capacity_sectors * 512, environ={})
    with finished(Setup(SSD, "noop", queue_depth=32), processes, DRAWS * 4) as simulation:
        rows = sorted(simulation.log_rows(), key=lambda row: row[0])
        return [(row[3] // 8, row[4], row[5]) for row in rows]


def frequencies(distribution: str, rw: str = "randread") -> list[float]:
    """Share of each block that came, the most popular one first."""
    found = places(f"[a]\nrw={rw}\n{RANDOM}random_distribution={distribution}\n")
    count = collections.Counter(block for block, _, _ in found)
    assert len(found) == DRAWS and max(count) < BLOCKS
    return [number / DRAWS for _, number in count.most_common()]


def error(share: float) -> float:
    """Four standard deviations of a share of DRAWS."""
    return 4 * math.sqrt(share * (1 - share) / DRAWS)


@pytest.mark.parametrize("theta", [0.5, 0.9, 1.2, 2.0])
def test_zipf_is_by_rank(theta: float) -> None:
    weights = [(rank + 1) ** -theta for rank in range(BLOCKS)]
    whole = sum(weights)
    seen = frequencies(f"zipf:{theta}")
    for rank in range(3 if theta > 0.5 else 0):
        assert abs(seen[rank] - weights[rank] / whole) < error(weights[rank] / whole)
    if theta > 0.5:
        for first in (10, 100):
            share = sum(weights[:first]) / whole
            # The most frequent are those that had luck, too.
            assert -error(share) < sum(seen[:first]) - share < error(share) + 0.008


@pytest.mark.parametrize("theta", ["0.3", "0.9", "1.2", "3"])
def test_zipfs_shares_are_exact(theta: str) -> None:
    """The table itself, without chance: far beyond the blocks that have a row of their own."""
    places = fio_places.parse_places(f"zipf:{theta}", 1024)
    assert places
    ends, below = places.table(0, 200_000, 4096) or ((), ())
    assert ends[-1] == 200_000 and len(ends) < 1000 and below[-1] == 2**64 - 1
    weights = [(rank + 1) ** -float(theta) for rank in range(200_000)]
    whole, at, total = math.fsum(weights), 0, 0.0
    for end, share in zip(ends, below, strict=True):
        total += math.fsum(weights[at:end])
        at = end
        assert abs(share / 2**64 - total / whole) < 1e-6


def test_pareto_gives_a_part_of_the_blocks_the_rest_of_the_requests() -> None:
    seen = frequencies("pareto:0.2")
    share = sum(seen[: BLOCKS // 5])
    assert 0.8 - error(0.8) < share < 0.83


def test_paretos_shares_are_exact() -> None:
    for part in ("0.1", "0.5", "0.8"):
        places = fio_places.parse_places(f"pareto:{part}", 1024)
        assert places
        ends, below = places.table(0, 10_001, 4096) or ((), ())
        power = math.log(1 - float(part)) / math.log(float(part))
        for end, share in zip(ends, below, strict=True):
            assert abs(share / 2**64 - (end / 10_000) ** power) < 1e-9
        assert ends[-1] == 10_000


def test_normal_is_the_mean_of_twelve() -> None:
    """Scattered as in fio, but how many come how often is that of the bell."""
    seen = frequencies("normal:0")
    deviation = BLOCKS / 12
    for within in (1, 2):
        blocks = int(2 * within * deviation)
        expected = math.erf(within / math.sqrt(2))
        assert expected - 0.01 < sum(seen[:blocks]) < expected + 0.03
    assert sum(frequencies("normal:40")[:2730]) < sum(seen[:2730]) - 0.05


def test_zones_get_their_shares() -> None:
    found = [
        block
        for block, _, _ in places(
            f"[a]\nrw=randread\n{RANDOM}random_distribution=zoned:60/10:30/20:10/\n"
        )
    ]
    ends = [0, BLOCKS // 10, BLOCKS * 30 // 100, BLOCKS]
    for (low, high), share in zip(pairwise(ends), (0.6, 0.3, 0.1), strict=True):
        inside = [block for block in found if low <= block < high]
        assert abs(len(inside) / DRAWS - share) < error(share)
        # Uniform within: the mean is the middle, within four deviations of it.
        spread = 4 * (high - low) / math.sqrt(12 * len(inside))
        assert abs(sum(inside) / len(inside) - (low + high - 1) / 2) < spread


def test_zones_of_writes_are_their_own() -> None:
    text = RANDOM.replace("bs=4k", "bs=4k,8k") + "random_distribution=zoned_abs:100/4m,100/8m\n"
    found = places(f"[a]\nrw=randrw\n{text}")
    assert max(block for block, sectors, _ in found if sectors == 8) < 1024
    written = [block for block, sectors, _ in found if sectors == 16]
    assert 1024 < max(written) < 2048 + 2


def test_what_is_popular_is_scattered_and_each_has_his_own() -> None:
    section = f"rw=randread\n{RANDOM}random_distribution=zipf:1.2"

    def hot(extra: str) -> list[list[int]]:
        found = places(f"[a]\nfilename=x\nnumjobs=2\n{section}{extra}\n")
        counts = [collections.Counter(b for b, _, job in found if job == n) for n in (0, 1)]
        return [[block for block, _ in count.most_common(5)] for count in counts]

    first, second = hot("")
    assert not set(first) & set(second)
    assert min(abs(a - b) for a, b in pairwise(sorted(first))) > 1
    first, second = hot(":0.5")
    assert first[:3] == second[:3]
    # And a center moves it, in a circle.
    third, _ = hot(":0.75")
    assert [(block + BLOCKS // 4) % BLOCKS for block in first[:3]] == third[:3]


def test_every_block_has_its_place() -> None:
    """Scattering is one to one: with weights for all, all come."""
    text = "[a]\nrw=randread\ndirect=1\nbs=4k\nsize=52k\nio_size=8m\nrandom_distribution="
    for distribution in ("zipf:0.5", "pareto:0.4", "normal:50"):
        blocks = {block for block, _, _ in places(text + distribution + "\n")}
        # Pareto never comes to the last of them, by its definition.
        assert len(blocks) >= 12 and max(blocks) < 13


def test_backwards() -> None:
    found = [block for block, _, _ in places(f"[a]\nrw=read:-8k\n{IN_ORDER}")]
    assert found == [0, *range(14, -1, -1)]


def test_so_many_blocks_at_each_position() -> None:
    text = "direct=1\nbs=4k\nsize=64m\nio_size=1600k\nnorandommap\n"
    found = [block for block, _, _ in places(f"[a]\nrw=randread:4\n{text}")]
    runs = [found[at : at + 4] for at in range(0, len(found), 4)]
    assert all(run == list(range(run[0], run[0] + 4)) for run in runs if run[0] < BLOCKS - 4)
    assert sum(b != a + 1 for a, b in pairwise(found)) >= len(runs) - 2
    found = [b for b, _, _ in places(f"[a]\nrw=randread:4\nrw_sequencer=identical\n{text}")]
    assert all(len(set(found[at : at + 4])) == 1 for at in range(0, len(found), 4))
    assert len(set(found)) > 90


def test_so_many_of_a_hundred_at_random() -> None:
    text = "[a]\nrw=randrw\ndirect=1\nbs=4k,8k\nsize=1g\nio_size=80m\nnorandommap\n"
    found = places(text + "percentage_random=70,20\n")
    for sectors, share in ((8, 0.7), (16, 0.2)):
        blocks = [block for block, length, _ in found if length == sectors]
        jumps = sum(b != a + sectors // 8 for a, b in pairwise(blocks)) / len(blocks)
        assert abs(jumps - share) < 0.03


def test_sizes_by_order() -> None:
    text = "[a]\nrw=randread:4\ndirect=1\nbs=4k,64k\nsize=1g\nio_size=8m\nnorandommap\n"
    found = places(text + "bs_is_seq_rand=1\n")
    assert [sectors for _, sectors, _ in found[:8]] == [128, 8, 8, 8, 128, 8, 8, 8]
