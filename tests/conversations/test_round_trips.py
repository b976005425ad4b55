"""A conversation that is written in a layout is read back as it was, and the layout is recognised as itself."""

from __future__ import annotations

import contextlib
import html
import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dialeval_plugin.conversations.layouts import LAYOUTS, datasets, evals, exports, find, messengers, traces
from dialeval_plugin.conversations.messages import answering, is_role
from dialeval_plugin.conversations.order import Order
from dialeval_plugin.conversations.record import Conversation, ReadingOptions
from dialeval_plugin.core.errors import InputError, NothingToScore
from dialeval_plugin.corpora.scored_input import Source
from tests.conversations.reading_back import TEXTS
from tests.conversations.request_writers import CONVERSATIONS, REQUESTS
from tests.conversations.writers import WRITERS, Turns, layout_of, spoken, text_of
from tests.refusals import refusal

WITHOUT_ID = {"codex", "sillytavern", "voiceflow", "whatsapp", "slack", "twilio", "simple-evals", "parlai", "transcript",
              "text-generation-webui", "pydantic-ai", "autogen", "semantic-kernel", "copilot-cli", "gemini-cli",
              "openhands", "aider", "koboldcpp", "cline-ui", "mattermost", "irc", "line",
              "kakaotalk", "zoom", "wechat-text", "discord-text", "names"}  # fmt: skip
"""Layouts that call no conversation by a name of its own, or by another."""
UNDER_A_HEAD = {"wechat-text", "discord-text"}
"""Layouts in which the line above a text has its speaker."""
BY_PEOPLE = {"topical-chat", "blended-skill-talk", "dailydialog", "empathetic-dialogues", "soda"}
"""Layouts of people who talk, among whom no assistant is; and those of one question: what they hold is no such conversation."""
OF_ONE_QUESTION = {"dispreferred"}
_MARKUP = re.compile(r"[<\[◁]\S|^\w+:|^analysis|^null$|^>|^[-=*_~#]{3,}$")
SAID = TEXTS.filter(lambda text: bool(text) and not _MARKUP.search(text))
"""Without the markup of a prompt, a tool, Markdown or aider, and WhatsApp's word for a picture, which are no speech."""
TALK: Turns = [("system", "Be kind."), ("user", "Do you like tea?"), ("thinking", "Hm."), ("tool", "look up tea"),
               ("assistant", "I do."), ("user", "Why?"), ("assistant", "It is warm.")]  # fmt: skip


def _spellings(text: str) -> list[str]:
    """How a file may have a text: as JSON, as HTML in JSON, as it is, or as Meta and Telegram write it."""
    meta = text.encode().decode("latin-1")
    return [text, *(json.dumps(one)[1:-1] for one in (text, html.escape(text), meta, text[1:]))]


@st.composite
def conversations(draw: st.DrawFn) -> Turns:
    turns: Turns = [("system", draw(SAID))] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 3))):
        turns.append(("user", draw(SAID)))
        turns += [(role, draw(SAID)) for role in ("thinking", "tool") if draw(st.booleans())]
        turns.append(("assistant", draw(SAID)))
    asked = [text for role, text in turns if role == "user"]
    assume(len(set(asked)) == len(asked))  # rows that begin as the first ones do are asked for
    return turns


def read(path: Path, name: str, turns: Turns, id: str) -> list[Conversation]:
    path.write_text(text_of(WRITERS[name](turns, id)), encoding="utf-8", newline="")
    layout = find({}, layout_of(name)) if layout_of(name) != "message rows" else None
    options = ReadingOptions(layout=layout.name if layout is not None and layout.open_question else None)
    return [one for one in Source(str(path), options).conversations() if isinstance(one, Conversation)]


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_written_in_a_layout_is_read_back(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("logs") / "chat.jsonl"

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    @given(conversations(), st.from_regex(r"[a-z][a-z0-9-]{3,12}", fullmatch=True))
    def check(turns: Turns, id: str) -> None:
        expected = spoken(turns)
        (found,) = read(path, name, turns, id)
        answerer = answering(found.turns)
        assert [("assistant" if turn.speaker == answerer else "user", turn.text) for turn in found.turns] == expected
        assert len(set(found.numbers)) == len(found.numbers) == len(found.turns)
        lines = path.read_text(encoding="utf-8").split("\n")
        for turn, source in zip(found.turns, found.sources, strict=True):
            number = int(source.rpartition(":")[2])
            line = lines[number if name in UNDER_A_HEAD else number - 1]
            assert any(spelled in line for spelled in _spellings(turn.text))
        assert len(found.sources) == len(found.turns)
        if layout_of(name) not in WITHOUT_ID:
            assert found.id == id

    check()


@pytest.mark.parametrize("name", WRITERS)
def test_a_layout_is_recognised_as_itself(name: str) -> None:
    written = WRITERS[name](TALK, "t1")
    if isinstance(written, str):
        return
    rows = written if isinstance(written, list) else [written]
    expected = layout_of(name)
    found = [find(row, is_message=isinstance(written, list)) for row in rows]
    assert {None if layout is None else layout.name for layout in found} == {None if expected == "message rows" else expected}


@st.composite
def exchanges(draw: st.DrawFn) -> Turns:
    # In a list of two texts, such as a pair of a history, a role says who wrote the other.
    texts = TEXTS.filter(lambda text: not is_role(text))
    return [(role, draw(texts)) for _ in range(draw(st.integers(1, 3))) for role in ("user", "assistant")]


@pytest.mark.parametrize("name", [*REQUESTS, *CONVERSATIONS])
def test_a_request_or_a_row_of_a_data_set_is_read_back(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    layout = find({}, name.partition(" ")[0])
    assert layout is not None
    path = tmp_path_factory.mktemp("logs") / ("chat.txt" if layout.rows else "chat.jsonl")
    asks = any(one.open_question for one in LAYOUTS if one.name == layout.name)
    options = ReadingOptions(layout=layout.name if asks else None)

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    @given(exchanges(), st.from_regex(r"[a-z][a-z0-9-]{3,12}", fullmatch=True))
    def check(turns: Turns, id: str) -> None:
        path.write_text(text_of((REQUESTS.get(name) or CONVERSATIONS[name])(turns, id)), encoding="utf-8", newline="")
        (found,) = (one for one in Source(str(path), options).conversations() if isinstance(one, Conversation))
        assert [(turn.speaker, turn.text) for turn in found.turns] == turns
        assert list(found.responses()) == ([len(turns) - 1] if name in REQUESTS else list(range(1, len(turns), 2)))
        assert len(found.sources) == len(found.turns)
        if layout.name not in WITHOUT_ID:
            assert found.id == id

    check()


@pytest.mark.parametrize("name", [*WRITERS, *REQUESTS, *CONVERSATIONS])
def test_an_option_is_not_ignored(name: str, tmp_path: Path) -> None:
    writer = {**REQUESTS, **CONVERSATIONS, **WRITERS}[name]
    turns = TALK if name in WRITERS else spoken(TALK)
    (path := tmp_path / "chat.jsonl").write_text(text_of(writer(turns, "c1")), encoding="utf-8", newline="")
    layout = next((one.name for one in LAYOUTS if one.name == layout_of(name) and one.open_question), None)
    for field in ("speaker", "text"):
        options = ReadingOptions(layout=layout, columns={field: "no_such"})
        assert "no_such" in refusal(Source(str(path), options).read, "turn")
    kept = Source(str(path), ReadingOptions(layout=layout, keep=("no_such",)))
    kept.read("turn")
    assert "--keep no_such: nothing that was read has such a field\n" in kept.reading.remarks()
    with contextlib.suppress(NothingToScore):
        if (in_time := outcome(path, layout, "time")) != outcome(path, layout, None):
            assert "Leave --order" in str(in_time)


def outcome(path: Path, layout: str | None, order: Order | None) -> str:
    """Return what is read in an order, or the refusal."""
    try:
        return repr(Source(str(path), ReadingOptions(layout=layout, order=order)).read("turn"))
    except InputError as error:
        return str(error)


def test_every_layout_of_a_family_has_a_writer() -> None:
    names = {layout.name for family in (exports, messengers) for layout in family.LAYOUTS}
    assert names <= {layout_of(name) for name in WRITERS}
    names = {layout.name for family in (traces, evals, datasets) for layout in family.LAYOUTS}
    assert names - BY_PEOPLE - OF_ONE_QUESTION <= {name.partition(" ")[0] for name in (*REQUESTS, *CONVERSATIONS, *WRITERS)}
