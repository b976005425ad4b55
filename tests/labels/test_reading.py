"""Labels as people have them become arrays on a scale; what can be read in two ways is refused with what settles it."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from dialeval_plugin.conversations.files import open_rows
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.labels.reading import labels_from, read_labels
from dialeval_plugin.labels.scores import pair, pair_files, read_scores, scores_from
from dialeval_plugin.labels.table import LabelTable, Scale, ScoreTable
from tests.layouts import fed_rows, write_fed
from tests.refusals import refusal, refused

PASS = Scale("binary", ("fail", "pass"))
NONE = float("nan")
JUDGED = (
    "id,judge,annotator_1,annotator_2,conversation,system\n"
    "a,pass,Pass,fail,c1,x\nb,fail, pass ,,c1,y\nc,pass,FAIL,fail,c2,x\nd,,pass,pass,c2,y\n"
)


def write(folder: Path, text: str, name: str = "l.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def same(found: LabelTable | ScoreTable, *rows: Any) -> None:
    values = found.labels if isinstance(found, LabelTable) else found.scores
    np.testing.assert_array_equal(values, np.array(rows, dtype=float))


def test_a_judge_and_two_people_in_one_table(tmp_path: Path) -> None:
    path = write(tmp_path, JUDGED)
    labels, scores = read_labels(path), read_scores(path)
    same(labels, [1, 0], [1, NONE], [0, 0], [1, 1])
    assert (labels.scale, labels.raters, labels.clusters) == (PASS, ("annotator_1", "annotator_2"), ["c1", "c1", "c2", "c2"])
    assert (labels.ids, labels.systems, labels.texts) == (["a", "b", "c", "d"], ["x", "y", "x", "y"], None)
    same(scores, 1, 0, 1, NONE)
    assert (scores.evaluator, scores.scale, scores.unscored) == ("judge", PASS, {"unknown": 1})
    assert scores.clusters == labels.clusters
    found = pair(scores, labels)
    assert (found.evaluator, found.scale, found.unscored) == ("judge", PASS, {"unknown": 1})


@pytest.mark.parametrize("heading", ["ID", " Id "])
def test_ids_may_have_the_heading_of_a_spreadsheet(tmp_path: Path, heading: str) -> None:
    path = write(tmp_path, JUDGED.replace("id", heading, 1))
    assert read_labels(path).ids == read_scores(path).ids == ["a", "b", "c", "d"]
    assert labels_from(pd.read_csv(path)).ids == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("words", "scale", "places"),
    [
        (("yes", "No", "y"), Scale("binary", ("no", "yes")), (1, 0, 1)),
        (("TRUE", "false", "True"), Scale("binary", ("false", "true")), (1, 0, 1)),
        (("correct", "incorrect", "correct"), Scale("binary", ("incorrect", "correct")), (1, 0, 1)),
        (("acceptable", "unacceptable", ""), Scale("binary", ("unacceptable", "acceptable")), (1, 0, NONE)),
        (("1", "0", "1"), Scale("binary", ("0", "1")), (1, 0, 1)),
        (("1", "5", "3.5"), Scale("interval"), (1, 5, 3.5)),
        (("other", "warm", "cold"), Scale("nominal", ("cold", "other", "warm")), (1, 2, 0)),
    ],
)
def test_words_say_their_scale(words: tuple[str, ...], scale: Scale, places: tuple[float, ...], tmp_path: Path) -> None:
    found = read_labels(
        write(tmp_path, "id,label\n" + "".join(f"{id},{word}\n" for id, word in zip("abc", words, strict=True)))
    )
    assert (found.scale, found.raters, found.quality) == (scale, ("label",), "label")
    same(found, *([place] for place in places))


def test_an_order_makes_words_or_numbers_ordinal(tmp_path: Path) -> None:
    path = write(tmp_path, "id,label\na,OK\nb,bad\nc,good\n")
    found = read_labels(path, order=["bad", "ok", "good", "great"])
    assert found.scale == Scale("ordinal", ("bad", "ok", "good", "great"))
    same(found, [1], [0], [2])
    message = f"{path}:4: label: 'good' is not in --order bad,ok. Add it, or leave the cell empty where there is no label."
    with refused(message):
        read_labels(path, order=["bad", "ok"])
    numbers = read_labels(write(tmp_path, "id,label\na,1.0\nb,3\n"), order=["1", "2", "3"])
    assert numbers.scale == Scale("ordinal", ("1", "2", "3"))
    same(numbers, [0], [2])


@pytest.mark.parametrize("word", ["pas", "psas", "paxss", "poss"])
def test_a_misspelt_label_is_no_category(tmp_path: Path, word: str) -> None:
    labels = ["pass", "fail"] * 6
    path = write(tmp_path, "id,label\n" + "".join(f"{n},{label}\n" for n, label in enumerate([*labels, word])))
    assert refusal(read_labels, path) == (
        f"{path}:14: label: {word!r} occurs once, and may be a misspelt 'pass'. Mend the cell; if it is a category of its own, "
        "certify takes all by --order."
    )
    assert read_labels(path, order=["fail", word, "pass"]).scale.categories == ("fail", word, "pass")
    path.write_text(path.read_text("utf-8") + f"13,{word}\n14,unsure\n", encoding="utf-8")
    assert read_labels(path).scale.kind == "nominal"


def test_several_labels_count_as_pass_where_they_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, "id,label\na,OK\nb,bad\nc,good\n")
    found = read_labels(path, positive="ok,good")
    assert found.scale == Scale("binary", ("bad", "ok or good"))
    same(found, [1], [0], [1])
    assert read_labels(path, positive="good").scale == Scale("binary", ("not good", "good"))
    with refused("--positive ok,fine: there is no label 'fine'. The labels are 'ok', 'bad', 'good'."):
        read_labels(path, positive="ok,fine")


def test_labels_that_all_count_as_pass_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, "id,label\na,pass\nb,fail\n")
    same(read_labels(path, positive="pass"), [1], [0])
    assert not caplog.messages
    same(read_labels(path, positive="pass,fail"), [1], [1])
    said = f"{path}: label: --positive pass,fail names every label there is, so that all rows pass"
    assert caplog.messages == [said]
    # People may pass all rows.
    same(read_labels(write(tmp_path, "id,label\na,pass\nb,pass\n"), positive="pass"), [1], [1])
    assert caplog.messages == [said]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [("0.9,0.2,0.7", (0.9, 0.2, 0.7)), ("pass,fail,pass", (1, 0, 1)), ("ok,bad,ok", (1, 0, 1)), ("1,2,3", (1, 2, 3))],
)
def test_labels_that_count_as_pass_leave_a_judge_its_own_scale(tmp_path: Path, scores: str, expected: tuple[float]) -> None:
    labels = read_labels(write(tmp_path, "id,label\na,ok\nb,bad\nc,good\n"), positive="ok,good")
    path = write(
        tmp_path, "id,judge\n" + "".join(f"{id},{score}\n" for id, score in zip("abc", scores.split(","), strict=True))
    )
    same(read_scores(path, scale=labels.scale, positive="ok,good"), *expected)


def test_what_can_be_read_in_two_ways_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "id,label\na,no error\nb,error\n")
    assert refusal(read_labels, path).endswith("Say which one is good by --positive 'no error'.")
    path = write(tmp_path, "id,label\na,gut\nb,schlecht\n")
    assert refusal(read_labels, path) == (
        f"{path}: label: the labels are 'gut', 'schlecht'. Say which one is good by --positive gut."
    )
    assert read_labels(path, positive="Gut").scale == Scale("binary", ("schlecht", "gut"))
    assert refusal(read_labels, path, positive="fein") == (
        "--positive fein: there is no label 'fein'. The labels are 'gut', 'schlecht'."
    )
    path = write(tmp_path, "id,label\na,pass\nb,N/A\nc,fail\n")
    assert refusal(read_labels, path) == (
        f"{path}:3: label: 'n/a' may be a label, or stand for none. Leave the cell empty where there is none; if it is a "
        "label, write another word."
    )
    path = write(tmp_path, "id,label\na,pass\nb,#REF!\nc,fail\n")
    assert refusal(read_labels, path).startswith(f"{path}:3: label: '#ref!' may be a label, or stand for none.")
    path = write(tmp_path, "id,label\na,pass\nb,4\nc,fail\n")
    way_out = "Name those that count as pass by --positive; for categories or ranks, certify takes all by --order."
    assert refusal(read_labels, path) == (
        f"{path}: label: holds numbers and words: 'pass', 'fail', '4'. Mend the cells. Or: {way_out}"
    )
    path = write(tmp_path, "id,tone,fact\na,pass,no\nb,fail,yes\nc,fail,yes\n")
    way_out = "Name one with --quality, or those of people with --raters NAME,NAME."
    assert refusal(read_labels, path) == f"{path}: several columns may hold the labels: tone, fact. {way_out}"
    assert refusal(read_scores, path) == f"{path}: several columns may hold the scores: tone, fact. Name one with --column."
    same(read_labels(path, quality="fact"), [0], [1], [1])
    same(read_labels(path, raters=["tone"]), [1], [0], [0])
    path = write(tmp_path, "id,label_1,label_2\na,pass,pass\nb,fail,fail\n")
    assert refusal(read_labels, path) == (
        f"{path}: label_1, label_2 may be raters of one quality, or qualities. Say --raters label_1,label_2, "
        "or name the quality with --quality."
    )
    assert read_labels(path, raters=["label_1", "label_2"]).raters == ("label_1", "label_2")


def test_a_row_a_person(tmp_path: Path) -> None:
    path = write(tmp_path, "id;rater;verdict\na;x;pass\na;y;fail\nb;y;pass\n")
    found = read_labels(path)
    same(found, [1, 0], [NONE, 1])
    assert found.raters == ("x", "y")
    path = write(tmp_path, "id,rater,verdict\na,x,pass\na,x,fail\n")
    assert refusal(read_labels, path) == (
        f"{path}:3: the id 'a' occurs twice by 'x'. Give every response its own, and each person's labels a name in a column "
        "'rater'."
    )


def test_lists_and_objects_of_json(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a:1", "labels": ["pass", "fail"], "context": ["Hi.", "Hello."], "response": "Bye."},
        {
            "id": "a:2",
            "labels": [None, "pass"],
            "context": [{"role": "user", "content": "Hi:\n- x"}],
            "response": "Yes:\nno.",
        },
        {"id": "b:1", "labels": [], "context": "Hm.", "response": "No."},
    ]
    found = read_labels(write(tmp_path, json.dumps(rows), "l.json"))
    same(found, [1, 0], [NONE, 1], [NONE, NONE])
    assert (found.ids, found.clusters) == (["a:1", "a:2", "b:1"], ["a", "a", "b"])
    assert found.texts == [("Hi.\nHello.", "Bye."), ("Hi: - x", "Yes:\nno."), ("Hm.", "No.")]


def test_qualities_of_json_and_a_workbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": "a", "ratings": {"warm": ["yes"], "Overall": [1, 5]}}, {"id": "b", "ratings": {"Overall": [2]}}]
    path = write(tmp_path, "\n".join(map(json.dumps, rows)), "l.jsonl")
    same(read_labels(path), [1, 5], [2, NONE])
    same(read_labels(path, quality="warm"), [1], [NONE])
    assert refusal(read_labels, path, quality="cold") == (
        f"--quality 'cold': {path} has no such column. Known are: Overall, warm."
    )
    book = tmp_path / "l.xlsx"
    book.write_bytes(b"PK\x03\x04")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with refused(
        f"{book}: a workbook is read by the package openpyxl, which is not installed. "
        "Install it by `pip install openpyxl`, or save the sheet as CSV (UTF-8).",
        MissingPrerequisite,
    ):
        read_labels(book)


def test_a_cell_of_a_workbook_that_says_na_is_not_empty(tmp_path: Path) -> None:
    """pandas reads NA, None, null and the like as empty cells: labels, and messages, that a CSV file holds were gone."""
    book = tmp_path / "l.xlsx"
    rows = {"id": range(6), "label": ["pass", "fail", None, "pass", "N/A", "fail"]}
    pd.DataFrame(rows).to_excel(book, sheet_name="Labels", index=False)
    with refused(
        f"{book}: Labels, row 6: label: 'n/a' may be a label, or stand for none. Leave the cell empty where there is none; "
        "if it is a label, write another word."
    ):
        read_labels(book)
    chat = {"role": ["user", "assistant", "user"], "content": ["Which?", "None", "NA"]}
    pd.DataFrame(chat).to_excel(book, index=False)
    assert [line.value["content"] for line in open_rows(str(book)).lines] == chat["content"]


def test_decimals_of_parquet_are_numbers(tmp_path: Path) -> None:
    """Expected a string or an integer, got Decimal('1'): as data bases write ids, and numbers."""
    whole, half = pyarrow.decimal128(38, 0), pyarrow.decimal128(10, 2)
    columns = {"id": ([1, 2, 3], whole), "label": ([0, 1, None], whole), "score": ([None, 0.25, 0.5], half)}
    cells = {
        name: pyarrow.array([None if value is None else Decimal(str(value)) for value in values], kind)
        for name, (values, kind) in columns.items()
    }
    pyarrow.parquet.write_table(pyarrow.table(cells), path := tmp_path / "l.parquet")
    same(read_labels(path, quality="label"), [0], [1], [NONE])
    assert read_scores(path, column="score").ids == ["1", "2", "3"]
    assert read_scores(path, column="score").scores.tolist()[1:] == [0.25, 0.5]


def test_labels_and_scores_of_python() -> None:
    frame = pd.DataFrame({"id": ["a", "b"], "annotator_1": ["pass", None], "annotator_2": [True, False], "score": [0.5, NONE]})
    assert refusal(labels_from, frame) == (
        "labels: rating: the labels are 'pass', 'true', 'false', of several pairs of words. Name those that count as pass by "
        "--positive; for categories or ranks, certify takes all by --order."
    )
    same(labels_from(frame, raters=("annotator_1",)), [1], [NONE])
    same(labels_from({"a": "yes", "b": ["no", "yes"]}), [1, NONE], [0, 1])
    same(scores_from(frame), 0.5, NONE)
    scores = scores_from({"a": "pass", "b": "fail"}, evaluator="judge")
    same(scores, 1, 0)
    assert (scores.evaluator, scores_from(scores) is scores) == ("judge", True)


def test_what_does_not_fit_together_is_refused(tmp_path: Path) -> None:
    labels = labels_from({"a": "pass", "b": "fail", "c": "pass"})
    assert refusal(pair, scores_from({"a": 0.5, "x": 0.1, "y": 1}), labels) == (
        "scores: 2 ids are scored but not labelled: 'x', 'y'. Score the labelled responses, unscored ones as null, or compare "
        "what is on both sides with --partial."
    )
    some = pair(scores_from({"a": 0.5, "x": 0.1}), labels, is_partial=True)
    assert (some.labels.ids, some.scores.tolist(), some.scale) == (["a"], [0.5], None)
    assert refusal(pair, scores_from({"x": 0.5}), labels, is_partial=True) == (
        "scores: no id is among the labels, as 'x' is not. Theirs are called as 'a'."
    )
    subset = pair(scores_from({"a": "yes", "b": "no", "c": "no", "d": "no"}), labels, is_subset=True)
    assert (subset.scores.tolist(), subset.scale, subset.labels.clusters) == ([1, 0, 0], PASS, ["a", "b", "c"])
    words = scores_from({"a": "warm", "b": "cold", "c": "hot"}, evaluator="judge")
    assert refusal(pair, words, labels) == (
        "scores: judge says cold, hot, warm, and people fail, pass. Use the same words, or choose another column with --column."
    )


def test_numbers_that_are_names_of_categories_are_their_places() -> None:
    labels = labels_from({"a": 1, "b": 5, "c": 3}, order=["1", "2", "3", "4", "5"])
    found = pair(scores_from({"a": 2, "b": 5, "c": None}), labels)
    assert found.scale == labels.scale
    np.testing.assert_array_equal(found.scores, [1, 4, NONE])
    assert pair(scores_from({"a": 2.5, "b": 5, "c": 1}), labels).scale is None


def test_a_set_is_read_by_its_name() -> None:
    found = read_labels("mini")
    assert found.scale.kind in {"interval", "binary"}
    assert found.texts is not None
    assert all(response for _, response in found.texts)


def test_the_file_of_dialeval_score_says_its_column_and_direction(tmp_path: Path) -> None:
    path = write(
        tmp_path, '{"id": "m:1", "loss": 2.0, "x": 1}\n{"id": "m:2", "loss": null, "unscored": "refusal"}\n', "s.jsonl"
    )
    meta = {"schema_version": 1, "main": "loss", "orientation": "lower", "signature": "s", "level": "turn"}
    path.with_name("s.jsonl.meta.json").write_text(json.dumps(meta))
    found = read_scores(path)
    same(found, -2, NONE)
    assert (found.evaluator, found.signature, found.clusters, found.unscored) == ("s", "s", ["m", "m"], {"refusal": 1})
    assert read_scores(f"Mine={path}").evaluator == "Mine"
    assert refusal(read_scores, path, column="y") == f"{path}: has no column 'y'. Known are: id, loss, x, unscored."


def test_an_evaluator_is_called_after_its_file_or_its_column(tmp_path: Path) -> None:
    alone = write(tmp_path, "id,verdict\na,pass\nb,fail\n", "mine.csv")
    assert read_scores(alone).evaluator == "mine"
    assert read_scores(alone, column="verdict").evaluator == "verdict"
    labels = read_labels(write(tmp_path, "id,verdict\na,pass\nb,pass\n", "people.csv"))
    assert [one.evaluator for one in pair_files([alone], labels)] == ["mine"]


def test_a_person_is_no_evaluator_of_the_own_labels(tmp_path: Path) -> None:
    """A person who is compared with all people agrees at least with one of them."""
    path = write(tmp_path, JUDGED)
    message = f"{path}: 'annotator_1' is one of the people. Name the evaluator's column with --column."
    assert refusal(pair_files, [path], read_labels(path), columns=["annotator_1"]) == message
    assert [one.evaluator for one in pair_files([path], read_labels(path))] == ["judge"]


def test_a_set_with_ratings_of_both_levels_needs_a_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal named an option of `meta-eval`, also to commands that do not have it."""
    write_fed(tmp_path, fed_rows(2))
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    both = "fed: has ratings of responses and of whole dialogues. "
    with refused(f"{both}Give a file with the ratings of one of them."):
        read_labels("fed", quality="Overall")
    with refused(f"{both}Choose with --rows turn or --rows dialogue."):
        read_labels("fed", quality="Overall", level=None)
    assert read_labels("fed", quality="Overall", level="dialogue").is_of_dialogues
