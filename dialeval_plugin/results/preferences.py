"""Files of preferences: how often the answer that people preferred scores higher, and how often it is merely the longer one.

Read are the rows of TRL (`prompt`, `chosen`, `rejected`, texts or messages), HH-RLHF (transcripts of `Human:`, `Assistant:`),
UltraFeedback (messages that begin with their prompt), ShareGPT (`conversations` as the prompt), OpenAI's DPO (`input`,
`preferred_output`, `non_preferred_output`) and arena battles (`conversation_a`, `conversation_b`, `winner`). What is scored is
the last answer, after all that was said before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.files import Line, parse_json
from dialeval_plugin.core.scorer import Scorer, run
from dialeval_plugin.corpora.conversations import examples_from
from dialeval_plugin.corpora.score_files import rows_of_file
from dialeval_plugin.reports.tables import Table, TableColumn
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Estimate
from dialeval_plugin.statistics.means import mean_interval

from .printed import estimated, figures

Messages: TypeAlias = list[dict[str, Any]]
TIE, EQUAL, UNSCORED = "ties of the raters", "equal answers", "an answer without a score"
LIKE_LENGTH = 1.25
"""Answers are of like length where the longer one has at most so many times the words of the other one."""
SHORTER, ALIKE, LONGER = "is shorter", "is of like length", "is longer"
_SPOKEN = re.compile(r"(?:^|\n\n)(Human|Assistant):")
_ROLES = {"Human": "user", "Assistant": "assistant", "human": "user", "gpt": "assistant"}
_PROMPTS = ("prompt", "conversations", "question", "instruction")
_WINNERS = {"model_a": ("conversation_a", "conversation_b"), "model_b": ("conversation_b", "conversation_a")}


class Pair(NamedTuple):
    """The answer that people preferred, and the other one, each after its context."""

    preferred: Example
    other: Example


class Pairs(NamedTuple):
    """The pairs of a file; `left_out` counts the rows that are none, by why."""

    name: str
    pairs: Sequence[Pair]
    left_out: Counter[str]


@dataclass(frozen=True)
class PreferenceShares:
    """Of the pairs of each length bucket, and of all: in which share the preferred answer scores higher, and is longer.

    A tie counts as half. Pairs are resampled with all that begin alike, so that several answers to one prompt are one cluster.
    """

    pairs: Pairs
    shares: Mapping[str, tuple[Estimate, Estimate]]
    n_ties: int
    signature: str
    column: str

    @property
    def verdict(self) -> str:
        """Say in a sentence how often the preferred answer scores higher."""
        share, longer = self.shares["all"]
        return (
            f"The preferred answer scores higher in {share.text()} of {share.n_scored} pairs; it is the longer one in "
            f"{longer.text()}."
        )

    def table(self) -> Table:
        """Return the shares, a row a bucket of lengths."""
        rows = [
            {"preferred": name, **figures(share), **{f"longer_{name}": one for name, one in figures(longer).items()}}
            for name, (share, longer) in self.shares.items()
        ]
        notes = [self.verdict, f"equal scores, which count as half: {self.n_ties} of {self.shares['all'][0].n_scored} pairs"]
        notes += [f"left out, {what}: {n} pairs" for what, n in self.pairs.left_out.items()]
        names = TableColumn("the preferred answer", lambda row: str(row["preferred"]), is_number=False)
        counts = (
            TableColumn("pairs", lambda row: str(row["n_scored"])),
            TableColumn("prompts", lambda row: str(row["n_clusters"])),
        )
        columns = [names, *estimated("scores higher"), *estimated("is longer", "longer_"), *counts]
        settings = {"verdict": self.verdict, "file": self.pairs.name, "column": self.column, "signature": self.signature}
        return Table(rows, columns, [*notes, self.signature], settings)


def read_pairs(path: Path) -> Pairs | None:
    """Read the pairs of a file (.jsonl, .json, .csv, .parquet); None where its first row is none.

    Raises:
        InputError: a row is malformed; the message names it.
    """
    rows = rows_of_file(path)
    read = next((read for names, read in _LAYOUTS if rows[0].value.keys() >= names), None)
    if read is None:
        return None
    left_out: Counter[str] = Counter()
    sides: tuple[list[dict[str, Any]], list[dict[str, Any]]] = [], []
    for number, row in enumerate(rows):
        if (both := read(row)) is None:
            left_out[TIE] += 1
            continue
        for side, messages in zip(sides, both, strict=True):
            if not messages or messages[-1].get("role") != "assistant":
                raise InputError(f"{row.where}: does not end with an answer of the assistant. Mend the row, or leave it out.")
            side.append({"id": str(number), "messages": messages})
    pairs = []
    for preferred, other in zip(*(examples_from(side, "last") for side in sides), strict=True):
        if preferred.response.text.split() == other.response.text.split():
            left_out[EQUAL] += 1
        else:
            pairs.append(Pair(replace(preferred, id=f"{preferred.id}+"), replace(other, id=f"{other.id}-")))
    if not pairs:
        raise InputError(f"{path}: has no pair of which one answer is preferred. Give some.")
    return Pairs(str(path), pairs, left_out)


def preference_shares(
    pairs: Pairs, scorer: Scorer, column: str | None = None, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, progress: bool = False
) -> PreferenceShares:
    """Score both answers of each pair and return in which share the preferred one scores higher.

    Raises:
        InputError: the scorer judges whole dialogues, or has no such column.
    """
    if scorer.level != "turn":
        raise InputError(f"{scorer.name}: scores whole dialogues, and pairs are of answers. Choose another scorer.")
    scores = run(scorer, [one for side in zip(*pairs.pairs, strict=True) for one in side], progress=progress)
    column = column or scores.main
    if column not in scores.columns:
        raise unknown_name(f"--column: there are no scores {column!r}", column, scores.columns)
    values, n = scores.columns[column], len(pairs.pairs)
    sign = -1 if scores.orientation == "lower" else 1
    found: dict[str, list[tuple[float, float, str]]] = {name: [] for name in (SHORTER, ALIKE, LONGER, "all")}
    left_out = Counter(pairs.left_out)
    for pair, preferred, other in zip(pairs.pairs, values[:n], values[n:], strict=True):
        if preferred is None or other is None:
            left_out[UNSCORED] += 1
            continue
        words, others = (len(one.response.text.split()) for one in pair)
        bucket = LONGER if words > LIKE_LENGTH * others else SHORTER if others > LIKE_LENGTH * words else ALIKE
        opening = pair.preferred.context[0].text if pair.preferred.context else ""
        one = _points(sign * preferred, sign * other), _points(words, others), opening
        found[bucket].append(one)
        found["all"].append(one)
    shares = {name: _shares(rows, bootstrap) for name, rows in found.items() if rows or name == "all"}
    n_ties = sum(points == 0.5 for points, _, _ in found["all"])
    return PreferenceShares(pairs._replace(left_out=left_out), shares, n_ties, str(scores.signature), column)


def _points(preferred: float, other: float) -> float:
    return 0.5 if preferred == other else float(preferred > other)


def _shares(rows: Sequence[tuple[float, float, str]], bootstrap: Bootstrap) -> tuple[Estimate, Estimate]:
    points, lengths, openings = zip(*rows, strict=True) if rows else ((), (), ())
    return (
        mean_interval(points, clusters=openings, bootstrap=bootstrap),
        mean_interval(lengths, clusters=openings, bootstrap=bootstrap),
    )


def _chosen(row: Line) -> tuple[Messages, Messages]:
    name = next((name for name in _PROMPTS if row.value.get(name) is not None), None)
    prompt = row.value[name] if name else []
    preferred, other = (_answer(prompt, row.value[field], f"{row.where}: {field}") for field in ("chosen", "rejected"))
    return preferred, other


def _answer(prompt: Any, value: Any, where: str) -> Messages:
    """The conversation that ends with an answer, which holds its prompt itself or follows it."""
    if isinstance(prompt, str) and isinstance(value, str) and _SPOKEN.match(prompt):
        return _messages(prompt.removesuffix("Assistant:").rstrip() + f"\n\nAssistant: {value.strip()}", where, "assistant")
    answer = _messages(value, where, "assistant")
    if answer and answer[0].get("role") != "assistant":
        return answer
    if not prompt:
        raise InputError(f"{where}: is an answer without a prompt. Give the prompt under 'prompt', or whole conversations.")
    return [*_messages(prompt, where, "user"), *answer]


def _openai(row: Line) -> tuple[Messages, Messages]:
    prompt = row.value["input"]
    prompt = prompt.get("messages") if isinstance(prompt, Mapping) else prompt
    preferred, other = (
        [*_messages(prompt, f"{row.where}: input", "user"), *_messages(row.value[field], f"{row.where}: {field}", "assistant")]
        for field in ("preferred_output", "non_preferred_output")
    )
    return preferred, other


def _battle(row: Line) -> tuple[Messages, Messages] | None:
    winner = str(row.value["winner"])
    if winner not in _WINNERS:
        if "tie" in winner or "both" in winner:
            return None
        raise InputError(f"{row.where}: winner is {winner!r}. Write model_a, model_b or tie.")
    preferred, other = (_messages(row.value[field], f"{row.where}: {field}", "assistant") for field in _WINNERS[winner])
    return preferred, other


_LAYOUTS = (
    (frozenset({"chosen", "rejected"}), _chosen),
    (frozenset({"input", "preferred_output", "non_preferred_output"}), _openai),
    (frozenset({"conversation_a", "conversation_b", "winner"}), _battle),
)
"""The fields that tell a layout from others, and what reads its rows; None is a tie."""


def _messages(value: Any, where: str, role: str) -> Messages:
    """Messages, a transcript of `Human:` and `Assistant:`, or one text of `role`."""
    if isinstance(value, str) and value.lstrip().startswith("[{"):
        value = parse_json(value, where)
    if isinstance(value, str):
        if not _SPOKEN.match(value):
            return [{"role": role, "content": value}]
        _, *spoken = _SPOKEN.split(value)
        return [{"role": _ROLES[name], "content": text.strip()} for name, text in zip(spoken[::2], spoken[1::2], strict=True)]
    value = [value] if isinstance(value, Mapping) else value
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        raise InputError(f"{where}: expected a text or a list of messages, got {value!r:.80}. Is this another file's layout?")
    return [
        {"role": _ROLES.get(one["from"], one["from"]), "content": one.get("value")} if "from" in one else {**one}
        for one in value
    ]
