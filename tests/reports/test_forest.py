"""`dialeval plot forest`: what meta-evaluation found is what is drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval_plugin.reports.plots import Panel, forest_figure, read_panels
from dialeval_plugin.statistics.estimates import ValueInterval
from tests.cli.running import run, write_rows
from tests.refusals import refusal


def write_table(
    path: Path, dataset: str, found: dict[str, tuple[float, float, float] | None], people: float | None = None
) -> Path:
    """Output of `dialeval meta-eval --format json`, as far as it is read."""
    rows = [
        {
            **{"dataset": dataset, "quality": "overall", "level": "turn", "statistic": "spearman", "evaluator": name},
            **dict(zip(("value", "ci_low", "ci_high"), one or (None,) * 3, strict=True)),
            **{"n_scored": 60, "people_leave_one_out": people, "people_split_half": None},
        }
        for name, one in found.items()
    ]
    path.write_text(json.dumps({"rows": rows}), encoding="utf-8")
    return path


def test_files_become_panels_with_the_people_of_each(tmp_path: Path) -> None:
    first = write_table(tmp_path / "a.json", "tu", {"good": (0.5, 0.4, 0.6), "none": None}, people=0.7)
    second = write_table(tmp_path / "b.json", "pu", {"good": (0.3, 0.1, 0.5)})
    panels = read_panels([first, second], "spearman")
    assert panels == [
        Panel("Topical-Chat (USR)\nn = 60", {"good": ValueInterval(0.5, 0.4, 0.6), "none": ValueInterval(None)}, [0.7]),
        Panel("PersonaChat (USR)\nn = 60", {"good": ValueInterval(0.3, 0.1, 0.5)}, []),
    ]


def test_the_best_on_the_panels_that_all_have_is_on_top() -> None:
    both = Panel(
        "a",
        {"low": ValueInterval(0.1, 0.0, 0.2), "high": ValueInterval(0.4, 0.3, 0.5), "never": ValueInterval(None)},
        [0.6, 0.8],
    )
    one = Panel("b", {"low": ValueInterval(0.9, 0.8, 1.0)}, [])
    figure = forest_figure([both, one], label="rho")
    left, right = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["low", "high"]
    dots = [line.get_xydata().tolist() for line in left.lines if line.get_marker() == "o"]
    assert dots == [[[0.1, 0.0]], [[0.4, 1.0]]]
    (band,) = left.patches
    assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx((0.6, 0.8))
    # What was not run is a dash, no zero.
    assert [text.get_text() for text in right.texts] == ["—"]


def test_the_note_on_people_fits_below_a_single_panel() -> None:
    figure = forest_figure([Panel("a", {"s": ValueInterval(0.4, 0.3, 0.5)}, [0.6, 0.8])], label="rho")
    figure.draw_without_rendering()
    (note,) = (text for text in figure.texts if text.get_text().startswith("band:"))
    extent = note.get_window_extent()
    assert 0 <= extent.x0 < extent.x1 <= figure.bbox.x1


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text('{"rows": [{"value": 1}]}', encoding="utf-8")
    assert refusal(read_panels, [tmp_path / "no.json"], "spearman") == (
        f"{tmp_path}/no.json: is no table of agreement. Give what `dialeval meta-eval --format json --output` wrote."
    )
    table = write_table(tmp_path / "a.json", "tu", {"good": None})
    assert refusal(read_panels, [table], "pearson") == "--statistic pearson: was not computed. Computed are: spearman."
    message = "forest: no coefficient is defined, so there is nothing to draw."
    assert refusal(forest_figure, read_panels([table], "spearman"), label="rho") == message


def test_from_scores_to_a_picture(tmp_path: Path) -> None:
    rows = [{"id": str(n), "dialogue": str(n), "mine": (7 * n) % 12, "rating": n} for n in range(12)]
    scored = write_rows(tmp_path / "scored.jsonl", rows)
    wanted = ("--column", "mine", "--rating-column", "rating", "--coefficient", "spearman", "--permutations", "0")
    run("meta-eval", scored, *wanted, "--format", "json", "--output", tmp_path / "agreement.json")
    run("plot", "forest", tmp_path / "agreement.json", "--output", tmp_path / "forest.svg")
    assert "n = 12" in (tmp_path / "forest.svg").read_text(encoding="utf-8")
