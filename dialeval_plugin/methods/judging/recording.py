"""Keeps what a large language model said of items in a file that stands in for it later, see `replay`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import parse_json, read_text, to_json, write_json_lines
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Scores
from dialeval_plugin.corpora.verdicts import ItemKey, RecordedVerdict
from dialeval_plugin.llm.language_model import Question, judge_of

from .judge import COLUMN, OVERALL_QUALITY

SUFFIX = ".jsonl"


@dataclass
class Recorder:
    """What of a scorer's columns is kept, and where; `verdicts` are those of the scores that were added."""

    path: Path
    judge: str
    columns: Mapping[str, Question]
    verdicts: list[RecordedVerdict] = field(default_factory=list)

    @classmethod
    def of(cls, scorer: Scorer, path: Path) -> Recorder:
        """Make it for a scorer that asks a large language model.

        Raises:
            InputError: the scorer asks none, or the file's name does not end in .jsonl.
        """
        if path.suffix != SUFFIX:
            raise InputError(f"{path}: verdicts are kept as JSON lines. End the name in {SUFFIX}.")
        if (judge := judge_of(scorer)) is None:
            raise InputError(f"--record: keeps what a language model says, and {scorer.name} asks none. Name one with --llm.")
        of_judge = {COLUMN: Question(OVERALL_QUALITY, (0.0, 1.0))}
        return cls(path, judge.llm.identity, judge.verdicts() if judge is scorer else of_judge)

    def refuse_others(self, items: Iterable[Item]) -> None:
        """Refuse to replace verdicts, which may have been paid for, of another judge or about something else than `items`."""
        if not self.path.exists():
            return
        own = {(self.judge, question.quality, *ItemKey.of(item)) for item in items for question in self.columns.values()}
        for place, line in enumerate(self._stored(), start=1):
            one = parse_json(line, f"{self.path}:{place}")
            if not isinstance(one, dict) or tuple(map(one.get, ("judge", "quality", "level", "item"))) not in own:
                raise self._refusal()

    def add(self, scores: Scores) -> None:
        """Take the verdicts of the next scores; items without one are left out."""
        keys = [ItemKey.of(item) for item in scores.items]
        self.verdicts += [
            RecordedVerdict(judge=self.judge, quality=quality, level=key.level, scale=scale, item=key.text, score=score)
            for column, (quality, scale, _) in self.columns.items()
            for key, score in zip(keys, scores.columns[column], strict=True)
            if score is not None
        ]

    def write(self, *, overwrite: bool = False) -> int:
        """Write the verdicts of a run; returns how many there are.

        Raises:
            InputError: a verdict is stored that this run did not give, and `overwrite` is not said.
        """
        if not overwrite and not set(self._stored()) <= set(map(to_json, self.verdicts)):
            raise self._refusal()
        write_json_lines(self.path, self.verdicts)
        return len(self.verdicts)

    def _stored(self) -> list[str]:
        return [line for line in read_text(self.path).split("\n") if line] if self.path.exists() else []

    def _refusal(self) -> InputError:
        return InputError(
            f"{self.path}: holds other verdicts than those of this run. "
            "Choose another name, or add --overwrite to replace them."
        )
