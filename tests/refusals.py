"""What a refusal says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dialeval_plugin.core.errors import InputError


def refusal(call: Callable[..., object], *arguments: object, error: type[Exception] = InputError, **options: object) -> str:
    """The whole message with which a call with these arguments is refused."""
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    return str(caught.value)
