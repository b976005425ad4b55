"""The same conversations give the same rows, through whichever door and in whichever layout they come."""

from __future__ import annotations

import bz2
import csv
import gc
import gzip
import io
import json
import lzma
import shutil
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import dialeval_plugin
from dialeval_plugin.conversations.record import ReadingOptions
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.corpora.scored_input import Source
from dialeval_plugin.streams.output import read_rows
from tests.refusals import refusal
from tests.streams.scored import score_file

TALKS = {
    "a": [
        ("user", "Do you like tea?"),
        ("assistant", "I do, green tea most of all."),
        ("user", "Why?"),
        ("assistant", "It calms."),
    ],
    "b": [("user", "What time is it?"), ("assistant", "Almost noon.")],
}
Rows = list[dict[str, Any]]


def chat_rows() -> Rows:
    return [{"id": id, "messages": [{"role": role, "content": text} for role, text in talk]} for id, talk in TALKS.items()]


def sharegpt_rows() -> Rows:
    names = {"user": "human", "assistant": "gpt"}
    return [
        {"id": id, "conversations": [{"from": names[role], "value": text} for role, text in talk]} for id, talk in TALKS.items()
    ]


def message_rows() -> Rows:
    return [{"conversation": id, "speaker": role, "text": text} for id, talk in TALKS.items() for role, text in talk]


LAYOUTS = {"chat": chat_rows, "sharegpt": sharegpt_rows, "a message a row": message_rows}


def json_lines(rows: Rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def csv_text(rows: Rows) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]))
    writer.writeheader()
    writer.writerows(
        {name: json.dumps(value) if isinstance(value, list) else value for name, value in row.items()} for row in rows
    )
    return stream.getvalue()


def spreadsheet(rows: Rows) -> str:
    """Return a table with blanks around the names, two empty columns, and empty rows at its end."""
    head, *lines = csv_text(rows).splitlines()
    return "\r\n".join([f"{head.replace(',', ' , ')},,", *(f"{line},," for line in lines), "," * 4, "," * 4])


def written(name: str, content: bytes) -> Callable[[Path], Any]:
    def write(folder: Path) -> str:
        (folder / name).write_bytes(content)
        return str(folder / name)

    return write


def zipped(rows: Rows) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("export/chats.jsonl", json_lines(rows))
    return stream.getvalue()


def parquet(rows: Rows) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "x.parquet")
        return str(folder / "x.parquet")

    return write


def saved(rows: Rows) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        datasets.Dataset.from_list(rows).save_to_disk(folder / "set")
        return str(folder / "set")

    return write


def workbook(rows: Rows) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        with pandas.ExcelWriter(folder / "x.xlsx") as book:
            pandas.DataFrame().to_excel(book, sheet_name="Notes")
            pandas.read_csv(io.StringIO(csv_text(rows))).to_excel(book, sheet_name="Chats", index=False)
        return str(folder / "x.xlsx")

    return write


def doors(rows: Rows) -> dict[str, Callable[[Path], Any]]:
    """Return a user's input, by the door's name: a name to be read, or an object."""
    lines = json_lines(rows).encode()
    return {
        "JSON lines": written("x.jsonl", lines),
        "capitals": written("X.JSONL", lines),
        "an array": written("x.json", json.dumps(rows, indent=1).encode()),
        "CSV": written("x.csv", csv_text(rows).encode()),
        "CSV of a spreadsheet": written("x.csv", spreadsheet(rows).encode("utf-8-sig")),
        "CSV in UTF-16": written("x.csv", csv_text(rows).encode("utf-16")),
        "JSON lines in UTF-16": written("x.jsonl", lines.decode().encode("utf-16")),
        "gzip": written("x.jsonl.gz", gzip.compress(lines)),
        "gzip under another name": written("x.jsonl", gzip.compress(lines)),
        "bzip2": written("x.jsonl.bz2", bz2.compress(lines)),
        "xz": written("x.jsonl.xz", lzma.compress(lines)),
        "zstandard": written("x.jsonl.zst", pyarrow.compress(lines, codec="zstd", asbytes=True)),
        "zip": written("x.zip", zipped(rows)),
        "Parquet": parquet(rows),
        "a workbook": workbook(rows),
        "a saved data set": saved(rows),
        "a list": lambda _: rows,
        "a data frame": lambda _: pandas.DataFrame(rows),
        "a data frame with an index": lambda _: pandas.DataFrame(rows).set_index(next(iter(rows[0]))),
        "a data frame of polars": lambda _: polars.DataFrame(rows),
        "a query of polars": lambda _: polars.DataFrame(rows).lazy(),
        "a data set": lambda _: datasets.Dataset.from_list(rows),
        "a dictionary of one data set": lambda _: datasets.DatasetDict({"train": datasets.Dataset.from_list(rows)}),
        "an Arrow table": lambda _: pyarrow.Table.from_pylist(rows),
        "a batch of an Arrow table": lambda _: pyarrow.Table.from_pylist(rows).to_batches()[0],
    }


EXPECTED = [
    (f"{id}:{place + 1}", [text for _, text in talk[:place]], talk[place][1])
    for id, talk in TALKS.items()
    for place in range(len(talk))
    if talk[place][0] == "assistant"
]


def source_of(given: Any) -> Source:
    return Source(given) if isinstance(given, str) else Source("conversations", given=given)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("door", doors(chat_rows()))
def test_every_door_gives_the_same_rows(door: str, layout: str, tmp_path: Path) -> None:
    given = doors(LAYOUTS[layout]())[door](tmp_path)
    items = [placed.item for placed in source_of(given).items("turn")]
    assert [
        (one.id, [turn.text for turn in one.context], one.response.text) for one in items if isinstance(one, Example)
    ] == EXPECTED
    assert [(one.origin.conversation, one.origin.message) for one in items if one.origin] == [
        (id.partition(":")[0], int(id.partition(":")[2])) for id, _, _ in EXPECTED
    ]
    if not isinstance(given, str):
        assert [one.id for one in dialeval_plugin.examples_from(given)] == [id for id, _, _ in EXPECTED]


def test_one_of_several_data_sets_is_to_be_named() -> None:
    several = datasets.DatasetDict({name: datasets.Dataset.from_list(chat_rows()) for name in ("train", "test")})
    assert refusal(dialeval_plugin.examples_from, several) == (
        "conversations: are several tables (train, test). Name one, as given['train']."
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_standard_input_and_a_folder_give_them_too(layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = json_lines(LAYOUTS[layout]()).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    stdin = Source("-")
    for _ in range(2):  # a stream that is read once is kept
        assert [placed.item.id for placed in stdin.items("turn")] == [id for id, _, _ in EXPECTED]
    (tmp_path / "day").mkdir()
    (tmp_path / "day" / "x.jsonl").write_bytes(lines)
    found = [placed.item.id for placed in Source(str(tmp_path)).items("turn")]
    assert found == [f"day/x.jsonl/{id}" for id, _, _ in EXPECTED]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_scores_are_equal_to_the_byte(suffix: str, tmp_path: Path) -> None:
    scorer = dialeval_plugin.load_scorer("response_length")
    outputs = []
    for number, door in enumerate(("JSON lines", "CSV", "Parquet", "zip", "a list")):
        given = doors(chat_rows())[door](tmp_path)
        score_file(scorer, source_of(given), tmp_path / f"{number}.{suffix}")
        rows = list(read_rows(tmp_path / f"{number}.{suffix}"))
        outputs.append(json.dumps([{name: value for name, value in row.items() if name != "source"} for row in rows]))
    assert len(set(outputs)) == 1


def test_what_is_kept_and_left_out_is_the_same(tmp_path: Path) -> None:
    rows = [
        {**row, "model": "m1", "messages": [{"role": "system", "content": "Be kind."}, *row["messages"]]} for row in chat_rows()
    ]
    for door in ("JSON lines", "CSV", "Parquet", "a list"):
        given = doors(rows)[door](tmp_path)
        options = ReadingOptions(keep=("model",))
        source = Source(given, options) if isinstance(given, str) else Source("conversations", options, given)
        items = [placed.item for placed in source.items("turn")]
        assert {item.origin.kept for item in items if item.origin} == {(("model", "m1"),)}
        assert source.reading.left_out == {"system message": 2}


def test_equal_ids_are_told_apart_on_one_line_too(tmp_path: Path) -> None:
    chat, response = chat_rows()[1], {"id": "x", "context": ["Hi."], "response": "Hello."}
    (path := tmp_path / "x.json").write_text(json.dumps([chat, chat]), encoding="utf-8")
    assert [placed.item.id for placed in Source(str(path)).items("turn")] == ["b:2", "b#2:2"]
    path.write_text(json.dumps([response, response]), encoding="utf-8")
    assert refusal(Source(str(path)).read, "turn") == (
        f"{path}:1: the id 'x' is also that of {path}:1. Give every example its own."
    )
    batches = [pyarrow.RecordBatch.from_pylist([response])] * 2
    assert refusal(dialeval_plugin.examples_from, pyarrow.Table.from_batches(batches)) == (
        "row 1: the id 'x' is also that of row 0. Give every example its own."
    )


def test_equal_ids_of_two_files_of_a_folder_are_told_apart_by_the_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json_lines([{"q": "Hi.", "a": name}]), encoding="utf-8")
    (tmp_path / "logs").mkdir()
    for name in ("a", "b"):
        (tmp_path / "logs" / f"{name}.jsonl").write_text(json_lines(chat_rows()[1:]), encoding="utf-8")
    assert [one.id for one in Source(str(tmp_path / "logs")).read("turn")] == ["a.jsonl/b:2", "b.jsonl/b:2"]
    shutil.rmtree(tmp_path / "logs")
    items = Source(str(tmp_path), ReadingOptions(columns={"context": "q", "response": "a"})).read("turn")
    assert [(one.id, one.origin and one.origin.conversation) for one in items] == [
        ("a.jsonl/0", "a.jsonl/0"),
        ("b.jsonl/0", "b.jsonl/0"),
    ]


def test_a_cell_that_is_nested_without_end_is_a_text(tmp_path: Path) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    (tmp_path / "x.csv").write_text(f"context,response\nHi.,{deep}\n", encoding="utf-8")
    (one,) = Source(str(tmp_path / "x.csv")).read("turn")
    assert isinstance(one, Example)
    assert one.response.text == deep


@pytest.mark.parametrize("missing", [None, float("nan")])
@pytest.mark.parametrize(
    "names", [("conversation", "speaker", "text"), ("conversation_id", "role", "content"), ("c", "s", "t")]
)
def test_a_message_without_text_in_a_frame_is_left_out(missing: Any, names: tuple[str, ...]) -> None:
    rows = [("a", "user", "Any news?"), ("a", "assistant", missing), ("a", "assistant", "None at all.")]
    frame = pandas.DataFrame([dict(zip(names, row, strict=True)) for row in rows])
    columns = dict(zip(("conversation", "speaker", "text"), names, strict=True)) if names[0] == "c" else None
    (one,) = dialeval_plugin.examples_from(frame, columns=columns)
    assert (one.id, [turn.text for turn in one.context], one.response.text) == ("a:3", ["Any news?"], "None at all.")


def test_of_a_workbook_one_sheet_has_rows(tmp_path: Path) -> None:
    path = workbook(rows := message_rows())(tmp_path)
    with pandas.ExcelWriter(path) as book:
        pandas.DataFrame([*rows, {"conversation": "a", "speaker": "assistant"}]).to_excel(book, sheet_name="Chats", index=False)
    assert [one.id for one in Source(path).read("turn")] == [id for id, _, _ in EXPECTED]
    with pandas.ExcelWriter(path) as book:
        for sheet in ("Monday", "Tuesday"):
            pandas.DataFrame(rows).to_excel(book, sheet_name=sheet, index=False)
    assert refusal(Source(path).read, "turn") == f"{path}: has 2 sheets with rows (Monday, Tuesday). Leave one."
    Path(path).write_bytes(b"PK\x03\x04")
    damaged = f"{path}: is not a complete packed file (File is not a zip file). Copy it again."
    assert refusal(Source(path).read, "turn") == damaged


NO_TEXT = "is no text. Unpack it, or save it as JSON lines, CSV (UTF-8) or Parquet."


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", b"SQLite format 3\0\x10", f"x.jsonl: {NO_TEXT}"),
        ("x.pkl", b"\x80\x04\0\n", f"x.pkl: {NO_TEXT}"),
        ("x.csv", "context,response\nHi,\u201cyes\u201d\n".encode("cp1252"),
         "x.csv: byte 20 is not UTF-8. Convert the file to UTF-8, for example by "
         "iconv --from-code=WINDOWS-1252 --to-code=UTF-8."),
        ("x.csv", b"Chats;May;;\n;;;\na;user;Hi.;x\n",
         "x.csv:3: has a cell in a column without a name. Begin with the names of the columns."),
        ("", b"", "the name of a file is empty. Name a file or a folder (is a variable of the shell not set?)."),
    ],
)  # fmt: skip
def test_what_is_not_read_says_what_it_is(
    name: str, content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / (name or "x.jsonl")).write_bytes(content or json_lines(chat_rows()).encode())
    assert refusal(Source(name).read, "turn") == message


def test_an_address_may_be_one_that_cannot_be_reached() -> None:
    assert refusal(Source("memory://none.jsonl").read, "turn") == (
        "memory://none.jsonl: cannot be found or reached. Check the address, the network and its proxy."
    )


def test_frames_whose_columns_are_not_known_apart_are_refused() -> None:
    frame = pandas.DataFrame([["a", "user", "Hi."]])
    assert "it has '0', '1', '2'" in refusal(dialeval_plugin.examples_from, frame)
    frame.columns = pandas.Index(["conversation", "text", "text"])
    assert refusal(dialeval_plugin.examples_from, frame) == "table: the column 'text' occurs twice. Rename one."


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "numpy", None])
@pytest.mark.parametrize("rows", [[{"context": ["Hi."], "response": "Fine."}], [{"messages": chat_rows()[0]["messages"]}]])
def test_a_data_set_that_gives_its_rows_as_tables_is_read_as_any_other(kind: str | None, rows: list[dict[str, Any]]) -> None:
    if kind == "polars":
        pytest.importorskip("polars")
    data = datasets.Dataset.from_list([{**row, "other": 1} for row in rows])
    given = data.with_format(kind, columns=list(rows[0]))
    assert dialeval_plugin.examples_from(given) == dialeval_plugin.examples_from(rows) != []


def test_conversations_without_an_answer_are_named(caplog: pytest.LogCaptureFixture) -> None:
    assert dialeval_plugin.examples_from([]) == []
    assert caplog.messages == []
    assert dialeval_plugin.examples_from([[{"role": "user", "content": "Hi."}]] * 2) == []
    advice = "Call the assistant 'assistant', or choose turns='all'."
    assert caplog.messages == [f"conversations: there is no turn to score in any of 2. {advice}"]


def test_what_is_no_input_of_score_or_compare_says_what_is() -> None:
    message = "data: is None. Give a list of conversations, a table of them, or the name of a file."
    assert refusal(dialeval_plugin.score, None, "response_length") == message
    # Not the option of the command line: an empty list has no turns to choose among.
    assert (
        refusal(dialeval_plugin.score, [], "response_length")
        == "input: has nothing to score (it is empty). Give a row or more."
    )
    asked = [[{"role": "user", "content": "Hi."}]]
    assert refusal(dialeval_plugin.score, asked, "response_length").endswith("or choose the turns by turns='all'.")
    lacking = pandas.DataFrame({"context": ["Hi.", None], "response": ["Ho.", None]})
    advice = "Leave it out, of a data frame by dropna(how='all')."
    assert refusal(dialeval_plugin.score, lacking, "response_length") == f"row 1: has no value in any column. {advice}"
    empty = "the name of a file is empty. Name a file or a folder (is a variable of the shell not set?)."
    assert refusal(dialeval_plugin.compare, "", "x.jsonl") == empty
    chats = [{"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}]
    said = refusal(dialeval_plugin.compare, chats, chats)
    assert said == "conversations[0]: has no 'id', a text or a whole number. Give the id of the rated response."


@pytest.mark.parametrize("name", ["chats.jsonl", "chats.jsonl.gz", "chats.zip"])
def test_a_file_is_closed_where_its_first_rows_are_read(tmp_path: Path, name: str) -> None:
    """A test of a user that takes warnings for errors failed by the open file."""
    lines = json_lines(chat_rows()).encode()
    (tmp_path / name).write_bytes({".gz": gzip.compress(lines), ".zip": zipped(chat_rows())}.get(Path(name).suffix, lines))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert len(dialeval_plugin.score(tmp_path / name, scorer="response_length")) == 3
        gc.collect()
    assert [str(one.message) for one in said if one.category is ResourceWarning] == []
