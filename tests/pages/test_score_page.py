"""The page of a score file as text: what stands in it, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from dialeval_plugin.core.signature import file_hash
from dialeval_plugin.pages import report
from dialeval_plugin.pages.report import Shown, write_report
from tests.cli.running import run, write_rows
from tests.leaderboard_files import HOSTILE
from tests.pages.conftest import Writer, score_rows
from tests.refusals import refused

PAGE = Path("report.html")


def data_of(page: Path) -> dict[str, Any]:
    found = re.search('<script type="application/json" id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


def shown_text(page: Path) -> str:
    """Return the text above the conversations, one blank between words."""
    body = page.read_text(encoding="utf-8").partition("<main>")[2].partition("<form")[0]
    return " ".join(re.sub("<[^>]*>", " ", body).split())


def test_a_command_writes_the_page_of_a_score_file(score_file: Writer) -> None:
    done = run("report", score_file(score_rows(12)), "--output", PAGE, "--title", "Ours & <theirs>")
    assert done.stdout == "report.html\n12 of 12 conversations are on the page, the worst first\n"
    assert done.stderr == "next: python -m webbrowser report.html  (look at it)\n"
    assert "<h1>Ours &amp; &lt;theirs&gt;</h1>" in PAGE.read_text(encoding="utf-8")


def test_the_head_has_the_counts_the_mean_and_how_it_was_scored(score_file: Writer) -> None:
    write_report(score_file(score_rows(12)), PAGE)
    said = shown_text(PAGE)
    assert re.search(
        r"Mean 0\.\d{3} 0\.\d{3} to 0\.\d{3}, rough: 95 % interval over conversations Scored 23 of 24 responses", said
    )
    assert "Unscored 1 empty input 1 Left out when read 15 system message 3, tool message 12" in said
    assert "Score file scores.jsonl Column general Read from logs/monday.jsonl, javascript:window.hacked=1" in said
    assert "method general model general@f9fc level turn" in said


def test_a_file_that_was_changed_after_it_was_scored_is_named_so(score_file: Writer) -> None:
    path = score_file(score_rows(3), sha256=file_hash(score_file(score_rows(3))))
    write_report(path, PAGE)
    assert "Score file scores.jsonl Column" in shown_text(PAGE)
    path.write_text(path.read_text(encoding="utf-8").replace("0.", "1."), encoding="utf-8")
    write_report(path, PAGE)
    assert "Score file scores.jsonl was changed after it was scored Column" in shown_text(PAGE)


def test_few_conversations_have_no_interval_and_the_page_says_why(score_file: Writer) -> None:
    write_report(score_file(score_rows(3)), PAGE)
    assert "no interval: that needs 10 conversations, here are 3" in shown_text(PAGE)


def test_the_worst_conversation_is_first_with_all_that_its_rows_hold(score_file: Writer) -> None:
    assert write_report(score_file(score_rows(12)), PAGE) == Shown(12, 12, has_texts=True)
    data = data_of(PAGE)
    name, rows = data["conversations"][0]
    assert name == "logs/monday.jsonl/0"
    assert rows[0] == {
        "id": "logs/monday.jsonl/0:2",
        "score": 0.0192,
        "percentile": 1.92,
        "before": [["user", "About Leeds, 0?"]],
        "text": "Answer 2 to 0.",
        "role": "assistant",
        "message": 2,
        "source": "logs/monday.jsonl:1",
        "link": "./logs/monday.jsonl",
        "columns": [0.9808],
        "notes": [["explanation", "because 0"]],
        "kept": [[0]] * 5,
    }
    assert [kept["name"] for kept in data["kept"]] == ["model", "tags", "user", "__proto__", HOSTILE]
    assert data["columns"] == ["fit"]
    assert sum(bar[2] for bar in data["bars"]["score"]) == 23


@pytest.mark.parametrize(
    ("scores", "bars"),
    [
        ([1, 2, 2, 5], [[1, 1, 1, 1, 1], [2, 2, 2, 2, 2], [5, 5, 1, 5, 5]]),
        ([0.123, 0.123], [[0.123, 0.123, 2, 0.123, 0.123]]),
        # A value on an end is above it; the best possible one begins no bar of its own.
        (
            [0.1004, 0.12, 0.15, 0.2],
            [
                [0.1, 0.105, 1, 0.1004, 0.1004],
                [0.12, 0.125, 1, 0.12, 0.12],
                [0.15, 0.155, 1, 0.15, 0.15],
                [0.195, 0.2, 1, 0.2, 0.2],
            ],
        ),
    ],
)
def test_bars_count_every_score_once(score_file: Writer, scores: list[float], bars: list[list[float]]) -> None:
    write_report(score_file([{"id": str(number), "general": score} for number, score in enumerate(scores)]), PAGE)
    assert [bar for bar in data_of(PAGE)["bars"]["score"] if bar[2]] == bars


def test_where_lower_is_better_the_highest_score_is_the_worst(score_file: Writer) -> None:
    write_report(score_file(score_rows(12), orientation="lower"), PAGE)
    assert data_of(PAGE)["conversations"][0][0] == "logs/monday.jsonl/11"


def test_a_link_leads_from_the_page_to_the_log_and_no_other_address_is_one(score_file: Writer, tmp_path: Path) -> None:
    rows = score_rows(12)
    rows[0]["source"] = "https://example.org:8080"
    rows[1]["source"] = str(tmp_path / "logs" / "monday.jsonl")
    rows[2]["source"] = "logs/tuesday.jsonl:1"
    rows[3]["source"] = "x" * 5000
    write_report(score_file(rows), Path("out/pages/report.html"))
    sources = {
        row.get("source"): row.get("link")
        for _, rows in data_of(Path("out/pages/report.html"))["conversations"]
        for row in rows
    }
    assert sources["https://example.org:8080"] == "https://example.org:8080"
    assert sources[str(tmp_path / "logs" / "monday.jsonl")] is None
    assert sources["logs/tuesday.jsonl:1"] is sources["x" * 5000] is None
    assert sources["javascript:window.hacked=1"] is None
    assert sources["logs/monday.jsonl:3"] == "./../../logs/monday.jsonl"


def test_the_same_rows_as_parquet_and_csv_give_the_same_conversations(score_file: Writer) -> None:
    rows = [row for row in score_rows(12) if row["general"] is not None]
    del rows[1]["preceding"]
    write_report(score_file(rows), PAGE)
    expected = data_of(PAGE)
    # As `dialeval score` writes tables: lists are JSON, but for the turns in Parquet.
    cells = [{name: json.dumps(value) if isinstance(value, list) else value for name, value in row.items()} for row in rows]
    score_file([], "scores.csv")
    pyarrow.Table.from_pylist(cells).to_pandas().to_csv("scores.csv", index=False)
    score_file([], "scores.parquet")
    nested = [{**cell, "preceding": row.get("preceding")} for row, cell in zip(rows, cells, strict=True)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(nested), "scores.parquet")
    for name in ("scores.csv", "scores.parquet"):
        write_report(Path(name), PAGE)
        assert data_of(PAGE) == expected


def test_what_the_command_scores_is_shown_as_it_was_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    turns = [
        ("system", "Be brief."),
        ("user", "Tea?"),
        ("assistant", "Please."),
        ("user", "Milk?"),
        ("assistant", "No, thanks."),
    ]
    messages = [{"role": role, "content": text} for role, text in turns]
    write_rows(Path("log.jsonl"), [{"id": "a", "model": "v1", "messages": messages}])
    for name in ("scores.jsonl", "scores.csv", "scores.parquet"):
        run("score", "log.jsonl", "--scorer", "random", "--output", name, "--with-text", "--keep", "model")
        run("report", name, "--output", PAGE)
        data = data_of(PAGE)
        ((conversation, rows),) = data["conversations"]
        assert (conversation, data["kept"]) == ("a", [{"name": "model", "values": ["v1"]}])
        said = [turn for row in rows for turn in [*row["before"], [row["role"], row["text"]]]]
        assert said == [list(turn) for turn in turns[1:]]
        assert [(row["message"], row["source"], row["link"]) for row in rows] == [
            (3, "log.jsonl:1", "./log.jsonl"),
            (5, "log.jsonl:1", "./log.jsonl"),
        ]
        assert "Left out when read 1 system message 1" in shown_text(PAGE)


def test_without_texts_the_page_says_how_to_get_them(score_file: Writer) -> None:
    done = run("report", score_file(score_rows(12, text=False)), "--output", PAGE)
    assert done.stderr.startswith("the scores have no texts, so there are no chats: run `dialeval score` with --with-text\n")
    assert "dialeval score INPUT --output scores.jsonl --with-text" in shown_text(PAGE)


def test_a_page_of_many_conversations_has_the_worst_and_says_so(score_file: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("report", score_file(score_rows(12)), "--output", PAGE, "--conversations", "2")
    assert done.stdout == "report.html\n2 of 12 conversations are on the page, the worst first\n"
    said = "This page has the 2 worst of 12 conversations , by their worst score; the figures above are of all."
    assert said in shown_text(PAGE)
    assert sum(bar[2] for bar in data_of(PAGE)["bars"]["score"]) == 23
    # A conversation of these has some hundred characters.
    monkeypatch.setattr(report, "MOST_CHARACTERS", 1000)
    assert 1 < write_report(Path("scores.jsonl"), PAGE).n_shown < 12


def test_rows_of_other_tools_are_shown_by_what_their_ids_say(tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "scores.jsonl", [{"id": "a:1", "score": 1}, {"id": "a:2", "score": 5}, {"id": "b", "score": 2}]
    )
    write_report(path, tmp_path / "report.html")
    data = data_of(tmp_path / "report.html")
    assert [(name, [row["score"] for row in rows]) for name, rows in data["conversations"]] == [("a", [1, 5]), ("b", [2])]
    assert data["bars"]["score"] == [[1, 1, 1, 1, 1], [2, 2, 1, 2, 2], [5, 5, 1, 5, 5]]
    assert "Signature unknown: there is no scores.jsonl.meta.json beside the file" in shown_text(tmp_path / "report.html")


def test_the_conversations_of_other_tools_are_those_of_their_own_column(tmp_path: Path) -> None:
    """Every row was a conversation of its own on the page, while the interval above was of the right ones."""
    rows = [{"id": f"r{number}", "chat_id": f"chat{number // 3}", "score": number / 60, "text": number} for number in range(60)]
    shown = write_report(write_rows(tmp_path / "scores.jsonl", rows), tmp_path / "report.html")
    assert shown == Shown(20, 20, has_texts=True)
    name, said = data_of(tmp_path / "report.html")["conversations"][0]
    assert (name, [row["text"] for row in said]) == ("chat0", ["0", "1", "2"])


def test_a_whole_conversation_with_one_score_is_shown_with_its_turns(score_file: Writer) -> None:
    turns = [{"role": "user", "text": "Hi."}, {"role": "assistant", "text": "Hello: you?"}]
    rows = [{"id": "at 10:15", "preceding": turns, "general": 0.5}]
    write_report(score_file(rows, level="dialogue"), PAGE)
    ((name, (row,)),) = data_of(PAGE)["conversations"]
    assert (name, row["before"]) == ("at 10:15", [["user", "Hi."], ["assistant", "Hello: you?"]])
    assert "Scored 1 of 1 conversation" in shown_text(PAGE)


def test_hostile_texts_stay_inside_the_data(score_file: Writer) -> None:
    write_report(score_file(score_rows(12)), PAGE)
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("<script") == page.count("</script>") == 2
    assert "<img" not in page
    assert "'unsafe" not in page
    assert any(HOSTILE in row.get("text", "") for _, rows in data_of(PAGE)["conversations"] for row in rows)


def test_what_cannot_become_a_page_is_refused(score_file: Writer, tmp_path: Path) -> None:
    path = score_file(score_rows(2))
    with refused("report.txt: a page is written as HTML. End the name in .html."):
        write_report(path, Path("report.txt"))
    Path("folder.html").mkdir()
    with refused("folder.html: is a folder, expected the name of a file to write."):
        write_report(path, Path("folder.html"))
    path.rename("scores.html")
    with refused("scores.html: is the input. Choose another name for the page."):
        write_report(Path("scores.html"), Path("scores.html"))
    Path("empty.jsonl").write_text("")
    with refused("empty.jsonl: is empty, expected one JSON object a line."):
        write_report(Path("empty.jsonl"), PAGE)
    with refused("missing.jsonl: there is no such file."):
        write_report(Path("missing.jsonl"), PAGE)
    Path("log.jsonl").write_text('{"id": "a", "text": "Hi."}')
    with refused(
        "log.jsonl: has no scores. Give what `dialeval score` wrote, or rows with an id and a number, or pass and fail."
    ):
        write_report(Path("log.jsonl"), PAGE)
    assert not PAGE.exists()
