"""A cache of language models' answers: a repeated run pays only for the requests that failed.

They are in a SQLite file with a write-ahead log, each committed as it arrives. Processes and threads may share the file.
A killed process loses only its pending requests. A power cut may also lose the newest answers, because no batch of a local
model waits for the disk.
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.resources import user_cache
from dialeval_plugin.core.scores import Reason, Unscored

from . import language_model

logger = logging.getLogger(__name__)

ANSWERS_VARIABLE = "DIALEVAL_ANSWERS"
REQUEST_VERSION = 2
"""Part of every key. Increase it when a backend changes how it sends a request, so that old answers are not used."""
SCHEMA_VERSION = 1
APPLICATION_ID = 0x6469616C
"""Marks the file as ours in SQLite's header ("dial")."""
BUSY_SECONDS = 60.0

RequestKind: TypeAlias = Literal["generate", "sample", "loglikelihood"]
CHARACTERS_PER_TOKEN = 4
"""Estimate for English text, for models without a tokenizer."""
_NEVER_ASKED = Unscored(Reason.API_ERROR, "not asked")

Asked = TypeVar("Asked", language_model.Request, language_model.Continuation)


class AnswersNotWritable(InputError):
    """The file of answers cannot be opened, created or written; its contents are not at fault."""


def default_path() -> Path:
    """Return the file that `DIALEVAL_ANSWERS` names, else `answers.sqlite` in the user's cache."""
    if value := os.environ.get(ANSWERS_VARIABLE):
        return Path(value)
    return user_cache() / "answers.sqlite"


def open_default() -> AnswerCache | None:
    """Open the file at `default_path`; warn and return None if the variable is not set and the user's cache is not writable."""
    try:
        return AnswerCache(path := default_path())
    except MissingPrerequisite as error:
        _warn_of_no_cache(str(error))
    except AnswersNotWritable as error:
        if os.environ.get(ANSWERS_VARIABLE):
            raise
        _warn_of_no_cache(f"{path}: cannot be written ({error.__cause__}).")
    return None


@functools.cache  # a run that loads several models warns once
def _warn_of_no_cache(problem: str) -> None:
    advice = f"The run goes on and keeps no answers; name a file with {ANSWERS_VARIABLE} to keep them."
    logger.warning("%s %s", problem, advice)


def request_key(identity: str, kind: RequestKind, prompt: str, **parameters: object) -> str:
    """Return the key of a request to the model of this identity: a hash of everything that may change its answer."""
    parts = [REQUEST_VERSION, identity, kind, prompt, sorted(parameters.items())]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()


class AnswerCache:
    """A SQLite file of answers, created with its folder; `InputError` if it is read-only, another file, or too new."""

    def __init__(self, path: Path) -> None:
        # A shell does not expand the ~ of an option's value or of a variable.
        path = self.path = path.expanduser()
        with _clear_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # Dialogues are private; SQLite gives the files that it writes next to this one the same mode.
            path.touch(mode=0o600)
            with contextlib.closing(self.connect()) as connection:
                self._prepare(connection)

    @contextlib.contextmanager
    def session(self) -> Iterator[CacheSession]:
        """Open the file for one call."""
        with _clear_errors(self.path):
            connection = self.connect()
        with contextlib.closing(connection):
            yield CacheSession(self.path, connection)

    def connect(self) -> sqlite3.Connection:
        """Open the file in autocommit mode."""
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # One transaction, because two processes may start at the same time. It fails on a read-only file before any request is
        # paid for.
        connection.execute("BEGIN IMMEDIATE")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        is_new = not connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        if not is_new and application != APPLICATION_ID:
            raise InputError(f"{self.path}: is the database of another program. Name another file for the answers.")
        if version > SCHEMA_VERSION:
            raise InputError(f"{self.path}: was written by a later release. Install it, or name another file for the answers.")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum TEXT NOT NULL)"
        )
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # SQLite does not wait here. Another process is setting the same mode, or the next one that opens the file will.
            if "locked" not in str(error):
                raise


@dataclass
class CacheSession:
    """The answers in an open file. Rows with a wrong checksum are damaged and dropped."""

    path: Path
    connection: sqlite3.Connection

    def read(self, keys: Sequence[str]) -> dict[str, language_model.Text | float]:
        """Return the stored answers by key."""
        answers: dict[str, language_model.Text | float] = {}
        n_dropped = 0
        query = "SELECT key, answers.value, checksum FROM answers WHERE key IN (SELECT value FROM json_each(?))"
        with _clear_errors(self.path):
            for key, value, checksum in self.connection.execute(query, (json.dumps(keys),)).fetchall():
                if checksum == _checksum(key, value):
                    answer = json.loads(value, object_hook=lambda fields: language_model.CutAnswer(**fields))
                    answers[key] = -math.inf if answer is None else answer
                else:
                    self.connection.execute("DELETE FROM answers WHERE key = ?", (key,))
                    n_dropped += 1
        if n_dropped:
            logger.warning("%s: %d damaged answers were deleted and will be requested again", self.path, n_dropped)
        return answers

    def write(self, key: str, answer: language_model.Text | float) -> None:
        """Store an answer; it replaces an earlier one of the same key."""
        # JSON has no minus infinity, the log of a probability of 0: null represents it.
        plain = None if answer == -math.inf else answer
        value = json.dumps(plain, ensure_ascii=True, allow_nan=False, default=asdict)
        with _clear_errors(self.path):
            self.connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (key, value, _checksum(key, value)))


@contextlib.contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        # Other errors of SQLite are about the contents of the file.
        kind = AnswersNotWritable if isinstance(error, (sqlite3.OperationalError, OSError)) else InputError
        raise kind(
            f"{path}: cannot be used for answers ({error}). What is in it stays; mend this and repeat the command, "
            "or name another file."
        ) from error


def _checksum(key: object, value: object) -> str:
    return hashlib.sha256(f"{key}\n{value}".encode(errors="replace")).hexdigest()[:16]


@dataclass(slots=True)
class Usage:
    """Counts of the distinct requests to a language model so far."""

    n_asked: int = 0
    """Requests that reached the model."""
    n_cached: int = 0
    """Requests answered from the cache instead."""
    n_failed: int = 0
    """Requests that reached the model and have no answer."""
    n_not_sent: int = 0
    """Requests that were not made, because those before failed one after the other."""
    prompt_tokens: int = 0
    """Tokens of the prompts that reached the model."""
    is_estimate: bool = False
    """Whether tokens were estimated from characters, because the model's tokenizer was not available."""

    def __str__(self) -> str:
        """Return the counts on one line.

        Example:
            >>> print(Usage(n_asked=3, n_cached=9, n_failed=1, prompt_tokens=1200, is_estimate=True))
            3 calls, about 1200 prompt tokens (at 4 characters a token), 9 of 12 requests from the cache (75 %), 1 failed
        """
        not_sent = f", {self.n_not_sent} not sent" if self.n_not_sent else ""
        return f"{self.estimate()}, {self.n_failed} failed{not_sent}"

    def estimate(self) -> str:
        """Return the counts on one line, without failures: the result of a dry run."""
        tokens = f"{self.prompt_tokens} prompt tokens"
        if self.is_estimate:
            tokens = f"about {tokens} (at {CHARACTERS_PER_TOKEN} characters a token)"
        n_requests = self.n_asked + self.n_not_sent + self.n_cached
        share = f" ({100 * self.n_cached / n_requests:.0f} %)" if n_requests else ""
        return f"{self.n_asked} calls, {tokens}, {self.n_cached} of {n_requests} requests from the cache{share}"


class CachedLanguageModel:
    """A language model that receives each distinct request once, with counts of its requests.

    An `Unscored`, a blank text (hosts return one when a server sends none) and a text without a verdict are not kept: the next
    run makes these requests again. Without a `cache` no answers are kept, but requests are counted.
    """

    def __init__(self, model: language_model.LanguageModel, cache: AnswerCache | None) -> None:
        self.model = model
        self.cache = cache
        self.usage = Usage()

    @property
    def identity(self) -> str:
        """Identity of the model."""
        return self.model.identity

    def generate(
        self, requests: Sequence[language_model.Request], *, on_answer: language_model.TextListener | None = None
    ) -> list[language_model.Text | Unscored]:
        """Return the continuation of each prompt; equal requests are made once."""
        return self._look_up(requests, self.model.generate, on_answer)

    def loglikelihood(
        self, pairs: Sequence[language_model.Continuation], *, on_answer: language_model.NumberListener | None = None
    ) -> list[float | Unscored]:
        """Return the log probability of each continuation after its context; equal pairs are requested once."""
        return self._look_up(pairs, self.model.loglikelihood, on_answer)

    @contextlib.contextmanager
    def dry_run(self) -> Iterator[None]:
        """Count the requests of this block without making them; its end resets the counts."""
        model = self.model
        self.model = DryRunLanguageModel(model)
        try:
            yield
        finally:
            self.model, self.usage = model, Usage()

    def _look_up(
        self, requests: Sequence[Asked], ask: Callable[..., Sequence[Any]], on_answer: Callable[[int, Any], None] | None
    ) -> list[Any]:
        keys = [_key_of(self.identity, request) for request in requests]
        places = {key: place for place, key in enumerate(keys)}
        with contextlib.nullcontext() if self.cache is None else self.cache.session() as session:
            stored = session.read(list(places)) if session else {}
            known: dict[str, Any] = {key: answer for key, answer in stored.items() if _is_kept(requests[places[key]], answer)}
            missing = {key: place for key, place in places.items() if key not in known}
            self.usage.n_cached += len(known)
            if missing:
                names, asked = list(missing), [requests[place] for place in missing.values()]

                def keep(index: int, answer: Any) -> None:
                    if session and _is_kept(asked[index], answer):
                        session.write(names[index], answer)

                fresh = ask(asked, on_answer=keep)
                known.update(zip(names, fresh, strict=True))
                self._count(asked, fresh)
        return language_model.notify_listener([known[key] for key in keys], on_answer)

    def _count(self, requests: Sequence[Asked], answers: Sequence[Any]) -> None:
        pairs = zip(requests, answers, strict=True)
        sent = [(request, answer) for request, answer in pairs if answer != language_model.NOT_ASKED]
        texts = ["".join(request) if isinstance(request, tuple) else request.prompt for request, _ in sent]
        self.usage.n_not_sent += len(requests) - len(sent)
        self.usage.n_failed += sum(isinstance(answer, Unscored) for _, answer in sent)
        counted = language_model.count_tokens(self.model, texts)
        self.usage.n_asked += len(texts)
        self.usage.prompt_tokens += -(-sum(map(len, texts)) // CHARACTERS_PER_TOKEN) if counted is None else counted
        self.usage.is_estimate |= counted is None


def _is_kept(request: language_model.Request | language_model.Continuation, answer: Any) -> bool:
    if isinstance(request, language_model.Request):
        return bool(language_model.text_of(answer).strip()) and not isinstance(request.read(answer), Unscored)
    return bool(answer < math.inf)


def _key_of(identity: str, request: language_model.Request | language_model.Continuation) -> str:
    if isinstance(request, tuple):
        context, continuation = request
        return request_key(identity, "loglikelihood", context, continuation=continuation)
    limits = {"max_tokens": request.max_tokens, "stop": list(request.stop)}
    if not request.temperature:
        return request_key(identity, "generate", request.prompt, **limits)
    drawn = {"temperature": float(request.temperature), "sample": request.sample}
    return request_key(identity, "sample", request.prompt, **limits, **drawn)


class DryRunLanguageModel:
    """A model that answers nothing, with which a `CachedLanguageModel` counts the requests of a run.

    The tokenizer of `model` counts tokens; `identity` is the name if there is no `model`, because another program runs it.
    """

    def __init__(self, model: language_model.LanguageModel | None = None, *, identity: str = "") -> None:
        self.model = model
        self.identity = identity if model is None else model.identity

    def count_tokens(self, prompts: Sequence[str]) -> int | None:
        """Return the tokens of all prompts; None if the model does not count them."""
        return language_model.count_tokens(self.model, prompts)

    def generate(
        self, requests: Sequence[language_model.Request], *, on_answer: language_model.TextListener | None = None
    ) -> list[language_model.Text | Unscored]:
        """Return a failure per request."""
        return [_NEVER_ASKED] * len(requests)

    def loglikelihood(
        self, pairs: Sequence[language_model.Continuation], *, on_answer: language_model.NumberListener | None = None
    ) -> list[float | Unscored]:
        """Return a failure per pair."""
        return [_NEVER_ASKED] * len(pairs)
