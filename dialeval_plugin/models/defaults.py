"""Which trained model is meant where none is named: an environment variable's, else the last one that was trained here."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.files import write_text

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DefaultModel:
    """One kind of trained model, and the environment variable that names a folder or hub id."""

    kind: str
    """Names the file that remembers the last trained one."""
    variable: str
    advice: str
    """The whole message where there is no model."""

    @property
    def file(self) -> Path:
        """The file that names the user's last trained model."""
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
        return base / "dialeval" / f"last_{self.kind}"

    def find(self, name: str | None) -> str:
        """Return `name`, else the variable's model, else the last trained one."""
        if name is not None and not isinstance(name, str):
            raise InputError(f"{self.kind}: the model is named {name!r} ({type(name).__name__}). Give a folder or a hub id.")
        if found := name or os.environ.get(self.variable):
            return found
        if self.file.exists():
            return self.file.read_text(encoding="utf-8").strip()
        raise MissingPrerequisite(self.advice)

    def remember(self, folder: Path) -> None:
        """Make `folder` the last trained model; where the user's data folder cannot be written, say so and go on."""
        try:
            write_text(self.file, f"{folder.resolve()}\n")
        except InputError as error:
            logger.warning("%s is not remembered as the last trained model, so name it where it is used: %s", folder, error)
