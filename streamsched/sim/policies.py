# SPDX-License-Identifier: GPL-2.0-only
"""The policies and tunables that the core offers, as its own tables state them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamsched._core import ffi, lib
from streamsched.base.errors import UsageError, unknown
from streamsched.base.units import whole_number
from streamsched.sim import pythonpolicy
from streamsched.sim.tunable import Tunable
from streamsched.work.fio_options import MAX_WEIGHT
from streamsched.work.process import Process

WORK_CONSERVING, USES_OWNER, WRAPPER, WEIGHS_REQUESTS = 1, 2, 4, 16
# Not of the core: chooses one of them (streamsched/sim/choose.py).
AUTO = "auto"
AUTO_HELP = "the policy of which a profile of the disk promises most, as the workload changes"

# Schedulers of a kernel, under whose names many know what the core has too.
LISTED = "`streamsched list policies` lists those that are here"
KERNELS_OWN = {
    "none": "noop is like it",
    "mq-deadline": "deadline is like it",
    "kyber": LISTED,
    "bfq": "cfq is its predecessor",
}


@dataclasses.dataclass(frozen=True)
class Policy:
    """One policy of the core."""

    name: str
    help: str
    flags: int
    tunables: tuple[Tunable, ...]
    weighs: bool  # gives shares by weight
    weighs_requests: bool  # ... also to senders that it does not know
    replaced: Mapping[str, str]  # tunables of former versions, and what is to be set instead


def _text(pointer: object) -> str:
    return ffi.string(pointer).decode() if pointer else ""


def _replacements(old: Any) -> Iterator[tuple[str, str]]:
    at = 0
    while old and old[at].name:
        yield _text(old[at].name), _text(old[at].by)
        at += 1


def _policy(ops: object) -> Policy:
    rows = []
    for i in range(ops.nr_tunables):  # type: ignore[attr-defined]
        row = ops.tunables[i]  # type: ignore[attr-defined]
        rows.append(
            Tunable(
                _text(row.name),
                row.unit,
                row.initial,
                row.min,
                row.max,
                _text(row.help),
            )
        )
    return Policy(
        _text(ops.name),  # type: ignore[attr-defined]
        _text(ops.help),  # type: ignore[attr-defined]
        ops.flags,  # type: ignore[attr-defined]
        tuple(rows),
        bool(ops.weigh or ops.flags & WEIGHS_REQUESTS),  # type: ignore[attr-defined]
        bool(ops.flags & WEIGHS_REQUESTS),  # type: ignore[attr-defined]
        dict(_replacements(ops.replaced)),  # type: ignore[attr-defined]
    )


def all_policies() -> dict[str, Policy]:
    """Every policy by name, in the core's order."""
    policies = (_policy(lib.ss_policies[i]) for i in range(lib.ss_nr_policies))
    return {policy.name: policy for policy in policies}


def check_spec(spec: str) -> list[Policy]:
    """The policies of a spec such as stream:deadline, outermost first; or UsageError.

    None of auto: what it chooses has its tunables as the profile was measured with.
    """
    if spec == AUTO:
        return []
    if AUTO in spec.split(":"):
        raise UsageError(f'policy "{spec}": auto stands alone; it chooses what to wrap by itself')
    known = all_policies()
    if pythonpolicy.is_python(spec):
        outer = spec.partition(":")[0]
        if outer in known:
            raise UsageError(
                f'policy "{spec}": {outer} wraps policies of the core only; leave {outer}: out'
            )
        pythonpolicy.begin(spec)
        return [Policy(spec, "a policy in Python", 0, (), False, False, {})]
    found = []
    for name in spec.split(":"):
        if not name:
            raise UsageError(
                f'policy "{spec}": a name is missing beside the colon; '
                "write both, as in stream:deadline"
            )
        if name in KERNELS_OWN:
            raise UsageError(
                f'policy "{spec}": {name} is of the kernel, there only with `run --on kernel`; '
                f"{KERNELS_OWN[name]}"
            )
        if name not in known:
            raise unknown("policy", name, [*known, AUTO])
        found.append(known[name])
    why = ffi.new("char[256]")
    sched = ffi.new("struct ss_sched *")
    if lib.ss_sched_init(sched, spec.encode(), 1 << 20, why, len(why)):
        # Of one name alone the core says what is missing.
        raise UsageError(_text(why) + (f"; {_what_wraps_what(known)}" if len(found) > 1 else ""))
    return found


def register_policy(name: str, policy: pythonpolicy.Maker) -> None:
    """Have the class @policy known by @name, wherever a policy of the simulator is named."""
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise UsageError(f"policy {name!r}: a name has letters, digits, - and _, a letter first")
    if name in {*all_policies(), *KERNELS_OWN, AUTO}:
        raise UsageError(f"policy {name!r}: is there already; give yours another name")
    before = pythonpolicy.registered.get(name)
    pythonpolicy.registered[name] = policy
    try:
        pythonpolicy.begin(name)
    except UsageError:
        del pythonpolicy.registered[name]
        if before:
            pythonpolicy.registered[name] = before
        raise


def names_in(policies: str, example: str) -> list[str]:
    """What --policy names, comma-separated; @example is what a message may show."""
    names = [name.strip() for name in re.split(r",(?![^\[]*\])", policies)]
    if not any(names):
        raise UsageError(f"--policy is empty; name at least one, as in {example}")
    if not all(names):
        raise UsageError(f"--policy {policies}: a name is missing beside a comma")
    return names


def policy_files(policy: str | None) -> list[str]:
    """The files of policies in Python that --policy names."""
    specs = [spec.strip() for spec in (policy or "").split(",")]
    return [spec.rpartition(":")[0] for spec in specs if pythonpolicy.is_python(spec)]


def refuse_python(policy: str | None, where: str) -> None:
    """Refuse policies in Python, which only the simulator has."""
    for spec in (policy or "").split(","):
        if pythonpolicy.is_python(spec.strip()):
            raise UsageError(
                f'policy "{spec.strip()}": not with {where}; only run and replay in the simulator '
                "(and report) have policies in Python"
            )


def refuse_twice(option: str, specs: Sequence[str]) -> None:
    """Refuse a list that names a policy twice: time is virtual, its rows would be the same."""
    for spec in specs:
        if specs.count(spec) > 1:
            raise UsageError(f"--policy {option}: {spec} stands there twice; leave one of them out")


def _what_wraps_what(known: Mapping[str, Policy]) -> str:
    outer = [f"{name}:POLICY" for name, policy in known.items() if policy.flags & WRAPPER]
    inner = [name for name, policy in known.items() if policy.flags & WORK_CONSERVING]
    return f"write {' or '.join(outer)} with one of {', '.join(inner)}"


def _weight(option: str, text: str) -> int:
    weight = whole_number(text.strip())
    if weight is None or not 1 <= weight <= MAX_WEIGHT:
        raise UsageError(f"--weight {option}: a weight is a whole number from 1 to {MAX_WEIGHT}")
    return weight


def parse_weights(
    options: list[str], specs: list[str], processes: Sequence[Process], owners: str
) -> tuple[tuple[int, int], ...]:
    """(owner, weight): of each OWNER=N option, where OWNER is the name of a job, and of the
    processes' own weights (owner_weight in the job file), which the options go before.

    With owners by process all clones of the job get the weight, else its group.
    """
    of_file = [process for process in processes if process.weight is not None]
    weighing = [p for spec in specs for p in check_spec(spec) if p.weighs]
    weighs = bool(weighing)
    if options and not weighs:
        having = ", ".join(policy.name for policy in all_policies().values() if policy.weighs)
        raise UsageError(f"--weight: {_none_has(specs, 'weights')}; these have: {having}")
    if not weighs or not (options or of_file):
        return ()
    if owners == "none" and not all(policy.weighs_requests for policy in weighing):
        said = "--weight" if options else f"owner_weight of {of_file[0].name}"
        raise UsageError(f"{said}: with --owners none nobody's share can be told from others'")
    known: dict[str, set[int]] = {}
    for index, process in enumerate(processes):
        number = index if owners == "process" else process.group
        known.setdefault(process.name, set()).add(number + 1)
    weights: dict[int, int] = {}
    for option in options:
        name, equals, text = option.rpartition("=")
        if not equals or not name:
            raise UsageError(f"--weight {option}: write OWNER=N, as in reader=2")
        if name not in known:
            raise unknown("owner", name, known)
        weight = _weight(option, text)
        for owner in known[name]:
            if weights.setdefault(owner, weight) != weight:
                raise UsageError(f"--weight {option}: its owner has another weight already")
    for index, process in enumerate(processes):
        if process.weight is not None:
            number = index if owners == "process" else process.group
            weights.setdefault(number + 1, process.weight)
    return tuple(sorted(weights.items()))


def _none_has(specs: list[str], what: str) -> str:
    if len(specs) == 1:
        return f"{specs[0]} has no {what}"
    return f"none of {', '.join(specs)} has {what}"


def _replaced(specs: list[str], name: str) -> str:
    """What replaces a tunable that a former version had, as the end of a sentence; or nothing."""
    for spec in specs:
        for policy in check_spec(spec):
            if name in policy.replaced:
                return policy.replaced[name]
    return ""


def parse_settings(settings: list[str], specs: list[str]) -> dict[str, int]:
    """The values of NAME=VALUE settings; each must be a tunable of one of @specs."""
    rows = {
        row.name: row for spec in specs for policy in check_spec(spec) for row in policy.tunables
    }
    values: dict[str, int] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"--set {setting}: write TUNABLE=VALUE, as in wait_target=500ms")
        if name not in rows:
            if by := _replaced(specs, name):
                raise UsageError(f"--set {name}: it is gone: {by}")
            if not rows:
                raise UsageError(f"--set {name}: {_none_has(specs, 'tunables')}")
            policies = all_policies().values()
            having = [one.name for one in policies if any(row.name == name for row in one.tunables)]
            if having:
                raise UsageError(
                    f"--set {name}: is a tunable of {', '.join(having)}; "
                    "name it in --policy, or leave the setting out"
                )
            raise unknown("tunable", name, rows)
        if name in values:
            raise UsageError(f"--set {setting}: {name} is set twice; leave one of them out")
        values[name] = rows[name].parse(text)
    return values


def spec_of(name: str) -> tuple[str, list[str]]:
    """Of stream:deadline[wait_target=1s] the policy, and its own settings."""
    match = re.fullmatch(r"([^\[\]]*)(?:\[([^\[\]]*)\])?", name)
    if not match or match[2] == "":
        raise UsageError(
            f"--policy {name}: write settings in one pair of brackets, "
            "as in stream:deadline[wait_target=1s]"
        )
    return match[1], match[2].split(",") if match[2] else []


def with_settings(
    names: Sequence[str], settings: list[str]
) -> list[tuple[str, tuple[tuple[str, int], ...]]]:
    """Of each of @names the policy and its tunables: @settings are for all that have them.

    What a policy has in its own brackets goes before.
    """
    found = [spec_of(name) for name in names]
    for spec, _ in found:
        check_spec(spec)
    common = parse_settings(settings, [spec for spec, _ in found])
    result = []
    for name, (spec, own) in zip(names, found, strict=True):
        try:
            values = {**common, **parse_settings(own, [spec])}
        except UsageError as error:
            raise UsageError(f"--policy {name}: {str(error).removeprefix('--set ')}") from None
        result.append((spec, tuple(sorted(values.items()))))
    return result
