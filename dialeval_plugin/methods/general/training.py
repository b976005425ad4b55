"""Training the general evaluator: steps over several corpora, then what is fitted on validation dialogues."""

from __future__ import annotations

import functools
import logging
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from torch.optim.lr_scheduler import LambdaLR
from tqdm.auto import tqdm

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.models.encoders import load_encoder, transformer_of, without_normalisation
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve
from dialeval_plugin.training.loop import TrainingLoop, fit_in_main_process
from dialeval_plugin.training.options import TrainingOptions
from dialeval_plugin.training.run import TrainingResult, TrainingRun, data_hash

from .calibration import Fitted, fit, validation_dialogues, validation_rows
from .conversations import Conversation, Pair, by_corpus, split
from .model import GENERAL_FOLDER, GeneralConfig, GeneralModel, TrainedGeneral
from .objective import loss_terms, make_step
from .recipes import GeneralRecipe
from .sampling import SamplingPlan, quotas
from .scorer import GENERAL_MODEL

logger = logging.getLogger(__name__)

_STAGE = "general"
_TABLE_RESPONSES, _TABLE_STEPS = 100_000, 20
"""Responses that the tables of token rarity are counted on, and steps that the scale of the features is learnt on."""
_WINDOW = 1000
"""Responses that are tokenised at once: the tokenizer holds a kilobyte for each until all are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralTrainingOptions(TrainingOptions):
    """What a training depends on, apart from its data.

    Attributes:
        backbone: a sentence-transformers folder, a transformers checkpoint, or a hub id.
        recipe: see there.
        validation_fraction: share of each corpus' dialogues that is set aside where no validation dialogues are given.
        max_minutes: the steps, without what is fitted after them, are over by then; the learning rate falls accordingly. A run
            with a limit is not repeatable to the byte.
        checkpoint_steps: after how many steps what was learnt is kept and the losses are reported.
    """

    backbone: str = PACKAGED_ENCODER
    recipe: GeneralRecipe = field(default_factory=GeneralRecipe)
    validation_fraction: float = 0.05
    max_minutes: float | None = None
    checkpoint_steps: int = 100


class GeneralSources(NamedTuple):
    """Dialogues by their use; those that will be reported on are left out before."""

    training: Sequence[Conversation]
    validation: Sequence[Conversation] = ()
    """Fit the weights of calibration, mixing and coherence; without them a share of each corpus does."""


def train(
    sources: GeneralSources,
    output: Path,
    options: GeneralTrainingOptions = GeneralTrainingOptions(),
    *,
    left_out: Mapping[str, int] | None = None,
    device: str | None = None,
    progress: bool = False,
    remember: bool = True,
) -> TrainingResult:
    """Train a general evaluator and write it to the folder `output`.

    Checkpoints lie in `output/.training` until the run ends; the same call after a kill goes on from the last one and, without
    `max_minutes`, ends with the same bytes.

    Args:
        sources: dialogues of several corpora.
        output: a folder that does not hold a finished model.
        options: see there.
        left_out: dialogues that were kept out because they will be reported on, by corpus; goes into the record.
        device: a torch device; by default a GPU where there is one.
        progress: show bars, and a line at each checkpoint.
        remember: make this the model that is used where none is named.

    Raises:
        InputError: `output` holds a finished model or another run's checkpoints, an option is out of its range, or there are
            too few dialogues.
        ModelLoadError: the backbone is damaged, or training diverged.
    """
    _check_options(options)
    recipe = options.recipe
    with TrainingRun.open(output, GENERAL_FOLDER, options, progress=progress) as run:
        run.say("collecting the responses of the corpora")
        splits = split(sources.training, sources.validation, fraction=options.validation_fraction, seed=options.seed)
        corpora = by_corpus(splits.training)
        run.start(data=data_hash(splits.training, splits.validation))
        has_knowledge = any(pair.facts for pairs in corpora.values() for pair in pairs)
        model = _new_model(options, has_knowledge=has_knowledge, device=device or run.device)
        run.stage(_STAGE, model, lambda: fit_in_main_process(run, functools.partial(_fit, run, model, options, corpora)))
        run.say(f"fitting calibration, mixing and coherence on {len(splits.validation)} validation dialogues")
        fitted = _fit_on_validation(model, splits.validation, options)
        sizes = {name: len(pairs) for name, pairs in corpora.items()}
        record = {
            "backbone_hash": content_hash(resolve(options.backbone)),
            "counts": {
                "training_dialogues": dict(Counter(item.corpus for item in splits.training)),
                "validation_dialogues": dict(Counter(item.corpus for item in splits.validation)),
                "training_pairs": sizes,
                "pairs_per_epoch": quotas(sizes, max_pairs=recipe.max_pairs, exponent=recipe.corpus_exponent),
                "steps": run.history[-1].step,
                "left_out_as_leaks": dict(left_out or {}),
            },
            "validation": {"auroc": fitted.figures, "rows": fitted.n_rows},
        }
        known = frozenset(item.key for item in (*splits.training, *splits.validation))
        trained = TrainedGeneral(model, fitted.mixing, fitted.coherence, known)
        return run.publish(trained.save, record, remember=GENERAL_MODEL if remember else None)


def _check_options(options: GeneralTrainingOptions) -> None:
    recipe = options.recipe
    for name, value, lowest in (
        ("max_pairs", recipe.max_pairs, 2),
        ("batch_size", recipe.batch_size, 2),
        ("epochs", recipe.n_epochs, 1),
        ("checkpoint_steps", options.checkpoint_steps, 1),
    ):
        if value < lowest:
            raise InputError(f"{name}: expected at least {lowest}, got {value}.")
    if options.max_minutes is not None and options.max_minutes <= 0:
        raise InputError(f"max_minutes: expected more than 0, got {options.max_minutes}.")


def _new_model(options: GeneralTrainingOptions, *, has_knowledge: bool, device: str) -> GeneralModel:
    recipe = options.recipe
    config = GeneralConfig("general", recipe.max_context_tokens, recipe.max_response_tokens, has_knowledge)
    encoder = without_normalisation(load_encoder(options.backbone, device=device))
    model = GeneralModel(encoder, config).to(encoder.device)
    # Half of MiniLM's weights are word embeddings, of which these corpora touch few: they would only overfit.
    transformer_of(encoder).get_input_embeddings().requires_grad_(False)
    return model


def _fit(run: TrainingRun, model: GeneralModel, options: GeneralTrainingOptions, corpora: Mapping[str, Sequence[Pair]]) -> None:
    recipe, bfloat16 = options.recipe, run.options.precision == "bfloat16"
    plan = SamplingPlan(corpora, recipe, options.seed, progress=run.progress)
    _learn_tables(model, plan, corpora, progress=run.progress)
    loop = TrainingLoop(run, _STAGE, model, _optimizer(model, recipe), clip=1.0, n_steps=plan.n_steps)
    max_seconds = math.inf if options.max_minutes is None else 60 * options.max_minutes

    def share() -> float:
        """How much of the run is over, in [0, 1]: of the steps or of the time, whichever is nearer to its end."""
        return min(1.0, max(loop.n_steps / plan.n_steps, loop.elapsed / max_seconds))

    def rate(_: int) -> float:
        """Rises and falls with the share; a share of 0 would learn nothing."""
        part, warm_up = share(), recipe.warm_up
        return max(part / warm_up if part < warm_up else (1 - part) / (1 - warm_up), 1 / plan.n_steps)

    schedule = LambdaLR(loop.optimizer, rate)
    terms: defaultdict[str, list[float]] = defaultdict(list)
    is_over = loop.n_steps > 0 and share() >= 1
    while not is_over:
        loop.seed(loop.n_steps + 1)
        step = make_step(model, plan.rows(loop.n_steps))
        losses = loss_terms(model, step, bfloat16=bfloat16)
        loss = torch.stack([recipe.loss_weights[name] * term for name, term in losses.items()]).sum()
        loop.step(loss)
        schedule.step()
        for name, term in {"loss": loss, **losses}.items():
            terms[f"training_{name}"].append(term.item())
        is_over = share() >= 1
        if is_over or loop.n_steps % options.checkpoint_steps == 0:
            # Not every step has facts.
            means = {name: sum(values) / len(values) for name, values in terms.items()}
            loop.keep(means, epoch=loop.n_steps / plan.steps_per_epoch)
            terms.clear()


def _optimizer(model: GeneralModel, recipe: GeneralRecipe) -> torch.optim.Optimizer:
    """The encoder learns more slowly than the heads."""
    named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    groups = [
        {"params": [weight for name, weight in named if name.startswith("encoder.")], "lr": recipe.learning_rate},
        {"params": [weight for name, weight in named if not name.startswith("encoder.")], "lr": recipe.head_learning_rate},
    ]
    return torch.optim.AdamW(groups, weight_decay=0.01, fused=True)


def _learn_tables(model: GeneralModel, plan: SamplingPlan, corpora: Mapping[str, Sequence[Pair]], *, progress: bool) -> None:
    """How rare tokens are in the responses, and mean and deviation of the features, from the first steps."""
    pairs = [pair for corpus in corpora.values() for pair in corpus]
    pairs = pairs[:: max(1, len(pairs) // _TABLE_RESPONSES)]
    starts = tqdm(range(0, len(pairs), _WINDOW), desc="token rarity", disable=None if progress else True, leave=False)
    special, head = model.texts.special, model.head

    def token_ids() -> Iterator[list[int]]:
        for start in starts:
            for row in model.texts.responses([pair.response for pair in pairs[start : start + _WINDOW]]):
                yield [token for token in row if token not in special]

    head.context_words.learn_rarity(token_ids())
    head.fact_words.rarity.copy_(head.context_words.rarity)
    features = defaultdict(list)
    for number in range(min(_TABLE_STEPS, plan.n_steps)):
        step = make_step(model, plan.rows(number))
        for name, labelled in step.labelled.items():
            if labelled.labels:
                texts = step.facts if name == "knowledge" else step.contexts
                judged = [step.responses[response] for response in labelled.responses]
                features[head.words_of(name)].append(model.features(name, texts, labelled.owners, judged))
    for table, found in features.items():
        table.learn_scale(torch.cat(found))


def _fit_on_validation(model: GeneralModel, conversations: Sequence[Conversation], options: GeneralTrainingOptions) -> Fitted:
    recipe, pairs = options.recipe, by_corpus(conversations)
    return fit(
        model,
        validation_rows(pairs, max_pairs=recipe.max_validation_pairs, seed=options.seed),
        validation_dialogues(conversations, pairs, max_dialogues=recipe.max_validation_dialogues, seed=options.seed),
    )
