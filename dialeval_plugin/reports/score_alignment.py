"""Alignment of scores and ratings by id; unmatched ids are an error."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.corpora.rated_items import ALL, RatedItem, of_level, qualities, read_rated_items
from dialeval_plugin.corpora.score_files import ScoreColumn, named_file, read_score_file
from dialeval_plugin.labels.scores import check_ids
from dialeval_plugin.labels.table import known_labels
from dialeval_plugin.statistics.annotators.raters import aggregate
from dialeval_plugin.statistics.choices import CascadePoint, cascade_curve

from .correlation_report import EvaluatorScores


@dataclass(frozen=True, kw_only=True)
class AlignedScores:
    """Options for aligning scores and ratings.

    Attributes:
        ratings: file or name of a corpus; None if the score files have the ratings.
        qualities: names, or `ALL`; if empty, the quality "overall", or all qualities if there is none of that name.
        level: "turn" or "dialogue"; needed if the ratings have both.
        columns: score columns; see `score_files.read_score_file`.
        rating_column: column of the score files that has the ratings.
        raters: columns of the individual raters of one quality, in the file that has the ratings.
        lower: evaluators whose lower scores are better; files of `dialeval score` state this themselves.
        human: aggregation of several ratings into one; see `raters.AGGREGATIONS`.
        is_partial: compare the rows that both sides have and report the number of the others, instead of an error.
    """

    ratings: str | None = None
    qualities: Sequence[str] = ()
    level: Level | None = None
    columns: Sequence[str] = ()
    rating_column: str | None = None
    raters: Sequence[str] = ()
    lower: Sequence[str] = ()
    human: str = "mean"
    is_partial: bool = False


def align(files: Sequence[Path], how: AlignedScores) -> list[EvaluatorScores]:
    """Read score files and align them with the ratings, evaluators in the order given.

    Raises InputError if a file is malformed, evaluators share a name, an id is on one side only, or a quality is not rated.
    """
    shared = None
    if how.ratings is not None:
        shared = of_level(read_rated_items(how.ratings, how.qualities, how.raters), how.level, how.ratings)
    aligned: list[EvaluatorScores] = []
    names: set[tuple[str, str | None, str]] = set()
    for source in files:
        name, path = named_file(source)
        columns, own = read_score_file(path, how.columns, how.rating_column, how.raters if how.ratings is None else ())
        if (given := shared or own) is None:
            raise InputError(f"{path}: has scores but no ratings. Name a file by --ratings, or a column by --rating-column.")
        items = given if shared else of_level(given, how.level, str(path))
        is_both = how.ratings is not None and Path(how.ratings).exists() and path.samefile(how.ratings)
        dataset = Path(how.ratings).stem if how.ratings else path.stem
        for read in columns:
            column = read if name is None else replace(read, evaluator=read.evaluator.replace(path.stem, name, 1))
            oriented = replace(column, orientation="lower") if column.evaluator in how.lower else column
            placed = _placed(oriented, items) if column.is_in_file_order and shared is not None else oriented
            chosen = _matched(placed, items, how)
            for quality in _qualities(placed, chosen, how):
                if (placed.evaluator, quality, dataset) in names:
                    raise InputError(f"{path}: there is another evaluator {placed.evaluator!r}. Rename one of the files.")
                names.add((placed.evaluator, quality, dataset))
                judgements = _judgements(placed, chosen, items, quality, dataset, how.human)
                of_scores = {id: () if score is None else (score,) for id, score in placed.scores.items()}
                if is_both and of_scores == judgements.raters:
                    raise InputError(
                        f"{path}: {quality!r} is read as scores and as ratings. Name the column of the ratings by "
                        "--rating-column, and leave --ratings out."
                    )
                aligned.append(judgements)
    known = {one.evaluator for one in aligned}
    if unknown := sorted(set(how.lower) - known):
        raise unknown_name(f"--lower {unknown[0]!r}: there is no such evaluator", unknown[0], sorted(known))
    return aligned


def _placed(column: ScoreColumn, items: Sequence[RatedItem]) -> ScoreColumn:
    if len(column.scores) != len(items):
        raise InputError(
            f"{column.source}: has {len(column.scores)} scores in file order, but there are {len(items)} ratings at "
            f"{items[0].level} level. Give the file that was scored, or the other level with --rows."
        )
    names = [item.id for item in items]
    return replace(
        column,
        scores={names[int(place)]: score for place, score in column.scores.items()},
        unscored={names[int(place)]: why for place, why in column.unscored.items()},
    )


def _matched(column: ScoreColumn, items: Sequence[RatedItem], how: AlignedScores) -> list[RatedItem]:
    rated = {item.id: item for item in items}
    extra = [id for id in column.scores if id not in rated]
    check_ids(column.source, column.scores, list(rated), extra, "rated", is_partial=how.is_partial)
    return [item for item in items if item.id in column.scores]


def _qualities(column: ScoreColumn, items: Sequence[RatedItem], how: AlignedScores) -> list[str]:
    rated = qualities(items)
    own = next((name for name in rated if column.quality and name.casefold() == column.quality.casefold()), None)
    wanted = how.qualities
    if own is not None:
        return [own] if not wanted or list(wanted) == [ALL] or own in wanted else []
    if not wanted:
        if column.quality is not None and column.is_in_file_order:
            raise InputError(
                f"{column.source}: {column.quality!r} is no rated quality. Name the one to compare with by --quality. "
                f"There are: {', '.join(rated)}."
            )
        return _overall(rated)
    return asked_qualities(wanted, rated)


def asked_qualities(wanted: Sequence[str], rated: Sequence[str]) -> list[str]:
    """Return the requested qualities, all for `ALL`; raises InputError for one that is not rated."""
    if list(wanted) == [ALL]:
        return list(rated)
    for name in wanted:
        if name not in rated:
            raise InputError(f"--quality {name!r}: is not rated. There are: {', '.join(rated)}.")
    return list(wanted)


def _overall(rated: Sequence[str]) -> list[str]:
    return [name for name in rated if name.casefold() == "overall"] or list(rated)


def _judgements(
    column: ScoreColumn, items: Sequence[RatedItem], rated: Sequence[RatedItem], quality: str, dataset: str, human: str
) -> EvaluatorScores:
    raters = {item.id: item.ratings.get(quality, ()) for item in rated}
    sign = -1.0 if column.orientation == "lower" else 1.0
    scores = (column.scores[item.id] for item in items)
    has_name = column.quality is None or column.quality.casefold() == quality.casefold()
    return EvaluatorScores(
        evaluator=column.evaluator if has_name else f"{column.evaluator}:{column.quality}",
        dataset=dataset,
        quality=quality,
        level=items[0].level,
        ids=[item.id for item in items],
        scores=[None if score is None else sign * score + 0.0 for score in scores],
        ratings=aggregate([raters[item.id] for item in items], human),
        raters=raters,
        people={item.id: item.people[quality] for item in rated if quality in item.people},
        clusters=known_labels([item.cluster for item in items]),
        items=known_labels([item.item for item in items]),
        systems=known_labels([item.system for item in items]),
        words=known_labels([item.words for item in items]),
        unscored=Counter(column.unscored[item.id] for item in items if item.id in column.unscored),
        sign=sign,
    )


def scores_by_rating(
    data: str, scores: Path, column: str | None = None, quality: str | None = None
) -> tuple[str, dict[str, list[float]]]:
    """Return the name of a score, and its values by rating level; means of several raters are rounded to a level."""
    items = read_rated_items(data, [quality] if quality else ())
    rated = qualities(items)
    if quality is None:
        if len(overall := _overall(rated)) > 1:
            raise InputError(f"{data}: several qualities are rated. Name one with --quality: {', '.join(rated)}.")
        quality = next(iter(overall), None)
    if quality not in rated:
        raise InputError(f"--quality {quality!r}: is not rated in {data}. Rated are: {', '.join(rated) or 'none'}.")
    (chosen, *others) = read_score_file(scores, (column,) if column else ()).columns
    if others:
        names = ", ".join(item.evaluator for item in (chosen, *others))
        raise InputError(f"{scores}: has several scores: {names}. Name one with --column.")
    by_level: dict[int, list[float]] = {}
    for item in items:
        value, raters = chosen.scores.get(item.id), item.ratings.get(quality, ())
        if value is not None and raters:
            by_level.setdefault(math.floor(math.fsum(raters) / len(raters) + 0.5), []).append(value)
    if not by_level:
        raise InputError(
            f"{scores}: no row of {data} has both a score and a rating of {quality}. Give the file that was scored."
        )
    return chosen.evaluator, {f"{quality} {level}": values for level, values in sorted(by_level.items())}


FUSED, SMALL = "slide", "small"
"""Columns of the `slide` scorer: fused score, and score without the large model."""


def cascade_curves(data: str, files: Sequence[Path], quality: str | None = None) -> dict[str, list[CascadePoint]]:
    """Return the curve of each file by its name, see `named_file`, over the rows that have both scores and a rating.

    Raises:
        InputError: two files share a name, a file has no column `slide` or `small`, its ids are not those of `data`, or several
            qualities are rated and none is named.
        StatisticUndefined: there are too few rows, or all scores or ratings are equal.
    """
    how = AlignedScores(ratings=data, qualities=(quality,) if quality else (), columns=(FUSED, SMALL))
    curves: dict[str, list[CascadePoint]] = {}
    for source in files:
        name, path = named_file(source)
        if (called := name or path.stem) in curves:
            raise InputError(f"{path}: there is another evaluator {called!r}. Rename one of the files.")
        columns = align([path], how)
        if len(columns) != 2:
            named = ", ".join(dict.fromkeys(one.quality for one in columns))
            raise InputError(f"{data}: several qualities are rated. Name one with --quality: {named}.")
        fused, small = columns
        rows = [
            (alone, both, rating)
            for alone, both, rating in zip(small.scores, fused.scores, fused.ratings, strict=True)
            if alone is not None and both is not None and rating is not None
        ]
        alone, both, ratings = ([row[place] for row in rows] for place in range(3))
        curves[called] = cascade_curve(alone, both, ratings)
    return curves
