from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.corpora import catalogue, corpus, mini
from dialeval_plugin.corpora.catalogue import Fetched, download, fetch, locate, status
from dialeval_plugin.corpora.corpus import ByHand, Corpus, Publication, RemoteFile, publications
from dialeval_plugin.corpora.registry import CORPORA

CONTENT = b'[{"a": 1}]\n'
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of a server on this machine that has the one file `set one.json`."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    served = tmp_path / "served"
    served.mkdir()
    (served / "set one.json").write_bytes(CONTENT)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(served))) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DIALEVAL_DATA_DIR", raising=False)
    folder = tmp_path / "cache"
    for module in (catalogue, corpus):
        monkeypatch.setattr(module, "cache_folder", lambda: folder)
    return folder


def toys(*files: RemoteFile, by_hand: tuple[ByHand, ...] = ()) -> Publication:
    return Publication("toys", "Toys", None, None, (), "not stated", files, by_hand)


def remote(url: str, sha256: str = SHA256, path: str = "one.json") -> RemoteFile:
    return RemoteFile(path, url, sha256)


def error(text: object) -> str:
    return f"^{re.escape(str(text))}$"


def test_download_checks_each_file_and_says_what_is_left_to_get_by_hand(server: str, tmp_path: Path) -> None:
    folder = tmp_path / "toys"
    left = ByHand("two.json", "Ask.")
    published = toys(
        remote(f"{server}/set%20one.json"),
        remote(f"{server}/set%20one.json", path="inner/again.json"),
        by_hand=(left, ByHand("one.json", "Here already.")),
    )
    assert download(published, folder) == Fetched(folder, ("one.json", "inner/again.json"), (left,))
    assert (folder / "one.json").read_bytes() == (folder / "inner" / "again.json").read_bytes() == CONTENT


def test_what_is_complete_is_not_downloaded_again_and_what_is_damaged_is(server: str, tmp_path: Path) -> None:
    folder = tmp_path / "toys"
    download(toys(remote(f"{server}/set%20one.json")), folder)
    assert download(toys(remote("http://127.0.0.1:1/gone")), folder).files == ("one.json",)
    (folder / "one.json").write_bytes(CONTENT[:-3])
    download(toys(remote(f"{server}/set%20one.json")), folder)
    assert (folder / "one.json").read_bytes() == CONTENT


@pytest.mark.parametrize("path", ["one.json", "inner/one.json"])
def test_wrong_checksum_leaves_nothing_behind(server: str, tmp_path: Path, path: str) -> None:
    url = f"{server}/set%20one.json"
    message = (
        f"{url}: the file has another SHA-256 than the catalogue's {'0' * 64}, so it was not kept. "
        "Try again; if it happens again, the publisher has changed the file."
    )
    with pytest.raises(MissingPrerequisite, match=error(message)):
        download(toys(remote(url, "0" * 64, path)), tmp_path / "cache" / "toys")
    assert list((tmp_path / "cache").iterdir()) == []


def test_wrong_checksum_keeps_what_was_fetched_before(server: str, tmp_path: Path) -> None:
    url = f"{server}/set%20one.json"
    with pytest.raises(MissingPrerequisite):
        download(toys(remote(url), remote(url, "0" * 64, "two.json")), tmp_path / "toys")
    assert [entry.name for entry in (tmp_path / "toys").iterdir()] == ["one.json"]


def test_file_that_is_not_there_leaves_nothing_behind(server: str, tmp_path: Path) -> None:
    target = tmp_path / "toys" / "one.json"
    url = f"{server}/gone.json"
    message = (
        f"{url}: cannot be downloaded (HTTPError: 404 Client Error: File not found for url: {url}). "
        f"Check the connection, or get the file another way and put it at {target}."
    )
    with pytest.raises(MissingPrerequisite, match=error(message)):
        download(toys(remote(url)), tmp_path / "toys")
    assert not (tmp_path / "toys").exists()


def test_fetch_downloads_into_the_cache_where_locate_finds_it(
    server: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"toys": toys(remote(f"{server}/set%20one.json"))}
    monkeypatch.setattr(corpus, "publications", lambda: known)
    monkeypatch.setitem(cast("dict[str, Corpus]", CORPORA), "toys", Corpus(name="toys", layout=""))
    assert fetch("toys").folder == cache / "toys" == locate("toys")


def test_fetch_refuses_while_the_cache_would_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", "somewhere")
    message = (
        "DIALEVAL_DATA_DIR: is set to 'somewhere', so corpora are read from there and not from the cache. "
        "Unset it before you fetch."
    )
    with pytest.raises(InputError, match=error(message)):
        fetch("dstc10")


def test_the_variable_comes_before_the_cache(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "dstc10").mkdir(parents=True)
    assert locate("dstc10") == cache / "dstc10"
    (tmp_path / "data" / "dstc10").mkdir(parents=True)
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path / "data"))
    assert locate("dstc10") == tmp_path / "data" / "dstc10"


def test_corpus_that_is_not_there_says_what_to_type(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = (
        f"corpus 'dstc10': is not in the cache ({cache / 'dstc10'}). "
        "Type `dialeval data fetch dstc10`, or set DIALEVAL_DATA_DIR to a folder that has it as 'dstc10'."
    )
    with pytest.raises(MissingPrerequisite, match=error(message)):
        locate("dstc10")
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    message = (
        f"corpus 'dstc10': DIALEVAL_DATA_DIR is {str(tmp_path)!r}, which has no folder 'dstc10'. "
        "Put the corpus there, or unset the variable to use the cache."
    )
    with pytest.raises(MissingPrerequisite, match=error(message)):
        locate("dstc10")


def test_mini_is_always_there(cache: Path) -> None:
    assert locate("mini") == mini.folder()
    assert fetch("mini") == Fetched(mini.folder(), (), ())


def test_unknown_corpus_lists_the_known_ones(cache: Path) -> None:
    message = f"there is no corpus 'dstc11'. Known are: {', '.join(CORPORA)}."
    for function in (locate, fetch):
        with pytest.raises(InputError, match=error(message)):
            function("dstc11")


def test_status_of_a_partial_corpus_names_what_is_missing(cache: Path) -> None:
    for file in CORPORA["dailydialog_pp"].published.files:
        path = cache / "dailydialog_pp" / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = {entry.corpus.name: entry for entry in status()}
    assert found["dstc10"].folder is None
    assert len(found["dstc10"].missing) == 14
    assert found["dailydialog_pp"].folder == cache / "dailydialog_pp"
    assert found["dailydialog_pp"].missing == ("train.json", "test.json")
    assert (found["mini"].folder, found["mini"].missing) == (mini.folder(), ())


def test_catalogue_entries_are_complete() -> None:
    for entry in publications().values():
        assert entry.title
        assert entry.licence
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
