"""Statements of the preferences by themselves: the tables, by hand on a few made ones, and as published. Issue J."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Turn
from dialeval_plugin.corpora.rated_items import of_level, read_rated_items
from dialeval_plugin.corpora.readers.cgdialog import CRITERIA, OPTIONS, PreferenceDialogue, RatedComparison, read_preferences
from dialeval_plugin.reports.rating_report import examine
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES
from reproduction.causalscore import ratings
from reproduction.documents import with_tables
from tests.small_corpora import write_preferences

A, B, GOOD, BAD = OPTIONS
DOCUMENT = Path(ratings.__file__).with_name("results.md")
BEGIN, END = "<!-- rating tables -->\n", "<!-- end of rating tables -->\n"


def dialogue(*comparisons: dict[str, tuple[str, ...]], texts: tuple[str, str] = ("Yes.", "No.")) -> PreferenceDialogue:
    """Two systems that are compared over and over."""
    rows = tuple(RatedComparison("x", "y", {**dict.fromkeys(CRITERIA, (GOOD, GOOD)), **votes}) for votes in comparisons)
    return PreferenceDialogue("d", (Turn("Well?"),), {"x": Turn(texts[0]), "y": Turn(texts[1])}, rows)


def test_single_votes_agree_where_both_prefer_one() -> None:
    """Relevance and empathy: A and A, B and A, then twice a vote that prefers neither; overall never prefers one."""
    found = dialogue(
        {"relevance": (A, B), "empathy": (A, A)},
        {"relevance": (A, GOOD), "empathy": (BAD, B)},
    )
    agreement = ratings.votes_agreement([found], "relevance")
    assert (agreement.value, agreement.n_scored) == (0.5, 2)
    assert ratings.votes_agreement([found], "overall").value is None
    assert ratings.answer_counts([found], "relevance").tolist() == [[1, 1, 0, 0], [1, 0, 1, 0]]


def test_responses_that_differ_by_a_word_stand_with_every_answer() -> None:
    votes = {"relevance": (A, A), "specificity": (B, BAD)}
    alike = dialogue(votes, texts=("What kind of films do you like?", "What kind of films do You love?"))
    other = dialogue(votes, texts=("What kind of films do you like?", "None."))
    assert ratings.nearly_equal_table({"msc": [alike, other]}).splitlines()[2:] == [
        "| MSC | What kind of films do you like? | What kind of films do You love? | AA | B- | ++ | ++ | ++ |"
    ]


def test_the_script_writes_all_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path / "data"))
    write_preferences(tmp_path / "data", "dream", "msc")
    rated = tmp_path / "rated.jsonl"
    rows: list[dict[str, Any]] = [
        {"id": str(row), "ratings": {"kind": [row % 5, row % 5], "clear": [row % 5, row % 3]}, "dialogue": f"d{row // 3}"}
        for row in range(36)
    ]
    rated.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(ratings, "ORDINARY", {"Made": (str(rated), "turn")})
    document = tmp_path / "reproduction.md"
    document.write_text(f"Before.\n\n{BEGIN}{END}\nAfter.\n")
    ratings.main(["--document", str(document)])
    text = document.read_text()
    for corpus in ("DREAM", "MSC"):
        for criterion in CRITERIA:
            assert text.count(f"\n| {corpus}, {criterion} | ") == 1
    assert "\n| DREAM, relevance | " in text
    assert " | 0.294* | " in text
    (line,) = (line for line in text.splitlines() if line.startswith("| Made |"))
    cells = [cell.strip() for cell in line.split("|")[2:-1]]
    kind, clear = examine(of_level(read_rated_items(str(rated)), None, str(rated)), (), NO_RESAMPLES)
    assert cells[:2] == ["2", "2.0"]
    assert cells[2].startswith(f"{clear.reliability.ceiling_of_one.value:.3f} [")
    # Raters who agree leave no interval: their ceiling is 1 in every resample.
    assert cells[3] == f"{kind.reliability.ceiling_of_one.value:.3f}" == "1.000"
    ratings.main(["--document", str(document)])
    assert document.read_text() == text


@pytest.mark.real_data
def test_the_preferences_as_published_have_the_figures_of_the_document(data_dir: Path) -> None:
    written = with_tables(DOCUMENT, {"rating tables": ratings.report()})
    assert {path: path.read_text(encoding="utf-8") for path in written} == written


@pytest.mark.real_data
@pytest.mark.parametrize("corpus", ["dream", "msc"])
def test_all_annotators_give_the_same_answer_on_overall(corpus: str, data_dir: Path) -> None:
    votes = [row.votes["overall"] for dialogue in read_preferences(corpus) for row in dialogue.comparisons]
    assert (len(votes), {len(of_row) for of_row in votes}) == (600, {3})
    assert all(len(set(of_row)) == 1 for of_row in votes)
