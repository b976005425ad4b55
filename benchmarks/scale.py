"""Streams: memory and speed of `dialeval score` on a short and a long file of JSON lines, ten responses a context; and shards.

The texts are those of the embedded corpus, and of DailyDialog++ where DIALEVAL_DATA_DIR names a folder that has it; where they
are used up, a number is put to context and response, so that no row is another's. Each run is a process of its own with one
thread. The last line is one JSON object:

    rows, responses_per_s, peak_mb      of the long run
    speed_vs_short                      its responses per second of processor time over those of the short run
    memory_vs_short                     its highest resident memory over the short run's
    two_shards                          how many times faster two processes score the short file by shards than one
    shards_processor_time               the processor time of both shards over that of one process for all
    hours_of_one_core_for_1e9           by the long run's speed: no measurement, see benchmarks/NOTES.md

Start-up is left out everywhere. What else the machine does counts in `two_shards` alone, which compares a run for all with the
shards right after it; with --quick it is the median of three such pairs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from measuring import options_of, ratio

from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.corpus import DATA_DIR_VARIABLE
from dialeval_plugin.corpora.readers import dailydialog_pp
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet

WORKER = """
import sys, time
from pathlib import Path
from dialeval_plugin.core.registry import option_kinds, pairs_from_text
from dialeval_plugin.core.registry import load_scorer, scorer_factory
from dialeval_plugin.streams.run import ScoreRun
from dialeval_plugin.corpora.scored_input import Shard, Source

name, source, output, shard, *options = sys.argv[1:]
scorer = load_scorer(name, **pairs_from_text(options, "--option", option_kinds(scorer_factory(name))))
start, processor = time.perf_counter(), time.process_time()
summary = ScoreRun(scorer, Source(source), Path(output), shard=Shard.parse(shard) if shard else None).score()
seconds, processor = time.perf_counter() - start, time.process_time() - processor
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(summary.n_total, seconds, processor, int(status["VmHWM"].split()[0]) / 1024)
"""


class Run(NamedTuple):
    """Time and memory of a process."""

    rows: float
    seconds: float
    processor_seconds: float
    megabytes: float

    @property
    def rate(self) -> float:
        """Responses per second of processor time."""
        return self.rows / self.processor_seconds


def sets() -> list[ResponseSet]:
    """Contexts with at least ten responses each."""
    found = mini.read_response_sets()
    if folder := os.environ.get(DATA_DIR_VARIABLE):
        for path in sorted(Path(folder, "dailydialog_pp").glob("dev.json*")):
            found += dailydialog_pp.read(path)
    return [one for one in found if len((*one.positive, *one.adversarial)) >= 10]


def rows(number: int) -> Iterator[dict[str, object]]:
    contexts = sets()
    for place in itertools.islice(itertools.count(), -(-number // 10)):
        round_, which = divmod(place, len(contexts))
        one = contexts[which]
        mark = f" {round_}" if round_ else ""
        context = [*one.context[:-1], one.context[-1] + mark]
        for text in (*one.positive, *one.adversarial)[:10]:
            yield {"context": context, "response": text + mark}


def write(path: Path, number: int) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in itertools.islice(rows(number), number))
    return path


def started(arguments: argparse.Namespace, source: Path, output: Path, shard: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, arguments.scorer, str(source), str(output), shard, *arguments.option]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def finished(processes: Sequence[subprocess.Popen[str]]) -> list[Run]:
    """Time and memory of each process, printed when it ends."""
    found = []
    for process in processes:
        printed, _ = process.communicate()
        if process.returncode:
            raise SystemExit(process.returncode)
        found.append(run := Run(*map(float, printed.splitlines()[-1].split())))
        print(f"{run.rows:.0f} rows: {run.seconds:.0f} s, {run.rate:.0f} responses/s, {run.megabytes:.0f} MB", flush=True)
    return found


def main() -> None:
    parser = options_of(__doc__, "a minute or two: 20,000 rows")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the long file; the short one has a tenth")
    parser.add_argument("--scorer", default="general")
    parser.add_argument("--option", action="append", default=[], help="name=value of the scorer; may be repeated")
    arguments = parser.parse_args()
    long = 20_000 if arguments.quick else arguments.rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        short_file, long_file = write(folder / "short.jsonl", long // 10), write(folder / "long.jsonl", long)
        # An export is made once, and not by two processes at a time.
        finished([started(arguments, write(folder / "few.jsonl", 10), folder / "few.scores.jsonl")])
        wholes, parts = [], []
        for _ in range(3 if arguments.quick else 1):
            wholes += finished([started(arguments, short_file, folder / "short.scores.jsonl")])
            parts.append(finished([started(arguments, short_file, folder / f"part-{n}.jsonl", f"{n}/2") for n in (1, 2)]))
        (whole,) = finished([started(arguments, long_file, folder / "long.scores.jsonl")])
    short = min(wholes, key=lambda run: run.processor_seconds)
    result = {
        "rows": whole.rows,
        "responses_per_s": round(whole.rate, 1),
        "peak_mb": round(whole.megabytes, 1),
        "speed_vs_short": round(whole.rate / short.rate, 3),
        "memory_vs_short": round(whole.megabytes / short.megabytes, 3),
        "two_shards": round(ratio([run.seconds for run in wholes], [max(run.seconds for run in pair) for pair in parts]), 2),
        "shards_processor_time": round(
            ratio([sum(run.processor_seconds for run in pair) for pair in parts], [run.processor_seconds for run in wholes]),
            2,
        ),
        "hours_of_one_core_for_1e9": round(1e9 / whole.rate / 3600),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
