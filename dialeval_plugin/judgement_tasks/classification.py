"""The lm-eval tasks over DailyDialog++: is a response positive or negative (SLIDE's Table 1), by choice and by generation.

The host calls the functions that the files in `tasks/dailydialog_pp/` name. An answer that cannot be read, and a choice whose
answers all have probability 0, are unscored: not wrong, but left out of the accuracies and counted.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from lm_eval.api.samplers import ContextSampler

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.catalogue import locate
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers import dailydialog_pp
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.methods.judging.classification import (
    INSTRUCTION,
    POSITIVE,
    PRINTED_EXAMPLES,
    ClassificationPrompt,
    example_texts,
    question,
    read_label,
)
from dialeval_plugin.methods.judging.goodness import goodness, merge_forms
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate
from dialeval_plugin.statistics.means import balanced_mean_interval, mean_interval

from .aggregation import ROUNDS, SEED, Undefined, undefined, why_unscored
from .documents import item_columns, item_features, item_of
from .scorer_answers import verdict_of
from .task_data import task_data

logger = logging.getLogger(__name__)

FORMS = ("Positive", "Negative", "positive", "negative")
"""Continuations that are asked for: the answer to a positive response, to a negative one, and their other spellings, whose
probabilities are added."""
KINDS = ("positive", "adversarial", "random")
METRICS = (
    *(f"accuracy_{kind}{bound}" for kind in (*KINDS, "overall") for bound in ("", "_ci_low", "_ci_high")),
    "n_scored",
    "n_unscored",
)
"""Names of the metrics, as in the task files."""

Document = Mapping[str, Any]


class Classified(NamedTuple):
    """What became of one response."""

    kind: str
    hit: float | None
    """1.0 where the answer is the response's label, 0.0 where it is the other one, None where there is none."""
    cluster: str
    unscored: str | None = None
    """Why there is none, where a scorer says so: a value of `scoring.Reason`."""


@task_data()
def dailydialog_pp_dataset() -> dict[str, Any]:
    """Build the data set over DailyDialog++'s test contexts, one document a response.

    Raises:
        MissingPrerequisite: `test.json` is not on this machine.
    """
    path = locate("dailydialog_pp") / "test.json"
    if not path.is_file():
        raise MissingPrerequisite(
            f"{path.parent}: has no test.json. `dialeval data fetch dailydialog_pp` says where it is to be had; put it there."
        )
    return _dataset(dailydialog_pp.read(path))


@task_data()
def mini_dataset() -> dict[str, Any]:
    """Build the data set over the test split of the embedded corpus, whose labels are by construction."""
    return _dataset(mini.read_response_sets("test"))


def process_choice(doc: Document, results: Sequence[tuple[float, bool]]) -> dict[str, Classified]:
    """Return what became of a document whose choices were scored: the likelier label counts, positive where both are equal."""
    merged = merge_forms((form, value) for form, (value, _) in zip(doc["choices"], results, strict=True))
    share = goodness(merged["positive"], merged["negative"])
    return _result(doc, None if share is None else share >= 0.5, results)


def process_generation(doc: Document, results: Sequence[str]) -> dict[str, Classified]:
    """Return what became of a document that was answered with text."""
    item = cast("Example", item_of(doc))
    # The host keeps no prompt: it is put together again, so that its examples are not read as the answer where it is echoed.
    label = read_label(results[0], ClassificationPrompt().render(item), item)
    return _result(doc, None if isinstance(label, Unscored) else label == POSITIVE, results)


class PrintedExamples(ContextSampler):  # type: ignore[misc]  # the host is not typed
    """The examples that the paper prints, in its order; those of the dialogue under test are left out."""

    def sample(
        self, n: int, eval_doc: Document | None = None, df: Sequence[Document] | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the first `n` printed examples, fewer where some of them are of the tested dialogue.

        Raises:
            InputError: more examples are asked for than the paper prints.
        """
        if n > len(PRINTED_EXAMPLES):
            raise InputError(
                f"few-shot examples: {n} were asked for, but the paper prints {len(PRINTED_EXAMPLES)}. "
                "Ask for fewer (--num_fewshot)."
            )
        shown = PRINTED_EXAMPLES[:n]
        item = item_of(eval_doc) if eval_doc is not None else None
        if isinstance(item, Example):
            shown = ClassificationPrompt(shown).shown_for(item)
        return [
            {**_document(one.example, POSITIVE if one.label == POSITIVE else "adversarial"), "example": text}
            for one, text in zip(shown, example_texts(shown), strict=True)
        ]


def accuracy_positive(items: Sequence[Classified]) -> float | Undefined:
    """Share of the positive responses that are called positive, over those with an answer."""
    return _value(items, "positive", "value")


def accuracy_positive_ci_low(items: Sequence[Classified]) -> float | Undefined:
    """Lower bound of its 95 % interval, from a bootstrap over contexts."""
    return _value(items, "positive", "ci_low")


def accuracy_positive_ci_high(items: Sequence[Classified]) -> float | Undefined:
    """Upper bound of its interval."""
    return _value(items, "positive", "ci_high")


def accuracy_adversarial(items: Sequence[Classified]) -> float | Undefined:
    """Share of the adversarial responses that are called negative, over those with an answer."""
    return _value(items, "adversarial", "value")


def accuracy_adversarial_ci_low(items: Sequence[Classified]) -> float | Undefined:
    """Lower bound of its interval."""
    return _value(items, "adversarial", "ci_low")


def accuracy_adversarial_ci_high(items: Sequence[Classified]) -> float | Undefined:
    """Upper bound of its interval."""
    return _value(items, "adversarial", "ci_high")


def accuracy_random(items: Sequence[Classified]) -> float | Undefined:
    """Share of the responses to other contexts that are called negative, over those with an answer."""
    return _value(items, "random", "value")


def accuracy_random_ci_low(items: Sequence[Classified]) -> float | Undefined:
    """Lower bound of its interval."""
    return _value(items, "random", "ci_low")


def accuracy_random_ci_high(items: Sequence[Classified]) -> float | Undefined:
    """Upper bound of its interval."""
    return _value(items, "random", "ci_high")


def accuracy_overall(items: Sequence[Classified]) -> float | Undefined:
    """Mean of the accuracies on positive and adversarial responses, as in SLIDE's Table 1; random ones are no part of it."""
    return _value(items, "overall", "value")


def accuracy_overall_ci_low(items: Sequence[Classified]) -> float | Undefined:
    """Lower bound of its interval."""
    return _value(items, "overall", "ci_low")


def accuracy_overall_ci_high(items: Sequence[Classified]) -> float | Undefined:
    """Upper bound of its interval."""
    return _value(items, "overall", "ci_high")


def n_scored(items: Sequence[Classified]) -> int:
    """How many responses have an answer that could be read."""
    return sum(Classified(*item).hit is not None for item in items)


def n_unscored(items: Sequence[Classified]) -> int:
    """How many have none: they are in no accuracy."""
    return len(items) - n_scored(items)


def _value(items: Sequence[Classified], accuracy: str, name: str) -> float | Undefined:
    # Items that went through the host's gathering are plain tuples.
    classified = tuple(Classified(*item) for item in items)
    found = _accuracies(classified)[accuracy]
    value: float | None = getattr(found, name)
    return undefined(found.reason, why_unscored(classified, "hit")) if value is None else value


@functools.lru_cache(maxsize=32)
def _accuracies(items: tuple[Classified, ...]) -> dict[str, Estimate]:
    found = {}
    for kind in KINDS:
        chosen = [item for item in items if item.kind == kind]
        found[kind] = mean_interval(
            [item.hit for item in chosen], clusters=[item.cluster for item in chosen], bootstrap=Bootstrap(ROUNDS, seed=SEED)
        )
    pair = [item for item in items if item.kind in {"positive", "adversarial"}]
    found["overall"] = balanced_mean_interval(
        [item.hit for item in pair],
        [item.kind for item in pair],
        clusters=[item.cluster for item in pair],
        bootstrap=Bootstrap(ROUNDS, seed=SEED),
    )
    if unscored := sum(item.hit is None for item in items):
        logger.warning("%d of %d responses have no readable answer; they are in no accuracy", unscored, len(items))
    return found


def _result(doc: Document, is_positive: bool | None, results: Sequence[Any]) -> dict[str, Classified]:
    hit = None if is_positive is None else float(is_positive == (doc["kind"] == POSITIVE))
    unscored = verdict.unscored if (verdict := verdict_of(results)) else None
    return dict.fromkeys(METRICS, Classified(doc["kind"], hit, doc["cluster"], unscored))


def _dataset(sets: Sequence[ResponseSet]) -> dict[str, Any]:
    from datasets import Dataset, Features, List, Value

    rows = [_document(example, kind) for item in sets for kind, example in zip(_kinds(item), item.examples(), strict=True)]
    text = Value("string")
    columns = {
        **item_features(),
        **dict.fromkeys(("kind", "cluster", "instruction", "question", "example", "answer"), text),
        "choices": List(text),
        "label": Value("int64"),
    }
    return {"test": Dataset.from_list(rows, features=Features(columns))}


def _kinds(item: ResponseSet) -> list[str]:
    """The kind of each response, in the order of `ResponseSet.examples`."""
    return [*["positive"] * len(item.positive), *["random"] * len(item.random), *["adversarial"] * len(item.adversarial)]


def _document(example: Example, kind: str) -> dict[str, Any]:
    label = 0 if kind == POSITIVE else 1
    return {
        **item_columns(example),
        "kind": kind,
        "cluster": context_key(example),
        "instruction": INSTRUCTION,
        "question": question(example),
        "example": "",
        "answer": FORMS[label],
        "choices": list(FORMS),
        "label": label,
    }
