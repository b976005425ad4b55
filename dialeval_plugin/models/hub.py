"""Writing to repositories of the Hub."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from dialeval_plugin.core.errors import InputError, MissingPrerequisite

Kind: TypeAlias = Literal["dataset", "model", "space"]

_REPOSITORY = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", re.ASCII)


def check_repository(repo_id: str) -> None:
    """Refuse an invalid repository name."""
    if not _REPOSITORY.fullmatch(repo_id):
        raise InputError(f"{repo_id!r}: is not the name of a repository of the Hub. Give OWNER/NAME.")


def upload(kind: Kind, repo_id: str, folder: Path, *, files: Sequence[str] | None = None, private: bool, message: str) -> None:
    """Upload the files of a folder, or only those named, to a repository of the Hub, which is created if necessary.

    Raises:
        InputError: the Hub refused.
        MissingPrerequisite: the user is not logged in, or the Hub cannot be reached.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    # The error class of its HTTP library, which differs between its releases.
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined] # isort: skip

    api = HfApi()
    try:
        sdk = "gradio" if kind == "space" else None
        api.create_repo(repo_id, repo_type=kind, private=private or None, exist_ok=True, space_sdk=sdk)
        named = None if files is None else [glob.escape(name) for name in files]
        api.upload_folder(repo_id=repo_id, repo_type=kind, folder_path=folder, commit_message=message, allow_patterns=named)
    except (LocalTokenNotFoundError, OfflineModeIsEnabled) as error:
        raise MissingPrerequisite(f"{kind} {repo_id}: {_one_line(error)}. Type `hf auth login`, or set HF_TOKEN.") from None
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        advice = "Type `hf auth login` with a token that may write." if status in {401, 403} else "Try again later."
        # Without the chain: the request behind the error has the token.
        raise InputError(f"{kind} {repo_id}: the Hub refused ({status}: {_one_line(error)}). {advice}") from None
    except (OSError, HTTPError) as error:
        raise MissingPrerequisite(
            f"{kind} {repo_id}: the Hub cannot be reached ({type(error).__name__}). Check the network and HF_ENDPOINT."
        ) from None


def _one_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
