"""Baselines through the command line and lm-eval: the numbers are the scorer's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.corpora.registry import read_items
from dialeval_plugin.methods.baselines.overlap import Bleu, Rouge
from tests.hosts.through_lm_eval import evaluate, metrics

ROWS = [
    {"id": "a", "context": ["Hi."], "response": "Good day to you.", "references": ["Good day!", "Hello."]},
    {"id": "b", "context": ["Hi."], "response": "Who are you?", "references": []},
    {"id": "c", "context": ["Hi."], "response": "Hello.", "references": ["Hello."]},
]


def run_task(task: str, model_args: str) -> dict[str, Any]:
    return metrics(evaluate("dialogue-metric", task, model_args=model_args), task)


def test_the_command_line_scores_with_bleu(tmp_path: Path) -> None:
    data, output = tmp_path / "in.jsonl", tmp_path / "scores.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    arguments = ["score", str(data), "--scorer", "bleu", "--option", "n=2", "--output", str(output), "--max-unscored", "0.5"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    direct = Bleu(2).score(read_items(data))
    assert [row["bleu_2"] for row in rows] == list(direct.values)
    assert [row["n_references_equal"] for row in rows] == [0.0, None, 1.0]
    assert rows[1]["unscored"] == "needs_references"
    assert "bleu_2: mean" in done.output
    assert "2 of 3 scored" in done.output


@pytest.mark.real_data
@pytest.mark.parametrize(("code", "n_equal"), [("tu", 61), ("pu", 60), ("dz", 100), ("pz", 150), ("dgu", 2)])
def test_ground_truth_systems_are_counted(code: str, n_equal: int, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(data_dir))
    scores = Rouge().score(dstc10.read(code))
    counts = [value for value in scores.columns["n_references_equal"] if value is not None]
    assert sum(count > 0 for count in counts) == n_equal
    assert len(counts) == scores.n_scored


@pytest.mark.real_data
def test_a_set_without_references_has_no_bleu(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(data_dir))
    scores = Bleu().score(dstc10.read("ft"))
    assert scores.unscored_by_reason == {"needs_references": 375}
    found = run_task("dstc10_dialog_ft", "scorer=bleu")
    assert (found["n_scored"], found["n_unscored"]) == (0, 375)
    assert not isinstance(found["spearman"], float)
