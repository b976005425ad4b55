"""An HTTP server on loopback with the two OpenAI endpoints that lm-eval's API models use, and replies made by rule."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler
from typing import Any


@dataclass(frozen=True)
class Reply:
    """Answer to one request.

    Attributes:
        body: JSON, or text or bytes as they are.
        promised: how many bytes more than the body's the header promises: the connection closes before they come.
        pause: seconds before each byte of the body, which comes whole where there is none.
    """

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    promised: int = 0
    pause: float = 0.0


@dataclass
class Loopback:
    """A running server, and the bodies of the requests, in the order in which they came."""

    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def completions(self) -> str:
        return f"{self.url}/v1/completions"

    @property
    def chat(self) -> str:
        return f"{self.url}/v1/chat/completions"

    def prompts(self) -> list[str]:
        """Return the texts of the requests."""
        return [prompt_of(body) for body in self.asked]


def prompt_of(body: Mapping[str, Any]) -> str:
    return body["prompt"] if "prompt" in body else body["messages"][-1]["content"]


def text_reply(body: Mapping[str, Any], text: str) -> Reply:
    """A completion, in the form of the endpoint that `body` was sent to."""
    choice = {"text": text} if "prompt" in body else {"message": {"role": "assistant", "content": text}}
    return Reply({"choices": [{"index": 0, **choice}]})


def chat_reply(content: object, finish: str = "stop") -> Reply:
    """A chat completion, and what ended it."""
    return Reply({"choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content}}]})


@contextmanager
def serve(rule: Callable[[dict[str, Any]], Reply]) -> Iterator[Loopback]:
    """Serve until the block ends; `rule` makes the reply to the body of a request, in a thread of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            loopback.asked.append(body)
            reply = rule(body)
            sent = reply.body if isinstance(reply.body, (str, bytes)) else json.dumps(reply.body)
            raw = sent.encode() if isinstance(sent, str) else sent
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw) + reply.promised))
            with suppress(OSError):  # whoever asked may have stopped waiting
                self.end_headers()
                if not reply.pause:
                    self.wfile.write(raw)
                    return
                for at in range(len(raw)):
                    time.sleep(reply.pause)
                    self.wfile.write(raw[at : at + 1])

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    with serving(Handler) as url:
        loopback = Loopback(url)
        yield loopback


@contextmanager
def serving(handler: Callable[..., BaseRequestHandler]) -> Iterator[str]:
    """Answer requests in threads until the block ends; yield the server's address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


def serving_files(folder: Path) -> AbstractContextManager[str]:
    """Serve a folder's files until the block ends; gives the server's address."""
    return serving(partial(_Files, directory=str(folder)))
