"""The documentation: its notebooks say what they show, its commands are run or marked, its pages open in a browser."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def run_notebook(path: Path, folder: Path) -> Any:
    """A notebook with the outputs that it has when it is run in `folder`, by the package and commands of this environment."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}})
    client.execute()
    return notebook


def shown(notebook: Any) -> list[list[str]]:
    """What each cell shows on a page; warnings are not part of it."""
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            texts = [output.get("text") or output["data"].get("text/markdown", "") for output in outputs]
            cells.append([re.sub(r" +$", "", text, flags=re.MULTILINE) for text in texts])
    return cells


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_gives(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("COLUMNS", "120")
    assert shown(run_notebook(path, tmp_path)) == shown(nbformat.read(path, as_version=4))


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 3
