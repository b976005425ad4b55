"""SLIDE's scores from distance, probability and an LLM's score (Zhao et al. 2024, equations 7-9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.options import check_choice
from dialeval_plugin.core.scores import Row, Unscored

Reading: TypeAlias = Literal["first_match", "llm_first", "agree"]

POSITIVE_FROM = 0.5
"""Both papers call a response positive from this score on, although Score_SLM lies in [0, 2]."""


@dataclass(frozen=True, slots=True)
class DistanceRange:
    """d_min and d_max of equation 7: the extremes over the training pairs, stored with the model."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InputError(
                f"DistanceRange: d_min is {self.low} and d_max is {self.high}, so that no distance can be normalised. "
                "Calibrate on responses of both kinds."
            )

    def normalise(self, distance: float, *, clip: bool = False) -> float:
        """Return s_d = (d - d_min) / (d_max - d_min); outside [0, 1] for a distance beyond the range unless `clip`."""
        share = (distance - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, share)) if clip else share


def slm_score(normalised_distance: float, probability: float) -> float:
    """Return Score_SLM = 1 - s_d + s_p (equation 8): 0 is worst, 2 is best; the paper calls it probabilistic."""
    return 1 - normalised_distance + probability


def _first_match(slm: float, llm: float) -> float:
    if slm >= POSITIVE_FROM:
        return slm
    return llm if llm < POSITIVE_FROM else (slm + llm) / 2


def _llm_first(slm: float, llm: float) -> float:
    if llm < POSITIVE_FROM:
        return llm
    return slm if slm >= POSITIVE_FROM else (slm + llm) / 2


def _agree(slm: float, llm: float) -> float:
    if (slm >= POSITIVE_FROM) == (llm >= POSITIVE_FROM):
        return slm if slm >= POSITIVE_FROM else llm
    return (slm + llm) / 2


_READINGS = {"first_match": _first_match, "llm_first": _llm_first, "agree": _agree}


def fuse(slm: float, llm: float, *, reading: Reading = "first_match", slm_scale: float = 1.0) -> float:
    """Return SLIDE's final score (equation 9) of Score_SLM in [0, 2], which `slm_scale` multiplies, and Score_LLM in [0, 1].

    The first two cases of the equation overlap where the small model says good and the large one says bad. `first_match`
    takes them from top to bottom, `llm_first` the other way round, `agree` averages the conflict as it does the opposite
    one.

    Example:
        >>> fuse(1.4, 0.2), fuse(1.4, 0.2, reading="llm_first"), round(fuse(0.3, 0.9), 3)
        (1.4, 0.2, 0.6)
    """
    check_choice("fuse", "reading", reading, _READINGS)
    return _READINGS[reading](slm * slm_scale, llm)


def fuse_rows(small: Row, llm: float | Unscored, *, reading: Reading = "first_match", slm_scale: float = 1.0) -> Row:
    """Return the small model's columns with `llm` and `slide`; where one of both models has no score, the reason."""
    if isinstance(small, Unscored):
        return small
    if isinstance(llm, Unscored):
        return llm
    return {**small, "llm": llm, "slide": fuse(cast("float", small["slm"]), llm, reading=reading, slm_scale=slm_scale)}
