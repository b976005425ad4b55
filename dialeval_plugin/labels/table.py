"""Tables of human labels and evaluator scores for the statistics: arrays, with NaN for missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from dialeval_plugin.core.arrays import FloatArray

Label = TypeVar("Label")
ScaleKind: TypeAlias = Literal["binary", "nominal", "ordinal", "interval"]


@dataclass(frozen=True, slots=True)
class Scale:
    """The possible values of a label.

    Attributes:
        kind: "binary" has two categories, the second of which is the positive one, such as "pass"; "nominal" has categories
            without an order, "ordinal" has them in ascending order; a label on an "interval" scale is a number.
        categories: names of the categories; empty for an interval scale.
    """

    kind: ScaleKind
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelTable:
    """Human labels of rows, which are responses or conversations.

    Attributes:
        source: file or data set, for messages.
        ids: one id per row, all different.
        labels: array of shape (rows, raters): a number, or the position of a category on the scale; NaN without a label. A row
            may have no label at all.
        raters: names of the columns of `labels`.
        has_people: whether each column is one person; otherwise it is a position in the rows' lists of labels, which different
            people may have filled.
        clusters: conversation or context of each row, whose rows are resampled together; None if unknown.
        systems: system that wrote each row; items: context that several systems answered. None if unknown.
        quality: the labelled quality.
        is_of_dialogues: whether a row is a whole conversation, which its texts then hold.
        texts: for each row the texts before it and its own, as (context, response); None if the file has no texts.
        drawn: how `dialeval label` drew the rows, several ways joined by "; "; None if it drew none.
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
        """Number of people who labelled each row."""
        return np.asarray((~np.isnan(self.labels)).sum(axis=1), dtype=np.float64)


def known_labels(values: Sequence[Label | None]) -> list[Label] | None:
    """Return the labels, or None if a row has none: partial labels would separate two kinds of rows."""
    present = [value for value in values if value is not None]
    return present if len(present) == len(values) else None


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreTable:
    """Scores of one evaluator for all its rows, labelled by people or not.

    Attributes:
        scores: one per row, higher is better; NaN if unscored. Label answers are positions on `scale`.
        scale: scale of an evaluator that answers with people's labels; None if its scores are numbers of another kind.
        clusters: conversation of each row.
        unscored: number of rows without a score, by reason.
        signature: evaluator and settings; None if the file does not state them.
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
    """An evaluator's scores paired with human labels: row k of `scores` is row k of `labels`.

    Attributes:
        scores: as in `ScoreTable`, for the labelled rows; NaN if the evaluator left the row unscored.
        scale: as in `ScoreTable`; if not None it is that of the labels.
    """

    evaluator: str
    scores: FloatArray
    labels: LabelTable
    scale: Scale | None = None
    unscored: Mapping[str, int] = field(default_factory=dict)
    signature: str | None = None
