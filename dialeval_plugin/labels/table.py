"""Tables of human labels and evaluator scores for the statistics: arrays, with NaN for missing values.

The cells of a column become numbers on a scale: pass and fail, named categories, ordered words, or numbers.
"""

from __future__ import annotations

import logging
import math
import shlex
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.rows import MISSING, finite, is_number

logger = logging.getLogger(__name__)

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


MAX_CATEGORIES = 50
"""Maximum number of different words in a column; columns with more hold texts."""
ZERO_OR_ONE = Scale("binary", ("0", "1"))
_OFTEN, _LONG = 5, 4
"""A word that occurs so often, with so many letters, is the right spelling of one that occurs once."""
_LARGEST = 1e150
"""Magnitude up to which the squares of a million numbers have a sum."""
_MAX_KNOWN = 1000
"""Number of distinct texts whose numbers are remembered."""
_PAIRS = (
    "fail failed f|pass passed p; no n|yes y; false f|true t; bad|good; incorrect|correct; wrong|right; reject rejected|accept "
    "accepted approve approved; unacceptable|acceptable; unsafe|safe; negative|positive; failure|success; dislike|like; "
    "unhelpful|helpful; irrelevant|relevant; unfaithful|faithful; inappropriate|appropriate; unsupported|supported; "
    "ungrounded|grounded; thumbs_down thumbs-down down 👎|thumbs_up thumbs-up up 👍; not_ok|ok"
)
_BINARY = [tuple(tuple(side.split()) for side in pair.split("|")) for pair in _PAIRS.split(";")]
"""Spellings of the negative and the positive word of each pair."""


class Cells:
    """Cells read one after another, with numbers and words apart; a million numbers take 16 MB."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._numbers, self._codes = array("d"), array("q")
        self._words: dict[str, int] = {}
        self._first: dict[str, str] = {}
        self._known: dict[str, float] = {}

    def add(self, value: Any, where: str) -> None:
        """Add the content of a cell; None or an empty one is no label."""
        # Fast paths: a file has a million numbers, or the same few texts a million times.
        number = (
            value if type(value) is float and math.isfinite(value) else self._known.get(value) if type(value) is str else None
        )
        if number is not None:
            self._numbers.append(number)
            self._codes.append(-1)
            return
        if isinstance(value, (bool, str)):
            word = str(value).strip()
            if not is_number(word):
                self._numbers.append(np.nan)
                self._codes.append(self._words.setdefault(word.casefold(), len(self._words)) if word else -1)
                self._first.setdefault(word.casefold(), f"{where}: {self.name}")
                return
            number = float(word)
            if math.isfinite(number):
                if type(value) is str and len(self._known) < _MAX_KNOWN:
                    self._known[value] = number
                self._numbers.append(number)
                self._codes.append(-1)
                return
            value = number
        # pandas has NaN for empty cells.
        is_empty = value is None or (isinstance(value, float) and math.isnan(value))
        number = np.nan if is_empty else finite(value, f"{where}: {self.name}", "Leave the cell empty where there is none.")
        self._numbers.append(number)
        self._codes.append(-1)

    def odd_word(self) -> str | None:
        """Return a word, after its location, if the cells are neither all numbers nor all words of one pair."""
        is_pair = any({*self._words} <= {*bad, *good} for bad, good in _BINARY) and np.isnan(np.array(self._numbers)).all()
        if not self._words or is_pair:
            return None
        known = {word for pair in _BINARY for side in pair for word in side}
        odd = next((word for word in self._words if word not in known), next(iter(self._words)))
        return f"{self._first[odd]}: {odd!r}"

    def on_scale(
        self, source: str, order: Sequence[str] = (), positive: str | None = None, known: Scale | None = None
    ) -> tuple[FloatArray, Scale]:
        """Return one number per cell, NaN if it is empty, and their scale.

        Args:
            source: name at the start of messages.
            order: words in ascending order.
            positive: the positive word, or several, separated by commas; all others are negative.
            known: a scale whose words are used if the cells hold words.

        InputError: words that cannot be placed: a word for "none", more than `MAX_CATEGORIES`, numbers among words, or two
        words without a known positive one.
        """
        numbers, codes = np.array(self._numbers), np.array(self._codes)
        where = f"{source}: {self.name}"
        distinct = np.unique(numbers[~np.isnan(numbers)])
        if (largest := max(map(abs, distinct), default=0.0)) > _LARGEST:
            raise InputError(
                f"{where}: has {largest:g}, which cannot be squared. Leave the cell empty where there is no number."
            )
        are_known = known is not None and {f"{number:g}" for number in distinct} <= {*known.categories}
        if not (order or self._words) and (positive is None or (known is not None and not are_known)):
            is_binary = len(distinct) and {*distinct} <= {0.0, 1.0}
            return numbers, ZERO_OR_ONE if is_binary else Scale("interval")
        if len(distinct) > MAX_CATEGORIES and self._words:
            word, place = next(iter(self._first.items()))
            raise InputError(f"{place}: expected a number, got {word!r}. Leave the cell empty where there is none.")
        words = [*self._words, *(f"{number:g}" for number in distinct)]
        if len(words) > MAX_CATEGORIES:
            raise InputError(f"{where}: has {len(words)} different labels, which are no categories. Name the column of labels.")
        places, scale = self._categories(words, where, order, positive, known)
        if scale.kind == "nominal":
            self._check_spelling(np.bincount(codes[codes >= 0], minlength=len(self._words)).tolist())
        of_word = np.array([*(places[word] for word in words), np.nan])
        of_number = np.where(np.isnan(numbers), len(words), np.searchsorted(distinct, numbers) + len(self._words))
        return np.asarray(of_word[np.where(codes >= 0, codes, of_number)], dtype=np.float64), scale

    def _check_spelling(self, counts: Sequence[int]) -> None:
        """Raise an InputError for a word that occurs once and differs by a letter from one that occurs often."""
        often = [word for word, n in zip(self._words, counts, strict=True) if n >= _OFTEN]
        for word, n in zip(self._words, counts, strict=True):
            near = (other for other in often if n == 1 and _differ_by_a_letter(word, other))
            if (other := next(near, None)) is not None:
                raise InputError(
                    f"{self._first[word]}: {word!r} occurs once, and may be a misspelt {other!r}. Mend the cell; if it is a "
                    "category of its own, certify takes all by --order."
                )

    def _categories(
        self, words: Sequence[str], where: str, order: Sequence[str], positive: str | None, known: Scale | None
    ) -> tuple[dict[str, float], Scale]:
        shown = ", ".join(map(repr, words))
        if order:
            names = [_plain(word) for word in order]
            if len(names) < 2 or len({*names}) < len(names):
                raise InputError(
                    f"--order {','.join(order)}: expected two different words or more. Give all labels, the worst first."
                )
            if unknown := [word for word in words if word not in names]:
                raise InputError(
                    f"{self._first.get(unknown[0], where)}: {unknown[0]!r} is not in --order {','.join(order)}. "
                    "Add it, or leave the cell empty where there is no label."
                )
            kind = Scale("binary" if len(names) == 2 else "ordinal", tuple(names))
            return {word: float(place) for place, word in enumerate(names)}, kind
        if none := [word for word in words if word in MISSING]:
            raise InputError(
                f"{self._first.get(none[0], where)}: {none[0]!r} may be a label, or stand for none. "
                "Leave the cell empty where there is none; if it is a label, write another word."
            )
        if known is not None and {*words} <= {*known.categories}:
            return {name: float(place) for place, name in enumerate(known.categories)}, known
        pair = next((pair for pair in _BINARY if {*words} <= {*pair[0], *pair[1]}), None)
        if positive is not None and not (pair and known):  # a judge may have other words than people
            good = [_plain(word) for word in ([positive] if _plain(positive) in words else positive.split(","))]
            unknown = [word for word in good if word not in words]
            if unknown if known is None else len(unknown) == len(good):  # a judge may lack some of the words of people
                raise InputError(f"--positive {positive}: there is no label {unknown[0]!r}. The labels are {shown}.")
            name, bad = " or ".join(good), [word for word in words if word not in good]
            if known is None and len(words) > 1 and not bad:
                logger.warning("%s: --positive %s names every label there is, so that all rows pass", where, positive)
            scale = Scale("binary", (bad[0] if len(bad) == 1 else f"not {name}", name))
            return {word: float(word in good) for word in words}, scale
        advice = "Name those that count as pass by --positive; for categories or ranks, certify takes all by --order"
        if pair:
            return {word: float(word in pair[1]) for word in words}, Scale("binary", (pair[0][0], pair[1][0]))
        if {*words} <= {word for pair in _BINARY for side in pair for word in side}:
            raise InputError(f"{where}: the labels are {shown}, of several pairs of words. {advice}.")
        if any(is_number(word) for word in words):
            raise InputError(f"{where}: holds numbers and words: {shown}. Mend the cells. Or: {advice}.")
        if len(words) == 2:
            raise InputError(f"{where}: the labels are {shown}. Say which one is good by --positive {shlex.quote(words[0])}.")
        names = sorted(words)
        return {word: float(place) for place, word in enumerate(names)}, Scale("nominal", tuple(names))


def _differ_by_a_letter(one: str, other: str) -> bool:
    """Whether two words of letters differ by one that is missing, added, replaced or moved."""
    same = sum(block.size for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks())
    longest = max(len(one), len(other))
    return same == longest - 1 and longest >= _LONG and f"{one}{other}".isalpha()


def _plain(word: str) -> str:
    """Return a word without differences in case and white space; a number as `1`, not `1.0`."""
    word = word.strip().casefold()
    return f"{float(word):g}" if is_number(word) else word
