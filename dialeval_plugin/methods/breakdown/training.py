"""Training a language model on dialogues end to end: data, tokenizer, one folder at the end. A run that was killed goes on.

Three objectives share everything but their input and their logits. `lm` is a language model. `odin` is one with a second head
(odin.py). `background` is one that reads perturbed input and predicts the clean text, the denominator of the likelihood ratio.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from accelerate import PartialState
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.corpora.identity import LEAK_RULE
from dialeval_plugin.models.causal import check_causal, window
from dialeval_plugin.models.folders import publish
from dialeval_plugin.models.language_models import OpenedModel, open_model
from dialeval_plugin.training.precision import Precision, uses_bfloat16
from dialeval_plugin.training.run_folder import refuse_finished, workplace
from dialeval_plugin.version import __version__

from .calibration import CALIBRATION_FILE, calibrate, responses_of, weights_hash
from .detectors import Detector
from .likelihood_ratio import LikelihoodRatio
from .max_probability import MaxProbability
from .model import DEFAULT_MODELS, FORMAT_VERSION, RECORD_FILE, save_head
from .objectives import Run, fit
from .odin import ConfidenceHead, Odin, decomposed, feature_width
from .perturbation import MU, IntArray
from .preparation import Data, Sources, Spacing, prepare
from .recipes import Recipe, find_recipe
from .rows import Noise, TokenRows, token_blocks

logger = logging.getLogger(__name__)

Objective: TypeAlias = Literal["lm", "odin", "background"]

END = "<|endoftext|>"


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """What a training run depends on, apart from its data.

    Attributes:
        objective: "lm", "odin" or "background".
        recipe: "small" or "continue", see `recipes.Recipe`; None chooses by the backbone.
        backbone: folder or hub id of a causal language model to go on from; None trains a GPT-2 from scratch.
        sizes: fields of `recipes.Recipe` in place of the recipe's own.
        mu: rate of the background model's noise.
        spacing: see `preparation.prepare`.
        validation_fraction: share of the dialogues that is set aside where no validation dialogues are given.
        seed: of the split, the initial weights, the order and the noise.
        precision: of training, see `uses_bfloat16`.
    """

    objective: Objective = "lm"
    recipe: str | None = None
    backbone: str | None = None
    sizes: Mapping[str, int | float | None] | None = None
    mu: float = MU
    spacing: Spacing = "natural"
    validation_fraction: float = 0.05
    seed: int = 13
    precision: Precision = "auto"

    def find_recipe(self) -> Recipe:
        """The recipe with the numbers that are given here.

        Raises:
            InputError: as `recipes.find_recipe`, or an option is unknown or does not go with the objective.
        """
        for option, value, known in (
            ("objective", self.objective, get_args(Objective)),
            ("spacing", self.spacing, get_args(Spacing)),
        ):
            if value not in known:
                raise InputError(f"{option}: there is no {value!r}. Choose one of {', '.join(known)}.")
        if self.objective == "background" and self.backbone is None:
            raise InputError(
                "background: name the model that it is compared with in --backbone. They have to share a tokenizer."
            )
        if not 0 < self.mu < 1:
            raise InputError(f"mu: expected a rate between 0 and 1, got {self.mu!r}.")
        return find_recipe(self.recipe, has_backbone=self.backbone is not None, **(self.sizes or {}))


class Trained(NamedTuple):
    """Where the model is and how its training went."""

    folder: Path
    record: dict[str, Any]
    """Goes into language_model.json: options, counts, and the history, one entry an epoch."""


def train(
    sources: Sources,
    output: Path,
    options: TrainingOptions = TrainingOptions(),
    *,
    max_minutes: float | None = None,
    progress: bool = False,
    remember: bool = True,
) -> Trained:
    """Train a language model and write it to the folder `output`, which transformers opens.

    Checkpoints lie in `output/.training` until the run ends; the same call after a kill goes on from the last epoch and, where
    no time limit cut it short, ends with the same files.

    Args:
        sources: the dialogues. Those that are validated or reported on are left out of training, and counted.
        output: a folder that does not hold a finished model.
        options: see `TrainingOptions`.
        max_minutes: end training after so many minutes of this process.
        progress: show the trainer's progress bars.
        remember: make this the model of its objective that is used where none is named.

    Raises:
        InputError: an option is wrong, `output` holds a finished model or another run's checkpoints, or data are too few.
        MissingPrerequisite: there is no such backbone.
        ModelLoadError: the backbone is unsafe, damaged, or no causal language model.
    """
    recipe = options.find_recipe()
    # What "auto" means here, so that a run is not finished on another machine in another precision.
    options = replace(options, precision="bfloat16" if uses_bfloat16(options.precision) else "float32")
    refuse_finished(output, RECORD_FILE)
    data = prepare(sources, validation_fraction=options.validation_fraction, seed=options.seed, spacing=options.spacing)
    identity = {"options": asdict(options), "recipe": asdict(recipe), "data": data.digest, "version": __version__}
    state = PartialState()
    with workplace(output, RECORD_FILE, identity, is_main_process=state.is_main_process) as place:
        if state.is_main_process and options.backbone is None:
            _write_start(place / "start", data, recipe, options.seed)
        state.wait_for_everyone()
        opened = open_model(options.backbone or str(place / "start"), family="causal_lm", device=str(state.device))
        check_causal(opened)
        _check_block(opened, recipe)
        run = Run(recipe, place / "checkpoints", options.seed, options.precision == "bfloat16", max_minutes, progress)
        rows = _rows(opened, data, recipe, options)
        set_seed(options.seed)
        head = ConfidenceHead(feature_width(opened.model)).to(opened.device) if options.objective == "odin" else None
        with decomposed(opened.model, head) if head is not None else contextlib.nullcontext():
            history = fit(opened, options.objective, *rows, run)
        record = {
            "objective": options.objective,
            "options": asdict(options),
            "recipe": asdict(recipe),
            "backbone_hash": None if options.backbone is None else content_hash(opened.folder),
            "counts": _counts(data, rows),
            "history": [epoch._asdict() for epoch in history],
            "leak_rule": LEAK_RULE,
            "version": __version__,
        }
        if state.is_main_process:
            finished = _write(opened, head, place / "model")
            _calibrate(opened, head, data, options, finished)
            _publish(finished, output, record)
    if remember and state.is_main_process:
        DEFAULT_MODELS[options.objective].remember(output)
    state.wait_for_everyone()
    return Trained(output, record)


def _write_start(folder: Path, data: Data, recipe: Recipe, seed: int) -> None:
    """Write a GPT-2 with random weights and a tokenizer of the training data, unless an unfinished run has."""
    if folder.exists():
        return
    partial = folder.with_suffix(".part")
    shutil.rmtree(partial, ignore_errors=True)
    tokenizer = train_tokenizer((text for turns in data.training for text in turns), recipe.vocabulary)
    tokenizer.model_max_length = recipe.block
    tokenizer.save_pretrained(partial)
    set_seed(seed)
    GPT2LMHeadModel(_gpt2_config(tokenizer, recipe)).save_pretrained(partial)
    partial.replace(folder)


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Learn a byte-level BPE, which leaves no text without tokens; the end of text is its only special token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=[END], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, bos_token=END, pad_token=END)


def _gpt2_config(tokenizer: PreTrainedTokenizerFast, recipe: Recipe) -> GPT2Config:
    end = tokenizer.eos_token_id
    return GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=recipe.block,
        n_embd=recipe.width,
        n_layer=recipe.n_layers,
        n_head=recipe.n_heads,
        # The same curve as GPT-2's own name for it, in one fused operation.
        activation_function="gelu_pytorch_tanh",
        # A few passes over a small corpus do not overfit a small model.
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=end,
        eos_token_id=end,
    )


def _check_block(opened: OpenedModel, recipe: Recipe) -> None:
    if opened.max_positions is not None and recipe.block > opened.max_positions:
        raise InputError(
            f"block: {recipe.block} tokens are more than the {opened.max_positions} that the backbone reads. Give less."
        )


def _rows(opened: OpenedModel, data: Data, recipe: Recipe, options: TrainingOptions) -> tuple[TokenRows, TokenRows]:
    """Rows of training and of validation; the background model's have noise in both."""
    noise = None
    if options.objective == "background":
        noise = Noise(options.mu, ordinary_tokens(opened), options.seed)
    training, validation = (
        TokenRows(token_blocks(opened, dialogues, recipe.block), noise) for dialogues in (data.training, data.validation)
    )
    return training, validation


def ordinary_tokens(opened: OpenedModel) -> IntArray:
    """Ids of a tokenizer that stand for text, of shape (ids,)."""
    special = set(opened.tokenizer.all_special_ids)
    return np.array([id for id in range(len(opened.tokenizer)) if id not in special], dtype=np.int64)


def _counts(data: Data, rows: tuple[TokenRows, TokenRows]) -> dict[str, int]:
    n_training, n_validation = (sum(map(len, part.blocks)) for part in rows)
    return {
        "n_training_dialogues": len(data.training),
        "n_validation_dialogues": len(data.validation),
        "n_left_out": data.n_left_out,
        "n_training_tokens": n_training,
        "n_validation_tokens": n_validation,
    }


def _write(opened: OpenedModel, head: ConfidenceHead | None, folder: Path) -> Path:
    # All that lies in it is published, so nothing of a run that was killed here may.
    shutil.rmtree(folder, ignore_errors=True)
    opened.model.save_pretrained(folder)
    opened.tokenizer.save_pretrained(folder)
    if head is not None:
        save_head(head, folder)
    return folder


def _calibrate(opened: OpenedModel, head: ConfidenceHead | None, data: Data, options: TrainingOptions, folder: Path) -> None:
    """Store the extremes of equation 7.11 over the responses of the validation dialogues."""
    models = [weights_hash(folder)]
    detectors: dict[str, Detector] = {"max_probability": MaxProbability(opened)}
    max_tokens = window(opened, None, "training")
    if head is not None:
        head.eval()
        detectors = {"odin_h": Odin(opened, head, "h"), "odin_g": Odin(opened, head, "g")}
    elif options.objective == "background" and options.backbone is not None:
        semantic = open_model(options.backbone, family="causal_lm", device=str(opened.device))
        detectors = {"likelihood_ratio": LikelihoodRatio(semantic, opened)}
        models.insert(0, weights_hash(semantic.folder))
    try:
        found = calibrate(detectors, responses_of(data.validation), max_tokens=max_tokens, models=models)
    except InputError as error:
        # Hours of training are not thrown away for it: `dialeval train breakdown` can still follow.
        logger.warning("the breakdown scores are not calibrated: %s", error)
    else:
        found.save(folder / CALIBRATION_FILE)


def _publish(finished: Path, output: Path, record: Mapping[str, Any]) -> None:
    """Move the files of the model into place; the record comes last."""
    for path in sorted(finished.iterdir()):
        path.replace(output / path.name)
    publish(output / RECORD_FILE, {"format_version": FORMAT_VERSION, **record})
