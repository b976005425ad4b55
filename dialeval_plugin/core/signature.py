"""Signature: a string with everything that can change a number, made after the run from the actual settings.

The idea is sacrebleu's (Post 2018, "A call for clarity in reporting BLEU scores").
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

SignatureValue = str | int | float | bool | None

PERCENTILES_FILE = "percentiles.json"
SCOPE_FILE = "scope.json"
GOLDEN_FILE = "golden.json"
PROVENANCE_FILE = "provenance.json"
MANIFEST_FILE = "manifest.json"
METADATA_FILES = frozenset({PERCENTILES_FILE, SCOPE_FILE, GOLDEN_FILE, PROVENANCE_FILE, MANIFEST_FILE})
"""Files of a model folder that describe the model and change no score."""
RUNTIME_FIELDS = ("backend", "instructions", "dtype")
"""Fields of a signature that name the runtime of a model; only the first if its scores agree with torch's."""
EXPORTS = "exported"
"""Folder in a model folder with the graphs for other backends."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Ordered names and values; a value of None is left out of the string.

    Example:
        >>> str(Signature({"method": "slide", "seed": 3, "window": None, "version": "0.1.0"}))
        'method:slide|seed:3|version:0.1.0'
    """

    fields: Mapping[str, SignatureValue]

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", MappingProxyType(dict(self.fields)))

    def __reduce__(self) -> tuple[type[Signature], tuple[dict[str, SignatureValue]]]:
        """Pickle the fields as a dict: a read-only mapping cannot be pickled."""
        return Signature, (dict(self.fields),)

    def __str__(self) -> str:
        return "|".join(f"{name}:{value}" for name, value in self.fields.items() if value is not None)

    @property
    def digest(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of the string, for names of files and cache rows."""
        return hashlib.sha256(str(self).encode()).hexdigest()[:16]


def short_form(signature: str) -> str:
    """Return the short form of a signature for terminals: its method, eight digits of its hash, and the version.

    Example:
        >>> short_form("method:slide|seed:3|version:0.1.0")
        'slide#bfbe2ac7 (dialeval 0.1.0)'
    """
    fields = dict(part.partition(":")[::2] for part in signature.split("|"))
    digest = hashlib.sha256(signature.encode()).hexdigest()[:8]
    return f"{fields.get('method', 'signature')}#{digest} (dialeval {fields.get('version', 'unknown')})"


def content_hash(folder: Path, pattern: str = "*") -> str:
    """Return a hash of the names and bytes of a model folder's files that affect scores, for a model without a hub revision."""
    digest = hashlib.sha256()
    for name, sha256 in file_hashes(folder, pattern).items():
        if name not in METADATA_FILES and not name.startswith(f"{EXPORTS}/"):
            digest.update(name.encode() + b"\0" + bytes.fromhex(sha256))
    return digest.hexdigest()[:16]


def file_hashes(folder: Path, pattern: str = "*") -> dict[str, str]:
    """Return the SHA-256 of each file of a model folder except the README and hidden ones, by relative path, sorted."""
    named = {path.relative_to(folder): path for path in folder.rglob(pattern) if path.is_file()}
    return {
        name.as_posix(): file_hash(path)
        for name, path in sorted(named.items(), key=lambda one: one[0].as_posix())
        if not any(part.startswith(".") for part in name.parts) and not name.name.startswith("README")
    }


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file; an unchanged file is read once per process."""
    state = path.stat()
    # Within one tick of the file system's clock a file may change again without a new time.
    is_settled = time.time_ns() - state.st_ctime_ns > 1_000_000_000
    hashed = _hash_once if is_settled else _hash_once.__wrapped__
    return hashed(path.resolve(), state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@lru_cache(maxsize=4096)
def _hash_once(path: Path, *state: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def text_hash(*texts: str) -> str:
    """Return a short hash of texts, which also depends on the boundaries between them."""
    return hashlib.sha256(json.dumps(texts, ensure_ascii=True).encode()).hexdigest()[:16]
