"""The tasks `cgdialog_preference`: responses, human pairwise comparisons of them, and agreement with those.

A document is one response, judged by the prompt of the DSTC10 tasks, so each response is judged once however many comparisons
it is in. The metrics join the responses of a comparison again.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dialeval_plugin.core.files import to_json
from dialeval_plugin.corpora.readers import cgdialog
from dialeval_plugin.corpora.readers.cgdialog import CRITERIA, OPTIONS, PreferenceDialogue
from dialeval_plugin.hosts.lm_eval.run import read_set, task_data
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate
from dialeval_plugin.statistics.preferences import PreferenceAgreement, cont2cat, ignore_equal, preferences, voting

from .corpus_metrics import BOOTSTRAP, CorpusMetrics, Undefined, undefined
from .documents import data_sets, document
from .ratings import judgement, reading_of

_GET = "Nobody offers them for download: put them into the folder cgdialog_plus of the one that DIALEVAL_DATA_DIR names."
_STATISTICS: Mapping[str, Callable[..., PreferenceAgreement]] = {
    "voting_pearson": functools.partial(voting, coefficient="pearson"),
    "voting_spearman": functools.partial(voting, coefficient="spearman"),
    "ignore_equal": ignore_equal,
    "cont2cat": cont2cat,
}


class JudgedResponse(NamedTuple):
    """A response's score and the comparisons in which it is called A."""

    dialogue: str
    system: str
    score: float | None
    compared: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]
    """The system called B, and the annotators' answers for each of `CRITERIA`."""
    unscored: str | None = None


def agreements(items: Sequence[JudgedResponse], bootstrap: Bootstrap = BOOTSTRAP) -> dict[tuple[str, str], PreferenceAgreement]:
    """Return every statistic of every criterion, by (criterion, statistic), over the comparisons with both responses present.

    One may be missing if the host runs only part of the documents.
    """
    pairs = _pairs(items)
    first, second = [one.score for one, _, _ in pairs], [score for _, score, _ in pairs]
    clusters = [one.dialogue for one, _, _ in pairs]
    figures: dict[tuple[str, str], PreferenceAgreement] = {}
    for place, criterion in enumerate(CRITERIA):
        compared = preferences(first, second, [votes[place] for _, _, votes in pairs], clusters=clusters)
        figures |= {(criterion, name): statistic(compared, bootstrap=bootstrap) for name, statistic in _STATISTICS.items()}
    return figures


def _pairs(items: Sequence[JudgedResponse]) -> list[tuple[JudgedResponse, float | None, tuple[tuple[int, ...], ...]]]:
    """Return each comparison with both responses present: response A, the score of B, and the answers by criterion."""
    scores = {(item.dialogue, item.system): item.score for item in items}
    return [
        (item, scores[item.dialogue, other], votes)
        for item in items
        for other, votes in item.compared
        if (item.dialogue, other) in scores
    ]


def _metrics(items: Sequence[JudgedResponse], bootstrap: Bootstrap) -> dict[str, Estimate | float | Undefined]:
    """Return the agreements; alpha, whose floor is not 0, comes with the values of coin flips and of most people."""
    figures: dict[str, Estimate | float | Undefined] = {}
    for (criterion, name), agreement in agreements(items, bootstrap).items():
        figures[f"{criterion}_{name}"] = agreement
        if name == "cont2cat":
            for end in ("floor", "ceiling"):
                value: float | None = getattr(agreement, end)
                figures[f"{criterion}_{name}_{end}"] = undefined(agreement.reason) if value is None else value
    return figures


def _count(items: Sequence[JudgedResponse]) -> tuple[int, int]:
    """Return the number of comparisons with both responses present, and of those with both scores."""
    pairs = _pairs(items)
    return len(pairs), sum(first.score is not None and second is not None for first, second, _ in pairs)


PREFERENCES = CorpusMetrics(
    JudgedResponse,
    _metrics,
    "relevance_voting_spearman",
    count=_count,
    # Without a fixed order, the last digits of the coin flips' mean would depend on the number of processes.
    sort_key=lambda item: (item.dialogue, item.system),
)
relevance_voting_spearman, relevance_voting_spearman_ci_low, relevance_voting_spearman_ci_high, n_scored = (
    PREFERENCES.aggregations()
)


@task_data()
def preference_dataset(*, dataset: str, literal_log: bool | str = False) -> dict[str, Any]:
    """Build the data set of a task over the preferences on one corpus.

    Args:
        dataset: the corpus: "dream", "esconv" or "msc".
        literal_log: compute g from the log probabilities, as printed by Huynh et al.
    """
    reading = reading_of(literal_log)
    rows = []
    for dialogue in read_set(cgdialog.read_preferences, dataset, group="cgdialog_preference", advice=_GET):
        for example in dialogue.examples():
            system = str(example.system)
            n_votes = sum(len(row.votes["relevance"]) for row in dialogue.comparisons if system in (row.first, row.second))
            # The share of annotators who rated the response relevant gives few-shot examples their label.
            share = sum(dialogue.points(system, "relevance")) / n_votes if n_votes else 0.0
            row = document(example, rating=share, cluster=dialogue.id, midpoint=0.5, reading=reading)
            rows.append({**row, "compared": to_json(compared_with(dialogue, system))})
    return data_sets(test=rows)


def process_preferences(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, JudgedResponse]:
    """Return the score of one response and its comparisons under the name of every metric; nothing for a placeholder."""
    if doc["is_absent"]:
        return {}
    verdict = judgement(doc, results)
    compared = tuple((other, tuple(map(tuple, votes))) for other, votes in json.loads(doc["compared"]))
    return PREFERENCES.of_document(JudgedResponse(doc["cluster"], doc["system"], verdict.score, compared, verdict.unscored))


def compared_with(dialogue: PreferenceDialogue, system: str) -> list[tuple[str, list[list[int]]]]:
    """Return the comparisons in which a system's response is called A: the system called B, and answers by criterion."""
    return [
        (row.second, [[OPTIONS.index(vote) for vote in row.votes[criterion]] for criterion in CRITERIA])
        for row in dialogue.comparisons
        if row.first == system
    ]
