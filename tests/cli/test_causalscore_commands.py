"""`dialeval train independence` and `dialeval score --explain` from outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.corpora import mini
from dialeval_plugin.methods.causalscore.scorer import CausalScorer
from tests.refusals import refused


@pytest.fixture(autouse=True)
def own_last_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def causes(path: Path, split: Any, first: int, last: int) -> Path:
    rows = [
        {
            "history": [*(f"{'AB'[place % 2]}: {text[:40]}" for place, text in enumerate(item.context)), ""],
            "response": item.positive[0][:40],
            "entities": [item.context[-1][:40]],
        }
        for item in mini.read_response_sets(split)[first:last]
    ]
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def test_train_and_score_with_an_explanation(tiny_encoder: Path, tmp_path: Path) -> None:
    training, validation = causes(tmp_path / "a.json", "train", 0, 8), causes(tmp_path / "b.json", "validation", 0, 6)
    unlabelled = causes(tmp_path / "c.json", "train", 6, 14)
    evaluation = causes(tmp_path / "d.json", "test", 0, 4)
    model = tmp_path / "model"
    shown = run(
        *("train", "independence", "--data", str(training), "--validation", str(validation), "--output", str(model)),
        *("--unlabelled", str(unlabelled), "--evaluation", str(evaluation), "--backbone", str(tiny_encoder)),
        *("--epochs", "1", "--rounds", "1", "--round-epochs", "1", "--max-tokens", "128", "--learning-rate", "0.001"),
    )
    assert f"{model}: trained on 8 responses, validated on 6, best round 0\n" in shown
    rows = [line.split() for line in shown.splitlines() if "validation" in line or "evaluation" in line]
    assert [row[0] for row in rows[-4:]] == ["unconditional", "unconditional", "round", "round"]

    lines = tmp_path / "in.jsonl"
    lines.write_text(json.dumps({"id": "q", "context": ["Do you like tea?", "Why?"], "response": "I do."}) + "\n")
    shown = run("score", str(lines), "--output", str(tmp_path / "out.jsonl"), "--scorer", "causalscore", "--explain")
    scorer = CausalScorer(str(model))
    from dialeval_plugin.corpora.registry import read_items

    items = read_items(lines)
    assert shown.startswith("\n".join(scorer.explain(items)) + "\n")
    (row,) = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert row["causalscore"] == scorer.score(items).values[0]


def test_a_scorer_that_cannot_explain_says_so_first(tiny_slm: Path, tmp_path: Path) -> None:
    lines = tmp_path / "in.jsonl"
    lines.write_text(json.dumps({"context": ["a"], "response": "b"}) + "\n")
    with refused("slide: has nothing to explain. Leave --explain out."):
        run("score", str(lines), "--output", str(tmp_path / "out"), "--slm", str(tiny_slm), "--variant", "slm", "--explain")
    assert not (tmp_path / "out").exists()
