"""The metrics of breakdown detection as one of HuggingFace `evaluate`: distributions and annotators' counts in, numbers out.

It judges a detector, not a response, so no scorer is behind it. As in `evaluate_metric.py`, rows are checked as they come and
kept in memory, because the host looks at the type of the first row only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import datasets
import evaluate

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import Signature
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.breakdown.detection import ALWAYS_BREAKDOWN, LABELS, METRICS, breakdown_metrics
from dialeval_plugin.version import __version__

from .metric import HOST_SETTINGS, as_list

NAME = "dbdc"
COLUMNS = ("predictions", "references", "labels", "dialogues")
OPTIONS = ("threshold", "rounds", "confidence", "seed")

_ADD_NAMES = {name.removesuffix("s"): name for name in COLUMNS}
_CITATION = """@inproceedings{higashinaka2017overview,
  title     = {Overview of Dialogue Breakdown Detection Challenge 3},
  author    = {Higashinaka, Ryuichiro and Funakoshi, Kotaro and Inaba, Michimasa and Tsunomori, Yuiko and
               Takahashi, Tetsuro and Kaji, Nobuhiro},
  booktitle = {Proceedings of Dialog System Technology Challenge 6 (DSTC6) Workshop},
  year      = {2017}
}"""
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


class BreakdownMetric(evaluate.Metric):  # type: ignore[misc] # the host has no types
    """Accuracy, F1(B), F1(PB+B), Jensen-Shannon divergence and squared error of a dialogue breakdown detector, as in DBDC.

    Args:
        config_name: the host's name for a variant; this metric has none.
        **settings: the host's settings, and options of `compute`. The inputs are always kept in memory.

    Raises:
        InputError: an option or a configuration that does not exist.
    """

    def __init__(self, config_name: str | None = None, **settings: Any) -> None:
        self._options = {name: value for name, value in settings.items() if name not in HOST_SETTINGS}
        _check_names(self._options, OPTIONS)
        if config_name not in (None, "default"):
            raise InputError(
                f"{NAME}: there is no configuration {config_name!r}. Pass what you want to compute() as an option."
            )
        self._rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        super().__init__(
            config_name, **{name: settings[name] for name in settings if name in HOST_SETTINGS} | {"keep_in_memory": True}
        )

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=str(BreakdownMetric.__doc__).partition("\n")[0],
            citation=_CITATION,
            inputs_description=_INPUTS_DESCRIPTION,
            features=datasets.Features(
                {
                    "predictions": datasets.Sequence(datasets.Value("float64")),
                    "references": datasets.Sequence(datasets.Value("int64")),
                }
            ),
        )

    def __len__(self) -> int:
        """Number of rows that were added and not computed yet."""
        return len(self._rows["predictions"])

    def add(self, **row: Any) -> None:
        """Add one row: `prediction`, `reference`, and optionally `label` and `dialogue`.

        Raises:
            InputError: as `add_batch`.
        """
        self.add_batch(**{_ADD_NAMES.get(name, name): [value] for name, value in row.items()})

    def add_batch(self, **columns: Any) -> None:
        """Add rows, all or none.

        Raises:
            InputError: a column is missing or unknown, or two differ in length.
        """
        _check_names(columns, COLUMNS)
        self._rows = self._with(columns)

    def compute(self, **inputs: Any) -> dict[str, Any]:
        """Compute the metrics of the rows that were added and those given here.

        Raises:
            InputError: a column or option is missing or unknown, two columns differ in length, or a value is none of its kind.
        """
        _check_names(inputs, (*COLUMNS, *OPTIONS))
        columns = {name: value for name, value in inputs.items() if name in COLUMNS and value is not None}
        options = {**self._options, **{name: value for name, value in inputs.items() if name in OPTIONS}}
        # The rows of a call that fails are not kept: repeating the call must not count them twice.
        rows = self._rows if len(self) and not columns else self._with(columns)
        result = _result(rows, options)
        self._rows = {name: [] for name in COLUMNS}
        return result

    def _with(self, columns: Mapping[str, Any]) -> dict[str, list[Any]]:
        given = {name: as_list(column, f"{NAME}: {name}") for name, column in columns.items() if column is not None}
        for required in COLUMNS[:2]:
            if required not in given:
                raise InputError(
                    f"{NAME}: the column {required!r} is missing. Pass predictions and references, one row a turn."
                )
        n_rows = len(given["predictions"])
        for name, values in given.items():
            if len(values) != n_rows:
                raise InputError(
                    f"{NAME}: the columns 'predictions' and {name!r} have {n_rows} and {len(values)} rows. "
                    "Pass one row of each for every turn."
                )
        for name in COLUMNS[2:]:
            if len(self) and (name in given) != bool(self._rows[name]):
                raise InputError(f"{NAME}: some rows have {name} and others not. Pass them with all rows or with none.")
        return {name: [*self._rows[name], *given.get(name, ())] for name in COLUMNS}


def _check_names(given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise InputError(f"{NAME}: there is no input or option {name!r}. Accepted are {', '.join(known)}.")


def _result(rows: Mapping[str, list[Any]], options: Mapping[str, Any]) -> dict[str, Any]:
    threshold = options.get("threshold", 0.0)
    bootstrap = Bootstrap(**{name: options[name] for name in ("rounds", "confidence", "seed") if name in options})
    predictions, counts = rows["predictions"], rows["references"]
    settings = {"threshold": threshold, "clusters": rows["dialogues"] or None}
    labels = [_place(label, index) for index, label in enumerate(rows["labels"])] or None
    found = breakdown_metrics(predictions, counts, labels=labels, bootstrap=bootstrap, **settings)
    constant = [None if row is None else ALWAYS_BREAKDOWN for row in predictions]
    always = breakdown_metrics(constant, counts, bootstrap=Bootstrap(rounds=0), **settings)
    result: dict[str, Any] = {}
    for name in METRICS:
        result |= {name: found[name].value, f"{name}_ci_low": found[name].ci_low, f"{name}_ci_high": found[name].ci_high}
    result["always_breakdown"] = {name: always[name].value for name in METRICS}
    result["undefined"] = {name: found[name].reason for name in METRICS if found[name].value is None}
    result["no_interval"] = {
        name: found[name].reason for name in METRICS if found[name].value is not None and found[name].reason is not None
    }
    result["has_rough_intervals"] = any(found[name].is_rough for name in METRICS)
    counts_of = found["accuracy"]
    result |= {"n_total": counts_of.n_total, "n_scored": counts_of.n_scored}
    result |= {"n_unscored": counts_of.n_unscored, "n_unannotated": counts_of.n_unrated}
    fields: dict[str, Any] = {
        "method": NAME,
        "hard_labels": "likeliest" if labels is None else "given",
        "threshold": threshold,
        "clusters": "turns" if settings["clusters"] is None else "dialogues",
        "rounds": bootstrap.rounds,
        "confidence": bootstrap.confidence,
        "seed": bootstrap.seed,
        "version": __version__,
    }
    return {**result, "signature": str(Signature(fields))}


def _place(label: Any, index: int) -> int | None:
    if label is None:
        return None
    if label not in LABELS:
        raise InputError(f"{NAME}: labels[{index}] is {label!r}. Give 'O', 'T' or 'X', or None beside a prediction of None.")
    return LABELS.index(label)
