# SPDX-License-Identifier: GPL-2.0-only
"""What tests of reports are given: a job's results and its pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_data import JOB, PAPERS, POLICIES, streamsched


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a job, its results, and reports of them."""
    folder = tmp_path_factory.mktemp("report")
    job = folder / "job.fio"
    job.write_text(JOB)
    words = ["--policy", POLICIES, "--requests", folder / "rows.csv"]
    streamsched("run", job, *PAPERS, *words, "--output", "json", "--to", folder / "plus.json")
    words = [*PAPERS, "--policy", POLICIES]
    streamsched("run", job, *words, "--output", "json", "--to", folder / "plain.json")
    streamsched("report", job, *words, "--to", folder / "job.html")
    streamsched("report", folder / "plain.json", folder / "plus.json", "--to", folder / "json.html")
    return folder
