"""Evaluators of a dialogue's turns by family of language model: causal models, permutation models, next-sentence heads."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.models import causal
from dialeval_plugin.models.language_models import OpenedModel
from dialeval_plugin.models.tensors import padded_tensors
from dialeval_plugin.models.texts import length_batches

Alignment: TypeAlias = Literal["correct", "published"]
SpanProbabilities: TypeAlias = tuple[causal.TokenSpan, FloatArray, FloatArray]
"""A turn in a pass, the log probabilities of its tokens, and those of the likeliest token at each position."""

END = "<eod>"
"""XLNet's end of a document, used in the thesis between context and response."""
IS_NEXT = 0
"""Label of "is next" in a next-sentence head."""


class TurnProbabilities(NamedTuple):
    """Natural logs of the probabilities of a turn's tokens and of the likeliest token at each position, of shape (tokens,)."""

    log_probabilities: FloatArray
    log_maxima: FloatArray
    is_cut: bool
    """Whether the turn's context was truncated."""


EvaluatedTurns: TypeAlias = list[TurnProbabilities] | Unscored


class Evaluator(ABC):
    """Base class of evaluators of turns. The window is by default the model's, 1024 tokens at most."""

    def __init__(self, opened: OpenedModel, max_tokens: int | None) -> None:
        self.opened = opened
        self.max_tokens = causal.window(opened, max_tokens, "dialogue_likelihood")

    @abstractmethod
    def judge(self, dialogues: Sequence[Sequence[str]], *, last_only: bool) -> list[EvaluatedTurns]:
        """Return the probabilities of all turns but the first, or of the last; dialogues have two turns or more, none blank."""


class TokenEvaluator(Evaluator):
    """An evaluator of turns by their tokens; a subclass defines `prefix` of a pass, `end` of a turn, and `answers`."""

    prefix: list[int]
    end: list[int]

    def __init__(self, opened: OpenedModel, context: causal.Context, max_tokens: int | None) -> None:
        super().__init__(opened, max_tokens)
        self.context = context

    @abstractmethod
    def answers(self, passes: Sequence[causal.ForwardPass]) -> Iterator[SpanProbabilities]:
        """Yield the probabilities of each span of the passes, in any order."""

    def judge(self, dialogues: Sequence[Sequence[str]], *, last_only: bool) -> list[EvaluatedTurns]:
        """Return the probabilities of the tokens; see `Evaluator`."""
        pieces = causal.turn_pieces(self.opened, dialogues, self.end, last_only=last_only)
        passes, refused = causal.all_passes(pieces, self.prefix, self.max_tokens, context=self.context, last_only=last_only)
        turns: list[list[TurnProbabilities]] = [[] for _ in dialogues]
        with torch.inference_mode():
            for span, logs, maxima in sorted(self.answers(passes), key=lambda answer: answer[0].turn):
                turns[span.dialogue].append(TurnProbabilities(logs, maxima, span.is_cut))
        return [refused.get(number, answers) for number, answers in enumerate(turns)]


class CausalEvaluator(TokenEvaluator):
    """GPT-2, DialoGPT and other causal models: P(token | tokens before it), equations 5.2 and 8.1, in one pass per dialogue.

    Layout "separated" ends every turn with the end-of-text token, as DialoGPT does, and counts that token. Layout "plain" joins
    turns without a separator after the beginning-of-text token, as the thesis' GPT-2 evaluator does. Models with a separate
    beginning-of-text token, unlike GPT-2, get it in both layouts.

    Alignment "correct" predicts a token from the place before it. The thesis' published code uses the token's own place, so its
    numbers are probabilities that the token follows itself; "published" reproduces them.
    """

    def __init__(
        self, opened: OpenedModel, context: causal.Context, layout: causal.Layout, alignment: Alignment, max_tokens: int | None
    ) -> None:
        super().__init__(opened, context, max_tokens)
        self._shift = 1 if alignment == "correct" else 0
        causal.check_causal(opened)
        self.prefix, self.end = causal.layout_tokens(opened, layout)

    def answers(self, passes: Sequence[causal.ForwardPass]) -> Iterator[SpanProbabilities]:
        """Yield the probabilities of each span; passes that begin alike share computation."""
        shift = self._shift

        def answer(rows: Sequence[Sequence[int]]) -> tuple[FloatArray, FloatArray]:
            return causal.log_probabilities(self.logits(rows), [row[shift:] for row in rows])

        for span, row, (logs, maxima) in causal.read_spans(self.opened, passes, answer):
            tokens = slice(span.start - shift, span.end - shift)
            yield span, logs[row, tokens], maxima[row, tokens]

    def logits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Return the model's logits for token ids, of shape (rows, longest row, vocabulary)."""
        logits: Tensor = self.opened.model(input_ids=causal.padded_ids(self.opened, rows), use_cache=False).logits
        return logits


class PermutationEvaluator(TokenEvaluator):
    """XLNet: the probability of each token of a turn; the end token between turns is read but not scored.

    As in the thesis' code there is one row per token, in which no token sees the target or later tokens. Tokens before the
    target all see each other, so one pass over a dialogue cannot predict all of its tokens. Positions are relative and without
    limit; the window is by default 1024 tokens.
    """

    prefix: list[int] = []  # noqa: RUF012 - never changed

    def __init__(self, opened: OpenedModel, context: causal.Context, max_tokens: int | None) -> None:
        super().__init__(opened, context, max_tokens)
        end = opened.tokenizer.get_vocab().get(END, opened.tokenizer.sep_token_id)
        if end is None:
            raise ModelLoadError(f"{opened.folder}: the tokenizer has neither {END!r} nor a separator. Choose an XLNet.")
        self.end = [int(end)]

    def answers(self, passes: Sequence[causal.ForwardPass]) -> Iterator[SpanProbabilities]:
        """Yield the probabilities of each span, from one row per token."""
        spans = [(one.ids, span) for one in passes for span in one.spans]
        # A row ends with the token to predict.
        rows = [ids[: target + 1] for ids, span in spans for target in range(span.start, span.end - 1)]
        logs = np.empty((2, len(rows)))
        for places in length_batches([len(row) for row in rows], self.opened.batch_tokens):
            batch = [rows[place] for place in places]
            answers = causal.log_probabilities(self.logits(batch)[:, None], [row[-1:] for row in batch])
            logs[:, places] = [values[:, 0] for values in answers]
        ends = np.cumsum([span.end - 1 - span.start for _, span in spans])
        # The part after the last end is empty.
        for (_, span), (own_logs, own_maxima) in zip(spans, np.split(logs, ends, axis=1), strict=False):
            yield span, own_logs, own_maxima

    def logits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Return the logits for the last token of each row, which is hidden, of shape (rows, vocabulary)."""
        device = self.opened.device
        ids, _ = padded_tensors(rows, self.opened.pad, device)
        targets = torch.tensor([len(row) - 1 for row in rows], device=device)
        places = torch.arange(ids.shape[1], device=device)
        # The target and everything after it, padding included, is hidden.
        hidden = (places[None] >= targets[:, None]).float()
        logits: Tensor = self.opened.model(
            input_ids=ids,
            perm_mask=hidden[:, None].expand(-1, ids.shape[1], -1),
            target_mapping=(places[None] == targets[:, None]).float()[:, None],
        ).logits
        return logits[:, 0]


class _Pair(NamedTuple):
    ids: tuple[int, ...]
    types: tuple[int, ...]
    is_cut: bool


class NextSentenceEvaluator(Evaluator):
    """BERT's P(the turn follows the one before it), equation 5.1.

    If a pair is too long, the first turn loses its beginning; if nothing would be left of it, the dialogue has no score.

    Args:
        opened: a model with a next-sentence head, or a classifier of pairs.
        next_label: number or name of the label "follows"; required for a classifier.
    """

    def __init__(self, opened: OpenedModel, next_label: int | str | None, max_tokens: int | None) -> None:
        super().__init__(opened, max_tokens)
        self.next_label = _label(opened, next_label)
        self._pairs = opened.tokenizer.backend_tokenizer
        # Special tokens in a turn are read as text.
        self._pairs.encode_special_tokens = True
        self._pairs.no_truncation()
        self._pairs.no_padding()
        self._n_special = int(self._pairs.num_special_tokens_to_add(True))
        if not self._n_special:
            raise ModelLoadError(
                f"{opened.folder}: the tokenizer puts nothing between the sentences of a pair. Choose a model for pairs."
            )

    def judge(self, dialogues: Sequence[Sequence[str]], *, last_only: bool) -> list[EvaluatedTurns]:
        """Return the probability of each pair of turns, also as its maximum; see `Evaluator`."""
        wanted = [list(itertools.pairwise(dialogue))[-1 if last_only else None :] for dialogue in dialogues]
        pairs = {pair: self._encode(*pair) for pair in dict.fromkeys(itertools.chain.from_iterable(wanted))}
        readable = {pair: encoded for pair, encoded in pairs.items() if not isinstance(encoded, causal.TurnTooLong)}
        answers: dict[tuple[str, str], TurnProbabilities | causal.TurnTooLong] = {
            pair: encoded for pair, encoded in pairs.items() if isinstance(encoded, causal.TurnTooLong)
        }
        known = list(readable)
        with torch.inference_mode():
            for places in length_batches([len(one.ids) for one in readable.values()], self.opened.batch_tokens):
                batch = [known[place] for place in places]
                for pair, log in zip(batch, self._log_probabilities([readable[pair] for pair in batch]), strict=True):
                    answers[pair] = TurnProbabilities(log, log, readable[pair].is_cut)
        return [
            self._judged([answers[pair] for pair in scored], first=len(dialogue) - len(scored))
            for dialogue, scored in zip(dialogues, wanted, strict=True)
        ]

    def _judged(self, answers: Sequence[TurnProbabilities | causal.TurnTooLong], *, first: int) -> EvaluatedTurns:
        turns = []
        for number, answer in enumerate(answers, start=first):
            if isinstance(answer, causal.TurnTooLong):
                return causal.too_long(answer._replace(turn=number), self.max_tokens)
            turns.append(answer)
        return turns

    def _encode(self, first: str, second: str) -> _Pair | causal.TurnTooLong:
        before, after = self._pairs.encode_batch([first, second], add_special_tokens=False)
        room = self.max_tokens - self._n_special - len(after.ids)
        if room < 1:
            return causal.TurnTooLong(0, len(after.ids))
        is_cut = len(before.ids) > room
        before.truncate(room, direction="left")
        pair = self._pairs.post_process(before, after)
        return _Pair(tuple(pair.ids), tuple(pair.type_ids), is_cut)

    def _log_probabilities(self, pairs: Sequence[_Pair]) -> FloatArray:
        """Return the log probability of each pair, of shape (pairs, 1)."""
        ids, mask = padded_tensors([pair.ids for pair in pairs], self.opened.pad, self.opened.device)
        inputs = {"input_ids": ids, "attention_mask": mask}
        # RoBERTa has one type of sentence, BERT two.
        if getattr(self.opened.model.config, "type_vocab_size", 1) > 1:
            inputs["token_type_ids"], _ = padded_tensors([pair.types for pair in pairs], 0, self.opened.device)
        logits = self.opened.model(**inputs).logits
        return causal.as_array(logits.double().log_softmax(-1)[:, [self.next_label]].cpu())


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
