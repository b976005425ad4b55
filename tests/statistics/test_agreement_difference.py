"""The difference of two metrics' agreement: that of the two statistics, with an interval that knows they share dialogues."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.preference.preference_difference import difference
from dialeval_plugin.statistics.preference.preferences import Comparisons, comparisons, cont2cat, ignore_equal, voting

NO_INTERVAL = Bootstrap(rounds=0)
STATISTICS: dict[str, Any] = {
    "voting_pearson": partial(voting, coefficient="pearson"),
    "voting_spearman": voting,
    "ignore_equal": ignore_equal,
    "cont2cat": cont2cat,
}


def metrics(n_dialogues: int = 30, seed: int = 0) -> tuple[Comparisons, Comparisons, Comparisons]:
    """A metric that follows the votes a little, a copy of it with noise, and one that follows nothing."""
    generator = np.random.default_rng(seed)
    votes = generator.integers(4, size=(n_dialogues * 6, 3))
    clusters = np.repeat(np.arange(n_dialogues), 6)
    lean = (votes == 0).sum(axis=1) - (votes == 1).sum(axis=1) + generator.normal(0, 2, len(votes))
    scores = [(lean, -lean)]
    scores.append(tuple(side + generator.normal(0, 0.2, len(votes)) for side in scores[0]))
    scores.append(tuple(generator.normal(0, 1, (2, len(votes)))))
    return tuple(comparisons(a, b, votes.tolist(), clusters=clusters) for a, b in scores)  # type: ignore[return-value]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_it_is_the_difference_of_the_two_statistics(statistic: str) -> None:
    good, _, chance = metrics()
    found = difference(good, chance, statistic=statistic, bootstrap=NO_INTERVAL)
    of = partial(STATISTICS[statistic], bootstrap=NO_INTERVAL)
    assert found.value == pytest.approx(of(good).value - of(chance).value, abs=1e-9)
    assert difference(chance, good, statistic=statistic, bootstrap=NO_INTERVAL).value == pytest.approx(-(found.value or 0))
    assert (found.n_total, found.n_scored, found.n_clusters, found.statistic) == (180, 180, 30, statistic)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_interval_tells_a_noisy_copy_from_nothing_but_not_from_its_original(statistic: str) -> None:
    good, copy, chance = metrics()
    alike, apart = (difference(good, other, statistic=statistic, bootstrap=Bootstrap(rounds=400)) for other in (copy, chance))
    assert alike.ci_low is not None
    assert alike.ci_high is not None
    assert alike.ci_low < 0 < alike.ci_high
    assert apart.ci_low is not None
    assert apart.ci_low > 0
    # Paired: far narrower than the interval of either statistic.
    alone = STATISTICS[statistic](good, bootstrap=Bootstrap(rounds=400))
    assert alike.ci_high - alike.ci_low < 0.5 * (alone.ci_high - alone.ci_low)


def test_a_metric_without_differences_leaves_it_undefined() -> None:
    good, *_ = metrics(4)
    flat = comparisons([1.0] * 24, [1.0] * 24, good.votes.tolist(), clusters=good.clusters)
    found = difference(good, flat)
    assert (found.value, found.ci_low, found.ci_high) == (None, None, None)
    assert found.reason == "voting_spearman: undefined for one of the metrics. Score responses that differ."
    assert str(found) == "difference of voting_spearman: undefined, 24 of 24 comparisons scored by both"


def test_other_comparisons_and_unknown_statistics_are_refused() -> None:
    good, *_ = metrics(4)
    other, *_ = metrics(4, seed=1)
    with pytest.raises(InputError) as caught:
        difference(good, other)
    assert str(caught.value) == (
        "difference: the metrics' votes differ. Compare them on the comparisons that both have a score for."
    )
    with pytest.raises(InputError) as caught:
        difference(good, good, statistic="kendall")
    assert str(caught.value) == (
        "difference: there is no statistic 'kendall'. Choose one of voting_pearson, voting_spearman, ignore_equal, cont2cat."
    )
