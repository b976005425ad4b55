"""The model of the evaluator of assistants: one encoder, and heads on what is pooled of the parts of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dialeval_plugin.models import encoders
from dialeval_plugin.models.folders import resolve
from dialeval_plugin.models.runtimes.runtime import Precision, RuntimeChoice
from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime
from dialeval_plugin.models.tensors import load_weights, save_weights

from . import judging
from .features import HEADS, HELPFULNESS, N_EVIDENCE, N_NUMBERS, TEXT_FEATURES


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
        """Open a model folder or a model of the hub, by default on a GPU; raises as `resolve` and `load_trained_encoder`."""
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


_WIDTH = 96


class AssistantHead(nn.Module):
    """Log odds of all heads, by two experts, each with a loss of its own: one on vectors, one on what rules and counts tell.

    In one network the rules would settle what is easy, and the encoder would learn from the rest alone. Of the parts of an
    answer the vectors' expert reads the mean, the first and the last, and of each of `N_EVIDENCE` maps the highest value in any
    part, so that it sees one bad part in a long answer.
    """

    text_mean: Tensor
    text_scale: Tensor
    blend: Tensor

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.evidence = nn.Sequential(nn.Linear(3 * hidden_size, _WIDTH), nn.GELU(), nn.Linear(_WIDTH, N_EVIDENCE))
        self.answer, self.asked, self.ends = (nn.Linear(hidden_size, _WIDTH) for _ in range(3))
        self.vectors = nn.Sequential(
            nn.Dropout(0.1),
            nn.Linear(8 * _WIDTH + N_EVIDENCE + N_NUMBERS - len(TEXT_FEATURES), 2 * _WIDTH),
            nn.GELU(),
            nn.Dropout(0.1),
            nn.Linear(2 * _WIDTH, len(HEADS)),
        )
        # Preferences between answers are noisier than defects.
        self.texts, self.preference = (
            nn.Sequential(nn.Linear(len(TEXT_FEATURES), 64), nn.GELU(), nn.Dropout(dropout), nn.Linear(64, n_outputs))
            for dropout, n_outputs in ((0.1, len(HEADS)), (0.3, 1))
        )
        self.register_buffer("text_mean", torch.zeros(len(TEXT_FEATURES)))
        self.register_buffer("text_scale", torch.ones(len(TEXT_FEATURES)))
        # Weights of both experts and an offset, fitted on validation.
        self.register_buffer("blend", torch.tensor([[0.5, 0.5, 0.0]] * len(HEADS)).T.contiguous())

    @property
    def functions(self) -> dict[str, tuple[int, ...]]:
        """See `Head`."""
        hidden = self.hidden_size
        return {"of_parts": (hidden, hidden), "of_answers": (*[hidden] * 5, N_EVIDENCE, N_NUMBERS)}

    def of_parts(self, parts: Tensor, question: Tensor) -> tuple[Tensor]:
        """Look at parts of answers, each beside the question that it answers, (n, hidden): (n, `N_EVIDENCE`)."""
        return (self.evidence(torch.cat([parts, question, parts * question], dim=-1)),)

    def experts(
        self, mean: Tensor, first: Tensor, last: Tensor, question: Tensor, context: Tensor, evidence: Tensor, numbers: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Log odds of both experts, each (n, number of `HEADS`), by the fields of `features.Pooled`."""
        answer, asked, before = self.answer(mean), self.asked(question), self.answer(context)
        opening, ending = self.ends(first), self.ends(last)
        compared = [answer, asked, answer * asked, (answer - asked).abs(), answer * before, before, opening, ending]
        counted, cosines = numbers[:, : len(TEXT_FEATURES)], numbers[:, len(TEXT_FEATURES) :]
        return self.vectors(torch.cat([*compared, evidence, cosines], dim=-1)), self.by_text(counted)

    def by_text(self, counted: Tensor) -> Tensor:
        """Log odds of the expert on texts, (n, number of `HEADS`), by `TEXT_FEATURES`."""
        standardised = ((counted - self.text_mean) / self.text_scale).clamp(-3, 3)
        of_heads, place = self.texts(standardised), HEADS.index(HELPFULNESS)
        return torch.cat([of_heads[:, :place], self.preference(standardised), of_heads[:, place + 1 :]], dim=-1)

    def of_answers(
        self, mean: Tensor, first: Tensor, last: Tensor, question: Tensor, context: Tensor, evidence: Tensor, numbers: Tensor
    ) -> tuple[Tensor]:
        """Judge answers by what `features.Pooled` has of each: calibrated log odds, (n, number of `HEADS`)."""
        by_vectors, by_text = self.experts(mean, first, last, question, context, evidence, numbers)
        return (by_vectors * self.blend[0] + by_text * self.blend[1] + self.blend[2],)
