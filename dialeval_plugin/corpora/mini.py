"""The embedded corpus: dialogues written for this project, so that everything runs without a network.

Its labels are set by construction, not rated: a response is written to fit its context, or to mislead by sharing words.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import unknown_name
from dialeval_plugin.core.files import read_json_lines

from .corpus import Corpus
from .readers import dailydialog_pp
from .readers.dailydialog_pp import ResponseSet

Split: TypeAlias = Literal["train", "validation", "test"]

SPLITS: tuple[Split, ...] = ("train", "validation", "test")
QUALITY = "fits"
"""Label of `read_examples`: 1 if the response is written to fit, otherwise 0."""
RANDOM_NEGATIVES = 5
CALIBRATION_TEXTS = 120
"""Number of texts that show the typical size of a model's numbers."""
_SEED = 0


def folder() -> Path:
    """Return the corpus' folder inside the package."""
    return Path(__file__).resolve().parent / "mini"


def read_response_sets(split: Split | None = None) -> list[ResponseSet]:
    """Return the contexts of a split (None: of all) in the DailyDialog++ layout.

    The file holds no random negatives. Each context gets five positives of five other contexts of its split, drawn with a fixed
    seed, so that the draw is the same with and without `split` and in every release.
    """
    if split is not None and split not in SPLITS:
        raise unknown_name(f"mini: there is no split {split!r}", split, SPLITS)
    path = folder() / "dailydialog_pp.jsonl"
    members: dict[str, list[ResponseSet]] = {name: [] for name in SPLITS}
    for row, found in zip(read_json_lines(path), dailydialog_pp.read(path), strict=True):
        members[row.value["split"]].append(found)
    return [_with_random_negatives(found, members[name]) for name in ((split,) if split else SPLITS) for found in members[name]]


def read_examples(split: Split | None = None) -> list[Example]:
    """Return the same corpus as DSTC10-like examples: one per response, rated by construction 1.0 or 0.0 in "fits".

    `system` names the kind of response ("positive", "random", "adversarial"), as DSTC10's names the chatbot.
    """
    kinds = {"p": "positive", "r": "random", "a": "adversarial"}
    return [
        replace(example, system=kinds[example.id.removeprefix(response_set.id)[0]])
        for response_set in read_response_sets(split)
        for example in response_set.examples(QUALITY)
    ]


def calibration_texts() -> list[tuple[str, ...]]:
    """Return `CALIBRATION_TEXTS` texts of the training split, contexts and single responses, always the same."""
    texts: list[tuple[str, ...]] = []
    for response_set in read_response_sets("train"):
        responses = (*response_set.positive, *response_set.adversarial)
        texts += [response_set.context, *((response,) for response in responses)]
    return random.Random(_SEED).sample(texts, CALIBRATION_TEXTS)


def _with_random_negatives(response_set: ResponseSet, members: Sequence[ResponseSet]) -> ResponseSet:
    generator = random.Random(f"{_SEED}:{response_set.id}")
    others = [other for other in members if other.context != response_set.context]
    chosen = generator.sample(others, RANDOM_NEGATIVES)
    return replace(response_set, random=tuple(generator.choice(other.positive) for other in chosen))


CORPUS = Corpus(
    name="mini",
    layout="JSON lines with `context`, `positive_responses`, as DailyDialog++",
    packaged=folder(),
    qualities={"turn": (QUALITY,)},
    overall={"turn": QUALITY},
    sets={"mini": lambda: read_examples("test")},
)
