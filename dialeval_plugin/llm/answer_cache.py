"""A SQLite file that keeps what a language model answered.

Answers are written one by one, as they come, into a file with a write-ahead log. The file is opened for each call and each
answer is a transaction of its own: processes and threads may share the file, and a process that is killed loses only what
was being asked. With the log, a transaction does not wait for the disk, as it would with a rollback journal, so that the
batches of a local model are not held up; what a power cut may take is the newest answers, never the file.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import math
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from dialeval_plugin.core.errors import InputError

logger = logging.getLogger(__name__)

ANSWERS_VARIABLE = "DIALEVAL_ANSWERS"
REQUEST_VERSION = 1
"""Part of every key. Raise it when a backend turns the same request into something else, so that old answers do not count."""
SCHEMA_VERSION = 1
APPLICATION_ID = 0x6469616C
"""Marks the file as ours in SQLite's header ("dial")."""
BUSY_SECONDS = 60.0

RequestKind: TypeAlias = Literal["generate", "sample", "loglikelihood"]


class AnswersNotWritable(InputError):
    """The file of answers cannot be opened, made or written; nothing is wrong with what is in it."""


def default_path() -> Path:
    """The file that `DIALEVAL_ANSWERS` names, else `answers.sqlite` in the user's cache."""
    if value := os.environ.get(ANSWERS_VARIABLE):
        return Path(value).expanduser()
    import pooch

    return Path(pooch.os_cache("dialeval")) / "answers.sqlite"


def open_default() -> AnswerCache | None:
    """Open the file at `default_path`; None, and a warning, where nobody named one and the user's cache cannot be written."""
    path = default_path()
    try:
        return AnswerCache(path)
    except AnswersNotWritable as error:
        if os.environ.get(ANSWERS_VARIABLE):
            raise
        _warn_of_no_cache(path, str(error.__cause__))
    return None


@functools.cache
def _warn_of_no_cache(path: Path, problem: str) -> None:
    """Say it once: a run may load several models."""
    advice = f"The run goes on and keeps no answers; name a file with {ANSWERS_VARIABLE} to keep them."
    logger.warning("%s: cannot be written (%s). %s", path, problem, advice)


def request_key(identity: str, kind: RequestKind, prompt: str, **parameters: object) -> str:
    """The name of a request to the model of this identity: a hash of everything that may move its answer."""
    parts = [REQUEST_VERSION, identity, kind, prompt, sorted(parameters.items())]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()


class AnswerCache:
    """A SQLite file of answers, which is made with its folder.

    Raises:
        InputError: the file is something else, was written by a later release, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _clear_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # People's dialogues are nobody else's; SQLite gives the files that it lays beside the same mode.
            path.touch(mode=0o600)
            with contextlib.closing(self.connect()) as connection:
                self._prepare(connection)

    @contextlib.contextmanager
    def session(self) -> Iterator[CacheSession]:
        """Open the file for one call."""
        with _clear_errors(self.path):
            connection = self.connect()
        with contextlib.closing(connection):
            answers = CacheSession(self.path, connection)
            try:
                yield answers
            finally:
                if answers.n_dropped:
                    logger.warning("%s: %d damaged answers were dropped and are asked for again", self.path, answers.n_dropped)

    def connect(self) -> sqlite3.Connection:
        """Open the file in autocommit mode: every statement is a transaction."""
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the table, or check that it is ours, in one transaction: two processes may start at the same time."""
        # It fails where the file can only be read, which is better known before anything is asked and paid for.
        connection.execute("BEGIN IMMEDIATE")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        is_new = not connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        if not is_new and application != APPLICATION_ID:
            raise InputError(f"{self.path}: is the database of another program. Name another file for the answers.")
        if version > SCHEMA_VERSION:
            raise InputError(f"{self.path}: was written by a later release. Install it, or name another file for the answers.")
        if not is_new and version < SCHEMA_VERSION:
            (n_old,) = connection.execute("SELECT count(*) FROM answers").fetchone()
            logger.warning("%s: %d answers of an earlier release were dropped", self.path, n_old)
            connection.execute("DROP TABLE answers")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum TEXT NOT NULL)"
        )
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")


class CacheSession:
    """The answers in an open file. A row whose checksum is wrong was not written by us, or was damaged since."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self.n_dropped = 0

    def read(self, keys: Sequence[str]) -> dict[str, str | float]:
        """The answers that are kept, by key."""
        found: dict[str, str | float] = {}
        query = "SELECT key, answers.value, checksum FROM answers WHERE key IN (SELECT value FROM json_each(?))"
        with _clear_errors(self._path):
            for key, value, checksum in self._connection.execute(query, (json.dumps(keys),)).fetchall():
                if checksum == _checksum(key, value):
                    answer: str | float | None = json.loads(value)
                    found[key] = -math.inf if answer is None else answer
                else:
                    self._connection.execute("DELETE FROM answers WHERE key = ?", (key,))
                    self.n_dropped += 1
        return found

    def write(self, key: str, answer: str | float) -> None:
        """Keep an answer, unless there is one."""
        # JSON has no minus infinity, the log of a probability of 0: null stands for it.
        value = json.dumps(None if answer == -math.inf else answer, ensure_ascii=True, allow_nan=False)
        with _clear_errors(self._path):
            # The first answer stays: another process may have asked at the same time, and has used its own already.
            self._connection.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", (key, value, _checksum(key, value)))


@contextlib.contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        # Other errors of SQLite are about what it found in the file.
        kind = AnswersNotWritable if isinstance(error, (sqlite3.OperationalError, OSError)) else InputError
        raise kind(
            f"{path}: cannot be used for answers ({error}). What is in it stays; mend this and repeat the command, "
            "or name another file."
        ) from error


def _checksum(key: object, value: object) -> str:
    return hashlib.sha256(f"{key}\n{value}".encode(errors="replace")).hexdigest()[:16]
