"""Results that are computed once and kept in a script's work folder: a second call computes only what is missing or changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.core.scorer import Scorer, run, run_id
from dialeval_plugin.core.scores import SCHEMA_VERSION, Reason, Scores, Unscored
from dialeval_plugin.core.signature import Signature


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
    scores = scores_of(kept_json(path, lambda: json_of(run(scorer, items, progress=True, journal=journal))))
    journal.unlink(missing_ok=True)
    return scores


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
