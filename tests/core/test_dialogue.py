"""FAULTS R02 (wrong types name the field and the index), R03 and R06 (strange texts are data): turns, examples, dialogues."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn, is_blank
from dialeval_plugin.core.errors import InputError
from tests.refusals import refused

HI = Turn("Hi.")
LONE = (
    "the lone surrogate {!r} at character {} is not valid Unicode. Decode the source again, for example with errors='replace'."
)
NOT_FINITE = "not a finite number. Leave out what a rater did not answer."
FROM_TEXTS = "Make plain strings into an example with Example.from_texts."


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
            {"context": [{"role": "user", "content": "hi"}]},
            "context[0]: expected a string, got the chat message {'role': 'user', 'content': 'hi'}. "
            "Pass its 'content' alone, or whole conversations to dialeval_plugin.examples_from.",
        ),
        ({"context": "Hi."}, "context: expected a list of strings, got 'Hi.' (str). Wrap a single string in a list."),
        ({"context": None}, "context: expected a list of strings, got None (NoneType). Pass a list."),
        ({"context": ["Hi.", None]}, "context[1]: expected a string, got None (NoneType). Pass text."),
        ({"context": ["Hi.", math.nan]}, "context[1]: expected a string, got nan (float). Pass text."),
        ({"response": 5}, "response: expected a string, got 5 (int). Pass text."),
        ({"response": ["Hi."]}, "response: expected a string, got ['Hi.'] (list). Pass text."),
        ({"references": ["a", b"b"]}, "references[1]: expected a string, got b'b' (bytes). Pass text."),
        ({"facts": "Tea."}, "facts: expected a list of strings, got 'Tea.' (str). Wrap a single string in a list."),
        ({"response": "ab\ud83dc"}, "response: " + LONE.format("\ud83d", 2)),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_its_index(options: dict[str, Any], expected: str) -> None:
    with refused(f"Example '7': {expected}"):
        Example.from_texts(**{"context": ["Hi."], "response": "Hello.", "id": "7", **options})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, "4", True])
def test_a_rating_that_is_no_finite_number_is_refused(value: object) -> None:
    end = f"rating 1 of 'overall' is {value!r}, {NOT_FINITE}"
    ratings = {"engaging": (1.0,), "overall": (3, value)}
    with refused(f"Example '7': {end}"):
        Example("7", (), HI, ratings=ratings)  # type: ignore[arg-type]
    with refused(f"Dialogue '7': {end}"):
        Dialogue("7", (), ratings=ratings)  # type: ignore[arg-type]


def test_ratings_become_tuples_may_be_empty_and_are_read_once() -> None:
    once = (value for value in (1, 2))  # the check used it up, and no rating was left
    dialogue = Dialogue("d", (HI,), ratings={"overall": [3, 4.5], "coherent": [], "q": once})  # type: ignore[dict-item]
    assert dialogue.ratings == {"overall": (3, 4.5), "coherent": (), "q": (1, 2)}


def test_ratings_do_not_follow_the_dictionary_they_came_from() -> None:
    ratings = {"overall": (3.0,)}
    example = Example("7", (), Turn("Hi."), ratings=ratings)
    ratings["overall"] = (1.0,)
    assert example.ratings == {"overall": (3.0,)}


@pytest.mark.parametrize("item", [Turn("Hi."), Example("7", (), Turn("Hi.")), Dialogue("d", ())])
def test_what_was_checked_stays_as_it_is(item: Turn | Example | Dialogue) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(item, dataclasses.fields(item)[0].name, None)


BLANK = ["", " ", "\t\r\n", "\u00a0\u3000", "\x00\x1f", "\u200b\u200d\ufeff"]


@pytest.mark.parametrize("text", [*BLANK, "a", " .\n", "🙂", "\u202eא", "\u0301"])
def test_text_without_a_visible_character_is_blank(text: str) -> None:
    assert is_blank(text) == (text in BLANK)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["", " ", "\n", "\u200b"]))
def test_surrounding_space_does_not_change_what_is_blank(text: str, space: str) -> None:
    assert is_blank(space + text + space) == is_blank(text)


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        (Example, {"context": ["hi"], "response": "yo"},
         f"Example 'a': context: expected a tuple of Turn objects, got ['hi'] (list). {FROM_TEXTS}"),
        (Example, {"context": [HI]},
         f"Example 'a': context: expected a tuple of Turn objects, got [{HI}] (list). {FROM_TEXTS}"),
        (Example, {"context": (HI, "yo")}, f"Example 'a': context[1]: expected a Turn, got 'yo' (str). {FROM_TEXTS}"),
        (Example, {"response": "yo"}, f"Example 'a': response: expected a Turn, got 'yo' (str). {FROM_TEXTS}"),
        (Dialogue, {"turns": "hi"},
         "Dialogue 'a': turns: expected a tuple of Turn objects, got 'hi' (str). Pass Turn objects."),
        (Dialogue, {"turns": (None,)}, "Dialogue 'a': turns[0]: expected a Turn, got None (NoneType). Pass Turn objects."),
        (Example, {"references": ["r"]},
         "Example 'a': references: expected a tuple of strings, got ['r'] (list). Pass a tuple."),
        (Example, {"references": "r"}, "Example 'a': references: expected a tuple of strings, got 'r' (str). Pass a tuple."),
        (Example, {"facts": ("x", 1)}, "Example 'a': facts[1]: expected a string, got 1 (int). Pass text."),
        (Example, {"facts": ("\ud800",)}, "Example 'a': facts[0]: " + LONE.format("\ud800", 0)),
        (Example, {"id": 7}, "Example: id: expected a string, got 7 (int). Pass text."),
        (Example, {"id": math.nan}, "Example: id: expected a string, got nan (float). Pass text."),
        (Dialogue, {"id": None}, "Dialogue: id: expected a string, got None (NoneType). Pass text."),
        (Dialogue, {"id": True}, "Dialogue: id: expected a string, got True (bool). Pass text."),
        (Example, {"id": "x\ud800"}, "Example: id: " + LONE.format("\ud800", 1)),
        (Dialogue, {"id": "\udfff"}, "Dialogue: id: " + LONE.format("\udfff", 0)),
        (Example, {"system": 3}, "Example 'a': system: expected a string, got 3 (int). Pass text."),
        (Dialogue, {"system": "\ud800"}, "Dialogue 'a': system: " + LONE.format("\ud800", 0)),
        (Example, {"ratings": [3]},
         "Example 'a': ratings: expected a mapping of quality to the raters' numbers, got [3] (list). Pass a dictionary."),
        (Example, {"ratings": {"q": 3}},
         "Example 'a': ratings of 'q': expected the raters' numbers, got 3 (int). Pass a tuple."),
        (Example, {"ratings": {"q": "34"}}, f"Example 'a': rating 0 of 'q' is '3', {NOT_FINITE}"),
        (Example, {"ratings": {1: (3,)}}, "Example 'a': a quality: expected a string, got 1 (int). Pass text."),
        (Dialogue, {"ratings": {"q": (10**400,)}}, f"Dialogue 'a': rating 0 of 'q' is {10**400}, {NOT_FINITE}"),
        (Turn, {"text": None}, "Turn.text: expected a string, got None (NoneType). Pass text."),
        (Turn, {"text": "Hi.", "speaker": 1}, "Turn.speaker: expected a string, got 1 (int). Pass text."),
    ],
)  # fmt: skip
def test_d14_an_item_checks_all_its_types_when_it_is_made(kind: type[Any], fields: dict[str, Any], expected: str) -> None:
    """Issue 12, item 11, and FAULTS D14: a list was "unhashable" in the runner, an id failed when the scores were written."""
    right = {Example: {"id": "a", "context": (), "response": HI}, Dialogue: {"id": "a", "turns": ()}, Turn: {}}[kind]
    with refused(expected):
        kind(**{**right, **fields})


def test_a_tuple_of_a_subclass_of_turn_is_taken() -> None:
    class Spoken(Turn):
        pass

    assert Example("a", (Spoken("Hi."),), Spoken("Yo.")).context[0].text == "Hi."


@pytest.mark.parametrize("id", [7, None, "x\ud800"])
def test_d14_from_texts_checks_the_id(id: object) -> None:
    with pytest.raises(InputError, match=r"^Example: id: "):
        Example.from_texts([], "Hi.", id=id)  # type: ignore[arg-type]
