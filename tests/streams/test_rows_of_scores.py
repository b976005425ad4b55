"""Fields of a row of scores, at every door; the kinds of files; and that every option works on every input."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import datasets
import pandas
import pyarrow
import pyarrow.parquet
import pytest

import dialeval_plugin
from dialeval_plugin.conversations.record import ReadingOptions
from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Origin, Turn
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.corpora.rows import file_rows
from dialeval_plugin.corpora.scored_input import Shard, Source
from dialeval_plugin.labels.answers import RowToLabel, write_table_to_fill
from dialeval_plugin.labels.scores import read_scored_rows
from dialeval_plugin.pages.report import write_report
from dialeval_plugin.reports.printed_scores import ConversationTable
from dialeval_plugin.results.true_mean import next_labels
from dialeval_plugin.streams import run
from dialeval_plugin.streams.output import merge, read_rows
from dialeval_plugin.streams.run import ScoreRun
from tests.cli.running import run as dialeval
from tests.cli.running import write_rows
from tests.refusals import refusal

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hi."},
    {"role": "assistant", "content": "Good day to you.", "time": 7},
    {"role": "user", "content": "How are you?"},
    {"role": "user", "content": "Well?"},
    {"role": "assistant", "content": "Fine."},
]
CHATS = [{"id": f"c{number}", "model": "m-1", "messages": CHAT} for number in range(12)]
LENGTH = load_scorer("response_length")
TEXTS = [
    {"preceding": [{"role": "user", "text": "Hi."}], "text": "Good day to you."},
    {"preceding": [{"role": "user", "text": "How are you?"}, {"role": "user", "text": "Well?"}], "text": "Fine."},
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "BLOCK", 5)  # a conversation lies in two of them


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "chats.jsonl", CHATS)


def open_source(source: Path, keep: Sequence[str] = ()) -> Source:
    return Source(str(source), ReadingOptions(keep=tuple(keep)))


def scored(source: Path, output: Path, **settings: Any) -> list[dict[str, Any]]:
    keep = settings.pop("keep", ())
    ScoreRun(LENGTH, open_source(source, keep=keep), output, **settings).score()
    return [dict(row) for row in read_rows(output)]


def test_a_row_leads_back_to_its_message_and_has_what_was_said_once(chats: Path, tmp_path: Path) -> None:
    rows = scored(chats, tmp_path / "out.jsonl", keep=["time", "model"], with_text=True)
    scores = {"words": 4.0, "characters": 16.0}, {"words": 1.0, "characters": 5.0}
    kept = {"time": 7, "model": "m-1"}, {"model": "m-1"}
    expected = [
        {
            "id": f"c{number}:{message}",
            "conversation": f"c{number}",
            "message": message,
            "role": "assistant",
            "source": f"{chats}:{number + 1}",
            **kept[place],
            **TEXTS[place],
            **scores[place],
        }
        for number in range(12)
        for place, message in enumerate((3, 6))
    ]
    assert rows == expected
    assert [list(row) for row in rows] == [list(row) for row in expected]
    meta = json.loads((tmp_path / "out.jsonl.meta.json").read_text(encoding="utf-8"))
    assert (meta["left_out"], meta["keep"], meta["with_text"]) == ({"system message": 12}, ["time", "model"], True)


def test_the_rows_are_the_same_at_every_door(chats: Path, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(CHATS), tmp_path / "chats.parquet")
    (tmp_path / "chats.json").write_text(json.dumps(CHATS), encoding="utf-8")
    data = datasets.Dataset.from_list(CHATS)
    data.save_to_disk(tmp_path / "saved")
    outputs = {
        "whole": scored(chats, tmp_path / "whole.jsonl", with_text=True),
        "json": scored(tmp_path / "chats.json", tmp_path / "json.jsonl", with_text=True),
        "parquet": scored(tmp_path / "chats.parquet", tmp_path / "parquet.jsonl", with_text=True),
        "saved": scored(tmp_path / "saved", tmp_path / "saved.jsonl", with_text=True),
        "to parquet": scored(chats, tmp_path / "to.parquet", with_text=True),
    }
    given = {
        "list": CHATS,
        "generator": (chat for chat in CHATS),
        "data frame": pandas.DataFrame(CHATS),
        "data set": data,
        "arrow": pyarrow.Table.from_pylist(CHATS),
        "path": chats,
        "name": str(chats),
    }
    outputs |= {name: list(dialeval_plugin.score(one, "response_length").rows(with_text=True)) for name, one in given.items()}
    items = dialeval_plugin.examples_from(CHATS)
    outputs["scorer"] = list(LENGTH.score(items).rows(with_text=True))
    outputs["blocks"] = [row for scores in LENGTH.score_stream(items, block=2) for row in scores.rows()]
    merged = tmp_path / "merged.jsonl"
    parts = [tmp_path / f"part-{number}.parquet" for number in (1, 2)]
    for number, part in enumerate(parts, start=1):
        scored(chats, part, with_text=True, shard=Shard(number, 2))
    merge(parts, merged)
    outputs["merged"] = [dict(row) for row in read_rows(merged)]
    without = {"source", "preceding", "text"}
    expected = [{name: value for name, value in row.items() if name not in without} for row in outputs["whole"]]
    for name, rows in outputs.items():
        assert [{key: value for key, value in row.items() if key not in without} for row in rows] == expected, name
        assert all("source" in row for row in rows), name
        if name != "blocks":
            assert [{key: row[key] for key in ("preceding", "text")} for row in rows] == TEXTS * 12, name


def test_a_conversation_that_parts_is_given_anew_and_a_dialogue_has_its_turns() -> None:
    turns = tuple(map(Turn, "abcd"))
    items: list[Item] = [
        Example("x:2", turns[:1], turns[1], origin=Origin("x", 2)),
        Example("x:4", (turns[0], turns[2]), turns[3], origin=Origin("x", 4)),
        Example("1", turns[:2], turns[2]),
    ]
    rows = list(LENGTH.score(items).rows(with_text=True))
    assert ["".join(turn["text"] for turn in row["preceding"]) + row["text"] for row in rows] == ["ab", "acd", "abc"]
    assert [name for name in rows[2] if name not in LENGTH.columns] == ["id", "preceding", "text"]

    class Whole(Scorer):
        name, columns, level = "whole", ("x",), "dialogue"

        def score_batch(self, items: Sequence[Item]) -> list[Row]:
            return [{"x": 1.0}] * len(items)

        def signature_fields(self) -> dict[str, SignatureValue]:
            return {"method": self.name}

    (row,) = Whole().score([Dialogue("d", turns, origin=Origin("d"))]).rows(with_text=True)
    assert row == {"id": "d", "conversation": "d", "preceding": [{"role": None, "text": letter} for letter in "abcd"], "x": 1.0}


def test_a_table_has_the_columns_of_the_rows(chats: Path, tmp_path: Path) -> None:
    write_rows(chats, [*CHATS[:1], {"id": "z", "messages": [*CHAT[:2], {"role": "assistant", "content": " "}], "model": [1]}])
    ScoreRun(LENGTH, open_source(chats, keep=["model"]), tmp_path / "out.csv", with_text=True).score()
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    names = ["id", "conversation", "message", "role", "source", "model", "preceding", "text", "words", "characters"]
    assert header == [*names, "unscored", "detail"]
    preceding = '[{"role": "user", "text": "Hi."}]'
    first = ["c0:3", "c0", "3", "assistant", f"{chats}:1", "m-1", preceding, "Good day to you.", "4.0", "16.0", "", ""]
    why = ["", "", "empty_input", "the response has no visible character"]
    assert (rows[0], rows[2]) == (first, ["z:3", "z", "3", "assistant", f"{chats}:2", "[1]", preceding, " ", *why])
    ScoreRun(LENGTH, open_source(chats, keep=["model"]), tmp_path / "out.parquet").score()
    assert pandas.read_parquet(tmp_path / "out.parquet")["model"].tolist() == ["m-1", "m-1", "[1]"]


def test_half_of_a_surrogate_pair_next_to_the_text_loses_no_row(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    shown = {"role": "user", "content": [{"type": "text", "text": "Hi."}, {"type": "\ud800"}]}
    logs = [{"id": "a", "tag": ["x\ud800", 1], "messages": turns}, {"id": "b", "messages": [shown, turns[1]]}]
    source = tmp_path / "chats.jsonl"
    source.write_text("".join(json.dumps(log) + "\n" for log in logs), encoding="utf-8")
    (row,) = scored(source, tmp_path / "out.jsonl", keep=["tag"])
    assert (row["id"], row["tag"]) == ("a:2", ["x?", 1])
    meta = json.loads((tmp_path / "out.jsonl.meta.json").read_text(encoding="utf-8"))
    assert meta["left_out"] == {"malformed conversation": 1}


@pytest.mark.parametrize("name", ["out", "out.json", "out.txt", "out.jsonl.gz"])
def test_a_name_that_does_not_say_the_kind_of_file_is_refused(chats: Path, tmp_path: Path, name: str) -> None:
    output = tmp_path / name
    assert refusal(ScoreRun, LENGTH, open_source(chats), output) == (
        f"{output}: what kind of file is it to be? End its name in .jsonl, .csv or .parquet."
    )
    assert refusal(dialeval, "score", chats, "--scorer", "response_length", "--output", output) == (
        f"{output}: what kind of file is it to be? End its name in .jsonl, .csv or .parquet."
    )
    assert refusal(ScoreRun, LENGTH, open_source(chats), tmp_path / "out.CSV", Shard(1, 2)) == (
        f"{tmp_path / 'out.CSV'}: a shard is JSON lines or Parquet. Let `dialeval merge` write the CSV file."
    )


@pytest.mark.parametrize("name", ["id", "words", "percentile", "text", "place", "unscored"])
def test_a_field_that_a_row_has_anyway_is_not_kept(chats: Path, name: str) -> None:
    assert refusal(dialeval, "score", chats, "--scorer", "response_length", "--keep", "model", "--keep", name) == (
        f"--keep {name}: a row has a field of this name anyway. Rename it in the input, or leave it out."
    )


class Counting(Scorer):
    """Counts what it scores, and has no answer for the responses in `down`."""

    name = "counting"
    columns = ("x",)
    down: ClassVar[set[str]] = set()
    scored: ClassVar[list[str]] = []

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        self.scored.extend(item.id for item in items)
        return [Unscored(Reason.API_ERROR, "503") if item.id in self.down else {"x": 1.0} for item in items]

    def signature_fields(self) -> dict[str, SignatureValue]:
        return {"method": self.name}


def stopped(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_a_run_that_goes_on_scores_what_failed_again_and_may_have_other_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chats = write_rows(tmp_path / "chats.jsonl", [{"id": f"c{n}", "messages": [{"role": "user", "content": "Hi."},
        {"role": "assistant", "content": f"{n}"}], "model": n} for n in range(12)])  # fmt: skip
    ScoreRun(Counting(), open_source(chats, keep=["model"]), whole := tmp_path / "whole.jsonl", with_text=True).score()
    output = tmp_path / "out.jsonl"
    monkeypatch.setattr(Counting, "down", {"c1:2", "c7:2"})
    with monkeypatch.context() as patched:
        patched.setattr(run, "join_blocks", stopped)
        with pytest.raises(KeyboardInterrupt):
            ScoreRun(Counting(), open_source(chats), output).score()
    monkeypatch.setattr(Counting, "down", set())
    Counting.scored.clear()
    ScoreRun(Counting(), open_source(chats, keep=["model"]), output, with_text=True).score()
    assert Counting.scored == ["c1:2", "c7:2"]
    assert output.read_bytes() == whole.read_bytes()
    # The finished file has these fields: another command does not take it for its own.
    with pytest.raises(InputError, match="holds something else"):
        ScoreRun(Counting(), open_source(chats), output).score()


@pytest.mark.parametrize("kind", ["parquet", "saved", "url", "json", "shard"])
def test_every_option_works_on_every_input(kind: str, chats: Path, tmp_path: Path) -> None:
    shard: tuple[str, ...] = ()
    if kind == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(CHATS), source := tmp_path / "in.parquet")
    elif kind == "saved":
        datasets.Dataset.from_list(CHATS).save_to_disk(source := tmp_path / "saved")
    elif kind == "json":
        (source := tmp_path / "in.json").write_text(json.dumps(CHATS), encoding="utf-8")
    else:
        source, shard = (f"file://{chats}", ()) if kind == "url" else (chats, ("--shard", "1/1"))
    words = ("score", source, "--scorer", "llm_chiang", "--llm", "scripted-judge", "--no-answers", *shard)
    outputs = ("--output", tmp_path / "out.parquet", "--record", tmp_path / "v.jsonl", "--by-conversation", tmp_path / "c.csv")
    rehearsed = dialeval(*words, *outputs, "--dry-run")
    assert (rehearsed.exit_code, list(tmp_path.glob("out*"))) == (0, [])
    assert rehearsed.stdout.startswith("dry run: ")
    done = dialeval(*words, *outputs)
    assert done.exit_code == 0, done.stderr
    n_verdicts = (tmp_path / "v.jsonl").read_text(encoding="utf-8").count("\n")
    assert n_verdicts in {24 * n for n in range(1, 5)}  # as many as the judge has questions
    assert f"verdicts: {n_verdicts} in " in done.stdout
    assert (tmp_path / "c.csv").read_text(encoding="utf-8").count("\n") == 13
    assert len(list(read_rows(tmp_path / "out.parquet"))) == 24
    explained = dialeval(
        "score", source, "--scorer", "general", "--explain", "--worst", "1", *shard, *outputs[:1], tmp_path / "g.jsonl"
    )
    assert explained.exit_code == 0, explained.stderr
    assert "worst 1 of 24 (percentile, score, id):" in explained.stdout


def test_a_run_in_which_nothing_has_a_score_exits_with_1_whatever_is_allowed(tmp_path: Path) -> None:
    blank = write_rows(tmp_path / "in.jsonl", [{"context": ["Hi."], "response": " "}])
    words = ("score", blank, "--scorer", "response_length", "--max-unscored", "1")
    done = dialeval(*words)
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (1, "none of 1 examples has a score: {'empty_input': 1}")
    # A part of an input may have no score: the others have some.
    assert dialeval(*words, "--shard", "1/1", "--output", tmp_path / "part.jsonl").exit_code == 0


def test_what_was_left_out_of_the_parts_is_said_of_the_whole(chats: Path, tmp_path: Path) -> None:
    parts = [tmp_path / f"part-{number}.jsonl" for number in (1, 2)]
    for number, part in enumerate(parts, start=1):
        scored(chats, part, shard=Shard(number, 2))
    done = dialeval("merge", tmp_path / "merged.csv", *parts)
    assert done.stdout.splitlines()[:2] == ["words: mean 2.5000, 24 of 24 scored", "left out: 12 system messages"]
    assert (tmp_path / "merged.csv").read_text(encoding="utf-8").count("\n") == 25
    scored(chats, parts[1], shard=Shard(2, 2), with_text=True, overwrite=True)
    assert refusal(merge, parts, tmp_path / "other.jsonl").startswith(
        f"{parts[1]}: has texts, or none, other than {parts[0]} (True, there none)."
    )


def test_the_door_in_python_takes_what_is_said_of_an_input_and_options_of_the_scorer(tmp_path: Path) -> None:
    first, second = ({"id": "c", "messages": CHAT[1:n]} for n in (3, 6))
    scores = dialeval_plugin.score([first, second], "random", turns="last", keep=["time"], seed=7)
    assert [(row["id"], row.get("time")) for row in scores] == [("c:2", 7), ("c#2:5", None)]
    assert "seed:7" in str(scores.signature)
    path = tmp_path / "table.csv"
    path.write_text("q,a\nHi.,Good day.\n", encoding="utf-8")
    assert dialeval_plugin.score(path, LENGTH, columns={"context": "q", "response": "a"}).values == (2.0,)
    bad = [{"id": "a", "messages": [{"role": "user"}]}, {"id": "b", "messages": CHAT}]
    assert len(dialeval_plugin.score(write_rows(tmp_path / "bad.jsonl", bad), LENGTH)) == 2
    with pytest.raises(InputError, match="malformed"):
        dialeval_plugin.score(tmp_path / "bad.jsonl", LENGTH, strict=True)


def test_a_carriage_return_in_a_text_does_not_end_a_row_of_a_table(tmp_path: Path) -> None:
    """Python's writer quotes it only from 3.13 on, so that no command could read the file again."""
    text = "one\rtwo three"
    chats = [{"id": "c", "messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": text}]}]
    source, scores, sheet = (tmp_path / name for name in ("chats.jsonl", "scores.csv", "sheet.csv"))
    write_rows(source, chats)
    ScoreRun(LENGTH, open_source(source), scores, with_text=True).score()
    (row,) = read_scored_rows(scores).rows
    assert (row.fields["text"], row.score) == (text, 3.0)
    write_table_to_fill(sheet, [RowToLabel("c:2", [("user", "Hi.")], "assistant", text)], "by score")
    assert [line.value["response"] for line in file_rows(sheet)] == [text]
    assert b"\r\n" not in scores.read_bytes() + sheet.read_bytes()


def growing(name: str, n: int) -> list[dict[str, str]]:
    """Return the first messages of a conversation."""
    return [{"role": ("user", "assistant")[place % 2], "content": f"{name} says {place}."} for place in range(n)]


def conversations_of_page(scores: Path, *, n: int) -> list[list[str]]:
    """Return the texts of each of the `n` conversations that the page of a score file shows."""
    page = scores.with_suffix(".html")
    assert write_report(scores, page).n_conversations == n
    shown = re.search('id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert shown is not None
    return [
        [text for row in rows for text in (*(text for _, text in row.get("before", ())), row["text"])]
        for _, rows in json.loads(shown[1])["conversations"]
    ]


def test_a_log_that_repeats_the_history_has_the_conversations_of_a_whole_one(tmp_path: Path) -> None:
    """Every request was a conversation of its own, so that intervals were too narrow, and gates too sure."""
    names, lengths = [f"c{number}" for number in range(12)], (2, 4, 6)
    whole = [{"conversation_id": name, "messages": growing(name, 6)} for name in names]
    requests = [{"conversation_id": name, "messages": growing(name, n)} for n in lengths for name in names]
    logs = {
        "whole": [whole],
        "requests": [requests],
        "sorted": [sorted(requests, key=lambda row: str(row["conversation_id"]))],
        "nameless": [[{"messages": row["messages"]} for row in requests]],
        "folder": [requests[place : place + 12] for place in (0, 12, 24)],
    }
    for name, files in logs.items():
        for number, rows in enumerate(files):
            (tmp_path / name).mkdir(exist_ok=True)
            write_rows(tmp_path / name / f"part{number}.jsonl", rows)
        source = open_source(tmp_path / name if name == "folder" else tmp_path / name / "part0.jsonl")
        output = tmp_path / f"{name}.jsonl"
        summary = ScoreRun(LENGTH, source, output, with_text=True).score()
        assert (summary.n_total, summary.estimate.n_clusters, source.reading.n_conversations) == (36, 12, 12)
        scored = read_scored_rows(output).rows
        assert len({row.conversation for row in scored}) == 12
        assert len({row.id for row in scored}) == 36
        to_label = {(row.before[0][1], len(row.before)): row for row in next_labels(output, 36).rows}
        assert [([text for _, text in row.before], row.text) for _, row in sorted(to_label.items())] == sorted(
            ([one["content"] for one in growing(who, n - 1)], growing(who, n)[-1]["content"]) for who in names for n in lengths
        )
        for said in conversations_of_page(output, n=12):
            assert said == [one["content"] for one in growing(said[0].partition(" ")[0], 6)]


def test_requests_of_a_log_have_the_conversations_of_a_whole_one(tmp_path: Path) -> None:
    """Every request was a conversation of its own, so that intervals were too narrow."""
    names, lengths = [f"c{number}" for number in range(12)], (2, 4, 6)
    greeting = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello!"}]  # conversations begin alike
    requests = [
        {"request": {"messages": said[:-1]}, "response": {"choices": [{"message": said[-1]}]}, "trace": f"{name}-{n}"}
        for n in lengths
        for name in names
        for said in [[*greeting, *growing(name, 6)][:n]]
    ]
    last = [{"input": row["request"]["messages"][-1:], "output": row["response"]["choices"][0]["message"]} for row in requests]
    named = [{**row, "id": each["trace"]} for row, each in zip(last, requests, strict=True)]
    project = {"run_type": "llm", "session_id": "project"}
    said_nothing = {"request": {"messages": [CHAT[0]]}, "response": {"choices": [{"message": CHAT[0]}]}, "trace": "c12"}
    logs = {
        "requests": requests,
        "newest first": requests[::-1],
        "with ids": [{**row, "id": row["trace"]} for row in requests],
        "traces": [{**row, "trace_id": row["trace"]} for row in [*requests, said_nothing]],
        "sessions": [{**row, "sessionId": row["id"].partition("-")[0]} for row in named],
        "metadata": [{**row, "metadata": {"session_id": row["id"].partition("-")[0]}} for row in named],
        "spans": [
            {"span_id": str(row["trace"]), "attributes": {"gen_ai.input.messages": row["request"]["messages"],
             "gen_ai.output.messages": [row["response"]["choices"][0]["message"]]}}
            for row in requests
        ],
        "langsmith": [
            {**project, "id": row["id"], "inputs": {"messages": row["input"]}, "outputs": row["output"],
             "extra": {"metadata": {"thread_id": row["id"].partition("-")[0]}}}
            for row in named
        ],
        "langsmith without threads": [
            {**project, "id": row["trace"], "inputs": row["request"], "outputs": row["response"]} for row in requests
        ],
    }  # fmt: skip
    for name, rows in logs.items():
        source = open_source(write_rows(tmp_path / f"{name} log.jsonl", rows))
        table, output = ConversationTable(), tmp_path / f"{name}.jsonl"
        summary = ScoreRun(LENGTH, source, output, with_text=True).score(collectors=[table.add])
        assert (name, summary.n_total, summary.estimate.n_clusters) == (name, 36, 12)
        assert (shown := table.report()) is not None
        assert {(row["n_turns"], row["n_scored"]) for row in shown.rows} == {(3, 3)}
        assert len(shown.rows) == 12
        assert "speakers: user (36 turns), assistant (36 turns)\n" in dialeval("inspect", source.name).stdout
        assert source.reading.n_conversations - source.reading.n_silent == 12
        assert len({row.id for row in read_scored_rows(output).rows}) == 36
        for said in conversations_of_page(output, n=12):
            assert said == [one["content"] for one in [*greeting, *growing(said[2].partition(" ")[0], 4)]]


def test_one_session_of_all_requests_is_said(tmp_path: Path) -> None:
    """A session id that is the same in a whole log made one conversation in silence."""
    for n, sessions, said in ((10, 1, True), (10, 2, False), (9, 1, False)):
        rows = [{"sessionId": f"s{row % sessions}", "input": [CHAT[1]], "output": growing(str(row), 2)[1]} for row in range(n)]
        source = open_source(write_rows(tmp_path / "log.jsonl", rows))
        assert len(source.read("turn")) == n
        assert source.reading.n_conversations == sessions
        remark = "one conversation: all 10 rows name the session 's0'. If they are of several, remove that field\n"
        assert source.reading.remarks() == (remark if said else "")


def test_new_answers_to_requests_are_paired_by_their_conversations(tmp_path: Path) -> None:
    """A conversation with another answer could not be paired: its later requests repeat the answer."""
    files = []
    for version in ("a", "b"):
        said = [[*growing(f"c{number}", 1), {"role": "assistant", "content": version}] for number in range(12)]
        said += [[*one, *growing("Then", 1), {"role": "assistant", "content": version * 2}] for one in said]
        rows = [{"input": one[:-1], "output": one[-1], "id": f"{version}{place}"} for place, one in enumerate(said)]
        for order in (1, -1):
            source = open_source(write_rows(tmp_path / f"{version}{order} log.jsonl", rows[::order]))
            ScoreRun(LENGTH, source, output := tmp_path / f"{version}{order}.jsonl", with_text=True).score()
            files.append(output)
    for order in (0, 1):
        comparison = dialeval_plugin.compare(files[order], files[2 + order])
        assert (comparison.matched_by, comparison.n_matched, comparison.n_conversations) == ("context", 12, (12, 12))


def test_branches_of_a_conversation_are_resampled_together(tmp_path: Path) -> None:
    """Each branch was a conversation of its own: the interval was too narrow."""

    def tree(number: int) -> dict[str, Any]:
        said = [("q", None, "user"), ("a", "q", "assistant"), ("b", "q", "assistant"), ("c", "q", "assistant")]
        said += [("more", "b", "user"), ("d", "more", "assistant")]
        fields = [{"id": id, "parent_id": parent, "role": role, "content": f"{id} of {number}."} for id, parent, role in said]
        return {"id": f"c{number}", "messages": fields}

    folder = tmp_path / "logs"
    folder.mkdir()
    logs = write_rows(folder / "log.jsonl", list(map(tree, range(12))))
    for source, prefix in ((logs, ""), (folder, "log.jsonl/")):
        output = tmp_path / f"{source.name}.scores.jsonl"
        summary = ScoreRun(LENGTH, Source(str(source), ReadingOptions(branches="all")), output, with_text=True).score()
        assert (summary.n_total, summary.estimate.n_clusters) == (48, 12)
        assert {row.conversation for row in read_scored_rows(output).rows} == {f"{prefix}c{number}" for number in range(12)}
        to_label = {row.text: [text for _, text in row.before] for row in next_labels(output, 48).rows}
        assert to_label == {
            f"{name} of {number}.": [f"{one} of {number}." for one in before]
            for number in range(12)
            for name, before in {"a": ["q"], "b": ["q"], "c": ["q"], "d": ["q", "b", "more"]}.items()
        }


def test_python_says_what_was_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A malformed conversation was missing from the scores without a word."""
    good = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Good day!"}]
    path = write_rows(tmp_path / "chats.jsonl", [{"messages": good}, {"messages": [{"role": "user", "content": 7}]}])
    assert len(dialeval_plugin.score(str(path), "response_length", keep="topic")) == 1
    said = [record.message.partition(": ")[2] for record in caplog.records if record.name == "dialeval_plugin.scoring"]
    assert said[0] == "no turns, left out: 1 malformed conversation"
    assert said[1].startswith("malformed, left out: ")
    assert ":2: " in said[1]
    assert said[2:] == ["--keep topic: nothing that was read has such a field"]


def test_one_field_to_keep_needs_no_list() -> None:
    """Its letters were taken for fields, and nothing was kept."""
    chat = {"model": "mine", "messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes?"}]}
    assert [row["model"] for row in dialeval_plugin.score([chat], "response_length", keep="model")] == ["mine"]


def test_columns_of_another_kind_are_refused() -> None:
    message = "columns: expected names of fields, as {'context': 'history'}, got 'history'."
    assert refusal(dialeval_plugin.score, [], "response_length", columns="history") == message
