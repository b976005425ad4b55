"""Tables about answers of assistants: shares of pairs by length, coefficients, and scores of folds for a model's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.core.registry import load_scorer
from reproduction.assistant import write
from reproduction.assistant.data import AnswerPair, RatedAnswer, spoken
from reproduction.assistant.write import BASELINES, Evaluator, Values, baselines, trained
from tests.refusals import refused


def answer(id: str, text: str, **ratings: float) -> Example:
    return Example(
        id, spoken([f"Question {id}?"]), Turn(text, "assistant"), ratings={name: (of,) for name, of in ratings.items()}
    )


def evaluator(scores: Values, out_of_fold: Values | None = None, **others: Values) -> Evaluator:
    def columns(of: str, answers: Sequence[Example]) -> Mapping[str, Values]:
        return {"main": scores, **others}

    return Evaluator("one", columns, out_of_fold or {})


def pairs_of(n: int) -> list[AnswerPair]:
    """Pairs of twelve prompts; the first half have answers of one length, the others a longer preferred one of 150 words."""
    return [
        AnswerPair(
            str(k),
            answer(f"{k}+", "word " * (10 if k < n // 2 else 150)),
            answer(f"{k}-", "word " * (10 if k < n // 2 else 100)),
        )
        for k in range(n)
    ]


def test_shares_are_given_by_lengths_and_a_tie_counts_as_half() -> None:
    pairs = pairs_of(12)
    scores = {one.id: 0.5 for pair in pairs for one in (pair.preferred, pair.other)}
    scores |= {f"{k}+": 0.9 for k in range(6, 12)}
    rows = write.preference_table([evaluator(scores)], {"PandaLM": pairs}).rows
    expected = [
        ("all", 12, "0.750"),
        ("within 10% of length", 6, "0.500"),
        ("100 words and more each", 6, "1.000"),
    ]
    for title in ("people, all", "PandaLM"):
        of = [row for row in rows if row["pairs of"] == title]
        assert [(row["which"], row["n"], str(row["one"]).split()[0]) for row in of] == expected


def test_scores_of_folds_take_the_place_of_the_model_s_own_and_are_marked() -> None:
    pairs = pairs_of(12)
    own = {one.id: float(one.id.endswith("-")) for pair in pairs for one in (pair.preferred, pair.other)}
    folds = {f"{k}{sign}": float(sign == "+") for k in range(3) for sign in "+-"}
    table = write.preference_table([evaluator(own, folds)], {"set": pairs})
    assert table.rows[0]["one"] == "1.000 †"
    assert table.notes == ["† by models that had left out the answers to these prompts."]
    assert write.preference_table([evaluator(own)], {"set": pairs}).rows[0]["one"] == "0.000"


def test_a_set_that_a_model_has_learned_from_is_marked_as_no_test() -> None:
    pairs = pairs_of(12)
    own = {one.id: float(one.id.endswith("+")) for pair in pairs for one in (pair.preferred, pair.other)}
    evaluators = [replace(evaluator(own), name=name) for name in ("assistant", "assistant-open")]
    table = write.preference_table(evaluators, {"AI: AlpacaEval": pairs, "PandaLM": pairs})
    rows = {str(row["pairs of"]): row for row in table.rows if row["which"] == "all"}
    assert (rows["AI: AlpacaEval"]["assistant"], rows["AI: AlpacaEval"]["assistant-open"]) == ("1.000 ‡", "1.000")
    assert rows["PandaLM"]["assistant"] == "1.000"
    assert table.notes == ["‡ the model has learned from these answers: no test of it."]


def test_the_main_score_is_set_beside_the_rating_of_each_set() -> None:
    rated = [RatedAnswer(str(k), answer(str(k), "Yes.", reward=float(k % 3))) for k in range(15)]
    table = write.rated_table([evaluator({str(k): float(k % 3) for k in range(15)})], {"taskmaster": rated})
    (row,) = table.rows
    assert (row["set"], row["rating"], row["n"]) == ("taskmaster", "reward", 15)
    assert str(row["one"]).startswith("1.000")


def test_refusals_are_counted_on_safe_and_on_unsafe_responses() -> None:
    rated = [RatedAnswer(str(k), answer(str(k), "Yes.", safe=float(k < 20))) for k in range(40)]
    refusal = {str(k): float(k >= 30) for k in range(40)}
    table = write.safety_table([evaluator(dict.fromkeys(refusal, 0.5), refusal=refusal)], rated)
    (row,) = table.rows
    assert row["column"] == "one: refusal"
    assert str(row["seen in 20 safe ones"]).startswith("0.000")
    assert str(row["seen in 20 unsafe ones"]).startswith("0.500 [")


def test_percentiles_of_good_answers_are_averaged_where_there_are_some() -> None:
    good = [answer(str(k), "Yes.") for k in range(4)]
    scores: Values = dict.fromkeys("0123", 0.5)
    percentiles: Values = {"0": 4.0, "1": 20.0, "2": 60.0, "3": None}
    (row,) = write.percentile_table([evaluator(scores, percentile=percentiles), evaluator(scores)], good).rows
    assert row == {
        "evaluator": "one",
        "good answers": 4,
        "with a percentile": 3,
        "mean": "28.0",
        "median": "20.0",
        "below 10": "0.333",
    }


def test_a_model_s_scores_are_kept_and_baselines_need_no_model(tmp_path: Path, tiny_general: Path) -> None:
    answers = [answer("a", "Yes, quite."), answer("b", "No.")]
    model = trained("tiny", load_scorer("general", model=str(tiny_general), device="cpu"), tmp_path, {})
    found = model.columns("set", answers)
    assert next(iter(found)) == "general"
    assert list(model.main("set", answers)) == ["a", "b"]
    assert len(list((tmp_path / "scores").glob("tiny set.*.json"))) == 1
    length, _, chance = baselines(tmp_path)
    assert (length.name, chance.name) == (BASELINES[0], BASELINES[2])
    assert length.main("set", answers) == {"a": 2.0, "b": 1.0}
    assert chance.main("set", answers) == chance.main("set", answers)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('{"assistant": [1]}', "assistant: input should be an object"),
        ('{"assistant": {"a": "high"}}', "assistant.a: input should be a valid number"),
    ],
)
def test_a_file_of_folds_in_another_layout_is_refused(
    text: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    file = tmp_path / "folds.json"
    file.write_text(text, encoding="utf-8")
    with refused(f"{file}: {wrong}. Give scores by scorer and id."):
        write.main(["--scorer", "general", "--work", str(tmp_path), "--out-of-fold", str(file)])
