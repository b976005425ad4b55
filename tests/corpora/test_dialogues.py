"""Whole dialogues as unlabelled text: every irregularity of the corpora that are published without ratings, and our lines."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.corpora.corpus import GroundedDialogue
from dialeval_plugin.corpora.readers import convai
from dialeval_plugin.corpora.registry import read_dialogues, read_grounded
from tests.layouts import convai1_rows, convai2_rows, lines, write


def test_dream_has_turns_with_speakers_and_questions_that_are_left_out(tmp_path: Path) -> None:
    rows = [
        [["M: Hi.", "Mrs. Smith:He,s late.", "No one speaks.", " "], [{"question": "Who?"}], "1-1"],
        [["W: 10:15."], [], "1-1"],
    ]
    assert read_dialogues(write(tmp_path / "train.json", *rows)) == [
        Dialogue("1-1", (Turn("Hi.", "M"), Turn("He,s late.", "Mrs. Smith"), Turn("No one speaks."))),
        Dialogue("1-1#2", (Turn("10:15.", "W"),)),
    ]


def test_esconv_has_no_ids_and_survey_scores_that_are_left_out(tmp_path: Path) -> None:
    seeker = [{"text": text, "speaker": "usr"} for text in ("", "Hi", "Well")]
    turns = [{"text": "Hi ", "speaker": "sys", "strategy": "Question"}, *seeker]
    line = {"survey_score": {"seeker": {"empathy": "4"}, "supporter": {}}, "dialog": turns}
    assert read_dialogues(write(tmp_path / "valid.txt", lines(line))) == [
        Dialogue("valid_00000", (Turn("Hi", "supporter"), Turn("Hi", "seeker"), Turn("Well", "seeker")))
    ]


def test_dailydialog_has_an_end_of_utterance_after_each_and_no_speakers(tmp_path: Path) -> None:
    text = "I ’ m late . __eou__ Why ? __eou__ __eou__\n\nHi . __eou__ Hi . __eou__ \n"
    assert read_dialogues(write(tmp_path / "dialogues_train.txt", text)) == [
        Dialogue("dialogues_train_00000", (Turn("I ’ m late ."), Turn("Why ?"))),
        Dialogue("dialogues_train_00001", (Turn("Hi ."), Turn("Hi ."))),
    ]


def test_contexts_with_their_responses_and_our_own_lines(tmp_path: Path) -> None:
    pair = {"history": ["W: Hi.", ""], "response": "M: Hello.", "entities": []}
    assert read_dialogues(write(tmp_path / "x_response_cause_train.json", pair)) == [
        Dialogue("x_train_00000", (Turn("Hi.", "W"), Turn("Hello.", "M")))
    ]
    ours = write(tmp_path / "mine.jsonl", '{"turns": ["Hi.", "", "Hello."]}\n')
    assert read_dialogues(ours) == [Dialogue("mine_00000", (Turn("Hi."), Turn("Hello.")))]
    # Of DailyDialog++ the first positive response.
    row = {"id": 7, "context": ["Late ?", " "], "positive_responses": ["No.", "Yes."], "random_negative_responses": ["Tea?"]}
    only = {"dialog_id": "b", "context": ["Hi."], "positive_responses": []}
    assert read_dialogues(write(tmp_path / "dev.json", lines(row, only))) == [
        Dialogue("7", (Turn("Late ?"), Turn("No."))),
        Dialogue("b", (Turn("Hi."),)),
    ]


def test_logs_of_convai_lose_ratings_blank_turns_and_empty_dialogues(tmp_path: Path) -> None:
    first, empty, last = convai1_rows(3)
    first["thread"][0]["text"] = " "
    empty["thread"] = []
    texts = ("Hi there. (2)", "Hello, do you like tea? (2)", "I do. (2)", "And cake? (2)")
    assert read_dialogues(write(tmp_path / "data_train.json", first, empty, last)) == [
        Dialogue("-1000", (Turn("Hello, do you like tea? (0)", "Bob"),), "Bot"),
        Dialogue("-1002", tuple(map(Turn, texts, ("Alice", "Bob", "Alice", "Bob"))), "Human"),
    ]
    assert read_dialogues(write(tmp_path / "export.json", *convai2_rows(1))) == [
        Dialogue("0x0", (Turn("Hi there. (0)", "participant1"), Turn("Hello, do you like tea? (0)", "participant2")))
    ]


SIZES = {
    **{"dream/train.json": 3869, "dream/dev.json": 1288, "dream/test.json": 1287},
    **{"esconv/train.txt": 910, "esconv/valid.txt": 195, "esconv/test.txt": 195},
    **{f"dailydialog/{name}/dialogues_{name}.txt": n for name, n in (("train", 11118), ("validation", 1000), ("test", 1000))},
    **{"dailydialog_pp/dev.json": 1028, "dailydialog_pp/data_with_contexts_and_positive_responses_only.json": 7641},
    **{f"empathetic_dialogues/{name}.csv": n for name, n in (("afraid", 797), ("angry", 863), ("annoyed", 876))},
    **{f"empathetic_dialogues/{name}.csv": n for name, n in (("anticipating", 754), ("anxious", 773))},
    **{f"empathetic_dialogues/{name}.csv": n for name, n in (("apprehensive", 608), ("ashamed", 628), ("caring", 683))},
}
DISTINCT = {"train": 10549, "validation": 995, "test": 996}
"""Sizes of DailyDialog, which has some dialogues twice."""


@pytest.mark.real_data
@pytest.mark.parametrize(("file", "size"), SIZES.items())
def test_the_published_files_have_their_published_sizes(data_dir: Path, file: str, size: int) -> None:
    dialogues = read_dialogues(data_dir / file)
    assert len(dialogues) == size
    if file.startswith("dailydialog/"):
        assert len({dialogue.turns for dialogue in dialogues}) == DISTINCT[file.split("/")[1]]


@pytest.mark.real_data
def test_the_logs_of_convai_have_their_published_sizes(data_dir: Path) -> None:
    # 119 of ConvAI1's 2,778 threads are empty, and in the threads 216 texts are blank.
    files = [data_dir / "convai1" / name for name in convai.CONVAI1_FILES]
    rated = convai.read_convai1(files)
    dialogues = [dialogue for path in files for dialogue in read_dialogues(path)]
    assert (len(rated), len(dialogues)) == (2778, 2778 - 119)
    n_turns = [sum(len(dialogue.turns) for dialogue in some) for some in (rated, dialogues)]
    assert n_turns[0] - n_turns[1] == 216


def test_agents_are_the_speakers_and_no_rating_is_looked_at(tmp_path: Path) -> None:
    said = {"sentiment": "Neutral", "knowledge_source": ["FS1"]}
    content = [
        {"message": "Do you like football? ", "agent": "agent_1", "turn_rating": "Good", **said},
        {"message": "I do.\nYou?", "agent": "agent_2", "turn_rating": "", **said},
        {"message": " ", "agent": "agent_1", "turn_rating": None, **said},
    ]
    about = {"article_url": "https://example.org", "config": "B", "conversation_rating": {}}
    other = [{"message": "Hi.", "agent": "agent_2", **said}]
    rows = {"t_a": {**about, "content": content}, "t_b": {**about, "content": other}}
    assert read_dialogues(write(tmp_path / "valid_freq.json", json.dumps(rows))) == [
        Dialogue("t_a", (Turn("Do you like football?", "agent_1"), Turn("I do.\nYou?", "agent_2"))),
        Dialogue("t_b", (Turn("Hi.", "agent_2"),)),
    ]


@pytest.mark.real_data
def test_topical_chats_file_has_its_published_size(data_dir: Path) -> None:
    dialogues = read_dialogues(data_dir / "topical_chat" / "valid_freq.json")
    assert len(dialogues) == len({dialogue.turns for dialogue in dialogues}) == 539
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    assert len(turns) == 11681
    assert {turn.speaker for turn in turns} == {"agent_1", "agent_2"}
    assert sum("\n" in turn.text for turn in turns) > 0


HEADER = "Dialog_ID,Type,Actor,Text\n"
FIRST = "hit:1_conv:2,situation,none,My car caught fire\nhit:1_conv:2,utterance,speaker,My car caught fire!\n"


def test_the_situation_is_a_fact_of_the_speaker_and_no_turn(tmp_path: Path) -> None:
    rest = (
        'hit:1_conv:2,utterance,listener,"Oh, what did you ""do""?"\n'
        "hit:1_conv:2,utterance,speaker,\n"
        "hit:3_conv:4,situation,none,An exam\n"
        "hit:3_conv:4,utterance,speaker,I failed .\n"
    )
    path = write(tmp_path / "afraid.csv", HEADER + FIRST + rest)
    turns = (Turn("My car caught fire!", "speaker"), Turn('Oh, what did you "do"?', "listener"))
    assert read_grounded(path) == [
        GroundedDialogue(Dialogue("hit:1_conv:2", turns), {"speaker": ("My car caught fire",)}),
        GroundedDialogue(Dialogue("hit:3_conv:4", (Turn("I failed .", "speaker"),)), {"speaker": ("An exam",)}),
    ]
    assert [dialogue.id for dialogue in read_dialogues(path)] == ["hit:1_conv:2", "hit:3_conv:4"]


def test_a_conversation_that_comes_again_later_gets_an_id_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path / "afraid.csv", HEADER + FIRST + FIRST.replace("1_", "5_") + FIRST)
    assert [dialogue.id for dialogue in read_dialogues(path)] == ["hit:1_conv:2", "hit:5_conv:2", "hit:1_conv:2#2"]


@pytest.mark.real_data
def test_empathetic_dialogues_as_published(data_dir: Path) -> None:
    files = sorted((data_dir / "empathetic_dialogues").glob("*.csv"))
    everything = [dialogue for path in files for dialogue in read_grounded(path)]
    assert len(everything) == len({dialogue.dialogue.id for dialogue in everything}) == 5982
    assert all(len(dialogue.facts["speaker"]) == 1 and len(dialogue.turns) >= 2 for dialogue in everything)
    assert not any("_comma_" in turn.text for dialogue in everything for turn in dialogue.turns)


PUBLISHED = """\
1 your persona: i only eat kosher.
2 your persona: i've two dogs.
3 hello what are doing today ?\ti am good , i just got off work .
4 i like dogs .\twould that be your persona: line ?
1 your persona: i love disneyland.
2 hi !\thello .
"""


def test_two_turns_a_line_and_the_persona_is_of_the_second_speaker(tmp_path: Path) -> None:
    path = write(tmp_path / "valid.txt", PUBLISHED)
    turns = (
        Turn("hello what are doing today ?", "partner"),
        Turn("i am good , i just got off work .", "you"),
        Turn("i like dogs .", "partner"),
        Turn("would that be your persona: line ?", "you"),
    )
    first, second = read_grounded(path)
    assert first == GroundedDialogue(Dialogue("valid_00000", turns), {"you": ("i only eat kosher.", "i've two dogs.")})
    assert second.facts == {"you": ("i love disneyland.",)}
    assert second.turns == (Turn("hi !", "partner"), Turn("hello .", "you"))
    assert read_dialogues(path) == [first.dialogue, second.dialogue]


def test_both_personas_go_to_the_speakers_whom_they_describe(tmp_path: Path) -> None:
    text = "1 partner's persona: i ski.\n2 your persona: i bake.\n3 partner's persona: i am ten.\n4 hi\tho\n"
    (dialogue,) = read_grounded(write(tmp_path / "valid.txt", text))
    assert dialogue.facts == {"partner": ("i ski.", "i am ten."), "you": ("i bake.",)}


def test_silence_rewards_candidates_windows_line_ends_and_files_without_personas(tmp_path: Path) -> None:
    text = "1 __SILENCE__\thi .\t\thi .|ho .\r\n2 who ?\tme .\r\n\r\n1 ho .\t \r\n"
    first, second = read_dialogues(write(tmp_path / "valid.txt", text))
    assert first.turns == (Turn("hi .", "you"), Turn("who ?", "partner"), Turn("me .", "you"))
    assert second.turns == (Turn("ho .", "partner"),)


@pytest.mark.real_data
def test_personachats_file_has_its_published_size(data_dir: Path) -> None:
    dialogues = read_grounded(data_dir / "personachat" / "valid_self_original_no_cands.txt")
    assert len(dialogues) == len({dialogue.turns for dialogue in dialogues}) == 1000
    assert sum(len(dialogue.turns) for dialogue in dialogues) == 2 * 7801
    assert Counter(len(dialogue.facts["you"]) for dialogue in dialogues) == {4: 517, 5: 483}
    assert {tuple(dialogue.facts) for dialogue in dialogues} == {("you",)}
