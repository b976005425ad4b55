"""The intervals of published figures, and the p-value that a figure with its interval stands for."""

from __future__ import annotations

from scipy import special

from dialeval_plugin.statistics.bootstrap import Bootstrap


def percentile_bootstrap(rounds: int = 1000) -> Bootstrap:
    """Return the settings of the published tables, from before the package's default became "expanded".

    With the 100 conversations and more of most of them, an expanded interval is wider by at most 2 %.
    """
    return Bootstrap(rounds, interval="percentile")


def normal_p_value(value: float | None, low: float | None, high: float | None, *, confidence: float = 0.95) -> float | None:
    """Return the two-sided p-value of 0 that goes with an interval, under a normal distribution; None without an interval.

    Example:
        >>> round(normal_p_value(1.0, 0.0, 2.0), 3), normal_p_value(1.0, None, None)
        (0.05, None)
    """
    if value is None or low is None or high is None or high <= low:
        return None
    deviation = (high - low) / (2 * special.ndtri((1 + confidence) / 2))
    return float(2 * special.ndtr(-abs(value) / deviation))
