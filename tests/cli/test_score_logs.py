"""`dialeval score` of conversation logs: a file, a table with named columns, a folder. TRIAL section 8, 11 and 23."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval_plugin.core.signature import short_form
from dialeval_plugin.corpora.readers.fed import FILE
from dialeval_plugin.scoring import score
from dialeval_plugin.version import __version__
from tests.cli.running import run
from tests.layouts import fed_rows, lines, write
from tests.refusals import refused

LENGTH = ("--scorer", "response_length")
SAID = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hi."},
    {"role": "assistant", "content": "Good day to you."},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
    {"role": "assistant", "content": "Fine."},
]


@pytest.fixture
def rows_written(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def words(path: Path, column: str = "words") -> dict[str, float]:
    return {row["id"]: row[column] for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())}


def test_a_folder_of_logs_gives_one_table(tmp_path: Path, rows_written: Path) -> None:
    write(tmp_path / "logs" / "monday.jsonl", lines({"id": "a", "messages": SAID}, {"messages": SAID[:2]}))
    write(tmp_path / "logs" / "june" / "b.csv", "conversation,speaker,text\n1,user,Hi.\n1,bot,Hm.\n")
    other = write(tmp_path / "logs" / "settings.json", "{}")
    table = tmp_path / "table.csv"
    done = run("score", tmp_path / "logs", *LENGTH, "--output", rows_written, "--by-conversation", table, "--worst", "0")
    assert done.exit_code == 0
    bars = {"0.8 to 1.2": f" {50 * '#'} 2", "3.6 to   4": f" {25 * '#'} 1"}
    steps = ("  0 to 0.4", "0.4 to 0.8", "0.8 to 1.2", "1.2 to 1.6", "1.6 to   2")
    steps += ("  2 to 2.4", "2.4 to 2.8", "2.8 to 3.2", "3.2 to 3.6", "3.6 to   4")
    assert done.stdout == (
        "words: mean 2.0000, 3 of 3 scored\n"
        "left out: 1 image_url part, 1 textless message, 2 system messages\n"
        f"{short_form(f'method:response_length|level:turn|version:{__version__}')}\n"
        "words:\n"
        + "".join(f"  {step} {bars.get(step, '  0')}\n" for step in steps)
        + "conversation    n_turns  n_scored   mean  worst_turn  worst_score\n"
        "--------------  -------  --------  -----  ----------  -----------\n"
        "june/b.csv/1          1         1  1.000           2        1.000\n"
        "monday.jsonl/a        2         2  2.500           5        1.000\n"
        f"scores: {rows_written}\n"
    )
    assert done.stderr == (
        f"no conversations, left out: {other}\n"
        "no turns, left out: 1 image_url part, 1 textless message, 2 system messages\n"
        "without a turn to score: 1 of 3 conversations\n"
        f"next: dialeval meta-eval {rows_written} --ratings FILE  (how far the scores agree with people's ratings)\n"
    )
    assert words(rows_written) == {"june/b.csv/1:2": 1.0, "monday.jsonl/a:3": 4.0, "monday.jsonl/a:5": 1.0}
    assert table.read_text(encoding="utf-8").splitlines()[1] == "june/b.csv/1,1,1,1.0,2,1.0"


def test_which_turns_are_scored(tmp_path: Path, rows_written: Path) -> None:
    log = write(tmp_path / "chat.json", json.dumps({"messages": SAID}, indent=1))
    for choice, ids in {"assistant": [3, 5], "all": [3, 5], "last": [5]}.items():
        assert run("score", log, *LENGTH, "--output", rows_written, "--turns", choice, "--overwrite").exit_code == 0
        assert list(words(rows_written)) == [f"chat_00000:{number}" for number in ids]


def test_columns_of_a_table(tmp_path: Path, rows_written: Path) -> None:
    table = write(tmp_path / "in.csv", 'question,answer\nHi.,"Good day, you."\n')
    columns = ("--columns", "context=question,response=answer")
    assert run("score", table, *LENGTH, "--output", rows_written, *columns).exit_code == 0
    assert words(rows_written) == {"0": 3.0}
    with refused(f"{table}:2: has no column 'reply', which is to be 'response'. There are: question, answer."):
        run("score", table, *LENGTH, "--output", rows_written, "--columns", "context=question,response=reply")
    with refused("--columns 'context': expected name=value."):
        run("score", table, *LENGTH, "--output", rows_written, "--columns", "context")
    with refused("--turns: there is no choice 'every'. Known are: assistant, all, last."):
        run("score", table, *LENGTH, "--output", rows_written, "--turns", "every")


def test_a_published_file_of_responses_and_dialogues_is_read_at_one_level(tmp_path: Path, rows_written: Path) -> None:
    path = write(tmp_path / FILE, *fed_rows(2))
    message = f"{path}: has 6 responses and 2 whole dialogues. Choose with --option level=turn or --option level=dialogue."
    with refused(message):
        run("score", path)
    with refused(message):
        score(path)
    assert run("inspect", path).stdout == "responses with their contexts: 6\nwhole dialogues: 2\n"
    for level, n, left_out in (("turn", 6, "2 whole dialogues"), ("dialogue", 2, "6 responses")):
        done = run("score", path, "--option", f"level={level}", "--output", rows_written, "--overwrite")
        assert done.exit_code == 0
        assert f"not of {level} level, left out: {left_out}\n" in done.stderr
        assert len(words(rows_written, "general")) == n
    with refused(f"{path}: not of turn level, left out: 2 whole dialogues. Without --strict the rest is read."):
        run("score", path, *LENGTH, "--strict")
    assert len(score(path, "response_length")) == 6
