"""Papers by their keys: what a scorer, a metric and a task folder cite is the same entry."""

from __future__ import annotations

import pytest

from dialeval_plugin.core.registry import scorer_factory, scorer_names
from dialeval_plugin.core.resources import bibtex


def test_an_entry_is_whole() -> None:
    assert bibtex("nedelchev2023automatic") == "\n".join(
        [
            "@phdthesis{nedelchev2023automatic,",
            "  title  = {Automatic Evaluation of Dialogue-Systems Using Neural-Network Methods},",
            "  author = {Nedelchev, Rostislav},",
            '  school = {Rheinische Friedrich-Wilhelms-Universit{\\"a}t Bonn},',
            "  year   = {2023}",
            "}",
        ]
    )
    with pytest.raises(KeyError, match=r"^'nobody2020nothing'$"):
        bibtex("nobody2020nothing")


@pytest.mark.parametrize("name", scorer_names())
def test_a_scorer_cites_one_paper_with_its_braces_closed(name: str) -> None:
    citation = getattr(scorer_factory(name), "citation", "")
    assert citation.count("{") == citation.count("}")
    assert citation.count("@") == bool(citation)
