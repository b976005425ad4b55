"""`g_eval` and `llm_chiang`: a language model's ratings of naturalness, coherence, engagingness and groundedness.

G-EVAL (Liu et al. 2023) prints one prompt for dialogue, for engagingness (appendix); its repository has prompts for summaries
only. The printed prompt is used for engagingness, with "criteria" spelled correctly, and without a fact if a response has none.
The wording of the other three is this project's, in the same form and scale, for the four criteria of SLIDE and DRE.

Chiang and Lee (2023) print a prompt for stories: task, note, text, and one question per criterion on a scale of 1-5. Here it is
about a dialogue response; its question for engagingness comes from SLIDE's appendix A.1. The other questions are this
project's, and so is the last line, after which a model without a chat template answers.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias, cast

from annotated_types import Gt

from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import Positive, checked_init, wrong_value
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.llm import language_model
from dialeval_plugin.llm.neutralise import neutralise

from .goodness import rating_of_answers
from .judge import ScoringPrompt
from .prompts import WORDINGS

CriterionPrompts: TypeAlias = Mapping[str, ScoringPrompt]
"""Criterion to its prompt, in the order of the columns."""

# For each criterion its question, and the meanings of the scores 1, 2 and 3.
_G_EVAL_RUBRICS: dict[str, list[str]] = WORDINGS["g_eval"]
_CHIANG_QUESTIONS: dict[str, str] = WORDINGS["llm_chiang"]


def _g_eval(criterion: str, rubric: Sequence[str], example: Example) -> str:
    question, *levels = rubric
    scores = "\n".join(f"- A score of {score} {meaning}" for score, meaning in enumerate(levels, start=1))
    facts = _facts(example)
    return "\n\n".join(
        [
            "You will be given a conversation between two individuals. You will then be given one potential response for the "
            "next turn in the conversation."
            + (" The response concerns an interesting fact, which will be provided as well." if facts else ""),
            "Your task is to rate the responses on one metric.",
            "Please make sure you read and understand these instructions carefully. Please keep this document open while "
            "reviewing, and refer to it as needed.",
            "Evaluation Criteria:",
            f"{criterion.capitalize()} (1-3) {question}\n{scores}",
            "Evaluation Steps:",
            f"1. Read the conversation{', the corresponding fact' if facts else ''} and the response carefully.\n"
            f"2. Rate the response on a scale of 1-3 for {criterion}, according to the criteria above.\n3. Provide a brief "
            "explanation for your rating, referring to specific aspects of the response and the conversation.",
            "Example:",
            "Conversation History:",
            *_history(example),
            *(["Corresponding Fact:", facts] if facts else []),
            "Response:",
            neutralise(example.response.text),
            "Evaluation Form (scores ONLY):",
            f"- {criterion.capitalize()}:",
        ]
    )


def _chiang(question: str, example: Example) -> str:
    facts = _facts(example)
    return "\n\n".join(
        [
            "Please rate the dialogue response.",
            "The goal of this task is to rate dialogue responses.",
            "Note: Please take the time to fully read and understand the dialogue response. We will reject submissions "
            "from workers that are clearly spamming the task.",
            *(["Facts:", facts] if facts else []),
            "Conversation History:",
            *_history(example),
            "Dialogue Response:",
            neutralise(example.response.text),
            f"{question} (on a scale of 1-5, with 1 being the lowest)",
            "Rating:",
        ]
    )


def _history(example: Example) -> list[str]:
    turns = "\n".join(neutralise(turn.text) for turn in example.context)
    return [turns] if turns else []


def _facts(example: Example) -> str:
    return "\n".join(filter(None, map(neutralise, example.facts)))


# G-EVAL's code allows 5 tokens; a chat model may repeat the form, which is removed from the answer.
G_EVAL_PROMPTS: CriterionPrompts = {
    criterion: ScoringPrompt(
        f"g_eval_{criterion}", 1, (1.0, 3.0), criterion.capitalize(), partial(_g_eval, criterion, rubric), max_tokens=24
    )
    for criterion, rubric in _G_EVAL_RUBRICS.items()
}
# Its models answer in sentences ("I would rate the grammar ... as a 4.").
CHIANG_PROMPTS: CriterionPrompts = {
    criterion: ScoringPrompt(f"llm_chiang_{criterion}", 1, (1.0, 5.0), "Rating", partial(_chiang, question), max_tokens=64)
    for criterion, question in _CHIANG_QUESTIONS.items()
}
CRITERIA = tuple(_G_EVAL_RUBRICS)

Mode: TypeAlias = Literal["sampled", "weighted"]
"""Source of a rating: the mean of sampled answers, or of the scale weighted by the model's probabilities."""

DEFAULT_SAMPLES = 20
"""Number of samples in G-EVAL's code."""
DEFAULT_TEMPERATURE = 1.0
"""The model's own distribution, as in `weighted`. G-EVAL's code has 2."""

LEAST_READ = 0.5
"""Minimum share of the samples with a rating: a mean over fewer depends on which ones are readable."""
_NO_ANSWER = frozenset({Reason.API_ERROR, Reason.CONTEXT_TOO_LONG, Reason.NO_VERDICT})


class CriterionRating(NamedTuple):
    """A model's rating for one criterion."""

    mean: float
    variance: float | None
    """Variance of the ratings, with n - 1; None for one rating. In mode `weighted` that of the distribution."""
    n_unread: int = 0
    """Answers without a rating."""
    samples: tuple[float | None, ...] = ()
    """Rating of each sampled answer, None if it has none."""


class CriterionJudge(language_model.PromptingScorer):
    """Rates a response by several criteria; the score is the mean of their ratings, and each has a column.

    Columns are on the scale of the prompts. A row without a rating for one of the criteria is unscored, because a mean over
    fewer criteria is a different score.

    Args:
        llm: language model that rates the responses.
        mode: "sampled" averages sampled ratings; "weighted" weights ratings by probability, for a model with log probabilities.
        n_samples: number of answers sampled per criterion. Unreadable answers are left out and counted.
        temperature: temperature of sampling.
        unparsed: rating for an unreadable answer, instead of leaving it out. G-EVAL's code uses 0, which biases a score
            downwards.
        keep_samples: add one column per sampled rating, for example `coherence_1`.
        criteria: names of the criteria, also as one text separated by commas.

    Raises:
        InputError: an option is not one of those, or does not fit the mode.
        MissingPrerequisite: there is no `llm`.
    """

    window: ClassVar[int] = 64  # each example makes dozens of requests
    prompts: ClassVar[CriterionPrompts]

    @checked_init
    def __init__(
        self,
        llm: language_model.LanguageModel | None = None,
        mode: Mode = "sampled",
        n_samples: Positive = DEFAULT_SAMPLES,
        temperature: Annotated[float, Gt(0)] = DEFAULT_TEMPERATURE,
        unparsed: float | None = None,
        keep_samples: bool = False,
        criteria: str | Sequence[str] = CRITERIA,
    ) -> None:
        if mode == "weighted" and (unparsed is not None or keep_samples):
            raise InputError(
                f"{self.name}: mode 'weighted' draws no answers, so unparsed and keep_samples have no meaning. "
                "Leave them out, or choose mode 'sampled'."
            )
        names = tuple(name.strip() for name in criteria.split(",")) if isinstance(criteria, str) else tuple(criteria)
        if not names or len(set(names)) < len(names) or not set(names) <= set(self.prompts):
            raise wrong_value(self.name, "criteria", criteria, f"some of {', '.join(self.prompts)}")
        self.llm = language_model.require_language_model(llm, self.name)
        self.mode, self.n_samples, self.temperature = mode, n_samples, float(temperature)
        self.unparsed = None if unparsed is None else float(unparsed)
        self.keep_samples = keep_samples
        self.criteria = {name: self.prompts[name] for name in names}
        # All criteria have one scale, of whole numbers.
        low, high = self.criteria[names[0]].scale
        self._ratings = range(int(low), int(high) + 1)
        # A tokenizer may take the space before a number into its token or not.
        self._forms = [f"{space}{rating}" for space in (" ", "") for rating in self._ratings]
        self.range = (low, high) if self.unparsed is None else (min(low, self.unparsed), max(high, self.unparsed))
        self.columns = (self.name, *names, *(f"{name}_variance" for name in names))
        if mode == "sampled":
            self.columns += tuple(f"{name}_unread" for name in names)
        if keep_samples:
            self.columns += tuple(f"{name}_{number}" for name in names for number in range(1, n_samples + 1))
        self.verdicts = {name: language_model.Question(name, prompt.scale) for name, prompt in self.criteria.items()}
        n_requests = len(self._forms) if mode == "weighted" else n_samples
        self.questions = [question for question in self.verdicts.values() for _ in range(n_requests)]

    def prepare(self, items: Sequence[Item]) -> list[language_model.Pending]:
        """Return the requests of samples, or of each spelling of a rating, for each criterion of each response."""
        return [
            language_model.Pending(item, tuple(chain.from_iterable(self._requests(cast("Example", item))))) for item in items
        ]

    def finish(self, pending: language_model.Pending, answers: Sequence[Any]) -> Row:
        """Return the ratings of all criteria of a response, and their mean."""
        ratings: dict[str, CriterionRating] = {}
        size = len(answers) // len(self.criteria)
        for start, name in zip(range(0, len(answers), size), self.criteria, strict=True):
            part = answers[start : start + size]
            if self.mode == "weighted":
                rating = weighted_rating(dict(zip(self._forms, part, strict=True)), self._ratings)
            else:
                rating = sampled_rating(part, unparsed=self.unparsed)
            if isinstance(rating, Unscored):
                return Unscored(rating.reason, f"{name}: {rating.detail}")
            ratings[name] = rating
        return self._row(ratings)

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return prompts with hashes, model with revision, and the computation of ratings from answers."""
        is_sampled = self.mode == "sampled"
        return {
            "method": self.name,
            "prompt": ",".join(prompt.id for prompt in self.criteria.values()),
            "llm": self.llm.identity,
            "mode": self.mode,
            "n_samples": self.n_samples if is_sampled else None,
            "temperature": self.temperature if is_sampled else None,
            "unparsed": self.unparsed,
            "scale": f"{self._ratings[0]}-{self._ratings[-1]}",
        }

    def _requests(self, example: Example) -> Iterator[Sequence[Any]]:
        for prompt in self.criteria.values():
            request = prompt.request(example, is_whole=True)
            if self.mode == "weighted":
                yield [(request.prompt, form) for form in self._forms]
            else:
                yield [replace(request, temperature=self.temperature, sample=number) for number in range(self.n_samples)]

    def _row(self, ratings: Mapping[str, CriterionRating]) -> Row:
        row: dict[str, float | None] = {self.name: statistics.fmean(rating.mean for rating in ratings.values())}
        for name, rating in ratings.items():
            row |= {name: rating.mean, f"{name}_variance": rating.variance}
            if self.mode == "sampled":
                row[f"{name}_unread"] = float(rating.n_unread)
            if self.keep_samples:
                row |= {f"{name}_{number}": sample for number, sample in enumerate(rating.samples, start=1)}
        return row


class GEval(CriterionJudge):
    """G-EVAL for dialogue (Liu et al. 2023): mean of sampled ratings from 1 to 3, or of all ratings weighted by probability."""

    name: ClassVar[str] = "g_eval"
    range = (1.0, 3.0)
    prompts: ClassVar[CriterionPrompts] = G_EVAL_PROMPTS
    citation: ClassVar[str] = bibtex("liu-etal-2023-geval")


class LlmChiang(CriterionJudge):
    """The LLM evaluation of Chiang and Lee (2023) for dialogue: ratings from 1 to 5, with instructions for crowd workers."""

    name: ClassVar[str] = "llm_chiang"
    range = (1.0, 5.0)
    prompts: ClassVar[CriterionPrompts] = CHIANG_PROMPTS
    citation: ClassVar[str] = bibtex("chiang-lee-2023-large")


def sampled_rating(ratings: Sequence[float | Unscored], *, unparsed: float | None = None) -> CriterionRating | Unscored:
    """Return the mean of sampled ratings, unreadable ones left out or `unparsed`; if too few, the most frequent reason."""
    failures = [rating for rating in ratings if isinstance(rating, Unscored)]
    samples = tuple(
        rating if not isinstance(rating, Unscored) else None if rating.reason in _NO_ANSWER else unparsed for rating in ratings
    )
    known = [sample for sample in samples if sample is not None]
    if len(known) < LEAST_READ * len(ratings):
        reason, _ = Counter(failure.reason for failure in failures).most_common(1)[0]
        first = next(failure.detail for failure in failures if failure.reason is reason)
        return Unscored(reason, f"{len(known)} of {len(ratings)} answers have a rating, fewer than half: {first}")
    variance = statistics.variance(known) if len(known) > 1 else None
    return CriterionRating(statistics.fmean(known), variance, len(failures), samples)


def weighted_rating(log_probabilities: dict[str, float | Unscored], scale: range) -> CriterionRating | Unscored:
    """Return the sum of p_i r_i over the scale (G-EVAL, equation 1), p normalised; `Unscored` if a probability is missing."""
    result = rating_of_answers(log_probabilities, scale, k=len(scale))
    if isinstance(result, Unscored):
        return result
    weighted = zip(result.top, result.weights, strict=True)
    return CriterionRating(result.rating, math.fsum(weight * (rating - result.rating) ** 2 for rating, weight in weighted))
