"""The tables of Huynh et al. 2023 with another model's figures beside the paper's."""

from __future__ import annotations

from typing import Any

import pytest

from reproduction.huynh.write import DSTC10_VARIANTS, FED_VARIANTS, dstc10_task, fed_task, huynh_tables

INTERVAL = {"spearman,none": 0.12345, "spearman_ci_low,none": -0.1, "spearman_ci_high,none": 0.3, "n_scored,none": 375}
RUNS = {"spearman,none": 0.05, "spearman_deviation,none": 0.0123}
UNDEFINED = {"spearman,none": "undefined (spearman: all 375 scores are 1.0. Give scores that differ.)"}


def rows(results: dict[str, Any]) -> list[list[list[str]]]:
    """The cells of each table, heads and rules included."""
    tables = huynh_tables(results, "tiny").rstrip("\n").split("\n\n")
    return [[line.strip("| ").split(" | ") for line in table.splitlines()] for table in tables]


def test_figures_stand_beside_those_of_the_paper() -> None:
    results = {
        "fed_dialog_turn_interesting": INTERVAL,
        "fed_dialog_manual_turn_interesting": UNDEFINED,
        "fed_dialog_random_turn_interesting": RUNS,
        "fed_dialog_bm25_cr_turn_interesting": INTERVAL,
        "fed_dialog_random_dial_overall": RUNS,
        "dstc10_dialog_fd": INTERVAL,
        "dstc10_dialog_bm25_c_fd": {"spearman,none": 0.5, "spearman_ci_low,none": "undefined (one cluster)"},
    }
    turn, dialogue, dstc10 = rows(results)
    ours = [f"tiny, {examples}" for examples in ("no example", "3 hand-picked", "3 random", "3 BM25_C+R")]
    small = [f"TNLGv2 6.7B, {examples}" for examples in ("manual", "random", "BM25")]
    large = [f"{model}, manual" for model in ("TNLGv2 530B", "Flan-T5 3B", "InstructGPT 175B")]
    assert turn[0] == ["FED, turn level", *ours, *small, *large]
    figures = ["0.123 [-0.100, 0.300]", "undefined", "0.050 ± 0.012", "0.123 [-0.100, 0.300]"]
    assert turn[2:] == [["interesting", *figures, "0.455", "0.293", "0.358", "0.474", "0.519", "0.551"]]
    assert dialogue[2:] == [["overall", "", "", "0.050 ± 0.012", "", "0.630", "0.479", "0.607", "0.688", "0.585", "0.690"]]
    assert dstc10[2:] == [["fd", "0.123 [-0.100, 0.300]", "0.500", "0.314", "0.549", "0.492", "0.412", "0.444", "0.228"]]


def test_the_figures_of_the_paper_are_those_of_its_tables() -> None:
    """One row of each of Tables 1 to 4 and 6, from the paper's text."""
    fed = (("turn", "fluent"), ("dialogue", "depth"), ("dialogue", "inquisitive"))
    tasks = [*(fed_task("", level, quality) for level, quality in fed), dstc10_task("", "dgu")]  # type: ignore[arg-type]
    results = dict.fromkeys(tasks, INTERVAL)
    turn, dialogue, dstc10 = rows(results)
    assert turn[2][5:] == ["0.164", "0.052", "0.096", "0.195", "0.200", "0.204"]
    assert [row[0] for row in dialogue[2:]] == ["depth", "inquisitive"]
    assert dialogue[2][5:] == ["0.640", "0.361", "0.559", "0.659", "0.650", "0.680"]
    assert dialogue[3][5:] == ["0.537", "0.436", "0.334", "0.527", "0.487", "0.578"]
    assert dstc10[2][3:] == ["0.209", "0.510", "0.714", "0.746", "0.677", "0.634"]


@pytest.mark.parametrize(("kind", "level"), [(kind, level) for level in FED_VARIANTS for kind in FED_VARIANTS[level]])
def test_the_names_are_those_of_task_files(kind: str, level: Any) -> None:
    from dialeval_plugin.core.resources import tasks_path

    names = {path.stem for path in tasks_path().rglob("*.yaml")}
    assert fed_task(kind, level, "overall") in names
    assert {dstc10_task(other, "ft") for other in DSTC10_VARIANTS} <= names
