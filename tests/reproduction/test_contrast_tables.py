"""The tables of contrasts/results.md: which perturbed rows become pairs, and that the models give these shares."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example
from dialeval_plugin.reports.tables import markdown_table
from reproduction.contrasts import pairs, write
from reproduction.contrasts.measures import OrderedPair, pairs_of, read_contrasts
from reproduction.contrasts.pairs import DECODE, DECODE_FILES, FED_FILE, FED_FILES, RESPONSES, TURN_FILES
from reproduction.contrasts.write import COSINE, PairSet
from reproduction.documents import with_tables

DOCUMENT = Path(write.__file__).with_name("results.md")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "results.md"
SETS = ("written by hand", "long responses", "perturbed responses", "perturbed dialogues")
SHOWN = "sleep"
"""The context that the document shows."""


def write_rows(path: Path, rows: Iterable[Sequence[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(["id", *row]) + "\n" for row in rows), encoding="utf-8")


def write_turns(data: Path, better: Sequence[Sequence[str]], worse: Sequence[Sequence[str]]) -> None:
    """The same rows for every kind."""
    for files in TURN_FILES.values():
        for file, rows in zip(files, (better, worse), strict=True):
            write_rows(data / "robustness" / "turn_level" / file, rows)


def texts(item: Example) -> list[str]:
    return [turn.text for turn in (*item.context, item.response)]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    return tmp_path


def test_a_row_is_a_pair_where_both_files_have_one_context_and_another_response(data: Path) -> None:
    better = [["Hi.", "Tea?", "Yes."], ["Rain?", "No."], ["So?", "Ah."], ["Alone."], ["hi.", "Tea?", "Please."], ["Eh?", "Oh."]]
    worse = [
        ["Hi.", "Tea?", "Tea?"],
        ["Rain?", "No."],
        ["So what?", "Hm."],
        ["Lone."],
        ["hi.", "Tea?", "Tea."],
        ["Eh?", "Eh."],
    ]
    write_turns(data, better, worse)
    found = pairs.turn_pairs()
    assert Counter(pair.kind for pair in found) == dict.fromkeys(TURN_FILES, 2)
    first, last, *_ = found
    assert (texts(first.better), texts(first.worse)) == (better[0], worse[0])  # type: ignore[arg-type]
    assert (texts(last.better), texts(last.worse)) == (better[5], worse[5])  # type: ignore[arg-type]
    assert {pair.id for pair in found} == {first.id, last.id}


def test_pairs_are_drawn_at_even_distances(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "MOST_PAIRS", 4)
    write_turns(data, [[f"Is it {n}?", "Yes."] for n in range(10)], [[f"Is it {n}?", "No."] for n in range(10)])
    drawn = [pair.better for pair in pairs.turn_pairs() if pair.kind == "ner"]
    assert [texts(item)[0] for item in drawn] == ["Is it 0?", "Is it 2?", "Is it 5?", "Is it 7?"]  # type: ignore[arg-type]


def test_a_dialogue_stands_beside_the_first_that_was_made_of_it_and_nobody_is_named(data: Path) -> None:
    folder = data / "robustness" / "dialogue_level"
    folder.mkdir(parents=True)
    (folder / FED_FILE).write_text(json.dumps([["Hi.", "Tea?"], ["Rain?", "No."]]), encoding="utf-8")
    for kind, file in FED_FILES.items():
        # Three of each dialogue, one dialogue after the other; of the one kind, one of each dialogue after the other.
        order = [0, 1] * 3 if kind == "repeats itself" else [0] * 3 + [1] * 3
        write_rows(folder / file, [[f"human: {kind} of {dialogue}", f"chatbot: try {n}"] for n, dialogue in enumerate(order)])
    for file, last in zip(DECODE_FILES, ("I like tea.", "I hate tea."), strict=True):
        write_rows(folder / file, [["human: Hi.", f"chatbot: {last}"]])
    found = pairs.dialogue_pairs()
    assert Counter(pair.kind for pair in found) == {**dict.fromkeys(FED_FILES, 2), DECODE: 1}
    read = {(pair.kind, pair.id): [turns(pair.better), turns(pair.worse)] for pair in found}
    assert read["boring", "fed 0"] == [["Hi.", "Tea?"], ["boring of 0", "try 0"]]
    assert read["boring", "fed 1"] == [["Rain?", "No."], ["boring of 1", "try 3"]]
    assert read["repeats itself", "fed 1"] == [["Rain?", "No."], ["repeats itself of 1", "try 1"]]
    assert read[DECODE, "decode 0"] == [["Hi.", "I like tea."], ["Hi.", "I hate tea."]]


def turns(item: object) -> list[str]:
    assert isinstance(item, Dialogue)
    assert {turn.speaker for turn in item.turns} == {None}
    return [turn.text for turn in item.turns]


def test_a_table_names_the_kinds_that_fall_short() -> None:
    def ordered(n_right: int) -> list[OrderedPair]:
        return [OrderedPair(str(n), kind, kind == "dull" or n < n_right) for kind in ("dull", "short") for n in range(10)]

    assert write.table({"one": ordered(9), "other": ordered(8)}).notes == ["Below 0.9, one: none.", "Below 0.9, other: short."]


def test_the_summary_has_a_row_a_kind_and_one_a_set_and_no_figure_of_a_model_that_did_not_order_a_set() -> None:
    def ordered(*kinds: str) -> list[OrderedPair]:
        return [OrderedPair(str(n), kind, n < 1) for kind in kinds for n in range(2)]

    by_hand = write.table({"one": ordered("dull", "short"), "other": ordered("dull", "short")})
    tables = {"by hand": by_hand, "long": write.table({"one": ordered("dull", "cut")})}
    assert [[kind, pairs, bool(one), bool(other)] for kind, pairs, one, other in write.summary(tables).cells()[1]] == [
        ["dull", "2", True, True],
        ["short", "2", True, True],
        ["long", "4", True, False],
    ]


def test_the_page_of_results_shows_figures_of_the_tables() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    (head, *by_hand), *others = (lines(document, name) for name in SETS)
    rows = [dict(zip(head, row, strict=True)) for row in by_hand[:-1]]
    rows += [{**dict(zip(of[0], of[-1], strict=True)), "worse by": name} for name, of in zip(SETS[1:], others, strict=True)]
    table = markdown_table(head, [[row.get(name, "") for name in head] for row in rows], [name != "worse by" for name in head])
    written = with_tables(PAGE, {"contrasts": table})
    assert {path: path.read_text(encoding="utf-8") for path in written} == written


def test_the_baseline_compares_with_the_last_turn() -> None:
    sets = [one for one in read_contrasts(RESPONSES) if len(one.context) > 1][:5]
    ordered = write.ordered_by_cosine([pair for pair in pairs_of(sets) if pair.kind == "copied"])
    assert [pair.is_right for pair in ordered] == [False] * 5


def test_the_document_shows_what_stands_in_the_file() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    (shown,) = (one for one in read_contrasts(RESPONSES) if one.id == SHOWN)
    assert all(turn in text for turn in (*shown.context, shown.fitting))
    assert shown.worse["repeated"] == f"{shown.fitting} {shown.fitting}"
    kinds = {row[0]: row[2] for row in rows_between(text, "| kind | what it is | here |", "<!-- written by hand -->")}
    assert kinds == {**shown.worse, "repeated": "the fitting response twice"}
    kinds_of_turns = rows_between(text, "| kind | what the worse response is |", "The rules are imprecise")
    assert [row[0] for row in kinds_of_turns] == list(TURN_FILES)


@pytest.mark.exhaustive
@pytest.mark.real_data
def test_the_tables_are_what_the_models_give(data_dir: Path) -> None:
    """Both tables of responses written here; of the published ones the baseline, which costs least, and how many there are."""
    document = DOCUMENT.read_text(encoding="utf-8")
    sets = write.pair_sets()
    for name in ("written by hand", "long responses"):
        assert lines(document, name) == rendered(write.ordered_by_all(sets[name]))
    baseline = rendered({COSINE: write.ordered_by_cosine(sets["perturbed responses"].pairs)})
    assert [[*line[:2], line[-1]] for line in lines(document, "perturbed responses")] == baseline
    assert counts(sets["perturbed dialogues"]) == {
        kind: int(n) for kind, n, *_ in lines(document, "perturbed dialogues")[1:] if kind != "all"
    }


def counts(of: PairSet) -> Mapping[str, int]:
    return Counter(pair.kind for pair in of.pairs)


def rendered(ordered: Mapping[str, Sequence[OrderedPair]]) -> list[list[str]]:
    return cells(write.table(ordered).render("markdown"))


def lines(document: str, name: str) -> list[list[str]]:
    return cells(document.partition(f"<!-- {name} -->")[2].partition(f"<!-- end of {name} -->")[0])


def rows_between(document: str, start: str, end: str) -> list[list[str]]:
    return cells(document.partition(start)[2].partition(end)[0])


def cells(markdown: str) -> list[list[str]]:
    """The rows of a table in Markdown, its rule left out."""
    rows = [line[2:-2].split(" | ") for line in markdown.splitlines() if line.startswith("| ")]
    return [row for row in rows if not row[0].startswith("---")]
