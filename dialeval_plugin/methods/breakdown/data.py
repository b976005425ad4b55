"""Training data of language models: dialogues without leaks, and their tokens in rows and batches.

A row is one dialogue or a block of a long one, so dialogues do not see each other. Batches have rows of similar length and thus
little padding: packing several dialogues into a row would save less than the mask between them costs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from dialeval_plugin.core.arrays import IntArray
from dialeval_plugin.core.dialogue import Dialogue, Item
from dialeval_plugin.corpora.identity import LeakIndex, leave_out_leaks, opening_key, split_by_dialogue
from dialeval_plugin.models.causal import layout_tokens, turn_pieces
from dialeval_plugin.models.language_models import OpenedModel
from dialeval_plugin.models.texts import turns_to_read

Spacing: TypeAlias = Literal["natural", "published"]

_BLANK_BEFORE_SIGN = re.compile(r"\s+(?=[.,!?;:)\]](?:\s|$))")
_SPLIT_APOSTROPHE = re.compile(r"(?<=\w)\s*'\s*(?=(?:s|t|m|d|re|ve|ll)\b)", re.IGNORECASE)


class LanguageModelSources(NamedTuple):
    """Dialogues by their use."""

    training: Sequence[Dialogue]
    validation: Sequence[Dialogue] = ()
    """Dialogues that select the best epoch and calibrate breakdown scores; by default a share of the training dialogues."""
    evaluation: Sequence[Item] = ()


class LanguageModelData(NamedTuple):
    """Texts of the turns of each dialogue."""

    training: list[list[str]]
    validation: list[list[str]]
    n_left_out: int
    """Training dialogues that begin like validation dialogues or are in the evaluation data."""


def prepare(sources: LanguageModelSources, *, validation_fraction: float, seed: int, spacing: Spacing) -> LanguageModelData:
    """Return training and validation dialogues of two turns or more, without blank turns and leaks.

    Leaks are dialogues that share a part with an evaluation dialogue. Spacing "published" does not change the texts.
    """
    index = LeakIndex({"evaluation": sources.evaluation})
    training, validation = (
        [turns for dialogue in dialogues if len(turns := turns_to_read(dialogue)) > 1]
        for dialogues in (sources.training, sources.validation)
    )
    clean = leave_out_leaks(training, index, lambda turns: [turns], "training dialogues")
    held_out = leave_out_leaks(validation, index, lambda turns: [turns], "validation dialogues")
    remaining, validation = split_by_dialogue(
        clean, held_out if sources.validation else None, opening_key, fraction=validation_fraction, seed=seed
    )
    n_left_out = len(training) - len(remaining if sources.validation else clean)
    if spacing == "natural":
        remaining, validation = (
            [[natural_spacing(text) for text in turns] for turns in part] for part in (remaining, validation)
        )
    return LanguageModelData(remaining, validation, n_left_out)


def natural_spacing(text: str) -> str:
    """Return a text without a tokenised corpus's blanks before punctuation and around apostrophes, and curly apostrophes.

    Example:
        >>> natural_spacing("It ’ s late , isn't it ? I 'll go .")
        "It's late, isn't it? I'll go."
    """
    joined = _SPLIT_APOSTROPHE.sub("'", " ".join(text.split()).replace("’", "'"))
    return _BLANK_BEFORE_SIGN.sub("", joined)


MU = 0.15
"""Rate of the background model's noise (section 7.2.3; Ren et al. 2019)."""
IGNORED = -100
"""Label of padding."""
_POOL = 50
"""Batches that are sorted together: enough for rows of similar length, few enough that the order remains random."""


class TokenRow(NamedTuple):
    """Input tokens and tokens to predict, both of shape (tokens,)."""

    inputs: Sequence[int] | IntArray
    labels: Sequence[int]


class Key(NamedTuple):
    """Epoch and row, which determine the noise."""

    epoch: int
    row: int


def token_blocks(opened: OpenedModel, dialogues: Sequence[Sequence[str]], block: int) -> list[list[int]]:
    """Return dialogues' tokens, each turn followed by the end-of-text token, in blocks of 2 to `block` tokens."""
    prefix, end = layout_tokens(opened, "separated")
    blocks = []
    for pieces in turn_pieces(opened, dialogues, end, last_only=False):
        ids = [*prefix, *(token for piece in pieces for token in piece)]
        blocks += [ids[start : start + block] for start in range(0, len(ids), block)]
    return [row for row in blocks if len(row) > 1]


def ordinary_tokens(opened: OpenedModel) -> IntArray:
    """Return the ids of a tokenizer that are not special tokens, of shape (ids,)."""
    special = set(opened.tokenizer.all_special_ids)
    return np.array([id for id in range(len(opened.tokenizer)) if id not in special], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class TokenNoise:
    """Perturbation of inputs, the same for the same epoch and row.

    Each token of `replacements` is replaced with probability `mu` by one drawn uniformly from them, itself included. Others,
    such as special tokens, do not change; the authors' code replaces those too, and padding.

    Example:
        >>> TokenNoise(1.0, np.array([5, 6, 7]), seed=1).apply([5, 0, 6], Key(0, 0)).tolist()
        [7, 0, 5]
    """

    mu: float
    replacements: IntArray
    seed: int

    def apply(self, ids: Sequence[int] | IntArray, key: Key) -> IntArray:
        """Return the perturbed ids of a row."""
        original, generator = np.asarray(ids, dtype=np.int64), np.random.default_rng((self.seed, *key))
        is_replaced = (generator.random(len(original)) < self.mu) & np.isin(original, self.replacements)
        return np.where(is_replaced, generator.choice(self.replacements, size=len(original)), original)


class TokenRows(Dataset[TokenRow]):
    """Blocks of tokens, with `noise` if it is given."""

    def __init__(self, blocks: Sequence[Sequence[int]], noise: TokenNoise | None = None) -> None:
        self.blocks = blocks
        self.noise = noise

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, index: int | Key) -> TokenRow:
        key = index if isinstance(index, Key) else Key(0, index)
        ids = self.blocks[key.row]
        return TokenRow(ids if self.noise is None else self.noise.apply(ids, key), ids)


class RowsByLength(Sampler[Key]):
    """Rows of an epoch in random order with neighbours of similar length; it depends only on seed and epoch."""

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        self._lengths = np.asarray(lengths)
        self._batch_size = batch_size
        self._seed = seed
        self._epoch = 0

    def __len__(self) -> int:
        return len(self._lengths)

    def set_epoch(self, epoch: int) -> None:
        """Set the next epoch; called by the trainer."""
        self._epoch = epoch

    def __iter__(self) -> Iterator[Key]:
        generator = np.random.default_rng((self._seed, self._epoch))
        order = generator.permutation(len(self._lengths))
        pool = _POOL * self._batch_size
        batches: list[IntArray] = []
        for start in range(0, len(order), pool):
            rows = order[start : start + pool]
            rows = rows[np.argsort(-self._lengths[rows], kind="stable")]
            batches += [rows[first : first + self._batch_size] for first in range(0, len(rows), self._batch_size)]
        # Only the last batch may be short, because the trainer splits the keys into batches by counting.
        full = [batch for batch in batches if len(batch) == self._batch_size]
        short = [batch for batch in batches if len(batch) < self._batch_size]
        for place in generator.permutation(len(full)):
            yield from (Key(self._epoch, int(row)) for row in full[place])
        for batch in short:
            yield from (Key(self._epoch, int(row)) for row in batch)


@dataclass(frozen=True, slots=True)
class PadRows:
    """Padding of rows on the right, which a causal model ignores."""

    pad: int

    def __call__(self, rows: Sequence[TokenRow]) -> dict[str, Tensor]:
        """Return `input_ids` and `labels`, both of shape (rows, longest row)."""
        length = max(len(row.labels) for row in rows)
        inputs = [[*row.inputs, *[self.pad] * (length - len(row.labels))] for row in rows]
        labels = [[*row.labels, *[IGNORED] * (length - len(row.labels))] for row in rows]
        return {"input_ids": torch.tensor(inputs), "labels": torch.tensor(labels)}
