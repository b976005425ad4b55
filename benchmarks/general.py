"""Throughput and memory of the general evaluator: `Scorer.score` against the plain SLM's on the same responses.

All figures of one run use the same encoder and the same texts as `slm.py`. The last line is one JSON object:

    vs_slm         responses per second of the general evaluator over those of the SLM with the same window of tokens
    peak_mb        highest resident memory of a process that scores, above what it has after loading the model
    memory_growth  peak_mb with the largest number of responses over peak_mb with the smallest

The encoder is the packaged MiniLM with untrained heads, unless --model names a folder: speed does not depend on the weights.
"""

from __future__ import annotations

import functools
import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from measuring import interleaved, memory_figures, options_of, peak_mb, ratio
from slm import responses, write_untrained_slm

from dialeval_plugin.methods.general.mixing import CoherenceWeights, Mixing
from dialeval_plugin.methods.general.model import GeneralConfig, GeneralModel, TrainedGeneral
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.methods.slide.scorer import SlideScorer
from dialeval_plugin.models.encoders import load_encoder, without_normalisation
from dialeval_plugin.models.folders import PACKAGED_ENCODER


def write_untrained_general(folder: Path, config: GeneralConfig) -> Path:
    encoder = without_normalisation(load_encoder(PACKAGED_ENCODER, device="cpu"))
    torch.manual_seed(0)
    even = {"fit": 1.0, "fluency": 1.0, "specificity": 1.0, "offset": 0.0}
    TrainedGeneral(GeneralModel(encoder, config), Mixing(even), CoherenceWeights(1, 0, 0, 0), frozenset()).save(folder)
    return folder


def measure_memory(model: str, sizes: Sequence[int]) -> list[float]:
    """Highest resident memory while so many responses are scored, for each size."""
    scorer = GeneralScorer(model, device="cpu")
    scorer.score(responses(200))
    return [peak_mb(functools.partial(scorer.score, responses(size))) for size in sizes]


def main() -> None:
    arguments = options_of(
        __doc__, "under a minute, with fewer responses", model="folder of a trained general evaluator"
    ).parse_args()
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
    for name, values in rates.items():
        print(f"{name:8} {statistics.median(values):8.0f} responses/s")
    print(json.dumps({"vs_slm": round(ratio(rates["general"], rates["slm"]), 3), **memory}))


if __name__ == "__main__":
    main()
