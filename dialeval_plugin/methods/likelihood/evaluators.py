"""How each family of language models judges the turns of a dialogue: causal ones, permutation models, next-sentence heads."""

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
from dialeval_plugin.models.batching import length_batches
from dialeval_plugin.models.language_models import OpenedModel
from dialeval_plugin.models.tensors import padded_tensors

Alignment: TypeAlias = Literal["correct", "published"]
SpanProbabilities: TypeAlias = tuple[causal.TokenSpan, FloatArray, FloatArray]
"""A turn in a pass, the log probabilities of its tokens, and those of the likeliest ones in their places."""

END = "<eod>"
"""XLNet's end of a document, which the thesis puts between context and response."""
IS_NEXT = 0
"""Label of "is next" in a next-sentence head."""


class TurnProbabilities(NamedTuple):
    """Natural logs of the probabilities of a turn's tokens and of the likeliest ones in their places, both of shape (tokens,).

    `is_cut` says whether a part of the turn's context did not fit into the window.
    """

    log_probabilities: FloatArray
    log_maxima: FloatArray
    is_cut: bool


EvaluatedTurns: TypeAlias = list[TurnProbabilities] | Unscored


class Evaluator(ABC):
    """Gives the turns of dialogues probabilities. The window is by default the model's, 1024 tokens at most."""

    def __init__(self, opened: OpenedModel, max_tokens: int | None) -> None:
        self.opened = opened
        self.max_tokens = causal.window(opened, max_tokens, "dialogue_likelihood")

    @abstractmethod
    def judge(self, dialogues: Sequence[Sequence[str]], *, last_only: bool) -> list[EvaluatedTurns]:
        """Judge all turns but the first of each dialogue, or the last one only; of two turns at least, none blank."""


class TokenEvaluator(Evaluator):
    """Judges a turn by its tokens, each of which is predicted from those before it.

    A subclass says what every pass begins with, what ends a turn, and how a model answers.
    """

    prefix: list[int]
    end: list[int]

    def __init__(self, opened: OpenedModel, context: causal.Context, max_tokens: int | None) -> None:
        super().__init__(opened, max_tokens)
        self.context = context

    @abstractmethod
    def answers(self, passes: Sequence[causal.ForwardPass]) -> Iterator[SpanProbabilities]:
        """Yield the answer to each span of the passes, in any order."""

    def judge(self, dialogues: Sequence[Sequence[str]], *, last_only: bool) -> list[EvaluatedTurns]:
        """Judge by the tokens; see `Evaluator`."""
        pieces = causal.turn_pieces(self.opened, dialogues, self.end, last_only=last_only)
        passes, refused = causal.all_passes(pieces, self.prefix, self.max_tokens, context=self.context, last_only=last_only)
        turns: list[list[TurnProbabilities]] = [[] for _ in dialogues]
        with torch.inference_mode():
            for span, logs, maxima in sorted(self.answers(passes), key=lambda answer: answer[0].turn):
                turns[span.dialogue].append(TurnProbabilities(logs, maxima, span.is_cut))
        return [refused.get(number, answers) for number, answers in enumerate(turns)]


class CausalEvaluator(TokenEvaluator):
    """GPT-2, DialoGPT and any other, P(token | tokens before it), equations 5.2 and 8.1: one pass answers for a dialogue.

    Layout "separated" ends every turn by the end-of-text token, as DialoGPT does, and counts that token as part of the turn.
    Layout "plain" puts turns side by side after the beginning-of-text token, as the thesis' GPT-2 evaluator does, and counts
    the turn's own tokens only. A model that has a beginning of its own, unlike GPT-2, gets it in both.

    Alignment "correct" predicts a token from the place before it. The thesis' published code looks one place too far, so
    that it gives the probability that the token follows itself; "published" reproduces its numbers.
    """

    def __init__(
        self, opened: OpenedModel, context: causal.Context, layout: causal.Layout, alignment: Alignment, max_tokens: int | None
    ) -> None:
        super().__init__(opened, context, max_tokens)
        self._shift = 1 if alignment == "correct" else 0
        causal.check_causal(opened)
        self.prefix, self.end = causal.layout_tokens(opened, layout)

    def answers(self, passes: Sequence[causal.ForwardPass]) -> Iterator[SpanProbabilities]:
        """Read each pass once, and passes that begin alike together."""
        shift = self._shift

        def answer(rows: Sequence[Sequence[int]]) -> tuple[FloatArray, FloatArray]:
            return causal.log_probabilities(self.logits(rows), [row[shift:] for row in rows])

        for span, row, (logs, maxima) in causal.read_spans(self.opened, passes, answer):
            tokens = slice(span.start - shift, span.end - shift)
            yield span, logs[row, tokens], maxima[row, tokens]

    def logits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Run the model on token ids; returns shape (rows, longest row, vocabulary)."""
        logits: Tensor = self.opened.model(input_ids=causal.padded_ids(self.opened, rows), use_cache=False).logits
        return logits


class PermutationEvaluator(TokenEvaluator):
    """XLNet: gives each token of a turn its probability; the end between turns is read, and not scored.

    As in the thesis' code there is one row a token, in which nothing sees the target or what follows it. The tokens before the
    target see one another whole, which is why one pass over a dialogue cannot answer for all of its tokens. Nothing limits its
    relative positions, so the window is by default 1024 tokens.
    """

    prefix: list[int] = []  # noqa: RUF012 - never changed

    def __init__(self, opened: OpenedModel, context: causal.Context, max_tokens: int | None) -> None:
        super().__init__(opened, context, max_tokens)
        end = opened.tokenizer.get_vocab().get(END, opened.tokenizer.sep_token_id)
        if end is None:
            raise ModelLoadError(f"{opened.folder}: the tokenizer has neither {END!r} nor a separator. Choose an XLNet.")
        self.end = [int(end)]

    def answers(self, passes: Sequence[causal.ForwardPass]) -> Iterator[SpanProbabilities]:
        """Read a row for each token of each span."""
        spans = [(one.ids, span) for one in passes for span in one.spans]
        # A row ends with the token to predict.
        rows = [ids[: target + 1] for ids, span in spans for target in range(span.start, span.end - 1)]
        logs = np.empty((2, len(rows)))
        for places in length_batches([len(row) for row in rows], self.opened.batch_tokens):
            batch = [rows[place] for place in places]
            answers = causal.log_probabilities(self.logits(batch)[:, None], [row[-1:] for row in batch])
            logs[:, places] = [values[:, 0] for values in answers]
        ends = np.cumsum([span.end - 1 - span.start for _, span in spans])
        # Behind the last end there is nothing.
        for (_, span), (own_logs, own_maxima) in zip(spans, np.split(logs, ends, axis=1), strict=False):
            yield span, own_logs, own_maxima

    def logits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Predict the last token of each row without a look at it; returns shape (rows, vocabulary)."""
        device = self.opened.device
        ids, _ = padded_tensors(rows, self.opened.pad, device)
        targets = torch.tensor([len(row) - 1 for row in rows], device=device)
        places = torch.arange(ids.shape[1], device=device)
        # From the target on nothing is seen, padding included.
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
    """BERT's P(the turn follows the one before it), equation 5.1, of the pairs of sentences that the model was trained on.

    Of a pair that is longer than the window the first turn is cut, at its beginning. Where the first turn would be lost
    whole, the dialogue has no score.

    Args:
        opened: a model with a next-sentence head, or a classifier of pairs.
        next_label: number or name of the label that stands for "follows"; a classifier needs it.
    """

    def __init__(self, opened: OpenedModel, next_label: int | str | None, max_tokens: int | None) -> None:
        super().__init__(opened, max_tokens)
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

    def judge(self, dialogues: Sequence[Sequence[str]], *, last_only: bool) -> list[EvaluatedTurns]:
        """Judge pairs of turns, see `Evaluator`; a turn has one probability, and its maximum is the same number."""
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
