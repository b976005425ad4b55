"""Gates: what fails one, what passes it, and what it cannot say."""

from __future__ import annotations

import pytest

from dialeval_plugin.results.gates import check_gate
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate
from dialeval_plugin.statistics.means import mean_interval
from tests.refusals import refused

SCORES = [0.2, 0.4, 0.6] * 10
"""Their mean has an interval of 0.340 to 0.460."""


@pytest.fixture
def mean() -> Estimate:
    return mean_interval(SCORES)


@pytest.mark.parametrize(
    ("threshold", "is_lower_better", "said"),
    [
        (0.3, False, "gate passed: mean 0.400 (0.340 to 0.460) is not wholly below 0.300."),
        # Below, but not by more than chance.
        (0.45, False, "gate passed: mean 0.400 (0.340 to 0.460) is not wholly below 0.450."),
        (0.5, False, "gate failed: mean 0.400 (0.340 to 0.460) is below 0.500."),
        (0.5, True, "gate passed: mean 0.400 (0.340 to 0.460) is not wholly above 0.500."),
        (0.3, True, "gate failed: mean 0.400 (0.340 to 0.460) is above 0.300."),
    ],
)
def test_a_gate_fails_on_what_the_interval_supports_alone(
    mean: Estimate, threshold: float, is_lower_better: bool, said: str
) -> None:
    found = check_gate(mean, threshold, "mean", is_lower_better=is_lower_better)
    assert str(found) == said
    assert found.has_passed is said.startswith("gate passed")


def test_too_few_conversations_neither_pass_nor_fail(mean: Estimate) -> None:
    found = check_gate(mean, 0.3, "mean", 31)
    assert (str(found), found.has_passed) == ("gate undecided: 30 conversations, and 31 are needed. Score more of them.", False)
    assert check_gate(mean, 0.3, "mean", 30).has_passed
    few = check_gate(mean_interval(SCORES[:9]), 0.3, "mean")
    assert str(few) == "gate undecided: 9 conversations, and 10 are needed. Score more of them."


def test_fewer_conversations_than_an_interval_needs_cannot_be_asked_for(mean: Estimate) -> None:
    with refused("--min-conversations 5: an interval needs 10. Ask for as many, or more."):
        check_gate(mean, 0.3, "mean", 5)


@pytest.mark.parametrize(("value", "outcome"), [(0.0, "failed"), (0.5, "passed"), (1.0, "passed")])
def test_where_all_say_the_same_the_figure_counts(value: float, outcome: str) -> None:
    assert check_gate(mean_interval([value] * 20), 0.5, "mean").outcome == outcome


def test_without_an_interval_a_gate_is_undecided() -> None:
    found = check_gate(mean_interval(SCORES, bootstrap=Bootstrap(rounds=0)), 0.3, "mean")
    assert str(found) == "gate undecided: mean: rounds is 0, so there is no interval. Ask for 1000 rounds."
