"""Mixing weights fitted on ratings: what they are, whom they have seen, and that they never score it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.methods.general.mixing import (
    RIDGE,
    Mixing,
    RatedMixing,
    RatedSet,
    fit_on_ratings,
    rated_log_odds,
    response_hash,
)
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.methods.general.signals import QUALITIES
from dialeval_plugin.methods.general.training import equal_mixture
from tests.refusals import refused


def rated_set(name: str, number: int = 200, *, seed: int = 0, slope: float = 1.0) -> RatedSet:
    """Ratings that follow `fit` with a slope, on a scale of their own."""
    generator = np.random.default_rng(seed)
    log_odds = {name: generator.normal(size=number) for name in QUALITIES}
    log_odds["knowledge"] = np.full(number, np.nan)
    ratings = 3 + 0.5 * (slope * log_odds["fit"] + 0.01 * generator.normal(size=number))
    examples = [Example.from_texts([name], f"{name} {place}") for place in range(number)]
    return RatedSet(name, "overall", examples, ratings, log_odds)


def test_ridge_finds_what_ratings_follow_and_leaves_each_set_out_once() -> None:
    fitted = fit_on_ratings([rated_set("a"), rated_set("b", 50, seed=1), rated_set("c", seed=2, slope=-1.0)], "model")
    assert fitted.qualities == {"a": "overall", "b": "overall", "c": "overall"}
    # Standardised ratings on standardised log odds have a slope of 1, which the penalty shrinks.
    shrunk = 1 / (1 + RIDGE)
    without_c = fitted.without["c"]
    deviation = np.sqrt(np.mean([np.var(rated_set("a").log_odds["fit"]), np.var(rated_set("b", 50, seed=1).log_odds["fit"])]))
    assert without_c["fit"] == pytest.approx(shrunk / deviation, rel=0.03)
    assert without_c["knowledge"] == 0
    assert abs(without_c["fluency"]) < 0.05
    assert abs(fitted.without["a"]["fit"]) < 0.2
    # Each set counts the same: two with the one slope against one with the other.
    assert fitted.weights["fit"] == pytest.approx(shrunk / 3, abs=0.1)


def test_a_response_of_the_set_left_out_is_in_no_other_fit() -> None:
    one, other = rated_set("a"), rated_set("b", seed=1)
    shared = one._replace(name="c", ratings=-one.ratings)
    weights = fit_on_ratings([one, other, shared], "model")
    again = other._replace(name="again", examples=[Example.from_texts(["again"], str(place)) for place in range(200)])
    # Twice the same log odds and ratings are as good as once.
    assert weights.without["c"] == pytest.approx(fit_on_ratings([other, again], "model").weights)
    assert weights.without["a"] == weights.without["c"]
    with refused(
        "mixing: all responses of the other sets are in a too, so that none is left to fit weights on. "
        "Give sets of different responses."
    ):
        fit_on_ratings([one, shared], "model")


def test_a_response_of_two_sets_may_be_scored_with_one_of_them_left_out() -> None:
    one, other = rated_set("a"), rated_set("b", seed=1)
    (shared, *_), (own, *_) = one.examples, other.examples
    fitted = fit_on_ratings([one, other._replace(examples=[shared, *other.examples[1:]])], "model")
    assert response_hash(shared) not in fitted.seen("a")
    assert response_hash(shared) not in fitted.seen("b")
    assert fitted.seen(None)[response_hash(shared)] in ("a", "b")
    assert response_hash(one.examples[1]) in fitted.seen("b")
    assert response_hash(own) not in fitted.seen(None)


GIVE_TWO = "Give two or more of different names, so that each can be scored with weights of the others."


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ([rated_set("a")], "given are the sets a. " + GIVE_TWO),
        ([rated_set("a"), rated_set("a", seed=1)], "given are the sets a, a. " + GIVE_TWO),
        (
            [rated_set("a"), rated_set("b", 9)],
            "b has 9 rated responses, or all ratings are equal. Give sets of at least 10 with different ratings.",
        ),
        (
            # The deviation of such numbers is not 0 by rounding.
            [rated_set("a"), rated_set("b", 13)._replace(ratings=np.full(13, 10 / 3))],
            "b has 13 rated responses, or all ratings are equal. Give sets of at least 10 with different ratings.",
        ),
    ],
)
def test_too_little_is_refused(sets: list[RatedSet], message: str) -> None:
    with refused(f"mixing: {message}"):
        fit_on_ratings(sets, "model")


MakeScorer = Callable[..., GeneralScorer]


@pytest.fixture(scope="module")
def plain(tiny_general: Path) -> GeneralScorer:
    return GeneralScorer(str(tiny_general), device="cpu")


@pytest.fixture(scope="module")
def mixing_file(plain: GeneralScorer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    sets = [rated_set(name, 30, seed=number) for number, name in enumerate(("a", "b", "c"))]
    judged = [one._replace(log_odds=plain.log_odds(one.examples)) for one in sets]
    path = tmp_path_factory.mktemp("mixing") / "mixing.json"
    fit_on_ratings(judged, plain.model_hash).save(path)
    return path


@pytest.fixture(scope="module")
def mixed(mixing_file: Path, tiny_general: Path) -> MakeScorer:
    """Makes a scorer with the file's weights, or another file's."""

    def make(mixing: Path = mixing_file, **options: Any) -> GeneralScorer:
        return GeneralScorer(str(tiny_general), mixing=str(mixing), device="cpu", **options)

    return make


def test_scores_use_the_weights_and_say_whose(mixing_file: Path, plain: GeneralScorer, mixed: MakeScorer) -> None:
    items = [Example.from_texts(["New."], f"A response {number} of nobody.") for number in range(5)]
    scores = mixed().score(items)
    stored = RatedMixing.load(mixing_file)
    assert scores.values == pytest.approx(expit(rated_log_odds(stored.weights, plain.log_odds(items))))
    assert scores.columns["fit"] == pytest.approx(plain.score(items).columns["fit"])
    assert "|mixing:ratings|" in str(scores.signature)
    assert "|mixing_sets:a,b,c|" in str(scores.signature)


def test_a_response_whose_rating_was_seen_is_scored_with_the_others_weights_only(mixing_file: Path, mixed: MakeScorer) -> None:
    (seen,) = rated_set("b", 1).examples
    for item in (seen, Example.from_texts([" B"], "b  0!", id="copy")):
        with refused(
            f"general: the mixing has seen the rating of {item.id!r}, which is in its set 'b'. "
            "Give leave_out='b' for weights of the other sets, or score_fitted=true."
        ):
            mixed().score([item])
    left_out = mixed(leave_out="b")
    scores = left_out.score([seen])
    stored = RatedMixing.load(mixing_file)
    assert scores.values == pytest.approx(expit(rated_log_odds(stored.without["b"], left_out.log_odds([seen]))))
    assert "|mixing_sets:a,c|mixing_leave_out:b|" in str(scores.signature)
    scores = mixed(score_fitted=True).score([seen])
    assert scores.n_scored == 1
    assert "|score_fitted:True|" in str(scores.signature)


def test_what_does_not_belong_together_is_refused(
    mixing_file: Path, plain: GeneralScorer, mixed: MakeScorer, tmp_path: Path
) -> None:
    with refused("general: leave_out='d' is no set of the mixing. It was fitted on a, b, c."):
        mixed(leave_out="d")
    other, none = tmp_path / "other.json", tmp_path / "none.json"
    other.write_text(json.dumps({**json.loads(mixing_file.read_text()), "model": "0123456789abcdef"}))
    with refused(
        f"{other}: was fitted with the model 0123456789abcdef, and this one is {plain.model_hash}. "
        "Fit it again with `dialeval train mixing`."
    ):
        mixed(other)
    none.write_text("[]")
    with refused(f"{none}: is no mixing that this release reads. Fit one with `dialeval train mixing`.", ModelLoadError):
        mixed(none)


def test_the_hash_of_a_response_is_that_of_its_letters_and_digits() -> None:
    assert response_hash(Example.from_texts(["Hi!"], "So  long.")) == response_hash(Example.from_texts(["hi"], "so long"))
    assert response_hash(Example.from_texts(["Hi"], "So long.")) != response_hash(Example.from_texts(["Hi", "So"], "long."))


def test_an_equal_mixture_gives_each_kind_the_same_weight() -> None:
    weights = equal_mixture(np.array(["real", "real", "a", "a", "a", "b"]))
    assert weights.tolist() == pytest.approx([1, 1, 1 / 3, 1 / 3, 1 / 3, 1])


def test_mixing_takes_the_weights_for_facts_where_there_are_facts() -> None:
    log_odds = {name: np.array([1.0, 1.0]) for name in QUALITIES} | {"knowledge": np.array([np.nan, 2.0])}
    plain = {"relevance": 0.4, "fit": 1.0, "fluency": 0.5, "specificity": 0.25, "offset": 0.1}
    assert Mixing(plain).log_odds(log_odds).tolist() == pytest.approx([2.25, 2.25])
    assert Mixing(plain, {**plain, "knowledge": 2.0}).log_odds(log_odds).tolist() == pytest.approx([2.25, 6.25])
