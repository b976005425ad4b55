"""Where the task and metric folders are, inside the package in a wheel, beside it in a checkout; and the papers cited."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def _folder(name: str) -> Path:
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def tasks_path() -> Path:
    """Folder of the lm-eval tasks, for `--include_path`."""
    return _folder("tasks")


def pretrained_path() -> Path:
    """Folder that holds one folder for every model that this package brings."""
    return _PACKAGE / "pretrained"


def metrics_path() -> Path:
    """Folder that holds one folder for every `evaluate` metric."""
    return _folder("metrics")


def bibtex(key: str) -> str:
    """Return the entry of a paper in `papers.bib`, without a line break at its end; KeyError where it has none of this key."""
    return _papers()[key]


@cache
def _papers() -> dict[str, str]:
    entries = Path(__file__).with_name("papers.bib").read_text(encoding="utf-8").strip().split("\n\n")
    return {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in entries}
