"""`dialeval estimate` and `dialeval label`, from files to sentences, tables to fill in and answers on a page."""

from __future__ import annotations

import csv
import http.client
import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from dialeval_plugin import agreement, certify, compare, estimate, score
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.labels.answers import AnswerFile
from dialeval_plugin.labels.scores import read_scored_rows
from dialeval_plugin.results.true_mean import next_labels
from dialeval_plugin.statistics.estimation.true_mean import DifferenceOfTrueMeans, TrueMean
from tests.cli.running import DIALEVAL, environment, run, write_rows
from tests.refusals import refusal

WORDS = {1: "pass", 0: "fail"}


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    pandas.DataFrame(rows).to_csv(path, index=False)
    return path


def judged(prefix: str = "", *, seed: int = 0, rate: float = 0.7) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """1,500 conversations of two answers with the verdicts of a judge, and the labels of 50 of them."""
    generator = np.random.default_rng(seed)
    scores, labels = [], []
    for number in range(1500):
        for turn in range(2):
            passes = int(generator.random() < rate)
            verdict = int(generator.random() < (0.95 if passes else 0.4))
            id = f"{prefix}c{number}:{turn}"
            scores.append({"id": id, "conversation": f"c{number}", "verdict": WORDS[verdict], "system": "ab"[number // 30 % 2]})
            if number % 30 == 0:
                labels.append({"id": id, "label": WORDS[passes]})
    return scores, labels


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    scores, labels = judged()
    return write_csv(tmp_path / "judge.csv", scores), write_csv(tmp_path / "people.csv", labels)


def test_the_true_rate_is_said_in_sentences(files: tuple[Path, Path]) -> None:
    scores, labels = files
    result = run("estimate", "--scores", scores, "--labels", labels)
    found = estimate(scores, labels)
    assert isinstance(found, TrueMean)
    assert found.mean.value is not None
    sentences = result.stdout.split("\n\n")[0].splitlines()
    assert re.fullmatch(r"The judge passes \d\d % of 3,000 answers\.", sentences[0])
    assert re.fullmatch(
        r"The true rate is \d\d % \[\d\d, \d\d\] \(95 % interval; 100 labels in 50 conversations, prediction-powered\)\.",
        sentences[1],
    )
    assert f"{100 * found.mean.value:.0f} %" in sentences[1]
    assert sentences[2] == f"Without the judge, {round(found.effective_labels or 0):,} labels would give that interval."
    assert re.fullmatch(r"[\d,]+ more labels halve that interval\.", sentences[3])
    assert found.mean.ci_low is not None and found.mean.ci_low < 0.7 < (found.mean.ci_high or 0)  # noqa: PT018


def test_json_markdown_and_a_width(files: tuple[Path, Path], tmp_path: Path) -> None:
    scores, labels = files
    words = (
        "estimate",
        "--scores",
        scores,
        "--labels",
        labels,
        "--width",
        "0.2",
        "--format",
        "json",
        "--output",
        tmp_path / "o",
    )
    run(*words)
    record = json.loads((tmp_path / "o").read_text(encoding="utf-8"))
    assert record["schema_version"] == 1
    assert (record["method"], record["more_labels"], record["width"]) == ("ppi", 0, 0.2)
    assert record["sentences"][-1] == "The interval is at most 20.0 % wide already."
    markdown = run("estimate", "--scores", scores, "--labels", labels, "--format", "markdown").stdout
    assert "| statistic | mean |" in markdown


def test_frames_of_pandas_and_numbers(files: tuple[Path, Path]) -> None:
    scores, labels = (pandas.read_csv(one) for one in files)
    found = estimate(scores, labels)
    of_files = estimate(*files)
    assert isinstance(found, TrueMean)
    assert isinstance(of_files, TrueMean)
    assert found.mean == of_files.mean
    generator = np.random.default_rng(0)
    scores["score"] = generator.normal(size=len(scores))
    rated = [{"id": id, "rating": int(generator.integers(1, 6))} for id in labels["id"]]
    of_numbers = estimate(scores, rated, column="score")
    assert isinstance(of_numbers, TrueMean)
    assert of_numbers.mean.value == pytest.approx(np.mean([row["rating"] for row in rated]))
    assert (of_numbers.method, of_numbers.is_rate) == ("labels", False)


def test_judge_and_people_may_be_in_one_table(files: tuple[Path, Path], tmp_path: Path) -> None:
    scores, labels = (pandas.read_csv(one) for one in files)
    table = scores.merge(labels.rename(columns={"label": "anna"}), on="id", how="left")
    table["ben"] = table["anna"]
    table.to_csv(tmp_path / "table.csv", index=False)
    found = estimate(tmp_path / "table.csv", tmp_path / "table.csv", raters=["anna", "ben"], column="verdict")
    of_two = estimate(*files)
    assert isinstance(found, TrueMean)
    assert isinstance(of_two, TrueMean)
    assert found.mean == of_two.mean


def test_labels_are_never_taken_for_the_scores_next_to_them(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    rows = [{"id": f"c{n}:1", "judge": f"{n} %", "anna": "pass" if n % 2 else "fail"} for n in range(40)]
    write_csv(path, rows)
    frame = pandas.DataFrame(rows)
    for scores, labels in ((path, path), (f"judge={path}", path), (frame, frame)):
        for of in (estimate, certify):
            assert "no column holds scores. It has: id, judge, anna. Name one" in refusal(of, scores, labels, quality="anna")


def test_what_score_returned_is_estimated_from_and_compared(tmp_path: Path) -> None:
    chats = [
        {"id": n, "messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "word " * (n % 7 + 1)}]}
        for n in range(30)
    ]
    scores, better = (score(chats[start:], "response_length") for start in (0, 1))
    labels = pandas.DataFrame({"id": [f"{n}:2" for n in range(30)], "label": [n % 5 for n in range(30)]})
    found = estimate(scores, labels)
    assert isinstance(found, TrueMean)
    assert found.judge.value == pytest.approx(np.mean([n % 7 + 1 for n in range(30)]))
    # pandas makes floats of whole numbers next to a gap.
    numbered = pandas.DataFrame({"id": range(30), "score": range(30)})
    assert estimate(numbered, labels.assign(id=np.arange(30.0))) == estimate(numbered, labels.assign(id=range(30)))
    assert compare(scores, better).n_matched == 29
    # A notebook shows a result as the command does, and not its fields.
    for result, begin in (
        (found, "true mean 2.000 ["),
        (estimate(scores, labels, against=better, labels_against=labels[1:]), "A 2.000 ["),
        (agreement(scores, labels), "evaluator  statistic"),
        (certify(scores, labels), "words: cannot tell. One rater only"),
        (compare(scores, better), "A and B have the same scores."),
    ):
        assert repr(result).startswith(begin)
    assert repr(compare(scores.to_pandas(), better.to_pandas(), column="words")) == repr(compare(scores, better))


def test_strata_are_a_field_of_the_rows(files: tuple[Path, Path]) -> None:
    found = estimate(*files, strata="system")
    assert isinstance(found, TrueMean)
    assert found.labels_only.value is not None
    with pytest.raises(InputError) as refused:
        estimate(*files, strata="model")
    assert str(refused.value) == (
        f"{files[0]}:2: has no field 'model' (--strata). Known are: conversation, id, system, verdict."
    )


def test_two_chatbots_are_compared_on_what_people_would_say(tmp_path: Path) -> None:
    (a, of_a), (b, of_b) = judged("a", rate=0.6), judged("b", seed=1, rate=0.85)
    paths = [write_csv(tmp_path / name, rows) for name, rows in (("a.csv", a), ("b.csv", b), ("people.csv", of_a + of_b))]
    result = run("estimate", "--scores", paths[0], "--against", paths[1], "--labels", paths[2])
    lines = result.stdout.splitlines()
    assert re.fullmatch(r"The true rate is of A \d\d % \[\d\d, \d\d\] and B \d\d % \[\d\d, \d\d\]\.", lines[0])
    assert re.fullmatch(
        r"B is better: B less A is \d\d points \[\d+, \d\d\] \(95 % interval; "
        r"50 labelled conversations have answers of both\)\.",
        lines[1],
    )
    found = estimate(paths[0], paths[2], against=paths[1])
    assert isinstance(found, DifferenceOfTrueMeans)
    same = estimate(
        paths[0], write_csv(tmp_path / "a_labels.csv", of_a), against=paths[0], labels_against=tmp_path / "a_labels.csv"
    )
    assert isinstance(same, DifferenceOfTrueMeans)
    assert same.difference.value == 0


def test_labels_that_belong_to_both_sides_are_refused(files: tuple[Path, Path]) -> None:
    with pytest.raises(InputError) as refused:
        estimate(*files, against=files[0])
    assert str(refused.value) == (
        "estimate: 100 labelled ids, such as 'c0:0', are in the scores of A and of B, so it is unclear whose answer was "
        "labelled. Give the labels of B's answers by --labels-against."
    )


def test_labels_without_a_mean_are_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    scores, labels = files
    words = [{"id": "c0:0", "label": "rude"}, {"id": "c0:1", "label": "dull"}, {"id": "c1:0", "label": "odd"}]
    named = write_csv(tmp_path / "named.csv", words)
    with pytest.raises(InputError) as refused:
        estimate(scores, named)
    way_out = "Name those that count as pass by --positive, or give numbers."
    assert str(refused.value) == f"{named}: has labels dull, odd, rude, which have no mean. {way_out}"
    with pytest.raises(InputError) as refused:
        estimate(scores, [labels, labels])
    assert str(refused.value) == f"{labels}: 'c0:0' is labelled in another file too. Leave it in one of them."
    assert refusal(estimate, scores, {"c0:0": "pass", "c0:9": "fail"}) == (
        f"{scores}: 1 ids are labelled but not scored: 'c0:9'. Score the labelled responses, unscored ones as null, or leave "
        "out their labels."
    )


def with_texts(folder: Path) -> Path:
    """Scores as `dialeval score --with-text` writes them: 60 conversations of two answers."""
    rows = []
    for number in range(60):
        for turn in (1, 3):
            said = {"preceding": [{"role": "user", "text": f"question {turn}"}], "text": f"=answer {turn} of {number}"}
            place = {"id": f"c{number}:{turn}", "conversation": f"c{number}", "message": turn, "role": "assistant"}
            rows.append({**place, **said, "score": float((number + turn) % 2)})
    return write_rows(folder / "scores.jsonl", rows)


def test_rows_to_label_are_blind_and_lead_to_an_estimate(tmp_path: Path) -> None:
    scores, todo = with_texts(tmp_path), tmp_path / "todo.csv"
    result = run("label", scores, "--next", 40, "--output", todo)
    assert result.stdout == f"{todo}\n"
    with todo.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "context", "response", "label", "drawn"]
    assert len({row["id"] for row in rows}) == 40
    assert len({row["drawn"] for row in rows}) == 1
    late = next(row for row in rows if row["id"].endswith(":3"))
    number = late["id"][1:-2]
    assert late["context"] == f"user: question 1\nassistant: =answer 1 of {number}\nuser: question 3"
    assert late["response"] == f"'=answer 3 of {number}"
    for place, row in enumerate(rows):
        row["label"] = "pass" if place % 3 else "fail"
    write_csv(todo, rows)
    found = estimate(scores, todo)
    assert isinstance(found, TrueMean)
    assert (found.mean.n_scored, found.representativeness, found.sensitivity) == (40, None, None)
    more = next_labels(scores, 10, labels=[todo])
    assert not {row.id for row in more.rows} & {row["id"] for row in rows}
    assert more.is_rate is True
    with pytest.raises(InputError) as refused:
        run("label", scores, "--next", 40, "--output", todo)
    assert str(refused.value) == f"{todo}: is there, and may hold labels. Choose another name."


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_to_label_are_the_same_whatever_file_has_the_scores(suffix: str, tmp_path: Path) -> None:
    """Of a table: without roles, and the second response to a context stood behind the first as if it followed it."""
    rows = [{"id": id, "context": ["Hi\nthere.", "How are you?"], "response": f"Fine, {id}."} for id in "abc"]
    chat = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}] * 2
    logs = {"single": rows, "chats": [{"id": f"c{number}", "messages": chat} for number in range(3)]}
    for name, log in logs.items():
        source = write_rows(tmp_path / f"{name}.jsonl", log)
        lines, table = tmp_path / f"{name}.scores.jsonl", tmp_path / f"{name}.scores{suffix}"
        for output in (lines, table):
            run("score", source, "--scorer", "response_length", "--with-text", "--output", output)
        assert next_labels(table, 4).rows == next_labels(lines, 4).rows


def test_labels_drawn_from_other_scores_are_refused(tmp_path: Path) -> None:
    scores, todo = with_texts(tmp_path), tmp_path / "todo.csv"
    run("label", scores, "--next", 40, "--output", todo)
    rows = pandas.read_csv(todo)
    rows["label"] = ["pass", "fail"] * 20
    rows.to_csv(todo, index=False)
    changed = [json.loads(line) for line in scores.read_text(encoding="utf-8").splitlines()]
    for row in changed[:9]:
        row["score"] = 1 - row["score"]
    other = write_rows(tmp_path / "other.jsonl", changed)
    with pytest.raises(InputError) as refused:
        estimate(other, todo)
    assert str(refused.value) == (
        f"{other}: the labels say that their rows were drawn from other scores. Give the scores that `dialeval label` read, "
        "or a field by --strata."
    )


def test_answers_are_kept_at_once_and_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    answers = AnswerFile(path, "by score, 1")
    answers.add("Anna", "c1:1", "pass")
    answers.add("Ben", "c1:1", "fail")
    answers.add("Anna", "c1:1", "fail")
    expected = 'id,rater,label,drawn\nc1:1,Anna,fail,"by score, 1"\nc1:1,Ben,fail,"by score, 1"\n'
    assert path.read_text(encoding="utf-8") == expected
    with path.open("a", encoding="utf-8") as file:
        file.write("c2:1,An")  # the power failed here
    assert AnswerFile(path, "by score, 1").given == {("Anna", "c1:1"): "fail", ("Ben", "c1:1"): "fail"}
    assert path.read_text(encoding="utf-8") == expected
    with pytest.raises(InputError) as refused:
        AnswerFile(path, "by score, 2")
    assert str(refused.value) == (
        f"{path}: holds something else than answers to these rows. Choose another --output, or give the labels that are there "
        "by --labels."
    )


def test_the_page_is_served_until_it_is_interrupted_and_its_answers_stay(tmp_path: Path) -> None:
    with_texts(tmp_path)
    words = [DIALEVAL, "label", "scores.jsonl", "--next", "3", "--serve", "--output", "answers.csv"]
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        host, token = re.fullmatch(r"http://([\d.:]+)/\?token=(\S+)\n", process.stdout.readline()).groups()  # type: ignore[union-attr]
        connection = http.client.HTTPConnection(host)
        answer = json.dumps({"rater": "Anna", "row": 0, "label": "pass"})
        connection.request("POST", "/answer", answer, {"X-Token": token})
        assert connection.getresponse().read() == b'{"kept": true}'
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()  # of a shell that lets its jobs ignore the signal, it would wait for ever
    assert process.returncode == 130
    assert said.splitlines() == [
        "open it in a browser; answers are added to answers.csv; end with Ctrl-C, the same command goes on",
        "dialeval: interrupted; the same command resumes from finished parts, if there are any",
    ]
    id = next_labels(tmp_path / "scores.jsonl", 3).rows[0].id
    lines = (tmp_path / "answers.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "id,rater,label,drawn"
    assert lines[1].startswith(f"{id},Anna,pass,")
    other = subprocess.run(
        [*words, "--scale", "1-5"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (other.returncode, other.stdout, other.stderr) == (
        *(2, ""),
        "dialeval: answers.csv: has answers on another scale than 1-5: pass. Choose another --output.\n",
    )


def test_answers_of_a_name_like_a_formula_and_a_last_line_without_its_end_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    answers = AnswerFile(path, "by score, 1")
    answers.add("@anna", "c1:1", "pass")
    answers.add(" @anna", "c1:1", "fail")
    answers.add("@anna", "c2:1", "pass")
    path.write_text(path.read_text(encoding="utf-8").rstrip("\n"), encoding="utf-8")
    again = AnswerFile(path, "by score, 1")
    again.add("@anna", "c1:1", "pass")
    lines = ["id,rater,label,drawn", *(f'c{number}:1,\'@anna,pass,"by score, 1"' for number in (1, 2))]
    assert path.read_text(encoding="utf-8").splitlines() == lines


def test_ids_like_formulas_are_labelled_and_estimated_from(tmp_path: Path) -> None:
    """A log whose conversations are named by telephone numbers had no table to fill in, and its answers were not kept."""
    names = [f"'+49{n}" if n % 3 else f"+49{n}" if n % 2 else f"=c{n}\n{n}" for n in range(30)]
    rows = [{"id": f"{name}:2", "words": n % 9 + 1, "text": "Hm."} for n, name in enumerate(names)]
    scores = write_rows(tmp_path / "scores.jsonl", rows)
    assert run("label", scores, "--next", "30", "--output", tmp_path / "labels.csv").exit_code == 0
    with (tmp_path / "labels.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert sorted(row["id"] for row in table) == sorted(f"'{row['id']}" for row in rows)
    answers = AnswerFile(tmp_path / "answers.csv", table[0]["drawn"])
    for n, row in enumerate(rows):
        answers.add("Anna", str(row["id"]), str(n % 5 + 1))
    assert AnswerFile(tmp_path / "answers.csv", table[0]["drawn"]).given == answers.given
    write_csv(tmp_path / "filled.csv", [{**row, "label": n % 5 + 1} for n, row in enumerate(table)])
    for labels in ("filled.csv", "answers.csv"):
        found = estimate(scores, tmp_path / labels, column="words")
        assert isinstance(found, TrueMean)
        assert found.mean.n_scored == 30
    # Apostrophes that nobody put in front for a spreadsheet stay.
    assert [row.id for row in read_scored_rows(scores, "words").rows] == [row["id"] for row in rows]
