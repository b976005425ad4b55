"""Throughput and memory of CausalScore: `Scorer.score` against the published loop and against the bare forward pass.

All figures of one run use the same weights and the same histories: human responses of DREAM, ESConv and MSC where
DIALEVAL_DATA_DIR names them, else dialogues of the embedded corpus strung together to the same lengths. The last line is
one JSON object:

    vs_naive       responses per second of `score` over those of the published loop: one tokenise-and-forward in batches of 16
                   for the history, and one for every dependent turn
    vs_forward     the same over the bare forward pass over the same distinct texts in length-sorted batches
    fast_vs_naive  `score` with conditions pruned to the strongest over the published loop, on histories as long as MSC's
    fast_vs_naive_200  the same on a history of 200 turns, for which the loop is extrapolated
    box_vs_naive, box_vs_naive_long  all conditions by the bundled model over the same loop of cross-encoders, on
                   the histories of the first and of the third figure: regressions on vectors read each turn once
    mb_200         highest resident memory meanwhile, of `score` without conditions where --quick is not given, above before
    peak_mb        highest resident memory of a process that scores, above what it has after loading the model
    memory_growth  peak_mb with the largest number of responses over peak_mb with the smallest

The encoder is the packaged MiniLM under an untrained head that calls every turn dependent, which is the longest case, unless
--model names a folder. With --quick the loop runs for some of the dependent turns only and is extrapolated, for its calls are
alike. Times are processor times of this process, so that what else the machine does counts for nobody.
"""

from __future__ import annotations

import functools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from measuring import memory_figures, options_of, padded_batches, peak_mb, resident_mb, seconds

from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers import cgdialog, plain
from dialeval_plugin.methods.causalscore.classifiers import IndependenceClassifier, new_classifier
from dialeval_plugin.methods.causalscore.model import CausalModel, CausalModelConfig
from dialeval_plugin.methods.causalscore.scorer import CausalScorer
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve

LENGTHS = {"DREAM": 9, "ESConv": 20, "MSC": 39}
"""Turns of a history, on average."""
LONGEST = 200
"""Turns of the longest history."""
PUBLISHED_BATCH = 16


def histories(corpus: str, number: int) -> list[Example]:
    """Return responses to histories of about the corpus' average length."""
    try:
        found = real_histories(corpus)
    except MissingPrerequisite:
        return made_histories(LENGTHS[corpus], number)
    wanted = LENGTHS[corpus]
    return sorted(found, key=lambda example: (abs(len(example.context) - wanted), example.id))[:number]


def real_histories(corpus: str) -> list[Example]:
    if corpus == "ESConv":
        folder = Path(os.environ.get("DIALEVAL_DATA_DIR", ""), "esconv")
        if not (folder / "valid.txt").is_file():
            raise MissingPrerequisite("esconv: is not here")
        end = LENGTHS[corpus]
        dialogues = [dialogue for dialogue in plain.read_esconv(folder / "valid.txt") if len(dialogue.turns) > end]
        return [Example(dialogue.id, dialogue.turns[:end], dialogue.turns[end]) for dialogue in dialogues]
    dialogues = cgdialog.read_preferences(corpus.lower())
    return [Example(dialogue.id, dialogue.context, dialogue.responses["human"]) for dialogue in dialogues]


def made_histories(n_turns: int, number: int) -> list[Example]:
    """String turns of the embedded corpus together; what they say does not change what they cost."""
    turns = [text for item in mini.read_response_sets("train") for text in (*item.context, item.positive[0])]
    texts = iter(turns * (1 + number * (n_turns + 1) // len(turns)))
    return [
        Example(f"made {index}", tuple(Turn(next(texts)) for _ in range(n_turns)), Turn(next(texts))) for index in range(number)
    ]


def write_untrained_model(folder: Path) -> Path:
    """Write classifiers over the packaged encoder that call every turn dependent."""
    torch.manual_seed(0)
    encoders = [new_classifier(resolve(PACKAGED_ENCODER), device="cpu") for _ in range(2)]
    for encoder in encoders:
        encoder.model.classifier.bias.data = torch.tensor([-2.0, 2.0])
    CausalModel.build(CausalModelConfig("untrained"), *encoders).save(folder)
    return folder


@dataclass(frozen=True)
class Loop:
    """The published code's steps with our weights and our texts; every `step`-th dependent turn only, extrapolated."""

    model: CausalModel
    step: int

    def seconds(self, examples: Sequence[Example]) -> float:
        """Time that the whole loop takes."""
        return sum(self._one(example) for example in examples)

    def _one(self, example: Example) -> float:
        response = example.response.text
        start = time.process_time()
        chances = self._ask(self.model.unconditional, [(turn.text, response) for turn in example.context])
        dependent = [turn.text for turn, chance in zip(example.context, chances, strict=True) if chance > 0.5]
        unconditional = time.process_time() - start
        start = time.process_time()
        sampled = dependent[:: self.step]
        for cause in sampled:
            self._ask(self.model.conditional, [(cause, other, response) for other in dependent if other != cause])
        conditional = time.process_time() - start
        return unconditional + conditional * len(dependent) / max(1, len(sampled))

    def _ask(self, classifier: IndependenceClassifier, rows: Sequence[tuple[str, ...]]) -> list[float]:
        chances: list[float] = []
        for start in range(0, len(rows), PUBLISHED_BATCH):
            batch = rows[start : start + PUBLISHED_BATCH]
            texts = [text for row in batch for text in row]
            encoded = classifier.texts.rows(texts, np.arange(len(texts)).reshape(len(batch), -1))
            with torch.no_grad():
                logits = classifier.logits([classifier.texts.encode(encoded, number) for number in range(len(batch))])
            chances += logits.softmax(-1)[:, 1].tolist()
        return chances


def forward_only(scorer: CausalScorer, examples: Sequence[Example]) -> Callable[[], None]:
    """Make a run of both models over the distinct texts that scoring reads, tokenised and batched beforehand."""
    batches: list[tuple[torch.nn.Module, dict[str, torch.Tensor]]] = []
    logits = IndependenceClassifier.logits
    seen: list[tuple[IndependenceClassifier, list[list[int]]]] = []

    def record(self: IndependenceClassifier, ids: Sequence[list[int]]) -> torch.Tensor:
        seen.append((self, [list(row) for row in ids]))
        return logits(self, ids)

    IndependenceClassifier.logits = record  # type: ignore[method-assign]
    try:
        scorer.score(examples)
    finally:
        IndependenceClassifier.logits = logits  # type: ignore[method-assign]
    for classifier in (scorer.model.unconditional, scorer.model.conditional):
        ids = [row for owner, rows in seen if owner is classifier for row in rows]
        batches += [(classifier.encoder.model, features) for features in padded_batches(ids, 32)]

    def run() -> None:
        with torch.inference_mode():
            for model, features in batches:
                model(**features)

    return run


def measure_memory(model: str, sizes: Sequence[int]) -> list[float]:
    """Highest memory above the model's while so many responses are scored, for each size."""
    scorer = CausalScorer(model, device="cpu")
    scorer.score(made_histories(2, 4))
    before = resident_mb("VmRSS")
    return [peak_mb(functools.partial(scorer.score, made_histories(2, size))) - before for size in sizes]


def main() -> None:
    parser = options_of(__doc__, "under a minute, with fewer responses", model="folder of trained classifiers", threads=1)
    parser.add_argument("--conditions", type=int, default=4, help="strongest dependent turns of the fast mode")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.measure_memory:
        print(*measure_memory(arguments.model, arguments.measure_memory))
        return
    with tempfile.TemporaryDirectory() as scratch:
        model = arguments.model or str(write_untrained_model(Path(scratch) / "model"))
        exact = CausalScorer(model, device="cpu")
        fast = CausalScorer(model, device="cpu", conditions=arguments.conditions)
        if arguments.quick:
            examples, rounds, loop = histories("DREAM", 2) + histories("ESConv", 1), 1, Loop(exact.model, 3)
        else:
            examples = [example for corpus, n in (("DREAM", 10), ("ESConv", 3), ("MSC", 1)) for example in histories(corpus, n)]
            rounds, loop = 2, Loop(exact.model, 1)
        long, box = histories("MSC", 1), CausalScorer(device="cpu")
        work: dict[str, Callable[[], object]] = {
            "score": functools.partial(exact.score, examples),
            "forward": forward_only(exact, examples),
            "fast": functools.partial(fast.score, long),
            "box": functools.partial(box.score, examples),
            "box_long": functools.partial(box.score, long),
        }
        # Interleaved, so that whatever else the machine does meets all alike.
        times: dict[str, list[float]] = {name: [] for name in (*work, "loop", "loop_long")}
        for _ in range(rounds):
            for name, run in work.items():
                times[name].append(seconds(run, time.process_time))
            times["loop"].append(loop.seconds(examples))
            times["loop_long"].append(Loop(exact.model, 13 if arguments.quick else 1).seconds(long))
        longest = made_histories(LONGEST, 1)
        held = resident_mb("VmRSS")
        longest_mb = peak_mb(lambda: (fast if arguments.quick else exact).score(longest)) - held
        fast_longest = seconds(lambda: fast.score(longest), time.process_time)
        loop_longest = Loop(exact.model, LONGEST // 4).seconds(longest)
        middle = {name: statistics.median(values) for name, values in times.items()}
        sizes = (64, 128) if arguments.quick else (64, 2048)
        options = ("--model", model, "--threads", str(arguments.threads))
        memory = memory_figures(__file__, *options, sizes=sizes, what="responses")
    for name, number in (("score", len(examples)), ("forward", len(examples)), ("loop", len(examples))):
        print(f"{name:10} {number / middle[name]:8.3f} responses/s")
    turns = len(long[0].context)
    print(f"{'fast':10} {len(long) / middle['fast']:8.3f} responses/s on {turns} turns")
    print(f"{'loop':10} {len(long) / middle['loop_long']:8.3f} responses/s on {turns} turns")
    result = {
        "vs_naive": round(middle["loop"] / middle["score"], 2),
        "vs_forward": round(middle["forward"] / middle["score"], 3),
        "fast_vs_naive": round(middle["loop_long"] / middle["fast"], 2),
        f"fast_vs_naive_{LONGEST}": round(loop_longest / fast_longest, 1),
        "box_vs_naive": round(middle["loop"] / middle["box"], 1),
        "box_vs_naive_long": round(middle["loop_long"] / middle["box_long"], 1),
        f"mb_{LONGEST}": round(longest_mb, 1),
        **memory,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
