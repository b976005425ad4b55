"""Augmentation of many contexts: finished ones are journalled, and the result is written in DailyDialog++'s layout."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tqdm.auto import tqdm

from dialeval_plugin.core.files import to_json, write_json_lines
from dialeval_plugin.core.journal import Journal
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.core.signature import Value
from dialeval_plugin.version import __version__

from .generation import FIELDS, AugmentedContext, ResponseWriter
from .numbered_lists import KINDS

logger = logging.getLogger(__name__)


class ContextLike(Protocol):
    """A context, as `corpora.dailydialog_pp` reads it."""

    @property
    def id(self) -> str:
        """Unique among the contexts."""

    @property
    def context(self) -> tuple[str, ...]:
        """Turns, oldest first."""


class Augmented(NamedTuple):
    """What became of the contexts, each list in the order given."""

    complete: list[AugmentedContext]
    incomplete: list[AugmentedContext]
    """Contexts for which the rounds did not suffice; their `reason` says what is missing."""
    failed: list[tuple[ContextLike, Unscored]]
    """Contexts for which the model gave no answer; they are not journalled, so that the next run asks again."""


def augment(
    contexts: Sequence[ContextLike], writer: ResponseWriter, *, journal: Path | None = None, progress: bool = False
) -> Augmented:
    """Have responses written to each context, one after the other; with a `journal`, a run that was killed goes on.

    At most the context in flight is lost. Given the same answers, a resumed run ends with what an uninterrupted one gives.

    Raises:
        InputError: the journal belongs to another run, is damaged or in use by another process, or cannot be written.
    """
    if journal is None:
        return _augment(contexts, writer, None, progress=progress)
    log = Journal(journal, _run_id(contexts, writer))
    with log.lock():
        return _augment(contexts, writer, log, progress=progress)


def _augment(contexts: Sequence[ContextLike], writer: ResponseWriter, log: Journal | None, *, progress: bool) -> Augmented:
    done = {item.id: item for item in log.read(AugmentedContext.from_dict)} if log is not None else {}
    failed: dict[str, Unscored] = {}
    bar = tqdm(total=len(contexts), initial=len(done), disable=None if progress else True, unit="context", desc="augment")
    with bar:
        for item in contexts:
            if item.id in done:
                continue
            found = writer.write(item.id, item.context)
            if isinstance(found, Unscored):
                failed[item.id] = found
            else:
                if log is not None:
                    log.append(found.to_dict())
                done[item.id] = found
            bar.update()
    if failed:
        logger.warning("augment: the model gave no answer for %d of %d contexts", len(failed), len(contexts))
    ordered = [done[item.id] for item in contexts if item.id in done]
    return Augmented(
        [item for item in ordered if item.reason is None],
        [item for item in ordered if item.reason is not None],
        [(item, failed[item.id]) for item in contexts if item.id in failed],
    )


def incomplete_path(output: Path) -> Path:
    """Where `write_augmented` puts what is not in `output`."""
    return output.with_name(output.name + ".incomplete.jsonl")


def write_augmented(augmented: Augmented, output: Path, provenance: dict[str, Value]) -> None:
    """Write the complete contexts to `output` and the others, with their reasons, to `<output>.incomplete.jsonl`.

    A file that would be empty is not written, and one that an earlier run left in its place is removed.

    Raises:
        InputError: a file cannot be written.
    """
    shared = {**provenance, "version": __version__}
    rest: list[dict[str, Any]] = [{**item.row(shared), "reason": item.reason} for item in augmented.incomplete]
    rest += [
        {
            "id": item.id,
            "context": list(item.context),
            **{FIELDS[kind]: [] for kind in KINDS},
            "reason": f"{why.reason.value}: {why.detail}",
        }
        for item, why in augmented.failed
    ]
    for path, rows in ((output, [item.row(shared) for item in augmented.complete]), (incomplete_path(output), rest)):
        if rows:
            write_json_lines(path, rows)
        else:
            path.unlink(missing_ok=True)


def _run_id(contexts: Sequence[ContextLike], writer: ResponseWriter) -> str:
    digest = hashlib.sha256(to_json({**writer.provenance, "version": __version__}).encode())
    for item in contexts:
        digest.update(to_json([item.id, list(item.context)]).encode() + b"\n")
    return digest.hexdigest()
