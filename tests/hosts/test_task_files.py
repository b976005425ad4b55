"""The task files are what `tasks/_generate.py` writes, describe themselves, and print at most four lines a task."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from lm_eval.tasks import TaskManager

from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.judgement_tasks.kinds import KINDS, MAIN, printed
from dialeval_plugin.leaderboard.result_names import describe_task, task_name

GENERATED: dict[str, str] = runpy.run_path(str(tasks_path() / "_generate.py"))["generated"]()
TASKS = {Path(name).stem: text for name, text in GENERATED.items() if "\ntask_alias:" in text}
GROUPS = {Path(name).stem: text for name, text in GENERATED.items() if "\ngroup:" in f"\n{text}"}


class Names(yaml.SafeLoader):
    """Functions as their names."""


Names.add_constructor("!function", lambda loader, node: node.value)


def read(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(text, Loader=Names)  # noqa: S506, TID251 - a safe loader that knows one more tag
    return found


def test_what_is_committed_is_what_is_generated() -> None:
    folder = tasks_path()
    committed = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file() and path.name != "_generate.py" and path.suffix != ".pyc"
    }
    assert committed == GENERATED
    assert (len(TASKS), len(GROUPS)) == (216, 28)


@pytest.mark.parametrize("name", [name for name in GENERATED if "\nmetric_list:" in GENERATED[name]])
def test_a_template_prints_at_most_four_metrics_and_names_the_aggregation_of_each(name: str) -> None:
    metrics = {entry["metric"]: entry for entry in read(GENERATED[name])["metric_list"]}
    kind = next(kind for kind in KINDS if printed(kind) == tuple(metrics) and (kind == "opinion") == ("opinion" in name))
    assert len(metrics) <= 4
    for metric, entry in metrics.items():
        module, _, function = entry["aggregation"].rpartition(".")
        aggregate = getattr(importlib.import_module(module), function)
        assert aggregate.__name__ == metric
        assert aggregate.__closure__[1].cell_contents is KINDS[kind]
        assert entry["higher_is_better"] is not metric.endswith("_deviation")


@pytest.mark.parametrize("name", list(TASKS))
def test_a_task_says_of_itself_what_its_name_said(name: str) -> None:
    task = read(TASKS[name])
    found, by_name = describe_task(name, task["metadata"], "here"), task_name(name)
    assert (task["task"], found.method, found.dataset, found.level) == (name, by_name.method, by_name.dataset, by_name.level)
    assert found.quality == by_name.quality or found.dataset in {"mini", "convai1", "convai2"} or found.kind == "preference"
    assert task["metadata"]["dialeval"]["direction"] == "higher"
    assert found.lower_is_better == by_name.lower_is_better
    assert "dialogue_evaluation" in task["tag"]
    assert ("dialogue_evaluation_mini" in task["tag"]) == (found.dataset == "mini")


def test_every_group_takes_the_mean_of_the_metric_that_its_tasks_print() -> None:
    for name, text in GROUPS.items():
        group = read(text)
        (metric,) = (entry["metric"] for entry in group["aggregate_metric_list"])
        children = [child for child in group["task"] if child in TASKS]
        assert {MAIN[read(TASKS[child])["metadata"]["dialeval"]["kind"]] for child in children} <= {metric}, name
        assert set(group["task"]) <= {*TASKS, *GROUPS}
        if sets := group.get("dataset_kwargs", {}).get("group_sets"):
            assert sets == [read(TASKS[child])["metadata"]["dialeval"]["dataset"] for child in children]


def test_every_folder_has_a_readme_that_names_its_tasks_with_a_citation() -> None:
    for folder in (path for path in tasks_path().iterdir() if path.is_dir() and path.name != "__pycache__"):
        text = (folder / "README.md").read_text(encoding="utf-8")
        for path in folder.rglob("*.yaml"):
            assert f"* `{path.stem}`" in text
        assert all(f"### {heading}\n" in text for heading in ("Paper", "Citation", "Groups and Tasks", "Checklist"))
        assert "```bibtex\n@" in text


def test_the_host_knows_the_tags() -> None:
    manager = TaskManager(include_path=str(tasks_path()), include_defaults=False)
    assert set(manager.all_tags) == {"dialogue_evaluation", "dialogue_evaluation_mini"}
