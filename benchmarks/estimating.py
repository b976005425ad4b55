"""Wall time and peak memory of `estimate` on many rows: `python benchmarks/estimating.py [--quick]`.

Made-up verdicts of ten answers a conversation in a file of JSON lines, 1,000 of which people labelled in a CSV: reading, the
true rate with its interval, and the comparison of the labels with random samples. The goal is a million rows within 60 s and
2 GB. The last line is one JSON object:

    wall_s         from the files to the result
    cpu_s          processor time of the same, for it parts from the wall on a machine that does other work as well
    vs_reading     the processor time by that of reading both files
    peak_mb        highest resident memory
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import numpy as np
from measuring import options_of, peak_mb

from dialeval_plugin.results.true_mean import estimate, read_labelled, sentences

ANSWERS, N_LABELS = 10, 1000


def write_files(folder: Path, n: int) -> tuple[Path, Path]:
    generator = np.random.default_rng(0)
    passes = generator.random(n) < 0.7
    verdicts = generator.random(n) < np.where(passes, 0.9, 0.3)
    scores, labels = folder / "scores.jsonl", folder / "labels.csv"
    with scores.open("w", encoding="utf-8") as file:
        for row, verdict in enumerate(verdicts.tolist()):
            line = {"id": f"c{row // ANSWERS}:{row % ANSWERS}", "conversation": f"c{row // ANSWERS}", "score": int(verdict)}
            file.write(json.dumps(line) + "\n")
    with labels.open("w", encoding="utf-8") as file:
        file.write("id,label\n")
        for row in generator.choice(n, N_LABELS, replace=False).tolist():
            file.write(f"c{row // ANSWERS}:{row % ANSWERS},{'pass' if passes[row] else 'fail'}\n")
    return scores, labels


def main() -> None:
    arguments = options_of(__doc__, "50,000 rows instead of 1,000,000").parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder), 50_000 if arguments.quick else 1_000_000)
        started = time.process_time()
        read_labelled(*files)
        reading = time.process_time() - started
        wall, cpu = time.perf_counter(), time.process_time()
        found = []
        peak = peak_mb(lambda: found.append(estimate(*files)))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print("\n".join(sentences(found[0])))
    result = {"wall_s": round(wall, 1), "cpu_s": round(cpu, 1), "vs_reading": round(cpu / reading, 2), "peak_mb": round(peak)}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
