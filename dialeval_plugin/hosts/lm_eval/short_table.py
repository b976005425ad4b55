"""The table that `dialeval lm-eval` ends with: a line a task, where the host prints one a metric and intervals as metrics."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dialeval_plugin.hosts.registration import replaced
from dialeval_plugin.statistics.estimates import number_text

from .tasks.kinds import KINDS, by_plain_names, is_predicted_only

_HEAD = ("task", "statistic", "value", "95 % interval", "scored")


@contextmanager
def short_tables() -> Iterator[None]:
    """Let the host's command print this table of our tasks; of others it prints its own."""
    from lm_eval import utils

    original = utils.make_table

    @functools.wraps(original)
    def make_table(result_dict: Mapping[str, Any], column: str = "results", **options: Any) -> Any:
        return (short_table(result_dict) if column == "results" else None) or original(result_dict, column, **options)

    with replaced(utils, "make_table", make_table):
        yield


def short_table(results: Mapping[str, Any]) -> str | None:
    """Return the main statistic of each task with its interval and how many rows were scored; None where one is not ours."""
    # Of groups the host prints a table of its own below.
    results = by_plain_names(results)
    rows = [_row(task, results) for task in results["results"] if task not in results.get("groups", {})]
    if not rows or None in rows:
        return None
    lines = [_HEAD, *filter(None, rows)]
    # A text in place of a number says why there is none, and takes the room of what follows.
    widths = [max(len(line[place]) for line in lines if len(line) > place + 1) for place in range(len(_HEAD) - 1)]
    return "\n".join(_line(line, widths) for line in lines) + "\n"


def _row(task: str, results: Mapping[str, Any]) -> tuple[str, ...] | None:
    described = (results["configs"].get(task, {}).get("metadata") or {}).get("dialeval")
    if described is None:
        return None
    main = KINDS[described["kind"]].main
    found = {name.partition(",")[0]: value for name, value in results["results"][task].items()}
    value = found.get(main)
    if is_predicted_only(results["configs"][task]):
        return task, main, "not scored: --predict_only keeps the answers alone"
    if not results["n-samples"][task]["effective"]:
        return task, main, "left out: the file is not on this machine"
    if value is None or isinstance(value, str):
        return task, main, value or "undefined"
    if "n_scored" not in found:
        return None
    ends = [found.get(f"{main}{end}") for end in ("_ci_low", "_ci_high")]
    deviation = found.get(f"{main}_deviation")
    interval = f"deviation {number_text(deviation)}" if deviation is not None else ""
    if all(isinstance(end, float) for end in ends):
        interval = " to ".join(number_text(end) for end in ends)
    # Comparisons and dialogues are counted where documents are single responses and turns.
    total = getattr(found["n_scored"], "total", results["n-samples"][task]["effective"])
    return task, main, number_text(value), interval, f"{found['n_scored']:g} of {total}"


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    padded = (
        cell.rjust(width) if place == 2 and len(cells) > 3 else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(cells, [*widths, 0], strict=False))
    )
    return "  ".join(padded).rstrip()
