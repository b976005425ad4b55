"""Values that were read are of the shape that they should have, or the message says where they are not."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dialeval_plugin.core.files import checked
from tests.refusals import refused


@dataclass(frozen=True, slots=True)
class _Point:
    name: str
    place: tuple[float, ...]


def test_an_object_becomes_a_dataclass_and_a_list_a_tuple() -> None:
    assert checked({"name": "a", "place": [1, 2.5]}, _Point, "x.json", advice="") == _Point("a", (1.0, 2.5))


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"name": "a", "place": [1, "2"]}, "place.1: input should be a valid number"),
        ({"name": "a", "place": [True]}, "place.0: input should be a valid number"),
        ({"name": 1, "place": []}, "name: input should be a valid string"),
        ({"place": []}, "name: field required"),
        ([], "input should be an object"),
        (None, "input should be an object"),
    ],
)
def test_the_first_field_that_is_wrong_is_named(value: object, problem: str) -> None:
    with refused(f"x.json: {problem}. Copy it again."):
        checked(value, _Point, "x.json", advice="Copy it again.")
