"""The tasks `fed_dialog`: the data set of one quality of FED, the rating of one document, and metrics over several runs.

An example is one dialogue with its rated responses (Huynh et al. 2023). A row therefore names its dialogue (`thread`) and holds
in `example` its own part of it; `joined_threads` joins the rows of a dialogue.

A task that runs several times with different random examples reports mean and standard deviation over the runs instead of an
interval, as in the paper (section 3.3). The host runs a task once, so each item has one document per seed.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Item, Level
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import Positive, check_value, from_text
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers import fed
from dialeval_plugin.hosts.lm_eval.run import task_data
from dialeval_plugin.methods.judging.dialogue_rating import DEFAULT_K, RatingPrompt, chained, heading, rating_prompt
from dialeval_plugin.methods.judging.goodness import GEvalReading, rating_of_answers
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, Bootstrap
from dialeval_plugin.statistics.correlation import correlate

from .corpus_metrics import CorpusMetrics, Undefined, undefined
from .documents import Document, Verdict, data_sets, item_columns, rater_columns, verdict_of
from .ratings import COEFFICIENTS, Judged, judged, rated_items, reading_of


class SeededJudged(NamedTuple):
    """A document's score in one of the runs, with its rating and cluster."""

    score: float | None
    rating: float
    seed: int
    unscored: str | None = None


def _over_seeds(judged: Sequence[SeededJudged], bootstrap: Bootstrap) -> dict[str, float | Undefined]:
    """Return mean and standard deviation (n - 1) of each coefficient over the runs; neither is defined if a run has none."""
    runs = [[one for one in judged if one.seed == seed] for seed in sorted({one.seed for one in judged})]
    has_score = any(one.score is not None for one in judged)
    values: dict[str, float | Undefined] = {}
    for name, coefficient in COEFFICIENTS.items():
        of_runs = [
            correlate([one.score for one in run], [one.rating for one in run], coefficient=coefficient, bootstrap=NO_RESAMPLES)
            for run in runs
        ]
        known = [one.value for one in of_runs if one.value is not None]
        if len(known) < len(of_runs):
            reason = next(one.reason for one in of_runs if one.value is None)
            why = undefined(reason, [] if has_score else [one.unscored for one in judged])
            values |= {name: why, f"{name}_deviation": why}
        else:
            values[name] = statistics.fmean(known)
            one_run = Undefined("undefined (one run has no deviation)")
            values[f"{name}_deviation"] = statistics.stdev(known) if len(known) > 1 else one_run
    return values


OVER_SEEDS = CorpusMetrics(SeededJudged, _over_seeds, "spearman", ("_deviation",))
spearman_over_seeds, spearman_deviation, n_scored_over_seeds = OVER_SEEDS.aggregations()


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
        shown_dialogues: ids of the example dialogues of every document, in this order. They are the split `examples`; neither
            they nor another dialogue that opens with the same turns is in the split `test`.
        seeds: for each item one document per seed, for a sampler that draws examples by it.
        k: how many ratings count.
        literal_log: weight ratings by log probabilities, as printed in the paper.
    """
    prompt = rating_prompt(quality, level)
    n_ratings = from_text(str(k), int)
    check_value("--metadata", "k", n_ratings, Positive)
    threads: dict[str, Sequence[Item]] = {
        dialogue.whole.id: dialogue.responses if level == "turn" else (dialogue.whole,) for dialogue in fed.read()
    }
    rated = rated_items([item for items in threads.values() for item in items], prompt.published)
    ratings = {item.id: rating for item, rating in rated}
    documents = _documents(prompt, threads, ratings, k=n_ratings, reading=reading_of(literal_log))
    if not shown_dialogues:
        return data_sets(test=_for_each_seed(documents, seeds))
    joined = {document["thread"]: document for document in joined_threads(documents)}
    if unknown := [id for id in shown_dialogues if id not in joined]:
        raise InputError(f"shown_dialogues: FED has no rated dialogue {unknown[0]!r}. They are called fed_000, fed_001, ...")
    examples = [shown(joined[id], number) for number, id in enumerate(shown_dialogues, start=1)]
    clusters = {example["cluster"] for example in examples}
    others = [document for document in documents if document["cluster"] not in clusters]
    return data_sets(test=_for_each_seed(others, seeds), examples=examples)


def process_ratings(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Judged]:
    """Return by metric the K-top rating or the scorer's score, the human rating and the cluster of one document.

    The score is None if the model gives no rating of the scale any probability: such a document is unscored.
    """
    return judged(doc, _judgement(doc, results))


def process_seeded_ratings(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, SeededJudged]:
    """Return the same for a document of one of several runs."""
    verdict = _judgement(doc, results)
    return OVER_SEEDS.of_document(SeededJudged(verdict.score, doc["rating"], doc["seed"], verdict.unscored))


def _judgement(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> Verdict:
    if verdict := verdict_of(results):
        return verdict
    log_probabilities = {form: value for form, (value, _) in zip(doc["choices"], results, strict=True)}
    scale = rating_prompt(doc["quality"], doc["level"]).scale
    answer = rating_of_answers(log_probabilities, scale, k=doc["k"], reading=doc["reading"])
    return Verdict(None if isinstance(answer, Unscored) else answer.rating)


def _documents(
    prompt: RatingPrompt, threads: Mapping[str, Sequence[Item]], ratings: Mapping[str, float], *, k: int, reading: GEvalReading
) -> list[Document]:
    """Return rows of the rated items, whose mean ratings are `ratings` by id; `threads` are each dialogue's items in order."""
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
                "answer": (answer := prompt.answer(ratings[item.id])),
                "choices": list(prompt.forms),
                "label": prompt.forms.index(answer.partition("/")[0]),
                "k": k,
                "reading": reading,
                "seed": None,
                "is_absent": False,
            }
            rows.append(row)
    return rows


def _for_each_seed(documents: Sequence[Document], seeds: Sequence[int]) -> list[Document]:
    return [{**document, "seed": seed} for document in documents for seed in seeds] if seeds else list(documents)


def joined_threads(documents: Sequence[Mapping[str, Any]]) -> list[Document]:
    """Join the documents of each dialogue into one: its items chained in `example`, its last context, its responses as one.

    A document repeated for another seed counts once.
    """
    threads: dict[str, dict[str, Mapping[str, Any]]] = {}
    for document in documents:
        threads.setdefault(document["thread"], {}).setdefault(document["id"], document)
    joined = []
    for parts in map(list, map(dict.values, threads.values())):
        example, answer = chained([(part["example"], part["answer"]) for part in parts])
        last = {**parts[-1], "example": example, "answer": answer}
        if last["level"] == "turn":
            last["response"] = {**last["response"], "text": " ".join(part["response"]["text"] for part in parts)}
        joined.append(last)
    return joined


def shown(joined: Mapping[str, Any], number: int) -> Document:
    """Return the joined document under the heading of the `number`-th example."""
    return {**joined, "example": heading(number) + joined["example"]}
