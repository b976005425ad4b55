"""The regression over indicators: the authors' numbers, what is learnt and stored, and folds that keep contexts whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.methods.proxy_indicators.indicators import _complete
from dialeval_plugin.methods.proxy_indicators.regression import Feature, FeatureRange, ProxyModel, fit, predict_held_out
from dialeval_plugin.methods.proxy_indicators.tasks import DEFAULT_CHOICES, SUBSETS, Choice, IndicatorSettings
from tests.refusals import refusal

RANDOM = np.random.default_rng(0)
NAMES = ("cola", "sst", "stsb")
TABLE = RANDOM.uniform(size=(60, 3)) * (1, 1, 5)
RATINGS = 1 + 2 * TABLE[:, 0] - 0.5 * TABLE[:, 2] + RANDOM.normal(scale=0.2, size=60)
CONTEXTS = [f"context {index // 6}" for index in range(60)]


@pytest.fixture(scope="module")
def oracle(oracles_dir: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((oracles_dir / "proxy_indicators.json").read_text(encoding="utf-8"))
    return found


def test_scikit_learn_fits_the_same_weights(oracle: dict[str, Any]) -> None:
    overall = np.array(oracle["Y"])[:, oracle["criteria"].index("Overall")]
    assert set(oracle["linreg"]) == set(SUBSETS)
    for name, expected in oracle["linreg"].items():
        assert tuple(expected["features"]) == SUBSETS[name]
        columns = np.array(oracle["X"])[:, [oracle["features"].index(feature) for feature in SUBSETS[name]]]
        fitted = fit(SUBSETS[name], columns, overall)
        assert fitted.weights == pytest.approx(expected["coef"], abs=1e-6)
        assert fitted.intercept == pytest.approx(expected["intercept"], abs=1e-6)


def test_a_model_that_was_stored_is_the_same(tmp_path: Path) -> None:
    settings = IndicatorSettings(NAMES, entailment="not_entailment", absent_fact="_nofact", truncate="left")
    model = ProxyModel(settings, fit(NAMES, TABLE, RATINGS), "Overall", {"cola": "0123"})
    model.save(tmp_path / "proxy.json")
    read = ProxyModel.load(tmp_path / "proxy.json")
    assert read == model
    assert (read.regression.predict(TABLE) == model.regression.predict(TABLE)).all()


def test_the_file_names_each_column_with_its_range_and_the_classifiers_that_are_used(tmp_path: Path) -> None:
    column = {"name": "cola", "low": 0.1, "high": 0.9, "weight": 0.5}
    stored = {
        "kind": "glue_proxy",
        "schema_version": 1,
        "quality": "Overall",
        "regression": {"features": [column], "intercept": 0.25, "target": {"low": 1.0, "high": 5.0}, "n_rows": 9},
        "settings": {
            "features": ["cola"],
            "classifiers": {"cola": {"model": "my/cola", "labels": ["no", "yes"]}},
            "entailment": "entailment",
            "absent_fact": None,
            "truncate": "left",
        },
        "hashes": {"cola": "0123"},
    }
    path = tmp_path / "proxy.json"
    path.write_text(json.dumps(stored), encoding="utf-8")
    read = ProxyModel.load(path)
    assert read.regression.features == (Feature(0.1, 0.9, "cola", 0.5),)
    assert read.settings.classifiers == {**DEFAULT_CHOICES, "cola": Choice("my/cola", ("no", "yes"))}
    read.save(path)
    assert json.loads(path.read_text(encoding="utf-8")) == stored


def test_the_ranges_are_those_of_the_fit() -> None:
    fitted = fit(NAMES, TABLE, RATINGS)
    ranges = [(feature.low, feature.high) for feature in fitted.features]
    assert ranges == list(zip(TABLE.min(axis=0), TABLE.max(axis=0), strict=True))
    assert fitted.target == FeatureRange(RATINGS.min(), RATINGS.max())
    together = fitted.predict([[0.5, 0.5, 2.5], [90.0, 0.5, 2.5]])
    assert together[0] == fitted.predict([[0.5, 0.5, 2.5]])[0]
    # A row beyond the range goes on in a straight line.
    assert together[1] > 1


def test_scaling_a_column_changes_no_prediction() -> None:
    scaled = TABLE * (100, 1, 1) + (7, 0, 0)
    assert fit(NAMES, scaled, RATINGS).predict(scaled) == pytest.approx(fit(NAMES, TABLE, RATINGS).predict(TABLE), abs=1e-12)


def test_held_out_rows_do_not_see_their_own_context() -> None:
    predicted = predict_held_out(NAMES, TABLE, RATINGS, CONTEXTS, n_folds=5)
    # Other ratings for the third context change the predictions of the others, and of its own fold nothing.
    changed = RATINGS.copy()
    changed[12:18] += 3
    again = predict_held_out(NAMES, TABLE, changed, CONTEXTS, n_folds=5)
    same = again == predicted
    own_fold = np.array([int(context.split()[1]) % 5 == 2 for context in CONTEXTS])
    assert same.tolist() == own_fold.tolist()


def test_held_out_predictions_are_ratings() -> None:
    predicted = predict_held_out(NAMES, TABLE, RATINGS, CONTEXTS)
    assert np.abs(predicted - RATINGS).mean() < 0.3
    assert predicted.tolist() == predict_held_out(NAMES, TABLE, RATINGS, CONTEXTS).tolist()


CONSTANT, BROKEN = TABLE * (1, 0, 1) + (0, 0.5, 0), TABLE.copy()
BROKEN[7, 2] = np.nan


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([NAMES, TABLE[:4], RATINGS[:4]], "4 rows for 3 indicators and an intercept. Give more rated responses."),
        ([NAMES, CONSTANT, RATINGS],
         "sst is 0.5 in every row, which tells nothing. Leave it out, or give other rows."),
        ([NAMES, TABLE, np.full(60, 3.0)],
         "the rating is 3 in every row, which tells nothing. Leave it out, or give other rows."),
        ([NAMES, BROKEN, RATINGS], "stsb is nan in a row. Leave out what has no score."),
    ],
)  # fmt: skip
def test_what_cannot_be_fitted_is_named(given: list[Any], problem: str) -> None:
    assert refusal(fit, *given) == f"regression: {problem}"


@pytest.mark.parametrize("folds", [1, 11])
def test_folds_that_there_cannot_be_are_named(folds: int) -> None:
    problem = f"regression: {folds} folds of 10 contexts. Give 2 folds or more, and a context for each."
    assert refusal(predict_held_out, NAMES, TABLE, RATINGS, CONTEXTS, n_folds=folds) == problem


def test_a_blank_response_is_not_learnt_from() -> None:
    examples = [Example(text, (Turn("Hi."),), Turn(text), ratings={"Overall": (3.0,)}) for text in ("Hello.", " ")]
    rows = _complete(examples, {"cola": (0.5, 0.1)}, "Overall")
    assert ([item.id for item in rows.examples], rows.table, rows.n_left_out) == (["Hello."], [[0.5]], 1)
