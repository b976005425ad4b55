"""What every likelihood evaluator gives for a dialogue, whatever model stands behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.models.passes import Span

from .aggregation import FloatArray

Alignment: TypeAlias = Literal["correct", "published"]


class TurnProbabilities(NamedTuple):
    """What a model says of one turn."""

    log_probabilities: FloatArray
    """Natural log of the probability of each of its tokens, of shape (tokens,)."""
    log_maxima: FloatArray
    """Natural log of the probability of the likeliest token at each of these places, of shape (tokens,)."""
    is_cut: bool
    """Whether a part of its context did not fit into the window."""


Judged: TypeAlias = list[TurnProbabilities] | Unscored


class Evaluator(Protocol):
    """Gives the turns of dialogues probabilities."""

    @property
    def max_tokens(self) -> int:
        """Longest sequence that is read at once."""
        ...

    def judge(self, dialogues: Sequence[Sequence[str]], *, last_only: bool) -> list[Judged]:
        """Judge all turns but the first of each dialogue, or the last one only.

        Args:
            dialogues: texts of the turns, oldest first, none blank; two at least.
            last_only: judge the last turn only.
        """
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
