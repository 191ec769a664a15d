# SPDX-License-Identifier: GPL-2.0-only
"""A description of a disk whose model is not known, from what a trace says of it.

Each shipped mechanical disk, scaled to the disk's capacity, serves the trace's senders under the
scheduler that was there. The same figures are taken of the trace and of the replay, so what the
queue does to them is in both. Two factors bring a replay nearer: that of the transfer rate and
that of the seek times. The disk whose adjusted replay is nearest is taken.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
import statistics
from collections.abc import Sequence

from streamsched.sim.diskfile import Disk
from streamsched.watch.forecast import POLICIES, Passed, not_told, replay
from streamsched.work.blocktrace import Bio
from streamsched.work.model import NS, Sender, lasting, senders

# Fewer requests that jump, or go on, say nothing of a factor.
LEAST = 20
# Too short to learn from.
LEAST_SERVED = 200
# How much wider the range is than with the disk's own description: bench/advise_learning.py.
WIDER = 0.25
# By how many standard errors larger requests must take longer.
CERTAIN = 4
# What larger requests take longer by less, as part of it, may come from where they are.
MUCH = 0.5
LENGTH_NS = 3 * NS
# How often the factors are corrected, and what they are kept within.
ROUNDS = 3
BOUNDS = (0.25, 4.0)
# Of each sender, in a replay.
MOST = 4000
# Of a recording in which somebody rests, which is played whole: requests, and time.
MOST_TOGETHER, MOST_NS = 2000, 3600 * NS
# How much less a disk of another capacity is believed, by the logarithm of the ratio. If nothing
# goes on in the trace, the capacity alone tells the transfer rate.
UNLIKE, UNLIKE_RATE = 0.05, 0.2
# Disks that differ by more in capacity are not looked at.
LIKE = 24
# Of a zone, in the model.
MOST_CYLINDERS = 900_000


@dataclasses.dataclass(frozen=True)
class Signs:
    """What served requests say of the disk. None: too few of that kind."""

    mb_s: float
    going_on: float | None  # ns per sector of requests that begin where the one before ended
    jumps: tuple[float, ...] | None  # ns: mean and quartiles of requests that begin elsewhere
    growth: float | None  # ns per sector by which larger ones that begin elsewhere take longer
    responses: tuple[float, ...]  # ns, quartiles

    def distance(self, other: Signs) -> float:
        """How far apart, in logarithms: throughput, and the mean of the other figures."""
        pairs = list(zip(self.responses, other.responses, strict=True))
        if self.going_on and other.going_on:
            pairs.append((self.going_on, other.going_on))
        if self.jumps and other.jumps:
            pairs += zip(self.jumps, other.jumps, strict=True)
        rest = statistics.fmean(abs(math.log(max(a, 1) / max(b, 1))) for a, b in pairs)
        return abs(math.log(self.mb_s / other.mb_s)) + rest


def joined(bios: Sequence[Bio]) -> list[Bio]:
    """Requests as the disk had them: what was done at one moment and is adjacent was one."""
    found: list[Bio] = []
    for bio in sorted(bios, key=lambda bio: (bio.complete_ns, bio.sector)):
        last = found[-1] if found else None
        if (
            last
            and (last.complete_ns, last.write) == (bio.complete_ns, bio.write)
            and last.sector + last.sectors == bio.sector
        ):
            found[-1] = dataclasses.replace(
                last,
                sectors=last.sectors + bio.sectors,
                arrival_ns=min(last.arrival_ns, bio.arrival_ns),
            )
        else:
            found.append(bio)
    return found


def _growth(jumps: Sequence[tuple[int, int]]) -> float | None:
    """Ns per sector between the smaller and the larger ones; None: it may be chance, or the place.

    @jumps: sectors, and ns that they took.
    """
    middle = statistics.fmean(sectors for sectors, _ in jumps)
    halves = [[j for j in jumps if (j[0] > middle) == large] for large in (False, True)]
    if min(map(len, halves)) < LEAST:
        return None
    small, large = (
        [statistics.fmean(column) for column in zip(*half, strict=True)] for half in halves
    )
    chance = math.sqrt(sum(statistics.variance(j[1] for j in half) / len(half) for half in halves))
    longer = large[1] - small[1]
    return (
        longer / (large[0] - small[0]) if longer > max(CERTAIN * chance, MUCH * small[1]) else None
    )


def signs(served: Sequence[Bio]) -> Signs:
    """Of requests in order of completion; at least two."""
    seconds = (served[-1].complete_ns - min(one.arrival_ns for one in served)) / NS
    going_ns = going_sectors = going = 0
    jumps: list[tuple[int, int]] = []
    for before, one in itertools.pairwise(served):
        lasted = one.complete_ns - max(one.arrival_ns, before.complete_ns)
        if one.write:
            continue
        if one.sector == before.sector + before.sectors:
            going_ns, going_sectors, going = (
                going_ns + lasted,
                going_sectors + one.sectors,
                going + 1,
            )
        elif lasted:
            jumps.append((one.sectors, lasted))
    took = [ns for _, ns in jumps]
    responses = [one.complete_ns - one.arrival_ns for one in served]
    return Signs(
        sum(one.sectors for one in served) * 512 / 1e6 / seconds,
        going_ns / going_sectors if going >= LEAST else None,
        (statistics.fmean(took), *statistics.quantiles(took)) if len(took) >= LEAST else None,
        _growth(jumps) if len(jumps) >= LEAST else None,
        tuple(statistics.quantiles(responses)),
    )


def scaled(disk: Disk, capacity: int, rate: float = 1.0, seeks: float = 1.0) -> Disk:
    """@disk with another capacity, and so many times its transfer rate and seek times.

    The track-to-track seek stays, for the skews are made for it.
    """
    capacity += -capacity % 16 if disk.actuators > 1 else 0
    tracks = [max(8, min(65535, round(rate * n))) for n in disk.zone_sectors_per_track]
    wanted = capacity // disk.actuators + disk.media_sectors
    have = sum(map(operator.mul, disk.zone_cylinders, tracks))
    # More surfaces, where the model takes no more cylinders.
    least = wanted / have * max(disk.zone_cylinders) / MOST_CYLINDERS
    surfaces = max(disk.surfaces, math.ceil(least))
    stretch = wanted / have / surfaces
    made, at, sectors = [], 0, 0
    for end, track in zip(itertools.accumulate(disk.zone_cylinders), tracks, strict=True):
        cylinders = min(math.ceil(end * stretch) - at, -(-(wanted - sectors) // (surfaces * track)))
        if cylinders > 0:
            made.append((cylinders, track))
            at, sectors = at + cylinders, sectors + cylinders * surfaces * track
    if sectors < wanted:
        cylinders, track = made[-1]
        made[-1] = (cylinders - (sectors - wanted) // (surfaces * track), track)
    distances = [1]
    for distance in disk.seek_cylinders[1:]:
        distances.append(max(distances[-1] + 1, round(distance * stretch)))
    distances[-1] = max(distances[-1], sum(cylinders for cylinders, _ in made))
    first = disk.seek_ns[0]
    return dataclasses.replace(
        disk,
        capacity_sectors=capacity,
        surfaces=surfaces,
        nr_zones=len(made),
        zone_cylinders=tuple(cylinders for cylinders, _ in made),
        zone_sectors_per_track=tuple(track for _, track in made),
        seek_cylinders=tuple(distances),
        seek_ns=tuple(first + max(0, round(seeks * (ns - first))) for ns in disk.seek_ns),
    )


@dataclasses.dataclass(frozen=True)
class Learned:
    """A description, and where it came from."""

    disk: Disk  # with the name of the one that it was made of
    rate: float
    seeks: float
    distance: float  # of its replay from the trace, and of the disk from its base


def _within(factor: float) -> float:
    return max(BOUNDS[0], min(BOUNDS[1], factor))


def _next(tried: Sequence[tuple[float, float]], wanted: float, turn: float) -> float:
    """Seek times with which a jump takes @wanted ns; @tried: factors, and what jumps took."""
    seeks, took = tried[-1]
    if len(tried) > 1:
        before, then = tried[-2]
        slope = (took - then) / (seeks - before) if seeks != before else 0.0
    else:
        # A part of each jump is rotation, which stays.
        slope = max(took - turn, took / 4) / seeks
    if slope <= 0:
        return _within(seeks * wanted / took)
    return _within(seeks + (wanted - took) / slope)


def adjusted(
    base: Disk,
    those: Sequence[Sender],
    seen: Signs,
    capacity: int,
    scheduler: str,
    depth: int,
) -> Learned:
    """@base with the factors that bring its replay nearest to what was seen."""
    rate = seeks = 1.0
    unlike = UNLIKE if seen.going_on or seen.growth else UNLIKE_RATE
    far = unlike * abs(math.log(capacity / base.capacity_sectors))
    tried: list[tuple[float, float]] = []
    best: Learned | None = None
    for _ in range(ROUNDS + 1):
        disk = scaled(base, capacity, rate, seeks)
        policy = POLICIES[scheduler][0]
        length_ns = lasting(those, LENGTH_NS, MOST_NS)
        rows, _ = replay(those, disk, policy, min(depth, disk.queue_depth), length_ns, MOST)
        served = [Bio(row[5], row[7], bool(row[11]), True, 0, "", row[0], row[3]) for row in rows]
        made = signs(sorted(served, key=lambda one: one.complete_ns))
        found = Learned(disk, rate, seeks, made.distance(seen) + far)
        if best is None or found.distance < best.distance:
            best = found
        if seen.going_on and made.going_on:
            rate = _within(rate * made.going_on / seen.going_on)
        elif seen.growth and made.growth:
            rate = _within(rate * made.growth / seen.growth)
        if seen.jumps and made.jumps:
            tried.append((seeks, made.jumps[0]))
            seeks = _next(tried, seen.jumps[0], disk.rotation_ns / 2)
    assert best
    return best


def learned(
    bios: Sequence[Bio],
    capacity: int,
    scheduler: str,
    depth: int,
    bases: Sequence[Disk],
    *,
    whole: bool = True,
    passed: Passed = not_told,
) -> Learned | None:
    """The one of @bases that is nearest when it is adjusted; None: @bios say too little.

    @whole: @capacity is the disk's. Otherwise it is only how far its requests go, and no base is
    made smaller. @passed: told which part is done.
    """
    those = senders(bios)
    if any(one.rest_ns for one in those):
        bios = bios[:MOST_TOGETHER]
        those = senders(bios)
    served = joined(bios)
    like = [base for base in bases if 1 / LIKE <= base.capacity_sectors / capacity <= LIKE]
    if len(served) < LEAST_SERVED or not like:
        return None
    seen = signs(served)
    if not seen.going_on and not seen.jumps:
        return None
    found = []
    for number, base in enumerate(like):
        passed(number / len(like))
        size = capacity if whole else max(capacity, base.capacity_sectors)
        found.append(adjusted(base, those, seen, size, scheduler, depth))
    return min(found, key=lambda one: one.distance)
