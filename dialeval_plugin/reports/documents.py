"""Writing what a script found into a document, between two markers that stand there."""

from __future__ import annotations

import re

from dialeval_plugin.errors import InputError


def put_between(document: str, name: str, content: str) -> str:
    r"""Replace what stands between the markers `<!-- name -->` and `<!-- end of name -->`, each on a line of its own.

    Raises:
        InputError: the document does not have both markers, once.

    Example:
        >>> put_between("<!-- table -->\nold\n<!-- end of table -->\n", "table", "new")
        '<!-- table -->\n\nnew\n\n<!-- end of table -->\n'
    """
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
    if len(pattern.findall(document)) != 1 or document.count(start) != 1:
        raise InputError(f"document: has no single place between {start.strip()!r} and {end.strip()!r}. Put the markers in.")
    inside = f"\n{content.strip()}\n\n" if content.strip() else ""
    return pattern.sub(lambda _: start + inside + end, document)
