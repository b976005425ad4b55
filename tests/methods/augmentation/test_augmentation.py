"""Algorithm 1 of DRE with scripted answers: what is kept, what is written anew, when it ends; and many contexts.

What is written, that training can read it, and the sheet for people. FAULTS R47, R61, R63, R69.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.corpora.readers import dailydialog_pp
from dialeval_plugin.corpora.registry import read_items
from dialeval_plugin.llm.language_model import CutAnswer, Request
from dialeval_plugin.methods.augmentation.augmentation import (
    SHEET_HEADER,
    AugmentedContext,
    GeneratedResponse,
    ResponseWriter,
    augment,
    incomplete_path,
    write_augmented,
    write_spot_check,
)
from dialeval_plugin.methods.augmentation.prompts import generation_prompt
from dialeval_plugin.methods.judging.classification import ClassificationPrompt
from dialeval_plugin.methods.slide.data import MixedSets, split_by_context
from dialeval_plugin.methods.slide.scorer import SlideScorer
from dialeval_plugin.terminal import for_spreadsheet
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel
from dialeval_plugin.version import __version__
from tests.refusals import refusal
from tests.scripted_writer import CONTEXTS, NumberedScript, finish, is_generation, judged, lists

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


def texts(prefix: str, numbers: Sequence[int]) -> list[str]:
    return [f"{prefix} {number}." for number in numbers]


FIT, OFF = texts("Fit", range(1, 6)), texts("Off", range(1, 6))


def write(script: Script, **options: Any) -> AugmentedContext:
    found = ResponseWriter(script.model, **options).write("c", CONTEXT)
    assert isinstance(found, AugmentedContext)
    return found


COMPLETE = (FIT, OFF, None)
NO_ROUND_WAS_READ = "0 of 5 positive and 0 of 5 adversarial responses in 7 rounds; answers without responses: 7 parse_failure"
SOME_WERE_WRITTEN = (
    "3 of 5 positive and 0 of 5 adversarial responses in 3 rounds; rejected: 1 other label, 1 parse_failure; "
    "answers without responses: 1 parse_failure, 1 refusal"
)
REFUSES = "I'm sorry, I cannot write that."
# What is written, how many rounds there are at most, what is kept and why it is not all, and the requests of each call.
ROUNDS: dict[str, tuple[list[str], int, tuple[list[str], list[str], str | None], list[int]]] = {
    "when all pass there is one round with one batch of checks": ([lists(FIT, OFF)], 3, COMPLETE, [1, 10]),
    "what fails is written anew and what passed is kept": (
        [lists([*FIT[:3], "Off topic.", "Odd one."], [*OFF[:4], "Fit after all."]), lists(FIT[3:], OFF[4:])],
        3,
        COMPLETE,
        [1, 10, 1, 3],
    ),
    "a complete kind is not checked again": ([lists(FIT, OFF[:3]), lists(["Fit 7."], OFF)], 3, COMPLETE, [1, 8, 1, 2]),
    "nor is what was written before": ([lists(["Off topic."], OFF), lists(["OFF TOPIC", *FIT], [])], 3, COMPLETE, [1, 6, 1, 5]),
    "the rounds have a limit and nothing is filled in": (
        [lists([*FIT[:3], "Odd one."], ["Fit 9."]), REFUSES, "Well.", lists(FIT, [])],
        3,
        (FIT[:3], [], SOME_WERE_WRITTEN),
        [1, 5, 1, 1],
    ),
    "a model that never answers rightly ends too": (["Hello."], 7, ([], [], NO_ROUND_WAS_READ), [1] * 7),
    "copies of the context and of the prompt's example are no responses": (
        [lists(["It rains.", "She is so brilliant.", *FIT[:3]], ["Please be attentive in the class.", *OFF])],
        1,
        (FIT[:3], OFF, "3 of 5 positive and 5 of 5 adversarial responses in 1 round"),
        [1, 8],
    ),
}


@pytest.mark.parametrize(("answers", "rounds", "expected", "batches"), ROUNDS.values(), ids=ROUNDS)
def test_rounds(answers: list[str], rounds: int, expected: tuple[list[str], list[str], str | None], batches: list[int]) -> None:
    script = Script(*answers)
    found = write(script, rounds=rounds)
    assert (found.responses("positive"), found.responses("adversarial"), found.reason) == expected
    assert script.model.batches == batches
    assert script.model.asked[0] == generation_prompt(CONTEXT)


def test_each_response_is_kept_with_its_verdict() -> None:
    passed = write(Script(lists(FIT, OFF))).candidates
    assert {(c.round, c.is_accepted, c.slm_score) for c in passed} == {(1, True, None)}
    assert [c.llm_verdict for c in passed] == ["positive"] * 5 + ["negative"] * 5

    first = lists([*FIT[:3], "Off topic.", "Odd one."], [*OFF[:4], "Fit after all."])
    found = write(Script(first, lists([*FIT[3:], "Fit 6."], ["Off 5.", "Off 6."]))).candidates
    rejected = [(c.text, c.round, c.llm_verdict) for c in found if not c.is_accepted]
    assert rejected == [("Off topic.", 1, "negative"), ("Odd one.", 1, "parse_failure"), ("Fit after all.", 1, "positive")]
    # "Fit 6." and "Off 6." passed as sixth ones: neither used nor rejected.
    assert len(found) == 13


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


def test_the_last_response_of_an_answer_that_was_cut_is_not_kept() -> None:
    class Cut(ScriptedLanguageModel):
        def generate(self, requests: Sequence[Request], **options: Any) -> list[Any]:
            return [
                CutAnswer(answer) if is_generation(one.prompt) else answer
                for one, answer in zip(requests, super().generate(requests, **options), strict=True)
            ]

    script = Script(lists(FIT, OFF[:4]) + "\n5. Off 5 is cut in the mid")
    script.model = Cut(script)
    found = write(script, rounds=1)
    assert (found.responses("positive"), found.responses("adversarial")) == (FIT, OFF[:4])
    script.answers = ["1. Fit 1 is cut"]
    found = write(script, rounds=1)
    assert found.candidates == ()
    assert found.reason is not None
    assert found.reason.endswith("answers without responses: 1 truncated")


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds is 0. Give 1 or more."),
        ({"seed": -1}, "seed is -1. Give 0 or more."),
        (
            {"slm": load_scorer("response_length")},
            "the scorer 'response_length' has no threshold to classify with. Use a small model of SLIDE.",
        ),
    ],
)
def test_settings_out_of_range_and_a_scorer_without_a_threshold_are_refused(options: dict[str, Any], message: str) -> None:
    assert refusal(ResponseWriter, Script("").model, **options) == f"augment: {message}"


def test_provenance_names_everything_that_can_move_a_response(tiny_slm: Path) -> None:
    assert ResponseWriter(Script("").model, rounds=2, seed=5).provenance == {
        "llm": "scripted@1",
        "generation_prompt": "slide_generation-v1-fb49a3fb4f3b82d6",
        "classification_prompt": ClassificationPrompt().id,
        **{"temperature": 0.7, "rounds": 2, "seed": 5, "slm": None, "slm_positive_from": None},
    }
    slm = SlideScorer(str(tiny_slm), variant="slm_probability", device="cpu")
    checked = ResponseWriter(Script("").model, slm=slm).provenance
    assert str(checked["slm"]).startswith("method:slide|variant:slm_probability|slm:")
    assert checked["slm_positive_from"] == 0.5


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finish(tmp_path_factory.mktemp("finished"), NumberedScript())


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def test_the_output_is_dailydialog_pp_that_training_reads(finished: Path) -> None:
    sets = dailydialog_pp.read(finished)
    assert [item.id for item in sets] == ["c0", "c1", "c2", "c4", "c5", "c6", "c7", "c8"]
    assert sets[0].context == CONTEXTS[0].context
    assert sets[5].positive == ("Fit 6a.", "Fit 6b.", "Fit 6d.", "Fit 6e.", "Fit 6c.")
    assert {(len(item.positive), len(item.adversarial)) for item in sets} == {(5, 5)}
    splits = split_by_context(sets, fraction=0.25, seed=0)
    assert (len(splits.training), len(splits.validation)) == (6, 2)
    assert MixedSets(splits.training, ranked_per_set=1, seed=0)[0].labels == (1,) * 5 + (0,) * 5
    assert len(read_items(finished)) == 80


def test_each_response_says_where_it_is_from(finished: Path) -> None:
    row = rows(finished)[5]
    provenance = row["provenance"]
    assert isinstance(provenance, dict)
    expected = {"llm": "scripted@1", "rounds": 2, "seed": 0, "temperature": 0.7, "version": __version__}
    assert {key: provenance[key] for key in expected} == expected
    by_text = {response["text"]: response for response in provenance["responses"]}
    judged = {"round": 1, "llm_verdict": "negative", "slm_score": None, "is_accepted": False}
    assert by_text["Misses."] == {"kind": "positive", "text": "Misses.", **judged}
    assert (by_text["Fit 6c."]["round"], by_text["Fit 6c."]["is_accepted"]) == (2, True)
    written = [*row["positive_responses"], *row["adversarial_negative_responses"]]  # type: ignore[misc]
    assert {text for text, response in by_text.items() if response["is_accepted"]} == set(written)


def test_a_context_that_was_not_completed_is_reported_and_not_padded(finished: Path) -> None:
    (row,) = rows(incomplete_path(finished))
    assert (row["id"], row["positive_responses"], row["adversarial_negative_responses"]) == ("c3", [], [])
    assert row["reason"] == (
        "0 of 5 positive and 0 of 5 adversarial responses in 2 rounds; answers without responses: 2 refusal"
    )
    assert dailydialog_pp.read(incomplete_path(finished))[0].id == "c3"


def test_a_context_without_an_answer_is_asked_about_again(finished: Path, tmp_path: Path) -> None:
    script = NumberedScript()
    answer = script.model.answer
    down = Unscored(Reason.API_ERROR, "TimeoutError: slow")
    script.model.answer = lambda prompt: down if is_generation(prompt) and "FS: Is 4 odd?" in prompt else answer(prompt)
    output = finish(tmp_path, script)
    assert [item.id for item in dailydialog_pp.read(output)] == ["c0", "c1", "c2", "c5", "c6", "c7", "c8"]
    assert [(row["id"], row["reason"]) for row in rows(incomplete_path(output))][1] == ("c4", "api_error: TimeoutError: slow")

    finish(tmp_path, NumberedScript())
    for path in (output, incomplete_path(output)):
        assert path.read_bytes() == (finished.parent / path.name).read_bytes()


def test_files_that_would_be_empty_are_not_written_and_old_ones_do_not_stay(tmp_path: Path) -> None:
    writer = ResponseWriter(NumberedScript().model, rounds=1)
    output = tmp_path / "out.jsonl"
    write_augmented(augment(CONTEXTS[3:4], writer), output, writer.provenance)
    assert (output.exists(), incomplete_path(output).exists()) == (False, True)
    write_augmented(augment(CONTEXTS[:1], writer), output, writer.provenance)
    assert (output.exists(), incomplete_path(output).exists()) == (True, False)


# The sheet for people


def context(id: str, turns: tuple[str, ...], *texts: str) -> AugmentedContext:
    candidates = [
        GeneratedResponse("positive" if place % 2 == 0 else "adversarial", text, 1, "positive", None, True)
        for place, text in enumerate(texts)
    ]
    return AugmentedContext(id, turns, (*candidates, GeneratedResponse("positive", "Rejected.", 1, "negative")))


ACCEPTED = [
    context("=1+1", ("=SUM(A1)", 'He said "no",\nthen left.'), "=HYPERLINK(1)", "- said nobody.", "Fine, “thanks”."),
    context("b", ("Hi.",), *(f"Response {number}." for number in range(7))),
]


def cells(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_each_row_has_what_a_person_needs_and_a_blank_for_the_verdict(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    assert write_spot_check(path, ACCEPTED, n=100, seed=0) == 10
    header, *rows = cells(path)
    assert tuple(header) == SHEET_HEADER == ("context_id", "context", "response", "intended_label", "verdict")
    assert {row[4] for row in rows} == {""}
    assert ["'=1+1", 'FS: =SUM(A1)\nSS: He said "no",\nthen left.', "'=HYPERLINK(1)", "positive", ""] in rows
    assert ["'=1+1", 'FS: =SUM(A1)\nSS: He said "no",\nthen left.', "'- said nobody.", "adversarial", ""] in rows
    assert "Rejected." not in {row[2] for row in rows}
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")


def test_the_sample_is_the_seeds(tmp_path: Path) -> None:
    drawn = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert write_spot_check(tmp_path / name, ACCEPTED, n=4, seed=seed) == 4
        drawn.append(cells(tmp_path / name))
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({(row[0], row[2]) for row in drawn[0][1:]}) == 4


def test_no_cell_starts_as_a_formula_does() -> None:
    for start in ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "  =", "\u00a0@"):
        assert for_spreadsheet(f"{start}1+1|cmd") == f"'{start}1+1|cmd"
    others = ("", "1 = 1", "a@b.org", "“= quoted", "'tis")
    assert tuple(map(for_spreadsheet, others)) == others
