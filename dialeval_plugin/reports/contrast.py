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


def shares_of_right_pairs(pairs: Sequence[ContrastPair]) -> dict[str, Share]:
    """Return the share of each kind, and of all as `OVERALL`.

    A kind has a pair a context, so its interval is Wilson's; that of all resamples contexts, whose pairs go wrong together.
    """
    found = {}
    for kind in dict.fromkeys(pair.kind for pair in pairs):
        of = [pair.is_right for pair in pairs if pair.kind == kind]
        low, high = binomtest(sum(of), len(of)).proportion_ci(0.95, method="wilson")
        found[kind] = Share(sum(of) / len(of), float(low), float(high), sum(of), len(of), len(of))
    right = [float(pair.is_right) for pair in pairs]
    all_ = mean_interval(right, clusters=[pair.id for pair in pairs])
    n_right = sum(pair.is_right for pair in pairs)
    found[OVERALL] = Share(n_right / len(pairs), all_.ci_low, all_.ci_high, n_right, len(pairs), all_.n_clusters, all_.is_rough)
    return found


def contrast_table(pairs: Sequence[ContrastPair]) -> Table:
    """Return `shares_of_right_pairs` as a table."""
    rows: list[TableRow] = [{"kind": kind, **share._asdict()} for kind, share in shares_of_right_pairs(pairs).items()]
    columns = [
        named_column("kind", title="worse response", is_number=False),
        named_column("n_right", 0, title="right"),
        named_column("n_total", 0, title="of"),
        TableColumn("share", _share),
    ]
    return Table(rows, columns)


def _is_above(one: float, other: float) -> bool:
    return one > other and not math.isclose(one, other, rel_tol=_ROUNDING)


def _share(row: TableRow) -> str:
    value, low, high = (cast("float | None", row[name]) for name in ("value", "ci_low", "ci_high"))
    return interval_text(value, low, high, is_rough=bool(row["is_rough"]))
