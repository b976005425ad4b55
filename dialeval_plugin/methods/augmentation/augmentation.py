"""Augmentation of many contexts, in DailyDialog++'s layout, and a sheet on which people check a sample of the responses."""

from __future__ import annotations

import csv
import hashlib
import io
import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tqdm.auto import tqdm

from dialeval_plugin.core.files import to_json, write_json_lines, write_text
from dialeval_plugin.core.journal import Journal
from dialeval_plugin.core.plain_text import for_spreadsheet
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.core.signature import Value
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.version import __version__

from .generation import FIELDS, AugmentedContext, ResponseWriter
from .numbered_lists import KINDS

logger = logging.getLogger(__name__)

SHEET_HEADER = ("context_id", "context", "response", "intended_label", "verdict")


class Augmented(NamedTuple):
    """What became of the contexts, each list in the order given."""

    complete: list[AugmentedContext]
    incomplete: list[AugmentedContext]
    """Contexts for which the rounds did not suffice; their `reason` says what is missing."""
    failed: list[tuple[ResponseSet, Unscored]]
    """Contexts for which the model gave no answer; they are not journalled, so that the next run asks again."""


def augment(
    contexts: Sequence[ResponseSet], writer: ResponseWriter, *, journal: Path | None = None, progress: bool = False
) -> Augmented:
    """Have responses written to each context, one after the other; with a `journal`, a run that was killed goes on.

    At most the context in flight is lost. Given the same answers, a resumed run ends with what an uninterrupted one gives.
    """
    if journal is None:
        return _augment(contexts, writer, None, progress=progress)
    log = Journal(journal, _run_id(contexts, writer))
    with log.lock():
        return _augment(contexts, writer, log, progress=progress)


def _augment(contexts: Sequence[ResponseSet], writer: ResponseWriter, log: Journal | None, *, progress: bool) -> Augmented:
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
    """
    shared = {**provenance, "version": __version__}
    rest: list[dict[str, Any]] = [{**item.row(shared), "reason": item.reason} for item in augmented.incomplete]
    for item, why in augmented.failed:
        nothing: dict[str, list[str]] = {field: [] for field in FIELDS.values()}
        reason = f"{why.reason.value}: {why.detail}"
        rest.append({"id": item.id, "context": list(item.context), **nothing, "reason": reason})
    for path, rows in ((output, [item.row(shared) for item in augmented.complete]), (incomplete_path(output), rest)):
        if rows:
            write_json_lines(path, rows)
        else:
            path.unlink(missing_ok=True)


def write_spot_check(path: Path, contexts: Sequence[AugmentedContext], *, n: int, seed: int) -> int:
    """Write a CSV file with `n` accepted responses, each with a blank cell for a person's verdict; return their number.

    They are drawn without replacement and in random order; all where there are fewer. Every cell is quoted, and none is a
    formula. The file starts with a byte order mark, without which Excel misreads UTF-8.
    """
    rows = [
        (item.id, "\n".join(f"{('FS', 'SS')[place % 2]}: {turn}" for place, turn in enumerate(item.context)), text, kind)
        for item in contexts
        for kind in KINDS
        for text in item.responses(kind)
    ]
    chosen = random.Random(seed).sample(rows, min(n, len(rows)))
    sheet = io.StringIO()
    writer = csv.writer(sheet, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(SHEET_HEADER)
    writer.writerows([*map(for_spreadsheet, row), ""] for row in chosen)
    write_text(path, "\ufeff" + sheet.getvalue())
    return len(chosen)


def _run_id(contexts: Sequence[ResponseSet], writer: ResponseWriter) -> str:
    digest = hashlib.sha256(to_json({**writer.provenance, "version": __version__}).encode())
    for item in contexts:
        digest.update(to_json([item.id, list(item.context)]).encode() + b"\n")
    return digest.hexdigest()
