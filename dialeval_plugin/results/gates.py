"""Gates that decide whether a version may ship; one fails if its interval shows it, and is undecided with too little data."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bootstrap import MIN_CLUSTERS, UNIFORM, Estimate
from dialeval_plugin.statistics.estimates import number_text

Outcome: TypeAlias = Literal["passed", "failed", "undecided"]


class Gate(NamedTuple):
    """Outcome of a gate and its reason; an undecided gate has not passed."""

    outcome: Outcome
    reason: str

    @property
    def has_passed(self) -> bool:
        """Whether the version may ship."""
        return self.outcome == "passed"

    def __str__(self) -> str:
        return f"gate {self.outcome}: {self.reason}"


def check_gate(
    estimate: Estimate, threshold: float, what: str, min_conversations: int | None = None, *, is_lower_better: bool = False
) -> Gate:
    """Compare an estimate with `threshold`: the gate fails if the whole interval is worse.

    If all conversations have the same value there is no interval, and the value itself is compared.

    Args:
        estimate: estimate whose clusters are conversations.
        threshold: in the unit of the estimate.
        what: name of the estimate, such as "mean".
        min_conversations: smallest number for a decision; by default, and at least (else InputError), what an interval needs.
        is_lower_better: whether lower values are better.

    Example:
        >>> from dialeval_plugin.statistics.means import mean_interval
        >>> print(check_gate(mean_interval([0.2, 0.4] * 15), 0.5, "mean"))
        gate failed: mean 0.300 (0.260 to 0.333) is below 0.500.
        >>> print(check_gate(mean_interval([0.2, 0.4] * 3), 0.5, "mean"))
        gate undecided: 6 conversations, and 10 are needed. Score more of them.
    """
    needed = check_needed(min_conversations)
    low, high, reason = estimate.ci_low, estimate.ci_high, estimate.reason or ""
    if estimate.n_clusters < needed:
        return Gate("undecided", f"{estimate.n_clusters} conversations, and {needed} are needed. Score more of them.")
    if UNIFORM in reason:
        low = high = estimate.value
    if low is None or high is None:
        return Gate("undecided", reason)
    figure = f"{what} {number_text(estimate.value)} ({number_text(low)} to {number_text(high)})"
    limit, beyond = number_text(threshold), "above" if is_lower_better else "below"
    if low > threshold if is_lower_better else high < threshold:
        return Gate("failed", f"{figure} is {beyond} {limit}.")
    return Gate("passed", f"{figure} is not wholly {beyond} {limit}.")


def check_needed(min_conversations: int | None) -> int:
    """Return the number of conversations that a gate needs; raises InputError if the given one is too small for an interval."""
    needed = MIN_CLUSTERS if min_conversations is None else min_conversations
    if needed < MIN_CLUSTERS:
        raise InputError(f"--min-conversations {needed}: an interval needs {MIN_CLUSTERS}. Ask for as many, or more.")
    return needed
