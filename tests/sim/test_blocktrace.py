# SPDX-License-Identifier: GPL-2.0-only
"""When requests came, out of the text of a kernel's trace."""

from __future__ import annotations

from streamsched.work.blocktrace import BlockTrace, parse, quantile


def traced(*events: tuple[int, str, int, int], skip_ns: int = 0) -> BlockTrace:
    """What is read of a trace; @events: ms, what, first sector, sectors."""
    size = {"bio_queue": "", "rq_issue": "4096 () ", "rq_complete": "() "}
    text = [
        f" fio-1 [000] ..... {ms // 1000}.{ms % 1000:03d}000: block_{what}: 8,0 R {size[what]}"
        f"{sector} + {sectors} [fio]"
        for ms, what, sector, sectors in events
    ]
    return parse(text, skip_ns=skip_ns)


def waits(*events: tuple[int, str, int, int]) -> list[int]:
    """The waits of requests in ms, in order of issue."""
    return [request.wait_ns // 1_000_000 for request in traced(*events).requests]


def served(ms: int, sector: int, sectors: int) -> list[tuple[int, str, int, int]]:
    return [(ms, "rq_issue", sector, sectors), (ms + 1, "rq_complete", sector, sectors)]


def test_the_earliest_bio_of_a_request_counts() -> None:
    came = [(10, "bio_queue", 108, 8), (12, "bio_queue", 100, 8), (13, "bio_queue", 116, 8)]
    assert waits(*came, *served(20, 100, 24)) == [10]


def test_a_bio_may_be_split() -> None:
    assert waits((10, "bio_queue", 100, 16), *served(11, 100, 8), *served(13, 108, 8)) == [1, 3]


def test_a_place_wanted_twice_leaves_nothing_behind() -> None:
    """The same place read again a second later has not waited since, nor was the disk idle."""
    twice = [(10, "bio_queue", 108, 8), (12, "bio_queue", 108, 8), (12, "bio_queue", 116, 8)]
    first = [*twice, *served(13, 108, 8), *served(15, 100, 24)]
    again = [(1000, "bio_queue", 116, 8), *served(1001, 116, 8)]
    assert waits(*first, *again) == [1, 5, 1]
    assert traced(*first, *again).idle_ns < 10_000_000


def test_a_bio_that_was_refused_is_none() -> None:
    refused = (10, "bio_queue", 100, 8)
    assert waits(refused, (500, "bio_queue", 100, 8), *served(501, 100, 8)) == [1]


def test_what_is_left_out_is_no_idle_time() -> None:
    """A second in which a request waits for an idle disk, the first half of it left out."""
    events = [(1000, "bio_queue", 100, 8), *served(2000, 100, 8)]
    assert traced(*events).idle_ns == 1_000_000_000
    assert traced(*events, skip_ns=500_000_000).idle_ns == 500_000_000


def test_a_quantile_is_a_value_that_there_is() -> None:
    assert quantile(range(1, 101), 990) == 99
    assert quantile(range(1, 1001), 990) == 990
    assert quantile([7], 990) == 7
    assert quantile([], 990) is None
