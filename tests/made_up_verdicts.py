"""A judge's made-up verdicts about a set."""

from __future__ import annotations

import numpy as np

from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.corpora.verdicts import StoredColumn
from reproduction.fusion.judged import Judged

N = 200


def made_up_verdicts(judge: str, set: str, level: Level = "turn", quality: str = "overall") -> Judged:
    """Verdicts in ten steps that follow people's ratings, a `general` that follows them closer, and an SLM that does not."""
    generator = np.random.default_rng(len(judge) + len(set))
    ratings = generator.random(N)
    llm = np.round((ratings + generator.random(N)) / 2, 1)
    column = StoredColumn(judge, quality, set, level, (0.0, 1.0), tuple(llm.tolist()), "here")
    general = (4 * ratings + generator.random(N)) / 5
    slm = 2 * generator.random(N) if level == "turn" else None
    return Judged(column, [str(row // 2) for row in range(N)], ratings, llm, general, slm)
