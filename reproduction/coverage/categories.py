"""Coverage of the intervals of label statistics on clustered labels, next to intervals that draw single rows.

`python -m reproduction.coverage.categories` writes its table into NOTES.md. Four responses a conversation; how
good its responses are, and how often the evaluator is right in it, each share 30 % of their variance within a conversation
(beta-binomial); two people label each response and are right 9 times in 10. 1,000 data sets, so that a share of 95 % has a
standard error of 0.7 %. The truth is that of 200,000 conversations.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.labels.table import Scale
from dialeval_plugin.statistics.bootstrap import Bootstrap, Resampled
from dialeval_plugin.statistics.categories import evaluator_cells, label_counts, label_statistics, resampled_alpha

PAGE = Path(__file__).with_name("NOTES.md")
BEGIN, END = "<!-- coverage:categories -->", "<!-- /coverage:categories -->"
ICC, ROWS, SETS, ROUNDS = 0.3, 4, 1000, 500
CLUSTERS = (20, 30, 50, 100, 200)
NAMES = ("accuracy", "balanced_accuracy", "tpr", "tnr", "precision", "f1", "mcc", "kappa", "ac1", "alpha")


def drawn(n_clusters: int, generator: np.random.Generator) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the evaluator's labels, those of two people, and the number of each row's conversation."""

    def rates(mean: float) -> FloatArray:
        size = 1 / ICC - 1
        return np.repeat(generator.beta(mean * size, (1 - mean) * size, n_clusters), ROWS)

    good = generator.random(n_clusters * ROWS) < rates(0.6)
    is_right = generator.random(len(good)) < rates(0.8)
    people = np.where(generator.random((len(good), 2)) < 0.9, good[:, None], ~good[:, None])
    return (good == is_right).astype(np.float64), people.astype(np.float64), np.repeat(np.arange(n_clusters), ROWS)


def statistics_of(said: FloatArray, people: FloatArray, clusters: IntArray) -> dict[str, Resampled]:
    """Return the statistics as they are resampled."""
    cells = evaluator_cells(said, label_counts(people, 2), clusters)
    named = label_statistics(Scale("binary", ("fail", "pass")))
    found = {name: Resampled(named[name], cells) for name in NAMES if name in named}
    return {**found, "alpha": resampled_alpha(people, clusters, "binary", 2)}


def shares_held(n_clusters: int, truth: dict[str, float], sets: int = SETS) -> dict[str, dict[str, float]]:
    """Return by kind of interval the share of data sets whose interval of each statistic holds the truth."""
    generator = np.random.default_rng(n_clusters)
    held = {kind: dict.fromkeys(NAMES, 0) for kind in ("expanded", "percentile", "rows")}
    for _ in range(sets):
        said, people, clusters = drawn(n_clusters, generator)
        of_conversations = statistics_of(said, people, clusters)
        of_rows = statistics_of(said, people, np.arange(len(said)))
        percentile = Bootstrap(rounds=ROUNDS, interval="percentile")
        kinds = {
            "expanded": (Bootstrap(rounds=ROUNDS), of_conversations),
            "percentile": (percentile, of_conversations),
            "rows": (percentile, of_rows),
        }
        for kind, (bootstrap, resampled) in kinds.items():
            for name, interval in bootstrap.intervals(resampled).items():
                low, high = interval.ci_low, interval.ci_high
                held[kind][name] += low is not None and high is not None and low <= truth[name] <= high
    return {kind: {name: n / sets for name, n in of_kind.items()} for kind, of_kind in held.items()}


def main() -> None:
    """Simulate, and write the table."""
    truth = {name: one.value for name, one in statistics_of(*drawn(200_000, np.random.default_rng(1))).items()}
    lines = [
        "Share of 1,000 data sets whose 95 % interval contains the true value: expanded and percentile intervals of whole",
        "conversations, and those of single rows, as other packages draw them.",
        "",
        f"| conversations | interval | {' | '.join(NAMES)} |",
        f"| --- | --- |{' ---: |' * len(NAMES)}",
    ]
    for n_clusters in CLUSTERS:
        for kind, held in shares_held(n_clusters, truth).items():
            lines.append(f"| {n_clusters} | {kind} | {' | '.join(f'{100 * held[name]:.1f} %' for name in NAMES)} |")
        print("\n".join(lines[-3:]), flush=True)
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text("\n".join([before + BEGIN, *lines, END + after]), encoding="utf-8")


if __name__ == "__main__":
    main()
