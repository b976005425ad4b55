"""Syntax of `--require`, and when an evaluator meets it."""

from __future__ import annotations

import pytest

from dialeval_plugin.passport.certify import Requirement, check, requirement
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.means import mean_interval
from tests.refusals import refusal

RATE = mean_interval([0, 1, 1, 1] * 30, bootstrap=Bootstrap(rounds=200))
"""0.750 [0.675, 0.817]"""


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("spearman>=0.3", Requirement("spearman", ">=", 0.3)),
        (" flip_rate <= .05 ", Requirement("flip_rate", "<=", 0.05)),
        ("pearson.value>-1", Requirement("pearson", ">", -1.0, is_of_value=True)),
        ("coverage<1", Requirement("coverage", "<", 1.0)),
    ],
)
def test_requirements_are_read(text: str, read: Requirement) -> None:
    assert requirement(text) == read
    assert requirement(str(read)) == read


@pytest.mark.parametrize(
    "text", ["spearman", "spearman=0.3", ">=0.3", "spearman>=x", "spearman>=0.3 or so", "spearman.low>=0.3"]
)
def test_another_form_is_refused(text: str) -> None:
    why = f"--require {text!r}: is no limit of a figure. Write it as 'kappa>=0.6' or 'flip_rate<=0.05'."
    assert refusal(requirement, text) == why


def test_a_figure_that_no_passport_has_is_refused() -> None:
    said = refusal(requirement, "spearmann>=0.3")
    assert said.startswith("--require 'spearmann>=0.3': a passport has no figure 'spearmann'. ")
    assert "spearman" in said.partition(". ")[2]


@pytest.mark.parametrize(
    ("text", "has_passed", "reason"),
    [
        ("coverage>=0.67", True, "coverage 0.750 [0.675, 0.817], whose lower end counts, is >= 0.67."),
        ("coverage>=0.7", False, "coverage 0.750 [0.675, 0.817], whose lower end counts, is not >= 0.7."),
        ("coverage.value>=0.7", True, "coverage 0.750 [0.675, 0.817] is >= 0.7."),
        ("coverage<=0.8", False, "coverage 0.750 [0.675, 0.817], whose upper end counts, is not <= 0.8."),
        ("coverage<0.9", True, "coverage 0.750 [0.675, 0.817], whose upper end counts, is < 0.9."),
        ("coverage.value>0.75", False, "coverage 0.750 [0.675, 0.817] is not > 0.75."),
    ],
)
def test_the_end_nearer_to_the_limit_counts(text: str, has_passed: bool, reason: str) -> None:
    assert check(requirement(text), "judge", {"coverage": RATE}, "")[2:] == (has_passed, reason)


def test_a_figure_that_could_not_be_computed_fails() -> None:
    found = check(requirement("flip_rate<=0.05"), "judge", {}, "No repeated runs are given.")
    assert found == ("judge", "flip_rate<=0.05", False, "flip_rate could not be computed. No repeated runs are given.")
    nothing = mean_interval([None, None])
    assert check(requirement("coverage>=0"), "judge", {"coverage": nothing}, "")[2:] == (
        False,
        "coverage could not be computed. mean_interval: none of 2 rows has a value. Score some examples.",
    )


def test_without_an_interval_only_the_figure_itself_can_pass() -> None:
    few = mean_interval([1, 0, 1])
    passed, reason = check(requirement("coverage>=0.5"), "judge", {"coverage": few}, "")[2:]
    assert (passed, reason) == (
        False,
        "coverage 0.667 has no interval. mean: an interval needs 10 clusters (dialogues), here are 3, so there is no interval. "
        "Score and rate more dialogues. The figure itself is asked for by coverage.value.",
    )
    assert check(requirement("coverage.value>=0.5"), "judge", {"coverage": few}, "").has_passed


def test_where_all_conversations_say_the_same_the_figure_is_its_interval() -> None:
    assert check(requirement("coverage>=1"), "judge", {"coverage": mean_interval([1] * 40)}, "").has_passed
