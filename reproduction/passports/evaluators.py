"""The evaluators whose passports are made, and the labelled sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn
from dialeval_plugin.core.files import read_json_lines
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.corpora.verdicts import read_collection
from dialeval_plugin.labels.reading import read_labels
from dialeval_plugin.labels.table import LabelTable, ScoreTable
from reproduction.data import data_folder
from reproduction.kept_results import kept_scores

HALIE = "halie"
SETS: Mapping[str, str] = {
    "fed-turn": "Overall",
    "fed-dial": "Overall",
    "topical-usr": "Overall",
    "persona-usr": "Overall",
    "empathetic-grade": "relevance",
    "convai2-grade": "relevance",
    HALIE: "overall",
}
"""Labelled sets with the quality that people were asked about."""

_OPEN = "AutomaticDialogueEvaluation"
JUDGES: Mapping[str, Sequence[str]] = {
    "GPT-4": ("GPT-4/g-eval_persona-chat", "GPT-4/comp-analysis"),
    "Claude 3 Haiku": ("claude-3-haiku-20240307/llm-eval-analysis",),
    "Vicuna-13B": (f"Vicuna-13B-v1.5/{_OPEN}",),
    "Qwen-14B": (f"Qwen-14B/{_OPEN}",),
    "Llama2-13B": (f"Llama2-13B/{_OPEN}",),
}
"""Judges whose verdicts on overall quality are stored, and where: the first place that has the set."""


def labels_of(name: str) -> LabelTable:
    """Return the labels of a set."""
    return read_labels(_halie() if name == HALIE else name, quality=SETS[name])


def evaluators(name: str, labels: LabelTable, work: Path) -> Iterator[ScoreTable]:
    """Yield what each evaluator says of a set: packaged models, judges, the response's length, and chance."""
    items = _items(name)
    is_of_dialogues = isinstance(items[0], Dialogue)
    ours = {"general": load_scorer("general", level="dialogue" if is_of_dialogues else "turn")}
    # It scores responses alone.
    ours |= {} if is_of_dialogues else {"SLIDE's small model": load_scorer("slide", variant="slm")}
    for evaluator, scorer in ours.items():
        scores = kept_scores(scorer, items, work, name)
        yield _table(evaluator, labels, scores.columns[scores.main], str(scores.signature))
    columns = {(one.judge, one.set): one for one in read_collection() if one.quality == "overall"}
    for judge, places in JUDGES.items():
        if found := next((columns[place, name] for place in places if (place, name) in columns), None):
            yield _table(judge, labels, found.scores, f"replayed:{found.judge}|{found.quality}|{found.origin}")
    yield _table("response length", labels, [_words(item) for item in items], "words")
    yield _table("chance", labels, np.random.default_rng(0).random(len(items)).tolist(), "random:0")


def _table(evaluator: str, labels: LabelTable, scores: Sequence[float | None], signature: str) -> ScoreTable:
    values = np.array([np.nan if score is None else score for score in scores])
    clusters = list(labels.clusters or labels.ids)
    return ScoreTable(
        evaluator=evaluator, source=labels.source, ids=labels.ids, scores=values, clusters=clusters, signature=signature
    )


def _halie() -> Path:
    return data_folder() / "assistant" / "rated_halie.jsonl.gz"


def _items(name: str) -> Sequence[Item]:
    if name != HALIE:
        return dstc10.read(name)
    rows = [line.value for line in read_json_lines(_halie())]
    speakers = ("user", "assistant")
    return [
        Example(
            row["id"],
            tuple(Turn(text, speakers[place % 2]) for place, text in enumerate(row["context"])),
            Turn(row["response"], "assistant"),
        )
        for row in rows
    ]


def _words(item: Item) -> float:
    turns = item.turns if isinstance(item, Dialogue) else (item.response,)
    return float(sum(len(turn.text.split()) for turn in turns))
