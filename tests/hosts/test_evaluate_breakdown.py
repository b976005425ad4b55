"""The metric `dbdc`: the numbers of `meta_evaluation.breakdown`, checked inputs, and the ways in."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pytest

from dialeval_plugin import load_metric
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.hosts.evaluate.breakdown_metric import COLUMNS, OPTIONS, BreakdownMetric
from dialeval_plugin.hosts.evaluate.space import breakdown_values
from dialeval_plugin.hosts.lm_eval.validation import Validation, validate_metrics
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.breakdown.detection import ALWAYS_BREAKDOWN, LABELS, METRICS, breakdown_metrics
from tests.refusals import refused

RANDOM = np.random.default_rng(0)
COUNTS = RANDOM.multinomial(30, (0.4, 0.3, 0.3), size=40).tolist()
PREDICTIONS = RANDOM.dirichlet((1, 1, 1), size=40).tolist()
DIALOGUES = [f"d{index // 8}" for index in range(40)]
FOLDER = metrics_path() / "dbdc"


@pytest.fixture
def metric() -> BreakdownMetric:
    found: BreakdownMetric = load_metric("dbdc")
    return found


def test_the_numbers_are_those_of_the_functions(metric: BreakdownMetric) -> None:
    predictions, counts = [*PREDICTIONS, None, [1, 0, 0]], [*COUNTS, [1, 2, 3], [0, 0, 0]]
    dialogues = [*DIALOGUES, "d0", "d1"]
    result = metric.compute(predictions=predictions, references=counts, dialogues=dialogues)
    expected = breakdown_metrics(predictions, counts, clusters=dialogues)
    always = breakdown_metrics([ALWAYS_BREAKDOWN] * 40, COUNTS, bootstrap=Bootstrap(rounds=0))
    for name in METRICS:
        assert result[name] == expected[name].value
        assert (result[f"{name}_ci_low"], result[f"{name}_ci_high"]) == (expected[name].ci_low, expected[name].ci_high)
        assert result["always_breakdown"][name] == always[name].value
    assert [result[name] for name in ("n_total", "n_scored", "n_unscored", "n_unannotated")] == [42, 40, 1, 1]
    assert result["undefined"] == {}
    assert result["signature"].startswith("method:dbdc|hard_labels:likeliest|threshold:0.0|clusters:dialogues|rounds:1000|")
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_the_organisers_numbers_come_out_here_too(metric: BreakdownMetric, oracles_dir: Path) -> None:
    oracle = json.loads((oracles_dir / "dbdc_metrics.json").read_text(encoding="utf-8"))
    run = oracle["runs"][1]
    predictions, references, labels = [], [], []
    for dialogue in oracle["dialogues"]:
        turns = [turn["annotations"] for turn in dialogue["turns"] if turn["speaker"] == "S" and turn["annotations"]]
        for turn, (label, distribution) in zip(turns, run["predictions"][dialogue["dialogue-id"]], strict=True):
            predictions.append(distribution)
            labels.append(label)
            references.append([sum(entry["breakdown"] == name for entry in turn) for name in LABELS])
    result = metric.compute(predictions=predictions, references=references, labels=labels, threshold=run["threshold"], rounds=0)
    assert result["f1_b"] == pytest.approx(run["full_precision"]["f1_B"], abs=1e-6)
    assert result["f1_pb_b"] == pytest.approx(run["full_precision"]["f1_PB_B"], abs=1e-6)
    assert result["mse_nbpb_b"] == pytest.approx(run["full_precision"]["mse_OT_X"], abs=1e-6)


def test_rows_may_be_added(metric: BreakdownMetric) -> None:
    whole = metric.compute(predictions=PREDICTIONS, references=COUNTS)
    metric.add(prediction=PREDICTIONS[0], reference=COUNTS[0])
    metric.add_batch(predictions=PREDICTIONS[1:9], references=COUNTS[1:9])
    assert len(metric) == 9
    assert metric.compute(predictions=PREDICTIONS[9:], references=COUNTS[9:]) == whole
    assert len(metric) == 0
    metric.add_batch(predictions=np.array(PREDICTIONS), references=np.array(COUNTS))
    assert metric.compute() == whole


def test_undefined_is_none_with_the_reason(metric: BreakdownMetric) -> None:
    result = metric.compute(predictions=[[1, 0, 0]], references=[[5, 0, 0]], rounds=0)
    assert result["f1_b"] is None
    assert result["undefined"]["f1_b"] == (
        "f1_b: neither the detector nor the annotators call any of 1 turns so. Score more turns."
    )
    assert result["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        (
            {"references": [[1, 1, 1]]},
            "dbdc: the column 'predictions' is missing. Pass predictions and references, one row for every turn.",
        ),
        (
            {"predictions": "OTX", "references": []},
            "dbdc: predictions: expected a list, got 'OTX' (str). Wrap a single string in a list.",
        ),
        (
            {"predictions": [[1, 0, 0]], "references": []},
            "dbdc: the columns 'predictions' and 'references' have 1 and 0 rows. Pass one row of each for every turn.",
        ),
        (
            {"predictions": [[1, 0, 0]], "references": [[1, 1, 1]], "labels": ["B"]},
            "dbdc: labels[0] is 'B'. Give 'O', 'T' or 'X', or None beside a prediction of None.",
        ),
        (
            {"predictions": [[1, 1, 0]], "references": [[1, 1, 1]]},
            "breakdown_metrics: distributions[0] is [1, 1, 0]. Give P(NB), P(PB), P(B), which sum to 1, or None.",
        ),
        (
            {"predictions": [[1, 0, 0]], "references": [[1, 1, 1]], "cut": 0.5},
            f"dbdc: there is no input or option 'cut'. Accepted are the columns {', '.join(COLUMNS)} and the options "
            f"{', '.join(OPTIONS)}.",
        ),
    ],
)
def test_wrong_input_is_named_and_not_kept(metric: BreakdownMetric, inputs: dict[str, Any], text: str) -> None:
    with refused(text):
        metric.compute(**inputs)
    assert len(metric) == 0


def test_labels_come_with_all_rows_or_with_none(metric: BreakdownMetric) -> None:
    metric.add(prediction=[1, 0, 0], reference=[1, 1, 1], label="O")
    with refused("dbdc: some rows have labels and others not. Pass them with all rows or with none."):
        metric.add(prediction=[1, 0, 0], reference=[1, 1, 1])
    assert len(metric) == 1


def test_options_may_be_given_when_it_is_loaded() -> None:
    loaded = load_metric("dbdc", rounds=0, threshold=0.6)
    result = loaded.compute(predictions=PREDICTIONS, references=COUNTS)
    assert "|threshold:0.6|clusters:turns|rounds:0|" in result["signature"]
    assert result["accuracy_ci_low"] is None
    for settings, text in (
        (
            {"cut": 1},
            "dbdc: there is no input or option 'cut'. Accepted are the columns predictions, references, labels, dialogues and "
            "the options threshold, rounds, confidence, seed.",
        ),
        ({"config_name": "x"}, "dbdc: there is no configuration 'x'. Pass what you want to compute() as an option."),
    ):
        with refused(text):
            load_metric("dbdc", **settings)


def test_the_host_loads_it_by_path_and_the_validation_says_so() -> None:
    loaded = evaluate.load(str(FOLDER.resolve()))
    assert type(loaded).__mro__[1] is BreakdownMetric
    assert loaded.name == "dbdc"
    assert loaded.info.citation.startswith("@misc{higashinaka2017dialogue")
    assert Validation("dbdc", "metric", "ok") in list(validate_metrics(metrics_path()))


def test_the_card_names_every_input_option_and_result(metric: BreakdownMetric) -> None:
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    result = metric.compute(predictions=PREDICTIONS, references=COUNTS, rounds=10)
    names = [name for name in result if not name.endswith(("_ci_low", "_ci_high"))]
    assert [name for name in (*names, *COLUMNS, *OPTIONS) if f"`{name}`" not in card] == []


def test_the_page_reads_a_line_a_turn(metric: BreakdownMetric, monkeypatch: pytest.MonkeyPatch) -> None:
    result = breakdown_values("0.7 0.2 0.1 20 5 5\n\n0.1, 0.2, 0.7, 2, 8, 20\n")
    assert result == metric.compute(predictions=[[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], references=[[20, 5, 5], [2, 8, 20]])
    with refused("line 1: could not convert string to float: 'x'. Give three probabilities and three whole numbers."):
        breakdown_values("x")
    launched = []

    class Page:
        def launch(self) -> None:
            launched.append("dbdc")

    monkeypatch.setattr("dialeval_plugin.hosts.evaluate.space.breakdown_page", Page)
    runpy.run_path(str(FOLDER / "app.py"), run_name="__main__")
    assert launched == ["dbdc"]
