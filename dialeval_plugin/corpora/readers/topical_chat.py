"""Reader of Topical-Chat (Gopalakrishnan et al. 2019): conversations about given articles, as unlabelled text.

A file is a JSON object of `{id: {article_url, config, content: [{message, agent, sentiment, knowledge_source, turn_rating}],
conversation_rating}}`. The articles and facts that the speakers read are in other files, which are not read.
"""

from __future__ import annotations

from pathlib import Path

from dialeval_plugin.core.dialogue import Dialogue, check_text
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_json
from dialeval_plugin.corpora.corpus import Beginning, Corpus
from dialeval_plugin.corpora.rows import as_object, turns_field, visible_turns


def read(path: Path) -> list[Dialogue]:
    """Read a file of conversations; the agents' names are the speakers.

    Texts lose the white space around them; blank messages are left out. Ratings and sentiments, of which some are blank, are
    never looked at: what is trained on these dialogues uses no human rating.
    """
    conversations = read_json(path)
    if not isinstance(conversations, dict) or not conversations:
        raise InputError(f"{path}: expected a JSON object of conversations by id. Is this another file's layout?")
    rows = {id: as_object(value, f"{path}: {check_text(id, f'{path}: id')}") for id, value in conversations.items()}
    turns = {id: turns_field(row, "content", speaker="agent", text="message") for id, row in rows.items()}
    return [Dialogue(id, visible_turns(spoken)) for id, spoken in turns.items()]


def _recognises(file: Beginning) -> bool:
    first = next(iter(file.value.values()), None) if isinstance(file.value, dict) and not file.is_array else None
    return isinstance(first, dict) and "content" in first


CORPUS = Corpus(name="topical_chat", layout="JSON object of conversations by id", recognises=_recognises, read_dialogues=read)
