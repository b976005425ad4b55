"""A trained model: `reconstruction.json` (settings and record), `vocabulary.json` (words) and `model.safetensors`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import checked_model_file, to_json, write_text
from dialeval_plugin.models.folders import ModelFolder, opening, resolve
from dialeval_plugin.models.tensors import choose_device, load_weights, save_weights

from .layers import Architecture
from .networks import DialogueNetwork, NetworkKind, new_network
from .vocabulary import TOKENIZER, Vocabulary

VOCABULARY_FILE, WEIGHTS_FILE = "vocabulary.json", "model.safetensors"


class _Settings(TypedDict):
    model: NetworkKind
    recipe: str
    tokenizer: str
    max_tokens: int
    architecture: Architecture


RECONSTRUCTION_FOLDER = ModelFolder(
    "reconstruction.json", _Settings, 2, "a trained model of dialogues", "dialeval train reconstruction"
)


@dataclass(frozen=True, slots=True)
class TrainedReconstruction:
    """A model with everything that its losses depend on."""

    kind: NetworkKind
    recipe: str
    architecture: Architecture
    max_tokens: int
    """Maximum tokens of an utterance, its end included; the rest is cut."""
    vocabulary: Vocabulary
    model: DialogueNetwork

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.model.parameters()).device

    def save(self, folder: Path, training: Mapping[str, Any]) -> None:
        """Write the folder, each file atomically, with the record of the training in reconstruction.json."""
        write_text(folder / VOCABULARY_FILE, to_json(self.vocabulary.words, indent=0) + "\n")
        save_weights(folder / WEIGHTS_FILE, self.model.state_dict())
        fields = _Settings(
            model=self.kind, recipe=self.recipe, tokenizer=TOKENIZER, max_tokens=self.max_tokens, architecture=self.architecture
        )
        RECONSTRUCTION_FOLDER.publish(folder, {**fields, "architecture": asdict(self.architecture)}, training)

    @classmethod
    def load(cls, name: str, *, device: str | None = None) -> TrainedReconstruction:
        """Open a model folder or a model of the hub in evaluation mode, by default on a GPU if there is one.

        Raises:
            InputError: there is no such device.
            ModelLoadError: the folder is damaged, unsafe or no such model; the message names the file.
            MissingPrerequisite: the model is neither a folder nor available from the hub.
        """
        folder = resolve(name)
        settings = RECONSTRUCTION_FOLDER.read_settings(folder)
        if settings["tokenizer"] != TOKENIZER:
            raise ModelLoadError(
                f"{folder / RECONSTRUCTION_FOLDER.settings_file}: tokenizer is {settings['tokenizer']!r}, this release has "
                f"{TOKENIZER!r}. Update dialeval-plugin or train again."
            )
        place = choose_device(device)
        words, path = checked_model_file(folder / VOCABULARY_FILE, list[str]), folder / VOCABULARY_FILE
        try:
            vocabulary = Vocabulary(words)
        except InputError as error:
            raise ModelLoadError(f"{path}: {error}") from None
        architecture = settings["architecture"]
        if len(vocabulary) != architecture.n_tokens:
            raise ModelLoadError(
                f"{path}: has {len(vocabulary)} entries, the weights {architecture.n_tokens}. Copy the folder again."
            )
        with opening(folder, RECONSTRUCTION_FOLDER.kind):
            network = new_network(settings["model"], architecture)
        load_weights(network, folder / WEIGHTS_FILE)
        network.to(place).eval()
        return cls(settings["model"], settings["recipe"], architecture, settings["max_tokens"], vocabulary, network)
