# SPDX-License-Identifier: GPL-2.0-only
"""The drive's caches: what it reads ahead and keeps, and how it writes out.

All by reading, but for the share of write-out, which is measured only if asked for.
"""

from __future__ import annotations

import statistics
from collections import deque

from streamsched.calibrate.commands import AHEAD_SECTORS, CACHED_BELOW_NS, FAST, PROBE, Commands
from streamsched.calibrate.found import MS, Cache, WriteOut

# Write-out is measured with so many reads at once: with a read always waiting, the drive
# is never idle and has only its share for writing out.
WRITE_OUT_DEPTH = 4
# So many reads between two fillings of the write cache: less than half of a small one
# is written out meanwhile.
WRITE_OUT_READS = 20
# A cache that takes more 4 KiB writes than this (256 MiB) does not fill.
MOST_WRITES = 1 << 16


class Caches(Commands):
    """Measures what the drive's memory does."""

    def _is_there(self, ahead: int) -> bool:
        """Whether the drive has read that far ahead in the time it would take, and more."""
        hits = 0
        for _ in range(self.effort.cache_repeats):
            place = self.anywhere(ahead + 3 * PROBE)
            self.read(place, PROBE)
            slowest = max(self.geometry.reading_on_ns(at) for at in self.geometry.first_sectors)
            self.device.idle(int(30 * MS + 1.3 * ahead * slowest))
            at = place + PROBE + ahead - ahead % self.device.align_sectors
            hits += self._is_cached(self.read_ns(at, PROBE))
        return 2 * hits > self.effort.cache_repeats

    def _is_cached(self, total_ns: int) -> bool:
        cached_ns = self.bus.overhead_ns + PROBE * self.bus.sector_ns
        return total_ns < 2 * cached_ns + 100_000

    def _readahead(self) -> int | None:
        low, high = 0, PROBE
        while high <= AHEAD_SECTORS and self._is_there(high):
            low, high = high, 2 * high
        if not low:
            return None
        least = max(PROBE, low // 16 if self.effort is FAST else PROBE)
        while high - low > least:
            middle = (low + high) // 2
            if self._is_there(middle):
                low = middle
            else:
                high = middle
        return low + PROBE

    def _is_kept(self, others: int) -> bool:
        """Whether a read is still in the cache after @others at other places."""
        hits = 0
        for _ in range(self.effort.cache_repeats):
            places = [self.anywhere(PROBE) for _ in range(others + 1)]
            for place in places:
                self.read(place, PROBE)
            hits += self._is_cached(self.read_ns(places[0], PROBE))
        return 2 * hits > self.effort.cache_repeats

    def measure_cache(self) -> Cache:
        if not self.bus.known:
            return Cache(None, None, False)
        readahead = self._readahead()
        self.progress("cache", 0.5)
        low, high = 0, 1
        while high < 64 and self._is_kept(high):
            low, high = high, 2 * high
        if high >= 64 and self._is_kept(63):
            return Cache(readahead, 64, True)
        while high - low > 1:
            middle = (low + high) // 2
            if self._is_kept(middle):
                low = middle
            else:
                high = middle
        return Cache(readahead, low + 1, False)

    def _fill(self, hit_ns: float) -> int:
        """Write at random places until the write cache is full; how many it took.

        A full cache makes every second write or so wait; a single late one may be chance.
        """
        late: deque[bool] = deque(maxlen=8)
        for number in range(MOST_WRITES):
            late.append(self._write_ns() > 2 * hit_ns + 100_000)
            if sum(late) >= 3:
                return number
        return MOST_WRITES

    def _write_ns(self) -> int:
        """Of a 4 KiB write anywhere, which is a whole physical sector."""
        sector = PROBE * self.random.randrange(self.device.capacity_sectors // PROBE)
        start, end = self.device.write(sector, PROBE)
        return end - start

    def _reads_ns(self) -> int:
        """What WRITE_OUT_READS take, less those in the beginning.

        Those wait for what the drive began before them.
        """
        places = [self.anywhere(PROBE) for _ in range(WRITE_OUT_READS)]
        for place in places:
            self.places.note(place, PROBE)
        ends = self.device.read_together(places, PROBE, WRITE_OUT_DEPTH)
        return ends[-1] - ends[WRITE_OUT_DEPTH - 1]

    def measure_write_out(self, queue_depth: int | None) -> WriteOut:
        """What reads lose to write-out while the write cache is more than half full.

        No write waits for room while the reads are timed: a drive that orders its queue
        takes waiting writes as they lie, and the reads would lose to the order, too.
        """
        if queue_depth is not None and queue_depth < WRITE_OUT_DEPTH:
            return WriteOut(None, f"needs a queue of {WRITE_OUT_DEPTH} commands")
        rounds = self.effort.write_out_rounds
        alone = 0
        for number in range(rounds):
            alone += self._reads_ns()
            self.progress("write-out", 0.4 * number / rounds)
        hit_ns = statistics.median(self._write_ns() for _ in range(15))
        if hit_ns > CACHED_BELOW_NS:
            return WriteOut(None, "writes are not answered from a cache")
        room = self._fill(hit_ns)
        if room == MOST_WRITES:
            return WriteOut(None, "the write cache did not fill")
        beside = 0
        for number in range(rounds):
            beside += self._reads_ns()
            # Below half of the cache the drive may leave it for later.
            if self._fill(hit_ns) > 0.4 * room:
                return WriteOut(None, f"the write cache holds only {room} writes")
            self.progress("write-out", 0.4 + 0.6 * number / rounds)
        self.progress("write-out", 1.0)
        return WriteOut(max(0.0, 1 - alone / beside))
