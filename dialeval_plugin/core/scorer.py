"""What a method is, a `Scorer`, and the pipeline that all share: windows of bounded memory, blocks, progress."""

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

from dialeval_plugin.terminal.progress import Progress
from dialeval_plugin.version import __version__

from .dialogue import Dialogue, Example, Item, Level, is_blank
from .errors import DialevalError, InputError, ModelLoadError
from .journal import CallLock
from .percentiles import PERCENTILE, PercentileTable, read_tables
from .scope import WARNED_FROM, Scope, out_of_scope_text
from .scores import BLANK_RESPONSE, IN_SCOPE, Orientation, Reason, Row, Scores, Unscored, finite_or_unscored
from .signature import RUNTIME_FIELDS, Signature, SignatureValue

logger = logging.getLogger(__name__)

_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)

NOT_BLAMED = "nothing stands out"
"""An explanation where no quality is to blame."""
BLOCK = 4096
"""The most items that are scored together; a file of scores is kept block by block."""
_WINDOWS_IN_BLOCK = 4


class Scorer(ABC):
    """A method that scores examples.

    A subclass fills `score_batch` and `signature_fields`, and where it takes options, decorates `__init__` by
    `options.with_options`; `score` is the shared pipeline, `run`. The score of an example depends on that example
    alone: not on its neighbours, their number or their order.

    Several threads may call one scorer: each window is scored by one thread at a time, to the scores that it has alone. A
    scorer goes through pickle as what it was made of, and opens its model again where it is read.
    """

    name: ClassVar[str]
    citation: ClassVar[str] = ""
    """BibTeX of the paper."""
    needs: ClassVar[tuple[str, ...]] = ()
    """What it cannot do without by default, beside a response and its context: "references", "llm", "trained model", ..."""
    packaged_model: ClassVar[str | None] = None
    """Folder of `pretrained/` that is taken where no model is named."""
    levels: ClassVar[tuple[Level, ...]] = ()
    """What it can score by its option `level`; without that option its `level` alone."""
    level: Level = "turn"
    orientation: Orientation = "higher"
    range: tuple[float, float] = (0.0, 1.0)
    """Lowest and highest value of the main column, for a host that wants a probability (SLIDE's small model: 0 to 2).
    An end that does not exist is infinite."""
    positive_from: float | None = None
    """Main score from which on a response is called positive (up to which, where lower is better); None: the middle of the
    range."""
    prompts_llm_itself: ClassVar[bool] = False
    """Whether the option `llm` is a `LanguageModel` that the scorer prompts on its own, instead of a judge with one prompt."""
    model_hash: str | None = None
    """Hash of the folder of the scorer's own model, as the signature has it."""
    percentiles: PercentileTable | None = None
    """Where a score stands among those of people's own responses; a run then has the column `percentile`. A scorer with a model
    of its own says `read_percentiles` when it is made."""
    scope: Scope | None = None
    """What its model knows; a run then has the column `in_scope`. A scorer with a model of its own says `Scope.read` when it is
    made."""
    judges: tuple[str, ...] = ()
    """Of a scorer that is made of others: columns, of which the first that has a value in a row has the score that counts."""
    described: Mapping[str, Any] = MappingProxyType({})
    """What stands of it in the file beside its scores, where the signature has only a hash."""
    has_one_scale: ClassVar[bool] = True
    """Whether what all judges say in the main column means the same; else no mean is taken over it."""
    window: ClassVar[int] = 2048
    """How many examples `score_batch` gets at once: enough to fill batches of texts of one length, few enough for memory."""

    lock: CallLock
    """Held while a window is scored, and by `one_at_a_time`."""

    def __init_subclass__(cls, **settings: Any) -> None:
        """Let the options of a class be those of its `__init__`, and not what `__new__` takes, which is anything."""
        super().__init_subclass__(**settings)
        made = inspect.signature(cls.__init__) if cls.__init__ is not object.__init__ else inspect.Signature([_SELF])
        cls.__signature__ = made.replace(parameters=list(made.parameters.values())[1:])  # type: ignore[attr-defined]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Keep what the scorer is made of."""
        scorer = super().__new__(cls)
        vars(scorer).update(lock=CallLock(), _made_of=(args, options))
        return scorer

    def __reduce__(self) -> tuple[Callable[..., Scorer], tuple[Any, ...]]:
        """Pickle what the scorer was made of, not its model."""
        return _made_again, (type(self), *self._made_of, str(run_signature(self)))

    _made_of: tuple[tuple[Any, ...], dict[str, Any]]

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, the main one first."""

    @property
    def truncation_columns(self) -> Mapping[str, str]:
        """Columns that count what did not fit into a window, each with what was lost; a run warns of each once."""
        return {}

    def unscorable(self, item: Item) -> Unscored | None:
        """Why `item` cannot have a score, whatever else is scored; None where it can. Such items never reach `score_batch`."""
        return BLANK_RESPONSE if isinstance(item, Example) and is_blank(item.response.text) else None

    @abstractmethod
    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score at most `window` items, none of them twice and none `unscorable`; one row an item, in their order."""

    @abstractmethod
    def signature_fields(self) -> dict[str, SignatureValue]:
        """Everything configured that can move a number; it names the method first."""

    def scope_of(self, items: Sequence[Item]) -> list[str | None]:
        """Return for each item in words why it is beyond what the model knows; None where it is not.

        The words before a bracket name the kind, by which a run counts. By default they come from `scope` and the texts alone.
        """
        return [None if self.scope is None else self.scope.beyond(item) for item in items]

    def is_unsure(self, row: Mapping[str, float | None], within: float) -> bool:
        """Whether the score of a row is so near to `positive_from`, `within` a share of the range, that it tells little."""
        low, high = self.range
        middle = (low + high) / 2 if self.positive_from is None else self.positive_from
        return abs(cast("float", row[self.columns[0]]) - middle) <= within * (high - low)

    def percentiles_of(self, scores: Scores) -> tuple[float | None, ...]:
        """Return the percentile of each row; none at all where there is no table."""
        return () if self.percentiles is None else self.percentiles.of(scores.columns[self.columns[0]])

    def explain(self, items: Sequence[Item]) -> list[str]:
        """Return for each item as text why it has its score, no score, or one that says nothing since it is out of scope.

        Raises:
            InputError: the scorer cannot say so.
        """
        found = []
        for item, reason in zip(items, self.scope_of(items), strict=True):
            missing = self.unscorable(item)
            found.append(missing.detail if missing else f"out of scope: {reason}" if reason else None)
        with self.lock:
            said = iter(self.explain_known([item for item, why in zip(items, found, strict=True) if why is None]))
        return [next(said) if why is None else why for why in found]

    def explain_known(self, items: Sequence[Item]) -> list[str]:
        """Explain items that can be scored and are in scope, see `explain`."""
        raise InputError(f"{self.name}: has nothing to explain. Leave --explain out.")

    def normalise_rows(self, rows: list[Row]) -> list[Row]:
        """Turn the rows of the whole run into the final ones; only a paper's whole-set normalisation needs it."""
        return rows

    @property
    def needs_whole_run(self) -> bool:
        """Whether `normalise_rows` looks at all rows of a run, which a stream never has."""
        return type(self).normalise_rows is not Scorer.normalise_rows

    def reset_cache(self) -> None:  # noqa: B027 - most scorers keep nothing
        """Forget what was kept of earlier items: what follows can be scored alone, to the same byte."""

    def score(self, items: Sequence[Item], *, progress: bool = False) -> Scores:
        """Score `items`, in order; all must be of this scorer's level."""
        return run(self, items, progress=progress)

    def score_stream(self, items: Iterable[Item], *, block: int = BLOCK) -> Iterator[Scores]:
        """Score any number of items in bounded memory, and yield the scores of each `block` of them, in order.

        Raises:
            InputError: the scorer needs all items at once.
        """
        refuse_parts(self)
        rest = iter(items)
        while taken := list(itertools.islice(rest, block)):
            yield scores_of(self, taken, score_block(self, taken))


def _made_again(kind: type[Scorer], args: tuple[Any, ...], options: dict[str, Any], signature: str) -> Scorer:
    """Make a scorer that was pickled; refuse one whose model, or whose packages, have changed since."""
    scorer = kind(*args, **options)
    if (found := str(run_signature(scorer))) != signature:
        raise ModelLoadError(
            f"{scorer.name}: was pickled as {signature}, and opened again it is {found}. Make the scorer where it is used."
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
    """Return how many items are scored together: few of those that take long, as a run that is killed loses a block."""
    return min(most, _WINDOWS_IN_BLOCK * scorer.window)


def score_block(scorer: Scorer, items: Sequence[Item], advance: Callable[[int], object] = lambda n: None) -> list[Row]:
    """Score items that share what a scorer keeps, as the vectors of contexts; `advance` is told the size of each window.

    It warns of nothing: whoever has all blocks does so once, by `warn_incomplete`.
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
    """Return the table of the final rows of items, with percentiles and what is in scope where the scorer knows of them.

    A score of what is out of scope has no percentile.
    """
    scores = Scores.from_rows(rows, items, scorer.columns, run_signature(scorer), scorer.level, scorer.orientation)
    scores = replace(scores, judges=scorer.judges, has_one_scale=scorer.has_one_scale)
    columns, values, reasons = dict(scores.columns), scores.values, {}
    if scorer.scope is not None:
        known = enumerate(zip(values, scorer.scope_of(items), strict=True))
        reasons = {place: reason for place, (value, reason) in known if value is not None and reason is not None}
    if scorer.percentiles is not None:
        found = enumerate(scorer.percentiles_of(scores))
        columns[PERCENTILE] = tuple(None if place in reasons else value for place, value in found)
    if scorer.scope is not None:
        columns[IN_SCOPE] = tuple(None if value is None else float(place not in reasons) for place, value in enumerate(values))
    return replace(scores, columns=columns, out_of_scope=reasons)


def refuse_parts(scorer: Scorer) -> None:
    """Refuse a scorer that needs all items at once, where it is given parts of them."""
    if scorer.needs_whole_run:
        raise InputError(
            f"{scorer.name}: with these options it looks at all examples at once, and here it has a part of them. "
            "Score them as one list, or as one file without shards."
        )


def count_truncated(scorer: Scorer, scores: Scores) -> Counter[str]:
    """Of each column that counts what did not fit into a window: in how many rows something did not."""
    return Counter({name: sum(bool(value) for value in scores.columns[name]) for name in scorer.truncation_columns})


def warn_incomplete(scorer: Scorer, n_total: int, unscored: Mapping[str, int], cut: Mapping[str, int]) -> None:
    """Warn once of rows without a score, by reason, and of what `count_truncated` counted."""
    if unscored:
        logger.warning("%s: %d of %d examples have no score: %s", scorer.name, sum(unscored.values()), n_total, dict(unscored))
    for column, lost in scorer.truncation_columns.items():
        if cut[column]:
            logger.warning("%s: in %d of %d examples %s", scorer.name, cut[column], n_total, lost)


def run_signature(scorer: Scorer) -> Signature:
    """Everything that can move a number of a run."""
    return Signature({**scorer.signature_fields(), "level": scorer.level, "version": __version__})


def percentile_settings(scorer: Scorer) -> dict[str, str | int | float | bool]:
    """What a table of percentiles holds for: everything that can move a score but the model, beside which it lies.

    A backend that computes what torch does has torch's table.
    """
    fields = {name: value for name, value in scorer.signature_fields().items() if value is not None}
    backend, *inexact = RUNTIME_FIELDS
    if fields.keys().isdisjoint(inexact):
        fields.pop(backend, None)
    return {name: value for name, value in fields.items() if value != scorer.model_hash}


def read_percentiles(scorer: Scorer, folder: Path) -> PercentileTable | None:
    """Return the table in the folder of the scorer's model that was made with its very settings; None without one."""
    own = (scorer.columns[0], scorer.level, scorer.orientation, percentile_settings(scorer))
    return next((table for table in read_tables(folder) if table.is_for(*own)), None)


def _check_level(scorer: Scorer, items: Sequence[Item]) -> None:
    expected = Example if scorer.level == "turn" else Dialogue
    for index, item in enumerate(items):
        if not isinstance(item, expected):
            raise InputError(
                f"{scorer.name}: item {index} is of type {type(item).__name__}, but this scorer works at {scorer.level} level. "
                f"Pass {expected.__name__} objects."
            )


def score_key(item: Item) -> tuple[Any, ...]:
    """What a score may depend on: all but the id, the system and the ratings; turns as plain tuples, which hash faster."""
    if isinstance(item, Dialogue):
        return (tuple(map(_said, item.turns)),)
    return (tuple(map(_said, item.context)), _said(item.response), item.references, item.facts)


_said = attrgetter("text", "speaker")


def score_rows(scorer: Scorer, items: Sequence[Item]) -> list[Row]:
    """Score at most a window of items: each distinct one that is not `Scorer.unscorable` once; one row an item, all finite."""
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
            found = _score_batch(scorer, [distinct[place] for place in scorable])
        for place, row in zip(scorable, found, strict=True):
            rows[place] = finite_or_unscored(row)
    return [cast("Row", rows[place]) for place in places]


def _score_batch(scorer: Scorer, items: Sequence[Item]) -> list[Row]:
    """Call the scorer; where memory does not suffice, item by item, so that one item takes no other's score with it.

    Any other error is the scorer's own; the log names the items that it had.
    """
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
    """Whether it is Python's or numpy's error, or one of torch's: that of a GPU has a type, that of a processor a text."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))
    )
