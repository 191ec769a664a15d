# SPDX-License-Identifier: GPL-2.0-only
"""What a disk had before `auto`: kept in a file until it is put back.

The file is in /run, for a scheduler that is chosen lasts until the next boot. It is one object:

    version    1
    diskseq    the kernel's number of the disk: another one that gets its name has another
    scheduler  before auto
    queue      files of /sys/block/DISK/queue, and what they said
    settings   files of /sys/block/DISK/queue/iosched, and what they said
    chosen     the scheduler that auto has chosen
    measured   the one that the disk has for a comparison, or nothing
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from streamsched.base.errors import StreamschedError
from streamsched.base.files import Target, write_whole
from streamsched.hosts.device import STREAM, SYS, Device, keep_file
from streamsched.hosts.disks import LEAST_REQUESTS
from streamsched.watch.measure_state import Spec, State

VERSION = 1


class Kept(State):
    """What there was, and what is chosen; @found: an earlier auto has left it so."""

    def __init__(self, device: Device, sys_: Path = SYS) -> None:
        super().__init__(device, sys_)
        self._sys = sys_
        self.file = keep_file(device).with_name(f"auto-{device.name}.json")
        number = device.folder / "diskseq"
        self._diskseq = device.text(number) if number.is_file() else ""
        self.chosen = Spec(self.scheduler, None)
        self.measured = ""
        self.found = self._load()

    def _load(self) -> bool:
        try:
            data = json.loads(self.file.read_text())
            if data["version"] != VERSION:
                raise ValueError
            if data["diskseq"] != self._diskseq:
                return False
            self.scheduler = str(data["scheduler"])
            self.queue, self.settings = dict(data["queue"]), dict(data["settings"])
            self.chosen = Spec(str(data["chosen"]), None)
            self.measured = str(data["measured"])
        except FileNotFoundError:
            return False
        except (ValueError, KeyError, TypeError):
            raise StreamschedError(
                f"{self.file}: is not as `streamsched auto` writes it; remove it"
            ) from None
        except OSError as error:
            raise StreamschedError(f"{self.file}: cannot read it: {error.strerror}") from None
        return True

    def save(self) -> None:
        """So that it can be put back by another process."""
        data = {
            "version": VERSION,
            "diskseq": self._diskseq,
            "scheduler": self.scheduler,
            "queue": self.queue,
            "settings": self.settings,
            "chosen": self.chosen.scheduler,
            "measured": self.measured,
        }
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StreamschedError(f"{self.file}: cannot write it: {error.strerror}") from None
        write_whole(Target(self.file, replace=True), json.dumps(data, indent=2) + "\n")

    @property
    def same(self) -> bool:
        """Whether it is still the disk that it was."""
        number = self._device.folder / "diskseq"
        if not number.is_file():  # an old kernel, or no disk at all
            return True
        return self._device.text(number) == self._diskseq

    @property
    def by_hand(self) -> bool:
        """Whether somebody else has chosen what is in use."""
        ours = {self.chosen.scheduler, self.measured}
        # A process that was killed may have been on the way, which leads over none.
        if self.found and self.measured:
            ours.add("none")
        return self._device.in_use not in ours

    def adopt(self) -> None:
        """What somebody has chosen by hand is from now on what there was."""
        super().__init__(self._device, self._sys)
        self.chosen, self.measured = Spec(self.scheduler, None), ""
        self.save()

    def take_up(self) -> str | None:
        """The disk as it was left by a process that was killed, or by --once; a sentence, or None.

        What is chosen is in use afterwards.
        """
        name = self._device.name
        if self.by_hand:
            self.adopt()
            return f"{name}: {self.chosen} was chosen by hand"
        if self._device.in_use == self.chosen.scheduler:
            return None
        if self.chosen.scheduler in self._device.offered:
            self.choose(self.chosen)
            return None
        gone = self.chosen
        self.choose(Spec(self.scheduler, None))
        return f"{name}: {self.chosen} again, for {gone} is not loaded any more"

    def choose(self, spec: Spec) -> None:
        """Have the disk scheduled by it from now on."""
        self.use(spec)
        self.chosen, self.measured = spec, ""
        self.save()

    def use(self, spec: Spec) -> None:
        """As State, and with as many requests as `streamsched enable` gives stream."""
        if not self.same:
            raise StreamschedError(f"{self._device.name}: the disk is another one now")
        if self.measured != spec.scheduler:
            self.measured = spec.scheduler
            self.save()
        super().use(spec)
        requests = self._device.queue / "nr_requests"
        if spec.scheduler != STREAM or self.scheduler == STREAM or not requests.is_file():
            return
        if int(self._device.text(requests)) < LEAST_REQUESTS:
            self._device.write(requests, str(LEAST_REQUESTS))

    def restore(self, say: Callable[[str], None]) -> None:
        """What is chosen, again: for measuring in between. What is chosen by hand stays."""
        try:
            if self.by_hand:
                return
            self.use(self.chosen)
            self.measured = ""
            self.save()
        except StreamschedError as error:
            say(self.complaint(error))

    def undo(self, say: Callable[[str], None]) -> bool:
        """As it was before auto, where nobody has chosen another scheduler since.

        False if that could not be had, which @say has said; it can be tried again.
        """
        name = self._device.name
        try:
            if not self.same:
                said = f"{name}: the disk is another one now"
            elif self.by_hand:
                said = f"{name}: {self._device.in_use} stays, chosen by hand"
            else:
                was = self._device.in_use, self.chosen.scheduler
                super().restore(say)
                if self._device.in_use != self.scheduler:
                    return False
                said = f"{name}: {self.scheduler} again, as before"
                said = "" if was == (self.scheduler, self.scheduler) else said
        except StreamschedError as error:
            say(self.complaint(error))
            if (self._device.folder / "queue").is_dir():
                return False
            said = ""
        self.file.unlink(missing_ok=True)
        if said:
            say(said)
        return True
