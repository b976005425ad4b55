"""A last turn is read whole, however long, its questions first; and short answers to short questions. Issue 46, P 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.models.texts import MAX_TURN_PARTS, TextEncoder

QUESTION = "Which city is the capital of France?"
PASTED = " ".join(["The trains of the northern line were late again on Monday, and nobody at the station knew why."] * 7)
RIGHT, WRONG = "It is Paris, on the river Seine.", "I love pizza."
SHORT = json.loads(Path(__file__).with_name("short_answers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def general() -> Scorer:
    return load_scorer("general", device="cpu")


@pytest.fixture(scope="module")
def texts(general: Scorer) -> TextEncoder:
    assert isinstance(general, GeneralScorer)
    return general._model.texts


def scores(general: Scorer, *pairs: tuple[list[str], str]) -> list[float]:
    items = [Example.from_texts(context, response, id=str(n)) for n, (context, response) in enumerate(pairs)]
    return [value for value in general.score(items).values if value is not None]


@pytest.mark.parametrize("turn", [f"{QUESTION} {PASTED}", f"{PASTED} {QUESTION}", f"{PASTED} {QUESTION} {PASTED}"])
def test_the_right_answer_to_a_question_in_a_long_turn_is_the_better_one(general: Scorer, turn: str) -> None:
    right, wrong, alone = scores(general, ([turn], RIGHT), ([turn], WRONG), ([QUESTION], RIGHT))
    assert right > wrong
    assert right >= alone - 1e-4


def test_what_fits_has_the_score_that_it_had_beside_what_does_not(general: Scorer) -> None:
    short = [(["Hi.", QUESTION], RIGHT), ([QUESTION] * 30, WRONG), (["a" * 94 + "."], RIGHT)]
    beside = scores(general, *short, ([f"{QUESTION} {PASTED}"], RIGHT))[:-1]
    assert beside == pytest.approx(scores(general, *short), abs=1e-6)
    judge = general._model  # type: ignore[attr-defined]
    triples = [(tuple(context), response, ()) for context, response in short]
    alone, parted = judge._judge(triples), judge.judge([*triples, ((f"{QUESTION} {PASTED}",), RIGHT, ())])
    for name, values in alone.log_odds.items():
        assert parted.log_odds[name][:-1] == pytest.approx(values, abs=1e-5, nan_ok=True)
    for name, values in alone.tokens_cut.items():
        assert parted.tokens_cut[name][:-1].tolist() == values.tolist()


def test_a_turn_is_parted_between_sentences_and_its_questions_come_first(texts: TextEncoder) -> None:
    assert texts.parts_of_turn(QUESTION) == ([QUESTION], 0)
    (asked, *parts), n_cut = texts.parts_of_turn(f"{PASTED} {QUESTION} {PASTED}")
    assert (asked, n_cut) == (QUESTION, 0)
    assert " ".join(parts).split() == f"{PASTED} {QUESTION} {PASTED}".split()
    assert all(part.rstrip().endswith((".", "?")) for part in parts)
    assert all(context.n_cut == 0 for context in texts.contexts([(part,) for part in parts]))


def test_a_long_sentence_is_parted_between_words_and_of_a_huge_turn_the_middle_is_left_out(texts: TextEncoder) -> None:
    words = [f"word{n}" for n in range(3000)]
    parts, n_cut = texts.parts_of_turn(" ".join(words))
    assert len(parts) == MAX_TURN_PARTS
    kept = " ".join(parts).split()
    half = len(" ".join(parts[: MAX_TURN_PARTS // 2]).split())
    assert kept == [*words[:half], *words[half - len(kept) :]]
    n_read = sum(len(context.ids) - 2 for context in texts.contexts([(part,) for part in parts]))
    (whole,) = texts.contexts([(" ".join(words),)])
    assert n_read + n_cut == whole.n_cut + len(whole.ids) - 2


def test_the_beginning_of_a_word_that_is_too_long_is_counted_as_not_read(texts: TextEncoder) -> None:
    address = "https://example.org/" + "/".join(f"page{n}" for n in range(60))
    (ids,) = texts.contexts([(address,)])
    parts, n_cut = texts.parts_of_turn(f"{address} {address}")
    assert parts == [f" {address}"] * 2
    assert n_cut == 2 * ids.n_cut > 0
    # Eight parts are read, also if the first word is a part of its own.
    assert len(texts.parts_of_turn(" ".join([address] * MAX_TURN_PARTS)).texts) == MAX_TURN_PARTS


def test_what_is_not_read_of_a_context_is_counted(general: Scorer) -> None:
    long = f"{QUESTION} {PASTED}"
    items = [Example.from_texts(context, RIGHT, id=str(len(context))) for context in ([long], ["Hi there.", long])]
    assert general.score(items).columns["context_tokens_cut"] == (0.0, 4.0)


def test_short_answers_to_short_questions_are_above_short_answers_to_others(general: Scorer) -> None:
    """45 of 48; what it gets wrong is said in docs/general.md."""
    assert len(SHORT) >= 40
    found = scores(general, *((row["context"], row[which]) for row in SHORT for which in ("right", "wrong")))
    assert sum(right > wrong for right, wrong in zip(found[::2], found[1::2], strict=True)) >= 45
    assert all(
        reason is None for reason in general.scope_of([Example.from_texts(row["context"], row["right"]) for row in SHORT])
    )
