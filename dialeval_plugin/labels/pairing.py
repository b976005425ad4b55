"""Pairing of an evaluator's scores with human labels, row by row; rows that do not match are an error."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.score_files import UNKNOWN

from .scores import people_among, read_scores
from .table import ZERO_OR_ONE, JudgedLabels, LabelTable, Scale, ScoreTable

logger = logging.getLogger(__name__)

T = TypeVar("T")

_PARTIAL = "compare what is on both sides with --partial"
"""Remedy for ids on one side only, in a command that has this option."""


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
