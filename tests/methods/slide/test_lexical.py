"""Word-by-word features of a pair, against a loop that counts as their names say."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.methods.slide.model import LexicalClassifier
from dialeval_plugin.models.texts import FEATURES, RARE, lexical_features, token_rarity

CLS, SEP = 0, 1
SPECIAL = (CLS, SEP)
RARITY = np.array([0.0, 0.0, 0.5, 1.0, 2.0, 4.5, 5.0, 0.1])

words = st.lists(st.integers(2, 7), max_size=6)
pairs = st.tuples(st.lists(words, max_size=4), words)


def encoded(turns: list[list[int]]) -> list[int]:
    return [CLS, *(token for turn in turns for token in (*turn, SEP))]


def counted(turns: list[list[int]], response: list[int]) -> dict[str, float]:
    """The features of one pair, one line each."""
    turns = [turn for turn in turns if turn]
    last = turns[-1] if turns else []
    context = [token for turn in turns for token in turn]
    rarity = [RARITY[token] for token in response]
    shared = [RARITY[token] for token in response if token in context]
    in_last = [RARITY[token] for token in response if token in last]
    types = sum(RARITY[token] for token in set(response) & set(context))
    return {
        "response_tokens": len(response),
        "response_types": len(set(response)),
        "mean_rarity": sum(rarity) / max(len(response), 1),
        "largest_rarity": max(rarity, default=0),
        "rarity": sum(rarity),
        "rare_tokens": sum(value > RARE for value in rarity),
        "shared_rarity": sum(shared),
        "largest_shared_rarity": max(shared, default=0),
        "share_of_rarity": sum(shared) / (sum(rarity) + 1),
        "share_of_tokens": len(shared) / max(len(response), 1),
        "shared_type_rarity": types,
        "rare_shared_tokens": sum(value > RARE for value in shared),
        "last_turn_rarity": sum(in_last),
        "largest_last_turn_rarity": max(in_last, default=0),
        "last_turn_share_of_rarity": sum(in_last) / (sum(rarity) + 1),
        "last_turn_share_of_tokens": len(in_last) / max(len(response), 1),
        "context_tokens": len(context),
        "context_turns": len(turns),
        "last_turn_tokens": len(last),
        "covered_context_rarity": types / (sum(RARITY[token] for token in set(context)) + 1),
    }


@given(st.lists(pairs, max_size=5))
def test_features_are_what_a_loop_counts_and_the_same_alone(rows: list[tuple[list[list[int]], list[int]]]) -> None:
    contexts, responses = [encoded(turns) for turns, _ in rows], [[CLS, *response, SEP] for _, response in rows]
    found = lexical_features(contexts, range(len(rows)), responses, RARITY, SPECIAL)
    assert found.shape == (len(rows), len(FEATURES))
    for row, (turns, response), context, ids in zip(found, rows, contexts, responses, strict=True):
        assert dict(zip(FEATURES, row, strict=True)) == pytest.approx(counted(turns, response))
        np.testing.assert_array_equal(lexical_features([context], [0], [ids], RARITY, SPECIAL)[0], row)


def test_responses_may_share_a_context() -> None:
    contexts, responses = [[CLS, 2, SEP, 3, SEP], [CLS, 5, SEP]], [[CLS, 3, SEP], [CLS, 5, SEP], [CLS, 2, SEP]]
    together = lexical_features(contexts, [0, 1, 0], responses, RARITY, SPECIAL)
    apart = lexical_features([contexts[0], contexts[1], contexts[0]], [0, 1, 2], responses, RARITY, SPECIAL)
    np.testing.assert_array_equal(together, apart)


def test_rarity_counts_responses_not_occurrences() -> None:
    assert token_rarity([[2, 2, 3], [2]], 4).tolist() == pytest.approx([math.log(3), math.log(3), 0, math.log(1.5)])


def test_the_classifier_scales_by_what_it_learnt() -> None:
    classifier = LexicalClassifier(len(RARITY))
    classifier.learn_rarity([[2, 3], [3]])
    features = classifier.features([[CLS, 2, SEP], [CLS, 3, 4, SEP]], [0, 1], [[CLS, 2, SEP], [CLS, 5, 5, SEP]], SPECIAL)
    classifier.learn_scale(features)
    scaled = (features - classifier.mean) / classifier.deviation
    assert torch.allclose(scaled.mean(dim=0), torch.zeros(len(FEATURES)), atol=1e-5)
    assert classifier(features).shape == (2, 2)
    assert set(classifier.state_dict()) >= {"rarity", "mean", "deviation"}


def test_a_feature_that_never_varied_in_training_keeps_its_scale() -> None:
    classifier = LexicalClassifier(len(RARITY))
    features = torch.ones(3, len(FEATURES))
    features[:, 0] = torch.tensor([1.0, 2.0, 3.0])
    classifier.learn_scale(features)
    scaled = classifier.standardised(features + 1)
    # A deviation near 0 would turn the step of one into a million.
    assert scaled[:, 1:].tolist() == torch.ones(3, len(FEATURES) - 1).tolist()
    assert scaled[2, 0] > 1
