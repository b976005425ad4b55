"""The figures of the bundled models: one file, the tables that are made of it, and that they are what the models give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from dialeval_plugin.core.files import read_text, write_json_lines
from dialeval_plugin.core.signature import content_hash
from reproduction.pretrained import write
from reproduction.pretrained.figures import (
    ACCURACY,
    AGREEMENT,
    CONTRASTS,
    DAILYDIALOG_PP,
    KINDS,
    RIGHT_PAIRS,
    SAME_ORDER,
    Figure,
    Question,
    figures_of,
    packaged_folders,
    read_figures,
)
from reproduction.pretrained.tables import choice, documents, model_table, overview, packed_table
from reproduction.results.write import TURN_LEVEL
from tests.layouts import fed_rows, write_fed
from tests.refusals import refusal

PART = ("tu", "eg", "fd", CONTRASTS)
"""Data sets on which the test on real data computes figures again."""
LESS = {"causalscore": ("eg",), "slide": ("tu", "eg", DAILYDIALOG_PP, CONTRASTS)}
"""The same of models for which these would be too few, or take too long."""
LEAST_SAME_ORDER, MOST_MOVED = 0.999, 0.003
"""How far a packed model may be from the full one."""


def figure(dataset: str, value: float, name: str = AGREEMENT, quality: str = "Overall", **further: object) -> Figure:
    rest = {"n_scored": 9, "n_total": 9, "n_clusters": 40, "ci_low": value - 0.1, "ci_high": value + 0.1, **further}
    return Figure(
        model="slide", model_hash="0", evaluator="slide-slm", dataset=dataset, quality=quality, name=name, value=value, **rest
    )  # type: ignore[arg-type]


FIGURES = [
    *(figure(code, 0.2, full=0.2) for code in TURN_LEVEL),
    figure("fd", 0.5, full=0.502, is_rough=True),
    figure(DAILYDIALOG_PP, 0.9, ACCURACY, "overall"),
    figure(DAILYDIALOG_PP, 0.8, ACCURACY, "positive"),
    figure(CONTRASTS, 0.6, RIGHT_PAIRS, "generic"),
    figure(CONTRASTS, 0.7, RIGHT_PAIRS, "all"),
    figure("tu", 0.9999, SAME_ORDER, "score", ci_low=None, ci_high=None),
    figure("eg", 0.9991, SAME_ORDER, "score", ci_low=None, ci_high=None),
]


def lines(table: str) -> list[str]:
    return table.splitlines()[2:]


def test_the_overview_has_the_mean_over_all_turn_level_sets_or_none() -> None:
    cells = "0.500 [0.400, 0.600, rough] | 0.900 [0.800, 1.000] | 0.700 [0.600, 0.800]"
    assert lines(overview(FIGURES)) == [f"| slide | slide-slm | 0.200 [0.167, 0.233] | {cells} |"]
    assert lines(overview(FIGURES[1:])) == [f"| slide | slide-slm |  | {cells} |"]
    assert overview([]) == ""


def test_the_readme_has_the_figures_of_the_models_that_users_choose() -> None:
    *_, slide = lines(choice(FIGURES))
    assert slide == "| slide | 0.200 [0.167, 0.233] |  | 0.700 [0.600, 0.800] |"
    assert choice([]) == ""


def test_a_models_table_has_every_figure_but_the_order_of_scores() -> None:
    shown = lines(model_table(FIGURES))
    assert shown[0] == "| topical-usr | Overall | 0.200 [0.100, 0.300] |"
    assert shown[-4] == "| dailydialog_pp | overall, accuracy | 0.900 [0.800, 1.000] |"
    assert shown[-2:] == [
        "| contrasts | generic, right pairs | 0.600 [0.500, 0.700] |",
        "| contrasts | all, right pairs | 0.700 [0.600, 0.800] |",
    ]
    assert len(shown) == len(FIGURES) - 2


def test_packing_is_judged_by_the_set_and_the_figure_that_it_moved_most() -> None:
    assert lines(packed_table(FIGURES)) == ["| slide | slide-slm | 0.99910 (eg) | 2 | 0.0020 | 10 |"]


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_json_lines(tmp_path / "figures.jsonl", map(asdict, FIGURES))
    assert read_figures(tmp_path / "figures.jsonl") == FIGURES
    assert read_figures(tmp_path / "none.jsonl") == []


def test_a_model_is_compared_with_people_on_each_quality_at_its_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_general: Path
) -> None:
    write_fed(tmp_path, fed_rows(12))
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    question = Question(tmp_path / "work", ("fed-turn", "fed-dialogue", CONTRASTS), 50)
    found = figures_of("general", tiny_general, question, full=tiny_general)
    assert {(one.evaluator, one.dataset) for one in found} == {
        ("general", "fed-turn"),
        ("general", CONTRASTS),
        ("general-dialogue", "fed-dialogue"),
    }
    assert Counter(one.name for one in found) == {AGREEMENT: 8 + 10, RIGHT_PAIRS: 4 + 1}
    assert len({one.place for one in found}) == len(found)
    assert {one.model_hash for one in found} == {content_hash(tiny_general)}
    assert all(one.full == one.value for one in found)
    assert refusal(figures_of, "blue", tiny_general, question) == (
        f"blue: there is no such bundled model. Choose one of {', '.join(KINDS)}."
    )


@pytest.mark.parametrize("value", ["general", "blue=folder", "general="])
def test_a_folder_without_a_models_name_is_refused(value: str) -> None:
    assert refusal(write.main, ["--work", "w", "--model", value]) == (
        f"--model {value!r}: is not NAME=FOLDER with a name of {', '.join(KINDS)}. Write it so."
    )


def test_what_is_tried_out_does_not_become_the_figures() -> None:
    assert refusal(write.main, ["--work", "w", "--everywhere", "--sets", "tu"]) == (
        "--everywhere: writes the figures of the bundled models on all sets. Leave --model and --sets out."
    )


def test_every_document_shows_what_stands_in_the_file() -> None:
    written = documents(read_figures())
    assert {path.name for path in written} >= {"results.md", "README.md"}
    assert [path for path, text in written.items() if read_text(path) != text] == []


def test_a_document_gets_each_table_whose_marker_it_has(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("<!-- figures: slide -->\nold\n<!-- end of figures: slide -->\n", encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "other.md").write_text("nothing\n", encoding="utf-8")
    ((path, text),) = documents(FIGURES, tmp_path).items()
    assert path == tmp_path / "README.md"
    assert text == f"<!-- figures: slide -->\n\n{model_table(FIGURES)}\n\n<!-- end of figures: slide -->\n"


@pytest.mark.parametrize(("name", "folder"), packaged_folders().items())
def test_a_model_in_the_box_has_figures_of_its_own_and_packing_hardly_moved_them(name: str, folder: Path) -> None:
    figures = [one for one in read_figures() if one.model == name]
    assert {one.model_hash for one in figures} == {content_hash(folder)}
    assert [one.place for one in figures if one.name == SAME_ORDER and (one.value or 0) < LEAST_SAME_ORDER] == []
    moved = [one for one in figures if one.full is not None and one.value is not None]
    assert [one.place for one in moved if abs((one.value or 0) - (one.full or 0)) > MOST_MOVED] == []


@pytest.mark.exhaustive  # that the file is of these weights, and golden scores of each model, are tested with every change
@pytest.mark.real_data
@pytest.mark.parametrize(("name", "folder"), packaged_folders().items())
def test_the_figures_of_a_model_in_the_box_are_those_of_the_file(
    name: str, folder: Path, tmp_path: Path, data_dir: Path
) -> None:
    """To 0.001, an interval's ends too: the file has the figures of the encoder before it was rounded, see results.md there."""
    datasets = LESS.get(name, PART)
    found = figures_of(name, folder, Question(tmp_path, datasets))
    kept = [one for one in read_figures() if (one.model, one.name == SAME_ORDER) == (name, False) and one.dataset in datasets]
    assert [one.place for one in found] == [one.place for one in kept]
    assert [_near(one) for one in found] == [pytest.approx(_near(one), abs=1e-3) for one in kept]
    assert [_counts(one) for one in found] == [_counts(one) for one in kept]


def _near(one: Figure) -> Sequence[float]:
    return [9.0 if value is None else value for value in (one.value, one.ci_low, one.ci_high)]


def _counts(one: Figure) -> Figure:
    return replace(one, value=None, ci_low=None, ci_high=None, full=None)
