"""Training of a language model on dialogues: data, tokenizer and one folder; a killed run can resume.

Three objectives differ in input and logits only: `lm` is a language model, `odin` one with a second head (`Odin`), `background`
one that predicts clean text from perturbed input, the denominator of the likelihood ratio.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import transformers
from accelerate.utils import broadcast_object_list
from annotated_types import Interval
from torch import Tensor
from torch.nn import functional

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.models.causal import check_causal
from dialeval_plugin.models.language_models import OpenedModel, open_model, train_tokenizer
from dialeval_plugin.training.host_trainers import fit
from dialeval_plugin.training.run import TrainingOptions, TrainingResult, TrainingRun, choose_recipe, data_hash

from .calibration import calibrate_trained
from .data import (
    IGNORED,
    MU,
    LanguageModelSources,
    PadRows,
    RowsByLength,
    Spacing,
    TokenNoise,
    TokenRows,
    ordinary_tokens,
    prepare,
    token_blocks,
)
from .detectors import LANGUAGE_MODEL_FOLDER, ConfidenceHead, decomposed, feature_width, save_head

Objective: TypeAlias = Literal["lm", "odin", "background"]


@dataclass(frozen=True, slots=True)
class LanguageModelRecipe:
    """Sizes and hyperparameters of a training run.

    Attributes:
        n_layers: layers of a model from scratch.
        width: size of its hidden states, 64 per attention head.
        vocabulary: tokens of its byte-level BPE, which is learnt from the training data.
        block: longest row of tokens, and the window of a model from scratch.
        learning_rate: maximum; it rises linearly and falls by a cosine.
        warm_up: share of the steps in which it rises.
        batch_size: rows per step.
        patience: epochs without a gain on validation after which training ends.
    """

    name: str
    n_layers: int = 4
    width: int = 256
    vocabulary: int = 4000
    block: int = 256
    n_epochs: int = 3
    learning_rate: float = 1e-3
    warm_up: float = 0.05
    batch_size: int = 16
    patience: int = 2

    @property
    def n_heads(self) -> int:
        """Attention heads of a model from scratch."""
        return max(1, self.width // 64)


RECIPES: dict[str, LanguageModelRecipe] = {
    # From scratch: three epochs on DailyDialog's 1.4 million tokens take about 25 minutes on one core with bfloat16.
    "small": LanguageModelRecipe("small"),
    # From another model: in the thesis three epochs have no gain over one.
    "continue": LanguageModelRecipe("continue", n_epochs=1, learning_rate=2e-4),
}


@dataclass(frozen=True, slots=True)
class LanguageModelTrainingOptions(TrainingOptions):
    """Options of a training.

    Attributes:
        recipe: "small" or "continue"; None selects "continue" with a backbone, else "small".
        backbone: folder or hub id of a causal language model to continue from; None trains a GPT-2 from scratch.
        sizes: fields of `LanguageModelRecipe` that replace the recipe's.
        mu: rate of the background model's noise.
        spacing: see `data.prepare`.
    """

    objective: Objective = "lm"
    recipe: str | None = None
    backbone: str | None = None
    sizes: Mapping[str, int | float | None] | None = None
    mu: Annotated[float, Interval(gt=0, lt=1)] = MU
    spacing: Spacing = "natural"
    validation_fraction: float = field(default=0.05, kw_only=True)

    def find_recipe(self) -> LanguageModelRecipe:
        """Return the recipe with the numbers of these options."""
        if self.objective == "background" and self.backbone is None:
            raise InputError(
                "background: name the model that it is compared with in --backbone. They have to share a tokenizer."
            )
        sizes = self.sizes or {}
        for name in ("n_layers", "width", "vocabulary"):
            if self.backbone is not None and sizes.get(name) is not None:
                raise InputError(f"{name}: the backbone has its own. Leave the option out, or train from scratch.")
        recipe = choose_recipe(
            RECIPES, self.recipe or ("small" if self.backbone is None else "continue"), may_be_zero=(), **sizes
        )
        if recipe.width % recipe.n_heads:
            raise InputError(f"width: {recipe.width} is no multiple of 64. Give one, or less than 64.")
        return recipe


def train(
    sources: LanguageModelSources,
    output: Path,
    options: LanguageModelTrainingOptions = LanguageModelTrainingOptions(),
    *,
    max_minutes: float | None = None,
    progress: bool = False,
) -> TrainingResult:
    """Train a language model and write it to the folder `output`, for transformers; it must not contain a finished model.

    Validation and evaluation dialogues are left out of training and counted. Training ends after `max_minutes` of this process;
    such a run is not exactly repeatable.
    """
    recipe = options.find_recipe()
    with TrainingRun.open(output, LANGUAGE_MODEL_FOLDER, options, progress=progress) as run:
        data = prepare(sources, validation_fraction=options.validation_fraction, seed=options.seed, spacing=options.spacing)
        run.start(recipe=asdict(recipe), data=data_hash(data.training, data.validation))

        start = options.backbone or str(write_new_model(run, data.training, recipe))
        opened = open_model(start, family="causal_lm", device=run.device)
        check_causal(opened)
        if opened.max_positions is not None and recipe.block > opened.max_positions:
            raise InputError(
                f"block: {recipe.block} tokens are more than the {opened.max_positions} that the backbone reads. Give less."
            )
        noise = TokenNoise(options.mu, ordinary_tokens(opened), options.seed) if options.objective == "background" else None
        training, validation = (
            TokenRows(token_blocks(opened, dialogues, recipe.block), noise) for dialogues in (data.training, data.validation)
        )
        transformers.set_seed(options.seed)
        head = ConfidenceHead(feature_width(opened.model)).to(opened.device) if options.objective == "odin" else None
        with contextlib.nullcontext() if head is None else decomposed(opened.model, head):
            fit_language_model(opened, options.objective, recipe, training, validation, run, max_minutes=max_minutes)

        def save(folder: Path, record: Mapping[str, Any]) -> None:
            opened.model.save_pretrained(folder)
            opened.tokenizer.save_pretrained(folder)
            if head is not None:
                save_head(head, folder)
            semantic = options.backbone if options.objective == "background" else None
            run.log_progress(f"calibrating the breakdown scores on {len(data.validation)} validation dialogues")
            calibrate_trained(opened, data.validation, folder, head=head, semantic=semantic, progress=run.progress)
            LANGUAGE_MODEL_FOLDER.publish(folder, {"objective": options.objective}, record)

        record = {
            "recipe": asdict(recipe),
            "backbone_hash": None if options.backbone is None else content_hash(opened.folder),
            "counts": {
                "n_training_dialogues": len(data.training),
                "n_validation_dialogues": len(data.validation),
                "n_left_out": data.n_left_out,
                "n_training_tokens": sum(map(len, training.blocks)),
                "n_validation_tokens": sum(map(len, validation.blocks)),
            },
        }
        return run.publish(save, record)


def write_new_model(run: TrainingRun, dialogues: Sequence[Sequence[str]], recipe: LanguageModelRecipe) -> Path:
    """Write a new model into the run's checkpoints, unless a resumed run has one, and return its folder."""
    folder = run.checkpoint_dir / "start"
    if run.is_main_process and not folder.exists():
        partial = folder.with_suffix(".part")
        shutil.rmtree(partial, ignore_errors=True)
        tokenizer = train_tokenizer((text for turns in dialogues for text in turns), recipe.vocabulary)
        tokenizer.model_max_length = recipe.block
        tokenizer.save_pretrained(partial)
        transformers.GPT2LMHeadModel(_config(tokenizer, recipe)).save_pretrained(partial)
        partial.replace(folder)
    run.barrier()
    return folder


def _config(tokenizer: transformers.PreTrainedTokenizerFast, recipe: LanguageModelRecipe) -> transformers.GPT2Config:
    end = tokenizer.eos_token_id
    return transformers.GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=recipe.block,
        n_embd=recipe.width,
        n_layer=recipe.n_layers,
        n_head=recipe.n_heads,
        # The same function as GPT-2's default, in one fused operation.
        activation_function="gelu_pytorch_tanh",
        # A few passes over a small corpus do not overfit a small model.
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=end,
        eos_token_id=end,
    )


class TokenLosses(NamedTuple):
    """Negative log-likelihoods (natural log) of the rows of a batch."""

    sums: Tensor
    """Sum over the tokens of each row, of shape (rows,)."""
    n_tokens: Tensor
    """Predicted tokens of each row, of shape (rows,)."""


def token_losses(logits: Tensor, labels: Tensor) -> TokenLosses:
    """Return the losses of logits (rows, places, vocabulary) against the next place's label, which may be `IGNORED`."""
    targets = labels[:, 1:]
    losses = functional.cross_entropy(
        logits[:, :-1].flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return TokenLosses(losses.view(targets.shape).sum(dim=1), (targets != IGNORED).sum(dim=1))


class LanguageModelTrainer(transformers.Trainer):  # type: ignore[misc] # the host is not typed
    """A transformers trainer with rows sorted by length, and with losses that do not depend on the batches."""

    def _get_train_sampler(self, train_dataset: TokenRows | None = None) -> RowsByLength:
        rows = self.train_dataset if train_dataset is None else train_dataset
        return RowsByLength([len(block) for block in rows.blocks], self.args.train_batch_size, self.args.seed)

    def compute_loss(
        self, model: Any, inputs: dict[str, Tensor], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return the mean loss of a batch's tokens, and on request the sums of the rows.

        The mean over all processes of their losses is that of all their tokens.
        """
        losses = token_losses(model(input_ids=inputs["input_ids"], use_cache=False).logits, inputs["labels"])
        n_tokens = losses.n_tokens.sum()
        if model.training and self.accelerator.num_processes > 1:
            n_tokens = self.accelerator.reduce(n_tokens.double(), "mean")
        loss = losses.sums.sum() / n_tokens
        return (loss, {"loss": loss, **losses._asdict()}) if return_outputs else loss


class TimeLimit(transformers.TrainerCallback):  # type: ignore[misc]
    """A limit on the minutes of training; at its end the trainer evaluates and keeps the current model."""

    def __init__(self, minutes: float) -> None:
        self._end = time.monotonic() + 60 * minutes

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Tell the trainers of all processes to stop at the same step when time is over."""
        (is_over,) = broadcast_object_list([time.monotonic() >= self._end])
        control.should_training_stop |= is_over


def measure(prediction: transformers.EvalPrediction) -> dict[str, float]:
    """Return the mean loss over all tokens and its exponential, the perplexity."""
    sums, n_tokens = prediction.predictions
    loss = float(np.sum(sums, dtype=np.float64)) / float(np.sum(n_tokens))
    return {"loss": loss, "perplexity": math.exp(loss)}


def fit_language_model(
    opened: OpenedModel,
    objective: str,
    recipe: LanguageModelRecipe,
    training: TokenRows,
    validation: TokenRows,
    run: TrainingRun,
    *,
    max_minutes: float | None = None,
) -> None:
    """Train a model in place, to the weights of its best epoch on `validation`, for at most `max_minutes`."""
    callbacks = [transformers.EarlyStoppingCallback(early_stopping_patience=recipe.patience)]
    settings = {
        "num_train_epochs": recipe.n_epochs,
        "learning_rate": recipe.learning_rate,
        "warmup_steps": recipe.warm_up,
        "lr_scheduler_type": "cosine",
        "weight_decay": 0.01,
        "metric_for_best_model": "perplexity",
        "greater_is_better": False,
    }
    parts = {
        "trainer": LanguageModelTrainer,
        "model": opened.model,
        "train_dataset": training,
        "eval_dataset": validation,
        "data_collator": PadRows(opened.pad),
        "compute_metrics": measure,
        "callbacks": callbacks if max_minutes is None else [*callbacks, TimeLimit(max_minutes)],
    }
    use_cache = opened.model.config.use_cache
    run.stage(objective, opened.model, lambda: fit(run, objective, settings, batch_size=recipe.batch_size, **parts))
    # The trainer sets it to False, but not if a resumed run only loads a finished stage: their folders would differ.
    opened.model.config.use_cache = use_cache
