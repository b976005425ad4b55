"""The tasks `dstc10_dialog`: rated responses and dialogues of DSTC10, and the score of one document."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.options import check_value, from_text
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key, mean_rating
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.judgement_tasks.documents import Verdict, absent_document, data_sets, document, verdict_of
from dialeval_plugin.judgement_tasks.kinds import printed
from dialeval_plugin.judgement_tasks.ratings import Judged
from dialeval_plugin.methods.judging.goodness import GEvalReading, goodness_of_forms

from .task_data import n_processes, task_data, unless_absent

logger = logging.getLogger(__name__)

_FETCH = "Type `dialeval data fetch dstc10`, or name a folder that has them in DIALEVAL_DATA_DIR."


@task_data()
def dstc10_dataset(
    *,
    dataset: str,
    rated_quality: str | None = None,
    when_absent: str = "fail",
    group_sets: Sequence[str] = (),
    literal_log: bool | str = False,
) -> dict[str, Any]:
    """Build the data set of a task over one DSTC10 set.

    Args:
        dataset: the set's code, as "tu".
        rated_quality: the quality to compare with; without it the one that stands for overall quality in the set.
        when_absent: "fail", or "skip" for a task inside a group: one placeholder then stands for the set, which has no
            score and no part in the group's mean.
        group_sets: codes of the group's sets; one at least has to be there.
        literal_log: read g off the log probabilities, as the paper prints it.
    """
    reading = reading_of(literal_log)
    items = read_unless_absent(dataset, when_absent=when_absent, group_sets=group_sets)
    if items is None:
        return data_sets(test=[absent_document(dataset, reading)] * n_processes())
    entry = dstc10.find_set(dataset)
    quality = rated_quality or dstc10.overall_quality(items, entry)
    # The published scale is the overall quality's; any other quality has the scale that its ratings show.
    return data_sets(test=_documents(items, quality, entry.scale if quality == entry.overall else None, reading))


def read_unless_absent(
    dataset: str, *, when_absent: str, group_sets: Sequence[str], group: str = "dstc10_dialog"
) -> list[Item] | None:
    """Read a DSTC10 set, or return None where it is not on this machine and may be left out of its group."""
    return unless_absent(dstc10.read, dataset, when_absent=when_absent, group_sets=group_sets, group=group, advice=_FETCH)


@task_data()
def mini_dataset(*, literal_log: bool | str = False) -> dict[str, Any]:
    """Build the data set over the test split of the embedded corpus, whose ratings are by construction."""
    return data_sets(test=_documents(mini.read_examples(split="test"), mini.QUALITY, (0.0, 1.0), reading_of(literal_log)))


def process_results(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Judged]:
    """Return g or the scorer's score, the rating and the cluster of one document under the name of every metric.

    Nothing for a placeholder. The host hands the list of these to each metric's aggregation. g is None where the model gave
    neither answer any probability: such a document is unscored.
    """
    return {} if doc["is_absent"] else judged(doc, judgement(doc, results))


def judged(doc: Mapping[str, Any], said: Verdict) -> dict[str, Judged]:
    """Return a verdict on a rated document, with its rating and cluster, under the name of every metric."""
    found = Judged(said.score, doc["rating"], doc["cluster"], said.unscored, (), said.percentile, said.out_of_scope)
    return dict.fromkeys(printed("rating"), found)


def judgement(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> Verdict:
    """What a scorer says of a document, or a language model by its g, from its answers to yes and no."""
    log_probabilities = {form: value for form, (value, _) in zip(doc["choices"], results, strict=True)}
    return verdict_of(results) or Verdict(goodness_of_forms(log_probabilities, reading=doc["reading"]))


def _documents(
    items: Sequence[Item], quality: str, scale: tuple[float, float] | None, reading: GEvalReading
) -> list[dict[str, Any]]:
    rated = rated_items(items, quality)
    seen = [value for item in items for value in item.ratings.get(quality, ())]
    low, high = scale or (min(seen), max(seen))
    return [
        document(item, rating=rating, cluster=context_key(item), midpoint=(low + high) / 2, reading=reading, quality=quality)
        for item, rating in rated
    ]


def rated_items(items: Sequence[Item], quality: str) -> list[tuple[Item, float]]:
    """Pair the items with the mean of their raters; those that nobody rated are left out, with a warning."""
    with_quality = [item for item in items if quality in item.ratings]
    rated = [(item, rating) for item in with_quality if (rating := mean_rating(item, quality)) is not None]
    if not rated:
        raise InputError(f"{quality}: none of the {len(items)} items is rated. Use a file with ratings.")
    if len(rated) < len(items):
        logger.warning("%s: %d of %d items have no rating and are left out", quality, len(items) - len(rated), len(items))
    return rated


def reading_of(literal_log: bool | str) -> GEvalReading:
    """How probabilities are read, from a task's switch `literal_log`."""
    is_literal = from_text(str(literal_log), bool)
    check_value("--metadata", "literal_log", is_literal, bool)
    return "literal_log" if is_literal else "probabilities"
