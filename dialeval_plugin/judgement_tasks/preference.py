"""Agreement with people who compared responses in pairs: the tasks `cgdialog_preference`.

A document is one response, so that a response is judged once however many others it was compared with. The metrics join the
responses of a comparison again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dialeval_plugin.corpora.readers.cgdialog import CRITERIA
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate
from dialeval_plugin.statistics.preference.preferences import (
    PreferenceAgreement,
    cont2cat,
    ignore_equal,
    preferences,
    voting,
)

from .corpus_metrics import BOOTSTRAP, CorpusMetrics, Undefined, undefined

_STATISTICS: Mapping[str, Callable[..., PreferenceAgreement]] = {
    "voting_pearson": functools.partial(voting, coefficient="pearson"),
    "voting_spearman": functools.partial(voting, coefficient="spearman"),
    "ignore_equal": ignore_equal,
    "cont2cat": cont2cat,
}
STATISTICS = tuple(_STATISTICS)


class JudgedResponse(NamedTuple):
    """A response's score and the comparisons in which it is called A."""

    dialogue: str
    system: str
    score: float | None
    compared: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]
    """The system called B, and for each of `CRITERIA` the answers of the annotators."""
    unscored: str | None = None


def agreements(items: Sequence[JudgedResponse], bootstrap: Bootstrap = BOOTSTRAP) -> dict[tuple[str, str], PreferenceAgreement]:
    """Return every statistic of every criterion, by (criterion, statistic), over the comparisons whose responses are here.

    Fewer are, where the host was told to run a part of the documents only.
    """
    pairs = _pairs(items)
    first, second = [one.score for one, _, _ in pairs], [score for _, score, _ in pairs]
    clusters = [one.dialogue for one, _, _ in pairs]
    found: dict[tuple[str, str], PreferenceAgreement] = {}
    for place, criterion in enumerate(CRITERIA):
        compared = preferences(first, second, [votes[place] for _, _, votes in pairs], clusters=clusters)
        found |= {(criterion, name): statistic(compared, bootstrap=bootstrap) for name, statistic in _STATISTICS.items()}
    return found


def _pairs(items: Sequence[JudgedResponse]) -> list[tuple[JudgedResponse, float | None, tuple[tuple[int, ...], ...]]]:
    """Each comparison whose responses are both here: response A, the score of B, and the answers by criterion."""
    scores = {(item.dialogue, item.system): item.score for item in items}
    return [
        (item, scores[item.dialogue, other], votes)
        for item in items
        for other, votes in item.compared
        if (item.dialogue, other) in scores
    ]


def _metrics(items: Sequence[JudgedResponse], bootstrap: Bootstrap) -> dict[str, Estimate | float | Undefined]:
    """The agreements; beside alpha what coin flips and most people earn: its floor is not 0, and nobody can read it without."""
    found: dict[str, Estimate | float | Undefined] = {}
    for (criterion, name), agreement in agreements(items, bootstrap).items():
        found[f"{criterion}_{name}"] = agreement
        if name == "cont2cat":
            for end in ("floor", "ceiling"):
                value: float | None = getattr(agreement, end)
                found[f"{criterion}_{name}_{end}"] = undefined(agreement.reason) if value is None else value
    return found


def _count(items: Sequence[JudgedResponse]) -> tuple[int, int]:
    """Comparisons whose responses are here, and those of them of which both have a score."""
    pairs = _pairs(items)
    return len(pairs), sum(first.score is not None and second is not None for first, second, _ in pairs)


# Without an order of its own, the last digits of the coin flips' mean would depend on the number of processes.
PREFERENCES = CorpusMetrics(JudgedResponse, _metrics, count=_count, sort_key=lambda item: (item.dialogue, item.system))

relevance_voting_spearman, relevance_voting_spearman_ci_low, relevance_voting_spearman_ci_high, n_scored = PREFERENCES.printed(
    "relevance_voting_spearman"
)
