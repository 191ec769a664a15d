# SPDX-License-Identifier: GPL-2.0-only
"""The notebook runs, and has no stored outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NAME = "examples/figures.ipynb"


def test_it_has_no_outputs(root: Path) -> None:
    """They would be of another version, and in every diff."""
    cells = json.loads((root / NAME).read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert [(cell["outputs"], cell["execution_count"]) for cell in code] == [([], None)] * len(code)


@pytest.mark.e2e
def test_its_figures_are_those_of_reproduce(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last cell compares each of its simulations with the command's."""
    for module in ("nbclient", "ipykernel", "pandas", "matplotlib"):
        pytest.importorskip(module, reason=f"{module} is missing")
    import nbformat
    from nbclient import NotebookClient

    for name in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path))  # whatever the user has set up there
    notebook = nbformat.read(root / NAME, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=100, resources=resources, allow_errors=False).execute()
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    assert outputs[-1]["text"] == "56 simulations, all the same\n"
    pictures = [out for out in outputs if "image/png" in out.get("data", {})]
    assert len(pictures) == 3
    assert [out for out in outputs if out.get("name") == "stderr"] == []
