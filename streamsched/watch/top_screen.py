# SPDX-License-Identifier: GPL-2.0-only
"""The screen of `streamsched top`, made with Textual."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Footer, Static

from streamsched.watch import top
from streamsched.watch.observe import Observation, Source

_TURN = Style(bold=True, reverse=True)
_PLAIN = Style()


class Parties(ScrollView, can_focus=True):
    """A line for each party; only those that can be seen are drawn."""

    def __init__(self) -> None:
        super().__init__(id="parties")
        self._lines: list[str] = []

    def show(self, lines: list[str]) -> None:
        """Instead of what was there."""
        if lines != self._lines:
            self._lines = lines
            self.virtual_size = Size(1, len(lines))
            self.refresh()

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        text = self._lines[at] if at < len(self._lines) else ""
        style = _TURN if text.startswith(">") else _PLAIN
        return Strip([Segment(text.ljust(self.size.width)[: self.size.width], style)])


class TopApp(App[None]):
    """Looks at all disks now and then, and shows one of them."""

    CSS = """
    Static { width: 100%; }
    #summary { height: 3; }
    #strip { height: 4; color: $accent; }
    #heading { height: 1; text-style: bold underline; }
    #parties { height: 1fr; background: $background; overflow-x: hidden; scrollbar-size: 1 1; }
    """
    # The palette costs a key in the footer and says nothing that the footer does not.
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [  # noqa: RUF012 - as Textual wants it
        Binding("q", "quit", "quit"),
        Binding("d,tab", "disk", "next disk", priority=True),
        Binding("s", "sort", "sort"),
        Binding("r", "reverse", "reverse"),
        Binding("space,p", "pause", "pause", key_display="space"),
    ]

    def __init__(self, sources: Sequence[Source], interval_s: float) -> None:
        super().__init__()
        self._sources = sources
        self._interval_s = interval_s
        self._seen: dict[int, Observation] = {}  # by the place among the sources
        self._shown = 0
        self._sort = next(iter(top.SORTS))
        self._reverse = False
        self._paused = False

    def compose(self) -> ComposeResult:
        yield Static(id="summary", markup=False)
        yield Static(id="strip", markup=False)
        yield Static(top.HEADING, id="heading", markup=False)
        yield Parties()
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look, until somebody quits or a signal ends it."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self.end_by, number)
        self.look()
        self.set_interval(self._interval_s, self.look)
        self.query_one(Parties).focus()

    def end_by(self, number: int) -> None:
        """Leave the terminal as it was."""
        self.exit(return_code=128 + number)

    def look(self) -> None:
        """At all disks, so that each has its figures when it is shown."""
        for number, source in enumerate(self._sources):
            seen = source.look()
            if seen and not self._paused:
                self._seen[number] = seen
        if not self._paused:
            self.show()

    def show(self) -> None:
        """The disk that was chosen, from what was seen of it last."""
        source = self._sources[self._shown]
        seen = self._seen.get(self._shown)
        width = self.size.width
        strip, rows, lines = [""], list[str](), [f"{source.name}: looking ...", "", ""]
        if seen and seen.trouble:
            lines = [seen.trouble, "", ""]
        elif seen:
            lines = top.summary(seen)
            rows = [top.row_text(row) for row in top.ordered(seen.rows, self._sort, self._reverse)]
            strip = top.strip(seen, width) if seen.path else [""]
        where = f"[{self._shown + 1}/{len(self._sources)}]" if len(self._sources) > 1 else ""
        state = f"{'PAUSED ' if self._paused else ''}by {self._sort} {where}".rstrip()
        lines[2] = f"{lines[2][: width - len(state) - 2]:<{max(width - len(state), 0)}}{state}"
        self.query_one("#summary", Static).update("\n".join(lines))
        self.query_one("#strip", Static).update("\n".join(strip))
        self.query_one(Parties).show(rows)

    def on_resize(self) -> None:
        """The strip is as wide as the screen."""
        self.show()

    def action_disk(self) -> None:
        """The next disk."""
        self._shown = (self._shown + 1) % len(self._sources)
        self.show()

    def action_sort(self) -> None:
        """By the next column."""
        names = list(top.SORTS)
        self._sort = names[(names.index(self._sort) + 1) % len(names)]
        self.show()

    def action_reverse(self) -> None:
        """The other way round."""
        self._reverse = not self._reverse
        self.show()

    def action_pause(self) -> None:
        """Figures stay as they are until the key is pressed again."""
        self._paused = not self._paused
        self.show()


def run(sources: Sequence[Source], interval_s: float) -> None:
    """Until the user quits."""
    app = TopApp(sources, interval_s)
    try:
        app.run()
    finally:
        for source in sources:
            source.close()
    if app.return_code:
        sys.exit(app.return_code)
