# SPDX-License-Identifier: GPL-2.0-only
"""Results that run and replay have written as JSON, read again and checked.

A key that came later in version 1 may be missing: what reads it says so in its place.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamsched.base.errors import UsageError
from streamsched.base.files import read_whole
from streamsched.sim.results import JSON_VERSION, TIME_KEYS

FORMAT = "streamsched-results"
AGAIN = "make it again with --output json"
# CSV, and the table.
OTHER = re.compile(
    rb"(work,seed,disk,array,owners,queue_depth,path,)?policy,throughput_mb_s,"
    rb"|[^\n]*: (\d+ process(es)? )?on [^\n]*, queue depth \d+(, seed \d+)?\n"
    rb"[\s\S]{0,1500}\n policy +"
)
NUMBER = "number"
OR_NULL = "number or null"
WHOLE = "whole number"
# What is read of a result: keys that must be there, and such as may be missing ("?").
TIMES: dict[str, Any] = dict.fromkeys(TIME_KEYS, NUMBER)
HISTOGRAM = {"up_to_ms": [NUMBER], "count": [WHOLE]}
RESULT: dict[str, Any] = {
    "work": "text",
    "setup": {"disk": "text", "array?": "text", "owners": "text", "queue_depth": NUMBER},
    "runs": [
        {
            "policy": "text",
            "throughput_mb_s": NUMBER,
            "efficiency": OR_NULL,
            "least_share?": OR_NULL,
            "duration_s": NUMBER,
            "disk_requests": NUMBER,
            "response_ms": TIMES,
            "counters": dict.fromkeys(("waits", "hits", "timeouts"), WHOLE),
            "reasons?": {"*": WHOLE},
            "reason_waits_s?": {"*": NUMBER},
            "response_histogram?": HISTOGRAM,
            "jobs": [
                {
                    "name": "text",
                    "share?": OR_NULL,
                    "response_ms?": TIMES,
                    "response_histogram?": HISTOGRAM,
                }
            ],
        }
    ],
}


def _is_number(value: Any) -> bool:
    # As abs() has it also an int that no float can be is none; and so is NaN.
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )


def _fits(value: Any, kind: str) -> bool:
    if kind == "text":
        return isinstance(value, str)
    if kind == WHOLE:
        return isinstance(value, int) and _is_number(value) and value >= 0
    return (kind == OR_NULL and value is None) or _is_number(value)


def _wrong(value: Any, rule: Any, where: str) -> Iterator[str]:
    """What of @value is not as @rule says."""
    if isinstance(rule, str):
        if not _fits(value, rule):
            yield f"{where} is no {rule}"
    elif isinstance(rule, list):
        if not isinstance(value, list):
            yield f"{where} is no list"
            return
        for number, one in enumerate(value):
            yield from _wrong(one, rule[0], f"{where}[{number}]")
    elif not isinstance(value, dict):
        yield f"{where} is no object"
    else:
        rules = dict.fromkeys(value, rule["*"]) if "*" in rule else rule
        for key, inner in rules.items():
            name = key.removesuffix("?")
            if name in value:
                yield from _wrong(value[name], inner, f"{where}.{name}".lstrip("."))
            elif name == key:
                yield f"{where}.{name} is missing".lstrip(".")


def _histograms(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, run in enumerate(document["runs"]):
        for place, one in [("", run), *((f"jobs[{n}].", j) for n, j in enumerate(run["jobs"]))]:
            if "response_histogram" in one:
                yield f"runs[{number}].{place}response_histogram", one["response_histogram"]


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def load_results(path: Path) -> list[dict[str, Any]]:
    """The document in @path, or each of several in it, checked."""
    try:
        document = json.loads(read_whole(path), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{path}: line {error.lineno}, column {error.colno}: is no JSON: {error.msg}; {AGAIN}"
        ) from None
    except (ValueError, RecursionError) as error:  # also what is no UTF-8
        raise UsageError(f"{path}: is no JSON: {error}; {AGAIN}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UsageError(
            f'{path}: is no result of streamsched, which begins with "format": "{FORMAT}"; {AGAIN}'
        )
    if document.get("version") != JSON_VERSION:
        raise UsageError(
            f"{path}: its version is {json.dumps(document.get('version'))}, and version "
            f"{JSON_VERSION} is read; {AGAIN}"
        )
    several = document.get("results")
    if several is None:
        _check(document, f"{path}:")
        return [document]
    if not isinstance(several, list) or not all(isinstance(one, dict) for one in several):
        raise UsageError(f"{path}: results is no list of objects; {AGAIN}")
    if not several:
        raise UsageError(f"{path}: no run in it is finished; {AGAIN}")
    for number, one in enumerate(several):
        _check(one, f"{path}: results[{number}]:")
    return several


def _check(document: dict[str, Any], where: str) -> None:
    if not document.get("runs"):
        raise UsageError(f"{where} no run in it is finished; {AGAIN}")
    for wrong in _wrong(document, RESULT, ""):
        raise UsageError(f"{where} {wrong}; {AGAIN}")
    for name, one in _histograms(document):
        if len(one["up_to_ms"]) != len(one["count"]):
            raise UsageError(f"{where} {name} has lists of different length; {AGAIN}")


def is_other_result(head: bytes) -> bool:
    """Whether a file that begins so has results, but not as JSON."""
    return bool(OTHER.match(head))
