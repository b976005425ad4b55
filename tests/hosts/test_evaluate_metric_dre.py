"""The metric `dre` through its three doors, on a small model with random weights and a scripted large one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dialeval_plugin import load_metric
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.hosts.lm_eval.backend import load_language_model
from dialeval_plugin.methods.slide.dre import DreScorer

CONTEXTS = [["Hi there.", "Hello! How was the long trip?"], ["Do you like jazz?"], [], ["Any plans?"]]
RESPONSES = ["The trip was long, but worth it.", "", "Two streets from here.", "🙂"]
ROWS = {"predictions": RESPONSES, "contexts": CONTEXTS}


@pytest.fixture(autouse=True)
def no_answers_of_other_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_ANSWERS", str(tmp_path / "answers.sqlite"))


def test_the_same_numbers_as_the_scorer_itself(tiny_slm: Path) -> None:
    result = load_metric("dre", slm=str(tiny_slm), llm="scripted-judge", ablation=True).compute(**ROWS)
    direct = DreScorer(load_language_model("scripted-judge"), str(tiny_slm), ablation=True).score(
        [Example.from_texts(context, response) for context, response in zip(CONTEXTS, RESPONSES, strict=True)]
    )
    assert result.pop("dre") == direct.mean()
    assert result.pop("scores") == list(direct.values)
    assert result.pop("signature") == str(direct.signature)
    columns = {name: list(column) for name, column in direct.columns.items() if name != "dre"}
    assert {name: result.pop(name) for name in columns} == columns
    assert result == {"n_total": 4, "n_scored": 3, "n_unscored": 1, "unscored": {"empty_input": 1}}


def test_from_elsewhere_and_offline_it_is_the_same(tiny_slm: Path, tmp_path: Path) -> None:
    script = (
        "import evaluate, json, sys\n"
        "from dialeval_plugin.hosts.registration import find_metrics\n"
        "options, rows = dict(slm=sys.argv[2], llm='scripted-judge'), json.loads(sys.argv[3])\n"
        "print(json.dumps(evaluate.load(sys.argv[1], **options).compute(**rows)))\n"
        "find_metrics()\n"  # what `dialeval enable` has every Python do
        "print(json.dumps(evaluate.load('dre', **options).compute(**rows)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(metrics_path().resolve() / "dre"), str(tiny_slm), json.dumps(ROWS)],
        cwd=tmp_path,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_MODULES_CACHE": str(tmp_path / "modules")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    here = load_metric("dre", slm=str(tiny_slm), llm="scripted-judge").compute(**ROWS)
    by_path, by_name = map(json.loads, done.stdout.splitlines()[-2:])
    for elsewhere in (by_path, by_name):
        assert elsewhere["scores"] == pytest.approx(here["scores"], abs=1e-6)
        assert elsewhere["signature"] == here["signature"]


def test_the_card_names_every_option_and_column(tiny_slm: Path) -> None:
    card = (metrics_path() / "dre" / "README.md").read_text(encoding="utf-8")
    metric = load_metric("dre")
    result = metric.compute(**ROWS, slm=str(tiny_slm), llm="scripted-judge", ablation=True)
    options = metric.inputs_description.split("of the scorer: ")[1].split(".")[0].split(", ")
    assert "llm_args" in options
    assert [name for name in [*result, *options] if f"`{name}`" not in card] == []


def test_a_model_that_answers_nothing_readable_is_counted(tiny_slm: Path) -> None:
    result = load_metric("dre").compute(**ROWS, slm=str(tiny_slm), llm="dummy")  # the host's own: it answers "lol"
    assert result["dre"] is None
    assert result["scores"] == result["influence"] == [None] * 4
    assert result["unscored"] == {"empty_input": 1, "parse_failure": 3}


def test_a_judge_is_no_language_model(tiny_slm: Path) -> None:
    with pytest.raises(InputError) as refused:
        load_metric("dre").compute(**ROWS, slm=str(tiny_slm), llm=7)
    assert str(refused.value) == (
        "llm: expected the name of an lm-eval model or a language model, got 7 (int). "
        "Pass for example llm='hf', llm_args='pretrained=...'."
    )
    with pytest.raises(InputError) as refused:
        load_metric("dre").compute(**ROWS, slm=str(tiny_slm), llm=load_language_model("dummy"), llm_args="a=b")
    assert str(refused.value) == "llm_args: 'a=b' was given beside a model that is loaded already. Leave llm_args out."
