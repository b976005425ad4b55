"""The string that pins everything that can move a number: same signature, same number.

The idea is sacrebleu's (Post 2018, "A call for clarity in reporting BLEU scores"). A signature is made after the run,
from what really happened, and belongs to the scores, not to the configuration.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Signature:
    """Ordered names and values; a value of None is left out of the string.

    Example:
        >>> str(Signature({"method": "slide", "seed": 3, "window": None, "version": "0.1.0"}))
        'method:slide|seed:3|version:0.1.0'
    """

    fields: Mapping[str, Value]

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", MappingProxyType(dict(self.fields)))

    def __str__(self) -> str:
        return "|".join(f"{name}:{value}" for name, value in self.fields.items() if value is not None)

    @property
    def digest(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of the string: a name for files and cache rows."""
        return hashlib.sha256(str(self).encode()).hexdigest()[:16]

    def extended(self, **fields: Value) -> Signature:
        """This signature with `fields` added or replaced."""
        return Signature({**self.fields, **fields})


def content_hash(folder: Path, patterns: tuple[str, ...] = ("*.json", "*.safetensors", "*.txt", "*.model")) -> str:
    """Return a hash of the files of a model folder: the identity of a model that has no hub revision.

    Names count as well as bytes, so that a renamed file is another model. The hash does not depend on the folder's path.
    """
    digest = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in folder.rglob(pattern)}):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def text_hash(*texts: str) -> str:
    """Return a short hash of some texts (a prompt template, a context), safe against moving text from one to the next."""
    return hashlib.sha256(json.dumps(texts, ensure_ascii=True).encode()).hexdigest()[:16]
