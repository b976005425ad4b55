"""Algorithm 1 of DRE with scripted answers: what is kept, what is written anew, and when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.methods.augmentation.augmentation import AugmentedContext, Candidate, ResponseWriter
from dialeval_plugin.methods.augmentation.prompts import generation_prompt, prompt_id
from dialeval_plugin.methods.slide.scorer import SlideScorer
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel
from tests.refusals import refusal
from tests.scripted_writer import is_generation, judged, lists

CONTEXT = ("Shall we walk?", "It rains.")


class Script:
    """Writes one answer after the other; a response that starts with "Fit" is positive, "Odd" is not read, others are not."""

    def __init__(self, *answers: str | Unscored) -> None:
        self.answers = list(answers)
        self.model = ScriptedLanguageModel(self)

    def __call__(self, prompt: str) -> str | Unscored:
        if is_generation(prompt):
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if judged(prompt).startswith("Odd"):
            return "Perhaps."
        return "Positive" if judged(prompt).startswith("Fit") else "Negative"

    @property
    def n_generations(self) -> int:
        return sum(map(is_generation, self.model.asked))


def texts(prefix: str, numbers: Sequence[int]) -> list[str]:
    return [f"{prefix} {number}." for number in numbers]


FIT, OFF = texts("Fit", range(1, 6)), texts("Off", range(1, 6))


def write(script: Script, **options: Any) -> AugmentedContext:
    found = ResponseWriter(script.model, **options).write("c", CONTEXT)
    assert isinstance(found, AugmentedContext)
    return found


def test_when_all_pass_there_is_one_round_with_one_batch_of_checks() -> None:
    script = Script(lists(FIT, OFF))
    found = write(script)
    assert (found.responses("positive"), found.responses("adversarial"), found.reason) == (FIT, OFF, None)
    assert script.model.batches == [1, 10]
    assert script.model.asked[0] == generation_prompt(CONTEXT)
    assert {(c.round, c.is_accepted, c.slm_score) for c in found.candidates} == {(1, True, None)}
    assert [c.llm_verdict for c in found.candidates] == ["positive"] * 5 + ["negative"] * 5


def test_what_fails_is_written_anew_and_what_passed_is_kept() -> None:
    first = lists([*FIT[:3], "Off topic.", "Odd one."], [*OFF[:4], "Fit after all."])
    second = lists([*FIT[3:], "Fit 6."], ["Off 5.", "Off 6."])
    script = Script(first, second)
    found = write(script)
    assert (found.responses("positive"), found.responses("adversarial"), found.reason) == (FIT, OFF, None)
    rejected = [(c.text, c.round, c.llm_verdict) for c in found.candidates if not c.is_accepted]
    assert rejected == [("Off topic.", 1, "negative"), ("Odd one.", 1, "parse_failure"), ("Fit after all.", 1, "positive")]
    assert script.n_generations == 2
    # "Fit 6." and "Off 6." passed as sixth ones: neither used nor rejected.
    assert len(found.candidates) == 13


def test_a_kind_that_is_complete_is_not_checked_again() -> None:
    script = Script(lists(FIT, OFF[:3]), lists(["Fit 7."], OFF))
    found = write(script)
    assert found.reason is None
    assert script.model.batches == [1, 8, 1, 2]
    assert [judged(prompt) for prompt in script.model.asked[-2:]] == OFF[3:]


def test_a_response_that_was_written_before_is_not_checked_again() -> None:
    script = Script(lists(["Off topic."], OFF), lists(["OFF TOPIC", *FIT], []))
    assert write(script).reason is None
    assert [judged(prompt) for prompt in script.model.asked].count("Off topic.") == 1
    assert script.model.batches == [1, 6, 1, 5]


def test_the_rounds_have_a_limit_and_nothing_is_filled_in() -> None:
    script = Script(lists([*FIT[:3], "Odd one."], ["Fit 9."]), "I'm sorry, I cannot write that.", "Well.", lists(FIT, []))
    found = write(script, rounds=3)
    assert (found.responses("positive"), found.responses("adversarial")) == (FIT[:3], [])
    assert found.reason == (
        "3 of 5 positive and 0 of 5 adversarial responses in 3 rounds; rejected: 1 other label, 1 parse_failure; "
        "answers without responses: 1 parse_failure, 1 refusal"
    )
    assert script.n_generations == 3


def test_a_model_that_never_answers_rightly_ends_too() -> None:
    script = Script("Hello.")
    found = write(script, rounds=7)
    assert (found.candidates, script.n_generations) == ((), 7)
    assert found.reason == (
        "0 of 5 positive and 0 of 5 adversarial responses in 7 rounds; answers without responses: 7 parse_failure"
    )


def test_copies_of_the_context_and_of_the_prompts_example_are_no_responses() -> None:
    script = Script(lists(["It rains.", "She is so brilliant.", *FIT[:3]], ["Please be attentive in the class.", *OFF]))
    found = write(script, rounds=1)
    assert found.responses("positive") == FIT[:3]
    assert {c.text for c in found.candidates} == {*FIT[:3], *OFF}


@pytest.mark.parametrize("context", [(), ("", " \u200b")])
def test_a_context_without_text_is_not_asked_about(context: tuple[str, ...]) -> None:
    script = Script(lists(FIT, OFF))
    assert ResponseWriter(script.model).write("c", context) == AugmentedContext("c", context, (), "the context has no text")
    assert script.model.asked == []


DOWN = Unscored(Reason.API_ERROR, "ConnectionError: no route")


def test_a_failed_request_for_responses_or_a_check_fails_the_context() -> None:
    assert ResponseWriter(Script(DOWN).model).write("c", CONTEXT) == DOWN
    model = ScriptedLanguageModel(lambda prompt: lists(FIT, OFF) if is_generation(prompt) else DOWN)
    assert ResponseWriter(model).write("c", CONTEXT) == DOWN


def test_each_draw_has_a_number_and_a_seed_of_its_own_that_depend_on_nothing_else() -> None:
    def draws(id: str, seed: int) -> tuple[list[int], list[int]]:
        seeds: list[int] = []
        model = ScriptedLanguageModel(lambda prompt: "Nothing.")
        ResponseWriter(model, rounds=2, seed=seed, reseed=seeds.append).write(id, CONTEXT)
        assert {request.temperature for request in model.requests} == {0.7}
        return [request.sample for request in model.requests], seeds

    numbers, seeds = draws("a", 0)
    assert numbers == [0, 1]
    assert draws("a", 0)[1] == seeds
    assert draws("a", 3)[0] == [6, 7]
    assert len({*seeds, *draws("b", 0)[1], *draws("a", 3)[1]}) == 6
    assert all(0 <= number < 2**32 for number in seeds)


def test_the_small_model_has_the_last_word(tiny_slm: Path) -> None:
    slm = SlideScorer(str(tiny_slm), variant="slm_probability", device="cpu")
    unchecked = write(Script(lists(FIT, OFF)))
    scores = slm.score([Example.from_texts(CONTEXT, c.text) for c in unchecked.candidates]).values
    cut = sorted(value for value in scores if value is not None)[5]
    slm.positive_from = cut
    found = write(Script(lists(FIT, OFF)), slm=slm, rounds=2)
    kept = [value is not None and (value >= cut) == (kind < 5) for kind, value in enumerate(scores)]
    assert [c.is_accepted for c in found.candidates] == kept
    assert [c.slm_score for c in found.candidates] == pytest.approx(scores, abs=1e-6)
    n_rejected = kept.count(False)
    assert 0 < n_rejected < 10
    assert found.reason is not None
    assert f"; rejected: {n_rejected} small model" in found.reason


def test_what_the_language_model_rejects_the_small_model_is_not_asked_about(tiny_slm: Path) -> None:
    slm = SlideScorer(str(tiny_slm), variant="slm_probability", device="cpu")
    found = write(Script(lists(["Off topic."], ["Fit 1."])), slm=slm, rounds=1)
    assert [(c.llm_verdict, c.slm_score) for c in found.candidates] == [("negative", None), ("positive", None)]


def test_a_distance_is_positive_up_to_its_threshold(tiny_slm: Path) -> None:
    slm = SlideScorer(str(tiny_slm), variant="slm_distance", device="cpu")
    slm.positive_from = 3.0  # above every distance: all are positive
    found = write(Script(lists(FIT, OFF)), slm=slm, rounds=1)
    assert (found.responses("positive"), found.responses("adversarial")) == (FIT, [])


def test_settings_out_of_range_and_a_scorer_without_a_threshold_are_refused(tiny_slm: Path) -> None:
    model = Script("").model
    assert refusal(ResponseWriter, model, rounds=0) == "augment: rounds is 0. Give 1 or more."
    assert refusal(ResponseWriter, model, seed=-1) == "augment: seed is -1. Give 0 or more."
    slm = SlideScorer(str(tiny_slm), variant="slm", device="cpu")
    slm.positive_from = None  # type: ignore[assignment]
    assert refusal(ResponseWriter, model, slm=slm) == (
        "augment: the scorer 'slide' has no threshold to classify with. Use a small model of SLIDE."
    )


def test_provenance_names_everything_that_can_move_a_response(tiny_slm: Path) -> None:
    plain = ResponseWriter(Script("").model, rounds=2, seed=5).provenance
    assert plain == {
        "llm": "scripted@1",
        "generation_prompt": prompt_id(),
        "classification_prompt": plain["classification_prompt"],
        "temperature": 0.7,
        "rounds": 2,
        "seed": 5,
        "slm": None,
        "slm_positive_from": None,
    }
    assert prompt_id() == "slide_generation-v1-fb49a3fb4f3b82d6"
    slm = SlideScorer(str(tiny_slm), variant="slm_probability", device="cpu")
    checked = ResponseWriter(Script("").model, slm=slm).provenance
    assert str(checked["slm"]).startswith("method:slide|variant:slm_probability|slm:")
    assert checked["slm_positive_from"] == 0.5


def test_a_context_goes_through_json_unchanged() -> None:
    found = AugmentedContext("c", CONTEXT, (Candidate("positive", "a\u2028b", 1, "positive", 0.25, True),), "why")
    assert AugmentedContext.from_dict(asdict(found)) == found
