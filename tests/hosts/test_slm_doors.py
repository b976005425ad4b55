"""The metrics `slide` and `dre` through their doors, on a small model with random weights and scripted large ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin import load_metric
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.core.scores import Scores
from dialeval_plugin.hosts.lm_eval.backend import load_language_model
from dialeval_plugin.llm.language_model import Request
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.methods.slide.dre import DreScorer
from dialeval_plugin.methods.slide.scorer import SlideScorer

CONTEXTS = [["Hi there.", "Hello! How was the long trip?"], ["Do you like jazz?"], [], ["Any plans?"]]
RESPONSES = ["The trip was long, but worth it.", "", "Two streets from here.", "🙂"]
EXAMPLES = [Example.from_texts(context, response) for context, response in zip(CONTEXTS, RESPONSES, strict=True)]
ROWS: dict[str, Any] = {"predictions": RESPONSES, "contexts": CONTEXTS}
OPTIONS: dict[str, dict[str, Any]] = {"slide": {"variant": "slm"}, "dre": {"llm": "scripted-judge"}}


@pytest.fixture(autouse=True)
def no_answers_of_other_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_ANSWERS", str(tmp_path / "answers.sqlite"))


class LengthJudge:
    """Rates by the length of the prompt, so that no answer depends on its neighbours."""

    identity = "scripted"

    def generate(self, requests: Sequence[Request]) -> list[str]:
        return [f"Engagingness: {len(request.prompt) % 10 / 10}" for request in requests]


def same_numbers(result: dict[str, Any], direct: Scores, name: str) -> None:
    assert result.pop(name) == direct.mean()
    assert result.pop("scores") == list(direct.values)
    assert result.pop("signature") == str(direct.signature)
    # The main column stands under `scores`; where it has another name than the metric, under its own as well.
    columns = {column: list(values) for column, values in direct.columns.items() if column != name}
    assert {column: result.pop(column) for column in columns} == columns
    assert result == {"n_total": 4, "n_scored": 3, "n_unscored": 1, "unscored": {"empty_input": 1}}


def test_the_same_numbers_as_the_scorer_itself(tiny_slm: Path) -> None:
    slm = str(tiny_slm)
    judge = PromptedJudge(LengthJudge())  # type: ignore[arg-type] # what `generate` needs is there
    for options in ({"variant": "slm"}, {"llm": judge}):
        result = load_metric("slide", slm=slm).compute(**ROWS, **options)
        same_numbers(result, SlideScorer(slm, **options).score(EXAMPLES), "slide")  # type: ignore[arg-type]
    result = load_metric("dre", slm=slm, llm="scripted-judge", ablation=True).compute(**ROWS)
    same_numbers(result, DreScorer(load_language_model("scripted-judge"), slm, ablation=True).score(EXAMPLES), "dre")


@pytest.mark.parametrize("name", OPTIONS)
def test_from_elsewhere_and_offline_it_is_the_same(name: str, tiny_slm: Path, tmp_path: Path) -> None:
    script = (
        "import evaluate, json, sys\n"
        "from dialeval_plugin.hosts.registration import find_metrics\n"
        "name, path, options, rows = *sys.argv[1:3], *map(json.loads, sys.argv[3:])\n"
        "print(json.dumps(evaluate.load(path, **options).compute(**rows)))\n"
        "find_metrics()\n"  # what `dialeval enable` has every Python do
        "print(json.dumps(evaluate.load(name, **options).compute(**rows)))\n"
    )
    options = {"slm": str(tiny_slm), **OPTIONS[name]}
    done = subprocess.run(
        [sys.executable, "-c", script, name, str(metrics_path().resolve() / name), json.dumps(options), json.dumps(ROWS)],
        cwd=tmp_path,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_MODULES_CACHE": str(tmp_path / "modules")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    here = load_metric(name, **options).compute(**ROWS)
    for elsewhere in map(json.loads, done.stdout.splitlines()[-2:]):
        assert elsewhere["scores"] == pytest.approx(here["scores"], abs=1e-6)
        assert elsewhere["signature"] == here["signature"]


@pytest.mark.parametrize(("name", "options"), [("slide", {"llm": "dummy"}), ("dre", {**OPTIONS["dre"], "ablation": True})])
def test_the_card_names_every_option_and_column(name: str, options: dict[str, Any], tiny_slm: Path) -> None:
    card = (metrics_path() / name / "README.md").read_text(encoding="utf-8")
    metric = load_metric(name)
    result = metric.compute(**ROWS, slm=str(tiny_slm), **options)
    known = metric.inputs_description.split("of the scorer: ")[1].split(".")[0].split(", ")
    assert "llm_args" in known
    assert [word for word in [*result, *known] if f"`{word}`" not in card] == []


@pytest.mark.parametrize(
    ("name", "column", "signed"), [("slide", "llm", "|llm_llm:dummy:"), ("dre", "influence", "|llm:dummy:")]
)
def test_a_model_that_answers_nothing_readable_is_counted(name: str, column: str, signed: str, tiny_slm: Path) -> None:
    result = load_metric(name).compute(**ROWS, slm=str(tiny_slm), llm="dummy")  # the host's own: it answers "lol"
    assert result[name] is None
    assert result["scores"] == result[column] == [None] * 4
    assert result["unscored"] == {"empty_input": 1, "parse_failure": 3}
    assert f"variant:{name}|" in result["signature"]
    assert signed in result["signature"]


def test_what_is_missing_is_said(tiny_slm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIALEVAL_SLM", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(MissingPrerequisite) as missing:
        load_metric("slide").compute(**ROWS, variant="slm")
    assert str(missing.value) == (
        "slide: no SLM is named. Train one with `dialeval train slm --data FILE --output FOLDER`, "
        "or pass slm='FOLDER or hub id', or set DIALEVAL_SLM."
    )
    with pytest.raises(MissingPrerequisite) as missing:
        load_metric("slide").compute(**ROWS, variant="slide", slm=str(tiny_slm))
    assert str(missing.value) == (
        "slide: the variant 'slide' fuses the small model with a large one, and no llm is given. "
        "Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model), or variant='slm' for the small model alone."
    )


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
