"""Causal language models as evaluators (GPT-2, DialoGPT and any other): P(token | tokens before it), equations 5.2 and 8.1."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dialeval_plugin.models.batching import length_batches
from dialeval_plugin.models.causal import (
    Context,
    Layout,
    Pass,
    Span,
    all_passes,
    check_causal,
    layout_tokens,
    log_probabilities,
    padded_ids,
    share_beginnings,
    turn_pieces,
    window,
)
from dialeval_plugin.models.language_models import OpenedModel

from .aggregation import FloatArray
from .evaluators import Alignment, Judged, by_dialogue


class CausalEvaluator:
    """Reads a dialogue once and gives each of its turns the probabilities of its tokens.

    Layout "separated" ends every turn by the end-of-text token, as DialoGPT does, and counts that token as part of the turn.
    Layout "plain" puts turns side by side after the beginning-of-text token, as the thesis' GPT-2 evaluator does, and counts
    the turn's own tokens only. A model that has a beginning of its own, unlike GPT-2, gets it in both.

    Alignment "correct" predicts a token from the place before it. The thesis' published code looks one place too far, so
    that it gives the probability that the token follows itself; "published" reproduces its numbers.

    The window is by default the model's, 1024 tokens at most.
    """

    def __init__(
        self, opened: OpenedModel, context: Context, layout: Layout, alignment: Alignment, max_tokens: int | None
    ) -> None:
        self.opened = opened
        self.context = context
        self._shift = 1 if alignment == "correct" else 0
        self.max_tokens = window(opened, max_tokens, "dialogue_likelihood")
        check_causal(opened)
        self._prefix, self._end = layout_tokens(opened, layout)

    def judge(self, dialogues: Sequence[Sequence[str]], *, last_only: bool) -> list[Judged]:
        """See `evaluators.Evaluator`."""
        pieces = turn_pieces(self.opened, dialogues, self._end, last_only=last_only)
        passes, refused = all_passes(pieces, self._prefix, self.max_tokens, context=self.context, last_only=last_only)
        shared = share_beginnings(passes)
        answers: list[tuple[Span, FloatArray, FloatArray]] = []
        with torch.inference_mode():
            for places in length_batches([len(one.ids) for one in shared], self.opened.batch_tokens):
                answers += self._answers([shared[place] for place in places])
        return by_dialogue(len(dialogues), refused, answers)

    def _answers(self, batch: Sequence[Pass]) -> list[tuple[Span, FloatArray, FloatArray]]:
        shift = self._shift
        logs, maxima = log_probabilities(self.logits([one.ids for one in batch]), [one.ids[shift:] for one in batch])
        return [
            (span, logs[row, span.start - shift : span.end - shift], maxima[row, span.start - shift : span.end - shift])
            for row, one in enumerate(batch)
            for span in one.spans
        ]

    def logits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Run the model on token ids; returns shape (rows, longest row, vocabulary)."""
        logits: Tensor = self.opened.model(input_ids=padded_ids(self.opened, rows), use_cache=False).logits
        return logits
