"""SLIDE's small model on the tasks of the LLM judges: the numbers are those of the scorer called directly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval_plugin import load_metric
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.methods.slide.scorer import SlideScorer
from dialeval_plugin.statistics.correlation import correlations
from tests.hosts.through_lm_eval import evaluate, metrics

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

    found = evaluate("dialogue-metric", TASK, model_args=f"scorer=slide,variant={variant},slm={tiny_slm}")
    results = metrics(found, TASK)
    # A distance is turned round by the host's adapter: in result files higher is better.
    sign = -1 if direct.orientation == "lower" else 1
    expected = correlations(
        [sign * value for value in direct.values],
        [example.ratings[mini.QUALITY][0] for example in examples],
        clusters=[context_key(example) for example in examples],
    )
    for name, coefficient in (("spearman", "spearman"), ("pearson", "pearson"), ("kendall", "kendall_b")):
        assert results[name] == pytest.approx(expected[coefficient].value, abs=1e-9)
        # The host's side sorts its rows before it resamples, so the bounds differ by the luck of the draw.
        assert results[f"{name}_ci_low"] == pytest.approx(expected[coefficient].ci_low, abs=0.05)
    assert results["n_scored"] == len(examples)
    json.dumps(results["spearman"], allow_nan=False)
