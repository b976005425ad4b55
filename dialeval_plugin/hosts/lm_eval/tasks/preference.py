"""The tasks `cgdialog_preference`: responses as documents, each with the comparisons that people made of it.

A document is one response, judged by the prompt of the DSTC10 tasks, so that a response is judged once however many others
it was compared with.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from dialeval_plugin.core.files import to_json
from dialeval_plugin.corpora.readers import cgdialog
from dialeval_plugin.corpora.readers.cgdialog import CRITERIA, OPTIONS, PreferenceDialogue
from dialeval_plugin.judgement_tasks.documents import absent_document, data_sets, document
from dialeval_plugin.judgement_tasks.kinds import printed
from dialeval_plugin.judgement_tasks.preference import JudgedResponse

from .responses import judgement, reading_of
from .task_data import n_processes, task_data, unless_absent

GROUP = "cgdialog_preference"
_GET = "Nobody offers them for download: put them into the folder cgdialog_plus of the one that DIALEVAL_DATA_DIR names."

ComparedWith: TypeAlias = Sequence[tuple[str, Sequence[Sequence[int]]]]


@task_data()
def preference_dataset(
    *, dataset: str, when_absent: str = "fail", group_sets: Sequence[str] = (), literal_log: bool | str = False
) -> dict[str, Any]:
    """Build the data set of a task over the preferences on one corpus.

    Args:
        dataset: the corpus: "dream", "esconv" or "msc".
        when_absent: "fail", or "skip" for a task inside a group: one placeholder then stands for the file.
        group_sets: the group's corpora; one at least has to be there.
        literal_log: read g off the log probabilities, as Huynh et al. print it.
    """
    reading = reading_of(literal_log)
    dialogues = unless_absent(
        cgdialog.read_preferences, dataset, when_absent=when_absent, group_sets=group_sets, group=GROUP, advice=_GET
    )
    if dialogues is None:
        return data_sets(test=[{**absent_document(dataset, reading), "compared": "[]"}] * n_processes())
    rows = []
    for dialogue in dialogues:
        for example in dialogue.examples():
            share = _share_of_points(dialogue, str(example.system))
            row = document(example, rating=share, cluster=dialogue.id, midpoint=0.5, reading=reading)
            rows.append({**row, "compared": to_json(compared_with(dialogue, str(example.system)))})
    return data_sets(test=rows)


def process_preferences(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, JudgedResponse]:
    """Return the score of one response and its comparisons under the name of every metric; nothing for a placeholder."""
    if doc["is_absent"]:
        return {}
    verdict = judgement(doc, results)
    compared = tuple((other, tuple(map(tuple, votes))) for other, votes in json.loads(doc["compared"]))
    judged = JudgedResponse(doc["cluster"], doc["system"], verdict.score, compared, verdict.unscored)
    return dict.fromkeys(printed("preference"), judged)


def compared_with(dialogue: PreferenceDialogue, system: str) -> ComparedWith:
    """Return the comparisons in which a system's response is called A: the system called B, and a criterion's answers each."""
    return [
        (row.second, [[OPTIONS.index(vote) for vote in row.votes[criterion]] for criterion in CRITERIA])
        for row in dialogue.comparisons
        if row.first == system
    ]


def _share_of_points(dialogue: PreferenceDialogue, system: str) -> float:
    """The share of annotators who, asked about relevance, found the response good: what few-shot examples are labelled by."""
    n_votes = sum(len(row.votes["relevance"]) for row in dialogue.comparisons if system in (row.first, row.second))
    return sum(dialogue.points(system, "relevance")) / n_votes if n_votes else 0.0
