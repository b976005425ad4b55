"""One call for a run that is scored into a file."""

from __future__ import annotations

from pathlib import Path

from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.corpora.scored_input import Shard, Source
from dialeval_plugin.streams.run import ScoreRun
from dialeval_plugin.streams.summary import RunningSummary


def score_file(
    scorer: Scorer, source: Source, output: Path, *, shard: Shard | None = None, overwrite: bool = False, n_worst: int = 0
) -> RunningSummary:
    """Score a source, or a shard of it."""
    return ScoreRun(scorer, source, output, shard, overwrite=overwrite).score(n_worst)
