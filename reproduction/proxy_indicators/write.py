"""The correlations of the thesis' chapter 6, tables A.2 to A.7: indicators and their combinations against human ratings.

The indicators are the published ones of USR's TopicalChat responses, in `usr` of DIALEVAL_DATA_DIR, and so are the ratings.

    python -m reproduction.proxy_indicators.write
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import stats

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.corpora.readers import usr
from dialeval_plugin.methods.proxy_indicators.regression import DEFAULT_FOLDS, fit, predict_held_out
from dialeval_plugin.methods.proxy_indicators.tasks import SUBSETS
from dialeval_plugin.reports.tables import Table, named_column
from reproduction.documents import script_parser, write_tables

Predictors: TypeAlias = Mapping[str, Sequence[float]]


class CorrelationRow(NamedTuple):
    """One row of the tables A.2 to A.7."""

    predictor: str
    quality: str
    pearson: float
    pearson_p: float
    spearman: float
    spearman_p: float


def correlation_rows(predictors: Predictors, ratings: Predictors) -> list[CorrelationRow]:
    """Return Pearson's r and Spearman's rho of every predictor with every quality, with two-sided p-values from Student's t.

    The p-values take rows for independent, which responses to one context are not; the lm-eval tasks and
    `statistics.correlation` give intervals that resample contexts.
    A predictor that is constant has no correlation, which is NaN.
    """
    return [
        CorrelationRow(predictor, quality, *stats.pearsonr(values, means), *stats.spearmanr(values, means))
        for predictor, values in predictors.items()
        for quality, means in ratings.items()
    ]


def in_sample_combinations(columns: Predictors, ratings: Sequence[float]) -> dict[str, FloatArray]:
    """Return for each of `SUBSETS` what a regression predicts of the very rows that it was fitted on, as in the thesis.

    Such predictions agree better with the ratings than those of new responses will; see `held_out_combinations`.
    """
    tables = {name: _table(columns, features) for name, features in SUBSETS.items()}
    return {name: fit(features, tables[name], ratings).predict(tables[name]) for name, features in SUBSETS.items()}


def held_out_combinations(
    columns: Predictors, ratings: Sequence[float], contexts: Sequence[Hashable], *, n_folds: int = DEFAULT_FOLDS
) -> dict[str, FloatArray]:
    """Return for each of `SUBSETS` what regressions predict of responses to contexts that they were not fitted on."""
    return {
        name: predict_held_out(features, _table(columns, features), ratings, contexts, n_folds=n_folds)
        for name, features in SUBSETS.items()
    }


def _table(columns: Predictors, features: Sequence[str]) -> FloatArray:
    return np.column_stack([np.asarray(columns[feature], dtype=np.float64) for feature in features])


def thesis_rows() -> list[CorrelationRow]:
    """Return the correlations of the published indicators, and of their combinations in the sample and held out."""
    scored = usr.read_scored("topical_chat_glue")
    ratings = {quality: [fmean(example.ratings[quality]) for example in scored.examples] for quality in usr.SCALES}
    fitted = in_sample_combinations(scored.scores, ratings["Overall"])
    held_out = held_out_combinations(scored.scores, ratings["Overall"], [example.context for example in scored.examples])
    predictors = {
        **scored.scores,
        **{f"lin-reg_{name}": values.tolist() for name, values in fitted.items()},
        **{f"lin-reg_{name}, held out": values.tolist() for name, values in held_out.items()},
    }
    return correlation_rows(predictors, ratings)


def main(arguments: Sequence[str] | None = None) -> None:
    options = script_parser(__doc__).parse_args(arguments)
    columns = [named_column(name, 4, is_number=name not in ("predictor", "quality")) for name in CorrelationRow._fields]
    write_tables(options.document, {"correlations": Table([row._asdict() for row in thesis_rows()], columns)})


if __name__ == "__main__":
    main()
