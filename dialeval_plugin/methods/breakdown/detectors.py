"""What every out-of-distribution detector gives for a response, and the reading that all of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import torch

from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.models.batching import length_batches
from dialeval_plugin.models.causal import Context, FloatArray, all_passes, layout_tokens, share_beginnings, turn_pieces
from dialeval_plugin.models.language_models import OpenedModel


class Places(NamedTuple):
    """Where in a sequence the answers about a response stand: the place before a token predicts it."""

    start: int
    end: int

    @property
    def response(self) -> slice:
        """The places that predict the response's tokens and the end of its turn."""
        return slice(self.start, self.end)

    @property
    def all(self) -> slice:
        """Every place from the first of the context to the one behind the end of the turn, which predicts what follows it."""
        return slice(0, self.end + 1)


class Detector(Protocol):
    """Gives every place of a sequence numbers that are the higher, the more the model is at home."""

    aggregations: tuple[str, ...]
    """Names of the ways from places to a score, the default first."""

    @property
    def opened(self) -> OpenedModel:
        """The model whose tokenizer reads texts."""
        ...

    def answers(self, rows: Sequence[Sequence[int]]) -> FloatArray:
        """Return numbers of shape (kinds, rows, places) for rows of token ids; those behind a row's end mean nothing."""
        ...

    def scores(self, answers: FloatArray, places: Places) -> Mapping[str, float]:
        """Return every aggregation from answers of shape (kinds, places)."""
        ...


class Reading(NamedTuple):
    """What a detector says of a response."""

    scores: Mapping[str, float]
    """Aggregation to score, the higher the more the response belongs to the distribution."""
    n_tokens: int
    """Of the response, the end of its turn included."""
    is_cut: bool
    """Whether a part of its context did not fit into the window."""


def read_responses(
    detector: Detector, dialogues: Sequence[Sequence[str]], *, context: Context, max_tokens: int
) -> list[Reading | Unscored]:
    """Let a detector read the last turn of each dialogue after the turns before it, or after the last of them (context "pair").

    Turns are texts, none blank, two at least. Responses of one dialogue are read in one pass where their contexts begin alike.
    What exceeds `max_tokens` is cut at the beginning of the context.
    """
    opened = detector.opened
    prefix, end = layout_tokens(opened, "separated")
    pieces = turn_pieces(opened, dialogues, end, last_only=True)
    passes, refused = all_passes(pieces, prefix, max_tokens, context=context, last_only=True)
    # A text of which the tokenizer leaves nothing has no pass.
    no_token = Unscored(Reason.EMPTY_INPUT, "the tokenizer leaves nothing of the response, or of the turns before it")
    readings: list[Reading | Unscored] = [refused.get(number, no_token) for number in range(len(dialogues))]
    shared = share_beginnings(passes)
    with torch.inference_mode():
        for places in length_batches([len(one.ids) for one in shared], opened.batch_tokens):
            batch = [shared[place] for place in places]
            answers = detector.answers([one.ids for one in batch])
            for row, one in enumerate(batch):
                for span in one.spans:
                    scores = detector.scores(answers[:, row], Places(span.start - 1, span.end - 1))
                    readings[span.dialogue] = Reading(scores, span.end - span.start, span.is_cut)
    return readings
