"""The prompts that ask for FED's qualities: the paper's printed one to the letter, and wording and scale of each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.corpora.readers import fed
from dialeval_plugin.methods.judging.rating_prompts import RatingPrompt, rating_prompt, rating_prompts
from tests.refusals import refusal

PRINTED = """\
Task: Given a dialog history and a response, rate how interesting the response is with regards to the dialog history.
== Example 1 ==
A: Hi!
B: Hi. This is a pleasant surprise.
A: Haha...thanks! how did you like the gift?
Response: Currently unpacking it I guess. How’s your morning?
Rating: 1/2
A: Hope you like it! Morning is good. Busy finishing up stuff before the holidays.
B: I think I traveled too much the last couple of months so no holiday for me. But I’m okay with that. Going anywhere exciting?
A: Yes
Response: Where to?
Rating: 1/2
A: Hawaii... looking forward to warm beaches.
Response: WOW. Which island? I like Hawaii.
Rating: 2/2

"""
"""Table 8 of the paper, and the line break that ends an example."""

# Top of the scale, wording and hash of each quality: a change of wording changes ratings, so raise VERSION with it.
TURN = {
    "interesting": (2, "rate how interesting the response is with", "9ed224c3a87204e9"),
    "engaging": (2, "rate how engaging the response is with", "ac78923300fe6bb2"),
    "specific": (2, "rate how specific the response is with", "afe8b26f75967793"),
    "relevant": (2, "rate how relevant the response is with", "538430cdaefa1d58"),
    "correct": (2, "rate how correct the response is with", "3281d08ae8b04541"),
    "semantically_appropriate": (2, "rate how semantically appropriate the response is with", "77f7a9eafbe0b1f4"),
    "understandable": (1, "rate how understandable the response is with", "f73a961d0221940d"),
    "fluent": (2, "rate how fluent the response is with", "b7bf626d5a01200d"),
    "overall": (4, "rate how good the response is overall with", "0ba88b83e74e3b69"),
}
DIALOGUE = {
    "coherent": (2, "rate how coherent B is throughout the dialog.", "d2738581e33c0965"),
    "error_recovery": (2, "rate how well B recovers from the errors that B makes.", "dd6fbffd97c19a5b"),
    "consistent": (1, "rate how consistent B is in the information that B provides.", "c36c4f3f7ea368fd"),
    "diverse": (2, "rate how diverse the responses of B are.", "d39f5d6f42bb2063"),
    "depth": (2, "rate how deeply B discusses the topics of the dialog.", "80dbd3e877daf20f"),
    "likeable": (2, "rate how likeable the personality of B is.", "4fc5d84467e84346"),
    "understanding": (2, "rate how well B understands A.", "9ec34094c00f2e67"),
    "flexible": (2, "rate how flexible B is and how well B adapts to A and the interests of A.", "64c08ab161721eb0"),
    "informative": (2, "rate how informative B is throughout the dialog.", "477b7e4af3644c46"),
    "inquisitive": (2, "rate how inquisitive B is throughout the dialog.", "09b0057dffb91101"),
    "overall": (4, "rate how good the dialog is overall.", "3f14732ee5c7f5c5"),
}


def turns(*texts: str) -> tuple[Turn, ...]:
    return tuple(Turn(text, ("User", "System")[place % 2]) for place, text in enumerate(texts))


def rated(number: int, *texts: str, quality: str = "Interesting", values: tuple[float, ...] = (1.0,)) -> Example:
    *context, response = turns(*texts)
    return Example(str(number), tuple(context), response, ratings={quality: values})


def test_the_printed_prompt_to_the_letter() -> None:
    """Ratings as in the published file: means 1.0, 0.8 and 1.8."""
    tags = ("A: ", "B: ", "Response: ")
    said = [line.partition(": ")[2] for line in PRINTED.splitlines() if line.startswith(tags)]
    thread = [
        rated(n, *said[:n], values=values) for n, values in ((4, (1, 2, 0, 1, 1)), (8, (1, 2, 0, 1, 0)), (10, (1, 2, 2, 2, 2)))
    ]
    assert rating_prompt("interesting").prefix([thread]) == PRINTED


@pytest.mark.real_data
def test_the_printed_prompt_comes_out_of_the_published_file(data_dir: Path) -> None:
    dialogue = fed.read(data_dir / "fed" / fed.FILE)[6]
    assert rating_prompt("interesting").prefix([dialogue.responses]) == PRINTED.replace("’", "'")


@pytest.mark.parametrize(("level", "expected"), [("turn", TURN), ("dialogue", DIALOGUE)])
def test_each_quality_has_its_wording_its_scale_and_its_hash(level: str, expected: dict[str, tuple[int, str, str]]) -> None:
    prompts = rating_prompts(level)  # type: ignore[arg-type]
    assert list(prompts) == list(expected)
    assert [prompt.published for prompt in prompts.values()] == list(fed.HIGHEST[level])  # type: ignore[index]
    opening = {"turn": "Task: Given a dialog history and a response, ", "dialogue": "Task: Given a dialog history, "}[level]
    for quality, (highest, asked, hash) in expected.items():
        prompt = prompts[quality]
        ending = asked if level == "dialogue" else f"{asked} regards to the dialog history."
        assert prompt.instruction == f"{opening}{ending}\n"
        assert prompt.highest == highest == fed.HIGHEST[prompt.level][prompt.published]
        assert prompt.forms == tuple(f"{space}{rating}" for space in (" ", "") for rating in range(highest + 1))
        assert (prompt.level, prompt.id) == (level, f"rating-{quality}-v1-{hash}")


def test_the_item_in_question_ends_with_the_label() -> None:
    example = rated(0, "Hi!", "Hello.", "Yes", "Where to?")
    assert rating_prompt("fluent").question(example) == "A: Hi!\nB: Hello.\nA: Yes\nResponse: Where to?\nRating:"
    whole = Dialogue("0", turns("Hi!", "Hello.", "Bye"))
    assert rating_prompt("coherent").question(whole) == "A: Hi!\nB: Hello.\nA: Bye\nRating:"


def test_examples_are_numbered_and_stand_before_the_question() -> None:
    example = rated(0, "Hi!", "Hello.")
    text = rating_prompt("interesting").render(example, [[rated(1, "One", "Two")], [rated(2, "Three", "Four", values=(2.0,))]])
    assert text.partition("\n")[2] == (
        "== Example 1 ==\nA: One\nResponse: Two\nRating: 1/2\n\n"
        "== Example 2 ==\nA: Three\nResponse: Four\nRating: 2/2\n\n"
        "A: Hi!\nResponse: Hello.\nRating:"
    )
    whole = Dialogue("0", turns("One", "Two", "Three"), ratings={"Consistent": (1.0, 0.0, 0.0)})
    assert rating_prompt("consistent").example([whole], 1) == "== Example 1 ==\nA: One\nB: Two\nA: Three\nRating: 0/1"


def test_a_response_whose_context_is_another_is_shown_with_its_whole_context() -> None:
    """As in the published dialogue fed_052, where a later context spells one turn in another way."""
    thread = [rated(0, "Hi!", "Hello."), rated(1, "Hi!", "Hullo.", "And?", "Well.")]
    assert rating_prompt("interesting").example(thread, 1) == (
        "== Example 1 ==\nA: Hi!\nResponse: Hello.\nRating: 1/2\nA: Hi!\nB: Hullo.\nA: And?\nResponse: Well.\nRating: 1/2"
    )


@pytest.mark.parametrize(
    ("mean", "shown"), [(0.0, "0/2"), (0.49, "0/2"), (0.5, "1/2"), (1.49, "1/2"), (1.5, "2/2"), (2.0, "2/2")]
)
def test_the_shown_rating_is_the_nearest_whole_number(mean: float, shown: str) -> None:
    assert rating_prompt("interesting").answer(mean) == shown


@pytest.mark.parametrize(
    ("speakers", "letters"),
    [
        (("human", "model", "human"), "ABA"),
        (("model", "human", "model"), "BAB"),
        (("ann", "bob", "ann"), "ABA"),
        (("user", "ann", "bob"), "ABC"),
        (("human", "human"), "AB"),
        (("ann",), "A"),
        ((None, None, None), "ABA"),
        (("human", None), "AB"),
    ],
)
def test_in_a_dialogue_b_is_the_chatbot(speakers: tuple[str | None, ...], letters: str) -> None:
    whole = Dialogue("0", tuple(Turn("x", speaker) for speaker in speakers))
    assert [line[0] for line in rating_prompt("coherent").question(whole).splitlines()[:-1]] == list(letters)


@pytest.mark.parametrize(
    ("speakers", "response", "letters"),
    [
        (("User", "System", "User"), "System", "ABA"),
        (("System", "User"), "System", "BA"),
        (("User", "System"), "System", "AB"),
        ((None, None), None, "BA"),
        ((None, None, None), None, "ABA"),
        (("ann", "bob", "cleo"), "cleo", "ACB"),
        ((), None, ""),
    ],
)
def test_before_a_response_b_is_the_one_who_gives_it(
    speakers: tuple[str | None, ...], response: str | None, letters: str
) -> None:
    example = Example("0", tuple(Turn("x", speaker) for speaker in speakers), Turn("y", response))
    assert [line[0] for line in rating_prompt("overall").question(example).splitlines()[:-2]] == list(letters)


def test_thirty_speakers_keep_a_letter_each() -> None:
    example = Example("0", tuple(Turn("x", f"speaker {number}") for number in range(30)), Turn("y", "bot"))
    letters = [line.partition(":")[0] for line in rating_prompt("overall").question(example).splitlines()[:-2]]
    assert letters == ["A", *"CDEFGHIJKLMNOPQRSTUVWXYZ", *"ZZZZZ"]


def test_an_example_that_nobody_rated_is_refused() -> None:
    for example in (rated(0, "Hi!", "Hello."), rated(0, "Hi!", "Hello.", quality="Fluent", values=())):
        message = refusal(rating_prompt("fluent").example, [example], 1)
        assert message == "example '0': nobody rated 'Fluent'. Leave the item out of the examples."


def test_an_unknown_quality_lists_those_of_the_level() -> None:
    turn, dialogue = ", ".join(TURN), ", ".join(DIALOGUE)
    assert refusal(rating_prompt, "charming") == (
        f"quality: there is no rating prompt for 'charming'. Known are at turn level {turn}; at dialogue level {dialogue}."
    )
    assert refusal(rating_prompt, "coherent", "turn") == (
        f"quality: there is no rating prompt for 'coherent'. Known are at turn level {turn}."
    )
    assert (rating_prompt("overall").level, rating_prompt("overall", "dialogue").level) == ("turn", "dialogue")


def test_any_change_of_wording_shows_in_the_hash() -> None:
    prompt = rating_prompt("interesting")
    others = (
        RatingPrompt("interesting", "turn", "Interesting", "how  interesting the response is"),
        RatingPrompt("interesting", "turn", "Interesting", "how interesting the response is", highest=3),
        RatingPrompt("interesting", "dialogue", "Interesting", "how interesting the response is"),
    )
    assert len({prompt.hash, *(other.hash for other in others)}) == 4
