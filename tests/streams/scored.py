"""A run that is scored into a file, and one that is killed on its way."""

from __future__ import annotations

import sys
from pathlib import Path

from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.corpora.scored_input import Shard, Source
from dialeval_plugin.reports.printed_scores import RunningSummary
from dialeval_plugin.streams.run import ScoreRun
from tests import forked
from tests.cli.running import environment


def score_file(
    scorer: Scorer, source: Source, output: Path, *, shard: Shard | None = None, overwrite: bool = False, n_worst: int = 0
) -> RunningSummary:
    """Score a source, or a shard of it."""
    return ScoreRun(scorer, source, output, shard, overwrite=overwrite).score(n_worst)


_KILLER = """
import os, shutil, signal, sys
from pathlib import Path
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.corpora.scored_input import Shard, Source
from dialeval_plugin.streams import run
from dialeval_plugin.streams.output import merge

block, what, function, number, moment, *words = sys.argv[1:]
run.BLOCK, calls = int(block), 0
owner = os if function == "replace" else shutil
original = getattr(owner, function)

def counted(*arguments, **options):
    global calls
    calls += 1
    if calls == int(number) and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    original(*arguments, **options)
    if calls == int(number) and moment == "after":
        os.kill(os.getpid(), signal.SIGKILL)

setattr(owner, function, counted)
if what == "merge":
    output, *parts = map(Path, words)
    merge(parts, output)
else:
    source, output, *shard = words
    part = Shard.parse(*shard) if shard else None
    run.ScoreRun(load_scorer("response_length"), Source(source), Path(output), shard=part).score()
"""


def killed(what: str, function: str, number: int, moment: str, *words: object, block: int = 20) -> int:
    """Score SOURCE OUTPUT [SHARD], or merge OUTPUT PARTS, killed before or after a call of `function`; return how it ended."""
    command = [sys.executable, "-c", _KILLER, block, what, function, number, moment, *words]
    return forked.run(command, cwd=Path.cwd(), env=environment(Path.home())).returncode
