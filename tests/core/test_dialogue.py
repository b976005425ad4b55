"""FAULTS R02 (wrong types name the field and the index), R03 and R06 (strange texts are data): turns, examples, dialogues."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn, is_blank
from dialeval_plugin.core.errors import InputError


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
        ({"context": None}, "Example '7': context: expected a list of strings, got None (NoneType). Pass a list."),
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


def test_ratings_of_a_generator_are_read_once() -> None:
    # The check used it up, and no rating was left.
    assert Dialogue("d", (), ratings={"q": (value for value in (1, 2))}).ratings == {"q": (1, 2)}  # type: ignore[dict-item]


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


HI = Turn("Hi.")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda: Example("a", ["hi"], "yo"),  # type: ignore[arg-type]
            "Example 'a': context: expected a tuple of Turn objects, got ['hi'] (list). "
            "Make plain strings into an example with Example.from_texts.",
        ),
        (
            lambda: Example("a", [HI], HI),  # type: ignore[arg-type]
            "Example 'a': context: expected a tuple of Turn objects, got [Turn(text='Hi.', speaker=None)] (list). "
            "Make plain strings into an example with Example.from_texts.",
        ),
        (
            lambda: Example("a", (HI, "yo"), HI),  # type: ignore[arg-type]
            "Example 'a': context[1]: expected a Turn, got 'yo' (str). "
            "Make plain strings into an example with Example.from_texts.",
        ),
        (
            lambda: Example("a", (HI,), "yo"),  # type: ignore[arg-type]
            "Example 'a': response: expected a Turn, got 'yo' (str). "
            "Make plain strings into an example with Example.from_texts.",
        ),
        (
            lambda: Dialogue("d", "hi"),  # type: ignore[arg-type]
            "Dialogue 'd': turns: expected a tuple of Turn objects, got 'hi' (str). Pass Turn objects.",
        ),
        (
            lambda: Dialogue("d", (None,)),  # type: ignore[arg-type]
            "Dialogue 'd': turns[0]: expected a Turn, got None (NoneType). Pass Turn objects.",
        ),
        (
            lambda: Example("a", (), HI, references=["r"]),  # type: ignore[arg-type]
            "Example 'a': references: expected a tuple of strings, got ['r'] (list). Pass a tuple.",
        ),
        (
            lambda: Example("a", (), HI, references="r"),  # type: ignore[arg-type]
            "Example 'a': references: expected a tuple of strings, got 'r' (str). Pass a tuple.",
        ),
        (
            lambda: Example("a", (), HI, facts=("x", 1)),  # type: ignore[arg-type]
            "Example 'a': facts[1]: expected a string, got 1 (int). Pass text.",
        ),
        (
            lambda: Example("a", (), HI, facts=("\ud800",)),
            "Example 'a': facts[0]: the lone surrogate '\\ud800' at character 0 is not valid Unicode. "
            "Decode the source again, for example with errors='replace'.",
        ),
        (lambda: Example(7, (), HI), "Example: id: expected a string, got 7 (int). Pass text."),  # type: ignore[arg-type]
        (lambda: Example(math.nan, (), HI), "Example: id: expected a string, got nan (float). Pass text."),  # type: ignore[arg-type]
        (lambda: Dialogue(None, ()), "Dialogue: id: expected a string, got None (NoneType). Pass text."),  # type: ignore[arg-type]
        (lambda: Dialogue(True, ()), "Dialogue: id: expected a string, got True (bool). Pass text."),  # type: ignore[arg-type]
        (
            lambda: Example("x\ud800", (), HI),
            "Example: id: the lone surrogate '\\ud800' at character 1 is not valid Unicode. "
            "Decode the source again, for example with errors='replace'.",
        ),
        (
            lambda: Dialogue("\udfff", ()),
            "Dialogue: id: the lone surrogate '\\udfff' at character 0 is not valid Unicode. "
            "Decode the source again, for example with errors='replace'.",
        ),
        (
            lambda: Example("a", (), HI, system=3),  # type: ignore[arg-type]
            "Example 'a': system: expected a string, got 3 (int). Pass text.",
        ),
        (
            lambda: Dialogue("d", (), system="\ud800"),
            "Dialogue 'd': system: the lone surrogate '\\ud800' at character 0 is not valid Unicode. "
            "Decode the source again, for example with errors='replace'.",
        ),
        (
            lambda: Example("a", (), HI, ratings=[3]),  # type: ignore[arg-type]
            "Example 'a': ratings: expected a mapping of quality to the raters' numbers, got [3] (list). Pass a dictionary.",
        ),
        (
            lambda: Example("a", (), HI, ratings={"q": 3}),  # type: ignore[dict-item]
            "Example 'a': ratings of 'q': expected the raters' numbers, got 3 (int). Pass a tuple.",
        ),
        (
            lambda: Example("a", (), HI, ratings={"q": "34"}),  # type: ignore[dict-item]
            "Example 'a': rating 0 of 'q' is '3', not a finite number. Leave out what a rater did not answer.",
        ),
        (
            lambda: Example("a", (), HI, ratings={1: (3,)}),  # type: ignore[dict-item]
            "Example 'a': a quality: expected a string, got 1 (int). Pass text.",
        ),
        (
            lambda: Dialogue("d", (), ratings={"q": (10**400,)}),
            f"Dialogue 'd': rating 0 of 'q' is {10**400}, not a finite number. Leave out what a rater did not answer.",
        ),
    ],
)  # fmt: skip
def test_d14_an_item_checks_all_its_types_when_it_is_made(make: Callable[[], object], expected: str) -> None:
    """Issue 12, item 11, and FAULTS D14: a list was "unhashable" in the runner, an id failed when the scores were written."""
    assert message_of(make) == expected


def test_a_tuple_of_a_subclass_of_turn_is_taken() -> None:
    class Spoken(Turn):
        pass

    assert Example("a", (Spoken("Hi."),), Spoken("Yo.")).context[0].text == "Hi."


@pytest.mark.parametrize("id", [7, None, "x\ud800"])
def test_d14_from_texts_checks_the_id(id: object) -> None:
    assert message_of(lambda: Example.from_texts([], "Hi.", id=id)).startswith("Example: id: ")  # type: ignore[arg-type]
