# SPDX-License-Identifier: GPL-2.0-only
"""stream: a reader whose file is in pieces is one stream, wherever it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from policy_driver import FAR, Driver
from test_stream import Reader, driver, parties_of
from test_stream_promise import FRAGMENTS, shares

PIECE, SHORT = 16, 5  # requests
SCAN, STRANGER = 5 * FAR, 4 * FAR
OWNER, OTHER = 7, 8


class Pieces(Reader):
    """Reads on far away after some requests each."""

    def __init__(self, d: Driver, owner: int, piece: int) -> None:
        self.sent, self.owner, self.piece = 0, owner, piece
        super().__init__(d, 0)

    def next(self) -> Any:
        self.rq = self.d.send(self.owner, self.at, 128)
        self.sent += 1
        self.at += 128
        if self.sent % self.piece == 0:
            number = self.sent // self.piece
            self.at = number % 3 * 3 * FAR // 2 + number * 8192
        return self.rq


class Scene:
    """A reader of pieces beside a scan: going on takes 1 ms, going elsewhere 15."""

    def __init__(self, owner: int = 0, piece: int = PIECE) -> None:
        self.d = driver()
        self.scan, self.pieces = Reader(self.d, SCAN), Pieces(self.d, owner, piece)
        self.head = 0
        self.took = {self.scan: 0.0, self.pieces: 0.0}

    def step(self, *, first: Callable[[], Any] | None = None) -> Reader:
        """Serves one, whose reader then asks for more; before that comes @first."""
        rq = self.d.wait().dispatch()
        took = 1 if rq.sector == self.head else 15
        self.d.later(took)
        self.head = rq.sector + rq.nr_sectors
        self.d.complete(rq)
        if rq not in (self.scan.rq, self.pieces.rq):
            return self.step(first=first)  # a stranger's
        who = self.scan if rq == self.scan.rq else self.pieces
        self.took[who] += took
        if first:
            first()
        self.d.later(0.01)
        who.next()
        return who

    def until(self, ms: float) -> None:
        while self.d.now < ms:
            self.step()

    def comes_between(self, owner: int = 0, at: int = PIECE // 2) -> tuple[int, int]:
        """Within a piece another's request is first: the piece's party, and what that has then."""
        # Such that the one served is of the reader of pieces, and not the last of its piece.
        while self.step() is not self.pieces or self.pieces.sent % PIECE != at:
            pass
        had: list[int] = []

        def stranger() -> None:
            rq = self.d.send(owner, STRANGER, 8)
            (number,) = (n for n, info in parties_of(self.d).items() if info.turn)
            had.extend((number, parties_of(self.d)[number].nr_pending))
            if had[1]:
                self.d.serve(rq, ms=15)
                self.head = rq.sector + rq.nr_sectors

        who = self.step(first=stranger)
        assert who is self.pieces
        return had[0], had[1]


@pytest.mark.parametrize("piece", [PIECE, SHORT])
def test_it_keeps_its_turn_from_piece_to_piece(piece: int) -> None:
    """Each was a stream of its own, and after it came the turn of the scan."""
    scene = Scene(piece=piece)
    scene.until(15_000)
    assert min(scene.took.values()) >= 0.4 * sum(scene.took.values()), scene.took


def test_it_is_one_stream() -> None:
    scene = Scene()
    scene.until(5_000)
    before = {number for number, info in parties_of(scene.d).items() if info.established}
    sent = scene.pieces.sent
    scene.until(10_000)
    assert scene.pieces.sent > sent + 20 * PIECE
    after = {number for number, info in parties_of(scene.d).items() if info.established}
    assert len(after - before) <= 2


def test_who_is_back_at_its_place_goes_on_in_its_stream() -> None:
    """A stranger was believed to be it: once, and not again before it has gone on elsewhere."""
    scene = Scene()
    scene.until(5_000)
    party, pending = scene.comes_between()
    assert pending == 1
    info = parties_of(scene.d)[party]
    assert (info.nr_pending, info.end_sector) == (1, scene.pieces.at)
    assert scene.comes_between(at=PIECE - 2) == (party, 0)


def test_nobody_is_believed_who_is_known_to_be_another() -> None:
    scene = Scene(OWNER)
    scene.until(5_000)
    assert scene.comes_between(OTHER)[1] == 0
    assert scene.comes_between(OWNER)[1] == 1


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("disk", ["exos-x18", "st2000dm006", "wd5000aaks"])
def test_a_file_in_pieces_has_its_part(disk: str, direct: bool) -> None:
    """Nobody says who sends: it had a tenth of its part."""
    text = FRAGMENTS.replace("[scan]", "direct=1\n[scan]") if direct else FRAGMENTS
    assert 3 * min(shares(text, disk, 8)) >= 0.8
