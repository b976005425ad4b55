"""Whether a scorer puts the better of two items above the one that is worse: the share of right pairs by what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

from scipy.stats import binomtest
from typing_extensions import TypedDict

from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.files import checked, read_json_lines
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.corpora.rows import distinct_ids
from dialeval_plugin.reports.tables import Table, TableColumn, TableRow, named_column
from dialeval_plugin.statistics.estimates import interval_text
from dialeval_plugin.statistics.means import mean_interval
from reproduction.intervals import percentile_bootstrap

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
    """Two items of a level, of which anybody would put the first above the second."""

    id: str
    """Label of a common context or dialogue: pairs of one id go wrong together."""
    kind: str
    """Defect of the second one."""
    better: Item
    worse: Item


class OrderedPair(NamedTuple):
    """Scores of a pair."""

    id: str
    kind: str
    is_right: bool
    """Whether the better item has the better score; not where the scores are equal, but for rounding, or one is missing."""


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


def pairs_of(sets: Iterable[ContrastSet]) -> list[ContrastPair]:
    """Return the fitting response of each set with each of its worse ones, in the order of the sets and of their kinds."""
    return [
        ContrastPair(
            item.id,
            kind,
            Example.from_texts(item.context, item.fitting, id=f"{item.id}/fitting"),
            Example.from_texts(item.context, response, id=f"{item.id}/{kind}"),
        )
        for item in sets
        for kind, response in item.worse.items()
    ]


def order_pairs(scorer: Scorer, pairs: Iterable[ContrastPair]) -> list[OrderedPair]:
    """Score both items of each pair, which are of the scorer's level, and return the pairs in their order."""
    pairs = list(pairs)
    values = scorer.score([item for pair in pairs for item in (pair.better, pair.worse)]).values
    return ordered_by(pairs, values[::2], values[1::2], is_lower_better=scorer.orientation == "lower")


def ordered_by(
    pairs: Sequence[ContrastPair],
    better: Sequence[float | None],
    worse: Sequence[float | None],
    *,
    is_lower_better: bool = False,
) -> list[OrderedPair]:
    """Return the pairs in their order by the scores of both items of each."""
    sign = -1 if is_lower_better else 1
    return [
        OrderedPair(pair.id, pair.kind, one is not None and other is not None and _is_above(sign * one, sign * other))
        for pair, one, other in zip(pairs, better, worse, strict=True)
    ]


class Share(NamedTuple):
    """The share of right pairs with its 95 % interval, None without one; the other fields as those of an `Estimate`."""

    value: float
    ci_low: float | None
    ci_high: float | None
    n_right: int
    n_total: int
    n_clusters: int
    is_rough: bool = False

    @property
    def n_scored(self) -> int:
        """All pairs: one without a score is a wrong one."""
        return self.n_total


def shares_of_right_pairs(pairs: Sequence[OrderedPair]) -> dict[str, Share]:
    """Return the share of each kind, and of all as `OVERALL`.

    The interval is Wilson's where no two pairs have one id; else it resamples ids.
    """
    kinds = dict.fromkeys(pair.kind for pair in pairs)
    return {**{kind: _share([pair for pair in pairs if pair.kind == kind]) for kind in kinds}, OVERALL: _share(pairs)}


def contrast_table(ordered: Mapping[str, Sequence[OrderedPair]]) -> Table:
    """Return `shares_of_right_pairs` with a row a kind and a column a scorer, each of which ordered the same pairs."""
    shares = {scorer: shares_of_right_pairs(pairs) for scorer, pairs in ordered.items()}
    kinds = next(iter(shares.values()))
    rows: list[TableRow] = [
        {
            "kind": kind,
            "pairs": kinds[kind].n_total,
            **{f"{scorer} {name}": value for scorer, of in shares.items() for name, value in of[kind]._asdict().items()},
        }
        for kind in kinds
    ]
    columns = [named_column("kind", title="worse by", is_number=False), named_column("pairs", 0)]
    return Table(rows, [*columns, *(TableColumn(scorer, partial(_cell, scorer)) for scorer in shares)])


def _share(pairs: Sequence[OrderedPair]) -> Share:
    ids = [pair.id for pair in pairs]
    n_right = sum(pair.is_right for pair in pairs)
    if len(set(ids)) == len(ids):
        low, high = binomtest(n_right, len(pairs)).proportion_ci(0.95, method="wilson")
        return Share(n_right / len(pairs), float(low), float(high), n_right, len(pairs), len(pairs))
    found = mean_interval([float(pair.is_right) for pair in pairs], clusters=ids, bootstrap=percentile_bootstrap())
    return Share(n_right / len(pairs), found.ci_low, found.ci_high, n_right, len(pairs), found.n_clusters, found.is_rough)


def _is_above(one: float, other: float) -> bool:
    return one > other and not math.isclose(one, other, rel_tol=_ROUNDING)


def _cell(scorer: str, row: TableRow) -> str:
    if f"{scorer} value" not in row:
        return ""
    value, low, high = (cast("float | None", row[f"{scorer} {name}"]) for name in ("value", "ci_low", "ci_high"))
    return interval_text(value, low, high, is_rough=bool(row[f"{scorer} is_rough"]))
