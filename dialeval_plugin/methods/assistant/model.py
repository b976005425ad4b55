"""The model of the evaluator of assistants: one encoder, and heads on pooled values of an answer's parts."""

from __future__ import annotations

import shutil
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

from . import cross_encoder, judging
from .judging import HEADS, HELPFULNESS, N_EVIDENCE, N_NUMBERS, TEXT_FEATURES


@dataclass(frozen=True, slots=True)
class TrainedAssistant:
    """An encoder and heads with the numbers fitted after their training."""

    encoder: encoders.Encoder
    head: AssistantHead
    config: judging.AssistantConfig
    thresholds: Mapping[str, float]
    """Lowest probability by defect at which it is reported."""
    training_dialogues: frozenset[str]
    """Keys of its training conversations, see `identity.opening_key`."""
    cross_encoder_folder: Path | None = None

    def runtime(self, dtype: Precision = "float32") -> TorchRuntime:
        """Return a runtime for an `AssistantJudge`."""
        return TorchRuntime(self.encoder, self.head, dtype)

    def save(self, folder: Path, training: Mapping[str, Any] | None = None) -> None:
        """Write the folder, with the record of the training in assistant.json, as safetensors, JSON and tokenizer files."""
        encoders.save_encoder(self.encoder, folder)
        save_weights(folder / judging.HEAD_FILE, self.head.state_dict())
        if (source := self.cross_encoder_folder) is not None:
            copy, settings = folder / cross_encoder.FOLDER, cross_encoder.SETTINGS_FILE
            encoders.save_encoder(encoders.load_trained_encoder(source, device="cpu"), copy)
            shutil.copyfile(source / settings, copy / settings)
        fields = {"config": asdict(self.config), "thresholds": dict(self.thresholds)}
        judging.ASSISTANT_FOLDER.publish(folder, fields, training, dialogues=self.training_dialogues)

    @classmethod
    def load(cls, name: str, *, device: str | None = None) -> TrainedAssistant:
        """Open a model folder or hub model, by default on a GPU; raises as `resolve` and `load_trained_encoder`."""
        folder = resolve(name)
        settings = judging.ASSISTANT_FOLDER.read_settings(folder)
        encoder = encoders.load_trained_encoder(folder, device=device)
        head = AssistantHead(encoders.transformer_of(encoder).config.hidden_size)
        load_weights(head, folder / judging.HEAD_FILE)
        head.to(encoder.device).eval()
        known = judging.ASSISTANT_FOLDER.training_dialogues(folder)
        return cls(encoder, head, settings["config"], settings["thresholds"], known, cross_encoder.folder_in(folder))


def load_runtime(folder: Path, choice: RuntimeChoice) -> TorchRuntime:
    """Open a torch runtime for the model in a folder; raises as `TrainedAssistant.load`."""
    return TrainedAssistant.load(str(folder), device=choice.device).runtime(choice.dtype)


_WIDTH = 96


class AssistantHead(nn.Module):
    """Log odds of all heads from two experts with separate losses: one on vectors, one on rules and counts.

    In a joint network the rules would decide the easy cases, and the encoder would learn from the rest alone. The vectors'
    expert reads the mean, the first and the last part of an answer, and the maximum over parts of each of `N_EVIDENCE` maps,
    so that it notices one bad part in a long answer.
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
        # Weights of both experts and an offset, fitted on validation data.
        self.register_buffer("blend", torch.tensor([[0.5, 0.5, 0.0]] * len(HEADS)).T.contiguous())

    @property
    def functions(self) -> dict[str, tuple[int, ...]]:
        """See `Head`."""
        hidden = self.hidden_size
        return {"of_parts": (hidden, hidden), "of_answers": (*[hidden] * 5, N_EVIDENCE, N_NUMBERS)}

    def of_parts(self, parts: Tensor, question: Tensor) -> tuple[Tensor]:
        """Compare parts of answers with the question of each, both (n, hidden); returns (n, `N_EVIDENCE`)."""
        return (self.evidence(torch.cat([parts, question, parts * question], dim=-1)),)

    def experts(
        self, mean: Tensor, first: Tensor, last: Tensor, question: Tensor, context: Tensor, evidence: Tensor, numbers: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Log odds of both experts, each (n, number of `HEADS`), from the fields of `features.Pooled`."""
        answer, asked, before = self.answer(mean), self.asked(question), self.answer(context)
        opening, ending = self.ends(first), self.ends(last)
        compared = [answer, asked, answer * asked, (answer - asked).abs(), answer * before, before, opening, ending]
        counted, cosines = numbers[:, : len(TEXT_FEATURES)], numbers[:, len(TEXT_FEATURES) :]
        return self.vectors(torch.cat([*compared, evidence, cosines], dim=-1)), self.by_text(counted)

    def by_text(self, counted: Tensor) -> Tensor:
        """Log odds of the text expert, (n, number of `HEADS`), from `TEXT_FEATURES`."""
        standardised = ((counted - self.text_mean) / self.text_scale).clamp(-3, 3)
        of_heads, place = self.texts(standardised), HEADS.index(HELPFULNESS)
        return torch.cat([of_heads[:, :place], self.preference(standardised), of_heads[:, place + 1 :]], dim=-1)

    def of_answers(
        self, mean: Tensor, first: Tensor, last: Tensor, question: Tensor, context: Tensor, evidence: Tensor, numbers: Tensor
    ) -> tuple[Tensor]:
        """Return calibrated log odds of answers, (n, number of `HEADS`), from the fields of `features.Pooled`."""
        by_vectors, by_text = self.experts(mean, first, last, question, context, evidence, numbers)
        return (by_vectors * self.blend[0] + by_text * self.blend[1] + self.blend[2],)
