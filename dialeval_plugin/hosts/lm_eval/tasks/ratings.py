"""The tasks `dstc10_dialog`: rated responses and dialogues of DSTC10, the score of each, and its agreement with ratings."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Item, mean_rating
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import check_value, from_text
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.hosts.lm_eval.run import read_set, task_data
from dialeval_plugin.methods.judging.goodness import GEvalReading, goodness_of_forms
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.correlation import Correlation, correlations

from .corpus_metrics import CorpusMetrics
from .documents import Verdict, data_sets, document, verdict_of

logger = logging.getLogger(__name__)

COEFFICIENTS: Mapping[str, str] = {"spearman": "spearman", "pearson": "pearson", "kendall": "kendall_b"}
FETCH = "Type `dialeval data fetch dstc10`, or name a folder that has them in DIALEVAL_DATA_DIR."


class Variant(NamedTuple):
    """Another score of the same document, for example that of the small model alone."""

    name: str
    score: float | None
    unscored: str | None = None
    detail: str = ""


class Judged(NamedTuple):
    """A document's score, rating and cluster. The last three fields are for readers of the logged samples."""

    score: float | None
    """The score; None if the document is unscored."""
    rating: float
    cluster: str
    unscored: str | None = None
    """Reason for a missing score, if the scorer gives one: a value of `scores.Reason`."""
    variants: tuple[Variant, ...] = ()
    percentile: float | None = None
    """See `Verdict`."""
    out_of_scope: str | None = None
    """See `Verdict`."""

    def by(self, variant: str) -> Judged:
        """Return the same document judged by a variant's score."""
        other = next((Variant(*one) for one in self.variants if one[0] == variant), None)
        return self if other is None else Judged(other.score, self.rating, self.cluster, other.unscored)


def scored_correlations(
    scores: Sequence[float | None], ratings: Sequence[float], clusters: Sequence[str], bootstrap: Bootstrap
) -> dict[str, Correlation]:
    """Return the coefficients by metric, from one bootstrap over dialogues."""
    names = tuple(COEFFICIENTS.values())
    by_coefficient = correlations(scores, ratings, coefficients=names, clusters=clusters, bootstrap=bootstrap)
    return {name: by_coefficient[coefficient] for name, coefficient in COEFFICIENTS.items()}


def _correlations(judged: Sequence[Judged], bootstrap: Bootstrap) -> dict[str, Correlation]:
    scores, ratings = [one.score for one in judged], [one.rating for one in judged]
    return scored_correlations(scores, ratings, [one.cluster for one in judged], bootstrap)


RATINGS = CorpusMetrics(Judged, _correlations, "spearman")
spearman, spearman_ci_low, spearman_ci_high, n_scored = RATINGS.aggregations()
pearson, kendall = RATINGS.metric("pearson"), RATINGS.metric("kendall")


@task_data()
def dstc10_dataset(
    *,
    dataset: str,
    rated_quality: str | None = None,
    literal_log: bool | str = False,
) -> dict[str, Any]:
    """Build the data set of a task over one DSTC10 set.

    Args:
        dataset: the set's code, for example "tu".
        rated_quality: the quality to compare with; by default the set's overall quality.
        literal_log: compute g from the log probabilities, as printed in the paper.
    """
    reading = reading_of(literal_log)
    items = read_set(dstc10.read, dataset, group="dstc10_dialog", advice=FETCH)
    entry = dstc10.find_set(dataset)
    quality = rated_quality or dstc10.overall_quality(items, entry)
    # The published scale is the overall quality's; for any other quality the scale is taken from its ratings.
    return data_sets(test=_documents(items, quality, entry.scale if quality == entry.overall else None, reading))


@task_data()
def mini_dataset(*, literal_log: bool | str = False) -> dict[str, Any]:
    """Build the data set over the test split of the embedded corpus, whose ratings are set by construction."""
    return data_sets(test=_documents(mini.read_examples(split="test"), mini.QUALITY, (0.0, 1.0), reading_of(literal_log)))


def process_results(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Judged]:
    """Return by metric g or the scorer's score, the rating and the cluster of one document; nothing for a placeholder.

    g is None if the model gave neither answer any probability: such a document is unscored.
    """
    return {} if doc["is_absent"] else judged(doc, judgement(doc, results))


def judged(doc: Mapping[str, Any], verdict: Verdict) -> dict[str, Judged]:
    """Return a verdict on a rated document, with its rating and cluster, under the name of every metric."""
    ends = (verdict.unscored, (), verdict.percentile, verdict.out_of_scope)
    return RATINGS.of_document(Judged(verdict.score, doc["rating"], doc["cluster"], *ends))


def judgement(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> Verdict:
    """Return a scorer's verdict, or a language model's g, from the answers to yes and no."""
    log_probabilities = {form: value for form, (value, _) in zip(doc["choices"], results, strict=True)}
    return verdict_of(results) or Verdict(goodness_of_forms(log_probabilities, reading=doc["reading"]))


def _documents(
    items: Sequence[Item], quality: str, scale: tuple[float, float] | None, reading: GEvalReading
) -> list[dict[str, Any]]:
    rated = rated_items(items, quality)
    values = [value for item in items for value in item.ratings.get(quality, ())]
    low, high = scale or (min(values), max(values))
    return [
        document(item, rating=rating, cluster=context_key(item), midpoint=(low + high) / 2, reading=reading, quality=quality)
        for item, rating in rated
    ]


def rated_items(items: Sequence[Item], quality: str) -> list[tuple[Item, float]]:
    """Pair the items with the mean of their raters; items without a rating are left out, with a warning."""
    with_quality = [item for item in items if quality in item.ratings]
    rated = [(item, rating) for item in with_quality if (rating := mean_rating(item, quality)) is not None]
    if not rated:
        raise InputError(f"{quality}: none of the {len(items)} items is rated. Use a file with ratings.")
    if len(rated) < len(items):
        logger.warning("%s: %d of %d items have no rating and are left out", quality, len(items) - len(rated), len(items))
    return rated


def reading_of(literal_log: bool | str) -> GEvalReading:
    """Return how probabilities are read, from a task's option `literal_log`."""
    is_literal = from_text(str(literal_log), bool)
    check_value("--metadata", "literal_log", is_literal, bool)
    return "literal_log" if is_literal else "probabilities"
