"""Asks a language model each request once, and counts: a run that is repeated pays for its failures only."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from dialeval_plugin.core.scores import Reason, Unscored

from .answer_cache import AnswerCache, request_key
from .language_model import Continuation, LanguageModel, NumberListener, Request, TextListener, TokenCounter

CHARACTERS_PER_TOKEN = 4
"""Of English text; the estimate where a tokenizer is not at hand."""
_NEVER_ASKED = Unscored(Reason.API_ERROR, "not asked")

Answer = TypeVar("Answer", str, float)
Asked = TypeVar("Asked", Request, Continuation)


@dataclass(frozen=True, slots=True)
class Usage:
    """What was asked of a language model, in distinct requests."""

    n_asked: int = 0
    """Requests that reached the model."""
    n_cached: int = 0
    """Requests that were answered from the cache instead."""
    n_failed: int = 0
    """Requests that reached the model and have no answer."""
    prompt_tokens: int = 0
    """Of the prompts that reached the model."""
    is_estimate: bool = False
    """Whether tokens were estimated from characters, because the model's tokenizer was not at hand."""

    @property
    def n_requests(self) -> int:
        """All requests."""
        return self.n_asked + self.n_cached

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.n_asked + other.n_asked,
            self.n_cached + other.n_cached,
            self.n_failed + other.n_failed,
            self.prompt_tokens + other.prompt_tokens,
            self.is_estimate or other.is_estimate,
        )

    def __str__(self) -> str:
        """One line for people.

        Example:
            >>> print(Usage(n_asked=3, n_cached=9, n_failed=1, prompt_tokens=1200, is_estimate=True))
            3 calls, about 1200 prompt tokens (at 4 characters a token), 9 of 12 requests from the cache (75 %), 1 failed
        """
        return f"{self.estimate()}, {self.n_failed} failed"

    def estimate(self) -> str:
        """One line for people before anything is asked."""
        tokens = f"{self.prompt_tokens} prompt tokens"
        if self.is_estimate:
            tokens = f"about {tokens} (at {CHARACTERS_PER_TOKEN} characters a token)"
        share = f" ({100 * self.n_cached / self.n_requests:.0f} %)" if self.n_requests else ""
        return f"{self.n_asked} calls, {tokens}, {self.n_cached} of {self.n_requests} requests from the cache{share}"


def count_tokens(model: LanguageModel | None, prompts: Sequence[str]) -> int | None:
    """Tokens of all prompts; None where the model does not say."""
    return model.count_tokens(prompts) if isinstance(model, TokenCounter) else None


class CachedLanguageModel:
    """A language model that is asked each request once, and counts.

    An `Unscored` is no answer: it is not kept, and the request is made again the next time. Neither is a blank text, which is
    what hosts return where a server sends none.

    Without a `cache` answers are not kept, and counted all the same.
    """

    def __init__(self, model: LanguageModel, cache: AnswerCache | None) -> None:
        self.model = model
        self.cache = cache
        self.usage = Usage()

    @property
    def identity(self) -> str:
        """The model's own."""
        return self.model.identity

    def count_tokens(self, prompts: Sequence[str]) -> int | None:
        """Tokens of all prompts; None where the model does not say."""
        return count_tokens(self.model, prompts)

    def generate(self, requests: Sequence[Request], *, on_answer: TextListener | None = None) -> list[str | Unscored]:
        """Continue each prompt; equal requests are asked once, and a rerun asks for those that failed only."""
        keys = [_key_of(self.identity, request) for request in requests]
        texts = [request.prompt for request in requests]
        return self._look_up(keys, texts, requests, self.model.generate, on_answer)

    def loglikelihood(
        self, pairs: Sequence[Continuation], *, on_answer: NumberListener | None = None
    ) -> list[float | Unscored]:
        """Log probability of each continuation after its context; equal pairs are asked once."""
        keys = [
            request_key(self.identity, "loglikelihood", context, continuation=continuation) for context, continuation in pairs
        ]
        return self._look_up(keys, list(map("".join, pairs)), pairs, self.model.loglikelihood, on_answer)

    def _look_up(
        self,
        keys: Sequence[str],
        texts: Sequence[str],
        requests: Sequence[Asked],
        ask: Callable[..., list[Answer | Unscored]],
        on_answer: Callable[[int, Answer], None] | None,
    ) -> list[Answer | Unscored]:
        """What the cache knows of requests, and the model's answers to the rest; equal keys are one request."""
        places: dict[str, int] = {}
        for place, key in enumerate(keys):
            places.setdefault(key, place)
        with contextlib.nullcontext() if self.cache is None else self.cache.session() as session:
            known = cast("dict[str, Answer | Unscored]", session.read(list(places)) if session else {})
            missing = {key: place for key, place in places.items() if key not in known}
            self._count([texts[place] for place in missing.values()], n_cached=len(known))
            if missing:
                names = list(missing)

                def keep(index: int, answer: Answer) -> None:
                    if session and _is_answer(answer):
                        session.write(names[index], answer)

                fresh = ask([requests[place] for place in missing.values()], on_answer=keep)
                known.update(zip(names, fresh, strict=True))
                self.usage += Usage(n_failed=sum(isinstance(answer, Unscored) for answer in fresh))
        answers = [known[key] for key in keys]
        if on_answer is not None:
            for place, answer in enumerate(answers):
                if not isinstance(answer, Unscored):
                    on_answer(place, answer)
        return answers

    def _count(self, texts: Sequence[str], n_cached: int) -> None:
        counted = self.count_tokens(texts)
        tokens = -(-sum(map(len, texts)) // CHARACTERS_PER_TOKEN) if counted is None else counted
        self.usage += Usage(len(texts), n_cached, 0, tokens, counted is None and bool(texts))


def _is_answer(answer: str | float) -> bool:
    return bool(answer.strip()) if isinstance(answer, str) else answer == -math.inf or math.isfinite(answer)


def _key_of(identity: str, request: Request) -> str:
    limits = {"max_tokens": request.max_tokens, "stop": list(request.stop)}
    if not request.temperature:
        return request_key(identity, "generate", request.prompt, **limits)
    drawn = {"temperature": float(request.temperature), "sample": request.sample}
    return request_key(identity, "sample", request.prompt, **limits, **drawn)


class UnaskedLanguageModel:
    """Has the name of a model and answers nothing: inside a `CachedLanguageModel` it shows what a run would ask.

    The tokenizer of `model` counts; `identity` is the name where somebody else asks the model.
    """

    def __init__(self, model: LanguageModel | None = None, *, identity: str = "") -> None:
        self.model = model
        self.identity = identity if model is None else model.identity

    def count_tokens(self, prompts: Sequence[str]) -> int | None:
        """Tokens of all prompts; None where the model does not say."""
        return count_tokens(self.model, prompts)

    def generate(self, requests: Sequence[Request], *, on_answer: TextListener | None = None) -> list[str | Unscored]:
        """No answer to any."""
        return [_NEVER_ASKED] * len(requests)

    def loglikelihood(
        self, pairs: Sequence[Continuation], *, on_answer: NumberListener | None = None
    ) -> list[float | Unscored]:
        """No answer to any."""
        return [_NEVER_ASKED] * len(pairs)
