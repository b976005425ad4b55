"""Every corpus that a reader declares is known everywhere: to the sniffer, the catalogue, the documents and the tasks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dialeval_plugin.cli.data import app
from dialeval_plugin.core.dialogue import Dialogue
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.corpora.corpus import Corpus, publications
from dialeval_plugin.corpora.registry import CORPORA, SETS, identify, read_dialogues, read_items

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "corpora.md"
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
    assert corpus.read_items or corpus.read_dialogues or corpus.qualities
    assert all(quality in corpus.qualities[level] for level, quality in corpus.overall.items())
    assert f"{name}: {corpus.published.title}\n" in CliRunner().invoke(app, ["list"]).output
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
