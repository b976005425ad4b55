"""Few-shot samplers for the dialogue tasks: seeded random examples, and the nearest by BM25 (Huynh et al. 2023, section 3.3).

No example comes from the dialogue under test: several systems answer one context, and such an example would reveal it.
"""

from __future__ import annotations

import functools
import math
import random
import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from lm_eval.api.samplers import ContextSampler
from numpy.typing import NDArray

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.methods.judging import classification

from .tasks.classification import document
from .tasks.documents import item_of
from .tasks.fed import joined_threads, shown

Document = Mapping[str, Any]

K1, B, FLOOR = 1.5, 0.75, 0.25


class OtherDialogueSampler(ContextSampler, ABC):  # type: ignore[misc]  # the host is not typed
    """Base of the samplers: documents of other dialogues, in an order chosen by a subclass."""

    is_best_last = False
    """Whether the prompt ends with the best example."""

    def __init__(self, df: Sequence[Document] | None = None, *, rnd: int | None = None, **kwargs: Any) -> None:
        super().__init__(df, rnd=rnd, **kwargs)
        self._seed = rnd

    def set_rnd(self, rnd: int | None) -> OtherDialogueSampler:
        """Set the host's few-shot seed."""
        self._seed = rnd
        super().set_rnd(rnd)
        return self

    def sample(
        self, n: int, eval_doc: Document | None = None, df: Sequence[Document] | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return `n` examples for `eval_doc`, in prompt order."""
        if df:
            self.replace_df(df)
        pool = self.fewshot_docs()
        if n == 0 or (eval_doc is not None and eval_doc["is_absent"]):
            return []
        cluster = eval_doc["cluster"] if eval_doc is not None else None
        chosen = [index for index in self.ranking(pool, eval_doc) if pool[index]["cluster"] != cluster][:n]
        if len(chosen) < n:
            raise InputError(
                f"few-shot examples: {n} were asked for, but the other dialogues of the set have {len(chosen)}. "
                "Ask for fewer (--num_fewshot)."
            )
        return [pool[index] for index in (chosen[::-1] if self.is_best_last else chosen)]

    @abstractmethod
    def ranking(self, pool: Sequence[Document], eval_doc: Document | None) -> Sequence[int]:
        """Return positions in `pool`, the best example first."""


class RandomSampler(OtherDialogueSampler):
    """The same random examples for every document, as in the paper, except those of its own dialogue.

    The order is drawn once from the seed, so it depends neither on the documents before nor on the number of processes.
    """

    def ranking(self, pool: Sequence[Document], eval_doc: Document | None) -> Sequence[int]:
        """Return the positions in `pool` in random order."""
        return _shuffled(self._seed, len(pool))


@functools.lru_cache(maxsize=8)
def _shuffled(seed: int | None, number: int) -> Sequence[int]:
    order = list(range(number))
    random.Random(seed).shuffle(order)
    return order


class OkapiIndex:
    """Okapi BM25 over texts as in the package rank-bm25: a word in more than half of the texts has `FLOOR` of the mean weight.

    Other packages weigh common words differently and so choose other examples.
    """

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        # An empty text would make the average length 0 where all are empty.
        counts = [Counter(text or [""]) for text in texts]
        occurrences: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, count in enumerate(counts):
            for word, number in count.items():
                occurrences[word].append((place, number))
        self._postings = {word: np.array(places).T for word, places in occurrences.items()}
        weights = {
            word: math.log(len(texts) - len(places) + 0.5) - math.log(len(places) + 0.5) for word, places in occurrences.items()
        }
        floor = FLOOR * sum(weights.values()) / len(weights)
        self._weights = {word: weight if weight >= 0 else floor for word, weight in weights.items()}
        lengths = np.array([count.total() for count in counts])
        self._norms = K1 * (1 - B + B * lengths / lengths.mean())

    def scores(self, query: Sequence[str]) -> NDArray[np.float64]:
        """Return the similarity of each text to the words of `query`, each as often as it occurs."""
        scores = np.zeros(len(self._norms))
        for word in query:
            if word in self._postings:
                places, numbers = self._postings[word]
                scores[places] += self._weights[word] * (numbers * (K1 + 1) / (numbers + self._norms[places]))
        return scores


class _BM25Sampler(OtherDialogueSampler):
    """The nearest documents by Okapi BM25 over lower-cased words, with the nearest last, next to the question."""

    is_best_last = True
    text: Callable[[Document], str]
    """Returns the text by which documents are compared."""
    _pool: Sequence[Document] | None = None
    _index: OkapiIndex

    def ranking(self, pool: Sequence[Document], eval_doc: Document | None) -> Sequence[int]:
        """Return positions in `pool` by descending similarity; ties keep the order of the file."""
        # A reference to the indexed pool is kept, so that no other object can have its id.
        if pool is not self._pool:
            self._index = OkapiIndex([_words(self.text(doc)) for doc in pool])
            self._pool = pool
        query = self.text(eval_doc) if eval_doc is not None else ""
        order: list[int] = np.argsort(-self._index.scores(_words(query)), kind="stable").tolist()
        return order


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _context(doc: Document) -> str:
    """Return the context; for a whole dialogue, the turns of its first speaker."""
    return " ".join(turn["text"] for turn in doc["context"] or _turns(doc, of_opener=True))


def _response(doc: Document) -> str:
    """Return the response; for a whole dialogue, the turns of the other speakers."""
    return " ".join(turn["text"] for turn in ([doc["response"]] if doc["level"] == "turn" else _turns(doc, of_opener=False)))


def _turns(doc: Document, *, of_opener: bool) -> list[Any]:
    return [turn for turn in doc["turns"] if (turn["speaker"] == doc["turns"][0]["speaker"]) == of_opener]


class ContextBM25Sampler(_BM25Sampler):
    """BM25_C: nearest by context."""

    text = staticmethod(_context)


class ResponseBM25Sampler(_BM25Sampler):
    """BM25_R: nearest by response."""

    text = staticmethod(_response)


class ContextResponseBM25Sampler(_BM25Sampler):
    """BM25_C+R: nearest by context and response."""

    text = staticmethod(lambda doc: f"{_context(doc)} {_response(doc)}")


class _ThreadSampler(OtherDialogueSampler, ABC):
    """Base for rating tasks: an example is a whole dialogue with all its rated responses, numbered as in the prompt."""

    _threads: list[Document] | None = None

    def replace_df(self, df: Sequence[Document]) -> _ThreadSampler:
        """Set the documents to choose from."""
        self._threads = None
        super().replace_df(df)
        return self

    def fewshot_docs(self) -> Sequence[Document]:
        """Return one document per dialogue."""
        if self._threads is None:
            self._threads = list(joined_threads(super().fewshot_docs()))
        return self._threads

    def sample(
        self, n: int, eval_doc: Document | None = None, df: Sequence[Document] | None = None, **kwargs: Any
    ) -> list[Document]:
        chosen = super().sample(n, eval_doc, df, **kwargs)
        return [shown(joined, number) for number, joined in enumerate(chosen, start=1)]


class RandomThreadSampler(_ThreadSampler, RandomSampler):
    """The same random dialogues for every document except its own, by the host's few-shot seed."""


class SeededThreadSampler(RandomThreadSampler):
    """Random dialogues by the seed of the document, for a task that runs several times."""

    def ranking(self, pool: Sequence[Document], eval_doc: Document | None) -> Sequence[int]:
        """Return positions in `pool` in the order of the document's seed."""
        if eval_doc is not None:
            self._seed = eval_doc["seed"]
        return super().ranking(pool, eval_doc)


class ContextBM25ThreadSampler(_ThreadSampler, ContextBM25Sampler):
    """BM25_C: nearest by context; a dialogue's context is all turns up to its last rated response."""


class ResponseBM25ThreadSampler(_ThreadSampler, ResponseBM25Sampler):
    """BM25_R: nearest by response; a dialogue's response is all its rated responses."""


class ContextResponseBM25ThreadSampler(_ThreadSampler, ContextResponseBM25Sampler):
    """BM25_C+R: nearest by context and response."""


class PrintedExamples(ContextSampler):  # type: ignore[misc]  # the host is not typed
    """The examples printed in the paper's classification prompt, in order, without those of the dialogue under test."""

    def sample(
        self, n: int, eval_doc: Document | None = None, df: Sequence[Document] | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the first `n` printed examples, or fewer if some belong to the tested dialogue."""
        if n > len(classification.PRINTED_EXAMPLES):
            raise InputError(
                f"few-shot examples: {n} were asked for, but the paper prints {len(classification.PRINTED_EXAMPLES)}. "
                "Ask for fewer (--num_fewshot)."
            )
        examples = classification.PRINTED_EXAMPLES[:n]
        item = item_of(eval_doc) if eval_doc is not None else None
        if isinstance(item, Example):
            examples = classification.ClassificationPrompt(examples).shown_for(item)
        texts = classification.example_texts(examples)
        kinds = ["positive" if one.label == classification.POSITIVE else "adversarial" for one in examples]
        return [
            {**document(one.example, kind), "example": text} for one, kind, text in zip(examples, kinds, texts, strict=True)
        ]
