"""A conversation that is written in a layout of traces, evaluation logs or data sets is read back as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialeval_plugin.conversations.layouts import datasets, evals, find, traces
from dialeval_plugin.conversations.reading import ReadingOptions
from dialeval_plugin.conversations.record import Conversation
from dialeval_plugin.corpora.scored_input import Source

from .reading_back import TEXTS
from .request_writers import CONVERSATIONS, REQUESTS, Turns

WITHOUT_ID = {"simple-evals", "parlai"}
"""Layouts that call no conversation by a name."""
BY_PEOPLE = {"topical-chat", "blended-skill-talk", "dailydialog"}
"""Layouts of people who talk, among whom no assistant is; and those of one question: what they hold is no such conversation."""
OF_ONE_QUESTION = {"dispreferred", "question-answer", "dolly", "open-orca"}


@st.composite
def conversations(draw: st.DrawFn) -> Turns:
    turns: Turns = []
    for _ in range(draw(st.integers(1, 3))):
        turns += [(role, draw(TEXTS)) for role in ("user", "assistant")]
    return turns


@pytest.mark.parametrize("name", [*REQUESTS, *CONVERSATIONS])
def test_what_is_written_in_a_layout_is_read_back(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    layout = find({}, name.partition(" ")[0])
    assert layout is not None
    path = tmp_path_factory.mktemp("logs") / ("chat.txt" if layout.rows else "chat.jsonl")
    asks = any(one.open_question for one in (*datasets.LAYOUTS, *evals.LAYOUTS, *traces.LAYOUTS) if one.name == layout.name)
    options = ReadingOptions(layout=layout.name if asks and name != "ragas" else None)

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(conversations(), st.from_regex(r"[a-z][a-z0-9-]{3,12}", fullmatch=True))
    def check(turns: Turns, id: str) -> None:
        written = (REQUESTS.get(name) or CONVERSATIONS[name])(turns, id)
        text = written if isinstance(written, str) else "".join(json.dumps(row) + "\n" for row in written)
        path.write_text(text, encoding="utf-8", newline="")
        (found,) = (one for one in Source(str(path), options).conversations() if isinstance(one, Conversation))
        assert [(turn.speaker, turn.text) for turn in found.turns] == turns
        assert list(found.responses()) == ([len(turns) - 1] if name in REQUESTS else list(range(1, len(turns), 2)))
        assert len(found.sources) == len(found.turns)
        if layout.name not in WITHOUT_ID:
            assert found.id == id

    check()


def test_every_layout_of_these_families_has_a_writer() -> None:
    names = {layout.name for family in (traces, evals, datasets) for layout in family.LAYOUTS}
    assert names - BY_PEOPLE - OF_ONE_QUESTION <= {name.partition(" ")[0] for name in (*REQUESTS, *CONVERSATIONS)}
