"""Aggregation of the probabilities of tokens: equations 5.4 to 5.11 of Nedelchev's thesis, in log space.

An aggregation is named after the reduction of the turns, then that of a turn's tokens: `sum_of_means` is equation 5.4. All take
natural logs and return the natural log of the formula, because products are too small for a float. With the log probabilities
of each position's most likely token instead of the actual one, equation 5.4 becomes 5.11.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from dialeval_plugin.core.arrays import FloatArray

Reduction: TypeAlias = Callable[[FloatArray], float]


def log_sum(logs: FloatArray) -> float:
    """Return the log of a sum from the logs of its terms, of shape (terms,)."""
    # scipy's logsumexp is ten times slower on the few numbers of a turn.
    return float(np.logaddexp.reduce(logs))


def log_mean(logs: FloatArray) -> float:
    """Return the log of an arithmetic mean from the logs of its terms, of shape (terms,); at least one."""
    return log_sum(logs) - math.log(len(logs))


def log_product(logs: FloatArray) -> float:
    """Return the log of a product from the logs of its factors, of shape (factors,)."""
    return float(logs.sum())


TURN_REDUCTIONS: Mapping[str, Reduction] = MappingProxyType(
    {"mean": log_mean, "sum": log_sum, "product": log_product, "geometric_mean": lambda logs: float(logs.mean())}
)
"""Reductions of the tokens of one turn, of shape (tokens,); the geometric mean is one over the turn's perplexity."""

DIALOGUE_REDUCTIONS: Mapping[str, tuple[Reduction, Reduction]] = MappingProxyType(
    {
        "sum_of_means": (log_sum, log_mean),  # 5.4, and 5.11 with maxima
        "sum_of_sums": (log_sum, log_sum),  # 5.5
        "mean_of_means": (log_mean, log_mean),  # 5.6
        "mean_of_sums": (log_mean, log_sum),  # 5.7
        "product_of_sums": (log_product, log_sum),  # 5.8
        "product_of_means": (log_product, log_mean),  # 5.9
        "product_of_products": (log_product, log_product),  # 5.10
    }
)
"""Aggregation to the reductions of the turns and of a turn's tokens."""


def is_product(aggregation: str) -> bool:
    """Whether an aggregation's score is reported as its log, because the value itself would be 0."""
    return aggregation.startswith("product")


def dialogue_log_scores(turns: Sequence[FloatArray], aggregations: Iterable[str] = DIALOGUE_REDUCTIONS) -> dict[str, float]:
    """Return the logs of a dialogue's scores (equations 5.4 to 5.10) by aggregation.

    Turns without tokens do not count; `ValueError` if all have none. A token of probability 0 counts in a mean, and makes a
    product 0, whose log is minus infinity.

    Example:
        >>> turns = [np.log([0.5, 0.25]), np.log([0.125])]
        >>> found = dialogue_log_scores(turns, ("sum_of_means", "product_of_products"))
        >>> {name: round(float(np.exp(log)), 6) for name, log in found.items()}
        {'sum_of_means': 0.5, 'product_of_products': 0.015625}
    """
    scored = [turn for turn in turns if len(turn)]
    if not scored:
        raise ValueError("no turn has a token")
    reductions = {name: DIALOGUE_REDUCTIONS[name] for name in aggregations}
    needed = {reduction for _, reduction in reductions.values()}
    of_tokens = {reduction: np.array([reduction(turn) for turn in scored]) for reduction in needed}
    return {name: of_turns(of_tokens[reduction]) for name, (of_turns, reduction) in reductions.items()}


def reported(log_score: float, aggregation: str) -> float:
    """Return the reported score: the log of a product, the value of any other aggregation."""
    return log_score if is_product(aggregation) else float(np.exp(log_score))
