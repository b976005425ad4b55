"""What the benchmarks share: medians within rounds, and the memory of a process of its own."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median of the ratios within each round: what slows a round slows both."""
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


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


def peaks_of_a_process(benchmark: str, *arguments: str, sizes: Iterable[int]) -> list[float]:
    """Run a benchmark with `--measure-memory` and return what it prints, one number a size."""
    command = [sys.executable, benchmark, *arguments, "--measure-memory", *map(str, sizes)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    return [float(number) for number in printed.split()]
