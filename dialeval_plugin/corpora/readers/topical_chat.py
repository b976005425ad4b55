"""Reader of Topical-Chat (Gopalakrishnan et al. 2019): conversations about given articles, as unlabelled text.

A file is a JSON object of `{id: {article_url, config, content: [{message, agent, sentiment, knowledge_source, turn_rating}],
conversation_rating}}`. The articles and facts that the speakers read are in other files, which are not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dialeval_plugin.core.dialogue import Dialogue, Turn, check_text, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, read_json
from dialeval_plugin.corpora.corpus import Beginning, Corpus
from dialeval_plugin.corpora.rows import text_field


def read(path: Path) -> list[Dialogue]:
    """Read a file of conversations; the agents' names are the speakers.

    Texts lose the white space around them; blank messages are left out. Ratings and sentiments, of which some are blank, are
    never looked at: what is trained on these dialogues uses no human rating.
    """
    conversations = read_json(path)
    if not isinstance(conversations, dict) or not conversations:
        raise InputError(f"{path}: expected a JSON object of conversations by id. Is this another file's layout?")
    return [Dialogue(id, _turns(f"{path}: {check_text(id, f'{path}: id')}", value)) for id, value in conversations.items()]


def _turns(where: str, conversation: Any) -> tuple[Turn, ...]:
    content = conversation.get("content") if isinstance(conversation, dict) else None
    if not isinstance(content, list):
        raise InputError(f"{where}: expected an object with 'content', a list, got {conversation!r:.80}.")
    turns = []
    for index, value in enumerate(content):
        if not isinstance(value, dict):
            raise InputError(f"{where}: content[{index}]: expected an object with 'message' and 'agent', got {value!r:.80}.")
        line = Line(f"{where}: content[{index}]", value)
        speaker = text_field(line, "agent")
        if not is_blank(text := text_field(line, "message")):
            turns.append(Turn(text.strip(), speaker))
    return tuple(turns)


def _recognises(file: Beginning) -> bool:
    first = next(iter(file.value.values()), None) if isinstance(file.value, dict) and not file.is_array else None
    return isinstance(first, dict) and "content" in first


CORPUS = Corpus(
    name="topical_chat",
    layout="JSON object of conversations by id",
    recognises=_recognises,
    read_dialogues=read,
)
