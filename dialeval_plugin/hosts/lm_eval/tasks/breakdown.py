"""The tasks `dbdc`: annotated system turns, the label distribution of each, and agreement with annotators by DBDC's metrics.

A language model acts as a breakdown detector by its probabilities of the three labels. A scorer does so through the model
`dialogue-metric`, by P(NB) = g and P(B) = 1 - g. Each metric is reported with that of a baseline that calls every turn a
breakdown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.corpora.readers import dbdc
from dialeval_plugin.corpora.readers.dbdc import Annotations, DbdcSplit
from dialeval_plugin.hosts.lm_eval.run import task_data
from dialeval_plugin.methods.judging.goodness import distribution_of_forms
from dialeval_plugin.methods.judging.prompts import BreakdownPrompt, breakdown_prompt
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate
from dialeval_plugin.statistics.breakdown import ALWAYS_BREAKDOWN, METRICS, breakdown_metrics, strict_labels

from .corpus_metrics import CorpusMetrics, Undefined, undefined
from .documents import data_sets, item_columns, verdict_of

LOWER_IS_BETTER = tuple(name for name in METRICS if name.startswith(("jsd_", "mse_")))


class Detected(NamedTuple):
    """Distributions of one system turn: the detector's and the annotators'."""

    distribution: tuple[float, float, float] | None
    """The detector's distribution; None if the turn is unscored."""
    counts: tuple[int, int, int]
    cluster: str
    unscored: str | None = None


def _metrics(items: Sequence[Detected], bootstrap: Bootstrap) -> dict[str, Estimate | float | Undefined]:
    """Return the metrics of turns with an answer, with intervals that resample dialogues, and the baseline's metrics."""
    distributions = [item.distribution for item in items]
    counts, clusters = [item.counts for item in items], [item.cluster for item in items]
    metrics = breakdown_metrics(distributions, counts, clusters=clusters, bootstrap=bootstrap)
    figures: dict[str, Estimate | float | Undefined] = {**metrics}
    always = [None if distribution is None else ALWAYS_BREAKDOWN for distribution in distributions]
    for name, metric in breakdown_metrics(always, counts, clusters=clusters, bootstrap=Bootstrap(0)).items():
        figures[f"always_breakdown_{name}"] = undefined(metric.reason) if metric.value is None else metric.value
    return figures


BREAKDOWNS = CorpusMetrics(Detected, _metrics, "f1_b", score="distribution")
f1_b, f1_b_ci_low, f1_b_ci_high, n_scored = BREAKDOWNS.aggregations()


@task_data()
def dbdc_dataset(*, dataset: str, answers: str = "letters", annotations: str = "revised") -> dict[str, Any]:
    """Build the data set of a task over the English turns of one system: evaluation turns, and development turns as examples.

    Args:
        dataset: the system, "cic", "iris", "tktk" or "yi".
        answers: how the labels are spelled; see `BREAKDOWN_PROMPTS`.
        annotations: "revised", or "original" for those of the challenge; they differ for cic and yi.
    """
    prompt = breakdown_prompt(answers)

    def rows(split: DbdcSplit) -> list[dict[str, Any]]:
        dialogues = dbdc.read(dataset, split=split, annotations=cast("Annotations", annotations))
        return [_document(response, one.whole.id, prompt) for one in dialogues for response in one.responses]

    return data_sets(test=rows("eval"), dev=rows("dev"))


def process_breakdown(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Detected]:
    """Return the distribution and the annotators' counts of one turn under the name of every metric.

    The distribution is None if the model gives no label any probability: such a turn is unscored.
    """
    distribution = distribution_of_forms([value for value, _ in results])
    no, possible, yes = doc["counts"]
    unscored = verdict.unscored if (verdict := verdict_of(results)) else None
    return BREAKDOWNS.of_document(Detected(distribution, (no, possible, yes), doc["cluster"], unscored))


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
        # The samplers need it: in other tasks a document may be a placeholder for an absent set. DBDC3 is one file.
        "is_absent": False,
    }
