"""DRE's formulas against the transcribed equations (oracles/dre_scores.json)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval_plugin.methods.slide.fusion import slm_score
from dialeval_plugin.methods.slide.refinement import Refinement, coefficient, read_clamp
from tests.refusals import refusal


def test_every_variant_and_option(oracles_dir: Path) -> None:
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
        assert coefficient(s_c, given["s_inf"]) == pytest.approx(expected["c"], abs=1e-6)


def test_without_a_small_model_there_is_the_plain_score() -> None:
    assert Refinement().plain(None, llm=3.0) == {"non_dre": 3.0}


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


def test_the_signature_has_the_options_that_differ_from_their_defaults() -> None:
    assert Refinement().signature_fields() == {"eq26": None, "clamp": None}
    assert Refinement(eq26=True, clamp=(0, 5)).signature_fields() == {"eq26": True, "clamp": "0-5"}
    assert Refinement(clamp=(0.5, 4.25)).signature_fields() == {"eq26": None, "clamp": "0.5-4.25"}


@pytest.mark.parametrize(
    "clamp", ["05", (3, 3), (True, 5), (float("nan"), 5), "no", 5, (5, 0), (0, 5, 9), ("0", "5"), (0, float("inf")), (0, True)]
)
def test_other_clamps_are_refused(clamp: object) -> None:
    message = refusal(read_clamp, clamp)
    assert message == f"dre: clamp is {clamp!r}. Give true (0 to 5), false, or the lowest and the highest score."
