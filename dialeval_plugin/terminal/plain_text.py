"""Escaping of names from other people's files, which could be formulas in spreadsheets, or links and images in Markdown."""

from __future__ import annotations

import re

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Line ends and control characters, also those of the writing direction.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def for_spreadsheet(cell: str) -> str:
    """Return `cell`, with an apostrophe in front if it is a formula (OWASP).

    Example:
        >>> for_spreadsheet("=HYPERLINK(1)"), for_spreadsheet(" @SUM(1)"), for_spreadsheet("So = what?")
        ("'=HYPERLINK(1)", "' @SUM(1)", 'So = what?')
    """
    return f"'{cell}" if cell.startswith(_FORMULA_STARTS) or cell.lstrip().startswith(_FORMULA_STARTS) else cell


def one_line(cell: str) -> str:
    r"""Return `cell` with blanks in place of line breaks and control characters.

    Example:
        >>> one_line("a\nb")
        'a b'
    """
    return _CONTROL.sub(" ", cell)


def for_markdown(cell: str) -> str:
    r"""Return `cell` escaped for a cell of a Markdown table: without links, images and HTML.

    Example:
        >>> print(for_markdown("![x](http://y) | 0.5 [0.4, 0.6]"))
        ![x]\(http\://y) \| 0.5 [0.4, 0.6]
    """
    text = one_line(cell).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    # Addresses become links without brackets too.
    return text.replace("](", "]\\(").replace("://", "\\://").replace("www.", "www\\.")
