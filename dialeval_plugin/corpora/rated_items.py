"""Reader of human ratings of responses or dialogues, from any publisher.

Our own files have one JSON object, or row of a table, per response: `id`, and its rating. In JSON that may be `rating` or
`ratings`: a number, the list of the raters' numbers, or an object of either by quality. Otherwise every column of numbers is a
quality, and columns named after people (`rater1`, `rater2`) are the raters of one. Further optional labels: `cluster` (or
`dialogue`, `dialogue_id`, ...), `item` (the context that several systems answered), `system`, `level`, and `rater`, with which
an id may have one row per person. Files with `context` and `response` can also be scored by `dialeval score`. Exports of
labelling tools: see `exports`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from dialeval_plugin.conversations.files import Rows
from dialeval_plugin.conversations.reading import read_rows
from dialeval_plugin.conversations.record import Reading
from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, Ratings, context_turns
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line
from dialeval_plugin.core.signature import text_hash

from .columns import Columns, check_columns, names_of
from .corpus import FileHead
from .exports import check_layout, check_suffix, export_of, user_rows
from .items import context_key, text_key
from .registry import CORPORA, identify, read_items, read_set
from .rows import finite_numbers, is_table, number_cell

logger = logging.getLogger(__name__)

ALL = "all"
"""Selects every rated quality, in place of a quality's name."""

_FIELDS = ("ratings", "rating")
"""Field names of the ratings in a JSON row."""

_LEVELS: tuple[Level, ...] = ("turn", "dialogue")


@dataclass(frozen=True, slots=True)
class RatedItem:
    """The ratings of one response or dialogue, and the labels for resampling and averaging.

    `cluster` is a label of its dialogue, or the beginning of its id, `chat1` of `chat1:2`; `item` a label of its context, the
    same for all systems' responses to it; `words` the length of the response, or of the whole dialogue; and `text` a hash of
    the rated text, ignoring white space; None if the file does not give them. `people` are the raters of a quality, in the
    order of its ratings; a quality is missing if the file does not name them. `turns` are the rated text, the response at the
    end; empty if the file has no texts.
    """

    id: str
    ratings: Ratings
    level: Level = "turn"
    cluster: str | None = None
    item: str | None = None
    system: str | None = None
    words: int | None = None
    text: str | None = None
    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    turns: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(cls, item: Item) -> RatedItem:
        """Make it from an `Example` or a `Dialogue`."""
        if isinstance(item, Dialogue):
            words = sum(len(turn.text.split()) for turn in item.turns)
            level: Level = "dialogue"
            context, turns = item.id, item.turns
        else:
            words, level = len(item.response.text.split()), "turn"
            context, turns = text_hash(*(turn.text for turn in item.context)), (*item.context, item.response)
        read = tuple(turn.text for turn in turns)
        return cls(item.id, item.ratings, level, context_key(item), context, item.system, words, text_key(item), turns=read)


def read_rated_items(source: str, asked: Sequence[str] = (), raters: Sequence[str] = ()) -> list[RatedItem]:
    """Read the ratings of a file in any layout that this package reads, or of a set by its name, see `read_set`.

    A text that was rated again under another id counts again, as its raters were different; the number of these is logged.
    `asked` and `raters`: see `rated_rows`.
    """
    path = Path(source)
    if not path.exists():
        ((name, items),) = read_set(source).items()
        return _rated(items, source, is_chat=any(name in corpus.sets for corpus in CORPORA.values() if corpus.is_chat))
    check_suffix(path)
    if not is_table(path) and export_of((head := FileHead.of(path)).value) is None:
        check_layout(path, head.value)
        corpus = identify(path)
        if corpus is not None or (head.is_array and not head.has("id")):
            return _rated(read_items(path), source, is_chat=corpus is not None and corpus.is_chat)
    rows = user_rows(path)
    if not {"context", "response"} <= rows[0].value.keys():
        return rated_rows(rows, source, asked, raters)
    if "id" not in rows[0].value:
        rows = [Line(row.where, {"id": str(number), **row.value}) for number, row in enumerate(rows)]
    rated = rated_rows(rows, source, asked, raters)
    # One row per item, if an id has one row per rater.
    examples = read_rows(Rows(iter({str(row.value["id"]): row for row in rows}.values()), is_table=True), Reading())
    texts = (RatedItem.of(cast("Example", example)) for example in examples)
    return [
        replace(item, cluster=item.cluster or text.cluster, item=item.item or text.item, words=text.words, text=text.text)
        for text, item in zip(texts, rated, strict=True)
    ]


def rated_rows(rows: Sequence[Line], source: str, asked: Sequence[str] = (), raters: Sequence[str] = ()) -> list[RatedItem]:
    """Return the ratings in our own rows, one per id, see the module.

    `asked` are the qualities whose columns are read; `ALL`, or names that are not columns, select all. `raters` are columns of
    single raters of one quality, which is called `rating`.
    InputError: a row has no id or no rating, or it is unclear whose ratings its columns hold.
    """
    names = names_of(rows)
    check_columns(f"--raters: {source}", raters, names)
    is_nested = any(isinstance(row.value.get(name), (list, dict)) for row in rows for name in _FIELDS)
    columns = Columns.of(rows, source, known=[*asked, *raters, *(_FIELDS if is_nested else ())])
    by_quality = {"rating": list(raters)} if raters else {name: [name] for name in asked if name in names}
    if not (asked or raters or is_nested):
        columns.refuse_unclear(source, f"the qualities with --quality, or --quality {ALL}")
    if not by_quality and not is_nested:
        by_quality = {**{name: [name] for name in columns.numbers}, **columns.raters}
        columns.warn(source)
    items: dict[str, RatedItem] = {}
    given: set[tuple[str, str | None]] = set()
    for row in rows:
        ratings: dict[str, tuple[float, ...]] = {}
        people: dict[str, tuple[str, ...]] = {}
        item, person = _bare(row, columns, ratings, people), columns.label(row, "rater")
        if (before := items.setdefault(item.id, item)) is not item:
            if person is None or (item.id, person) in given:
                who = "" if person is None else f" by {person!r}"
                raise InputError(f"{source}: the id {item.id!r} occurs twice{who}. Give every response its own.")
            ratings |= before.ratings
            people |= before.people
            items[item.id] = replace(before, ratings=ratings, people=people)
        given.add((item.id, person))
        for quality, raters_of, numbers in _answers(row, by_quality):
            ratings[quality] = ratings.get(quality, ()) + numbers
            who_rated = raters_of if person is None else (person,) * len(numbers)
            if who_rated is not None:
                people[quality] = people.get(quality, ()) + who_rated
    _warn_of_marks(items.values(), source)
    return list(items.values())


def of_level(
    items: Sequence[RatedItem], level: Level | None, source: str, remedy: str = "Choose with --rows turn or --rows dialogue."
) -> list[RatedItem]:
    """Return the items of a level, by default the only one; raises InputError if the level is missing or ambiguous."""
    there = sorted({item.level for item in items})
    if level is None and len(there) > 1:
        raise InputError(f"{source}: has ratings of responses and of whole dialogues. {remedy}")
    chosen = [item for item in items if level in {None, item.level}]
    if not chosen:
        raise InputError(f"{source}: has no ratings at {level} level, only at {', '.join(there)} level. Change --rows.")
    return chosen


def _warn_of_marks(items: Collection[RatedItem], source: str) -> None:
    """Warn if an outlying number may mean "no rating"."""
    for quality in qualities(list(items)):
        counts = Counter(value for item in items for value in item.ratings.get(quality, ()))
        for mark in (0.0, -1.0, 99.0, 999.0):
            others = [value for value in counts if value != mark]
            low, high = min(others, default=0), max(others, default=0)
            is_scale = all(value.is_integer() for value in others) and 2 < high <= 10 and low >= 0
            if mark in counts and is_scale:
                logger.warning(
                    "%s: %s: %d of %d ratings are %g, and the others are on a scale of %g to %g. "
                    "If it stands for no rating, leave the cell empty, or count only the others by --within %g %g",
                    *(source, quality, counts[mark], sum(counts.values()), mark, low, high, low, high),
                )


def qualities(items: Sequence[RatedItem]) -> list[str]:
    """Return the names of the items' qualities, in order of first appearance."""
    return list(dict.fromkeys(quality for item in items for quality in item.ratings))


def _rated(items: Sequence[Item], source: str, *, is_chat: bool = False) -> list[RatedItem]:
    distinct = {(item.system, context_turns(item), getattr(item, "response", None)) for item in items}
    if repeated := len(items) - len(distinct):
        logger.warning(
            "%s: %d of %d items have the text and the system of an earlier one; each counts", source, repeated, len(items)
        )
    rated = [RatedItem.of(item) for item in items]
    return [replace(item, cluster=item.id) for item in rated] if is_chat else rated


def _bare(row: Line, columns: Columns, ratings: Ratings, people: Mapping[str, tuple[str, ...]]) -> RatedItem:
    id = columns.label(row, "id")
    if not id:
        raise InputError(f"{row.where}: has no 'id'. Name the response that is rated, as its scores do.")
    level = cast("Level", columns.label(row, "level") or "turn")
    if level not in _LEVELS:
        raise InputError(f"{row.where}: level is {level!r}. Give turn or dialogue.")
    cluster, item, system = (columns.label(row, name) for name in ("cluster", "item", "system"))
    of_id = id.rpartition(":")[0] if level == "turn" else ""
    return RatedItem(id, ratings, level, cluster or of_id or None, item, system, people=people)


def _answers(
    row: Line, by_quality: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, tuple[str, ...] | None, tuple[float, ...]]]:
    """Yield each quality of a row, its raters if columns name them, and their numbers.

    They are in `rating` or `ratings`, a number, a list of numbers, or an object of either by quality; or in columns.
    """
    name = next((name for name in _FIELDS if name in row.value), "")
    value = row.value.get(name)
    if isinstance(value, (list, dict)) or (name and not by_quality):
        for quality, cell in (value if isinstance(value, dict) else {"rating": value}).items():
            numbers = cell if isinstance(cell, list) else [] if cell is None else [cell]
            yield quality, None, finite_numbers(numbers, f"{row.where}: {name}[{quality!r}]")
        return
    if not by_quality:
        raise InputError(f"{row.where}: has neither 'rating' nor 'ratings', only {', '.join(row.value)}. Give one of them.")
    for quality, columns in by_quality.items():
        cells = {column: number for column in columns if (number := number_cell(row, column)) is not None}
        yield quality, tuple(cells) if len(columns) > 1 else None, tuple(cells.values())
