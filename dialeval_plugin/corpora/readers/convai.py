"""Readers of the ConvAI challenges: dialogues of people with bots, each rated as a whole, in the published layouts.

ConvAI1 (2017) is a JSON array of `{dialogId, context, users[{id, userType}], thread[{userId, text, evaluation, time?}],
evaluation[{userId, quality, breadth, engagement}]}`. An evaluation is about the user with its id. So in a dialogue with a bot,
the person's rating has the bot's id; the person's id has a 0, which no bot gave.

ConvAI2 (2018) is a JSON array of `{dialog[{sender, text}], eval_score, profile_match}`, some with `dialog_id`, profiles or
participants; in an unrated dialogue `eval_score` is null, and a profile that nobody chose is "".

Turns are kept as published, including blank ones and empty dialogues: the thesis counts utterances before it drops any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line
from dialeval_plugin.core.registry import check_choice
from dialeval_plugin.corpora.corpus import Corpus
from dialeval_plugin.corpora.rows import id_field, objects_field, read_array, require, text_field, unique_ids, visible_turns

BotRatings: TypeAlias = Literal["left_out", "as_zero"]

CONVAI1_FILES = ("data_train_1501534800.json", "data_test_1501534800.json")
CONVAI2_FILES = tuple(f"export_2018-07-{day:02d}_train.json" for day in range(4, 8))
"""The exports of the wild evaluation, nearest to the thesis' input; two further files hold earlier and later volunteers."""

CONVAI1_QUALITIES = ("quality", "breadth", "engagement")
CONVAI2_QUALITIES = ("eval_score", "profile_match")
SCALES = {**dict.fromkeys(CONVAI1_QUALITIES, (0, 5)), "eval_score": (1, 5), "profile_match": (0, 1)}
BOT, HUMAN = "Bot", "Human"


def read_convai1(paths: Sequence[Path] | None = None, *, bot_ratings: BotRatings = "left_out") -> list[Dialogue]:
    """Read ConvAI1's dialogues, in file order.

    The qualities `quality`, `breadth` and `engagement` have values from 0 to 5. `system` is "Bot" if one took part, otherwise
    "Human".

    Args:
        paths: files of the layout; by default the corpus' own.
        bot_ratings: how to treat the 0 that the file has for each person who talked with a bot: "left_out" keeps only people's
            ratings; "as_zero" keeps the zeros, so that the mean is that of the thesis' notebook, half of the person's rating.
    """
    check_choice("convai1", "bot_ratings", bot_ratings, get_args(BotRatings))
    return _read(CONVAI1, paths, CONVAI1_FILES, lambda row, id: _convai1(row, id, bot_ratings))


def read_convai2(paths: Sequence[Path] | None = None) -> list[Dialogue]:
    """Read ConvAI2's dialogues, in file order; without paths those of the corpus' four exports.

    The qualities are `eval_score`, 1 to 5, and `profile_match`, 0 or 1; an unrated one has an empty tuple. `system` is the
    bot's name if the file has it. A dialogue without an id is named after its file and position.
    """
    return _read(CONVAI2, paths, CONVAI2_FILES, _convai2)


def _read(
    corpus: Corpus, paths: Sequence[Path] | None, names: Sequence[str], read_row: Callable[[Line, str], Dialogue]
) -> list[Dialogue]:
    chosen = list(map(corpus.file, names)) if paths is None else paths
    rows = [(row, f"{path.stem}_{index:05d}") for path in chosen for index, row in enumerate(read_array(path))]
    ids = unique_ids([id_field(row, "dialogId", "dialog_id") or name for row, name in rows])
    return [read_row(row, id) for (row, _), id in zip(rows, ids, strict=True)]


def _as_text(dialogues: Iterable[Dialogue]) -> list[Dialogue]:
    """Return the dialogues without ratings and blank turns; those without any text are left out."""
    visible = (replace(one, turns=visible_turns(one.turns), ratings={}) for one in dialogues)
    return [dialogue for dialogue in visible if dialogue.turns]


def _convai1(row: Line, id: str, bot_ratings: BotRatings) -> Dialogue:
    kinds = {text_field(user, "id"): text_field(user, "userType") for user in objects_field(row, "users")}
    for user, kind in kinds.items():
        if kind not in (BOT, HUMAN):
            raise InputError(f"{row.where}: users: {user!r} has the type {kind!r}, expected {BOT!r} or {HUMAN!r}.")
    turns = tuple(Turn(text_field(turn, "text"), _user(turn, kinds)) for turn in objects_field(row, "thread"))
    evaluations = objects_field(row, "evaluation")
    by_bots = [any(kind == BOT for user, kind in kinds.items() if user != _user(one, kinds)) for one in evaluations]
    rated = [one for one, by_bot in zip(evaluations, by_bots, strict=True) if bot_ratings == "as_zero" or not by_bot]
    ratings = {name: tuple(_rating(one, name) for one in rated) for name in CONVAI1_QUALITIES}
    return Dialogue(id, turns, BOT if BOT in kinds.values() else HUMAN, ratings)


def _user(row: Line, kinds: dict[str, str]) -> str:
    user = text_field(row, "userId")
    if user not in kinds:
        raise InputError(f"{row.where}: userId: {user!r} is not among the users {', '.join(map(repr, kinds))}.")
    return user


def _convai2(row: Line, id: str) -> Dialogue:
    turns = tuple(Turn(text_field(turn, "text"), text_field(turn, "sender")) for turn in objects_field(row, "dialog"))
    require(row, *CONVAI2_QUALITIES)
    ratings = {name: () if row.value[name] in (None, "") else (_rating(row, name),) for name in CONVAI2_QUALITIES}
    return Dialogue(id, turns, _bot(row), ratings)


def _bot(row: Line) -> str | None:
    """Return the name of the bot; None for the exports, which name nobody."""
    for name in ("participant1_id", "participant2_id"):
        participant = row.value.get(name)
        if isinstance(participant, dict) and participant.get("class") == BOT:
            return text_field(Line(f"{row.where}: {name}", participant), "user_id")
    return None


def _rating(row: Line, name: str) -> float:
    value: Any = row.value.get(name)
    low, high = SCALES[name]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not low <= value <= high:
        raise InputError(f"{row.where}: {name}: expected a number from {low} to {high}, got {value!r}.")
    return float(value)


CONVAI1 = Corpus(
    name="convai1",
    layout="JSON array with `thread`",
    recognises=lambda file: file.is_array and file.has("thread", "users"),
    qualities={"dialogue": CONVAI1_QUALITIES},
    overall={"dialogue": "quality"},
    read_items=lambda path: read_convai1([path]),
    read_dialogues=lambda path: _as_text(read_convai1([path])),
    sets={"convai1": read_convai1},
    is_chat=True,
)
CONVAI2 = Corpus(
    name="convai2",
    layout="JSON array with `dialog`, `eval_score`",
    recognises=lambda file: file.is_array and file.has("dialog", "eval_score"),
    qualities={"dialogue": CONVAI2_QUALITIES},
    overall={"dialogue": "eval_score"},
    read_items=lambda path: read_convai2([path]),
    read_dialogues=lambda path: _as_text(read_convai2([path])),
    sets={"convai2": read_convai2},
    is_chat=True,
)
