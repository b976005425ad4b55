"""A language model's verdicts, stored in a file and later used instead of the model, so that a paid run is made once.

Answers come only from stored verdicts about an item of the same text, rescaled to the prompt's scale. If probabilities of
ratings are requested, the two nearest ratings share all probability, so that their weighted mean is the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from dialeval_plugin.core.dialogue import Item, Level
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.files import parse_json, read_text, to_json, write_json_lines
from dialeval_plugin.core.registry import checked_init
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Scores, Unscored, share_of
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.corpora.verdicts import ItemKey, RecordedVerdict, find_judge
from dialeval_plugin.llm.language_model import (
    AskedPrompt,
    Continuation,
    NumberListener,
    Question,
    Request,
    TextListener,
    judge_of,
    notify_listener,
)

from .goodness import format_decimal, rating_shares
from .judge import COLUMN, OVERALL_QUALITY

_NO_RATING = Unscored(Reason.NO_VERDICT, "the prompt asks for more than a rating, and ratings alone are stored")
_NO_WORD = Unscored(Reason.NO_VERDICT, "the prompt asks for a word, and the stored verdict lies between two")


class ReplayedVerdicts:
    """The stored verdicts of one judge.

    Args:
        source: the judge, as `corpora.verdicts` names it.
        verdicts: file of stored verdicts; by default the one from `dialeval data fetch llm_judgements`.
        quality: quality that the judge rated; by default the quality requested from `answer`.

    Raises:
        InputError: there are no such verdicts; the message lists those that exist.
        MissingPrerequisite: there is no file of verdicts.
    """

    def __init__(self, source: str, verdicts: str | None = None, quality: str | None = None) -> None:
        self._judge = find_judge(source, None if verdicts is None else Path(verdicts))
        self._quality = quality
        if quality is not None:
            self._judge.about(quality)
        self.identity = f"replayed:{'/'.join(filter(None, (self._judge.name, quality)))}@{self._judge.origin}"

    def scale(self, quality: str = OVERALL_QUALITY) -> tuple[float, float]:
        """Return the lowest and highest answer."""
        return self._judge.about(self._quality or quality).scale

    def answer(self, item: Item, quality: str = OVERALL_QUALITY, run: int | None = None) -> float | Unscored:
        """Return an item's verdict on the judge's scale, the mean or a run's; `Unscored` if it is missing or out of range."""
        stored = self._judge.about(self._quality or quality)
        answers = stored.by_item.get(ItemKey.of(item), ())
        if run is not None:
            answers = answers[run : run + 1]
        if not answers:
            of_run = "" if run is None else f" in run {run + 1}"
            return Unscored(Reason.NO_VERDICT, f"{self._judge.name} has no stored verdict about it{of_run}")
        low, high = stored.scale
        if wrong := [answer for answer in answers if not low <= answer <= high]:
            return Unscored(Reason.OUT_OF_RANGE, f"{self._judge.name} said {wrong[0]:g}, and its scale is {low:g} to {high:g}")
        return math.fsum(answers) / len(answers)


class ReplayedLanguageModel:
    """A `LanguageModel` that answers our prompts from stored verdicts; arguments as for `ReplayedVerdicts`."""

    def __init__(self, source: str, verdicts: str | None = None, quality: str | None = None) -> None:
        self._verdicts = ReplayedVerdicts(source, verdicts, quality)
        self.identity = self._verdicts.identity

    def generate(self, requests: Sequence[Request], *, on_answer: TextListener | None = None) -> list[str | Unscored]:
        """Return the verdict on the scale of each prompt; sample i is the answer of run i."""
        return notify_listener([self._in_words(request) for request in requests], on_answer)

    def loglikelihood(
        self, pairs: Sequence[Continuation], *, on_answer: NumberListener | None = None
    ) -> list[float | Unscored]:
        """Return the log probability of each rating of a prompt's scale; minus infinity if it is not next to the verdict."""
        return notify_listener([self._log_probability(prompt, rating) for prompt, rating in pairs], on_answer)

    def _in_words(self, request: Request) -> str | Unscored:
        verdict = self._place(request.prompt, request.sample if request.temperature else None)
        if isinstance(verdict, Unscored):
            return verdict
        share, (_, (low, high), words) = verdict
        place = low + share * (high - low)
        if not words:
            return format_decimal(place)
        return words[int(place)] if place.is_integer() else _NO_WORD

    def _log_probability(self, prompt: str, rating: str) -> float | Unscored:
        place = self._place(prompt)
        if isinstance(place, Unscored):
            return place
        share, (_, (low, high), _) = place
        probability = rating_shares(share, range(int(low), int(high) + 1))[rating.strip()]
        return math.log(probability) if probability else -math.inf

    def _place(self, prompt: str, run: int | None = None) -> tuple[float, Question] | Unscored:
        """Return a verdict as a share of its own scale, and the prompt's question."""
        if not isinstance(prompt, AskedPrompt) or prompt.question is None:
            return _NO_RATING
        question = prompt.question
        answer = self._verdicts.answer(prompt.item, question.quality, run)
        return answer if isinstance(answer, Unscored) else (share_of(answer, self._verdicts.scale(question.quality)), question)


class ReplayedJudge(Scorer):
    """Looks up stored scores that a language model gave to the same responses or whole dialogues, on that model's scale.

    An item without a stored verdict has no score (`no_verdict`). The score is the mean of all answers about items of its text.

    Args:
        source: name of the judge, `judge/source` or, in a collection, `judge/source/way`; required. The message for a wrong
            name lists all.
        quality: quality that the judge rated.
        level: "turn" scores one response, "dialogue" a whole dialogue.
        verdicts: file of stored verdicts; by default those from `dialeval data fetch llm_judgements`.

    Raises:
        InputError: there are no such verdicts.
        MissingPrerequisite: no judge is named, or there is no file of verdicts.
    """

    name: ClassVar[str] = "replay_judge"
    needs: ClassVar[tuple[str, ...]] = ("stored verdicts",)
    levels: ClassVar[tuple[Level, ...]] = ("turn", "dialogue")
    columns = (COLUMN,)

    @checked_init
    def __init__(
        self,
        source: str | None = None,
        quality: str = OVERALL_QUALITY,
        level: Level = "turn",
        verdicts: str | None = None,
    ) -> None:
        if source is None:
            raise MissingPrerequisite(f"{self.name}: no judge is named. Pass source='gpt-4/comp-analysis'.")
        self.level = level
        self._verdicts = ReplayedVerdicts(source, verdicts, quality)
        self.range = self._verdicts.scale(quality)

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Return the stored verdicts of the items."""
        answers = map(self._verdicts.answer, items)
        return [answer if isinstance(answer, Unscored) else {COLUMN: answer} for answer in answers]

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return judge, quality and commits of the stored verdicts, and their scale."""
        low, high = self.range
        return {"method": self.name, "llm": self._verdicts.identity, "scale": f"{low:g}-{high:g}"}


SUFFIX = ".jsonl"


@dataclass
class Recorder:
    """Collector of the verdicts in some columns of a scorer, which it writes to a file."""

    path: Path
    judge: str
    columns: Mapping[str, Question]
    verdicts: list[RecordedVerdict] = field(default_factory=list)

    @classmethod
    def of(cls, scorer: Scorer, path: Path) -> Recorder:
        """Return the recorder of a scorer; `InputError` if it prompts no language model, or the file is not .jsonl."""
        if path.suffix != SUFFIX:
            raise InputError(f"{path}: verdicts are kept as JSON lines. End the name in {SUFFIX}.")
        if (judge := judge_of(scorer)) is None:
            raise InputError(f"--record: keeps what a language model says, and {scorer.name} asks none. Name one with --llm.")
        of_judge = {COLUMN: Question(OVERALL_QUALITY, (0.0, 1.0))}
        return cls(path, judge.llm.identity, judge.verdicts if judge is scorer else of_judge)

    def refuse_others(self, items: Iterable[Item]) -> None:
        """Raise `InputError` if the file has verdicts, maybe paid ones, of another judge or about other items than `items`."""
        if not self.path.exists():
            return
        own = {(self.judge, question.quality, *ItemKey.of(item)) for item in items for question in self.columns.values()}
        for place, line in enumerate(self._stored(), start=1):
            one = parse_json(line, f"{self.path}:{place}")
            if not isinstance(one, dict) or tuple(map(one.get, ("judge", "quality", "level", "item"))) not in own:
                raise self._refusal()

    def add(self, scores: Scores) -> None:
        """Add the verdicts of the next scores, without items that have none."""
        keys = [ItemKey.of(item) for item in scores.items]
        self.verdicts += [
            RecordedVerdict(judge=self.judge, quality=quality, level=key.level, scale=scale, item=key.text, score=score)
            for column, (quality, scale, _) in self.columns.items()
            for key, score in zip(keys, scores.columns[column], strict=True)
            if score is not None
        ]

    def write(self, *, overwrite: bool = False) -> int:
        """Write the verdicts and return their number; `InputError` if the file has other verdicts, unless `overwrite`."""
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
