"""A trained model: weights, vocabulary and settings, in a folder of safetensors and JSON.

`reconstruction.json` holds the settings and the record of the training, each epoch's losses among it, `vocabulary.json` the
words and `model.safetensors` the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args

import torch
from safetensors.torch import load_file
from torch import nn
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import to_json, write_text
from dialeval_plugin.models import folders as model_folders
from dialeval_plugin.models.folders import save_weights

from .batches import Batch
from .hred import HRED
from .latent import Noise
from .layers import Architecture, Reconstruction
from .seq2seq import Seq2Seq
from .vhcr import VHCR
from .vhred import VHRED
from .vocabulary import TOKENIZER, Vocabulary

Kind: TypeAlias = Literal["seq2seq", "hred", "vhred", "vhcr"]

SETTINGS_FILE, VOCABULARY_FILE, WEIGHTS_FILE = "reconstruction.json", "vocabulary.json", "model.safetensors"
FORMAT_VERSION = 1


class DialogueModel(Protocol):
    """What the four models have in common, besides being torch modules."""

    latent_size: int
    """Of each latent variable; 0 where there are none."""

    def __call__(self, batch: Batch, noise: Noise | None = None) -> Reconstruction:
        """See `VHRED.forward`."""
        ...


_MODELS: dict[Kind, type[nn.Module]] = {"seq2seq": Seq2Seq, "hred": HRED, "vhred": VHRED, "vhcr": VHCR}


def new_model(kind: Kind, architecture: Architecture) -> nn.Module:
    """Return a model with random weights from torch's global generator.

    Raises:
        InputError: there is no such kind.
    """
    if kind not in get_args(Kind):
        raise InputError(f"model: there is no {kind!r}. Choose one of {', '.join(get_args(Kind))}.")
    return _MODELS[kind](architecture)


@dataclass(frozen=True, slots=True)
class TrainedReconstruction:
    """A model with all that its losses depend on.

    Attributes:
        kind: which of the four.
        recipe: name of the training recipe.
        architecture: its sizes.
        max_tokens: how much of an utterance is read, its end included.
        vocabulary: its words.
        network: its weights, in evaluation mode once it is loaded.
    """

    kind: Kind
    recipe: str
    architecture: Architecture
    max_tokens: int
    vocabulary: Vocabulary
    network: nn.Module

    @property
    def model(self) -> DialogueModel:
        """The network as what it is called with."""
        return cast("DialogueModel", self.network)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.network.parameters()).device

    def save(self, folder: Path, record: Mapping[str, Any]) -> None:
        """Write the folder, each file whole or not at all.

        Args:
            folder: is made where it is not there.
            record: how the model came about; goes into reconstruction.json as `training`.
        """
        write_text(folder / VOCABULARY_FILE, to_json(self.vocabulary.words, indent=0) + "\n")
        save_weights(folder / WEIGHTS_FILE, self.network.state_dict())
        settings = {
            "format_version": FORMAT_VERSION,
            "model": self.kind,
            "recipe": self.recipe,
            "tokenizer": TOKENIZER,
            "max_tokens": self.max_tokens,
            "architecture": asdict(self.architecture),
            "training": record,
        }
        model_folders.publish(folder / SETTINGS_FILE, settings)

    @classmethod
    def load(cls, name: str, *, device: str | None = None, revision: str | None = None) -> TrainedReconstruction:
        """Open a model folder or a model of the hub, in evaluation mode.

        Args:
            name: a folder, or a hub id.
            device: a torch device; by default a GPU where there is one.
            revision: of a hub model.

        Raises:
            ModelLoadError: the folder is damaged, unsafe or no such model; the message names the file.
            MissingPrerequisite: the model is neither a folder nor to be had from the hub.
        """
        folder = model_folders.resolve(name, revision=revision)
        settings = read_settings(folder)
        weights = folder / WEIGHTS_FILE
        model_folders.check_device(device)
        model_folders.tensor_names(weights)
        words = model_folders.checked_model_file(folder / VOCABULARY_FILE, list[str])
        architecture = settings["architecture"]
        try:
            vocabulary = Vocabulary(words)
            network = new_model(settings["model"], architecture)
            network.load_state_dict(load_file(str(weights)))
        except (InputError, RuntimeError, ValueError) as error:
            first = str(error).splitlines()[0]
            raise ModelLoadError(f"{folder}: its files do not fit together ({first}). Copy the folder again.") from error
        trained = cls(settings["model"], settings["recipe"], architecture, settings["max_tokens"], vocabulary, network)
        if len(vocabulary) != architecture.n_tokens:
            raise ModelLoadError(
                f"{folder / VOCABULARY_FILE}: has {len(vocabulary)} entries, the weights {architecture.n_tokens}. "
                "Copy the folder again."
            )
        network.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()
        return trained


class _Settings(TypedDict):
    """The fields of reconstruction.json that move a number."""

    model: Kind
    recipe: str
    max_tokens: int
    architecture: Architecture


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the contents of a model folder's reconstruction.json.

    Raises:
        ModelLoadError: the folder has none, or one of another format, or its weights are not those that were published.
    """
    settings = model_folders.read_settings(
        folder / SETTINGS_FILE,
        _Settings,
        version=FORMAT_VERSION,
        kind="a trained model of dialogues",
        command="dialeval train reconstruction",
    )
    if settings.get("tokenizer") != TOKENIZER:
        raise ModelLoadError(
            f"{folder / SETTINGS_FILE}: tokenizer is {settings.get('tokenizer')!r}, this release has {TOKENIZER!r}. "
            "Update dialeval-plugin or train again."
        )
    return settings
