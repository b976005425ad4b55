"""The task files are what `tasks/_generate.py` writes, describe themselves, and print at most four lines a task; and
`dialeval validate` builds what the host's own check only looks up by name (R71, R72).
"""

from __future__ import annotations

import importlib
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from lm_eval.tasks import TaskManager
from typer.testing import CliRunner

from dialeval_plugin.core.resources import bibtex, metrics_path, tasks_path
from dialeval_plugin.hosts.lm_eval.tasks.breakdown import LOWER_IS_BETTER
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS
from dialeval_plugin.hosts.lm_eval.validation import Validation, validate_metrics, validate_tasks
from dialeval_plugin.hosts.lm_eval.versions import has_scorers
from dialeval_plugin.leaderboard.result_files import describe_task
from dialeval_plugin.models.folders import pretrained_names
from tests.layouts import write_convai
from tests.small_corpora import write_dbdc, write_dstc10, write_preferences


def states() -> dict[str, Validation]:
    return {result.name: result for result in validate_tasks(tasks_path())}


@pytest.mark.long
def test_every_task_of_this_package_is_right_or_absent(tiny_slm: Path, own_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_SLM", str(tiny_slm))
    for write in (write_dstc10, write_convai, write_dbdc):
        write(own_data)
    preferences = write_preferences(own_data, "dream", "msc")
    found = states()
    absent = {f"dstc10_dialog_{kind}{code}" for kind in ("", "bm25_c_", "bm25_r_", "bm25_cr_") for code in ABSENT}
    absent |= {f"{method}_{code}" for method in ("dre", "slide") for code in ABSENT - {"ps"}}
    absent |= {"cgdialog_preference_esconv", "dailydialog_pp", "dailydialog_pp_generate"}
    absent |= set() if has_scorers() else {"dailydialog_pp_answer_mini"}
    absent |= {name for name, result in found.items() if name.startswith("fed_dialog") and result.kind == "task"}
    assert {name for name, result in found.items() if result.state == "absent"} == absent
    assert {name: result.detail for name, result in found.items() if result.state == "error"} == {}
    details = {"dbdc_yi": "72 documents, 0 examples", "cgdialog_preference_dream": "48 documents, 0 examples"}
    details |= dict.fromkeys(("dstc10_dialog", *(f"dstc10_dialog_bm25_{kind}" for kind in ("c", "r", "cr"))), "8 tasks")
    details |= {"dstc10_dialog_all": "14 tasks", "dre": "12 tasks", "slide": "12 tasks", "cgdialog_preference": "3 tasks"}
    details |= {"fed_dialog": "2 tasks", "fed_dialog_turn": "9 tasks", "fed_dialog_dial": "11 tasks"}
    assert {name: found[name].detail for name in details} == details
    missing = f"{preferences}: has no ESConv_responses_pairwise.json (the human preferences on esconv)."
    assert found["cgdialog_preference_esconv"].detail.startswith(missing)


@pytest.mark.long
def test_without_data_every_task_but_those_on_the_embedded_corpus_is_absent(
    own_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DIALEVAL_SLM", raising=False)
    found = states()
    present = {"dstc10_dialog_mini", "dailydialog_pp_mini", "dailydialog_pp_generate_mini"}
    present |= {"dailydialog_pp_answer_mini"} if has_scorers() else set()
    present |= {"dre_mini", "slide_mini"} if "slide" in pretrained_names() else set()
    for name, result in found.items():
        assert result.state == ("ok" if result.kind == "group" or name in present else "absent"), result


@pytest.mark.any_lm_eval
def test_every_metric_of_this_package_loads() -> None:
    found = list(validate_metrics(metrics_path()))
    assert found
    assert {result.state for result in found} == {"ok"}


ABSENT = {"pz", "dgr", "cg", "d6", "d7", "hu", "ps"}
"""Sets of which `write_dstc10` writes nothing."""
INCLUDE_MINI = f"include: {tasks_path() / 'dstc10_dialog' / 'dstc10_dialog_mini.yaml'}\n"
BROKEN = {
    "function": (
        "task: function\ncustom_dataset: !function dialeval_plugin.hosts.lm_eval.tasks.ratings.nothing\n",
        "AttributeError: Module 'dialeval_plugin.hosts.lm_eval.tasks.ratings' has no function 'nothing' "
        "(from YAML in {folder})",
    ),
    "syntax": ("task: [\n", "ParserError: while parsing a flow node"),
    "nameless": ("output_type: multiple_choice\n", "ValueError: names neither a task nor a group"),
    "group": ("group: group\ntask: [nothing]\n", "there is no task 'nothing'. Correct the list `task`."),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_task_file_is_an_error(name: str, tmp_path: Path) -> None:
    text, detail = BROKEN[name]
    path = tmp_path / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    (found,) = validate_tasks(tmp_path)
    kind = "group" if name == "group" else "task"
    assert found == (name, kind, "error", f"{path}: {detail.format(folder=tmp_path)}")


def test_a_task_that_cannot_be_built_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "prompt.yaml"
    path.write_text(f"{INCLUDE_MINI}task: prompt\ndoc_to_choice: nothing\n", encoding="utf-8")
    (found,) = validate_tasks(tmp_path)
    assert (found.name, found.state) == ("prompt", "error")
    assert found.detail.startswith(f"{path}: ")


def test_two_files_with_one_name_are_an_error(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    for path in (first, second):
        path.write_text(f"{INCLUDE_MINI}task: twin\n", encoding="utf-8")
    one, two = validate_tasks(tmp_path)
    assert one.state == "ok"
    assert two == ("twin", "task", "error", f"{second}: {first} has the same name. Rename one of them.")


@pytest.mark.any_lm_eval
def test_a_metric_whose_base_class_would_be_loaded_is_an_error(tmp_path: Path) -> None:
    script = tmp_path / "mine" / "mine.py"
    script.parent.mkdir()
    imports = "from dialeval_plugin.hosts.evaluate.metric import DialogueMetric\n\n\n"
    script.write_text(f"{imports}class Mine(DialogueMetric):\n    scorer_name = 'slide'\n", encoding="utf-8")
    (found,) = validate_metrics(tmp_path)
    assert found.state == "error"


def test_the_command_counts_and_fails(tmp_path: Path) -> None:
    import typer

    from dialeval_plugin.cli.hosts import validate

    app = typer.Typer()
    app.command()(validate)
    (tmp_path / "tasks").mkdir()
    (tmp_path / "metrics").mkdir()
    arguments = ["--tasks", str(tmp_path / "tasks"), "--metrics", str(tmp_path / "metrics")]
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.output) == (0, "0 ok, 0 absent, 0 error\n")
    path = tmp_path / "tasks" / "x.yaml"
    path.write_text("a: b\n", encoding="utf-8")
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1
    assert done.output == f"error  task   x: {path}: ValueError: names neither a task nor a group\n0 ok, 0 absent, 1 error\n"


# What the task files hold


GENERATED: dict[str, str] = runpy.run_path(str(tasks_path() / "_generate.py"))["generated"]()
TASKS = {Path(name).stem: text for name, text in GENERATED.items() if "\n  dialeval:" in text}
GROUPS = {Path(name).stem: text for name, text in GENERATED.items() if "\ngroup:" in f"\n{text}"}
TEMPLATES = {
    path.relative_to(tasks_path()).as_posix(): path.read_text(encoding="utf-8") for path in tasks_path().rglob("_*_yaml")
}


class Names(yaml.SafeLoader):
    """Functions as their names."""


Names.add_constructor("!function", lambda loader, node: node.value)


def read(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(text, Loader=Names)  # noqa: S506, TID251 - a safe loader that knows one more tag
    return found


@pytest.mark.any_lm_eval
def test_what_is_committed_is_what_is_generated() -> None:
    folder = tasks_path()
    committed = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.suffix in {".yaml", ".md"}
    }
    assert committed == GENERATED
    assert (len(TASKS), len(GROUPS)) == (216, 28)


@pytest.mark.any_lm_eval
@pytest.mark.parametrize("name", [name for name in sorted(TEMPLATES) if "\nmetric_list:" in TEMPLATES[name]])
def test_a_template_prints_at_most_four_metrics_and_names_the_aggregation_of_each(name: str) -> None:
    metrics = {entry["metric"]: entry for entry in read(TEMPLATES[name])["metric_list"]}
    kind = next(kind for kind in KINDS if KINDS[kind].printed == tuple(metrics) and (kind == "opinion") == ("opinion" in name))
    assert len(metrics) <= 4
    for metric, entry in metrics.items():
        module, _, function = entry["aggregation"].rpartition(".")
        aggregate = getattr(importlib.import_module(module), function)
        assert aggregate.__name__ == metric
        assert aggregate.__closure__[1].cell_contents is KINDS[kind]
        assert entry["higher_is_better"] is not metric.endswith("_deviation")


@pytest.mark.any_lm_eval
@pytest.mark.parametrize("name", list(TASKS))
def test_a_task_says_of_itself_what_its_name_says(name: str) -> None:
    task = read(TASKS[name])
    found = describe_task(name, task["metadata"], "here")
    assert found is not None
    assert task["task"] == name
    # A set's code stands last, or, of FED, level and quality do; of `convai2_opinion` the set stands first.
    of_fed = f"{found.method}_{'dial' if found.level == 'dialogue' else 'turn'}_{found.quality}"
    assert name in {f"{found.method}_{found.dataset}", f"{found.dataset}_{found.method}", found.method, of_fed}
    assert task["metadata"]["dialeval"]["direction"] == "higher"
    assert found.lower_is_better == (LOWER_IS_BETTER if found.kind == "breakdown" else ())
    assert "dialogue_evaluation" in task["tag"]
    assert ("dialogue_evaluation_mini" in task["tag"]) == (found.dataset == "mini")


@pytest.mark.any_lm_eval
def test_every_group_takes_the_mean_of_the_metric_that_its_tasks_print() -> None:
    for name, text in GROUPS.items():
        group = read(text)
        (metric,) = (entry["metric"] for entry in group["aggregate_metric_list"])
        members = [child if isinstance(child, str) else child["task"] for child in group["task"]]
        children = [child for child in members if child in TASKS]
        assert {KINDS[read(TASKS[child])["metadata"]["dialeval"]["kind"]].main for child in children} <= {metric}, name
        assert set(members) <= {*TASKS, *GROUPS}
        given = [child["dataset_kwargs"]["group_sets"] for child in group["task"] if isinstance(child, dict)]
        assert len(given) in {0, len(members)}
        for sets in given:
            assert sets == [read(TASKS[child])["metadata"]["dialeval"]["dataset"] for child in children]


@pytest.mark.any_lm_eval
def test_every_folder_has_a_readme_that_names_its_tasks_with_a_citation() -> None:
    for folder in (path for path in tasks_path().iterdir() if path.is_dir() and path.name != "__pycache__"):
        text = (folder / "README.md").read_text(encoding="utf-8")
        for path in folder.rglob("*.yaml"):
            assert f"* `{path.stem}`" in text
        assert all(f"### {heading}\n" in text for heading in ("Paper", "Citation", "Groups and Tasks", "Checklist"))
        keys = re.findall(r"^@\w+\{(.+),$", text, flags=re.MULTILINE)
        assert keys
        assert "```bibtex\n{}\n```".format("\n".join(map(bibtex, keys))) in text


def test_the_host_knows_the_tags() -> None:
    manager = TaskManager(include_path=str(tasks_path()), include_defaults=False)
    assert set(manager.all_tags) == {"dialogue_evaluation", "dialogue_evaluation_mini"}
