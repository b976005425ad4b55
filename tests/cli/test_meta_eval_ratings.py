"""`dialeval meta-eval` without scores: whether the ratings can judge anything. Issue J."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.running import run, write_rows
from tests.refusals import refused

N = 80


def ratings_of(n_raters: int = 3) -> list[dict[str, Any]]:
    """Two responses to each of forty contexts: of "good" the raters see the same, of "drawn" each sees something else."""
    generator = np.random.default_rng(2)
    good, noise = generator.normal(size=N), generator.normal(size=(2, N, n_raters))
    return [
        {
            "id": str(row),
            "ratings": {"good": (good[row] + 0.5 * noise[0, row]).tolist(), "drawn": noise[1, row].tolist()},
            "dialogue": f"d{row // 2}",
        }
        for row in range(N)
    ]


def shown(*words: object) -> dict[str, Any]:
    done = run("meta-eval", *words, "--format", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    whole: dict[str, Any] = json.loads(done.stdout)
    return whole


def test_a_conversation_is_what_ids_begin_with_as_for_labels(tmp_path: Path) -> None:
    ids = [f"chat{row // 2}:{row % 2}" for row in range(N)]
    scores = write_rows(tmp_path / "s.jsonl", [{"id": id, "score": row % 7} for row, id in enumerate(ids)])
    named = [{"id": id, "rating": row % 5 + 1} for row, id in enumerate(ids)]
    whole = [{**row, "dialogue": row["id"].partition(":")[0]} for row in named]
    found, expected = (
        shown(scores, "--ratings", write_rows(tmp_path / f"{name}.jsonl", rows), "--coefficient", "pearson")["rows"][0]
        for name, rows in (("named", named), ("whole", whole))
    )
    assert found["n_clusters"] == N // 2
    assert (found["ci_low"], found["ci_high"]) == (expected["ci_low"], expected["ci_high"])


def test_each_quality_has_its_reliability_ceiling_and_agreement(tmp_path: Path) -> None:
    found = shown("--ratings", write_rows(tmp_path / "r.jsonl", ratings_of()), "--rounds", "200")
    good, drawn = found["rows"]
    assert [good["quality"], drawn["quality"]] == ["good", "drawn"]
    # Variance 1 between responses and 0.25 within: 0.8 of a single rating's.
    assert good["reliability_of_one"] == pytest.approx(0.8, abs=0.08)
    assert good["ceiling_of_mean"] == pytest.approx((3 * 0.8 / 2.6) ** 0.5, abs=0.03)
    assert good["ceiling_of_mean_ci_low"] < good["ceiling_of_mean"] < good["ceiling_of_mean_ci_high"]
    assert (drawn["ceiling_of_one_ci_low"], drawn["ceiling_of_mean_ci_low"]) == (0, 0)
    assert drawn["ceiling_of_mean_ci_high"] > 0
    assert good["quality_agreement"] == drawn["quality_agreement"]
    assert good["quality_agreement_ci_low"] < 0.5 < good["quality_agreement_ci_high"]
    assert {name: good[name] for name in ("level", "n_raters", "n_quality_pairs", "n_repeated", "n_repeated_apart")} == {
        "level": "turn",
        "n_raters": 3,
        "n_quality_pairs": N // 2,
        "n_repeated": None,
        "n_repeated_apart": None,
    }
    assert (good["n_total"], good["n_rated"], good["n_clusters"], good["reason"]) == (N, N, N // 2, None)
    assert {name: found[name] for name in ("rounds", "confidence", "interval", "seed")} == {
        "rounds": 200,
        "confidence": 0.95,
        "interval": "expanded",
        "seed": 0,
    }


def test_an_interval_that_includes_0_is_said_in_words(tmp_path: Path) -> None:
    found = shown("--ratings", write_rows(tmp_path / "r.jsonl", ratings_of()), "--rounds", "200")
    _good, note, _drawn = found["notes"]
    high = found["rows"][1]["ceiling_of_mean_ci_high"]
    assert note == (
        "drawn: nothing shows that these ratings judge anything: the interval of their mean's ceiling, "
        f"0.000 to {high:.3f}, includes 0. Have more rated, by more raters each."
    )


@pytest.mark.long
def test_a_ceiling_that_is_surely_low_is_said_in_words(tmp_path: Path) -> None:
    """A fortieth of the variance is the response's: the root of 2 / 41 is 0.22."""
    generator = np.random.default_rng(1)
    ratings = generator.normal(size=(20_000, 1)) + 39**0.5 * generator.normal(size=(20_000, 2))
    rows = [{"id": str(row), "rating": of} for row, of in enumerate(ratings.tolist())]
    words = ("--ratings", write_rows(tmp_path / "r.jsonl", rows), "--rounds", "100")
    found = shown(*words)
    high = found["rows"][0]["ceiling_of_mean_ci_high"]
    assert found["notes"].pop(1).startswith("rating: variance of one rating: 3 % between responses, 97 % left over.")
    assert found["notes"] == [
        f"rating: no metric can be expected to correlate above {high:.3f} with these ratings.",
        "No file says which rows belong to one dialogue: intervals resample single rows and may be too narrow.",
    ]
    write_rows(tmp_path / "s.jsonl", [{"id": row["id"], "score": float(row["id"])} for row in rows])
    (beside,) = shown(tmp_path / "s.jsonl", *words, "--coefficient", "pearson", "--rounds", "0")["rows"]
    assert beside["pearson_ceiling"] == found["rows"][0]["ceiling_of_mean"]
    text = run("meta-eval", tmp_path / "s.jsonl", *words, "--coefficient", "pearson", "--rounds", "0").stdout
    assert (
        f"rating: no metric can be expected to have a Pearson correlation above {beside['pearson_ceiling']:.3f} "
        "with these ratings (dialeval meta-eval --ratings, without scores, has the interval).\n"
    ) in text


def test_a_mean_of_raters_says_why_nothing_is_computed(tmp_path: Path) -> None:
    rows = [{"id": str(row), "rating": row % 3} for row in range(12)]
    write_rows(tmp_path / "r.jsonl", rows)
    done = run("meta-eval", "--ratings", tmp_path / "r.jsonl", "--rounds", "0")
    assert done.stdout == (
        "level  quality  raters  rated  clusters\n"
        "-----  -------  ------  -----  --------\n"
        "turn   rating            0/12         0\n"
        "\n"
        "rating: intraclass_correlation: 0 of 12 rows have 2 ratings or more. "
        "Give the single ratings of two rows or more, not their mean.\n"
    )


def test_the_same_response_with_opposite_ratings_is_counted(tmp_path: Path) -> None:
    rows = [
        {"dialogue_id": str(row), "context": "a\nb", "response": text, "model": "m", "annotations": {"Overall": ratings}}
        for row, (text, ratings) in enumerate([("yes", [5, 5]), ("yes ", [1, 1]), ("no", [2, 3]), ("no", [3, 3])])
    ]
    (tmp_path / "x_eval.json").write_text(json.dumps(rows))
    done = run("meta-eval", "--ratings", tmp_path / "x_eval.json", "--rounds", "0")
    (head, _, line, *_) = done.stdout.splitlines()
    assert "same text, apart" in head
    assert " 1/2 " in line


def test_of_few_dialogues_an_interval_is_marked_rough(tmp_path: Path) -> None:
    words = ("--ratings", write_rows(tmp_path / "r.jsonl", ratings_of()[:24]), "--rounds", "50")
    found = shown(*words)
    assert {name: row[f"{name}_is_rough"] for row in found["rows"] for name in ("ceiling_of_mean", "quality_agreement")} == {
        "ceiling_of_mean": True,
        "quality_agreement": True,
    }
    assert found["notes"][-1] == "Rough: an interval of fewer than 30 clusters contains the true value less often than stated."
    assert ", rough]" in run("meta-eval", *words).stdout


def test_qualities_and_levels_are_chosen(tmp_path: Path) -> None:
    rated = write_rows(tmp_path / "r.jsonl", ratings_of())
    words = ("--ratings", rated, "--rounds", "0")
    whole = shown(*words)["rows"]
    assert shown(*words, "--quality", "all")["rows"] == whole
    # Its agreement is with the other quality all the same.
    assert shown(*words, "--quality", "drawn")["rows"] == whole[1:]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--ratings", "none.jsonl"), "meta-eval: nothing is rated there. Name a file that has ratings with --ratings."),
        ((), "meta-eval: there are neither scores nor ratings. Name a file of scores, or one by --ratings."),
        (("--ratings", "r.jsonl", "--quality", "style"), "--quality 'style': is not rated. There are: good, drawn."),
        (
            ("--ratings", "r.jsonl", "--rows", "dialogue"),
            "r.jsonl: has no ratings at dialogue level, only at turn level. Change --rows.",
        ),
        *(
            (
                ("--ratings", "r.jsonl", *option),
                f"{option[0]}: needs scores, and there are none. Name a file of scores, or leave it out.",
            )
            for option in (("--column", "s"), ("--rating-column", "s"), ("--lower", "s"), ("--partial",), ("--threshold", "1"))
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "r.jsonl", ratings_of())
    write_rows(tmp_path / "none.jsonl", [{"id": "a", "ratings": {}}])
    with refused(message):
        run("meta-eval", *words)
