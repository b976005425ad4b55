"""What is installed: the folders of tasks, metrics and models, the papers cited, and which packages.

The folders are inside the package in a wheel, beside it in a checkout. Of two distributions `dialeval-plugin` brings all
packages that its hosts, methods and trainings need, `dialeval-core` those that the bundled models need; setup.py says which.
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
"""By the name under which a package is imported, the extra that brings it."""


def installed_distributions() -> list[str]:
    """Those of `DISTRIBUTIONS` that are installed: one of them, if all is well."""
    found = []
    for name in DISTRIBUTIONS:
        with suppress(PackageNotFoundError):
            found.append(distribution(name).name)
    return found


def install(extra: str) -> str:
    """Return the command that installs an extra of the distribution that is installed.

    Example:
        >>> install("reports")
        "pip install 'dialeval-plugin[reports]'"
    """
    name = next(iter(installed_distributions()), DISTRIBUTIONS[0])
    return f"pip install '{name}[{extra}]'"


@contextmanager
def importing(what: str, of: str = "") -> Iterator[None]:
    """Turn a failing import inside the `with` into a MissingPrerequisite: what needs the package, and how it is installed.

    Args:
        what: has need of the package.
        of: the package that is meant where the one that cannot be imported is no extra's; by default its error is raised.
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
    """Import a module of a package that not every installation has; see `importing`."""
    with importing(what):
        return importlib.import_module(module)
