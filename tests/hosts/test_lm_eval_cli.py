"""`dialeval lm-eval`: the host's command line with our names, run with a tiny model, and what it says when data is absent."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

Run = Callable[..., CompletedProcess[str]]
MAIN = "import sys; from dialeval_plugin.hosts.lm_eval.cli import main; main(sys.argv[1:])"


def test_a_model_judges_the_group_and_a_users_folder_counts_too(
    clean_run: Run, result_of: Callable[[Path], Any], tiny_lm: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "mine.yaml").write_text(
        "include: MINI\ntask: my_task\n".replace("MINI", str(_tasks() / "dstc10_dialog" / "dstc10_dialog_mini.yaml")),
        encoding="utf-8",
    )
    done = clean_run(
        *("-c", MAIN, "run", "--model", "hf", "--model_args", f"pretrained={tiny_lm}", "--device", "cpu", "--batch_size", "8"),
        *("--tasks", "dstc10_dialog,my_task", "--include_path", str(mine), "--limit", "12"),
        *("--output_path", str(tmp_path / "out"), "--log_samples"),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = result_of(tmp_path / "out")
    assert result["results"]["my_task"]["n_scored,none"] == 12
    assert result["results"]["dstc10_dialog_tu"]["n_scored,none"] == 12
    assert -1 <= result["groups"]["dstc10_dialog"]["spearman,none"] <= 1
    (path,) = (tmp_path / "out").glob("*/samples_dstc10_dialog_tu_*.jsonl")
    sample = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    # R76: the host writes numbers as text; a reader has to turn them back.
    yes, no = (math.fsum(math.exp(float(sample["filtered_resps"][form][0])) for form in forms) for forms in ((0, 2), (1, 3)))
    assert sample["spearman"][0] == pytest.approx(yes / (yes + no), abs=1e-6)


def test_old_style_flags_and_the_list_work(clean_run: Run, tmp_path: Path) -> None:
    done = clean_run("-c", MAIN, "ls", "groups")
    assert "dstc10_dialog_bm25_cr" in done.stdout
    done = clean_run("-c", MAIN, "--model", "dummy", "--tasks", "dstc10_dialog_tu")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "|dstc10_dialog TopicalChat-USR|" in done.stdout


def test_an_absent_set_asked_for_by_name_stops_with_the_message(clean_run: Run, tiny_data: Path) -> None:
    done = clean_run("-c", MAIN, "--model", "dummy", "--tasks", "dstc10_dialog_dgr")
    assert done.returncode != 0
    assert f"MissingPrerequisite: {tiny_data / 'dstc10'}: has no dailydialog-grade_eval.json (DSTC10 set dgr)." in done.stderr


def test_the_hosts_own_names_are_still_there(clean_run: Run) -> None:
    # R73: registering before lm_eval.api.metrics is imported would empty the host's registries of `mean` and `acc`.
    code = (
        "from dialeval_plugin.hosts.registration import register; register()\n"
        "from lm_eval.api.registry import get_aggregation, get_metric, get_model\n"
        "print(get_aggregation('mean').__name__, get_metric('acc').__name__, get_model('dialogue-metric').__name__)\n"
        "print(get_model('dummy').__name__)"
    )
    done = clean_run("-c", code)
    assert done.stdout.splitlines() == ["mean acc_fn DialogueMetricLM", "DummyLM"], done.stderr


def test_without_the_host_the_core_still_imports(clean_run: Run) -> None:
    # R75
    code = (
        "import sys; sys.modules['lm_eval'] = None\n"
        "import dialeval_plugin.methods.judging.judge, dialeval_plugin.judgement_tasks.documents\n"
        "import dialeval_plugin.hosts.lm_eval.tasks.responses\n"
        "from dialeval_plugin.methods.judging.judge import SCORING_PROMPTS; print(SCORING_PROMPTS['dre'].version)"
    )
    assert clean_run("-c", code).stdout == "1\n"


def _tasks() -> Path:
    from dialeval_plugin.core.resources import tasks_path

    return tasks_path()
