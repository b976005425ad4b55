"""Throughput and memory of the general evaluator: `Scorer.score` against the plain SLM's on the same responses.

All figures of one run use the same encoder and the same texts as `slm.py`. The last line is one JSON object:

    vs_slm         responses per second of the general evaluator over those of the SLM with the same window of tokens
    peak_mb        highest resident memory of a process that scores, above what it has after loading the model
    memory_growth  peak_mb with the largest number of responses over peak_mb with the smallest
    training_mb    highest resident memory of a process from its dialogues to the first step of training, above what it has
                   with the dialogues read, per 10,000 dialogues of six turns

The encoder is the packaged MiniLM with untrained heads, unless --model names a folder: speed does not depend on the weights.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from measuring import peak_mb, peaks_of_a_process, ratio, resident_mb
from slm import responses, seconds

from dialeval_plugin.methods.general import training
from dialeval_plugin.methods.general.conversations import Conversation
from dialeval_plugin.methods.general.mixing import CoherenceWeights, Mixing
from dialeval_plugin.methods.general.model import GeneralConfig, GeneralModel, TrainedGeneral
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.methods.slide.fusion import DistanceRange
from dialeval_plugin.methods.slide.model import SmallModel, TrainedSmallModel
from dialeval_plugin.methods.slide.recipes import RECIPES
from dialeval_plugin.methods.slide.scorer import SlideScorer
from dialeval_plugin.models.encoders import load_encoder, without_normalisation
from dialeval_plugin.models.folders import PACKAGED_ENCODER


def write_untrained_general(folder: Path, config: GeneralConfig) -> Path:
    encoder = without_normalisation(load_encoder(PACKAGED_ENCODER, device="cpu"))
    torch.manual_seed(0)
    even = {"fit": 1.0, "fluency": 1.0, "specificity": 1.0, "offset": 0.0}
    TrainedGeneral(GeneralModel(encoder, config), Mixing(even), CoherenceWeights(1, 0, 0, 0), frozenset()).save(folder)
    return folder


def write_untrained_slm(folder: Path, config: GeneralConfig) -> Path:
    """The SLM of SLIDE's default recipe, with the window of the general evaluator."""
    window = {"max_context_tokens": config.max_context_tokens, "max_response_tokens": config.max_response_tokens}
    encoder = without_normalisation(load_encoder(PACKAGED_ENCODER, device="cpu"))
    torch.manual_seed(0)
    model = SmallModel(encoder, replace(RECIPES["default"].config, **window))
    TrainedSmallModel(model, DistanceRange(0.0, 2.0), frozenset()).save(folder)
    return folder


def measure_memory(model: str, sizes: Sequence[int]) -> list[float]:
    """Highest resident memory while so many responses are scored, for each size."""
    scorer = GeneralScorer(model, device="cpu")
    scorer.score(responses(200))
    return [peak_mb(functools.partial(scorer.score, responses(size))) for size in sizes]


class FirstStep(Exception):
    """Training has begun."""


def measure_preparation(number: int) -> float:
    """Highest resident memory until the first step, above what the dialogues take."""
    generator = random.Random(0)
    words = [f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{n}" for n in range(5000)]

    def utterance() -> str:
        # Few words are frequent, as in any corpus.
        return " ".join(words[int(5000 * generator.random() ** 3)] for _ in range(12))

    sources = training.GeneralSources([Conversation("made", tuple(utterance() for _ in range(6))) for _ in range(number)])

    def stop(*_: object, **__: object) -> None:
        raise FirstStep

    def train() -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(FirstStep):
            training.train(sources, Path(folder) / "model", device="cpu", remember=False)

    training.loss_terms = stop  # type: ignore[assignment]
    held = resident_mb("VmRSS")
    return peak_mb(train) - held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="under a minute, with fewer responses")
    parser.add_argument("--model", help="folder of a trained general evaluator")
    parser.add_argument("--measure-preparation", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--measure-memory", type=int, nargs="+", help=argparse.SUPPRESS)
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
        general = GeneralScorer(model, device="cpu")
        slm = SlideScorer(str(write_untrained_slm(Path(scratch) / "slm", config)), variant="slm", device="cpu")
        examples, rounds = (responses(360), 6) if arguments.quick else (responses(2880), 7)
        work = {"general": lambda: general.score(examples), "slm": lambda: slm.score(examples)}
        for run in work.values():
            run()
        # Interleaved, so that whatever else the machine does meets both alike.
        times: dict[str, list[float]] = {name: [] for name in work}
        for _ in range(rounds):
            for name, run in work.items():
                times[name].append(seconds(run))
        rates = {name: [len(examples) / value for value in values] for name, values in times.items()}
        sizes = (1000, 2000) if arguments.quick else (1000, 50_000)
        peaks = peaks_of_a_process(__file__, "--model", model, sizes=sizes)
    n_dialogues = 2_000 if arguments.quick else 20_000
    command = [sys.executable, __file__, "--measure-preparation", str(n_dialogues)]
    preparation = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    for name, values in rates.items():
        print(f"{name:8} {statistics.median(values):8.0f} responses/s")
    print(f"highest memory: {peaks[0]:.0f} MB for {sizes[0]}, {peaks[1]:.0f} MB for {sizes[1]} responses")
    print(f"before the first step of training: {preparation:.0f} MB for {n_dialogues} dialogues")
    result = {
        "vs_slm": round(ratio(rates["general"], rates["slm"]), 3),
        "peak_mb": round(peaks[1], 1),
        "memory_growth": round(peaks[1] / peaks[0], 2),
        "training_mb": round(10_000 * preparation / n_dialogues, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
