"""Reads how people rated responses or dialogues, whoever published it: what scores are set beside.

A file of ours has one JSON object or CSV row a response: `id`, and its rating. In JSON that is `rating` or `ratings`: a number,
the list of the raters' numbers, or an object of either by quality. In CSV every column of numbers is a quality. Labels that may
be there too: `cluster` (or `dialogue`), `item` (the context that several systems answered), `system`, `level`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dialeval_plugin.core.dialogue import Dialogue, Item, Level, Ratings, context_turns
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, read_json_lines
from dialeval_plugin.core.signature import text_hash

from .corpus import Beginning
from .items import context_key, text_key
from .registry import CORPORA, identify, read_items, read_set
from .rows import finite_numbers, label_field, number_or_none, read_csv

logger = logging.getLogger(__name__)


LABELS = ("id", "cluster", "dialogue", "item", "system", "level")
"""Names that are no quality."""

_LEVELS: tuple[Level, ...] = ("turn", "dialogue")


@dataclass(frozen=True, slots=True)
class RatedItem:
    """What people said of one response or dialogue, and what is resampled or averaged with it.

    `cluster` is a label of its dialogue, `item` one of its context, the same for all systems' responses to it, `words` the
    length of the response, or of the whole dialogue, and `text` a hash of what the raters read, white space aside; None where
    the file does not say.
    """

    id: str
    ratings: Ratings
    level: Level = "turn"
    cluster: str | None = None
    item: str | None = None
    system: str | None = None
    words: int | None = None
    text: str | None = None

    @classmethod
    def of(cls, item: Item) -> RatedItem:
        """Make it of an `Example` or a `Dialogue`."""
        if isinstance(item, Dialogue):
            words = sum(len(turn.text.split()) for turn in item.turns)
            level: Level = "dialogue"
            context = item.id
        else:
            words, level = len(item.response.text.split()), "turn"
            context = text_hash(*(turn.text for turn in item.context))
        return cls(item.id, item.ratings, level, context_key(item), context, item.system, words, text_key(item))


def read_rated_items(source: str) -> list[RatedItem]:
    """Read the ratings of a file in any layout that this package reads, or of a set by its name, see `read_set`.

    A text that was rated again under another id counts again, as its raters were others; how many there are is logged.
    """
    path = Path(source)
    if not path.exists():
        ((name, items),) = read_set(source).items()
        rated = _rated(items, source, is_chat=any(name in corpus.sets for corpus in CORPORA.values() if corpus.is_chat))
    elif path.suffix == ".csv":
        rated = [_bare(row, _numbers(row)) for row in read_csv(path)]
    elif (corpus := identify(path)) is not None:
        rated = _rated(read_items(path), source, is_chat=corpus.is_chat)
    elif (beginning := Beginning.of(path)).is_array or beginning.has("response"):
        rated = _rated(read_items(path), source)
    else:
        rated = [_bare(row, _ratings(row)) for row in read_json_lines(path)]
    seen: set[str] = set()
    for item in rated:
        if item.id in seen:
            raise InputError(f"{source}: the id {item.id!r} occurs twice. Give every response its own.")
        seen.add(item.id)
    return rated


def qualities(items: Sequence[RatedItem]) -> list[str]:
    """Names of the qualities that some item has, in the order in which they appear."""
    return list(dict.fromkeys(quality for item in items for quality in item.ratings))


def _rated(items: Sequence[Item], source: str, *, is_chat: bool = False) -> list[RatedItem]:
    distinct = {(item.system, context_turns(item), getattr(item, "response", None)) for item in items}
    if repeated := len(items) - len(distinct):
        logger.warning(
            "%s: %d of %d items have the text and the system of an earlier one; each counts", source, repeated, len(items)
        )
    rated = [RatedItem.of(item) for item in items]
    return [replace(item, cluster=item.id) for item in rated] if is_chat else rated


def _bare(row: Line, ratings: Ratings) -> RatedItem:
    id = label_field(row, "id")
    if not id:
        raise InputError(f"{row.where}: has no 'id'. Name the response that is rated, as its scores do.")
    level = row.value.get("level") or "turn"
    if level not in _LEVELS:
        raise InputError(f"{row.where}: level is {level!r}. Give turn or dialogue.")
    return RatedItem(id, ratings, level, *labels_of(row))


def labels_of(row: Line) -> tuple[str | None, str | None, str | None]:
    """Cluster, item and system of a row of ours; None where the row does not say."""
    return label_field(row, "cluster") or label_field(row, "dialogue"), label_field(row, "item"), label_field(row, "system")


def _ratings(row: Line) -> dict[str, tuple[float, ...]]:
    """Ratings in JSON: a number, a list of the raters' numbers, or an object of either by quality."""
    name = next((name for name in ("ratings", "rating") if name in row.value), None)
    if name is None:
        raise InputError(f"{row.where}: has neither 'rating' nor 'ratings', only {', '.join(row.value)}. Give one of them.")
    value = row.value[name]
    ratings = {}
    for quality, given in (value if isinstance(value, dict) else {"rating": value}).items():
        raters = given if isinstance(given, list) else [] if given is None else [given]
        ratings[quality] = finite_numbers(raters, f"{row.where}: {name}[{quality!r}]")
    return ratings


def _numbers(row: Line) -> dict[str, tuple[float, ...]]:
    """Ratings in CSV: every column that is no label and has a number."""
    found: dict[str, tuple[float, ...]] = {}
    for name, text in row.value.items():
        if name not in LABELS:
            number = number_or_none(text, f"{row.where}: {name}")
            found[name] = () if number is None else (number,)
    return found
