"""Several dialogues as one tensor of utterances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .vocabulary import PAD

EncodedDialogue: TypeAlias = Sequence[Sequence[int]]
"""The utterances of a dialogue, oldest first, each the numbers of its words and END; two utterances at least."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Dialogues, their utterances one under the other.

    Every utterance but a dialogue's first is a response, and the one before it ends its context. Places are rows of `tokens`.

    Attributes:
        tokens: numbers of words, (utterances, longest), PAD behind END.
        lengths: tokens of each utterance, (utterances,); on the processor, where packing wants it.
        contexts: for each response the place of the utterance before it, (responses,).
        responses: its own place, (responses,).
        n_responses: of each dialogue.
    """

    tokens: Tensor
    lengths: Tensor
    contexts: Tensor
    responses: Tensor
    n_responses: tuple[int, ...]

    @property
    def n_utterances(self) -> tuple[int, ...]:
        """Utterances of each dialogue."""
        return tuple(number + 1 for number in self.n_responses)

    @property
    def owners(self) -> Tensor:
        """For each response the number of its dialogue, (responses,)."""
        return torch.repeat_interleave(torch.tensor(self.n_responses))

    def to(self, device: torch.device) -> Batch:
        """The same with the tokens on `device`."""
        return replace(self, tokens=self.tokens.to(device))


def make_batch(dialogues: Sequence[EncodedDialogue]) -> Batch:
    """Put dialogues together."""
    utterances = [torch.tensor(utterance) for dialogue in dialogues for utterance in dialogue]
    is_first = torch.tensor([place == 0 for dialogue in dialogues for place in range(len(dialogue))])
    responses = torch.nonzero(~is_first).flatten()
    return Batch(
        tokens=pad_sequence(utterances, batch_first=True, padding_value=float(PAD)),
        lengths=torch.tensor([len(utterance) for utterance in utterances]),
        contexts=responses - 1,
        responses=responses,
        n_responses=tuple(len(dialogue) - 1 for dialogue in dialogues),
    )
