"""What columns are read beside: people among themselves, and what a task prints of trivial answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval_plugin.leaderboard.board import Column
from dialeval_plugin.leaderboard.build import build
from dialeval_plugin.leaderboard.references import HALF_THE_PEOPLE, ONE_PERSON
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.ceiling import leave_one_rater_out, split_half
from tests.leaderboard_files import documents, noisy_scores, write_run

GUPTA = Column("dailydialog-gupta", "turn", "overall")
CONFIG = {"model": "dialogue-metric", "model_args": {"scorer": "one"}, "scorer": "one"}


def test_people_are_compared_with_each_other_where_their_answers_are_known(tmp_path: Path) -> None:
    rows = documents(40)
    raters = [[row["rating"], min(5.0, row["rating"] + place % 2), 3.0 if place % 3 else 1.0] for place, row in enumerate(rows)]
    known = [{**row, "raters": answers} for row, answers in zip(rows, raters, strict=True)]
    tasks = {"dstc10_dialog_dgu": (known, noisy_scores(rows, 0.1)), "dstc10_dialog_dz": (rows, noisy_scores(rows, 0.1))}
    write_run(tmp_path, CONFIG, tasks)
    board = build([tmp_path]).board
    bootstrap = Bootstrap(rounds=0)
    for name, coefficient in (("spearman", "spearman"), ("pearson", "pearson"), ("kendall", "kendall_b")):
        found = board.reference_rows(name)
        assert {reference: list(values) for reference, values in found.items()} == {
            ONE_PERSON: [GUPTA],
            HALF_THE_PEOPLE: [GUPTA],
        }
        one = leave_one_rater_out(raters, coefficient=coefficient, bootstrap=bootstrap).value
        half = split_half(raters, coefficient=coefficient, bootstrap=bootstrap).value
        assert (found[ONE_PERSON][GUPTA], found[HALF_THE_PEOPLE][GUPTA]) == (pytest.approx(one), pytest.approx(half))


def test_what_trivial_answers_earn_is_a_reference_and_no_coefficient_of_its_own(tmp_path: Path) -> None:
    rows = documents(6)
    path = write_run(tmp_path, CONFIG, {"dbdc_yi": (rows, noisy_scores(rows, 0.1))}, samples=False)
    file = json.loads(path.read_text())
    values = {"accuracy": 0.6, "f1_b": 0.4, "always_breakdown_f1_b": 0.5, "n_scored": 6, "n_unscored": 0}
    file["results"]["dbdc_yi"] = {f"{name},none": value for name, value in values.items()}
    path.write_text(json.dumps(file))
    board = build([tmp_path]).board
    assert board.coefficients == ("accuracy", "f1_b")
    assert board.reference_rows("f1_b") == {"every turn called a breakdown": {board.columns[0]: 0.5}}


def test_floor_and_ceiling_of_a_criterion_are_references_of_its_column(tmp_path: Path) -> None:
    rows = documents(6)
    path = write_run(tmp_path, CONFIG, {"cgdialog_preference_dream": (rows, noisy_scores(rows, 0.1))}, samples=False)
    file = json.loads(path.read_text())
    names = {"relevance_cont2cat": 0.3, "relevance_cont2cat_floor": 0.2, "relevance_cont2cat_ceiling": 0.4}
    values = {**names, "empathy_cont2cat": 0.1, "n_scored": 6, "n_unscored": 0}
    file["results"]["cgdialog_preference_dream"] = {f"{name},none": value for name, value in values.items()}
    path.write_text(json.dumps(file))
    board = build([tmp_path]).board
    (relevance,) = (column for column in board.columns if column.quality == "relevance")
    assert board.coefficients == ("cont2cat",)
    assert board.reference_rows("cont2cat") == {"coin flips": {relevance: 0.2}, "what most people said": {relevance: 0.4}}
