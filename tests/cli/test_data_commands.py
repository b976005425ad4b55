"""`dialeval data`: what is known, fetched, left to get by hand, and what leaks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora import corpus, mini, registry
from dialeval_plugin.corpora.corpus import Corpus, DownloadResult, ManualDownload, Publication
from tests.cli.running import run, write_rows

MEAL = ["Did your meal meet with your approval ?", "Our meal was absolutely perfect !"]
KEYS = ["Where do you keep the spare keys now?", "Under the old flower pot."]
GREETING = ["Hi!", "How are you?"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DIALEVAL_DATA_DIR", raising=False)
    monkeypatch.setattr(corpus, "user_cache", lambda: tmp_path)
    return tmp_path


def test_list_says_where_each_corpus_is_and_how_to_get_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Publication(
        "here", "Toys", None, None, ("https://example.org/toys",), "not stated", (), (ManualDownload("a.json", "Ask."),)
    )
    gone = Publication("gone", "More toys", None, None, (), "MIT")
    monkeypatch.setattr(corpus, "publications", lambda: {"here": here, "gone": gone})
    known = {name: Corpus(name=name, layout="") for name in ("here", "gone")}
    monkeypatch.setattr(registry, "CORPORA", known)
    (cache / "here").mkdir()
    result = run("data", "list")
    assert result.exit_code == 0
    assert result.output == (
        f"here\n    Toys\n    present: {cache / 'here'}\n    missing: a.json\n    licence: not stated\n"
        "    source:  https://example.org/toys\n"
        "gone\n    More toys\n    present: no (dialeval data fetch gone)\n    licence: MIT\n"
        "    source:  part of this package\n"
    )


def test_list_knows_the_embedded_corpus(cache: Path) -> None:
    assert f"    present: {mini.folder()}\n    licence: " in run("data", "list").output


def test_list_names_what_a_partial_corpus_lacks(cache: Path) -> None:
    for file in registry.CORPORA["dailydialog_pp"].published.files:
        path = cache / "dailydialog_pp" / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    output = run("data", "list").output
    assert f"    present: {cache / 'dailydialog_pp'}\n    missing: train.json, test.json\n" in output
    assert "    present: no (dialeval data fetch dstc10)\n" in output


def test_fetch_says_what_is_left_to_get_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Corpus, "fetch", lambda self: DownloadResult(tmp_path, ("b.json",), (ManualDownload("a.json", "Ask."),))
    )
    monkeypatch.setattr(registry, "CORPORA", {"toys": Corpus(name="toys", layout="")})
    result = run("data", "fetch", "toys")
    assert result.exit_code == 0
    by_hand = f"by hand: {tmp_path / 'a.json'}\n  Ask.\n"
    assert result.output == f"toys: 1 files fetched and checked; they are in {tmp_path}\n{by_hand}"


def test_fetch_of_an_unknown_corpus_is_an_input_error(cache: Path) -> None:
    with pytest.raises(InputError):
        run("data", "fetch", "dstc11")


def test_leaks_are_counted_shown_and_exit_with_1(tmp_path: Path) -> None:
    training = write_rows(tmp_path / "train.jsonl", [{"turns": turns} for turns in (MEAL, ["So"], [*MEAL, *KEYS], KEYS)])
    clean = write_rows(tmp_path / "b.jsonl", [{"turns": GREETING}])
    rows = [{"id": f"m{number}", "context": MEAL, "response": f"{number}"} for number in range(2)]
    rows.append({"id": "k", "context": [KEYS[0].upper()], "response": KEYS[1]})
    rows.append({"id": "short", "context": GREETING[:1], "response": GREETING[1]})
    rated = write_rows(tmp_path / "r.jsonl", rows)
    coffee = {"context": ["Tea?"], "response": "No, I would rather have a cup of coffee."}
    other = write_rows(tmp_path / "other.jsonl", [coffee])
    done = run("data", "leaks", training, clean, "--against", rated, "--against", other, "--show", 1)
    head = f"{'file':{len(str(training))}}"
    assert done.output == (
        f"reported dialogues in {rated}: 3, too short to be told by context and reference: 2\n"
        f"reported dialogues in {other}: 1, too short to be told by context and reference: 1\n"
        "\n"
        "training dialogues with a reported one in them / reported dialogues found\n"
        f"{head}  dialogues  {rated}  {other}\n"
        f"{training}          4{'3/2':>{len(str(rated)) + 2}}{'0':>{len(str(other)) + 2}}\n"
        f"{clean!s:{len(str(training))}}          1{'0':>{len(str(rated)) + 2}}{'0':>{len(str(other)) + 2}}\n"
        "\n"
        f"{training}: train_00000 has {rated} m0: {MEAL[0]} | {MEAL[1]}\n"
        "3 of 5 training dialogues have a reported dialogue in them\n"
    )
    assert done.exit_code == 1


def test_no_leak_exits_with_0_and_absent_sets_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    (tmp_path / "dstc10").mkdir()
    row = {"model": "m", "context": "\n".join(MEAL), "response": "Ho.", "annotations": {"overall": [3]}}
    (tmp_path / "dstc10" / "dailydialog-gupta_eval.json").write_text(json.dumps([row]), encoding="utf-8")
    training = write_rows(tmp_path / "train.jsonl", [{"turns": GREETING}])
    done = run("data", "leaks", training, "--against", "dstc10")
    assert done.exit_code == 0
    assert done.output == (
        "reported dialogues in dgu: 1\n"
        "not on this machine, so not looked for: tu, pu, dz, pz, dgr, eg, cg, ft, fd, d6, d7, hu, ps\n"
        "\n"
        "training dialogues with a reported one in them / reported dialogues found\n"
        f"{'file':{len(str(training))}}  dialogues      dgu\n"
        f"{training}          1        0\n"
        "\n"
        "0 of 1 training dialogues have a reported dialogue in them\n"
    )
