"""`dialeval compare`: what it prints, in which formats, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.signature import short_form
from dialeval_plugin.version import __version__
from tests.cli.running import run, write_rows
from tests.refusals import refusal, refused
from tests.results.test_comparison import SIGNATURE, file, rows

LENGTH = ("--scorer", "response_length")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, shift in (("a", 0.0), ("b", 0.05)):
        file(Path(f"{name}.jsonl"), rows(shift=shift), SIGNATURE)
    return tmp_path


TEXT = """\
B is better than A by 0.050 (0.045 to 0.055).

   file      mean   95 % interval   scored  conversations
-  -------  -----  --------------  -------  -------------
A  a.jsonl  0.436  0.328 to 0.535  120/120             40
B  b.jsonl  0.486  0.376 to 0.587  120/120             40

paired by message: 40 of 40 conversations of A and 40 of B are in both

changed most, 2 of 40 conversations that changed:
conversation      A      B  B - A
------------  -----  -----  -----
c3            0.719  0.796  0.077
c0            0.809  0.885  0.075

general#2316ef42 (dialeval 1.0)

gate passed: B - A 0.050 (0.045 to 0.055) is not wholly below 0.000.
"""


def test_what_is_printed(files: Path) -> None:
    done = run("compare", "a.jsonl", "b.jsonl", "--changed", 2, "--fail-if-worse")
    assert (done.exit_code, done.stdout, done.stderr) == (0, TEXT, "")


def test_a_number_that_is_none_is_named_in_a_file_of_scores(files: Path) -> None:
    Path("nan.jsonl").write_text('{"id": "c0:2", "score": 0.5}\n{"id": "c0:4", "score": NaN}\n', encoding="utf-8")
    with refused("nan.jsonl:2: holds NaN, which is not JSON. Leave out what has no value, or write null."):
        run("compare", "a.jsonl", "nan.jsonl")


def test_a_number_that_stands_for_none_is_refused(files: Path) -> None:
    rows = '{"id": "c0:2", "score": 0.5}\n{"id": "c0:4", "score": -1.7976931348623157e308}\n'
    Path("largest.jsonl").write_text(rows, encoding="utf-8")
    for words in (("compare", "a.jsonl", "largest.jsonl"), ("report", "largest.jsonl", "--output", "page.html")):
        with refused(
            "largest.jsonl: score: has 1.79769e+308, which cannot be squared. Leave the cell empty where there is no number."
        ):
            run(*words)


def test_markdown_fits_the_comment_of_a_pull_request(files: Path) -> None:
    done = run(
        "compare", "a.jsonl", "b.jsonl", "--changed", 1, "--format", "markdown", "--output", "comment.md", "--fail-if-worse"
    )
    assert (done.exit_code, done.stdout) == (0, "")
    assert Path("comment.md").read_text(encoding="utf-8") == (
        "**B is better than A by 0.050 (0.045 to 0.055).**\n\n"
        "|  | file | mean | 95 % interval | scored | conversations |\n"
        "| --- | --- | ---: | ---: | ---: | ---: |\n"
        "| A | a.jsonl | 0.436 | 0.328 to 0.535 | 120/120 | 40 |\n"
        "| B | b.jsonl | 0.486 | 0.376 to 0.587 | 120/120 | 40 |\n\n"
        "- paired by message: 40 of 40 conversations of A and 40 of B are in both\n\n"
        "<details><summary>changed most, 1 of 40 conversations that changed</summary>\n\n"
        "| conversation | A | B | B - A |\n"
        "| --- | ---: | ---: | ---: |\n"
        "| c3 | 0.719 | 0.796 | 0.077 |\n\n"
        "</details>\n\n"
        "`general#2316ef42 (dialeval 1.0)`\n\n"
        "**gate passed: B - A 0.050 (0.045 to 0.055) is not wholly below 0.000.**\n"
    )


def test_json_has_every_figure(files: Path) -> None:
    done = run("compare", "b.jsonl", "a.jsonl", "--changed", 1, "--format", "json", "--fail-if-worse", "0.01")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["verdict"] == "B is worse than A by 0.050 (0.045 to 0.055)."
    assert found["gate"] == {"outcome": "failed", "reason": "B - A -0.050 (-0.055 to -0.045) is below -0.010."}
    assert (found["matched_by"], found["n_matched"], len(found["changed"])) == ("message", 40, 1)
    assert found["a"]["mean"]["value"] - found["b"]["mean"]["value"] == pytest.approx(-found["difference"]["value"])


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--fail-if-worse",), 1, "gate failed: B - A -0.050 (-0.055 to -0.045) is below 0.000."),
        (("--fail-if-worse", "0.04"), 1, "gate failed: B - A -0.050 (-0.055 to -0.045) is below -0.040."),
        (("--fail-if-worse=0.05",), 0, "gate passed: B - A -0.050 (-0.055 to -0.045) is not wholly below -0.050."),
        (
            ("--fail-if-worse", "--min-conversations", "50"),
            1,
            "gate undecided: 40 conversations, and 50 are needed. Score more of them.",
        ),
    ],
)
def test_a_gate_decides_the_exit_code(files: Path, options: tuple[str, ...], code: int, said: str) -> None:
    for words in (("b.jsonl", "a.jsonl", *options), (*options, "b.jsonl", "a.jsonl")):
        done = run("compare", *words)
        assert (done.exit_code, done.stdout.splitlines()[-1]) == (code, said)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("a.jsonl", ""),
            "the name of a file is empty. Name a file or a folder (is a variable of the shell not set?).",
        ),
        (
            ("a.jsonl", "b.jsonl", "--min-conversations", "20"),
            "--min-conversations: is of a gate, and there is none. Add --fail-if-worse, or leave it out.",
        ),
        (
            ("a.jsonl", "b.jsonl", "--fail-if-worse", "-0.1"),
            "--fail-if-worse -0.1: a margin is how much worse B may be. Give 0 or more.",
        ),
        *(
            (
                ("a.jsonl", *more, *option),
                f"{option[0]}: compares two files, and one is given. Name a second one, B, or leave it out.",
            )
            for more in (("--by", "model"), ("--plan",))
            for option in (("--pairing", "auto"), ("--ignore", "x"), ("--max-unscored-gap", "0"), ("--changed", "10"))
        ),
        *(
            (("a.jsonl", *more, *option), f"{option[0]}: a.jsonl has scores already. Name a log, or leave it out.")
            for more in (("--by", "model"), ("--plan",), ("b.jsonl",))
            for option in (("--scorer", "general"), ("--option", "model=x"))
        ),
        (
            ("a.jsonl", "c.jsonl", "--fail-if-worse"),
            "a.jsonl, c.jsonl: 0 conversations are in both, too few to pair them, and unpaired the gate sees less. Compare the "
            "same conversations, or accept the means of different ones by --pairing unpaired.",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(files: Path, words: tuple[str, ...], message: str) -> None:
    file(Path("c.jsonl"), rows(name="d"), SIGNATURE)
    with refused(message):
        run("compare", *words)


def test_a_plan_is_printed_for_one_file_or_two(files: Path) -> None:
    alone, both = (
        run("compare", "a.jsonl", "--plan"),
        run("compare", "a.jsonl", "b.jsonl", "--plan", "0.02", "--format", "json"),
    )
    assert alone.stdout.splitlines()[:3] == [
        "conversations  smallest difference      +-",
        "-------------  -------------------  ------",
        "           20                0.295  0.0039",
    ]
    found = json.loads(both.stdout)
    assert [row["conversations"] for row in found["rows"]][:2] == [20, 50]
    assert "a difference of 0.020 needs 10 conversations to be seen four times in five" in found["notes"]


def test_an_expanded_interval_is_wider(files: Path) -> None:
    ends = []
    for kind in ("percentile", "expanded"):
        found = json.loads(run("compare", "a.jsonl", "b.jsonl", "--interval", kind, "--format", "json").stdout)["difference"]
        assert found["bootstrap"]["interval"] == kind
        ends.append((found["ci_low"], found["ci_high"]))
    assert ends[1][0] < ends[0][0] < ends[0][1] < ends[1][1]


@pytest.mark.parametrize("words", [("--plan", "--by", "x"), ("b.jsonl", "--plan", "--fail-if-worse")])
def test_a_plan_is_of_pilots_alone(files: Path, words: tuple[str, ...]) -> None:
    with refused("--plan: is made of one pilot, or two, before a run. Leave out --by and --fail-if-worse."):
        run("compare", "a.jsonl", *words)
    with refused("--plan -1: a difference to plan for is above 0. Leave it out for a table alone."):
        run("compare", "a.jsonl", "--plan", "-1")


def test_a_gate_of_different_conversations_has_to_be_asked_for(files: Path) -> None:
    file(Path("c.jsonl"), rows(name="d"), SIGNATURE)
    done = run("compare", "a.jsonl", "c.jsonl", "--fail-if-worse", "--pairing", "unpaired")
    assert done.exit_code == 0
    assert "unpaired, the means of all: 0 of 40 conversations of A and 40 of B are in both\n" in done.stdout


def logs(answers: str, name: str = "") -> list[dict[str, Any]]:
    return [
        {
            "id": f"{name}{number}",
            "messages": [
                {"role": "user", "content": f"Question {number}?"},
                {"role": "assistant", "content": " ".join([answers] * (1 + number % 3))},
                {"role": "user", "content": "Is that so?"},
                {"role": "assistant", "content": answers},
            ],
        }
        for number in range(12)
    ]


@pytest.mark.parametrize(("name", "matched_by"), [("", "message"), ("other-", "context")])
def test_two_logs_are_scored_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, matched_by: str) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(Path("a.jsonl"), logs("Yes."))
    write_rows(Path("b.jsonl"), logs("Yes, it is.", name))
    done = run("compare", "a.jsonl", "b.jsonl", *LENGTH, "--changed", "0")
    assert done.exit_code == 0
    assert done.stdout == (
        "B is better than A by 3.000 (2.500 to 3.500, rough).\n\n"
        "   file      mean          95 % interval  scored  conversations\n"
        "-  -------  -----  ---------------------  ------  -------------\n"
        "A  a.jsonl  1.500  1.250 to 1.750, rough   24/24             12\n"
        "B  b.jsonl  4.500  3.750 to 5.250, rough   24/24             12\n\n"
        f"paired by {matched_by}: 12 of 12 conversations of A and 12 of B are in both\n\n"
        f"{short_form(f'method:response_length|level:turn|version:{__version__}')}\n"
    )


UNKNOWN = "--column: there are no scores 'word'. Did you mean 'words'? Known are: words, characters."


@pytest.mark.parametrize(
    ("words", "message"),
    [(("b.jsonl", "--column", "word"), UNKNOWN), (("missing.jsonl",), "missing.jsonl: there is no such file.")],
)
def test_what_is_wrong_is_said_before_a_log_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.jsonl", "b.jsonl"):
        write_rows(Path(name), logs("Yes."))
    monkeypatch.setattr("dialeval_plugin.core.scorer.score_block", lambda *_: pytest.fail("a log was scored"))
    with refused(message):
        run("compare", "a.jsonl", *words, *LENGTH)


def test_a_log_that_needs_an_option_of_score_is_to_be_scored_first(tmp_path: Path) -> None:
    """The refusal named an option that `compare` does not have."""
    table = tmp_path / "table.csv"
    table.write_text("ticket,from,wording\nt1,customer,Hi.\nt1,bot,Hello!\n", encoding="utf-8")
    said = refusal(run, "compare", table, table, *LENGTH)
    assert said.endswith("--columns is an option of `dialeval score`: score each log with it, and compare the scores.")


def test_an_unknown_column_is_said_before_pairs_are_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialeval_plugin.core.scorer.score_block", lambda *_: pytest.fail("the pairs were scored"))
    pairs = write_rows(tmp_path / "pairs.jsonl", [{"prompt": "Hi.", "chosen": "Hello there.", "rejected": "No."}])
    with refused(UNKNOWN):
        run("compare", pairs, *LENGTH, "--column", "word")
