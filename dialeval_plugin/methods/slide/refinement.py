"""DRE's scores from the small model's score and a large model's two answers (Zhao et al. 2025, equations 25 and 26)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dialeval_plugin.core.options import wrong_value
from dialeval_plugin.core.signature import Value

Bounds: TypeAlias = tuple[float, float]

LLM_SCALE: Bounds = (0.0, 5.0)
"""Scale of the large model's score in both prompts."""


def coefficient(slm: float, influence: float) -> float:
    """Return c = s_c * s_Inf (equation 25), where s_c = 1 - s_d + s_p is Score_SLM."""
    return slm * influence


@dataclass(frozen=True, slots=True)
class Refinement:
    """How the small model's score refines the large one's.

    Equation 26 multiplies Score_LLM by s_c. The sentence above it and the caption of Table 4 multiply by c, without which the
    influence degree would be asked for and never used; that is the default.

    Example:
        >>> Refinement().interior(1.5, llm=4.0, influence=0.5)
        {'dre': 3.0, 'in_dre': 4.0, 'coefficient': 0.75}
        >>> Refinement(clamp=(0, 5)).plain(1.5, llm=4.0)
        {'ex_dre': 5, 'non_dre': 4.0}
    """

    eq26: bool = False
    """Multiply by s_c, as equation 26 is printed."""
    clamp: Bounds | None = None
    """Lowest and highest final score. None leaves a product as it is: it reaches 10, and cutting ties the top."""

    def interior(self, slm: float, *, llm: float, influence: float) -> dict[str, float]:
        """Return c and the scores of the variants that ask the interior prompt; Score_LLM in [0, 5], s_Inf in [0, 1]."""
        c = coefficient(slm, influence)
        return {"dre": self._bounded((slm if self.eq26 else c) * llm), "in_dre": llm, "coefficient": c}

    def plain(self, slm: float | None, *, llm: float) -> dict[str, float]:
        """Return the scores of the variants that ask the plain prompt; without a Score_SLM only the one that needs none."""
        if slm is None:
            return {"non_dre": llm}
        # The plain prompt asks for no influence degree, so c has no second factor.
        return {"ex_dre": self._bounded(slm * llm), "non_dre": llm}

    def signature_fields(self) -> dict[str, Value]:
        """The options that differ from their defaults."""
        return {"eq26": self.eq26 or None, "clamp": "{:g}-{:g}".format(*self.clamp) if self.clamp else None}

    def _bounded(self, score: float) -> float:
        return score if self.clamp is None else min(self.clamp[1], max(self.clamp[0], score))


def read_clamp(clamp: object) -> Bounds | None:
    """The option `clamp` as bounds: true is the large model's scale, false or None no bounds."""
    if clamp is None or isinstance(clamp, bool):
        return LLM_SCALE if clamp else None
    if isinstance(clamp, Sequence) and len(clamp) == 2:
        low, high = clamp
        if all(type(end) in (int, float) and math.isfinite(end) for end in clamp) and low < high:
            return (float(low), float(high))
    raise wrong_value("dre", "clamp", clamp, "true (0 to 5), false, or the lowest and the highest score")
