"""`Scorer`, the base of every method, and the shared pipeline: windows of bounded memory, blocks, progress."""

from __future__ import annotations

import inspect
import itertools
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, cast

from typing_extensions import Self

from dialeval_plugin.terminal import Progress
from dialeval_plugin.version import __version__

from .dialogue import Dialogue, Example, Item, Level, is_blank
from .errors import DialevalError, InputError, ModelLoadError
from .locks import CallLock
from .percentiles import PERCENTILE, PercentileTable, read_tables
from .scope import WARNED_FROM, Scope, out_of_scope_text
from .scores import BLANK_RESPONSE, IN_SCOPE, Orientation, Reason, Row, Scores, Unscored, finite_or_unscored
from .signature import RUNTIME_FIELDS, Signature, SignatureValue

logger = logging.getLogger(__name__)

_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)

NO_WEAKNESS = "nothing stands out"
"""Explanation if no quality is low."""
BLOCK = 4096
"""Largest number of items scored together; files of scores are written block by block."""
_WINDOWS_IN_BLOCK = 4


class Scorer(ABC):
    """A method that scores examples.

    A subclass defines `name`, `columns`, `score_batch` and `signature_fields`; everything else has a default. The score of an
    example depends on that example alone, not on its neighbours, their number or their order.

    Several threads may use one scorer: one of them at a time scores a window. Pickled are the arguments of a scorer; its model
    is opened again when it is unpickled.
    """

    name: ClassVar[str]
    level: Level = "turn"
    columns: tuple[str, ...]
    """Names of the columns, the main one first."""
    truncation_columns: Mapping[str, str] = MappingProxyType({})
    """Columns that count truncated texts, each with a description of the loss; a run warns once per column."""
    orientation: Orientation = "higher"
    range: tuple[float, float] = (0.0, 1.0)
    """Lowest and highest value of the main column; a missing end is infinite."""
    positive_from: float | None = None
    """Main score from which on (up to which, if lower is better) a response is positive; None: the middle of the range."""
    window: ClassVar[int] = 2048
    """Number of examples that `score_batch` gets at once: enough to fill batches of texts of one length."""

    # For lists of scorers.
    citation: ClassVar[str] = ""
    """BibTeX of the paper."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Requirements by default, apart from a response and its context: "references", "llm", "trained model", ..."""
    levels: ClassVar[tuple[Level, ...]] = ()
    """Values of the option `level`; empty for a scorer without that option, which has only its `level`."""
    packaged_model: ClassVar[str | None] = None
    """Folder in `pretrained/` that is used if no model is named."""

    # For scorers with their own model.
    model_hash: str | None = None
    """Hash of the model's folder, as in the signature."""
    percentiles: PercentileTable | None = None
    """Table of the column `percentile`, from `read_percentiles`."""
    scope: Scope | None = None
    """Limits of the column `in_scope`, from `Scope.read`."""

    # For judges and for combined scorers.
    prompts_llm_itself: ClassVar[bool] = False
    """Whether the option `llm` is a `LanguageModel`, and not a judge with one prompt."""
    described: Mapping[str, Any] = MappingProxyType({})
    """Settings written next to the scores, of which the signature has only a hash."""
    judges: tuple[str, ...] = ()
    """Columns of the parts; the first with a value in a row gives the score."""
    has_one_scale: ClassVar[bool] = True
    """Whether the main column has the same meaning for all parts, so that it has a mean."""

    lock: CallLock
    """Held while a window is scored, and by `one_at_a_time`."""
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __init_subclass__(cls, **settings: Any) -> None:
        """Give a class the signature of its `__init__` instead of that of `__new__`."""
        super().__init_subclass__(**settings)
        made = inspect.signature(cls.__init__) if cls.__init__ is not object.__init__ else inspect.Signature([_SELF])
        cls.__signature__ = made.replace(parameters=list(made.parameters.values())[1:])  # type: ignore[attr-defined]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Keep the arguments for pickling."""
        scorer = super().__new__(cls)
        vars(scorer).update(lock=CallLock(), _arguments=(args, options))
        return scorer

    def __reduce__(self) -> tuple[Callable[..., Scorer], tuple[Any, ...]]:
        """Pickle the arguments, not the model."""
        return _unpickle, (type(self), *self._arguments, str(run_signature(self)))

    @abstractmethod
    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score at most `window` different items, none of them `unscorable`; return one row per item, in order."""

    @abstractmethod
    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return all settings that can change a number, the method's name first."""

    def input_level(self, chosen: Level | None) -> Level | None:
        """Return the level of the items to read, the chosen one if there are several; None if none was chosen."""
        return chosen if self.levels else self.level

    def unscorable(self, item: Item) -> Unscored | None:
        """Return why `item` cannot have a score; None if it can. Such items never reach `score_batch`."""
        return BLANK_RESPONSE if isinstance(item, Example) and is_blank(item.response.text) else None

    def scope_of(self, items: Sequence[Item]) -> list[str | None]:
        """Return for each item why it is out of the model's scope, as "kind (detail)"; None if it is in scope."""
        return [None if self.scope is None else self.scope.beyond(item) for item in items]

    def is_unsure(self, row: Mapping[str, float | None], within: float) -> bool:
        """Whether the score of a row is nearer to `positive_from` than `within`, a share of the range."""
        low, high = self.range
        middle = (low + high) / 2 if self.positive_from is None else self.positive_from
        return abs(cast("float", row[self.columns[0]]) - middle) <= within * (high - low)

    def percentiles_of(self, scores: Scores) -> tuple[float | None, ...]:
        """Return the percentile of each row; () if there is no table."""
        return () if self.percentiles is None else self.percentiles.of(scores.columns[self.columns[0]])

    def explain(self, items: Sequence[Item]) -> list[str]:
        """Return a text per item that explains its score, its missing score, or why it is out of scope.

        Raises:
            InputError: the scorer has no explanations.
        """
        reasons: list[str | None] = []
        for item, reason in zip(items, self.scope_of(items), strict=True):
            missing = self.unscorable(item)
            reasons.append(missing.detail if missing else f"out of scope: {reason}" if reason else None)
        with self.lock:
            explained = iter(self.explain_known([item for item, why in zip(items, reasons, strict=True) if why is None]))
        return [next(explained) if why is None else why for why in reasons]

    def explain_known(self, items: Sequence[Item]) -> list[str]:
        """Explain items that can be scored and are in scope, see `explain`."""
        raise InputError(f"{self.name}: has nothing to explain. Leave --explain out.")

    def normalise_rows(self, rows: list[Row]) -> list[Row]:
        """Return the final rows of a whole run; only a paper's normalisation over a whole set needs it."""
        return rows

    @property
    def needs_whole_run(self) -> bool:
        """Whether `normalise_rows` needs all rows of a run, which a stream never has."""
        return type(self).normalise_rows is not Scorer.normalise_rows

    def reset_cache(self) -> None:  # noqa: B027 - most scorers keep nothing
        """Clear caches so that the next block's scores do not depend on earlier ones."""

    def score(self, items: Iterable[Item], *, progress: bool = False) -> Scores:
        """Score `items`, in order; all must be of this scorer's level."""
        return run(self, list(items), progress=progress)

    def score_stream(self, items: Iterable[Item], *, block: int = BLOCK) -> Iterator[Scores]:
        """Score any number of items in bounded memory, and yield the scores of each `block` of them, in order.

        Raises:
            InputError: the scorer needs all items at once.
        """
        refuse_parts(self)
        rest = iter(items)
        while taken := list(itertools.islice(rest, block)):
            yield scores_of(self, taken, score_block(self, taken))


def _unpickle(kind: type[Scorer], args: tuple[Any, ...], options: dict[str, Any], signature: str) -> Scorer:
    """Make a pickled scorer; raise an error if its model or packages have changed since."""
    scorer = kind(*args, **options)
    if (opened := str(run_signature(scorer))) != signature:
        raise ModelLoadError(
            f"{scorer.name}: was pickled as {signature}, and opened again it is {opened}. Make the scorer where it is used."
        )
    return scorer


def run(scorer: Scorer, items: Sequence[Item], *, progress: bool = False) -> Scores:
    """Score `items` in blocks of windows of `scorer.window`.

    Raises:
        InputError: an item is not of the scorer's level.
    """
    _check_level(scorer, items)
    rows: list[Row] = []
    size = block_size(scorer, BLOCK)
    with Progress(total=len(items), disable=not progress, unit="example", desc=scorer.name) as bar:
        for start in range(0, len(items), size):
            rows += score_block(scorer, items[start : start + size], bar.update)
    scores = scores_of(scorer, items, scorer.normalise_rows(rows))
    warn_incomplete(scorer, scores.n_total, scores.unscored_by_reason, count_truncated(scorer, scores))
    if len(scores.out_of_scope) > WARNED_FROM * scores.n_scored:
        logger.warning("%s: %s", scorer.name, out_of_scope_text(scores.out_of_scope_by_kind, scores.n_scored))
    return scores


def block_size(scorer: Scorer, most: int) -> int:
    """Return how many items are scored together: few for a slow scorer, as a killed run loses a block."""
    return min(most, _WINDOWS_IN_BLOCK * scorer.window)


def score_block(scorer: Scorer, items: Sequence[Item], advance: Callable[[int], object] = lambda n: None) -> list[Row]:
    """Score items that share a scorer's caches; `advance` is called with the size of each window.

    The caller warns of incomplete rows once, by `warn_incomplete`.
    """
    _check_level(scorer, items)
    rows: list[Row] = []
    with scorer.lock:
        scorer.reset_cache()
        for start in range(0, len(items), scorer.window):
            window = items[start : start + scorer.window]
            rows += score_rows(scorer, window)
            advance(len(window))
    return rows


def scores_of(scorer: Scorer, items: Sequence[Item], rows: Sequence[Row]) -> Scores:
    """Return the table of the final rows of items, with the columns `percentile` and `in_scope` if the scorer has them.

    A row out of scope has no percentile.
    """
    scores = Scores.from_rows(rows, items, scorer.columns, run_signature(scorer), scorer.level, scorer.orientation)
    scores = replace(scores, judges=scorer.judges, has_one_scale=scorer.has_one_scale)
    columns, values, reasons = dict(scores.columns), scores.values, {}
    if scorer.scope is not None:
        known = enumerate(zip(values, scorer.scope_of(items), strict=True))
        reasons = {place: reason for place, (value, reason) in known if value is not None and reason is not None}
    if scorer.percentiles is not None:
        percentiles = enumerate(scorer.percentiles_of(scores))
        columns[PERCENTILE] = tuple(None if place in reasons else value for place, value in percentiles)
    if scorer.scope is not None:
        columns[IN_SCOPE] = tuple(None if value is None else float(place not in reasons) for place, value in enumerate(values))
    return replace(scores, columns=columns, out_of_scope=reasons)


def refuse_parts(scorer: Scorer) -> None:
    """Raise an error for a scorer that needs all items at once."""
    if scorer.needs_whole_run:
        raise InputError(
            f"{scorer.name}: with these options it looks at all examples at once, and here it has a part of them. "
            "Score them as one list, or as one file without shards."
        )


def count_truncated(scorer: Scorer, scores: Scores) -> Counter[str]:
    """Return the number of rows with truncated texts by the column that counts these."""
    return Counter({name: sum(bool(value) for value in scores.columns[name]) for name in scorer.truncation_columns})


def warn_incomplete(scorer: Scorer, n_total: int, unscored: Mapping[str, int], cut: Mapping[str, int]) -> None:
    """Warn of rows without a score, by reason, and of truncated texts, counted by `count_truncated`."""
    if unscored:
        logger.warning("%s: %d of %d examples have no score: %s", scorer.name, sum(unscored.values()), n_total, dict(unscored))
    for column, lost in scorer.truncation_columns.items():
        if cut[column]:
            logger.warning("%s: in %d of %d examples %s", scorer.name, cut[column], n_total, lost)


def run_signature(scorer: Scorer) -> Signature:
    """Return the signature of a run: everything that can change its numbers."""
    return Signature({**scorer.signature_fields(), "level": scorer.level, "version": __version__})


def percentile_settings(scorer: Scorer) -> dict[str, str | int | float | bool]:
    """Return the settings for which a table of percentiles is valid: everything that can change a score except the model.

    A backend whose scores agree with torch's uses torch's table.
    """
    fields = {name: value for name, value in scorer.signature_fields().items() if value is not None}
    backend, *inexact = RUNTIME_FIELDS
    if fields.keys().isdisjoint(inexact):
        fields.pop(backend, None)
    return {name: value for name, value in fields.items() if value != scorer.model_hash}


def read_percentiles(scorer: Scorer, folder: Path) -> PercentileTable | None:
    """Return the table in the model's folder that was made with the scorer's settings; None if there is none."""
    own = (scorer.columns[0], scorer.level, scorer.orientation, percentile_settings(scorer))
    return next((table for table in read_tables(folder) if table.is_for(*own)), None)


def _check_level(scorer: Scorer, items: Sequence[Item]) -> None:
    names: dict[type, str] = {Example: "a response", Dialogue: "a whole dialogue"}
    expected, other = (Example, "dialogue") if scorer.level == "turn" else (Dialogue, "turn")
    for index, item in enumerate(items):
        if not isinstance(item, expected):
            option = (
                f", or set its option, as by --option level={other}" if other in scorer.levels and type(item) in names else ""
            )
            raise InputError(
                f"{scorer.name}: item {index} is {names.get(type(item), repr(item))}, but this scorer works at {scorer.level} "
                f"level. Pass {expected.__name__} objects{option}."
            )


def score_key(item: Item) -> tuple[Any, ...]:
    """Return everything that a score may depend on: all fields except id, system and ratings."""
    if isinstance(item, Dialogue):
        return (tuple(map(_turn_key, item.turns)),)
    return (tuple(map(_turn_key, item.context)), _turn_key(item.response), item.references, item.facts)


_turn_key = attrgetter("text", "speaker")  # plain tuples hash faster than turns


def score_rows(scorer: Scorer, items: Sequence[Item]) -> list[Row]:
    """Score at most a window of items, equal ones once; return one row per item, finite or unscored."""
    numbers: dict[tuple[Any, ...], int] = {}
    distinct: list[Item] = []
    places = []
    for item in items:
        place = numbers.setdefault(score_key(item), len(distinct))
        if place == len(distinct):
            distinct.append(item)
        places.append(place)
    rows: list[Row | None] = [scorer.unscorable(item) for item in distinct]
    scorable = [place for place, reason in enumerate(rows) if reason is None]
    if scorable:
        with scorer.lock:
            scored = _score_batch(scorer, [distinct[place] for place in scorable])
        for place, row in zip(scorable, scored, strict=True):
            rows[place] = finite_or_unscored(row)
    return [cast("Row", rows[place]) for place in places]


def _score_batch(scorer: Scorer, items: Sequence[Item]) -> list[Row]:
    """Call the scorer; if memory runs out, item by item. The log names the items of any other error."""
    try:
        rows = scorer.score_batch(items)
    except DialevalError:
        raise
    except Exception as error:
        if not _is_out_of_memory(error):
            first, last = items[0].id, items[-1].id
            named = f"item {first!r}" if len(items) == 1 else f"one of the {len(items)} items from {first!r} to {last!r}"
            logger.error("%s: failed on %s", scorer.name, named)
            raise
        if len(items) == 1:
            return [Unscored(Reason.CONTEXT_TOO_LONG, f"memory does not suffice ({str(error) or type(error).__name__})")]
        return [row for item in items for row in _score_batch(scorer, [item])]
    if len(rows) != len(items):
        raise RuntimeError(f"{scorer.name}.score_batch returned {len(rows)} rows for {len(items)} items")
    return rows


def _is_out_of_memory(error: Exception) -> bool:
    """Whether the error is Python's, numpy's, or torch's, which has its own type on GPUs and only a text on CPUs."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))
    )
