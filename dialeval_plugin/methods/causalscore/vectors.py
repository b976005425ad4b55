"""Independence classifiers over a general evaluator's vectors: logistic regressions on the cosines of two or three turns.

Each distinct turn goes through the encoder once, whatever is asked about it, so that the time is linear in the history. What
the regressions weigh are few numbers, so that a thousand annotated responses teach them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import expit
from torch.nn import functional

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.methods.general.model import TrainedGeneral
from dialeval_plugin.models.encoders import embed
from dialeval_plugin.models.logistic import logistic_regression

from .classifiers import Probabilities

_AT_ONCE = 16_384
"""Rows whose vectors are compared at once."""


class _Turns(NamedTuple):
    """What is known of n turns: unit vectors (n, width), less what all texts have in common, as contexts and as responses."""

    as_context: np.ndarray
    as_response: np.ndarray
    log_tokens: FloatArray
    is_cut: np.ndarray


class TurnVectors:
    """A general evaluator's vectors of single turns; those of the last texts are kept, for the other classifier's questions."""

    def __init__(self, folder: Path, *, device: str | None = None) -> None:
        self.folder = folder
        self.model = TrainedGeneral.load(str(folder), device=device).model
        self._last: tuple[list[str], _Turns] | None = None

    def of(self, texts: Sequence[str]) -> _Turns:
        """Embed turns, each as the last one of a context and as a response."""
        if self._last is None or self._last[0] != list(texts):
            self._last = list(texts), self._embedded(texts)
        return self._last[1]

    def _embedded(self, texts: Sequence[str]) -> _Turns:
        model, head = self.model, self.model.head
        contexts, responses = model.texts.contexts([(text,) for text in texts]), model.texts.counted_responses(texts)
        # Most turns are short enough to be the same sequence as both.
        ids = [text.ids for text in (*contexts, *responses)]
        distinct = {tuple(row): place for place, row in enumerate(dict.fromkeys(map(tuple, ids)))}
        with torch.inference_mode():
            vectors = embed(model.encoder, [list(row) for row in distinct])[[distinct[tuple(row)] for row in ids]]
            of_contexts, of_responses = torch.split(vectors, len(texts))
            directions = head.directions(head.context(of_contexts), head.robust(of_responses))
            as_context, as_response = (functional.normalize(found, dim=-1).cpu().numpy() for found in directions)
        return _Turns(
            as_context,
            as_response,
            np.log1p([len(text.ids) for text in responses]),
            np.array([bool(context.n_cut or response.n_cut) for context, response in zip(contexts, responses, strict=True)]),
        )


@dataclass(frozen=True, slots=True)
class VectorClassifier:
    """How likely a response depends on an utterance, as `IndependenceClassifier` says it.

    Attributes:
        weights: of the features, the offset last.
    """

    vectors: TurnVectors
    weights: FloatArray

    @property
    def reading(self) -> dict[str, SignatureValue]:
        """How texts are read, for the signature."""
        config = self.vectors.model.config
        return {
            "layout": "vectors",
            "speakers": "none",
            "window": f"{config.max_context_tokens}+{config.max_response_tokens}",
            "truncation": "oldest",
        }

    @property
    def limit(self) -> str:
        """What is said of texts that are not read whole."""
        return f"a turn is longer than {self.vectors.model.config.max_response_tokens} tokens and was cut"

    def probabilities(self, texts: Sequence[str], indices: IntArray) -> Probabilities:
        """Judge rows of `indices` into `texts`, as `IndependenceClassifier.probabilities` does."""
        if not len(indices):
            return Probabilities(np.empty(0), np.empty(0, dtype=np.bool_))
        turns, weights = self.vectors.of(texts), self.weights
        log_odds = [
            features(turns, indices[start : start + _AT_ONCE]) @ weights[:-1] + weights[-1]
            for start in range(0, len(indices), _AT_ONCE)
        ]
        return Probabilities(expit(np.concatenate(log_odds)), np.asarray(turns.is_cut[indices].any(axis=1)))


def features(turns: _Turns, indices: IntArray) -> FloatArray:
    """What a classifier weighs of rows of two or three turns, of shape (rows, 5) or (rows, 12).

    Of utterance and response: the cosines of the utterance as a context with the response, of both as contexts and of both as
    responses, and the logarithms of their lengths. With a condition also its three cosines with the response, its length, and
    the three cosines of the candidate cause with it.
    """
    first, *condition, response = indices.T
    lengths = [turns.log_tokens[first], turns.log_tokens[response]]
    columns = [*_cosines(turns, first, response), *lengths]
    for other in condition:
        columns += [*_cosines(turns, other, response), turns.log_tokens[other], *_cosines(turns, first, other)]
    return np.stack(columns, axis=1).astype(np.float64)


def _cosines(turns: _Turns, earlier: IntArray, later: IntArray) -> list[np.ndarray]:
    pairs = (
        (turns.as_context[earlier], turns.as_response[later]),
        (turns.as_context[earlier], turns.as_context[later]),
        (turns.as_response[earlier], turns.as_response[later]),
    )
    return [np.einsum("ij,ij->i", *pair) for pair in pairs]


def fit(vectors: TurnVectors, rows: Sequence[Sequence[str]], labels: Sequence[int]) -> VectorClassifier:
    """Fit a classifier to rows of texts, all of one width, with the labels 1, dependent, and 0.

    The penalty is on the weights of standardised features.
    """
    numbers: dict[str, int] = {}
    indices = np.array([[numbers.setdefault(text, len(numbers)) for text in row] for row in rows], dtype=np.int64)
    table = features(vectors.of(list(numbers)), indices)
    mean, deviation = table.mean(0), table.std(0) + 1e-9
    columns = np.column_stack([(table - mean) / deviation, np.ones(len(table))])
    found = logistic_regression(columns, np.array(labels, dtype=np.float64), start=np.zeros(columns.shape[1]))
    slopes = found[:-1] / deviation
    return VectorClassifier(vectors, np.array([*slopes, found[-1] - slopes @ mean]))
