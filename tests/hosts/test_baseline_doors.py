"""Baselines and SLIDE's small model on embedded and published sets, through lm-eval: coefficients, intervals and counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key, mean_rating
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.corpora.registry import read_items
from dialeval_plugin.hosts.lm_eval.model import DialogueMetricLM
from dialeval_plugin.methods.baselines.overlap import Bleu, Rouge
from dialeval_plugin.statistics.correlation import correlations
from tests.hosts.through_lm_eval import evaluate, metrics


@pytest.mark.parametrize(
    ("scorer", "variant", "dataset"),
    [
        *(("slide", variant, "mini") for variant in ("slm", "slm_probability", "slm_distance")),
        pytest.param("bleu", None, "tu", marks=pytest.mark.real_data),
    ],
)
def test_coefficients_intervals_and_counts_are_those_of_the_scorer(
    scorer: str, variant: str | None, dataset: str, tiny_slm: Path, request: pytest.FixtureRequest
) -> None:
    if dataset != "mini":
        request.getfixturevalue("data_dir")
    examples = mini.read_examples("test") if dataset == "mini" else dstc10.read_examples(dataset)
    options = {"n": 1} if variant is None else {"slm": str(tiny_slm), "variant": variant}
    scores = load_scorer(scorer, **options).score(examples)
    # A distance is turned round by the host's adapter: in result files higher is better.
    sign = -1 if scores.orientation == "lower" else 1
    expected = correlations(
        [sign * value for value in scores.values if value is not None],
        [mean_rating(example, mini.QUALITY if dataset == "mini" else "Overall") for example in examples],
        clusters=[context_key(example) for example in examples],
    )
    task = f"dstc10_dialog_{dataset}"
    found = metrics(evaluate(DialogueMetricLM(scorer, **options), task), task)
    for name, coefficient in (("spearman", "spearman"), ("pearson", "pearson"), ("kendall", "kendall_b")):
        assert found[name] == pytest.approx(expected[coefficient].value, abs=1e-9)
        # The host's side sorts its rows before it resamples, so the bounds differ by the luck of the draw.
        assert found[f"{name}_ci_low"] == pytest.approx(expected[coefficient].ci_low, abs=0.05)
    assert (found["n_scored"], found["n_unscored"]) == (360 if dataset == "tu" else len(examples), 0)


def test_the_command_line_scores_with_bleu(tmp_path: Path) -> None:
    data, output = tmp_path / "in.jsonl", tmp_path / "scores.jsonl"
    rows = (("Good day to you.", ["Good day!", "Hello."]), ("Who are you?", []), ("Hello.", ["Hello."]))
    lines = [json.dumps({"context": ["Hi."], "response": said, "references": references}) for said, references in rows]
    data.write_text("\n".join(lines), encoding="utf-8")
    arguments = ["score", str(data), "--scorer", "bleu", "--option", "n=2", "--output", str(output), "--max-unscored", "0.5"]
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, "bleu_2: mean" in done.output, "2 of 3 scored" in done.output) == (0, True, True), done.output
    written = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [row["bleu_2"] for row in written] == list(Bleu(2).score(read_items(data)).values)
    assert [row["n_references_equal"] for row in written] == [0.0, None, 1.0]
    assert written[1]["unscored"] == "needs_references"


@pytest.mark.real_data
@pytest.mark.parametrize(("code", "n_equal"), [("tu", 61), ("pu", 60), ("dz", 100), ("pz", 150), ("dgu", 2)])
def test_ground_truth_systems_are_counted(code: str, n_equal: int, data_dir: Path) -> None:
    scores = Rouge().score(dstc10.read(code))
    counts = [value for value in scores.columns["n_references_equal"] if value is not None]
    assert sum(count > 0 for count in counts) == n_equal
    assert len(counts) == scores.n_scored


@pytest.mark.real_data
def test_a_set_without_references_has_no_bleu(data_dir: Path) -> None:
    assert Bleu().score(dstc10.read("ft")).unscored_by_reason == {"needs_references": 375}
    found = metrics(evaluate(DialogueMetricLM("bleu"), "dstc10_dialog_ft"), "dstc10_dialog_ft")
    assert (found["n_scored"], found["n_unscored"]) == (0, 375)
    assert not isinstance(found["spearman"], float)
