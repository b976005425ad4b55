"""Reports of `dialeval bias`, which a passport takes for the evaluator that has their signature."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked, read_json
from dialeval_plugin.statistics.bootstrap import Estimate


class BiasEffect(TypedDict):
    """What one change does to the scores, as a share of their standard deviation between answers."""

    test: str
    change: str
    shift: Estimate


class BiasFile(TypedDict):
    """What a passport reads of a report."""

    signature: str
    effects: list[BiasEffect]


def read_bias(paths: Sequence[str | Path], signatures: Sequence[str | None]) -> dict[str, list[BiasEffect]]:
    """Return the effects by signature; InputError: a report is malformed, or of none of the evaluators."""
    found: dict[str, list[BiasEffect]] = {}
    for path in map(Path, paths):
        advice = "Give what `dialeval bias --output FILE.json` wrote."
        report = checked(read_json(path), BiasFile, str(path), advice=advice)
        if report["signature"] not in signatures:
            raise InputError(
                f"{path}: is of {report['signature']}, which none of the results is of. Run `dialeval bias` with the scorer "
                "and the options that gave the results."
            )
        found.setdefault(report["signature"], []).extend(report["effects"])
    return found
