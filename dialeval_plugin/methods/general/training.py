"""Training the general evaluator end to end: one readable loop, one folder at the end. A run that was killed goes on."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file
from torch import nn
from tqdm.auto import tqdm

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.corpora.identity import LEAK_RULE
from dialeval_plugin.models.encoders import load_encoder, transformer_of, without_normalisation
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve, save_weights
from dialeval_plugin.training.precision import Precision, uses_bfloat16
from dialeval_plugin.training.run_folder import refuse_finished, report, workplace
from dialeval_plugin.version import __version__

from .calibration import Fitted, fit, validation_dialogues, validation_rows
from .conversations import Conversation, Pair, by_corpus, split
from .model import CONFIG_FILE, GeneralConfig, GeneralModel, TrainedGeneral
from .objective import loss_terms, make_step
from .recipes import Recipe
from .sampling import Plan
from .scorer import GENERAL_MODEL

logger = logging.getLogger(__name__)

_PROGRESS_FILE = "progress.json"
_TABLE_RESPONSES, _TABLE_STEPS = 100_000, 20
"""Responses that the tables of token rarity are counted on, and steps that the scale of the features is learnt on."""


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """What a training run depends on, apart from its data.

    Attributes:
        backbone: a sentence-transformers folder, a transformers checkpoint, or a hub id.
        recipe: see `Recipe`.
        validation_fraction: share of each corpus' dialogues that is set aside where no validation dialogues are given.
        seed: of the split, the initial weights, the order and every draw.
        precision: "auto" computes in bfloat16 where the processor has instructions for it.
        max_minutes: training, without what is fitted after it, is over by then; the learning rate falls accordingly. A run with
            a limit is not repeatable to the byte.
        checkpoint_steps: after how many steps what was learnt is kept and the losses are reported.
    """

    backbone: str = PACKAGED_ENCODER
    recipe: Recipe = field(default_factory=Recipe)
    validation_fraction: float = 0.05
    seed: int = 13
    precision: Precision = "auto"
    max_minutes: float | None = None
    checkpoint_steps: int = 100


class Sources(NamedTuple):
    """Dialogues by their use; those of the evaluation are left out before."""

    training: Sequence[Conversation]
    validation: Sequence[Conversation] = ()
    """Fit the weights of calibration, mixing and coherence; without them a share of each corpus does."""


class Trained(NamedTuple):
    """Where the model is and how it got there."""

    folder: Path
    record: dict[str, Any]
    """Goes into general.json: options, counts, losses and validation figures."""


def train(
    sources: Sources,
    output: Path,
    options: TrainingOptions = TrainingOptions(),
    *,
    left_out: Mapping[str, int] | None = None,
    device: str | None = None,
    progress: bool = False,
    remember: bool = True,
) -> Trained:
    """Train a general evaluator and write it to the folder `output`.

    Checkpoints lie in `output/.training` until the run ends; the same call after a kill goes on from the last one and, without
    `max_minutes`, ends with the same bytes.

    Args:
        sources: dialogues of several corpora.
        output: a folder that does not hold a finished model.
        options: see `TrainingOptions`.
        left_out: dialogues that were kept out because they will be reported on, by corpus; goes into the record.
        device: a torch device; by default a GPU where there is one.
        progress: show a bar, and a line at each checkpoint.
        remember: make this the model that is used where none is named.

    Raises:
        InputError: `output` holds a finished model or another run's checkpoints, an option is out of its range, or there are
            too few dialogues.
        ModelLoadError: the backbone is damaged, or training diverged.
    """
    _check_options(options)
    refuse_finished(output, CONFIG_FILE)
    recipe = options.recipe
    splits = split(sources.training, sources.validation, fraction=options.validation_fraction, seed=options.seed)
    corpora = by_corpus(splits.training)
    with workplace(output, CONFIG_FILE, _identity(options, corpora, splits.validation)) as place:
        torch.manual_seed(options.seed)
        plan = Plan(corpora, recipe, options.seed)
        has_knowledge = any(pair.facts for pairs in corpora.values() for pair in pairs)
        model = _new_model(options, has_knowledge=has_knowledge, device=device)
        _learn_tables(model, plan, corpora, options.seed)
        trainee = _Trainee(model, plan, options, place, progress)
        trainee.train()
        model.eval()
        fitted = _fit_on_validation(model, splits.validation, options)
        record = {
            "options": {**_plain(options), "precision": _precision(options)},
            "backbone_hash": content_hash(resolve(options.backbone)),
            "counts": {
                "training_dialogues": dict(Counter(item.corpus for item in splits.training)),
                "validation_dialogues": dict(Counter(item.corpus for item in splits.validation)),
                "training_pairs": {name: len(pairs) for name, pairs in corpora.items()},
                "pairs_per_epoch": plan.quotas,
                "steps": trainee.n_steps,
                "left_out_as_leaks": dict(left_out or {}),
            },
            "history": trainee.history,
            "validation": {"auroc": fitted.figures, "rows": fitted.n_rows},
            "leak_rule": LEAK_RULE,
            "version": __version__,
        }
        known = frozenset(item.key for item in (*splits.training, *splits.validation))
        TrainedGeneral(model, fitted.mixing, fitted.coherence, known).save(output, record)
    if remember:
        GENERAL_MODEL.remember(output)
    return Trained(output, record)


def _check_options(options: TrainingOptions) -> None:
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


def _precision(options: TrainingOptions) -> str:
    return "bfloat16" if uses_bfloat16(options.precision) else "float32"


def _plain(options: TrainingOptions) -> dict[str, Any]:
    """The options that what is learnt depends on, as JSON has them."""
    shown: dict[str, Any] = json.loads(to_json(asdict(replace(options, checkpoint_steps=0))))
    del shown["checkpoint_steps"]
    return shown


def _identity(
    options: TrainingOptions, corpora: Mapping[str, Sequence[Pair]], validation: Sequence[Conversation]
) -> dict[str, Any]:
    """What has to be the same for a run to go on from another's checkpoints."""
    digest = hashlib.sha256()
    for name, pairs in corpora.items():
        for pair in pairs:
            digest.update(repr((name, pair.context, pair.response, pair.facts, pair.conversation.misleading)).encode())
    for item in validation:
        digest.update(repr(item).encode())
    return {
        "options": {**_plain(options), "precision": _precision(options)},
        "data": digest.hexdigest(),
        "version": __version__,
    }


def _new_model(options: TrainingOptions, *, has_knowledge: bool, device: str | None) -> GeneralModel:
    recipe = options.recipe
    config = GeneralConfig("general", recipe.max_context_tokens, recipe.max_response_tokens, has_knowledge)
    encoder = without_normalisation(load_encoder(options.backbone, device=device))
    model = GeneralModel(encoder, config).to(encoder.device)
    # Half of MiniLM's weights are word embeddings, of which these corpora touch few: they would only overfit.
    transformer_of(encoder).get_input_embeddings().requires_grad_(False)
    return model


def _learn_tables(model: GeneralModel, plan: Plan, corpora: Mapping[str, Sequence[Pair]], seed: int) -> None:
    """How rare tokens are in the responses, and mean and deviation of the features, from the first steps."""
    responses = [pair.response for pairs in corpora.values() for pair in pairs]
    every = max(1, len(responses) // _TABLE_RESPONSES)
    special = model.texts.special
    ids = [[token for token in row if token not in special] for row in model.texts.responses(responses[::every])]
    head = model.head
    found: dict[str, list[torch.Tensor]] = {"context": [], "facts": []}
    for table in (head.context_words, head.fact_words):
        table.learn_rarity(ids)
    for number in range(min(_TABLE_STEPS, plan.n_steps)):
        step = make_step(model, plan.rows(number))
        for name, labelled in step.labelled.items():
            if labelled.labels:
                table, texts, place = (
                    (head.fact_words, step.facts, "facts")
                    if name == "knowledge"
                    else (head.context_words, step.contexts, "context")
                )
                judged = [step.responses[response] for response in labelled.responses]
                found[place].append(model.features(table, texts, labelled.owners, judged))
    for table, place in ((head.context_words, "context"), (head.fact_words, "facts")):
        if found[place]:
            table.learn_scale(torch.cat(found[place]))


def _fit_on_validation(model: GeneralModel, conversations: Sequence[Conversation], options: TrainingOptions) -> Fitted:
    recipe, pairs = options.recipe, by_corpus(conversations)
    logger.info("fitting calibration, mixing and coherence on %d validation dialogues", len(conversations))
    return fit(
        model,
        validation_rows(pairs, max_pairs=recipe.max_validation_pairs, seed=options.seed),
        validation_dialogues(conversations, pairs, max_dialogues=recipe.max_validation_dialogues, seed=options.seed),
    )


@dataclass
class _Trainee:
    """A model in training, and what it has behind it."""

    model: GeneralModel
    plan: Plan
    options: TrainingOptions
    folder: Path
    progress: bool
    history: list[dict[str, float]] = field(default_factory=list)
    """Mean of each loss term since the checkpoint before."""
    n_steps: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        recipe = self.options.recipe
        self.bfloat16 = uses_bfloat16(self.options.precision)
        encoder, head = (
            [(name, weight) for name, weight in self.model.named_parameters() if weight.requires_grad and chosen(name)]
            for chosen in (lambda name: name.startswith("encoder."), lambda name: not name.startswith("encoder."))
        )
        self.weights = dict([*encoder, *head])
        groups = [
            {"params": [weight for _, weight in encoder], "lr": recipe.learning_rate},
            {"params": [weight for _, weight in head], "lr": recipe.head_learning_rate},
        ]
        self.optimizer = torch.optim.AdamW(groups, weight_decay=0.01, fused=True)
        # Both rates rise and fall together, by the share of the run that is over.
        self.highest = [group["lr"] for group in self.optimizer.param_groups]

    def train(self) -> None:
        """Go through the steps that are left."""
        self._resume()
        self.model.train()
        losses: dict[str, list[float]] = {}
        n_tokens, started = 0, time.monotonic()
        bar = tqdm(
            total=self.plan.n_steps, initial=self.n_steps, disable=None if self.progress else True, unit="step", desc="general"
        )
        with bar:
            while not self._is_finished():
                begun = time.monotonic()
                terms, tokens = self._step()
                self.seconds += time.monotonic() - begun
                self.n_steps += 1
                n_tokens += tokens
                for name, value in terms.items():
                    losses.setdefault(name, []).append(value)
                bar.update()
                if self.n_steps % self.options.checkpoint_steps == 0 or self._is_finished():
                    # Not every step has facts.
                    means = {name: sum(values) / len(values) for name, values in losses.items()}
                    self.history.append({"step": self.n_steps, **means})
                    self._report(n_tokens / (time.monotonic() - started))
                    self._save()
                    losses, n_tokens, started = {}, 0, time.monotonic()

    @property
    def share(self) -> float:
        """How much of the run is over, in [0, 1]: of the steps or of the time, whichever is nearer to its end."""
        limit = math.inf if self.options.max_minutes is None else 60 * self.options.max_minutes
        return min(1.0, max(self.n_steps / self.plan.n_steps, self.seconds / limit))

    def _is_finished(self) -> bool:
        return self.share >= 1

    def _step(self) -> tuple[dict[str, float], int]:
        # Each step has its own seed, so that a resumed run needs no generator's state.
        torch.manual_seed(self.options.seed + 1_000_003 * (self.n_steps + 1))
        warm_up = self.options.recipe.warm_up
        part = self.share
        factor = part / warm_up if part < warm_up else (1 - part) / (1 - warm_up)
        for group, highest in zip(self.optimizer.param_groups, self.highest, strict=True):
            # The first step has a share of 0 and would learn nothing.
            group["lr"] = highest * max(factor, 1 / self.plan.n_steps)
        step = make_step(self.model, self.plan.rows(self.n_steps))
        terms = loss_terms(self.model, step, bfloat16=self.bfloat16)
        loss = torch.stack([self.options.recipe.loss_weights[name] * term for name, term in terms.items()]).sum()
        if not torch.isfinite(loss):
            raise ModelLoadError(
                f"training: the loss of step {self.n_steps + 1} is not finite, so it diverged. Train again with a lower "
                "learning rate or precision='float32'."
            )
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.weights.values(), 1.0)
        self.optimizer.step()
        return {name: term.item() for name, term in terms.items()}, step.n_tokens

    def _report(self, tokens_per_second: float) -> None:
        last = self.history[-1]
        shown = ", ".join(f"{name} {value:.3f}" for name, value in last.items() if name != "step")
        left = self.seconds * (1 - self.share) / self.share
        line = (
            f"step {self.n_steps} of {self.plan.n_steps}: {shown}; {tokens_per_second:.0f} tokens/s, "
            f"{self.seconds / 60:.0f} min, {left / 60:.0f} min left"
        )
        report(line, shown=self.progress)

    def _save(self) -> None:
        """Keep what was learnt; it counts from the moment that progress.json names it."""
        state = {f"weight.{name}": weight for name, weight in self.weights.items()}
        for place, values in self.optimizer.state_dict()["state"].items():
            state |= {f"optimizer.{place}.{name}": tensor for name, tensor in values.items()}
        save_weights(self._checkpoint(self.n_steps), state)
        progress = {"n_steps": self.n_steps, "seconds": self.seconds, "history": self.history}
        write_text(self.folder / _PROGRESS_FILE, to_json(progress, indent=2) + "\n")
        for path in self.folder.glob("step_*.safetensors"):
            if path != self._checkpoint(self.n_steps):
                path.unlink()

    def _resume(self) -> None:
        if not (self.folder / _PROGRESS_FILE).exists():
            return
        progress = read_json(self.folder / _PROGRESS_FILE)
        self.n_steps, self.seconds, self.history = progress["n_steps"], progress["seconds"], progress["history"]
        moments: dict[int, dict[str, torch.Tensor]] = {}
        with torch.no_grad():
            for name, tensor in load_file(str(self._checkpoint(self.n_steps))).items():
                part, _, rest = name.partition(".")
                if part == "weight":
                    self.weights[rest].copy_(tensor)
                else:
                    place, _, moment = rest.partition(".")
                    moments.setdefault(int(place), {})[moment] = tensor
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        report(f"general: going on from step {self.n_steps} of {self.plan.n_steps}", shown=self.progress)

    def _checkpoint(self, n_steps: int) -> Path:
        return self.folder / f"step_{n_steps:07d}.safetensors"
