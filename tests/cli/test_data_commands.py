from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dialeval_plugin.cli.data import app
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora import corpus, mini, registry
from dialeval_plugin.corpora.corpus import ByHand, Corpus, Fetched, Publication


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DIALEVAL_DATA_DIR", raising=False)
    monkeypatch.setattr(corpus, "cache_folder", lambda: tmp_path)
    return tmp_path


def test_list_says_where_each_corpus_is_and_how_to_get_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Publication("here", "Toys", None, None, ("https://example.org/toys",), "not stated", (), (ByHand("a.json", "Ask."),))
    gone = Publication("gone", "More toys", None, None, (), "MIT")
    monkeypatch.setattr(corpus, "publications", lambda: {"here": here, "gone": gone})
    known = {name: Corpus(name=name, layout="") for name in ("here", "gone")}
    monkeypatch.setattr(registry, "CORPORA", known)
    (cache / "here").mkdir()
    result = CliRunner().invoke(app, ["list"])
    assert result.exit_code == 0
    assert result.output == (
        f"here: Toys\n  present: {cache / 'here'}\n  missing: a.json\n  licence: not stated\n  source:  https://example.org/toys\n"
        "gone: More toys\n  present: no (dialeval data fetch gone)\n  licence: MIT\n  source:  part of this package\n"
    )


def test_list_knows_the_embedded_corpus(cache: Path) -> None:
    assert f"  present: {mini.folder()}\n  licence: " in CliRunner().invoke(app, ["list"]).output


def test_list_names_what_a_partial_corpus_lacks(cache: Path) -> None:
    for file in registry.CORPORA["dailydialog_pp"].published.files:
        path = cache / "dailydialog_pp" / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    output = CliRunner().invoke(app, ["list"]).output
    assert f"  present: {cache / 'dailydialog_pp'}\n  missing: train.json, test.json\n" in output
    assert "  present: no (dialeval data fetch dstc10)\n" in output


def test_fetch_says_what_is_left_to_get_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Corpus, "fetch", lambda self: Fetched(tmp_path, ("b.json",), (ByHand("a.json", "Ask."),)))
    monkeypatch.setattr(registry, "CORPORA", {"toys": Corpus(name="toys", layout="")})
    result = CliRunner().invoke(app, ["fetch", "toys"])
    assert result.exit_code == 0
    by_hand = f"by hand: {tmp_path / 'a.json'}\n  Ask.\n"
    assert result.output == f"toys: 1 files fetched and checked; they are in {tmp_path}\n{by_hand}"


def test_fetch_of_an_unknown_corpus_is_an_input_error(cache: Path) -> None:
    result = CliRunner().invoke(app, ["fetch", "dstc11"])
    assert isinstance(result.exception, InputError)
