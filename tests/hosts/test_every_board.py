"""Every kind of task, asked of a language model and of a scorer, reaches everything that is made of results.

Every scorer does so in `test_every_door.py`. FAULTS_FOUND_2 F1: what has variants, `slide` and `dre`, was on no board.
"""

from __future__ import annotations

import html
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.corpora.readers import fed
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS
from dialeval_plugin.leaderboard.board import Leaderboard
from dialeval_plugin.leaderboard.build import cells_of
from dialeval_plugin.leaderboard.task_runs import TaskRun
from dialeval_plugin.methods.judging import dialogue_rating
from dialeval_plugin.statistics import preferences
from tests.hosts.test_rescoring_of_tasks import Chance
from tests.hosts.through_lm_eval import Everywhere, evaluate, everywhere
from tests.layouts import fed_rows, write_convai, write_fed
from tests.small_corpora import write_dbdc, write_dstc10, write_preferences

GENERATED: dict[str, str] = runpy.run_path(str(tasks_path() / "_generate.py"))["generated"]()


class Family(NamedTuple):
    """Tasks that differ by their data and by what is rated alone."""

    method: str
    level: str
    kind: str


def families() -> dict[Family, list[str]]:
    """Every family of tasks under `tasks/`, with the names of its tasks."""
    found: dict[Family, list[str]] = {}
    for name, text in GENERATED.items():
        if "\n  dialeval:" in text:
            metadata = yaml.safe_load(text.partition("\nmetadata:\n")[2])["dialeval"]
            family = Family(*(metadata[field] for field in Family._fields))
            found.setdefault(family, []).append(Path(name).stem)
    return found


_SHOTS = ("bm25_c", "bm25_r", "bm25_cr")
ALONE, OF_OPINIONS = ("",), ("", "length", "mean_of_means", "product")
TASKS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("dstc10_dialog_tu", "dstc10_dialog_fd"), ALONE),
    **dict.fromkeys((f"dstc10_dialog_{shots}_{code}" for shots in _SHOTS for code in ("ft", "fd")), ALONE),
    **dict.fromkeys(("fed_dialog_turn_specific", "fed_dialog_dial_coherent"), ALONE),
    **dict.fromkeys((f"fed_dialog_{shots}_turn_specific" for shots in (*_SHOTS, "manual", "random")), ALONE),
    **dict.fromkeys((f"fed_dialog_{shots}_dial_coherent" for shots in (*_SHOTS, "manual", "random")), ALONE),
    **dict.fromkeys(("cgdialog_preference_msc", "dbdc_yi", "dailydialog_pp_mini", "dailydialog_pp_generate_mini"), ALONE),
    "convai2_opinion": OF_OPINIONS,
    "slide_tu": ("llm", "slide", "slm"),
    "dre_tu": ("dre", "ex_dre", "in_dre", "non_dre"),
}
"""One task of each family, with the names of the scores that it gives."""


@pytest.fixture(scope="module", autouse=True)
def few_flips() -> Iterator[None]:
    """Floors of preferences by 4 flips of a coin instead of 200, a third of the time of this file."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(preferences, "N_FLIPS", 4)
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, tiny_slm: Path) -> dict[str, Everywhere]:
    """All tasks in one run each of a language model and of a scorer, and everything that is made of it."""
    root = write_convai(write_dstc10(tmp_path_factory.mktemp("data")), 12)
    write_fed(root, fed_rows(125))
    write_dbdc(root, ["yi"])
    write_preferences(root, "msc")
    found = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DIALEVAL_DATA_DIR", str(root))
        # Each of its twelve tasks reads the file and puts the same turns into its examples, in both runs.
        patched.setattr(fed, "read", cache(fed.read))
        patched.setattr(dialogue_rating, "neutralise", cache(dialogue_rating.neutralise))
        for name, model in (("language model", Chance()), ("scorer", "dialogue-metric")):
            output = tmp_path_factory.mktemp("output")
            settings: dict[str, Any] = {} if name == "language model" else {"model_args": "scorer=response_length"}
            evaluate(model, *TASKS, metadata={"slm": str(tiny_slm)}, output=output, limit=60, **settings)
            found[name] = everywhere(output, tmp_path_factory.mktemp("board"))
    return found


def test_no_family_of_tasks_is_missing() -> None:
    known = families()
    family_of = {task: family for family, tasks in known.items() for task in tasks}
    assert sorted(family_of[task] for task in TASKS) == sorted(known)
    assert {family.kind for family in known} == set(KINDS)


@pytest.mark.long
@pytest.mark.parametrize("name", ["language model", "scorer"])
@pytest.mark.parametrize("task", TASKS)
def test_a_task_reaches_rescoring_board_exports_and_page(task: str, name: str, runs: dict[str, Everywhere]) -> None:
    made = runs[name]
    own = {run.about.variant: (run, found) for run, found in zip(made.runs, made.findings, strict=True) if run.task == task}
    # A number of words is no probability.
    assert tuple(sorted(own)) == tuple(one for one in TASKS[task] if (name, one) != ("scorer", "product"))
    for run, found in own.values():
        assert run.outcomes
        assert found
        if run.about.kind in {"rating", "opinion"}:
            (main,) = (one for one in found if one.statistic == KINDS[run.about.kind].main)
            assert main.estimate.value == run.metrics[KINDS[run.about.kind].main]
        reached(run, made)


def reached(run: TaskRun, made: Everywhere) -> None:
    """A run's evaluator has cells, a row on the page, and files of every format where it has a figure."""
    board: Leaderboard = made.board
    columns = {cell.column for cell in cells_of(run)}
    cells = [cell for cell in board.cells if cell.evaluator == run.evaluator and cell.column in columns]
    assert {cell.column for cell in cells} == columns != set()
    assert {cell.n_total for cell in cells} == {run.n_total}
    assert html.escape(run.evaluator) in made.page
    if any(
        figure.value is not None for cell in board.cells if cell.evaluator == run.evaluator for figure in cell.figures.values()
    ):
        assert all(run.evaluator in made.exported[format] for format in made.exported)
