"""CausalScore's model: two independence classifiers and their configuration.

A `ModelFolder` stores it; the configuration is in `causalscore.json`. Cross-encoders are in two subfolders, `unconditional` and
`conditional`, which `CrossEncoder(folder)` opens. The weights of classifiers over a general evaluator's vectors are in
`causalscore.json`; it names a bundled evaluator, or the evaluator is in the subfolder `general`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from typing_extensions import NotRequired, TypedDict

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.models.folders import PRETRAINED, ModelFolder, pretrained_names, resolve
from dialeval_plugin.models.runtimes.runtime import ON_TORCH, RuntimeChoice

from .classifiers import (
    IndependenceClassifier,
    PairLayout,
    PairTruncation,
    RowEncoder,
    TurnVectors,
    VectorClassifier,
    load_classifier,
    number_rows,
)

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

CauseLabels: TypeAlias = Literal["annotated", "preceding_2"]
DependenceClassifier: TypeAlias = IndependenceClassifier | VectorClassifier
"""Classifier for the probability that a response depends on an utterance."""

UNCONDITIONAL, CONDITIONAL = "unconditional", "conditional"
_GENERAL = "general"


@dataclass(frozen=True, slots=True)
class CausalModelConfig:
    """Settings that change a score, apart from the weights; see `RowEncoder` for those of cross-encoders."""

    recipe: str
    labels: CauseLabels = "annotated"
    """Causes in training: "preceding_2" takes the two turns before the response (Table 5's Preced2)."""
    layout: PairLayout = "delimited"
    truncate: PairTruncation = "utterances"
    max_tokens: int = 256


@dataclass(frozen=True, slots=True)
class CausalModel:
    """Both classifiers with their configuration."""

    config: CausalModelConfig
    unconditional: DependenceClassifier
    conditional: DependenceClassifier
    training_dialogues: frozenset[str]
    """Hashes of the training dialogues, see `identity.turns_key`."""

    @classmethod
    def build(
        cls,
        config: CausalModelConfig,
        unconditional: CrossEncoder,
        conditional: CrossEncoder,
        training_dialogues: frozenset[str] = frozenset(),
    ) -> CausalModel:
        """Return the model of two cross-encoders."""
        return cls(config, classifier_of(unconditional, config), classifier_of(conditional, config), training_dialogues)

    def save(self, folder: Path, training: Mapping[str, Any] | None = None) -> None:
        """Write the folder: safetensors, JSON and the tokenizer's text files only."""
        fields: dict[str, Any] = {"config": asdict(self.config)}
        classifiers = {UNCONDITIONAL: self.unconditional, CONDITIONAL: self.conditional}
        if isinstance(self.unconditional, VectorClassifier):
            weights = {
                name: found.weights.tolist() for name, found in classifiers.items() if isinstance(found, VectorClassifier)
            }
            fields["vectors"] = {**_referred(self.unconditional.vectors.folder, folder), **weights}
        for name, classifier in classifiers.items():
            if isinstance(classifier, IndependenceClassifier):
                classifier.encoder.save_pretrained(str(folder / name), create_model_card=False)
        CAUSAL_FOLDER.publish(folder, fields, training, dialogues=self.training_dialogues)

    @classmethod
    def load(
        cls,
        name: str,
        *,
        runtime: RuntimeChoice = ON_TORCH,
        layout: PairLayout | None = None,
        truncate: PairTruncation | None = None,
        max_tokens: int | None = None,
    ) -> CausalModel:
        """Open a model folder or a model of the hub; `layout`, `truncate` and `max_tokens` replace the model's own.

        Raises:
            ModelLoadError: the folder is damaged, unsafe or no model of CausalScore; the message names the file.
            MissingPrerequisite: the model is neither a folder nor available from the hub.
            InputError: an option is unknown or not one of this model, or the window is longer than the model's.
        """
        folder = resolve(name)
        settings = CAUSAL_FOLDER.read_settings(folder)
        options: dict[str, Any] = {"layout": layout, "truncate": truncate, "max_tokens": max_tokens}
        replaced = {name: value for name, value in options.items() if value is not None}
        if (stored := settings.get("vectors")) is not None:
            if replaced:
                raise InputError(
                    f"causalscore: {next(iter(replaced))} is about cross-encoders, and {folder} has none. Leave it out."
                )
            vectors = TurnVectors(_general_of(folder, stored), runtime)
            single, double = (VectorClassifier(vectors, np.array(stored[name])) for name in (UNCONDITIONAL, CONDITIONAL))
            return cls(settings["config"], single, double, CAUSAL_FOLDER.training_dialogues(folder))
        if runtime.backend not in ("torch", "auto") or runtime.dtype != "float32":
            raise InputError(
                f"causalscore: the cross-encoders of {folder} run on torch in float32. Leave backend and dtype out."
            )
        config = replace(settings["config"], **replaced)
        parts = (load_classifier(folder / part, device=runtime.device) for part in (UNCONDITIONAL, CONDITIONAL))
        unconditional, conditional = parts
        return cls.build(config, unconditional, conditional, CAUSAL_FOLDER.training_dialogues(folder))


def classifier_of(encoder: CrossEncoder, config: CausalModelConfig) -> IndependenceClassifier:
    """Return the classifier of an encoder and a configuration; `InputError` if the window is too long for it."""
    # RoBERTa counts positions from padding_idx + 1.
    embeddings = getattr(encoder.model.base_model, "embeddings", None)
    padding = getattr(getattr(embeddings, "position_embeddings", None), "padding_idx", None)
    longest = encoder.model.config.max_position_embeddings - (0 if padding is None else padding + 1)
    if config.max_tokens > longest:
        raise InputError(
            f"causalscore: max_tokens is {config.max_tokens}, but the encoder reads {longest}. "
            "Give a smaller number or another backbone."
        )
    return IndependenceClassifier(encoder, RowEncoder(encoder.tokenizer, config.layout, config.truncate, config.max_tokens))


def row_probabilities(classifier: DependenceClassifier, rows: Sequence[Sequence[str]]) -> FloatArray:
    """Return a classifier's probabilities of rows of texts, all of one width."""
    return classifier.probabilities(*number_rows(rows)).dependent


def turn_probabilities(classifier: DependenceClassifier, items: Sequence[tuple[Sequence[str], str]]) -> list[FloatArray]:
    """Return the unconditional probabilities of the turns of each (context, response)."""
    probabilities = row_probabilities(classifier, [(text, response) for context, response in items for text in context])
    return np.split(probabilities, np.cumsum([len(context) for context, _ in items])[:-1]) if items else []


class _Vectors(TypedDict):
    general: str | None
    """Name of the bundled evaluator; None if it is in the subfolder."""
    hash: str
    """Hash of its folder."""
    unconditional: list[float]
    conditional: list[float]


def _referred(source: Path, folder: Path) -> dict[str, Any]:
    """Return the fields of a folder's evaluator, and copy it there unless it is bundled."""
    is_packaged = source.parent == PRETRAINED
    if not is_packaged:
        # A run that was killed while it copied left a part of it.
        shutil.copytree(source, folder / _GENERAL, dirs_exist_ok=True)
    return {"general": source.name if is_packaged else None, "hash": content_hash(source)}


def _general_of(folder: Path, stored: _Vectors) -> Path:
    name = stored["general"]
    if name is not None and name not in pretrained_names():
        raise ModelLoadError(f"{folder}: needs the model {name!r}, which is not bundled. Install the release that has it.")
    general = folder / _GENERAL if name is None else PRETRAINED / name
    if content_hash(general) != stored["hash"]:
        raise ModelLoadError(
            f"{folder}: was trained on another model than the one in {general}. "
            "Install the release that it was trained with, or train it again with `dialeval train independence`."
        )
    return general


class _Fields(TypedDict):
    config: CausalModelConfig
    vectors: NotRequired[_Vectors]


CAUSAL_FOLDER = ModelFolder("causalscore.json", _Fields, 2, "a trained model of CausalScore", "dialeval train independence")
