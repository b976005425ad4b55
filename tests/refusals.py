"""What a refusal says, pinned whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
