"""The scorer `assistant`: columns, what is read of long texts, both levels, explanations, on random weights."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logit

from dialeval_plugin import load_metric, load_scorer
from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.methods.assistant.judging import (
    ASKED_REFUSAL,
    DEFECTS,
    HEADS,
    HELPFULNESS,
    TOKENS_CUT,
    AssistantConfig,
    AssistantJudge,
    AssistantJudgement,
    read_answer,
)
from dialeval_plugin.methods.assistant.scorer import JUDGED, AssistantScorer
from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime
from tests.refusals import refusal, refused
from tests.tiny.models import write_tiny_assistant

ASKED = ["Who wrote Emma?", "Jane Austen.", "And when?"]
ANSWERS = ["In 1815. It came out in December.", "I am not sure what you mean", "Emma, Emma, Emma.", "In 1815."]


def examples() -> list[Example]:
    return [Example.from_texts(ASKED[place % 2 * 2 :], answer, id=str(place)) for place, answer in enumerate(ANSWERS)]


@pytest.fixture(scope="module")
def scorer(tiny_assistant: Path) -> AssistantScorer:
    return AssistantScorer(str(tiny_assistant), device="cpu")


def values(scorer: AssistantScorer, *answers: tuple[list[str], str]) -> np.ndarray:
    """Every column of answers after turns, (answers, columns)."""
    scores = scorer.score([Example.from_texts(turns, answer, id=str(place)) for place, (turns, answer) in enumerate(answers)])
    return np.array([scores.columns[name] for name in scorer.columns], dtype=float).T


def test_defects_but_a_refusal_and_the_log_odds_of_insult_lower_helpfulness(scorer: AssistantScorer) -> None:
    scores = scorer.score(examples())
    assert list(scores.columns) == [
        *("assistant", "helpfulness"),
        *("cut_off", "looping", "leaked", "second_voice", "refusal", "boilerplate", "wrong_language", "error_message"),
        *("off_topic", "stale", "echo", "contradiction", "gibberish", "insult", "asked_refusal"),
        *("context_tokens_cut", "response_tokens_cut"),
    ]
    for row in scores.rows():
        has_none = sum(math.log1p(-row[defect.name]) for defect in DEFECTS if defect.name != "refusal")
        helpfulness, insult = (math.log(row[name] / (1 - row[name])) for name in ("helpfulness", "insult"))
        assert row["assistant"] == pytest.approx(1 / (1 + math.exp(-helpfulness - 0.7 * has_none + 0.3 * (insult + 5))))


# What is read


@pytest.mark.parametrize(
    ("turns", "speaker", "expected"),
    [
        ([], "assistant", ((), "")),
        ([("Hi.", None), ("", None), ("Who?", None)], None, (("Hi.",), "Who?")),
        ([("Who?", "user")], "assistant", ((), "Who?")),
        ([("Who?", "user"), ("Wait.", "assistant")], "assistant", (("Wait.",), "Who?")),
        ([("Be kind.", "system"), ("Hi.", "assistant")], "assistant", (("Hi.",), "Be kind.")),
        ([("Hello.", "assistant")], "assistant", ((), "Hello.")),
        ([("Hello.", "assistant")], None, ((), "Hello.")),
    ],
)
def test_the_question_is_the_last_turn_that_somebody_else_has_said(
    turns: list[tuple[str, str | None]], speaker: str | None, expected: tuple[tuple[str, ...], str]
) -> None:
    assert read_answer([Turn(*turn) for turn in turns], Turn("Me.", speaker)) == (*expected, "Me.")


def test_an_empty_context_is_read_as_none_and_scores(scorer: AssistantScorer) -> None:
    none, blank = values(scorer, ([], "In 1815."), ([" ", "\u200b"], "In 1815."))
    assert none == pytest.approx(blank)
    (asked,) = values(scorer, (["And when?"], "In 1815."))
    assert asked != pytest.approx(none)


def test_of_a_long_answer_the_end_is_read_and_the_middle_is_counted(
    scorer: AssistantScorer, caplog: pytest.LogCaptureFixture
) -> None:
    """The model reads three parts of 40 tokens, and a token is a letter."""
    parts = [letter * 38 for letter in "abcdef"]
    whole, cut = values(scorer, *((ASKED, "".join(given)) for given in (parts, parts[:5])))
    assert (whole[-1], cut[-1]) == (3 * 38, 2 * 38)
    assert whole[:-2] != pytest.approx(cut[:-2])
    assert caplog.messages == [
        "assistant: in 2 of 2 examples an answer is longer than 3 parts of 40 tokens; its middle was not read"
    ]


def test_the_whole_question_is_read_in_parts_before_the_turns_before_it(
    scorer: AssistantScorer, caplog: pytest.LogCaptureFixture
) -> None:
    asked = (["w" * 60], ["u" * 60, "And when?"], ["v" * 120])
    found = values(scorer, *((turns, "In 1815.") for turns in asked))
    # 60 letters are two parts of 38 at most, and 120 are four, of which two are read; of the turn before, 39 tokens fit.
    assert found[:, -2].tolist() == [0, 60 + 1 - 39, 2 * 38]
    assert caplog.messages == [
        "assistant: in 2 of 3 examples a question is longer than 2 parts of 40 tokens, or the turns before it than 40 tokens; "
        "the question's middle, or the beginning of those turns, was not read"
    ]


@pytest.mark.parametrize("backend", ["torch", "onnx", "openvino", "openvino-int8"])
def test_no_neighbour_moves_a_score_on_any_backend(backend: str, tiny_assistant: Path) -> None:
    scorer = AssistantScorer(str(tiny_assistant), backend=backend, device="cpu")  # type: ignore[arg-type]
    rows = [(ASKED[:place], answer * 20) for place, answer in enumerate(ANSWERS)]
    together = values(scorer, *rows, (ASKED, "It did, " * 40))
    alone = np.concatenate([values(scorer, row) for row in rows])
    assert together[:-1] == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize("backend", ["onnx", "openvino"])
def test_an_exact_backend_says_what_torch_says(backend: str, scorer: AssistantScorer, tiny_assistant: Path) -> None:
    rows = [(ASKED[:place], answer * 20) for place, answer in enumerate(ANSWERS)]
    other = AssistantScorer(str(tiny_assistant), backend=backend, device="cpu")  # type: ignore[arg-type]
    assert values(other, *rows) == pytest.approx(values(scorer, *rows), abs=1e-5)
    assert f"|response_windows:3|truncation:middle|backend:{backend}|level:turn|" in str(other.score(examples()).signature)


def test_each_distinct_part_is_embedded_once(tiny_assistant: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer, embed, seen = AssistantScorer(str(tiny_assistant), device="cpu"), TorchRuntime.embed, list[tuple[int, ...]]()

    def recorded(self: TorchRuntime, ids: Any) -> Any:
        seen.extend(map(tuple, ids))
        return embed(self, ids)

    monkeypatch.setattr(TorchRuntime, "embed", recorded)
    said = "The same sentence, and again. "
    scorer.score([Example.from_texts([*ASKED, "x" * place], said * (place + 1), id=str(place)) for place in range(1, 4)])
    assert len(seen) == len(set(seen)) > 4


# Whole dialogues

TALK = [
    ("Who wrote Emma?", "user"),
    ("Jane Austen.", "assistant"),
    ("When?", "user"),
    ("\u200b", "user"),
    ("In 1815.", "assistant"),
]


def test_a_dialogue_is_the_mean_of_the_assistants_turns_and_names_the_worst(
    scorer: AssistantScorer, tiny_assistant: Path
) -> None:
    whole = AssistantScorer(str(tiny_assistant), level="dialogue", device="cpu")
    talk = Dialogue("talk", tuple(Turn(*turn) for turn in TALK))
    long = Dialogue("long", tuple(Turn("z" * 130, speaker) for speaker in ("user", "assistant", "user", "assistant")))
    plain = Dialogue("plain", tuple(Turn(text) for text, _ in TALK[:3]))
    scores = whole.score([talk, long, plain])
    after = [Example(str(place), talk.turns[:place], talk.turns[place]) for place in (1, 4)]
    of_turns = scorer.score(after)
    row = next(scores.rows())
    assert list(scores.columns) == ["assistant", "worst_turn", *HEADS, "n_turns", *TOKENS_CUT]
    for name in ("assistant", *HEADS):
        assert row[name] == pytest.approx(of_turns.mean(name), abs=1e-6)
    assert row["worst_turn"] == pytest.approx(min(of_turns.values), abs=1e-6)  # type: ignore[type-var]
    assert scores.columns["n_turns"] == (2, 2, 2)
    # Of each of two questions of 130 letters two parts are cut, and of the second one's other turns all but 39 tokens.
    assert scores.columns["context_tokens_cut"][1] == 2 * 2 * 38 + 2 * 131 - 39
    assert scores.columns["response_tokens_cut"][1] == 2 * 38
    worst = int(np.argmin(of_turns.values))  # type: ignore[arg-type]
    (expected,) = scorer.explain([after[worst]])
    assert whole.explain([talk]) == [f"turn {(2, 5)[worst]} of 5: {expected}"]


# Explanations


def explained(scorer: AssistantScorer, monkeypatch: pytest.MonkeyPatch, **probabilities: float) -> str:
    """Explain an answer of which the model finds these probabilities, 0.01 of each head that is not named."""
    found = {name: np.array([logit(probabilities.get(name, 0.01))]) for name in HEADS}
    judgement = AssistantJudgement(found, dict.fromkeys(TOKENS_CUT, np.zeros(1)))
    monkeypatch.setattr(AssistantJudge, "judge", lambda self, answers: judgement)
    (said,) = scorer.explain([examples()[0]])
    return said


BLAMES = {defect.name: defect.blame for defect in DEFECTS}


@pytest.mark.parametrize("name", JUDGED)
def test_a_defect_is_named_with_its_probability(name: str, scorer: AssistantScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    said = explained(scorer, monkeypatch, **{name: 0.97, HELPFULNESS: 0.44})
    assert said == f"{BLAMES[name]} ({name.replace('_', ' ')} 0.97); helpfulness 0.44"


def test_defects_are_named_from_their_thresholds_on_the_likeliest_first(
    scorer: AssistantScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"cut_off": 0.59, "echo": 0.51, "insult": 0.8, "stale": 0.49, HELPFULNESS: 0.3}
    expected = f"{BLAMES['insult']} (insult 0.80); {BLAMES['echo']} (echo 0.51); helpfulness 0.30"
    assert explained(scorer, monkeypatch, **found) == expected


@pytest.mark.parametrize(
    ("helpfulness", "expected"),
    [(0.7, "nothing stands out; helpfulness 0.70"), (0.3, "helps less than a typical answer; helpfulness 0.30")],
)
def test_without_a_defect_helpfulness_alone_is_said(
    helpfulness: float, expected: str, scorer: AssistantScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert explained(scorer, monkeypatch, helpfulness=helpfulness) == expected


@pytest.mark.parametrize(
    ("asked", "whether"), [(0.9, "as the question asks for"), (0.04, "which the question does not call for")]
)
def test_of_a_refusal_is_said_whether_the_question_called_for_one(
    asked: float, whether: str, scorer: AssistantScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = explained(scorer, monkeypatch, refusal=0.95, helpfulness=0.5, **{ASKED_REFUSAL: asked})
    assert said == f"{BLAMES['refusal']}, {whether} (refusal 0.95; asked refusal {asked:.2f}); helpfulness 0.50"


def test_what_has_no_score_is_explained_by_why(scorer: AssistantScorer, tiny_assistant: Path) -> None:
    assert scorer.explain([Example.from_texts(ASKED, " ")]) == ["the response has no visible character"]
    whole = load_scorer("assistant", model=str(tiny_assistant), level="dialogue")
    assert whole.explain([Dialogue("one", (Turn("Hi."),))]) == ["fewer than two turns have a visible character"]


# Folders


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    with refused(
        f"{tmp_path}: has no assistant.json, so it is not a trained evaluator of assistants (or its training did not end). "
        "Train one with `dialeval train assistant`.",
        ModelLoadError,
    ):
        AssistantScorer(str(tmp_path))


def test_parts_longer_than_the_encoder_reads_are_refused(tmp_path: Path) -> None:
    folder = write_tiny_assistant(tmp_path, AssistantConfig(max_context_tokens=300))
    assert refusal(AssistantScorer, str(folder), device="cpu") == (
        "assistant: 300 tokens do not fit into the encoder's 256. Choose another encoder, or fewer tokens."
    )


def test_the_metric_of_evaluate_gives_the_columns(tiny_assistant: Path) -> None:
    metric = load_metric("assistant", model=str(tiny_assistant), device="cpu")
    result = metric.compute(predictions=ANSWERS, contexts=[ASKED] * len(ANSWERS))
    expected = load_scorer("assistant", model=str(tiny_assistant)).score(
        [Example.from_texts(ASKED, answer) for answer in ANSWERS]
    )
    assert tuple(result["scores"]) == pytest.approx(expected.values, abs=1e-6)
    assert tuple(result["cut_off"]) == pytest.approx(expected.columns["cut_off"], abs=1e-6)
