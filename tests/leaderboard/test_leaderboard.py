"""The leaderboard as data: places, means with what is missing, and its files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from dialeval_plugin.core.files import to_json
from dialeval_plugin.leaderboard.board import Cell, Column, Cost, Figure, Leaderboard, PairTests, Reference
from tests.refusals import refused

GUPTA, ZHAO = Column("gupta", "turn", "overall"), Column("zhao", "turn", "content")


def cell(evaluator: str, column: Column, value: float | None, **fields: object) -> Cell:
    figure = Figure(value=value, ci_low=None if value is None else value - 0.1, ci_high=None if value is None else value + 0.1)
    defaults: dict[str, object] = {"n_scored": 9, "n_total": 10, "signature": f"method:{evaluator}", "date": "2026-05-01"}
    return Cell(evaluator=evaluator, column=column, figures={"spearman": figure}, **{**defaults, **fields})  # type: ignore[arg-type]


def board() -> Leaderboard:
    undefined = Figure(value=None, reason="undefined (all 10 scores are 1.0)")
    weak = cell("weak", GUPTA, 0.1), cell("weak", ZHAO, 0.2, cost=Cost(seconds=3.5, n_requests=40))
    flat = replace(cell("flat", ZHAO, None), figures={"spearman": undefined})
    return Leaderboard((*weak, cell("strong", GUPTA, 0.6, n_scored=10, is_partial=True), flat))


def test_a_missing_or_undefined_cell_is_in_no_mean_and_is_counted() -> None:
    assert board().means("spearman") == {"weak": (pytest.approx(0.15), 2, 0), "strong": (0.6, 1, 1), "flat": (None, 0, 2)}
    assert board().cell("strong", ZHAO) is None


def test_an_empty_leaderboard_has_no_columns() -> None:
    assert Leaderboard(()).columns == ()


def test_evaluators_stand_in_the_order_of_their_means_the_best_first_and_those_without_one_last() -> None:
    assert board().evaluators == ("strong", "weak", "flat")
    figures = {name: {"jsd": Figure(value=value, higher_is_better=False)} for name, value in (("far", 0.9), ("near", 0.1))}
    cells = [replace(cell(name, GUPTA, None), figures=found) for name, found in figures.items()]
    assert Leaderboard(tuple(cells)).evaluators == ("near", "far")


def with_references() -> Leaderboard:
    references = (
        Reference(name="one person", column=GUPTA, coefficient="spearman", value=0.7),
        Reference(name="one person", column=ZHAO, coefficient="kendall", value=0.5),
    )
    tests = PairTests(column=GUPTA, coefficient="spearman", n_rows=10, n_dialogues=5, n_pairs=1, n_different=0, n_rounds=1000)
    return Leaderboard(board().cells, references, (tests,))


def test_several_qualities_of_one_set_count_once_in_the_mean() -> None:
    cells = (cell("a", GUPTA, 0.1), cell("a", Column("gupta", "turn", "fluent"), 0.3), cell("a", ZHAO, 0.6))
    whole = cell("a", Column("gupta", "dialogue", "overall"), 0.8)
    assert Leaderboard(cells).means("spearman")["a"] == (pytest.approx(0.4), 2, 0)
    assert Leaderboard((*cells, whole)).means("spearman")["a"] == (pytest.approx((0.2 + 0.6 + 0.8) / 3), 3, 0)


def test_references_are_no_evaluators_but_stand_in_every_file() -> None:
    found = with_references()
    assert found.evaluators == board().evaluators
    assert found.reference_rows("spearman") == {"one person": {GUPTA: 0.7}}
    assert found.reference_means("spearman") == {"one person": (0.7, 1, 1)}
    assert found.to_markdown().splitlines()[-1] == "| *one person* | 0.700 (1 of 2) | 0.700 |  |"
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    told = [(row["kind"], row["evaluator"], row["dataset"], row["value"]) for row in rows[-2:]]
    assert told == [("reference", "one person", name, value) for name, value in (("gupta", "0.7"), ("zhao", "0.5"))]
    assert (found.tests_of(GUPTA), found.tests_of(ZHAO)) == (found.tests[0], None)
    assert (found.n_rows(GUPTA), found.n_rows(Column("none", "", ""))) == (10, 0)


@pytest.mark.parametrize("made", [board, with_references])
def test_json_comes_back_as_it_was(made: Callable[[], Leaderboard]) -> None:
    text = to_json(made().to_dict())
    assert Leaderboard.from_dict(json.loads(text)) == made()


def test_json_of_another_schema_version_or_without_a_field_is_refused() -> None:
    data = board().to_dict()
    del data["cells"][1]["figures"]
    for given, problem in (
        ({"schema_version": 7}, "schema_version is 7, this release reads 1."),
        (data, "cells.1.figures: field required."),
    ):
        with refused(f"board.json: {problem} Build the leaderboard again from its result files."):
            Leaderboard.from_dict(given, where="board.json")


def test_two_cells_for_one_place_are_refused_by_name() -> None:
    files = "from 'one.json' and 'two.json'. Leave one of the files out."
    with refused(f"leaderboard: 'a' has two cells for gupta (overall, turn level), {files}"):
        Leaderboard((cell("a", GUPTA, 0.1, source="one.json"), cell("a", GUPTA, 0.2, source="two.json")))


def test_csv_has_one_line_for_each_figure_and_leaves_unknown_empty() -> None:
    rows = list(csv.DictReader(io.StringIO(board().to_csv())))
    told = [(row["evaluator"], row["dataset"], row["value"]) for row in rows]
    assert told == [("weak", "gupta", "0.1"), ("weak", "zhao", "0.2"), ("strong", "gupta", "0.6"), ("flat", "zhao", "")]
    assert (rows[0]["seconds"], rows[1]["seconds"], rows[1]["n_requests"]) == ("", "3.5", "40")
    assert rows[3]["reason"] == "undefined (all 10 scores are 1.0)"


def test_markdown_states_coverage_and_escapes_what_would_break_the_table() -> None:
    odd = Leaderboard((cell("a|b\n<i>", GUPTA, 0.25),))
    assert odd.to_markdown() == (
        "| evaluator | mean spearman (data sets) | gupta (overall, turn level) |\n"
        "| --- | --- | --- |\n"
        "| a\\|b &lt;i> | 0.250 (1 of 1) | 0.250 [0.150, 0.350] (9 of 10 scored) |\n"
    )


def test_ranks_are_set_by_place_and_coefficient() -> None:
    ranked = board().with_ranks({("weak", GUPTA, "spearman"): 2})
    ranks = [ranked.figure(name, GUPTA, "spearman") for name in ("weak", "strong", "flat")]
    assert [figure and figure.rank for figure in ranks] == [2, None, None]
