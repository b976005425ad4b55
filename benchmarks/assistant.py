"""Throughput and memory of the evaluator of assistants on one thread: answers of 300 words, each distinct, and each read whole.

The last line is one JSON object:

    BACKEND_per_s  answers per second of `Scorer.score`, by processor time
    BACKEND_vs_torch  the same over those of torch in the same round, the median over rounds
    vs_forward     answers per second with torch over those of the bare forward pass of the encoder over the distinct parts, in
                   length-sorted batches of 64
    peak_mb        highest resident memory of a process that scores 100,000 answers of 20 words with openvino-int8
    memory_growth  the same over that for 2,000 answers
    first_score_s  seconds from the start of `dialeval score` to the end, for a chat log of ten answers

The model is the bundled one, unless --model names a folder.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before what reads it is imported

import functools
import importlib.util
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from measuring import interleaved, memory_figures, options_of, padded_batches, peak_mb, ratio, seconds

from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.corpora import mini
from dialeval_plugin.methods.assistant.model import TrainedAssistant
from dialeval_plugin.methods.assistant.scorer import AssistantScorer
from dialeval_plugin.models.folders import PRETRAINED
from dialeval_plugin.models.runtimes.runtime import Backend
from dialeval_plugin.models.texts import TextEncoder

torch.set_num_threads(1)

N_WORDS, N_SHORT = 300, 20
BACKENDS: dict[Backend, str] = {"torch": "torch", "onnx": "onnxruntime", "openvino": "openvino", "openvino-int8": "nncf"}


def answers(number: int, n_words: int = N_WORDS) -> list[Example]:
    """So many answers of so many words, of sentences of the embedded corpus that are drawn for each."""
    sets = mini.read_response_sets()
    said = [text for one in sets for text in (*one.positive, *one.adversarial)]
    found = []
    for place in range(number):
        generator, words = random.Random(place), list[str]()
        while len(words) < n_words:
            words += generator.choice(said).split()
        found.append(Example.from_texts(sets[place % len(sets)].context, " ".join(words[:n_words]), id=str(place)))
    return found


def measure_memory(model: str, sizes: Sequence[int]) -> list[float]:
    """Highest resident memory while so many answers are scored, for each size: short ones, that there be many."""
    scorer, made = AssistantScorer(model, backend="openvino-int8"), answers(2000, N_SHORT)
    scorer.score(made)

    def score(size: int) -> None:
        numbered = (
            replace(made[place % len(made)], response=Turn(f"Number {place}. {made[place % len(made)].response.text}"))
            for place in range(size)
        )
        for _ in scorer.score_stream(numbered):
            pass

    return [peak_mb(functools.partial(score, size)) for size in sizes]


def forward_only(model: str, examples: Sequence[Example]) -> Callable[[], None]:
    """Return the bare forward pass over the distinct parts of answers, tokenised beforehand."""
    trained = TrainedAssistant.load(model, device="cpu")
    texts = TextEncoder(trained.encoder.tokenizer, "plain", 96, trained.config.max_response_tokens)
    windows = texts.response_windows([one.response.text for one in examples], trained.config.max_response_parts)
    batches = padded_batches({tuple(ids) for window in windows for ids in window.parts}, 64)

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                trained.encoder(batch)

    return run


def first_score(model: str, folder: Path) -> float:
    """Seconds of the command, with a log of one chat."""
    turns = [
        {"role": role, "content": text}
        for one in answers(10)
        for role, text in (("user", one.context[-1].text), ("assistant", one.response.text))
    ]
    log = folder / "chat.jsonl"
    log.write_text(json.dumps({"messages": turns}) + "\n", encoding="utf-8")
    words = ["score", str(log), "--scorer", "assistant", "--option", f"model={model}", "--output", str(folder / "scores.jsonl")]
    command = [sys.executable, "-m", "dialeval_plugin", *words]
    return seconds(functools.partial(subprocess.run, command, check=True, capture_output=True))


def main() -> None:
    parser = options_of(__doc__, "a minute or two, with fewer answers", model="folder of a trained evaluator of assistants")
    arguments = parser.parse_args()
    if arguments.measure_memory:
        print(*measure_memory(arguments.model, arguments.measure_memory))
        return
    with tempfile.TemporaryDirectory() as scratch:
        model = arguments.model or str(PRETRAINED / "assistant")
        examples, rounds = (answers(60), 3) if arguments.quick else (answers(512), 5)
        scorers = {
            name: AssistantScorer(model, backend=name, device="cpu" if name == "torch" else None)
            for name, package in BACKENDS.items()
            if importlib.util.find_spec(package)
        }
        work: dict[str, Callable[[], object]] = {
            name: functools.partial(scorer.score, examples) for name, scorer in scorers.items()
        }
        times = interleaved({**work, "forward": forward_only(model, examples)}, rounds, time.process_time)
        rates = {name: [len(examples) / value for value in values] for name, values in times.items()}
        result: dict[str, float] = {}
        for name in scorers:
            result[f"{name}_per_s"] = round(statistics.median(rates[name]), 1)
            result[f"{name}_vs_torch"] = round(ratio(rates[name], rates["torch"]), 2)
            print(f"{name:14}{result[f'{name}_per_s']:8.1f} answers/s, {result[f'{name}_vs_torch']:5.2f} times torch")
        sizes = (1000, 4000) if arguments.quick else (2000, 100_000)
        memory = memory_figures(__file__, "--model", model, sizes=sizes, what="answers")
        result |= {"vs_forward": round(ratio(rates["torch"], rates["forward"]), 3), **memory}
        result["first_score_s"] = round(first_score(model, Path(scratch)), 1)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
