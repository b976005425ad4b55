"""Coverage of the intervals of rating statistics on clustered data, next to intervals that take rows for independent.

`python -m reproduction.coverage.ratings --document reproduction/coverage/NOTES.md` writes the table. Data: contexts that five
systems answer, and three raters who rate each answer from 1 to 5; 30 % of the variance of what is good, and of what the
evaluator sees wrongly, is shared by the answers to a context. 2,000 data sets: a share of 95 % has a standard error of 0.5 %.
The truth is that of 40,000 contexts; for soft pairwise accuracy it is the mean over the data sets.
"""

from __future__ import annotations

import numpy as np

from dialeval_plugin.bias.battery import effects_of_change
from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.labels.table import JudgedLabels, LabelTable, Scale
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from dialeval_plugin.statistics.annotators.alternative_annotator_test import alternative_annotator_test
from dialeval_plugin.statistics.annotators.raters import in_place_of_raters
from dialeval_plugin.statistics.annotators.reliability import intraclass_correlation
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, Bootstrap, Counts, Estimate
from dialeval_plugin.statistics.categories import divergence, label_counts
from dialeval_plugin.statistics.choices import best_of_several, quality_of_kept
from dialeval_plugin.statistics.correlation import level_correlations
from dialeval_plugin.statistics.levels import ScoredRatings
from reproduction.documents import script_parser, write_tables

ICC, SYSTEMS, RATERS, SETS, ROUNDS = 0.3, 5, 3, 2000, 400
N_CLUSTERS = (30, 100)
SOFT, SOFT_SETS, SOFT_SYSTEMS = "soft_pairwise_accuracy", 500, (5, 20)
"""Statistic whose truth is its mean over data sets of as many contexts, the number of those, and of systems."""


def drawn(n_clusters: int, generator: np.random.Generator, n_systems: int = SYSTEMS) -> tuple[FloatArray, FloatArray]:
    """Return scores, shape (contexts times systems,), and ratings, with a column for each rater."""

    def shared(spread: float = 1.0) -> FloatArray:
        common = generator.normal(size=(n_clusters, 1))
        return np.asarray(spread * (np.sqrt(ICC) * common + np.sqrt(1 - ICC) * generator.normal(size=(n_clusters, n_systems))))

    quality = (shared() + np.linspace(-0.5, 0.5, n_systems)).reshape(-1)
    ratings = np.clip(np.round(quality[:, None] + 0.8 * generator.normal(size=(len(quality), RATERS)) + 3), 1, 5)
    return quality + shared().reshape(-1), ratings


def estimates(scores: FloatArray, ratings: FloatArray, bootstrap: Bootstrap, *, is_by_row: bool) -> dict[str, Estimate]:
    """Return the statistics with intervals of contexts or of rows; those of whole contexts only for the former."""
    n = len(scores)
    contexts = np.arange(n) // SYSTEMS
    clusters = np.arange(n) if is_by_row else contexts
    rated = ScoredRatings(scores=scores, ratings=ratings.mean(axis=1), clusters=clusters)
    good = ScoredRatings(scores=scores, ratings=(ratings.mean(axis=1) > 3).astype(float), clusters=clusters)
    reliability = intraclass_correlation(ratings, clusters=clusters, bootstrap=bootstrap)
    person = in_place_of_raters(scores, ratings, clusters=clusters, bootstrap=bootstrap)
    labels = LabelTable(
        source="drawn",
        ids=[str(row) for row in range(n)],
        labels=ratings,
        scale=Scale("interval"),
        raters=tuple("abc"),
        clusters=[str(of) for of in clusters],
    )
    judged = JudgedLabels(evaluator="drawn", scores=np.clip(np.round(scores + 3), 1, 5), labels=labels, scale=None)
    test = alternative_annotator_test(judged, calibration="none", bootstrap=bootstrap)
    found = {
        "Spearman": level_correlations(rated, coefficients=["spearman"], bootstrap=bootstrap)["spearman"],
        "Kendall's tau-b": level_correlations(rated, coefficients=["kendall_b"], bootstrap=bootstrap)["kendall_b"],
        "AUROC": level_correlations(good, coefficients=["auroc"], bootstrap=bootstrap)["auroc"],
        "in the place of a rater, less a person": person.difference,
        "ICC of one rating": reliability.of_one,
        "ICC of the mean": reliability.of_mean,
        "advantage probability": test.advantage,
        "mean of the best half": quality_of_kept(rated, [0.5], bootstrap=bootstrap)["mean_of_best_50%"],
    }
    chances = np.eye(2)[(scores > 0).astype(int)]
    computed = divergence(chances, label_counts((ratings > 3).astype(float), 2), clusters)
    counts = Counts(n, n, len(np.unique(clusters)), 0)
    # A change that raises the score, and more in some contexts than in others.
    changed = scores + 0.2 + 0.5 * (ratings.reshape(-1, SYSTEMS * RATERS).mean(axis=1).repeat(SYSTEMS) - 3)
    effects = effects_of_change(scores, changed, np.arange(n), clusters, 0.0)
    found |= bootstrap.estimates(
        {"jsd": computed, **{f"{name} of a change": (one.value, one) for name, one in effects.items()}}, counts
    )
    if not is_by_row:
        of_items = ScoredRatings(scores=scores, ratings=ratings.mean(axis=1), clusters=contexts, items=contexts)
        name = "pairwise_difference_pearson"
        found[name] = level_correlations(of_items, average_by="item", coefficients=[name], bootstrap=bootstrap)[name]
        found["regret"] = best_of_several(of_items, bootstrap=bootstrap)["regret"]
    return found


def soft_shares_held(n_clusters: int, n_systems: int) -> dict[str, float]:
    """Return by kind of interval the share of data sets whose interval of soft pairwise accuracy contains the truth."""
    generator = np.random.default_rng([4, n_clusters, n_systems])
    systems, contexts = np.tile(np.arange(n_systems), n_clusters), np.repeat(np.arange(n_clusters), n_systems)
    found: dict[str, list[Estimate]] = {"percentile": [], "expanded": []}
    for _ in range(SOFT_SETS):
        scores, ratings = drawn(n_clusters, generator, n_systems)
        rated = ScoredRatings(scores=scores, ratings=ratings.mean(axis=1), clusters=contexts, systems=systems)
        for kind, of in found.items():
            bootstrap = Bootstrap(ROUNDS, interval=kind)  # type: ignore[arg-type]
            of.append(level_correlations(rated, level="system", coefficients=[SOFT], bootstrap=bootstrap)[SOFT])
    # The p-values in it, and so its value, depend on the number of contexts.
    truth = float(np.mean([one.value for one in found["expanded"] if one.value is not None]))
    return {
        kind: 100 * float(np.mean([one.ci_low is not None and one.ci_low <= truth <= (one.ci_high or 0.0) for one in of]))
        for kind, of in found.items()
    }


def shares_held(n_clusters: int, truth: dict[str, float], sets: int = SETS) -> dict[str, dict[str, float]]:
    """Return by kind of interval the share of data sets whose interval of each statistic contains the truth."""
    generator = np.random.default_rng([3, n_clusters])
    percentile = Bootstrap(ROUNDS, interval="percentile")
    kinds = {
        "percentile": (percentile, False),
        "expanded": (Bootstrap(ROUNDS), False),
        "rows": (percentile, True),
    }
    ends: dict[str, dict[str, list[tuple[float, float]]]] = {kind: {} for kind in kinds}
    for _ in range(sets):
        scores, ratings = drawn(n_clusters, generator)
        for kind, (bootstrap, is_by_row) in kinds.items():
            for name, one in estimates(scores, ratings, bootstrap, is_by_row=is_by_row).items():
                is_there = one.ci_low is not None and one.ci_high is not None
                ends[kind].setdefault(name, []).append(
                    (one.ci_low or 0.0, one.ci_high or 0.0) if is_there else (np.nan, np.nan)
                )
    return {
        kind: {name: 100 * float(np.mean([low <= truth[name] <= high for low, high in of])) for name, of in found.items()}
        for kind, found in ends.items()
    }


def main() -> None:
    """Simulate, and write the table."""
    parser = script_parser(__doc__)
    parser.add_argument("--sets", type=int, default=SETS)
    arguments = parser.parse_args()
    whole = estimates(*drawn(40_000, np.random.default_rng(2)), NO_RESAMPLES, is_by_row=False)
    truth = {name: float(one.value) for name, one in whole.items() if one.value is not None}
    held = {n: shares_held(n, truth, arguments.sets) for n in N_CLUSTERS}
    for n, of_kind in held.items():
        for n_systems in SOFT_SYSTEMS:
            for kind, share in soft_shares_held(n, n_systems).items():
                of_kind[kind][f"{SOFT}, {n_systems} systems, {SOFT_SETS} sets"] = share
    rows: list[TableRow] = [
        {
            f"of 95 %, {arguments.sets} sets": name,
            **{f"{n}: {kind}": f"{of[name]:.1f}" if name in of else "" for n in N_CLUSTERS for kind, of in held[n].items()},
        }
        for name in held[N_CLUSTERS[0]]["expanded"]
    ]
    columns = [named_column(name, is_number=place > 0) for place, name in enumerate(rows[0])]
    write_tables(arguments.document, {"coverage:ratings": Table(rows, columns)})


if __name__ == "__main__":
    main()
