"""Asks a language model each request once, and counts: a run that is repeated pays for its failures only."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from dialeval_plugin.core.scores import Reason, Unscored

from .answer_cache import AnswerCache, NothingKept, Session, request_key
from .language_model import LanguageModel, NumberListener, TextListener, TokenCounter

CHARACTERS_PER_TOKEN = 4
"""Of English text; the estimate where a tokenizer is not at hand."""
_NEVER_ASKED = Unscored(Reason.API_ERROR, "not asked")

Answer = TypeVar("Answer", str, float)


@dataclass(frozen=True, slots=True)
class Usage:
    """What was asked of a language model, in distinct requests.

    Attributes:
        n_asked: requests that reached the model.
        n_cached: requests that were answered from the cache instead.
        n_failed: requests that reached the model and have no answer.
        prompt_tokens: tokens of the prompts that reached the model.
        is_estimate: whether tokens were estimated from characters, because the model's tokenizer was not at hand.
    """

    n_asked: int = 0
    n_cached: int = 0
    n_failed: int = 0
    prompt_tokens: int = 0
    is_estimate: bool = False

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
        return f"{self._without_failures()}, {self.n_failed} failed"

    def estimate(self) -> str:
        """One line for people before anything is asked.

        Example:
            >>> Usage(n_asked=3, n_cached=9, prompt_tokens=1200).estimate()
            '3 calls, 1200 prompt tokens, 9 of 12 requests from the cache (75 %)'
        """
        return self._without_failures()

    def _without_failures(self) -> str:
        tokens = f"{self.prompt_tokens} prompt tokens"
        if self.is_estimate:
            tokens = f"about {tokens} (at {CHARACTERS_PER_TOKEN} characters a token)"
        share = f" ({100 * self.n_cached / self.n_requests:.0f} %)" if self.n_requests else ""
        return f"{self.n_asked} calls, {tokens}, {self.n_cached} of {self.n_requests} requests from the cache{share}"


class CachedLanguageModel:
    """A language model that is asked each request once, and counts.

    An `Unscored` is no answer: it is not kept, and the request is made again the next time. Neither is a blank text, which is
    what hosts return where a server sends none.

    Args:
        model: the model to ask.
        cache: where answers are kept; None keeps none, and counts all the same.

    Attributes:
        usage: what was asked since the model was made.
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
        return self.model.count_tokens(prompts) if isinstance(self.model, TokenCounter) else None

    def generate(
        self, prompts: Sequence[str], *, max_tokens: int, stop: Sequence[str], on_answer: TextListener | None = None
    ) -> list[str | Unscored]:
        """Continue each prompt greedily; equal prompts are asked once."""
        identity = self.identity
        keys = [request_key(identity, "generate", prompt, max_tokens=max_tokens, stop=list(stop)) for prompt in prompts]

        def ask(places: Sequence[int], keep: TextListener) -> list[str | Unscored]:
            return self.model.generate([prompts[place] for place in places], max_tokens=max_tokens, stop=stop, on_answer=keep)

        return _Lookup(self, keys, lambda place: prompts[place], ask).answers(on_answer)

    def sample(
        self,
        prompts: Sequence[str],
        *,
        n_samples: int,
        temperature: float,
        max_tokens: int,
        stop: Sequence[str],
        first_sample: int = 0,
        on_answer: TextListener | None = None,
    ) -> list[list[str | Unscored]]:
        """Draw continuations of each prompt; each is kept under its number, so that a rerun draws the failed ones only."""
        parameters = {"temperature": float(temperature), "max_tokens": max_tokens, "stop": list(stop)}
        identity = self.identity
        keys = [
            request_key(identity, "sample", prompt, sample=first_sample + number, **parameters)
            for prompt in prompts
            for number in range(n_samples)
        ]

        def ask(places: Sequence[int], keep: TextListener) -> list[str | Unscored]:
            answers: list[str | Unscored] = [_NEVER_ASKED] * len(places)
            for (first, length), starts in _runs(places, n_samples).items():
                drawn = self.model.sample(
                    [prompts[places[start] // n_samples] for start in starts],
                    n_samples=length,
                    temperature=temperature,
                    max_tokens=max_tokens,
                    stop=stop,
                    first_sample=first_sample + first,
                    on_answer=_at_runs(keep, starts, length),
                )
                for start, samples in zip(starts, drawn, strict=True):
                    answers[start : start + length] = samples
            return answers

        flat = _Lookup(self, keys, lambda place: prompts[place // n_samples], ask).answers(on_answer)
        return [flat[start : start + n_samples] for start in range(0, len(flat), n_samples)]

    def loglikelihood(
        self, pairs: Sequence[tuple[str, str]], *, on_answer: NumberListener | None = None
    ) -> list[float | Unscored]:
        """Log probability of each continuation after its context; equal pairs are asked once."""
        identity = self.identity
        keys = [request_key(identity, "loglikelihood", context, continuation=continuation) for context, continuation in pairs]

        def ask(places: Sequence[int], keep: NumberListener) -> list[float | Unscored]:
            return self.model.loglikelihood([pairs[place] for place in places], on_answer=keep)

        return _Lookup(self, keys, lambda place: "".join(pairs[place]), ask).answers(on_answer)

    def session(self) -> contextlib.AbstractContextManager[Session]:
        """The cache's, or one that keeps nothing."""
        return contextlib.nullcontext(NothingKept()) if self.cache is None else self.cache.session()

    def count(self, texts: Sequence[str], n_cached: int) -> None:
        """Add requests to the usage; `texts` are the prompts of those that go to the model."""
        counted = self.count_tokens(texts)
        tokens = -(-sum(map(len, texts)) // CHARACTERS_PER_TOKEN) if counted is None else counted
        self.usage += Usage(len(texts), n_cached, 0, tokens, counted is None and bool(texts))


@dataclass(frozen=True, slots=True)
class _Lookup(Generic[Answer]):
    """One call: what the cache knows, and the model's answers to the rest.

    Attributes:
        owner: whose cache it is, and whose usage.
        keys: of the requests, in order; equal ones are one request.
        text: the prompt at a place.
        ask: asks the model for the requests at some places, with a function that keeps an answer.
    """

    owner: CachedLanguageModel
    keys: Sequence[str]
    text: Callable[[int], str]
    ask: Callable[[Sequence[int], Callable[[int, Answer], None]], list[Answer | Unscored]]

    def answers(self, on_answer: Callable[[int, Answer], None] | None) -> list[Answer | Unscored]:
        places: dict[str, int] = {}
        for place, key in enumerate(self.keys):
            places.setdefault(key, place)
        with self.owner.session() as session:
            known = cast("dict[str, Answer | Unscored]", session.read(list(places)))
            missing = [place for key, place in places.items() if key not in known]
            self.owner.count([self.text(place) for place in missing], n_cached=len(known))
            if missing:
                fresh = self.ask(missing, lambda index, answer: _keep(session, self.keys[missing[index]], answer))
                known.update((self.keys[place], answer) for place, answer in zip(missing, fresh, strict=True))
                self.owner.usage += Usage(n_failed=sum(isinstance(answer, Unscored) for answer in fresh))
        answers = [known[key] for key in self.keys]
        if on_answer is not None:
            for place, answer in enumerate(answers):
                if not isinstance(answer, Unscored):
                    on_answer(place, answer)
        return answers


def _keep(session: Session, key: str, answer: str | float) -> None:
    is_answer = bool(answer.strip()) if isinstance(answer, str) else answer == -math.inf or math.isfinite(answer)
    if is_answer:
        session.write(key, answer)


def _runs(places: Sequence[int], n_samples: int) -> dict[tuple[int, int], list[int]]:
    """Group places by the run of consecutive samples of one prompt that they are.

    Returns:
        Number of the first sample and length of the run, to the indices in `places` where such runs start.
    """
    runs: dict[tuple[int, int], list[int]] = {}
    start = 0
    for end in range(1, len(places) + 1):
        goes_on = end < len(places) and places[end] == places[end - 1] + 1 and places[end] % n_samples
        if not goes_on:
            runs.setdefault((places[start] % n_samples, end - start), []).append(start)
            start = end
    return runs


def _at_runs(keep: TextListener, starts: Sequence[int], length: int) -> TextListener:
    return lambda place, answer: keep(starts[place // length] + place % length, answer)


class UnaskedLanguageModel:
    """Has the name of a model and answers nothing: inside a `CachedLanguageModel` it shows what a run would ask.

    Args:
        model: the model that is not asked; its tokenizer counts.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model = model

    @property
    def identity(self) -> str:
        """The model's."""
        return self.model.identity

    def count_tokens(self, prompts: Sequence[str]) -> int | None:
        """Tokens of all prompts; None where the model does not say."""
        return self.model.count_tokens(prompts) if isinstance(self.model, TokenCounter) else None

    def generate(
        self, prompts: Sequence[str], *, max_tokens: int, stop: Sequence[str], on_answer: TextListener | None = None
    ) -> list[str | Unscored]:
        """No answer to any."""
        return [_NEVER_ASKED] * len(prompts)

    def sample(
        self,
        prompts: Sequence[str],
        *,
        n_samples: int,
        temperature: float,
        max_tokens: int,
        stop: Sequence[str],
        first_sample: int = 0,
        on_answer: TextListener | None = None,
    ) -> list[list[str | Unscored]]:
        """No answer to any."""
        return [[_NEVER_ASKED] * n_samples for _ in prompts]

    def loglikelihood(
        self, pairs: Sequence[tuple[str, str]], *, on_answer: NumberListener | None = None
    ) -> list[float | Unscored]:
        """No answer to any."""
        return [_NEVER_ASKED] * len(pairs)
