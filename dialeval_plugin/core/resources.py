"""Where the task and metric folders are: inside the package in a wheel, beside it in a checkout."""

from __future__ import annotations

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
