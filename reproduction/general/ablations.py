"""What every corpus and every head adds to the general evaluator, measured on validation dialogues, which hold no rating.

Figures are areas under the ROC curve: how often the main score of a real response is higher than that of a wrong text in its
place. Dialogues of the half that fits the weights of mixing are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dialeval_plugin.methods.general.calibration import ValidationRow, areas, fit_mixing, judge, validation_rows
from dialeval_plugin.methods.general.conversations import Conversation, by_corpus
from dialeval_plugin.methods.general.mixing import FloatArray
from dialeval_plugin.methods.general.model import TrainedGeneral
from dialeval_plugin.methods.general.signals import HEADS, NEGATIVES
from dialeval_plugin.reports.tables import Column, Row, Table, figure

MEAN = "mean"


class Judged(NamedTuple):
    """Validation rows and what a model's heads say of them."""

    log_odds: Mapping[str, FloatArray]
    kinds: np.ndarray
    is_fitted: np.ndarray


def rows_by_corpus(conversations: Sequence[Conversation], *, max_pairs: int, seed: int) -> dict[str, list[ValidationRow]]:
    """Draw validation rows of each corpus, the same for every model.

    Args:
        conversations: validation dialogues.
        max_pairs: real responses of all corpora together.
        seed: of the draw.
    """
    corpora = by_corpus(conversations)
    share = max(1, max_pairs // len(corpora))
    return {corpus: validation_rows({corpus: pairs}, max_pairs=share, seed=seed) for corpus, pairs in corpora.items()}


def areas_by_corpus(trained: TrainedGeneral, rows: Mapping[str, Sequence[ValidationRow]]) -> dict[str, float | None]:
    """Return the main score's area on each corpus, and the mean of them.

    A corpus' area is the mean over the kinds of wrong texts that it has.
    """
    found: dict[str, float | None] = {}
    for corpus, drawn in rows.items():
        judged = _judged(trained, drawn)
        by_kind = areas(trained.mixing.log_odds(judged.log_odds), judged.kinds, ~judged.is_fitted)
        found[corpus] = _mean(list(by_kind.values()))
    return {MEAN: _mean(list(found.values())), **found}


def corpora_table(measured: Mapping[str, Mapping[str, float | None]]) -> Table:
    """Return a row a model and a column a corpus.

    Args:
        measured: name of a model to what `areas_by_corpus` gave.
    """
    rows: list[Row] = [{"trained on": name, **found} for name, found in measured.items()]
    return _table(rows, "trained on")


def heads_table(trained: TrainedGeneral, rows: Sequence[ValidationRow]) -> Table:
    """Return a row a mixture, of all heads and of all but one, and a column for the wrong texts of each head.

    Each mixture has weights of its own, fitted as after training.
    """
    judged = _judged(trained, rows)
    mixtures = {"all heads": HEADS, **{f"without {head}": tuple(name for name in HEADS if name != head) for head in HEADS}}
    found: list[Row] = []
    for name, heads in mixtures.items():
        mixing = fit_mixing(judged.log_odds, judged.kinds, judged.is_fitted, heads)
        by_kind = areas(mixing.log_odds(judged.log_odds), judged.kinds, ~judged.is_fitted)
        groups = {f"wrong for {head}": _mean([by_kind[kind] for kind in kinds]) for head, kinds in NEGATIVES.items()}
        found.append({"main score": name, "all wrong texts": _mean(list(by_kind.values())), **groups})
    return _table(found, "main score")


def _judged(trained: TrainedGeneral, rows: Sequence[ValidationRow]) -> Judged:
    return Judged(
        judge(trained.model, [row.triple for row in rows]).log_odds,
        np.array([row.kind for row in rows]),
        np.array([row.is_fitted for row in rows], dtype=bool),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def _table(rows: Sequence[Row], label: str) -> Table:
    return Table(rows, [Column(name, lambda row, name=name: figure(row[name]), name != label) for name in rows[0]])  # type: ignore[misc]
