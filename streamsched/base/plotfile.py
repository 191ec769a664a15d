# SPDX-License-Identifier: GPL-2.0-only
"""Pictures that commands write with matplotlib: the same bytes for the same figures."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from streamsched.base.errors import StreamschedError, UsageError, install
from streamsched.base.files import Kind, check_output, picture_metadata, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png", ".pdf")


def check_plot(path: Path | None, *read: str | Path | None) -> None:
    """Refuse a picture that could not be drawn in the end, before the work begins."""
    if path is None:
        return
    if path.suffix not in SUFFIXES:
        raise UsageError(f"--plot {path}: name a .svg, .png or .pdf file")
    check_output(path, Kind.PICTURE, *read, option="--plot")
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


def save(figure: Figure, path: Path) -> None:
    """Write it, whole or not at all."""
    import matplotlib.pyplot as plt

    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix[1:], metadata=picture_metadata(path))
    plt.close(figure)
    write_whole(path, picture.getvalue(), Kind.PICTURE)
