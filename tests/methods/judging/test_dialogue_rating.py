"""`dialogue_rating`: ratings against the transcription, several qualities, examples, every row accounted for, and its prompts.

The paper's printed prompt is held to the letter, wording and scale of each other one too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.scores import BLANK_RESPONSE, Reason, Unscored
from dialeval_plugin.corpora.readers import fed
from dialeval_plugin.methods.judging.dialogue_rating import (
    DialogueRatingScorer,
    RatingPrompt,
    rating_prompt,
    rating_prompts,
)
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel
from tests.refusals import refusal

Rule = Callable[[str, str], float | Unscored]


def model(rule: Rule) -> ScriptedLanguageModel:
    return ScriptedLanguageModel(lambda prompt: "", rule)


def shares(*probabilities: float) -> Rule:
    """Each rating its probability, shared equally by its two forms."""
    return lambda _, form: math.log(probabilities[int(form)] / 2) if probabilities[int(form)] else -math.inf


def example(response: str = "Where to?", id: str = "0") -> Example:
    return Example.from_texts(["Hi!", "Hello.", "I am off to Hawaii."], response, id=id)


WHOLE = Dialogue("0", (Turn("Hi!"), Turn("Hello."), Turn("Bye")))


def test_the_score_is_the_weighted_rating_on_the_scale_of_the_quality() -> None:
    asked = model(shares(0.2, 0.3, 0.5))
    scorer = DialogueRatingScorer(asked, "interesting")
    scores = scorer.score([example()])
    assert (scores.main, scores.values) == ("interesting", (pytest.approx(1.3),))
    assert (scorer.level, scorer.range, scorer.orientation) == ("turn", (0.0, 2.0), "higher")
    prompt = rating_prompt("interesting").render(example())
    assert asked.asked == [prompt + form for form in (" 0", " 1", " 2", "0", "1", "2")]


def test_k_drops_the_least_likely_ratings_of_a_wide_scale() -> None:
    rule = shares(0.1, 0.1, 0.2, 0.2, 0.4)
    ratings = [DialogueRatingScorer(model(rule), "overall", k=k).score([example()]).values[0] for k in (3, 5, 1)]
    assert ratings == [pytest.approx(2.6 / 0.8), pytest.approx(2.7), 4.0]


def test_the_literal_reading_weights_the_least_likely_rating_most() -> None:
    scores = DialogueRatingScorer(model(shares(0.9, 0.1)), "understandable", literal_log=True).score([example()])
    assert scores.values == (pytest.approx(math.log(0.1) / (math.log(0.9) + math.log(0.1))),)


def test_several_qualities_are_columns_and_are_asked_in_one_call() -> None:
    def by_quality(prompt: str, form: str) -> float:
        favoured = 2 if "how interesting" in prompt else 0
        return math.log(0.45 if int(form) == favoured else 0.025)

    asked = model(by_quality)
    scores = DialogueRatingScorer(asked, "interesting, fluent,understandable").score([example(), example("Why?", "1")])
    assert list(scores.columns) == ["interesting", "fluent", "understandable"]
    assert scores.columns["interesting"] == pytest.approx((1.85, 1.85))
    assert scores.columns["fluent"] == pytest.approx((0.15, 0.15))
    assert asked.batches == [2 * (6 + 6 + 4)]


def test_a_whole_dialogue_is_rated_at_dialogue_level() -> None:
    scorer = DialogueRatingScorer(model(shares(0, 0, 1)), ["coherent", "overall"])
    assert scorer.level == "dialogue"
    assert [prompt.id for prompt in scorer.prompts] == [rating_prompt(name, "dialogue").id for name in ("coherent", "overall")]
    assert refusal(scorer.score, [example()]) == (
        "dialogue_rating: item 0 is a response, but this scorer works at dialogue level. Pass Dialogue objects, or set its "
        "option, as by --option level=turn."
    )
    overall = DialogueRatingScorer(model(shares(0, 0, 1, 0, 0)), "overall", level="dialogue")
    assert overall.score([WHOLE]).values == (2.0,)


def test_examples_stand_in_every_prompt_and_in_the_signature() -> None:
    shown = Example("7", (Turn("Hi!"),), Turn("Hello."), ratings={"Interesting": (2.0,)})
    asked = model(shares(0.2, 0.3, 0.5))
    scorer = DialogueRatingScorer(asked, "interesting", examples=[[shown]])
    signature = scorer.score([example()]).signature
    assert asked.asked[0] == rating_prompt("interesting").render(example(), [[shown]]) + " 0"
    assert signature.fields["examples"] == 1
    other = Example("8", (Turn("Hi!"),), Turn("Hullo."), ratings={"Interesting": (2.0,)})
    again = DialogueRatingScorer(asked, "interesting", examples=[[other]]).signature_fields()
    assert again["examples_hash"] != signature.fields["examples_hash"]


def test_the_signature_pins_prompt_model_and_weights() -> None:
    fields = DialogueRatingScorer(model(shares(0.5, 0.5)), "understandable", k=2, literal_log=True).signature_fields()
    assert fields == {
        "method": "dialogue_rating",
        "prompt": rating_prompt("understandable").id,
        "llm": "scripted@1",
        "k": 2,
        "reading": "literal_log",
        "examples": 0,
        "examples_hash": None,
    }


def test_every_row_is_scored_or_unscored_with_its_reason() -> None:
    failed = Unscored(Reason.API_ERROR, "ConnectionError: down")
    logs = {"fine": math.log(1 / 6), "down": failed, "mute": -math.inf, "odd": math.nan}

    def rule(prompt: str, form: str) -> float | Unscored:
        return next(log for word, log in logs.items() if f"Response: {word}" in prompt)

    texts = ["fine", "down", "mute", "odd", " \n", "fine too"]
    scores = DialogueRatingScorer(model(rule), "fluent").score([example(text, str(n)) for n, text in enumerate(texts)])
    none = Unscored(Reason.NON_FINITE, "the model gives no rating of the scale a probability")
    assert scores.values == (pytest.approx(1.0), None, None, None, None, pytest.approx(1.0))
    assert scores.unscored == {1: failed, 2: none, 3: none, 4: BLANK_RESPONSE}


def test_a_dialogue_without_a_visible_turn_is_unscored_and_not_asked() -> None:
    asked = model(shares(0, 0, 1))
    scores = DialogueRatingScorer(asked, "coherent").score([Dialogue("0", (Turn(" "), Turn("")))])
    assert scores.unscored == {0: Unscored(Reason.EMPTY_INPUT, "no turn has a visible character")}
    assert asked.asked == []


def test_a_further_quality_without_a_rating_leaves_the_row_scored() -> None:
    def rule(prompt: str, form: str) -> float:
        return -math.inf if "how fluent" in prompt else math.log(1 / 6)

    scores = DialogueRatingScorer(model(rule), "interesting,fluent").score([example()])
    assert (scores.columns["interesting"], scores.columns["fluent"]) == ((pytest.approx(1.0),), (None,))
    assert DialogueRatingScorer(model(rule), "fluent,interesting").score([example()]).n_unscored == 1


def test_what_others_are_scored_with_does_not_matter() -> None:
    def rule(prompt: str, form: str) -> float:
        return -(1 + (len(prompt) * (int(form) + 1)) % 7)

    items = [example(text, str(n)) for n, text in enumerate(("Where to?", "Fine.", "Really? When?"))]
    together = DialogueRatingScorer(model(rule), "overall").score(items).values
    alone = [DialogueRatingScorer(model(rule), "overall").score([item]).values[0] for item in reversed(items)]
    assert list(together) == alone[::-1]


# The prompts

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
    return tuple(map(Turn, texts, cycle(("User", "System"))))


def rated(number: int, *texts: str, values: tuple[float, ...] = (1.0,)) -> Example:
    *context, response = turns(*texts)
    return Example(str(number), tuple(context), response, ratings={"Interesting": values})


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


def test_the_shown_rating_is_the_nearest_whole_number() -> None:
    shown = [rating_prompt("interesting").answer(mean) for mean in (0.0, 0.49, 0.5, 1.49, 1.5, 2.0)]
    assert shown == ["0/2", "0/2", "1/2", "1/2", "2/2", "2/2"]


def letters_of(prompt: RatingPrompt, item: Dialogue | Example) -> str:
    return "".join(line[0] for line in prompt.question(item).splitlines() if line.endswith(": x"))


@pytest.mark.parametrize(
    ("speakers", "letters"),
    [
        (("human", "model", "human"), "ABA"), (("model", "human", "model"), "BAB"), (("ann", "bob", "ann"), "ABA"),
        (("user", "ann", "bob"), "ABC"), (("human", "human"), "AB"), (("ann",), "A"), ((None, None, None), "ABA"),
        (("human", None), "AB"),
    ],
)  # fmt: skip
def test_in_a_dialogue_b_is_the_chatbot(speakers: tuple[str | None, ...], letters: str) -> None:
    whole = Dialogue("0", tuple(Turn("x", speaker) for speaker in speakers))
    assert letters_of(rating_prompt("coherent"), whole) == letters


@pytest.mark.parametrize(
    ("speakers", "response", "letters"),
    [
        (("User", "System", "User"), "System", "ABA"), (("System", "User"), "System", "BA"),
        (("User", "System"), "System", "AB"), ((None, None), None, "BA"), ((None, None, None), None, "ABA"),
        (("ann", "bob", "cleo"), "cleo", "ACB"), ((), None, ""),
        # Thirty speakers keep a letter each, as long as there are letters.
        (tuple(f"speaker {number}" for number in range(30)), "bot", "ACDEFGHIJKLMNOPQRSTUVWXYZZZZZZ"),
    ],
)  # fmt: skip
def test_before_a_response_b_is_the_one_who_gives_it(
    speakers: tuple[str | None, ...], response: str | None, letters: str
) -> None:
    item = Example("0", tuple(Turn("x", speaker) for speaker in speakers), Turn("y", response))
    assert letters_of(rating_prompt("overall"), item) == letters


def test_any_change_of_wording_shows_in_the_hash() -> None:
    prompt = rating_prompt("interesting")
    changes: list[dict[str, Any]] = [{"asked": "how  interesting the response is"}, {"highest": 3}, {"level": "dialogue"}]
    assert len({prompt.id, *(replace(prompt, **change).id for change in changes)}) == 4


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"quality": "interesting,coherent"},
        f"dialogue_rating: quality: there is no rating prompt for 'coherent'. Did you mean 'correct'? "
        f"Known are at turn level {', '.join(TURN)}. "
        "Ask for the qualities of one level.",
    ),
    (
        {"quality": "charming"},
        f"dialogue_rating: quality: there is no rating prompt for 'charming'. Known are at turn level {', '.join(TURN)}; "
        f"at dialogue level {', '.join(DIALOGUE)}. Ask for the qualities of one level.",
    ),
    *(
        ({"quality": names}, f"dialogue_rating: quality is {names!r}. Give the name of a quality or several different ones.")
        for names in ("", [], "fluent,fluent")
    ),
    ({"k": 0}, "dialogue_rating: k is 0. Give a whole number from 1."),
    ({"k": True}, "dialogue_rating: k is True. Give a whole number from 1."),
    *(
        ({"examples": [shown]}, "dialogue_rating: examples[0]: expected the rated Example objects of one dialogue.")
        for shown in ([WHOLE], [])
    ),
    *(
        ({"examples": [[shown]]}, "example '0': nobody rated 'Overall'. Leave the item out of the examples.")
        for shown in (example(), replace(example(), ratings={"Overall": ()}))
    ),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_an_option_that_means_nothing_is_refused(options: dict[str, Any], message: str) -> None:
    assert refusal(DialogueRatingScorer, model(shares(1)), **options) == message
