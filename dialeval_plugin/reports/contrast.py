"""Whether a scorer puts a fitting response above worse ones to the same context: the share of right pairs by what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

from scipy.stats import binomtest
from typing_extensions import TypedDict

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.files import checked, read_json_lines
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.corpora.rows import distinct_ids
from dialeval_plugin.statistics.estimates import interval_text
from dialeval_plugin.statistics.means import mean_interval

from .tables import Table, TableColumn, TableRow, named_column

OVERALL = "all"
"""Name of the row of all kinds together."""
_ROUNDING = 1e-5
"""Relative difference of two scores up to which what else is in a batch may have made it."""


@dataclass(frozen=True, slots=True)
class ContrastSet:
    """A context, oldest turn first, a response that fits it, and by kind others that anybody would put below that one."""

    id: str
    context: tuple[str, ...]
    fitting: str
    worse: Mapping[str, str]


class ContrastPair(NamedTuple):
    """The fitting response of a set against one of the worse."""

    id: str
    kind: str
    is_right: bool
    """Whether the fitting one has the better score; not where the scores are equal, but for rounding, or one is missing."""


class _Row(TypedDict):
    """A line of a file of contrasts; what else stands in it is for people."""

    id: str
    context: list[str]
    fitting: str
    worse: dict[str, str]


def read_contrasts(path: Path) -> list[ContrastSet]:
    """Read JSON lines with `id`, `context` (a list of turns), `fitting` and `worse`, kind to response.

    Raises:
        InputError: a line is of another shape, or an id stands twice.
    """
    lines = read_json_lines(path)
    rows = [checked(line.value, _Row, line.where, advice="Give id, context, fitting and worse.") for line in lines]
    distinct_ids(lines, [row["id"] for row in rows], "Rename one.")
    return [ContrastSet(row["id"], tuple(row["context"]), row["fitting"], row["worse"]) for row in rows]


def order_pairs(scorer: Scorer, sets: Iterable[ContrastSet]) -> list[ContrastPair]:
    """Score every response of the sets and return each pair, sets in their order and kinds in that of each set."""
    sets = list(sets)
    examples = [
        Example.from_texts(item.context, response, id=f"{item.id}/{kind}")
        for item in sets
        for kind, response in {"fitting": item.fitting, **item.worse}.items()
    ]
    values = iter(scorer.score(examples).values)
    sign = -1 if scorer.orientation == "lower" else 1
    pairs: list[ContrastPair] = []
    for item in sets:
        best = next(values)
        for kind in item.worse:
            other = next(values)
            pairs.append(
                ContrastPair(item.id, kind, best is not None and other is not None and _is_above(sign * best, sign * other))
            )
    return pairs


def contrast_table(pairs: Sequence[ContrastPair]) -> Table:
    """Return the share of right pairs of each kind and of all, with 95 % intervals.

    A kind has a pair a context, so its interval is Wilson's; that of all resamples contexts, whose pairs go wrong together.
    """
    rows: list[TableRow] = []
    for kind in dict.fromkeys(pair.kind for pair in pairs):
        found = [pair.is_right for pair in pairs if pair.kind == kind]
        low, high = binomtest(sum(found), len(found)).proportion_ci(0.95, method="wilson")
        rows.append(_row(kind, found, float(low), float(high)))
    everything = [pair.is_right for pair in pairs]
    overall = mean_interval([float(right) for right in everything], clusters=[pair.id for pair in pairs])
    rows.append(_row(OVERALL, everything, overall.ci_low, overall.ci_high))
    columns = [
        TableColumn("worse response", lambda row: str(row["kind"]), is_number=False),
        named_column("n_right", 0, title="right"),
        named_column("n_pairs", 0, title="of"),
        TableColumn("share", _share),
    ]
    return Table(rows, columns)


def _is_above(one: float, other: float) -> bool:
    return one > other and not math.isclose(one, other, rel_tol=_ROUNDING)


def _row(kind: str, found: Sequence[bool], low: float | None, high: float | None) -> TableRow:
    share = sum(found) / len(found)
    return {"kind": kind, "n_right": sum(found), "n_pairs": len(found), "share": share, "ci_low": low, "ci_high": high}


def _share(row: TableRow) -> str:
    value, low, high = (cast("float | None", row[name]) for name in ("share", "ci_low", "ci_high"))
    return interval_text(value, low, high)
