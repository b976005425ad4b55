"""FAULTS R02 (wrong types name the field and the index), R03 and R06 (strange texts are data): turns, examples, dialogues."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.dialogue import Dialogue, Example, Turn, is_blank
from dialeval_plugin.errors import InputError


def message_of(make: Callable[[], object]) -> str:
    with pytest.raises(InputError) as refused:
        make()
    return str(refused.value)


def test_an_example_from_texts_keeps_the_order_of_its_turns() -> None:
    example = Example.from_texts(["Hi.", "Hello."], "Bye.", id="x", references=("Later.",), facts=["I like tea."])

    assert example == Example("x", (Turn("Hi."), Turn("Hello.")), Turn("Bye."), ("Later.",), ("I like tea.",))
    assert (example.system, example.ratings) == (None, {})


@pytest.mark.parametrize(
    ("context", "response"), [([], "Hi."), ([""], ""), (["  "], "\t"), (["\x00"], "\u202e\u05d0"), (["a\u2028b"], "🙂")]
)
def test_empty_and_strange_texts_are_data(context: list[str], response: str) -> None:
    example = Example.from_texts(context, response)

    assert [turn.text for turn in example.context] == context
    assert example.response.text == response


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"context": "Hi."},
            "Example '7': context: expected a list of strings, got 'Hi.' (str). Wrap a single string in a list.",
        ),
        (
            {"context": None},
            "Example '7': context: expected a list of strings, got None (NoneType). Pass a list.",
        ),
        ({"context": ["Hi.", None]}, "Example '7': context[1]: expected a string, got None (NoneType). Pass text."),
        ({"context": ["Hi.", math.nan]}, "Example '7': context[1]: expected a string, got nan (float). Pass text."),
        ({"response": 5}, "Example '7': response: expected a string, got 5 (int). Pass text."),
        ({"response": ["Hi."]}, "Example '7': response: expected a string, got ['Hi.'] (list). Pass text."),
        ({"references": ["a", b"b"]}, "Example '7': references[1]: expected a string, got b'b' (bytes). Pass text."),
        (
            {"facts": "I like tea."},
            "Example '7': facts: expected a list of strings, got 'I like tea.' (str). Wrap a single string in a list.",
        ),
        (
            {"response": "ab\ud83dc"},
            "Example '7': response: the lone surrogate '\\ud83d' at character 2 is not valid Unicode. "
            "Decode the source again, for example with errors='replace'.",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_its_index(options: dict[str, object], expected: str) -> None:
    arguments: dict[str, object] = {"context": ["Hi."], "response": "Hello.", "id": "7", **options}

    assert message_of(lambda: Example.from_texts(**arguments)) == expected  # type: ignore[arg-type]


def test_a_turn_checks_text_and_speaker() -> None:
    assert message_of(lambda: Turn(None)) == "Turn.text: expected a string, got None (NoneType). Pass text."  # type: ignore[arg-type]
    assert message_of(lambda: Turn("Hi.", 1)) == "Turn.speaker: expected a string, got 1 (int). Pass text."  # type: ignore[arg-type]
    assert Turn("Hi.").speaker is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, "4", True])
def test_a_rating_that_is_no_finite_number_is_refused(value: object) -> None:
    end = f"rating 1 of 'overall' is {value!r}, not a finite number. Leave out what a rater did not answer."
    ratings = {"engaging": (1.0,), "overall": (3, value)}

    assert message_of(lambda: Example("7", (), Turn("Hi."), ratings=ratings)) == f"Example '7': {end}"  # type: ignore[arg-type]
    assert message_of(lambda: Dialogue("7", (), ratings=ratings)) == f"Dialogue '7': {end}"  # type: ignore[arg-type]


def test_ratings_become_tuples_and_may_be_empty() -> None:
    dialogue = Dialogue("d", (Turn("Hi."),), ratings={"overall": [3, 4.5], "coherent": []})  # type: ignore[dict-item]

    assert dialogue.ratings == {"overall": (3, 4.5), "coherent": ()}


def test_ratings_do_not_follow_the_dictionary_they_came_from() -> None:
    ratings = {"overall": (3.0,)}
    example = Example("7", (), Turn("Hi."), ratings=ratings)
    ratings["overall"] = (1.0,)

    assert example.ratings == {"overall": (3.0,)}


@pytest.mark.parametrize("item", [Turn("Hi."), Example("7", (), Turn("Hi.")), Dialogue("d", ())])
def test_what_was_checked_stays_as_it_is(item: Turn | Example | Dialogue) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(item, dataclasses.fields(item)[0].name, None)


@pytest.mark.parametrize("text", ["", " ", "\t\r\n", "\u00a0\u3000", "\x00\x1f", "\u200b\u200d\ufeff"])
def test_text_without_a_visible_character_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", " .\n", "🙂", "\u202eא", "\u0301"])
def test_text_with_a_visible_character_is_not_blank(text: str) -> None:
    assert not is_blank(text)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["", " ", "\n", "\u200b"]))
def test_surrounding_space_does_not_change_what_is_blank(text: str, space: str) -> None:
    assert is_blank(space + text + space) == is_blank(text)
