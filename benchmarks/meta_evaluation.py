"""Wall time and peak memory of coefficients with intervals on many rows: `python benchmarks/meta_evaluation.py [--quick]`.

Made-up scores with ten responses a dialogue and ratings from 1 to 5; and the hardest case, where every row is a cluster of
its own and both columns are continuous. The goal is a million rows with a thousand rounds within 60 s and 2 GB on two cores;
both wall time and processor time are printed, for they part on a machine that does other work as well.
"""

from __future__ import annotations

import time

import numpy as np
from measuring import options_of, peak_mb

from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.correlation import level_correlations
from dialeval_plugin.statistics.levels import ScoredRatings

COEFFICIENTS = ("pearson", "spearman", "kendall_b")
RESPONSES = 10


def clustered(n: int) -> ScoredRatings:
    generator = np.random.default_rng(0)
    clusters = np.arange(n) // RESPONSES
    quality = generator.normal(size=n // RESPONSES + 1)[clusters] + generator.normal(size=n)
    ratings = np.clip((quality + 3).round(), 1, 5)
    return ScoredRatings(scores=quality + generator.normal(size=n), ratings=ratings, clusters=clusters)


def continuous(n: int) -> ScoredRatings:
    generator = np.random.default_rng(0)
    ratings = generator.normal(size=n)
    return ScoredRatings(scores=ratings + generator.normal(size=n), ratings=ratings)


def measure(name: str, rated: ScoredRatings, bootstrap: Bootstrap) -> None:
    started, cpu = time.perf_counter(), time.process_time()
    results = []
    peak = peak_mb(
        lambda: results.append(level_correlations(rated, level="turn", coefficients=COEFFICIENTS, bootstrap=bootstrap))
    )
    wall = time.perf_counter() - started
    print(
        f"{name}: {len(rated.scores)} rows, {bootstrap.rounds} rounds, {bootstrap.interval}: "
        f"{wall:.1f} s wall, {time.process_time() - cpu:.1f} s CPU, peak {peak:.0f} MB"
    )
    for found in results[0].values():
        print(f"  {found}, interval {'exact' if found.bins is None else f'from bins {found.bins}'}")


def main() -> None:
    parser = options_of(__doc__, "50,000 rows instead of 1,000,000")
    parser.add_argument("--rounds", type=int, default=1000)
    arguments = parser.parse_args()
    n = 50_000 if arguments.quick else 1_000_000
    for interval in ("percentile", "bca"):
        measure("ten rows a cluster, ratings 1-5", clustered(n), Bootstrap(arguments.rounds, interval=interval))
    measure("no clusters, continuous", continuous(n), Bootstrap(arguments.rounds))


if __name__ == "__main__":
    main()
