"""`dialeval meta-eval` and `dialeval rescore` from outside. FAULTS R08, R09, R10, R20, R26, R31, R58, R65; issue 6."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.cli.main import main
from dialeval_plugin.leaderboard.build import build, write
from tests.cli.running import run, run_installed, write_rows
from tests.leaderboard_files import LM_EVAL_FILES, documents, noisy_scores, scorer_config, write_run

SCORER_FILES = LM_EVAL_FILES / "scorer"


Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]

RATINGS: Mapping[str, list[float]] = {"a": [1, 2], "b": [2, 2], "c": [3, 5], "d": [4, 4], "e": [5, 4], "f": [1, 1], "g": [2, 4]}
GOOD = {"a": 0.1, "b": 0.3, "c": 0.7, "d": 0.6, "e": 0.9, "f": 0.2, "g": 0.5}
BAD = {"a": 0.9, "b": 0.8, "c": 0.1, "d": 0.5, "e": 0.2, "f": 0.4, "g": 0.6}


@pytest.fixture
def dialeval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command's own `main` in this process, in an empty folder: every start of Python would take seconds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DIALEVAL_DATA_DIR", raising=False)

    def run(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["dialeval", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Done([], int(ended.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture
def process(tmp_path: Path) -> Run:
    """The installed command, for what it logs."""
    return partial(run_installed, tmp_path)


def write_scores(path: Path, scores: Mapping[str, float | None]) -> Path:
    return write_rows(path, [{"id": id, "score": score} for id, score in scores.items()])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Ratings of seven responses in four dialogues, and two evaluators of them."""
    rows = [
        {"id": id, "ratings": {"overall": values}, "dialogue": "wxyz"[place // 2], "system": "AB"[place % 2]}
        for place, (id, values) in enumerate(RATINGS.items())
    ]
    write_rows(tmp_path / "ratings.jsonl", rows)
    write_scores(tmp_path / "good.jsonl", GOOD)
    write_scores(tmp_path / "bad.jsonl", BAD)
    return tmp_path


def rows_of(done: Done) -> list[dict[str, Any]]:
    assert done.stderr == ""
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


@pytest.mark.long
def test_evaluators_are_ranked_within_each_coefficient(process: Run, files: Path) -> None:
    done = process(
        "meta-eval", "bad.jsonl", "good.jsonl", "--ratings", "ratings.jsonl", "--coefficient", "spearman", "--rounds", "0"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == TEXT


def test_the_same_table_in_markdown_and_latex(dialeval: Run, files: Path) -> None:
    words = ("meta-eval", "good.jsonl", "--ratings", "ratings.jsonl", "--coefficient", "kendall_b", "--rounds", "0")
    assert dialeval(*words, "--format", "markdown").stdout == MARKDOWN
    assert dialeval(*words, "--format", "latex").stdout == LATEX


def test_csv_and_json_hold_every_value_unrounded(dialeval: Run, files: Path) -> None:
    """Each response three times, each time in another dialogue: the values stay what they are."""
    ratings = [{"id": f"{id}{n}", "rating": of, "dialogue": f"{id}{n}"} for id, of in RATINGS.items() for n in range(3)]
    write_rows(files / "ratings.jsonl", ratings)
    write_scores(files / "good.jsonl", {f"{id}{n}": score for id, score in GOOD.items() for n in range(3)})
    words = ("meta-eval", "good.jsonl", "--ratings", "ratings.jsonl", "--coefficient", "pearson", "--rounds", "200")
    done = dialeval(*words, "--format", "json")
    whole = json.loads(done.stdout)
    (row,) = whole["rows"]
    assert {name: whole[name] for name in ("schema_version", "rounds", "seed", "confidence", "interval")} == {
        "schema_version": 1,
        "rounds": 200,
        "seed": 0,
        "confidence": 0.95,
        "interval": "expanded",
    }
    assert row["value"] == pytest.approx(0.9586840691847709, abs=1e-12)
    assert row["ci_low"] < row["value"] < row["ci_high"]
    assert (row["n_total"], row["n_scored"], row["n_clusters"], row["coverage"]) == (21, 21, 21, 1.0)
    assert row["is_rough"] is True
    assert whole["notes"] == ["Rough: an interval of fewer than 30 clusters contains the true value less often than stated."]
    (again,) = csv.DictReader(io.StringIO(dialeval(*words, "--format", "csv").stdout))
    assert float(again["value"]) == row["value"]
    assert (again["reason"], again["is_withheld"], again["is_rough"]) == ("", "False", "True")
    (line,) = (line for line in dialeval(*words).stdout.splitlines() if "good" in line)
    assert f"{row['ci_low']:.3f} to {row['ci_high']:.3f}, rough" in line


def test_of_a_handful_of_dialogues_there_is_no_interval(dialeval: Run, files: Path) -> None:
    """TRIAL 6: two dialogues had 0.872 to 1.000."""
    words = ("meta-eval", "good.jsonl", "--ratings", "ratings.jsonl", "--coefficient", "pearson")
    (row,) = rows_of(dialeval(*words, "--format", "json"))
    assert (row["ci_low"], row["ci_high"], row["is_rough"]) == (None, None, False)
    assert row["reason"] == (
        "pearson: an interval needs 10 clusters (dialogues), here are 4, so there is no interval. "
        "Score and rate more dialogues."
    )
    assert row["reason"] in dialeval(*words).stdout


@pytest.mark.parametrize("value", ["nan", "-1", "1.5"])
@pytest.mark.parametrize("command", ["meta-eval", "rescore", "score"])
def test_d32_a_share_that_is_none_is_refused_at_once(dialeval: Run, files: Path, command: str, value: str) -> None:
    more = ("--scorer", "random", "--output", "out.jsonl") if command == "score" else ()
    done = dialeval(command, "good.jsonl", *more, "--max-unscored", value)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"dialeval: --max-unscored is {float(value)}. Give a number from 0 to 1.\n"


def test_the_ceiling_is_of_the_raters_whoever_scored_what(dialeval: Run, files: Path) -> None:
    """TRIAL 17: "half the people" moved with the evaluator's order and with the rows that it scored."""
    write_rows(files / "back.jsonl", [{"id": id, "score": GOOD[id]} for id in reversed(GOOD)])
    write_scores(files / "some.jsonl", {id: GOOD[id] for id in "dcba"})
    words = ("--ratings", "ratings.jsonl", "--rounds", "0", "--format", "json", "--coefficient", "pearson")
    found = []
    for name in ("good", "back", "some"):
        done = dialeval("meta-eval", f"{name}.jsonl", *words, "--partial")
        found += [(row["people_leave_one_out"], row["people_split_half"]) for row in json.loads(done.stdout)["rows"]]
    assert len(set(found)) == 1
    assert None not in found[0]


def test_a_table_goes_to_a_file(dialeval: Run, files: Path) -> None:
    words = ("meta-eval", "good.jsonl", "--ratings", "ratings.jsonl", "--coefficient", "kendall_b", "--rounds", "0")
    done = dialeval(*words, "--format", "markdown", "--output", "out/table.md")
    assert (done.returncode, done.stdout) == (0, "table: out/table.md\n")
    assert (files / "out" / "table.md").read_text() == MARKDOWN
    refused = dialeval(*words, "--format", "word")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Invalid value for '--format'" in refused.stderr
    assert refused.stderr.endswith("'word' is not one of 'text', 'markdown', 'csv', 'latex', 'json'.\n")


@pytest.mark.parametrize(
    ("option", "choices"),
    [
        ("--rows", "'turn', 'dialogue'"),
        ("--interval", "'percentile', 'expanded', 'bca'"),
        ("--average-by", "'none', 'system', 'item'"),
    ],
)
def test_a_word_that_is_no_choice_is_refused_with_the_choices(dialeval: Run, files: Path, option: str, choices: str) -> None:
    done = dialeval("meta-eval", "good.jsonl", "--ratings", "ratings.jsonl", option, "all")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Invalid value for '{option}'" in done.stderr
    assert done.stderr.endswith(f"'all' is not one of {choices}.\n")


def test_the_scores_of_dialeval_score_bring_main_column_and_orientation(dialeval: Run, files: Path) -> None:
    write_rows(files / "d.jsonl", [{"id": id, "distance": -score, "other": 1.0} for id, score in GOOD.items()])
    meta = {"schema_version": 1, "main": "distance", "orientation": "lower", "signature": "method:d"}
    (files / "d.jsonl.meta.json").write_text(json.dumps(meta))
    words = ("--ratings", "ratings.jsonl", "--coefficient", "spearman", "--rounds", "0", "--format", "json")
    (lower,) = rows_of(dialeval("meta-eval", "d.jsonl", *words))
    (higher,) = rows_of(dialeval("meta-eval", "good.jsonl", *words))
    assert (lower["evaluator"], lower["value"]) == ("d", higher["value"])


def test_columns_of_a_csv_are_evaluators(dialeval: Run, files: Path) -> None:
    lines = ["id,good,bad,note,human", *(f"{id},{GOOD[id]},{BAD[id]},hm,{sum(RATINGS[id]) / 2}" for id in RATINGS)]
    (files / "all.csv").write_text("\n".join(lines) + "\n")
    words = ("--rating-column", "human", "--coefficient", "spearman", "--rounds", "0", "--format", "json")
    found = {row["evaluator"]: row["value"] for row in rows_of(dialeval("meta-eval", "all.csv", *words))}
    apart = dialeval("meta-eval", "good.jsonl", "bad.jsonl", "--ratings", "ratings.jsonl", *words[2:])
    assert found == {f"all:{row['evaluator']}": row["value"] for row in rows_of(apart)}
    (one,) = rows_of(dialeval("meta-eval", "all.csv", "--column", "bad", "--lower", "all", *words))
    assert one["value"] == -found["all:bad"]


def test_an_evaluator_has_the_name_that_it_is_given(dialeval: Run, files: Path) -> None:
    """In a paper's table `df` and `df2:general` had to be renamed by hand."""
    write_rows(files / "two.jsonl", [{"id": id, "warm": score, "clear": -score} for id, score in GOOD.items()])
    words = ("--ratings", "ratings.jsonl", "--coefficient", "spearman", "--rounds", "0", "--format", "json")
    rows = rows_of(dialeval("meta-eval", "Ours=good.jsonl", "B=two.jsonl", "bad.jsonl", "--lower", "B:clear", *words))
    assert sorted(row["evaluator"] for row in rows) == ["B:clear", "B:warm", "Ours", "bad"]
    (files / "x=y.jsonl").write_text((files / "good.jsonl").read_text())
    (row,) = rows_of(dialeval("meta-eval", "x=y.jsonl", *words))
    assert row["evaluator"] == "x=y"


def test_unscored_rows_are_counted_withheld_and_fail_the_gate(dialeval: Run, files: Path) -> None:
    write_scores(files / "half.jsonl", {**GOOD, "b": None, "f": None})
    words = ("meta-eval", "half.jsonl", "--ratings", "ratings.jsonl", "--coefficient", "spearman", "--rounds", "0")
    done = dialeval(*words)
    assert done.returncode == 1
    assert done.stderr == ("half, ratings, overall: 2 of 7 rows have no score, more than --max-unscored 0.05 allows\n")
    assert done.stdout == WITHHELD
    allowed = dialeval(*words, "--max-unscored", "0.3", "--min-coverage", "0.7", "--format", "json")
    (row,) = rows_of(allowed)
    assert (allowed.returncode, row["n_scored"], row["unscored"], row["is_withheld"]) == (0, 5, "unknown 2", False)


def test_scores_and_ratings_are_aligned_by_id(dialeval: Run, files: Path) -> None:
    write_scores(files / "shuffled.jsonl", dict(reversed(GOOD.items())))
    words = ("--ratings", "ratings.jsonl", "--format", "json", "--rounds", "50")
    straight, shuffled = (rows_of(dialeval("meta-eval", f"{name}.jsonl", *words)) for name in ("good", "shuffled"))
    assert [row | {"evaluator": ""} for row in straight] == [row | {"evaluator": ""} for row in shuffled]


@pytest.mark.long
def test_what_does_not_fit_together_is_refused_or_said(dialeval: Run, process: Run, files: Path) -> None:
    write_scores(files / "part.jsonl", {"a": 1.0, "b": 2.0, "c": 3.0, "x": 4.0})
    done = dialeval("meta-eval", "part.jsonl", "--ratings", "ratings.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "dialeval: part.jsonl: 1 ids are scored but not rated: 'x'. "
        "Score the rated responses, unscored ones as null, or compare what is on both sides with --partial.\n"
    )
    partial = process(
        "meta-eval", "part.jsonl", "--ratings", "ratings.jsonl", "--partial", "--format", "json", "--coefficient", "pearson"
    )
    assert partial.returncode == 0
    assert partial.stderr == ("WARNING part.jsonl: 1 scored ids are not rated, 4 rated ids are not scored; all are left out\n")
    assert json.loads(partial.stdout)["rows"][0]["n_scored"] == 3


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("s.jsonl", '{"id": "a", "s": 1}\n{"id": "a", "s": 2}',
         ":2: the id 'a' is also that of s.jsonl:1. Give every response one score."),
        ("s.jsonl", '{"id": "a", "s": NaN}', ":1: holds NaN, which is not JSON. Leave out what has no value, or write null."),
        ("s.jsonl", '{"id": "a", "s": 1}\n{"id": ', ":2: not valid JSON (Expecting value). Was the file cut off?"),
        ("s.jsonl", '{"s": 1}\n{"s": 2}', ":1: has no 'id', a text or a whole number. Give the id of the rated response."),
        ("s.jsonl", '{"id": "a", "s": "x"}', ": no column but id, s is there, and none of them holds numbers. Add scores."),
        ("s.csv", "id,s\na,1\nb", ":3: has 1 cells, but the header names 2 columns. Mend the row."),
        ("s.csv", "id,s\na,1\nb,inf", ":3: s: expected a finite number, got 'inf'. Leave the cell empty where there is none."),
        ("s.csv", "id,s,s\na,1,2", ":1: the column 's' occurs twice. Rename one."),
        ("s.csv", "id,s\n", ": has no rows below a header. Give one row a response."),
        ("s.json", '{"a": [1, 2], "b": [1]}', ": has lists of 1 to 2 numbers. Give as many for each quality."),
        ("s.json", '{"overall": [1, 2]}', ": has 2 scores in file order, but there are 7 ratings at turn level. "
         "Give the file that was scored, or the other level with --rows."),
    ],
)  # fmt: skip
def test_bad_scores_end_with_2_and_say_where(dialeval: Run, files: Path, name: str, text: str, message: str) -> None:
    (files / name).write_text(text)
    done = dialeval("meta-eval", name, "--ratings", "ratings.jsonl", *(() if name == "s.json" else ("--partial",)))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.split("\n")[-2] == f"dialeval: {name}{message}"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--column", "t", "s.jsonl: has no column 't'. Known are: id, s."),
        ("--quality", "style", "--quality 'style': is not rated. There are: overall."),
        ("--coefficient", "kendalltau", "there is no coefficient 'kendalltau'. Did you mean 'kendall_b'? Known are: auroc, "
         "kendall_b, kendall_c, pairwise_accuracy, pairwise_difference_pearson, pearson, point_biserial, "
         "soft_pairwise_accuracy, spearman."),
        ("--human", "sum",
         "there is no way 'sum' to make one rating of several. Known are: mean, median, without_furthest, minimum, maximum."),
        ("--rows", "dialogue", "ratings.jsonl: has no ratings at dialogue level, only at turn level. Change --rows."),
        ("--lower", "t", "--lower 't': there is no such evaluator. Known are: s."),
        ("--average-by", "item", "correlate: average_by='item' needs to know the item of each row. Give `items`."),
        ("--min-coverage", "2", "--min-coverage is 2.0. Give a number from 0 to 1."),
        ("--threshold", "0.5", "--threshold: ratings of 'overall' are not all 0 or 1, 1.5 is there. Leave the option out."),
    ],
)  # fmt: skip
def test_bad_options_end_with_2_and_say_why(dialeval: Run, files: Path, option: str, value: str, message: str) -> None:
    (files / "s.jsonl").write_text('{"id": "a", "s": 1}')
    done = dialeval("meta-eval", "s.jsonl", "--ratings", "ratings.jsonl", "--partial", option, value)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.split("\n")[-2] == f"dialeval: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "a", "rating": "four"}',
         ":1: rating['rating'][0]: expected a finite number, got 'four'. Leave out what a rater did not answer."),
        ('{"id": "a"}', ":1: has neither 'rating' nor 'ratings', only id. Give one of them."),
        ('{"rating": 4}', ":1: has no 'id'. Name the response that is rated, as its scores do."),
        ('{"id": "a", "rating": 4, "level": "system"}', ":1: level is 'system'. Give turn or dialogue."),
        ('{"id": "a", "rating": 4}\n{"id": "a", "rating": 4}', ": the id 'a' occurs twice. Give every response its own."),
        ('{"id": "a", "rating": 1}\n{"id": "b", "rating": 2, "level": "dialogue"}',
         ": has ratings of responses and of whole dialogues. Choose with --rows turn or --rows dialogue."),
    ],
)  # fmt: skip
def test_bad_ratings_end_with_2_and_say_where(dialeval: Run, files: Path, text: str, message: str) -> None:
    (files / "r.jsonl").write_text(text)
    done = dialeval("meta-eval", "good.jsonl", "--ratings", "r.jsonl")
    assert (done.returncode, done.stderr) == (2, f"dialeval: r.jsonl{message}\n")


def test_scores_are_not_correlated_with_themselves(dialeval: Run, files: Path) -> None:
    lines = ["id,judge,human", *(f"{id},{GOOD[id]},{RATINGS[id][0]}" for id in RATINGS)]
    (files / "t.csv").write_text("\n".join(lines) + "\n")
    twice = ("meta-eval", "t.csv", "--ratings", "t.csv", "--coefficient", "pearson", "--rounds", "0", "--format", "json")
    for words in (twice, (*twice, "--column", "judge")):
        done = dialeval(*words)
        assert (done.returncode, done.stderr) == (
            2,
            "dialeval: t.csv: 'judge' is read as scores and as ratings. Name the column of the ratings by --rating-column, and "
            "leave --ratings out.\n",
        )
    alone = dialeval("meta-eval", "t.csv", "--rating-column", "human", *twice[4:])
    assert rows_of(dialeval(*twice, "--column", "judge", "--quality", "human"))[0]["value"] == rows_of(alone)[0]["value"]
    # The column of the ratings may be named in their own file too.
    (files / "r.csv").write_text("\n".join(lines) + "\n")
    (row,) = rows_of(dialeval("meta-eval", "good.jsonl", "--ratings", "r.csv", "--rating-column", "human", *twice[4:]))
    assert (row["quality"], row["value"]) == ("human", rows_of(alone)[0]["value"])


def test_every_column_of_numbers_in_a_csv_of_ratings_is_a_quality(dialeval: Run, files: Path) -> None:
    lines = ["id,level,kind,calm", *(f"{id},dialogue,{values[0]},{values[1]}" for id, values in RATINGS.items())]
    (files / "r.csv").write_text("\n".join(lines) + "\n")
    words = ("meta-eval", "good.jsonl", "--ratings", "r.csv", "--coefficient", "pearson", "--rounds", "0", "--format", "json")
    rows = rows_of(dialeval(*words))
    assert [(row["quality"], row["level"]) for row in rows] == [("kind", "dialogue"), ("calm", "dialogue")]
    assert rows_of(dialeval(*words, "--quality", "calm")) == rows[1:]


def test_systems_are_compared_by_their_means(dialeval: Run, files: Path) -> None:
    rows = [{"id": id, "rating": values[0], "system": "pqr"[place % 3]} for place, (id, values) in enumerate(RATINGS.items())]
    write_rows(files / "r.jsonl", rows)
    words = ("--coefficient", "pearson", "--rounds", "0", "--by-system", "--format", "json")
    (row,) = rows_of(dialeval("meta-eval", "good.jsonl", "--ratings", "r.jsonl", *words))
    assert (row["level"], row["n_groups"], row["n_scored"]) == ("system", 3, 7)


def test_what_is_not_there_or_twice_is_named(dialeval: Run, files: Path) -> None:
    (files / "s.json").write_text('{"q": 1.5, "r": 2}')
    rated = ("--ratings", "ratings.jsonl")
    for words, message in (
        (
            ("good.jsonl",),
            "good.jsonl: has scores but no ratings. Name a file by --ratings, or a column by --rating-column.\n",
        ),
        (
            ("good.jsonl", "--ratings", "nowhere"),
            "nowhere: there is no such file, and no set of this name. Known are: conture, ",
        ),
        (("good.jsonl", "good.jsonl", *rated), "good.jsonl: there is another evaluator 'good'. Rename one of the files.\n"),
        (("s.json", "--partial", *rated), "s.json: no id is among the ratings, as 'q' is not. Theirs are called as 'a'.\n"),
    ):
        done = dialeval("meta-eval", *words)
        assert done.returncode == 2
        assert done.stderr.startswith(f"dialeval: {message}")


@pytest.mark.long
def test_rescore_prints_what_the_run_printed(process: Run) -> None:
    done = process("rescore", SCORER_FILES)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == RESCORED


def test_rescore_takes_other_settings(dialeval: Run) -> None:
    done = dialeval("rescore", SCORER_FILES, "--coefficient", "auroc", "--rounds", "0", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert (row["statistic"], row["ci_low"], float(row["value"])) == ("auroc", "", AUROC)


def test_rescore_takes_the_newest_run_or_all(dialeval: Run, tmp_path: Path) -> None:
    for path in SCORER_FILES.rglob("*_*.json*"):
        for hour in ("09", "10"):
            name = path.name.replace("T09", f"T{hour}")
            text = path.read_text()
            if name.startswith("results_"):
                file = json.loads(text)
                text = json.dumps({**file, "date": file["date"] + 3600 * (hour == "10")})
            (tmp_path / name).write_text(text)
    words = ("rescore", ".", "--coefficient", "pearson", "--rounds", "0", "--format", "json")
    assert [row["evaluator"] for row in rows_of(dialeval(*words))] == ["slide (models/slm, slm)"]
    assert [row["evaluator"][-21:] for row in rows_of(dialeval(*words, "--all-runs"))] == [
        ", 2026-11-27 10:30:48",
        ", 2026-11-27 09:30:48",
    ]


@pytest.mark.long
def test_rescore_needs_samples(process: Run, tmp_path: Path) -> None:
    (source,) = SCORER_FILES.rglob("results_*.json")
    (tmp_path / source.name).write_text(source.read_text())
    done = process("rescore", ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "WARNING no samples: dstc10_dialog_mini. Run with --log_samples.\n"
        "dialeval: rescore: no run with samples is there. Run lm-eval with --log_samples, and give the whole folder.\n"
    )


def write_undefined(folder: Path, reason: str) -> None:
    """A run of which one set has no score at all, for this reason."""
    rows, others = documents(40, text="Hello."), documents(12, text="Hello.", seed=2)
    config = {
        **scorer_config("sharp"),
        "scorer_signature": "method:sharp",
        "scorer_unscored": {"dstc10_dialog_fd": {reason: 12}},
    }
    tasks = {"dstc10_dialog_dgu": (rows, noisy_scores(rows, 0.1)), "dstc10_dialog_fd": (others, [None] * 12)}
    path = write_run(folder, config, tasks)
    words = reason.replace("_", " ")
    text = path.read_text(encoding="utf-8")
    # As the host's table has it.
    for name in ("spearman", "pearson", "kendall_b"):
        old = f"undefined ({name}: 0 pairs of score and rating, at least 3 are needed. Score and rate more examples.)"
        assert old in text
        text = text.replace(old, f"undefined ({words})")
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("reason", "words", "code"),
    [
        ("scores_turns_only", "scores turns only", 0),
        ("needs_references", "needs references", 0),
        ("parse_failure", "no scores: parse failure 12", 1),
    ],
)
def test_the_gate_counts_what_the_scorer_is_for(reason: str, words: str, code: int, tmp_path: Path) -> None:
    """TRIAL 19, issue G 11 and 12: a set that a scorer is not for is reported with its reason, and fails no gate."""
    write_undefined(tmp_path, reason)
    done = run("rescore", tmp_path, "--rounds", "0", "--permutations", "0")
    assert done.exit_code == code, done.output
    assert f"sharp, fd: undefined ({words})." in done.stdout
    assert "Score and rate more examples" not in done.stdout
    assert done.output.count(f"undefined ({words})") == 1
    if code:
        last = done.stderr.strip().splitlines()[-1]
        assert last == "sharp, fd, Overall: 12 of 12 rows have no score, more than --max-unscored 0.05 allows"


def test_of_scores_too_it_is_said_once(files: Path, dialeval: Run) -> None:
    write_rows(files / "none.jsonl", [{"id": id, "score": None, "unscored": "needs_references"} for id in RATINGS])
    done = dialeval("meta-eval", "none.jsonl", "--column", "score", "--ratings", "ratings.jsonl", "--rounds", "0")
    assert (done.returncode, done.stderr) == (0, "none, ratings, overall: undefined (needs references)\n")
    assert "needs references" not in done.stdout


def test_the_page_says_why(tmp_path: Path) -> None:
    write_undefined(tmp_path / "runs", "scores_turns_only")
    write(build([tmp_path / "runs"], rank_rounds=0), tmp_path / "board")
    page = (tmp_path / "board" / "index.html").read_text(encoding="utf-8")
    assert '<span class="missing">scores turns only</span>' in page


TEXT = """\
level  statistic  evaluator   value  95 % interval  rank      p  one person  half the people  scored  clusters
-----  ---------  ---------  ------  -------------  ----  -----  ----------  ---------------  ------  --------
turn   spearman   good        0.955                    1              0.743            0.694     7/7         4
turn   spearman   bad        -0.559                    1  0.250       0.743            0.694     7/7         4
"""
MARKDOWN = """\
| level | statistic | evaluator | value | 95 % interval | one person | half the people | scored | clusters |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
| turn | kendall_b | good | 0.878 |  | 0.612 | 0.575 | 7/7 | 4 |
"""
LATEX = r"""\begin{tabular}{lllrrrrrr}
\toprule
level & statistic & evaluator & value & 95 \% interval & one person & half the people & scored & clusters \\
\midrule
turn & kendall\_b & good & 0.878 &  & 0.612 & 0.575 & 7/7 & 4 \\
\bottomrule
\end{tabular}
"""
WITHHELD = """\
level  statistic  evaluator     value  95 % interval     if unscored  one person  half the people  scored  clusters
-----  ---------  ---------  --------  -------------  --------------  ----------  ---------------  ------  --------
turn   spearman   half       withheld                 0.218 to 0.982       0.743            0.694     5/7         4

Withheld: fewer than 80 % of the rated rows have a score (--min-coverage).
"""
RESCORED = """\
level  statistic  evaluator                 value  95 % interval  length bias  scored  clusters
-----  ---------  -----------------------  ------  -------------  -----------  ------  --------
turn   pearson    slide (models/slm, slm)  -0.659                      -0.010     8/8         4
turn   spearman   slide (models/slm, slm)  -0.764                      -0.010     8/8         4
turn   kendall_b  slide (models/slm, slm)  -0.661                      -0.010     8/8         4

pearson: an interval needs 10 clusters (dialogues), here are 4, so there is no interval. Score and rate more dialogues.
spearman: an interval needs 10 clusters (dialogues), here are 4, so there is no interval. Score and rate more dialogues.
kendall_b: an interval needs 10 clusters (dialogues), here are 4, so there is no interval. Score and rate more dialogues.
"""
AUROC = 0.0625


@pytest.mark.long
def test_an_evaluator_that_decides_few_contexts_does_not_win(dialeval: Run, tmp_path: Path) -> None:
    """An evaluator that ties everywhere but in two contexts of twenty was first with 1.000, and the table did not say so."""
    lines = ["id,dialogue,item,ties,fine,rating"]
    for context in range(20):
        fine = [1, 2, 4, 3] if context % 2 else [1, 2, 3, 4]
        ties = [1, 2, 3, 4] if context < 2 else [3] * 4
        lines += [f"{context}-{n},d{context},c{context},{ties[n]},{fine[n]},{n + 1}" for n in range(4)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    words = ("meta-eval", "t.csv", "--rating-column", "rating", "--average-by", "item", "--coefficient", "kendall_b")
    assert dialeval(*words).stdout == TIED
    assert "t:ties & 0.100 & 0.000 to 0.250, rough & 2 & 0.001 & 20, 18 tied & 80/80 & 20" in (
        dialeval(*words, "--format", "latex").stdout
    )
    for row in csv.DictReader(io.StringIO(dialeval(*words, "--format", "csv").stdout)):
        n_tied = {"t:fine": "0", "t:ties": "18"}[row["evaluator"]]
        assert (row["n_groups"], row["n_tied_groups"], row["n_undefined_groups"]) == ("20", n_tied, "0")
    assert dialeval(*words, "--tied-groups", "skip").stdout == SKIPPED


TIED = """\
level  statistic  evaluator  value          95 % interval  rank      p       groups  scored  clusters
-----  ---------  ---------  -----  ---------------------  ----  -----  -----------  ------  --------
turn   kendall_b  t:fine     0.833  0.750 to 0.917, rough     1                  20   80/80        20
turn   kendall_b  t:ties     0.100  0.000 to 0.250, rough     2  0.001  20, 18 tied   80/80        20

Rough: an interval of fewer than 30 clusters contains the true value less often than stated.
Tied: groups in which people differ and the evaluator gives one score to all. Each counts as 0 (0.5 for auroc).
"""

SKIPPED = """\
level  statistic  evaluator  value          95 % interval      groups  scored  clusters
-----  ---------  ---------  -----  ---------------------  ----------  ------  --------
turn   kendall_b  t:ties     1.000                         2, 18 tied   80/80        20
turn   kendall_b  t:fine     0.833  0.750 to 0.917, rough          20   80/80        20

Rough: an interval of fewer than 30 clusters contains the true value less often than stated.
Tied: groups in which people differ and the evaluator gives one score to all. They are left out of the mean, \
evaluators are averaged over different groups, and there are no ranks. Leave out --tied-groups skip to count them as 0.
kendall_b: the same on all resamples, which tells nothing of its spread, so there is no interval. Score and rate more examples.
"""
