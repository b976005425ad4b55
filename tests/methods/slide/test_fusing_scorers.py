"""`slide(small=NAME)`: another scorer in the SLM's place, whole dialogues, and the cascade."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row
from dialeval_plugin.methods.slide.scorer import SlideScorer
from tests.refusals import refusal

EXAMPLES = [
    Example.from_texts(["Do you like plums?"], f"I like {'very ' * number}ripe plums.", id=str(number)) for number in range(9)
]
CHAT = Dialogue("chat", (Turn("Do you like plums?"), Turn("I do."), Turn("So do I.")))


class NotingJudge(Scorer):
    """Says 4 on a scale of 1 to 5, and keeps what it was asked about."""

    name = "noting"
    columns = ("said",)
    range = (1.0, 5.0)

    def __init__(self, level: Any = "turn", *, is_endless: bool = False) -> None:
        self.level = level
        self.asked: list[str] = []
        if is_endless:
            self.range = (0.0, float("inf"))

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        self.asked += [item.id for item in items]
        return [{"said": 4.0} for _ in items]

    def signature_fields(self) -> dict[str, str]:
        return {"method": self.name}


def test_a_mixture_is_a_fifth_of_the_small_score_and_the_rest_of_the_judges_share() -> None:
    alone = SlideScorer(small="random", llm=NotingJudge(), small_weight=1.0).score(EXAMPLES)
    assert alone.values == alone.columns["small"] == alone.columns["random"]
    scores = SlideScorer(small="random", llm=NotingJudge()).score(EXAMPLES)
    assert scores.columns["llm"] == (0.75,) * 9
    assert scores.values == pytest.approx([0.8 * 0.75 + 0.2 * small for small in alone.values if small is not None])
    assert list(scores.columns)[:3] == ["slide", "small", "random"]
    found = str(scores.signature)
    assert found.startswith("method:slide|variant:slide|small_method:random|")
    assert "|fusion:mixture|slm_scale:1.0|small_weight:0.2|llm_method:noting|" in found


def test_a_reading_of_equation_9_takes_another_small_model_too() -> None:
    scores = SlideScorer(small="random", llm=NotingJudge(), fusion="first_match").score(EXAMPLES)
    small = [value for value in scores.columns["small"] if value is not None]
    assert scores.values == pytest.approx([one if one >= 0.5 else (one + 0.75) / 2 for one in small])


def test_the_general_evaluator_fuses_at_both_levels() -> None:
    judge = NotingJudge()
    scorer = SlideScorer(small="general", llm=judge)
    scores = scorer.score([EXAMPLES[0], Example.from_texts(["Tea?"], " ", id="blank")])
    assert scores.unscored[1].reason is Reason.EMPTY_INPUT
    assert judge.asked == ["0"]
    assert scores.columns["small"][0] == scores.columns["general"][0]
    assert "fit" in scores.columns
    assert scorer.explain(EXAMPLES[:1])[0].startswith(scorer.small.explain(EXAMPLES[:1])[0][:10])
    whole = SlideScorer(small="general", llm=NotingJudge("dialogue"), level="dialogue").score([CHAT])
    assert whole.level == "dialogue"
    small = whole.columns["small"][0]
    assert small is not None
    assert whole.values == pytest.approx([0.6 + 0.2 * small])


def test_a_cascade_asks_where_the_small_model_is_unsure_and_nowhere_else() -> None:
    judge = NotingJudge()
    scorer = SlideScorer(small="random", llm=judge, cascade=0.2)
    scores = scorer.score(EXAMPLES)
    small = [value for value in scores.columns["small"] if value is not None]
    unsure = [abs(value - 0.5) <= 0.2 for value in small]
    assert 0 < sum(unsure) < len(unsure)
    assert judge.asked == [item.id for item, is_unsure in zip(EXAMPLES, unsure, strict=True) if is_unsure]
    assert [value is not None for value in scores.columns["llm"]] == unsure
    expected = [0.6 + 0.2 * value if is_unsure else value for value, is_unsure in zip(small, unsure, strict=True)]
    assert scores.values == pytest.approx(expected)
    assert "|cascade:0.2|" in str(scores.signature)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"small": "generals"}, "there is no scorer 'generals'. Did you mean 'general'?"),
        ({"small": "response_length"}, "small: the range of 'response_length' has no two ends"),
        ({"small": "random", "level": "dialogue"}, "small='random' does not score at level 'dialogue'. Name another"),
        ({"small": "random", "clip": True}, "clip is about the SLM, in whose place small='random' is. Leave one out."),
        ({"small": "random", "variant": "slm"}, "variant='slm' is the SLM's, and small='random' is given. Leave one out."),
        (
            {"small": "random", "fusion": "agree", "small_weight": 0.3},
            "small_weight is about a mixture, and fusion is 'agree'.",
        ),
        ({"level": "dialogue"}, "the SLM judges responses. Give small='general' to fuse scores of whole dialogues."),
        ({"small": "random", "cascade": -0.1}, "cascade is -0.1. Give a number from 0."),
        ({"small": "random", "small_weight": 2}, "small_weight is 2. Give a number from 0 to 1."),
        (
            {"cascade": 0.2, "normalise": "population"},
            "cascade looks at one response, and normalise='population' at all. Leave one of them out.",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], message: str) -> None:
    level = options.get("level", "turn")
    said = refusal(SlideScorer, llm=NotingJudge(level), **options)
    assert message in said
    assert said.startswith(("slide: ", "there is no scorer"))


def test_a_judge_has_to_be_of_the_level_and_have_a_range() -> None:
    said = refusal(SlideScorer, small="random", llm=NotingJudge("dialogue"))
    assert said == "slide: llm judges at level 'dialogue', and level is 'turn'. Make them one."
    said = refusal(SlideScorer, small="random", llm=NotingJudge(is_endless=True))
    assert said == "slide: llm: the range of 'noting' has no two ends, so that its scores cannot be fused. Name another."
