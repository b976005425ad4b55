"""Reported dialogues are found in training dialogues whatever the copies look like, and greetings are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.corpora.dialogues import read_dialogues
from dialeval_plugin.corpora.leaks import (
    Leak,
    LeakCount,
    ReportedDialogue,
    ReportedDialogues,
    count_leaks,
    find_leaks,
    without_leaks,
)
from dialeval_plugin.corpora.readers.grounded import GroundedDialogue
from dialeval_plugin.corpora.reported import read_reported

MEAL = ("Excuse me .", "Did your meal meet with your approval ?", "Our meal was absolutely perfect !", "I'm glad .")


def dialogue(*texts: str) -> Dialogue:
    return Dialogue("train", tuple(Turn(text) for text in texts))


def reported(context: list[str], response: str = "What?", references: tuple[str, ...] = ()) -> ReportedDialogues:
    return ReportedDialogues({"dz": [Example.from_texts(context, response, id="dz_0", references=references)]})


def is_leak(training: Dialogue, index: ReportedDialogues) -> bool:
    return bool(index.find(training))


@pytest.mark.parametrize(
    "context",
    [
        list(MEAL[:3]),
        ["did your meal meet with your approval?", "our meal was absolutely perfect!"],
        ["Did your meal\u00a0meet, with your approval", " Our meal was _absolutely_ perfect\u2026 "],
        ["User: Did your meal meet with your approval?", "System: Our meal was absolutely perfect!"],
        [
            "your persona: i eat.\nyour persona: a lot.\nDid your meal meet with your approval?",
            "Our meal was absolutely perfect!",
        ],
        ["Quite another beginning of it.", "Did your meal meet with your approval?", "--", "Our meal was absolutely perfect!"],
    ],
)
def test_a_part_is_found_however_it_is_spaced_punctuated_and_prefixed(context: list[str]) -> None:
    assert is_leak(dialogue(*MEAL), reported(context))
    assert is_leak(Dialogue("reversed", tuple(map(Turn, context))), reported(list(MEAL)))


def test_a_leak_is_the_longest_run_in_common() -> None:
    index = reported([*MEAL[1:3], "Something else.", *MEAL])
    (leak,) = index.find(dialogue("Well.", *MEAL, "Bye."))
    assert leak == Leak(ReportedDialogue("dz", "dz_0"), MEAL)


def test_the_response_and_each_reference_may_be_what_follows() -> None:
    context = list(MEAL[1:2])
    assert is_leak(dialogue(*MEAL), reported(context, MEAL[2]))
    assert is_leak(dialogue(*MEAL), reported(context, "What?", ("Fine, thanks.", MEAL[2])))
    # A response and a reference are two continuations; neither follows the other.
    assert not is_leak(
        dialogue("Our meal was absolutely perfect!", "Here is the bill, please sign it."),
        reported(["Hm?"], "Our meal was absolutely perfect!", ("Here is the bill, please sign it.",)),
    )


@pytest.mark.parametrize(
    "texts",
    [
        ("hi",),
        ("Hi!", "Hi!"),
        ("Hi!", "How are you?"),
        ("Hello", "Hello, how are you doing today?"),
        ("Thanks a lot .", "You're welcome ."),
        # One utterance alone, however long, is no run.
        ("Did your meal meet with your approval, and would you like to see the bill?",),
        # The same two utterances, not one after the other in both.
        ("Did your meal meet with your approval ?", "Yes, it did indeed.", "Our meal was absolutely perfect !"),
    ],
)
def test_what_many_dialogues_share_is_no_leak(texts: tuple[str, ...]) -> None:
    assert not is_leak(dialogue(*texts), reported([*texts[:1], *MEAL[1:3]]))
    if len(texts) < 3:
        assert not is_leak(dialogue(*texts), reported(list(texts)))


def test_the_words_of_a_run_count_together_and_each_once() -> None:
    short = ("one two", "three four", "five six", "seven eight")
    assert is_leak(dialogue(*short), reported(list(short)))
    assert not is_leak(dialogue(*short[:3]), reported(list(short)))
    again = ("one two one two one", "two one two one two")
    assert not is_leak(dialogue(*again), reported(list(again)))
    # Two runs with a gap between them are not one.
    assert not is_leak(dialogue(*short[:2], "other", *short[2:]), reported([*short[:2], "else", *short[2:]]))


def test_counts_are_of_training_dialogues_and_of_distinct_contexts() -> None:
    responses = [Example.from_texts(list(MEAL), answer, id=answer) for answer in ("a", "b")]
    other = Example.from_texts(["Where do you keep the spare keys now?", "Under the old flower pot."], "Oh.", id="c")
    whole = Dialogue("d", tuple(map(Turn, ("Where do you keep the spare keys now?", "Under the old flower pot."))))
    index = ReportedDialogues({"tu": [*responses, other], "fd": [whole], "eg": []})
    assert index.sizes == {"tu": 2, "fd": 1, "eg": 0}
    training = [
        dialogue(*MEAL),
        dialogue("Tea?", "No."),
        dialogue(*MEAL, *(turn.text for turn in whole.turns)),
    ]
    found = find_leaks(training, index)
    assert [[(leak.reported.set_name, leak.reported.id) for leak in leaks] for leaks in found] == [
        [("tu", "a")],
        [],
        [("tu", "a"), ("tu", "c"), ("fd", "d")],
    ]
    counts = {"tu": LeakCount(2, 2), "fd": LeakCount(1, 1), "eg": LeakCount(0, 0)}
    assert count_leaks(found, index) == counts
    cleaned = without_leaks(training, index)
    assert (cleaned.kept, cleaned.counts) == ([training[1]], counts)
    with_facts = [GroundedDialogue(one, {"you": ("i ski.",)}) for one in training]
    assert without_leaks(with_facts, index).kept == [with_facts[1]]


def test_what_is_too_short_to_be_told_without_a_response_is_counted() -> None:
    toilet = Example.from_texts(
        ["Where's the toilet?"], "I really have no idea, sorry, ask someone else.", references=("Over there.",)
    )
    meal = Example.from_texts(list(MEAL[1:2]), "What?", references=(MEAL[2],))
    index = ReportedDialogues({"dgu": [toilet, meal]})
    assert (index.sizes, index.too_short) == ({"dgu": 2}, {"dgu": 1})


TEXTS = st.lists(st.sampled_from(["ab", "cd ef", "gh ij", "kl kl mn"]), min_size=1, max_size=8)


@given(TEXTS, TEXTS)
def test_the_index_finds_what_comparing_every_run_finds(training: list[str], context: list[str]) -> None:
    def runs(texts: list[str]) -> set[tuple[str, ...]]:
        places = range(len(texts))
        return {tuple(texts[first : last + 1]) for first in places for last in places if first < last}

    expected = any(len(set(" ".join(run).split())) >= 5 for run in runs(training) & runs(context))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dialeval_plugin.corpora.leaks.MIN_WORDS", 5)
        assert is_leak(dialogue(*training), reported(context, "What?")) == expected


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("file", "names", "found"),
    [
        # Where each set's contexts are known to come from: nearly all of them are found.
        ("personachat/valid_self_original_no_cands.txt", ["cg", "pu", "pz"], {"cg": 258, "pu": 60, "pz": 147}),
        ("dailydialog/test/dialogues_test.txt", ["dgu", "cg"], {"dgu": 97, "cg": 0}),
        ("dream/test.json", ["dgu", "ft"], {"dgu": 0, "ft": 0}),
    ],
)
def test_reported_sets_are_found_in_the_corpora_that_they_come_from(
    data_dir: Path, file: str, names: list[str], found: dict[str, int]
) -> None:
    index = ReportedDialogues(read_reported(names).sets)
    cleaned = without_leaks(read_dialogues(data_dir / file), index)
    assert {name: count.n_reported for name, count in cleaned.counts.items()} == found
    assert not any(find_leaks(cleaned.kept, index))
