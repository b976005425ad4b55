"""Scores from the numbers of both models: SLIDE's (Zhao et al. 2024, equations 7-9) and DRE's (2025, 25 and 26)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import check_choice, wrong_value
from dialeval_plugin.core.scores import Row, Unscored
from dialeval_plugin.core.signature import SignatureValue

FusionReading: TypeAlias = Literal["first_match", "llm_first", "agree", "mixture"]
Bounds: TypeAlias = tuple[float, float]

POSITIVE_FROM = 0.5
"""Lowest positive score in both papers, although Score_SLM is in [0, 2]."""
SMALL_WEIGHT = 0.2
"""Weight of the small model in a mixture; chosen on sets outside the reported ones, see reproduction/fusion/results.md."""
LLM_SCALE: Bounds = (0.0, 5.0)
"""Scale of the large model's score in both of DRE's prompts."""


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
        """Return s_d = (d - d_min) / (d_max - d_min); without `clip`, distances beyond the range give s_d outside [0, 1]."""
        share = (distance - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, share)) if clip else share


def slm_score(normalised_distance: float, probability: float) -> float:
    """Return Score_SLM = 1 - s_d + s_p (equation 8), from 0 (worst) to 2 (best); the paper calls it probabilistic."""
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


@dataclass(frozen=True, slots=True)
class Fusion:
    """Fusion of a small and a large model's scores: a reading of SLIDE's equation 9, or a weighted mean.

    The first two cases of the equation overlap if the small model says good and the large one says bad. `first_match` applies
    the cases from top to bottom, `llm_first` from bottom to top, and `agree` averages this conflict like the opposite one.
    `mixture` is not from the paper: the large model's score times 1 - `small_weight`, plus the small one's times that weight.

    Example:
        >>> Fusion()(1.4, 0.2), Fusion("llm_first")(1.4, 0.2), round(Fusion()(0.3, 0.9), 3)
        (1.4, 0.2, 0.6)
        >>> round(Fusion("mixture", small_weight=0.2)(0.5, 1.0), 3)
        0.9
    """

    reading: FusionReading = "first_match"
    slm_scale: float = 1.0
    """Factor of Score_SLM, which is in [0, 2], before fusion."""
    small_weight: float = SMALL_WEIGHT

    def __post_init__(self) -> None:
        check_choice("slide", "fusion", self.reading, get_args(FusionReading))

    def __call__(self, small: float, llm: float) -> float:
        """Fuse the small model's score with the large one's in [0, 1]."""
        small = self.alone(small)
        if self.reading == "mixture":
            return (1 - self.small_weight) * llm + self.small_weight * small
        return _READINGS[self.reading](small, llm)

    def alone(self, small: float) -> float:
        """Return the score of a response that the large model does not score."""
        return small * self.slm_scale

    def rows(self, small: Row, llm: float | Unscored | None, column: str = "slm") -> Row:
        """Return the small model's columns with `llm` and `slide`; if one of the models has no score, the reason.

        `llm` is None if the large model was not used; `column` holds the small model's score.
        """
        if isinstance(small, Unscored):
            return small
        if isinstance(llm, Unscored):
            return llm
        own = cast("float", small[column])
        return {**small, "llm": llm, "slide": self.alone(own) if llm is None else self(own, llm)}

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return the reading and its options."""
        weight = self.small_weight if self.reading == "mixture" else None
        return {"fusion": self.reading, "slm_scale": self.slm_scale, "small_weight": weight}


@dataclass(frozen=True, slots=True)
class Refinement:
    """Refinement of the large model's score by the small model's.

    Equation 26 multiplies Score_LLM by s_c. The sentence above it and the caption of Table 4 multiply by c; this is the
    default, since otherwise the influence degree would never be used.

    Example:
        >>> Refinement().interior(1.5, llm=4.0, influence=0.5)
        {'dre': 3.0, 'in_dre': 4.0, 'coefficient': 0.75}
        >>> Refinement(clamp=(0, 5)).plain(1.5, llm=4.0)
        {'ex_dre': 5, 'non_dre': 4.0}
    """

    eq26: bool = False
    """Multiply by s_c alone, as equation 26 is printed."""
    clamp: Bounds | None = None
    """Lowest and highest final score. None keeps products, which reach 10; clamping ties the highest scores."""

    def interior(self, slm: float, *, llm: float, influence: float) -> dict[str, float]:
        """Return c = s_c * s_Inf, where s_c is Score_SLM, and the scores of the variants with the interior prompt.

        Score_LLM is in [0, 5], s_Inf in [0, 1].
        """
        c = slm * influence
        return {"dre": self._bounded((slm if self.eq26 else c) * llm), "in_dre": llm, "coefficient": c}

    def plain(self, slm: float | None, *, llm: float) -> dict[str, float]:
        """Return the scores of the variants with the plain prompt; without a Score_SLM, only the one that does not need it."""
        if slm is None:
            return {"non_dre": llm}
        # The plain prompt has no influence degree, so c has no second factor.
        return {"ex_dre": self._bounded(slm * llm), "non_dre": llm}

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return the options that differ from their defaults."""
        return {"eq26": self.eq26 or None, "clamp": "{:g}-{:g}".format(*self.clamp) if self.clamp else None}

    def _bounded(self, score: float) -> float:
        return score if self.clamp is None else min(self.clamp[1], max(self.clamp[0], score))


def read_clamp(clamp: object) -> Bounds | None:
    """Return bounds from the option `clamp`: true is the large model's scale, false or None is no bounds."""
    if clamp is None or isinstance(clamp, bool):
        return LLM_SCALE if clamp else None
    if isinstance(clamp, Sequence) and len(clamp) == 2:
        low, high = clamp
        if all(type(end) in (int, float) and math.isfinite(end) for end in clamp) and low < high:
            return (float(low), float(high))
    raise wrong_value("dre", "clamp", clamp, "true (0 to 5), false, or the lowest and the highest score")
