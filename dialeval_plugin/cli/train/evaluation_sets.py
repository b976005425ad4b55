"""What `dialeval train ... --evaluation` names, for every trainer alike: files in any layout, and sets by name or code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from dialeval_plugin.core.dialogue import Item


def read_sets(sources: Iterable[str]) -> dict[str, list[Item]]:
    """Read what will be reported on, and say what of it is not on this machine.

    Raises:
        InputError: as `corpora.registry.read_reported`.
        MissingPrerequisite: as `corpora.registry.read_reported`.
    """
    from dialeval_plugin.corpora.registry import read_reported

    found = read_reported(sources)
    if found.absent:
        typer.echo(f"not on this machine, so not looked for: {', '.join(found.absent)}", err=True)
    return found.sets


def read_evaluation(sources: Iterable[str]) -> list[Item]:
    """Read what will be reported on, of all sets together; raises as `read_sets`."""
    return [item for items in read_sets(sources).values() for item in items]


def has_causes(source: str) -> bool:
    """Whether a source is a file of responses with marked causes, which are measured besides."""
    from dialeval_plugin.corpora.readers import cgdialog

    return Path(source).is_file() and cgdialog.has_causes(Path(source))
