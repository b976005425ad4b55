"""Throughput and memory of the general evaluator: `Scorer.score` against the plain SLM's on the same responses.

All figures of one run use the same encoder and the same texts as `slm.py`. The last line is one JSON object:

    vs_slm         responses per second of the general evaluator over those of the SLM with the same window of tokens
    peak_mb        highest resident memory of a process that scores, above what it has after loading the model
    memory_growth  peak_mb with the largest number of responses over peak_mb with the smallest
    training_mb    highest resident memory of a process from its dialogues to the first step of training, above what it has
                   with the dialogues read, per 10,000 dialogues of six turns
    training_tokens_per_s  of the steps of training on dialogues of the embedded corpus, sampling and tokenising included, by
                   processor time on one thread
    training_vs_forward_backward  the same over the bare forward and backward pass of the encoder over the same texts in
                   length-sorted batches of 64, in the same precision

The encoder is the packaged MiniLM with untrained heads, unless --model names a folder: speed does not depend on the weights.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from measuring import interleaved, memory_figures, options_of, padded_batches, peak_mb, ratio, resident_mb, seconds
from slm import responses, write_untrained_slm

from dialeval_plugin.corpora import mini
from dialeval_plugin.methods.general import training
from dialeval_plugin.methods.general.conversations import Conversation
from dialeval_plugin.methods.general.judging import GeneralConfig
from dialeval_plugin.methods.general.mixing import CoherenceWeights, Mixing
from dialeval_plugin.methods.general.model import GeneralModel, TrainedGeneral
from dialeval_plugin.methods.general.objective import Step
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.methods.slide.scorer import SlideScorer
from dialeval_plugin.models.encoders import load_encoder, without_normalisation
from dialeval_plugin.models.folders import PACKAGED_ENCODER


def write_untrained_general(folder: Path, config: GeneralConfig) -> Path:
    encoder = without_normalisation(load_encoder(PACKAGED_ENCODER, device="cpu"))
    torch.manual_seed(0)
    even = {"relevance": 1.0, "fit": 1.0, "fluency": 1.0, "specificity": 1.0, "offset": 0.0}
    TrainedGeneral(GeneralModel(encoder, config), Mixing(even), CoherenceWeights(1, 0, 0, 0), frozenset()).save(folder)
    return folder


def measure_memory(model: str, sizes: Sequence[int]) -> list[float]:
    """Highest resident memory while so many responses are scored, for each size."""
    scorer = GeneralScorer(model, device="cpu")
    scorer.score(responses(200))
    return [peak_mb(functools.partial(scorer.score, responses(size))) for size in sizes]


class Stop(Exception):
    """Training has gone as far as is measured."""


def measure_preparation(number: int) -> float:
    """Highest resident memory until the first step, above what the dialogues take."""
    generator = random.Random(0)
    words = [f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{n}" for n in range(5000)]

    def utterance() -> str:
        # Few words are frequent, as in any corpus.
        return " ".join(words[int(5000 * generator.random() ** 3)] for _ in range(12))

    sources = training.GeneralSources([Conversation("made", tuple(utterance() for _ in range(6))) for _ in range(number)])

    def stop(*_: object, **__: object) -> None:
        raise Stop

    def train() -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Stop):
            training.train(sources, Path(folder) / "model", device="cpu")

    training.loss_terms = stop  # type: ignore[assignment]
    held = resident_mb("VmRSS")
    return peak_mb(train) - held


def measure_training(n_steps: int) -> dict[str, float]:
    """Tokens per second of so many steps of training, and their ratio to the encoder's bare forward and backward pass."""
    torch.set_num_threads(1)
    loss_terms, began = training.loss_terms, list[float]()
    texts: list[list[list[int]]] = []
    seen: dict[str, Any] = {}

    def recorded(model: GeneralModel, step: Step, *, bfloat16: bool) -> dict[str, torch.Tensor]:
        began.append(time.process_time())
        if len(began) > n_steps:
            raise Stop
        texts.append([*step.contexts, *step.responses, *step.facts])
        seen.update(model=model, bfloat16=bfloat16)
        return loss_terms(model, step, bfloat16=bfloat16)

    sets = mini.read_response_sets()
    dialogues = [Conversation("embedded", (*one.context, text)) for one in sets for text in one.positive]
    training.loss_terms = recorded
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Stop):
        training.train(training.GeneralSources(dialogues), Path(folder) / "model", device="cpu")
    training.loss_terms = loss_terms
    if len(began) <= n_steps:
        raise SystemExit(f"training is over after {len(began)} steps")
    encoder = seen["model"].encoder
    batches = [padded_batches(step, 64) for step in texts]

    def bare(number: int) -> None:
        for batch in batches[number]:
            encoder.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=seen["bfloat16"]):
                vectors = encoder(batch)["sentence_embedding"]
            vectors.float().sum().backward()

    # The first step is left out: it makes room for gradients and moments.
    bares = [seconds(functools.partial(bare, number), time.process_time) for number in range(n_steps)][1:]
    steps = [end - start for start, end in itertools.pairwise(began)][1:]
    rate = sum(len(ids) for step in texts[1:] for ids in step) / sum(steps)
    return {"training_tokens_per_s": round(rate, 1), "training_vs_forward_backward": round(ratio(bares, steps), 3)}


def main() -> None:
    parser = options_of(__doc__, "under a minute, with fewer responses", model="folder of a trained general evaluator")
    parser.add_argument("--measure-preparation", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure_preparation:
        print(measure_preparation(arguments.measure_preparation))
        return
    if arguments.measure_memory:
        print(*measure_memory(arguments.model, arguments.measure_memory))
        return
    with tempfile.TemporaryDirectory() as scratch:
        model = arguments.model or str(write_untrained_general(Path(scratch) / "general", GeneralConfig()))
        config = TrainedGeneral.load(model, device="cpu").model.config
        window = {"max_context_tokens": config.max_context_tokens, "max_response_tokens": config.max_response_tokens}
        general = GeneralScorer(model, device="cpu")
        slm = SlideScorer(str(write_untrained_slm(Path(scratch) / "slm", **window)), variant="slm", device="cpu")
        examples, rounds = (responses(360), 6) if arguments.quick else (responses(2880), 7)
        times = interleaved({"general": lambda: general.score(examples), "slm": lambda: slm.score(examples)}, rounds)
        rates = {name: [len(examples) / value for value in values] for name, values in times.items()}
        sizes = (1000, 2000) if arguments.quick else (1000, 50_000)
        memory = memory_figures(__file__, "--model", model, sizes=sizes, what="responses")
    n_dialogues = 2_000 if arguments.quick else 20_000
    command = [sys.executable, __file__, "--measure-preparation", str(n_dialogues)]
    preparation = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    for name, values in rates.items():
        print(f"{name:8} {statistics.median(values):8.0f} responses/s")
    print(f"before the first step of training: {preparation:.0f} MB for {n_dialogues} dialogues")
    training_mb = round(10_000 * preparation / n_dialogues, 1)
    result = {"vs_slm": round(ratio(rates["general"], rates["slm"]), 3), **memory, "training_mb": training_mb}
    print(json.dumps({**result, **measure_training(4 if arguments.quick else 16)}))


if __name__ == "__main__":
    main()
