"""Train the cross-encoder of `assistant`, and write it into the model's folder.

    python -m reproduction.assistant.cross_encoder --work FOLDER [--minutes 62]

It learns from preferences of AlpacaEval, HALIE, Taskmaster and LLaMA-Factory's excerpts, and from good answers next to spoiled
ones. It learns nothing from PandaLM and OpenAssistant: it is chosen on their halves that are not reported. A step takes
some two seconds of one core; the bundled one had 2,165.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.files import to_json, write_text
from dialeval_plugin.core.signature import MANIFEST_FILE
from dialeval_plugin.methods.assistant.cross_encoder import FOLDER, SETTINGS_FILE, CrossEncoder, CrossEncoderSettings, joined
from dialeval_plugin.methods.assistant.judging import AssistantInput, read_answer
from dialeval_plugin.methods.assistant.spoiling import spoiled
from dialeval_plugin.models import encoders
from dialeval_plugin.models.folders import PACKAGED_ENCODER, PRETRAINED, write_manifest
from dialeval_plugin.models.runtimes.runtime import RuntimeChoice
from dialeval_plugin.models.texts import JsonTokenizer
from reproduction.assistant.data import oasst_pairs, pandalm_pairs
from reproduction.assistant.leaks import leave_out_reported
from reproduction.assistant.sources import answers, as_examples, preferences, reported_answers, scale_answers
from reproduction.pretrained.packing import pack_model

UNTRAINED = CrossEncoderSettings(max_question_tokens=64, max_tokens=256, weights=[], length=0.0, offset=0.0)
BITS = 6
SEED = 0
GROUPS, RATED, SPOILED, OTHERS = 2, 7, 2, 6
"""Groups of a step, answers of each, good answers with a corrupted copy, and other answers that copies are made from."""
LEARNING_RATE, HEAD_LEARNING_RATE, WARM_UP, FROZEN = 8e-5, 1e-3, 80, 1 / 3
CLEAR, SUREST, WORSE = 0.5, 4.0, 0.97
"""Least difference between the scores of a pair, the largest that counts, and how sure a corrupted copy is worse."""
LENGTHS = np.log([1.05, 1.1, 1.2, 1.35, 1.6, 2, 3, 5])
"""Borders of the classes of pairs by ratio of lengths; in each, the longer answer is preferred as often as the shorter one."""
WEIGHT, LENGTH = 1.3, 0.3
"""Weights of its log odds in helpfulness, and of the logarithm of an answer's length, chosen on people's pairs of PandaLM and
OpenAssistant that are not reported: the longer answer has the higher score about as often as people prefer it."""
HEAVIEST, SPOILED_WEIGHT = 4.0, 1.0
"""Largest weight of a pair, and the weight of a corrupted copy."""


class Pairs(NamedTuple):
    """Pairs of a step's texts, as indices, with the probability that the first is better and the weight of each."""

    better: np.ndarray
    worse: np.ndarray
    probability: FloatArray
    weight: FloatArray


class Draws:
    """The texts of each step."""

    def __init__(self) -> None:
        people = {pair.preferred.context[-1].text for pair in (*pandalm_pairs(), *oasst_pairs()) if pair.preferred.context}
        reported = reported_answers()
        rated, known = (leave_out_reported(read(only_open=False), reported, as_examples) for read in (preferences, answers))
        groups = defaultdict(list)
        for row in rated:
            groups[row["group"]].append(row)
        self.groups = [
            rows
            for rows in groups.values()
            if len({row["score"] for row in rows}) > 1 and people.isdisjoint(_read(row)[0] for row in rows)
        ]
        self.good = [row for row in known if "defects" not in row and _read(row)[0] not in people]
        sizes = np.array([len(rows) ** 0.5 for rows in self.groups])
        self.shares = sizes / sizes.sum()
        self.rng = np.random.default_rng(SEED)
        counts = np.zeros((2, len(LENGTHS) + 1))
        for rows in self.groups:
            *_, longer = self._compared(self._some(rows, 16))
            np.add.at(counts, _length_class(longer), 1)
        self.weights = np.minimum(HEAVIEST, counts.sum(0) / 2 / np.maximum(1, counts))

    def step(self) -> tuple[list[tuple[str, str]], list[Pairs]]:
        """Draw questions and answers, and the pairs among them."""
        texts: list[tuple[str, str]] = []
        pairs = []
        for place in self.rng.choice(len(self.groups), GROUPS, p=self.shares, replace=False):
            rows = self._some(self.groups[place], RATED)
            better, worse, margin, longer = self._compared(rows)
            if len(better):
                start, weight = len(texts), self.weights[_length_class(longer)]
                pairs.append(Pairs(better + start, worse + start, 1 / (1 + np.exp(-margin)), weight / len(better)))
                texts += map(_read, rows)
        for place in self.rng.choice(len(self.good), SPOILED, replace=False):
            row = self.good[place]
            others = [self.good[other]["response"] for other in self.rng.choice(len(self.good), OTHERS, replace=False)]
            made = spoiled(row["context"], row["response"], [text for text in others if text != row["response"]], self.rng)
            made.pop("refusal", None)  # It may be right.
            if made:
                start, name = len(texts), list(made)[self.rng.integers(len(made))]
                pairs.append(Pairs(*map(np.array, ([start], [start + 1], [WORSE], [SPOILED_WEIGHT]))))
                texts += [_read(row), _read({**row, "response": made[name]})]
        return texts, pairs

    def _some(self, rows: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
        return [rows[place] for place in self.rng.permutation(len(rows))[:most]]

    def _compared(self, rows: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, np.ndarray, FloatArray, FloatArray]:
        """Indices of better and worse answers, differences of their scores, and of their logarithmic lengths."""
        scores = np.array([row["score"] for row in rows])
        lengths = np.log([max(1, len(row["response"].split())) for row in rows])
        better, worse = np.nonzero(scores[:, None] - scores[None] > CLEAR)
        return better, worse, np.minimum(scores[better] - scores[worse], SUREST), lengths[better] - lengths[worse]


def _input(answer: Example) -> AssistantInput:
    return read_answer(answer.context, answer.response)


def _length_class(longer: FloatArray) -> tuple[np.ndarray, np.ndarray]:
    return (longer > 0).astype(int), np.digitize(np.abs(longer), LENGTHS)


def _read(row: Mapping[str, Any]) -> tuple[str, str]:
    return (row["context"][-1] if row["context"] else ""), row["response"]


def train(minutes: float) -> tuple[Any, torch.nn.Linear]:
    """Train the encoder and its head."""
    torch.manual_seed(SEED)
    draws = Draws()
    encoder = encoders.without_normalisation(encoders.load_encoder(PACKAGED_ENCODER, device="cpu"))
    encoders.freeze(encoders.transformer_of(encoder), FROZEN)
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0  # On a processor, drawing its random numbers takes longer than everything else.
    tokenizer = JsonTokenizer.of(encoder.tokenizer)
    head = torch.nn.Linear(encoders.transformer_of(encoder).config.hidden_size, 1)
    for parameter in head.parameters():
        torch.nn.init.zeros_(parameter)
    trained = [parameter for parameter in encoder.parameters() if parameter.requires_grad]
    rates = (LEARNING_RATE, HEAD_LEARNING_RATE)
    parts: list[dict[str, Any]] = [{"params": trained}, {"params": list(head.parameters())}]
    optimizer = torch.optim.AdamW(parts, weight_decay=0.01)
    step, start = 0, time.monotonic()
    while (passed := (time.monotonic() - start) / 60 / minutes) < 1:
        share = min(1, (step + 1) / WARM_UP) * max(0.02, 1 - passed)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = share * rate
        texts, pairs = draws.step()
        with torch.autocast("cpu", torch.bfloat16):
            scores = head(encoders.embed(encoder, joined(tokenizer, texts, UNTRAINED))).squeeze(1)
        loss = torch.stack([_loss(scores.float(), one) for one in pairs]).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_([*trained, *head.parameters()], 1.0)
        optimizer.step()
        step += 1
        if step % 100 == 0:
            print(f"step {step}, {passed:.0%} of the time, loss {loss.item():.3f}", flush=True)
    return encoder, head


def _loss(scores: Tensor, pairs: Pairs) -> Tensor:
    difference = scores[pairs.better] - scores[pairs.worse]
    probability, weight = (torch.tensor(values, dtype=torch.float32) for values in (pairs.probability, pairs.weight))
    return (functional.binary_cross_entropy_with_logits(difference, probability, reduction="none") * weight).sum()


def write(encoder: Any, head: torch.nn.Linear, model: Path, work: Path, scale: float) -> None:
    """Pack the encoder into the model's folder; its log odds there are those of the head times `scale`."""
    trained, packed = work / FOLDER, model / FOLDER
    encoders.save_encoder(encoder, trained)
    shutil.rmtree(packed, ignore_errors=True)
    pack_model(trained, packed, base=PACKAGED_ENCODER, bits=BITS)
    (packed / MANIFEST_FILE).unlink()  # The model's own manifest names all files.
    weights = [float(f"{scale * value:.6g}") for value in head.weight.detach()[0].tolist()]
    settings: CrossEncoderSettings = {**UNTRAINED, "weights": weights, "length": LENGTH}
    write_text(packed / SETTINGS_FILE, to_json(settings) + "\n")
    typical = np.median(CrossEncoder(packed, RuntimeChoice()).log_odds([_input(one) for one in scale_answers()]))
    write_text(packed / SETTINGS_FILE, to_json({**settings, "offset": -float(f"{typical:.6g}")}) + "\n")
    write_manifest(model)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for the whole encoder")
    parser.add_argument("--minutes", type=float, default=62, help="time of the steps (default: %(default)s)")
    parser.add_argument("--model", type=Path, default=PRETRAINED / "assistant", help="folder of the model (%(default)s)")
    options = parser.parse_args(arguments)
    encoder, head = train(options.minutes)
    write(encoder, head, options.model, options.work, WEIGHT)


if __name__ == "__main__":
    main()
