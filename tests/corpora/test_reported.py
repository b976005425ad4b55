"""The sets that are reported on are read by name or by file, whichever layout they have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.registry import read_reported
from tests.convai_files import convai1_rows, convai2_rows
from tests.fed_files import fed_rows

DSTC10 = {"dialogue_id": "a", "model": "m", "context": "Hi.", "response": "Ho.", "annotations": {"overall": [3]}}
CONTURE = {
    "dialog_id": 1,
    "turns": [{"user": "User: Hi.", "chatbot": "Chatbot: Ho.", "overall impression": 1}],
    "dialog_ratings": [{"coherent": 3}],
}


def write(path: Path, value: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


def test_a_file_is_told_by_its_layout(tmp_path: Path) -> None:
    files = {
        "dstc10": write(tmp_path / "dstc10.json", [DSTC10]),
        "fed": write(tmp_path / "fed.json", fed_rows(1)),
        "conture": write(tmp_path / "conture.json", [CONTURE]),
        "convai1": write(tmp_path / "convai1.json", convai1_rows(2)),
        "convai2": write(tmp_path / "convai2.json", convai2_rows(2)),
        "ours": write(tmp_path / "ours.jsonl", {"context": ["Hi."], "response": "Ho."}),
    }
    sets, absent = read_reported(files.values())
    kinds = {name: [type(item) for item in sets[path]] for name, path in files.items()}
    assert absent == ()
    assert {name: set(found) for name, found in kinds.items()} == {
        "dstc10": {Example},
        "fed": {Example, Dialogue},
        "conture": {Dialogue},
        "convai1": {Dialogue},
        "convai2": {Dialogue},
        "ours": {Example},
    }


def test_sets_of_dstc10_by_code_by_name_and_all_that_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    write(tmp_path / "dstc10" / "dailydialog-gupta_eval.json", [DSTC10])
    assert read_reported(["dailydialog-gupta"]) == read_reported(["dgu"])
    everything = read_reported(["dstc10"])
    assert everything.sets == read_reported(["dgu"]).sets
    assert everything.absent == ("tu", "pu", "dz", "pz", "dgr", "eg", "cg", "ft", "fd", "d6", "d7", "hu", "ps")


def test_mini_is_always_there() -> None:
    assert read_reported(["mini"]).sets == {"mini": mini.read_examples("test")}


def test_what_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    (tmp_path / "dstc10").mkdir()
    with pytest.raises(MissingPrerequisite) as missing:
        read_reported(["dstc10"])
    assert str(missing.value) == (
        "dstc10: none of its sets (tu, pu, dz, pz, dgu, dgr, eg, cg, ft, fd, d6, d7, hu, ps) is on this machine. "
        "Type `dialeval data fetch dstc10`."
    )
    with pytest.raises(InputError) as unknown:
        read_reported(["dgx"])
    assert str(unknown.value) == (
        "dgx: there is no such file, and no set of this name. Named sets are: conture, convai1, convai2, dstc10, tu, pu, dz, "
        "pz, dgu, dgr, eg, cg, ft, fd, d6, d7, hu, ps, fed, usr, mini."
    )


@pytest.mark.real_data
def test_the_published_sets_are_read_by_name(data_dir: Path) -> None:
    sets, absent = read_reported(["dstc10", "fed", "usr", "conture", "convai1", "convai2"])
    sizes = {name: len(items) for name, items in sets.items()}
    assert {name: sizes[name] for name in ("fed", "usr", "conture", "convai1", "convai2")} == {
        "fed": 500,
        "usr": 660,
        "conture": 119,
        "convai1": 2778,
        "convai2": 3005,
    }
    assert set(absent) >= {"d6", "hu", "ps"}
