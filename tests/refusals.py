"""Checks of whole refusals, and the pickle that has to be refused."""

from __future__ import annotations

import pickle  # noqa: TID251 - writes what has to be refused
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dialeval_plugin.core.errors import InputError


@contextmanager
def refused(message: str, error: type[Exception] = InputError) -> Iterator[None]:
    """The block raises this error with this message."""
    with pytest.raises(error) as caught:
        yield
    assert str(caught.value) == message


def refusal(call: Callable[..., object], *arguments: object, error: type[Exception] = InputError, **options: object) -> str:
    """The whole message with which a call with these arguments is refused."""
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    return str(caught.value)


class _Canary:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.trace,)


def write_pickle(path: Path, trace: Path) -> None:
    """Write a pickle that makes the file `trace` where somebody opens it."""
    path.write_bytes(pickle.dumps(_Canary(trace)))
