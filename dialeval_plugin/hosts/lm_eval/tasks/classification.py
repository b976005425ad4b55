"""The tasks `dailydialog_pp`: responses classified as positive or negative (SLIDE's Table 1), by choice and by generation.

An answer that cannot be read, and a choice whose answers all have probability 0, are unscored: left out of the accuracies, not
counted as wrong, and counted separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, cast

from annotated_types import Interval

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers import dailydialog_pp
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.hosts.lm_eval.run import task_data
from dialeval_plugin.methods.judging import classification
from dialeval_plugin.methods.judging.goodness import goodness, merge_forms
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate
from dialeval_plugin.statistics.means import balanced_mean_interval, mean_interval

from .corpus_metrics import CorpusMetrics
from .documents import data_sets, item_columns, item_of, verdict_of

FORMS = ("Positive", "Negative", "positive", "negative")
"""Continuations that are scored: positive and negative, and their other spellings, whose probabilities are added."""
KINDS = ("positive", "adversarial", "random")

Document = Mapping[str, Any]


class Classified(NamedTuple):
    """Whether one response was classified correctly."""

    kind: str
    hit: Annotated[float, Interval(ge=0, le=1)] | None
    """1.0 if the answer is the response's label, 0.0 if it is the other one, None without an answer."""
    cluster: str
    unscored: str | None = None


def _accuracies(items: Sequence[Classified], bootstrap: Bootstrap) -> dict[str, Estimate]:
    """Return the share of right labels among answered responses of each kind; positive and adversarial ones are balanced.

    The overall accuracy is the mean of those on positive and adversarial responses, as in Table 1, without random ones.
    """
    accuracies: dict[str, Estimate] = {}
    for kind in KINDS:
        chosen = [item for item in items if item.kind == kind]
        clusters = [item.cluster for item in chosen]
        accuracies[f"accuracy_{kind}"] = mean_interval([item.hit for item in chosen], clusters=clusters, bootstrap=bootstrap)
    pair = [item for item in items if item.kind in {"positive", "adversarial"}]
    hits, kinds, clusters = [item.hit for item in pair], [item.kind for item in pair], [item.cluster for item in pair]
    accuracies["accuracy_overall"] = balanced_mean_interval(hits, kinds, clusters=clusters, bootstrap=bootstrap)
    return accuracies


ACCURACIES = CorpusMetrics(Classified, _accuracies, "accuracy_overall", score="hit")
accuracy_overall, accuracy_overall_ci_low, accuracy_overall_ci_high, n_scored = ACCURACIES.aggregations()


@task_data()
def dailydialog_pp_dataset() -> dict[str, Any]:
    """Build the data set over DailyDialog++'s test contexts, one document per response."""
    path = dailydialog_pp.CORPUS.folder() / "test.json"
    if not path.is_file():
        raise MissingPrerequisite(
            f"{path.parent}: has no test.json. `dialeval data fetch dailydialog_pp` says where it is to be had; put it there."
        )
    return _dataset(dailydialog_pp.read(path))


@task_data()
def mini_dataset() -> dict[str, Any]:
    """Build the data set over the test split of the embedded corpus, whose labels are set by construction."""
    return _dataset(mini.read_response_sets("test"))


def process_choice(doc: Document, results: Sequence[tuple[float, bool]]) -> dict[str, Classified]:
    """Return the classification of a document whose choices were scored: the likelier label, positive if both are equal."""
    merged = merge_forms((form, value) for form, (value, _) in zip(doc["choices"], results, strict=True))
    share = goodness(merged["positive"], merged["negative"])
    return _result(doc, None if share is None else share >= 0.5, results)


def process_generation(doc: Document, results: Sequence[str]) -> dict[str, Classified]:
    """Return the classification of a document that was answered with text."""
    item = cast("Example", item_of(doc))
    # The host keeps no prompt, so it is rebuilt: if the answer echoes it, its examples must not be read as the answer.
    label = classification.read_label(results[0], classification.ClassificationPrompt().render(item), item)
    return _result(doc, None if isinstance(label, Unscored) else label == classification.POSITIVE, results)


def _result(doc: Document, is_positive: bool | None, results: Sequence[Any]) -> dict[str, Classified]:
    hit = None if is_positive is None else float(is_positive == (doc["kind"] == classification.POSITIVE))
    unscored = verdict.unscored if (verdict := verdict_of(results)) else None
    return ACCURACIES.of_document(Classified(doc["kind"], hit, doc["cluster"], unscored))


def _dataset(sets: Sequence[ResponseSet]) -> dict[str, Any]:
    rows = (document(example, kind) for item in sets for example, kind in zip(item.examples(), item.kinds, strict=True))
    return data_sets(test=list(rows))


def document(example: Example, kind: str) -> dict[str, Any]:
    """Return the row of one response; `kind` is one of `KINDS`."""
    label = 0 if kind == classification.POSITIVE else 1
    return {
        **item_columns(example),
        "kind": kind,
        "cluster": context_key(example),
        "instruction": classification.INSTRUCTION,
        "question": classification.question(example),
        "example": "",
        "answer": FORMS[label],
        "choices": list(FORMS),
        "label": label,
    }
