"""Wall time and peak memory of a passport of many rows, from files: `python benchmarks/certifying.py [--quick]`.

Made-up scores with ten responses a conversation, written as `dialeval score` writes them, and labels from 1 to 5 of two people
for every response; and a sample of a thousand labelled conversations with all scores. The goal is a million rows within 60 s
and 2 GB; both wall time and processor time are printed, for they part on a machine that does other work as well.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from measuring import options_of, peak_mb

from dialeval_plugin.passport.certify import Passport, certify

RESPONSES = 10
SAMPLE = 1000
"""Labelled conversations."""


def write_files(folder: Path, n: int) -> tuple[Path, Path, Path]:
    """Write scores, labels of all of them, and labels of a sample."""
    generator = np.random.default_rng(0)
    quality = generator.normal(size=n // RESPONSES + 1)[np.arange(n) // RESPONSES] + generator.normal(size=n)
    scores = quality + generator.normal(size=n)
    labels = np.clip((quality[:, None] + 0.7 * generator.normal(size=(n, 2)) + 3).round(), 1, 5).astype(int).tolist()
    ids = [f"c{row // RESPONSES}:{row}" for row in range(n)]
    paths = folder / "scores.jsonl", folder / "labels.csv", folder / "sample.csv"
    lines = (f'{{"id": "{id}", "score": {score:.6f}}}\n' for id, score in zip(ids, scores.tolist(), strict=True))
    paths[0].write_text("".join(lines), encoding="utf-8")
    for path, rows in zip(paths[1:], (n, min(n, SAMPLE * RESPONSES)), strict=True):
        labelled = (f"{id},{one},{other}\n" for id, (one, other) in zip(ids[:rows], labels, strict=False))
        path.write_text("".join(["id,rater_1,rater_2\n", *labelled]), encoding="utf-8")
    return paths


def measure(name: str, scores: Path, labels: Path, n: int) -> None:
    results: list[Passport] = []
    started, cpu = time.perf_counter(), time.process_time()
    peak = peak_mb(lambda: results.append(certify([scores], labels)))
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(f"{name}: {n} scores, {wall:.1f} s wall, {cpu:.1f} s CPU, peak {peak:.0f} MB")
    for one in results[0].evaluators[0].findings:
        print(f"  {one.key}: {one.verdict}. {one.sentence}")


def main() -> None:
    arguments = options_of(__doc__, "50,000 rows instead of 1,000,000").parse_args()
    n = 50_000 if arguments.quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        scores, labels, sample = write_files(Path(folder), n)
        measure("two labels a row", scores, labels, n)
        measure(f"{SAMPLE} labelled conversations", scores, sample, n)


if __name__ == "__main__":
    main()
