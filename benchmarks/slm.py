"""Throughput and memory of the SLM: `Scorer.score` against one pair at a time and against the bare forward pass.

All figures of one run use the same weights and the same texts: the embedded corpus with its positive and misleading
responses, repeated under numbered variations where more are asked for. The last line is one JSON object:

    vs_naive    responses per second of `score` over those of the loop that scores one pair at a time
    vs_naive_BACKEND  the same with another backend, where its packages are installed
    vs_forward  the same over the bare forward pass of the encoder over the distinct texts in length-sorted batches
    peak_mb     highest resident memory of a process that scores, above what it has after loading the model
    memory_growth  peak_mb with the largest number of responses over peak_mb with the smallest

The encoder is the packaged MiniLM with an untrained head, unless --model names a folder: speed does not depend on the weights.
Times are processor times of this process, so that what else the machine does counts for nobody.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from measuring import interleaved, memory_figures, options_of, padded_batches, peak_mb, ratio

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.corpora import mini
from dialeval_plugin.methods.slide.fusion import DistanceRange
from dialeval_plugin.methods.slide.model import SmallModel, TrainedSmallModel
from dialeval_plugin.methods.slide.scorer import SlideScorer
from dialeval_plugin.methods.slide.stages import RECIPES
from dialeval_plugin.models.encoders import load_encoder, without_normalisation
from dialeval_plugin.models.folders import PACKAGED_ENCODER

BACKENDS = {"onnx": "onnxruntime", "openvino-int8": "nncf"}


def responses(number: int) -> list[Example]:
    """The first `number` of the corpus' examples, 5 + 5 a context, varied by a number where they repeat."""
    sets = mini.read_response_sets()
    examples = []
    for position in range(number):
        round_, place = divmod(position, 10 * len(sets))
        item = sets[place // 10]
        text = (*item.positive, *item.adversarial)[place % 10]
        context = item.context if not round_ else (*item.context[:-1], f"{item.context[-1]} {round_}")
        examples.append(Example.from_texts(context, text if not round_ else f"{text} {round_}", id=str(position)))
    return examples


def write_untrained_slm(folder: Path, **window: int) -> Path:
    """The SLM of SLIDE's default recipe with random weights, and with another window where one is given."""
    encoder = without_normalisation(load_encoder(PACKAGED_ENCODER, device="cpu"))
    torch.manual_seed(0)
    model = SmallModel(encoder, replace(RECIPES["default"].config, **window))
    TrainedSmallModel(model, DistanceRange(0.0, 2.0), frozenset()).save(folder)
    return folder


def one_by_one(model: SmallModel, examples: Sequence[Example]) -> Callable[[], None]:
    """Return what the published notebook does: encode the context, encode the response, classify, pair after pair."""

    def run() -> None:
        with torch.inference_mode():
            for example in examples:
                (context,) = model.texts.contexts([[turn.text for turn in example.context]])
                response_ids = model.texts.responses([example.response.text])
                context_vector, response_vector = model.embed([context.ids]), model.embed(response_ids)
                model.head(context_vector, response_vector, model.lexical_features([context.ids], [0], response_ids))

    return run


def forward_only(model: SmallModel, examples: Sequence[Example]) -> Callable[[], None]:
    """Return the bare forward pass over the distinct texts, tokenised beforehand, 64 texts of one length at a time."""
    contexts = dict.fromkeys(tuple(turn.text for turn in example.context) for example in examples)
    ids = [context.ids for context in model.texts.contexts(list(contexts))]
    ids += model.texts.responses(list(dict.fromkeys(example.response.text for example in examples)))
    batches = padded_batches(ids, 64)

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                model.transformer(**batch)

    return run


def measure_memory(slm: str, sizes: Sequence[int]) -> list[float]:
    """Highest resident memory while so many responses are scored, for each size."""
    scorer = SlideScorer(slm, variant="slm", device="cpu")
    scorer.score(responses(200))
    return [peak_mb(functools.partial(scorer.score, responses(size))) for size in sizes]


def main() -> None:
    arguments = options_of(__doc__, "under a minute, with fewer responses", model="folder of a trained SLM").parse_args()
    if arguments.measure_memory:
        print(*measure_memory(arguments.model, arguments.measure_memory))
        return
    with tempfile.TemporaryDirectory() as scratch:
        slm = arguments.model or str(write_untrained_slm(Path(scratch) / "slm"))
        scorer = SlideScorer(slm, variant="slm", device="cpu")
        examples, n_naive, rounds = (responses(360), 50, 4) if arguments.quick else (responses(2880), 720, 5)
        model = TrainedSmallModel.load(slm, device="cpu").model
        work: dict[str, Callable[[], object]] = {
            "score": lambda: scorer.score(examples),
            "forward": forward_only(model, examples),
            "naive": one_by_one(model, examples[:n_naive]),
        }
        backends = [name for name, package in BACKENDS.items() if importlib.util.find_spec(package)]
        for name in backends:
            work[name] = functools.partial(SlideScorer(slm, variant="slm", backend=name).score, examples)
        times = interleaved(work, rounds, time.process_time)
        scored = {name: n_naive if name == "naive" else len(examples) for name in work}
        rates = {name: [scored[name] / value for value in values] for name, values in times.items()}
        sizes = (1000, 2000) if arguments.quick else (1000, 50_000)
        memory = memory_figures(__file__, "--model", slm, sizes=sizes, what="responses")
    for name, values in rates.items():
        print(f"{name:14} {statistics.median(values):8.0f} responses/s")
    result = {
        "vs_naive": round(ratio(rates["score"], rates["naive"]), 2),
        **{f"vs_naive_{name}": round(ratio(rates[name], rates["naive"]), 2) for name in backends},
        "vs_forward": round(ratio(rates["score"], rates["forward"]), 3),
        **memory,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
