"""The leaderboard as data: places, means with what is missing, and its files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from dialeval_plugin.core.files import to_json
from dialeval_plugin.leaderboard.board import (
    Cell,
    Column,
    Cost,
    DataSet,
    Figure,
    Identity,
    Leaderboard,
    PairTests,
    RatedSet,
    Reference,
)
from dialeval_plugin.statistics.estimates import ValueInterval
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


def ranked(found: Leaderboard, *sets: RatedSet) -> dict[str, float | None]:
    """Evaluators with their means, in order."""
    return {name: mean.value for name, mean in found.ranking("spearman", sets or None).means.items()}


def whole(values: dict[str, dict[Column, float]]) -> Leaderboard:
    """A leaderboard of complete runs."""
    return Leaderboard(tuple(cell(name, column, value) for name, of in values.items() for column, value in of.items()))


def test_a_run_that_lacks_a_set_has_no_value_in_it_or_ran_a_part_of_it_is_not_ranked() -> None:
    found = board()
    assert ranked(found, GUPTA.rated_set, ZHAO.rated_set) == {"weak": pytest.approx(0.15)}
    assert found.ranking("spearman").unranked == ("flat", "strong")
    # Its 0.6 is of a part of the set: not even where that set alone counts.
    assert ranked(found, GUPTA.rated_set) == {"weak": 0.1}
    assert found.cell("strong", ZHAO) is None


def test_evaluators_are_ranked_on_common_sets_and_not_by_a_mean_over_fewer() -> None:
    """TRIAL 9: what had only the easy sets stood on top."""
    easy, hard = Column("easy", "turn", ""), Column("hard", "turn", "")
    found = whole({"reads references": {easy: 0.7}, "good": {easy: 0.6, hard: 0.5}, "fair": {easy: 0.5, hard: 0.4}})
    assert found.common_sets("spearman") == (easy.rated_set, hard.rated_set)
    assert ranked(found) == {"good": pytest.approx(0.55), "fair": pytest.approx(0.45)}
    assert found.ranking("spearman").unranked == ("reads references",)
    assert ranked(found, easy.rated_set) == {"reads references": 0.7, "good": 0.6, "fair": 0.5}
    assert found.evaluators == ("good", "fair", "reads references")


def test_the_common_sets_leave_the_most_evaluators_times_sets() -> None:
    columns = [Column(name, "turn", "") for name in "abcd"]
    many = {str(number): dict.fromkeys(columns[:2], 0.1) for number in range(5)}
    # Five evaluators on two sets are more than one on four.
    assert [one.dataset for one in whole({**many, "all": dict.fromkeys(columns, 0.2)}).common_sets("spearman")] == ["a", "b"]
    few = {"1": dict.fromkeys(columns[:2], 0.1), "2": dict.fromkeys(columns, 0.1), "3": dict.fromkeys(columns, 0.2)}
    assert len(whole(few).common_sets("spearman")) == 4
    partial = Leaderboard((cell("a", GUPTA, 0.5, is_partial=True),))
    assert partial.common_sets("spearman") == (GUPTA.rated_set,)
    assert (ranked(partial), partial.ranking("spearman").unranked) == ({}, ("a",))


def test_the_interval_of_a_mean_takes_sets_for_independent_and_qualities_of_one_for_alike() -> None:
    cells = (cell("a", GUPTA, 0.1), cell("a", Column("gupta", "turn", "fluent"), 0.3), cell("a", ZHAO, 0.6))
    found = Leaderboard(cells).ranking("spearman").means["a"]
    # Widths are 0.2: of the two qualities together 0.2 as well, and of the two sets 0.2 over the root of 2.
    half = 0.1 / 2**0.5
    assert found == pytest.approx((0.4, 0.4 - half, 0.4 + half))
    bare = Leaderboard((replace(cells[0], figures={"spearman": Figure(value=0.1)}), *cells[1:]))
    assert bare.ranking("spearman").means["a"] == ValueInterval(pytest.approx(0.4))


def test_an_empty_leaderboard_has_no_columns() -> None:
    assert Leaderboard(()).columns == ()


def test_where_lower_is_better_the_lowest_mean_is_first() -> None:
    figures = {name: {"jsd": Figure(value=value, higher_is_better=False)} for name, value in (("far", 0.9), ("near", 0.1))}
    cells = [replace(cell(name, GUPTA, None), figures=found) for name, found in figures.items()]
    assert Leaderboard(tuple(cells)).evaluators == ("near", "far")


def test_why_a_value_is_missing_is_said_in_words() -> None:
    """TRIAL 20: "undefined" said neither that a scorer reads references nor that it scores turns only."""
    talk = Column("talk", "dialogue", "overall")
    reader = cell("reader", GUPTA, 0.4)
    refused = replace(cell("tried", talk, None, n_scored=0), unscored={"empty_input": 9, "scores_turns_only": 1})
    silent = replace(cell("silent", GUPTA, None, n_scored=0), unscored={"parse_failure": 10})
    found = Leaderboard(
        (reader, cell("other", ZHAO, 0.2), cell("whole", talk, 0.5), refused, silent, cell("flat", ZHAO, None)),
        identities={
            "reader": Identity(reads_references=True, level="turn"),
            "other": Identity(reads_references=False, level="turn"),
            "whole": Identity(level="dialogue"),
        },
        data_sets={"gupta": DataSet(title="Gupta", has_references=True), "zhao": DataSet(title="Zhao", has_references=False)},
    )
    words = {
        (name, column.dataset): found.why_missing(name, column, "spearman")
        for name, column in (
            *(("reader", ZHAO), ("reader", talk), ("other", GUPTA), ("other", talk), ("whole", GUPTA)),
            *(("tried", talk), ("silent", GUPTA), ("flat", ZHAO), ("flat", GUPTA)),
        )
    }
    assert words == {
        ("reader", "zhao"): "needs references",
        ("reader", "talk"): "scores turns only",
        ("other", "gupta"): "not run",
        ("other", "talk"): "scores turns only",
        ("whole", "gupta"): "scores dialogues only",
        ("tried", "talk"): "scores turns only",
        ("silent", "gupta"): "parse failure",
        ("flat", "zhao"): "undefined",
        ("flat", "gupta"): "not run",
    }


def with_references() -> Leaderboard:
    references = (
        Reference(name="one person", column=GUPTA, coefficient="spearman", value=0.7),
        Reference(name="one person", column=ZHAO, coefficient="kendall", value=0.5),
    )
    tests = PairTests(column=GUPTA, coefficient="spearman", n_rows=10, n_dialogues=5, n_pairs=1, n_different=0, n_rounds=1000)
    identities = {"weak": Identity(method="rule", reads_references=True, n_parameters=0)}
    return Leaderboard(board().cells, references, (tests,), identities, {"gupta": DataSet(title="Gupta")})


def test_several_qualities_of_one_set_count_once_in_the_mean() -> None:
    cells = (cell("a", GUPTA, 0.1), cell("a", Column("gupta", "turn", "fluent"), 0.3), cell("a", ZHAO, 0.6))
    dialogues = cell("a", Column("gupta", "dialogue", "overall"), 0.8)
    assert ranked(Leaderboard(cells)) == {"a": pytest.approx(0.4)}
    assert ranked(Leaderboard((*cells, dialogues))) == {"a": pytest.approx((0.2 + 0.6 + 0.8) / 3)}


def test_references_are_no_evaluators_but_stand_in_every_file() -> None:
    found = with_references()
    assert found.evaluators == board().evaluators
    assert found.reference_rows("spearman") == {"one person": {GUPTA: 0.7}}
    sets = (GUPTA.rated_set, ZHAO.rated_set)
    assert found.reference_mean("one person", "spearman", sets) == (0.7, 1)
    assert found.reference_mean("one person", "spearman", sets[1:]) is None
    assert "| *one person* | 0.700 (1 of 2) | 0.700 |  |" in found.to_markdown().splitlines()
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
        ({"schema_version": 7}, "schema_version is 7, this release reads 2."),
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


def test_csv_says_what_an_evaluator_is() -> None:
    rows = list(csv.DictReader(io.StringIO(with_references().to_csv())))
    told = [[row[name] for name in ("evaluator", "method", "reads_references", "n_parameters")] for row in rows[::2][:2]]
    assert told == [["weak", "rule", "True", "0"], ["strong", "", "", ""]]


def test_markdown_states_coverage_and_escapes_what_would_break_the_table() -> None:
    odd = Leaderboard((cell("a|b\n<i>", GUPTA, 0.25),))
    assert odd.to_markdown() == (
        "Ranked by the mean over gupta (turn level).\n\n"
        "| evaluator | mean spearman, 1 data set | gupta (overall, turn level) |\n"
        "| --- | --- | --- |\n"
        "| a\\|b &lt;i> | 0.250 [0.150, 0.350] | 0.250 [0.150, 0.350] (9 of 10 scored) |\n"
    )


def test_markdown_has_a_table_of_its_own_for_those_that_are_not_ranked() -> None:
    assert board().to_markdown().split("\n\n", 2)[2] == (
        "Not ranked, as they lack one of these sets or ran a part of it:\n\n"
        "| evaluator | gupta (overall, turn level) | zhao (content, turn level) |\n"
        "| --- | --- | --- |\n"
        "| flat |  | undefined |\n"
        "| strong | 0.600 [0.500, 0.700] (part of the set) |  |\n"
    )


def test_ranks_are_set_by_place_and_coefficient() -> None:
    ranked = board().with_ranks({("weak", GUPTA, "spearman"): 2})
    ranks = [ranked.figure(name, GUPTA, "spearman") for name in ("weak", "strong", "flat")]
    assert [figure and figure.rank for figure in ranks] == [2, None, None]
