"""The model of the evaluator of assistants: one encoder, and heads on what is pooled of the parts of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dialeval_plugin.models import encoders
from dialeval_plugin.models.folders import resolve
from dialeval_plugin.models.runtimes.runtime import Precision, RuntimeChoice
from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime
from dialeval_plugin.models.tensors import load_weights, save_weights

from . import judging
from .head import AssistantHead


@dataclass(frozen=True, slots=True)
class TrainedAssistant:
    """An encoder and heads with what was fitted after their training."""

    encoder: encoders.Encoder
    head: AssistantHead
    config: judging.AssistantConfig
    thresholds: Mapping[str, float]
    """By defect the probability from which on an answer is said to have it."""
    training_dialogues: frozenset[str]
    """Keys of the conversations that it was trained on, see `identity.opening_key`."""

    def runtime(self, dtype: Precision = "float32") -> TorchRuntime:
        """Return what an `AssistantJudge` has run."""
        return TorchRuntime(self.encoder, self.head, dtype)

    def save(self, folder: Path, training: Mapping[str, Any] | None = None) -> None:
        """Write the folder, with the record of the training in assistant.json: safetensors, JSON and the tokenizer's texts."""
        encoders.save_encoder(self.encoder, folder)
        save_weights(folder / judging.HEAD_FILE, self.head.state_dict())
        fields = {"config": asdict(self.config), "thresholds": dict(self.thresholds)}
        judging.ASSISTANT_FOLDER.publish(folder, fields, training, dialogues=self.training_dialogues)

    @classmethod
    def load(cls, name: str, *, device: str | None = None, revision: str | None = None) -> TrainedAssistant:
        """Open a model folder or a model of the hub, by default on a GPU where there is one.

        Raises:
            ModelLoadError: the folder is damaged, unsafe or no evaluator of assistants; the message names the file.
            MissingPrerequisite: the model is neither a folder nor to be had from the hub.
        """
        folder = resolve(name, revision=revision)
        settings = judging.ASSISTANT_FOLDER.read_settings(folder)
        encoder = encoders.load_trained_encoder(folder, device=device)
        head = AssistantHead(encoders.transformer_of(encoder).config.hidden_size)
        load_weights(head, folder / judging.HEAD_FILE)
        head.to(encoder.device).eval()
        known = judging.ASSISTANT_FOLDER.training_dialogues(folder)
        return cls(encoder, head, settings["config"], settings["thresholds"], known)


def load_runtime(folder: Path, choice: RuntimeChoice) -> TorchRuntime:
    """Open what runs the model in a folder with torch; raises as `TrainedAssistant.load`."""
    return TrainedAssistant.load(str(folder), device=choice.device).runtime(choice.dtype)
