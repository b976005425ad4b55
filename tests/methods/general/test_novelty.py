"""Which share of a response is new, and what a response loses that repeats what was said."""

from __future__ import annotations

from pathlib import Path

import pytest
from scipy.special import logit

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.methods.general.judging import NEAR, NOVELTY, NOVELTY_WEIGHT, novelty
from dialeval_plugin.methods.general.scorer import GeneralScorer

FIRST = "One two three."
OTHERS = [f"word{place} more" for place in range(NEAR)]


@pytest.mark.parametrize(
    ("context", "response", "share"),
    [
        ([FIRST], FIRST.upper(), 0.0),
        ([FIRST], "three two one", 1.0),
        ([FIRST], "One two four five", 0.5),
        ([FIRST, *OTHERS[1:]], FIRST, 0.0),
        ([FIRST, *OTHERS], FIRST, 1.0),
        ([FIRST], "!?", 1.0),
        ([], FIRST, 1.0),
    ],
)
def test_words_count_as_new_where_no_turn_shortly_before_has_them(context: list[str], response: str, share: float) -> None:
    assert novelty([(context, response)]).tolist() == [share]


def test_what_was_said_before_lowers_the_score(tiny_general: Path) -> None:
    """By the weight of novelty, beside the same log odds of a response of which all is new."""
    scorer = GeneralScorer(str(tiny_general), device="cpu")
    response = "At the market, with Ann."
    cases = {share: Example.from_texts([turn], response) for share, turn in ((1.0, "Where?"), (0.0, response))}
    for share, example in cases.items():
        (row,) = scorer.score([example]).rows()
        assert row[NOVELTY] == share
        log_odds = scorer.log_odds([example])
        (main,) = scorer.main_score(log_odds, novelty([([turn.text for turn in example.context], response)]))
        (of_new,) = scorer.main_score(log_odds, novelty([([], response)]))
        assert row["general"] == pytest.approx(main)
        assert logit(main) == pytest.approx(logit(of_new) - NOVELTY_WEIGHT * (1 - share))


def test_of_a_dialogue_the_judged_turns_count() -> None:
    turns = tuple(Turn(text, speaker) for text, speaker in ((FIRST, "user"), (FIRST, "assistant"), ("Oh?", "user")))
    (row,) = GeneralScorer(level="dialogue", device="cpu").score([Dialogue("d", turns)]).rows()
    assert (row["n_turns"], row[NOVELTY]) == (1, 0.0)
