"""Few-shot examples for the rating tasks: an example is a whole dialogue with all its rated responses (Huynh et al. 2023)."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any

from dialeval_plugin.judgement_tasks.rating_documents import joined_threads, shown

from .samplers import (
    ContextBM25Sampler,
    ContextResponseBM25Sampler,
    Document,
    OtherDialogueSampler,
    RandomSampler,
    ResponseBM25Sampler,
)


class _ThreadSampler(OtherDialogueSampler, ABC):
    """Joins the documents of each dialogue, and numbers the examples as the prompt shows them."""

    _threads: list[Document] | None = None

    def replace_df(self, df: Sequence[Document]) -> _ThreadSampler:
        """Take other documents to choose from."""
        self._threads = None
        super().replace_df(df)
        return self

    def fewshot_docs(self) -> Sequence[Document]:
        """One document a dialogue."""
        if self._threads is None:
            self._threads = list(joined_threads(super().fewshot_docs()))
        return self._threads

    def sample(
        self, n: int, eval_doc: Document | None = None, df: Sequence[Document] | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return `n` examples for `eval_doc`, in the order in which the prompt shows them; see the base class."""
        chosen = super().sample(n, eval_doc, df, **kwargs)
        return [shown(joined, number) for number, joined in enumerate(chosen, start=1)]


class RandomThreadSampler(_ThreadSampler, RandomSampler):
    """The same random dialogues for every document but for its own, by the host's few-shot seed."""


class SeededThreadSampler(RandomThreadSampler):
    """The same by the seed of the document, for a task that runs several times."""

    def ranking(self, pool: Sequence[Document], eval_doc: Document | None) -> Sequence[int]:
        """Places in `pool` in the order of the document's seed."""
        if eval_doc is not None:
            self._seed = eval_doc["seed"]
        return super().ranking(pool, eval_doc)


class ContextBM25ThreadSampler(_ThreadSampler, ContextBM25Sampler):
    """BM25_C: nearest by context, that of a dialogue being all turns up to its last rated response."""


class ResponseBM25ThreadSampler(_ThreadSampler, ResponseBM25Sampler):
    """BM25_R: nearest by response, that of a dialogue being all its rated responses."""


class ContextResponseBM25ThreadSampler(_ThreadSampler, ContextResponseBM25Sampler):
    """BM25_C+R: nearest by context and response."""
