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
from streamsched.hosts import doctor_kernel as kernel
from streamsched.hosts.disks import ArrayState, Disk, arrays_of, disks_of, table_of
from streamsched.hosts.doctor_boot import check_boot
from streamsched.hosts.doctor_disks import check_arrays, check_disks, check_weights
from streamsched.hosts.doctor_finding import Finding, Level
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
    modules = kernel.modules_of(machine)
    disks, arrays = disks_of(machine), arrays_of(machine)
    checks = (  # in the order of the text
        ("kernel", kernel.check_kernel(machine)),
        ("build", kernel.check_build(machine, modules)),
        ("secure boot", kernel.check_signing(machine, modules)),
        ("module", kernel.check_dkms(machine, modules)),
        ("module", kernel.check_loaded(machine, modules)),
        ("boot", check_boot(machine, disks)),
        ("disk", check_disks(disks, machine.release in modules)),
        ("disk", check_weights(machine, disks)),
        ("array", check_arrays(arrays, disks)),
    )
    findings = (dataclasses.replace(one, area=area) for area, every in checks for one in every)
    return Report(machine.release, tuple(findings), tuple(disks), tuple(arrays))


def as_json(report: Report) -> str:
    """For programs; the module's docstring has the members."""
    head = {"version": VERSION, "kernel": report.kernel, "problems": report.problems}
    data = {
        "findings": [{"area": one.area} | dataclasses.asdict(one) for one in report.findings],
        "disks": [dataclasses.asdict(one) for one in report.disks],
        "arrays": [dataclasses.asdict(one) for one in report.arrays],
    }
    return json.dumps(head | data, indent=2) + "\n"


# ---- text ----

AREA, LEVEL = 12, 8
INDENT = " " * (AREA + LEVEL + 2)


def _wrapped(text: str, first: str, rest: str, end: str = "") -> Iterator[str]:
    """@text in lines of at most WIDTH, all but the last with @end."""
    text = printable(text).encode("ascii", "backslashreplace").decode()
    wrapper = textwrap.TextWrapper(WIDTH - len(end), first, rest, break_on_hyphens=False)
    lines = wrapper.wrap(text)
    yield from (line + end for line in lines[:-1])
    yield lines[-1] if lines else first.rstrip()


def _finding_lines(finding: Finding) -> Iterator[str]:
    first = f"{finding.area:{AREA}} {finding.level:{LEVEL}} "
    yield from _wrapped(finding.text, first, INDENT)
    if finding.command:
        yield from _wrapped(finding.command, f"{INDENT}# ", f"{INDENT}    ", end=" \\")
    if finding.advice:
        yield from _wrapped(finding.advice, INDENT, INDENT)


def as_text(report: Report) -> str:
    """For people: at most 80 columns, a # before each command of root's."""
    lines = [*table_of(report.disks), ""] if report.disks else []
    for finding in report.findings:
        lines += _finding_lines(finding)
    counts = [(level.value, report.number(level)) for level in (Level.problem, Level.note)]
    total = [f"{number or 'no'} {what}{'' if number == 1 else 's'}" for what, number in counts]
    return "\n".join([*lines, "", ", ".join(total)]) + "\n"
