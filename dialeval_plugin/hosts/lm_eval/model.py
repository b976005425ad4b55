"""The lm-eval models `dialogue-metric`, which runs any scorer on the tasks for LLM judges, and `replay-judge`.

Each answer carries the scorer's own score (`documents.Verdict`), which our tasks compare with human ratings. The host expects a
model's answer, so one is made from g, the score scaled to [0, 1] by the scorer's range. Yes has the log probability log g, no
log(1 - g). Positive and negative take their place in classification, with g moved so that 0.5 is the scorer's threshold. A
rating is g on the rating scale, split between the two neighbouring whole ratings so that their weighted mean equals it. A turn
gets the log probability of a turn whose words all have the probability g.
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

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.percentiles import PERCENTILE
from dialeval_plugin.core.registry import retyped, scorer_factory
from dialeval_plugin.core.scorer import Scorer, score_key
from dialeval_plugin.core.scores import Reason
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.corpora.scored_input import Shard
from dialeval_plugin.hosts.judges import load_scorer_with_judge, scorer_options
from dialeval_plugin.methods.judging.classification import NEGATIVE, POSITIVE
from dialeval_plugin.methods.judging.goodness import NO, YES, format_decimal, rating_shares
from dialeval_plugin.methods.judging.judge import OVERALL_QUALITY, OVERALL_SCALE
from dialeval_plugin.methods.judging.prompts import BREAKDOWN_PROMPTS, N_BREAKDOWN_LABELS, level_of
from dialeval_plugin.methods.judging.replay import ReplayedJudge

from .run import guard_cache
from .tasks.documents import DEFAULT_SCORER, ScoredLoglikelihood, ScoredText, Verdict, item_of, with_verdict

CLASSES: dict[str, str] = {POSITIVE: YES, NEGATIVE: NO}
POSSIBLE_BREAKDOWN = "possible breakdown"
_BREAKDOWN_LABELS = (YES, POSSIBLE_BREAKDOWN, NO)
OPINION = "opinion"
_OTHER_LEVEL = {"turn": Reason.SCORES_TURNS_ONLY, "dialogue": Reason.SCORES_DIALOGUES_ONLY}
_BELOW = 0.5 - 1e-9
"""The highest share of a response that is not called positive: below 0.5 even after a logarithm and an exponential."""

logger = logging.getLogger(__name__)


def to_unit(value: float, low: float, high: float) -> float:
    """Map a score to [0, 1] by the range of its scorer, linearly, which keeps every correlation coefficient.

    A range without an end is mapped by an exponential or logistic curve. That keeps only rank correlations, and not even those
    far from its end, so our tasks compare the score itself with human ratings. A value beyond a finite range counts as its end.
    """
    if math.isfinite(low) and math.isfinite(high):
        return min(1.0, max(0.0, (value - low) / (high - low)))
    if math.isfinite(high):
        return math.exp(min(0.0, value - high))
    if math.isfinite(low):
        return -math.expm1(min(0.0, low - value))
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))


def recenter(unit: float, cut: float, *, is_positive: bool) -> float:
    """Stretch [0, 1] so that the threshold `cut` (positive from there on) maps to 0.5; the order is kept.

    `is_positive` gives the side of the raw score, because `unit` cannot distinguish scores that were mapped to one number.

    Example:
        >>> [recenter(unit, 0.25, is_positive=unit >= 0.25) for unit in (0.0, 0.25, 1.0)]
        [0.0, 0.5, 1.0]
        >>> recenter(1.0, 1.0, is_positive=False) < 0.5
        True
    """
    if not is_positive:
        return min(_BELOW, 0.5 * unit / cut) if cut else 0.0
    return 0.5 + 0.5 * max(0.0, unit - cut) / (1 - cut) if cut < 1 else 0.5


class DialogueMetricLM(LM):  # type: ignore[misc]  # the host is not typed
    """A scorer as an lm-eval model.

    Args:
        scorer: the scorer's name; without it the general evaluator, with the bundled model.
        batch_size: passed to a scorer that takes it, if it is more than 1, the host's default.
        max_batch_size: an argument of the host; not used.
        device: passed to a scorer that takes it, unless it names a missing GPU, as the host's default may.
        **options: options of the scorer; `llm` and `llm_args` name the language model that it uses.

    Raises:
        InputError: an option is wrong, or this is a further process of `accelerate launch` or torchrun.
    """

    is_never_cached = True
    """Read by `guard_cache`."""

    def __init__(
        self,
        scorer: str | Scorer = DEFAULT_SCORER,
        batch_size: int | str | None = None,
        max_batch_size: int | None = None,
        device: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        guard_cache()
        part = Shard.of_process()
        # A judge with a tensor-parallel plan is one model in all processes, which have to send it the same requests.
        if part is not None and part.number > 1 and "tp_plan" not in str(options.get("llm_args")):
            raise InputError(
                f"dialogue-metric: this is process {part.number} of {part.of}, and each would score every document, and ask "
                "the scorer's judge about it again. Start lm_eval once, without accelerate launch or torchrun."
            )
        if isinstance(scorer, str):
            accepted = scorer_options(scorer)
            takes = {name: accepted is None or name in accepted for name in ("batch_size", "device")}
            if takes["batch_size"] and str(batch_size).isdecimal() and int(str(batch_size)) > 1:
                options.setdefault("batch_size", int(str(batch_size)))
            if takes["device"] and device and _is_there(device):
                options.setdefault("device", device)
            scorer = load_scorer_with_judge(scorer, retyped(options, scorer_factory(scorer)))
        self.scorer = scorer
        self._signature: str | None = None
        self._verdicts: dict[Hashable, Verdict] = {}
        self._unscored: dict[str, dict[str, str]] = {}

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Answer each yes or no, positive or negative, rating of a document, or its turn.

        g is divided equally among the requested forms of yes, and 1 - g among those of no. If the document has no score, all
        answers have probability 0, by which a task of this package knows that it is unscored.
        """
        answers = [_answer(request) for request in requests]
        keys = [(request.task_name, _key(request)) for request in requests]
        distinct = {(key, request.idx): answer for key, request, answer in zip(keys, requests, answers, strict=True)}
        n_forms = Counter((key, answer) for (key, _), answer in distinct.items())
        verdicts = self._judge(requests, progress=not disable_tqdm)
        results: list[tuple[float, bool]] = []
        for request, key, answer, verdict in zip(requests, keys, answers, verdicts, strict=True):
            log_probability, is_likeliest = -math.inf, False
            if verdict.score is not None and answer == OPINION:
                # The log of 0 would mean that there is no score.
                log_probability = int(request.doc["n_words"]) * math.log(max(verdict.unit, sys.float_info.min))
            elif verdict.score is not None:
                shares = self._shares(verdict, request)
                if (share := shares[answer] / n_forms[key, answer]) > 0:
                    log_probability = math.log(share)
                is_likeliest = answer == max(shares, key=lambda answer: shares[answer])
            results.append(with_verdict(ScoredLoglikelihood((log_probability, is_likeliest)), verdict))
        return results

    def _shares(self, verdict: Verdict, request: Instance) -> dict[str, float]:
        """Return the probability of each answer; the order of the answers breaks ties."""
        unit = verdict.unit
        if scale := _rating_scale(request):
            return rating_shares(unit, scale)
        if _asks_for_class(request) or _asks_for_breakdown(request):
            unit = recenter(unit, self._cut, is_positive=verdict.is_positive)
        return {YES: unit, NO: 1 - unit, POSSIBLE_BREAKDOWN: 0.0}

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[ScoredText]:
        """Answer each document with its g or its class as text, or with `unscored` if it has no score."""
        verdicts = self._judge(requests, progress=not disable_tqdm)
        answers = []
        for request, verdict in zip(requests, verdicts, strict=True):
            text = format_decimal(verdict.unit)
            if verdict.score is None:
                text = "unscored"
            elif _asks_for_class(request):
                text = (POSITIVE if verdict.is_positive else NEGATIVE).capitalize()
            answers.append(with_verdict(ScoredText(text), verdict))
        return answers

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Raise an error: a scorer judges responses and has no likelihood of a text."""
        raise InputError(
            f"dialogue-metric: {self.scorer.name} has no likelihood of a text, which the task asks for. "
            "Run it on the tasks of this package, for example dstc10_dialog."
        )

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """Join the messages: a scorer reads the document and not the prompt, so a template has no effect."""
        return "\n".join(message["content"] for message in chat_history)

    def get_model_info(self) -> dict[str, Any]:
        """Return entries for the result file's `config`: the scorer and, after the run, its signature and failures."""
        return {
            "scorer": self.scorer.name,
            "scorer_signature": self._signature,
            "scorer_positive_from": self.scorer.positive_from,
            # A request has no room for the reason, so the counts by task and reason are reported next to the results.
            "scorer_unscored": {
                task: dict(sorted(Counter(reasons.values()).items())) for task, reasons in self._unscored.items()
            },
        }

    @property
    def tokenizer_name(self) -> str:
        """Name of the scorer, in place of a tokenizer's."""
        return self.scorer.name

    def scorer_of(self, item: Item) -> Scorer | None:
        """Return the scorer of an item; None if the item has another level."""
        return self.scorer if level_of(item) == self.scorer.level else None

    def _judge(self, requests: Sequence[Instance], *, progress: bool) -> list[Verdict]:
        """Score each distinct content once, even if it occurs in many tasks, qualities and runs."""
        items = {_key(request): None if request.doc.get("is_absent", False) else item_of(request.doc) for request in requests}
        n_others = 0
        fresh: dict[Scorer, dict[Hashable, Item]] = {}
        for item in items.values():
            if item is None:
                continue
            if (scorer := self.scorer_of(item)) is None:
                n_others += 1
            elif (same := score_key(item)) not in self._verdicts:
                fresh.setdefault(scorer, {})[same] = item
        if any(map(self._has_no_class, requests)):
            text = "%s: its range has no middle from which a response is positive: documents to classify stay unscored"
            logger.warning(text, self.scorer.name)
        if n_others:
            text = "%s works at %s level: %d documents of another level stay unscored"
            logger.warning(text, self.scorer.name, self.scorer.level, n_others)
        for scorer, own in fresh.items():
            scores = scorer.score(list(own.values()), progress=progress)
            self._signature = str(scores.signature)
            low, high = self.scorer.range
            if beyond := sum(value is not None and not low <= value <= high for value in scores.values):
                text = "%s: %d scores lie beyond its range %g to %g and count as its ends where a task asks for a probability"
                logger.warning(text, self.scorer.name, beyond, low, high)
            percentiles = scores.columns.get(PERCENTILE, (None,) * len(own))
            for place, (content, value) in enumerate(zip(own, scores.values, strict=True)):
                verdict = Verdict(None, unscored=scores.unscored[place].reason.value) if value is None else self._verdict(value)
                out_of_scope = scores.out_of_scope.get(place)
                self._verdicts[content] = verdict._replace(percentile=percentiles[place], out_of_scope=out_of_scope)
        results = []
        for request in requests:
            verdict = self._verdict_on(request, items[key := _key(request)])
            if verdict.unscored:
                self._unscored.setdefault(request.task_name or "", {})[key] = verdict.unscored
            results.append(verdict)
        return results

    def _verdict_on(self, request: Instance, item: Item | None) -> Verdict:
        if item is None:
            return Verdict(None)
        if self.scorer_of(item) is None:
            return Verdict(None, unscored=_OTHER_LEVEL[self.scorer.level].value)
        if self._has_no_class(request):
            return Verdict(None, unscored=Reason.NO_VERDICT.value)
        return self._verdicts[score_key(item)]

    def _has_no_class(self, request: Instance) -> bool:
        """Whether a request asks for a class and the scorer has neither a threshold nor a middle of its range."""
        has_rule = self.scorer.positive_from is not None or all(map(math.isfinite, self.scorer.range))
        return not has_rule and (_asks_for_class(request) or _asks_for_breakdown(request))

    def _verdict(self, value: float) -> Verdict:
        sign = -1 if self.scorer.orientation == "lower" else 1
        start, unit = self.scorer.positive_from, self._unit(value)
        is_positive = unit >= self._cut if start is None else sign * value >= sign * start
        share = unit if all(map(math.isfinite, self.scorer.range)) else None
        return Verdict(sign * value, share, unit=unit, is_positive=is_positive)

    @property
    def _cut(self) -> float:
        """The scorer's threshold for a positive response, mapped to [0, 1]."""
        return 0.5 if self.scorer.positive_from is None else self._unit(self.scorer.positive_from)

    def _unit(self, value: float) -> float:
        unit = to_unit(value, *self.scorer.range)
        return 1 - unit if self.scorer.orientation == "lower" else unit


def _is_there(device: str) -> bool:
    if not device.startswith("cuda"):
        return True
    import torch

    return torch.cuda.is_available()


def _asks_for_class(request: Instance) -> bool:
    choices: Sequence[str] = request.doc.get("choices", ())
    return any(choice.casefold() in CLASSES for choice in choices)


def _asks_for_breakdown(request: Instance) -> bool:
    """Whether the task offers the breakdown labels, of which "yes" and "no" have another meaning here."""
    choices = tuple(request.doc.get("choices", ()))
    return any(choices == prompt.forms for prompt in BREAKDOWN_PROMPTS.values())


def _rating_scale(request: Instance) -> list[int]:
    """Return the ratings among the task's choices, ascending; empty if the task requests no rating."""
    forms = {choice.strip() for choice in request.doc.get("choices", ())}
    return sorted(map(int, forms)) if all(form.isdecimal() for form in forms) else []


def _key(request: Instance) -> str:
    return text_hash(repr(request.doc))


def _answer(request: Instance) -> str:
    if "n_words" in request.doc:
        return OPINION
    form = str(request.args[1]).strip()
    if _asks_for_breakdown(request):
        return _BREAKDOWN_LABELS[list(request.doc["choices"]).index(form) % N_BREAKDOWN_LABELS]
    if _rating_scale(request):
        return form
    answer = CLASSES.get(form.casefold(), form.casefold())
    if answer not in {YES, NO}:
        raise InputError(
            f"dialogue-metric: task {request.task_name!r} asks for the continuation {request.args[1]!r}, and a scorer answers "
            "yes or no, positive or negative only. Run it on the tasks of this package, for example dstc10_dialog."
        )
    return answer


PLAIN_REQUEST = 1
"""Index of the plain prompt's request among the two that `DreTask` makes per document."""


class ReplayJudgeLM(DialogueMetricLM):
    """Stored verdicts as an lm-eval model, at both levels; `batch_size`, `max_batch_size` and `device` are the host's.

        dialeval lm-eval run --model replay-judge --model_args source=gpt-4/comp-analysis,quality=relevance --tasks TASK

    A document without a stored verdict is unscored (`no_verdict`) and counted. Otherwise our tasks compare the stored number
    itself with human ratings.

    Args:
        source: the judge, see `ReplayedJudge`.
        quality: the quality that the judge rated.
        verdicts: file of stored verdicts; by default the one that `dialeval data fetch llm_judgements` downloads.

    Raises:
        InputError: there are no such verdicts; the message lists those available.
        MissingPrerequisite: there is no file of them.
    """

    def __init__(
        self,
        source: str,
        quality: str = OVERALL_QUALITY,
        verdicts: str | None = None,
        batch_size: int | str | None = None,
        max_batch_size: int | None = None,
        device: str | None = None,
    ) -> None:
        self._by_level = {level: ReplayedJudge(source, quality, level, verdicts) for level in ReplayedJudge.levels}
        super().__init__(self._by_level["turn"])

    def scorer_of(self, item: Item) -> Scorer:
        """Return the verdicts of the item's level."""
        return self._by_level[level_of(item)]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[ScoredText]:
        """Answer as a scorer does; of DRE's two prompts only the plain one, as the other requests more than a rating."""
        answers = super().generate_until(requests, disable_tqdm)
        low, high = OVERALL_SCALE
        for place, request in enumerate(requests):
            if request.doc.get("plain_prompt"):
                share = (verdict := answers[place].verdict).share
                is_rated = request.idx == PLAIN_REQUEST
                text = format_decimal(low + share * (high - low)) if is_rated and share is not None else "unscored"
                answers[place] = with_verdict(ScoredText(text), verdict)
        return answers
