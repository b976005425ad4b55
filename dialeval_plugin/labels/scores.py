"""Readers of one column of scores, numbers or words such as pass and fail, and its pairing with human labels, row by row.

`read_scores` reads row by row and keeps only id, conversation and score; `read_scored_rows` keeps all other fields of the rows.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np

from dialeval_plugin.conversations.files import delimiter_of, open_rows
from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, read_text
from dialeval_plugin.core.scores import Orientation, Scores
from dialeval_plugin.corpora.columns import Columns, check_columns, conversation_column, names_of
from dialeval_plugin.corpora.exports import check_layout, check_suffix
from dialeval_plugin.corpora.rows import file_rows, is_table, label_field, with_id
from dialeval_plugin.corpora.score_files import (
    NO_SCORES,
    UNKNOWN,
    conversation_of,
    named_file,
    read_meta,
    scored_ids,
    texts_before,
)

from .reading import chosen_columns, label_columns, rows_from
from .table import ZERO_OR_ONE, Cells, JudgedLabels, LabelTable, Scale, ScoreTable, known_labels

logger = logging.getLogger(__name__)

_ROWS_SEEN = 1000
"""Number of first rows by which columns are classified."""
_HEADER = 10_000
"""Maximum length in bytes of a table's header."""
T = TypeVar("T")
_PARTIAL = "compare what is on both sides with --partial"
"""Remedy for ids on one side only, in a command that has this option."""


def read_scores(
    source: str | Path,
    *,
    column: str | None = None,
    scale: Scale | None = None,
    positive: str | None = None,
    raters: Sequence[str] = (),
    evaluator: str | None = None,
) -> ScoreTable:
    """Read an evaluator's scores or words (.jsonl, .json, .csv, .tsv, .parquet), a million rows in seconds.

    Args:
        source: the file; NAME=FILE names the evaluator.
        column: column of the scores; by default the main one of `dialeval score`, the one called `score`, or the only one.
        scale: scale of the human labels, whose words the evaluator may use.
        positive: the positive word, or several, separated by commas.
        raters: columns of people's labels, which are no scores.
        evaluator: its name; by default that of the file, or of the column if the file has labels too.

    Raises:
        InputError: the file is malformed, an id is missing or repeated, or the column of scores is ambiguous.
    """
    name, path = named_file(source)
    meta = read_meta(path)
    if path.suffix.lower() not in {".parquet", ".xlsx"}:
        check_suffix(path)
    main, table, is_alone = _of_rows(
        score_rows(path),
        str(path),
        column=column or meta.get("main"),
        scale=scale,
        positive=positive,
        raters=raters,
        is_of_turns=meta.get("level") != "dialogue",
    )
    is_main = main in {"score", meta.get("main")} or (is_alone and column is None)
    called = evaluator or name or (path.stem if is_main else main)
    return replace(_turned(table, meta.get("orientation")), evaluator=called, signature=meta.get("signature"))


def score_rows(path: Path) -> Iterator[Line]:
    """Yield the rows of a file of scores, read one by one."""
    # A table with decimal commas must be read whole.
    is_plain = not is_table(path) or delimiter_of(read_text(path, _HEADER).partition("\n")[0], ",") == ","
    return with_id(open_rows(str(path), is_log=False).lines) if is_plain else iter(file_rows(path))


def scores_from(scores: Any, *, evaluator: str | None = None, **options: Any) -> ScoreTable:
    """Return scores from a `ScoreTable`, a file, `Scores`, a data frame, rows, or an object of id to score.

    `evaluator` is the evaluator's name; the options are those of `read_scores`.
    """
    if isinstance(scores, ScoreTable):
        return scores
    if isinstance(scores, (str, Path)):
        return read_scores(scores, evaluator=evaluator, **options)
    if isinstance(scores, Scores):
        options["column"] = options.get("column") or scores.main
    main, table, _ = _of_rows(iter(rows_from(scores, "scores", "score")), "scores", **options)
    if isinstance(scores, Scores):
        table = replace(_turned(table, scores.orientation), signature=str(scores.signature))
    return replace(table, evaluator=evaluator or main)


def _turned(table: ScoreTable, orientation: str | None) -> ScoreTable:
    """Return the scores such that higher is better: 0 and 1 change places, as they are categories too; words say themselves."""
    is_zero_or_one = table.scale == ZERO_OR_ONE
    if orientation != "lower" or (table.scale is not None and not is_zero_or_one):
        return table
    return replace(table, scores=float(is_zero_or_one) - table.scores)


def people_among(scores: Any, labels: Any, table: LabelTable) -> tuple[str, ...]:
    """Return the people of a table of labels if the scores are in the same file or object, whose columns are then no scores."""
    is_file = isinstance(scores, (str, Path)) and named_file(scores)[1] == Path(table.source)
    return table.raters if scores is labels or is_file else ()


def _of_rows(
    rows: Iterator[Line],
    source: str,
    *,
    column: str | None = None,
    scale: Scale | None = None,
    positive: str | None = None,
    raters: Sequence[str] = (),
    is_of_turns: bool = True,
) -> tuple[str, ScoreTable, bool]:
    """Return the column of scores, its table (without the evaluator's name), and whether the rows have no labels."""
    head = list(itertools.islice(rows, _ROWS_SEEN))
    check_layout(Path(source), head[0].value)
    names = names_of(head)
    columns = label_columns(head, source, [*raters, *(NO_SCORES & {*names})])
    main = column or ("score" if "score" in names else "")
    if not main:
        of_evaluators = columns._replace(raters={}, numbers=[name for name in columns.numbers if name.casefold() != "label"])
        main, _ = chosen_columns(of_evaluators, source, None, names, "--column")
    check_columns(f"{source}:", [main], names)
    if main in raters:
        raise InputError(f"{source}: {main!r} is one of the people. Name the evaluator's column with --column.")
    cells, unscored = Cells(main), Counter[str]()
    ids, clusters, systems = dict[str, None](), list[str](), list[str | None]()
    before = ""
    for row in itertools.chain(head, rows):
        id = label_field(row, "id")
        if not id:
            raise InputError(f"{row.where}: has no 'id', a text or a whole number. Give the id of the scored response.")
        if id in ids:
            raise InputError(f"{row.where}: the id {id!r} occurs twice. Give every response one score.")
        ids[id] = None
        named = columns.label(row, "cluster") if "cluster" in columns.labels else None
        cluster = named or conversation_of(id, texts_before(row), is_of_turns=is_of_turns)
        # Consecutive rows of a conversation share one string.
        before = before if cluster == before else cluster
        clusters.append(before)
        if "system" in columns.labels:
            systems.append(columns.label(row, "system"))
        value = row.value.get(main)
        cells.add(value, row.where)
        if value is None or value == "":
            unscored[str(row.value.get("unscored") or UNKNOWN)] += 1
    values, own_scale = cells.on_scale(source, positive=positive, known=scale)
    table = ScoreTable(
        evaluator="",
        source=source,
        ids=list(ids),
        scores=values,
        clusters=clusters,
        scale=None if own_scale.kind == "interval" else own_scale,
        systems=known_labels(systems) or None,
        unscored=dict(unscored),
    )
    return main, table, not columns.raters and "label" not in names and not {*raters} & {*names}


_SPEECH = frozenset(
    {"messages", "conversations", "turns", "dialogue", "dialog", "context", "response", "content", "text", "value", "prompt"}
    | {"chosen", "rejected", "question", "answer", "conversation_a", "input", "output"}
)
"""Fields of a file to be scored."""


class ScoredRow(NamedTuple):
    """A row of a file of scores.

    Attributes:
        conversation: key of the conversation, see `conversation_of`.
        score: the main score, None if the row is unscored.
        before: turns since the last row of the conversation, or all turns before a single response; None if the file does not
            have them (`dialeval score --with-text`).
        fields: all fields of the row, as in the file.
    """

    id: str
    conversation: str
    score: float | None
    before: tuple[str, ...] | None
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """The rows of a file of scores with one column of them; `signature` is None if `dialeval score` did not write the file."""

    name: str
    column: str
    rows: Sequence[ScoredRow]
    orientation: Orientation = "higher"
    signature: str | None = None


def read_scored_rows(path: Path, column: str | None = None) -> ScoredRows:
    """Read the rows of a file of scores (.jsonl, .json, .csv, .tsv, .parquet), with the named column or the main one.

    Raises:
        InputError: the file is malformed, has no such column, or has several without a choice of one.
    """
    return scored_rows_of(file_rows(path), str(path), column, read_meta(path))


def find_scored_rows(path: Path, column: str | None = None) -> ScoredRows | None:
    """Read as `read_scored_rows`; return None for a file to be scored: it has no ids, or has texts with them."""
    if not read_meta(path):
        try:
            head = next(with_id(open_rows(str(path)).lines), Line("", {})).value
        except InputError:
            return None  # the reader of logs reports the error
        is_said = not head.keys().isdisjoint(_SPEECH) and "preceding" not in head
        if is_said or "id" not in head:
            return None
    return read_scored_rows(path, column)


def scored_rows_of(
    rows: Sequence[Line], source: str, column: str | None = None, meta: Mapping[str, Any] = MappingProxyType({})
) -> ScoredRows:
    """Return rows of scores with one column of them; for `meta` see `read_meta`, and raises as `read_scored_rows`."""
    ids, there = scored_ids(rows), names_of(rows)
    if column is None and meta.get("mean") is None and len(meta.get("judges", ())) > 1:
        judges = list(meta["judges"])
        raise InputError(
            f"{source}: scores of {' and '.join(judges)} have no common scale. Choose one with --column {judges[0]}."
        )
    main = column or meta.get("main") or ("score" if "score" in there else None) or _only_column(rows, source)
    check_columns(f"{source}:", [main], there)
    cells = _cells(rows, main)
    if (odd := cells.odd_word()) is not None:
        advice = "Leave the cell empty where there is no score."
        raise InputError(f"{odd}: expected numbers alone, or words of one pair alone, such as pass and fail. {advice}")
    values, _ = cells.on_scale(source)
    is_of_turns, named = meta.get("level") != "dialogue", conversation_column(rows, source)
    scored = []
    for row, id, value in zip(rows, ids, values.tolist(), strict=True):
        before = texts_before(row)
        conversation = (named and label_field(row, named)) or conversation_of(id, before, is_of_turns=is_of_turns)
        scored.append(ScoredRow(id, conversation, None if math.isnan(value) else value, before, row.value))
    return ScoredRows(source, main, scored, cast("Orientation", meta.get("orientation", "higher")), meta.get("signature"))


def _cells(rows: Sequence[Line], name: str) -> Cells:
    cells = Cells(name)
    for row in rows:
        cells.add(row.value.get(name), row.where)
    return cells


def _only_column(rows: Sequence[Line], source: str) -> str:
    """Return the only column of numbers or, without any, of pass and fail."""
    numbers = [name for name in Columns.of(rows, source).numbers if name not in NO_SCORES]
    words = [] if numbers else label_columns(rows, source).numbers
    there = numbers or [name for name in words if _cells(rows, name).odd_word() is None]
    if len(there) != 1:
        problem = "no scores. Give what `dialeval score` wrote, or rows with an id and a number, or pass and fail"
        if there:
            problem = f"several columns of {'numbers' if numbers else 'verdicts'}: {', '.join(there)}. Name one with --column"
        raise InputError(f"{source}: has {problem}.")
    return there[0]


def pair(
    scores: ScoreTable,
    labels: LabelTable,
    *,
    is_partial: bool = False,
    is_subset: bool = False,
    remedy: str = _PARTIAL,
) -> JudgedLabels:
    """Return the labelled rows, each with its score.

    Rows of `labels` without any label count as unlabelled and are left out. An evaluator's words must be those of the people,
    unless both are binary. If `labels` do not name the conversation of a row, it is taken from the scores.

    Args:
        scores: scores of the labelled rows.
        labels: human labels.
        is_subset: whether only a part of the scored rows was labelled, on purpose.
        is_partial: leave out rows on one side only, and report their number, instead of raising an error.
        remedy: what else the user can do about labelled rows without a score.

    Raises:
        InputError: ids are on one side only, no id is on both, or the evaluator's words are not those of the people.
    """
    place = {id: row for row, id in enumerate(scores.ids)}
    labelled = np.flatnonzero(labels.n_labels > 0).tolist()
    known = set(labels.ids)
    extra = [] if is_subset else [id for id in scores.ids if id not in known]
    check_ids(
        scores.source, place, [labels.ids[row] for row in labelled], extra, "labelled", is_partial=is_partial, remedy=remedy
    )
    kept = [row for row in labelled if labels.ids[row] in place]
    of_scores = [place[labels.ids[row]] for row in kept]
    values, scale = on_scale(scores, labels.scale)
    paired = values[of_scores]
    n_unscored = int(np.isnan(paired).sum())
    unscored = scores.unscored if n_unscored == sum(scores.unscored.values()) else {UNKNOWN: n_unscored}
    chosen = replace(
        labels,
        ids=[labels.ids[row] for row in kept],
        labels=labels.labels[kept],
        items=_taken(labels.items, kept),
        texts=_taken(labels.texts, kept),
        clusters=_taken(scores.clusters, of_scores) if labels.clusters is None else _taken(labels.clusters, kept),
        systems=_taken(labels.systems, kept) or _taken(scores.systems, of_scores),
    )
    return JudgedLabels(
        evaluator=scores.evaluator, scores=paired, labels=chosen, scale=scale, unscored=unscored, signature=scores.signature
    )


def check_ids(
    source: str,
    scored: Collection[str],
    judged: Sequence[str],
    extra: Sequence[str],
    how: Literal["labelled", "rated"],
    *,
    is_partial: bool,
    remedy: str = _PARTIAL,
) -> None:
    """Raise an error for ids on one side only; with `is_partial` log their number.

    Args:
        source: file of the scores.
        scored: ids in it.
        judged: ids that people judged.
        extra: ids in the file that people did not judge.
        how: word for their judging.
        is_partial: whether ids on one side only are left out.
        remedy: see `pair`.
    """
    missing = [id for id in judged if id not in scored]
    if len(missing) == len(judged):
        what = {"labelled": "labels", "rated": "ratings"}[how]
        theirs = f" Theirs are called as {judged[0]!r}." if judged else ""
        raise InputError(f"{source}: no id is among the {what}, as {next(iter(scored))!r} is not.{theirs}")
    if is_partial and (extra or missing):
        left_out = "%s: %d scored ids are not %s, %d %s ids are not scored; all are left out"
        logger.warning(left_out, source, len(extra), how, len(missing), how)
        return
    for ids, who, where in ((extra, "scored", how), (missing, how, "scored")):
        if ids:
            shown = ", ".join(map(repr, ids[:3]))
            raise InputError(
                f"{source}: {len(ids)} ids are {who} but not {where}: {shown}{', ...' if len(ids) > 3 else ''}. "
                f"Score the {how} responses, unscored ones as null, or {remedy}."
            )


def pair_files(
    files: Sequence[Path], labels: LabelTable, *, columns: Sequence[str] = (), is_partial: bool = False
) -> list[JudgedLabels]:
    """Return `pair` of each file of scores, for each of its `columns` if given; raises as `pair` and `read_scores`."""
    pairs = []
    for path in files:
        raters = people_among(path, None, labels)
        for column in columns or (None,):
            scores = read_scores(path, column=column, scale=labels.scale, raters=raters)
            pairs.append(pair(scores, labels, is_partial=is_partial))
    return pairs


def _taken(values: Sequence[T] | None, rows: Sequence[int]) -> list[T] | None:
    return None if values is None else [values[row] for row in rows]


def on_scale(scores: ScoreTable, scale: Scale) -> tuple[FloatArray, Scale | None]:
    """Return the scores as positions on the scale of the labels; unchanged if they are numbers of another kind."""
    own = scores.scale
    if own is not None and own.kind == scale.kind == "binary":
        return scores.scores, scale
    if own is not None and {*own.categories} <= {*scale.categories}:
        places = np.array([scale.categories.index(name) for name in own.categories], dtype=np.float64)
        taken = np.where(np.isnan(scores.scores), 0, scores.scores).astype(np.int64)
        return np.where(np.isnan(scores.scores), np.nan, places[taken]), scale
    if own is None and scale.kind == "ordinal":
        return _named(scores.scores, scale)
    if own is None or own == ZERO_OR_ONE:
        return scores.scores, None
    raise InputError(
        f"{scores.source}: {scores.evaluator} says {', '.join(own.categories)}, and people "
        f"{', '.join(scale.categories) or 'numbers'}. Use the same words, or choose another column with --column."
    )


def _named(values: FloatArray, scale: Scale) -> tuple[FloatArray, Scale | None]:
    """Return numbers as positions if all of them are names of categories, such as 1 to 5; otherwise unchanged."""
    names = {name: float(place) for place, name in enumerate(scale.categories)}
    distinct = np.unique(values[~np.isnan(values)])
    if not {f"{value:g}" for value in distinct} <= names.keys():
        return values, None
    of_value = np.array([names[f"{value:g}"] for value in distinct])
    return np.where(np.isnan(values), np.nan, of_value[np.searchsorted(distinct, values) % max(1, len(distinct))]), scale
