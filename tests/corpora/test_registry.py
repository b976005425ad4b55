"""Every corpus that a reader declares is known everywhere, and its sets are read by name or by file, whatever their layout."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dialeval_plugin.cli.data import app
from dialeval_plugin.conversations.record import ReadingOptions
from dialeval_plugin.core.dialogue import Dialogue, Example
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.corpora import mini, verdicts
from dialeval_plugin.corpora.corpus import Corpus, publications
from dialeval_plugin.corpora.registry import CORPORA, SETS, describe_set, identify, read_dialogues, read_items, read_reported
from dialeval_plugin.corpora.scored_input import Source
from tests import layouts
from tests.layouts import convai1_rows, convai2_rows, fed_rows, write
from tests.refusals import refusal

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "corpora.md"
NAMED = [name for corpus in CORPORA.values() for name in ([corpus.name] if len(corpus.sets) > 1 else []) + list(corpus.sets)]
NO_TASK = {"usr", "conture"}
"""Rated corpora that a task has under another name, as a set of DSTC10, or not at all."""


def row(corpus: Corpus) -> str:
    """The corpus' row in the table of rated or of plain corpora; DSTC10's sets have qualities of their own."""
    if not corpus.qualities or len(corpus.sets) > 1:
        return f"`{corpus.name}` is a {corpus.layout}" if corpus.sets else f"| {corpus.name} | {corpus.layout} |"
    levels = " ".join(f"{level}: {', '.join(names)}." for level, names in corpus.qualities.items())
    return f"| {corpus.name} | {corpus.layout} | {levels} | {', '.join(dict.fromkeys(corpus.overall.values()))} |"


def test_every_corpus_has_a_publication_and_the_other_way_round() -> None:
    assert set(publications()) == set(CORPORA)
    assert {name for corpus in CORPORA.values() for name in corpus.sets} == set(SETS)


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus_is_complete_and_known_everywhere(name: str) -> None:
    corpus = CORPORA[name]
    assert corpus.published.title
    assert corpus.published.licence
    assert corpus.published.citation or corpus.packaged is not None
    assert corpus.read_items or corpus.read_dialogues or corpus.qualities or corpus is verdicts.CORPUS
    assert all(quality in corpus.qualities[level] for level, quality in corpus.overall.items())
    assert f"{name}\n    {corpus.published.title}\n" in CliRunner().invoke(app, ["list"]).output
    assert row(corpus) in " ".join(DOCUMENT.read_text(encoding="utf-8").split("\n"))
    if corpus.qualities and name not in NO_TASK:
        stem = re.sub(r"\d$|_.*$", "", name)
        assert [path for path in tasks_path().rglob("*.yaml") if stem in path.name]


@pytest.mark.real_data
@pytest.mark.parametrize("name", [name for name, corpus in CORPORA.items() if corpus.read_items or corpus.read_dialogues])
def test_every_published_file_is_told_to_be_of_its_corpus_and_read(name: str, data_dir: Path) -> None:
    corpus = CORPORA[name]
    paths = [path for place in corpus.published.paths if (path := data_dir / name / place).is_file()]
    files = [path for path in paths if identify(path) is corpus]
    # Beside the data some publish numbers of evaluators, which `score_files` reads, or hold ratings in a layout of their own.
    others = {path.name for path in paths} - {path.name for path in files}
    assert others <= {"topical_scores.csv", "ret_human_scores.csv"} | {
        path.name for path in paths if "predictions" in path.parts
    }
    assert files
    for path in files[:2]:
        if corpus.read_items is not None:
            assert read_items(path)
        if corpus.read_dialogues is not None:
            assert all(isinstance(dialogue, Dialogue) and not dialogue.ratings for dialogue in read_dialogues(path))


def test_a_file_is_told_by_its_layout(tmp_path: Path) -> None:
    files = {
        "dstc10": ([layouts.RESPONSE], {Example}),
        "fed": (fed_rows(1), {Example, Dialogue}),
        "conture": ([layouts.CONTURE], {Dialogue}),
        "convai1": (convai1_rows(2), {Dialogue}),
        "convai2": (convai2_rows(2), {Dialogue}),
        "ours": (['{"context": ["Hi."], "response": "Ho."}'], {Example}),
    }
    paths = {name: str(write(tmp_path / f"{name}.json", *rows)) for name, (rows, _) in files.items()}
    sets, absent = read_reported(paths.values())
    assert absent == ()
    kinds = {name: set(map(type, sets[path])) for name, path in paths.items()}
    assert kinds == {name: expected for name, (_, expected) in files.items()}


def test_sets_by_code_by_name_and_all_that_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    write(tmp_path / "dstc10" / "dailydialog-gupta_eval.json", layouts.RESPONSE)
    assert read_reported(["dailydialog-gupta"]) == read_reported(["dgu"])
    everything = read_reported(["dstc10"])
    assert everything.sets == read_reported(["dgu"]).sets
    assert read_reported(["mini"]).sets == {"mini": mini.read_examples("test")}
    assert everything.absent == ("tu", "pu", "dz", "pz", "dgr", "eg", "cg", "ft", "fd", "d6", "d7", "hu", "ps")


def test_what_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    (tmp_path / "dstc10").mkdir()
    assert refusal(read_reported, ["dstc10"], error=MissingPrerequisite) == (
        "dstc10: none of its sets (tu, pu, dz, pz, dgu, dgr, eg, cg, ft, fd, d6, d7, hu, ps) is on this machine. "
        "Type `dialeval data fetch dstc10`."
    )
    assert refusal(read_reported, ["dgx"]) == (
        f"dgx: there is no such file, and no set of this name. Did you mean 'dgu'? Known are: {', '.join(NAMED)}."
    )


@pytest.mark.real_data
def test_the_published_sets_are_read_by_name(data_dir: Path) -> None:
    sets, absent = read_reported(["dstc10", "fed", "usr", "conture", "convai1", "convai2"])
    sizes = {name: len(items) for name, items in sets.items()}
    expected = {"fed": 500, "usr": 660, "conture": 119, "convai1": 2778, "convai2": 3005}
    assert {name: sizes[name] for name in expected} == expected
    assert set(absent) >= {"d6", "hu", "ps"}


def test_sets_have_names_sentences_and_addresses() -> None:
    found = describe_set("persona-usr")
    assert (found.title, found.url) == ("PersonaChat (USR)", "https://aclanthology.org/2020.acl-main.64/")
    assert found.about.endswith("(Mehri and Eskenazi 2020).")
    assert describe_set("conture").url == "https://github.com/alexa/conture"
    mini = describe_set("mini")
    assert (mini.title, mini.url) == ("mini", "")
    assert mini.about.startswith("Contexts written for this project")
    assert describe_set("fed").about.startswith("Rated responses and whole dialogues")


@pytest.mark.parametrize(
    ("name", "given"), [("turns", {"choice": "all"}), ("branches", {"branches": "all"}), ("order", {"order": "time"}),
                        ("keep", {"keep": ("model",)})],
)  # fmt: skip
def test_options_of_logs_are_refused_for_a_published_file(name: str, given: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path / "usr.json", layouts.USR)
    assert refusal(Source(str(path), ReadingOptions(**given)).read, "turn") == (
        f"{path}: is of the corpus usr, which says what is scored. Leave --{name} out."
    )
