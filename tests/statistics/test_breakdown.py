"""The challenge's metrics: the organisers' numbers, their tie rules, and what is left out and counted."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.breakdown import (
    ALWAYS_BREAKDOWN,
    BREAKDOWN,
    LABELS,
    METRICS,
    NOT_BREAKDOWN,
    POSSIBLE_BREAKDOWN,
    Detections,
    best_cut,
    breakdown_differences,
    breakdown_metrics,
    detections,
    strict_labels,
)
from tests.cluster_order import drawn_rows, expanded_ends
from tests.refusals import refusal

NO_INTERVAL = Bootstrap(rounds=0)
ORACLE_NAMES = {
    "accuracy": "accuracy",
    "f1_b": "f1_B",
    "f1_pb_b": "f1_PB_B",
    "jsd_nb_pb_b": "jsd3",
    "jsd_nb_pbb": "jsd_O_TX",
    "jsd_nbpb_b": "jsd_OT_X",
    "mse_nb_pb_b": "mse3",
    "mse_nb_pbb": "mse_O_TX",
    "mse_nbpb_b": "mse_OT_X",
}
RANDOM = np.random.default_rng(0)
COUNTS = RANDOM.multinomial(30, (0.4, 0.3, 0.3), size=60)
DISTRIBUTIONS = RANDOM.dirichlet((1, 1, 1), size=60)


def value(name: str, distributions: Any, counts: Any, **settings: Any) -> float | None:
    found: float | None = breakdown_metrics(distributions, counts, bootstrap=NO_INTERVAL, **settings)[name].value
    return found


def oracle_rows(oracle: dict[str, Any], predictions: dict[str, Any]) -> tuple[list[Any], list[list[int]], list[int]]:
    """Annotated system turns of all dialogues with the detector's answers, in the order of the file."""
    distributions, counts, labels = [], [], []
    for dialogue in oracle["dialogues"]:
        answers = iter(predictions[dialogue["dialogue-id"]])
        for turn in dialogue["turns"]:
            said = [annotation["breakdown"] for annotation in turn["annotations"]]
            if turn["speaker"] == "U" or not said:
                continue
            label, distribution = next(answers)
            distributions.append(distribution)
            labels.append(LABELS.index(label))
            counts.append([said.count(name) for name in LABELS])
        assert next(answers, None) is None
    return distributions, counts, labels


def test_the_organisers_script_says_the_same(oracles_dir: Path) -> None:
    oracle = json.loads((oracles_dir / "dbdc_metrics.json").read_text(encoding="utf-8"))
    assert len(oracle["runs"]) == 6
    for run in oracle["runs"]:
        distributions, counts, labels = oracle_rows(oracle, run["predictions"])
        found = breakdown_metrics(distributions, counts, labels=labels, threshold=run["threshold"], bootstrap=NO_INTERVAL)
        expected = run["full_precision"]
        assert found["accuracy"].n_scored == expected["n"]
        for name, theirs in ORACLE_NAMES.items():
            assert found[name].value == pytest.approx(expected[theirs], abs=1e-6), (run["name"], name)
        printed = run["printed_by_eval_py"]
        gold = strict_labels(counts, run["threshold"]).tolist()
        for label in LABELS:
            assert gold.count(LABELS.index(label)) == printed[f"{label} Label Num"]


def test_the_example_of_the_organisers_readme(oracles_dir: Path) -> None:
    example = json.loads((oracles_dir / "dbdc_metrics.json").read_text(encoding="utf-8"))["readme_example"]
    counts = [[example["annotations"].count(label) for label in LABELS]]
    for threshold in (0.5, 0.6):
        (gold,) = strict_labels(counts, threshold)
        assert LABELS[gold] == example[f"threshold_{threshold}_gold"]
        assert value("accuracy", [(0, 0, 1)], counts, threshold=threshold) == example[f"acc_t{threshold}"]


@pytest.mark.parametrize(
    ("counts", "gold"),
    [((5, 5, 5), NOT_BREAKDOWN), ((4, 6, 6), POSSIBLE_BREAKDOWN), ((6, 4, 6), NOT_BREAKDOWN), ((0, 0, 1), BREAKDOWN)],
)
def test_a_tie_goes_to_o_before_t_before_x(counts: tuple[int, int, int], gold: int) -> None:
    assert strict_labels([counts]).tolist() == [gold]


def test_the_lenient_majority_is_not_the_strict_one() -> None:
    # O has the most annotators, T and X together have more: F1(PB+B) counts a breakdown that accuracy does not see.
    counts = [[6, 5, 4]]
    assert value("accuracy", [(1, 0, 0)], counts) == 1.0
    assert value("f1_pb_b", [(1, 0, 0)], counts) == 0.0
    assert value("f1_pb_b", [(0, 1, 0)], counts) == 1.0
    # A tie of O with T and X together is no breakdown.
    assert value("f1_pb_b", [(0, 1, 0)], [[6, 3, 3]]) == 0.0


def test_a_hard_label_may_differ_from_the_likeliest() -> None:
    distributions, counts = [(0.6, 0.0, 0.4)], [[0, 0, 15]]
    assert value("f1_b", distributions, counts) == 0.0
    assert value("f1_b", distributions, counts, labels=[BREAKDOWN]) == 1.0
    assert value("jsd_nb_pb_b", distributions, counts) == value("jsd_nb_pb_b", distributions, counts, labels=[BREAKDOWN])


def test_divergence_and_error_by_hand() -> None:
    # Certain and right: nothing between them. Certain and wrong: one bit, and (1 + 1 + 0) / 3 or (1 + 1) / 2.
    assert [value(name, [(1, 0, 0)], [[9, 0, 0]]) for name in ("jsd_nb_pb_b", "mse_nb_pb_b")] == [0.0, 0.0]
    wrong = {name: value(name, [(0, 1, 0)], [[9, 0, 0]]) for name in METRICS}
    assert wrong["jsd_nb_pb_b"] == wrong["jsd_nb_pbb"] == wrong["mse_nb_pbb"] == 1.0
    assert wrong["mse_nb_pb_b"] == pytest.approx(2 / 3)
    # Merged with NB, PB is no error.
    assert wrong["jsd_nbpb_b"] == wrong["mse_nbpb_b"] == 0.0


def test_what_has_no_annotation_or_no_answer_is_left_out_and_counted() -> None:
    distributions: list[Any] = [*DISTRIBUTIONS.tolist(), None, [1, 0, 0], None]
    counts = [*COUNTS.tolist(), [1, 2, 3], [0, 0, 0], [0, 0, 0]]
    found = breakdown_metrics(distributions, counts)
    alone = breakdown_metrics(DISTRIBUTIONS, COUNTS)
    for name in METRICS:
        metric = found[name]
        assert (metric.value, metric.ci_low, metric.ci_high) == (alone[name].value, alone[name].ci_low, alone[name].ci_high)
        assert (metric.n_total, metric.n_scored, metric.n_unscored, metric.n_unrated) == (63, 60, 1, 2)


def test_nothing_to_score_is_undefined_with_a_reason() -> None:
    found = breakdown_metrics([None, (1, 0, 0)], [[1, 2, 3], [0, 0, 0]])
    assert {metric.value for metric in found.values()} == {None}
    assert found["accuracy"].reason == "accuracy: no annotated turn has an answer. Score annotated turns."
    never = breakdown_metrics([(1, 0, 0)] * 3, [[5, 0, 0]] * 3, bootstrap=NO_INTERVAL)
    assert never["accuracy"].value == 1.0
    assert never["f1_b"].value is None
    assert never["f1_b"].reason == "f1_b: neither the detector nor the annotators call any of 3 turns so. Score more turns."


def test_a_resample_counts_each_turn_as_often_as_it_was_drawn() -> None:
    """Against a loop that writes the drawn dialogues out."""
    dialogues = np.arange(60) // 5
    found = breakdown_metrics(DISTRIBUTIONS, COUNTS, clusters=dialogues, bootstrap=Bootstrap(rounds=40, seed=3))
    distributions, counts = np.array(DISTRIBUTIONS), np.array(COUNTS)
    drawn = drawn_rows(dialogues, [*counts.T, *distributions.T, distributions.argmax(axis=1)], rounds=40, seed=3)
    values = [breakdown_metrics(distributions[of], counts[of], bootstrap=NO_INTERVAL) for of in drawn]
    for name in METRICS:
        expected = np.quantile([one[name].value for one in values], expanded_ends(12))
        assert (found[name].ci_low, found[name].ci_high) == pytest.approx(expected, abs=1e-12)
        assert (found[name].value, found[name].n_clusters) == (value(name, DISTRIBUTIONS, COUNTS), 12)


def test_always_breakdown_earns_what_prevalence_gives() -> None:
    found = breakdown_metrics([ALWAYS_BREAKDOWN] * 60, COUNTS, bootstrap=NO_INTERVAL)
    prevalence = float((strict_labels(COUNTS) == BREAKDOWN).mean())
    assert found["f1_b"].value == pytest.approx(2 * prevalence / (1 + prevalence))
    assert found["accuracy"].value == pytest.approx(prevalence)


def test_a_number_a_turn_becomes_a_distribution_without_possible_breakdowns() -> None:
    said = detections([0.2, 0.5, 0.9, None])
    assert said.labels == [NOT_BREAKDOWN, NOT_BREAKDOWN, BREAKDOWN, None]
    assert said.distributions[2] == pytest.approx((0.1, 0.0, 0.9))
    assert detections([0.2], cut=0.1).labels == [BREAKDOWN]
    found = breakdown_metrics(said.distributions[:3], [[8, 4, 3]] * 3, labels=said.labels[:3], bootstrap=NO_INTERVAL)
    assert found["jsd_nb_pbb"].value != found["jsd_nbpb_b"].value


@pytest.mark.parametrize("decimals", [1, 16], ids=["ties", "no ties"])
def test_the_best_cut_is_the_lowest_of_the_best_of_all_cuts(decimals: int) -> None:
    scores: list[float | None] = [None, *RANDOM.uniform(size=59).round(decimals).tolist()]
    given = sorted({score for score in scores if score is not None})
    candidates = [-1.0, *((one + other) / 2 for one, other in itertools.pairwise(given)), given[-1]]
    for metric in ("accuracy", "f1_b", "f1_pb_b"):
        tried = []
        for cut in candidates:
            said = detections(scores, cut=cut)
            tried.append(value(metric, said.distributions, COUNTS, labels=said.labels))
        best = max(found for found in tried if found is not None)
        assert best_cut(scores, COUNTS, metric=metric) == candidates[tried.index(best)]


NO_DISTRIBUTIONS = ([0.5, 0.5], [0.5, 0.2, 0.2], [math.nan, 0, 1], [-0.5, 0.5, 1.0], ["O", "T", "X"], "OTX", 0.3)
NO_COUNTS = ([1, 2], [1, 2, -3], [0.2, 0.3, 0.5], [True, 1, 1], "OTX", 3)
ONE_OF_EACH = "Give one of each for every row."
THREE_COUNTS = "Give how many annotators said O, T and X, three whole numbers."


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"counts": []}, f"1 distributions but 0 counts. {ONE_OF_EACH}"),
        ({"labels": []}, f"1 distributions but 0 labels. {ONE_OF_EACH}"),
        ({"threshold": 1.5}, "threshold is 1.5. Give a share of the annotators from 0 to 1."),
        *(
            ({"distributions": [row]}, f"distributions[0] is {row!r}. Give P(NB), P(PB), P(B), which sum to 1, or None.")
            for row in NO_DISTRIBUTIONS
        ),
        *(({"counts": [row]}, f"counts[0] is {row!r}. {THREE_COUNTS}") for row in NO_COUNTS),
        *(({"labels": [one]}, f"labels[0] is {one!r}. Give 0 (O), 1 (T) or 2 (X).") for one in (3, "X", None, True)),
    ],
)
def test_wrong_input_is_named(changed: dict[str, Any], text: str) -> None:
    arguments: dict[str, Any] = {"distributions": [(1, 0, 0)], "counts": [[1, 1, 1]], **changed}
    assert refusal(breakdown_metrics, **arguments) == f"breakdown_metrics: {text}"


N = 120
DRAW = np.random.default_rng(4)
ANNOTATED = DRAW.multinomial(30, [0.4, 0.2, 0.4], size=N).tolist()
CLUSTERS = [place // 10 for place in range(N)]
TRUTH = np.array(ANNOTATED)[:, 2] / 30
GOOD = detections(np.clip(TRUTH + DRAW.normal(0, 0.05, N), 0, 1).tolist())
CHANCE = detections(DRAW.random(N).tolist())


def test_a_difference_is_that_of_the_metrics() -> None:
    found = breakdown_differences(GOOD, CHANCE, ANNOTATED, clusters=CLUSTERS)
    one, other = (
        breakdown_metrics(said.distributions, ANNOTATED, labels=said.labels, clusters=CLUSTERS) for said in (GOOD, CHANCE)
    )
    assert set(found) == set(METRICS)
    for name, difference in found.items():
        assert difference.value == pytest.approx(one[name].value - other[name].value, abs=1e-12)  # type: ignore[operator]
        assert difference.ci_low < difference.value < difference.ci_high  # type: ignore[operator]
    assert found["mse_nb_pbb"].n_clusters == 12
    assert found["mse_nbpb_b"].ci_high < 0  # type: ignore[operator]


def test_a_detector_does_not_differ_from_itself() -> None:
    found = breakdown_differences(GOOD, GOOD, ANNOTATED, clusters=CLUSTERS)
    # Without any spread between resamples there is no interval, and the reason says so.
    assert {entry.value for entry in found.values()} == {0.0}
    assert all((entry.ci_low is None) == (entry.reason is not None) for entry in found.values())


def test_only_turns_that_both_answered_count() -> None:
    gappy = Detections([None, *CHANCE.distributions[1:]], [None, *CHANCE.labels[1:]])
    counts = [*ANNOTATED[:-1], [0, 0, 0]]
    found = breakdown_differences(GOOD, gappy, counts, bootstrap=NO_INTERVAL)
    rest = slice(1, N - 1)
    good, chance = (Detections(said.distributions[rest], said.labels[rest]) for said in (GOOD, CHANCE))
    expected = breakdown_differences(good, chance, ANNOTATED[rest], bootstrap=NO_INTERVAL)
    assert {name: entry.value for name, entry in found.items()} == {name: entry.value for name, entry in expected.items()}
    assert (found["accuracy"].n_total, found["accuracy"].n_scored) == (N, N - 2)


NOTHING = Detections([None] * N, [None] * N)
NOT_BOTH = "no annotated turn has an answer of both. Score annotated turns."


@pytest.mark.parametrize(
    ("of", "arguments", "options", "text"),
    [
        (detections, [[0.5, 1.5]], {}, "scores[1] is 1.5. Give a breakdown score from 0 to 1, or None."),
        (best_cut, [[0.5], COUNTS[:1]], {"metric": "jsd"}, "there is no cut for 'jsd'. Give accuracy, f1_b or f1_pb_b."),
        (best_cut, [[None], COUNTS[:1]], {}, "f1_b is undefined at every cut. Give annotated turns, some of them breakdowns."),
        (breakdown_differences, [GOOD, NOTHING, ANNOTATED], {}, NOT_BOTH),
        (breakdown_differences, [GOOD, CHANCE, ANNOTATED], {"clusters": [1]}, f"{N} one but 1 clusters. {ONE_OF_EACH}"),
    ],
)
def test_wrong_scores_cuts_and_pairs_are_named(of: Any, arguments: Any, options: Any, text: str) -> None:
    assert refusal(of, *arguments, **options) == f"{of.__name__}: {text}"
