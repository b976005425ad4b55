"""Soft pairwise accuracy by mt-metrics-eval (1b47eab, `pce.py`), for tests/statistics/test_systems.py.

Run in an environment with mt-metrics-eval: `python reproduction/references/systems.py`.
"""

import numpy as np
from mt_metrics_eval import pce


def made_up(n_systems: int, n_items: int, seed: int) -> list[np.ndarray]:
    """Ratings and scores of shape (systems, items): systems differ, and so do items."""
    generator = np.random.default_rng(seed)
    quality = np.linspace(0, 0.6, n_systems)[:, None]
    ratings = quality + generator.normal(size=n_items) + generator.normal(size=(n_systems, n_items))
    return [ratings, 0.5 * ratings + generator.normal(size=(n_systems, n_items))]


if __name__ == "__main__":
    for shape in ((5, 60, 0), (8, 200, 1), (11, 400, 2)):
        p_values = [pce.compute_pairwise_p_values(values, num_permutations=20_000) for values in made_up(*shape)]
        print(shape, round(pce.compute_one_minus_pce(*p_values), 6))
