# SPDX-License-Identifier: GPL-2.0-only
"""Pictures that commands write with matplotlib: the same bytes for the same figures."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from streamsched.base.errors import StreamschedError, UsageError, install
from streamsched.base.files import Target, check_output, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png", ".pdf")


def check_plot(to: Target | None, *read: str | Path | None) -> None:
    """Refuse a picture that could not be drawn in the end, before the work begins."""
    if to is None:
        return
    if to.path.suffix not in SUFFIXES:
        raise UsageError(f"--plot {to.path}: name a .svg, .png or .pdf file")
    check_output(to, *read, option="--plot")
    if importlib.util.find_spec("matplotlib") is None:
        raise StreamschedError(
            f"--plot needs matplotlib, which is not installed: {install('plots')}"
        )


def new_figure(
    width: float, height: float, layout: Literal["constrained", "tight"] = "constrained"
) -> Figure:
    """An empty one, in inches."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "streamsched"
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height), layout=layout)


def save(figure: Figure, to: Target) -> None:
    """Write it, whole or not at all."""
    import matplotlib.pyplot as plt

    picture = io.BytesIO()
    kind = to.path.suffix[1:]
    figure.savefig(picture, format=kind, metadata={"Date": None} if kind == "svg" else None)
    plt.close(figure)
    write_whole(to, picture.getvalue())
