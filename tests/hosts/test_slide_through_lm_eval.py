"""SLIDE's small model on the tasks of the LLM judges: the numbers are those of the scorer called directly."""

from __future__ import annotations

import json
from pathlib import Path

import lm_eval
import pytest

from dialeval_plugin import load_metric
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.hosts.registration import register
from dialeval_plugin.methods.slide.scorer import SlideScorer
from dialeval_plugin.statistics.correlation import correlations

TASK = "dstc10_dialog_mini"


@pytest.mark.parametrize("variant", ["slm", "slm_probability", "slm_distance"])
def test_three_doors_give_the_same_numbers(variant: str, tiny_slm: Path) -> None:
    examples = mini.read_examples("test")
    direct = SlideScorer(str(tiny_slm), variant=variant).score(examples)
    metric = load_metric("slide").compute(
        predictions=[example.response.text for example in examples],
        contexts=[[turn.text for turn in example.context] for example in examples],
        slm=str(tiny_slm),
        variant=variant,
    )
    assert metric["scores"] == pytest.approx(direct.values, abs=1e-9)
    assert metric["signature"] == str(direct.signature)

    register()
    manager = lm_eval.tasks.TaskManager(include_path=str(tasks_path()), include_defaults=False)
    results = lm_eval.simple_evaluate(
        "dialogue-metric",
        model_args=f"scorer=slide,variant={variant},slm={tiny_slm}",
        tasks=[TASK],
        task_manager=manager,
        bootstrap_iters=0,
    )["results"][TASK]
    # A distance is turned round by the host's adapter: in result files higher is better.
    sign = -1 if direct.orientation == "lower" else 1
    expected = correlations(
        [sign * value for value in direct.values],
        [example.ratings[mini.QUALITY][0] for example in examples],
        clusters=[context_key(example) for example in examples],
    )
    for name, coefficient in (("spearman", "spearman"), ("pearson", "pearson"), ("kendall", "kendall_b")):
        assert results[f"{name},none"] == pytest.approx(expected[coefficient].value, abs=1e-9)
        # The host's side sorts its rows before it resamples, so the bounds differ by the luck of the draw.
        assert results[f"{name}_ci_low,none"] == pytest.approx(expected[coefficient].ci_low, abs=0.05)
    assert results["n_scored,none"] == len(examples)
    json.dumps(results["spearman,none"], allow_nan=False)
