"""Runs the notebooks of the documentation and writes what they show into them: `python -m reproduction.notebooks`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
SETTINGS = {"OMP_NUM_THREADS": "1", "COLUMNS": "120"}
"""Variables of the processes, on which the shown text rests."""


def run(path: Path, folder: Path, programs: Path = Path(sys.executable).parent) -> Any:
    """A notebook with what its cells show when it is run in `folder`; stderr is no part of it."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}, coalesce_streams=True)
    path_variable = os.pathsep.join([str(programs), os.environ["PATH"]])
    client.execute(env={**os.environ, **SETTINGS, "PATH": path_variable})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.metadata.clear()
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for output in cell.outputs:
                if "text" in output:
                    output.text = output.text.replace("\r", "")
    return notebook


def main() -> None:
    """Run all and write them."""
    for path in NOTEBOOKS:
        with TemporaryDirectory() as folder:
            nbformat.write(run(path, Path(folder)), path)


if __name__ == "__main__":
    main()
