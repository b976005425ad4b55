"""Coverage of intervals of the true rate in simulated conversations, ours next to those of other packages.

Conversations have one to nine rows, whose quality has an intraclass correlation of about 0.3; a judge of pass and fail finds
90 % of the passes and 75 % of the failures, and errs by conversation, too. Other packages are compared where they are installed
(`reproduction/references/estimation.py` says which):

    python -m reproduction.coverage.estimation --document reproduction/coverage/NOTES.md
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import norm

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.reports.tables import Table, TableColumn
from dialeval_plugin.statistics.estimation import true_mean as estimation
from dialeval_plugin.statistics.estimation.sample import REFUSED, Sample, next_rows, representativeness
from reproduction.documents import script_parser, write_tables

RATE, CONVERSATIONS = 0.75, 300
HAS_OTHERS = all(map(importlib.util.find_spec, ("ppi_py", "judgy", "truescore")))
OURS = ("ppi", "rogan-gladen", "labels only", "drawn by `label`", "difference")
OTHERS = ("ppi-python", "truescore PPI", "truescore PPI, clustered", "judgy", "truescore Rogan-Gladen")


def rows_of(generator: np.random.Generator, clusters: IntArray, shared: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Passes and verdicts of one chatbot; `shared` is how hard each conversation is for any."""
    n, n_clusters = len(clusters), len(shared)
    latent = np.sqrt(0.45) * shared[clusters] + np.sqrt(0.55) * generator.normal(size=n)
    passes = (latent < norm.ppf(RATE)).astype(float)
    mood = np.sqrt(0.3) * generator.normal(size=n_clusters)[clusters] + np.sqrt(0.7) * generator.normal(size=n)
    return passes, (mood < norm.ppf(np.where(passes == 1, 0.9, 0.25))).astype(float)


def simulate(n_labelled: int, sets: int, *, is_whole: bool) -> dict[str, Any]:
    """Share of intervals that hold the rate, and their mean width, by method; and of random labels that are refused.

    `n_labelled` conversations have all rows labelled (`is_whole`), or as many rows of all.
    """
    generator = np.random.default_rng(0)
    held, widths = defaultdict[str, list[bool]](list), defaultdict[str, list[float]](list)
    refused = []
    for number in range(sets):
        sizes = generator.integers(1, 10, CONVERSATIONS)
        clusters, shared = np.repeat(np.arange(CONVERSATIONS), sizes), generator.normal(size=CONVERSATIONS)
        passes, verdicts = rows_of(generator, clusters, shared)
        among = clusters if is_whole else np.arange(len(clusters))
        chosen = np.isin(among, generator.choice(int(among.max()) + 1, n_labelled, replace=False))
        sample = Sample.of(verdicts, np.where(chosen, passes, np.nan), clusters=clusters, is_rate=True)
        found = list(ours(sample, passes, generator, clusters, shared, chosen))
        if HAS_OTHERS:
            found += others(passes, verdicts, chosen, clusters, is_whole=is_whole)
        for name, low, high in found:
            held[name].append(low <= (0.0 if name == "difference" else RATE) <= high)
            widths[name].append(high - low)
        if number < 200:
            likeness = representativeness(sample, rounds=200, seed=number)
            refused.append(likeness is not None and likeness.p_value < REFUSED)
    labelled = "conversations" if is_whole else "rows"
    shares = {name: 100 * float(np.mean(one)) for name, one in held.items()}
    shares |= {f"{name} width": float(np.mean(one)) for name, one in widths.items()}
    return {"labelled": f"{n_labelled} {labelled}", **shares, "refused": 100 * float(np.mean(refused))}


def ours(
    sample: Sample,
    passes: FloatArray,
    generator: np.random.Generator,
    clusters: IntArray,
    shared: FloatArray,
    chosen: np.ndarray[Any, np.dtype[np.bool_]],
) -> Iterator[tuple[str, float, float]]:
    """Our intervals."""
    found = {"ppi": estimation.true_mean(sample, method="ppi")}
    # A few of the smallest sets do not show that the judge is better than chance.
    with contextlib.suppress(InputError):
        found["rogan-gladen"] = estimation.true_mean(sample, method="rogan-gladen")
    n_labels, labels = int(chosen.sum()), np.full(len(passes), np.nan)
    for n_next in (n_labels // 2, n_labels - n_labels // 2):
        rows = next_rows(sample.scores, labels, n_next, is_rate=True, seed=int(generator.integers(2**31)))
        labels[rows] = passes[rows]
    drawn = Sample.of(sample.scores, labels, clusters=clusters, is_rate=True, is_by_score=True)
    found["drawn by `label`"] = estimation.true_mean(drawn)
    means = {name: one.mean for name, one in found.items()} | {"labels only": found["ppi"].labels_only}
    of_b, verdicts_of_b = rows_of(generator, clusters, shared)
    b = Sample.of(verdicts_of_b, np.where(chosen, of_b, np.nan), clusters=clusters, is_rate=True)
    means["difference"] = estimation.difference_of_true_means(sample, b).difference
    for name, mean in means.items():
        if mean.ci_low is not None and mean.ci_high is not None:
            yield name, mean.ci_low, mean.ci_high


def others(
    passes: FloatArray, verdicts: FloatArray, chosen: Any, clusters: IntArray, *, is_whole: bool
) -> Iterator[tuple[str, float, float]]:
    """Those of other packages on the same rows."""
    import judgy
    import ppi_py
    import truescore

    y, rows = passes[chosen], np.flatnonzero(chosen)
    low, high = ppi_py.ppi_mean_ci(y, verdicts[chosen], verdicts[~chosen], alpha=0.05)
    yield "ppi-python", low.item(), high.item()
    one = truescore.ppi_estimate(verdicts, y, rows)
    yield "truescore PPI", one.low, one.high
    if is_whole:
        one = truescore.ppi_estimate(verdicts, y, rows, clusters=clusters)
        yield "truescore PPI, clustered", one.low, one.high
    try:
        one = truescore.rogan_gladen_estimate(verdicts, y, rows)
        _, low, high = judgy.estimate_success_rate(y, verdicts[chosen], verdicts, bootstrap_iterations=300)
    except ValueError:
        return  # labels of one kind, or a judge that is no better than chance among them
    yield "truescore Rogan-Gladen", one.low, one.high
    yield "judgy", low, high


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--sets", type=int, default=1000)
    arguments = parser.parse_args()
    # Refused sets are counted in another column; here each set counts.
    vars(estimation)["representativeness"] = lambda sample, seed: None
    np.random.seed(0)  # noqa: NPY002 - what judgy draws from
    settings = [(30, True), (100, True), (60, False), (200, False)]
    rows = [simulate(n, arguments.sets, is_whole=is_whole) for n, is_whole in settings]

    def cell(name: str) -> TableColumn:
        return TableColumn(name, lambda row: f"{row[name]:.1f} ({row[f'{name} width']:.2f})" if name in row else "")

    columns = [cell(name) for name in OURS + (OTHERS if HAS_OTHERS else ())]
    refused = TableColumn("refused", lambda row: f"{row['refused']:.1f}")
    labelled = TableColumn("labelled", lambda row: str(row["labelled"]), is_number=False)
    write_tables(arguments.document, {"coverage:estimation": Table(rows, [labelled, *columns, refused])})


if __name__ == "__main__":
    main()
