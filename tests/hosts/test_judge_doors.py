"""Metrics that ask a language model: from elsewhere and offline, with models that say nothing, and the prompts of the docs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin import load_metric
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.hosts.lm_eval.backend import load_language_model
from dialeval_plugin.methods.judging.criterion_judges import CHIANG_PROMPTS, G_EVAL_PROMPTS, LlmChiang
from tests import forked
from tests.cli.running import environment
from tests.refusals import refused

CONTEXTS = [["Hi there.", "Hello! How was the long trip?"], ["Do you like jazz?"], [], ["Any plans?"]]
RESPONSES = ["The trip was long, but worth it.", "", "Two streets from here.", "🙂"]
ROWS: dict[str, Any] = {"predictions": RESPONSES, "contexts": CONTEXTS}
OPTIONS: dict[str, dict[str, Any]] = {"slide": {"variant": "slm"}, "dre": {"llm": "scripted-judge"}}


@pytest.fixture(autouse=True)
def no_answers_of_other_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_ANSWERS", str(tmp_path / "answers.sqlite"))


@pytest.mark.any_lm_eval
@pytest.mark.long
def test_from_elsewhere_and_offline_it_is_the_same(tiny_slm: Path, tmp_path: Path) -> None:
    script = (
        "import evaluate, json, sys\n"
        "from dialeval_plugin.hosts.registration import find_metrics\n"
        "given, rows = map(json.loads, sys.argv[2:])\n"
        "def show(name, where): print(json.dumps([name, evaluate.load(where, **given[name]).compute(**rows)]))\n"
        "for name in given:\n"
        "    path = f'{sys.argv[1]}/{name}'\n"
        "    show(name, path), show(name, f'{path}/{name}.py')\n"
        "find_metrics()\n"  # what `dialeval enable` has every Python do
        "for name in given: show(name, name)\n"
    )
    given = {name: {"slm": str(tiny_slm), **options} for name, options in OPTIONS.items()}
    command = [sys.executable, "-c", script, metrics_path().resolve(), json.dumps(given), json.dumps(ROWS)]
    done = forked.run(command, cwd=tmp_path, env=environment(tmp_path))
    assert done.returncode == 0, done.stderr
    here = {name: load_metric(name, **options).compute(**ROWS) for name, options in given.items()}
    shown = [json.loads(line) for line in done.stdout.splitlines()[-3 * len(given) :]]
    assert [name for name, _ in shown] == [*(name for name in given for _ in range(2)), *given]
    for name, elsewhere in shown:
        assert elsewhere["scores"] == pytest.approx(here[name]["scores"], abs=1e-6)
        assert elsewhere["signature"] == here[name]["signature"]


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


def test_a_judge_is_no_language_model(tiny_slm: Path) -> None:
    with refused(
        "llm: expected the name of an lm-eval model or a language model, got 7 (int). "
        "Pass for example llm='hf', llm_args='pretrained=...'."
    ):
        load_metric("dre").compute(**ROWS, slm=str(tiny_slm), llm=7)
    with refused("llm_args is 'a=b', but the model given as llm is loaded already. Leave llm_args out."):
        load_metric("dre").compute(**ROWS, slm=str(tiny_slm), llm=load_language_model("dummy"), llm_args="a=b")


@pytest.mark.parametrize("mode", ["sampled", "weighted"])
def test_a_tiny_model_is_drawn_from_and_weighed(tiny_lm: Path, mode: Any) -> None:
    model = load_language_model("hf", f"pretrained={tiny_lm}", device="cpu", batch_size=4)
    examples = [Example.from_texts(CONTEXTS[0], text, id=text) for text in (RESPONSES[0], RESPONSES[2])]
    scores = LlmChiang(model, mode=mode, n_samples=3, criteria="coherence").score(examples)
    assert scores.n_scored + scores.n_unscored == 2
    if mode == "weighted":
        assert scores.n_scored == 2
        assert all(value is not None and 1 < value < 5 for value in scores.values)


def test_the_docs_print_the_prompts() -> None:
    files = (Path(__file__).parents[2] / "docs" / "data" / "prompts").glob("*.txt")
    docs = "".join(path.read_text(encoding="utf-8") for path in sorted(files))
    context = ["Do you have plans for Sunday?", "Not yet. Why?"]
    example = Example.from_texts(context, "There is a market by the river. Come with me!")
    for prompts in (G_EVAL_PROMPTS, CHIANG_PROMPTS):
        assert prompts["engagingness"].render(example) in docs
        whole = prompts["engagingness"].render(example).casefold().splitlines()
        for criterion, prompt in prompts.items():
            lines = prompt.render(example).splitlines()
            own = [line for line in lines if line.casefold().replace(criterion, "engagingness") not in whole]
            assert all(line in docs.splitlines() for line in own)
            assert own or criterion == "engagingness"
