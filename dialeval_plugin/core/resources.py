"""Folders of tasks, metrics and models, cited papers, and installed packages.

The folders are inside the package in a wheel, next to it in a checkout. The distribution `dialeval-plugin` requires all
packages, `dialeval-core` those of the bundled models; see setup.py.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from .errors import MissingPrerequisite

_PACKAGE = Path(__file__).resolve().parent.parent


def _folder(name: str) -> Path:
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def tasks_path() -> Path:
    """Return the folder of the lm-eval tasks, for `--include_path`."""
    return _folder("tasks")


def pretrained_path() -> Path:
    """Return the folder with one folder per bundled model."""
    return _PACKAGE / "pretrained"


def metrics_path() -> Path:
    """Return the folder with one folder per `evaluate` metric."""
    return _folder("metrics")


def user_cache() -> Path:
    """Return the folder of this package in the user's cache; MissingPrerequisite: the user has no home folder."""
    import pooch

    folder = Path()
    with suppress(RuntimeError):  # some releases of platformdirs return "~" as it is
        folder = Path(pooch.os_cache("dialeval"))
    if not folder.is_absolute():
        raise MissingPrerequisite("the user's cache cannot be found, as there is no home folder. Set HOME or XDG_CACHE_HOME.")
    return folder


def bibtex(key: str) -> str:
    """Return the entry of a paper in `papers.bib`; raise a KeyError if there is none."""
    return _papers()[key]


@cache
def _papers() -> dict[str, str]:
    entries = Path(__file__).with_name("papers.bib").read_text(encoding="utf-8").strip().split("\n\n")
    return {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in entries}


DISTRIBUTIONS = ("dialeval-plugin", "dialeval-core")
_EXTRAS = {
    **dict.fromkeys(("torch", "transformers", "sentence_transformers"), "torch"),
    **dict.fromkeys(("lm_eval", "tenacity"), "lm-eval"),
    **dict.fromkeys(("nltk", "rouge_score", "sacrebleu"), "baselines"),
    **dict.fromkeys(("accelerate", "sklearn"), "train"),
    **{name: name for name in ("datasets", "evaluate", "pandas")},
    **{"bert_score": "bertscore", "matplotlib": "reports", "pyarrow": "parquet"},
    **{"datatrove": "launch", "joblib": "launch", "ray": "ray"},
}
"""Extra that installs each imported package."""


def installed_distributions() -> list[str]:
    """Return those of `DISTRIBUTIONS` that are installed, normally one."""
    names = []
    for name in DISTRIBUTIONS:
        with suppress(PackageNotFoundError):
            names.append(distribution(name).name)
    return names


def install(extra: str) -> str:
    """Return the command that installs an extra of the installed distribution.

    Example:
        >>> install("reports")
        "pip install 'dialeval-plugin[reports]'"
    """
    name = next(iter(installed_distributions()), DISTRIBUTIONS[0])
    return f"pip install '{name}[{extra}]'"


@contextmanager
def importing(what: str, of: str = "") -> Iterator[None]:
    """Turn an ImportError in the block into a MissingPrerequisite with the command that installs the package.

    Args:
        what: the part of this package that needs it, at the start of the message.
        of: the package to install if the missing one belongs to no extra; by default the ImportError is raised.
    """
    try:
        yield
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        if (package := name if name in _EXTRAS else of) not in _EXTRAS:
            raise
        raise MissingPrerequisite(
            f"{what} needs {package}, which cannot be imported ({error}). Run `{install(_EXTRAS[package])}`."
        ) from error


def optional(module: str, what: str) -> Any:
    """Import a module of an optional package; see `importing`."""
    with importing(what):
        return importlib.import_module(module)
