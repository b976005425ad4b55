"""SLIDE's equations 7 to 9 and DRE's 25 and 26: worked by hand, and against golden/{slide,dre}_scores.json."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from dialeval_plugin.core.scores import BLANK_RESPONSE, Reason, Unscored
from dialeval_plugin.methods.slide.fusion import DistanceRange, Fusion, Refinement, read_clamp, slm_score
from tests.refusals import refusal

REFUSED = Unscored(Reason.REFUSAL, "no")


@pytest.mark.parametrize(
    ("distance", "probability", "llm", "s_d", "slm", "score"),
    [
        # d_min = 0.2 and d_max = 1.2. Equation 7: s_d = (d - 0.2) / 1. Equation 8: Score_SLM = 1 - s_d + s_p.
        (0.2, 1.0, 0.9, 0.0, 2.0, 2.0),  # the closest pair, surely positive; equation 9: both say good
        (0.7, 0.25, 0.1, 0.5, 0.75, 0.75),  # only the small model says good, and the first case that holds is its own
        (1.2, 0.0, 0.4, 1.0, 0.0, 0.4),  # both say bad: the large model's score
        (1.1, 0.2, 0.9, 0.9, 0.3, 0.6),  # only the large one says good: (0.3 + 0.9) / 2
        (1.4, 0.1, 0.5, 1.2, -0.1, 0.2),  # a distance beyond the range: (-0.1 + 0.5) / 2
    ],
)
def test_equations_7_to_9_by_hand(
    distance: float, probability: float, llm: float, s_d: float, slm: float, score: float
) -> None:
    share = DistanceRange(0.2, 1.2).normalise(distance)
    assert (share, slm_score(share, probability)) == (pytest.approx(s_d), pytest.approx(slm))
    assert Fusion()(slm_score(share, probability), llm) == pytest.approx(score)


def test_rows_are_joined_unless_one_model_has_no_score() -> None:
    small = {"slm_probability": 0.2, "slm": 0.3}
    assert Fusion().rows(small, 0.9) == {**small, "llm": 0.9, "slide": pytest.approx(0.6)}
    # 0.25 * 2 is good, and 0.25 is bad: their mean.
    assert Fusion("agree", slm_scale=2.0).rows({"slm": 0.25}, 0.25) == {"slm": 0.25, "llm": 0.25, "slide": 0.375}
    assert Fusion().rows(BLANK_RESPONSE, REFUSED) == BLANK_RESPONSE
    assert Fusion().rows(small, REFUSED) == REFUSED


def test_scores_and_fusion(oracles_dir: Path) -> None:
    cases = json.loads((oracles_dir / "slide_scores.json").read_text())["cases"]
    assert len(cases) == 110
    for case in cases:
        given, expected = case["in"], case["out"]
        distance_range = DistanceRange(given["d_min"], given["d_max"])
        llm = given["score_llm_0_1"]
        share = distance_range.normalise(given["d"])
        slm = slm_score(share, given["s_p"])
        clipped_share = distance_range.normalise(given["d"], clip=True)
        clipped = slm_score(clipped_share, given["s_p"])
        found = {
            "s_d": share,
            "score_slm": slm,
            "code_label_gt_half": int(slm > 0.5),
            "label_ge_half": int(slm >= 0.5),
            "s_d_clipped": clipped_share,
            "score_slm_clipped": clipped,
            "fused_first_match": Fusion()(slm, llm),
            "fused_llm_first": Fusion("llm_first")(slm, llm),
            "fused_agree": Fusion("agree")(slm, llm),
            "fused_first_match_slm_halved": Fusion(slm_scale=0.5)(slm, llm),
            "fused_first_match_clipped": Fusion()(clipped, llm),
        }
        assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("slm", "llm", "expected"),
    [
        # Both papers call a score positive from 0.5 on; what differs by reading is a conflict.
        (0.5, 0.5, {"first_match": 0.5, "llm_first": 0.5, "agree": 0.5}),
        (0.5, 0.25, {"first_match": 0.5, "llm_first": 0.25, "agree": 0.375}),
        (0.25, 0.5, {"first_match": 0.375, "llm_first": 0.375, "agree": 0.375}),
        (0.25, 0.125, {"first_match": 0.125, "llm_first": 0.125, "agree": 0.125}),
        (0.75, 1.0, {"first_match": 0.75, "llm_first": 0.75, "agree": 0.75}),
    ],
)
def test_the_readings_of_equation_9_at_their_borders(slm: float, llm: float, expected: dict[str, float]) -> None:
    assert {name: Fusion(name)(slm, llm) for name in expected} == expected  # type: ignore[arg-type]
    assert Fusion()(slm, llm) == expected["first_match"]
    assert Fusion(slm_scale=0.5)(2 * slm, llm) == expected["first_match"]


def test_a_distance_beyond_the_range_is_cut_by_clip_only() -> None:
    narrow = DistanceRange(0.5, 1.0)
    assert [narrow.normalise(distance) for distance in (0.25, 0.5, 0.625, 1.0, 1.5)] == [-0.5, 0.0, 0.25, 1.0, 2.0]
    assert [narrow.normalise(distance, clip=True) for distance in (0.25, 0.5, 0.625, 1.0, 1.5)] == [0.0, 0.0, 0.25, 1.0, 1.0]


def test_every_variant_and_option_of_dre(oracles_dir: Path) -> None:
    cases = json.loads((oracles_dir / "dre_scores.json").read_text())["cases"]
    assert len(cases) == 100
    for case in cases:
        given, expected = case["in"], case["out"]
        s_c = slm_score(given["s_d"], given["s_p"])
        interior = {"llm": given["score_llm_interior"], "influence": given["s_inf"]}
        default = Refinement().interior(s_c, **interior)
        plain = Refinement().plain(s_c, llm=given["score_llm_plain"])
        clamp = read_clamp(True)
        found = {
            "s_c": s_c,
            "c": default["coefficient"],
            "dre_coefficient_c": default["dre"],
            "dre_eq26_as_printed": Refinement(eq26=True).interior(s_c, **interior)["dre"],
            "non_dre": plain["non_dre"],
            "in_dre": default["in_dre"],
            "ex_dre_sinf_1": plain["ex_dre"],
            "dre_coefficient_c_clamped_0_5": Refinement(clamp=clamp).interior(s_c, **interior)["dre"],
            "dre_eq26_clamped_0_5": Refinement(eq26=True, clamp=clamp).interior(s_c, **interior)["dre"],
        }
        assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("clamp", "bounds"), [(None, None), (False, None), (True, (0.0, 5.0)), ([1, 4], (1.0, 4.0)), ((0, 5), (0.0, 5.0))]
)
def test_the_forms_of_clamp(clamp: object, bounds: object) -> None:
    assert read_clamp(clamp) == bounds


def test_bounds_hold_for_the_products_at_both_ends_and_for_nothing_else() -> None:
    refinement = Refinement(clamp=(1.0, 4.0))
    assert refinement.interior(2.0, llm=4.5, influence=1.0) == {"dre": 4.0, "in_dre": 4.5, "coefficient": 2.0}
    assert refinement.interior(0.5, llm=0.5, influence=0.5) == {"dre": 1.0, "in_dre": 0.5, "coefficient": 0.25}
    assert refinement.interior(1.0, llm=3.0, influence=1.0)["dre"] == 3.0
    assert refinement.plain(2.0, llm=4.5) == {"ex_dre": 4.0, "non_dre": 4.5}
    assert refinement.plain(0.5, llm=0.5) == {"ex_dre": 1.0, "non_dre": 0.5}
    assert Refinement().plain(2.0, llm=5.0) == {"ex_dre": 10.0, "non_dre": 5.0}
    # Without a small model there is the plain score.
    assert Refinement().plain(None, llm=3.0) == {"non_dre": 3.0}


def test_dres_signature_has_the_options_that_differ_from_their_defaults() -> None:
    assert Refinement().signature_fields() == {"eq26": None, "clamp": None}
    assert Refinement(eq26=True, clamp=(0, 5)).signature_fields() == {"eq26": True, "clamp": "0-5"}
    assert Refinement(clamp=(0.5, 4.25)).signature_fields() == {"eq26": None, "clamp": "0.5-4.25"}


NO_WIDTH = "d_min is {} and d_max is {}, so that no distance can be normalised. Calibrate on responses of both kinds."
CLAMP = "dre: clamp is {!r}. Give true (0 to 5), false, or the lowest and the highest score."
CLAMPS = ["05", (3, 3), (True, 5), (math.nan, 5), "no", 5, (5, 0), (0, 5, 9), ("0", "5"), (0, math.inf), (0, True)]


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        *((DistanceRange, extremes, f"DistanceRange: {NO_WIDTH.format(*extremes)}") for extremes in ((1.0, 1.0), (1.5, 0.5))),
        (Fusion, ("mean",), "slide: fusion is 'mean'. Give one of first_match, llm_first, agree, mixture."),
        *((read_clamp, (clamp,), CLAMP.format(clamp)) for clamp in CLAMPS),
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[..., object], arguments: tuple[object, ...], message: str) -> None:
    assert refusal(call, *arguments) == message
