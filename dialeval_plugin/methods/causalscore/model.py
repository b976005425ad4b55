"""CausalScore's model: two independence classifiers and what training learnt beside their weights.

On disk it is what `ModelFolder` writes, with two subfolders, `unconditional` and `conditional`, each of which
`CrossEncoder(folder)` opens; `causalscore.json` holds the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.models.folders import ModelFolder, resolve

from .classifiers import (
    Classifier,
    IndependenceClassifier,
    PairLayout,
    PairTruncation,
    RowEncoder,
    load_classifier,
    save_classifier,
)

CauseLabels: TypeAlias = Literal["annotated", "preceding_2"]

UNCONDITIONAL, CONDITIONAL = "unconditional", "conditional"


@dataclass(frozen=True, slots=True)
class CausalModelConfig:
    """What moves a score, apart from the weights; texts are read as `RowEncoder` does.

    Attributes:
        labels: "annotated" causes, or "preceding_2": the two turns before the response stood for causes (Table 5's Preced2).
    """

    recipe: str
    labels: CauseLabels = "annotated"
    layout: PairLayout = "delimited"
    truncate: PairTruncation = "utterances"
    max_tokens: int = 256


@dataclass(frozen=True, slots=True)
class CausalModel:
    """Both classifiers."""

    config: CausalModelConfig
    unconditional: IndependenceClassifier
    conditional: IndependenceClassifier
    training_dialogues: frozenset[str]
    """Hashes of the dialogues that it was trained on, see `identity.turns_key`."""

    @classmethod
    def build(
        cls,
        config: CausalModelConfig,
        unconditional: Classifier,
        conditional: Classifier,
        training_dialogues: frozenset[str] = frozenset(),
    ) -> CausalModel:
        """Put two cross-encoders together."""
        return cls(config, classifier_of(unconditional, config), classifier_of(conditional, config), training_dialogues)

    def save(self, folder: Path, training: Mapping[str, Any] | None = None) -> None:
        """Write the folder; nothing but safetensors, JSON and the tokenizer's text files."""
        for name, classifier in ((UNCONDITIONAL, self.unconditional), (CONDITIONAL, self.conditional)):
            save_classifier(classifier.encoder, folder / name)
        CAUSAL_FOLDER.publish(folder, {"config": asdict(self.config)}, training, dialogues=self.training_dialogues)

    @classmethod
    def load(
        cls,
        name: str,
        *,
        device: str | None = None,
        revision: str | None = None,
        layout: PairLayout | None = None,
        truncate: PairTruncation | None = None,
        max_tokens: int | None = None,
    ) -> CausalModel:
        """Open a model folder or a model of the hub; `layout`, `truncate` and `max_tokens` stand in place of the model's own.

        Raises:
            ModelLoadError: the folder is damaged, unsafe or no model of CausalScore; the message names the file.
            MissingPrerequisite: the model is neither a folder nor to be had from the hub.
            InputError: an option is unknown, or the window is longer than the model's.
        """
        folder = resolve(name, revision=revision)
        settings = CAUSAL_FOLDER.read_settings(folder)
        given: dict[str, Any] = {"layout": layout, "truncate": truncate, "max_tokens": max_tokens}
        config = replace(settings["config"], **{name: value for name, value in given.items() if value is not None})
        unconditional, conditional = (load_classifier(folder / part, device=device) for part in (UNCONDITIONAL, CONDITIONAL))
        return cls.build(config, unconditional, conditional, CAUSAL_FOLDER.training_dialogues(folder))


def classifier_of(encoder: Classifier, config: CausalModelConfig) -> IndependenceClassifier:
    """Return the classifier over an encoder that reads texts as the configuration says."""
    # RoBERTa counts its positions from padding_idx + 1 on.
    embeddings = getattr(encoder.model.base_model, "embeddings", None)
    padding = getattr(getattr(embeddings, "position_embeddings", None), "padding_idx", None)
    longest = encoder.model.config.max_position_embeddings - (0 if padding is None else padding + 1)
    if config.max_tokens > longest:
        raise InputError(
            f"causalscore: max_tokens is {config.max_tokens}, but the encoder reads {longest}. "
            "Give a smaller number or another backbone."
        )
    return IndependenceClassifier(encoder, RowEncoder(encoder.tokenizer, config.layout, config.truncate, config.max_tokens))


class _Fields(TypedDict):
    """The fields of causalscore.json that move a number."""

    config: CausalModelConfig


CAUSAL_FOLDER = ModelFolder("causalscore.json", _Fields, 2, "a trained model of CausalScore", "dialeval train independence")
