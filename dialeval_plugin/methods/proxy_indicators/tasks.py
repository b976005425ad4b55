"""The seven GLUE tasks whose classifiers indicate quality, and the meaning of their outputs.

A column is the probability of a label named here, not of a place in the output: the published code takes the last class of
every classifier, which for QNLI and RTE is "not_entailment".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.registry import check_fields

Entailment: TypeAlias = Literal["entailment", "not_entailment"]
Truncate: TypeAlias = Literal["right", "left"]

FACT = "fact_"
"""Prefix of columns for pairs (fact, response); others have pairs (context, response)."""


@dataclass(frozen=True, slots=True)
class GlueTask:
    """One task of GLUE (Wang et al. 2019) with its published classifier, of pairs or of the response only."""

    name: str
    is_pair: bool
    model: str
    labels: tuple[str, ...]
    """Classes in order, which its config.json does not name; () for a regression."""
    label: str | None
    """Label whose probability is the column; None for a regression, whose output is the column."""


def _task(name: str, title: str, *labels: str, label: str | None = None, is_pair: bool = True) -> GlueTask:
    return GlueTask(name, is_pair, f"textattack/bert-base-uncased-{title}", labels, label)


TASKS: Mapping[str, GlueTask] = MappingProxyType(
    {
        task.name: task
        for task in (
            _task("cola", "CoLA", "unacceptable", "acceptable", label="acceptable", is_pair=False),
            _task("sst", "SST-2", "negative", "positive", label="positive", is_pair=False),
            _task("mrpc", "MRPC", "not_equivalent", "equivalent", label="equivalent"),
            _task("qnli", "QNLI", "entailment", "not_entailment", label="entailment"),
            _task("qqp", "QQP", "not_duplicate", "duplicate", label="duplicate"),
            _task("rte", "RTE", "entailment", "not_entailment", label="entailment"),
            _task("stsb", "STS-B"),
        )
    }
)
"""Tasks by name, with the classifiers of the published code; MNLI and WNLI are not used."""

_SINGLE = tuple(name for name, task in TASKS.items() if not task.is_pair)
_CONTEXT = tuple(name for name, task in TASKS.items() if task.is_pair)
_FACT = tuple(f"{FACT}{name}" for name in _CONTEXT)
SUBSETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"single": _SINGLE, "context": _CONTEXT, "fact": _FACT, "all": (*_SINGLE, *_CONTEXT, *_FACT)}
)
"""Columns of the four regressions of the thesis' table 6.2."""
FEATURES = SUBSETS["all"]
"""All columns."""


def task_of(feature: str) -> GlueTask:
    """Return the task of a column."""
    if feature not in FEATURES:
        raise unknown_name(f"glue_proxy: there is no indicator {feature!r}", feature, FEATURES)
    return TASKS[feature.removeprefix(FACT)]


def subset(name: str) -> tuple[str, ...]:
    """Return the columns of the subset `name`."""
    if name not in SUBSETS:
        raise unknown_name(f"glue_proxy: there is no set of indicators {name!r}", name, SUBSETS)
    return SUBSETS[name]


@dataclass(frozen=True, slots=True)
class Choice:
    """The classifier of a task."""

    model: str
    """Folder or hub id; `id@revision` for a revision of the hub."""
    labels: tuple[str, ...] | None = None
    """Classes in order, if its config.json does not name them."""


DEFAULT_CHOICES: Mapping[str, Choice] = MappingProxyType({name: Choice(task.model) for name, task in TASKS.items()})


@dataclass(frozen=True, slots=True)
class IndicatorSettings:
    """Columns to compute, the classifier of each task, and handling of texts.

    Attributes:
        entailment: label of QNLI and RTE whose probability counts; the published numbers are of "not_entailment".
        absent_fact: text for examples without facts, "_nofact" in the published numbers; None leaves their columns empty.
        truncate: end at which too long a text is cut. "right", as in the published code, drops the newest turns of a context.
    """

    features: tuple[str, ...] = FEATURES
    classifiers: Mapping[str, Choice] = field(default_factory=lambda: DEFAULT_CHOICES)
    entailment: Entailment = "entailment"
    absent_fact: str | None = None
    truncate: Truncate = "right"

    def __post_init__(self) -> None:
        for feature in self.features:
            task_of(feature)
        check_fields(self, "glue_proxy")

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks of the columns."""
        return tuple(dict.fromkeys(task_of(feature).name for feature in self.features))

    def wanted_label(self, task: str) -> str | None:
        """Return the label whose probability is in the task's columns; None for a regression."""
        label = TASKS[task].label
        return self.entailment if label == "entailment" else label


Models: TypeAlias = Mapping[str, str] | str | None
LabelNames: TypeAlias = Mapping[str, Sequence[str]] | str | None


def read_choices(
    models: Models = None, labels: LabelNames = None, defaults: Mapping[str, Choice] = DEFAULT_CHOICES
) -> Mapping[str, Choice]:
    """Return the classifier of every task, from the user's options and the defaults.

    Options are mappings or texts: `rte=FOLDER;cola=OWNER/NAME` and `rte=entailment/not_entailment`.

    Example:
        >>> read_choices("rte=my/rte", "rte=entailment/not_entailment")["rte"]
        Choice(model='my/rte', labels=('entailment', 'not_entailment'))
    """
    chosen = dict(defaults)
    for task, model in _by_task(models, "models", "rte=FOLDER").items():
        chosen[task] = Choice(model)
    for task, names in _by_task(labels, "labels", "rte=entailment/not_entailment").items():
        labels_of_task = names.split("/") if isinstance(names, str) else names
        chosen[task] = Choice(chosen[task].model, tuple(labels_of_task))
    return MappingProxyType(chosen)


def _by_task(given: Mapping[str, Any] | str | None, option: str, form: str) -> dict[str, Any]:
    if isinstance(given, str):
        pairs = [part.partition("=") for part in given.split(";") if part]
        for task, mark, value in pairs:
            if not mark or not value:
                raise InputError(f"glue_proxy: {option}: expected TASK=VALUE parts such as {form}, got {task + mark!r}.")
        given = {task.strip(): value for task, _, value in pairs}
    for task in given or {}:
        if task not in TASKS:
            raise unknown_name(f"glue_proxy: {option}: there is no task {task!r}", task, TASKS)
    return dict(given or {})
