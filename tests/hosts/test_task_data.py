"""TRIAL, issue G 7: a misspelt option in `--metadata` stops the run, whichever model it is for and however it is started."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.hosts.lm_eval.slm_tasks import slide_dataset
from dialeval_plugin.hosts.lm_eval.tasks.classification import mini_dataset
from tests.hosts import through_lm_eval
from tests.refusals import refused

SLIDE = "clip, fusion, normalise, rated_quality, round3, slm, slm_scale"


def evaluate(task: str, metadata: dict[str, Any], model_args: dict[str, Any]) -> Any:
    given = {**model_args, **metadata}
    return through_lm_eval.evaluate("scripted-judge", task, metadata=given, model_args=model_args, limit=2)


def test_an_option_that_no_task_takes_is_refused(tiny_slm: Path) -> None:
    with refused(f"slide_mini: --metadata: there is no option 'fuson'. Did you mean 'fusion'? Known are: {SLIDE}."):
        evaluate("slide_mini", {"slm": str(tiny_slm), "fuson": "agree"}, {})
    with refused("dstc10_dialog_mini: --metadata: there is no option 'fuson'. Known are: literal_log."):
        evaluate("dstc10_dialog_mini", {"fuson": 1}, {})


def test_a_models_arguments_are_no_options_and_another_tasks_option_is_said(
    tiny_slm: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        found = evaluate("dstc10_dialog_mini", {"slm": str(tiny_slm)}, {"refuse": "cats"})
    assert found["results"]["dstc10_dialog_mini"]["n_scored,none"] == 2
    assert "dstc10_dialog_mini: --metadata names slm, which this task does not take. It takes: literal_log." in caplog.messages


def test_called_by_hand_a_data_set_takes_its_own_options_only(tiny_slm: Path) -> None:
    assert len(mini_dataset(version=1.0, config_source="x.yaml")["test"]) > 0
    with pytest.raises(InputError) as refused:
        slide_dataset(dataset="mini", slm=str(tiny_slm), fuson="agree")
    assert str(refused.value).startswith("task: --metadata: there is no option 'fuson'. Did you mean 'fusion'? Known are: ")


def test_the_hosts_own_command_line_says_so(clean_run: Callable[..., CompletedProcess[str]]) -> None:
    done = clean_run(
        *("-m", "lm_eval", "run", "--model", "dummy", "--tasks", "dstc10_dialog_mini", "--include_path", str(tasks_path())),
        *("--limit", "2", "--metadata", '{"literal": true}'),
    )
    assert done.returncode != 0
    assert (
        "InputError: dstc10_dialog_mini: --metadata: there is no option 'literal'. Did you mean 'literal_log'? "
        "Known are: literal_log."
    ) in done.stderr


def test_an_option_that_a_scorer_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match=r"^chrf: .* 'fuson'"):
        through_lm_eval.evaluate("dialogue-metric", "dstc10_dialog_mini", model_args="scorer=chrf,fuson=1")
