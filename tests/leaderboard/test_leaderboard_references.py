"""What columns are read beside: people among themselves, and what a task prints of trivial answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval_plugin.leaderboard.build import build
from dialeval_plugin.leaderboard.evidence import HALF_THE_PEOPLE, ONE_PERSON
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.ceiling import leave_one_rater_out, split_half
from tests.leaderboard_files import GUPTA, documents, noisy_scores, scorer_config, write_run


def test_people_are_compared_with_each_other_where_their_answers_are_known(tmp_path: Path) -> None:
    rows = documents(40)
    raters = [[row["rating"], min(5.0, row["rating"] + place % 2), 3.0 if place % 3 else 1.0] for place, row in enumerate(rows)]
    known = [{**row, "raters": answers} for row, answers in zip(rows, raters, strict=True)]
    tasks = {"dstc10_dialog_dgu": (known, noisy_scores(rows, 0.1)), "dstc10_dialog_dz": (rows, noisy_scores(rows, 0.1))}
    write_run(tmp_path, scorer_config("one"), tasks)
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


@pytest.mark.parametrize(
    ("task", "metrics", "coefficients", "quality", "references"),
    [
        pytest.param(
            "dbdc_yi",
            {"accuracy": 0.6, "f1_b": 0.4, "always_breakdown_f1_b": 0.5},
            ("accuracy", "f1_b"),
            None,
            {"every turn called a breakdown": 0.5},
            id="trivial answers",
        ),
        pytest.param(
            "cgdialog_preference_dream",
            {
                **{"relevance_cont2cat": 0.3, "relevance_cont2cat_floor": 0.2, "relevance_cont2cat_ceiling": 0.4},
                "empathy_cont2cat": 0.1,
            },
            ("cont2cat",),
            "relevance",
            {"coin flips": 0.2, "what most people said": 0.4},
            id="floor and ceiling of a criterion",
        ),
    ],
)
def test_what_a_task_prints_beside_a_figure_is_a_reference_of_its_column_and_no_coefficient(
    task: str,
    metrics: dict[str, float],
    coefficients: tuple[str, ...],
    quality: str | None,
    references: dict[str, float],
    tmp_path: Path,
) -> None:
    rows = documents(6)
    path = write_run(tmp_path, scorer_config("one"), {task: (rows, noisy_scores(rows, 0.1))}, samples=False)
    file = json.loads(path.read_text())
    file["results"][task] = {f"{name},none": value for name, value in {**metrics, "n_scored": 6, "n_unscored": 0}.items()}
    path.write_text(json.dumps(file))
    board = build([tmp_path]).board
    (column,) = (column for column in board.columns if quality in {None, column.quality})
    assert board.coefficients == coefficients
    assert board.reference_rows(coefficients[-1]) == {name: {column: value} for name, value in references.items()}
