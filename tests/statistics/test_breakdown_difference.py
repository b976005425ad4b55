"""Differences of two breakdown detectors: the metrics' own, paired, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.breakdown.detection import METRICS, breakdown_metrics, detections
from dialeval_plugin.statistics.breakdown.detection_difference import Detected, breakdown_differences

N = 120
DRAW = np.random.default_rng(4)
COUNTS = DRAW.multinomial(30, [0.4, 0.2, 0.4], size=N).tolist()
CLUSTERS = [place // 10 for place in range(N)]
TRUTH = np.array(COUNTS)[:, 2] / 30
GOOD = Detected(*detections(np.clip(TRUTH + DRAW.normal(0, 0.05, N), 0, 1).tolist()))
RANDOM = Detected(*detections(DRAW.random(N).tolist()))


def test_a_difference_is_that_of_the_metrics() -> None:
    found = breakdown_differences(GOOD, RANDOM, COUNTS, clusters=CLUSTERS)
    one, other = (
        breakdown_metrics(said.distributions, COUNTS, labels=said.labels, clusters=CLUSTERS) for said in (GOOD, RANDOM)
    )
    assert set(found) == set(METRICS)
    for name, difference in found.items():
        assert difference.value == pytest.approx(one[name].value - other[name].value, abs=1e-12)  # type: ignore[operator]
        assert difference.ci_low < difference.value < difference.ci_high  # type: ignore[operator]
    assert found["mse_nb_pbb"].n_clusters == 12
    assert found["mse_nbpb_b"].ci_high < 0  # type: ignore[operator]


def test_a_detector_does_not_differ_from_itself() -> None:
    found = breakdown_differences(GOOD, GOOD, COUNTS, clusters=CLUSTERS)
    # Without any spread between resamples there is no interval, and the reason says so.
    assert {entry.value for entry in found.values()} == {0.0}
    assert all((entry.ci_low is None) == (entry.reason is not None) for entry in found.values())


def test_only_turns_that_both_answered_count() -> None:
    gappy = Detected([None, *RANDOM.distributions[1:]], [None, *RANDOM.labels[1:]])
    counts = [*COUNTS[:-1], [0, 0, 0]]
    found = breakdown_differences(GOOD, gappy, counts, bootstrap=Bootstrap(rounds=0))
    rest = slice(1, N - 1)
    expected = breakdown_differences(
        Detected(GOOD.distributions[rest], GOOD.labels[rest]),
        Detected(RANDOM.distributions[rest], RANDOM.labels[rest]),
        COUNTS[rest],
        bootstrap=Bootstrap(rounds=0),
    )
    assert {name: entry.value for name, entry in found.items()} == {name: entry.value for name, entry in expected.items()}
    assert (found["accuracy"].n_total, found["accuracy"].n_scored) == (N, N - 2)


def test_nothing_in_common_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        breakdown_differences(GOOD, Detected([None] * N, [None] * N), COUNTS)
    assert str(refused.value) == ("breakdown_differences: no annotated turn has an answer of both. Score annotated turns.")
