"""`dialogue_rating`: a language model's K-top weighted rating of FED's qualities (Huynh et al. 2023, section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import ClassVar

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.options import Positive, checked_init, wrong_value
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.core.signature import Value, text_hash
from dialeval_plugin.llm.language_model import Continuation, LanguageModel, require_language_model
from dialeval_plugin.llm.prompting import Pending, PromptingScorer

from .goodness import Reading, rating_of_answers
from .rating_prompts import RatingPrompt, rating_prompt

DEFAULT_K = 3
NO_VISIBLE_TURN = Unscored(Reason.EMPTY_INPUT, "no turn has a visible character")


class DialogueRatingScorer(PromptingScorer):
    """Rates a response, or a whole dialogue, for one quality or several, each on FED's own scale from 0 up.

    A rating is the mean of the K likeliest ratings of the scale, weighted by their probabilities. A quality without a rating
    is None; where it is the first that was asked for, the row is unscored.

    Args:
        llm: the language model that is asked for log probabilities.
        quality: name of a quality of `rating_prompts`, or several, also as one text with commas. The first is the score.
        level: of the qualities; without it the one that has the first of them, which for "overall" is the turn level.
        k: how many ratings count.
        literal_log: weight by log probabilities, as the paper prints it, which weights the least likely rating most.
        examples: for each example of the prompt the rated items of one dialogue, see `RatingPrompt.example`.

    Raises:
        InputError: a quality is not one of the level, or occurs twice; `k` is below 1; an example is not of the level or has
            no rating of a quality.
        MissingPrerequisite: there is no `llm`.
    """

    name: ClassVar[str] = "dialogue_rating"
    citation: ClassVar[str] = """\
@article{huynh2023understanding,
  title   = {Understanding the Effectiveness of Very Large Language Models on Dialog Evaluation},
  author  = {Huynh, Jessica and Jiao, Cathy and Gupta, Prakhar and Mehri, Shikib and Bajaj, Payal and Chaudhary, Vishrav and
             Eskenazi, Maxine},
  journal = {arXiv preprint arXiv:2301.12004},
  year    = {2023}
}"""

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
        self.reading: Reading = "literal_log" if literal_log else "probabilities"
        self.prompts = _prompts(quality, level)
        self.level = self.prompts[0].level
        self.range = (0.0, float(self.prompts[0].highest))
        _check_examples(examples, self.level)
        self._shown = {prompt.quality: prompt.prefix(examples) for prompt in self.prompts}
        self._n_examples = len(examples)

    @property
    def columns(self) -> tuple[str, ...]:
        """The qualities, in the order asked for; each from 0 to the top of its scale."""
        return tuple(prompt.quality for prompt in self.prompts)

    def unscorable(self, item: Item) -> Unscored | None:
        """A blank response, or a dialogue of blank turns."""
        is_empty = isinstance(item, Dialogue) and all(is_blank(turn.text) for turn in item.turns)
        return NO_VISIBLE_TURN if is_empty else super().unscorable(item)

    def prepare(self, items: Sequence[Item]) -> list[Pending]:
        """The spellings of all ratings of all qualities of each item."""
        return [Pending(item, tuple(chain.from_iterable(map(self._pairs, repeat(item), self.prompts)))) for item in items]

    def finish(self, pending: Pending, answers: Sequence[float | Unscored]) -> Row:
        """The rating of each quality; without the first one's the row has none."""
        remaining = iter(answers)
        found = {
            prompt.quality: rating_of_forms(
                {form: next(remaining) for form in prompt.forms}, prompt, k=self.k, reading=self.reading
            )
            for prompt in self.prompts
        }
        if isinstance(score := found[self.columns[0]], Unscored):
            return score
        return {quality: None if isinstance(rating, Unscored) else rating for quality, rating in found.items()}

    def signature_fields(self) -> dict[str, Value]:
        """Prompts with their hashes, model with its revision, how ratings are weighted, and the examples."""
        return {
            "method": self.name,
            "prompt": ",".join(prompt.id for prompt in self.prompts),
            "llm": self.llm.identity,
            "k": self.k,
            "reading": self.reading,
            "examples": self._n_examples,
            "examples_hash": text_hash(*self._shown.values()) if self._n_examples else None,
        }

    def _pairs(self, item: Item, prompt: RatingPrompt) -> list[Continuation]:
        text = self._shown[prompt.quality] + prompt.question(item)
        return [(text, form) for form in prompt.forms]


def rating_of_forms(
    answers: Mapping[str, float | Unscored], prompt: RatingPrompt, *, k: int = DEFAULT_K, reading: Reading = "probabilities"
) -> float | Unscored:
    """The K-top weighted rating from the log probabilities of surface forms; what is not on the scale is dropped."""
    found = rating_of_answers(answers, prompt.scale, k=k, reading=reading)
    return found if isinstance(found, Unscored) else found.rating


def _prompts(quality: str | Sequence[str], level: Level | None) -> tuple[RatingPrompt, ...]:
    names = [name.strip() for name in quality.split(",")] if isinstance(quality, str) else list(quality)
    if not all(names) or len(set(names)) != max(1, len(names)):
        raise wrong_value("dialogue_rating", "quality", quality, "the name of a quality or several different ones")
    try:
        first = rating_prompt(names[0], level)
        return (first, *(rating_prompt(name, first.level) for name in names[1:]))
    except InputError as error:
        raise InputError(f"dialogue_rating: {error} Ask for the qualities of one level.") from None


def _check_examples(examples: Sequence[Sequence[Item]], level: Level) -> None:
    expected = Dialogue if level == "dialogue" else Example
    for number, thread in enumerate(examples):
        if not thread or any(not isinstance(item, expected) for item in thread):
            raise InputError(
                f"dialogue_rating: examples[{number}]: expected the rated {expected.__name__} objects of one dialogue."
            )
