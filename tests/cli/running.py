"""The command run in this process or one of its own, and what most tests of it write and look at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from typer.testing import CliRunner, Result

from dialeval_plugin.cli.main import app
from tests import forked

DIALEVAL = Path(sys.executable).parent / "dialeval"


def run(*words: object) -> Result:
    """Run `dialeval` with these words; errors that are meant for people are raised."""
    return CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """Variables of a process for which `folder` is home, and to which nothing of the user's is known."""
    # The same as for the commands of pages, so that all of them are forked from one server.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DIALEVAL_", "HF_", "XDG_"))}
    own = {
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "data"),
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "200",
        "DIALEVAL_COMMERCIAL": "0",
    }
    return {**inherited, **own, **variables}


def run_installed(folder: Path, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command in a process of its own, in `folder`."""
    return forked.run([DIALEVAL, *words], cwd=folder, env=environment(folder, **variables))


def write_rows(path: Path, rows: Iterable[object]) -> Path:
    """Write one JSON value a line."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def names(folder: Path) -> list[str]:
    """Return the names in a folder."""
    return sorted(path.name for path in folder.iterdir())
