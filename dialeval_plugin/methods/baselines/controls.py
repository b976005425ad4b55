"""Scorers without knowledge of dialogue, which a metric has to beat: the length of the response, and chance."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import ClassVar, cast

from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.registry import checked_init
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Row
from dialeval_plugin.core.signature import SignatureValue


class ResponseLength(Scorer):
    """Length of the response in `words`, separated by white space, and in `characters`. A blank response has no score."""

    name: ClassVar[str] = "response_length"
    columns = ("words", "characters")
    range = (0.0, math.inf)

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Count the words and the characters of each response."""
        texts = [item.response.text.strip() for item in cast("Sequence[Example]", items)]
        return [{"words": float(len(text.split())), "characters": float(len(text))} for text in texts]

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return the method; it has no options."""
        return {"method": self.name}


class RandomScore(Scorer):
    """A random number in [0, 1) that depends only on the seed and the texts of context and response.

    Equal examples get equal numbers, in every order, batch, process and host; ids do not matter, because some hosts have none.
    A blank response has no score.

    Args:
        seed: seed of the random numbers.

    Raises:
        InputError: the seed is no whole number.
    """

    name: ClassVar[str] = "random"
    columns = ("random",)

    @checked_init
    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Draw a number for each example."""
        return [{"random": self._draw(example)} for example in cast("Sequence[Example]", items)]

    def _draw(self, example: Example) -> float:
        content = json.dumps([self.seed, [turn.text for turn in example.context], example.response.text])
        # A float between 0 and 1 has 53 bits.
        return (int.from_bytes(hashlib.sha256(content.encode()).digest()[:8]) >> 11) / 2**53

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method and seed."""
        return {"method": self.name, "seed": self.seed}
