"""Scores from a language model's log probabilities: goodness g, the mean of the K likeliest ratings, breakdowns.

Huynh et al. 2023 print g = p(yes) / (p(yes) + p(no)) (section 3.2) and call p "the log probabilities". Taken literally, g falls
as "yes" gets likelier; the weights of ratings (section 3.1) have the same problem. The default takes p as probabilities, as do
InstructDial (by a co-author) and UniEval; `literal_log` is the printed formula.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit, softmax

from dialeval_plugin.core.scores import Reason, Unscored

from .prompts import N_BREAKDOWN_LABELS

GEvalReading: TypeAlias = Literal["probabilities", "literal_log"]

YES = "yes"
NO = "no"
NO_PROBABILITY = Unscored(Reason.NON_FINITE, "the model gives no rating of the scale a probability")


def goodness(log_yes: float, log_no: float, *, reading: GEvalReading = "probabilities") -> float | None:
    """Return g in [0, 1] from the log probabilities of yes and no; None if it is undefined.

    One of the probabilities may be 0 (minus infinity). `literal_log` needs two finite log probabilities, one of them not 0.

    Example:
        >>> round(goodness(-0.25, -2.0), 3), round(goodness(-0.25, -2.0, reading="literal_log"), 3)
        (0.852, 0.111)
    """
    if math.isnan(log_yes) or math.isnan(log_no) or math.inf in (log_yes, log_no):
        return None
    if reading == "literal_log":
        total = log_yes + log_no
        return log_yes / total if math.isfinite(total) and total != 0 else None
    return None if log_yes == log_no == -math.inf else float(expit(log_yes - log_no))


def merge_forms(log_probabilities: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the summed probability of each answer's surface forms, as logs: " Yes", "Yes" and " yes" are all "yes"."""
    forms: dict[str, list[float]] = {}
    for form, value in log_probabilities:
        forms.setdefault(form.strip().casefold(), []).append(value)
    # numpy warns of NaN.
    with np.errstate(invalid="ignore"):
        return {answer: float(np.logaddexp.reduce(values)) for answer, values in forms.items()}


def goodness_of_forms(log_probabilities: Mapping[str, float], *, reading: GEvalReading = "probabilities") -> float | None:
    """Return g from the log probabilities of surface forms of yes and no; a missing one has probability 0."""
    merged = merge_forms(log_probabilities.items())
    return goodness(merged.get(YES, -math.inf), merged.get(NO, -math.inf), reading=reading)


class KTopRating(NamedTuple):
    """A weighted rating and its parts."""

    rating: float
    top: tuple[int, ...]
    """The K likeliest ratings, likeliest first."""
    weights: tuple[float, ...]


def k_top_rating(
    log_probabilities: Mapping[int, float], *, k: int = 3, reading: GEvalReading = "probabilities"
) -> KTopRating | None:
    """Return sum r_i w_i over the `k` likeliest ratings, w_i = p_i / sum p_j; equally likely ones in the mapping's order.

    None if a value is NaN or all probabilities are 0 (for `literal_log`, if all logs are 0 or one is infinite).
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
    """Return the summed log probability of each rating's tokens ("1" and " 1"), ascending; others are dropped."""
    merged = merge_forms(log_probabilities.items())
    return {rating: merged[str(rating)] for rating in sorted(scale) if str(rating) in merged}


def rating_shares(unit: float, scale: Sequence[int]) -> dict[str, float]:
    """Return weights of an ascending scale's ratings with their mean at its share `unit` (0 to 1); at most two are not 0.

    Example:
        >>> rating_shares(0.375, (0, 1, 2))
        {'0': 0.25, '1': 0.75, '2': 0.0}
    """
    place = unit * (len(scale) - 1)
    return {str(rating): max(0.0, 1 - abs(place - position)) for position, rating in enumerate(scale)}


def format_decimal(number: float) -> str:
    """Return a number without an exponent, which a parser of prose would read as another number.

    Example:
        >>> format_decimal(1e-07), format_decimal(3.5)
        ('0.0000001', '3.5')
    """
    return format(Decimal(repr(number)), "f")


def rating_of_answers(
    answers: Mapping[str, float | Unscored], scale: Collection[int], *, k: int, reading: GEvalReading = "probabilities"
) -> KTopRating | Unscored:
    """Return the K-top rating from the log probability of each surface form; unscored if one is missing."""
    if missing := [answer for answer in answers.values() if isinstance(answer, Unscored)]:
        return missing[0]
    known = {form: answer for form, answer in answers.items() if not isinstance(answer, Unscored)}
    return k_top_rating(merge_ratings(known, scale), k=k, reading=reading) or NO_PROBABILITY


def distribution_of_forms(log_probabilities: Sequence[float]) -> tuple[float, float, float] | None:
    """Return P(NB), P(PB), P(B), renormalised, from the log probability of each of `BreakdownPrompt.forms`.

    None if all forms have probability 0, or a value is NaN or infinity.
    """
    if any(math.isnan(value) or value == math.inf for value in log_probabilities):
        return None
    labels = [np.logaddexp.reduce(log_probabilities[label::N_BREAKDOWN_LABELS]) for label in range(N_BREAKDOWN_LABELS)]
    if max(labels) == -math.inf:
        return None
    no, possible, yes = softmax(labels).tolist()
    return no, possible, yes
