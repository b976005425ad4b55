"""Time and memory of reading a table of messages: 1,000,000 rows against 100,000, ten messages a conversation.

Rows are `conversation,speaker,text` of a CSV file, in which the messages of fifty conversations stand mixed, as those of a busy
server do. Each size is read by a process of its own, the small one twice after each of the large one, and every response is
asked for. The last line is one JSON object:

    time_ratio  processor time per row of the large table over that of the small one, median over rounds; 1 is linear
    peak_mb     highest resident memory of the process that reads the large table
    rows_per_s  of the large table, per second of processor time
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

N_AT_A_TIME, N_MESSAGES = 50, 10
SMALL, LARGE = 100_000, 1_000_000


def write_table(path: Path, n_rows: int) -> None:
    """Write messages of conversations, fifty of them mixed."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("conversation", "speaker", "text"))
        for number in range(n_rows):
            block, place = divmod(number, N_AT_A_TIME * N_MESSAGES)
            turn, conversation = divmod(place, N_AT_A_TIME)
            text = f"What number {number} of this table says is about as long as what people write in a chat, a line or so."
            writer.writerow((f"c{block * N_AT_A_TIME + conversation}", ("user", "assistant")[turn % 2], text))


def read_table(path: Path) -> None:
    """Read a table and print the rows, the seconds of processor time and the highest resident memory in MB."""
    from dialeval_plugin.corpora.scored_input import Source

    start = time.process_time()
    n_items = sum(1 for _ in Source(str(path)).items("turn"))
    seconds = time.process_time() - start
    print(json.dumps({"n_items": n_items, "s": seconds, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def measure(path: Path) -> dict[str, float]:
    """Return what a process of its own prints of a table."""
    done = subprocess.run([sys.executable, __file__, "--read", str(path)], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--read", type=Path, help="a table to read; the figures of this process are printed")
    options = parser.parse_args()
    if options.read is not None:
        read_table(options.read)
        return
    with tempfile.TemporaryDirectory() as folder:
        small, large = (Path(folder) / f"{n_rows}.csv" for n_rows in (SMALL, LARGE))
        write_table(small, SMALL)
        write_table(large, LARGE)
        ratios, found = [], {}
        for _ in range(options.rounds):
            found, before, after = measure(large), measure(small), measure(small)
            ratios.append(found["s"] / LARGE / (statistics.mean((before["s"], after["s"])) / SMALL))
            print(f"time ratio {ratios[-1]:.3f}, peak {found['mb']:.0f} MB, small peak {before['mb']:.0f} MB", flush=True)
    figures = {
        "time_ratio": round(statistics.median(ratios), 3),
        "peak_mb": round(found["mb"]),
        "rows_per_s": round(LARGE / found["s"]),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
