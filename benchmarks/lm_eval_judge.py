"""Cost of a dialogue task in addition to the language model under test: the parts of an lm-eval run with the `hf` backend.

A tiny GPT-2, trained on the spot, judges `dstc10_dialog_dgu` (where DIALEVAL_DATA_DIR has it) or the embedded corpus. The
last line is one JSON object:

    plugin_share       share of the run's wall time spent in this package's functions: data set, results, aggregation
    forwards_per_document  forward passes for each document, at batch size 1
    vs_naive           documents per second in batches of 16 over one document at a time
    vs_forward         time of the forward passes alone over the whole run, both in batches of 16
    peak_mb            highest resident memory of the process
"""

from __future__ import annotations

import functools
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import lm_eval
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from measuring import options_of

from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.corpora import mini
from dialeval_plugin.hosts.lm_eval.tasks import ratings
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS
from dialeval_plugin.hosts.registration import register
from dialeval_plugin.testing.tiny_language_model import train_tiny_language_model


class Timer:
    """Adds up the time spent in the functions that it wraps, once where they call each other, and counts the calls."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0
        self._depth = 0

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` with its time and calls counted here."""

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            self._depth += 1
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.perf_counter() - start

        return timed


class Run(NamedTuple):
    """One lm-eval run."""

    seconds: float
    documents: int
    forward_seconds: float
    forwards: int


def evaluate(model: Path, task: str, batch_size: int, limit: int | None) -> Run:
    judge = HFLM(pretrained=str(model), device="cpu", dtype="float32", batch_size=batch_size)
    timer = Timer()
    judge._model.forward = timer.wrap(judge._model.forward)
    start = time.perf_counter()
    manager = TaskManager(include_path=str(tasks_path()), include_defaults=False)
    results = lm_eval.simple_evaluate(judge, tasks=[task], task_manager=manager, limit=limit, bootstrap_iters=0)
    wall = time.perf_counter() - start
    return Run(wall, results["n-samples"][task]["effective"], timer.seconds, timer.calls)


def available_task() -> str:
    from dialeval_plugin.corpora.readers import dstc10

    try:
        dstc10.read("dgu")
    except MissingPrerequisite:
        return "dstc10_dialog_mini"
    return "dstc10_dialog_dgu"


def main() -> None:
    limit = 96 if options_of(__doc__, "under a minute, with fewer documents").parse_args().quick else None
    os.environ["HF_HUB_OFFLINE"] = "1"
    register()
    plugin = Timer()
    for name in ("dstc10_dataset", "mini_dataset", "process_results", *KINDS["rating"].printed):
        setattr(ratings, name, plugin.wrap(getattr(ratings, name)))
    task = available_task()
    with tempfile.TemporaryDirectory() as scratch:
        examples = [(item, item.ratings[mini.QUALITY][0] == 1) for item in mini.read_examples("train")]
        model = train_tiny_language_model(examples, Path(scratch), n_steps=20)
        naive = evaluate(model, task, 1, limit)
        plugin.seconds = 0.0
        batched = evaluate(model, task, 16, limit)
    forward = f"{batched.forward_seconds:.1f} s of it forward passes"
    print(f"{task}: {batched.documents} documents in {batched.seconds:.1f} s, {forward}")
    print(f"this package's functions: {plugin.seconds:.2f} s, {100 * plugin.seconds / batched.seconds:.1f} % of the run")
    result = {
        "plugin_share": round(plugin.seconds / batched.seconds, 4),
        "forwards_per_document": round(naive.forwards / naive.documents, 3),
        "vs_naive": round((batched.documents / batched.seconds) / (naive.documents / naive.seconds), 2),
        "vs_forward": round(batched.forward_seconds / batched.seconds, 3),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
