"""The rating that a language model gives, as the weighted mean of its K likeliest ratings (Huynh et al. 2023, section 3.1).

Like g, the weights are printed over log probabilities, which weights the least likely rating most. The default reads
probabilities; `literal_log` is what is printed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

from .goodness import Reading, merge_forms


class KTopRating(NamedTuple):
    """A weighted rating and what it is made of."""

    rating: float
    top: tuple[int, ...]
    """The K likeliest ratings, the likeliest first."""
    weights: tuple[float, ...]

    @property
    def argmax(self) -> int:
        """The likeliest rating alone."""
        return self.top[0]


def k_top_rating(
    log_probabilities: Mapping[int, float], *, k: int = 3, reading: Reading = "probabilities"
) -> KTopRating | None:
    """Return sum r_i w_i over the `k` likeliest ratings, w_i = p_i / sum p_j.

    Where the scale has fewer than `k` ratings, all are used. Ratings that are equally likely are taken in the mapping's
    order.

    Returns:
        The rating, or None where no rating has a probability (or, under `literal_log`, all logs are 0 or one is infinite).

    Example:
        >>> round(k_top_rating({0: math.log(0.6), 1: math.log(0.2), 2: math.log(0.2)}).rating, 6)
        0.6
    """
    if any(math.isnan(value) for value in log_probabilities.values()):
        return None
    top = sorted(log_probabilities, key=lambda rating: -log_probabilities[rating])[:k]
    logs = [log_probabilities[rating] for rating in top]
    if not top or logs[0] == -math.inf:
        return None
    shares = [math.exp(value - logs[0]) for value in logs] if reading == "probabilities" else logs
    total = math.fsum(shares)
    if total == 0 or not math.isfinite(total):
        return None
    weights = tuple(share / total for share in shares)
    return KTopRating(math.fsum(rating * weight for rating, weight in zip(top, weights, strict=True)), tuple(top), weights)


def merge_ratings(log_probabilities: Mapping[str, float], scale: Collection[int]) -> dict[int, float]:
    """Sum the probabilities of the tokens of one rating ("1" and " 1"); tokens off the scale are dropped.

    Returns:
        The ratings in ascending order; one that no token names is left out.
    """
    merged = merge_forms(log_probabilities.items())
    return {rating: merged[str(rating)] for rating in sorted(scale) if str(rating) in merged}
