"""Errors by their whole messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dialeval_plugin.core.errors import InputError


@contextmanager
def refused_as(message: str, kind: type[BaseException] = InputError) -> Iterator[None]:
    """Hold the block to raise an error of this kind with exactly this message."""
    with pytest.raises(kind) as refused:
        yield
    assert str(refused.value) == message
