"""The metrics of breakdown detection as a HuggingFace `evaluate` metric, computed from distributions and annotators' counts.

It judges a detector, not a response, so it has no scorer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import datasets
import evaluate

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.signature import Signature
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.breakdown import ALWAYS_BREAKDOWN, LABELS, breakdown_metrics
from dialeval_plugin.version import __version__

from .metric import DialogueMetric, MetricResult, read_columns

NAME = "dbdc"
COLUMNS = ("predictions", "references", "labels", "dialogues")
OPTIONS = ("threshold", "rounds", "confidence", "seed")

_INPUTS_DESCRIPTION = """
Args:
    predictions: for every system turn the detector's probabilities of no breakdown, a possible breakdown and a breakdown, a
        list of three numbers, or None where it gave no answer.
    references: for every system turn how many annotators said O, T and X, a list of three whole numbers.
    labels: optional; the detector's hard labels, "O", "T" or "X". Without them the likeliest of each distribution.
    dialogues: optional; the name of each turn's dialogue. Intervals then resample whole dialogues.
    threshold: share of the annotators that a majority needs; 0.
    rounds, confidence, seed: of the intervals; 1000, 0.95, 0.

Returns:
    A dict: the nine metrics by name (None where undefined, with the reason under `undefined`) with `<name>_ci_low` and
    `<name>_ci_high` (None where there is no interval, with the reason under `no_interval`); `has_rough_intervals`, whether they
    rest on fewer than 30 dialogues; `always_breakdown`, the same metrics of a detector that calls every scored turn a
    breakdown; `n_total`,
    `n_scored`, `n_unscored`, `n_unannotated`; `signature`.
"""


class BreakdownMetric(DialogueMetric):
    """Accuracy, F1(B), F1(PB+B), Jensen-Shannon divergence and squared error of a dialogue breakdown detector, as in DBDC."""

    scorer_name = NAME
    columns = COLUMNS
    singular: ClassVar[Mapping[str, str]] = {name.removesuffix("s"): name for name in COLUMNS}

    def _info(self) -> evaluate.MetricInfo:
        types = {"predictions": "float64", "references": "int64"}
        return evaluate.MetricInfo(
            description=str(BreakdownMetric.__doc__),
            citation=bibtex("higashinaka2017dialogue"),
            inputs_description=_INPUTS_DESCRIPTION,
            features=datasets.Features({name: datasets.Sequence(datasets.Value(kind)) for name, kind in types.items()}),
        )

    def _accepted_options(self) -> Sequence[str]:
        return OPTIONS

    def _read(self, columns: Mapping[str, Any]) -> list[dict[str, Any]]:
        try:
            values = read_columns(columns, COLUMNS[:2], "turn")
        except InputError as error:
            raise InputError(f"{NAME}: {error}") from None
        for name in COLUMNS[2:]:
            if self._rows and (name in values) != (name in self._rows[0]):
                raise InputError(f"{NAME}: some rows have {name} and others not. Pass them with all rows or with none.")
        return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]

    def _result(self, rows: list[dict[str, Any]], options: dict[str, Any]) -> MetricResult:
        predictions, counts = [row["predictions"] for row in rows], [row["references"] for row in rows]
        threshold = options.get("threshold", 0.0)
        bootstrap = Bootstrap(**{name: options[name] for name in ("rounds", "confidence", "seed") if name in options})
        has_labels, has_dialogues = (bool(rows) and name in rows[0] for name in COLUMNS[2:])
        labels = [_place(row["labels"], index) for index, row in enumerate(rows)] if has_labels else None
        settings = {"threshold": threshold, "clusters": [row["dialogues"] for row in rows] if has_dialogues else None}
        metrics = breakdown_metrics(predictions, counts, labels=labels, bootstrap=bootstrap, **settings)
        constant = [None if row is None else ALWAYS_BREAKDOWN for row in predictions]
        always = breakdown_metrics(constant, counts, bootstrap=Bootstrap(rounds=0), **settings)
        result: dict[str, Any] = {}
        for name, one in metrics.items():
            result |= {name: one.value, f"{name}_ci_low": one.ci_low, f"{name}_ci_high": one.ci_high}
        reasons = {name: one for name, one in metrics.items() if one.reason is not None}
        result |= {
            "always_breakdown": {name: one.value for name, one in always.items()},
            "undefined": {name: one.reason for name, one in reasons.items() if one.value is None},
            "no_interval": {name: one.reason for name, one in reasons.items() if one.value is not None},
            "has_rough_intervals": any(one.is_rough for one in metrics.values()),
            "n_total": metrics["accuracy"].n_total,
            "n_scored": metrics["accuracy"].n_scored,
            "n_unscored": metrics["accuracy"].n_unscored,
            "n_unannotated": metrics["accuracy"].n_unrated,
        }
        fields: dict[str, Any] = {
            "method": NAME,
            "hard_labels": "given" if has_labels else "likeliest",
            "threshold": threshold,
            "clusters": "dialogues" if has_dialogues else "turns",
            "rounds": bootstrap.rounds,
            "confidence": bootstrap.confidence,
            "seed": bootstrap.seed,
            "version": __version__,
        }
        return MetricResult({**result, "signature": str(Signature(fields))})


def _place(label: Any, index: int) -> int | None:
    if label is None:
        return None
    if label not in LABELS:
        raise InputError(f"{NAME}: labels[{index}] is {label!r}. Give 'O', 'T' or 'X', or None if the prediction is None.")
    return LABELS.index(label)
