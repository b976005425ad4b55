"""The rows on which an evaluator and people are furthest apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats

from dialeval_plugin.labels.table import Scale

from .evaluated import Evaluated

MOST_DISAGREEMENTS = 20


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One row: what the evaluator and people said of it.

    Attributes:
        distance: from 0 to 1: between the shares of rows that the evaluator and people put below it; where the evaluator
            answers with labels, the share of people who said otherwise, or how far their mean lies from its label.
        score: a number or a label, as the evaluator gave it.
        labels: how many people gave each number or label.
        context: what was said before; empty, as `response` is, where the texts are not known.
    """

    id: str
    distance: float
    score: str
    labels: tuple[tuple[str, int], ...]
    context: str = ""
    response: str = ""

    @property
    def said(self) -> str:
        """What people said, as "3, 4 (twice)"."""
        return ", ".join(name if n == 1 else f"{name} ({'twice' if n == 2 else f'{n} times'})" for name, n in self.labels)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object."""
        return asdict(self) | {"labels": dict(self.labels)}


def disagreements(of: Evaluated, most: int = MOST_DISAGREEMENTS) -> tuple[Disagreement, ...]:
    """Return the rows that an evaluator and people see most differently, the strongest disagreement first."""
    scale, texts, n = of.judged.scale, of.labels.texts, len(of.used)
    if not n:
        return ()
    if scale is None:
        distances = np.abs(stats.rankdata(of.scores) - stats.rankdata(of.ratings)) / n
    elif scale.kind == "nominal":
        own = of.labels.labels[of.used]
        distances = ((own != of.scores[:, None]) & ~np.isnan(own)).sum(axis=1) / (~np.isnan(own)).sum(axis=1)
    else:
        spread = max(1, len(scale.categories) - 1) if scale.categories else float(np.ptp(of.ratings)) or 1.0
        distances = np.abs(of.scores - of.ratings) / spread
    # The first of the rows that are equally far apart, so that the same data gives the same list.
    chosen = of.used[np.argsort(-distances, kind="stable")[:most]]
    found = dict(zip(of.used.tolist(), distances.tolist(), strict=True))
    shown = []
    for row in chosen.tolist():
        given = sorted(Counter(of.labels.labels[row][~np.isnan(of.labels.labels[row])].tolist()).items())
        labels = tuple((_said(value, of.labels.scale), count) for value, count in given)
        context, response = texts[row] if texts is not None else ("", "")
        score = _said(float(of.judged.scores[row]), scale)
        shown.append(Disagreement(of.labels.ids[row], found[row], score, labels, context, response))
    return tuple(one for one in shown if one.distance > 0)


def _said(value: float, scale: Scale | None) -> str:
    return scale.categories[int(value)] if scale is not None and scale.categories else f"{value:.6g}"
