"""`dialeval meta-eval`: which difference of two evaluators would have been seen, plans, and what choosing is worth."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.refusals import refused

QUICK = ("--coefficient", "pearson", "--rounds", "200", "--permutations", "200")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Forty dialogues of three responses by three systems; two evaluators that agree alike with people, and one guesses."""
    draw = random.Random(0)
    monkeypatch.chdir(tmp_path)
    with Path("rated.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "dialogue", "item", "system", "one", "other", "guess", "rating"])
        for place in range(120):
            quality = draw.gauss(place % 3, 1)
            scores = [round(quality + draw.gauss(0, 1), 3) for _ in range(2)]
            dialogue = f"d{place // 3}"
            writer.writerow([place, dialogue, dialogue, "abc"[place % 3], *scores, draw.random(), round(quality)])
    return "rated.csv"


def test_evaluators_of_one_rank_say_which_difference_would_have_been_seen(table: str) -> None:
    done = run("meta-eval", table, "--rating-column", "rating", *QUICK, "--format", "json")
    rows = {row["evaluator"].removeprefix("rated:"): row for row in json.loads(done.stdout)["rows"]}
    assert {name: row["rank"] for name, row in rows.items()} == {"one": 1, "other": 1, "guess": 2}
    shown = {name: row["detectable"] for name, row in rows.items()}
    first, second = sorted(("one", "other"), key=lambda name: -rows[name]["value"])
    assert (shown[first], shown["guess"]) == (None, None)
    assert 0.05 < shown[second] < 0.25
    assert json.loads(done.stdout)["notes"][-1] == (
        "Detectable: no test tells the evaluator from the first one of its rank, and such rows would show a difference of so "
        "much four times in five."
    )


def test_a_plan_says_how_many_dialogues_show_which_difference(table: str) -> None:
    done = run("meta-eval", table, "--rating-column", "rating", *QUICK, "--plan", "0.05", "--format", "json")
    found = json.loads(done.stdout)
    rows = found["rows"]
    assert [row["dialogues"] for row in rows] == [20, 50, 100, 200, 500, 1000, 2000, 5000]
    assert {row["evaluators"] for row in rows} <= {"rated:one - rated:other", "rated:other - rated:one"}
    assert rows[2]["difference"] / rows[6]["difference"] == pytest.approx(20**0.5, rel=0.1)
    assert found["notes"][0].endswith("dialogues to be seen four times in five")
    with refused(
        "--plan: a plan needs a pilot of two evaluators on 10 dialogues that are rated. Give scores of two, and more rows."
    ):
        run("meta-eval", table, "--rating-column", "rating", "--column", "one", *QUICK, "--plan")
    with refused("--plan: needs scores, and there are none. Name a file of scores, or leave it out."):
        run("meta-eval", "--ratings", table, "--plan")


def test_choosing_by_scores_is_beside_the_coefficients(table: str) -> None:
    words = ("--rating-column", "rating", "--column", "one", *QUICK, "--average-by", "item", "--choices", "--format", "json")
    rows = {row["statistic"]: row for row in json.loads(run("meta-eval", table, *words).stdout)["rows"]}
    assert list(rows) == [
        "pearson",
        *("mean_of_all", "mean_of_best_10%", "mean_of_best_25%", "mean_of_best_50%"),
        *("random_choice", "highest_score", "best_choice", "regret"),
    ]
    assert rows["mean_of_all"]["value"] == pytest.approx(rows["random_choice"]["value"])
    assert rows["mean_of_all"]["value"] < rows["mean_of_best_50%"]["value"] < rows["mean_of_best_10%"]["value"]
    assert rows["regret"]["value"] == pytest.approx(rows["best_choice"]["value"] - rows["highest_score"]["value"])


def test_systems_are_compared_softly(table: str) -> None:
    words = ("--rating-column", "rating", "--coefficient", "soft_pairwise_accuracy", "--rounds", "100", "--permutations", "50")
    rows = json.loads(run("meta-eval", table, *words, "--by-system", "--format", "json").stdout)["rows"]
    found = {row["evaluator"].removeprefix("rated:"): row["value"] for row in rows}
    assert found["guess"] < 0.9 < min(found["one"], found["other"])
    with refused("soft_pairwise_accuracy: compares systems. Give level='system', which is --by-system."):
        run("meta-eval", table, *words)
