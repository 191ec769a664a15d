# SPDX-License-Identifier: GPL-2.0-only
"""What came of the same work under each policy."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from streamsched.base.errors import StreamschedError, UsageError, install
from streamsched.base.files import target
from streamsched.sim import auto
from streamsched.sim.compare import Comparison, compare
from streamsched.sim.fiojson import as_fio_json
from streamsched.sim.results import (
    comparison_dict,
    csv_rows,
    csv_text,
    json_text,
    several_dict,
    tables_text,
)

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from streamsched.api.work import Work
    from streamsched.report.figures import Section


def _missing(what: str, module: str, extra: str) -> StreamschedError:
    return StreamschedError(f"{what} needs {module}, which is not installed: {install(extra)}")


@dataclasses.dataclass(frozen=True)
class Result:
    """What came of the same work under each policy.

    Throughput is in MB/s (10^6 bytes), times in ms unless a name says otherwise.
    """

    comparison: Comparison
    work: str
    title: str
    origin: Mapping[str, Any]
    drawn: Section | None = None
    _again: tuple[Work, auto.Options, int] | None = None

    @property
    def policies(self) -> list[str]:
        """Under which it was done, with settings of their own in brackets."""
        return [run.setup.shown for run in self.comparison.runs]

    def table(self, *, processes: bool = False, columns: int = 80) -> str:
        """The tables that the command line prints, at most @columns wide if they can be.

        @processes: also what each process had.
        """
        return tables_text(self.comparison, self.title, columns, processes)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of docs/sim/RESULTS.md."""
        return comparison_dict(self.comparison, self.work, self.origin)

    def to_json(self) -> str:
        """The same as text; `streamsched report` draws it."""
        return json_text(self.to_dict())

    def to_csv(self) -> str:
        """A line for each policy, units in the columns' names."""
        return csv_text(self.rows())

    def to_fio_json(self) -> str:
        """What fio --output-format=json prints, one group of jobs for each policy."""
        return as_fio_json(self.comparison, self._repeatable("to_fio_json()")[0].processes)

    def rows(self) -> list[dict[str, Any]]:
        """Those of CSV."""
        return list(csv_rows(self.comparison, self.work, self.origin))

    def to_pandas(self, *, processes: bool = False) -> pandas.DataFrame:
        """A row for each policy, columns as in CSV; or for each process under each policy."""
        try:
            import pandas
        except ImportError:
            raise _missing("to_pandas()", "pandas", "pandas") from None
        if not processes:
            import io

            return pandas.read_csv(io.StringIO(self.to_csv()))
        rows = [
            {
                "policy": run["policy"],
                "process": job["name"],
                **{key: job[key] for key in ("throughput_mb_s", "share", "duration_s")},
                **{f"response_ms_{key}": value for key, value in job["response_ms"].items()},
                **{key: job[key] for key in ("longest_wait_ms", "bytes_read", "bytes_written")},
            }
            for run in self.to_dict()["runs"]
            for job in run["jobs"]
        ]
        return pandas.DataFrame(rows)

    def requests(self) -> pandas.DataFrame:
        """A row for each request that the disks served, columns as --requests has them.

        They are not kept: the simulations are run once more, which comes to the same.
        """
        try:
            import pandas
        except ImportError:
            raise _missing("requests()", "pandas", "pandas") from None
        from streamsched.sim.requestlog import tables

        work, options, jobs = self._repeatable("requests()")
        frames: list[pandas.DataFrame] = []
        setups = auto.prepare(work.setups, options, jobs, Console(stderr=True))

        def look(files: Sequence[Path]) -> None:
            parts = list(zip(self.policies, files, strict=True))
            names = [process.name for process in work.processes]
            frames.extend(map(pandas.DataFrame, tables(parts, names)))

        again = compare(setups, work.processes, work.traces, jobs=jobs, look=look)
        if again.interrupted:
            raise KeyboardInterrupt
        return pandas.concat(frames, ignore_index=True)

    def plot(self, path: str | os.PathLike[str] | None = None, *, force: bool = False) -> Figure:
        """Throughput, latency, head positions and throughput over time, as run --plot draws them.

        Written to @path, if it is given: .svg, .png or .pdf; @force: also where a file is there.
        Without requests at hand the simulations are run once more.
        """
        try:
            from streamsched.report.plot import picture
        except ImportError:
            raise _missing("plot()", "matplotlib", "plots") from None
        from streamsched.base.plotfile import check_plot, save

        to = target(Path(path) if path is not None else None, force)
        check_plot(to)
        figure = picture(self.section())
        if to is not None:
            save(figure, to)
        return figure

    def section(self) -> Section:
        """What a report draws."""
        if self.comparison.failed:
            raise self.comparison.failed[0]
        if self.drawn is not None:
            return self.drawn
        work, options, jobs = self._repeatable("a picture")
        result = work.run(options, jobs, drawn=True)
        if result.drawn is None:
            raise KeyboardInterrupt
        return result.drawn

    def _repeatable(self, what: str) -> tuple[Work, auto.Options, int]:
        if self._again is None:
            raise UsageError(f"{what}: only of what was simulated")
        return self._again

    def _repr_html_(self) -> str:
        """In a notebook: the table."""
        return str(self.to_pandas().to_html(index=False))


def json_of(results: Sequence[Result]) -> str:
    """The JSON document of one result, or the one that holds several."""
    documents = [result.to_dict() for result in results]
    return json_text(documents[0] if len(documents) == 1 else several_dict(documents))


def csv_of(results: Sequence[Result]) -> str:
    """One table of all @results."""
    return csv_text([row for result in results for row in result.rows()])
