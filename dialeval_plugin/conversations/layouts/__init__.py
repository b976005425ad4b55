"""Layouts of conversations: how each is recognised, and where its messages are. One record a layout; the first that fits is it.

A layout that leaves something open, as which of two answers is meant, is read only where the user names it (`--layout`).
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dialeval_plugin.conversations.messages import is_message
from dialeval_plugin.core.errors import InputError, unknown_name

from . import datasets, evals, exports, general, messengers, platforms, traces
from .layout import IDS, PYTHON_LIST, WHOLE, Layout, Logged, Value, at, id_of, listed, messages_of


def _wrapped(name: str) -> Callable[[Value], bool]:
    def recognises(value: Value) -> bool:
        inner = value.get(name)
        return isinstance(inner, list) and bool(inner) and isinstance(inner[0], Mapping) and not is_message(inner[0]) and (
            find(inner[0]) is not None
        )  # fmt: skip

    return recognises


def _unwrapped(name: str) -> Callable[[Value], Iterator[Logged]]:
    def read(value: Value) -> Iterator[Logged]:
        for inner in value[name]:
            layout = find(inner)
            if layout is None or layout.open_question or layout.message:
                raise InputError(
                    f"has something under {name!r} that is read no further. Write each conversation a row of its own."
                )
            yield from layout.read(inner)

    return read


LAYOUTS: list[Layout] = [
    *messengers.LAYOUTS,
    *exports.LAYOUTS,
    *platforms.LAYOUTS,
    *evals.LAYOUTS,
    *datasets.LAYOUTS,
    *traces.LAYOUTS,
    general.EXCHANGE,
    *(
        Layout(
            name=f"{name}-list",
            about=f"a list of conversations under {name!r}",
            recognises=_wrapped(name),
            read=_unwrapped(name),
        )
        for name in ("data", "conversations", "samples", "chats", "dialogues", "items", "rows", "results")
    ),
    general.MESSAGES,
    general.UTTERANCES,
    *datasets.LAST,
]


class _Watched(UserDict[str, Any]):
    """An object that remembers whether a value of it was read, beyond the names of its fields."""

    was_read = False

    def __getitem__(self, name: str) -> Any:
        value = self.data[name]
        self.was_read = True
        return value


_POSSIBLE: dict[tuple[object, ...], list[Layout]] = {}
"""Layouts that objects with fields of these names may have: the rows of a table are asked what they are once, not each."""


def _possible(value: Value, *, is_message: bool) -> list[Layout]:
    key = (is_message, *value)
    if (layouts := _POSSIBLE.get(key)) is None:
        if len(_POSSIBLE) > 1000:
            _POSSIBLE.clear()
        layouts = _POSSIBLE[key] = []
        for layout in LAYOUTS:
            watched = _Watched(value)
            if (layout.message or not is_message) and (layout.fits(watched) or watched.was_read):
                layouts.append(layout)
    return layouts


def find(value: Value, name: str | None = None, *, is_message: bool = False) -> Layout | None:
    """Return the layout of an object of a file, or the one that the user names; None where there is none.

    Args:
        value: the object.
        name: as the user gives it. Several layouts share one where a product writes files of several kinds.
        is_message: the object is one message, as far as its fields tell.

    Raises:
        InputError: there is no layout of that name.
    """
    if name is None:
        return next((layout for layout in _possible(value, is_message=is_message) if layout.fits(value)), None)
    named = [layout for layout in LAYOUTS if layout.name == name]
    if not named:
        raise unknown_name(f"layout: there is no {name!r}", name, list(dict.fromkeys(layout.name for layout in LAYOUTS)))
    return next((layout for layout in named if layout.fits(value)), named[0])


def nearest(value: Value) -> tuple[Layout, list[str]] | None:
    """Return the layout of which an object has most fields, and those that it lacks; None below half of them."""
    shares = [(sum(mark in value for mark in layout.marks) / len(layout.marks), layout) for layout in LAYOUTS if layout.marks]
    share, layout = max(shares, key=lambda one: one[0])
    return (layout, [mark for mark in layout.marks if mark not in value]) if 0.5 <= share < 1 else None


def text_layouts() -> dict[str, Layout]:
    """Return the layouts of files that are no JSON, by their names."""
    return {layout.name: layout for layout in LAYOUTS if layout.rows}


__all__ = [
    "IDS", "LAYOUTS", "PYTHON_LIST", "WHOLE", "Layout", "Logged", "Value", "at", "find", "id_of", "listed", "messages_of",
    "nearest",
]  # fmt: skip
