"""The folder in which a training keeps what it has finished, so that the same command goes on after a kill."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_json, remove_half_written, to_json, write_text
from dialeval_plugin.core.journal import sole_process

from .checkpoints import SEAL

logger = logging.getLogger(__name__)

_NAME, _IDENTITY_FILE = ".training", "run.json"
_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
_ERROR_NUMBER = re.compile(r"\(os error (\d+)\)")


def refuse_finished(output: Path, settings_file: str) -> None:
    """Refuse a folder that holds a trained model.

    Args:
        output: the folder.
        settings_file: name of the file that is written last.

    Raises:
        InputError: it is there.
    """
    if (output / settings_file).exists():
        # A run that was killed after its last file left its checkpoints.
        with contextlib.suppress(InputError), sole_process(output / _NAME):
            shutil.rmtree(output / _NAME, ignore_errors=True)
        raise InputError(f"{output}: holds a trained model already. Choose another folder, or delete this one.")


@contextlib.contextmanager
def workplace(output: Path, settings_file: str, identity: Mapping[str, Any], *, is_main_process: bool = True) -> Iterator[Path]:
    """Yield the folder of checkpoints of a training, ours alone; it is gone when the block ends well.

    Args:
        output: the folder of the model that the block writes.
        settings_file: name of the model's file that is written last.
        identity: what has to be the same for a run to go on from another's checkpoints.
        is_main_process: False for the further processes of one training.

    Raises:
        InputError: `output` holds a trained model or checkpoints of a run with other data or options, another process is at
            work in it, or it cannot be written.
    """
    place = output / _NAME
    with contextlib.ExitStack() as stack:
        if is_main_process:
            stack.enter_context(sole_process(place))
            refuse_finished(output, settings_file)
            _claim(place, identity)
        stack.enter_context(_clear_errors(output))
        yield place
        if is_main_process:
            shutil.rmtree(place, ignore_errors=True)


def report(line: str, *, shown: bool) -> None:
    """Say how far a training is: on stderr between the bars, else in the log."""
    if shown:
        tqdm.write(line, file=sys.stderr)
    else:
        logger.info(line)


def _claim(place: Path, identity: Mapping[str, Any]) -> None:
    path = place / _IDENTITY_FILE
    remove_half_written(place.parent)
    if path.exists():
        stored = read_json(path)
        if differing := [name for name, value in identity.items() if stored.get(name) != value]:
            if _has_checkpoint(place):
                raise InputError(
                    f"{place}: holds an unfinished run with other {' and '.join(differing)}. "
                    "Repeat that run's command to finish it, or delete the folder to start anew."
                )
            shutil.rmtree(place)
        else:
            logger.info("%s: going on with an unfinished run", place)
    write_text(path, to_json(identity, indent=2) + "\n")


def _has_checkpoint(place: Path) -> bool:
    """Whether anything was learnt: a finished stage, weights of a loop of ours, or a host's checkpoint."""
    return any(place.glob("*.safetensors")) or any(place.rglob(SEAL))


@contextlib.contextmanager
def _clear_errors(output: Path) -> Iterator[None]:
    """Say in one line that the disk is full. The hosts' writers have errors of their own, of which none is an OSError."""
    try:
        yield
    except Exception as error:
        reason = _disk_error(error)
        if reason is None:
            raise
        raise InputError(
            f"{output}: cannot be written ({reason}). What is finished is kept; repeat the command when there is room."
        ) from error


def _disk_error(error: Exception) -> str | None:
    """What is wrong with the disk, or None for any other error."""
    if isinstance(error, OSError):
        return error.strerror if error.errno in _DISK_ERRORS else None
    # safetensors and tokenizers name the number; PyTorch's writer only sees that the file is shorter than it should be.
    if (found := _ERROR_NUMBER.search(str(error))) and int(found[1]) in _DISK_ERRORS:
        return os.strerror(int(found[1]))
    return "a file was cut short" if "inline_container.cc" in str(error) else None
