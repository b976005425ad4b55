"""Conversation logs as people have them: each layout gives the same examples, and each irregularity is counted or refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval_plugin import Example, Turn, examples_from
from dialeval_plugin.conversations.files import Rows
from dialeval_plugin.conversations.messages import left_out_text
from dialeval_plugin.conversations.reading import read_rows
from dialeval_plugin.conversations.record import Conversation, Reading, ReadingOptions, TurnChoice
from dialeval_plugin.core.dialogue import Dialogue
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line
from dialeval_plugin.corpora import scored_input
from dialeval_plugin.corpora.registry import read_dialogues, read_items, read_reported
from dialeval_plugin.corpora.rows import file_rows, is_table
from dialeval_plugin.corpora.scored_input import Source
from tests.layouts import array, lines, write
from tests.refusals import refusal

Messages = list[tuple[str, str]]

CHAT: Messages = [("user", "Do you like tea?"), ("assistant", "I do."), ("user", "Why?"), ("assistant", "It is warm.")]
EXAMPLES = [
    Example("a:2", (Turn("Do you like tea?", "user"),), Turn("I do.", "assistant")),
    Example(
        "a:4",
        (Turn("Do you like tea?", "user"), Turn("I do.", "assistant"), Turn("Why?", "user")),
        Turn("It is warm.", "assistant"),
    ),
]


def openai(messages: Messages) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": text} for role, text in messages]}


def sharegpt(messages: Messages) -> dict[str, Any]:
    names = {"user": "human", "assistant": "gpt"}
    return {"conversations": [{"from": names.get(role, role), "value": text} for role, text in messages]}


def spoken(messages: Messages) -> dict[str, Any]:
    return {"turns": [{"speaker": role, "text": text} for role, text in messages]}


def in_parts(messages: Messages) -> dict[str, Any]:
    return {
        "conversation": [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in messages],
        "model": "m",
    }


def rows_of(conversations: dict[str, Messages]) -> list[dict[str, str]]:
    return [
        {"conversation": id, "speaker": role, "text": text} for id, messages in conversations.items() for role, text in messages
    ]


def table(rows: list[dict[str, str]], delimiter: str = ",") -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


WHOLE: dict[str, Callable[[Messages], dict[str, Any]]] = {
    "openai": openai,
    "sharegpt": sharegpt,
    "spoken": spoken,
    "in parts": in_parts,
}
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
MESSAGES = st.lists(st.tuples(st.sampled_from(["user", "assistant", "Bob"]), TEXTS), min_size=1, max_size=6)


@settings(max_examples=20)
@given(MESSAGES, st.sampled_from([None, "all", "last"]))
def test_every_layout_gives_the_same_examples(messages: Messages, choice: TurnChoice | None) -> None:
    expected = examples_from([{"id": "a", **openai(messages)}], choice)
    rows = rows_of({"a": messages})
    for layout in WHOLE.values():
        assert examples_from([{"id": "a", **layout(messages)}], choice) == expected
        one = {"id": ["a"], **{name: [value] for name, value in layout(messages).items()}}
        assert examples_from(datasets.Dataset.from_dict(one), choice) == expected
    assert examples_from(pandas.DataFrame(rows), choice) == expected
    assert examples_from(datasets.Dataset.from_list(rows), choice) == expected
    renamed = pandas.DataFrame(rows).set_axis(["chat", "who", "said"], axis="columns")
    columns = {"conversation": "chat", "speaker": "who", "text": "said"}
    assert examples_from(renamed, choice, columns=columns) == expected
    bare = examples_from([openai(messages)["messages"]], choice)
    assert [(one.id.replace("0:", "a:"), one.context, one.response) for one in bare] == [
        (one.id, one.context, one.response) for one in expected
    ]


@settings(max_examples=20)
@given(st.lists(MESSAGES, min_size=1, max_size=3), st.sampled_from(list(WHOLE)))
def test_every_file_gives_the_same_examples(
    tmp_path_factory: pytest.TempPathFactory, conversations: list[Messages], layout: str
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    named = {f"c{number}": messages for number, messages in enumerate(conversations)}
    rows = [{"id": id, **WHOLE[layout](messages)} for id, messages in named.items()]
    expected = examples_from(rows)
    files = {
        "lines.jsonl": lines(*rows),
        "array.json": array(*rows),
        "table.csv": table(rows_of(named)),
        "table.tsv": table(rows_of(named), "\t"),
        "cells.csv": table([{"id": row["id"], "messages": json.dumps(openai(named[row["id"]])["messages"])} for row in rows]),
    }
    if len(rows) == 1:
        files["object.json"] = json.dumps(rows[0], indent=2)
    for name, content in files.items():
        assert read_items(write(folder / name, content)) == expected, name
        packed = folder / f"{name}.gz"
        packed.write_bytes(gzip.compress(content.encode()))
        assert read_items(packed) == expected, packed


@pytest.mark.parametrize("text", ["{}", "[]", "[{}]", '{"a": 1}', '[{"name": "Ann"}]', "[1, 2]"])
def test_json_that_a_user_wrote_in_a_table_is_a_text(tmp_path: Path, text: str) -> None:
    rows = rows_of({"a": [("user", text), ("assistant", "I see.")]})
    assert read_items(write(tmp_path / "table.csv", table(rows))) == [
        Example("a:2", (Turn(text, "user"),), Turn("I see.", "assistant"))
    ]


def test_each_assistant_turn_is_an_example_named_by_conversation_and_message() -> None:
    assert examples_from([{"id": "a", **openai(CHAT)}]) == EXAMPLES
    numbered = examples_from([{"conversation_id": 7, **openai(CHAT)}, openai(CHAT[:2]), {"id": None, **openai(CHAT[:2])}])
    assert [one.id for one in numbered] == ["7:2", "7:4", "1:2", "2:2"]
    assert [one.id for one in examples_from([{"id": "a", **openai(CHAT[:2])}] * 2)] == ["a:2", "a#2:2"]


@pytest.mark.parametrize(
    ("speakers", "choice", "numbers"),
    [
        ("uaua", None, [2, 4]),
        ("uaua", "assistant", [2, 4]),
        ("uaua", "all", [2, 3, 4]),
        ("uaua", "last", [4]),
        ("uau", "last", [2]),
        ("aua", None, [1, 3]),
        ("uu", None, []),
        ("uu", "last", []),
        ("suBa", None, [4]),
        ("suBa", "all", [3, 4]),
        ("ABA", None, [2, 3]),
        ("ABA", "last", [3]),
        ("A", "last", []),
        ("", "assistant", []),
    ],
)
def test_the_turns_that_are_scored(speakers: str, choice: TurnChoice | None, numbers: list[int]) -> None:
    roles = {"u": "user", "a": "assistant", "s": "system"}
    messages = [{"role": roles.get(one, one), "content": "Hi."} for one in speakers]
    found = examples_from([{"id": "x", "messages": messages}], choice)
    assert [one.id for one in found] == [f"x:{number}" for number in numbers]
    assert all(
        len(one.context) == number - 1 - speakers[:number].count("s") for one, number in zip(found, numbers, strict=True)
    )


def test_what_is_no_turn_is_left_out_and_counted() -> None:
    call = {"role": "assistant", "tool_calls": [{"id": "1"}]}
    image = {"type": "image_url", "image_url": {"url": "x"}}
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": "Be short."},
        {"role": "User", "content": [{"type": "text", "text": "What"}, image, "is it?"]},
        {**call, "content": None},
        call,
        {"role": "tool", "content": "42"},
        {"role": "user", "content": [image]},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    ]
    reading = Reading()
    (found,) = read_rows(Rows(iter([Line("f:1", {"id": "x", "messages": messages})])), reading)
    assert isinstance(found, Conversation)
    asked = Turn("What\nis it?", "user")
    assert (found.turns, found.numbers) == ((asked, Turn("", "assistant"), Turn("No.", "assistant")), (3, 8, 9))
    assert left_out_text(reading.left_out) == (
        "1 developer message, 2 image_url parts, 3 textless messages, 1 tool message, 1 system message"
    )
    # An answer without a visible character is an answer: it is scored as the blank response that it is.
    assert [one.response.text for one in found.examples()] == ["", "No."]
    assert found.items("dialogue") == [Dialogue("x", found.turns)]


def test_the_system_of_a_transcript_is_the_chatbot_unless_somebody_else_is() -> None:
    def turns(*speakers: str) -> list[dict[str, str]]:
        return [{"speaker": speaker, "text": "Hi."} for speaker in speakers]

    assert [one.id for one in examples_from([{"turns": turns("user", "system")}])] == ["0:2"]
    (found,) = examples_from([{"turns": turns("System", "user", "bot")}])
    assert (found.id, found.context) == ("0:3", (Turn("Hi.", "user"),))


def test_tables_of_responses(tmp_path: Path) -> None:
    expected = [
        Example("0", (Turn("Hi."), Turn("Ho.")), Turn("Ha.")),
        Example("1", (Turn("Tea?", "user"),), Turn("Yes.", "assistant"), ("No.",)),
        Example("2", (), Turn("")),
    ]
    chat = [{"role": "user", "content": "Tea?"}]
    frame = pandas.DataFrame(
        {
            "history": [["Hi.", "Ho."], np.array(chat, dtype=object), None],
            "answer": ["Ha.", {"role": "assistant", "content": "Yes."}, None],
            "others": [None, "No.", float("nan")],
            "response": ["not", "this", "one"],
        }
    )
    columns = {"context": "history", "response": "answer", "references": "others"}
    assert examples_from(frame, columns=columns) == expected
    rows = [
        {"context": "Hi.\nHo.", "response": "Ha.", "references": "", "note": "x"},
        {"context": json.dumps(chat), "response": "Yes.", "references": "No.", "note": ""},
        {"context": "", "response": "", "references": "[]", "note": ""},
    ]
    assert read_items(write(tmp_path / "in.csv", table(rows))) == expected
    assert read_items(write(tmp_path / "in.TSV", table(rows, "\t"))) == expected
    lines_of = [{"history": "Hi.\nHo.", "answer": "Ha."}]
    own = ReadingOptions(columns=dict(list(columns.items())[:2]))
    # A text of JSON is one turn, its lines too.
    assert Source(str(write(tmp_path / "in.jsonl", lines(*lines_of))), own).read("turn") == [
        Example("0", (Turn("Hi.\nHo."),), Turn("Ha."))
    ]


def test_turns_of_conversations_may_stand_among_each_other(tmp_path: Path) -> None:
    rows = [*rows_of({"a": CHAT[:1]}), *rows_of({"b": [("A", "Hi."), ("B", "Ho.")]}), *rows_of({"a": CHAT[1:2]})]
    assert [(one.id, one.response.text) for one in examples_from(pandas.DataFrame(rows))] == [("a:2", "I do."), ("b:2", "Ho.")]


def test_training_reads_the_same_conversations(tmp_path: Path) -> None:
    expected = [
        Dialogue("a", tuple(Turn(text, role) for role, text in CHAT)),
        Dialogue("logs_00001", (Turn("Hi.", "assistant"),)),
    ]
    silent = [("system", "Be kind."), ("Bob", "Hi."), ("user", " ")]
    for layout in (openai, sharegpt):
        assert read_dialogues(write(tmp_path / "logs.jsonl", lines({"id": "a", **layout(CHAT)}, layout(silent)))) == expected
    assert read_dialogues(write(tmp_path / "t.csv", table(rows_of({"a": CHAT})))) == expected[:1]


def test_reported_conversations_are_whole(tmp_path: Path) -> None:
    files = [
        write(tmp_path / name, content) for name, content in (("a.jsonl", lines(openai(CHAT))), ("b.json", array(openai(CHAT))))
    ]
    sets = read_reported(map(str, files)).sets
    whole = tuple(Turn(text, role) for role, text in CHAT)
    assert list(sets.values()) == [[Dialogue("a_00000", whole)], [Dialogue("b_00000", whole)]]


def test_a_list_of_messages_is_one_conversation(tmp_path: Path) -> None:
    file = write(tmp_path / "chat.json", array(*openai(CHAT)["messages"]))
    assert [one.id for one in read_items(file)] == ["chat_00000:2", "chat_00000:4"]
    assert examples_from(openai(CHAT)["messages"]) == examples_from([openai(CHAT)])


def test_a_folder_is_read_whole_and_what_holds_no_conversations_is_named(tmp_path: Path) -> None:
    write(tmp_path / "b.jsonl", lines({"id": "x", **openai(CHAT)}, sharegpt(CHAT[:1])))
    write(tmp_path / "a" / "c.json", json.dumps(sharegpt(CHAT), indent=1))
    write(tmp_path / "a" / "t.csv", table(rows_of({"u": CHAT[:2]})))
    others = [
        write(tmp_path / name, text)
        for name, text in (("a/x.csv", "a,b\n1,2\n"), ("notes.txt", "Hi."), ("z.json", "[1"), ("zz.jsonl", ""))
    ]
    for name in (".hidden.jsonl", ".git/c.jsonl"):
        write(tmp_path / name, lines(openai(CHAT)))
    found = Source(str(tmp_path))
    assert [item.id for item in found.read("turn")] == [
        "a/c.json/0:2",
        "a/c.json/0:4",
        "a/t.csv/u:2",
        "b.jsonl/x:2",
        "b.jsonl/x:4",
    ]
    origins = [item.origin for item in found.read("turn")]
    assert [f"{one.conversation}:{one.message}" for one in origins if one] == [item.id for item in found.read("turn")]
    assert found.reading.remarks() == "".join(f"no conversations, left out: {path}\n" for path in others) + (
        "without a turn to score: 1 of 4 conversations\n"
    )
    named = Source(str(tmp_path), ReadingOptions(columns={"context": "a", "response": "b"}))
    assert named.read("turn") == [Example("a/x.csv/0", (Turn("1"),), Turn("2"))]
    # What begins as a log is one: it is not left out where it is damaged.
    damaged = write(tmp_path / "d.jsonl", lines(openai(CHAT)) + "{")
    assert refusal(Source(str(tmp_path)).read, "turn").startswith(f"{damaged}:2: not valid JSON")


MESSAGE = "Name the field of its text by --columns text=NAME, or give 'role' and 'content', as OpenAI's have them."
REFUSED: dict[str, tuple[Any, str]] = {
    "no role": (
        [{"content": "Hi."}],
        "has no 'role'. Name the field of its speaker by --columns speaker=NAME, or give a 'role': user, assistant, system, "
        "or a speaker's name.",
    ),
    "no content": ([{"role": "user"}], f"is no chat message, it has only 'role'. {MESSAGE}"),
    "another object": ([{"a": 1}], f"is no chat message, it has only 'a'. {MESSAGE}"),
    "a number": ([7], "expected a string, got 7 (int). Pass text."),
    "a number as role": (
        [{"role": 1, "content": "a"}],
        "role is 1. Write user or assistant, or read such numbers as names by --columns speaker=role.",
    ),
    "a number as content": (
        [{"role": "user", "content": 7}],
        "content: expected a string or a list of parts, got 7 (int). Give text, or parts as {'type': 'text', 'text': ...}.",
    ),
    "a number as part": (
        [{"role": "user", "content": [7]}],
        "content[0]: expected a part as {'type': 'text', 'text': ...}, got 7. Give text.",
    ),
    "no text in a part": (
        [{"role": "user", "content": [{"type": "text"}]}],
        "content[0]: text: expected a string, got None (NoneType). Pass text.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_message_is_named_by_file_conversation_and_number(case: str, tmp_path: Path) -> None:
    messages, problem = REFUSED[case]
    rows = [openai(CHAT), {"id": "b", "messages": [{"role": "system", "content": "x"}, *messages]}]
    place = "conversation 'b', message 2"
    assert refusal(examples_from, rows) == f"conversations[1]: {place}: {problem}"
    path = write(tmp_path / "x.jsonl", lines(*rows))
    assert refusal(read_items, path) == f"{path}:2: {place}: {problem}"


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_message_costs_its_conversation_alone(case: str, tmp_path: Path) -> None:
    """One message without content stopped a folder of eleven files, and nothing was scored."""
    messages, problem = REFUSED[case]
    write(
        tmp_path / "a.jsonl",
        lines({"id": "a", **openai(CHAT)}, {"id": "b", "messages": [{"role": "system", "content": "x"}, *messages]}),
    )
    alone = write(tmp_path / "b.json", array({"id": "c", "messages": [*openai(CHAT[:1])["messages"], *messages]}))
    found = Source(str(tmp_path))
    assert [item.id for item in found.read("turn")] == ["a.jsonl/a:2", "a.jsonl/a:4"]
    assert found.reading.remarks() == (
        "no turns, left out: 2 malformed conversations\n"
        f"malformed, left out: {tmp_path / 'a.jsonl'}:2: conversation 'b', message 2: {problem}\n"
        f"malformed, left out: {alone}:2: conversation 'c', message 2: {problem}\n"
    )
    # A file of which no conversation can be read is no file of conversations.
    assert refusal(Source(str(alone)).read, "turn") == f"{alone}:2: conversation 'c', message 2: {problem}"


def test_a_pipe_is_read_as_a_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scored_input, "_KEPT_TEXT", 0)
    os.mkfifo(path := tmp_path / "pipe")
    writer = threading.Thread(target=path.write_text, args=(lines({"id": "a", **openai(CHAT)}),))
    writer.start()
    found = Source(str(path))
    assert [found.read("turn"), found.read("turn")] == [EXAMPLES, EXAMPLES]
    writer.join()


def test_a_small_file_is_read_once_and_a_large_one_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.jsonl", lines({"id": "a", **openai(CHAT)}, {"id": "b", "messages": None}))
    small = Source(str(path))
    next(small.items("turn"))  # not to its end
    first, digest, remarks = small.read("turn"), small.digest, small.reading.remarks()
    whole = path.read_text()
    path.unlink()
    assert (small.read("turn"), small.digest, small.n_items, small.reading.remarks()) == (first, digest, 2, remarks)
    assert [one.item for one in small.items("turn")] == first == EXAMPLES
    assert "no such file" in refusal(list, small.conversations())  # a published file's items depend on the question
    path.write_text(whole)
    monkeypatch.setattr(scored_input, "_KEPT_TEXT", len(whole) // 2)
    large = Source(str(path))
    assert large.read("turn") == EXAMPLES
    path.unlink()
    assert "no such file" in refusal(large.read, "turn")


def test_messages_that_are_no_list_cost_their_conversation_alone(tmp_path: Path) -> None:
    rows = [{"id": "a", **openai(CHAT)}, *({"id": f"b{number}", "messages": None} for number in range(30))]
    found = Source(str(write(tmp_path / "a.jsonl", lines(*rows))))
    assert [item.id for item in found.read("turn")] == ["a:2", "a:4"]
    first, *named = found.reading.remarks().splitlines()
    assert first == "no turns, left out: 30 malformed conversations"
    assert (len(named), named[0]) == (
        20,
        f"malformed, left out: {tmp_path / 'a.jsonl'}:2: messages: expected a list of messages, got None "
        "(NoneType). Pass a list.",
    )
    # Rows of another kind are read too.
    mixed = write(tmp_path / "b.jsonl", lines(rows[0], {"context": ["Hi."], "response": "Ho."}))
    assert [item.id for item in Source(str(mixed)).read("turn")] == ["a:2", "a:4", "1"]


def test_wrong_conversations(tmp_path: Path) -> None:
    assert refusal(examples_from, openai(CHAT)).startswith(
        "conversations: expected a list of conversations, or a table of them, got"
    )
    assert refusal(examples_from, "x.jsonl") == (
        "conversations: expected a list of conversations, or a table of them, got 'x.jsonl' (str). "
        "Wrap a single one in a list; score a file by dialeval_plugin.score."
    )
    assert refusal(examples_from, [openai(CHAT), 7]) == (
        "conversations[1]: expected a conversation, got 7 (int). "
        "Give a list of messages, or an object that has one under 'messages'."
    )
    assert refusal(examples_from, [{"messages": "Hi."}]) == (
        "conversations[0]: messages: is a text without roles. Begin each turn with 'User:' or 'Assistant:', or write a list of "
        "turns."
    )
    assert refusal(examples_from, [{"messages": "['Hi.', 'Ho.']"}]) == (
        "conversations[0]: messages: is a list as Python prints it, \"['Hi.', 'Ho.']\". Write it as JSON, by json.dumps."
    )
    assert refusal(examples_from, [openai(CHAT), {"text": "Hi."}]) == (
        "conversations[1]: is no conversation of a known layout; it has 'text'. Say what its fields are by --columns: "
        "messages=NAME of a whole conversation; context=NAME,response=NAME of a response; "
        "conversation=NAME,speaker=NAME,text=NAME of a message. Or name its layout by --layout, or write each conversation as "
        '{"messages": [{"role": "user", "content": "..."}, ...]}.'
    )
    assert refusal(examples_from, [{**openai(CHAT), "response": "Hi."}]) == (
        "conversations[0]: has messages that end with an answer, and another answer in 'response'. "
        "Name the messages alone by --columns messages=messages, or take one of the two out."
    )
    assert refusal(examples_from, [openai(CHAT)], "first") == (
        "turns: there is no choice 'first'. Known are: assistant, all, last."
    )
    assert refusal(examples_from, [{"id": "x", "turns": ["Hi.", "Ho."]}], "assistant") == (
        "conversation 'x': has neither a user nor an assistant, only turns of nobody. "
        "Choose the turns all or last, or call the chatbot 'assistant'."
    )
    assert refusal(examples_from, [{"id": "x", "turns": spoken([("B", "Hi."), ("A", "")])["turns"]}], "assistant") == (
        "conversation 'x': has neither a user nor an assistant, only 'A', 'B'. "
        "Choose the turns all or last, or call the chatbot 'assistant'."
    )
    assert refusal(examples_from, [{"context": [], "response": "Hi."}], "last") == (
        "conversations[0]: is one response with its context, where --turns has no meaning. Leave it out."
    )


def test_wrong_tables(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "question,answer\nHi.,Ho.\n")
    assert refusal(read_items, path) == (
        f"{path}:2: has a question and an answer that are texts. Read it by --layout question-answer, "
        "or say which fields they are by --columns context=NAME,response=NAME."
    )
    assert refusal(read_items, write(tmp_path / "y.csv", "asked,answer\nHi.,Ho.\n")) == (
        f"{tmp_path / 'y.csv'}:2: is no conversation of a known layout; it has 'asked', 'answer'. Say what its fields are by "
        "--columns: messages=NAME of a whole conversation; context=NAME,response=NAME of a response; "
        "conversation=NAME,speaker=NAME,text=NAME of a message. Or name its layout by --layout, or write each conversation as "
        '{"messages": [{"role": "user", "content": "..."}, ...]}.'
    )
    assert refusal(Source(str(path), ReadingOptions(columns={"context": "question", "response": "answr"})).read, "turn") == (
        f"{path}:2: has no column 'answr', which is to be 'response'. There are: question, answer."
    )
    assert refusal(Source(str(path), ReadingOptions(columns={"ctx": "question"})).read, "turn") == (
        "columns: there is no field 'ctx'. Did you mean 'context'? Known are: context, response, id, references, facts, "
        "conversation, speaker, text, messages, conversations, turns."
    )
    unnamed = write(tmp_path / "turns.jsonl", lines(*rows_of({"a": CHAT}), {"text": "Hi."}))
    assert refusal(read_items, unnamed).startswith(f"{unnamed}:5: is no conversation of a known layout; it has")
    (tmp_path / "empty").mkdir()
    assert refusal(Source(str(tmp_path / "empty")).read, "turn") == (
        f"{tmp_path / 'empty'}: is a folder without conversations. Give a folder of files (.json, .jsonl, .ndjson, .csv, .tsv, "
        ".parquet, .arrow) with "
        "'messages', 'conversations' or 'turns', or name the columns of its tables by --columns, or the layout of its texts "
        "by --layout."
    )


def test_a_broken_object_names_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", '{\n "messages": [\n  {"role": "user",\n}')
    with pytest.raises(InputError, match=r"x\.json:4: not valid JSON"):
        file_rows(path)
    assert not is_table(path)


def test_long_cells_are_read(tmp_path: Path) -> None:
    text = "a" * 200_000
    (found,) = read_items(write(tmp_path / "x.csv", f"context,response\nHi.,{text}\n"))
    assert isinstance(found, Example)
    assert found.response.text == text


# What a model wrote that no user read. FAULTS_FOUND_2 F9; olmo-eval#348, AssetOpsBench#417, FED#2

HARMONY = "<|channel|>analysis<|message|>Show sympathy.<|end|><|start|>assistant<|channel|>final<|message|>I do.<|return|>"


@pytest.mark.parametrize(
    ("logged", "read", "counted"),
    [
        (HARMONY, "I do.", "1 reasoning passage"),
        ("<think>The user asks for tea.</think>\n\nI do.", "I do.", "1 reasoning passage"),
        ("The user asks for tea.\n</think>\n\nI do.", "I do.", "1 reasoning passage"),
        ("[THINK]Tea?[/THINK]I do.", "I do.", "1 reasoning passage"),
        ("<mm:think>Tea?</mm:think>I do.", "I do.", "1 reasoning passage"),
        ("<think>The user asks for", "", "1 reasoning passage"),
        ("I do.<|im_end|>\n<|im_start|>user\nWhy?", "I do.", "1 end token"),
        ("  I do. [sic] <b>Yes</b>. ", "  I do. [sic] <b>Yes</b>. ", ""),
        ("analysis is what I do.", "analysis is what I do.", ""),
    ],
)
def test_an_assistant_said_what_its_user_read(logged: str, read: str, counted: str) -> None:
    left_out: Counter[str] = Counter()
    rows = [
        openai([("user", "Do you like <think>tea</think>?"), ("assistant", logged)]),
        sharegpt([("user", "Do you like <think>tea</think>?"), ("assistant", logged)]),
        {"context": [{"role": "user", "content": "Do you like <think>tea</think>?"}], "response": logged},
    ]
    for row in rows:
        left_out.clear()
        (one,) = read_rows(Rows(iter([Line("here", row)])), Reading(left_out=left_out))
        (example,) = one.examples() if isinstance(one, Conversation) else [one]
        assert (example.context[0].text, example.response.text) == ("Do you like <think>tea</think>?", read)
        assert left_out_text(left_out) == counted


def test_langchains_roles_are_known_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    # agentUniverse#1084.
    for names in (("role", "content"), ("type", "content")):
        chat = [dict(zip(names, pair, strict=True)) for pair in (("human", "Hi."), ("ai", "Hello."))]
        (example,) = examples_from([{"messages": chat}])
        assert (example.context[0].speaker, example.response) == ("user", Turn("Hello.", "assistant"))
    rows = [openai([("user", "Hi."), (name, "Hello.")]) for name in ("Aria", "assistant", "Bert")]
    for row in rows:
        row["messages"].append({"role": "Cy", "content": "Hm."})
    found = Source(str(write(tmp_path / "log.jsonl", *rows)))
    assert len(found.read("turn")) == 1
    assert found.reading.remarks() == (
        "without a turn to score: 2 of 3 conversations (call the assistant 'assistant'; unknown are 'Aria', 'Bert', 'Cy')\n"
    )


@pytest.mark.parametrize("content", ["", " \n", None, []])
def test_a_call_of_a_tool_is_no_empty_answer(content: object) -> None:
    # TRIAL_2 F11: many servers write "" beside a call.
    call = {"role": "assistant", "content": content, "tool_calls": [{"id": "1"}]}
    said = {"role": "assistant", "content": "It is warm.", "tool_calls": None}
    (example,) = examples_from([[{"role": "user", "content": "Hi."}, call, {"role": "tool", "content": "20"}, said]])
    assert (example.id, [turn.text for turn in example.context], example.response.text) == ("0:4", ["Hi."], "It is warm.")


def test_a_tag_that_names_the_system_is_no_word_of_its_response() -> None:
    left_out: Counter[str] = Counter()
    rows = [
        {"context": ["User: Hi.", "System: Hello."], "response": "System: I do.", "id": "a"},
        {"context": ["Which system?"], "response": "System: Windows 11.", "id": "b"},
        {"context": ["User: Hi."], "response": "User: Hello.", "id": "c"},
    ]
    found = read_rows(Rows(Line("here", row) for row in rows), Reading(left_out=left_out))
    assert [([turn.text for turn in one.context], one.response.text) for one in found if isinstance(one, Example)] == [
        (["Hi.", "Hello."], "I do."),
        (["Which system?"], "Windows 11."),
        (["User: Hi."], "User: Hello."),
    ]
    assert left_out_text(left_out) == "4 speaker tags"


@pytest.mark.parametrize(
    ("columns", "ids"),
    [
        ({"context": "history", "response": "answer"}, ["a7", "b8"]),
        ({"context": "history", "response": "answer", "id": "number"}, ["1", "2"]),
        ({"context": "history", "response": "id"}, ["0", "1"]),
    ],
)
def test_an_id_is_kept_where_other_columns_are_named(columns: dict[str, str], ids: list[str]) -> None:
    # TRIAL_2 F12: rows were numbered in silence, and joined with the ratings of other rows.
    rows = [{"id": id, "number": str(n), "history": "Hi.", "answer": "Hello."} for n, id in enumerate(("a7", "b8"), start=1)]
    assert [example.id for example in examples_from(pandas.DataFrame(rows), columns=columns)] == ids
