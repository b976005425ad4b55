"""Independence classifiers over a general evaluator's vectors: logistic regressions on the cosines of two or three turns.

The encoder reads each distinct turn once, in time linear in the history. The few features of the regressions need only about a
thousand annotated responses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np
from scipy.special import expit

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.signature import RUNTIME_FIELDS, SignatureValue
from dialeval_plugin.models.context_texts import EmbeddedTurns, TurnEmbedder, numbered
from dialeval_plugin.models.logistic import logistic_regression
from dialeval_plugin.models.runtimes.runtime import ON_TORCH, RuntimeChoice

from .classifiers import Probabilities

_AT_ONCE = 16_384
"""Rows whose vectors are compared at once."""


class TurnVectors:
    """A general evaluator's vectors of single turns; those of the last texts are kept for the other classifier."""

    def __init__(self, folder: Path, runtime: RuntimeChoice = ON_TORCH) -> None:
        self.folder = folder
        self._embedder = cast("TurnEmbedder", load_scorer("general", model=str(folder), **asdict(runtime)))
        fields = self._embedder.signature_fields()
        self.window = fields["window"]
        self.run_by = {name: fields[name] for name in RUNTIME_FIELDS if name in fields}
        self._last: tuple[list[str], EmbeddedTurns] | None = None

    def of(self, texts: Sequence[str]) -> EmbeddedTurns:
        """Return the embeddings of turns, each as a context and as a response."""
        if self._last is None or self._last[0] != list(texts):
            self._last = list(texts), self._embedder.embedded_turns(texts)
        return self._last[1]


@dataclass(frozen=True, slots=True)
class VectorClassifier:
    """Probability that a response depends on an utterance, with the interface of `IndependenceClassifier`."""

    vectors: TurnVectors
    weights: FloatArray
    """Weights of the features, the offset last."""

    @property
    def reading(self) -> dict[str, SignatureValue]:
        """Signature fields of the input texts."""
        return {
            "layout": "vectors",
            "speakers": "none",
            "window": self.vectors.window,
            "truncation": "oldest",
            **self.vectors.run_by,
        }

    @property
    def limit(self) -> str:
        """Warning about truncated texts."""
        return f"a turn is longer than the window of {self.vectors.window} tokens, context and response, and was cut"

    def probabilities(self, texts: Sequence[str], indices: IntArray) -> Probabilities:
        """Return the results for rows of `indices` into `texts`; see `IndependenceClassifier.probabilities`."""
        if not len(indices):
            return Probabilities(np.empty(0), np.empty(0, dtype=np.bool_))
        turns, weights = self.vectors.of(texts), self.weights
        log_odds = [
            features(turns, indices[start : start + _AT_ONCE]) @ weights[:-1] + weights[-1]
            for start in range(0, len(indices), _AT_ONCE)
        ]
        return Probabilities(expit(np.concatenate(log_odds)), np.asarray(turns.is_cut[indices].any(axis=1)))


def number_rows(rows: Sequence[Sequence[str]]) -> tuple[list[str], IntArray]:
    """Return the distinct texts of rows of one width, and each row as indices into them, of shape (rows, width)."""
    numbers = numbered([text for row in rows for text in row])
    return list(numbers), np.array([[numbers[text] for text in row] for row in rows], dtype=np.int64)


def features(turns: EmbeddedTurns, indices: IntArray) -> FloatArray:
    """Return a classifier's features of rows of two or three turns, of shape (rows, 5) or (rows, 12).

    For utterance and response: the cosines of the utterance as a context with the response, of both as contexts and of both as
    responses, and the logarithms of their lengths. A condition adds its three cosines with the response, its length, and the
    three cosines of the candidate cause with it.
    """
    first, *condition, response = indices.T
    lengths = np.log1p(turns.n_tokens)
    columns = [*_cosines(turns, first, response), lengths[first], lengths[response]]
    for other in condition:
        columns += [*_cosines(turns, other, response), lengths[other], *_cosines(turns, first, other)]
    return np.stack(columns, axis=1).astype(np.float64)


def _cosines(turns: EmbeddedTurns, earlier: IntArray, later: IntArray) -> list[np.ndarray]:
    pairs = (
        (turns.as_context[earlier], turns.as_response[later]),
        (turns.as_context[earlier], turns.as_context[later]),
        (turns.as_response[earlier], turns.as_response[later]),
    )
    return [np.einsum("ij,ij->i", *pair) for pair in pairs]


def fit(vectors: TurnVectors, rows: Sequence[Sequence[str]], labels: Sequence[int]) -> VectorClassifier:
    """Return a classifier fitted to rows of texts, all of one width, with the labels 1 (dependent) and 0."""
    texts, indices = number_rows(rows)
    table = features(vectors.of(texts), indices)
    mean, deviation = table.mean(0), table.std(0) + 1e-9
    # The penalty applies to the weights of standardised features.
    columns = np.column_stack([(table - mean) / deviation, np.ones(len(table))])
    coefficients = logistic_regression(columns, np.array(labels, dtype=np.float64), start=np.zeros(columns.shape[1]))
    slopes = coefficients[:-1] / deviation
    return VectorClassifier(vectors, np.array([*slopes, coefficients[-1] - slopes @ mean]))
