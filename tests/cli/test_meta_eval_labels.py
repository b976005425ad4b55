"""`dialeval meta-eval` with labels in words: the table of label statistics instead of a refusal; numbers stay as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import run, write_rows
from tests.refusals import refused
from tests.results.test_agreement import judged


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "judged.csv"
    judged().to_csv(path, index=False)
    return path


def test_a_judge_beside_people(table: Path) -> None:
    done = run("meta-eval", table, "--column", "judge", "--disagreements", table.with_name("d.jsonl"), "--rounds", 100)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["evaluator", "statistic", "with", "a", "person", "two", "people", "rows", "conversations"]
    assert [line.split()[1] for line in lines[2:13]] == [
        *(
            "accuracy",
            "balanced_accuracy",
            "tpr",
            "tnr",
            "precision",
            "f1",
            "mcc",
            "kappa",
            "ac1",
            "constant_accuracy",
            "alpha",
        ),
    ]
    assert lines[-1] == f"disagreements: {table.with_name('d.jsonl')}"
    written = [json.loads(line) for line in table.with_name("d.jsonl").read_text().splitlines()]
    assert written[0]["strength"] == 1
    assert written[0].keys() == {"evaluator", "id", "conversation", "strength", "said", "people", "context", "response"}
    first = written[0]
    assert f"{first['id']}: judge says {first['said']}, people {', '.join(first['people'])}: {first['response']!r}" in lines


def test_an_evaluator_that_leaves_rows_out_is_withheld_and_fails_the_gate(tmp_path: Path) -> None:
    """For labels neither --min-coverage nor --max-unscored had an effect: 48 of 60 rows without a verdict, and 0."""
    rows = [
        {"id": f"c{n}:2", "judge": ("pass", "fail")[n % 2] if n % 5 else None, "label": ("pass", "fail")[n % 3 > 1]}
        for n in range(60)
    ]
    path = write_rows(tmp_path / "judged.jsonl", rows)
    done = run("meta-eval", path, "--rounds", 0, "--format", "json", "--min-coverage", 0.9)
    found = json.loads(done.stdout)
    assert done.exit_code == 1
    assert done.stderr == "judge: 12 of 60 rows have no score, more than --max-unscored 0.05 allows\n"
    assert {row["value"] for row in found["rows"]} == {None}
    assert "judge: withheld: 48 of 60 labelled rows have a score." in found["notes"]
    allowed = run("meta-eval", path, "--rounds", 0, "--format", "json", "--max-unscored", 0.2)
    assert allowed.exit_code == 0
    assert {row["statistic"]: row["value"] for row in json.loads(allowed.stdout)["rows"]}["accuracy"] == 0.5


def test_two_evaluators_and_a_cost_as_json(table: Path) -> None:
    words = ("--column", "judge", "--column", "score", "--cost", 3, 1, "--rounds", 0, "--format", "json")
    found = json.loads(run("meta-eval", table, *words).stdout)
    values = {(row["evaluator"], row["statistic"]): row["value"] for row in found["rows"]}
    assert {evaluator for evaluator, _ in values} == {"judge", "judged"}
    assert 0.5 < values["judged", "auroc"] < 1
    assert values["judge", "kappa"] > values["judged", "kappa"]
    assert "where a false pass costs 3 and a false fail 1" in "".join(found["notes"])


def test_people_alone(table: Path) -> None:
    rows = json.loads(run("meta-eval", "--ratings", table, "--rounds", 0, "--format", "json").stdout)["rows"]
    assert {row["statistic"] for row in rows} >= {"kappa", "alpha", "ac1"}
    assert all(row["value"] is None and row["people_value"] is not None for row in rows)


def test_numbers_stay_numbers_beside_a_column_of_words(tmp_path: Path) -> None:
    rows = [{"id": str(row), "rating": row % 5 + 1, "language": "en" if row % 2 else "de"} for row in range(12)]
    ratings = write_rows(tmp_path / "r.jsonl", rows)
    scores = write_rows(tmp_path / "s.jsonl", [{"id": str(row), "score": row} for row in range(12)])
    done = run("meta-eval", scores, "--ratings", ratings, "--rounds", 0, "--format", "json")
    assert {row["statistic"] for row in json.loads(done.stdout)["rows"]} == {"pearson", "spearman", "kendall_b"}
    with refused("--cost: needs labels in words, and these are numbers. Leave it out, or give their --order."):
        run("meta-eval", scores, "--ratings", ratings, "--cost", 1, 2)


def test_an_order_makes_numbers_labels(tmp_path: Path) -> None:
    ratings = write_rows(
        tmp_path / "r.jsonl", [{"id": str(row), "ratings": [row % 5 + 1, (row + 1) % 5 + 1]} for row in range(30)]
    )
    scores = write_rows(tmp_path / "s.jsonl", [{"id": str(row), "score": row % 5 + 1} for row in range(30)])
    done = run("meta-eval", scores, "--ratings", ratings, "--order", "1,2,3,4,5", "--rounds", 0, "--format", "json")
    values = {row["statistic"]: row["value"] for row in json.loads(done.stdout)["rows"]}
    assert values["accuracy"] == 0.5
    assert 0 < values["linear_kappa"] < 1


def test_an_option_of_numbers_is_refused_with_words(table: Path) -> None:
    with refused("--human median: needs numeric ratings. Leave it out, so that each label counts, or use majority."):
        run("meta-eval", table, "--column", "judge", "--human", "median")


def test_the_alternative_annotator_test_stands_below(table: Path) -> None:
    found = json.loads(
        run("meta-eval", table, "--column", "judge", "--alt-test", 0.2, "--rounds", 0, "--format", "json").stdout
    )
    assert found["alternative_annotator_tests"][0]["evaluator"] == "judge"
    with refused("--people: needs numeric ratings, not labels. Leave it out."):
        run("meta-eval", table, "--column", "judge", "--people")
