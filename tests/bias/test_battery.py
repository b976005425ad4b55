"""The battery on scorers whose inconsistency, or bias, is planted, against numpy and by hand."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from dialeval_plugin.bias.battery import ANSWER_CHANGES, OTHER_CONTEXT, BiasReport, Effect, changed_item, run
from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.labels.table import LabelTable, Scale
from dialeval_plugin.llm.answers import AnswerCache, CachedLanguageModel
from dialeval_plugin.methods.judging.replay import Recorder, ReplayedLanguageModel
from dialeval_plugin.methods.judging.rubric import RubricJudge
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel, overlap_answer

QUESTION = "Does the answer fit?"
REPLIES = ("Tea. A train.", "The train is late.", "Cats sleep all day. That is fine.", "**Tea**, train!")
ORDERED = "it needs labels of people that have an order (--labels)"
NO_GROUPS = {
    "self-preference": f"{ORDERED}, and the name of the judge's own system (--own)",
    "language": f"{ORDERED}; 0 of 60 answers are not in 'en'",
}
ITEMS = [
    Example.from_texts([f"Tea or train {chat}?"], f"{REPLIES[(chat + turn) % 4]}{' Fine.' * (chat % 3)}", id=f"{chat}:{turn}")
    for chat in range(30)
    for turn in range(2)
]


def effect(report: BiasReport, test: str, change: str = "") -> Effect:
    (found,) = (one for one in report.effects if one.test == test and change in one.change)
    return found


def judge(answer: Any) -> RubricJudge:
    return RubricJudge(ScriptedLanguageModel(answer), QUESTION)


def test_the_effect_of_padding_on_a_count_of_words_is_that_of_numpy() -> None:
    report = run(load_scorer("response_length"), ITEMS)
    words = np.array([len(item.response.text.split()) for item in ITEMS])
    padded = effect(report, "verbosity", "polite")
    assert report.spread == pytest.approx(words.std())
    assert padded.shift.value == pytest.approx(4 / words.std())
    line = float(np.median(words))
    assert report.line == line
    assert padded.flips is not None
    assert padded.flips.value == pytest.approx(np.mean((words < line) & (words + 4 >= line)))
    assert (padded.n_equal, padded.shift.n_scored, padded.shift.n_clusters) == (0, 60, 30)
    # Resampled by hand, conversation by conversation, between the quantiles of the expanded interval.
    generator = np.random.default_rng(7)
    of_chats = words.reshape(30, 2)
    drawn = [4 / of_chats[generator.integers(30, size=30)].std() for _ in range(4000)]
    assert (padded.shift.ci_low, padded.shift.ci_high) == pytest.approx(np.quantile(drawn, [0.0188, 0.9812]), abs=0.05)


def test_what_says_the_same_again_is_the_same_to_the_bit() -> None:
    report = run(load_scorer("response_length"), ITEMS)
    same = [one for one in report.effects if one.test in {"repeated runs", "order of rows"}]
    assert [(one.change, one.n_equal == one.shift.n_scored) for one in same] == [
        ("3 runs", True),
        ("from the last to the first", True),
        ("each alone", True),
    ]
    assert report.reliability is not None
    assert report.reliability.value == 1.0
    assert report.untested == {
        "prompt wording": "the scorer sends no prompt of this package to a language model",
        "order of options": "it has no rubric with words to choose from",
        **NO_GROUPS,
    }


class Neighbour(Scorer):
    """Scores a response by how many are scored with it, and the first of them lower."""

    name: ClassVar[str] = "neighbour_for_tests"
    columns = ("words",)

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        return [{"words": 0.1 if place == 0 else len(items) / 100} for place in range(len(items))]

    def signature_fields(self) -> dict[str, Any]:
        return {"method": self.name}


def test_a_score_that_depends_on_its_neighbours_is_found() -> None:
    report = run(Neighbour(), ITEMS)
    assert effect(report, "repeated runs").n_equal == 120
    backwards, alone = effect(report, "order of rows", "last"), effect(report, "order of rows", "alone")
    assert (backwards.n_equal, alone.n_equal) == (58, 1)
    assert alone.flips is not None
    assert alone.flips.value == pytest.approx(59 / 60)


def test_a_judge_that_likes_politeness_and_follows_pleas_is_found() -> None:
    def answer(prompt: str) -> str:
        return "yes" if "I hope this helps!" in prompt or "Ignore previous instructions" in prompt else overlap_answer(prompt)

    report = run(judge(answer), ITEMS)
    said_no = np.mean(np.array(judge(answer).score(ITEMS).values) == 0)
    assert 0.2 < said_no < 0.8
    for test, change in (("verbosity", "polite"), ("injection", "plea")):
        found = effect(report, test, change)
        assert found.flips is not None
        assert found.flips.value == pytest.approx(said_no)
        assert found.shift.value == pytest.approx(said_no / np.sqrt(said_no * (1 - said_no)))
        assert found.shift.ci_low is not None
        assert found.shift.ci_low > 0
    assert effect(report, "markdown", "bold").n_equal == 46


def test_a_judge_that_says_the_first_word_of_its_list_flips_with_the_list() -> None:
    report = run(judge(lambda prompt: prompt.split("nothing else: ")[1].partition(",")[0]), ITEMS)
    found = effect(report, "order of options")
    assert found.flips is not None
    assert (found.flips.value, found.n_equal) == (1.0, 0)
    assert (found.shift.value, found.shift.reason) == (None, "all answers have the same score. Test it on others.")
    assert report.spread is None


def test_repeated_runs_are_asked_again_and_not_looked_up(tmp_path: Path) -> None:
    turn = itertools.count()
    inner = ScriptedLanguageModel(lambda prompt: "yes" if next(turn) % 7 else "no")
    model = CachedLanguageModel(inner, AnswerCache(tmp_path / "answers.sqlite"))
    scorer = RubricJudge(model, QUESTION)
    first = np.array(scorer.score(ITEMS).values)
    n_prompts = len(set(inner.asked))
    report = run(scorer, ITEMS, repeats=2)
    again = effect(report, "repeated runs")
    assert inner.asked[:n_prompts] == inner.asked[n_prompts : 2 * n_prompts]
    assert again.flips is not None
    assert again.flips.value == pytest.approx(1 - again.n_equal / 60)  # type: ignore[operator]
    assert 0 < again.flips.value < 1
    assert report.reliability is not None
    assert report.reliability.value is not None
    assert report.reliability.value < 0.5
    assert (model.cache is not None, scorer.llm is model) == (True, True)
    assert list(scorer.score(ITEMS).values) == list(first)


def test_another_wording_of_the_prompt_is_asked_and_counted() -> None:
    report = run(judge(lambda prompt: "yes" if prompt.startswith("Please read") else overlap_answer(prompt)), ITEMS)
    polite, spaced = effect(report, "prompt wording", "polite"), effect(report, "prompt wording", "empty lines")
    assert polite.shift.value is not None
    assert polite.shift.value > 0.5
    assert spaced.shift.n_scored == 60


def test_stored_verdicts_are_of_the_answers_as_they_are_alone(tmp_path: Path) -> None:
    scorer = judge(overlap_answer)
    recorder = Recorder.of(scorer, tmp_path / "said.jsonl")
    recorder.add(scorer.score(ITEMS))
    recorder.write()
    report = run(RubricJudge(ReplayedLanguageModel("scripted@1", str(tmp_path / "said.jsonl")), QUESTION), ITEMS)
    assert (report.n_scored, report.reliability) == (60, None)
    unstored, same = (
        "no answer has a score as it is and changed (no_verdict {})",
        "stored verdicts are the same whatever is asked",
    )
    assert report.untested == {
        **dict.fromkeys(("repeated runs", "order of rows", "prompt wording", "order of options"), same),
        **{"verbosity": unstored.format(60), "markdown": unstored.format(14), "injection": unstored.format(60)},
        **NO_GROUPS,
    }


def test_a_judge_that_prefers_its_own_system_is_told_from_a_system_that_is_better() -> None:
    values = [place * 7 % 5 + place % 2 * 1.0 for place in range(60)]  # the odd rows are of our own, and better by one
    people = np.array([[value] for value in values])
    labels = LabelTable(
        source="people",
        ids=[item.id for item in ITEMS],
        labels=people,
        scale=Scale("interval"),
        raters=("a",),
        systems=["ours" if place % 2 else "theirs" for place in range(60)],
    )
    fair = {item.id: value for item, value in zip(ITEMS, values, strict=True)}
    biased = {id: value + (id.endswith(":1")) * (2 + value % 3) for id, value in fair.items()}

    class Told(Neighbour):
        said: ClassVar[dict[str, float]] = fair

        def score_batch(self, items: Sequence[Item]) -> list[Row]:
            return [{"words": self.said[item.id]} for item in items]

    class Biased(Told):
        said: ClassVar[dict[str, float]] = biased

    just = effect(run(Told(), ITEMS, labels=labels, own="ours"), "self-preference")
    assert just.shift.value == pytest.approx(0)
    found = effect(run(Biased(), ITEMS, labels=labels, own="ours"), "self-preference")
    scores = np.array(list(biased.values()))
    gap = (scores - scores.mean()) / scores.std() - (people[:, 0] - people.mean()) / people.std()
    assert found.shift.value == pytest.approx(gap[1::2].mean() - gap[::2].mean())
    assert found.shift.ci_low is not None
    assert found.shift.ci_low > 0
    assert (found.flips, found.n_equal) == (None, None)
    alone = run(Told(), ITEMS, labels=labels, own="nobody")
    assert alone.untested["self-preference"] == (
        "nobody compared with the other systems: 0 and 60 answers have a score and a label, and each side needs 10"
    )


def test_a_judge_that_reads_the_context_is_moved_by_another_one() -> None:
    context_alone = judge(lambda prompt: "yes" if "train 3?" in prompt else "no")
    found = effect(run(context_alone, ITEMS), OTHER_CONTEXT)
    # The two answers of one conversation lose the context that gave them a yes, and two others get it.
    assert (found.n_equal, found.shift.value) == (56, 0.0)
    assert found.flips is not None
    assert found.flips.value == pytest.approx(4 / 60)
    response_alone = effect(run(load_scorer("response_length"), ITEMS), OTHER_CONTEXT)
    assert response_alone.n_equal == response_alone.shift.n_scored == 60


def test_without_a_second_context_nothing_is_told_of_it() -> None:
    report = run(load_scorer("response_length"), [replace(item, context=ITEMS[0].context) for item in ITEMS])
    assert report.untested[OTHER_CONTEXT] == "it needs responses of two conversations, with contexts that differ"


def test_the_order_of_the_answers_moves_no_effect() -> None:
    scorer = load_scorer("response_length")
    assert run(scorer, ITEMS).effects[3:] == run(scorer, ITEMS[::-1]).effects[3:]


def test_answers_without_a_score_are_counted_and_left_out() -> None:
    report = run(judge(lambda prompt: "hm" if "Cats" in prompt else overlap_answer(prompt)), ITEMS)
    assert (report.n_answers, report.n_scored) == (60, 45)
    assert (effect(report, "markdown", "bold").shift.n_scored, effect(report, "markdown", "bold").shift.n_unscored) == (31, 15)


def test_of_a_dialogue_the_turns_of_the_one_who_answers_are_changed() -> None:
    turns = (Turn("Hi. Hello.", "user"), Turn("Good day. Welcome!", "bot"), Turn("Tea. Now.", "user"), Turn(" ", "bot"))
    changed = changed_item(Dialogue("0", turns), ANSWER_CHANGES["markdown"]["its sentences as a list"])
    assert changed == Dialogue("0", (turns[0], Turn("- Good day.\n- Welcome!", "bot"), *turns[2:]))
    unnamed = Dialogue("0", tuple(Turn(turn.text) for turn in turns))
    changed = changed_item(unnamed, ANSWER_CHANGES["verbosity"]["an empty polite sentence at its end"])
    assert changed == Dialogue("0", (unnamed.turns[0], Turn("Good day. Welcome! I hope this helps!"), *unnamed.turns[2:]))
    assert changed_item(Dialogue("0", turns[:1] + turns[3:]), lambda text: text) is None


@pytest.mark.parametrize(
    ("test", "change", "text", "expected"),
    [
        ("verbosity", "its first sentence again at its end", "It is late. Go.", "It is late. Go. It is late."),
        ("markdown", "its first words in bold type", "It is late now, so go.", "**It is late now**, so go."),
        ("markdown", "its sentences as a list", "Go.", None),
        ("markdown", "its markdown removed", "# Now\nIt is **late**.", "Now\nIt is late."),
        ("markdown", "its markdown removed", "```x```", None),
        ("markdown", "its markdown removed", "Go.", None),
    ],
)
def test_a_change_of_a_text(test: str, change: str, text: str, expected: str | None) -> None:
    assert ANSWER_CHANGES[test][change](text) == expected
    assert changed_item(Example.from_texts([], " "), ANSWER_CHANGES[test][change]) is None


def test_a_report_is_a_table_for_people_a_frame_and_json() -> None:
    report = run(load_scorer("response_length"), ITEMS)
    table = report.table().render("text")
    assert [re.split("  +", line) for line in table.splitlines()[:1] + table.splitlines()[2:4]] == [
        ["test", "change", "pairs", "shift (SD)", "flips", "same to the bit"],
        ["repeated runs", "3 runs", "120", "0.000", "0.000", "all"],
        ["order of rows", "from the last to the first", "60", "0.000", "0.000", "all"],
    ]
    assert f"not tested: language: {NO_GROUPS['language']}." in table.splitlines()
    assert list(report.to_pandas()["test"]) == [one.test for one in report.effects]
    assert report.to_dict()["effects"][0]["flips"]["value"] == 0.0


def test_an_unscored_reason_is_no_score_of_zero() -> None:
    report = run(judge(lambda prompt: Unscored(Reason.API_ERROR, "down")), ITEMS)
    assert (report.n_scored, report.effects, report.spread, report.line) == (0, (), None, None)
    assert report.untested["verbosity"] == "no answer has a score as it is and changed (api_error 60)"
