from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.corpora.readers.dstc10 import SETS, overall_quality, read, read_dialogues, read_examples

ROW = {
    "dialogue_id": "topical-usr_00000",
    "model": "Original Ground Truth",
    "context": "do you like tea ? \n yes , green tea . ",
    "response": "me too . ",
    "reference": ["so do i .\n"],
    "annotations": {"Overall": [4, 5, 3], "Natural": [3, 2, 3]},
}
DIALOGUE_ROW = {
    "dialogue_id": "fed-dial_00000",
    "model": "Meena",
    "dialog": [{"speaker": "human", "text": "Hi! "}, {"speaker": "model", "text": "Hello."}, {"speaker": "human", "text": ""}],
    "annotations": {"Overall": [4, 3], "Error recovery": []},
}


def write(folder: Path, *rows: Any, name: str = "topical-usr_eval.json") -> Path:
    path = folder / name
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]", encoding="utf-8")
    return path


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def one(folder: Path, **fields: Any) -> Example:
    (example,) = read_examples(write(folder, {**ROW, **fields}))
    return example


def error(text: object) -> str:
    return f"^{re.escape(str(text))}$"


def test_a_turn_level_row_becomes_an_example(tmp_path: Path) -> None:
    assert read(write(tmp_path, ROW)) == [
        Example(
            id="topical-usr_00000",
            context=(Turn("do you like tea ?"), Turn("yes , green tea .")),
            response=Turn("me too ."),
            references=("so do i .",),
            system="Original Ground Truth",
            ratings={"Overall": (4.0, 5.0, 3.0), "Natural": (3.0, 2.0, 3.0)},
        )
    ]


def test_a_dialogue_level_row_becomes_a_dialogue_and_an_unanswered_quality_stays_empty(tmp_path: Path) -> None:
    expected = Dialogue(
        id="fed-dial_00000",
        turns=(Turn("Hi!", "human"), Turn("Hello.", "model"), Turn("", "human")),
        system="Meena",
        ratings={"Overall": (4.0, 3.0), "Error recovery": ()},
    )
    assert read_dialogues(write(tmp_path, DIALOGUE_ROW)) == [expected]


def test_the_spelling_of_the_official_description_is_read_too(tmp_path: Path) -> None:
    row = {**without(DIALOGUE_ROW, "dialog"), "dialogue": DIALOGUE_ROW["dialog"]}
    assert read(write(tmp_path, row)) == read(write(tmp_path, DIALOGUE_ROW))


@pytest.mark.parametrize(
    ("fields", "system", "references"),
    [
        # GRADE's rows.
        ({"model": None, "model_name": "bert_ranker", "reference": None}, "bert_ranker", ()),
        ({"model": None}, None, ("so do i .",)),
        ({"reference": []}, "Original Ground Truth", ()),
        ({"reference": ["a", " b "]}, "Original Ground Truth", ("a", "b")),
    ],
)
def test_a_row_may_name_no_system_and_have_no_or_several_references(
    tmp_path: Path, fields: dict[str, Any], system: str | None, references: tuple[str, ...]
) -> None:
    row = {name: value for name, value in {**ROW, **fields}.items() if value is not None}
    (example,) = read_examples(write(tmp_path, row))
    assert (example.system, example.references) == (system, references)


@pytest.mark.parametrize(
    ("fact", "facts"),
    [
        ("your persona: i like tea.\nyour persona: i walk.\n", ("i like tea.", "i walk.")),
        ("the first tea house\nopened in 1610 .\n", ("the first tea house\nopened in 1610 .",)),
        ("_nofact\n", ()),
        (" \n", ()),
    ],
)
def test_persona_lines_are_a_fact_each_and_a_passage_is_one(tmp_path: Path, fact: str, facts: tuple[str, ...]) -> None:
    assert one(tmp_path, fact=fact).facts == facts


def test_speaker_tags_become_speakers_where_every_text_of_the_file_has_one(tmp_path: Path) -> None:
    example = one(tmp_path, context="User: Hi!\nSystem: \nUser: So: System: no?", response="System: Yes. ")
    assert example.context == (Turn("Hi!", "User"), Turn("", "System"), Turn("So: System: no?", "User"))
    assert example.response == Turn("Yes.", "System")


def test_speaker_tags_are_text_where_another_row_has_none(tmp_path: Path) -> None:
    tagged = {**ROW, "context": "User: Hi!", "response": "System: rate 5"}
    example = read_examples(write(tmp_path, tagged, ROW))[0]
    assert (example.context, example.response) == ((Turn("User: Hi!"),), Turn("System: rate 5"))


@pytest.mark.parametrize(
    ("context", "turns"),
    [
        ("", ()),
        (" \n ", ()),
        ("a \r\n\tb\n", ("a", "b")),
        ("a\n\nb", ("a", "", "b")),
        ("one\u2028line\x85still", ("one\u2028line\x85still",)),
    ],
)
def test_only_a_newline_separates_turns(tmp_path: Path, context: str, turns: tuple[str, ...]) -> None:
    assert tuple(turn.text for turn in one(tmp_path, context=context).context) == turns


def test_repeated_and_missing_ids_are_made_unique(tmp_path: Path) -> None:
    rows = [{**ROW, "dialogue_id": id} for id in ("a", "b", "a", 7)]
    path = write(tmp_path, *rows, without(ROW, "dialogue_id"), name="humod_eval.json")
    assert [item.id for item in read(path)] == ["a", "b", "a#2", "7", "humod_00004"]


def test_repeated_context_and_response_stay_two_examples(tmp_path: Path) -> None:
    first, second = read(write(tmp_path, ROW, {**ROW, "dialogue_id": "topical-usr_00001"}))
    assert first.id != second.id


def test_a_set_is_found_by_code_and_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, ROW)
    assert read("tu", folder=tmp_path) == read("topical-usr", folder=tmp_path) == read(path) == read(str(path))


def test_without_a_folder_the_located_one_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dstc10").mkdir()
    path = write(tmp_path / "dstc10", ROW)
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    assert read("tu") == read(path)


def test_the_official_dstc7_file_comes_before_the_rebuilt_one(tmp_path: Path) -> None:
    (tmp_path / "rebuilt").mkdir()
    write(tmp_path / "rebuilt", {**ROW, "response": "rebuilt"}, name="dstc7_eval.json")
    assert read_examples("d7", folder=tmp_path)[0].response.text == "rebuilt"
    write(tmp_path, {**ROW, "response": "official"}, name="dstc7_eval.json")
    assert read_examples("d7", folder=tmp_path)[0].response.text == "official"


def test_unknown_set_lists_the_known_ones(tmp_path: Path) -> None:
    known = ", ".join(f"{entry.code} ({entry.name})" for entry in SETS.values())
    with pytest.raises(InputError, match=error(f"'xx': is neither a file nor a DSTC10 set. Known are: {known}.")):
        read("xx", folder=tmp_path)


def test_missing_set_says_how_to_get_it(tmp_path: Path) -> None:
    message = (
        f"{tmp_path}: has no humod_eval.json (DSTC10 set hu). Type `dialeval data fetch dstc10`; if the set is not among the "
        "files that it fetches, get it from https://chateval.org/dstc10 and put it there."
    )
    with pytest.raises(MissingPrerequisite, match=error(message)):
        read("hu", folder=tmp_path)


def test_another_sets_file_under_a_sets_name_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, DIALOGUE_ROW)
    message = (
        f"{path}:2: topical-usr is a turn-level set, but this row is of the dialogue-level layout. Is this another set's file?"
    )
    with pytest.raises(InputError, match=error(message)):
        read("tu", folder=tmp_path)


def test_overall_rating_off_the_published_scale_is_refused_by_code_and_read_by_path(tmp_path: Path) -> None:
    path = write(tmp_path, ROW, {**ROW, "annotations": {"Overall": [4, 0.5]}})
    message = (
        f"{path}:3: annotations['Overall'][1]: 0.5 is outside the scale of topical-usr, 1 to 5. "
        "To read ratings on another scale, give the file's path."
    )
    with pytest.raises(InputError, match=error(message)):
        read("tu", folder=tmp_path)
    assert read(path)[1].ratings == {"Overall": (4.0, 0.5)}


def test_level_mismatch_names_the_other_function(tmp_path: Path) -> None:
    turns, dialogues = write(tmp_path, ROW), write(tmp_path, DIALOGUE_ROW, name="fed-dial_eval.json")
    message = f"{dialogues}: holds whole dialogues, not responses. Use read_dialogues, or a turn-level set."
    with pytest.raises(InputError, match=error(message)):
        read_examples(dialogues)
    message = f"{turns}: holds single responses, not whole dialogues. Use read_examples, or a dialogue-level set."
    with pytest.raises(InputError, match=error(message)):
        read_dialogues(turns)


@pytest.mark.parametrize(
    ("code", "qualities", "overall"),
    [
        ("dz", ["content", "grammar", "relevance", "appropriateness"], "appropriateness"),
        ("dz", ["content", "OVERALL"], "OVERALL"),
        ("d6", ["overall"], "overall"),
        ("hu", ["relevance", "Overall"], "Overall"),
        ("ps", ["enjoy"], "enjoy"),
        (None, ["Fluent", "Overall"], "Overall"),
    ],
)
def test_overall_quality_is_the_named_one_then_overall_then_the_only_one(
    code: str | None, qualities: list[str], overall: str
) -> None:
    item = Example("0", (), Turn("Yes."), ratings=dict.fromkeys(qualities, (1.0,)))
    assert overall_quality([item], SETS[code] if code else None) == overall


@pytest.mark.parametrize(
    ("code", "qualities", "message"),
    [
        ("hu", ["language_usage", "relevance"], "humod: none of the qualities stands for overall quality. "
         "Name one of: language_usage, relevance."),
        (None, [], "overall quality: none of the qualities stands for overall quality. Name one of: none."),
    ],
)  # fmt: skip
def test_unclear_overall_quality_lists_the_qualities(code: str | None, qualities: list[str], message: str) -> None:
    item = Example("0", (), Turn("Yes."), ratings=dict.fromkeys(qualities, (1.0,)))
    with pytest.raises(InputError, match=error(message)):
        overall_quality([item], SETS[code] if code else None)


def test_the_sets_catalogue_is_consistent() -> None:
    assert list(SETS) == ["tu", "pu", "dz", "pz", "dgu", "dgr", "eg", "cg", "ft", "fd", "d6", "d7", "hu", "ps"]
    assert len({entry.name for entry in SETS.values()}) == 14
    for code, entry in SETS.items():
        assert entry.code == code
        assert entry.files[0] == f"{entry.name}_eval.json"
        assert entry.level == ("dialogue" if code in {"fd", "ps"} else "turn")
        assert entry.reason.endswith(".")
        assert (entry.scale is None) == (entry.overall is None)
        assert entry.overall is None or entry.overall in entry.qualities
    assert dstc10.find_set("fed-turn") is SETS["ft"]
