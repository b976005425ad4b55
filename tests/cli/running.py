"""The command run in this process, and what most tests of it write and look at."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from typer.testing import CliRunner, Result

from dialeval_plugin.cli.main import app


def run(*words: object) -> Result:
    """Run `dialeval` with these words; errors that are meant for people are raised."""
    return CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)


def write_rows(path: Path, rows: Iterable[object]) -> Path:
    """Write one JSON value a line."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def names(folder: Path) -> list[str]:
    """What is in a folder."""
    return sorted(path.name for path in folder.iterdir())
