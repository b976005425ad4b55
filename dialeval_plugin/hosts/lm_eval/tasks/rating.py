"""The tasks `fed_dialog`: the data set of one quality of FED, and the rating of one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dialeval_plugin.core.dialogue import Item, Level
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.options import Positive, check_value, from_text
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.corpora.readers import fed
from dialeval_plugin.judgement_tasks.documents import (
    Document,
    Verdict,
    data_sets,
    for_each_seed,
    joined_threads,
    rating_documents,
    shown,
    verdict_of,
)
from dialeval_plugin.judgement_tasks.kinds import printed
from dialeval_plugin.judgement_tasks.ratings import Judged, SeededJudged
from dialeval_plugin.methods.judging.dialogue_rating import DEFAULT_K, rating_prompt
from dialeval_plugin.methods.judging.goodness import rating_of_answers

from .responses import judged, rated_items, reading_of
from .task_data import task_data


@task_data()
def fed_dataset(
    *,
    level: Level,
    quality: str,
    shown_dialogues: Sequence[str] = (),
    seeds: Sequence[int] = (),
    k: int | str = DEFAULT_K,
    literal_log: bool | str = False,
) -> dict[str, Any]:
    """Build the data set of a task over one quality of FED.

    Args:
        level: "turn" or "dialogue".
        quality: name of the quality, as in `rating_prompts`.
        shown_dialogues: ids of the dialogues that are shown as examples to every document, in this order. They are the split
            `examples`; neither they nor another dialogue that opens with the same turns is in the split `test`.
        seeds: for each item one document a seed, for a sampler that draws examples by it.
        k: how many ratings count.
        literal_log: weight ratings by log probabilities, as the paper prints it.
    """
    prompt = rating_prompt(quality, level)
    n_ratings = from_text(str(k), int)
    check_value("--metadata", "k", n_ratings, Positive)
    threads: dict[str, Sequence[Item]] = {
        dialogue.whole.id: dialogue.responses if level == "turn" else (dialogue.whole,) for dialogue in fed.read()
    }
    ratings = {
        item.id: rating for item, rating in rated_items([i for items in threads.values() for i in items], prompt.published)
    }
    documents = rating_documents(prompt, threads, ratings, k=n_ratings, reading=reading_of(literal_log))
    if not shown_dialogues:
        return data_sets(test=for_each_seed(documents, seeds))
    examples = _examples(documents, shown_dialogues)
    clusters = {example["cluster"] for example in examples}
    others = [document for document in documents if document["cluster"] not in clusters]
    return data_sets(test=for_each_seed(others, seeds), examples=examples)


def process_ratings(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Judged]:
    """Return the K-top rating or the scorer's score, the people's rating and the cluster of one document, by metric.

    The score is None where the model gives no rating of the scale any probability: such a document is unscored.
    """
    return judged(doc, _judgement(doc, results))


def process_seeded_ratings(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, SeededJudged]:
    """Return the same for a document of one of several runs."""
    verdict = _judgement(doc, results)
    return dict.fromkeys(
        printed("rating_over_seeds"), SeededJudged(verdict.score, doc["rating"], doc["seed"], verdict.unscored)
    )


def _judgement(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> Verdict:
    if verdict := verdict_of(results):
        return verdict
    log_probabilities = {form: value for form, (value, _) in zip(doc["choices"], results, strict=True)}
    prompt = rating_prompt(doc["quality"], doc["level"])
    found = rating_of_answers(log_probabilities, prompt.scale, k=doc["k"], reading=doc["reading"])
    return Verdict(None if isinstance(found, Unscored) else found.rating)


def _examples(documents: Sequence[Document], ids: Sequence[str]) -> list[Document]:
    joined = {document["thread"]: document for document in joined_threads(documents)}
    for id in ids:
        if id not in joined:
            raise InputError(f"shown_dialogues: FED has no rated dialogue {id!r}. They are called fed_000, fed_001, ...")
    return [shown(joined[id], number) for number, id in enumerate(ids, start=1)]
