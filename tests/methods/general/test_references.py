"""References of an example in the score of `general`: what is compared, what it moves, and what it leaves alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logit

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scorer import NO_WEAKNESS
from dialeval_plugin.methods.general.judging import (
    REFERENCE_SIMILARITY,
    REFERENCE_WEIGHT,
    USUAL_SIMILARITY,
    nearest_similarity,
    reference_log_odds,
)
from dialeval_plugin.methods.general.mixing import OFFSET, Mixing
from dialeval_plugin.methods.general.scorer import WEAKNESS_TEXT, GeneralScorer
from dialeval_plugin.methods.general.signals import QUALITIES
from tests.refusals import refusal

RESPONSE = "Plums make good jam."
EXAMPLES = [
    Example.from_texts(["What did you buy?"], RESPONSE, references=references)
    for references in ([RESPONSE], ["A whole bag of apples, and nothing else."], ["It rains.", RESPONSE], [" ", ""], [])
]


@pytest.fixture(scope="module")
def scorers(tiny_general: Path) -> tuple[GeneralScorer, GeneralScorer]:
    """Without references and with them."""
    without, with_them = (GeneralScorer(str(tiny_general), with_references=asked, device="cpu") for asked in (False, True))
    return without, with_them


def test_the_nearest_reference_counts_whatever_the_lengths_of_the_vectors() -> None:
    responses = np.array([[2, 0], [0, 1], [1, 1]], dtype=np.float32)
    references = np.array([[0, 3], [1, 1], [-1, 0]], dtype=np.float32)
    found = nearest_similarity(responses, references, [0, 0, 1])
    assert found.tolist() == pytest.approx([0.5**0.5, 0, np.nan], nan_ok=True)
    assert reference_log_odds(np.array([USUAL_SIMILARITY, 1, np.nan])).tolist() == pytest.approx(
        [0, REFERENCE_WEIGHT * (1 - USUAL_SIMILARITY), 0]
    )


def test_a_similar_reference_raises_the_score_and_an_example_without_one_keeps_its(
    scorers: tuple[GeneralScorer, GeneralScorer],
) -> None:
    without, with_them = (scorer.score(EXAMPLES) for scorer in scorers)
    similarity = with_them.columns[REFERENCE_SIMILARITY]
    assert similarity[:3] == pytest.approx((1, similarity[1], 1))
    assert similarity[1] is not None
    assert -1 <= similarity[1] < 1
    assert similarity[3:] == (None, None)
    gains = logit(np.array(with_them.values, dtype=float)) - logit(np.array(without.values, dtype=float))
    expected = [0.0 if like is None else REFERENCE_WEIGHT * (like - USUAL_SIMILARITY) for like in similarity]
    assert gains.tolist() == pytest.approx(expected, abs=1e-4)
    for name in without.columns.keys() - {"general"}:
        assert with_them.columns[name] == pytest.approx(without.columns[name])


def test_references_are_not_read_unless_asked_for_and_the_signature_says_so(
    scorers: tuple[GeneralScorer, GeneralScorer],
) -> None:
    without, with_them = scorers
    assert REFERENCE_SIMILARITY not in without.columns
    assert with_them.columns == (*without.columns, REFERENCE_SIMILARITY)
    bare = [replace(example, references=()) for example in EXAMPLES]
    assert without.score(EXAMPLES).values == without.score(bare).values
    assert with_them.score(bare).values == without.score(bare).values
    assert "references" not in str(without.score(EXAMPLES).signature)
    assert f"|references:{REFERENCE_WEIGHT}|" in str(with_them.score(EXAMPLES).signature)


def test_what_stands_beside_an_example_moves_nothing(scorers: tuple[GeneralScorer, GeneralScorer]) -> None:
    _, scorer = scorers
    together = scorer.score(EXAMPLES).values
    assert [scorer.score([example]).values[0] for example in EXAMPLES] == pytest.approx(together, abs=1e-6)


def test_a_response_unlike_its_references_is_blamed_for_it(
    scorers: tuple[GeneralScorer, GeneralScorer], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, scorer = scorers
    monkeypatch.setattr(scorer, "_mixing", Mixing(dict.fromkeys((*QUALITIES, OFFSET), 0.0)))
    for similarity, blamed in ((0.1, WEAKNESS_TEXT[REFERENCE_SIMILARITY]), (USUAL_SIMILARITY + 0.01, NO_WEAKNESS)):
        monkeypatch.setattr(scorer, "_reference_similarity", lambda examples, like=similarity: np.full(len(examples), like))
        (said,) = scorer.explain(EXAMPLES[:1])
        assert said.startswith(f"{blamed} (")
        assert said.endswith(f"{REFERENCE_SIMILARITY} {similarity:.2f})")


@pytest.mark.parametrize("options", [{"level": "dialogue"}, {"mixing": "mixing.json"}])
def test_whole_dialogues_and_fitted_mixings_have_no_weight_for_references(tiny_general: Path, options: dict[str, str]) -> None:
    assert refusal(GeneralScorer, str(tiny_general), with_references=True, **options, error=InputError) == (
        "general: with_references is for single responses, and for the mixing that training fixed. "
        "Leave it out, or leave mixing and level out."
    )
