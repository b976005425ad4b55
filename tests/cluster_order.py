"""The order in which the statistics number clusters, written down a second time: for loops that draw the same ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall_b": stats.kendalltau}


def rows_by_cluster(clusters: Any, *stages: Sequence[Any]) -> list[np.ndarray]:
    """The rows of each cluster; clusters are ordered by their sorted rows, those that are equal by the next columns."""
    labels = list(dict.fromkeys(np.asarray(clusters).tolist()))
    rows = [np.flatnonzero(np.asarray(clusters) == label) for label in labels]

    def content(of: np.ndarray) -> list[list[tuple[float, ...]]]:
        return [sorted(zip(*(np.asarray(column)[of].tolist() for column in columns), strict=True)) for columns in stages]

    return sorted(rows, key=content)


def drawn_rows(clusters: Any, *stages: Sequence[Any], rounds: int, seed: int = 0) -> list[np.ndarray]:
    """The rows of each resample of clusters, written out."""
    rows = rows_by_cluster(clusters, *stages)
    generator = np.random.default_rng(seed)
    draws = (generator.integers(len(rows), size=len(rows)) for _ in range(rounds))
    return [np.concatenate([rows[i] for i in drawn]) for drawn in draws]


def interval_by_loop(
    statistic: Callable[[np.ndarray], float],
    clusters: Any,
    *stages: Sequence[Any],
    rounds: int,
    seed: int = 0,
    confidence: float = 0.95,
) -> Any:
    """The expanded interval of a statistic of row numbers, one resample after the other."""
    values = [statistic(rows) for rows in drawn_rows(clusters, *stages, rounds=rounds, seed=seed)]
    return pytest.approx(tuple(np.quantile(values, expanded_ends(len(set(clusters)), confidence))), abs=1e-12)


def expanded_ends(n: int, confidence: float = 0.95) -> np.ndarray:
    """The quantiles at the ends of an expanded interval of n clusters (Hesterberg 2015)."""
    return np.asarray(stats.norm.cdf(np.sqrt(n / (n - 1)) * stats.t.ppf([(1 - confidence) / 2, (1 + confidence) / 2], n - 1)))
