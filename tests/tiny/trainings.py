"""One training of each kind that takes a moment, for a process that is to be killed in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.methods.assistant import training as assistant
from dialeval_plugin.methods.breakdown import training as breakdown
from dialeval_plugin.methods.causalscore import training
from dialeval_plugin.methods.causalscore import training as causalscore
from dialeval_plugin.methods.general import training as general
from dialeval_plugin.methods.general.conversations import GeneralSources
from dialeval_plugin.methods.reconstruction import training as reconstruction
from dialeval_plugin.methods.slide import training as slide
from tests.methods.breakdown.test_language_model_training import options as language_model_options
from tests.methods.causalscore.test_causal_training import SOURCES as CAUSES
from tests.methods.causalscore.test_causal_training import choose_all
from tests.methods.causalscore.test_causal_training import options as causal_options
from tests.methods.general.test_general_training import options as general_options
from tests.methods.general.test_general_training import toy
from tests.methods.reconstruction.test_reconstruction_training import SOURCES as DIALOGUES
from tests.methods.reconstruction.test_reconstruction_training import TINY
from tests.methods.slide.test_training import SETS
from tests.methods.slide.test_training import options as slm_options
from tests.tiny.breakdown import SIZES, sources
from tests.tiny.likelihood import write_likelihood_model

Train = Callable[[Path, Path], Any]
"""Takes the folder of an encoder and that of the model."""


def train_slm(encoder: Path, output: Path, **changes: Any) -> Any:
    return slide.train(SETS, output, replace(slm_options(encoder), **changes))


def train_general(encoder: Path, output: Path, **changes: Any) -> Any:
    return general.train(GeneralSources(toy(30)), output, replace(general_options(encoder), **changes))


def train_independence(encoder: Path, output: Path, **changes: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "choose", choose_all)
        made = causal_options(encoder, "code", n_epochs=2, n_round_epochs=3, n_rounds=1)
        return causalscore.train(CAUSES, output, replace(made, **changes))


def train_language_model(encoder: Path, output: Path, **changes: Any) -> Any:
    """The objective with noise of its own in each epoch; its backbone lies beside the encoder."""
    backbone = encoder.parent / "causal"
    if not backbone.exists():
        write_likelihood_model(backbone, "gpt2")
    made = language_model_options("background", backbone, sizes={"block": 32, "n_epochs": 4, "batch_size": 4})
    return breakdown.train(sources(), output, replace(made, **changes))


def train_without_gain(_: Path, output: Path) -> Any:
    """Ends early: the second epoch gains nothing, nor does the third."""
    sizes = {**SIZES, "n_epochs": 6, "learning_rate": 1e-12, "patience": 2}
    return breakdown.train(sources(), output, language_model_options(sizes=sizes))


def train_reconstruction(_: Path, output: Path, **changes: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reconstruction, "RECIPES", {"tiny": TINY})
        made = reconstruction.ReconstructionTrainingOptions(model="vhcr", recipe="tiny")
        return reconstruction.train(DIALOGUES, output, replace(made, **changes), device="cpu")


def train_assistant(encoder: Path, output: Path, **changes: Any) -> Any:
    rated = tuple(
        assistant.RatedAnswer((f"What is {n}?",), f"It is {n} {k * 'or '}.", 2.0 * k, str(n))
        for n in range(30)
        for k in range(2)
    )
    good = tuple(assistant.KnownAnswer((f"How is {n}?",), f"It is {n}. I like it. Ask me more about {n}.") for n in range(40))
    recipe = assistant.AssistantRecipe(n_steps=8, max_validation_answers=5)
    made = assistant.AssistantTrainingOptions(backbone=str(encoder), recipe=recipe, precision="float32", checkpoint_steps=2)
    return assistant.train(assistant.AssistantSources(rated, good), output, replace(made, **changes))


TRAININGS: Mapping[str, Train] = {
    "assistant": train_assistant,
    "slm": train_slm,
    "general": train_general,
    "independence": train_independence,
    "language_model": train_language_model,
    "language_model_early_end": train_without_gain,
    "reconstruction": train_reconstruction,
}
