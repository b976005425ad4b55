"""What the task files under `tasks/dbdc/` name: annotated system turns as documents, and the metrics of DBDC.

A language model is a breakdown detector by the probabilities that it gives the three labels; a scorer through
`--model dialogue-metric` by P(NB) = g and P(B) = 1 - g. Beside every metric stands what a detector earns that calls every turn
a breakdown.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.corpora.readers import dbdc
from dialeval_plugin.corpora.readers.dbdc import Annotations, Split
from dialeval_plugin.methods.judging.breakdown_prompts import BreakdownPrompt, breakdown_prompt, distribution_of_forms
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate
from dialeval_plugin.statistics.breakdown.detection import (
    ALWAYS_BREAKDOWN,
    METRICS,
    breakdown_metrics,
    strict_labels,
)

from .aggregation import ROUNDS, SEED, Undefined, undefined, why_unscored
from .documents import item_columns, item_features
from .scorer_answers import verdict_of
from .task_data import task_data

logger = logging.getLogger(__name__)

BASELINE = "always_breakdown_"
_FIELDS = {"": "value", "_ci_low": "ci_low", "_ci_high": "ci_high"}
_PARTS: dict[str, tuple[str, str, bool]] = {
    **{f"{name}{bound}": (name, field, False) for name in METRICS for bound, field in _FIELDS.items()},
    **{f"{BASELINE}{name}": (name, "value", True) for name in METRICS},
}
_BOOTSTRAP = Bootstrap(ROUNDS, seed=SEED)
TASK_METRICS = (*_PARTS, "n_scored", "n_unscored")
"""Names of the metrics, as in the task files."""


class Detected(NamedTuple):
    """What a detector said of one system turn, and what the annotators did."""

    distribution: tuple[float, float, float] | None
    """None where the turn is unscored."""
    counts: tuple[int, int, int]
    cluster: str
    unscored: str | None = None
    """Why it is, where the scorer says so: a value of `scoring.Reason`."""


@task_data()
def dbdc_dataset(
    *,
    system: str,
    answers: str = "letters",
    annotations: str = "revised",
) -> dict[str, Any]:
    """Build the data set of a task over the English turns of one system: evaluation turns, and development turns as examples.

    Args:
        system: "cic", "iris", "tktk" or "yi".
        answers: how the labels are spelled; see `breakdown_prompts`.
        annotations: "revised", or "original" for those of the challenge; they differ for cic and yi.

    Raises:
        InputError: there is no such system, spelling or set of annotations.
        MissingPrerequisite: DBDC3 is not on this machine.
    """
    prompt = breakdown_prompt(answers)
    rows = {}
    splits: tuple[Split, ...] = ("eval", "dev")
    for split in splits:
        dialogues = dbdc.read(system, split=split, annotations=cast("Annotations", annotations))
        rows[split] = [_document(response, found.whole.id, prompt) for found in dialogues for response in found.responses]
    return {"test": _dataset(rows["eval"]), "dev": _dataset(rows["dev"])}


def process_breakdown(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Detected]:
    """Return the distribution and the annotators' counts of one turn under the name of every metric.

    The distribution is None where the model gives no label any probability: such a turn is unscored.
    """
    distribution = distribution_of_forms([value for value, _ in results])
    no, possible, yes = doc["counts"]
    unscored = verdict.unscored if (verdict := verdict_of(results)) else None
    return dict.fromkeys(TASK_METRICS, Detected(distribution, (no, possible, yes), doc["cluster"], unscored))


def metrics_of(items: Sequence[Detected], bootstrap: Bootstrap = _BOOTSTRAP) -> dict[str, Estimate]:
    """Return the metrics of the turns with an answer, with intervals that resample dialogues."""
    return _metrics(_plain(items), bootstrap, is_baseline=False)


def baseline_of(items: Sequence[Detected]) -> dict[str, Estimate]:
    """Return the metrics of calling every one of the same turns a breakdown, without intervals."""
    return _metrics(_plain(items), Bootstrap(0), is_baseline=True)


def n_scored(items: Sequence[Detected]) -> int:
    """How many turns have an answer: the number that every metric of the task rests on."""
    return sum(Detected(*item).distribution is not None for item in items)


def n_unscored(items: Sequence[Detected]) -> int:
    """How many turns have none."""
    return len(items) - n_scored(items)


def __getattr__(name: str) -> Callable[[Sequence[Detected]], float | Undefined]:
    """Make the aggregation of a metric, as `f1_b_ci_low`: the task files name each as a function of this module."""
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    metric, field, is_baseline = _PARTS[name]

    def aggregate(items: Sequence[Detected]) -> float | Undefined:
        found = (baseline_of if is_baseline else metrics_of)(items)[metric]
        value: float | None = getattr(found, field)
        if value is None:
            return undefined(found.reason, why_unscored((Detected(*item) for item in items), "distribution"))
        return value

    aggregate.__name__ = aggregate.__qualname__ = name
    return aggregate


def _plain(items: Sequence[Detected]) -> tuple[Detected, ...]:
    # Items that went through the host's gathering may have become plain sequences.
    return tuple(Detected(None if item[0] is None else tuple(item[0]), tuple(item[1]), *item[2:]) for item in items)  # type: ignore[arg-type]


@functools.lru_cache(maxsize=16)
def _metrics(items: tuple[Detected, ...], bootstrap: Bootstrap, *, is_baseline: bool) -> dict[str, Estimate]:
    said: list[tuple[float, float, float] | None] = [item.distribution for item in items]
    if is_baseline:
        said = [None if distribution is None else ALWAYS_BREAKDOWN for distribution in said]
    found = breakdown_metrics(
        said,
        [item.counts for item in items],
        clusters=[item.cluster for item in items],
        bootstrap=bootstrap,
    )
    for metric in () if is_baseline else found.values():
        if metric.value is None:
            logger.warning("no metric: %s", metric.reason)
    return found


def _document(example: Example, dialogue: str, prompt: BreakdownPrompt) -> dict[str, Any]:
    counts = dbdc.counts(example)
    (label,) = strict_labels([counts]).tolist()
    return {
        **item_columns(example),
        "cluster": dialogue,
        "counts": list(counts),
        "label": label,
        "instruction": prompt.instruction,
        "question": prompt.question(example),
        "example": prompt.shown(example),
        "choices": list(prompt.forms),
        # The samplers ask for it: in other tasks a document may stand for a set that is not there. DBDC3 is one file.
        "is_absent": False,
    }


def _dataset(rows: list[dict[str, Any]]) -> Any:
    from datasets import Dataset, Features, List, Value

    text, number = Value("string"), Value("int64")
    features = Features(
        {
            **item_features(),
            "cluster": text,
            "counts": List(number),
            "label": number,
            **dict.fromkeys(("instruction", "question", "example"), text),
            "choices": List(text),
            "is_absent": Value("bool"),
        }
    )
    return Dataset.from_list(rows, features=features)
