"""Two files of scores compared: what is paired with what, the verdict in words, and what is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dialeval_plugin.labels.scores import read_scored_rows
from dialeval_plugin.results.comparison import Change, Comparison, compare, verdict
from dialeval_plugin.results.plans import plan
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.means import mean_interval, paired_difference_interval
from tests.cli.running import write_rows
from tests.refusals import refusal, refused

SIGNATURE = "method:general|model:m@1|level:turn|version:1.0"


def rows(n: int = 40, *, shift: float = 0.0, name: str = "c", seed: int = 0, **fields: Any) -> list[dict[str, Any]]:
    """Three responses in each of `n` conversations, whose scores share a part; `shift` is added to them on average."""
    draw, moved = random.Random(seed), random.Random(str((seed, shift)))
    found = []
    for number in range(n):
        level = draw.random()
        for message in (2, 4, 6):
            score = level + draw.gauss(0, 0.1) + 2 * shift * moved.random()
            conversation = f"{name}{number}"
            row = {"id": f"{conversation}:{message}", "conversation": conversation, "message": message, "score": score}
            found.append({**row, **fields})
    return found


def file(path: Path, rows: list[dict[str, Any]], signature: str | None = None, **meta: Any) -> Path:
    write_rows(path, rows)
    if signature is not None:
        stored = {"schema_version": 1, "main": "score", "signature": signature, "orientation": "higher", "level": "turn"}
        path.with_name(path.name + ".meta.json").write_text(json.dumps({**stored, **meta}), encoding="utf-8")
    return path


@pytest.fixture
def both(tmp_path: Path) -> Any:
    """Compares two lists of rows, each in a file, which `dialeval score` is said to have written."""

    def run(a: list[dict[str, Any]], b: list[dict[str, Any]], **options: Any) -> Comparison:
        paths = [file(tmp_path / f"{name}.jsonl", of, SIGNATURE) for name, of in (("a", a), ("b", b))]
        return compare(*paths, **options)

    return run


def test_the_same_messages_are_compared_with_each_other(both: Any) -> None:
    a, b = rows(), rows(shift=0.05)
    found = both(a, b)
    scores = [[row["score"] for row in of] for of in (b, a)]
    expected = paired_difference_interval(*scores, clusters=[row["conversation"] for row in a])
    assert found.difference.value == pytest.approx(expected.value, abs=1e-12)
    # The draws are others, the interval is that of the paired difference all the same.
    assert (found.difference.ci_low, found.difference.ci_high) == (
        pytest.approx(expected.ci_low, abs=0.002),
        pytest.approx(expected.ci_high, abs=0.002),
    )
    assert (found.matched_by, found.n_matched, found.n_rows, found.n_conversations) == ("message", 40, (120, 120), (40, 40))
    assert found.verdict == "B is better than A by 0.050 (0.045 to 0.055)."
    assert both(b, a).verdict == "B is worse than A by 0.050 (0.045 to 0.055)."
    assert found.notes == []


@pytest.mark.parametrize("heading", ["conversation_id", "Session ID", "dialogue"])
def test_conversations_may_have_any_usual_heading(tmp_path: Path, heading: str) -> None:
    """Else each row counts as a conversation, and an interval is too narrow."""
    sides = [
        [{"id": f"r{place}", heading: row["conversation"], "score": row["score"]} for place, row in enumerate(one)]
        for one in (rows(), rows(shift=0.05))
    ]
    found = compare(*(file(tmp_path / f"{name}.jsonl", of) for name, of in zip("ab", sides, strict=True)))
    assert (found.n_conversations, found.difference.n_clusters) == ((40, 40), 40)
    assert repr(compare(*sides)) == repr(compare(*map(pd.DataFrame, sides))) == repr(found)


def verdicts(path: Path, *words: str, n: int = 40) -> Path:
    cells = (f"r{number},{words[number % len(words)]}\n" for number in range(n))
    path.write_text("id,verdict\n" + "".join(cells), encoding="utf-8")
    return path


def test_pass_rates_are_compared(tmp_path: Path) -> None:
    a = verdicts(tmp_path / "a.csv", "pass", "FAIL", "Fail", "")
    b = verdicts(tmp_path / "b.csv", "pass", "pass", "fail", "")
    found = compare(a, b)
    assert (found.column, found.a.value, found.b.value, found.a.n_scored) == (
        "verdict",
        pytest.approx(1 / 3),
        pytest.approx(2 / 3),
        30,
    )
    assert found.difference.value == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("words", "odd"),
    [(("warm", "cold"), "2: verdict: 'warm'"), (("pass", "n/a"), "3: verdict: 'n/a'"), (("fail", "1"), "2: verdict: 'fail'")],
)
def test_words_without_a_mean_are_refused(tmp_path: Path, words: tuple[str, ...], odd: str) -> None:
    path = verdicts(tmp_path / "a.csv", *words)
    assert refusal(compare, path, path, column="verdict") == (
        f"{path}:{odd}: expected numbers alone, or words of one pair alone, such as pass and fail. Leave the cell empty where "
        "there is no score."
    )


def test_which_file_is_called_the_first_changes_the_sign_and_nothing_else(both: Any) -> None:
    a, b = rows(), rows(shift=0.05, name="d")
    for options in ({}, {"pairing": "unpaired"}):
        there, back = both(a, b, **options).difference, both(b[::-1], a[::-1], **options).difference
        assert (there.value, there.ci_low, there.ci_high) == (-back.value, -back.ci_high, -back.ci_low)


def test_of_a_scorer_whose_lower_scores_are_better_the_lower_file_is_better(tmp_path: Path) -> None:
    paths = [
        file(tmp_path / f"{name}.jsonl", of, SIGNATURE, orientation="lower")
        for name, of in (("a", rows()), ("b", rows(shift=0.05)))
    ]
    found = compare(*paths)
    assert found.verdict == "B is worse than A by 0.050 (0.045 to 0.055)."
    assert str(found.gate()) == "gate failed: B - A 0.050 (0.045 to 0.055) is above 0.000."
    assert str(found.gate(0.045)) == "gate passed: B - A 0.050 (0.045 to 0.055) is not wholly above 0.045."


def test_conversations_of_other_lengths_are_paired_by_conversation(both: Any) -> None:
    a = rows()
    b = [{**row, "id": f"{row['conversation']}:{row['message'] + 1}", "score": row["score"] + 0.1} for row in rows()][::2]
    found = both(a, b)
    assert (found.matched_by, found.n_matched) == ("conversation", 40)
    means = [np.mean([row["score"] for row in of]) for of in (a, b)]
    assert found.difference.value == pytest.approx(means[1] - means[0])


def before(rows: list[dict[str, Any]], texts: dict[str, str]) -> list[dict[str, Any]]:
    """The same with what was said before each, of which the first is the conversation's beginning."""
    return [
        {**row, "preceding": [{"role": "user", "text": texts[row["conversation"]] if row["message"] == 2 else "And then?"}]}
        for row in rows
    ]


def test_conversations_of_other_names_are_paired_by_what_they_begin_with(both: Any) -> None:
    texts = {name: {f"{name}{number}": f"Question {number}?" for number in range(40)} for name in "cd"}
    found = both(before(rows(), texts["c"]), before(rows(shift=0.05, name="d"), texts["d"]))
    assert (found.matched_by, found.n_matched) == ("context", 40)
    assert found.verdict == "B is better than A by 0.050 (0.045 to 0.055)."
    assert [one.conversation for one in found.changed if one.difference < 0] == []
    assert found.changed[0].conversation.startswith("Question ")


def test_ids_that_agree_by_accident_pair_nothing(both: Any) -> None:
    a = before(rows(), {f"c{number}": f"Question {number}?" for number in range(40)})
    b = before(rows(seed=1), {f"c{number}": f"Another {number}?" for number in range(40)})
    found = both(a, b)
    assert found.matched_by is None
    assert found.notes == ["ids are in both files, but what they name begins differently, so nothing is paired by id"]
    assert found.verdict == (
        "No difference is shown: B - A is -0.004 (-0.146 to 0.135). "
        "With these 40 and 40 conversations a difference of 0.199 would be seen four times in five."
    )


def test_different_conversations_are_compared_by_their_means_with_a_wider_interval(both: Any) -> None:
    found = both(rows(), rows(shift=0.05, name="d"))
    assert (found.matched_by, found.n_matched, found.changed) == (None, 0, ())
    told = "No difference is shown: B - A is 0.050 (-0.094 to 0.192)."
    seen = "With these 40 and 40 conversations a difference of 0.211 would be seen four times in five."
    assert found.verdict == f"{told} {seen}"
    passed = "gate passed: B - A 0.050 (-0.094 to 0.192) is not wholly below -0.020."
    assert str(found.gate(0.02)) == f"{passed} B worse by 0.231 would fail four times in five."
    assert both(rows(), rows(shift=0.05), pairing="unpaired").difference.value == found.difference.value


def test_what_has_no_partner_is_left_out_and_counted(both: Any) -> None:
    found = both(rows(), [*rows(30, shift=0.05), *rows(3, name="new", seed=4)])
    assert found.n_matched == 30
    a, b = found.names
    assert found.notes == [f"left out, without a counterpart in the other file: 30 of 120 rows of {a}, 9 of 99 rows of {b}"]
    assert found.difference.value == pytest.approx(0.052, abs=0.0005)


def test_a_response_that_one_version_left_unscored_is_compared_on_neither_side(both: Any) -> None:
    a, b = rows(), rows(shift=0.05)
    b[0] = {**b[0], "score": None, "unscored": "parse_failure"}
    found = both(a, b)
    scores = [[row["score"] for row in of[1:]] for of in (b, a)]
    assert found.difference.value == pytest.approx(np.mean(scores[0]) - np.mean(scores[1]))
    assert (found.a.n_scored, found.b.n_scored, found.a.n_total) == (119, 119, 120)


def test_a_conversation_without_a_score_in_one_version_is_compared_on_neither_side(both: Any) -> None:
    a = rows()
    b = [{**row, "id": f"{row['conversation']}:{row['message'] + 1}"} for row in rows()]
    hard = sorted({row["conversation"] for row in a}, key=lambda name: min(row["score"] for row in a if name in row.values()))[
        :2
    ]
    b = [{**row, "score": None} if row["conversation"] in hard else row for row in b]
    found = both(a, b)
    assert (found.matched_by, found.difference.value) == ("conversation", 0)
    assert (found.a.n_scored, found.b.n_scored, found.a.n_total) == (114, 114, 120)


def test_the_conversations_that_changed_most_come_first(both: Any) -> None:
    a, b = rows(12), rows(12)
    for row in b:
        row["score"] += {"c3": -0.5, "c7": 0.25}.get(row["conversation"], 0)
    found = both(a, b)
    assert [one.conversation for one in found.changed] == ["c3", "c7"]
    assert found.changed[0] == Change("c3", found.changed[0].a, found.changed[0].b, pytest.approx(-0.5))


def test_equal_scores_are_said_to_be_equal_and_pass_a_gate(both: Any) -> None:
    found = both(rows(), rows())
    assert found.verdict == "A and B have the same scores."
    assert str(found.gate()) == "gate passed: B - A 0.000 (0.000 to 0.000) is not wholly below 0.000."


def test_a_difference_that_is_the_same_in_all_conversations_is_told() -> None:
    """It was no verdict, and "Score and rate more examples"."""
    a = {f"c{number}:2": number / 4 for number in range(20)}
    found = compare(a, {id: score + 0.25 for id, score in a.items()})
    assert found.verdict == "B is better than A by 0.250, the same in all 20 conversations."
    assert verdict(found.difference, "lower") == "B is worse than A by 0.250, the same in all 20 conversations."


def test_few_conversations_have_no_interval_and_no_verdict(both: Any) -> None:
    found = both(rows(9), rows(9, shift=0.05))
    assert found.verdict == "No verdict: B - A is 0.050, of 9 conversations, and 10 are needed."
    assert str(found.gate()) == "gate undecided: 9 conversations, and 10 are needed. Score more of them."
    assert both(rows(10), rows(10, shift=0.05)).verdict == "B is better than A by 0.051 (0.035 to 0.065, rough)."
    # Nor where the other file alone has many.
    found = both(rows(9), rows(40, name="d"))
    assert found.verdict == "No verdict: B - A is -0.190, of 9 conversations, and 10 are needed."


def test_a_verdict_of_no_resamples_says_why() -> None:
    estimate = mean_interval([0.1, 0.2] * 10, bootstrap=Bootstrap(rounds=0))
    assert verdict(estimate) == ("No verdict: B - A is 0.150. mean: rounds is 0, so there is no interval. Ask for 1000 rounds.")


@pytest.mark.parametrize(
    ("other", "differing", "name"),
    [
        ("method:slide|level:turn|version:1.0", "method (general, slide), model (m@1, none)", "method"),
        ("method:general|model:m@2|level:turn|version:1.0", "model (m@1, m@2)", "model"),
        ("method:general|model:m@1|window:9|level:turn|version:1.0", "window (none, 9)", "window"),
        ("method:general|model:m@1|level:turn|version:1.1", "version (1.0, 1.1)", "version"),
    ],
)
def test_files_that_were_scored_in_different_ways_are_refused(tmp_path: Path, other: str, differing: str, name: str) -> None:
    a, b = file(tmp_path / "a.jsonl", rows(), SIGNATURE), file(tmp_path / "b.jsonl", rows(), other)
    assert refusal(compare, a, b) == (
        f"{a}, {b}: were scored in different ways: {differing}. Score both with the same scorer, release and options, or "
        f"accept a difference that moves no score by --ignore {name}."
    )


def test_a_difference_that_is_accepted_is_not_advised_again(tmp_path: Path) -> None:
    other = SIGNATURE.replace("1.0", "1.1") + "|seed:3"
    a, b = file(tmp_path / "a.jsonl", rows(), SIGNATURE), file(tmp_path / "b.jsonl", rows(), other)
    assert refusal(compare, a, b, ignore=["version"]).endswith("a difference that moves no score by --ignore seed.")


def test_a_difference_that_is_accepted_is_said(tmp_path: Path) -> None:
    a, b = file(tmp_path / "a.jsonl", rows(), SIGNATURE), file(tmp_path / "b.jsonl", rows(), SIGNATURE.replace("1.0", "1.1"))
    assert compare(a, b, ignore=["version"]).notes == ["scored in different ways, which --ignore accepts: version (1.0, 1.1)"]
    known = ", ".join(field.partition(":")[0] for field in SIGNATURE.split("|"))
    said = f"--ignore release: no such field. Known are: {known}"
    assert compare(a, b, ignore=["version", "release"]).notes == [
        said,
        "scored in different ways, which --ignore accepts: version (1.0, 1.1)",
    ]
    assert compare(a, a, ignore="release").notes == [said]
    a, b = file(tmp_path / "c.jsonl", rows()), file(tmp_path / "d.jsonl", rows())
    alike = "both are assumed to be scored alike"
    assert compare(a, b).notes == [f"it is not recorded how {a} and {b} were scored (no .meta.json); {alike}"]


def test_files_with_other_scores_are_refused(tmp_path: Path) -> None:
    a = file(tmp_path / "a.jsonl", rows(), SIGNATURE)
    b = file(tmp_path / "b.jsonl", rows(words=3), SIGNATURE, main="words", orientation="lower")
    assert refusal(compare, a, b) == (
        f"{b}: its scores are 'words' (lower is better), those of {a} 'score' (higher). Score both with one scorer, or name a "
        "column of both by --column."
    )


def test_files_of_which_one_is_much_less_scored_are_refused(tmp_path: Path) -> None:
    worse = [{**row, "score": None} if place % 10 == 0 else row for place, row in enumerate(rows())]
    a, b = file(tmp_path / "a.jsonl", rows(), SIGNATURE), file(tmp_path / "b.jsonl", worse, SIGNATURE)
    assert refusal(compare, a, b) == (
        f"0 of 120 rows of {a} and 12 of 120 rows of {b} have no score: a version that fails on the hard ones would look "
        "better. Find out why ('unscored' says it), or accept it by --max-unscored-gap 0.11."
    )
    assert compare(a, b, max_unscored_gap=0.11).a.n_scored == 108


def test_pairs_that_are_asked_for_and_not_there_are_refused(tmp_path: Path) -> None:
    a, b = file(tmp_path / "a.jsonl", rows(), SIGNATURE), file(tmp_path / "b.jsonl", rows(name="d"), SIGNATURE)
    assert refusal(compare, a, b, pairing="paired") == (
        f"{a}, {b}: no conversation is in both, by its id or by what was said before its first response. Compare the means of "
        "different conversations by --pairing unpaired."
    )
    none = file(tmp_path / "none.jsonl", [{**row, "score": None} for row in rows()], SIGNATURE)
    assert refusal(compare, none, none) == (
        f"{none}, {none}: no row that is compared has a score in both. Were the same conversations scored?"
    )


def test_a_table_and_a_parquet_file_are_read_as_lines_are(tmp_path: Path) -> None:
    import pandas

    table = pandas.DataFrame(rows(3, tag="x"))
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    lines = read_scored_rows(write_rows(tmp_path / "a.jsonl", rows(3, tag="x")))
    for name in ("a.csv", "a.parquet"):
        found = read_scored_rows(tmp_path / name)
        assert [row[:4] for row in found.rows] == [row[:4] for row in lines.rows]
        assert {row.fields["tag"] for row in found.rows} == {"x"}


def test_a_file_without_conversations_is_clustered_by_what_its_ids_begin_with(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", [{"id": "a:2", "score": 1}, {"id": "a:4", "score": 2}, {"id": "b", "score": 3}])
    assert [row.conversation for row in read_scored_rows(path).rows] == ["a", "a", "b"]


def test_a_file_of_several_scores_says_which_can_be_named(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", [{"id": "a", "fit": 1, "fluency": 2, "percentile": 3}])
    assert refusal(read_scored_rows, path) == f"{path}: has several columns of numbers: fit, fluency. Name one with --column."
    assert read_scored_rows(path, "fit").rows[0].score == 1
    assert (
        refusal(read_scored_rows, path, "fut")
        == f"{path}: has no column 'fut'. Did you mean 'fit'? Known are: id, fit, fluency, percentile."
    )
    path = write_rows(tmp_path / "b.jsonl", [{"id": "a", "kind": "x"}])
    assert refusal(read_scored_rows, path) == (
        f"{path}: has no scores. Give what `dialeval score` wrote, or rows with an id and a number, or pass and fail."
    )
    path = tmp_path / "no.parquet"
    assert refusal(read_scored_rows, path) == f"{path}: there is no such file."
    path.write_bytes(b"PAR1")
    assert refusal(read_scored_rows, path).startswith(f"{path}: cannot be read (")


def test_a_plan_of_both_versions_needs_fewer_conversations_than_one_of_different_ones(both: Any) -> None:
    found = both(rows(), rows(shift=0.05))
    paired, alone = plan(found, 0.01), plan(read_scored_rows(Path(found.names[0]), None), 0.05)
    assert [row["conversations"] for row in paired.rows] == [20, 50, 100, 200, 500, 1000, 2000, 5000]
    assert all(
        of_pair["difference"] < of_one["difference"] / 5 for of_pair, of_one in zip(paired.rows, alone.rows, strict=True)
    )
    assert paired.notes == [
        f"pilot: {' and '.join(found.names)}, paired, 40 conversations",
        "a difference of 0.010 needs 24 conversations to be seen four times in five",
        "smallest difference: seen four times in five; +-: standard error of the simulation",
    ]
    assert alone.notes[:3] == [
        f"pilot: {found.names[0]}, 40 conversations",
        "conversations of each version, different ones; a pilot of both on the same ones tells how many fewer do",
        "a difference of 0.050 needs 666 conversations to be seen four times in five",
    ]


def test_a_pilot_that_tells_nothing_is_refused(tmp_path: Path) -> None:
    few, even = (file(tmp_path / f"{name}.jsonl", of) for name, of in (("few", rows(9)), ("even", rows(40))))
    write_rows(even, [{**row, "score": 1.0} for row in rows(40)])
    for path in (few, even):
        with refused(f"{path}: a plan needs a pilot of 10 conversations whose scores differ. Score more of them."):
            plan(read_scored_rows(path, None))
