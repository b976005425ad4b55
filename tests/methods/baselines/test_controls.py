"""Length and chance."""

from __future__ import annotations

import subprocess
import sys

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.methods.baselines.controls import RandomScore, ResponseLength

ITEMS = [Example.from_texts([f"Turn {number}."], "Yes.", id=str(number)) for number in range(400)]
PRINT_ONE = """
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.methods.baselines.controls import RandomScore
print(repr(RandomScore(3).score([Example.from_texts(["Turn 7."], "Yes.", id="x")]).values[0]))
"""


def test_length_counts_words_and_characters() -> None:
    scores = ResponseLength().score([Example.from_texts([], "  It's late, isn't it? "), Example.from_texts([], "🙂")])
    assert dict(scores.columns) == {"words": (4.0, 1.0), "characters": (20.0, 1.0)}


def test_chance_is_the_same_in_every_order_and_process() -> None:
    scores = RandomScore(3).score(ITEMS)
    assert RandomScore(3).score(ITEMS[::-1]).values == scores.values[::-1]
    for hash_seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", PRINT_ONE], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": hash_seed}
        )
        assert float(done.stdout) == scores.values[7]


def test_chance_is_uniform_and_another_seed_another_draw() -> None:
    values = [value for value in RandomScore().score(ITEMS).values if value is not None]
    assert len({*values}) == 400
    # Four standard deviations of a mean of 400.
    assert abs(sum(values) / 400 - 0.5) < 4 * (1 / 12 / 400) ** 0.5
    assert RandomScore(1).score(ITEMS).values != tuple(values)


def test_equal_examples_get_equal_numbers_whatever_their_ids_are() -> None:
    one, other = RandomScore().score([Example.from_texts(["a"], "b", id=id) for id in ("1", "2")]).values
    assert one == other
    moved, text = RandomScore().score([Example.from_texts(["ab"], "c"), Example.from_texts(["a"], "bc")]).values
    assert moved != text
