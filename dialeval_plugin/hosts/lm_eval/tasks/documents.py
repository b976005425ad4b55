"""Documents of our lm-eval tasks, an `Example` or `Dialogue` per row, and the answers of the model `dialogue-metric`.

A row holds everything that a judge or a scorer may need, because the host passes on nothing else.

The host handles probabilities and words, so a score with an unbounded range would reach a task squeezed, which changes every
coefficient except rank correlations. Therefore our answers are of the host's own types and carry the score as an attribute,
which the host's filters keep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.methods.judging.goodness import GEvalReading
from dialeval_plugin.methods.judging.prompts import EXAMPLE_HEADING, goodness_instruction, goodness_question, level_of

Document: TypeAlias = dict[str, Any]

SCORER_MODEL, DEFAULT_SCORER = "dialogue-metric", "general"
"""The host's name of the model that runs a scorer, and its default scorer."""

FORMS = ("Yes", "No", "yes", "no")
"""Continuations that are scored. The host puts a space before each, or nothing under a chat template; each is then one token of
the common vocabularies, so that one forward pass answers all four.
"""
ITEM_COLUMNS = frozenset({"id", "level", "context", "response", "references", "facts", "turns", "system"})
"""Columns of `item_columns`; a row with all of them is a document of our tasks."""


def document(
    item: Item, *, rating: float, cluster: str, midpoint: float, reading: GEvalReading, quality: str = ""
) -> dict[str, Any]:
    """Return the row of one rated item.

    Args:
        item: the response or dialogue.
        rating: mean of its raters.
        cluster: key of its dialogue.
        midpoint: middle of the rating scale; from there on the item is a "Yes" example.
        reading: how g is computed from the model's answers.
        quality: the rated quality; the raters' single answers are for readers of the logged samples.
    """
    question = goodness_question(item)
    return {
        **item_columns(item),
        **rater_columns(item, quality),
        "rating": float(rating),
        "cluster": cluster,
        "label": 0 if rating >= midpoint else 1,
        "instruction": goodness_instruction(level_of(item)),
        "question": question,
        "example": EXAMPLE_HEADING + question,
        "choices": list(FORMS),
        "reading": reading,
        "is_absent": False,
    }


def item_columns(item: Item) -> dict[str, Any]:
    """Return the columns that hold an item, in the documents of every task; `item_of` reads them back."""
    return {
        "id": item.id,
        "level": level_of(item),
        "context": [] if isinstance(item, Dialogue) else [_turn(turn) for turn in item.context],
        "response": None if isinstance(item, Dialogue) else _turn(item.response),
        "references": [] if isinstance(item, Dialogue) else list(item.references),
        "facts": [] if isinstance(item, Dialogue) else list(item.facts),
        "turns": [_turn(turn) for turn in item.turns] if isinstance(item, Dialogue) else [],
        "system": item.system,
    }


def rater_columns(item: Item, quality: str) -> dict[str, Any]:
    """Return the columns of the raters: the rated quality and each rater's answer; () if they are not known."""
    return {"quality": quality, "raters": [float(value) for value in item.ratings.get(quality, ())]}


def placeholder(name: str) -> dict[str, Any]:
    """Return the row of a set that is not on this machine: the host cannot build a task without one, and asks about it.

    It has the columns that the templates of all tasks name.
    """
    item = Example(f"{name} is absent", (), Turn(""))
    row = document(item, rating=0.0, cluster="", midpoint=0.0, reading="probabilities")
    prompts = {"prompt": row["question"], "plain_prompt": row["question"], "max_gen_toks": [1, 1]}
    return {**row, **prompts, "n_words": 1, "is_absent": True}


def item_of(document: Mapping[str, Any]) -> Item:
    """Return the item of a row, without its ratings."""
    missing = [name for name in ("id", "level", "context", "response", "turns") if name not in document]
    if missing:
        raise InputError(
            f"document: has no {missing[0]!r}, so it is not from a dialogue task of this package. "
            f"It has: {', '.join(document)}."
        )
    if document["level"] == "dialogue":
        return Dialogue(document["id"], tuple(map(_read_turn, document["turns"])), document["system"])
    return Example(
        id=document["id"],
        context=tuple(map(_read_turn, document["context"])),
        response=_read_turn(document["response"]),
        references=tuple(document["references"]),
        facts=tuple(document["facts"]),
        system=document["system"],
    )


def data_sets(**rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the rows of each split, all with the same columns, as data sets of the host.

    Types are stated because an empty column (no speaker, no fact) does not show its type. Columns not named here hold text.
    """
    from datasets import Dataset, Features, List, Value

    text, number, real = Value("string"), Value("int64"), Value("float64")
    turn = {"speaker": text, "text": text}
    types = {
        **dict.fromkeys(("context", "turns"), List(turn)),
        "response": turn,
        **dict.fromkeys(("references", "facts", "choices"), List(text)),
        **dict.fromkeys(("counts", "max_gen_toks"), List(number)),
        "raters": List(real),
        **dict.fromkeys(("label", "k", "seed", "turn", "n_turns", "n_words"), number),
        **dict.fromkeys(("rating", "slm_probability", "slm_distance", "slm"), real),
        "is_absent": Value("bool"),
    }
    features = {
        name: Features({column: types.get(column, text) for column in (own[0] if own else ())}) for name, own in rows.items()
    }
    return {name: Dataset.from_list(list(own), features=features[name]) for name, own in rows.items()}


def _turn(turn: Turn) -> dict[str, str | None]:
    return {"speaker": turn.speaker, "text": turn.text}


def _read_turn(value: Mapping[str, Any]) -> Turn:
    return Turn(value["text"], value["speaker"])


class Verdict(NamedTuple):
    """A scorer's judgement of one document."""

    score: float | None
    """The main score, negated if lower is better; None if the document is unscored."""
    share: float | None = None
    """The score as a share of the scorer's range; None also if the range is unbounded."""
    unscored: str | None = None
    """Reason for a missing score: a value of `scores.Reason`."""
    percentile: float | None = None
    """Percentile among the scores of human responses, in [0, 100]; None if the scorer has no percentile table."""
    out_of_scope: str | None = None
    """Reason why the input is outside the scope of the scorer's model; None if it is inside, or was not checked."""
    unit: float = 0.0
    """The score on [0, 1], of which the answers are made."""
    is_positive: bool = False
    """Whether the scorer calls the response positive."""


class ScoredLoglikelihood(tuple[float, bool]):
    """A log probability, and whether the answer is the likeliest: the host's type for one continuation."""

    verdict: Verdict


class ScoredText(str):
    """An answer as text."""

    verdict: Verdict


Answer = TypeVar("Answer", ScoredLoglikelihood, ScoredText)


def with_verdict(answer: Answer, verdict: Verdict) -> Answer:
    """Attach the verdict to an answer that was made from it."""
    answer.verdict = verdict
    return answer


def verdict_of(results: Sequence[Any]) -> Verdict | None:
    """Return a scorer's verdict from the answers that the host passes to a task; None if a language model answered."""
    verdict = getattr(results[0], "verdict", None)
    return verdict if isinstance(verdict, Verdict) else None
