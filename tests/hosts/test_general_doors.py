"""The scorer `general` through every door: Python, `evaluate`, lm-eval and the command line give the same numbers."""

from __future__ import annotations

import json
from pathlib import Path

import evaluate
import lm_eval
import pytest
from typer.testing import CliRunner

from dialeval_plugin import load_metric
from dialeval_plugin.cli.main import app
from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.resources import metrics_path, tasks_path
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.hosts.registration import register
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.statistics.correlation import correlate

CONTEXTS = [["Hi there.", "Hello! How was the trip?"], ["Do you like jazz?"], [], ["Any plans?"]]
RESPONSES = ["Long, but worth it.", "", "Two streets from here.", "None yet."]
FACTS = [["I travel a lot."], [], [], "I never plan."]


@pytest.mark.parametrize("level", ["turn", "dialogue"])
def test_the_metric_gives_the_scorers_numbers(level: str, tiny_general: Path) -> None:
    result = load_metric("general", model=str(tiny_general), level=level, device="cpu").compute(
        predictions=RESPONSES, contexts=CONTEXTS, facts=FACTS
    )
    facts = [(text,) if isinstance(text, str) else tuple(text) for text in FACTS]
    items: list[Example | Dialogue] = [
        Example(str(number), tuple(map(Turn, context)), Turn(response), (), told)
        if level == "turn"
        else Dialogue(str(number), tuple(map(Turn, (*context, response))))
        for number, (context, response, told) in enumerate(zip(CONTEXTS, RESPONSES, facts, strict=True))
    ]
    direct = GeneralScorer(str(tiny_general), level=level, device="cpu").score(items)  # type: ignore[arg-type]
    assert result.pop("general") == direct.mean()
    assert result.pop("scores") == list(direct.values)
    assert result.pop("signature") == str(direct.signature)
    assert {name: result.pop(name) for name in list(direct.columns)[1:]} == {
        name: list(values) for name, values in list(direct.columns.items())[1:]
    }
    n_unscored = 1 if level == "turn" else 2
    assert result == {
        "n_total": 4,
        "n_scored": 4 - n_unscored,
        "n_unscored": n_unscored,
        "unscored": {"empty_input": n_unscored},
    }


def test_the_hosts_own_loader_and_the_command_line_give_the_same(tiny_general: Path, tmp_path: Path) -> None:
    rows = {"predictions": RESPONSES, "contexts": CONTEXTS, "model": str(tiny_general), "device": "cpu"}
    by_path = evaluate.load(str(metrics_path() / "general")).compute(**rows)
    assert by_path == load_metric("general").compute(**rows)

    lines = [{"context": context, "response": text} for context, text in zip(CONTEXTS, RESPONSES, strict=True)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    files = [tmp_path / "in.jsonl", "--output", tmp_path / "out.jsonl"]
    options = [part for option in (f"model={tiny_general}", "device=cpu") for part in ("--option", option)]
    command = ["score", *files, "--scorer", "general", "--max-unscored", "0.5", *options]
    result = CliRunner().invoke(app, list(map(str, command)))
    assert result.exit_code == 0, result.output
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["general"] for line in written] == by_path["scores"]


def test_lm_eval_gives_the_same_correlation(tiny_general: Path) -> None:
    examples = mini.read_examples("test")
    direct = GeneralScorer(str(tiny_general), device="cpu").score(examples)
    register()
    manager = lm_eval.tasks.TaskManager(include_path=str(tasks_path()), include_defaults=False)
    results = lm_eval.simple_evaluate(
        "dialogue-metric",
        model_args=f"scorer=general,model={tiny_general},device=cpu",
        tasks=["dstc10_dialog_mini"],
        task_manager=manager,
        bootstrap_iters=0,
    )["results"]["dstc10_dialog_mini"]
    expected = correlate(
        direct.values,
        [example.ratings[mini.QUALITY][0] for example in examples],
        coefficient="spearman",
        clusters=[context_key(example) for example in examples],
    )
    assert results["spearman,none"] == pytest.approx(expected.value, abs=1e-9)
    assert results["n_scored,none"] == len(examples)


def test_the_card_names_every_option_and_entry(tiny_general: Path) -> None:
    card = (metrics_path() / "general" / "README.md").read_text(encoding="utf-8")
    names: set[str] = set()
    for level in ("turn", "dialogue"):
        metric = load_metric("general", model=str(tiny_general), device="cpu", level=level)
        names |= {*metric.compute(predictions=RESPONSES, contexts=CONTEXTS)}
        names |= {*metric.inputs_description.split("of the scorer: ")[1].split(".")[0].split(", ")}
    assert {"coherence", "knowledge", "n_turns", "score_fitted", "leave_out"} <= names
    assert [name for name in names if f"`{name}`" not in card] == []
