"""`dialeval lm-eval` of this package's tasks alone reads none of the host's 14,000 files of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from lm_eval import tasks
from lm_eval.tasks import TaskManager
from lm_eval.tasks._index import TaskIndex

from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.hosts.lm_eval.cli import indexing_what_is_asked_for
from dialeval_plugin.hosts.registration import register
from tests.cli.running import run

HOSTS = Path(tasks.__file__).parent


@pytest.fixture
def indexed(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """The folders whose tasks are read; of the host's own none is, which would take its time."""
    register()
    folders: set[Path] = set()
    build = TaskIndex.build

    def note(paths: Iterable[Path]) -> dict[str, Any]:
        asked = list(paths)
        folders.update(asked)
        return build([path for path in asked if path != HOSTS])

    monkeypatch.setattr(TaskIndex, "build", staticmethod(note))
    return folders


@pytest.mark.parametrize(
    "words",
    [
        "run --model hf --tasks dstc10_dialog_mini --limit 5",
        # Groups and tags have their tasks in this package too.
        "--tasks=dstc10_dialog,dialogue_evaluation_mini -L 5",
        "run -t dstc10_dialog fed_dialog --model hf",
        "validate --tasks dstc10_dialog",
    ],
)
def test_of_our_tasks_alone_no_other_is_read(words: str, indexed: set[Path]) -> None:
    with indexing_what_is_asked_for(words.split()):
        manager = TaskManager(include_path=None, metadata={"pretrained": "x"})
    assert indexed == {tasks_path()}
    assert manager.metadata == {"pretrained": "x"}
    TaskManager()
    assert HOSTS in indexed


@pytest.mark.parametrize(
    "words",
    [
        "ls tasks",
        "run --model hf",
        "run --tasks",
        "run --tasks dstc10_dialog_mini,hellaswag",
        "run --tasks hellaswag --tasks dstc10_dialog_mini",
        "run --tasks dstc10_*",
        "run --tasks dstc10_dialog_mini --include_path .",
        "run --tasks dstc10_dialog_mini --include_path",
        "run --tasks dstc10_dialog_mini -C options.yaml",
    ],
)
def test_where_another_may_be_meant_all_are_read(words: str, indexed: set[Path]) -> None:
    with indexing_what_is_asked_for(words.split()):
        TaskManager()
    assert indexed == {HOSTS, tasks_path()}


def test_the_command_does_so(indexed: set[Path]) -> None:
    done = run("lm-eval", "validate", "--tasks", "dstc10_dialog_mini")
    assert "All tasks found and valid" in done.stdout
    assert indexed == {tasks_path()}
