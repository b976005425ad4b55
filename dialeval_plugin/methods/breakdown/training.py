"""Training a language model on dialogues end to end: data, tokenizer, one folder at the end. A run that was killed goes on.

Three objectives share everything but their input and their logits. `lm` is a language model. `odin` is one with a second head
(odin.py). `background` is one that reads perturbed input and predicts the clean text, the denominator of the likelihood ratio.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from transformers import set_seed

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.models.causal import check_causal
from dialeval_plugin.models.language_models import open_model
from dialeval_plugin.training.run import TrainingOptions, TrainingResult, TrainingRun, data_hash

from .calibration import calibrate_trained
from .from_scratch import write_new_model
from .model import DEFAULT_MODELS, LANGUAGE_MODEL_FOLDER, save_head
from .objectives import fit_language_model
from .odin import ConfidenceHead, decomposed, feature_width
from .preparation import Sources, Spacing, prepare
from .recipes import LanguageModelRecipe, find_recipe
from .rows import MU, Noise, TokenRows, ordinary_tokens, token_blocks

Objective: TypeAlias = Literal["lm", "odin", "background"]


@dataclass(frozen=True, slots=True)
class LanguageModelTrainingOptions(TrainingOptions):
    """What a training depends on, apart from its data.

    Attributes:
        recipe: "small" or "continue"; None chooses by the backbone.
        backbone: folder or hub id of a causal language model to go on from; None trains a GPT-2 from scratch.
        sizes: fields of `LanguageModelRecipe` in place of the recipe's own.
        mu: rate of the background model's noise.
        spacing: see `preparation.prepare`.
    """

    objective: Objective = "lm"
    recipe: str | None = None
    backbone: str | None = None
    sizes: Mapping[str, int | float | None] | None = None
    mu: float = MU
    spacing: Spacing = "natural"
    validation_fraction: float = field(default=0.05, kw_only=True)

    def find_recipe(self) -> LanguageModelRecipe:
        """The recipe with the numbers that are given here."""
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


def train(
    sources: Sources,
    output: Path,
    options: LanguageModelTrainingOptions = LanguageModelTrainingOptions(),
    *,
    max_minutes: float | None = None,
    progress: bool = False,
    remember: bool = True,
) -> TrainingResult:
    """Train a language model and write it to the folder `output`, which transformers opens; it must not hold a finished model.

    Dialogues that are validated or reported on are left out of training, and counted. `max_minutes` of this process end
    training; such a run is not repeatable to the byte. `remember` makes this the model of its objective that is used where
    none is named.
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
        noise = Noise(options.mu, ordinary_tokens(opened), options.seed) if options.objective == "background" else None
        training, validation = (
            TokenRows(token_blocks(opened, dialogues, recipe.block), noise) for dialogues in (data.training, data.validation)
        )
        set_seed(options.seed)
        head = ConfidenceHead(feature_width(opened.model)).to(opened.device) if options.objective == "odin" else None
        with contextlib.nullcontext() if head is None else decomposed(opened.model, head):
            fit_language_model(opened, options.objective, recipe, training, validation, run, max_minutes=max_minutes)

        def save(folder: Path, record: Mapping[str, Any]) -> None:
            opened.model.save_pretrained(folder)
            opened.tokenizer.save_pretrained(folder)
            if head is not None:
                save_head(head, folder)
            semantic = options.backbone if options.objective == "background" else None
            calibrate_trained(opened, data.validation, folder, head=head, semantic=semantic)
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
        return run.publish(save, record, remember=DEFAULT_MODELS[options.objective] if remember else None)
