"""The noise of the background model's input (section 7.2.3; Ren et al. 2019): each token is replaced with probability mu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]

MU = 0.15


def perturb(
    ids: Sequence[int], replacements: Sequence[int] | IntArray, generator: np.random.Generator, *, mu: float = MU
) -> IntArray:
    """Replace each token with probability `mu` by one that is drawn uniformly from `replacements`, itself included.

    A token that is not among the replacements stays: the end of a turn, like every special token, is no word. The authors'
    code replaces those too, and padding.

    Args:
        ids: of shape (tokens,).
        replacements: ids of ordinary tokens.
        generator: source of the noise.
        mu: rate, from 0 to 1.

    Example:
        >>> perturb([5, 0, 6], [5, 6, 7], np.random.default_rng(1), mu=1.0).tolist()
        [7, 0, 5]
    """
    given, ordinary = np.asarray(ids, dtype=np.int64), np.asarray(replacements, dtype=np.int64)
    is_replaced = (generator.random(len(given)) < mu) & np.isin(given, ordinary)
    return np.where(is_replaced, generator.choice(ordinary, size=len(given)), given)
