"""The metric `slide` with its real scorer, on a small model with random weights."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dialeval_plugin import load_metric
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.methods.slide.scorer import SlideScorer

CONTEXTS = [["Hi there.", "Hello! How was the trip?"], ["Do you like jazz?"], [], ["Any plans?"]]
RESPONSES = ["Long, but worth it.", "", "Two streets from here.", "🙂"]


def test_the_same_numbers_as_the_scorer_itself(tiny_slm: Path) -> None:
    result = load_metric("slide").compute(predictions=RESPONSES, contexts=CONTEXTS, slm=str(tiny_slm), variant="slm")
    direct = SlideScorer(str(tiny_slm), variant="slm").score(
        [Example.from_texts(context, response) for context, response in zip(CONTEXTS, RESPONSES, strict=True)]
    )
    assert result.pop("slide") == direct.mean()
    assert result.pop("scores") == list(direct.values)
    assert result.pop("signature") == str(direct.signature)
    assert {name: result.pop(name) for name in direct.columns} == {
        name: list(column) for name, column in direct.columns.items()
    }
    assert result == {"n_total": 4, "n_scored": 3, "n_unscored": 1, "unscored": {"empty_input": 1}}


def test_an_absolute_path_gives_the_same_offline_from_elsewhere(tiny_slm: Path, tmp_path: Path) -> None:
    script = (
        "import evaluate, json, sys\n"
        "metric = evaluate.load(sys.argv[1], slm=sys.argv[2], variant='slm')\n"
        "print(json.dumps(metric.compute(**json.loads(sys.argv[3]))))\n"
    )
    rows = {"predictions": RESPONSES, "contexts": CONTEXTS}
    done = subprocess.run(
        [sys.executable, "-c", script, str(metrics_path().resolve() / "slide"), str(tiny_slm), json.dumps(rows)],
        cwd=tmp_path,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_MODULES_CACHE": str(tmp_path / "modules")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    elsewhere = json.loads(done.stdout.splitlines()[-1])
    here = load_metric("slide", slm=str(tiny_slm), variant="slm").compute(**rows)
    assert elsewhere["scores"] == pytest.approx(here["scores"], abs=1e-6)
    assert elsewhere["signature"] == here["signature"]


def test_what_is_missing_is_said(tiny_slm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIALEVAL_SLM", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    metric = load_metric("slide")
    with pytest.raises(MissingPrerequisite) as error:
        metric.compute(predictions=RESPONSES, contexts=CONTEXTS, variant="slm")
    assert str(error.value) == (
        "slide: no SLM is named. Train one with `dialeval train slm --data FILE --output FOLDER`, "
        "or pass slm='FOLDER or hub id', or set DIALEVAL_SLM."
    )
    with pytest.raises(MissingPrerequisite) as error:
        metric.compute(predictions=RESPONSES, contexts=CONTEXTS, variant="slide", slm=str(tiny_slm))
    assert str(error.value) == (
        "slide: the variant 'slide' fuses the small model with a large one, and no llm is given. "
        "Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model), or variant='slm' for the small model alone."
    )


def test_the_card_names_every_option_and_column(tiny_slm: Path) -> None:
    card = (metrics_path() / "slide" / "README.md").read_text(encoding="utf-8")
    metric = load_metric("slide")
    result = metric.compute(predictions=RESPONSES, contexts=CONTEXTS, slm=str(tiny_slm), llm="dummy")
    options = metric.inputs_description.split("of the scorer: ")[1].split(".")[0].split(", ")
    assert "llm_args" in options
    assert [name for name in [*result, *options] if f"`{name}`" not in card] == []


def test_a_named_language_model_is_asked_and_what_it_does_not_answer_is_counted(tiny_slm: Path) -> None:
    rows = {"predictions": RESPONSES, "contexts": CONTEXTS}
    result = load_metric("slide").compute(**rows, slm=str(tiny_slm), llm="dummy")  # the host's own: it answers "lol"
    assert result["slide"] is None
    assert result["scores"] == result["llm"] == [None] * 4
    assert result["unscored"] == {"empty_input": 1, "parse_failure": 3}
    assert "variant:slide|" in result["signature"]
    assert "|llm_llm:dummy:" in result["signature"]


class ScriptedModel:
    """Rates by the length of the prompt, so that no answer depends on its neighbours."""

    identity = "scripted"

    def generate(self, prompts: Sequence[str], *, max_tokens: int, stop: Sequence[str]) -> list[str]:
        return [f"Engagingness: {len(prompt) % 10 / 10}" for prompt in prompts]


def test_a_loaded_judge_gives_the_same_fusion_as_the_scorer_itself(tiny_slm: Path) -> None:
    judge = PromptedJudge(ScriptedModel(), prompt="slide")  # type: ignore[arg-type] # what `generate` needs is there
    result = load_metric("slide").compute(predictions=RESPONSES, contexts=CONTEXTS, slm=str(tiny_slm), llm=judge)
    direct = SlideScorer(str(tiny_slm), llm=judge).score(
        [Example.from_texts(context, response) for context, response in zip(CONTEXTS, RESPONSES, strict=True)]
    )
    assert result["n_scored"] == 3
    assert result["scores"] == list(direct.values)
    assert result["llm"] == list(direct.columns["llm"])
    assert (result["slide"], result["signature"]) == (direct.mean(), str(direct.signature))
