"""`dialogue_rating`: a language model's K-top weighted rating of FED's qualities (Huynh et al. 2023, section 3.1).

Each prompt requests a whole number for one quality on FED's scale, in the form of appendix B. The paper prints one, for the
quality interesting. The others are this project's, from the questions to FED's raters (Mehri and Eskenazi 2020).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import ClassVar

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, Turn, context_turns
from dialeval_plugin.core.errors import InputError, did_you_mean
from dialeval_plugin.core.registry import Positive, checked_init, wrong_value
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.scores import Row, Unscored
from dialeval_plugin.core.signature import SignatureValue, text_hash
from dialeval_plugin.llm.language_model import LanguageModel, Pending, PromptingScorer, Question, require_language_model
from dialeval_plugin.llm.neutralise import neutralise

from .goodness import GEvalReading, rating_of_answers
from .prompts import BLOCK_END, WORDINGS

DEFAULT_K = 3
VERSION = 1

_ASKED: dict[Level, str] = {
    "turn": "Given a dialog history and a response, rate {} with regards to the dialog history.",
    "dialogue": "Given a dialog history, rate {}.",
}
_USER_TAGS = frozenset({"user", "human"})


@dataclass(frozen=True, slots=True)
class RatingPrompt:
    """The prompt for one quality."""

    quality: str
    """Name of the quality in options, columns and task names, such as "error_recovery"."""
    level: Level
    asked: str
    """Object of the rating in the first line."""
    highest: int = 2
    """Top of the scale; its bottom is 0."""

    @property
    def published(self) -> str:
        """Name of the quality in FED's annotations, such as "Error recovery"."""
        return self.quality.replace("_", " ").capitalize()

    @property
    def scale(self) -> range:
        """Possible ratings, ascending."""
        return range(self.highest + 1)

    @property
    def forms(self) -> tuple[str, ...]:
        """Requested continuations: each rating with a space before it and without."""
        return tuple(f"{space}{rating}" for space in (" ", "") for rating in self.scale)

    @property
    def instruction(self) -> str:
        """First line of the prompt, with its line break."""
        return f"Task: {_ASKED[self.level].format(self.asked)}\n"

    @property
    def id(self) -> str:
        """Name, version and hash of a fixed prompt with one example, for a signature."""
        turns = (Turn("one"), Turn("two"), Turn("three"), Turn("four"), Turn("five"))
        rated = {self.published: (1.0,)}
        thread: tuple[Item, ...] = (Dialogue("0", turns, ratings=rated),)
        item: Item = Dialogue("1", turns[:3])
        if self.level == "turn":
            thread = tuple(Example(str(n), turns[:n], turns[n], ratings=rated) for n in (1, 3))
            item = Example("2", turns[:1], turns[1])
        return f"rating-{self.quality}-v{VERSION}-{text_hash(self.render(item, [thread]))}"

    def question(self, item: Item, after: Example | None = None) -> str:
        """Return the block of one item up to `Rating:`, without the turns of `after`, an earlier response of its dialogue."""
        turns = context_turns(item)
        lines = [f"{letter}: {neutralise(turn.text)}" for letter, turn in zip(_letters(item), turns, strict=True)]
        if after is not None:
            turns_before = (*after.context, after.response)
            if _texts(turns[: len(turns_before)]) == _texts(turns_before):
                lines = lines[len(turns_before) :]
        if isinstance(item, Example):
            lines.append(f"Response: {neutralise(item.response.text)}")
        return "\n".join([*lines, "Rating:"])

    def answer(self, rating: float) -> str:
        """Return a mean rating as a fraction, rounded half up; the printed example has 1.0, 0.8, 1.8 as 1/2, 1/2, 2/2."""
        return f"{math.floor(rating + 0.5)}/{self.highest}"

    def example(self, thread: Sequence[Item], number: int) -> str:
        """Return a solved example: the rated items of one dialogue, joined, under the heading `== Example <number> ==`.

        At turn level it has for each rated response in order (three in FED) the turns up to it, the response and its rating.
        """
        blocks = zip(self.blocks(thread), map(self._rating, thread), strict=True)
        return heading(number) + " ".join(chained(list(blocks)))

    def render(self, item: Item, examples: Iterable[Sequence[Item]] = ()) -> str:
        """Return the whole prompt: the task, the examples, and the item."""
        return self.prefix(examples) + self.question(item)

    def prefix(self, examples: Iterable[Sequence[Item]] = ()) -> str:
        """Return the beginning of every prompt: the task and the examples."""
        blocks = (self.example(thread, number) + BLOCK_END for number, thread in enumerate(examples, start=1))
        return self.instruction + "".join(blocks)

    def blocks(self, thread: Sequence[Item]) -> list[str]:
        """Return the blocks of the items of one dialogue, each without the turns of the one before; see `example`."""
        before = [None, *(item if isinstance(item, Example) else None for item in thread)]
        return [self.question(item, after) for item, after in zip(thread, before, strict=False)]

    def _rating(self, item: Item) -> str:
        values = item.ratings.get(self.published, ())
        if not values:
            raise InputError(f"example {item.id!r}: nobody rated {self.published!r}. Leave the item out of the examples.")
        return self.answer(math.fsum(values) / len(values))


def heading(number: int) -> str:
    """Return the heading of an example."""
    return f"== Example {number} ==\n"


def chained(rated: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return blocks and their answers joined to one text that ends before the last answer, and that answer."""
    *before, (block, answer) = rated
    return "".join(f"{block_before} {rating}\n" for block_before, rating in before) + block, answer


def _texts(turns: Sequence[Turn]) -> list[str]:
    return [" ".join(turn.text.split()) for turn in turns]


def _letters(item: Item) -> list[str]:
    """Return a letter for each turn: B for the judged speaker, as printed, A for the other; without speakers they alternate."""
    turns = context_turns(item)
    judged = judged_speaker(turns) if isinstance(item, Dialogue) else item.response.speaker
    if judged is None or any(turn.speaker is None for turn in turns):
        letters = ["AB"[index % 2] for index in range(len(turns))]
        return letters if isinstance(item, Dialogue) or len(turns) % 2 else letters[1:] + letters[:1]
    others = dict.fromkeys(turn.speaker for turn in turns if turn.speaker != judged)
    # From the 26th on speakers are Z: a label is one letter.
    letter_of = {judged: "B", **dict(zip(others, chain("ACDEFGHIJKLMNOPQRSTUVWXY", repeat("Z")), strict=False))}
    return [letter_of[turn.speaker] for turn in turns]


def judged_speaker(turns: Sequence[Turn]) -> str | None:
    """Return the judged speaker of a whole dialogue: the first that is not tagged as a user, else the second speaker."""
    speakers = [speaker for speaker in dict.fromkeys(turn.speaker for turn in turns) if speaker is not None]
    systems = [speaker for speaker in speakers if speaker.casefold() not in _USER_TAGS]
    if len(systems) < len(speakers):
        return systems[0] if systems else None
    return speakers[1] if len(speakers) > 1 else None


_PROMPTS = tuple(RatingPrompt(**wording) for wording in WORDINGS["dialogue_rating"])


def rating_prompts(level: Level) -> dict[str, RatingPrompt]:
    """Return the prompts of a level by quality, in the order of the paper's tables."""
    return {prompt.quality: prompt for prompt in _PROMPTS if prompt.level == level}


def rating_prompt(quality: str, level: Level | None = None) -> RatingPrompt:
    """Return the prompt for `quality`; without a level at the one that has it, and for "overall" at turn level."""
    for prompt in _PROMPTS:
        if prompt.quality == quality and level in {None, prompt.level}:
            return prompt
    levels: tuple[Level, ...] = ("turn", "dialogue") if level is None else (level,)
    known = "; ".join(f"at {name} level {', '.join(rating_prompts(name))}" for name in levels)
    near = did_you_mean(quality, [prompt.quality for prompt in _PROMPTS if prompt.level in levels])
    raise InputError(f"quality: there is no rating prompt for {quality!r}.{near} Known are {known}.")


class DialogueRatingScorer(PromptingScorer):
    """Rates one or more qualities of a response or a whole dialogue, each on its scale in FED, which begins at 0.

    A rating is the mean of the K likeliest ratings of the scale, weighted by their probabilities. A quality without a rating
    is None; if it is the first quality, the row is unscored.

    Args:
        llm: language model that gives log probabilities.
        quality: name of a quality, as coherent, or several names, also as one text separated by commas. The first one is
            the score.
        level: level of the qualities; by default the one that has the first quality, for "overall" the turn level.
        k: number of the most likely ratings that are averaged.
        literal_log: use log probabilities as weights, as printed in the paper, although the least likely rating then weighs
            most.
        examples: few-shot examples; each is the list of rated items of one dialogue.

    Raises:
        InputError: a quality is not one of the level, or occurs twice; `k` is below 1; an example is not of the level or has
            no rating of a quality.
        MissingPrerequisite: there is no `llm`.
    """

    name: ClassVar[str] = "dialogue_rating"
    needs = ("llm", "log probabilities")
    levels = ("turn", "dialogue")
    range = (0.0, 4.0)
    citation: ClassVar[str] = bibtex("huynh2023understanding")

    @checked_init
    def __init__(
        self,
        llm: LanguageModel | None = None,
        quality: str | Sequence[str] = "overall",
        level: Level | None = None,
        k: Positive = DEFAULT_K,
        literal_log: bool = False,
        examples: Sequence[Sequence[Item]] = (),
    ) -> None:
        self.llm = require_language_model(llm, self.name, kind="any lm-eval model that has log probabilities")
        self.k = k
        self.reading: GEvalReading = "literal_log" if literal_log else "probabilities"
        self.prompts = _prompts(quality, level)
        self.level = self.prompts[0].level
        self.range = (0.0, float(self.prompts[0].highest))
        expected = Dialogue if self.level == "dialogue" else Example
        for number, thread in enumerate(examples):
            if not thread or any(not isinstance(item, expected) for item in thread):
                raise InputError(
                    f"dialogue_rating: examples[{number}]: expected the rated {expected.__name__} objects of one dialogue."
                )
        self._shown = {prompt.quality: prompt.prefix(examples) for prompt in self.prompts}
        self._n_examples = len(examples)
        self.verdicts = {prompt.quality: Question(prompt.quality, (0.0, float(prompt.highest))) for prompt in self.prompts}
        self.columns = tuple(self.verdicts)
        self.questions = [self.verdicts[prompt.quality] for prompt in self.prompts for _ in prompt.forms]

    def prepare(self, items: Sequence[Item]) -> list[Pending]:
        """Return the spellings of all ratings of all qualities for each item."""
        pending = []
        for item in items:
            texts = [(prompt, self._shown[prompt.quality] + prompt.question(item)) for prompt in self.prompts]
            pending.append(Pending(item, tuple((text, form) for prompt, text in texts for form in prompt.forms)))
        return pending

    def finish(self, pending: Pending, answers: Sequence[float | Unscored]) -> Row:
        """Return the rating of each quality; unscored without one of the first quality."""
        remaining = iter(answers)
        row: dict[str, float | None] = {}
        for prompt in self.prompts:
            of_forms = {form: next(remaining) for form in prompt.forms}
            result = rating_of_answers(of_forms, prompt.scale, k=self.k, reading=self.reading)
            if isinstance(result, Unscored) and not row:
                return result
            row[prompt.quality] = None if isinstance(result, Unscored) else result.rating
        return row

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return prompts with hashes, model with revision, weights of ratings, and examples."""
        return {
            "method": self.name,
            "prompt": ",".join(prompt.id for prompt in self.prompts),
            "llm": self.llm.identity,
            "k": self.k,
            "reading": self.reading,
            "examples": self._n_examples,
            "examples_hash": text_hash(*self._shown.values()) if self._n_examples else None,
        }


def _prompts(quality: str | Sequence[str], level: Level | None) -> tuple[RatingPrompt, ...]:
    names = [name.strip() for name in quality.split(",")] if isinstance(quality, str) else list(quality)
    if not all(names) or len(set(names)) != max(1, len(names)):
        raise wrong_value("dialogue_rating", "quality", quality, "the name of a quality or several different ones")
    try:
        first = rating_prompt(names[0], level)
        return (first, *(rating_prompt(name, first.level) for name in names[1:]))
    except InputError as error:
        raise InputError(f"dialogue_rating: {error} Ask for the qualities of one level.") from None
