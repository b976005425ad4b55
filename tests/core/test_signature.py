"""FAULTS R24 (same bytes in every process) and R60 (whatever moves a number is another identity)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dialeval_plugin.core.signature import Signature, content_hash, text_hash

FIELDS = {"method": "slide", "seed": 3, "window": None, "scale": 0.5, "clip": True}


def test_the_string_has_the_fields_in_order_without_those_that_are_none() -> None:
    assert str(Signature(FIELDS)) == "method:slide|seed:3|scale:0.5|clip:True"


def test_a_signature_does_not_follow_the_dictionary_it_came_from() -> None:
    fields: dict[str, str | int | float | bool | None] = {"method": "slide"}
    signature = Signature(fields)
    fields["method"] = "other"
    assert str(signature) == "method:slide"
    with pytest.raises(TypeError):
        signature.fields["method"] = "other"  # type: ignore[index]


@given(st.sampled_from(["method", "seed", "scale", "clip"]), st.integers() | st.booleans() | st.none())
def test_any_other_value_gives_another_digest(name: str, value: int | bool | None) -> None:
    assume(str(value) != str(FIELDS[name]))
    assert Signature({**FIELDS, name: value}).digest != Signature(FIELDS).digest


def test_processes_agree_on_digest_and_run_whatever_their_hash_seed() -> None:
    code = (
        "from dialeval_plugin.core.signature import Signature, text_hash\n"
        "from reproduction.kept_results import run_id\n"
        "from dialeval_plugin.core.dialogue import Example\n"
        "from tests.core.test_scoring import Length\n"
        f"print(Signature({FIELDS!r}).digest, text_hash('a', 'b'))\n"
        "print(run_id(Length(), [Example.from_texts(['Hi.'], 'Hello.', facts=['tea', 'rain'])]))\n"
    )
    said = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
        said.add(
            subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        )
    assert len(said) == 1
    assert said.pop().split()[:2] == [Signature(FIELDS).digest, text_hash("a", "b")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {"config.json": b"{}", "vocab.txt": b"a\nb\n", "pooling/config.json": b'{"n": 1}', "merges": b"a b"}
    files |= {"model.safetensors": b"\x00\x01", "sentencepiece.model": b"\x02", "pytorch_model.bin": b"\x03\x04"}
    model = tmp_path / "model"
    (model / "pooling").mkdir(parents=True)
    for name, content in {**files, "chat_template.jinja": b"{{ messages }}"}.items():
        (model / name).write_bytes(content)
    return model


def test_the_content_hash_does_not_depend_on_where_the_folder_lies(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "elsewhere" / "copy")
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert content_hash(copy) == content_hash(folder) == content_hash(link)
    assert len(content_hash(folder)) == 16


def test_one_byte_of_any_file_changes_the_content_hash(folder: Path) -> None:
    """FAULTS D2: pytorch_model.bin, chat_template.jinja and merges did not count."""
    seen = [content_hash(folder)]
    for path in filter(Path.is_file, folder.rglob("*")):
        path.write_bytes(path.read_bytes()[:-1] + b"#")
        seen.append(content_hash(folder))
    assert len(set(seen)) == len(seen) == 1 + 8


def test_a_renamed_moved_added_or_removed_file_changes_the_content_hash(folder: Path) -> None:
    words, moved = folder / "words.txt", folder / "pooling" / "words.txt"
    seen = [content_hash(folder)]
    for change in (
        lambda: (folder / "vocab.txt").rename(words),
        lambda: words.rename(moved),
        (folder / "empty.json").touch,
        moved.unlink,
    ):
        change()
        seen.append(content_hash(folder))
    assert len(set(seen)) == len(seen)


def test_bytes_moved_from_one_file_to_the_next_change_the_content_hash(tmp_path: Path) -> None:
    for name, first, second in (("one", "ab", "c"), ("two", "a", "bc")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(first)
        (tmp_path / name / "b.txt").write_text(second)
    assert content_hash(tmp_path / "one") != content_hash(tmp_path / "two")


@pytest.mark.parametrize(
    "name", ["README.md", ".gitattributes", ".cache/huggingface/download/model.lock", ".training/run.json"]
)
def test_a_readme_and_hidden_files_are_no_part_of_the_model(folder: Path, name: str) -> None:
    """FAULTS D2: what a download or an unfinished training leaves behind moves no number."""
    before = content_hash(folder)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("x")
    assert content_hash(folder) == before


def test_a_file_that_has_not_changed_is_read_once_a_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = folder / "model.safetensors"
    opened: list[Path] = []
    original = Path.open

    def counted(self: Path, *arguments: Any, **options: Any) -> Any:
        opened.append(self)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", counted)
    monkeypatch.setattr("dialeval_plugin.core.signature.time.time_ns", lambda: weights.stat().st_ctime_ns + 10**10)
    first = content_hash(folder)
    n_opened = len(opened)
    assert n_opened == 8
    assert content_hash(folder) == first
    assert len(opened) == n_opened
    weights.write_bytes(b"\x00\x01\x02")
    opened.clear()
    assert content_hash(folder) != first
    assert opened == [weights.resolve()]


def test_a_file_that_was_just_written_is_read_again(folder: Path) -> None:
    """A file system's clock ticks some milliseconds, in which a file may change twice."""
    weights = folder / "model.safetensors"
    seen = set()
    for byte in range(50):
        weights.write_bytes(bytes([byte, 1]))
        seen.add(content_hash(folder))
    assert len(seen) == 50


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_different_texts_have_different_hashes(first: list[str], second: list[str]) -> None:
    assert (text_hash(*first) == text_hash(*second)) == (first == second)
