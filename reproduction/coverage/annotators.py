"""Results of the alternative annotator test, and coverage of the intervals of components and of the share of the ceiling.

`python -m reproduction.coverage.annotators` writes its tables into NOTES.md. Data: conversations of three
responses; what people and the evaluator see wrongly, and what is good, shares 30 % of its variance within a conversation.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy import optimize, special, stats

from dialeval_plugin.core.arrays import BoolArray, FloatArray
from dialeval_plugin.labels.table import LabelTable, Scale
from dialeval_plugin.statistics.annotators.alternative_annotator_test import clustered_t_test
from dialeval_plugin.statistics.annotators.reliability import disattenuated_correlation, variance_components
from dialeval_plugin.statistics.bootstrap import Bootstrap

PAGE = Path(__file__).with_name("NOTES.md")
BEGIN, END = "<!-- coverage:annotators -->", "<!-- /coverage:annotators -->"
ICC, ROWS, SETS, EPSILON, ALPHA = 0.3, 3, 1000, 0.2, 0.05
N_RATERS, ERROR, ROUNDS, N_TESTS = 5, 0.2, 400, 2000
N_CLUSTERS = (30, 60, 200)
COMPONENTS = {"conversations": 0.3, "responses": 0.4, "residual": 0.8}
CORRELATION = 0.6


def clustered(n_clusters: int, width: int, generator: np.random.Generator) -> FloatArray:
    """Return standard normal columns, a row a response, that share `ICC` of their variance within a conversation."""
    shared = generator.normal(size=(n_clusters, width)).repeat(ROWS, axis=0)
    return np.asarray(np.sqrt(ICC) * shared + np.sqrt(1 - ICC) * generator.normal(size=(n_clusters * ROWS, width)))


def is_wrong(n_clusters: int, error: float, generator: np.random.Generator) -> BoolArray:
    """Return whether the raters, and in the last column an evaluator with this rate of errors, are wrong about each row."""
    rates = np.array([*[ERROR] * N_RATERS, error])
    return np.asarray(clustered(n_clusters, N_RATERS + 1, generator) < special.ndtri(rates))


def error_at_epsilon() -> float:
    """Return the rate of errors of an evaluator behind which a rater is ahead by exactly `EPSILON`.

    Both are wrong independently of each other. The person is closer where the person alone is with the majority of the others.
    """
    behind = np.arange(N_RATERS)
    others = special.comb(N_RATERS - 1, behind) * ERROR**behind * (1 - ERROR) ** (N_RATERS - 1 - behind)
    majority = float(others @ np.sign(N_RATERS - 1 - 2 * behind))
    return float(optimize.brentq(lambda error: majority * (error - ERROR) - EPSILON, ERROR, 1))


def ahead(answers: FloatArray) -> FloatArray:
    """Return who is closer to the other raters on each row: 1 for the rater of the column, -1 for the evaluator, 0 for none."""
    raters, evaluator = answers[:, :N_RATERS], answers[:, N_RATERS:]
    others = raters.sum(axis=1, keepdims=True) - raters
    shares = np.where(raters == 1, others, N_RATERS - 1 - others), np.where(evaluator == 1, others, N_RATERS - 1 - others)
    return np.asarray(np.sign(shares[0] - shares[1]), dtype=np.float64)


def alternative_annotator_tests(n_clusters: int, n_sets: int = N_TESTS, seed: int = 0) -> dict[str, tuple[float, float]]:
    """Return shares of data sets, by conversations and by rows, with what should not be there and with what should.

    At an evaluator that is behind by epsilon: how often one uncorrected test of one rater is significant, and how often the
    evaluator matches half of the raters. At one that errs as the raters do: how often it does.
    """
    generator = np.random.default_rng([seed, n_clusters])
    conversations, rows = np.arange(n_clusters).repeat(ROWS), np.arange(n_clusters * ROWS)
    found: dict[str, list[list[float]]] = {}
    for kind, error in (("behind by epsilon", error_at_epsilon()), ("as good as a rater", ERROR)):
        for _ in range(n_sets):
            truth = generator.random((len(rows), 1)) < 0.5
            differences = ahead((truth ^ is_wrong(n_clusters, error, generator)).astype(np.float64))
            p_values = [[clustered_t_test(d, of, EPSILON) for d in differences.T] for of in (conversations, rows)]
            rates = [(stats.false_discovery_control(p, method="by") <= ALPHA).mean() for p in p_values]
            found.setdefault(f"{kind}: matches half of the raters", []).append([float(rate >= 0.5) for rate in rates])
            if kind == "behind by epsilon":
                shares = [float(np.mean(np.array(p) <= ALPHA)) for p in p_values]
                found.setdefault("behind by epsilon: one rater, uncorrected", []).append(shares)
    return {name: (float(np.mean(of, axis=0)[0]), float(np.mean(of, axis=0)[1])) for name, of in found.items()}


def coverage(n_clusters: int, n_sets: int = SETS, seed: int = 1) -> dict[str, dict[str, float]]:
    """Return in which share of the data sets each kind of interval holds the truth."""
    generator = np.random.default_rng([seed, n_clusters])
    n_rows = n_clusters * ROWS
    names = [str(row // ROWS) for row in range(n_rows)]
    hits: dict[str, dict[str, int]] = {}
    kinds = {"percentile": Bootstrap(ROUNDS, interval="percentile"), "expanded": Bootstrap(ROUNDS)}
    for _ in range(n_sets):
        of_conversation = generator.normal(size=n_clusters).repeat(ROWS)
        truth = np.sqrt(COMPONENTS["conversations"]) * of_conversation + np.sqrt(COMPONENTS["responses"]) * generator.normal(
            size=n_rows
        )
        noise = clustered(n_clusters, 1, generator)[:, 0]
        unit = truth / np.sqrt(COMPONENTS["conversations"] + COMPONENTS["responses"])
        scores = CORRELATION * unit + np.sqrt(1 - CORRELATION**2) * noise
        ratings = truth[:, None] + np.sqrt(COMPONENTS["residual"]) * generator.normal(size=(n_rows, 4))
        table = LabelTable(
            source="drawn",
            ids=[str(row) for row in range(n_rows)],
            labels=ratings,
            scale=Scale("interval"),
            raters=tuple("abcd"),
            clusters=names,
            has_people=False,
        )
        for kind, bootstrap in {**kinds, "rows": kinds["percentile"]}.items():
            clusters = None if kind == "rows" else names
            estimates = {
                "share of the ceiling": (
                    disattenuated_correlation(scores.tolist(), ratings.tolist(), clusters=clusters, bootstrap=bootstrap),
                    CORRELATION,
                )
            }
            if kind != "rows":
                of = variance_components(table, bootstrap=bootstrap).of
                estimates |= {f"variance of {name}": (of[name], truth) for name, truth in COMPONENTS.items()}
            for name, (one, true) in estimates.items():
                is_held = one.ci_low is not None and one.ci_high is not None and one.ci_low <= true <= one.ci_high
                hits.setdefault(name, {}).setdefault(kind, 0)
                hits[name][kind] += is_held
    return {name: {kind: n / n_sets for kind, n in of.items()} for name, of in hits.items()}


def write() -> None:
    """Simulate, and write the tables between the markers of the page."""
    with ProcessPoolExecutor(2) as pool:
        held = dict(zip(N_CLUSTERS, pool.map(coverage, N_CLUSTERS), strict=True))
        tests = dict(zip(N_CLUSTERS, pool.map(alternative_annotator_tests, N_CLUSTERS), strict=True))
    heads = [f"{n}: {kind}" for n in N_CLUSTERS for kind in ("conversations", "rows")]
    lines = [f"| share of {N_TESTS} sets, % | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for name in tests[N_CLUSTERS[0]]:
        cells = [f"{100 * share:.1f}" for n in N_CLUSTERS for share in tests[n][name]]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    heads = [f"{n}: {kind}" for n in N_CLUSTERS for kind in ("percentile", "expanded", "rows")]
    lines += ["", f"| held, of 95 %, {SETS} sets | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for name in held[N_CLUSTERS[0]]:
        shares = [held[n][name].get(kind) for n in N_CLUSTERS for kind in ("percentile", "expanded", "rows")]
        lines.append(f"| {name} | {' | '.join('' if share is None else f'{100 * share:.1f}' for share in shares)} |")
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    write()
