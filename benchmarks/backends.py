"""Runtimes of the general evaluator: torch, onnxruntime and OpenVINO on the same responses, on one thread, in one run.

Columns of the table, a row a backend that this processor and installation have:

    responses/s   of `Scorer.score` on ten responses a context of the embedded corpus
    vs torch      median over rounds of the ratio to torch with numbers of 32 bits
    vs forward    the same to the bare forward pass of torch over the distinct texts in length-sorted batches of 64
    vs products   the same to nothing but the matrix products of the encoder's layers over the same tokens without padding, in
                  32 bits: no library that computes what torch does can be faster than 1
    rank          Spearman's rank correlation of its scores with torch's, over all sets of DSTC10 that are here
    people        mean over these sets of its Spearman correlation with people's overall rating
    alone         largest change of a score between a response scored alone and in its batch
    MB            of the files that it runs
    peak MB       highest resident memory of a process that loads the model and scores the embedded corpus

The last line is one JSON object of the same. DIALEVAL_DATA_DIR names the folder with `dstc10`; without it the columns rank and
people are of the embedded corpus and empty. The model is the bundled one, unless --model names a folder. Times are processor
times of this process, so that what else the machine does counts for nobody.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before what reads it is imported

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import interleaved, options_of, padded_batches, ratio
from scipy.stats import spearmanr
from slm import responses

from dialeval_plugin.core.dialogue import Example, mean_rating
from dialeval_plugin.core.errors import DialevalError, MissingPrerequisite
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.corpora.registry import read_reported
from dialeval_plugin.methods.general.model import GeneralModel, TrainedGeneral
from dialeval_plugin.models.encoders import transformer_of
from dialeval_plugin.models.folders import resolve
from dialeval_plugin.models.runtimes.runtime import find_export
from dialeval_plugin.models.texts import CPU_TOKENS

torch.set_num_threads(1)

RUNTIMES: Mapping[str, dict[str, Any]] = {
    "torch": {"backend": "torch", "device": "cpu"},
    "torch, bfloat16": {"backend": "torch", "dtype": "bfloat16", "device": "cpu"},
    "onnx": {"backend": "onnx"},
    "openvino": {"backend": "openvino"},
    "openvino, bfloat16": {"backend": "openvino", "dtype": "bfloat16"},
    "openvino-int8": {"backend": "openvino-int8"},
}
N_ALONE = 200


def usable_scorers(model: str) -> dict[str, Scorer]:
    """The scorers of `RUNTIMES`, without those whose packages, or whose processor's instructions, are not here."""
    scorers = {}
    for name, options in RUNTIMES.items():
        try:
            scorers[name] = load_scorer("general", model=model, **options)
        except DialevalError as error:
            print(f"{name}: left out. {error}")
    return scorers


def rated_sets() -> dict[str, tuple[list[Example], np.ndarray]]:
    """Responses of the sets of DSTC10 that are here with people's overall ratings."""
    found = {}
    for code, items in read_reported(["dstc10"]).sets.items():
        examples = [item for item in items if isinstance(item, Example)]
        if not examples:
            continue
        ratings = [mean_rating(item, dstc10.overall_quality(examples, dstc10.SETS[code])) for item in examples]
        rated = [(item, rating) for item, rating in zip(examples, ratings, strict=True) if rating is not None]
        found[code] = [item for item, _ in rated], np.array([rating for _, rating in rated])
    return found


def distinct_texts(model: GeneralModel, examples: Sequence[Example]) -> list[list[int]]:
    """Token ids of the distinct contexts and responses."""
    contexts = dict.fromkeys(tuple(turn.text for turn in example.context) for example in examples)
    responses_ = dict.fromkeys(example.response.text for example in examples)
    return [*(context.ids for context in model.texts.contexts(list(contexts))), *model.texts.responses(list(responses_))]


def forward_only(model: GeneralModel, examples: Sequence[Example]) -> Callable[[], None]:
    """Return the bare forward pass over the distinct texts, tokenised beforehand."""
    batches = padded_batches(distinct_texts(model, examples), 64)

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                model.encoder(batch)

    return run


def products_only(model: GeneralModel, examples: Sequence[Example]) -> Callable[[], None]:
    """Return the products of as many tokens as the distinct texts have with the weights of the encoder's layers."""
    n_tokens = sum(map(len, distinct_texts(model, examples)))
    layers = transformer_of(model.encoder).encoder
    weights = [layer.weight.detach().T for layer in layers.modules() if isinstance(layer, torch.nn.Linear)]
    inputs = {width: torch.ones(CPU_TOKENS, width) for width in {weight.shape[0] for weight in weights}}

    def run() -> None:
        with torch.inference_mode():
            for start in range(0, n_tokens, CPU_TOKENS):
                for weight in weights:
                    inputs[weight.shape[0]][: n_tokens - start] @ weight

    return run


def largest_change_alone(scorer: Scorer, examples: Sequence[Example]) -> float:
    together = scorer.score(examples).values
    alone = [scorer.score([example]).values[0] for example in examples]
    return float(np.abs(np.array(together, dtype=float) - np.array(alone, dtype=float)).max())


def megabytes(folder: Path, backend: str) -> float:
    """Size of the files that a backend runs."""
    of = None if backend == "torch" else find_export(folder, backend)  # type: ignore[arg-type]
    return sum(path.stat().st_size for path in (of or folder).rglob("*") if path.is_file()) / 1e6


def measured_peak(name: str, model: str) -> float:
    """Highest resident memory of a process that imports nothing but what scoring needs, not torch for this benchmark's sake."""
    program = (
        "from dialeval_plugin.core.registry import load_scorer\n"
        "from dialeval_plugin.corpora import mini\n"
        f"load_scorer('general', model={model!r}, **{RUNTIMES[name]!r}).score(mini.read_examples())\n"
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "print(int(status['VmHWM'].split()[0]) / 1024)\n"
    )
    command = [sys.executable, "-c", program]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def agreement(scorers: Mapping[str, Scorer]) -> tuple[dict[str, float], dict[str, float]]:
    """Rank correlation of each with torch, and mean Spearman correlation with people."""
    try:
        sets = rated_sets()
    except MissingPrerequisite:
        sets = {}
    scored = {
        name: [np.array(scorer.score(items).values, dtype=float) for items, _ in sets.values()]
        or [np.array(scorer.score(mini.read_examples()).values, dtype=float)]
        for name, scorer in scorers.items()
    }
    reference = np.concatenate(scored["torch"])
    ranks = {name: float(spearmanr(np.concatenate(found), reference).statistic) for name, found in scored.items()}
    people = {
        name: statistics.fmean(
            spearmanr(values, ratings).statistic for values, (_, ratings) in zip(found, sets.values(), strict=True)
        )
        for name, found in scored.items()
        if sets
    }
    return ranks, people


def main() -> None:
    parser = options_of(__doc__, "a minute or two, with fewer responses and without people's ratings")
    parser.add_argument("--model", help="folder of a trained general evaluator")
    arguments = parser.parse_args()
    model = arguments.model or str(resolve("general"))
    scorers = usable_scorers(model)
    examples, rounds = (responses(360), 3) if arguments.quick else (responses(2880), 5)
    work: dict[str, Callable[[], object]] = {
        name: lambda scorer=scorer: scorer.score(examples) for name, scorer in scorers.items()
    }  # type: ignore[misc]
    trained = TrainedGeneral.load(model, device="cpu").model
    work |= {"forward": forward_only(trained, examples), "products": products_only(trained, examples)}
    times = interleaved(work, rounds, time.process_time)
    rates = {name: [len(examples) / value for value in values] for name, values in times.items()}
    ranks, people = agreement(scorers) if not arguments.quick else ({}, {})
    table = {
        name: {
            "responses_per_s": round(statistics.median(rates[name]), 1),
            "vs_torch": round(ratio(rates[name], rates["torch"]), 2),
            "vs_forward": round(ratio(rates[name], rates["forward"]), 3),
            "vs_products": round(ratio(rates[name], rates["products"]), 3),
            "rank": ranks.get(name),
            "people": people.get(name),
            "alone": largest_change_alone(scorer, examples[:N_ALONE]),
            "mb": round(megabytes(Path(model), str(RUNTIMES[name]["backend"])), 1),
            "peak_mb": round(measured_peak(name, model), 1),
        }
        for name, scorer in scorers.items()
    }
    heads = {"responses/s": 12, "vs torch": 10, "vs forward": 12, "vs products": 13, "rank": 10, "people": 9, "alone": 10}
    heads |= {"MB": 8, "peak MB": 9}
    print(" " * 20 + "".join(f"{head:>{width}}" for head, width in heads.items()))
    for name, row in table.items():
        rank, agreed = (f"{value:.4f}" if value is not None else "-" for value in (row["rank"], row["people"]))
        print(
            f"{name:20}{row['responses_per_s']:>12}{row['vs_torch']:>10}{row['vs_forward']:>12}{row['vs_products']:>13}{rank:>10}{agreed:>9}"
            f"{row['alone']:>10.1e}{row['mb']:>8}{row['peak_mb']:>9}"
        )
    print(json.dumps(table))


if __name__ == "__main__":
    main()
