"""The documents of the rating tasks: a rated item with its prompt, and the dialogue that it is shown with as an example.

In the paper one example is one dialogue, with the responses in it that were rated. A document therefore names its dialogue
(`thread`) and holds in `example` what it adds to it; the documents of a dialogue are joined where an example is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.methods.judging.goodness import Reading
from dialeval_plugin.methods.judging.rating_prompts import RatingPrompt, chain, heading

from .documents import item_columns, item_features, rater_columns, rater_features

Document: TypeAlias = dict[str, Any]


def rating_documents(
    prompt: RatingPrompt,
    threads: Mapping[str, Sequence[Item]],
    ratings: Mapping[str, float],
    *,
    k: int,
    reading: Reading,
) -> list[Document]:
    """Return one row a rated item.

    Args:
        prompt: of the quality.
        threads: id of each dialogue to its items, in their order.
        ratings: id of each rated item to its mean rating; an item that is not in there gets no row.
        k: how many ratings count.
        reading: how they are weighted.
    """
    rows = []
    for thread, items in threads.items():
        rated = [item for item in items if item.id in ratings]
        for item, block in zip(rated, prompt.blocks(rated), strict=True):
            row = {
                **item_columns(item),
                **rater_columns(item, prompt.published),
                "rating": ratings[item.id],
                "cluster": context_key(item),
                "thread": thread,
                "quality": prompt.quality,
                "instruction": prompt.instruction,
                "question": prompt.question(item),
                "example": block,
                "answer": prompt.answer(ratings[item.id]),
                "choices": list(prompt.forms),
                "k": k,
                "reading": reading,
                "seed": None,
                "is_absent": False,
            }
            rows.append(row)
    return rows


def for_each_seed(documents: Sequence[Document], seeds: Sequence[int]) -> list[Document]:
    """Repeat each document for every seed; without seeds they stay what they are."""
    if not seeds:
        return list(documents)
    return [{**document, "seed": seed} for document in documents for seed in seeds]


def joined_threads(documents: Sequence[Mapping[str, Any]]) -> list[Document]:
    """Join the documents of each dialogue to one: its items chained in `example`, its last context, its responses as one.

    A document that occurs again, for another seed, counts once.
    """
    threads: dict[str, dict[str, Mapping[str, Any]]] = {}
    for document in documents:
        threads.setdefault(document["thread"], {}).setdefault(document["id"], document)
    return [_joined(list(parts.values())) for parts in threads.values()]


def shown(joined: Mapping[str, Any], number: int) -> Document:
    """The joined document under the heading of the `number`-th example."""
    return {**joined, "example": heading(number) + joined["example"]}


def rating_features() -> Any:
    """Column types."""
    from datasets import Features, List, Value

    text, number = Value("string"), Value("int64")
    return Features(
        {
            **item_features(),
            **rater_features(),
            "rating": Value("float64"),
            **dict.fromkeys(("cluster", "thread", "quality", "instruction", "question", "example", "answer"), text),
            "choices": List(text),
            "k": number,
            "reading": text,
            "seed": number,
            "is_absent": Value("bool"),
        }
    )


def _joined(parts: Sequence[Mapping[str, Any]]) -> Document:
    example, answer = chain([(part["example"], part["answer"]) for part in parts])
    last = parts[-1]
    if last["level"] == "dialogue":
        return {**last, "example": example, "answer": answer}
    response = {**last["response"], "text": " ".join(part["response"]["text"] for part in parts)}
    return {**last, "response": response, "example": example, "answer": answer}
