"""Dialogues are known by their openings, split by them, and reported ones found in training ones whatever copies look like."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn, mean_rating
from dialeval_plugin.corpora.identity import (
    Leak,
    LeakCount,
    LeakIndex,
    ReportedDialogue,
    dialogue_key,
    opening_key,
    set_aside,
    split_by_dialogue,
)
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.registry import read_dialogues, read_reported
from tests.refusals import refusal, refused

MEAL = ("Excuse me .", "Did your meal meet with your approval ?", "Our meal was absolutely perfect !", "I'm glad .")


def dialogue(*texts: str) -> Dialogue:
    return Dialogue("train", tuple(Turn(text) for text in texts))


def reported(context: list[str], response: str = "What?", references: tuple[str, ...] = ()) -> LeakIndex:
    return LeakIndex({"dz": [Example.from_texts(context, response, id="dz_0", references=references)]})


def is_leak(training: Dialogue, index: LeakIndex) -> bool:
    return bool(index.find([turn.text for turn in training.turns]))


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
    (leak,) = index.find(["Well.", *MEAL, "Bye."])
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
        assert not is_leak(dialogue("Well.", *texts), reported(list(texts)))


@pytest.mark.parametrize("texts", [("hi",), ("Hi!", "How are you?"), ("Hi!", "Hello.", "How are you?")])
def test_what_opens_alike_is_a_leak_however_short(texts: tuple[str, ...]) -> None:
    index = reported([f" {text.upper()} ..." for text in texts])
    assert index.find(texts) == [Leak(ReportedDialogue("dz", "dz_0"), texts)]
    assert is_leak(dialogue(*texts, "Fine."), index) == (len(texts) == 3)
    assert not is_leak(dialogue("...", "?"), reported(["!", " "]))


def test_the_words_of_a_run_count_together_and_each_once() -> None:
    short = ("one two", "three four", "five six", "seven eight")
    assert is_leak(dialogue(*short), reported(list(short)))
    assert not is_leak(dialogue("Well.", *short[:3]), reported(list(short)))
    again = ("one two one two one", "two one two one two")
    assert not is_leak(dialogue("Well.", *again), reported(list(again)))
    # Two runs with a gap between them are not one.
    assert not is_leak(dialogue(*short[:2], "other", *short[2:]), reported([*short[:2], "else", *short[2:]]))


def test_counts_are_of_training_dialogues_and_of_distinct_contexts() -> None:
    responses = [Example.from_texts(list(MEAL), answer, id=answer) for answer in ("a", "b")]
    other = Example.from_texts(["Where do you keep the spare keys now?", "Under the old flower pot."], "Oh.", id="c")
    whole = Dialogue("d", tuple(map(Turn, ("Where do you keep the spare keys now?", "Under the old flower pot."))))
    index = LeakIndex({"tu": [*responses, other], "fd": [whole], "eg": []})
    assert index.sizes == {"tu": 2, "fd": 1, "eg": 0}
    training = [dialogue(*MEAL), dialogue("Tea?", "No."), dialogue(*MEAL, *(turn.text for turn in whole.turns))]
    found = [index.find([turn.text for turn in one.turns]) for one in training]
    assert [[(leak.reported.set_name, leak.reported.id) for leak in leaks] for leaks in found] == [
        [("tu", "a")],
        [],
        [("tu", "a"), ("tu", "c"), ("fd", "d")],
    ]
    counts = {"tu": LeakCount(2, 2), "fd": LeakCount(1, 1), "eg": LeakCount(0, 0)}
    assert index.count(found) == counts


def test_what_is_too_short_to_be_told_without_a_response_is_counted() -> None:
    answer = "I really have no idea, sorry, ask someone else."
    toilet = Example.from_texts(["Where's the toilet?"], answer, references=("Over there.",))
    meal = Example.from_texts(list(MEAL[1:2]), "What?", references=(MEAL[2],))
    index = LeakIndex({"dgu": [toilet, meal]})
    assert (index.sizes, index.too_short) == ({"dgu": 2}, {"dgu": 1})


TEXTS = st.lists(st.sampled_from(["ab", "cd ef", "gh ij", "kl kl mn"]), min_size=1, max_size=8)


@given(TEXTS, TEXTS)
def test_the_index_finds_what_comparing_every_run_finds(training: list[str], context: list[str]) -> None:
    def runs(texts: list[str]) -> set[tuple[str, ...]]:
        places = range(len(texts))
        return {tuple(texts[first : last + 1]) for first in places for last in places if first < last}

    expected = any(len(set(" ".join(run).split())) >= 5 for run in runs(training) & runs(context))
    expected = expected or training[:3] == context[:3]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dialeval_plugin.corpora.identity.MIN_WORDS", 5)
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
    index = LeakIndex(read_reported(names).sets)
    leaks = [index.find([turn.text for turn in one.turns]) for one in read_dialogues(data_dir / file)]
    assert {name: count.n_reported for name, count in index.count(leaks).items()} == found


def test_copies_and_beginnings_of_a_dialogue_share_a_key() -> None:
    turns = ["Hello there.", "Hi!", "How are you?", "Fine."]
    assert opening_key(turns) == opening_key([" hello  There.", "Hi!", " ", "How are YOU ?", "Bad."])
    assert opening_key(turns) != opening_key([*turns[:2], "Who are you?"])
    assert dialogue_key(turns) == dialogue_key([text.upper() for text in turns]) != dialogue_key(turns[:3])


Said = tuple[str, int]


def key(item: Said) -> str:
    return item[0]


SAID = [(name, number) for name in "abcdefghij" for number in range(3)]


@pytest.mark.parametrize(("fraction", "n_keys"), [(0.01, 1), (0.3, 3), (0.99, 9)])
def test_a_share_of_the_dialogues_is_set_aside_by_the_seed_alone(fraction: float, n_keys: int) -> None:
    training, validation = split_by_dialogue(SAID, None, key, fraction=fraction, seed=1)
    assert len(set(map(key, validation))) == n_keys
    assert not set(map(key, training)) & set(map(key, validation))
    assert sorted([*training, *validation]) == SAID
    backwards = split_by_dialogue(SAID[::-1], None, key, fraction=fraction, seed=1)
    assert tuple(map(sorted, backwards)) == (training, validation)
    assert set_aside("abcdefghij", fraction=0.3, seed=1) != set_aside("abcdefghij", fraction=0.3, seed=2)


def test_each_corpus_gives_its_share() -> None:
    said = [(f"{corpus}{number}", 0) for corpus in "xy" for number in range(10 if corpus == "x" else 40)]
    _, validation = split_by_dialogue(said, None, key, fraction=0.2, seed=3, corpus=lambda item: item[0][0])
    assert [sum(item[0][0] == corpus for item in validation) for corpus in "xy"] == [2, 8]


def test_what_opens_like_a_validation_dialogue_is_left_out_of_training(caplog: pytest.LogCaptureFixture) -> None:
    training, validation = split_by_dialogue(SAID, [("a", 7), ("z", 0)], key, fraction=0.3, seed=1)
    assert (training, validation) == (SAID[3:], [("a", 7), ("z", 0)])
    assert caplog.messages == ["3 of 30 training dialogues open like a validation dialogue and are left out"]


@pytest.mark.parametrize(
    ("training", "validation", "fraction", "message"),
    [
        (SAID, None, 1.5, "validation_fraction: expected a number between 0 and 1, got 1.5."),
        (SAID[:3], None, 0.1, "training data: 3 dialogues to train on and 0 to validate on {}"),
        (SAID[:3], SAID[:1], 0.1, "training data: 0 dialogues to train on and 1 to validate on {}"),
        ([], None, 0.1, "training data: 0 dialogues to train on and 0 to validate on {}"),
    ],
)
def test_too_few_dialogues_are_refused(
    training: list[Said], validation: list[Said] | None, fraction: float, message: str
) -> None:
    with refused(message.format("are left, at least 1 of each is needed. Give more dialogues.")):
        split_by_dialogue(training, validation, key, fraction=fraction, seed=1)


def example(*context: str, response: str = "Yes.", id: str = "0") -> Example:
    return Example.from_texts(context, response, id=id)


def test_mean_rating_is_the_mean_of_what_is_there() -> None:
    item = Example("7", (), Turn("Yes."), ratings={"Overall": (1.0, 2.0, 4.0), "Recovery": ()})
    assert mean_rating(item, "Overall") == pytest.approx(7 / 3)
    assert mean_rating(item, "Recovery") is None
    assert refusal(mean_rating, item, "overall") == "'7': has no quality 'overall'. It has: Overall, Recovery."
    assert refusal(mean_rating, example(), "overall") == "'0': has no quality 'overall'. It has: none."


def test_context_key_ignores_response_white_space_and_speaker() -> None:
    spoken = Example("1", (Turn("  How  are\tyou? ", "User"),), Turn("Fine."))
    assert context_key(spoken) == context_key(example("How are you?", response="Bad."))


def test_context_key_is_shared_by_the_points_of_one_dialogue() -> None:
    early = example("Hi!", "Hello.", "Tea?")
    late = example("Hi!", "Hello.", "Tea?", "Yes.", "Milk?")
    whole = Dialogue("d", tuple(map(Turn, ("Hi!", "Hello.", "Tea?", "Yes.", "Milk?", "No."))))
    assert context_key(early) == context_key(late) == context_key(whole)
    assert context_key(early) != context_key(example("Hi!", "Hello.", "Coffee?"))


def test_context_key_of_short_contexts_is_the_whole_context() -> None:
    assert len({context_key(item) for item in (example("Hi!"), example("Hi!", "Hello."), example("Hi! Hello."))}) == 3


def test_items_without_a_context_are_alone() -> None:
    assert context_key(example(id="a")) == context_key(example(id="a")) != context_key(example(id="b"))
