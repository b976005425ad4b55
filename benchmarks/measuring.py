"""Shared parts of the benchmarks: options, interleaved rounds, padded batches, and the memory of a process of its own."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def options_of(description: str | None, quick: str, *, model: str = "", threads: int | None = None) -> argparse.ArgumentParser:
    """Return the options that benchmarks have; those of one that measures memory begin with `model`, what its folder holds."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    if model:
        parser.add_argument("--model", help=model)
        parser.add_argument("--measure-memory", type=int, nargs="+", help=argparse.SUPPRESS)
    if threads is not None:
        parser.add_argument("--threads", type=int, default=threads, help="of torch")
    return parser


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Time that `work` takes; with `time.process_time`, what else the machine does counts for nobody."""
    start = clock()
    work()
    return clock() - start


def interleaved(
    work: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Return the times of each round, so that whatever else the machine does meets all alike; before, all run once."""
    for run in work.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, run in work.items():
            times[name].append(seconds(run, clock))
    return times


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median of the ratios within each round: what slows a round slows both."""
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


def padded_batches(rows: Iterable[Sequence[int]], size: int) -> list[dict[str, torch.Tensor]]:
    """Return inputs of a transformer, sorted by length, `size` rows at a time."""
    # Not for all: a benchmark of statistics is to measure no memory of torch's.
    import torch

    ordered = sorted(rows, key=len)
    batches = []
    for start in range(0, len(ordered), size):
        batch = ordered[start : start + size]
        length = len(batch[-1])
        ids = torch.tensor([[*row, *[0] * (length - len(row))] for row in batch])
        mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in batch])
        batches.append({"input_ids": ids, "attention_mask": mask})
    return batches


def resident_mb(field: str) -> float:
    """A field of this process' status: VmRSS is what it holds, VmHWM the most that it held."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines())
    return int(status[field].split()[0]) / 1024


def peak_mb(work: Callable[[], object]) -> float:
    """Run `work` and return the highest resident memory meanwhile."""
    # Linux: forget the peak of what was before.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    work()
    return resident_mb("VmHWM")


def memory_figures(benchmark: str, *arguments: str, sizes: tuple[int, int], what: str) -> dict[str, float]:
    """Run a benchmark with `--measure-memory`, print the number of each size, and return what stands in the result."""
    command = [sys.executable, benchmark, *arguments, "--measure-memory", *map(str, sizes)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    small, large = map(float, printed.split())
    print(f"highest memory: {small:.0f} MB for {sizes[0]}, {large:.0f} MB for {sizes[1]} {what}")
    return {"peak_mb": round(large, 1), "memory_growth": round(large / small, 2)}
