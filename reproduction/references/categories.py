"""Golden values of tests/statistics/test_categories.py: Fleiss' kappa by statsmodels (0.15.0), Gwet's AC1 by irrCAC (0.4.4).

Run in an environment with both: `PYTHONPATH=. python reproduction/references/categories.py`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


def drawn_labels(seed: int, n_categories: int, missing: float = 0.0) -> Numbers:
    """Return the labels of an evaluator and three people of 80 rows, people's being missing by chance."""
    generator = np.random.default_rng(seed)
    truth = generator.choice(
        n_categories, size=(80, 1), p=np.arange(1, n_categories + 1) / np.arange(1, n_categories + 1).sum()
    )
    labels = np.where(generator.random((80, 4)) < 0.65, truth, generator.integers(n_categories, size=(80, 4))).astype(
        np.float64
    )
    labels[:, 1:][generator.random((80, 3)) < missing] = np.nan
    return labels


if __name__ == "__main__":
    import pandas as pd
    from irrCAC.raw import CAC  # type: ignore[import-not-found]
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    for seed, n_categories in ((0, 2), (1, 4)):
        labels = drawn_labels(seed, n_categories)
        table, _ = aggregate_raters(labels[:, 1:].astype(int))
        two = CAC(pd.DataFrame(labels[:, :2].astype(int).astype(str))).gwet()["est"]["coefficient_value"]
        three = CAC(pd.DataFrame(labels[:, 1:].astype(int).astype(str))).gwet()["est"]["coefficient_value"]
        print(f"seed {seed}: fleiss {fleiss_kappa(table):.6f}, AC1 of two {two}, of three {three}")
