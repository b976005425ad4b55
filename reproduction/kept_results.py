"""Results that are computed once and kept in a script's work folder: a second call computes only what is missing or changed."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dialeval_plugin.core.dialogue import Item, Level
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.core.scorer import Scorer, score_key
from dialeval_plugin.core.scores import SCHEMA_VERSION, Reason, Scores, Unscored
from dialeval_plugin.core.signature import Signature
from dialeval_plugin.corpora.scored_input import PlacedItem, Shard, Source
from dialeval_plugin.streams.run import ScoreRun
from dialeval_plugin.version import __version__


def kept_json(path: Path, compute: Callable[[], Any]) -> Any:
    """Return the contents of a file, which is written first where it is not there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, to_json(compute(), indent=1) + "\n")
    return read_json(path)


def kept_scores(scorer: Scorer, items: Sequence[Item], work: Path, name: str) -> Scores:
    """Return the scores of items, of a file in `work/scores` whose name holds what can move them; a killed run goes on."""
    path = work / "scores" / f"{name}.{scorer.name}.{run_id(scorer, items)[:16]}.json"
    scores = scores_of(kept_json(path, lambda: json_of(run(scorer, items, path.with_suffix(".jsonl")))))
    for rows in path.parent.glob(f"{path.stem}.jsonl*"):
        rows.unlink()
    return scores


def run_id(scorer: Scorer, items: Sequence[Item]) -> str:
    """Return a hash of the items and of everything that can move a score of theirs."""
    digest = hashlib.sha256()
    digest.update(repr(sorted(scorer.signature_fields().items(), key=lambda field: field[0])).encode())
    digest.update(f"{__version__} {scorer.window}".encode())
    for item in items:
        digest.update(repr((item.id, score_key(item))).encode())
    return digest.hexdigest()


class _Items(Source):
    """Items that are there already."""

    def items(self, level: Level, shard: Shard | None = None) -> Iterator[PlacedItem]:
        """Yield them."""
        self.n_items = len(self.given)
        return (PlacedItem(place, item) for place, item in enumerate(self.given))


def run(scorer: Scorer, items: Sequence[Item], rows: Path) -> Scores:
    """Score items, with their rows in a file until they are kept, so that a run that was killed goes on."""
    parts: list[Scores] = []
    ScoreRun(scorer, _Items("items", given=items), rows).score(progress=True, collectors=[parts.append])
    if not parts:
        return scorer.score(items)
    starts = itertools.accumulate((len(part) for part in parts), initial=0)
    return replace(
        parts[0],
        columns={name: tuple(value for part in parts for value in part.columns[name]) for name in parts[0].columns},
        ids=tuple(id for part in parts for id in part.ids),
        unscored={
            start + place: why for start, part in zip(starts, parts, strict=False) for place, why in part.unscored.items()
        },
        items=(),
    )


def json_of(scores: Scores) -> dict[str, Any]:
    """Return a JSON-able object that `scores_of` reads back."""
    return {
        "schema_version": SCHEMA_VERSION,
        "main": scores.main,
        "level": scores.level,
        "orientation": scores.orientation,
        "signature": dict(scores.signature.fields),
        "columns": {name: list(values) for name, values in scores.columns.items()},
        "ids": list(scores.ids),
        "unscored": {
            str(index): {"reason": item.reason.value, "detail": item.detail} for index, item in scores.unscored.items()
        },
    }


def scores_of(data: Mapping[str, Any]) -> Scores:
    """Read what `json_of` returned; an InputError where it is of another schema version."""
    if data.get("schema_version") != SCHEMA_VERSION:
        raise InputError(
            f"Scores: schema_version is {data.get('schema_version')!r}, this release reads {SCHEMA_VERSION}. "
            "Update dialeval-plugin or score again."
        )
    return Scores(
        main=data["main"],
        columns={name: tuple(values) for name, values in data["columns"].items()},
        ids=tuple(data["ids"]),
        unscored={int(i): Unscored(Reason(item["reason"]), item["detail"]) for i, item in data["unscored"].items()},
        signature=Signature(data["signature"]),
        level=data["level"],
        orientation=data["orientation"],
    )
