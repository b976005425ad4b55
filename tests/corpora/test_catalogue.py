"""Where corpora lie, what is fetched of them, and what is said where they are not there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.corpora import corpus, mini
from dialeval_plugin.corpora.corpus import Corpus, DownloadResult, ManualDownload, Publication, RemoteFile, publications
from dialeval_plugin.corpora.readers import conture, convai, dbdc, fed, usr
from dialeval_plugin.corpora.registry import CORPORA, find_corpus
from tests.loopback import serving_files
from tests.refusals import refused

CONTENT = b'[{"a": 1}]\n'
SHA256 = hashlib.sha256(CONTENT).hexdigest()
DSTC10 = CORPORA["dstc10"]


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of a file on a server on this machine, which has no other."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    served = tmp_path / "served"
    served.mkdir()
    (served / "set one.json").write_bytes(CONTENT)
    with serving_files(served) as running:
        yield f"{running}/set%20one.json"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DIALEVAL_DATA_DIR", raising=False)
    monkeypatch.setattr(corpus, "user_cache", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "toys"


def toys(*files: RemoteFile, by_hand: tuple[ManualDownload, ...] = ()) -> Publication:
    return Publication("toys", "Toys", None, None, (), "not stated", files, by_hand)


def remote(url: str, sha256: str = SHA256, path: str = "one.json") -> RemoteFile:
    return RemoteFile(path, url, sha256)


def test_download_checks_each_file_and_says_what_is_left_to_get_by_hand(url: str, folder: Path) -> None:
    left = ManualDownload("two.json", "Ask.")
    published = toys(
        remote(url), remote(url, path="inner/again.json"), by_hand=(left, ManualDownload("one.json", "Here already."))
    )
    assert published.download(folder) == DownloadResult(folder, ("one.json", "inner/again.json"), (left,))
    assert (folder / "one.json").read_bytes() == (folder / "inner" / "again.json").read_bytes() == CONTENT


def test_what_is_complete_is_not_downloaded_again_and_what_is_damaged_is(url: str, folder: Path) -> None:
    toys(remote(url)).download(folder)
    assert toys(remote("http://127.0.0.1:1/gone")).download(folder).files == ("one.json",)
    (folder / "one.json").write_bytes(CONTENT[:-3])
    toys(remote(url)).download(folder)
    assert (folder / "one.json").read_bytes() == CONTENT


@pytest.mark.parametrize("path", ["one.json", "inner/one.json"])
def test_wrong_checksum_leaves_nothing_behind(url: str, cache: Path, path: str) -> None:
    message = (
        f"{url}: the file has another SHA-256 than the catalogue's {'0' * 64}, so it was not kept. "
        "Try again; if it happens again, the publisher has changed the file."
    )
    with refused(message, MissingPrerequisite):
        toys(remote(url, "0" * 64, path)).download(cache / "toys")
    assert list(cache.iterdir()) == []


def test_wrong_checksum_keeps_what_was_fetched_before(url: str, folder: Path) -> None:
    with pytest.raises(MissingPrerequisite):
        toys(remote(url), remote(url, "0" * 64, "two.json")).download(folder)
    assert [entry.name for entry in folder.iterdir()] == ["one.json"]


def test_file_that_is_not_there_leaves_nothing_behind(url: str, folder: Path) -> None:
    url = url.replace("set%20one", "gone")
    message = (
        f"{url}: cannot be downloaded (HTTPError: 404 Client Error: File not found for url: {url}). "
        f"Check the connection, or get the file another way and put it at {folder / 'one.json'}."
    )
    with refused(message, MissingPrerequisite):
        toys(remote(url)).download(folder)
    assert not folder.exists()


def test_a_corpus_is_fetched_into_the_cache_and_found_there(url: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"toys": toys(remote(url))}
    monkeypatch.setattr(corpus, "publications", lambda: known)
    of_toys = Corpus(name="toys", layout="")
    assert of_toys.fetch().folder == cache / "toys" == of_toys.folder()


def test_the_variable_comes_before_the_cache_and_nothing_is_fetched_then(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / "dstc10").mkdir(parents=True)
    assert DSTC10.folder() == cache / "dstc10"
    (tmp_path / "data" / "dstc10").mkdir(parents=True)
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path / "data"))
    assert DSTC10.folder() == tmp_path / "data" / "dstc10"
    message = (
        f"DIALEVAL_DATA_DIR: is set to {str(tmp_path / 'data')!r}, so corpora are read from there and not from the cache. "
        "Unset it before you fetch."
    )
    with refused(message):
        DSTC10.fetch()


def test_corpus_that_is_not_there_says_what_to_type(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = (
        f"corpus 'dstc10': is not in the cache ({cache / 'dstc10'}). "
        "Type `dialeval data fetch dstc10`, or set DIALEVAL_DATA_DIR to a folder that has it as 'dstc10'."
    )
    with refused(message, MissingPrerequisite):
        DSTC10.folder()
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    message = (
        f"corpus 'dstc10': DIALEVAL_DATA_DIR is {str(tmp_path)!r}, which has no folder 'dstc10'. "
        "Put the corpus there, or unset the variable to use the cache."
    )
    with refused(message, MissingPrerequisite):
        DSTC10.folder()


@pytest.mark.parametrize(
    ("name", "file", "read"),
    [
        ("conture", "data.json", conture.read),
        ("fed", "fed_data.json", fed.read),
        ("dbdc3", "DBDC3.zip", lambda: dbdc.read("yi")),
        ("usr", "usr_topical_chat.json", lambda: usr.read_examples("topical_chat")),
        ("convai1", convai.CONVAI1_FILES[0], convai.read_convai1),
        ("convai2", convai.CONVAI2_FILES[0], convai.read_convai2),
    ],
)
def test_a_folder_without_the_file_is_named(
    name: str, file: str, read: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    (tmp_path / name).mkdir()
    with refused(f"{tmp_path / name}: has no {file}. Type `dialeval data fetch {name}`.", MissingPrerequisite):
        read()


def test_mini_is_always_there(cache: Path) -> None:
    assert find_corpus("mini").folder() == mini.folder()
    assert find_corpus("mini").fetch() == DownloadResult(mini.folder(), (), ())


def test_unknown_corpus_lists_the_known_ones() -> None:
    with refused(f"there is no corpus 'dstc11'. Did you mean 'dstc10'? Known are: {', '.join(CORPORA)}."):
        find_corpus("dstc11")


def test_catalogue_entries_are_complete() -> None:
    for entry in publications().values():
        assert len(set(entry.paths)) == len(entry.paths)
        for file in entry.files:
            assert re.fullmatch(r"https://raw\.githubusercontent\.com/[\w.-]+/[\w.-]+/[0-9a-f]{40}/[\w./%()+-]+", file.url)
            assert re.fullmatch("[0-9a-f]{64}", file.sha256)


@pytest.mark.real_data
def test_catalogue_agrees_with_the_files(data_dir: Path) -> None:
    for entry in publications().values():
        for file in entry.files:
            content = (data_dir / entry.name / file.path).read_bytes()
            assert hashlib.sha256(content).hexdigest() == file.sha256
