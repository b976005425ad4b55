"""CGDIALOG+ and its human preferences: every irregularity of the published files, and what is refused."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.corpora.readers import cgdialog
from dialeval_plugin.corpora.readers.cgdialog import CRITERIA, read_causes, read_preferences
from tests.layouts import write
from tests.refusals import refusal, refused

HISTORY = ["W: When does it arrive? I will meet you.", "M: At 11:15.", "M: Or later.", "W: Or later.", ""]


def causes_of(tmp_path: Path, *entities: str) -> tuple[int, ...]:
    row = {"history": HISTORY, "response": "M: Fine.", "entities": list(entities)}
    return read_causes(write(tmp_path / "x.json", row))[0].causes


def test_speakers_blank_turns_and_foreign_fields(tmp_path: Path) -> None:
    rows = [
        {"history": HISTORY, "response": "M: Fine.", "entities": [], "HITId": "1", "WorkerId": "2"},
        {"history": ["A: Hello.", " ", ""], "response": "Stranger: Hi.", "entities": ["Hello."]},
    ]
    first, second = read_causes(write(tmp_path / "DREAM_response_cause_train.json", *rows))
    assert (first.id, second.id) == ("DREAM_train_00000", "DREAM_train_00001")
    assert first.context == (
        Turn("When does it arrive? I will meet you.", "W"),
        Turn("At 11:15.", "M"),
        Turn("Or later.", "M"),
        Turn("Or later.", "W"),
    )
    assert (first.response, first.causes) == (Turn("Fine.", "M"), ())
    assert (second.context, second.response, second.causes) == ((Turn("Hello.", "A"),), Turn("Hi.", "Stranger"), (0,))


def test_a_text_without_speaker_keeps_its_colon(tmp_path: Path) -> None:
    history = ["Hello there.", "10:15 is late.", "usr:Okay."]
    rows = [{"history": history, "response": text, "entities": []} for text in ("Note: rest.", "usr: Hi.", "Hi.")]
    pairs = read_causes(write(tmp_path / "x.json", *rows))
    assert [pair.response for pair in pairs] == [Turn("Note: rest."), Turn("Hi.", "usr"), Turn("Hi.")]
    assert pairs[0].context == (Turn("Hello there."), Turn("10:15 is late."), Turn("Okay.", "usr"))


@pytest.mark.parametrize(
    ("spans", "causes"),
    [
        (["I will meet you."], (0,)),
        ([" When does  it arrive?\n"], (0,)),
        (["At 11:15.", "I will meet you."], (0, 1)),
        # A repeated utterance is marked wherever it stands: the file does not say which one was meant.
        (["Or later."], (2, 3)),
        # A span over several turns marks them all.
        (["I will meet you. M: At 11:15."], (0, 1)),
        (["M: At 11:15. M: Or later. W: Or"], (1, 2, 3)),
    ],
)
def test_a_cause_is_matched_by_containment(spans: list[str], causes: tuple[int, ...], tmp_path: Path) -> None:
    assert causes_of(tmp_path, *spans) == causes


def test_a_span_that_is_nowhere_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert causes_of(tmp_path, "At 11:15.", "Nobody said this.", "") == (1,)
    assert caplog.messages == [f"{tmp_path / 'x.json'}: 1 of 2 marked causes are in no turn of their history and are left out"]


def spoken(text: str, speaker: str = "Speaker 1") -> dict[str, str]:
    return {"speaker": speaker, "utterance": text}


def dialogue(human: str = "Yes.") -> dict[str, Any]:
    answers = dict.fromkeys(CRITERIA, "Both are good.") | {"relevance": "A is better."}
    responses = {"human_response": spoken(human), "Blenderbot_ft_response": spoken(" No.")}
    return {
        "id": "614",
        "history": [spoken("Hello."), spoken("  "), spoken("Do you?", "Speaker 2")],
        **responses,
        "human_response-vs-Blenderbot_ft_response": {**responses, **{f"human_evaluation_{n}": answers for n in (1, 2, 3)}},
    }


def test_preferences_have_systems_responses_and_votes(tmp_path: Path) -> None:
    (read,) = read_preferences(write(tmp_path / "x.json", dialogue()))
    assert read.context == (Turn("Hello.", "Speaker 1"), Turn("Do you?", "Speaker 2"))
    assert read.responses == {"human": Turn("Yes.", "Speaker 1"), "Blenderbot_ft": Turn("No.", "Speaker 1")}
    (compared,) = read.comparisons
    assert (compared.first, compared.second) == ("human", "Blenderbot_ft")
    assert compared.votes["relevance"] == ("A is better.",) * 3
    assert compared.votes["overall"] == ("Both are good.",) * 3
    good = dict.fromkeys(CRITERIA, (3,))
    assert list(read.examples()) == [
        Example("614/human", read.context, Turn("Yes.", "Speaker 1"), ("Yes.",), system="human", ratings=good),
        Example(
            "614/Blenderbot_ft",
            *(read.context, Turn("No.", "Speaker 1"), ("Yes.",)),
            system="Blenderbot_ft",
            ratings={**good, "relevance": (0,)},
        ),
    ]


def test_an_empty_response_and_an_id_that_occurs_twice(tmp_path: Path) -> None:
    first, second = read_preferences(write(tmp_path / "x.json", dialogue(human=""), dialogue()))
    assert (first.id, second.id) == ("614", "614#2")
    assert first.responses["human"] == Turn("", "Speaker 1")
    assert [example.references for example in first.examples()] == [(), ()]


def test_preferences_are_found_by_the_name_of_their_corpus(tmp_path: Path) -> None:
    write(tmp_path / "msc_responses_pairwise.json", dialogue())
    assert len(read_preferences("msc", folder=tmp_path)) == 1
    assert refusal(read_preferences, "dream", folder=tmp_path, error=MissingPrerequisite) == (
        f"{tmp_path}: has no DREAM_responses_pairwise.json (the human preferences on dream). Nobody offers it for download any "
        "more: get it from whoever has it, for example the history of its repository, and put it there."
    )
    with refused("'fed': is neither a file nor a corpus with preferences. Known are: dream, esconv, msc."):
        read_preferences("fed", folder=tmp_path)


@pytest.mark.real_data
def test_the_published_files_have_their_published_sizes(data_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    counted = {}
    for path in sorted((data_dir / "cgdialog_plus").glob("*_response_cause_*.json")):
        pairs = read_causes(path)
        counted[path.name.replace("_response_cause", "")] = (len(pairs), sum(not pair.causes for pair in pairs))
        assert all(turn.speaker and turn.text for pair in pairs for turn in pair.context)
        assert {pair.response.speaker is not None for pair in pairs} == {path.name.startswith("DREAM")}
    expected = {
        **{"DREAM_train.json": (450, 10), "DREAM_valid.json": (250, 6), "DREAM_test.json": (250, 17)},
        **{"ESConv_train.json": (272, 2), "ESConv_valid.json": (211, 0)},
        **{"msc_train.json": (300, 0), "msc_valid.json": (250, 0), "msc_test.json": (250, 0)},
    }
    assert {name: counts for name, counts in counted.items() if name in expected} == expected
    assert [message.partition(": ")[2] for message in caplog.messages if "ESConv_response_cause_test" not in message] == [
        "1 of 400 marked causes are in no turn of their history and are left out"
    ]


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "n_blank"), [("dream", 1), ("msc", 0)])
def test_the_published_preferences_have_their_published_size(data_dir: Path, name: str, n_blank: int) -> None:
    dialogues = read_preferences(name, folder=data_dir / cgdialog.CORPUS.name)
    assert len(dialogues) == 100
    systems = {"human", "alpaca_lora", "Blenderbot_400M", "Blenderbot_ft"}
    assert {frozenset(dialogue.responses) for dialogue in dialogues} == {frozenset(systems)}
    assert {len(dialogue.comparisons) for dialogue in dialogues} == {6}
    votes = [votes for dialogue in dialogues for compared in dialogue.comparisons for votes in compared.votes.values()]
    assert {len(answers) for answers in votes} == {3}
    assert sum(not turn.text for dialogue in dialogues for turn in dialogue.responses.values()) == n_blank
