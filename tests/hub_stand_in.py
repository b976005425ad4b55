"""A stand-in for the Hub on loopback: repositories are made and files committed, and everything is remembered."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.loopback import serving


@dataclass
class StandIn:
    """A running server."""

    url: str
    """For HF_ENDPOINT."""
    created: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of the requests to make a repository."""
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """Files by name of each "<kinds>/<owner>/<name>"."""
    tokens: set[str] = field(default_factory=set)
    """Authorisation headers that came."""
    refuse: int = 0
    """Status that every request is answered with; 0 for none."""

    def answer(self, path: str, body: bytes) -> Any:
        """Do what the request asks for, as the Hub's API does."""
        if path == "/api/repos/create":
            made = json.loads(body)
            self.created.append(made)
            return {"url": f"{self.url}/{made['type']}s/{made['organization']}/{made['name']}"}
        if path.endswith("/preupload/main"):
            named = json.loads(body)["files"]
            return {"files": [{"path": file["path"], "uploadMode": "regular", "shouldIgnore": False} for file in named]}
        if path.endswith("/commit/main"):
            name = path.removeprefix("/api/").removesuffix("/commit/main")
            repository = self.files.setdefault(name, {})
            for line in body.splitlines():
                operation = json.loads(line)
                if operation["key"] == "file":
                    repository[operation["value"]["path"]] = base64.b64decode(operation["value"]["content"])
            return {"commitUrl": f"{self.url}/{name}/commit/1", "commitOid": "1" * 40, "success": True}
        if path.startswith("/api/models/") and "/revision/" in path:
            name, _, revision = path.removeprefix("/api/").partition("/revision/")
            files = [{"rfilename": file} for file in self.files[name]]
            return {"id": name.removeprefix("models/"), "sha": self.commit(name, revision), "siblings": files}
        if path.startswith("/api/models/") and "/tree/" in path:
            stored = self.files[path.removeprefix("/api/").partition("/tree/")[0]]
            return [{"type": "file", "path": file, "size": len(content), "oid": "0"} for file, content in stored.items()]
        return {}

    def commit(self, name: str, revision: str) -> str:
        """Hash of what a repository holds now, as a commit's."""
        return hashlib.sha1(repr((revision, sorted(self.files[name].items()))).encode(), usedforsecurity=False).hexdigest()

    def file(self, path: str) -> tuple[str, bytes] | None:
        """Commit and content of a model's file by its path, `/OWNER/NAME/resolve/COMMIT/FILE`; None for another path."""
        repository, _, rest = path.partition("/resolve/")
        commit, _, name = rest.partition("/")
        content = self.files.get(f"models{repository}", {}).get(name)
        return None if content is None else (commit, content)


@contextmanager
def hub_stand_in() -> Iterator[StandIn]:
    """Yield a server that runs until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = stand_in.file(self.path)
            if found is None:
                self._reply(b"")
            else:
                self._send(*found)

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
            self._reply(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def _send(self, commit: str, content: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Repo-Commit", commit)
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def _reply(self, body: bytes) -> None:
            stand_in.tokens.add(self.headers.get("Authorization", ""))
            status = stand_in.refuse or 200
            reply = {"error": "Invalid credentials"} if stand_in.refuse else stand_in.answer(self.path.partition("?")[0], body)
            content = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as url:
        stand_in = StandIn(url)
        yield stand_in
