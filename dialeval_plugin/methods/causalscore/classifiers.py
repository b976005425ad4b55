"""The independence classifiers of the probability that a response depends on an utterance, and their input.

`IndependenceClassifier` is a cross-encoder. `VectorClassifier` is a logistic regression on the cosines of two or three turns,
over a general evaluator's vectors: the encoder reads each distinct turn once, in time linear in the history, and the few
features need only about a thousand annotated responses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from annotated_types import Ge
from scipy.special import expit

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.registry import check_value, load_scorer
from dialeval_plugin.core.signature import RUNTIME_FIELDS, SignatureValue
from dialeval_plugin.models.compact import base_of, whole
from dialeval_plugin.models.folders import check_complete, check_weights, opening, without_warnings
from dialeval_plugin.models.logistic import logistic_regression
from dialeval_plugin.models.runtimes.runtime import ON_TORCH, RuntimeChoice
from dialeval_plugin.models.texts import EmbeddedTurns, TurnEmbedder, check_fast, length_batches, numbered, text_ids

if TYPE_CHECKING:
    # Both are imported where they are needed: scoring by vectors needs neither torch nor the datasets, pandas and scikit-learn
    # that the trainers of sentence-transformers import.
    from sentence_transformers import CrossEncoder
    from torch import Tensor

PairLayout: TypeAlias = Literal["delimited", "literal"]
PairTruncation: TypeAlias = Literal["utterances", "right"]

CausalWindow: TypeAlias = Annotated[int, Ge(16)]
"""Longest sequence, special tokens included."""
RESPONSE_SHARE = 0.75
"""Share of a window that a long response keeps at the cost of the utterances."""
_AT_ONCE = 16_384
"""Rows whose vectors are compared at once."""
N_LABELS = 2
"""0 independent, 1 dependent."""


class PairRows(NamedTuple):
    """Input rows of a classifier, as indices into a list of distinct texts, with the token ids of the texts."""

    indices: IntArray
    """Shape (rows, 2): utterance and response; or (rows, 3): candidate cause, condition and response."""
    columns: list[dict[int, list[int]]]
    """For each column, index of a text to its token ids."""
    lengths: IntArray
    """Tokens of each row before truncation, special tokens included."""


class RowEncoder:
    """A tokenizer of utterances and response as one sequence of at most `max_tokens` tokens, special tokens included.

    Layout "delimited" is the paper's, `[CLS] utterance [SEP] response [SEP]`, with a candidate cause before its condition.
    Layout "literal" is the published code's string `u </s> <s> r`, with the blanks around the special tokens:
    `<s> u_ </s> _ <s> _r </s>`. Special tokens in a text are read as text, so no turn can end early.

    Truncation "utterances" cuts the end of a response only beyond three quarters of the window; the utterances share the rest
    and lose their beginning, the longer one first. Truncation "right" is the published code's: it cuts the end of the
    sequence, so the response first.
    """

    def __init__(self, tokenizer: Any, layout: PairLayout, truncate: PairTruncation, max_tokens: int) -> None:
        check_value("causalscore", "layout", layout, PairLayout)
        check_value("causalscore", "truncate", truncate, PairTruncation)
        check_value("causalscore", "max_tokens", max_tokens, CausalWindow)
        check_fast(f"tokenizer {type(tokenizer).__name__}", tokenizer)
        first = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
        last = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
        if first is None or last is None:
            raise ModelLoadError(
                f"tokenizer {type(tokenizer).__name__}: has no first or no separating token. Choose an encoder as the backbone."
            )
        self.tokenizer = tokenizer
        self.layout = layout
        self.truncate = truncate
        self.max_tokens = max_tokens
        self._first, self._last = [first], [last]
        self._between = [last] if layout == "delimited" else [last, *text_ids(tokenizer, [" "])[0], first]

    def rows(self, texts: Sequence[str], indices: IntArray) -> PairRows:
        """Return the rows of `indices` into `texts`, of shape (rows, 2) or (rows, 3), with each text tokenised once."""
        n_columns, blank = indices.shape[1], "" if self.layout == "delimited" else " "
        columns = []
        for place in range(n_columns):
            used = np.unique(indices[:, place])
            before, after = (blank if place else ""), (blank if place < n_columns - 1 else "")
            ids = text_ids(self.tokenizer, [before + texts[index] + after for index in used])
            columns.append(dict(zip(used.tolist(), ids, strict=True)))
        lengths = np.full(len(indices), 2 + (n_columns - 1) * len(self._between), dtype=np.int64)
        for place, column in enumerate(columns):
            table = np.zeros(len(texts), dtype=np.int64)
            table[list(column)] = [len(tokens) for tokens in column.values()]
            lengths += table[indices[:, place]]
        return PairRows(indices, columns, lengths)

    def encode(self, rows: PairRows, number: int) -> list[int]:
        """Return the token ids of one row."""
        parts = [column[index] for column, index in zip(rows.columns, rows.indices[number].tolist(), strict=True)]
        if rows.lengths[number] > self.max_tokens and self.truncate == "utterances":
            parts = self._fit(parts)
        ids = list(self._first)
        for part in parts[:-1]:
            ids += part
            ids += self._between
        ids += parts[-1]
        return [*ids[: self.max_tokens - 1], *self._last]

    def _fit(self, parts: Sequence[list[int]]) -> list[list[int]]:
        *utterances, response = parts
        room = self.max_tokens - 2 - len(utterances) * len(self._between)
        wanted = sum(map(len, utterances))
        length = min(len(response), max(room - wanted, int(RESPONSE_SHARE * room)))
        left = room - length
        # From the shortest on, each may have an equal share of the rest.
        sizes = [0] * len(utterances)
        order = sorted(range(len(utterances)), key=lambda place: len(utterances[place]))
        for number, place in enumerate(order):
            sizes[place] = min(len(utterances[place]), left // (len(order) - number))
            left -= sizes[place]
        cut = [ids[len(ids) - size :] for ids, size in zip(utterances, sizes, strict=True)]
        return [*cut, response[:length]]


class Probabilities(NamedTuple):
    """A classifier's results for rows of texts, as arrays of shape (rows,)."""

    dependent: FloatArray
    """P(l = 1); NaN if the classifier's output is not finite."""
    is_cut: np.ndarray
    """Whether texts were truncated."""


class IndependenceClassifier:
    """A cross-encoder with two labels, for rows (utterance, response) or (candidate cause, condition, response)."""

    def __init__(self, encoder: CrossEncoder, texts: RowEncoder) -> None:
        self.encoder = encoder
        self.texts = texts

    @property
    def reading(self) -> dict[str, SignatureValue]:
        """Signature fields of the input texts."""
        texts = self.texts
        return {"layout": texts.layout, "speakers": "none", "window": texts.max_tokens, "truncation": texts.truncate}

    @property
    def limit(self) -> str:
        """Warning about truncated texts."""
        return (
            f"turns and response together are longer than {self.texts.max_tokens} tokens and were cut ({self.texts.truncate})"
        )

    def probabilities(self, texts: Sequence[str], indices: IntArray) -> Probabilities:
        """Return the results for rows of `indices` into `texts`, (rows, 2 or 3); each distinct row is read once."""
        import torch

        from dialeval_plugin.models.tensors import tokens_at_once

        if not len(indices):
            return Probabilities(np.empty(0), np.empty(0, dtype=np.bool_))
        distinct, inverse = np.unique(indices, axis=0, return_inverse=True)
        rows = self.texts.rows(texts, distinct)
        dependent = np.empty(len(distinct))
        self.encoder.eval()
        with torch.inference_mode():
            lengths = np.minimum(rows.lengths, self.texts.max_tokens).tolist()
            for batch in length_batches(lengths, tokens_at_once(self.encoder.device)):
                logits = self.logits([self.texts.encode(rows, number) for number in batch])
                dependent[batch] = logits.double().softmax(-1)[:, 1].cpu().numpy()
        places = inverse.reshape(-1)
        return Probabilities(dependent[places], (rows.lengths > self.texts.max_tokens)[places])

    def logits(self, ids: Sequence[list[int]]) -> Tensor:
        """Return the model's logits for token ids, of shape (len(ids), 2)."""
        from dialeval_plugin.models.tensors import padded_tensors

        input_ids, mask = padded_tensors(ids, self.texts.tokenizer.pad_token_id, self.encoder.device)
        features = {"input_ids": input_ids, "attention_mask": mask}
        logits: Tensor = self.encoder(features)["scores"]
        return logits


def load_classifier(folder: Path, *, device: str | None = None) -> CrossEncoder:
    """Open the cross-encoder of a trained classifier; `ModelLoadError` if it is unsafe, damaged or of another kind."""
    from dialeval_plugin.models.encoders import restore

    if (base := base_of(folder)) is None:
        return _open(folder, device, is_trained=True)
    check_weights(folder)
    with without_warnings():  # of a randomly initialised head, which `restore` replaces
        encoder = new_classifier(base, device=device)
    restore(encoder.model, folder)
    return encoder


def new_classifier(backbone: Path, *, device: str | None = None) -> CrossEncoder:
    """Return an encoder with an untrained two-label head, initialised from torch's random state."""
    return _open(backbone, device, is_trained=False)


def _open(folder: Path, device: str | None, *, is_trained: bool) -> CrossEncoder:
    from sentence_transformers import CrossEncoder

    from dialeval_plugin.models.tensors import check_device, check_vocabulary, own_gpu

    stored = check_weights(folder)
    check_device(device)
    with opening(folder, "a cross-encoder"), whole(folder) as place:
        encoder = CrossEncoder(
            str(place),
            device=device or own_gpu(),
            num_labels=None if is_trained else N_LABELS,
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True},
        )
        # A first answer shows whether the parts of the model fit together.
        encoder.predict([("a", "a")], show_progress_bar=False)
    if encoder.num_labels != N_LABELS:
        raise ModelLoadError(
            f"{folder}: the classifier has {encoder.num_labels} labels, expected {N_LABELS}. Is this another model's folder?"
        )
    check_complete(folder, (encoder.model if is_trained else encoder.model.base_model).state_dict(), stored)
    check_vocabulary(folder, encoder.tokenizer, encoder.model.get_input_embeddings())
    return encoder


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
            vector_features(turns, indices[start : start + _AT_ONCE]) @ weights[:-1] + weights[-1]
            for start in range(0, len(indices), _AT_ONCE)
        ]
        return Probabilities(expit(np.concatenate(log_odds)), np.asarray(turns.is_cut[indices].any(axis=1)))


def number_rows(rows: Sequence[Sequence[str]]) -> tuple[list[str], IntArray]:
    """Return the distinct texts of rows of one width, and each row as indices into them, of shape (rows, width)."""
    numbers = numbered([text for row in rows for text in row])
    return list(numbers), np.array([[numbers[text] for text in row] for row in rows], dtype=np.int64)


def vector_features(turns: EmbeddedTurns, indices: IntArray) -> FloatArray:
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


def fit_on_vectors(vectors: TurnVectors, rows: Sequence[Sequence[str]], labels: Sequence[int]) -> VectorClassifier:
    """Return a classifier fitted to rows of texts, all of one width, with the labels 1 (dependent) and 0."""
    texts, indices = number_rows(rows)
    table = vector_features(vectors.of(texts), indices)
    mean, deviation = table.mean(0), table.std(0) + 1e-9
    # The penalty applies to the weights of standardised features.
    columns = np.column_stack([(table - mean) / deviation, np.ones(len(table))])
    coefficients = logistic_regression(columns, np.array(labels, dtype=np.float64), start=np.zeros(columns.shape[1]))
    slopes = coefficients[:-1] / deviation
    return VectorClassifier(vectors, np.array([*slopes, coefficients[-1] - slopes @ mean]))
