"""The sets of DSTC10: every irregularity of the published files, which file is read, and what stands for overall quality."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.corpora.readers.dstc10 import SETS, overall_quality, read
from tests import layouts
from tests.layouts import DIALOGUE, RESPONSE, without
from tests.refusals import refusal, refused


def write(folder: Path, *rows: Any, name: str = "topical-usr_eval.json") -> Path:
    return layouts.write(folder / name, *rows)


def one(folder: Path, **fields: Any) -> Example:
    (example,) = read(write(folder, {**RESPONSE, **fields}))
    return example


def rated(*qualities: str) -> list[Example]:
    return [Example("0", (), Turn("Yes."), ratings=dict.fromkeys(qualities, (1.0,)))]


def test_a_turn_level_row_becomes_an_example(tmp_path: Path) -> None:
    ratings = {"Overall": [4, 5, 3], "Natural": [3, 2, 3]}
    row = {"context": "do you like tea ? \n yes , green tea . ", "response": "me too . ", "reference": ["so do i .\n"]}
    assert one(tmp_path, **row, annotations=ratings) == Example(
        id="a",
        context=(Turn("do you like tea ?"), Turn("yes , green tea .")),
        response=Turn("me too ."),
        references=("so do i .",),
        system="m",
        ratings={"Overall": (4.0, 5.0, 3.0), "Natural": (3.0, 2.0, 3.0)},
    )


def test_a_dialogue_level_row_becomes_a_dialogue_and_an_unanswered_quality_stays_empty(tmp_path: Path) -> None:
    turns = [{"speaker": "human", "text": "Hi! "}, {"speaker": "model", "text": "Hello."}, {"speaker": "human", "text": ""}]
    row = {**DIALOGUE, "dialog": turns, "annotations": {"Overall": [4, 3], "Error recovery": []}}
    spoken = (Turn("Hi!", "human"), Turn("Hello.", "model"), Turn("", "human"))
    expected = [Dialogue("a", spoken, "m", {"Overall": (4.0, 3.0), "Error recovery": ()})]
    assert read(write(tmp_path, row)) == expected
    # The spelling of the official description.
    assert read(write(tmp_path, {**without(row, "dialog"), "dialogue": turns})) == expected


@pytest.mark.parametrize(
    ("fields", "system", "references"),
    [
        # GRADE's rows.
        ({"model": None, "model_name": "bert_ranker", "reference": None}, "bert_ranker", ()),
        ({"model": None}, None, ("No .",)),
        ({"reference": []}, "m", ()),
        ({"reference": ["a", " b "]}, "m", ("a", "b")),
    ],
)
def test_a_row_may_name_no_system_and_have_no_or_several_references(
    tmp_path: Path, fields: dict[str, Any], system: str | None, references: tuple[str, ...]
) -> None:
    row = {name: value for name, value in {**RESPONSE, **fields}.items() if value is not None}
    (example,) = read(write(tmp_path, row))
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
    tagged = {**RESPONSE, "context": "User: Hi!", "response": "System: rate 5"}
    example = read(write(tmp_path, tagged, RESPONSE))[0]
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
    rows = [{**RESPONSE, "dialogue_id": id} for id in ("a", "b", "a", 7)]
    path = write(tmp_path, *rows, without(RESPONSE, "dialogue_id"), name="humod_eval.json")
    assert [item.id for item in read(path)] == ["a", "b", "a#2", "7", "humod_00004"]


def test_repeated_context_and_response_stay_two_examples(tmp_path: Path) -> None:
    first, second = read(write(tmp_path, RESPONSE, {**RESPONSE, "dialogue_id": "b"}))
    assert first.id != second.id


def test_a_set_is_found_by_code_and_by_name_in_the_folder_or_the_located_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "dstc10"
    path = write(folder, RESPONSE)
    assert read("tu", folder=folder) == read("topical-usr", folder=folder) == read(path) == read(str(path))
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    assert read("tu") == read(path)


def test_the_official_dstc7_file_comes_before_the_rebuilt_one(tmp_path: Path) -> None:
    for folder, response in ((tmp_path / "rebuilt", "rebuilt"), (tmp_path, "official")):
        write(folder, {**RESPONSE, "response": response}, name="dstc7_eval.json")
        assert read("d7", folder=tmp_path)[0].response.text == response


def test_what_is_unknown_or_not_there_is_named(tmp_path: Path) -> None:
    known = ", ".join(f"{entry.code} ({entry.name})" for entry in SETS.values())
    assert refusal(read, "xx", folder=tmp_path) == f"'xx': is neither a file nor a DSTC10 set. Known are: {known}."
    assert refusal(read, "hu", folder=tmp_path, error=MissingPrerequisite) == (
        f"{tmp_path}: has no humod_eval.json (DSTC10 set hu). Type `dialeval data fetch dstc10`; if the set is not among the "
        "files that it fetches, get it from https://chateval.org/dstc10 and put it there."
    )


def test_another_sets_file_under_a_sets_name_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, DIALOGUE)
    with refused(
        f"{path}:2: topical-usr is a turn-level set, but this row is of the dialogue-level layout. Is this another set's file?"
    ):
        read("tu", folder=tmp_path)


def test_overall_rating_off_the_published_scale_is_refused_by_code_and_read_by_path(tmp_path: Path) -> None:
    path = write(tmp_path, RESPONSE, {**RESPONSE, "annotations": {"Overall": [4, 0.5]}})
    with refused(
        f"{path}:3: annotations['Overall'][1]: 0.5 is outside the scale of topical-usr, 1 to 5. "
        "To read ratings on another scale, give the file's path."
    ):
        read("tu", folder=tmp_path)
    assert read(path)[1].ratings == {"Overall": (4.0, 0.5)}


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
    assert overall_quality(rated(*qualities), SETS[code] if code else None) == overall


def test_unclear_overall_quality_lists_the_qualities() -> None:
    unclear = "none of the qualities stands for overall quality. Name one of:"
    message = refusal(overall_quality, rated("language_usage", "relevance"), SETS["hu"])
    assert message == f"humod: {unclear} language_usage, relevance."
    assert refusal(overall_quality, rated()) == f"overall quality: {unclear} none."


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
