"""Replayed verdicts: the scorer, and the language model that answers every kind of our prompts from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.files import write_json_lines
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.corpora.verdicts import ItemKey
from dialeval_plugin.hosts.judges import load_scorer_with_judge
from dialeval_plugin.llm.language_model import AskedPrompt, Question, Request
from dialeval_plugin.methods.judging.replay import ReplayedJudge, ReplayedLanguageModel
from tests.refusals import refused

GOOD = Example.from_texts(["Tea?"], "Yes, please.", id="good")
BAD = Example.from_texts(["Tea?"], "Trains are late.", id="bad")
WRONG = Example.from_texts(["Tea?"], "Seven.", id="wrong")
NEW = Example.from_texts(["Tea?"], "Nobody was asked about this.", id="new")
CHAT = Dialogue("chat", (Turn("Tea?"), Turn("Yes, please.")))
QUALITIES = ("overall", "naturalness", "coherence", "engagingness", "groundedness")
SOURCE = "hf:big@1"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """On a scale of 1 to 5: GOOD 4 and 5 in two runs, BAD 2, WRONG 9, CHAT 3."""
    said = ((GOOD, (4, 5)), (BAD, (2, 2)), (WRONG, (9, 9)), (CHAT, (3, 3)))
    rows = [
        {"judge": SOURCE, "quality": quality, "level": key.level, "scale": [1, 5], "item": key.text, "score": score}
        for quality in QUALITIES
        for item, scores in said
        for key in [ItemKey.of(item)]
        for score in scores
    ]
    write_json_lines(path := tmp_path / "kept.jsonl", rows)
    return path


def replayed(scorer: str, kept: Path, **options: Any) -> Scorer:
    return load_scorer_with_judge(scorer, {"llm": "replay-judge", "llm_args": f"source={SOURCE},verdicts={kept}", **options})


def test_the_scorer_gives_what_was_said_and_says_where_nothing_was(kept: Path) -> None:
    scores = ReplayedJudge(SOURCE, verdicts=str(kept)).score([GOOD, BAD, WRONG, NEW])
    assert scores.values == (4.5, 2.0, None, None)
    assert scores.unscored[2] == Unscored(Reason.OUT_OF_RANGE, f"{SOURCE} said 9, and its scale is 1 to 5")
    assert scores.unscored[3] == Unscored(Reason.NO_VERDICT, f"{SOURCE} has no stored verdict about it")
    assert f"method:replay_judge|llm:replayed:{SOURCE}/overall@" in str(scores.signature)
    dialogues = ReplayedJudge(SOURCE, level="dialogue", verdicts=str(kept))
    assert (dialogues.range, dialogues.score([CHAT]).values) == ((1.0, 5.0), (3.0,))


@pytest.mark.parametrize(
    ("scorer", "options", "expected"),
    [
        ("llm_judge", {}, (0.875, 0.25)),  # a share of the scale
        ("llm_judge", {"prompt": "dre"}, (0.875, 0.25)),
        ("dre", {"variant": "non_dre"}, (4.375, 1.25)),  # from 0 to 5
        ("g_eval", {"mode": "weighted"}, (2.75, 1.5)),  # from 1 to 3
        ("llm_chiang", {"mode": "weighted"}, (4.5, 2.0)),  # from 1 to 5
        ("dialogue_rating", {}, (3.5, 1.0)),  # from 0 to 4
    ],
)
def test_each_prompt_gets_the_verdict_on_its_own_scale(
    kept: Path, scorer: str, options: dict[str, Any], expected: tuple[float, float]
) -> None:
    scores = replayed(scorer, kept, **options).score([GOOD, BAD, WRONG, NEW])
    assert scores.values[:2] == pytest.approx(expected)
    assert [scores.unscored[place].reason for place in (2, 3)] == [Reason.OUT_OF_RANGE, Reason.NO_VERDICT]
    assert f"|llm:replayed:{SOURCE}@" in str(scores.signature)


def test_answers_that_are_drawn_are_those_of_the_runs(kept: Path) -> None:
    scores = replayed("g_eval", kept, n_samples=3, keep_samples=True, criteria="coherence").score([GOOD])
    found = [scores.columns[f"coherence_{number}"][0] for number in (1, 2, 3)]
    assert found[:2] == pytest.approx([2.5, 3.0])
    assert (found[2], scores.columns["coherence_unread"]) == (None, (1.0,))


def test_a_run_that_is_not_stored_never_counts_as_an_unreadable_answer(kept: Path) -> None:
    scores = replayed("g_eval", kept, n_samples=3, unparsed=0, criteria="coherence").score([BAD])
    assert scores.values == (1.5,)


def test_a_listener_hears_of_each_answer(kept: Path) -> None:
    heard: dict[int, str] = {}
    prompts = [AskedPrompt.of("Rate it.", item, Question("overall", (0.0, 1.0))) for item in (BAD, NEW, GOOD)]
    model = ReplayedLanguageModel(SOURCE, str(kept))
    model.generate([Request(prompt, 8) for prompt in prompts], on_answer=heard.__setitem__)
    assert heard == {0: "0.25", 2: "0.875"}


def test_a_whole_dialogue_is_replayed_by_the_prompt_for_dialogues(kept: Path) -> None:
    assert replayed("dialogue_rating", kept, level="dialogue").score([CHAT]).values == pytest.approx((2.0,))


def test_a_prompt_that_asks_for_more_than_a_rating_has_no_answer(kept: Path, tiny_slm: Path) -> None:
    scores = replayed("dre", kept, slm=str(tiny_slm)).score([GOOD])
    detail = "the prompt asks for more than a rating, and ratings alone are stored"
    assert scores.unscored[0] == Unscored(Reason.NO_VERDICT, detail)
    # Nor has a text that is none of our prompts.
    assert ReplayedLanguageModel(SOURCE, str(kept)).generate([Request("Hello?", 8)]) == [Unscored(Reason.NO_VERDICT, detail)]


def test_arguments_that_do_not_exist_are_refused(kept: Path) -> None:
    with refused("replay_judge: no judge is named. Pass source='gpt-4/comp-analysis'.", MissingPrerequisite):
        ReplayedJudge()
    with refused("replay-judge: whose verdicts are meant? Pass llm_args='source=gpt-4/comp-analysis'."):
        load_scorer_with_judge("llm_judge", {"llm": "replay-judge"})
    with pytest.raises(Exception, match=r"replay-judge: .*'sauce'.*Did you mean 'source'"):
        load_scorer_with_judge("llm_judge", {"llm": "replay-judge", "llm_args": "sauce=x"})
