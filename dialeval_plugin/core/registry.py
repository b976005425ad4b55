"""Scorers by name: registered in this process, or declared by an installed package."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from dialeval_plugin.core.resources import importing

from .errors import InputError, MissingPrerequisite, unknown_name
from .options import check_names, option_kinds
from .scorer import Scorer

ENTRY_POINT_GROUP = "dialeval_plugin.scorers"
ADVICE = "Type `dialeval scorers` for what each of them is and needs."

_factories: dict[str, Callable[..., Scorer]] = {}


def _source(factory: Callable[..., Scorer]) -> tuple[str, str]:
    """Return file and name of a factory; a file that runs as `__main__` and is imported too has two module names."""
    module = factory.__module__
    return getattr(sys.modules.get(module), "__file__", None) or module, factory.__qualname__


def register_scorer(name: str) -> Callable[[Callable[..., Scorer]], Callable[..., Scorer]]:
    """Register a scorer class or factory under `name` for this process; it takes precedence over a package's.

    An installed package declares an entry point in the group `dialeval_plugin.scorers` instead, imported on first use.

    Raises:
        InputError: another factory has the name.
    """

    def decorate(factory: Callable[..., Scorer]) -> Callable[..., Scorer]:
        known = _factories.get(name)
        if known is not None and _source(known) != _source(factory):
            one, other = (f"{each.__module__}:{each.__qualname__}" for each in (known, factory))
            raise InputError(f"scorer {name!r} is registered by {one} and by {other}. Rename one of them.")
        _factories[name] = factory
        return factory

    return decorate


def _last_change(folder: str) -> int | None:
    with suppress(OSError):
        return Path(folder).stat().st_mtime_ns
    return None


def _entry_points() -> dict[str, list[metadata.EntryPoint]]:
    """Return the declared scorers by name; a name has several if packages clash."""
    # Reading what every package declares takes ten milliseconds: again only where one was installed or removed.
    return _declared(tuple((folder, _last_change(folder)) for folder in sys.path))


@functools.lru_cache(maxsize=1)
def _declared(_folders: tuple[tuple[str, int | None], ...]) -> dict[str, list[metadata.EntryPoint]]:
    points: dict[str, dict[str, metadata.EntryPoint]] = {}
    for point in metadata.entry_points(group=ENTRY_POINT_GROUP):
        points.setdefault(point.name, {}).setdefault(point.value, point)
    return {name: list(declared.values()) for name, declared in points.items()}


def scorer_names() -> list[str]:
    """Return the names of all scorers that can be loaded, sorted."""
    return sorted({*_factories, *_entry_points()})


def declaration(name: str) -> metadata.EntryPoint | None:
    """Return the entry point of the scorer `name`; None if it is registered, unknown, or declared twice."""
    declared = [] if name in _factories else _entry_points().get(name, [])
    return declared[0] if len(declared) == 1 else None


def scorer_factory(name: str) -> Callable[..., Scorer]:
    """Return the class or function that makes the scorer `name`."""
    if name in _factories:
        return _factories[name]
    declared = _entry_points().get(name, [])
    if not declared:
        raise unknown_name(f"there is no scorer {name!r}", name, scorer_names(), ADVICE)
    point, *others = declared
    if others:
        both = f"{point.value} and by {others[0].value}"
        raise InputError(f"scorer {name!r} is declared by {both}. Uninstall one of the packages.")
    try:
        with importing(f"scorer {name!r}"):
            factory: Callable[..., Scorer] = point.load()
    except MissingPrerequisite:
        raise
    except Exception as error:
        raise MissingPrerequisite(
            f"scorer {name!r} ({point.value}) cannot be imported: {error}. Repair or uninstall the package that declares it."
        ) from error
    return factory


def load_scorer(name: str, **options: Any) -> Scorer:
    """Make the scorer `name` with its options.

    Raises:
        InputError: the name or an option is unknown, or an option is missing.
        MissingPrerequisite: something that the scorer needs is missing; the message says how to get it.
    """
    factory = scorer_factory(name)
    check_names(name, options, option_kinds(factory))
    try:
        inspect.signature(factory).bind(**options)
    except TypeError as error:
        raise InputError(f"{name}: {error}. Give it.") from None
    with importing(f"scorer {name!r}"):
        return factory(**options)
