"""What a refusal says, pinned whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dialeval_plugin.core.errors import InputError


@contextmanager
def refused(message: str, error: type[Exception] = InputError) -> Iterator[None]:
    """The block raises this error with this message."""
    with pytest.raises(error) as caught:
        yield
    assert str(caught.value) == message
