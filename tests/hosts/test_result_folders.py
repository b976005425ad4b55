"""TRIAL section 3: results of scorers lay in `results/8vrxqp5g/`, or several in one folder named after their `model=`."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from dialeval_plugin.hosts.lm_eval.model import DialogueMetricLM
from dialeval_plugin.hosts.lm_eval.run import folder_name
from dialeval_plugin.leaderboard.result_files import read_runs
from tests.cli.running import run
from tests.hosts.through_lm_eval import evaluate
from tests.refusals import refused


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({}, "dialogue-metric_general"),
        ({"scorer": "slide", "variant": "slm"}, "dialogue-metric_slide_variant=slm"),
        # Of the general evaluator too `model` is an option, which the host would take for the folder's whole name.
        ({"scorer": "general", "model": "general-open"}, "dialogue-metric_general_model=general-open"),
        ({"scorer": "chrf", "api_key": "sesame"}, "dialogue-metric_chrf"),
        ({"scorer": "slide", "slm": "a/slm"}, r"dialogue-metric_slide_slm=slm_[0-9a-f]{8}"),
        ({"scorer": "slide", "x": "y" * 200}, r"dialogue-metric_slide_x=y{76}_[0-9a-f]{8}"),
    ],
)
def test_the_name_is_of_model_scorer_and_options(arguments: dict[str, str], name: str) -> None:
    assert re.fullmatch(name, folder_name("dialogue-metric", arguments))


def test_where_no_scorer_is_named_it_is_the_models_own_default() -> None:
    default = inspect.signature(DialogueMetricLM).parameters["scorer"].default
    assert folder_name("dialogue-metric", {}) == f"dialogue-metric_{default}"


def test_folders_of_one_name_elsewhere_are_told_apart() -> None:
    assert len({folder_name("dialogue-metric", {"scorer": "slide", "slm": place}) for place in ("a/slm", "b/slm")}) == 2


def test_a_replayed_judge_is_named_by_its_source() -> None:
    assert folder_name("replay-judge", {"source": "gpt-4/x", "quality": "Overall"}) == "replay-judge_gpt-4/x_quality=Overall"


@pytest.mark.long
def test_two_scorers_have_two_folders_in_python(tmp_path: Path) -> None:
    for scorer in ("response_length", "random"):
        evaluate("dialogue-metric", "dstc10_dialog_mini", model_args=f"scorer={scorer}", limit=5, output=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dialogue-metric_random", "dialogue-metric_response_length"]


@pytest.mark.long
def test_the_command_says_where_the_results_are_and_what_comes_next(tmp_path: Path) -> None:
    words = ["--model", "dialogue-metric", "--model_args", "scorer=response_length", "--tasks", "dstc10_dialog_mini"]
    done = run("lm-eval", "run", *words, "--limit", "5", "--output_path", tmp_path, "--log_samples")
    (written,) = (tmp_path / "dialogue-metric_response_length").glob("results_*.json")
    assert done.stdout.splitlines()[-1] == f"results: {written}"
    board = f"dialeval leaderboard build {tmp_path} --output board"
    assert done.stderr.splitlines()[-1] == f"next: {board}  (their table with intervals and plots)"


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "dialeval leaderboard build {written} --output board  (their table; --log_samples adds plots and cases)"),
        (
            ["--predict_only", "--apply_chat_template"],
            "the same command without --predict_only  (answers that were kept are not scored later)",
        ),
    ],
)
def test_what_comes_next_can_be_typed(
    words: list[str], expected: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # lm-eval#1152 and #3513; TRIAL F06.
    model = ["--model", "dialogue-metric", "--model_args", "scorer=response_length", "--tasks", "dstc10_dialog_mini"]
    done = run("lm-eval", "run", *model, "--limit", "5", "--output_path", tmp_path / "mine.json", *words)
    (path,) = tmp_path.glob("mine_*.json")
    assert done.stdout.splitlines()[-1] == f"results: {path}"
    assert done.stderr.splitlines()[-1] == f"next: {expected.format(written=path)}"
    if words:
        table = "dstc10_dialog_mini  spearman   not scored: --predict_only keeps the answers alone"
        assert table in done.stdout.splitlines()
        caplog.clear()
        advice = "Give what `dialeval lm-eval --output_path FOLDER --log_samples` wrote."
        with refused(f"{tmp_path}: no result of this package's tasks is there. {advice}"):
            read_runs([tmp_path])
        why = "left out: --predict_only kept its answers and scored none. Run it again without."
        assert f"{path}: dstc10_dialog_mini: {why}" in caplog.messages
