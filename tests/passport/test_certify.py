"""`certify` from files, frames and the command line: what is read, refused, written, and when a requirement ends with 1."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dialeval_plugin
from dialeval_plugin.pages.charts import forest_row, forest_scale
from dialeval_plugin.passport.certify import MOST_DISAGREEMENTS, Passport, certify, check_ending, render, write_passport
from dialeval_plugin.passport.findings import QUESTIONS
from tests.cli.running import run, run_installed
from tests.leaderboard_files import HOSTILE
from tests.passport.conftest import SIGNATURE, MadeUp
from tests.refusals import refusal


def test_files_and_frames_give_the_passport_of_the_arrays(files: Path, made_up: MadeUp) -> None:
    assert dialeval_plugin.certify is certify
    expected = certify([made_up.table("good", 0.3)], made_up.labels)
    of_files = certify([files / "good.jsonl"], files / "labels.jsonl")
    frames = pd.read_json(files / "good.jsonl", lines=True), pd.read_json(files / "labels.jsonl", lines=True)
    of_frames = certify({"good": frames[0]}, frames[1])
    for found in (of_files, of_frames):
        assert [one.value for one in found.evaluators[0].figures.values()] == pytest.approx(
            [one.value for one in expected.evaluators[0].figures.values()], abs=1e-9
        )
        assert [one.verdict for one in found.evaluators[0].findings] == [one.verdict for one in expected.evaluators[0].findings]
    assert of_files.evaluators[0].signature == SIGNATURE
    assert (of_files.data.n_rows, of_files.data.n_labels, of_files.data.n_conversations) == (240, 720, 80)
    assert str(of_files.data) == "240 rows of 80 conversations, 3 labels each: rating, labels.jsonl"


def test_labels_of_a_sample_of_the_scores(files: Path, made_up: MadeUp) -> None:
    some = replace(
        made_up.labels,
        ids=made_up.labels.ids[:150],
        labels=made_up.labels.labels[:150],
        clusters=(made_up.labels.clusters or ())[:150],
        texts=(made_up.labels.texts or ())[:150],
    )
    found = certify([files / "good.jsonl"], some)
    assert found.evaluators[0].figures["spearman"].n_total == 150
    part = replace(
        made_up.table("good", 0.3), ids=[f"other {row}" if row < 10 else id for row, id in enumerate(some.ids + [""] * 90)]
    )
    why = (
        "good.jsonl: 10 ids are labelled but not scored: 'c0:0', 'c0:1', 'c0:2', .... Score the labelled responses, "
        "unscored ones as null, or compare what is on both sides with --partial."
    )
    assert refusal(certify, [part], some) == why
    assert certify([part], some, is_partial=True).evaluators[0].figures["spearman"].n_total == 140


def test_unlabelled_rows_of_a_table_do_not_count(made_up: MadeUp) -> None:
    """Forty conversations are labelled in one table of eighty."""
    labels = np.where(np.arange(240)[:, None] < 120, made_up.labels.labels, np.nan)
    some = replace(made_up.labels, labels=labels, systems=[f"s{row // 60}" for row in range(240)])
    data = certify([made_up.table("good", 0.3)], some).data
    assert (data.n_rows, data.n_labels, data.n_conversations, data.n_systems) == (120, 360, 40, 2)


def test_the_band_of_the_plot_is_the_interval_of_people(made_up: MadeUp) -> None:
    passport = certify([made_up.table("good", 0.3)], made_up.labels)
    figures = passport.evaluators[0].figures
    person = figures["person"]
    ends = [end for end in (person.ci_low, person.ci_high) if end is not None]
    assert len(ends) == 2
    row = forest_row(figures["second_person"], ends, forest_scale([figures["second_person"]], ends))
    assert row in render(passport, "Passport")


def test_files_of_one_name_are_runs_and_files_that_only_share_one_are_refused(files: Path) -> None:
    (files / "elsewhere").mkdir()
    (files / "elsewhere" / "good.jsonl").write_bytes((files / "again.jsonl").read_bytes())
    paths = [files / "good.jsonl", files / "elsewhere" / "good.jsonl"]
    why = f"{paths[1]}: there is another evaluator 'good'. Name it as NAME=FILE; files of one NAME are runs of one evaluator."
    assert refusal(certify, paths, files / "labels.jsonl") == why
    named = certify([f"judge={path}" for path in paths], files / "labels.jsonl")
    listed = certify({"judge": paths}, files / "labels.jsonl")
    for found in (named, listed):
        assert [one.evaluator for one in found.evaluators] == ["judge"]
        assert found.evaluators[0].figures["repeat_icc"].value > 0.99
    assert [one.evaluator for one in certify([paths[0], f"second={paths[1]}"], files / "labels.jsonl").evaluators] == [
        "good",
        "second",
    ]
    assert refusal(certify, [], files / "labels.jsonl") == "certify: there are no results. Name a file of scores."


def test_one_file_has_the_judge_and_the_people(tmp_path: Path) -> None:
    rows = [f"c{row // 2}:{row},{'fail' if row % 5 else 'pass'},{'fail' if row % 4 else 'pass'},fail" for row in range(60)]
    (tmp_path / "all.csv").write_text("\n".join(["id,anna,ben,judge", *rows]), encoding="utf-8")
    path = tmp_path / "all.csv"
    found = certify([path], path, column="judge", raters=("anna", "ben"))
    assert (found.data.raters, found.data.n_labels) == (("anna", "ben"), 120)
    assert found.evaluators[0].figures["accuracy"].value == pytest.approx((48 / 60 + 45 / 60) / 2, abs=1e-9)
    unnamed = certify([path], path, raters=("anna", "ben"))
    assert [one.evaluator for one in unnamed.evaluators] == ["judge"]


def test_disagreements_are_the_rows_furthest_apart_in_order(made_up: MadeUp) -> None:
    scores = made_up.table("good", 0.3)
    moved = scores.scores.copy()
    best = int(made_up.labels.labels.mean(axis=1).argmax())
    moved[best] = -100.0
    shown = certify([replace(scores, scores=moved)], made_up.labels).evaluators[0].disagreements
    assert len(shown) == MOST_DISAGREEMENTS
    assert [one.strength for one in shown] == sorted((one.strength for one in shown), reverse=True)
    first = shown[0]
    assert (first.id, first.said, first.people) == (made_up.labels.ids[best], "-100", ("5", "5", "5"))
    assert (first.context, first.response) == (made_up.labels.texts or ())[best]
    assert 0.9 < first.strength <= 1


def test_json_is_what_the_document_says(files: Path) -> None:
    passport = certify(
        {"good": [files / "good.jsonl", files / "again.jsonl"]}, files / "labels.jsonl", require=["spearman>=0.3"]
    )
    write_passport(passport, files / "passport.json")
    read = json.loads((files / "passport.json").read_text())
    assert list(read) == ["schema_version", "data", "bootstrap", "evaluators", "requirements", "has_passed"]
    assert read["schema_version"] == 1
    assert read["bootstrap"] == {"rounds": 1000, "confidence": 0.95, "interval": "expanded", "seed": 0}
    (one,) = read["evaluators"]
    assert list(one) == ["evaluator", "verdict", "sentence", "sources", "signature", "findings", "disagreements"]
    assert (one["verdict"], one["sources"], one["signature"]) == ("yes", ["good.jsonl", "again.jsonl"], SIGNATURE)
    assert [finding["key"] for finding in one["findings"]] == list(QUESTIONS)
    assert list(one["findings"][0]) == ["key", "question", "verdict", "sentence", "figures"]
    figure = one["findings"][0]["figures"][0]
    assert list(figure) == [
        *("name", "value", "ci_low", "ci_high", "n_total", "n_scored", "n_unscored", "n_unrated", "n_clusters"),
        *("n_degenerate", "reason", "is_rough"),
    ]
    assert list(one["disagreements"][0]) == ["id", "conversation", "strength", "said", "people", "context", "response"]
    assert read["requirements"][0]["requirement"] == "spearman>=0.3"
    assert read["has_passed"] is True


def test_markdown_latex_and_the_frame_say_the_same(files: Path, made_up: MadeUp) -> None:
    passport = certify([files / "good.jsonl", made_up.table("poor", 4.0)], files / "labels.jsonl", require=["spearman>=0.5"])
    for ending in (".md", ".tex", ".html"):
        write_passport(passport, files / f"passport{ending}", title=f"Judges & {HOSTILE}")
    markdown, latex = ((files / f"passport{ending}").read_text() for ending in (".md", ".tex"))
    assert markdown.startswith("# Judges & ")
    assert f"| good | yes | {passport.evaluators[0].headline.sentence} |" in markdown
    assert "<img" not in markdown
    assert "- FAILED: poor: spearman 0." in markdown
    assert "- passed: good: spearman 0." in markdown
    assert latex.startswith("\\begin{tabular}{llll}\n\\toprule\nevaluator & question & verdict & why \\\\")
    frame = passport.to_pandas()
    assert list(frame) == ["evaluator", "question", "verdict", "figure", "value", "ci_low", "ci_high", "n_scored", "sentence"]
    of_good = frame[(frame.evaluator == "good") & (frame.figure == "spearman")]
    assert of_good.value.tolist() == [passport.evaluators[0].figures["spearman"].value]
    assert not passport.has_passed


def test_the_command_writes_every_format_and_fails_where_a_limit_is_not_kept(files: Path) -> None:
    outputs = [files / f"passport{ending}" for ending in (".html", ".json", ".md", ".tex")]
    words = ["certify", files / "good.jsonl", "--labels", files / "labels.jsonl"]
    done = run(*words, *(word for path in outputs for word in ("--output", path)), "--require", "spearman>=0.5")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[:4] == list(map(str, outputs))
    sentence = certify([files / "good.jsonl"], files / "labels.jsonl").evaluators[0].headline.sentence
    assert done.stdout.splitlines()[4] == f"good: yes. {sentence}"
    assert all(path.stat().st_size > 1000 for path in outputs)
    failed = run(*words, "--output", outputs[1], "--require", "spearman>=0.99", "--require", "repeat_icc>=0.9")
    assert failed.exit_code == 1
    first, second = failed.stderr.splitlines()
    assert first.startswith("--require 'spearman>=0.99': good: spearman 0.")
    assert first.endswith(", whose lower end counts, is not >= 0.99.")
    assert second == (
        "--require 'repeat_icc>=0.9': good: repeat_icc could not be computed. No repeated runs are given: give NAME=FILE "
        "several times with one NAME."
    )
    assert json.loads(outputs[1].read_text())["has_passed"] is False


def test_an_output_that_cannot_be_one_is_refused_before_the_work(files: Path) -> None:
    why = "out.docx: a passport is written as .html, .json, .md, .tex. End the name in one of them."
    assert refusal(check_ending, Path("out.docx")) == why
    (files / "labels.json").write_bytes((files / "labels.jsonl").read_bytes())
    words = ["certify", "good.jsonl", "--labels", "labels.json", "--output"]
    is_input = "labels.json: is the input. Choose another name for --output."
    for name, said in (("out.docx", why), ("labels.json", is_input)):
        done = run_installed(files, *words, name)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"dialeval: {said}\n")


def test_a_passport_of_several_names_them_in_its_title(files: Path) -> None:
    one: Passport = certify([files / "good.jsonl"], files / "labels.jsonl")
    both = certify([files / "good.jsonl", files / "poor.jsonl"], files / "labels.jsonl")
    assert (one.title, both.title) == ("Passport of good", "Passports of 2 evaluators")
