"""How long one response takes in a running program: cold, and warm with 1, 8 and 64 callers, next to a bare forward pass.

    python -m benchmarks.latency --document benchmarks/NOTES.md --light build/light/bin/python

`general` scores one response a call. Two installations are measured, each in processes of its own: the full one (this Python,
torch) and the light one (onnxruntime; without --light this Python, which then imports no torch). A cold start is a process
that loads the model, scores one response and ends. The warm calls are made by threads, each of which waits for an answer before
it asks again. In each round the forward pass of the encoder over the same tokens, tokenised beforehand, is timed too, one call
after the other. Ratios are taken within a round, so that what else the machine does counts for both.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

CALLERS = (1, 8, 64)
COLD = """
from pathlib import Path
from dialeval_plugin import load_scorer
from dialeval_plugin.core.dialogue import Example
load_scorer("general", backend={backend!r}).score([Example.from_texts(["Any plans for Sunday?"], "We could go to the river.")])
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(int(status["VmHWM"].split()[0]) / 1024)
"""


def cold(python: str, backend: str, n: int) -> tuple[list[float], float]:
    """Seconds of `n` processes that score one response each, and the highest of their peak memory in MB."""
    times, peaks = [], []
    for _ in range(n):
        start = time.perf_counter()
        done = subprocess.run([python, "-c", COLD.format(backend=backend)], check=True, capture_output=True, text=True)
        times.append(time.perf_counter() - start)
        peaks.append(float(done.stdout))
    return times, max(peaks)


def calls(work: Callable[[int], object], callers: int, n: int) -> tuple[list[float], float, float]:
    """Seconds of each of `n` calls, made by so many threads, seconds of all together, and their seconds of processor time."""
    times: list[float] = []

    def call_all(caller: int) -> None:
        for place in range(caller, n, callers):
            start = time.perf_counter()
            work(place)
            times.append(time.perf_counter() - start)

    start, processor = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(call_all, range(callers)))
    return times, time.perf_counter() - start, time.process_time() - processor


def warm(backend: str, rounds: int, n: int) -> dict[str, dict[str, float]]:
    """Figures by the number of callers, of `rounds` times `n` calls each."""
    from dialeval_plugin import load_scorer
    from dialeval_plugin.corpora import mini

    items = [*mini.read_examples("test"), *mini.read_examples("train")][:n]
    scorer = load_scorer("general", backend=backend)
    judge = scorer._model
    contexts = judge.texts.contexts([tuple(turn.text for turn in item.context) for item in items])
    responses = judge.texts.responses([item.response.text for item in items])
    ids = [[context.ids, response] for context, response in zip(contexts, responses, strict=True)]

    def score(place: int) -> object:
        return scorer.score([items[place % len(items)]])

    def forward(place: int) -> object:
        return judge.runtime.embed(ids[place % len(items)])

    for work in (score, forward):
        calls(work, 1, len(items))
    latencies, rates, beside, work_beside = ({callers: [] for callers in CALLERS} for _ in range(4))
    for _ in range(rounds):
        for callers in CALLERS:
            alone, _, alone_processor = calls(forward, 1, n)
            times, whole, processor = calls(score, callers, n)
            latencies[callers] += times
            rates[callers].append(n / whole)
            beside[callers].append(statistics.median(times) / statistics.median(alone))
            work_beside[callers].append(processor / alone_processor)
    return {
        str(callers): {
            "p50": percentile(latencies[callers], 0.50),
            "p95": percentile(latencies[callers], 0.95),
            "rate": statistics.median(rates[callers]),
            "beside": statistics.median(beside[callers]),
            "work": statistics.median(work_beside[callers]),
        }
        for callers in CALLERS
    }


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which a share of them lies, the nearest one."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main() -> None:
    from reproduction.documents import script_parser, write_tables

    parser = script_parser(__doc__)
    parser.add_argument("--light", default=sys.executable, help="Python of a light installation")
    parser.add_argument("--quick", action="store_true", help="few calls")
    arguments = parser.parse_args()
    n_cold, rounds, n = (3, 2, 64) if arguments.quick else (10, 3, 128)
    starts = ["| | first score, s: p50 | p95 | of the full one | peak MB |", "|---|--:|--:|--:|--:|"]
    table = ["| | callers | ms: p50 | p95 | responses a second | p50, forward passes | processor time, forward passes |"]
    table.append("|---|--:|--:|--:|--:|--:|--:|")
    first = None
    for name, python, backend in (("full, torch", sys.executable, "torch"), ("light, onnxruntime", arguments.light, "onnx")):
        times, peak = cold(python, backend, n_cold)
        first = first or statistics.median(times)
        shown = f"{statistics.median(times):.1f} | {percentile(times, 0.95):.1f} | {statistics.median(times) / first:.2f}"
        starts.append(f"| {name} | {shown} | {peak:.0f} |")
        command = [python, __file__, backend, str(rounds), str(n)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        for callers, found in json.loads(done.stdout.splitlines()[-1]).items():
            shown = f"{1000 * found['p50']:.1f} | {1000 * found['p95']:.1f} | {found['rate']:.0f} | {found['beside']:.2f}"
            shown += f" | {found['work']:.2f}"
            table.append(f"| {name} | {callers} | {shown} |")
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    said = f"{n_cold} cold starts and {rounds * n} calls each; threads of a model (`OMP_NUM_THREADS`): {threads}. "
    said += f"At the end {load:.1f} processes a core wanted the processor."
    write_tables(arguments.document, {"latency": "\n".join([*starts, "", *table, "", said])})


if __name__ == "__main__":
    if len(sys.argv) == 4 and not sys.argv[1].startswith("-"):
        print(json.dumps(warm(sys.argv[1], *map(int, sys.argv[2:]))))
    else:
        main()
