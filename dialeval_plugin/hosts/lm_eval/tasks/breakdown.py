"""The tasks `dbdc`: annotated system turns as documents, and the distribution of one document.

A language model is a breakdown detector by the probabilities that it gives the three labels; a scorer through
`--model dialogue-metric` by P(NB) = g and P(B) = 1 - g.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.corpora.readers import dbdc
from dialeval_plugin.corpora.readers.dbdc import Annotations, DbdcSplit
from dialeval_plugin.judgement_tasks.breakdown import Detected
from dialeval_plugin.judgement_tasks.documents import data_sets, item_columns, verdict_of
from dialeval_plugin.judgement_tasks.kinds import printed
from dialeval_plugin.methods.judging.goodness import distribution_of_forms
from dialeval_plugin.methods.judging.prompts import BreakdownPrompt, breakdown_prompt
from dialeval_plugin.statistics.breakdown.detection import strict_labels

from .task_data import task_data


@task_data()
def dbdc_dataset(*, dataset: str, answers: str = "letters", annotations: str = "revised") -> dict[str, Any]:
    """Build the data set of a task over the English turns of one system: evaluation turns, and development turns as examples.

    Args:
        dataset: the system, "cic", "iris", "tktk" or "yi".
        answers: how the labels are spelled; see `BREAKDOWN_PROMPTS`.
        annotations: "revised", or "original" for those of the challenge; they differ for cic and yi.
    """
    prompt = breakdown_prompt(answers)
    rows = {}
    splits: tuple[DbdcSplit, ...] = ("eval", "dev")
    for split in splits:
        dialogues = dbdc.read(dataset, split=split, annotations=cast("Annotations", annotations))
        rows[split] = [_document(response, found.whole.id, prompt) for found in dialogues for response in found.responses]
    return data_sets(test=rows["eval"], dev=rows["dev"])


def process_breakdown(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Detected]:
    """Return the distribution and the annotators' counts of one turn under the name of every metric.

    The distribution is None where the model gives no label any probability: such a turn is unscored.
    """
    distribution = distribution_of_forms([value for value, _ in results])
    no, possible, yes = doc["counts"]
    unscored = verdict.unscored if (verdict := verdict_of(results)) else None
    return dict.fromkeys(printed("breakdown"), Detected(distribution, (no, possible, yes), doc["cluster"], unscored))


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
