"""`dialeval leaderboard` from result files to files for others; `push` is in tests/leaderboard/test_hub.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.leaderboard_files import change_json, documents, noisy_scores, scorer_config, write_run, write_runs, write_scores
from tests.refusals import refusal


def test_a_leaderboard_is_built_exported_and_made_a_space(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs")
    board = tmp_path / "board"
    built = run(
        "leaderboard", "build", tmp_path / "runs", "--output", board, "--title", "Ours & <theirs>", "--rank-rounds", "20"
    )
    assert built.stdout.endswith(f"{board / 'index.html'}\n3 evaluators, 2 columns, 5 cells\n")
    looked_at = f"next: python -m webbrowser {board / 'index.html'}  (look at it)\n"
    assert built.stderr == looked_at
    assert "<h1>Ours &amp; &lt;theirs&gt;</h1>" in (board / "index.html").read_text(encoding="utf-8")
    exported = run("leaderboard", "export", board, "--output", tmp_path / "out", "--format", "every-eval-ever")
    assert len(exported.stdout.splitlines()) == len(list((tmp_path / "out").glob("data/dialeval/*/*/*.json"))) == 3
    by_file = run("leaderboard", "export", board / "leaderboard.json", "--output", tmp_path / "out", "--format", "model-index")
    assert len(by_file.stdout.splitlines()) == len(list((tmp_path / "out").glob("*/README.md"))) == 3
    run("leaderboard", "space", board / "leaderboard.json", "--output", tmp_path / "space")
    assert (tmp_path / "space" / "index.html").read_bytes() == (board / "index.html").read_bytes()


def test_the_page_of_something_else_stays(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs")
    page = tmp_path / "index.html"
    page.write_text("mine")
    words = ("leaderboard", "build", tmp_path / "runs", "--rank-rounds", "0", "--output", tmp_path)
    assert refusal(run, *words) == f"{page}: is not of a leaderboard. Choose another folder."
    assert page.read_text() == "mine"


@pytest.mark.parametrize("words", [("", "--output", "board"), (".", "--output="), ("runs", "--output", "", "--title", "")])
def test_an_empty_name_is_not_the_working_folder(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any command that takes a path: an unset variable of the shell read or wrote the working folder."""
    write_runs(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    said = "the name of a file is empty. Name a file or a folder (is a variable of the shell not set?)."
    assert refusal(run, "leaderboard", "build", *words) == said
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert run("leaderboard", "build", "runs", "--rank-rounds", "0", "--output", ".", "--title", "").exit_code == 0


def test_without_samples_it_is_said_why_there_are_no_plots(tmp_path: Path) -> None:
    rows = documents(20)
    write_scores(tmp_path / "runs", "one", rows, noisy_scores(rows, 0.1), samples=False)
    built = run("leaderboard", "build", tmp_path / "runs", "--output", tmp_path / "board")
    said = "no samples were found, so there are no plots and examples: run lm-eval with --log_samples"
    assert built.stderr.splitlines()[0] == said


def test_samples_of_a_task_that_has_no_plots_are_not_called_missing(tmp_path: Path) -> None:
    task, rows = "dbdc_yi", documents(20)
    path = write_run(tmp_path, scorer_config("one"), {task: (rows, [0.5] * 20)})
    change_json(path, "results", task, value={"f1_b,none": 1.0, "n_scored,none": 20})
    samples = path.with_name(path.name.replace("results", f"samples_{task}")).with_suffix(".jsonl")
    lines = [{"doc": row, "arguments": {}, "f1_b": [[0.0, 0.0, 1.0], [0, 0, 30], row["cluster"]]} for row in rows]
    samples.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    built = run("leaderboard", "build", tmp_path, "--output", tmp_path / "board")
    assert built.stderr == f"next: python -m webbrowser {tmp_path / 'board' / 'index.html'}  (look at it)\n"


def test_a_row_links_to_the_passport_of_its_signature(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs")
    words = ["leaderboard", "build", tmp_path / "runs", "--rank-rounds", "0", "--output", tmp_path / "board", "--passport"]
    passport = tmp_path / "pages" / "my sharp.json"
    passport.parent.mkdir()
    passport.write_text(json.dumps({"evaluators": [{"signature": None}, {"signature": "method:sharp"}]}), encoding="utf-8")
    advice = "Give what `dialeval certify --output NAME.html --output NAME.json` wrote."
    assert refusal(run, *words, passport) == f"{passport.with_suffix('.html')}: there is no such page. {advice}"
    passport.with_suffix(".html").write_text("<!DOCTYPE html>", encoding="utf-8")
    assert run(*words, passport).exit_code == 0
    html = (tmp_path / "board" / "index.html").read_text(encoding="utf-8")
    link = 'href="../pages/my%20sharp.html">'
    assert [html.count(f"{link}{text}") for text in ("passport</a>", "Passport: may it take the place of a person?</a>")] == [
        1,
        1,
    ]
    assert html.count(link) == 2
    row = html[html.index('<tr role="row" data-i="0"') :].partition("</tr>")[0]
    assert "sharp" in row
    assert link in row
    board = json.loads((tmp_path / "board" / "leaderboard.json").read_text(encoding="utf-8"))
    linked = {name: identity["passport"] for name, identity in board["identities"].items()}
    assert linked.pop("sharp") == "../pages/my%20sharp.html"
    assert {*linked.values()} == {""}
    passport.write_text(json.dumps({"evaluators": [{"signature": "method:another"}]}), encoding="utf-8")
    why = f"{passport}: no evaluator of the leaderboard has its signature. Certify what the leaderboard shows."
    assert refusal(run, *words, passport) == why
    passport.write_text("{}", encoding="utf-8")
    assert refusal(run, *words, passport).startswith(f"{passport}: ")
