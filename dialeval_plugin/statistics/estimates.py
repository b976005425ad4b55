"""How a figure with its interval is written."""

from __future__ import annotations


def number_text(value: float | None, decimals: int = 3) -> str:
    """Write a number with a fixed number of decimals; nothing where there is none.

    Example:
        >>> number_text(0.12345), number_text(-0.0001), number_text(None)
        ('0.123', '0.000', '')
    """
    # Adding 0 turns the -0.000 of a small negative number into 0.000.
    return "" if value is None else f"{round(float(value), decimals) + 0.0:.{decimals}f}"


def bounds_text(low: float | None, high: float | None, decimals: int = 3, *, is_rough: bool = False) -> str:
    """Write the ends of an interval; nothing where there is none.

    Example:
        >>> bounds_text(0.1, 0.35), bounds_text(-0.00001, 0.2, 2, is_rough=True), bounds_text(None, None)
        ('[0.100, 0.350]', '[0.00, 0.20, rough]', '')
    """
    if low is None or high is None:
        return ""
    return f"[{number_text(low, decimals)}, {number_text(high, decimals)}{', rough' if is_rough else ''}]"


def interval_text(
    value: float | None,
    low: float | None,
    high: float | None,
    decimals: int = 3,
    *,
    bound_decimals: int | None = None,
    is_rough: bool = False,
) -> str:
    """Write "value [low, high]"; the value alone where there is no interval, "undefined" where there is no value.

    `bound_decimals` are those of the ends, where they have another number of them than the value.

    Example:
        >>> interval_text(0.25, 0.1, 0.35), interval_text(0.25, None, None, 2), interval_text(None, None, None)
        ('0.250 [0.100, 0.350]', '0.25', 'undefined')
    """
    if value is None:
        return "undefined"
    bounds = bounds_text(low, high, decimals if bound_decimals is None else bound_decimals, is_rough=is_rough)
    return f"{number_text(value, decimals)} {bounds}".rstrip()
