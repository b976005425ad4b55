"""The lm-eval model `dialogue-metric`: any scorer runs on the tasks that LLM judges run on, and lands in the same files.

It reads the document behind a request and answers yes with log g and no with log(1 - g), where g is the scorer's main
score on [0, 1]; the task's own formula then gives g back. A task that asks for a class is answered positive in place of yes
and negative in place of no, with g moved so that 0.5 is where the scorer calls a response positive. A task that asks for a
whole-numbered rating gets g on its scale, shared out between the two ratings around it, whose weighted mean it is. A task that
asks how likely a turn is gets the log probability of a turn whose words all have the probability g.
"""

from __future__ import annotations

import logging
import math
import sys
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM

from dialeval_plugin.errors import InputError
from dialeval_plugin.methods.judging.breakdown_prompts import N_LABELS, PROMPTS
from dialeval_plugin.methods.judging.classification import NEGATIVE, POSITIVE
from dialeval_plugin.methods.judging.goodness import NO, YES
from dialeval_plugin.methods.judging.prompts import level_of
from dialeval_plugin.runner import content
from dialeval_plugin.scoring import Scorer

from .documents import item_of
from .judges import load_scorer_with_judge, scorer_options

CLASSES: dict[str, str] = {POSITIVE: YES, NEGATIVE: NO}
POSSIBLE_BREAKDOWN = "possible breakdown"
_BREAKDOWN_LABELS = (YES, POSSIBLE_BREAKDOWN, NO)
OPINION = "opinion"
"""Stands for the answer to a task that asks how likely a turn is."""

logger = logging.getLogger(__name__)


def to_unit(value: float, low: float, high: float) -> float:
    """Map a score to [0, 1] by the range of its scorer: linearly, which leaves every coefficient as it is.

    A range without an end is squeezed by an exponential or logistic curve, which keeps the order (Spearman, Kendall) but
    not the distances (Pearson). A value beyond a range that has ends counts as that end.
    """
    if math.isfinite(low) and math.isfinite(high):
        return min(1.0, max(0.0, (value - low) / (high - low)))
    if math.isfinite(high):
        return math.exp(min(0.0, value - high))
    if math.isfinite(low):
        return -math.expm1(min(0.0, low - value))
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))


def around(unit: float, cut: float) -> float:
    """Stretch [0, 1] so that `cut` comes to 0.5, which leaves the order as it is.

    Example:
        >>> [around(unit, 0.25) for unit in (0.0, 0.25, 1.0)]
        [0.0, 0.5, 1.0]
    """
    if unit < cut:
        return 0.5 * unit / cut
    return 0.5 + 0.5 * (unit - cut) / (1 - cut) if cut < 1 else 0.5


def rating_shares(unit: float, scale: Sequence[int]) -> dict[str, float]:
    """Share [0, 1] out over the ratings of a scale, given in ascending order, so that their weighted mean lies at `unit` of it.

    Only the two ratings around it get a share, so that the mean of the two likeliest or more is exact.

    Example:
        >>> rating_shares(0.375, (0, 1, 2))
        {'0': 0.25, '1': 0.75, '2': 0.0}
    """
    place = unit * (len(scale) - 1)
    return {str(rating): max(0.0, 1 - abs(place - position)) for position, rating in enumerate(scale)}


class DialogueMetricLM(LM):  # type: ignore[misc]  # the host is not typed
    """A scorer as an lm-eval model.

    Args:
        scorer: the scorer's name.
        batch_size: handed on to a scorer that takes it, if it is more than 1, the host's default.
        max_batch_size: the host's; not used.
        device: handed on to a scorer that takes it, unless it names a GPU that is not there, as the host's default may.
        **options: options of the scorer; `llm` and `llm_args` name the language model that it asks.
    """

    def __init__(
        self,
        scorer: str | Scorer | None = None,
        batch_size: int | str | None = None,
        max_batch_size: int | None = None,
        device: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if not scorer:
            raise InputError("dialogue-metric: no scorer was named. Type --model_args scorer=NAME, for example scorer=slide.")
        if isinstance(scorer, str):
            accepted = scorer_options(scorer)
            takes = {name: accepted is None or name in accepted for name in ("batch_size", "device")}
            if takes["batch_size"] and str(batch_size).isdecimal() and int(str(batch_size)) > 1:
                options.setdefault("batch_size", int(str(batch_size)))
            if takes["device"] and device and _is_there(device):
                options.setdefault("device", device)
            scorer = load_scorer_with_judge(scorer, options)
        self.scorer = scorer
        self._signature: str | None = None
        self._scores: dict[Hashable, float | None] = {}
        self._unscored: dict[str, Counter[str]] = {}

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Answer each yes or no, positive or negative, rating of a document, or its turn.

        g is shared out equally over the forms of yes that the task asks for, and 1 - g over those of no. Where the document
        has no score all answers have probability 0, from which a task of this package sees that it is unscored.

        Raises:
            InputError: a request asks for something else, or its document is not one of our tasks'.
        """
        answers = [_answer(request) for request in requests]
        distinct = {(_key(request), request.idx): answer for request, answer in zip(requests, answers, strict=True)}
        n_forms = Counter((key, answer) for (key, _), answer in distinct.items())
        scores = self._score(requests, progress=not disable_tqdm)
        results = []
        for request, answer in zip(requests, answers, strict=True):
            score = scores[_key(request)]
            if score is None:
                results.append((-math.inf, False))
                continue
            if answer == OPINION:
                results.append((_turn_log_probability(score, request), False))
                continue
            shares = self._shares(score, request)
            share = shares[answer] / n_forms[_key(request), answer]
            is_likeliest = answer == max(shares, key=lambda answer: shares[answer])
            results.append((math.log(share) if share > 0 else -math.inf, is_likeliest))
        return results

    def _shares(self, score: float, request: Instance) -> dict[str, float]:
        """Probability of each answer; of two that are equally likely the first counts as the likelier."""
        if scale := _rating_scale(request):
            return rating_shares(score, scale)
        if _asks_for_class(request) or _asks_for_breakdown(request):
            score = around(score, self._cut)
        return {YES: score, NO: 1 - score, POSSIBLE_BREAKDOWN: 0.0}

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Answer each document with its g or its class as text, and with `unscored` where there is none."""
        scores = self._score(requests, progress=not disable_tqdm)
        return [self._in_words(request, scores[_key(request)]) for request in requests]

    def _in_words(self, request: Instance, score: float | None) -> str:
        if score is None:
            return "unscored"
        if not _asks_for_class(request):
            return repr(score)
        return (POSITIVE if score >= self._cut else NEGATIVE).capitalize()

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Refuse: a scorer judges responses, it has no likelihood of a text."""
        raise InputError(
            f"dialogue-metric: {self.scorer.name} has no likelihood of a text, which the task asks for. "
            "Run it on the tasks of this package, for example dstc10_dialog."
        )

    def get_model_info(self) -> dict[str, Any]:
        """What the host writes into the result file's `config`: the scorer and, after the run, its signature and failures."""
        return {
            "scorer": self.scorer.name,
            "scorer_signature": self._signature,
            "scorer_positive_from": self.scorer.positive_from,
            # A request has no room for the reason, so the counts by task and reason stand beside the results.
            "scorer_unscored": {task: dict(sorted(counts.items())) for task, counts in self._unscored.items()},
        }

    @property
    def tokenizer_name(self) -> str:
        """Name of the scorer, in the place of a tokenizer's."""
        return self.scorer.name

    def _score(self, requests: Sequence[Instance], *, progress: bool) -> dict[Hashable, float | None]:
        requests_by_key = {_key(request): request for request in requests if _key(request) not in self._scores}
        fresh = {}
        for key, request in requests_by_key.items():
            document = request.doc
            self._scores[key] = None
            if not document.get("is_absent", False):
                fresh[key] = item_of(document)
        fitting = {key: item for key, item in fresh.items() if level_of(item) == self.scorer.level}
        if len(fitting) < len(fresh):
            logger.warning(
                "%s works at %s level: %d documents of another level stay unscored",
                self.scorer.name,
                self.scorer.level,
                len(fresh) - len(fitting),
            )
        if fitting:
            # Tasks over several qualities of one set have the same responses: each is scored once.
            distinct = {content(item): item for item in fitting.values()}
            places = {each: place for place, each in enumerate(distinct)}
            scores = self.scorer.score(list(distinct.values()), progress=progress)
            self._signature = str(scores.signature)
            units = self._to_unit(scores.values)
            for key, item in fitting.items():
                place = places[content(item)]
                self._scores[key] = units[place]
                if place in scores.unscored:
                    task = requests_by_key[key].task_name
                    self._unscored.setdefault(task or "", Counter())[scores.unscored[place].reason.value] += 1
        return self._scores

    @property
    def _cut(self) -> float:
        """Where between 0 and 1 the scorer calls a response positive."""
        if self.scorer.positive_from is None:
            return 0.5
        (cut,) = self._to_unit([self.scorer.positive_from])
        return 0.5 if cut is None else cut

    def _to_unit(self, values: Sequence[float | None]) -> list[float | None]:
        low, high = self.scorer.range
        beyond = sum(value is not None and not low <= value <= high for value in values)
        if beyond:
            logger.warning(
                "%s: %d scores lie beyond its range %g to %g and count as its ends", self.scorer.name, beyond, low, high
            )
        units = [None if value is None else to_unit(value, low, high) for value in values]
        if self.scorer.orientation == "lower":
            return [None if unit is None else 1 - unit for unit in units]
        return units


def _is_there(device: str) -> bool:
    if not device.startswith("cuda"):
        return True
    import torch

    return torch.cuda.is_available()


def _asks_for_class(request: Instance) -> bool:
    """True where the task has the choices positive and negative."""
    choices: Sequence[str] = request.doc.get("choices", ())
    return any(choice.casefold() in CLASSES for choice in choices)


def _asks_for_breakdown(request: Instance) -> bool:
    """True where the task has the choices of a prompt for breakdowns, which "yes" and "no" belong to in another sense."""
    choices = tuple(request.doc.get("choices", ()))
    return any(choices == prompt.forms for prompt in PROMPTS.values())


def _rating_scale(request: Instance) -> list[int]:
    """The ratings that the task has as its choices, ascending; none where it asks for something else."""
    forms = {choice.strip() for choice in request.doc.get("choices", ())}
    return sorted(map(int, forms)) if all(form.isdecimal() for form in forms) else []


def _key(request: Instance) -> Hashable:
    """What tells a document from all others of the run."""
    return (request.task_name, request.doc_id) if request.doc_id is not None else id(request.doc)


def _turn_log_probability(score: float, request: Instance) -> float:
    # The log of 0 would say that there is no score.
    return int(request.doc["n_words"]) * math.log(max(score, sys.float_info.min))


def _answer(request: Instance) -> str:
    if "n_words" in request.doc:
        return OPINION
    form = str(request.args[1]).strip()
    if _asks_for_breakdown(request):
        return _BREAKDOWN_LABELS[list(request.doc["choices"]).index(form) % N_LABELS]
    if _rating_scale(request):
        return form
    answer = CLASSES.get(form.casefold(), form.casefold())
    if answer not in {YES, NO}:
        raise InputError(
            f"dialogue-metric: task {request.task_name!r} asks for the continuation {request.args[1]!r}, and a scorer answers "
            "yes or no, positive or negative only. Run it on the tasks of this package, for example dstc10_dialog."
        )
    return answer
