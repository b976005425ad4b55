"""What intervals of the statistics of ratings hold on clustered data, beside those that take rows for independent.

`python -m reproduction.coverage.ratings --document reproduction/coverage/NOTES.md` writes the table. Data: contexts that five
systems answer, and three raters who rate each answer from 1 to 5; 30 % of the variance of what is good, and of what the
evaluator sees wrongly, is shared by the answers to a context. 300 data sets: a share of 95 % has a standard error of 1.3 %.
The truth is that of 40,000 contexts.
"""

from __future__ import annotations

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.labels.table import JudgedLabels, LabelTable, Scale
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from dialeval_plugin.statistics.annotators.alternative_annotator_test import alternative_annotator_test
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, Bootstrap, Estimate
from dialeval_plugin.statistics.choices.selection import quality_of_kept
from dialeval_plugin.statistics.correlation import level_correlations
from dialeval_plugin.statistics.levels import ScoredRatings
from dialeval_plugin.statistics.raters import in_place_of_raters
from dialeval_plugin.statistics.reliability import intraclass_correlation
from reproduction.documents import script_parser, write_tables

ICC, SYSTEMS, RATERS, SETS, ROUNDS = 0.3, 5, 3, 300, 400
N_CLUSTERS = (30, 100)


def drawn(n_clusters: int, generator: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return scores, shape (contexts times systems,), and ratings, with a column for each rater."""

    def shared(spread: float = 1.0) -> FloatArray:
        common = generator.normal(size=(n_clusters, 1))
        return np.asarray(spread * (np.sqrt(ICC) * common + np.sqrt(1 - ICC) * generator.normal(size=(n_clusters, SYSTEMS))))

    quality = (shared() + np.linspace(-0.5, 0.5, SYSTEMS)).reshape(-1)
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
    if not is_by_row:
        of_items = ScoredRatings(scores=scores, ratings=ratings.mean(axis=1), clusters=contexts, items=contexts)
        name = "pairwise_difference_pearson"
        found[name] = level_correlations(of_items, average_by="item", coefficients=[name], bootstrap=bootstrap)[name]
    return found


def shares_held(n_clusters: int, truth: dict[str, float], sets: int = SETS) -> dict[str, dict[str, float]]:
    """Return by kind of interval the share of data sets whose interval of each statistic contains the truth."""
    generator = np.random.default_rng([3, n_clusters])
    kinds = {
        "percentile": (Bootstrap(ROUNDS), False),
        "expanded": (Bootstrap(ROUNDS, interval="expanded"), False),
        "rows": (Bootstrap(ROUNDS), True),
    }
    held: dict[str, dict[str, int]] = {kind: {} for kind in kinds}
    for _ in range(sets):
        scores, ratings = drawn(n_clusters, generator)
        for kind, (bootstrap, is_by_row) in kinds.items():
            for name, one in estimates(scores, ratings, bootstrap, is_by_row=is_by_row).items():
                is_held = one.ci_low is not None and one.ci_high is not None and one.ci_low <= truth[name] <= one.ci_high
                held[kind][name] = held[kind].get(name, 0) + is_held
    return {kind: {name: 100 * n / sets for name, n in of.items()} for kind, of in held.items()}


def main() -> None:
    """Simulate, and write the table."""
    parser = script_parser(__doc__)
    parser.add_argument("--sets", type=int, default=SETS)
    arguments = parser.parse_args()
    whole = estimates(*drawn(40_000, np.random.default_rng(2)), NO_RESAMPLES, is_by_row=False)
    truth = {name: float(one.value) for name, one in whole.items() if one.value is not None}
    held = {n: shares_held(n, truth, arguments.sets) for n in N_CLUSTERS}
    rows: list[TableRow] = [
        {
            f"of 95 %, {arguments.sets} sets": name,
            **{f"{n}: {kind}": f"{of[name]:.1f}" if name in of else "" for n in N_CLUSTERS for kind, of in held[n].items()},
        }
        for name in truth
    ]
    columns = [named_column(name, is_number=place > 0) for place, name in enumerate(rows[0])]
    write_tables(arguments.document, {"coverage:ratings": Table(rows, columns)})


if __name__ == "__main__":
    main()
