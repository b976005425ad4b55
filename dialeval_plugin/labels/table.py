"""Labels of people and scores of an evaluator as the statistics take them: arrays, with NaN where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from dialeval_plugin.core.arrays import FloatArray

ScaleKind: TypeAlias = Literal["binary", "nominal", "ordinal", "interval"]


@dataclass(frozen=True, slots=True)
class Scale:
    """The possible values of a label.

    Attributes:
        kind: "binary" has two categories, the second of which is the positive one, such as "pass"; "nominal" has categories
            without an order, "ordinal" has them in ascending order; a label on an "interval" scale is a number.
        categories: names of the categories; none of an interval scale.
    """

    kind: ScaleKind
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelTable:
    """Labels of people for rows, which are responses or conversations.

    Attributes:
        source: file or data set, for messages.
        ids: one a row, no two alike.
        labels: of shape (rows, raters): a number, or the place of a category on the scale; NaN where the rater gave none. A row
            may have no label at all.
        raters: names of the columns of `labels`.
        has_people: whether each column is one person; else it is a place in the lists of labels of all rows, which different
            people may have filled.
        clusters: conversation or context of each row, whose rows are resampled together; None where nothing says it.
        systems: what wrote each row; items: the context that several systems answered. None where nothing says it.
        quality: what was asked.
        is_of_dialogues: whether a row is a whole conversation, which its texts are then.
        texts: for each row what was said before and what is labelled, as (context, response); None where the file has no texts.
        drawn: how `dialeval label` drew the rows, several ways with "; " between them; None where it drew none.
    """

    source: str
    ids: Sequence[str]
    labels: FloatArray
    scale: Scale
    raters: tuple[str, ...]
    clusters: Sequence[str] | None = None
    systems: Sequence[str] | None = None
    items: Sequence[str] | None = None
    quality: str = "label"
    texts: Sequence[tuple[str, str]] | None = None
    has_people: bool = True
    is_of_dialogues: bool = False
    drawn: str | None = None

    @property
    def n_labels(self) -> FloatArray:
        """How many people labelled each row."""
        return np.asarray((~np.isnan(self.labels)).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreTable:
    """Scores of one evaluator for all rows that it was run on, labelled by people or not.

    Attributes:
        scores: one a row, higher is better; NaN where it is unscored. Where the evaluator answers with labels, their places on
            `scale`.
        scale: of an evaluator that answers with the labels that people used; None where its scores are numbers of its own.
        clusters: conversation of each row.
        unscored: how many rows have no score, by reason.
        signature: what was run and how; None where the file does not say.
    """

    evaluator: str
    source: str
    ids: Sequence[str]
    scores: FloatArray
    clusters: Sequence[str]
    scale: Scale | None = None
    systems: Sequence[str] | None = None
    unscored: Mapping[str, int] = field(default_factory=dict)
    signature: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedLabels:
    """An evaluator's answers beside the labels of people: row k of `scores` is row k of `labels`.

    Attributes:
        scores: as in `ScoreTable`, of the labelled rows; NaN where the evaluator left the row unscored.
        scale: as in `ScoreTable`; where it is not None it is that of the labels.
    """

    evaluator: str
    scores: FloatArray
    labels: LabelTable
    scale: Scale | None = None
    unscored: Mapping[str, int] = field(default_factory=dict)
    signature: str | None = None
