"""Sequence-to-sequence language models through transformers: safetensors only, no remote code, no weight left to chance."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.models.folders import check_device, check_vocabulary, check_weights, opening, resolve

Ids: TypeAlias = list[int]

LONGEST = 1024
"""Tokens that BARTScore's and UniEval's published code reads at most."""


@dataclass(frozen=True, slots=True)
class Seq2Seq:
    """A model in evaluation mode with its tokenizer."""

    model: Any
    tokenizer: Any
    folder: Path
    max_tokens: int
    special: re.Pattern[str]
    """Finds the strings that the tokenizer takes for special tokens."""
    ends: tuple[Ids, Ids]
    """What the tokenizer puts before and after a text."""

    def pieces(self, texts: Sequence[str]) -> list[Ids]:
        """Tokenise texts without special tokens; one that stands in a text is text."""
        # The host's split_special_tokens does not do: T5's own vocabulary has "</s>" as a piece. So none is ever whole.
        parts = [self._broken(text) for text in texts]
        flat = [part for found in parts for part in found]
        ids = iter(self.tokenizer(flat, add_special_tokens=False, verbose=False)["input_ids"] if flat else [])
        return [[id for _ in found for id in next(ids)] for found in parts]

    def _broken(self, text: str) -> list[str]:
        """Cut a text after the first character of each special token in it."""
        cuts = [match.start() + 1 for match in self.special.finditer(text)]
        return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    def with_ends(self, piece: Ids) -> Ids:
        """Add what the model's tokenizer puts at the ends of a text."""
        return [*self.ends[0], *piece, *self.ends[1]]

    @property
    def n_ends(self) -> int:
        """How many tokens `with_ends` adds."""
        return sum(map(len, self.ends))

    def log_probabilities(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Tensor]:
        """Return for each pair the log probability of each target token after the source, of shape (target tokens,)."""
        labels, _ = self._padded(targets)
        shifted = self.model.prepare_decoder_input_ids_from_labels(labels)
        logs = self._logits(sources, shifted).log_softmax(-1).gather(-1, labels[..., None])[..., 0].cpu()
        return [row[: len(target)] for row, target in zip(logs, targets, strict=True)]

    def first_logits(self, sources: Sequence[Ids]) -> Tensor:
        """Return the logits of the first token of the answer to each source, of shape (sources, vocabulary)."""
        start = torch.full((len(sources), 1), self.model.config.decoder_start_token_id, device=self.model.device)
        return self._logits(sources, start)[:, 0].cpu()

    def _logits(self, sources: Sequence[Ids], decoder_ids: Tensor) -> Tensor:
        ids, mask = self._padded(sources)
        with torch.inference_mode():
            logits: Tensor = self.model(
                input_ids=ids, attention_mask=mask, decoder_input_ids=decoder_ids, use_cache=False
            ).logits.float()
        return logits

    def _padded(self, rows: Sequence[Ids]) -> tuple[Tensor, Tensor]:
        length, pad = max(map(len, rows)), self.model.config.pad_token_id
        ids = torch.tensor([[*row, *[pad] * (length - len(row))] for row in rows], device=self.model.device)
        mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows], device=self.model.device)
        return ids, mask


def open_seq2seq(
    name: str, *, max_tokens: int | None = None, device: str | None = None, revision: str | None = None
) -> Seq2Seq:
    """Open a folder or a model of the hub.

    Args:
        name: folder or hub id.
        max_tokens: longest sequence that is read; by default the model's, 1024 at most.
        device: a torch device; by default a GPU where there is one.
        revision: of a hub model.

    Raises:
        InputError: the window is longer than the model's, or there is no such device.
        ModelLoadError: the weights are pickled, damaged or incomplete, or the model is of another kind.
        MissingPrerequisite: see `model_folders.resolve`.
    """
    folder = resolve(name, revision=revision)
    check_weights(folder)
    check_device(device)
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    with opening(folder, "a sequence-to-sequence model"):
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        model, found = AutoModelForSeq2SeqLM.from_pretrained(
            folder, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **options
        )
    if missing := sorted(found["missing_keys"]):
        raise ModelLoadError(f"{folder}: its weights lack {missing[0]!r}, which would be random. Copy the folder again.")
    check_vocabulary(folder, tokenizer, model.get_input_embeddings())
    limit = getattr(model.config, "max_position_embeddings", None)
    if max_tokens is not None and limit is not None and max_tokens > limit:
        raise InputError(f"max_tokens: is {max_tokens}, but the model takes {limit} at most. Give less.")
    model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()
    with opening(folder, "a sequence-to-sequence model"), torch.inference_mode():
        # What does not fit together shows in the first answer, if not before.
        first = torch.zeros(1, 1, dtype=torch.long, device=model.device)
        model(input_ids=first, decoder_input_ids=first)
    special = re.compile("|".join(map(re.escape, tokenizer.all_special_tokens)))
    return Seq2Seq(model, tokenizer, folder, max_tokens or min(limit or LONGEST, LONGEST), special, _ends(tokenizer))


def _ends(tokenizer: Any) -> tuple[Ids, Ids]:
    probe: Ids = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole: Ids = tokenizer("a")["input_ids"]
    start = next(place for place in range(len(whole)) if whole[place : place + len(probe)] == probe)
    return whole[:start], whole[start + len(probe) :]


def batches_by_length(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Yield the places of rows in batches of `size`, the longest first: what does not fit into memory fails at once."""
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    for start in range(0, len(order), size):
        yield order[start : start + size]
