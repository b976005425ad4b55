"""Texts of others as cells of tables that programs compute or draw: a name stays a name there.

Names of systems, tasks, metrics and models come from files that others wrote. In a spreadsheet a cell may be a formula, in
Markdown a link, an image that is loaded, or the end of its row.
"""

from __future__ import annotations

import re

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Line ends and control characters, those that turn the direction of writing among them.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def for_spreadsheet(cell: str) -> str:
    """Return `cell` so that no spreadsheet runs it: with an apostrophe in front, which is shown as text (OWASP).

    Example:
        >>> for_spreadsheet("=HYPERLINK(1)"), for_spreadsheet(" @SUM(1)"), for_spreadsheet("So = what?")
        ("'=HYPERLINK(1)", "' @SUM(1)", 'So = what?')
    """
    return f"'{cell}" if cell.startswith(_FORMULA_STARTS) or cell.lstrip().startswith(_FORMULA_STARTS) else cell


def one_line(cell: str) -> str:
    r"""Return `cell` without line breaks and control characters, for which blanks stand.

    Example:
        >>> one_line("a\nb")
        'a b'
    """
    return _CONTROL.sub(" ", cell)


def for_markdown(cell: str) -> str:
    r"""Return `cell` so that Markdown shows it as it is, in one cell of a table: no link, no image, no markup of HTML.

    Example:
        >>> print(for_markdown("![x](http://y) | 0.5 [0.4, 0.6]"))
        ![x]\(http\://y) \| 0.5 [0.4, 0.6]
    """
    text = one_line(cell).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    # What looks like an address is made a link of, without brackets too.
    return text.replace("](", "]\\(").replace("://", "\\://").replace("www.", "www\\.")
