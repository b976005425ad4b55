"""`dialeval validate` builds what the host's own check only looks up by name (R71, R72)."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dialeval_plugin.core.resources import metrics_path, tasks_path
from dialeval_plugin.hosts.lm_eval.validation import Validation, validate_metrics, validate_tasks


def test_every_task_of_this_package_is_right_or_absent(use_tiny_data: Path) -> None:
    found = list(validate_tasks(tasks_path()))
    assert [result for result in found if result.state == "error"] == []
    states = {result.name: result.state for result in found}
    present = {"tu", "dz", "pu", "dgu", "ft", "eg", "fd"}
    for kind in ("", "bm25_c_", "bm25_r_", "bm25_cr_"):
        for code in ("tu", "pu", "dz", "pz", "dgu", "dgr", "eg", "cg", "ft", "fd", "d6", "d7", "hu", "ps"):
            assert states[f"dstc10_dialog_{kind}{code}"] == ("ok" if code in present else "absent"), (kind, code)
    assert states["dstc10_dialog_mini"] == "ok"
    assert states["fed_dialog_turn_interesting"] == "absent"
    groups = {result.name: result.detail for result in found if result.kind == "group"}
    expected = {
        "dstc10_dialog": "8 tasks",
        "dstc10_dialog_all": "14 tasks",
        "dstc10_dialog_bm25_c": "8 tasks",
        "dstc10_dialog_bm25_r": "8 tasks",
        "dstc10_dialog_bm25_cr": "8 tasks",
        "dre": "12 tasks",
        "slide": "12 tasks",
        "fed_dialog": "2 tasks",
        "fed_dialog_turn": "9 tasks",
        "fed_dialog_dial": "11 tasks",
    }
    assert {name: groups.get(name) for name in expected} == expected


def test_every_metric_of_this_package_loads() -> None:
    found = list(validate_metrics(metrics_path()))
    assert found
    assert {result.state for result in found} == {"ok"}


BROKEN = {
    "function": (
        "task: function\ncustom_dataset: !function dialeval_plugin.hosts.lm_eval.tasks.responses.nothing\n",
        "AttributeError: Module 'dialeval_plugin.hosts.lm_eval.tasks.responses' has no function 'nothing' "
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
    kind = "group" if name == "group" else "task"
    assert list(validate_tasks(tmp_path)) == [
        Validation(name, kind, "error", f"{path}: {detail.format(folder=tmp_path)}")  # type: ignore[arg-type]
    ]


def test_a_task_that_cannot_be_built_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "prompt.yaml"
    path.write_text(
        f"include: {tasks_path() / 'dstc10_dialog' / 'dstc10_dialog_mini.yaml'}\ntask: prompt\ndoc_to_choice: nothing\n",
        encoding="utf-8",
    )
    (found,) = validate_tasks(tmp_path)
    assert (found.name, found.state) == ("prompt", "error")
    assert found.detail.startswith(f"{path}: ")


def test_two_files_with_one_name_are_an_error(tmp_path: Path) -> None:
    text = f"include: {tasks_path() / 'dstc10_dialog' / 'dstc10_dialog_mini.yaml'}\ntask: twin\n"
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    one, two = validate_tasks(tmp_path)
    assert one.state == "ok"
    assert two == Validation(
        "twin", "task", "error", f"{tmp_path / 'b.yaml'}: {tmp_path / 'a.yaml'} has the same name. Rename one of them."
    )


def test_a_metric_whose_base_class_would_be_loaded_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    script = folder / "mine.py"
    script.write_text(
        "from dialeval_plugin.hosts.evaluate.metric import DialogueMetric\n\n\n"
        "class Mine(DialogueMetric):\n    scorer_name = 'slide'\n",
        encoding="utf-8",
    )
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
