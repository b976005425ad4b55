"""`dialeval meta-eval` with people as rows, and the alternative annotator test below its table. Issue 47."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.running import run, write_rows
from tests.refusals import refused

N = 80
PEOPLE = ("ann", "bob", "eve")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eighty responses in forty dialogues, rated by three people, bob without every tenth; one evaluator knows, one guesses."""
    generator = np.random.default_rng(1)
    truth = generator.integers(1, 6, size=N)
    labels = np.clip(truth[:, None] + generator.integers(-1, 2, size=(N, 3)), 1, 5)
    rows = [
        {"id": str(row), "dialogue": f"d{row // 2}", "rater": name, "rating": int(labels[row, place])}
        for row in range(N)
        for place, name in enumerate(PEOPLE)
        if name != "bob" or row % 10
    ]
    write_rows(tmp_path / "labels.jsonl", rows)
    write_rows(
        tmp_path / "lists.jsonl",
        [{"id": str(row), "dialogue": f"d{row // 2}", "ratings": labels[row].tolist()} for row in range(N)],
    )
    write_rows(tmp_path / "knows.jsonl", [{"id": str(row), "score": int(truth[row])} for row in range(N)])
    guesses = generator.permutation(truth)
    write_rows(tmp_path / "guesses.jsonl", [{"id": str(row), "score": int(guesses[row])} for row in range(N)])
    return tmp_path


def shown(folder: Path, *words: object, ratings: str = "labels.jsonl") -> dict[str, Any]:
    scores = [folder / "knows.jsonl", folder / "guesses.jsonl"]
    options = ["--ratings", folder / ratings, "--coefficient", "pearson", "--rounds", 200, "--permutations", 200]
    done = run("meta-eval", *scores, *options, "--format", "json", *words)
    assert (done.exit_code, done.stderr) == (0, "")
    whole: dict[str, Any] = json.loads(done.stdout)
    return whole


def test_one_person_is_the_same_person_in_rows_that_another_left_out(folder: Path) -> None:
    given = [json.loads(line) for line in (folder / "labels.jsonl").read_text(encoding="utf-8").splitlines()]
    labels = np.full((N, 3), np.nan)
    for row in given:
        labels[int(row["id"]), PEOPLE.index(row["rater"])] = row["rating"]
    expected = []
    for place in range(3):
        others, own = np.nanmean(np.delete(labels, place, axis=1), axis=1), labels[:, place]
        expected.append(np.corrcoef(own[~np.isnan(own)], others[~np.isnan(own)])[0, 1])
    found = [row["people_leave_one_out"] for row in shown(folder)["rows"]]
    assert found == [pytest.approx(np.mean(expected))] * 2


def test_the_verdict_stands_below_the_table(folder: Path) -> None:
    found = shown(folder, "--alt-test", "0.2")
    knows, guesses = found["alternative_annotator_tests"]
    assert {one["rater"]: one["n_rows"] for one in knows["comparisons"]} == {"ann": 80, "bob": 72, "eve": 80}
    assert (knows["passes"], guesses["passes"]) == (True, False)
    assert found["notes"][-2:] == [knows["verdict"], guesses["verdict"]]
    assert knows["verdict"].startswith("May knows stand in for a person: yes. It matches 3 of 3 raters (winning rate 1.00 at")
    text = run("meta-eval", folder / "knows.jsonl", "--ratings", folder / "labels.jsonl", "--alt-test", "0.2").stdout
    assert text.splitlines()[-1].startswith("May knows stand in for a person: yes.")


def test_places_in_lists_are_called_so(folder: Path) -> None:
    found = shown(folder, "--alt-test", "0.2", "--people", ratings="lists.jsonl")
    assert [one["rater"] for one in found["alternative_annotator_tests"][0]["comparisons"]] == ["place 1", "place 2", "place 3"]
    assert found["notes"][-1].startswith("The file does not say who gave which label: a rater here is a place in its lists,")
    assert {row["evaluator"] for row in found["rows"]} == {"knows", "guesses", *(f"place {n} (people)" for n in (1, 2, 3))}


def test_people_are_rows_of_the_ranking(folder: Path) -> None:
    found = shown(folder, "--people")
    rows = {row["evaluator"]: row for row in found["rows"]}
    assert next(iter(rows)) == "knows"
    assert set(rows) == {"knows", "guesses", *(f"{name} (person)" for name in PEOPLE)}
    assert (rows["knows"]["rank"], rows["knows"]["p_value"], rows["guesses"]["rank"]) == (
        1,
        None,
        max(r["rank"] for r in found["rows"]),
    )
    assert rows["guesses"]["p_value"] < 0.05
    assert rows["bob (person)"]["n_scored"] == 72
    # By hand: ann with the mean of the others, and the evaluator with the same means, averaged over the people.
    by_id: dict[str, dict[str, float]] = {}
    for line in (folder / "labels.jsonl").read_text().splitlines():
        row = json.loads(line)
        by_id.setdefault(row["id"], {})[row["rater"]] = row["rating"]
    truth = {(row := json.loads(line))["id"]: row["score"] for line in (folder / "knows.jsonl").read_text().splitlines()}
    of_people, of_knows = {}, []
    for name in PEOPLE:
        kept = [id for id, given in by_id.items() if name in given]
        others = [np.mean([value for rater, value in by_id[id].items() if rater != name]) for id in kept]
        of_people[f"{name} (person)"] = np.corrcoef([by_id[id][name] for id in kept], others)[0, 1]
        of_knows.append(np.corrcoef([truth[id] for id in kept], others)[0, 1])
    assert {name: rows[name]["value"] for name in of_people} == pytest.approx(of_people, abs=1e-12)
    assert rows["knows"]["value"] == pytest.approx(np.mean(of_knows), abs=1e-12)
    assert found["notes"][0].startswith(
        "People: each is compared with the mean of the others on the rows that this person rated,"
    )


def test_the_share_of_the_ceiling_stands_beside_it(folder: Path) -> None:
    (knows, guesses) = shown(folder)["rows"]
    assert 0.9 < knows["share_of_ceiling"] < 1.1
    assert knows["share_of_ceiling"] == pytest.approx(knows["value"] / knows["pearson_ceiling"], rel=0.02)
    assert guesses["share_of_ceiling_ci_low"] < 0 < guesses["share_of_ceiling_ci_high"]


def test_the_ratings_alone_say_what_more_raters_are_worth(folder: Path) -> None:
    done = run("meta-eval", "--ratings", folder / "labels.jsonl", "--format", "json")
    found = json.loads(done.stdout)
    (row,) = found["rows"]
    of = {name: row[f"variance_{name}"] for name in ("systems", "conversations", "responses", "raters", "residual")}
    assert (of["systems"], of["raters"] < 0.1) == (None, True)
    assert of["residual"] == pytest.approx(0.6, abs=0.15)
    assert row["variance_residual_ci_low"] < of["residual"] < row["variance_residual_ci_high"]
    total = sum(value or 0 for value in of.values())
    true, error = of["conversations"] + of["responses"], of["raters"] + of["residual"]
    n = 80 / (72 / 3 + 8 / 2)
    now, then = ((of["responses"] + of["residual"] / k) / 2 + of["conversations"] for k in (n, n + 3))
    share = {name: f"{100 * (value or 0) / total:.0f} %" for name, value in of.items()}
    reliable = ", ".join(f"{true / (true + error / k):.2f} of {k}" for k in (1, 3, 5, 10))
    assert found["notes"] == [
        f"rating: variance of one rating: {share['conversations']} between conversations, {share['responses']} between "
        f"responses, {share['raters']} between raters, {share['residual']} left over. Reliability of the mean of raters: "
        f"{reliable}. 3 more raters of each response (now {n:.1f}) are worth {40 * (now / then - 1):.0f} more conversations "
        f"(now 40): the standard error of the mean becomes {(then / 40) ** 0.5:.3f} instead of {(now / 40) ** 0.5:.3f}."
    ]


def test_what_goes_with_the_options(folder: Path) -> None:
    scores, ratings = folder / "knows.jsonl", ["--ratings", folder / "labels.jsonl"]
    with refused("--calibrate: needs --alt-test. Add --alt-test 0.2, or leave it out."):
        run("meta-eval", scores, *ratings, "--calibrate", "none")
    with refused("--people: compares people with evaluators row by row. Leave out --by-system, --average-by and --within."):
        run("meta-eval", scores, *ratings, "--people", "--within", "1", "5")
    with refused("--alt-test: needs scores, and there are none. Name a file of scores, or leave it out."):
        run("meta-eval", *ratings, "--alt-test", "0.1")
    few = write_rows(folder / "few.jsonl", [{"id": str(row), "ratings": [1, 2, 1]} for row in range(9)])
    beside = write_rows(folder / "nine.jsonl", [{"id": str(row), "score": 1} for row in range(9)])
    with refused(
        "few: 0 people rated 30 rows of 'rating' or more that others rated too. "
        "Leave out --people, or have two people rate as many."
    ):
        run("meta-eval", beside, "--ratings", few, "--people")
