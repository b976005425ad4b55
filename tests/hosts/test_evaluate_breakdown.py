"""The metric `dbdc`: the numbers of `statistics.breakdown`, checked inputs, and the ways in."""

from __future__ import annotations

import json
import runpy
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
from dialeval_plugin.statistics.breakdown import ALWAYS_BREAKDOWN, LABELS, METRICS, breakdown_metrics
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


LABELLED = [("O", "T", "X")[place % 3] for place in range(42)]


@pytest.mark.parametrize("given", [{}, {"labels": LABELLED, "threshold": 0.4}])
def test_the_numbers_are_those_of_the_functions(metric: BreakdownMetric, given: dict[str, Any]) -> None:
    predictions, counts = [*PREDICTIONS, None, [1, 0, 0]], [*COUNTS, [1, 2, 3], [0, 0, 0]]
    dialogues = [*DIALOGUES, "d0", "d1"]
    result = metric.compute(predictions=predictions, references=counts, dialogues=dialogues, **given)
    threshold = given.get("threshold", 0.0)
    labels = [LABELS.index(label) for label in given["labels"]] if given else None
    expected = breakdown_metrics(predictions, counts, labels=labels, threshold=threshold, clusters=dialogues)
    always = breakdown_metrics([ALWAYS_BREAKDOWN] * 40, COUNTS, threshold=threshold, bootstrap=Bootstrap(rounds=0))
    for name in METRICS:
        assert result[name] == expected[name].value
        assert (result[f"{name}_ci_low"], result[f"{name}_ci_high"]) == (expected[name].ci_low, expected[name].ci_high)
        assert result["always_breakdown"][name] == always[name].value
    assert [result[name] for name in ("n_total", "n_scored", "n_unscored", "n_unannotated")] == [42, 40, 1, 1]
    assert result["undefined"] == {}
    hard = "given" if given else "likeliest"
    assert result["signature"].startswith(
        f"method:dbdc|hard_labels:{hard}|threshold:{threshold}|clusters:dialogues|rounds:1000|"
    )
    assert json.loads(json.dumps(result, allow_nan=False)) == result


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
    why = "f1_b: neither the detector nor the annotators call any of 1 turns so. Score more turns."
    assert (result["f1_b"], result["undefined"]["f1_b"], result["accuracy"]) == (None, why, 1.0)


OPTION = (
    "dbdc: there is no input or option 'cut'. Accepted are the columns predictions, references, labels, dialogues and "
    "the options threshold, rounds, confidence, seed."
)
ONE = {"predictions": [[1, 0, 0]], "references": [[1, 1, 1]]}
WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"references": [[1, 1, 1]]},
        "dbdc: the column 'predictions' is missing. Pass predictions and references, one row for every turn.",
    ),
    (
        {"predictions": "OTX", "references": []},
        "dbdc: predictions: expected a list, got 'OTX' (str). Wrap a single string in a list.",
    ),
    (
        {**ONE, "references": []},
        "dbdc: the columns 'predictions' and 'references' have 1 and 0 rows. Pass one row of each for every turn.",
    ),
    ({**ONE, "labels": ["B"]}, "dbdc: labels[0] is 'B'. Give 'O', 'T' or 'X', or None if the prediction is None."),
    (
        {**ONE, "predictions": [[1, 1, 0]]},
        "breakdown_metrics: distributions[0] is [1, 1, 0]. Give P(NB), P(PB), P(B), which sum to 1, or None.",
    ),
    ({**ONE, "cut": 0.5}, OPTION),
]


@pytest.mark.parametrize(("inputs", "text"), WRONG)
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
    with refused(OPTION):
        load_metric("dbdc", cut=1)
    with refused("dbdc: there is no configuration 'x'. Pass what you want to compute() as an option."):
        load_metric("dbdc", config_name="x")


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
