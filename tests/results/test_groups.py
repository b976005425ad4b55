"""One file by groups: which rows are in which, in which order, and how they are drawn."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas
import pytest

from dialeval_plugin.labels.scores import ScoredRow, ScoredRows
from dialeval_plugin.reports.plots import means_figure
from dialeval_plugin.results.groups import group
from dialeval_plugin.statistics.estimates import ValueInterval
from dialeval_plugin.statistics.means import mean_interval
from tests.cli.running import run, write_rows
from tests.refusals import refusal, refused

SAID = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]


def scored(values: list[Any], field: str = "at") -> ScoredRows:
    """A row a value, whose scores are 0, 1, 2, ..., two of them a conversation."""
    rows = [
        ScoredRow(str(place), f"c{place // 2}", float(place), None, {"id": str(place), field: value})
        for place, value in enumerate(values)
    ]
    return ScoredRows("scores.jsonl", "score", rows)


def test_each_group_has_its_mean_and_interval_over_conversations() -> None:
    found = group(scored(["v1", "v2", "v2"] * 20, "version"), "version")
    rows = range(0, 60, 3)
    expected = mean_interval([float(row) for row in rows], clusters=[f"c{row // 2}" for row in rows])
    assert found.means["v1"] == expected
    assert (found.means["v1"].n_scored, found.means["v2"].n_scored, found.whole.n_clusters) == (20, 40, 30)


def test_names_are_in_the_order_of_their_numbers_and_lists_are_in_each_group() -> None:
    found = group(scored(["1.10", "1.9", "1.2", 3, True]), "at")
    assert list(found.means) == ["1.2", "1.9", "1.10", "3", "true"]
    found = group(scored([["a", "b"], '["b"]', [], None, ""]), "at")
    assert {name: one.n_total for name, one in found.means.items()} == {"a": 1, "b": 2}
    assert found.notes == ["without at, in no group: 3 of 5 rows"]


def test_groups_and_fields_may_have_the_names_of_the_table() -> None:
    found = group(scored(["all", "all", "none"]), "at").table()
    assert [row["at"] for row in found.rows] == ["all", "none", "all rows"]
    rows = [ScoredRow("a", "a", 0.5, None, {"value": "low", "is_rough": True})]
    found = group(ScoredRows("scores.jsonl", "score", rows), "value").table()
    assert [(row["group"], row["value"]) for row in found.rows] == [("low", 0.5), ("all", 0.5)]
    assert found.render("text").splitlines()[2].split() == ["low", "0.500", "1/1", "1"]


def test_a_label_given_twice_counts_once_and_an_empty_one_is_no_group() -> None:
    found = group(scored([["a", "a"], ["a", None, ""], [None]]), "at")
    assert {name: (one.n_total, one.value) for name, one in found.means.items()} == {"a": (2, 0.5)}
    assert found.notes == ["without at, in no group: 1 of 3 rows"]


@pytest.mark.parametrize(
    ("span", "names"),
    [
        ("hour", ["2026-03-01 23:00", "2026-03-02 00:00"]),
        ("day", ["2026-03-01", "2026-03-02"]),
        # The first is a Sunday.
        ("week", ["week of 2026-02-23", "week of 2026-03-02"]),
        ("month", ["2026-03"]),
    ],
)
def test_timestamps_are_grouped_by_spans_in_utc(span: str, names: list[str]) -> None:
    moment = datetime(2026, 3, 1, 23, 30, tzinfo=timezone.utc)
    values = [
        *(
            "2026-03-01T23:30:00Z",
            "2026-03-02T01:30:00.123456+02:00",
            "2026-03-01 23:30",
            "2026-03-01 23:30:00 UTC",
            moment,
            moment.timestamp(),
        ),
        *(moment.timestamp() * 1000, str(moment.timestamp()), pandas.Timestamp("2026-03-02T00:30:00Z"), "2026-03-02"),
    ]
    found = group(scored(values), f"at:{span}")
    assert list(found.means) == names
    assert found.means[names[0]].n_total == (8 if len(names) > 1 else 10)
    assert found.starts == sorted(found.starts)


def test_a_date_without_hyphens_is_no_number_of_seconds() -> None:
    """All were of August 1970, and years and a spreadsheet's days of its first of January."""
    found = group(scored(["20260301", 20260302, 20260331.0, " 20260401 "]), "at:month")
    assert {name: one.n_total for name, one in found.means.items()} == {"2026-03": 3, "2026-04": 1}
    for value in (2026, "46082.5", 20261301, 0, -86400, 202603, 20260301.5):
        assert refusal(group, scored([value]), "at:day").startswith(f"scores.jsonl: '0': at: {value!r} is no timestamp.")


def test_what_is_no_group_is_refused() -> None:
    assert refusal(group, scored(["x"]), "model") == ("scores.jsonl: no row has 'model'. They have: id, at.")
    days = [f"2026-03-01T00:{place // 60:02d}:{place % 60:02d}Z" for place in range(101)]
    assert refusal(group, scored(days), "at") == (
        "--by at: has 101 different values, and 100 can be shown. Timestamps are grouped by --by at:day."
    )
    assert refusal(group, scored(list(range(101))), "at") == "--by at: has 101 different values, and 100 can be shown."
    for value in ("01/02/2026", "soon", {}, "2026-13-01"):
        assert refusal(group, scored([value]), "at:day") == (
            f"scores.jsonl: '0': at: {value!r} is no timestamp. Write 2026-03-01T09:30:00Z, or seconds since 1970."
        )


def test_groups_are_drawn_as_lines_and_over_time() -> None:
    means = {"old": ValueInterval(0.5, 0.4, 0.6), "none": ValueInterval(None), "new": ValueInterval(0.3)}
    (axes,) = means_figure(means, label="score", whole=0.45).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == list(means)
    first, second, dots, whole = (line.get_xydata().tolist() for line in axes.lines)
    assert (first, second, dots) == ([[0.4, 0], [0.6, 0]], [[0.3, 2], [0.3, 2]], [[0.5, 0], [0.3, 2]])
    assert [x for x, _ in whole] == [0.45, 0.45]
    times = [datetime(2026, 3, day, tzinfo=timezone.utc) for day in (1, 2, 5)]
    (axes,) = means_figure(means, label="score", times=times).axes
    line = axes.lines[-1]
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([times[0], times[2]], [0.5, 0.3])
    assert axes.get_ylabel() == "score"


def test_the_command_prints_the_groups_and_draws_them(tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "scores.jsonl",
        [{"id": f"c{place}:2", "score": place % 4, "model": "ab"[place % 2]} for place in range(40)],
    )
    done = run("compare", path, "--by", "model", "--plot", tmp_path / "plot.svg")
    assert done.stdout == (
        "model   mean          95 % interval  scored  conversations\n"
        "-----  -----  ---------------------  ------  -------------\n"
        "a      1.000  0.500 to 1.500, rough   20/20             20\n"
        "b      2.000  1.500 to 2.500, rough   20/20             20\n"
        "all    1.500         1.125 to 1.850   40/40             40\n"
        "\n"
        "between a and b, the largest groups, a difference of 0.935 would be seen four times in five\n"
    )
    assert done.stderr == f"plot: {tmp_path / 'plot.svg'}\n"
    drawn = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    assert all(f">{text}<" in drawn for text in ("a", "b", "score", "mean of all"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("scores.jsonl", "scores.jsonl", "--by", "x"), "--by: is of one file, and two are given. Leave one of them out."),
        (("scores.jsonl", "--plot", "x.png"), "--plot: draws groups, and there are none. Add --by FIELD, or leave it out."),
        (
            ("scores.jsonl", "--by", "x", "--plot", "x.gif"),
            "x.gif: plots are written as PNG, SVG or PDF. End the name in .png, .svg or .pdf.",
        ),
        (
            ("scores.jsonl", "--by", "x", "--fail-if-worse"),
            "--fail-if-worse: compares two versions, and one file is given. Name a second one, B.",
        ),
        (
            ("log.jsonl", "--by", "model", "--scorer", "response_length"),
            "log.jsonl: no row has 'model'. They have: nothing else.",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "scores.jsonl", [{"id": "a", "score": 1}])
    write_rows(tmp_path / "log.jsonl", [{"id": "a", "messages": SAID}])
    with refused(message):
        run("compare", *words)


def test_a_log_is_scored_with_the_field_that_groups_it(tmp_path: Path) -> None:
    days = [{"at": f"2026-03-0{1 + place % 2}", "messages": SAID} for place in range(4)]
    done = run("compare", write_rows(tmp_path / "log.jsonl", days), "--by", "at:day", "--scorer", "response_length")
    assert done.stdout == (
        "at:day       mean  95 % interval  scored  conversations\n"
        "----------  -----  -------------  ------  -------------\n"
        "2026-03-01  1.000                    2/2              2\n"
        "2026-03-02  1.000                    2/2              2\n"
        "all         1.000                    4/4              4\n"
    )
