# SPDX-License-Identifier: GPL-2.0-only
"""What all tests share: the compiled core, hypothesis' settings, the layers' totals.

A test's layer is its marker (unit, property, golden, e2e, nbdkit, stock, packages). A test
without one is placed by its file: test_property_*.py and so on; what remains is a unit test.
Of those marked long make test runs none, make test-all all.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

LAYERS = {
    "unit": "unit",
    "property": "property",
    "golden": "golden",
    "e2e": "end-to-end",
    "nbdkit": "network server",
    "stock": "stock kernel",
    "packages": "packages",
}

# The same examples in every run: a failure seen once is seen again. HYPOTHESIS_PROFILE=search
# looks at new ones instead.
settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# For tools/mutants.py: that it fails is enough, the smallest example that does is not looked for.
settings.register_profile(
    "mutants",
    parent=settings.get_profile("same"),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
settings.register_profile("search", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# What nohup and a shell's & have had ignored is respected by the programs, but not meant for
# them here: tests send them these signals.
for _number, _default in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, _default)


@pytest.fixture(scope="session")
def core() -> tuple[Any, Any]:
    """(ffi, lib) of the compiled core, disk and simulator."""
    from streamsched._core import ffi, lib

    return ffi, lib


@pytest.fixture(scope="session")
def root() -> Path:
    """The source tree."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container, for a user that no file names."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)


# What measures in real time takes long, and what is marked so: make test-all runs it too.
LONG = ("nbdkit/test_nbdkit_speed.py",)
ALL = os.environ.get("STREAMSCHED_TESTS") == "all"
collect_ignore_glob = [] if ALL else list(LONG)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out long tests; give each without a layer the marker of the layer it is in."""
    left_out = [item for item in items if item.get_closest_marker("long") and not ALL]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        if any(item.get_closest_marker(layer) for layer in LAYERS):
            continue
        words = {item.path.parent.name, *item.path.stem.split("_")}
        layer = next((layer for layer in LAYERS if layer in words), "unit")
        item.add_marker(layer)


def layer_of(report: pytest.TestReport) -> str:
    return next((LAYERS[layer] for layer in LAYERS if layer in report.keywords), "unit")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line per layer; with PYTEST_TOTALS=FILE also there, for make test."""
    if hasattr(terminalreporter.config, "workerinput"):
        return  # one of several processes; the one that began them counts for all
    counts: dict[str, Counter[str]] = {name: Counter() for name in LAYERS.values()}
    groups = {
        "passed": ("passed", "xfailed"),
        "failed": ("failed", "error", "xpassed"),
        "skipped": ("skipped",),
    }
    for outcome, keys in groups.items():
        for key in keys:
            for report in terminalreporter.stats.get(key, []):
                name = layer_of(report) if isinstance(report, pytest.TestReport) else "unit"
                counts[name][outcome] += 1
    lines = [
        f"{name} {count['passed']} {count['failed']} {count['skipped']}"
        for name, count in counts.items()
        if count
    ]
    for line in lines:
        name, passed, failed, skipped = line.rsplit(maxsplit=3)
        terminalreporter.write_line(
            f"{name:<14} {passed:>5} passed {failed:>4} failed {skipped:>4} skipped"
        )
    totals = os.environ.get("PYTEST_TOTALS")
    if totals:
        with Path(totals).open("a") as file:
            file.write("".join(line + "\n" for line in lines))
