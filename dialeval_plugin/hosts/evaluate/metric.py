"""Every scorer as a metric of HuggingFace `evaluate`.

The host moves its inputs through arrow: it checks the type of the first row only, turns every other value into a string in
silence, requires columns that are optional here, and locks a cache file. Here every row is checked when it is added and kept in
memory as an `Example`, which avoids all of this. Its `evaluator` (0.4.6) fails with transformers 5, for any metric, because it
asks for the class TFPreTrainedModel; `compute` does not need it.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, overload

from dialeval_plugin.conversations.messages import left_out_text
from dialeval_plugin.conversations.reading import conversations_from
from dialeval_plugin.conversations.record import Conversation, ReadingOptions, check_choice
from dialeval_plugin.conversations.responses import context_and_response
from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, advice_for_list, check_text
from dialeval_plugin.core.errors import InputError, did_you_mean, unknown_name
from dialeval_plugin.core.locks import CallLock
from dialeval_plugin.core.registry import ADVICE, scorer_factory, scorer_names
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Scores
from dialeval_plugin.hosts.judges import load_scorer_with_judge, scorer_options
from dialeval_plugin.hosts.registration import importing

with importing("evaluate"):
    import datasets
    import evaluate

logger = logging.getLogger(__name__)

COLUMNS = ("predictions", "contexts", "references", "facts")
INPUTS = (*COLUMNS, "conversations", "turns")

HOST_SETTINGS = frozenset(inspect.signature(evaluate.Metric.__init__).parameters) - {"self", "kwargs"}

_INPUTS_DESCRIPTION = """
Args:
    predictions: the responses to judge, a list of strings or of chat messages as {{"role": "assistant", "content": ...}}.
    contexts: for every response the turns before it, a list of strings or of chat messages, oldest first; it may be empty.
    references: optional; for every response a string or a list of strings that are known to be good.
    facts: optional; for every response the persona lines or the knowledge that it may draw on, as `references`.
    conversations: instead of all these: whole conversations, as `dialeval_plugin.examples_from` takes them.
    turns: beside `conversations`: which of their turns are judged, "assistant", "all" (but the first) or "last".
    **options: of the scorer: {options}.

Returns:
    A dict: the mean score as `{name}` (None where no row has a score); `scores` and one list for every column of the
    scorer, with None where a row has no score; `n_total`, `n_scored`, `n_unscored`, and `unscored` with the number of rows
    by reason; `signature`, the string that pins everything that can move a number; of conversations `ids`, which name the
    conversation, from 0 where it has no id, and after a colon the number of the message, from 1.
"""


class MetricResult(dict[str, Any]):
    """Result of `compute`: a dict whose entries common to all scorers have static types.

    The mean under the metric's name is a float, or None if no row has a score; each further column is a list, like `scores`.
    """

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, name: Literal["scores"], /) -> list[float | None]: ...
        @overload
        def __getitem__(self, name: Literal["n_total", "n_scored", "n_unscored"], /) -> int: ...
        @overload
        def __getitem__(self, name: Literal["unscored"], /) -> dict[str, int]: ...
        @overload
        def __getitem__(self, name: Literal["signature"], /) -> str: ...
        @overload
        def __getitem__(self, name: str, /) -> Any: ...
        def __getitem__(self, name: str, /) -> Any: ...


class DialogueMetric(evaluate.Metric):  # type: ignore[misc] # the host has no types
    """A scorer behind the host's interface; a subclass, a shim in `metrics/` or of `load_metric`, only names the scorer.

    Options of the scorer can be given when the metric is loaded, and overridden when it computes. The loaded scorer is kept
    until the options change. Several threads may compute with one metric; each computes the rows that it adds.

    Args:
        config_name: the host's name for a variant; metrics of this package have none.
        **settings: the host's settings and the scorer's options. The inputs are always kept in memory.

    Raises:
        InputError: an option or a configuration does not exist.
    """

    scorer_name: ClassVar[str]
    loaded_as: ClassVar[str]
    """Set by `load_metric` on the classes that it makes or loads."""
    columns: ClassVar[tuple[str, ...]] = INPUTS
    singular: ClassVar[Mapping[str, str]] = {
        name.removesuffix("s"): name for name in ("predictions", "contexts", "references", "conversations")
    }
    """`add` takes one row, and the host uses singular column names there."""

    def __init__(self, config_name: str | None = None, **settings: Any) -> None:
        # The host uses `seed` itself; if it is also an option of the scorer, the user's value applies to both.
        options = self._accepted_options() or ()
        self._options = {name: value for name, value in settings.items() if name not in HOST_SETTINGS or name in options}
        self._check_options(self._options)
        if config_name not in (None, "default"):
            raise InputError(
                f"{self.scorer_name}: there is no configuration {config_name!r}. Pass what you want to compute() as an option."
            )
        if settings.get("num_process", 1) != 1:
            raise InputError(
                f"{self.scorer_name}: num_process is {settings['num_process']!r}, but this metric runs in one process. "
                "Gather the responses in one process and compute there."
            )
        self.lock = CallLock()
        self._rows: list[Any] = []
        self._has_added = False
        self._has_failed = False
        self._scorer: Scorer | None = None
        self._scorer_options: dict[str, Any] = {}
        host_settings = {name: value for name, value in settings.items() if name in HOST_SETTINGS}
        super().__init__(config_name, **{**host_settings, "keep_in_memory": True})

    def _info(self) -> evaluate.MetricInfo:
        factory, options = scorer_factory(self.scorer_name), scorer_options(self.scorer_name)
        shown = "any" if options is None else ", ".join(options) or "none"
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=inspect.getdoc(factory) or "",
            citation=getattr(factory, "citation", ""),
            inputs_description=_INPUTS_DESCRIPTION.format(name=self.scorer_name, options=shown),
            features=datasets.Features({"predictions": text, **dict.fromkeys(COLUMNS[1:], datasets.Sequence(text))}),
        )

    def _feature_names(self) -> list[str]:
        """Names of our columns; inside a combination, which looks each up in its inputs, only of the given ones."""
        names: list[str] = super()._feature_names()
        given = _given.get()
        return names if given is None else [name for name in names if name in given]

    def __len__(self) -> int:
        """Number of rows that were added and not computed yet."""
        return len(self._rows)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle a metric of `load_metric` by its name, as its class is in no module; unpickling loads the model again."""
        if name := vars(type(self)).get("loaded_as"):
            return load_metric, (name,), {**vars(self), "_scorer": None}
        return super().__reduce_ex__(protocol)

    def add(self, **row: Any) -> None:
        """Add one row: one value per column; column names may be in the singular."""
        self.add_batch(**{self.singular.get(name, name): None if row[name] is None else [row[name]] for name in row})

    def add_batch(self, **columns: Any) -> None:
        """Add rows, all or none. After a failed `compute`, adding starts over, as in the host; a repeated `compute` keeps them.

        Raises:
            InputError: a column is missing or unknown, columns differ in length, or a value has the wrong type.
        """
        for name in columns:
            if name not in self.columns:
                raise InputError(
                    f"{self.scorer_name}: there is no column {name!r}.{did_you_mean(name, self.columns)} "
                    f"Accepted are {', '.join(self.columns)}; "
                    "options belong to compute()."
                )
        with self.lock:
            if self._has_failed and self._rows:
                text = "%s: %d rows of the compute() that failed are left out: new rows begin anew"
                logger.warning(text, self.scorer_name, len(self._rows))
                self._rows = []
            self._has_failed = False
            self._rows.extend(self._read(columns))
            self._has_added = True

    def compute(self, **inputs: Any) -> MetricResult:
        """Compute the result of the rows that were added and those given here; `inputs` are columns and options.

        Raises:
            InputError: a column is missing, columns differ in length, a value has the wrong type, or an option is unknown.
            MissingPrerequisite: something that the scorer needs is missing; the message says how to get it.
        """
        with self.lock:
            self._has_failed = True
            options = {**self._options, **{name: value for name, value in inputs.items() if name not in self.columns}}
            self._check_options(options)
            columns = {name: value for name, value in inputs.items() if name in self.columns and value is not None}
            # The rows of a call that fails are not kept: repeating the call must not count them twice.
            rows = self._rows if self._has_added and not columns else [*self._rows, *self._read(columns)]
            result = self._result(rows, options)
            self._rows, self._has_added, self._has_failed = [], False, False
        return result

    def _accepted_options(self) -> Sequence[str] | None:
        """Names of the options; None if any is accepted."""
        return scorer_options(self.scorer_name)

    def _check_options(self, options: Mapping[str, Any]) -> None:
        accepted = self._accepted_options()
        unknown = [] if accepted is None else [name for name in options if name not in accepted]
        if unknown and accepted is not None:
            raise InputError(
                f"{self.scorer_name}: there is no input or option {unknown[0]!r}."
                f"{did_you_mean(unknown[0], [*self.columns, *accepted])} Accepted are the columns "
                f"{', '.join(self.columns)} and the options {', '.join(accepted) or '(none)'}."
            )

    def _read(self, columns: Mapping[str, Any]) -> list[Any]:
        try:
            return read_inputs(columns, first=len(self._rows))
        except InputError as error:
            raise InputError(f"{self.scorer_name}: {error}") from None

    def _result(self, rows: list[Any], options: dict[str, Any]) -> MetricResult:
        if self._scorer is None or options != self._scorer_options:
            self._scorer = None  # free the old model before loading the new one
            self._scorer = load_scorer_with_judge(self.scorer_name, options)
            self._scorer_options = options
        items = [item for row in rows for item in _items(row, self._scorer.level)]
        scores = self._scorer.score(items, progress=True)
        result = _result(self.scorer_name, scores)
        if any(isinstance(row, Conversation) for row in rows):
            result["ids"] = list(scores.ids)
        return result


_given: ContextVar[Set[str] | None] = ContextVar("given", default=None)
"""Names of the columns given to a combination (`evaluate.combine`); None outside of one."""


def _noting_columns(add: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(add)
    def noted(*values: Any, **columns: Any) -> None:
        token = _given.set({"predictions", "references"} | columns.keys())
        try:
            add(*values, **columns)
        finally:
            _given.reset(token)

    return noted


for _name in ("add", "add_batch"):
    setattr(evaluate.module.CombinedEvaluations, _name, _noting_columns(getattr(evaluate.module.CombinedEvaluations, _name)))


def _items(row: Example | Conversation, level: Level) -> list[Item]:
    if isinstance(row, Conversation):
        return row.items(level)
    # The last turn of a whole dialogue is in the column of responses.
    return [row if level == "turn" else Dialogue(row.id, (*row.context, row.response))]


def _result(name: str, scores: Scores) -> MetricResult:
    result = MetricResult(
        {
            name: scores.mean(),
            "scores": list(scores.values),
            "n_total": scores.n_total,
            "n_scored": scores.n_scored,
            "n_unscored": scores.n_unscored,
            "unscored": scores.unscored_by_reason,
            "signature": str(scores.signature),
        }
    )
    for column, values in scores.columns.items():
        if column == scores.main == name:
            continue  # it is under "scores"; the name holds the mean
        if column in result:
            raise RuntimeError(f"scorer {name!r} has a column {column!r}, which is the name of another entry of the result")
        result[column] = list(values)
    return result


def read_inputs(columns: Mapping[str, Any], first: int = 0) -> list[Example | Conversation]:
    """Read conversations, or the columns of `read_examples`, depending on the column names."""
    names = [name for name in INPUTS if columns.get(name) is not None]
    if "conversations" not in names:
        if "turns" in names:
            raise InputError("turns: chooses among the turns of conversations. Pass conversations, or leave it out.")
        return list(read_examples({name: value for name, value in columns.items() if name in COLUMNS}, first))
    if others := [name for name in names if name in COLUMNS]:
        raise InputError(f"conversations: have their contexts and responses in them. Leave {', '.join(others)} out.")
    choice = check_choice("turns", columns.get("turns"))
    return conversations_from(columns["conversations"], ReadingOptions(choice=choice), first=first)


def read_examples(columns: Mapping[str, Any], first: int = 0) -> list[Example]:
    """Build one example per row, with its number, counted from `first`, as the id; a column that is None counts as absent."""
    values = read_columns(columns, COLUMNS[:2], "response")
    examples = []
    left_out: Counter[str] = Counter()
    for index, prediction in enumerate(values["predictions"]):
        names = (f"contexts[{index}]", f"predictions[{index}]")
        context, response = context_and_response(as_list(values["contexts"][index], names[0]), prediction, names, left_out)
        references, facts = (
            _texts(values[name][index], f"{name}[{index}]", may_be_single=True) if name in values else ()
            for name in ("references", "facts")
        )
        examples.append(Example(str(first + index), context, response, references, facts))
    if left_out:
        logger.info("contexts: %s left out", left_out_text(left_out))
    return examples


def read_columns(columns: Mapping[str, Any], required: Sequence[str], row: str) -> dict[str, list[Any]]:
    """Return the columns with values as lists of one length, including the required ones; `row` names one entry in messages."""
    values = {name: as_list(column, name) for name, column in columns.items() if column is not None}
    for name in required:
        if name not in values:
            raise InputError(f"the column {name!r} is missing. Pass {' and '.join(required)}, one row for every {row}.")
    for name, rows in values.items():
        if len(rows) != len(values["predictions"]):
            raise InputError(
                f"the columns 'predictions' and {name!r} have {len(values['predictions'])} and {len(rows)} rows. "
                f"Pass one row of each for every {row}."
            )
    return values


def _texts(value: object, where: str, *, may_be_single: bool = False) -> tuple[str, ...]:
    if may_be_single and isinstance(value, str):
        return (check_text(value, where),)
    return tuple(check_text(text, f"{where}[{index}]") for index, text in enumerate(as_list(value, where)))


def as_list(value: object, where: str) -> list[Any]:
    """Return a list from a list, a tuple, a column of a dataset, an array or a series; raise an error for a single string."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise InputError(f"{where}: expected a list, got {value!r} ({type(value).__name__}). {advice_for_list(value)}")
    return list(value)


def metric_names() -> list[str]:
    """Return the names of this package's metrics, sorted."""
    return sorted(folder.name for folder in metrics_path().iterdir() if (folder / f"{folder.name}.py").is_file())


def load_metric(name: str, **options: Any) -> DialogueMetric:
    """Load a metric of this package, or any scorer as a metric, from any working directory, without access to the hub.

    Args:
        name: for example `general`; `dialeval scorers` lists all, including custom ones.
        **options: options of the scorer or the metric, used by every `compute`.

    Raises:
        InputError: the name or an option is unknown.
        MissingPrerequisite: the scorer's package cannot be imported.
    """
    if name in metric_names():
        # Only a path that ends in .py is never taken by the host for a name on the hub.
        metric: DialogueMetric = evaluate.load(str(metrics_path().resolve() / name / f"{name}.py"))
        type(metric).loaded_as = name
        # Not by the host's `load`, which uses some names itself: `revision` would never reach the scorer.
        return type(metric)(**options) if options else metric
    if name not in (known := scorer_names()):
        raise unknown_name(f"metric: there is no {name!r}", name, sorted({*known, *metric_names()}), ADVICE)
    # The host names a metric after its class.
    body = {"scorer_name": name, "__module__": __name__, "loaded_as": name}
    return cast("DialogueMetric", type(name, (DialogueMetric,), body)(**options))
