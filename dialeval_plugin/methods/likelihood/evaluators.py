"""What every likelihood evaluator gives for a dialogue, whatever model stands behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.models.causal import Span

from .aggregation import FloatArray

Alignment: TypeAlias = Literal["correct", "published"]


class TurnProbabilities(NamedTuple):
    """Natural logs of the probabilities of a turn's tokens and of the likeliest ones in their places, both of shape (tokens,).

    `is_cut` says whether a part of the turn's context did not fit into the window.
    """

    log_probabilities: FloatArray
    log_maxima: FloatArray
    is_cut: bool


Judged: TypeAlias = list[TurnProbabilities] | Unscored


class Evaluator(Protocol):
    """Gives the turns of dialogues probabilities."""

    @property
    def max_tokens(self) -> int:
        """Longest sequence that is read at once."""
        ...

    def judge(self, dialogues: Sequence[Sequence[str]], *, last_only: bool) -> list[Judged]:
        """Judge all turns but the first of each dialogue, or the last one only; of two turns at least, none blank."""
        ...


def by_dialogue(
    n_dialogues: int, refused: dict[int, Unscored], found: Sequence[tuple[Span, FloatArray, FloatArray]]
) -> list[Judged]:
    """Sort spans with their answers back into dialogues, turns in order."""
    turns: list[list[tuple[int, TurnProbabilities]]] = [[] for _ in range(n_dialogues)]
    for span, logs, maxima in found:
        turns[span.dialogue].append((span.turn, TurnProbabilities(logs, maxima, span.is_cut)))
    return [
        refused[number] if number in refused else [answer for _, answer in sorted(answers, key=lambda pair: pair[0])]
        for number, answers in enumerate(turns)
    ]
