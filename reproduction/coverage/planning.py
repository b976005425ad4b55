"""Coverage of intervals and error rates of tests on clustered data, and whether the stated power is reached.

`python -m reproduction.coverage.planning` writes its tables into NOTES.md. Data: clusters of one to eight rows
whose values share 30 % of their variance; 1,000 data sets, 12,000 for false positives of means and 3,000 for those of
correlations: a share of 5 % has a standard error of 0.7, 0.2 or 0.4 %.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.statistics.bootstrap import Bootstrap, Interval, Resampled, draw_clusters
from dialeval_plugin.statistics.coefficients.pearson import moments, pearson_of_moments
from dialeval_plugin.statistics.ranking import rank_permutation_tests
from dialeval_plugin.statistics.significance import detectable_difference

PAGE = Path(__file__).with_name("NOTES.md")
BEGIN, END = "<!-- coverage:planning -->", "<!-- /coverage:planning -->"
ICC, SETS, CLUSTERS = 0.3, 1000, (20, 30, 60, 200)
PAIRED, OF_TWO = "paired difference", "difference of two"
TESTS = (PAIRED, "percentile"), (PAIRED, "expanded"), (OF_TWO, "expanded")
"""Statistics that are tested, and the interval by which; evaluators are told apart by permutations."""
KINDS = {"percentile": Bootstrap(interval="percentile"), "expanded": Bootstrap()}


class Data(NamedTuple):
    """Rows of some clusters: ratings, and scores of two evaluators that agree with them alike."""

    clusters: IntArray
    ratings: FloatArray
    a: FloatArray
    b: FloatArray

    def sums(self, *columns: FloatArray) -> FloatArray:
        """Return the sums of columns by cluster."""
        return np.stack([np.bincount(self.clusters, column) for column in columns], axis=1)


def drawn(n_clusters: int, generator: np.random.Generator, correlation: float = 0.5, gain: float = 0.0) -> Data:
    """Return one data set; evaluator A's correlation is higher by `gain`."""
    clusters = np.repeat(np.arange(n_clusters), generator.integers(1, 9, size=n_clusters))
    shared, own = (generator.normal(size=(3, n)) for n in (n_clusters, len(clusters)))
    y, noise_a, noise_b = np.sqrt(ICC) * shared[:, clusters] + np.sqrt(1 - ICC) * own
    a, b = (r * y + np.sqrt(1 - r**2) * noise for r, noise in ((correlation + gain, noise_a), (correlation, noise_b)))
    return Data(clusters, y, a, b)


def statistics_of(data: Data) -> dict[str, Resampled]:
    """Return a mean, a difference of means, a correlation and a difference of two, as they are resampled."""
    one, likert = np.ones(len(data.ratings)), np.clip(np.round(1.2 * data.ratings + 3.4), 1, 5)
    pearson_a, pearson_b = (
        Resampled(pearson_of_moments, data.sums(*moments(scores, data.ratings).T)) for scores in (data.a, data.b)
    )

    def mean(values: FloatArray) -> Resampled:
        return Resampled(lambda sums: sums[:, 0] / sums[:, 1], data.sums(values, one))

    return {
        "mean": mean(data.ratings),
        "mean of 1 to 5": mean(likert),
        "share of good ones": mean((data.ratings > -0.84).astype(float)),
        PAIRED: mean(data.a - data.b),
        "Pearson": pearson_a,
        OF_TWO: pearson_a - pearson_b,
    }


def truths() -> dict[str, float]:
    """Return what the intervals are to hold."""
    cuts = [(k + 0.5 - 3.4) / 1.2 for k in range(1, 5)]
    likert = 1 + sum(stats.norm.sf(cut) for cut in cuts)
    return {
        "mean": 0.0,
        "mean of 1 to 5": likert,
        "share of good ones": stats.norm.cdf(0.84),
        PAIRED: 0.0,
        "Pearson": 0.5,
        OF_TWO: 0.0,
    }


def row_wise(data: Data) -> dict[str, Interval]:
    """Return the intervals of packages that take rows for independent: of a t-test, and Fisher's of a correlation."""
    likert = np.clip(np.round(1.2 * data.ratings + 3.4), 1, 5)
    columns = {
        "mean": data.ratings,
        "mean of 1 to 5": likert,
        "share of good ones": (data.ratings > -0.84).astype(float),
        PAIRED: data.a - data.b,
    }
    found = {}
    for name, values in columns.items():
        half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
        found[name] = Interval(float(np.mean(values) - half), float(np.mean(values) + half))
    low, high = stats.pearsonr(data.a, data.ratings).confidence_interval()
    found["Pearson"] = Interval(float(low), float(high))
    return found


@cache
def _draws(n_clusters: int) -> FloatArray:
    """The draws that every `Bootstrap()` makes of so many clusters."""
    return draw_clusters(n_clusters, Bootstrap().rounds, np.random.default_rng(Bootstrap().seed))


def intervals(name: str, entry: Resampled) -> dict[str, Interval]:
    """Return both kinds of intervals, as `Bootstrap.intervals` makes them one by one."""
    values = entry.statistic(_draws(entry.sums.shape[0]) @ entry.sums)
    return {kind: bootstrap.interval_on_resamples(name, values, entry) for kind, bootstrap in KINDS.items()}


def _holds(interval: Interval, truth: float) -> bool:
    low, high = interval[0], interval[1]
    return low is not None and high is not None and bool(low <= truth <= high)


def coverage(n_clusters: int, n_sets: int = SETS, seed: int = 0) -> dict[str, dict[str, float]]:
    """Return for each statistic in which share of the data sets each kind of interval holds the truth."""
    generator, known = np.random.default_rng([seed, n_clusters]), truths()
    hits: dict[str, dict[str, int]] = {name: {} for name in known}
    for _ in range(n_sets):
        data = drawn(n_clusters, generator)
        by_rows = row_wise(data)
        for name, entry in statistics_of(data).items():
            own = intervals(name, entry)
            for kind, interval in {**own, **({"rows": by_rows[name]} if name in by_rows else {})}.items():
                hits[name][kind] = hits[name].get(kind, 0) + _holds(interval, known[name])
    return {name: {kind: n / n_sets for kind, n in of.items()} for name, of in hits.items()}


def false_positives_and_power(n_clusters: int, n_sets: int = SETS, seed: int = 1) -> list[tuple[str, float, float, float]]:
    """Return tests with their share of false positives, their power where 0.8 is stated, and the row-wise false positives.

    The difference with a stated power of 0.8 is the median of those that 20 pilots of as many clusters state.
    """
    found = []
    for place, (name, kind) in enumerate(TESTS):
        generator = np.random.default_rng([seed, n_clusters, place])
        pilots = [statistics_of(drawn(n_clusters, generator))[name] for _ in range(20)]
        stated = [detectable_difference(pilot, bootstrap=KINDS[kind]) for pilot in pilots]
        gain = float(np.median([one.difference for one in stated if one is not None]))
        is_mean = name == PAIRED
        n_null = n_sets * (12 if is_mean else 3)
        n_false, n_seen, n_rows = 0, 0, 0
        for number in range(n_null):
            null = drawn(n_clusters, generator)
            is_of_power = number < n_sets
            if is_mean:
                interval = intervals(name, statistics_of(null)[name])[kind]
                n_false += not _holds(interval, 0)
                # A difference moves the ends of the interval by as much.
                n_seen += is_of_power and interval.ci_low is not None and interval.ci_low + gain > 0
                n_rows += is_of_power and not _holds(row_wise(null)[name], 0)
            else:
                n_false += _permutation(null) <= 0.05
                if is_of_power:
                    n_seen += _permutation(drawn(n_clusters, generator, gain=gain)) <= 0.05
                    n_rows += _permutation(null._replace(clusters=np.arange(len(null.a)))) <= 0.05
        test = f"means, {kind}" if is_mean else "two correlations, permutation"
        found.append((test, n_false / n_null, n_seen / n_sets, n_rows / n_sets))
    return found


def _permutation(data: Data) -> float:
    scores = {"a": data.a, "b": data.b}
    found = rank_permutation_tests(scores, data.ratings, clusters=data.clusters, rounds=400)["a", "b"]
    return 1.0 if found is None else found


def write() -> None:
    """Simulate, and write the tables between the markers of the page."""
    of_n = {n: coverage(n) for n in CLUSTERS}
    heads = [f"{n}: {kind}" for n in CLUSTERS for kind in ("percentile", "expanded", "rows")]
    lines = [f"| of 95 %, {SETS} sets | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for name in truths():
        cells = [of_n[n][name].get(kind) for n in CLUSTERS for kind in ("percentile", "expanded", "rows")]
        lines.append(f"| {name} | {' | '.join('' if cell is None else f'{100 * cell:.1f}' for cell in cells)} |")
    lines += [
        "",
        "| test | clusters | false positives, of 5 % | seen, of 80 % | false positives by rows |",
        "|---|---|---|---|---|",
    ]
    for n in CLUSTERS[1:]:
        for test, false, seen, by_rows in false_positives_and_power(n):
            lines.append(f"| {test} | {n} | {100 * false:.1f} | {100 * seen:.1f} | {100 * by_rows:.1f} |")
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    write()
