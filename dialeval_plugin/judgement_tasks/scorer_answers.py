"""What the model `dialogue-metric` answers: what the host asks for, with the scorer's own score beside it.

The host asks for probabilities and words, so a score whose range has no end would reach a task squeezed, and every coefficient
but those of ranks would be another. The answers here are the host's own kinds of answer and carry the score as an attribute;
they come out of the host's filters as they went in, and our tasks take the score from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Verdict(NamedTuple):
    """What a scorer says of one document."""

    score: float | None
    """The main score, with its sign turned where lower is better; None where the document is unscored."""
    share: float | None = None
    """The same as a share of the scorer's range; None also where the range has no two ends."""
    unscored: str | None = None
    """Why there is no score: a value of `scores.Reason`."""


class Choice(tuple[float, bool]):
    """A log probability, and whether the answer is the likeliest: what the host takes for one continuation."""

    verdict: Verdict

    def __new__(cls, log_probability: float, is_likeliest: bool, verdict: Verdict) -> Choice:
        """Make the pair."""
        self = super().__new__(cls, (log_probability, is_likeliest))
        self.verdict = verdict
        return self

    def __getnewargs__(self) -> tuple[float, bool, Verdict]:
        return self[0], self[1], self.verdict


class Words(str):
    """A text."""

    verdict: Verdict

    def __new__(cls, text: str, verdict: Verdict) -> Words:
        """Make the text."""
        self = super().__new__(cls, text)
        self.verdict = verdict
        return self

    def __getnewargs__(self) -> tuple[str, Verdict]:  # type: ignore[override]  # those of str are fewer
        return str(self), self.verdict


def verdict_of(results: Sequence[Any]) -> Verdict | None:
    """What a scorer said, from a document's answers as the host hands them to a task; None where a language model answered."""
    verdict = getattr(results[0], "verdict", None)
    return verdict if isinstance(verdict, Verdict) else None
