# SPDX-License-Identifier: GPL-2.0-only
"""Last in, first out: streamsched run JOB.fio --policy examples/lifo.py:Lifo,deadline."""

from __future__ import annotations

from streamsched.sim.pythonpolicy import Request


class Lifo:
    """Of two pending requests the one that came later goes first."""

    def __init__(self) -> None:
        self.stack: list[Request] = []

    def arrived(self, request: Request, now_ns: int) -> None:
        """It is pending from now on."""
        self.stack.append(request)

    def choose(self, now_ns: int, head_sector: int) -> Request | int | None:
        """The latest."""
        return self.stack[-1]

    def dispatched(self, request: Request, now_ns: int) -> None:
        """It is pending no longer."""
        self.stack.remove(request)

    removed = dispatched
