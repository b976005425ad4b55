"""Training of the evaluator of assistants on preferences, corrupted answers, and requests that should be declined."""

from __future__ import annotations

import functools
import hashlib
import itertools
import logging
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from annotated_types import Interval, MultipleOf
from pydantic import Field
from torch import Tensor
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked, read_json_lines
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.corpora.identity import opening_key
from dialeval_plugin.models import encoders
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve
from dialeval_plugin.models.logistic import logistic_regression
from dialeval_plugin.models.texts import TextEncoder, numbered
from dialeval_plugin.training.loop import TrainingLoop, fit_in_main_process, take_steps
from dialeval_plugin.training.run import (
    TrainingOptions,
    TrainingResult,
    TrainingRun,
    adamw,
    data_hash,
    seconds_of,
)

from .judging import ASKED_REFUSAL, ASSISTANT_FOLDER, DEFECTS, HEADS, HELPFULNESS, AssistantConfig, pooled, text_features
from .model import AssistantHead, TrainedAssistant
from .spoiling import LEFT_OPEN, restyled, spoiled

logger = logging.getLogger(__name__)

T = TypeVar("T")

WITHOUT_LIMIT = ("markup", "lines", "words")
"""Statistics of `core.scope` without limits: good answers of assistants differ widely in length and formatting."""

_STAGE = "assistant"
_NO_ANSWER = "."
_DEFECTS = tuple(defect.name for defect in DEFECTS)
_LENGTH_EDGES = (0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
_KEPT_TOKENS = 8192
_MAX_TRAINING_PARTS = 6
_TEXT_BATCH = 512
_N_OTHERS = 8
"""Number of answers from other conversations for the corruption of a good one."""
_CLEAR = 0.5
"""Lowest difference between scores at which one answer is better than another."""
_RESTYLED_WEIGHT = 3.0
"""Weight of a pair of an answer and its harmlessly changed copy; other pairs have weight 1 before length control."""
_KNOWN_ENDS = 0.3
"""Share of harmlessly changed answers that are labelled as complete."""
_FALSE_ALARMS = 0.01
"""Largest share of good validation answers in which a defect is reported."""


Response: TypeAlias = Annotated[str, Field(validation_alias="response")]
Known: TypeAlias = Annotated[float, Interval(ge=0, le=1), MultipleOf(1)]
"""1 for what is there, 0 for what is not."""


@dataclass(frozen=True, slots=True)
class RatedAnswer:
    """An answer with a score that is comparable within its group."""

    context: tuple[str, ...]
    answer: Response
    score: float
    """Log odds scale: a difference of 1 means that people, or a judge, prefer the higher one with odds e to 1."""
    group: str


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """An answer with its known defects, present or absent; a good answer if none is named."""

    context: tuple[str, ...]
    answer: Response
    defects: Mapping[str, Known] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """A user's request, with 1 if an assistant should decline it, otherwise 0."""

    context: tuple[str, ...]
    asked_refusal: Known


@dataclass(frozen=True, slots=True)
class AssistantSources:
    """Training data of an evaluator of assistants."""

    preferences: tuple[RatedAnswer, ...]
    answers: tuple[KnownAnswer, ...]
    requests: tuple[Request, ...] = ()

    @classmethod
    def read(cls, preferences: Sequence[Path], answers: Sequence[Path], requests: Sequence[Path] = ()) -> AssistantSources:
        """Read JSON lines.

        Each line of a preference file has `context`, `response`, `score` and `group`; of an answer file `context`, `response`
        and optionally `defects`, known to be present or absent; of a request file `context` and `asked_refusal`. Lines with a
        blank response, which is never scored, are left out and counted.

        Raises:
            InputError: a field is missing, or a defect is unknown.
        """
        return cls(*(tuple(_rows(*part)) for part in ((preferences, RatedAnswer), (answers, KnownAnswer), (requests, Request))))


def _rows(files: Sequence[Path], shape: type[T]) -> Iterator[T]:
    n_blank = 0
    for file in files:
        for line in read_json_lines(file):
            row = checked(line.value, shape, line.where, advice="`dialeval train assistant --help` names the fields.")
            if isinstance(row, KnownAnswer) and (unknown := row.defects.keys() - {*_DEFECTS}):
                raise InputError(f"{line.where}: there is no defect {min(unknown)!r}. Choose one of {', '.join(_DEFECTS)}.")
            if isinstance(row, (RatedAnswer, KnownAnswer)) and is_blank(row.answer):
                n_blank += 1
                continue
            yield row
    if n_blank:
        logger.warning("training data: %d blank responses are left out", n_blank)


@dataclass(frozen=True, slots=True)
class AssistantRecipe:
    """Settings of training that affect the weights, in addition to data, backbone and seed.

    Attributes:
        n_steps: number of optimizer steps.
        rated_answers: number of answers of one group per step.
        good_answers: number of good answers per step, each with `spoiled` corrupted copies.
        length_control: 0 keeps the preferences; 1 weights them so that for each difference in length the longer answer is
            preferred as often as the shorter one. At 1, properties that correlate with length count against an answer.
        frozen: share of the encoder's layers, the lowest, that are frozen.
    """

    n_steps: int = 700
    rated_answers: int = 8
    good_answers: int = 4
    spoiled: int = 2
    known_answers: int = 2
    requests: int = 8
    length_control: float = 0.25
    learning_rate: float = 6e-5
    head_learning_rate: float = 1e-3
    frozen: float = 1 / 3
    warm_up: float = 0.06
    max_validation_answers: int = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantTrainingOptions(TrainingOptions):
    """Options of a training, in addition to its data.

    Attributes:
        backbone: a sentence-transformers folder, a transformers checkpoint, or a hub id.
        max_minutes: time limit of the steps, without the fits after them.
        checkpoint_steps: number of steps between checkpoints, each with a report of the losses.
    """

    backbone: str = PACKAGED_ENCODER
    recipe: AssistantRecipe = field(default_factory=AssistantRecipe)
    validation_fraction: float = 0.12
    max_minutes: float | None = None
    checkpoint_steps: int = 25


class _Text(NamedTuple):
    """An answer in a step, with the target of each head; NaN if unknown."""

    context: tuple[str, ...]
    answer: str
    labels: FloatArray


def train(
    sources: AssistantSources,
    output: Path,
    options: AssistantTrainingOptions = AssistantTrainingOptions(),
    *,
    device: str | None = None,
    progress: bool = False,
) -> TrainingResult:
    """Train an evaluator of assistants and write it to the folder `output`, which must not hold a finished model.

    `output/.training` holds the checkpoints until the run ends; after a kill, the same call resumes from the last one.
    """
    recipe = options.recipe
    max_seconds = seconds_of(options.max_minutes)
    with TrainingRun.open(output, ASSISTANT_FOLDER, options, progress=progress) as run:
        training, validation = (_part(sources, options, of_validation=flag) for flag in (False, True))
        _check(training, "training", max(recipe.good_answers, _N_OTHERS))
        _check(validation, "validation", 1)
        run.start(data=data_hash(sources.preferences, sources.answers, sources.requests))
        draws = _Draws(training, recipe, options.seed)
        model = _Model(options.backbone, AssistantConfig(), device or run.device)
        run.stage("texts", model.head, lambda: _fit_texts(run, model.head, draws))
        fit = functools.partial(_fit, run, model, options, draws, max_seconds)
        run.stage(_STAGE, model, lambda: fit_in_main_process(run, fit))
        run.log_progress(f"calibrating on {len(validation.answers)} answers and {len(validation.preferences)} preferences")
        figures = _calibrate(model, validation, recipe, options.seed)
        record = {
            "backbone_hash": content_hash(resolve(options.backbone)),
            "counts": {
                part: {"rated_answers": len(one.preferences), "known_answers": len(one.answers), "requests": len(one.requests)}
                for part, one in (("training", training), ("validation", validation))
            },
            "steps": run.history[-1].step,
            "validation": figures,
        }
        rows: Iterator[RatedAnswer | KnownAnswer] = itertools.chain(sources.preferences, sources.answers)
        known = frozenset(opening_key([*row.context, row.answer]) for row in rows)
        thresholds = dict.fromkeys(_DEFECTS, 0.5)
        trained = TrainedAssistant(model.encoder, model.head, model.config, thresholds, known)
        learnt = [(row.context, row.answer) for row in training.answers if not row.defects]
        return run.publish(trained.save, record, learnt=learnt, without_limit=WITHOUT_LIMIT)


def _part(sources: AssistantSources, options: AssistantTrainingOptions, *, of_validation: bool) -> AssistantSources:
    """Training or validation rows; rows with the same opening turn are on the same side."""

    def is_wanted(context: tuple[str, ...]) -> bool:
        digest = hashlib.sha256(f"{options.seed} {context[0] if context else ''}".encode()).digest()
        return (int.from_bytes(digest[:4], "big") < options.validation_fraction * 2**32) is of_validation

    return AssistantSources(
        tuple(row for row in sources.preferences if is_wanted(row.context)),
        tuple(row for row in sources.answers if is_wanted(row.context)),
        tuple(row for row in sources.requests if is_wanted(row.context)),
    )


def _check(part: AssistantSources, name: str, least: int) -> None:
    n_good = sum(not answer.defects for answer in part.answers)
    if n_good < least:
        raise InputError(
            f"{name} data: good answers are {n_good}, at least {least} are needed. "
            "Give more lines of answers without defects, of other first turns, or another share for validation."
        )
    scores: dict[str, list[float]] = defaultdict(list)
    for row in part.preferences:
        scores[row.group].append(row.score)
    if not any(max(values) - min(values) > _CLEAR for values in scores.values()):
        raise InputError(
            f"{name} data: no two answers of a group have scores that differ by more than {_CLEAR}. "
            "Give more preferences, of other first turns, or another share for validation."
        )


class _Model(torch.nn.Module):
    """The encoder with its heads during training."""

    def __init__(self, backbone: str, config: AssistantConfig, device: str) -> None:
        super().__init__()
        self.config = config
        self.encoder = encoders.without_normalisation(encoders.load_encoder(backbone, device=device))
        self.head = AssistantHead(encoders.transformer_of(self.encoder).config.hidden_size).to(self.encoder.device)
        self._before, self._answers = (
            TextEncoder(self.encoder.tokenizer, "plain", config.max_context_tokens, tokens)
            for tokens in (config.max_context_tokens, config.max_response_tokens)
        )

    def experts(self, texts: Sequence[_Text], *, sampled: np.random.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Log odds of both experts; `sampled` draws the parts of long answers to read, except the first and the last."""
        questions = [text.context[-1] if text.context else "" for text in texts]
        earlier = [tuple(text.context[:-1]) for text in texts]
        asked, before_asked, answered = numbered(questions), numbered(earlier), numbered([text.answer for text in texts])
        windows = self._answers.response_windows(list(answered), self.config.max_response_parts, keep_end=True)
        parts = [_some(window.parts, sampled) for window in windows]
        windows = self._before.response_windows(list(asked), self.config.max_question_parts, keep_end=True)
        question_parts = [window.parts for window in windows]
        flat = [
            *(text.ids for text in self._before.contexts(list(before_asked))),
            *(part for question in question_parts for part in question),
            *(part for answer in parts for part in answer),
        ]
        vectors = functional.normalize(encoders.embed(self.encoder, flat, kept_tokens=_KEPT_TOKENS).float(), dim=-1)
        sizes = [len(before_asked), *map(len, question_parts), *map(len, parts)]
        of_context, *others = torch.split(vectors, sizes)
        of_question, of_answer = others[: len(asked)], others[len(asked) :]
        rows: list[tuple[Tensor, ...]] = []
        zeros = vectors.new_zeros(vectors.shape[1])
        for text, question, before in zip(texts, questions, earlier, strict=True):
            answer = of_answer[answered[text.answer]]
            mean_question = of_question[asked[question]].mean(0) if question else zeros
            context = of_context[before_asked[before]] if before else zeros
            (evidence,) = self.head.of_parts(answer, mean_question.expand_as(answer))
            own = (context, mean_question[None], answer, evidence)
            before_array, asked_array, answer_array, highest = (value.detach().float().cpu().numpy() for value in own)
            read = pooled(before_array, asked_array, answer_array, highest, _counted(text))
            numbers = torch.tensor(read.numbers, device=vectors.device)
            rows.append((answer.mean(0), answer[0], answer[-1], mean_question, context, evidence.amax(0), numbers))
        return self.head.experts(*map(torch.stack, zip(*rows, strict=True)))


def _some(parts: list[list[int]], sampled: np.random.Generator | None) -> list[list[int]]:
    if sampled is None or len(parts) <= _MAX_TRAINING_PARTS:
        return parts
    inner = sampled.choice(np.arange(1, len(parts) - 1), _MAX_TRAINING_PARTS - 2, replace=False)
    return [parts[place] for place in (0, *sorted(inner.tolist()), len(parts) - 1)]


def _labels(**known: float) -> FloatArray:
    labels = np.full(len(HEADS), np.nan)
    for name, value in known.items():
        labels[HEADS.index(name)] = value
    return labels


_SOUND = _labels(**dict.fromkeys(_DEFECTS, 0.0))
_SPOILED = {
    name: _labels(**{other: float(other == name) for other in _DEFECTS if other not in LEFT_OPEN[name]}) for name in _DEFECTS
}


def _clean(answer: KnownAnswer) -> _Text:
    return _Text(answer.context, answer.answer, _SOUND)


_PERHAPS_CUT_OFF = _labels(**dict.fromkeys([name for name in _DEFECTS if name != "cut_off"], 0.0))


def _spoiled_texts(answer: KnownAnswer, others: Sequence[str], rng: np.random.Generator, most: int | None) -> list[_Text]:
    """A good answer and corrupted copies of it; each copy leaves the labels of some defects open."""
    made = spoiled(answer.context, answer.answer, others, rng)
    names = list(made)
    if most is not None:
        names = [names[place] for place in rng.permutation(len(names))[:most]]
    return [_clean(answer), *(_Text(answer.context, made[name], _SPOILED[name]) for name in names)]


class _Draws:
    """The data of each step, which depend only on its number."""

    def __init__(self, sources: AssistantSources, recipe: AssistantRecipe, seed: int) -> None:
        self.recipe, self._seed = recipe, seed
        groups: dict[str, list[RatedAnswer]] = defaultdict(list)
        for row in sources.preferences:
            groups[row.group].append(row)
        # Groups are drawn with the square root of their size as weight, since groups rated by people are small.
        self._groups = [rows for rows in groups.values() if len({row.score for row in rows}) > 1]
        sizes = np.array([math.sqrt(len(rows)) for rows in self._groups])
        self._shares = sizes / sizes.sum()
        self._good = [answer for answer in sources.answers if not answer.defects]
        self._known = [answer for answer in sources.answers if answer.defects]
        self._requests = sources.requests
        self._length_weights = self._weigh_lengths()

    def rng(self, step: int) -> np.random.Generator:
        return np.random.default_rng((self._seed, step))

    def rated(self, rng: np.random.Generator) -> list[RatedAnswer]:
        rows = self._groups[int(rng.choice(len(self._groups), p=self._shares))]
        places = rng.permutation(len(rows))[: self.recipe.rated_answers]
        return [rows[place] for place in places]

    def texts(self, rng: np.random.Generator) -> list[_Text]:
        recipe = self.recipe
        drawn = [self._good[place] for place in rng.choice(len(self._good), recipe.good_answers, replace=False)]
        others = [self._good[place].answer for place in rng.choice(len(self._good), _N_OTHERS, replace=False)]
        texts = []
        for answer in drawn:
            texts += _spoiled_texts(answer, [text for text in others if text != answer.answer], rng, recipe.spoiled)
        for place in rng.permutation(len(self._known))[: recipe.known_answers]:
            known = self._known[place]
            texts.append(_Text(known.context, known.answer, _labels(**known.defects)))
        for place in rng.permutation(len(self._requests))[: recipe.requests]:
            request = self._requests[place]
            # Whether it should be declined depends on the request alone.
            texts.append(_Text(request.context, _NO_ANSWER, _labels(**{ASKED_REFUSAL: request.asked_refusal})))
        return texts

    def all_texts(self, seed: int) -> tuple[list[_Text], list[tuple[np.ndarray, np.ndarray, FloatArray, FloatArray]]]:
        """All texts, sampled from each group and each good answer, and pairs as indices into them."""
        rng = np.random.default_rng(seed)
        texts: list[_Text] = []
        pairs = []
        for rows in self._groups:
            chosen = [rows[place] for place in rng.permutation(len(rows))[: 2 * self.recipe.rated_answers]]
            better, worse, probability, weights = self.pairs(chosen)
            # The number of pairs is bounded, so that groups do not count by the square of their size.
            keep = rng.permutation(len(better))[: 4 * len(chosen)]
            pairs.append((better[keep] + len(texts), worse[keep] + len(texts), probability[keep], weights[keep]))
            texts += [_Text(row.context, row.answer, _labels()) for row in chosen]
        for answer in self._good:
            others = [self._good[place].answer for place in rng.choice(len(self._good), _N_OTHERS, replace=False)]
            own = _spoiled_texts(answer, [text for text in others if text != answer.answer], rng, 6)
            # A harmless change leaves both equally good.
            places = np.array([len(texts)]), np.array([len(texts) + len(own)])
            pairs.append((*places, np.array([0.5]), np.array([_RESTYLED_WEIGHT])))
            # Answers without a last full stop may be truncated; labelling some of them as complete weakens that sign.
            labels = _SOUND if rng.random() < _KNOWN_ENDS else _PERHAPS_CUT_OFF
            texts += [*own, _Text(answer.context, restyled(answer.answer, rng), labels)]
        texts += [_Text(known.context, known.answer, _labels(**known.defects)) for known in self._known]
        return texts, pairs

    def _weigh_lengths(self) -> FloatArray:
        counts = np.zeros((2, len(_LENGTH_EDGES) + 1))
        rng = np.random.default_rng(self._seed)
        for rows in self._groups:
            places = rng.permutation(len(rows))[: 2 * self.recipe.rated_answers]
            chosen = [rows[place] for place in places]
            *_, difference = _pairs(chosen)
            np.add.at(counts, ((difference > 0).astype(int), np.digitize(np.abs(difference), _LENGTH_EDGES)), 1)
        weights: FloatArray = np.minimum(8, counts.sum(0) / 2 / np.maximum(1, counts)) ** self.recipe.length_control
        return weights

    def pairs(self, rows: Sequence[RatedAnswer]) -> tuple[np.ndarray, np.ndarray, FloatArray, FloatArray]:
        """Indices of better and worse answers, probabilities of this order, and weights by length."""
        better, worse, margin, difference = _pairs(rows)
        weights = self._length_weights[(difference > 0).astype(int), np.digitize(np.abs(difference), _LENGTH_EDGES)]
        return better, worse, 1 / (1 + np.exp(-margin)), weights


def _pairs(rows: Sequence[RatedAnswer]) -> tuple[np.ndarray, np.ndarray, FloatArray, FloatArray]:
    scores = np.array([row.score for row in rows])
    lengths = np.log([max(1, len(row.answer.split())) for row in rows])
    better, worse = np.nonzero(scores[:, None] - scores[None] > _CLEAR)
    return better, worse, scores[better] - scores[worse], lengths[better] - lengths[worse]


def _fit(run: TrainingRun, model: _Model, options: AssistantTrainingOptions, draws: _Draws, max_seconds: float) -> None:
    recipe, bfloat16 = options.recipe, run.options.precision == "bfloat16"
    encoders.freeze(encoders.transformer_of(model.encoder), recipe.frozen)
    for part in (model.head.texts, model.head.preference):
        part.requires_grad_(False)
    optimizer = adamw((model.encoder, recipe.learning_rate), (model.head, recipe.head_learning_rate))
    loop = TrainingLoop(run, _STAGE, model, optimizer, clip=1.0, n_steps=recipe.n_steps)

    def losses_of(number: int) -> dict[str, Tensor]:
        rng = draws.rng(number + 1)
        rated = draws.rated(rng)
        texts = [*(_Text(row.context, row.answer, _labels()) for row in rated), *draws.texts(rng)]
        texts += _exchanged(texts)
        with torch.autocast(model.encoder.device.type, torch.bfloat16, enabled=bfloat16):
            by_vectors, _ = model.experts(texts, sampled=rng)
        losses = _losses(by_vectors, texts, draws.pairs(rated))
        return {"loss": torch.stack(list(losses.values())).sum(), **losses}

    take_steps(
        loop,
        losses_of,
        n_steps=recipe.n_steps,
        steps_per_epoch=recipe.n_steps,
        checkpoint_steps=options.checkpoint_steps,
        max_seconds=max_seconds,
        warm_up=recipe.warm_up,
    )


def _exchanged(texts: Sequence[_Text]) -> list[_Text]:
    """Answers of a step after contexts of its good answers, as off-topic answers that are already embedded."""
    contexts = dict.fromkeys(text.context for text in texts if text.labels[HEADS.index("off_topic")] == 0)
    answers = {text.context: text.answer for text in texts if text.answer != _NO_ANSWER}
    off_topic = _labels(off_topic=1.0)
    return [_Text(context, answer, off_topic) for context in contexts for other, answer in answers.items() if other != context]


def _fit_texts(run: TrainingRun, head: AssistantHead, draws: _Draws) -> None:
    """Train the text expert, which needs no encoder: its features are computed once and used many times, on the processor."""
    device = head.text_mean.device
    head.cpu()
    texts, pairs = draws.all_texts(run.options.seed)
    run.log_progress(f"texts: counting what rules find in {len(texts)} answers")
    counted = torch.tensor(np.stack([_counted(text) for text in texts]), dtype=torch.float32)
    head.text_mean.copy_(counted.mean(0))
    head.text_scale.copy_(counted.std(0).clamp(min=0.02))
    labels = torch.tensor(np.stack([text.labels for text in texts]), dtype=torch.float32)
    better, worse, probability, weights = (torch.as_tensor(np.concatenate(each)) for each in zip(*pairs, strict=True))
    labelled = torch.nonzero((~labels.isnan()).any(1))[:, 0]
    place = HEADS.index(HELPFULNESS)

    def defects() -> Tensor:
        rows = labelled[torch.randint(len(labelled), (_TEXT_BATCH,))]
        return _defect_loss(head.by_text(counted[rows]), labels[rows])

    def preferences() -> Tensor:
        rows = torch.randint(len(better), (_TEXT_BATCH,))
        of_better, of_worse = (head.by_text(counted[side[rows]])[:, place] for side in (better, worse))
        return _preference_loss(of_better - of_worse, probability[rows], weights[rows])

    for name, network, loss_of, n_rows, n_epochs in (
        ("defects", head.texts, defects, len(labelled), 40),
        ("preference", head.preference, preferences, len(better), 10),
    ):
        n_steps = max(1, n_epochs * n_rows // _TEXT_BATCH)
        optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=0.05)
        schedule = LambdaLR(optimizer, functools.partial(_falling, n_steps))
        for _ in range(n_steps):
            loss = loss_of()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
        run.report(name, {"training_loss": loss.item()}, step=n_steps)
    head.to(device)


def _falling(n_steps: int, step: int) -> float:
    return 1 - step / n_steps


def _counted(text: _Text) -> FloatArray:
    return text_features(text.context[:-1], text.context[-1] if text.context else "", text.answer)


def _losses(
    by_vectors: Tensor, texts: Sequence[_Text], pairs: tuple[np.ndarray, np.ndarray, FloatArray, FloatArray]
) -> dict[str, Tensor]:
    log_odds = by_vectors.float()
    labels = torch.tensor(np.stack([text.labels for text in texts]), dtype=torch.float32, device=log_odds.device)
    losses = {"defects": _defect_loss(log_odds, labels)}
    better, worse, probability, weights = (torch.as_tensor(array, device=log_odds.device) for array in pairs)
    if len(better):
        of_preference = log_odds[:, HEADS.index(HELPFULNESS)]
        losses["preference"] = _preference_loss(of_preference[better] - of_preference[worse], probability, weights)
    return losses


def _defect_loss(log_odds: Tensor, labels: Tensor) -> Tensor:
    """Mean over answers of the summed losses of known labels; defects weigh more, since they are rarer than their absence."""
    known, labels = ~labels.isnan(), labels.nan_to_num()
    each = functional.binary_cross_entropy_with_logits(log_odds, labels, reduction="none")
    return (each * known * (1 + 3 * labels)).sum() / len(labels)


def _preference_loss(difference: Tensor, probability: Tensor, weights: Tensor) -> Tensor:
    each = functional.binary_cross_entropy_with_logits(difference, probability.float(), reduction="none")
    return (each * weights.float()).mean()


def _calibrate(model: _Model, sources: AssistantSources, recipe: AssistantRecipe, seed: int) -> dict[str, object]:
    """Blend the experts of each head on validation data; returns the figures of each blend there."""
    rng = np.random.default_rng(seed)
    good = [answer for answer in sources.answers if not answer.defects]
    drawn = [good[place] for place in rng.permutation(len(good))[: 3 * recipe.max_validation_answers]]
    chosen, clean = drawn[: recipe.max_validation_answers], drawn[recipe.max_validation_answers :]
    texts = [_clean(answer) for answer in clean]
    for answer in chosen:
        others = [good[place].answer for place in rng.choice(len(good), _N_OTHERS) if good[place] is not answer]
        texts += _spoiled_texts(answer, others, rng, None)
    known = [answer for answer in sources.answers if answer.defects]
    texts += [_Text(one.context, one.answer, _labels(**one.defects)) for one in known[: 2 * recipe.max_validation_answers]]
    texts += [_Text(one.context, _NO_ANSWER, _labels(**{ASKED_REFUSAL: one.asked_refusal})) for one in sources.requests]
    experts, labels = _validation_experts(model, texts), np.stack([text.labels for text in texts])
    spoiled_labels = {id(known) for known in _SPOILED.values()}
    is_real, has_earlier = np.array([(id(text.labels) not in spoiled_labels, len(text.context) > 2) for text in texts]).T
    figures: dict[str, object] = {}
    for place, name in enumerate(HEADS):
        if name == HELPFULNESS:
            continue
        rows = ~np.isnan(labels[:, place])
        if name == "stale":
            # Without an earlier answer, none can be stale.
            rows &= has_earlier
        columns = np.column_stack([experts[rows, place], np.ones(rows.sum())])
        target = labels[rows, place]
        if not 0 < target.sum() < len(target):
            continue
        even = np.where(target == 1, 0.5 / target.mean(), 0.5 / (1 - target.mean()))
        weights = logistic_regression(columns, target, start=np.array([0.5, 0.5, 0.0]), row_weights=even)
        log_odds = columns @ weights
        if name in _DEFECTS:
            alarms = log_odds[(target == 0) & is_real[rows]]
            weights[2] -= max(0.0, float(np.quantile(alarms, 1 - _FALSE_ALARMS)))
            log_odds = columns @ weights
        model.head.blend[:, place] = torch.tensor(weights, dtype=torch.float32)
        figures[name] = {
            "found": float((log_odds[target == 1] > 0).mean()),
            "false_alarms": float((log_odds[target == 0] > 0).mean()),
            "n": [int(target.sum()), int((1 - target).sum())],
        }
    figures[HELPFULNESS] = _calibrate_preferences(model, sources, recipe, rng)
    return figures


def _calibrate_preferences(
    model: _Model, sources: AssistantSources, recipe: AssistantRecipe, rng: np.random.Generator
) -> dict[str, float]:
    groups: dict[str, list[RatedAnswer]] = defaultdict(list)
    for row in sources.preferences:
        groups[row.group].append(row)
    chosen = [[rows[place] for place in rng.permutation(len(rows))[: recipe.rated_answers]] for rows in groups.values()]
    # Groups without a better answer say nothing, and may be the first ones.
    chosen = sorted(chosen, key=lambda rows: not len(_pairs(rows)[0]))[: recipe.max_validation_answers]
    experts = _validation_experts(model, [_Text(row.context, row.answer, _labels()) for rows in chosen for row in rows])
    place = HEADS.index(HELPFULNESS)
    differences, margins, start = [], [], 0
    for rows in chosen:
        better, worse, margin, _ = _pairs(rows)
        values = experts[start : start + len(rows), place]
        differences.append(values[better] - values[worse])
        margins.append(margin)
        start += len(rows)
    difference, margin = np.concatenate(differences), np.concatenate(margins)
    probability = 1 / (1 + np.exp(-margin))
    by_text = np.concatenate([difference, -difference])[:, 1:]
    (weight,) = logistic_regression(
        by_text,
        np.repeat([1.0, 0.0], len(difference)),
        start=np.array([1.0]),
        row_weights=np.concatenate([probability, probability]),
    )
    centre = float(np.median(experts[:, place, 1] * weight))
    # From preferences, vectors learn the taste of the judges of these answers: with other judges they are worse than the text
    # features.
    model.head.blend[:, place] = torch.tensor([0.0, weight, -centre], dtype=torch.float32)
    is_right = difference[:, 1] > 0
    return {"pairs": float(len(difference)), **({"right": float(is_right.mean())} if len(is_right) else {})}


def _validation_experts(model: _Model, texts: Sequence[_Text]) -> np.ndarray:
    """Log odds of both experts, (n, number of `HEADS`, 2)."""
    log_odds = []
    with torch.inference_mode():
        for start in range(0, len(texts), 64):
            log_odds.append(torch.stack(model.experts(texts[start : start + 64]), dim=-1).double().cpu().numpy())
    return np.concatenate(log_odds)
