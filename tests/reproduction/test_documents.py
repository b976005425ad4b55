"""Writing between markers: nothing else of the document changes, and a document without a single place is refused."""

from __future__ import annotations

import pytest

from reproduction.documents import put_between
from tests.refusals import refused

PAGE = "# Title\n\n<!-- table -->\nold\n<!-- end of table -->\n\nAfter, with \\1 in it.\n"


def test_only_what_stands_between_the_markers_is_replaced() -> None:
    written = put_between(PAGE, "table", "| \\1 |\n")
    assert written == "# Title\n\n<!-- table -->\n\n| \\1 |\n\n<!-- end of table -->\n\nAfter, with \\1 in it.\n"
    assert put_between(written, "table", "| \\1 |") == written
    assert put_between(written, "table", "") == PAGE.replace("old\n", "")


@pytest.mark.parametrize(
    "document",
    ["# Title\n", "<!-- end of table -->\n<!-- table -->\n", "<!-- table -->\n<!-- table -->\n<!-- end of table -->\n"],
)
def test_a_document_without_a_single_place_is_refused(document: str) -> None:
    with refused("document: has no single place between '<!-- table -->' and '<!-- end of table -->'. Put the markers in."):
        put_between(document, "table", "x")
