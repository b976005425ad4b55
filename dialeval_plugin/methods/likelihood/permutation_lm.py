"""Permutation language models (XLNet) as evaluators: each token from the tokens before it, seen in both directions.

As in the thesis' code there is one row a token, in which nothing sees the target or what follows it. The tokens before the
target see one another whole, which is why one pass over a dialogue cannot answer for all of its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.models.batching import length_batches, padded
from dialeval_plugin.models.causal import Context, Span, all_passes, log_probabilities, turn_pieces, window
from dialeval_plugin.models.language_models import OpenedModel

from .aggregation import FloatArray
from .evaluators import Judged, by_dialogue

END = "<eod>"
"""XLNet's end of a document, which the thesis puts between context and response."""


class _Row(NamedTuple):
    """One token to predict, the last of `ids`, and where its answer belongs."""

    ids: tuple[int, ...]
    span: int
    place: int


class PermutationEvaluator:
    """Gives each token of a turn its probability, a row a token; the end between turns is read, and not scored.

    The window is by default 1024 tokens, since nothing limits XLNet's relative positions.
    """

    def __init__(self, opened: OpenedModel, context: Context, max_tokens: int | None) -> None:
        self.opened = opened
        self.context = context
        self.max_tokens = window(opened, max_tokens, "dialogue_likelihood")
        end = opened.tokenizer.get_vocab().get(END, opened.tokenizer.sep_token_id)
        if end is None:
            raise ModelLoadError(f"{opened.folder}: the tokenizer has neither {END!r} nor a separator. Choose an XLNet.")
        self._end = int(end)

    def judge(self, dialogues: Sequence[Sequence[str]], *, last_only: bool) -> list[Judged]:
        """See `evaluators.Evaluator`."""
        pieces = turn_pieces(self.opened, dialogues, [self._end], last_only=last_only)
        passes, refused = all_passes(pieces, [], self.max_tokens, context=self.context, last_only=last_only)
        spans = [(one.ids, span) for one in passes for span in one.spans]
        rows = [
            _Row(ids[: target + 1], number, target - span.start)
            for number, (ids, span) in enumerate(spans)
            for target in range(span.start, span.end - 1)
        ]
        answers: list[tuple[Span, FloatArray, FloatArray]] = [
            (span, np.empty(span.end - 1 - span.start), np.empty(span.end - 1 - span.start)) for _, span in spans
        ]
        with torch.inference_mode():
            for places in length_batches([len(row.ids) for row in rows], self.opened.batch_tokens):
                batch = [rows[place] for place in places]
                logits = self.logits([row.ids for row in batch])[:, None]
                logs, maxima = log_probabilities(logits, [row.ids[-1:] for row in batch])
                for row, log, maximum in zip(batch, logs[:, 0], maxima[:, 0], strict=True):
                    answers[row.span][1][row.place] = log
                    answers[row.span][2][row.place] = maximum
        return by_dialogue(len(dialogues), refused, answers)

    def logits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Predict the last token of each row without a look at it; returns shape (rows, vocabulary)."""
        device = self.opened.device
        ids, _ = padded(rows, self.opened.pad, device)
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
