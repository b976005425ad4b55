"""Readers of the corpora that are published without ratings of responses or dialogues, as unlabelled text.

DailyDialog (Li et al. 2017) has one dialogue per line, `__eou__` after each utterance, and no speakers. Its acts and emotions
are in separate files, which are not read.

DREAM (Sun et al. 2019), dialogues of English exams, is an array of `[[turns], [questions], id]`.

EmpatheticDialogues (Rashkin et al. 2019) is here one CSV file per emotion: `Dialog_ID,Type,Actor,Text`. The first row of a
conversation has the type `situation` and tells what happened to the speaker; the others have the type `utterance` and the actor
`speaker` or `listener`. Texts with commas are quoted.

ESConv (Liu et al. 2021) has emotional support dialogues, one JSON object per line.

PersonaChat (Zhang et al. 2018) is read in ParlAI's text layout, as ConvAI2 (Dinan et al. 2020) published it. A line is a
number, a blank and a text; the number 1 begins a dialogue. The first lines are `your persona: ...` (and, in the files of both
sides, `partner's persona: ...`). The others hold two turns with a tab between: the partner's, and that of the speaker whom
`your persona` describes. Some files have a reward and candidates in further columns.

Topical-Chat (Gopalakrishnan et al. 2019), conversations about given articles, is a JSON object of `{id: {article_url, config,
content: [{message, agent, sentiment, knowledge_source, turn_rating}], conversation_rating}}`. The speakers' articles and facts
are in other files, which are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from dialeval_plugin.core.dialogue import Dialogue, Turn, check_text, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, read_json, read_json_lines, read_text
from dialeval_plugin.corpora.corpus import Corpus, FileHead, GroundedDialogue
from dialeval_plugin.corpora.rows import as_object, read_csv, spoken_turn, text_field, turns_field, unique_ids, visible_turns

END = "__eou__"
COLUMNS = ("Dialog_ID", "Type", "Actor", "Text")
SPEAKER, LISTENER = "speaker", "listener"
"""Speakers of EmpatheticDialogues."""
YOU, PARTNER = "you", "partner"
"""Speakers of PersonaChat, whom the file distinguishes only by position; named as in its persona lines."""
SILENCE = "__SILENCE__"
"""Placeholder for the partner's turn if the other speaker begins."""

_OF_ESCONV = {"usr": "seeker", "sys": "supporter"}
"""CGDIALOG+'s names of the speakers."""
_NUMBERED = re.compile(r"([1-9]\d{0,8}) (.*)")
_FIRST_LINE = re.compile(r"1 (your persona:|partner's persona:|[^\n]*\t)")
_PERSONA = re.compile(r"(?:(your)|partner's) persona:(.*)")
_ELSE = "Is this another file's layout?"


def read_dailydialog(path: Path) -> list[Dialogue]:
    """Read the dialogues of a file, duplicates included; texts are kept as published, with blanks before punctuation."""
    dialogues: list[Dialogue] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if is_blank(line):
            continue
        *utterances, rest = check_text(line, f"{path}:{number}").split(END)
        if not is_blank(rest):
            raise InputError(
                f"{path}:{number}: expected {END} after each utterance, found {rest[-40:]!r}. Was the file cut off?"
            )
        turns = tuple(Turn(text.strip()) for text in utterances if not is_blank(text))
        dialogues.append(Dialogue(f"{path.stem}_{len(dialogues):05d}", turns))
    if not dialogues:
        raise InputError(f"{path}: is empty, expected one dialogue a line.")
    return dialogues


def read_dream(path: Path) -> list[Dialogue]:
    """Read a file of DREAM; the questions about the dialogues are left out, and so are blank turns.

    `M: text` becomes speaker and text; the spelling, with commas for some apostrophes, stays as published.
    """
    rows = read_json(path)
    if not isinstance(rows, list) or not rows:
        raise InputError(f"{path}: expected a JSON array of dialogues. {_ELSE}")
    ids, dialogues = [], []
    for index, row in enumerate(rows):
        where = f"{path}: dialogue {index}"
        if not (isinstance(row, list) and len(row) == 3 and isinstance(row[0], list)):
            raise InputError(f"{where}: expected [turns, questions, id], got {row!r:.80}. {_ELSE}")
        texts = [check_text(text, f"{where}: turn {number}") for number, text in enumerate(row[0])]
        ids.append(check_text(row[2], f"{where}: id"))
        dialogues.append(tuple(spoken_turn(text) for text in texts if not is_blank(text)))
    return list(map(Dialogue, unique_ids(ids), dialogues))


def read_empathetic_dialogues(path: Path) -> list[GroundedDialogue]:
    """Read the conversations of a file; the situation is the speaker's fact and not a turn.

    Texts lose the white space around them; blank turns are left out.
    """
    rows = read_csv(path)
    if missing := [name for name in COLUMNS if name not in rows[0].value]:
        raise InputError(f"{path}:1: has no column {missing[0]!r}. {_ELSE}")
    conversations = [list(group) for _, group in groupby(rows, key=lambda row: row.value["Dialog_ID"])]
    ids = unique_ids([group[0].value["Dialog_ID"] for group in conversations])
    return list(map(_conversation, ids, conversations))


def _conversation(id: str, rows: Sequence[Line]) -> GroundedDialogue:
    first, *others = rows
    if first.value["Type"] != "situation":
        raise InputError(f"{first.where}: the conversation {id!r} begins without its situation. Were rows sorted or left out?")
    turns = []
    for row in others:
        kind, actor = text_field(row, "Type"), text_field(row, "Actor")
        if kind != "utterance" or actor not in (SPEAKER, LISTENER):
            raise InputError(
                f"{row.where}: expected an utterance of {SPEAKER} or {LISTENER}, got the type {kind!r} and the actor {actor!r}."
            )
        turns.append(Turn(text_field(row, "Text").strip(), actor))
    return GroundedDialogue(Dialogue(id, visible_turns(turns)), {SPEAKER: (text_field(first, "Text").strip(),)})


def read_esconv(path: Path) -> list[Dialogue]:
    """Read a file of ESConv; strategies and survey scores, which may be missing, are left out, and so are blank turns.

    A dialogue is named after the file and its line, for example `train_00012`: the file has no ids.
    """
    dialogues = []
    for index, line in enumerate(read_json_lines(path)):
        turns = visible_turns(turns_field(line, "dialog"))
        named = (Turn(turn.text, _OF_ESCONV.get(turn.speaker or "", turn.speaker)) for turn in turns)
        dialogues.append(Dialogue(f"{path.stem}_{index:05d}", tuple(named)))
    return dialogues


def read_personachat(path: Path) -> list[GroundedDialogue]:
    """Read a file of PersonaChat; the persona lines are the facts of the speaker whom they describe.

    Texts stay as published, in lower case with blanks before punctuation; blank turns, `__SILENCE__`, rewards and candidates
    are left out. A dialogue is named after the file and its position, for example `valid_self_original_no_cands_00012`.
    """
    dialogues: list[GroundedDialogue] = []
    for lines in _numbered_lines(path):
        facts: dict[str, list[str]] = {}
        turns: list[Turn] = []
        for where, text in lines:
            # A persona line has no tab; a turn may say "... your own persona: ...".
            if (persona := _PERSONA.fullmatch(text)) and "\t" not in text:
                facts.setdefault(YOU if persona[1] else PARTNER, []).append(persona[2].strip())
            else:
                turns += _exchange(where, text)
        dialogue = Dialogue(f"{path.stem}_{len(dialogues):05d}", tuple(turns))
        dialogues.append(GroundedDialogue(dialogue, {speaker: tuple(own) for speaker, own in facts.items()}))
    return dialogues


def _numbered_lines(path: Path) -> Iterator[list[tuple[str, str]]]:
    """Yield each dialogue's lines without their numbers."""
    lines: list[tuple[str, str]] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        where, text = f"{path}:{number}", line.rstrip("\r")
        if is_blank(text):
            continue
        match = _NUMBERED.fullmatch(check_text(text, where))
        if match is None:
            raise InputError(f"{where}: expected a number, a blank and a text, got {text[:80]!r}. {_ELSE}")
        if match[1] == "1" and lines:
            yield lines
            lines = []
        if int(match[1]) != len(lines) + 1:
            raise InputError(
                f"{where}: expected a line numbered {len(lines) + 1} or 1, got {match[1]}. Were lines taken out of the file?"
            )
        lines.append((where, match[2]))
    if not lines:
        raise InputError(f"{path}: is empty, expected numbered lines.")
    yield lines


def _exchange(where: str, text: str) -> Iterator[Turn]:
    partner, tab, rest = text.partition("\t")
    if not tab:
        raise InputError(f"{where}: expected a tab between the turns of the two speakers, got {text[:80]!r}. Was it lost?")
    for spoken, speaker in ((partner, PARTNER), (rest.partition("\t")[0], YOU)):
        if not is_blank(spoken) and spoken.strip() != SILENCE:
            yield Turn(spoken.strip(), speaker)


def read_topical_chat(path: Path) -> list[Dialogue]:
    """Read a file of Topical-Chat; the agents' names are the speakers.

    Texts lose the white space around them; blank messages are left out. Ratings and sentiments, some of them blank, are not
    read: training on these dialogues uses no human rating.
    """
    conversations = read_json(path)
    if not isinstance(conversations, dict) or not conversations:
        raise InputError(f"{path}: expected a JSON object of conversations by id. {_ELSE}")
    rows = {id: as_object(value, f"{path}: {check_text(id, f'{path}: id')}") for id, value in conversations.items()}
    turns = {id: turns_field(row, "content", speaker="agent", text="message") for id, row in rows.items()}
    return [Dialogue(id, visible_turns(spoken)) for id, spoken in turns.items()]


def _is_topical_chat(file: FileHead) -> bool:
    first = next(iter(file.value.values()), None) if isinstance(file.value, dict) and not file.is_array else None
    return isinstance(first, dict) and "content" in first


DAILYDIALOG = Corpus(
    name="dailydialog",
    layout="a line a dialogue, `__eou__` after each utterance",
    recognises=lambda file: file.value is None and END in file.text,
    read_dialogues=read_dailydialog,
)
DREAM = Corpus(
    name="dream",
    layout="JSON array of `[turns, questions, id]`",
    recognises=lambda file: file.is_array and isinstance(file.value, list),
    read_dialogues=read_dream,
)
EMPATHETIC_DIALOGUES = Corpus(
    name="empathetic_dialogues",
    layout="CSV an emotion",
    recognises=lambda file: file.text.startswith("Dialog_ID,"),
    read_dialogues=read_empathetic_dialogues,
)
ESCONV = Corpus(
    name="esconv",
    layout="JSON lines with `dialog`",
    recognises=lambda file: not file.is_array and file.has("dialog"),
    read_dialogues=read_esconv,
)
PERSONACHAT = Corpus(
    name="personachat",
    layout="ParlAI text: numbered lines, a tab between two speakers",
    recognises=lambda file: _FIRST_LINE.match(file.text) is not None,
    read_dialogues=read_personachat,
)
TOPICAL_CHAT = Corpus(
    name="topical_chat",
    layout="JSON object of conversations by id",
    recognises=_is_topical_chat,
    read_dialogues=read_topical_chat,
)
