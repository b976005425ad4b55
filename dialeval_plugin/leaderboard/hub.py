"""The leaderboard's way to the Hub: a data set that holds the table, and a Space that shows its page."""

from __future__ import annotations

import json
import logging
import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.files import read_text, write_text

from .board import Leaderboard
from .build import CSV_FILE, FILES, read
from .page import TITLE, static_text

logger = logging.getLogger(__name__)

SDK_VERSION = "6.31.0"
_REPOSITORY = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", re.ASCII)


class Upload(NamedTuple):
    """One repository and what goes into it."""

    kind: str
    """"dataset" or "space"."""
    repo_id: str
    files: dict[str, int]
    """Name to its size in bytes."""


def write_space(folder: Path, output: Path, *, title: str = TITLE) -> list[Path]:
    """Write a ready Space to `output`: the page, a Gradio app that shows it, and the Space's README."""
    _check_complete(folder)
    texts = {name: read_text(folder / name) for name in FILES}
    texts["app.py"] = static_text("space_app.py")
    # The Space's sdk brings gradio, and the app needs nothing else.
    texts["requirements.txt"] = ""
    texts["README.md"] = _card("space_card.md", title, sdk_version=SDK_VERSION)
    for name, text in texts.items():
        write_text(output / name, text)
    return [output / name for name in texts]


def push(
    folder: Path, repo_id: str, *, space: bool = True, private: bool = False, dry_run: bool = False, title: str = TITLE
) -> list[Upload]:
    """Upload a leaderboard to the Hub's data set `repo_id`, and its page to the Space of the same name.

    The token is the one that `hf auth login` keeps or HF_TOKEN names; HF_ENDPOINT names another Hub. Both repositories are
    made where they are not there, `private` ones if asked; what was in them besides stays.

    Raises:
        InputError: the name is none, `folder` holds no leaderboard, or the Hub refused.
        MissingPrerequisite: nobody is logged in, or the Hub cannot be reached.
    """
    if not _REPOSITORY.fullmatch(repo_id):
        raise InputError(f"{repo_id!r}: is not the name of a repository of the Hub. Give OWNER/NAME.")
    board = _check_complete(folder)
    uploads = []
    with tempfile.TemporaryDirectory() as name:
        # What goes up, and nothing else that lies in `folder`.
        places = {"dataset": Path(name, "dataset")}
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
                _upload(kind, repo_id, place, private=private)
    return uploads


def _upload(kind: str, repo_id: str, folder: Path, *, private: bool) -> None:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    # Of the library that it asks with, whose name differs between its releases.
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined] # isort: skip

    api = HfApi()
    try:
        sdk = "gradio" if kind == "space" else None
        api.create_repo(repo_id, repo_type=kind, private=private or None, exist_ok=True, space_sdk=sdk)
        api.upload_folder(repo_id=repo_id, repo_type=kind, folder_path=folder, commit_message="Update the leaderboard")
    except (LocalTokenNotFoundError, OfflineModeIsEnabled) as error:
        raise MissingPrerequisite(f"{kind} {repo_id}: {_one_line(error)}. Type `hf auth login`, or set HF_TOKEN.") from None
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        advice = "Type `hf auth login` with a token that may write." if status in {401, 403} else "Try again later."
        # Without the chain: the request behind the error holds the token.
        raise InputError(f"{kind} {repo_id}: the Hub refused ({status}: {_one_line(error)}). {advice}") from None
    except (OSError, HTTPError) as error:
        raise MissingPrerequisite(
            f"{kind} {repo_id}: the Hub cannot be reached ({type(error).__name__}). Check the network and HF_ENDPOINT."
        ) from None


def _check_complete(folder: Path) -> Leaderboard:
    board = read(folder)
    if missing := [name for name in FILES if not (folder / name).is_file()]:
        raise InputError(f"{folder}: {missing[0]} is not there. Build the leaderboard again.")
    return board


def _one_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _card(name: str, title: str, **fields: str) -> str:
    # JSON strings are YAML strings, whatever the title holds.
    return static_text(name).format(title=title, quoted_title=json.dumps(title), **fields)
