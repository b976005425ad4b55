"""Upload of the leaderboard to the Hub: a data set with the table, and a Space that shows the page."""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_text, write_text
from dialeval_plugin.models.hub import Kind, check_repository, upload
from dialeval_plugin.pages.html import static_text
from dialeval_plugin.version import __version__

from .board import Leaderboard
from .build import CSV_FILE, FILES, read
from .page import TITLE

logger = logging.getLogger(__name__)

SDK_VERSION = "6.31.0"


class Upload(NamedTuple):
    """Repository and its files."""

    kind: Kind
    repo_id: str
    files: dict[str, int]
    """File names with sizes in bytes."""


def write_space(folder: Path, output: Path, *, title: str = TITLE, demo: bool = False) -> list[Path]:
    """Write a ready Space to `output`: the page, a Gradio app that shows it, and the Space's README.

    With `demo` the Space installs this package, and the app has another tab that scores a pasted conversation.
    """
    _check_complete(folder)
    texts = {name: read_text(folder / name) for name in FILES}
    texts["app.py"] = static_text(__package__, "space_app.py")
    # Spaces bring gradio themselves.
    texts["requirements.txt"] = f"dialeval-plugin>={__version__}\n" if demo else ""
    texts["README.md"] = _card("space_card.md", title, sdk_version=SDK_VERSION)
    for name, text in texts.items():
        write_text(output / name, text)
    return [output / name for name in texts]


def push(
    folder: Path, repo_id: str, *, space: bool = True, private: bool = False, dry_run: bool = False, title: str = TITLE
) -> list[Upload]:
    """Upload a leaderboard to the Hub's data set `repo_id`, and its page to the Space of the same name.

    The token is the one saved by `hf auth login` or in HF_TOKEN; HF_ENDPOINT selects another Hub. Missing repositories are
    created, `private` ones on request; other files in them are kept.

    Raises:
        InputError: the name is invalid, `folder` has no leaderboard, or the Hub refused.
        MissingPrerequisite: there is no login, or the Hub cannot be reached.
    """
    check_repository(repo_id)
    board = _check_complete(folder)
    uploads = []
    with tempfile.TemporaryDirectory() as name:
        # Upload these files only, not others in `folder`.
        places: dict[Kind, Path] = {"dataset": Path(name, "dataset")}
        table = board.to_markdown() if board.cells else ""
        write_text(places["dataset"] / "README.md", _card("dataset_card.md", title, csv_file=CSV_FILE, table=table))
        for file in FILES:
            shutil.copyfile(folder / file, places["dataset"] / file)
        if space:
            places["space"] = Path(name, "space")
            write_space(folder, places["space"], title=title)
        for kind, place in places.items():
            uploads.append(Upload(kind, repo_id, {path.name: path.stat().st_size for path in sorted(place.iterdir())}))
            if not dry_run:
                upload(kind, repo_id, place, private=private, message="Update the leaderboard")
    return uploads


def _check_complete(folder: Path) -> Leaderboard:
    board = read(folder)
    if missing := [name for name in FILES if not (folder / name).is_file()]:
        raise InputError(f"{folder}: {missing[0]} is not there. Build the leaderboard again.")
    return board


def _card(name: str, title: str, **fields: str) -> str:
    # JSON strings are valid YAML strings, so any title is safe.
    return static_text(__package__, name).format(title=title, quoted_title=json.dumps(title), **fields)
