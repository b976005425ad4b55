"""A sheet for people: a seeded sample of the responses, each with a blank cell for their verdict."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Sequence
from pathlib import Path

from dialeval_plugin.core.files import write_text
from dialeval_plugin.core.plain_text import for_spreadsheet

from .generation import AugmentedContext
from .numbered_lists import KINDS

HEADER = ("context_id", "context", "response", "intended_label", "verdict")

_TAGS = ("FS", "SS")
_BYTE_ORDER_MARK = "\ufeff"


def write_spot_check(path: Path, contexts: Sequence[AugmentedContext], *, n: int, seed: int) -> int:
    """Write a CSV file with `n` accepted responses, drawn without replacement and in random order; all where there are fewer.

    Every cell is quoted, and none is a formula. The file starts with a byte order mark, without which Excel misreads UTF-8.

    Returns:
        The number of rows below the header.

    Raises:
        InputError: the file cannot be written.
    """
    rows = [
        (item.id, "\n".join(f"{_TAGS[place % 2]}: {turn}" for place, turn in enumerate(item.context)), text, kind)
        for item in contexts
        for kind in KINDS
        for text in item.responses(kind)
    ]
    chosen = random.Random(seed).sample(rows, min(n, len(rows)))
    sheet = io.StringIO()
    writer = csv.writer(sheet, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows([*map(for_spreadsheet, row), ""] for row in chosen)
    write_text(path, _BYTE_ORDER_MARK + sheet.getvalue())
    return len(chosen)
