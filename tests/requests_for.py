"""Requests as a test types them."""

from __future__ import annotations

from collections.abc import Sequence

from dialeval_plugin.llm.language_model import Request


def requests_for(prompts: Sequence[str], *, max_tokens: int = 5, stop: Sequence[str] = ()) -> list[Request]:
    """A greedy request for each prompt."""
    return [Request(prompt, max_tokens, tuple(stop)) for prompt in prompts]


def samples_for(
    prompts: Sequence[str], *, n_samples: int, temperature: float = 1.0, first_sample: int = 0, max_tokens: int = 5
) -> list[Request]:
    """Requests for drawn answers, those to one prompt together."""
    numbers = range(first_sample, first_sample + n_samples)
    return [Request(prompt, max_tokens, (), temperature, number) for prompt in prompts for number in numbers]
