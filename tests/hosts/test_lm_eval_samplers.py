"""Few-shot examples: never of the dialogue under test, seeded, and by BM25 the nearest last."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from rank_bm25 import BM25Okapi

from dialeval_plugin.hosts.lm_eval.samplers import (
    ContextBM25Sampler,
    ContextResponseBM25Sampler,
    OtherDialogueSampler,
    RandomSampler,
    ResponseBM25Sampler,
)
from dialeval_plugin.hosts.lm_eval.tasks.ratings import dstc10_dataset

SAMPLERS = (RandomSampler, ContextBM25Sampler, ResponseBM25Sampler, ContextResponseBM25Sampler)


@pytest.fixture
def documents(use_tiny_data: Path) -> list[dict[str, Any]]:
    return list(dstc10_dataset(dataset="dz")["test"])


@pytest.mark.parametrize("kind", SAMPLERS)
def test_no_example_is_of_the_tested_dialogue(kind: type[OtherDialogueSampler], documents: list[dict[str, Any]]) -> None:
    sampler = kind(documents).set_rnd(7)
    for document in documents:
        examples = sampler.sample(n=10, eval_doc=document)
        assert len(examples) == 10
        assert document["cluster"] not in {example["cluster"] for example in examples}
        assert len({example["id"] for example in examples}) == 10


@pytest.mark.parametrize("kind", SAMPLERS)
def test_examples_do_not_depend_on_the_documents_before(
    kind: type[OtherDialogueSampler], documents: list[dict[str, Any]]
) -> None:
    one = kind(documents).set_rnd(7)
    for document in documents[:5]:
        one.sample(n=3, eval_doc=document)
    assert one.sample(n=3, eval_doc=documents[-1]) == kind(documents).set_rnd(7).sample(n=3, eval_doc=documents[-1])


def test_random_examples_follow_the_seed(documents: list[dict[str, Any]]) -> None:
    one, two = (RandomSampler(documents).set_rnd(seed).sample(n=4, eval_doc=documents[0]) for seed in (1, 2))
    assert one != two


@pytest.mark.parametrize("kind", SAMPLERS[1:])
def test_bm25_examples_ascend_and_are_the_nearest(kind: type[OtherDialogueSampler], documents: list[dict[str, Any]]) -> None:
    def words(document: dict[str, Any]) -> list[str]:
        context, response = " ".join(turn["text"] for turn in document["context"]), document["response"]["text"]
        text = {ContextBM25Sampler: context, ResponseBM25Sampler: response}.get(kind, f"{context} {response}")
        return re.findall(r"\w+", text.lower())

    index = BM25Okapi([words(document) for document in documents], k1=1.5, b=0.75)
    tested = documents[0]
    scores = dict(zip((document["id"] for document in documents), index.get_scores(words(tested)), strict=True))
    shown = [scores[example["id"]] for example in kind(documents).sample(n=4, eval_doc=tested)]
    others = sorted(scores[document["id"]] for document in documents if document["cluster"] != tested["cluster"])
    assert shown == sorted(shown)
    assert shown == others[-4:]


def test_whole_dialogues_can_be_examples(use_tiny_data: Path) -> None:
    documents = list(dstc10_dataset(dataset="fd")["test"])
    for kind in SAMPLERS:
        assert len(kind(documents).set_rnd(1).sample(n=2, eval_doc=documents[0])) == 2


def test_other_documents_of_the_same_number_are_indexed_anew(documents: list[dict[str, Any]]) -> None:
    # Issue G 9: the index was kept by the number of documents.
    others = [{**document, "context": documents[-1 - place]["context"]} for place, document in enumerate(documents)]
    sampler = ContextBM25Sampler(documents)
    first = sampler.sample(n=3, eval_doc=documents[0])
    assert sampler.replace_df(others).sample(n=3, eval_doc=documents[0]) != first
    assert sampler.sample(n=3, eval_doc=documents[0]) == ContextBM25Sampler(others).sample(n=3, eval_doc=documents[0])
    assert sampler.sample(n=3, eval_doc=documents[0], df=documents) == first
