"""BERT's next-sentence prediction as evaluator: P(the turn follows the one before it), equation 5.1."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.models.batching import length_batches, padded
from dialeval_plugin.models.causal import Overlong, as_array, too_long, window
from dialeval_plugin.models.language_models import OpenedModel

from .evaluators import Judged, TurnProbabilities

IS_NEXT = 0
"""Label of "is next" in a next-sentence head."""


class _Pair(NamedTuple):
    ids: tuple[int, ...]
    types: tuple[int, ...]
    is_cut: bool


class NextSentenceEvaluator:
    """Judges each turn with the turn before it, as the pair of sentences that the model was trained on.

    Of a pair that is longer than the window the first turn is cut, at its beginning. Where the first turn would be lost
    whole, the dialogue has no score. The window is by default the model's, 1024 tokens at most.

    Args:
        opened: a model with a next-sentence head, or a classifier of pairs.
        next_label: number or name of the label that stands for "follows"; a classifier needs it.
    """

    def __init__(self, opened: OpenedModel, next_label: int | str | None, max_tokens: int | None) -> None:
        self.opened = opened
        self.max_tokens = window(opened, max_tokens, "dialogue_likelihood")
        self.next_label = _label(opened, next_label)
        self._pairs = opened.tokenizer.backend_tokenizer
        # A special token that stands in a turn is text.
        self._pairs.encode_special_tokens = True
        self._pairs.no_truncation()
        self._pairs.no_padding()
        self._n_special = int(self._pairs.num_special_tokens_to_add(True))
        if not self._n_special:
            raise ModelLoadError(
                f"{opened.folder}: the tokenizer puts nothing between the sentences of a pair. Choose a model for pairs."
            )

    def judge(self, dialogues: Sequence[Sequence[str]], *, last_only: bool) -> list[Judged]:
        """See `evaluators.Evaluator`; a turn has one probability, and its maximum is the same number."""
        wanted = [list(itertools.pairwise(dialogue))[-1 if last_only else None :] for dialogue in dialogues]
        pairs = {pair: self._encode(*pair) for pair in dict.fromkeys(pair for found in wanted for pair in found)}
        readable = {pair: encoded for pair, encoded in pairs.items() if not isinstance(encoded, Overlong)}
        logs: dict[tuple[str, str], float] = {}
        with torch.inference_mode():
            known = list(readable)
            for places in length_batches([len(one.ids) for one in readable.values()], self.opened.batch_tokens):
                batch = [known[place] for place in places]
                logs.update(zip(batch, self._log_probabilities([readable[pair] for pair in batch]), strict=True))
        return [
            self._judged(found, len(dialogue) - len(found), pairs, logs)
            for dialogue, found in zip(dialogues, wanted, strict=True)
        ]

    def _judged(
        self,
        wanted: Sequence[tuple[str, str]],
        first: int,
        pairs: dict[tuple[str, str], _Pair | Overlong],
        logs: dict[tuple[str, str], float],
    ) -> Judged:
        turns = []
        for place, pair in enumerate(wanted, start=first):
            encoded = pairs[pair]
            if isinstance(encoded, Overlong):
                return too_long(encoded._replace(turn=place), self.max_tokens)
            log = as_array([logs[pair]])
            turns.append(TurnProbabilities(log, log, encoded.is_cut))
        return turns

    def _encode(self, first: str, second: str) -> _Pair | Overlong:
        before, after = self._pairs.encode_batch([first, second], add_special_tokens=False)
        room = self.max_tokens - self._n_special - len(after.ids)
        if room < 1:
            return Overlong(0, len(after.ids))
        is_cut = len(before.ids) > room
        before.truncate(room, direction="left")
        pair = self._pairs.post_process(before, after)
        return _Pair(tuple(pair.ids), tuple(pair.type_ids), is_cut)

    def _log_probabilities(self, pairs: Sequence[_Pair]) -> list[float]:
        ids, mask = padded([pair.ids for pair in pairs], self.opened.pad, self.opened.device)
        inputs = {"input_ids": ids, "attention_mask": mask}
        # RoBERTa has one type of sentence, BERT two.
        if getattr(self.opened.model.config, "type_vocab_size", 1) > 1:
            inputs["token_type_ids"], _ = padded([pair.types for pair in pairs], 0, self.opened.device)
        logits = self.opened.model(**inputs).logits
        found: list[float] = logits.double().log_softmax(-1)[:, self.next_label].tolist()
        return found


def _label(opened: OpenedModel, label: int | str | None) -> int:
    config = opened.model.config
    is_classifier = type(opened.model).__name__.endswith("ForSequenceClassification")
    names = (
        {int(number): str(name) for number, name in config.id2label.items()} if is_classifier else {0: "next", 1: "not next"}
    )
    if label is None and not is_classifier:
        return IS_NEXT
    for number, name in names.items():
        if label is not None and label in (number, name):
            return number
    known = ", ".join(f"{number} ({name})" for number, name in names.items())
    raise InputError(
        f"dialogue_likelihood: next_label is {label!r}. Name the label that stands for a turn that follows: {known}."
    )
