"""A local page where people label conversations with one key each, and the server that keeps their answers."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import parse_json
from dialeval_plugin.labels.answers import AnswerFile, RowToLabel, rater_name
from dialeval_plugin.version import __version__

from .html import render_page, script_data

CHOICES: Mapping[str, Mapping[str, str]] = {
    "pass-fail": {"p": "pass", "f": "fail"},
    "1-5": {str(number): str(number) for number in range(1, 6)},
}
"""Labels of each scale, by key."""
_LONGEST_NAME = 60
_LONGEST_BODY = 10_000


class LabellingServer(ThreadingHTTPServer):
    """Server of one page, to this machine only; `url` contains the token that every request needs."""

    daemon_threads = True

    def __init__(
        self, rows: Sequence[RowToLabel], answers: AnswerFile, scale: str, *, question: str, port: int = 0, rater: str = ""
    ) -> None:
        """Bind a port of the loopback interface, by default any that is free.

        Args:
            rows: in the order in which they are shown.
            answers: file with the answers so far, to which new ones are added.
            scale: one of `CHOICES`.
            question: text above each conversation.
            port: port of the server.
            rater: name of the rater; without it, the page asks for it.
        """
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise InputError(f"--port {port}: cannot be listened to ({error.strerror}). Choose another one.") from None
        self.rows, self.answers, self.scale = rows, answers, scale
        self.token = secrets.token_urlsafe(16)
        self.host = f"127.0.0.1:{self.server_port}"
        self.url = f"http://{self.host}/?token={self.token}"
        # Rows without any texts of their own are whole conversations.
        blank = "(empty)" if any(row.text.strip() for row in rows) else ""
        data = {
            "token": self.token,
            "rater": rater,
            "choices": list(CHOICES[scale].items()),
            "rows": [
                [row.before, row.role, row.text if row.text.strip() else blank, row.id if not (row.text or row.before) else ""]
                for row in rows
            ],
        }
        title = f"{len(rows)} to label"
        self.page = render_page(
            __package__, "labelling", {}, title=title, question=question, data=script_data(data), connects=True
        ).encode()

    def given(self, rater: str) -> dict[int, str]:
        """Return the rater's labels, by the number of the row."""
        known, rater = self.answers.given, rater_name(rater)
        return {place: known[rater, row.id] for place, row in enumerate(self.rows) if (rater, row.id) in known}


class _Handler(BaseHTTPRequestHandler):
    server: LabellingServer
    server_version = f"dialeval/{__version__}"
    sys_version = ""

    def do_GET(self) -> None:
        """Send the page, or a rater's own answers."""
        address = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(address.query).items()}
        if not self._is_allowed(query.get("token", "")):
            return
        if address.path == "/":
            self._reply(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")
        elif address.path == "/answers":
            self._reply_json(HTTPStatus.OK, self.server.given(query.get("rater", "")))
        else:
            self._reply_json(HTTPStatus.NOT_FOUND, {"error": "There is no such page."})

    def do_POST(self) -> None:
        """Take an answer; it is in the file before the reply is sent."""
        if not self._is_allowed(self.headers.get("X-Token", "")):
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LONGEST_BODY:
            self.close_connection = True
            self._reply_json(HTTPStatus.BAD_REQUEST, {"error": "This is no answer."})
            return
        try:
            given = parse_json(self.rfile.read(int(length)).decode("utf-8", "replace"), "the answer")
            rater, row, label = given["rater"], self.server.rows[_place(given["row"])], given["label"]
        except (InputError, KeyError, IndexError, TypeError):
            self._reply_json(HTTPStatus.BAD_REQUEST, {"error": "This is no answer."})
            return
        if not isinstance(rater, str) or not 0 < len(rater.strip()) <= _LONGEST_NAME or not rater.isprintable():
            self._reply_json(HTTPStatus.BAD_REQUEST, {"error": f"A name has 1 to {_LONGEST_NAME} letters."})
        elif label not in CHOICES[self.server.scale].values():
            self._reply_json(HTTPStatus.BAD_REQUEST, {"error": "There is no such label."})
        else:
            try:
                self.server.answers.add(rater, row.id, label)
            except OSError as error:
                self._reply_json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": f"The answer was not kept: {error.strerror}."})
                return
            self._reply_json(HTTPStatus.OK, {"kept": True})

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing about requests: their addresses contain the token."""

    def _is_allowed(self, token: str) -> bool:
        """Whether the request comes from the page: requests via another host name, or from another page, are refused."""
        origin = self.headers.get("Origin")
        is_own = self.headers.get("Host") == self.server.host and origin in {None, f"http://{self.server.host}"}
        if is_own and hmac.compare_digest(token.encode(), self.server.token.encode()):
            return True
        self.close_connection = True
        self._reply_json(HTTPStatus.FORBIDDEN, {"error": "Open the address that `dialeval label` has printed."})
        return False

    def _reply_json(self, status: HTTPStatus, value: Any) -> None:
        self._reply(status, json.dumps(value).encode(), "application/json")

    def _reply(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": "frame-ancestors 'none'",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _place(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise IndexError(value)
    return value
