"""The tables and the figure of the thesis' chapter 6: indicators and their combinations against human ratings, and weights."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

from dialeval_plugin.methods.proxy_indicators.regression import (
    DEFAULT_FOLDS,
    FloatArray,
    LinearRegression,
    fit,
    predict_held_out,
)
from dialeval_plugin.methods.proxy_indicators.tasks import FACT, SUBSETS, task_of
from dialeval_plugin.statistics.coefficients.by_name import pearson, spearman

from .figures import BLUE, FORMATS, GREEN, ORANGE, new_figure, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Columns = Mapping[str, Sequence[float]]

_COLOURS = {"response": BLUE, "context and response": ORANGE, "facts and response": GREEN}


class CorrelationRow(NamedTuple):
    """One row of the tables A.2 to A.7."""

    predictor: str
    quality: str
    pearson: float
    pearson_p: float
    spearman: float
    spearman_p: float


def correlation_rows(predictors: Columns, ratings: Columns) -> list[CorrelationRow]:
    """Return Pearson's r and Spearman's rho of every predictor with every quality, with two-sided p-values from Student's t.

    The p-values take rows for independent, which responses to one context are not; the lm-eval tasks and
    `meta_evaluation.correlate` give intervals that resample contexts.

    Args:
        predictors: name to one value a response.
        ratings: quality to the mean rating of each response.

    Raises:
        StatisticUndefined: a column is constant or has fewer than 3 rows.
    """
    rows = []
    for predictor, values in predictors.items():
        for quality, means in ratings.items():
            x, y = np.asarray(values, dtype=np.float64), np.asarray(means, dtype=np.float64)
            r, rho = pearson(x, y), spearman(x, y)
            rows.append(CorrelationRow(predictor, quality, r, _p_value(r, len(x)), rho, _p_value(rho, len(x))))
    return rows


def in_sample_combinations(columns: Columns, ratings: Sequence[float]) -> dict[str, FloatArray]:
    """Return for each of `SUBSETS` what a regression predicts of the very rows that it was fitted on, as in the thesis.

    Such predictions agree better with the ratings than those of new responses will; see `held_out_combinations`.
    """
    return {
        name: fit(features, table, ratings).predict(table)
        for name, features in SUBSETS.items()
        for table in [_table(columns, features)]
    }


def held_out_combinations(
    columns: Columns, ratings: Sequence[float], contexts: Sequence[Hashable], *, n_folds: int = DEFAULT_FOLDS
) -> dict[str, FloatArray]:
    """Return for each of `SUBSETS` what regressions predict of responses to contexts that they were not fitted on.

    Args:
        columns: every indicator, one value a response.
        ratings: the mean rating of each response.
        contexts: label of the context of each response.
        n_folds: see `regression.predict_held_out`.
    """
    return {
        name: predict_held_out(features, _table(columns, features), ratings, contexts, n_folds=n_folds)
        for name, features in SUBSETS.items()
    }


def weight_figure(regression: LinearRegression, *, title: str = "") -> Figure:
    """Draw the weights of a regression, one bar an indicator (figure 6.2).

    Columns and rating are on [0, 1], so weights can be compared; the sign of `qnli` and `rte` depends on the label whose
    probability they are.

    Raises:
        MissingPrerequisite: matplotlib is not installed.
    """
    figure = new_figure(7.0, 1.6 + 0.3 * len(regression.features))
    from matplotlib.patches import Patch

    names = regression.features
    axes = figure.subplots()
    kinds = [_kind(name) for name in names]
    bars = axes.barh(range(len(names)), regression.weights, color=[_COLOURS[kind] for kind in kinds])
    axes.bar_label(bars, fmt="%+.2f", padding=3, fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    # Room for the numbers beside the longest bars.
    axes.margins(x=0.15)
    axes.set_xlabel("weight, with indicators and rating on [0, 1]")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        handles=[Patch(color=colour, label=kind) for kind, colour in _COLOURS.items() if kind in kinds],
        loc="outside lower center",
        ncols=len(_COLOURS),
        frameon=False,
        fontsize=8,
    )
    if title:
        axes.set_title(title, fontsize=10)
    return figure


def save_figure(figure: Figure, path: Path) -> list[Path]:
    """Write a figure as PNG and SVG beside each other, the same bytes each time; return the two paths.

    Args:
        figure: to write.
        path: of the files; a suffix is replaced by each format's.

    Raises:
        InputError: the files cannot be written.
    """
    written = [path.with_suffix(f".{suffix}") for suffix in FORMATS]
    for target in written:
        write_figure(figure, target)
    return written


def _kind(feature: str) -> str:
    if not task_of(feature).is_pair:
        return "response"
    return "facts and response" if feature.startswith(FACT) else "context and response"


def _table(columns: Columns, features: Sequence[str]) -> FloatArray:
    return np.column_stack([np.asarray(columns[feature], dtype=np.float64) for feature in features])


def _p_value(coefficient: float, n: int) -> float:
    if abs(coefficient) >= 1:
        return 0.0
    t = abs(coefficient) * math.sqrt((n - 2) / (1 - coefficient**2))
    return float(2 * stats.t.sf(t, n - 2))
