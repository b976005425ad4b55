"""The scorer `auto`: each conversation is judged by the evaluator of its register, `general` or `assistant`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from typing_extensions import TypedDict

from dialeval_plugin.conversations.messages import assistant
from dialeval_plugin.core.dialogue import Example, Item, Level, context_turns, is_blank
from dialeval_plugin.core.files import checked_model_file
from dialeval_plugin.core.registry import load_scorer, with_options
from dialeval_plugin.core.scorer import Scorer, score_rows
from dialeval_plugin.core.scores import Row, Unscored
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.methods.composed import ComposedScorer
from dialeval_plugin.models.runtimes.runtime import DEFAULT_BACKEND, Backend, Precision

SCORERS = {"social": "general", "assistant": "assistant"}
"""Scorer by register."""


@dataclass(frozen=True)
class AutoOptions:
    """Options of `auto`.

    Attributes:
        general: folder or hub id of the model for `general`.
        assistant: folder or hub id of the model for `assistant`.
        level: "turn" scores one response, "dialogue" a whole dialogue.
        backend: runtime of the models; auto is the fastest installed one that is as exact as torch.
        dtype: number format of multiplications in the encoders on torch; float16 only on a GPU.
        device: torch device; by default a GPU if there is one.
    """

    general: str | None = None
    assistant: str | None = None
    _: KW_ONLY
    level: Level = "turn"
    backend: Backend = DEFAULT_BACKEND
    dtype: Precision = "float32"
    device: str | None = None


class AutoScorer(ComposedScorer):
    """Scores social conversations with `general` and assistants' answers with `assistant`, by the beginning of a conversation.

    Columns: `auto`, the score of the scorer that judged; then the columns of both, None for the other one. The two scores have
    no common scale, so that no mean is taken over both; percentiles refer to the scorer that judged. All messages of a
    conversation are judged by the same scorer, see `opening_of`.

    Raises:
        MissingPrerequisite: there is no model.
        ModelLoadError: a model is damaged, unsafe or of another kind.
    """

    name: ClassVar[str] = "auto"
    levels = ("turn", "dialogue")
    window: ClassVar[int] = 512
    has_one_scale = False

    @with_options(AutoOptions)
    def __init__(self, options: AutoOptions) -> None:
        self.level = options.level
        shared = {name: getattr(options, name) for name in ("level", "backend", "dtype", "device")}
        self.parts = {name: load_scorer(name, model=getattr(options, name), **shared) for name in SCORERS.values()}
        self.settings = {"register": REGISTER_HASH}
        self.judges = tuple(part.columns[0] for part in self.parts.values())
        self.percentiles, self.scope = (self._of_both(name) for name in ("percentiles", "scope"))
        self.columns = tuple(dict.fromkeys(["auto", *(name for part in self.parts.values() for name in part.columns)]))
        self.truncation_columns = self.all_truncation_columns()

    def part_of(self, item: Item) -> Scorer:
        """Return the scorer of the register of the item's conversation."""
        return self.parts[SCORERS[register_of(item)]]

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score each item with the scorer of its register."""

        def judged(part: Scorer, own: list[Item]) -> list[Row]:
            rows = score_rows(part, own)
            return [row if isinstance(row, Unscored) else {"auto": row[part.columns[0]], **row} for row in rows]

        return self.by_part(items, judged)

    def _of_both(self, name: str) -> Any:
        """The first model's metadata, with a hash of the second model's; None if either has none."""
        first, second = (getattr(part, name) for part in self.parts.values())
        both = first is not None and second is not None
        return replace(first, sources={**first.sources, SCORERS["assistant"]: second.digest}) if both else None


Register: TypeAlias = Literal["social", "assistant"]

SETTINGS_FILE = Path(__file__).with_name("register.json")
"""File of patterns and weights, fitted by `python -m reproduction.auto.write --weights FILE`."""
_LONGEST = 1000
"""Number of characters of a text that are read."""
_LONG_ANSWER = 100
"""Number of words beyond which an answer's length counts as equal."""


class Opening(NamedTuple):
    """The beginning of a conversation."""

    question: str
    """Empty if the answer comes first."""
    answer: str


def opening_of(item: Item) -> Opening:
    """Return the first non-blank turn if it is a known assistant's, otherwise the first two."""
    response = (item.response,) if isinstance(item, Example) else ()
    turns = [turn for turn in (*context_turns(item), *response) if not is_blank(turn.text)][:2]
    if turns and assistant(turns[:1]) is not None:
        turns = turns[:1]
    *before, answer = [turn.text for turn in turns] or [""]
    return Opening("".join(before), answer)


def opening_features(opening: Opening) -> dict[str, float]:
    """Return by name 1 or 0 for each pattern in question and answer, and the logarithm of the answer's number of words."""
    return {
        **{
            f"{part}_{name}": float(pattern.search(text[:_LONGEST]) is not None)
            for part, text in opening._asdict().items()
            for name, pattern in _PATTERNS.items()
        },
        "answer_length": math.log1p(min(len(opening.answer.split()), _LONG_ANSWER)),
    }


def register_of(item: Item) -> Register:
    """Return the register of the conversation that an item belongs to, or is."""
    features, weights = opening_features(opening_of(item)), _SETTINGS["weights"]
    log_odds = _SETTINGS["offset"] + math.fsum(weights[name] * value for name, value in features.items())
    return "assistant" if log_odds > 0 else "social"


class _Settings(TypedDict):
    """Contents of the file."""

    learnt_from: Mapping[str, str]
    patterns: Mapping[str, str]
    offset: float
    weights: Mapping[str, float]


_SETTINGS = checked_model_file(SETTINGS_FILE, _Settings)
_PATTERNS = {name: re.compile(text, re.IGNORECASE | re.MULTILINE) for name, text in _SETTINGS["patterns"].items()}
REGISTER_HASH = text_hash(repr(_SETTINGS))
"""Hash of patterns and weights, for a signature."""
