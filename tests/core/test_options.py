"""One check of every scorer's options: names, types, ranges, from Python and from a command line."""

from __future__ import annotations

import inspect
import math
import re
from collections import UserDict, UserList
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import pytest
from annotated_types import Gt, Interval

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import (
    Positive,
    Share,
    check_choice,
    check_fields,
    check_value,
    checked_init,
    from_text,
    make_options,
    option_kinds,
    pairs_from_text,
    with_options,
)

Smooth = Literal["exp", "add-k"]


@dataclass(frozen=True)
class Settings:
    """One field a kind of annotation."""

    model: str | None = None
    _: KW_ONLY
    smooth: Smooth = "exp"
    order: Annotated[int, Interval(ge=1, le=4)] = 4
    scale: Annotated[float, Gt(0)] = 1.0
    share: Share | None = None
    batch_size: Positive = 8
    clip: bool = False
    conditions: int | Literal["all"] = "all"
    criteria: str | Sequence[str] = ()
    models: Mapping[str, str] | None = None
    other: Callable[[], None] | None = None


class Small:
    name = "small"

    @checked_init
    def __init__(self, n: Positive, *, smooth: Smooth = "exp") -> None:
        self.n, self.smooth = n, smooth


class Large:
    name = "large"

    @with_options(Settings)
    def __init__(self, options: Settings) -> None:
        self.options = options


def test_options_reach_their_scorer() -> None:
    assert Large("folder", order=2, conditions=3).options == Settings("folder", order=2, conditions=3)
    small = Small(3, smooth="add-k")
    assert (small.n, small.smooth) == (3, "add-k")
    assert list(inspect.signature(Large).parameters)[:3] == ["model", "smooth", "order"]


@pytest.mark.parametrize(
    "right",
    [{"scale": 1}, {"share": 0}, {"share": 1.0}, {"share": None}, {"criteria": ["a"]},
     {"criteria": "a,b"}, {"models": {"a": "b"}},
     {"other": print}, {"smooth": np.str_("exp")}, {"conditions": 10**400}, {"conditions": "all"}],
)  # fmt: skip
def test_right_values_are_taken_as_they_are(right: dict[str, Any]) -> None:
    assert make_options(Settings, "large", **right) == Settings(**right)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"smoth": "exp"}, "there is no option 'smoth'. Did you mean 'smooth'? Known are: model, smooth, order, scale, share, "
         "batch_size, clip, conditions, criteria, models, other."),
        ({"smooth": "laplace"}, "smooth is 'laplace'. Give one of exp, add-k."),
        ({"order": 5}, "order is 5. Give a whole number from 1 to 4."),
        ({"order": 2.0}, "order is 2.0. Give a whole number from 1 to 4."),
        ({"order": True}, "order is True. Give a whole number from 1 to 4."),
        ({"scale": 0}, "scale is 0. Give a number above 0."),
        ({"scale": math.nan}, "scale is nan. Give a number above 0."),
        ({"scale": "1"}, "scale is '1'. Give a number above 0."),
        ({"share": 1.5}, "share is 1.5. Give a number from 0 to 1."),
        ({"batch_size": 0}, "batch_size is 0. Give a whole number from 1."),
        ({"clip": "no"}, "clip is 'no'. Give true or false."),
        ({"clip": 1}, "clip is 1. Give true or false."),
        ({"conditions": "none"}, "conditions is 'none'. Give a whole number or 'all'."),
        ({"model": 7}, "model is 7. Give a text."),
        ({"criteria": 7}, "criteria is 7. Give a text or Sequence."),
        ({"models": "a"}, "models is 'a'. Give Mapping."),
    ],
)  # fmt: skip
def test_wrong_options_are_named_with_what_is_expected(wrong: dict[str, Any], message: str) -> None:
    for make in (Large, lambda **values: make_options(Settings, "large", **values)):
        with pytest.raises(InputError, match=f"^large: {re.escape(message)}$"):
            make(**wrong)


def test_a_missing_option_is_named() -> None:
    with pytest.raises(InputError, match=r"^small: missing a required argument: 'n'\. Give it\.$"):
        Small()  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"^small: n is 0\. Give a whole number from 1\.$"):
        Small(0)


def test_an_error_from_inside_is_no_wrong_option() -> None:
    class Broken(Small):
        @checked_init
        def __init__(self, n: int = 1) -> None:
            raise TypeError("an unexpected keyword argument of another library")

    with pytest.raises(TypeError, match=r"^an unexpected keyword"):
        Broken()


def test_a_dataclass_checks_itself() -> None:
    @dataclass(frozen=True)
    class TrainingSettings:
        epochs: Positive = 1

        def __post_init__(self) -> None:
            check_fields(self, "train")

    assert TrainingSettings(2).epochs == 2
    with pytest.raises(InputError, match=r"^train: epochs is 0\. Give a whole number from 1\.$"):
        TrainingSettings(0)


@dataclass(frozen=True)
class Recipe:
    epochs: int = 1


class HasRows(Protocol):
    rows: int


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (Recipe, Recipe(2), {"epochs": 2}),
        (Recipe | None, None, {"epochs": 2}),
        (Sequence[Recipe], [Recipe()], [{"epochs": 2}]),
        (Sequence[str], ("a",), "a"),
        (Small, Small(1), Large()),
    ],
)
def test_an_option_may_be_an_object(kind: Any, right: object, wrong: object) -> None:
    check_value("train", "x", right, kind)
    with pytest.raises(InputError, match=f"^{re.escape(f'train: x is {wrong!r}. Give ')}"):
        check_value("train", "x", wrong, kind)


@pytest.mark.parametrize(
    ("kind", "right"),
    [
        (Mapping[str, str], MappingProxyType({"a": "b"})),
        (Mapping[str, str] | None, UserDict(a="b")),
        (str | Sequence[str], UserList(["a"])),
        (Sequence[int], range(3)),
    ],
)
def test_any_mapping_and_any_sequence_may_be_given(kind: Any, right: object) -> None:
    check_value("train", "x", right, kind)
    with pytest.raises(InputError, match=r"^train: x is .* Give "):
        check_value("train", "x", {"a": 7} if isinstance(right, Mapping) else UserList([None]), kind)


def test_what_a_protocol_asks_for_is_not_looked_at() -> None:
    check_value("train", "x", object(), HasRows)
    check_value("train", "x", 1, HasRows | None)


def test_choices_that_only_a_run_knows() -> None:
    check_choice("judge", "prompt", "a", ["a", "b"])
    with pytest.raises(InputError, match=r"^judge: prompt is 'c'\. Give one of a, b\.$"):
        check_choice("judge", "prompt", "c", ["a", "b"])


def test_kinds_of_options() -> None:
    assert option_kinds(Small) == {"n": Positive, "smooth": Smooth}
    assert option_kinds(Large) == option_kinds(Settings)
    assert option_kinds(lambda scale, **other: scale) is None
    assert option_kinds(lambda scale: scale) == {"scale": Any}


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("4", int, 4), ("4", float, 4.0), ("4", str, "4"), ("4", Any, 4), ("4e1", Any, 40.0), ("4", str | int, 4),
        ("all", int | str, "all"), ("-0.5", Any, -0.5), ("False", Any, False), ("none", Any, None), ("", Any, ""),
        ("a=b", Any, "a=b"), ("3 apples", Any, "3 apples"),
        ("true", bool, True), ("False", bool, False), ("true", str, "true"), ("True", Any, True),
        ("none", int | None, None), ("None", str | None, None), ("none", str, "none"),
        ("none", Literal["none", "all"] | None, "none"),
        ("3", Literal[3, 4], 3), ("x", Annotated[int, Gt(0)], "x"), ("2", Annotated[int, Gt(0)] | None, 2),
        ("a,b", Sequence[str], "a,b"),
    ],
)  # fmt: skip
def test_text_is_read_by_the_annotation(text: str, kind: Any, value: object) -> None:
    read = from_text(text, kind)
    assert (read, type(read)) == (value, type(value))


def test_pairs_of_a_command_line() -> None:
    pairs = ["model=7", "order=7", "own=7", "smooth=a=b"]
    assert pairs_from_text(pairs, "--option", option_kinds(Large)) == {"model": "7", "order": 7, "own": 7, "smooth": "a=b"}
    assert pairs_from_text(["n=7"], "--option", None) == {"n": 7}
    with pytest.raises(InputError, match=r"^--option 'fast': expected name=value\.$"):
        pairs_from_text(["fast"], "--option", {})
    with pytest.raises(InputError, match=r"^--option n: is given twice\. Leave one of them out\.$"):
        pairs_from_text(["n=7", "n=8"], "--option", None)
