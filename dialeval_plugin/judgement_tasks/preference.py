"""What the tasks `cgdialog_preference` name: responses as documents, and agreement with people who compared them in pairs.

A document is one response, judged by the prompt of the DSTC10 tasks, so that a response is judged once however many others
it was compared with. The aggregations join the responses of a comparison again.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.files import to_json
from dialeval_plugin.corpora.readers import cgdialog
from dialeval_plugin.corpora.readers.cgdialog import CRITERIA, OPTIONS, PreferenceDialogue
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.preference.preferences import PreferenceAgreement, cont2cat, ignore_equal, preferences, voting

from .absent_sets import check_any_present
from .aggregation import Undefined, undefined, why_unscored
from .documents import absent_document, document, features
from .responses import judgement, n_processes, reading_of
from .task_data import task_data

logger = logging.getLogger(__name__)

GROUP = "cgdialog_preference"
_GET = "Nobody offers them for download: put them into the folder cgdialog_plus of the one that DIALEVAL_DATA_DIR names."
_BOOTSTRAP = Bootstrap()
_STATISTICS: Mapping[str, Callable[..., PreferenceAgreement]] = {
    "voting_pearson": functools.partial(voting, coefficient="pearson"),
    "voting_spearman": functools.partial(voting, coefficient="spearman"),
    "ignore_equal": ignore_equal,
    "cont2cat": cont2cat,
}
STATISTICS = tuple(_STATISTICS)
_FIELDS = {"": "value", "_ci_low": "ci_low", "_ci_high": "ci_high"}
# The other schemes' floor is 0; alpha's is not, and nobody can read it without.
_ENDS = {"_floor": "floor", "_ceiling": "ceiling"}
_PARTS: dict[str, tuple[str, str, str]] = {
    f"{criterion}_{statistic}{suffix}": (criterion, statistic, field)
    for criterion in CRITERIA
    for statistic in STATISTICS
    for suffix, field in (_FIELDS | (_ENDS if statistic == "cont2cat" else {})).items()
}
METRICS = (*_PARTS, "n_scored", "n_unscored")
"""Names of the metrics, as in the task files; the last two count comparisons."""


ComparedWith: TypeAlias = Sequence[tuple[str, Sequence[Sequence[int]]]]


class JudgedResponse(NamedTuple):
    """A response's score and the comparisons in which it is called A."""

    dialogue: str
    system: str
    score: float | None
    """None where the response is unscored."""
    compared: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]
    """The system called B, and for each of `CRITERIA` the answers of the annotators."""
    unscored: str | None = None
    """Why it is, where the scorer says so: a value of `scoring.Reason`."""


@task_data()
def preference_dataset(
    *,
    preferences: str,
    when_absent: str = "fail",
    group_sets: Sequence[str] = (),
    literal_log: bool | str = False,
) -> dict[str, Any]:
    """Build the data set of a task over the preferences on one corpus.

    Args:
        preferences: the corpus: "dream", "esconv" or "msc".
        when_absent: "fail", or "skip" for a task inside a group: one placeholder then stands for the file.
        group_sets: the group's corpora; one at least has to be there.
        literal_log: read g off the log probabilities, as Huynh et al. print it.

    Raises:
        MissingPrerequisite: the file is not there, and may not be left out.
    """
    reading = reading_of(literal_log)
    try:
        dialogues = cgdialog.read_preferences(preferences)
    except MissingPrerequisite as error:
        if when_absent != "skip":
            raise
        check_any_present(GROUP, group_sets, cgdialog.read_preferences, advice=_GET, error=error)
        logger.warning("%s_%s: left out of the group and of its mean: %s", GROUP, preferences, error)
        return _dataset([{**absent_document(preferences, reading), "compared": "[]"}] * n_processes())
    rows = []
    for dialogue in dialogues:
        for example in dialogue.examples():
            share = _share_of_points(dialogue, str(example.system))
            row = document(example, rating=share, cluster=dialogue.id, midpoint=0.5, reading=reading)
            rows.append({**row, "compared": to_json(compared_with(dialogue, str(example.system)))})
    return _dataset(rows)


def process_preferences(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, JudgedResponse]:
    """Return the score of one response and its comparisons under the name of every metric; nothing for a placeholder."""
    if doc["is_absent"]:
        return {}
    verdict = judgement(doc, results)
    compared = tuple((other, tuple(map(tuple, votes))) for other, votes in json.loads(doc["compared"]))
    return dict.fromkeys(METRICS, JudgedResponse(doc["cluster"], doc["system"], verdict.score, compared, verdict.unscored))


def agreements(
    items: Sequence[JudgedResponse], bootstrap: Bootstrap = _BOOTSTRAP
) -> dict[tuple[str, str], PreferenceAgreement]:
    """Return every statistic of every criterion, by (criterion, statistic), over the comparisons whose responses are here.

    Fewer are, where the host was told to run a part of the documents only.
    """
    # Several processes hand in their documents in turns: without an order of its own, the last digits of the coin flips' mean
    # would depend on their number. Items that went through the host's gathering may have become plain tuples.
    ordered = sorted((JudgedResponse(*item) for item in items), key=lambda item: (item.dialogue, item.system))
    return _agreements(tuple(ordered), bootstrap)


@functools.lru_cache(maxsize=8)
def _agreements(items: tuple[JudgedResponse, ...], bootstrap: Bootstrap) -> dict[tuple[str, str], PreferenceAgreement]:
    scores = {(item.dialogue, item.system): item.score for item in items}
    rows = [
        (item.dialogue, item.score, scores[item.dialogue, other], votes)
        for item in items
        for other, votes in item.compared
        if (item.dialogue, other) in scores
    ]
    found = {}
    for place, criterion in enumerate(CRITERIA):
        compared = preferences(
            [first for _, first, _, _ in rows],
            [second for _, _, second, _ in rows],
            [votes[place] for _, _, _, votes in rows],
            clusters=[dialogue for dialogue, _, _, _ in rows],
        )
        for name, statistic in _STATISTICS.items():
            found[criterion, name] = statistic(compared, bootstrap=bootstrap)
    return found


def n_scored(items: Sequence[JudgedResponse]) -> int:
    """How many comparisons have a score for both responses: the number that every statistic of the task rests on."""
    return agreements(items)[CRITERIA[0], STATISTICS[0]].n_scored


def n_unscored(items: Sequence[JudgedResponse]) -> int:
    """How many comparisons have a response without a score."""
    return agreements(items)[CRITERIA[0], STATISTICS[0]].n_unscored


def __getattr__(name: str) -> Callable[[Sequence[JudgedResponse]], float | Undefined]:
    """Make the aggregation of a metric, as `empathy_cont2cat`: the task files name each as a function of this module."""
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    criterion, statistic, field = _PARTS[name]

    def aggregate(items: Sequence[JudgedResponse]) -> float | Undefined:
        found = agreements(items)[criterion, statistic]
        value: float | None = getattr(found, field)
        return undefined(found.reason, why_unscored(JudgedResponse(*item) for item in items)) if value is None else value

    aggregate.__name__ = aggregate.__qualname__ = name
    return aggregate


def compared_with(dialogue: PreferenceDialogue, system: str) -> ComparedWith:
    """Return the comparisons in which a system's response is called A: the system called B, and a criterion's answers each."""
    return [
        (row.second, [[OPTIONS.index(vote) for vote in row.votes[criterion]] for criterion in CRITERIA])
        for row in dialogue.comparisons
        if row.first == system
    ]


def _share_of_points(dialogue: PreferenceDialogue, system: str) -> float:
    """The share of annotators who, asked about relevance, found the response good: what few-shot examples are labelled by."""
    good = {"first": {OPTIONS[0], OPTIONS[2]}, "second": {OPTIONS[1], OPTIONS[2]}}
    points = [
        vote in good[side]
        for row in dialogue.comparisons
        for side in good
        if getattr(row, side) == system
        for vote in row.votes["relevance"]
    ]
    return sum(points) / len(points) if points else 0.0


def _dataset(rows: list[dict[str, Any]]) -> dict[str, Any]:
    from datasets import Dataset, Features, Value

    return {"test": Dataset.from_list(rows, features=Features({**features(), "compared": Value("string")}))}
