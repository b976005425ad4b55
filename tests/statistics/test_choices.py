"""Worth of choosing by scores: filtering against scikit-learn's precision and recall, the best of several by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import precision_score, recall_score

from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, Bootstrap
from dialeval_plugin.statistics.choices import best_of_several, quality_of_kept
from dialeval_plugin.statistics.levels import ScoredRatings
from tests.refusals import refused


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_of_binary_ratings_they_are_precision_and_recall_at_the_cut(share: float) -> None:
    generator = np.random.default_rng(0)
    scores, n = generator.permutation(200).astype(float), 200
    ratings = (scores + generator.normal(scale=80, size=n) > 100).astype(float)
    found = quality_of_kept(ScoredRatings(scores=scores, ratings=ratings), [share], bootstrap=NO_RESAMPLES)
    is_kept = scores >= n - share * n
    assert found["mean_of_all"].value == pytest.approx(ratings.mean())
    assert found[f"mean_of_best_{100 * share:g}%"].value == pytest.approx(precision_score(ratings, is_kept))
    assert found[f"recall_of_best_{100 * share:g}%"].value == pytest.approx(recall_score(ratings, is_kept))


def test_of_equal_scores_as_large_a_part_is_kept_as_fits() -> None:
    """The best of four rows is kept, and one third of the three that tie: the mean of half is (5 + 2) / 2."""
    found = quality_of_kept(ScoredRatings(scores=[9, 1, 1, 1], ratings=[5, 1, 2, 3]), [0.5], bootstrap=NO_RESAMPLES)
    assert {name: one.value for name, one in found.items()} == {"mean_of_all": 2.75, "mean_of_best_50%": 3.5}


def test_many_scores_are_kept_by_bins() -> None:
    generator = np.random.default_rng(0)
    scores = generator.normal(size=20_000)
    ratings = scores + generator.normal(size=20_000)
    found = quality_of_kept(ScoredRatings(scores=scores, ratings=ratings, clusters=np.arange(20_000) // 10), [0.25])
    kept = found["mean_of_best_25%"]
    assert kept.value == pytest.approx(ratings[np.argsort(-scores)[:5000]].mean(), abs=0.002)
    assert kept.ci_low is not None
    assert kept.ci_high is not None
    assert kept.ci_low < kept.value < kept.ci_high
    assert (kept.n_clusters, kept.is_rough) == (2000, False)


def test_the_best_of_several_is_beside_the_best_and_a_random_one() -> None:
    """Scores tie on the second item, so either of its responses may be taken; the third has a single response."""
    data = ScoredRatings(scores=[3, 1, 2, 5, 5, 7], ratings=[2, 4, 3, 1, 2, 5], items=["a", "a", "a", "b", "b", "c"])
    found = best_of_several(data, bootstrap=NO_RESAMPLES)
    expected = {"random_choice": 2.25, "highest_score": 1.75, "best_choice": 3.0, "regret": 1.25}
    assert {name: one.value for name, one in found.items()} == pytest.approx(expected)


def test_an_interval_resamples_whole_dialogues() -> None:
    generator = np.random.default_rng(1)
    scores, ratings = generator.normal(size=(2, 120))
    items = np.repeat(np.arange(40), 3)
    alone = best_of_several(ScoredRatings(scores=scores, ratings=ratings, items=items, clusters=items))["regret"]
    twice = best_of_several(
        ScoredRatings(
            scores=np.tile(scores, 2),
            ratings=np.tile(ratings, 2),
            items=np.concatenate([items, items + 40]),
            clusters=np.tile(items, 2),
        )
    )["regret"]
    assert (alone.ci_low, alone.ci_high) == pytest.approx((twice.ci_low, twice.ci_high))
    assert (alone.n_clusters, twice.n_clusters, twice.n_scored) == (40, 40, 240)


def test_the_interval_of_the_regret_is_that_of_its_logarithm() -> None:
    """Most items have no regret, few a large one: simple quantiles of 30 items end too low (reproduction/coverage)."""
    generator = np.random.default_rng(2)
    scores, ratings = generator.normal(size=(2, 30, 3))
    items = np.repeat(np.arange(30), 3)
    data = ScoredRatings(scores=scores.reshape(-1), ratings=ratings.reshape(-1), items=items, clusters=items)
    lost = ratings.max(axis=1) - ratings[np.arange(30), scores.argmax(axis=1)]
    half = stats.t.ppf(0.975, 29) * lost.std(ddof=1) / np.sqrt(30) / lost.mean()
    found = best_of_several(data)["regret"]
    assert (found.ci_low, found.ci_high) == pytest.approx((lost.mean() * np.exp(-half), lost.mean() * np.exp(half)))
    quantiles = best_of_several(data, bootstrap=Bootstrap(interval="percentile"))["regret"]
    assert quantiles.ci_high is not None
    assert quantiles.ci_high < found.ci_high


def test_where_there_is_nothing_to_choose_from_the_reason_is_said() -> None:
    single = best_of_several(ScoredRatings(scores=[1, 2], ratings=[1, 2], items=["a", "b"]))["regret"]
    assert (single.value, single.reason) == (None, "best_of_several: no rows to choose from. Score and rate more of them.")
    empty = quality_of_kept(ScoredRatings(scores=[None], ratings=[1]))["mean_of_all"]
    assert (empty.value, empty.reason) == (None, "quality_of_kept: no rows to choose from. Score and rate more of them.")
    with refused("quality_of_kept: 25 is no share. Give one above 0 and at most 1."):
        quality_of_kept(ScoredRatings(scores=[1], ratings=[1]), [25])
