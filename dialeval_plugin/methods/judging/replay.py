"""Verdicts that a language model gave before, in the place of the model, so that a paid run is made once: `replay_judge`.

An answer comes from stored verdicts about the very item, known by its text, and from nothing else. Where a prompt asks for a
number, it is the one at the verdict's place on the prompt's scale. Where probabilities of ratings are asked for, the two
ratings around that number share all of it, so that their weighted mean is the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, TypeVar

from dialeval_plugin.core.dialogue import Item, Level
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.options import checked_init
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored, share_of
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.corpora.verdicts import ItemKey, find_judge
from dialeval_plugin.llm.language_model import AskedPrompt, Continuation, NumberListener, Question, Request, TextListener

from .goodness import in_full, rating_shares
from .judge import COLUMN, OVERALL_QUALITY

Answer = TypeVar("Answer", str, float)
_NO_RATING = Unscored(Reason.NO_VERDICT, "the prompt asks for more than a rating, and ratings alone are stored")
_NO_WORD = Unscored(Reason.NO_VERDICT, "the prompt asks for a word, and the stored verdict lies between two")


class ReplayedVerdicts:
    """The stored verdicts of one judge.

    Args:
        source: the judge, as `corpora.verdicts` names it.
        verdicts: file of stored verdicts; by default those that `dialeval data fetch llm_judgements` gets.
        quality: what the judge was asked about; by default the quality that is wanted.

    Raises:
        InputError: there are no such verdicts; the message lists what there is.
        MissingPrerequisite: there is no file of them.
    """

    def __init__(self, source: str, verdicts: str | None = None, quality: str | None = None) -> None:
        self._judge = find_judge(source, None if verdicts is None else Path(verdicts))
        self._quality = quality
        if quality is not None:
            self._judge.about(quality)
        self.identity = f"replayed:{'/'.join(filter(None, (self._judge.name, quality)))}@{self._judge.origin}"

    def scale(self, quality: str = OVERALL_QUALITY) -> tuple[float, float]:
        """Lowest and highest answer."""
        return self._judge.about(self._quality or quality).scale

    def answer(self, item: Item, quality: str = OVERALL_QUALITY, run: int | None = None) -> float | Unscored:
        """What is stored of an item, on the judge's own scale: the mean of all answers, or the one of a run.

        `Unscored` where the item was not judged, or an answer lies off the scale.
        """
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
    """A `LanguageModel` that answers our prompts from stored verdicts; arguments as of `ReplayedVerdicts`."""

    def __init__(self, source: str, verdicts: str | None = None, quality: str | None = None) -> None:
        self._verdicts = ReplayedVerdicts(source, verdicts, quality)
        self.identity = self._verdicts.identity

    def generate(self, requests: Sequence[Request], *, on_answer: TextListener | None = None) -> list[str | Unscored]:
        """The number at the verdict's place on the scale that each prompt asks for; a drawn answer is that of a run."""
        return _told([self._in_words(request) for request in requests], on_answer)

    def loglikelihood(
        self, pairs: Sequence[Continuation], *, on_answer: NumberListener | None = None
    ) -> list[float | Unscored]:
        """Log probability of each rating of a prompt's scale; minus infinity where it is not next to the verdict."""
        return _told([self._log_probability(prompt, rating) for prompt, rating in pairs], on_answer)

    def _in_words(self, request: Request) -> str | Unscored:
        found = self._place(request.prompt, request.sample if request.temperature else None)
        if isinstance(found, Unscored):
            return found
        share, (_, (low, high), words) = found
        place = low + share * (high - low)
        if not words:
            return in_full(place)
        return words[int(place)] if place.is_integer() else _NO_WORD

    def _log_probability(self, prompt: str, rating: str) -> float | Unscored:
        found = self._place(prompt)
        if isinstance(found, Unscored):
            return found
        share, (_, (low, high), _) = found
        probability = rating_shares(share, range(int(low), int(high) + 1))[rating.strip()]
        return math.log(probability) if probability else -math.inf

    def _place(self, prompt: str, run: int | None = None) -> tuple[float, Question] | Unscored:
        """A verdict as a share of its own scale, and what the prompt asks."""
        if not isinstance(prompt, AskedPrompt) or prompt.question is None:
            return _NO_RATING
        asked = prompt.question
        found = self._verdicts.answer(prompt.item, asked.quality, run)
        return found if isinstance(found, Unscored) else (share_of(found, self._verdicts.scale(asked.quality)), asked)


def _told(answers: list[Answer | Unscored], on_answer: Callable[[int, Answer], None] | None) -> list[Answer | Unscored]:
    """The answers, after the listener has heard of each."""
    for place, answer in enumerate(answers if on_answer else ()):
        if on_answer and not isinstance(answer, Unscored):
            on_answer(place, answer)
    return answers


class ReplayedJudge(Scorer):
    """Gives responses, or whole dialogues, the scores that a language model gave them before, on its own scale.

    An item that is not stored has no score (`no_verdict`). Where the judge was asked several times, or several items have one
    text, the score is the mean of the answers.

    Args:
        source: the judge, as `judge/source` or `judge/source/way` in a collection; the message of a wrong name lists all.
            It has to be named.
        quality: what the judge was asked about.
        level: "turn" or "dialogue".
        verdicts: file of stored verdicts; by default those that `dialeval data fetch llm_judgements` gets.

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
        """Look the items up."""
        found = map(self._verdicts.answer, items)
        return [answer if isinstance(answer, Unscored) else {COLUMN: answer} for answer in found]

    def signature_fields(self) -> dict[str, SignatureValue]:
        """That verdicts are replayed, whose, about which quality, from which commits, and their scale."""
        low, high = self.range
        return {"method": self.name, "llm": self._verdicts.identity, "scale": f"{low:g}-{high:g}"}
