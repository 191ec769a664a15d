# SPDX-License-Identifier: GPL-2.0-only
"""`streamsched doctor`: is this machine fit for the scheduler stream, and what is in its way?

It changes nothing, and needs no root: what only root can see is said to be so.

`--output json` is one object:

    version   1
    kernel    the running kernel's release
    problems  the number of findings whose level is "problem"
    findings  a list, in the order of the text, of objects with
                area     "kernel", "build", "secure boot", "module", "boot", "disk" or "array"
                level    "ok", "note" or "problem"
                text     what was found
                command  a line for root's shell that mends it, or null
                advice   a sentence that does, or that says what to do after the command, or null
    disks     a list of objects with the members of disks.Disk
    arrays    a list of objects with the members of disks.ArrayState

A problem has a command or an advice; a note may have. null is what is not known.
"""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Iterator

from streamsched.base.errors import printable
from streamsched.hosts.disks import ArrayState, Disk, arrays_of, disks_of
from streamsched.hosts.doctor_boot import check_boot
from streamsched.hosts.doctor_disks import check_arrays, check_disks, check_weights, disk_lines
from streamsched.hosts.doctor_finding import Finding, Level
from streamsched.hosts.doctor_kernel import (
    check_build,
    check_dkms,
    check_kernel,
    check_loaded,
    check_signing,
    modules_of,
)
from streamsched.hosts.machine import Machine

WIDTH = 80
VERSION = 1


@dataclasses.dataclass(frozen=True)
class Report:
    """All that was found."""

    kernel: str
    findings: tuple[Finding, ...]
    disks: tuple[Disk, ...]
    arrays: tuple[ArrayState, ...]

    def number(self, level: Level) -> int:
        return sum(finding.level is level for finding in self.findings)

    @property
    def problems(self) -> int:
        return self.number(Level.problem)


def examine(machine: Machine | None = None) -> Report:
    """Look at everything once."""
    machine = machine or Machine()
    modules = modules_of(machine)
    disks, arrays = disks_of(machine), arrays_of(machine)
    findings = (
        *check_kernel(machine),
        *check_build(machine, modules),
        *check_signing(machine, modules),
        *check_dkms(machine, modules),
        *check_loaded(machine, modules),
        *check_boot(machine, disks),
        *check_disks(disks, machine.release in modules),
        *check_weights(machine, disks),
        *check_arrays(arrays, disks),
    )
    return Report(machine.release, findings, tuple(disks), tuple(arrays))


def as_json(report: Report) -> str:
    """For programs; the module's docstring has the members."""
    data = {
        "version": VERSION,
        "kernel": report.kernel,
        "problems": report.problems,
        "findings": [dataclasses.asdict(one) for one in report.findings],
        "disks": [dataclasses.asdict(one) for one in report.disks],
        "arrays": [dataclasses.asdict(one) for one in report.arrays],
    }
    return json.dumps(data, indent=2) + "\n"


# ---- text ----

AREA, LEVEL = 12, 8
INDENT = " " * (AREA + LEVEL + 2)


def _ascii(text: str) -> str:
    return printable(text).encode("ascii", "backslashreplace").decode()


def _wrapped(text: str, first: str, rest: str, end: str = "") -> Iterator[str]:
    """@text in lines of at most WIDTH, all but the last with @end."""
    lines = textwrap.wrap(
        _ascii(text),
        WIDTH - len(end),
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
    )
    for number, line in enumerate(lines or [first.rstrip()]):
        yield line + (end if number < len(lines) - 1 else "")


def _finding_lines(finding: Finding) -> Iterator[str]:
    first = f"{finding.area:{AREA}} {finding.level:{LEVEL}} "
    yield from _wrapped(finding.text, first, INDENT)
    if finding.command:
        yield from _wrapped(finding.command, f"{INDENT}# ", f"{INDENT}    ", end=" \\")
    if finding.advice:
        yield from _wrapped(finding.advice, INDENT, INDENT)


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"


def as_text(report: Report) -> str:
    """For people: at most 80 columns, a # before each command of root's."""
    lines = list(disk_lines(report.disks)) if report.disks else []
    lines += [""] if lines else []
    for finding in report.findings:
        lines += _finding_lines(finding)
    total = ", ".join(
        _count(report.number(level), level.value) for level in (Level.problem, Level.note)
    )
    return "\n".join([*lines, "", total]) + "\n"
