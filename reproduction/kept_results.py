"""Results that are computed once and kept in a script's work folder: a second call computes only what is missing or changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.core.scorer import Scorer, run, run_id
from dialeval_plugin.core.scores import Scores


def kept_json(path: Path, compute: Callable[[], Any]) -> Any:
    """Return the contents of a file, which is written first where it is not there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, to_json(compute(), indent=1) + "\n")
    return read_json(path)


def kept_scores(scorer: Scorer, items: Sequence[Item], work: Path, name: str) -> Scores:
    """Return the scores of items, of a file in `work/scores` whose name holds what can move them; a killed run goes on."""
    path = work / "scores" / f"{name}.{scorer.name}.{run_id(scorer, items)[:16]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    journal = path.with_suffix(".journal")
    scores = Scores.from_dict(kept_json(path, lambda: run(scorer, items, progress=True, journal=journal).to_dict()))
    journal.unlink(missing_ok=True)
    return scores
