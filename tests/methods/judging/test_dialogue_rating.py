"""The scorer `dialogue_rating`: ratings against the transcription, several qualities, examples, and every row accounted for."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.methods.judging.dialogue_rating import DialogueRatingScorer, rating_of_forms
from dialeval_plugin.methods.judging.rating_prompts import RatingPrompt, rating_prompt
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


def test_the_rating_agrees_with_the_transcription(oracles_dir: Path) -> None:
    oracle = json.loads((oracles_dir / "huynh.json").read_text(encoding="utf-8"))
    for case in oracle["k_top"]:
        ratings, logs, k = (case["in"][name] for name in ("ratings", "logp", "K"))
        prompt = RatingPrompt("overall", "turn", "Overall", "how good it is", highest=max(ratings))
        forms: dict[str, Any] = {f" {rating}": value for rating, value in zip(ratings, logs, strict=True)}
        for reading, name in (("probabilities", "rating_probabilities"), ("literal_log", "rating_log_as_printed")):
            found = rating_of_forms(forms, prompt, k=k, reading=reading)  # type: ignore[arg-type]
            assert found == pytest.approx(case["out"][name], abs=1e-6)
    case = oracle["merge_surface_forms"]
    found = rating_of_forms(case["in"]["token_logp"], rating_prompt("interesting"), k=case["in"]["K"])
    assert found == pytest.approx(case["out"]["rating_probabilities"], abs=1e-6)


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
    assert DialogueRatingScorer(model(rule), "overall", k=3).score([example()]).values == (pytest.approx(2.6 / 0.8),)
    assert DialogueRatingScorer(model(rule), "overall", k=5).score([example()]).values == (pytest.approx(2.7),)
    assert DialogueRatingScorer(model(rule), "overall", k=1).score([example()]).values == (4.0,)


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
        "dialogue_rating: item 0 is of type Example, but this scorer works at dialogue level. Pass Dialogue objects."
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
    bare = DialogueRatingScorer(asked, "interesting").score([example()]).signature
    assert (bare.fields["examples"], bare.fields["examples_hash"]) == (0, None)
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

    def rule(prompt: str, form: str) -> float | Unscored:
        if "Response: down" in prompt:
            return failed
        if "Response: mute" in prompt:
            return -math.inf
        if "Response: odd" in prompt:
            return math.nan
        return math.log(1 / 6)

    texts = ["fine", "down", "mute", "odd", " \n", "fine too"]
    scores = DialogueRatingScorer(model(rule), "fluent").score([example(text, str(n)) for n, text in enumerate(texts)])
    none = Unscored(Reason.NON_FINITE, "the model gives no rating of the scale a probability")
    assert scores.values == (pytest.approx(1.0), None, None, None, None, pytest.approx(1.0))
    assert scores.unscored == {
        1: failed,
        2: none,
        3: none,
        4: Unscored(Reason.EMPTY_INPUT, "the response has no visible character"),
    }
    assert scores.unscored_by_reason == {"api_error": 1, "empty_input": 1, "non_finite": 2}
    assert (scores.n_total, scores.n_scored, scores.n_unscored) == (6, 2, 4)


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"quality": "interesting,coherent"},
            "dialogue_rating: quality: there is no rating prompt for 'coherent'. Known are at turn level interesting, "
            "engaging, specific, relevant, correct, semantically_appropriate, understandable, fluent, overall. "
            "Ask for the qualities of one level.",
        ),
        *(
            (
                {"quality": names},
                f"dialogue_rating: quality is {names!r}. Give the name of a quality or several different ones.",
            )
            for names in ("", [], "fluent,fluent")
        ),
        ({"k": 0}, "dialogue_rating: k is 0. Give a whole number from 1."),
        ({"k": True}, "dialogue_rating: k is True. Give a whole number from 1."),
        *(
            ({"examples": [shown]}, "dialogue_rating: examples[0]: expected the rated Example objects of one dialogue.")
            for shown in ([WHOLE], [])
        ),
        ({"examples": [[example()]]}, "example '0': nobody rated 'Overall'. Leave the item out of the examples."),
    ],
)
def test_an_option_that_means_nothing_is_refused(options: dict[str, Any], message: str) -> None:
    assert refusal(DialogueRatingScorer, model(shares(1)), **options) == message


def test_without_a_language_model_it_says_what_to_pass() -> None:
    assert refusal(DialogueRatingScorer, error=MissingPrerequisite) == (
        "dialogue_rating: asks a large language model, and no llm is given. "
        "Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model that has log probabilities)."
    )
