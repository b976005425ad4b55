"""Checks what was read from a file against the shape that it should have, a type: the message names the place and the field."""

from __future__ import annotations

from typing import Any, TypeVar

from .errors import InputError
from .files import to_json

T = TypeVar("T")


def checked(value: Any, shape: type[T], where: str, *, advice: str) -> T:
    """Return `value`, as `parse_json` gives it, as an object of type `shape`.

    Numbers and strings are not taken for each other, and true and false are no numbers. Whether a field may be missing, or
    further fields be there, is for the shape to say.

    Args:
        value: of a JSON text.
        shape: a type that pydantic knows; of a TypedDict, that of `typing_extensions`.
        where: begins the message, which names the first field that is wrong.
        advice: ends it.

    Example:
        >>> checked({"a": 1}, dict[str, float], "x.json", advice="Copy it again.")
        {'a': 1.0}
        >>> checked({"a": "1"}, dict[str, float], "x.json", advice="Copy it again.")
        Traceback (most recent call last):
        ...
        dialeval_plugin.core.errors.InputError: x.json: a: input should be a valid number. Copy it again.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        # As JSON: a list is then a tuple where the shape has one, and an object a dataclass, strictly as it is elsewhere.
        return TypeAdapter(shape).validate_json(to_json(value), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        problem = first["msg"][:1].lower() + first["msg"][1:]
        raise InputError(f"{where}: {field + ': ' if field else ''}{problem}. {advice}") from None
