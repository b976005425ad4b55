"""The page that scores a pasted conversation with the general evaluator, used by the metric's Space and a leaderboard's."""

from __future__ import annotations

import functools
import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from dialeval_plugin.conversations.messages import is_message
from dialeval_plugin.conversations.reading import conversations_from
from dialeval_plugin.conversations.record import Conversation, ReadingOptions
from dialeval_plugin.core.errors import DialevalError, InputError
from dialeval_plugin.core.files import parse_json
from dialeval_plugin.core.percentiles import PERCENTILE
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import NO_WEAKNESS, Scorer
from dialeval_plugin.core.scores import Scores
from dialeval_plugin.methods.general.judging import ACCEPTANCE, NOVELTY

if TYPE_CHECKING:
    import gradio

HEADS = ("relevance", "fit", "fluency", "specificity", NOVELTY, ACCEPTANCE)
"""Qualities on the page; the last one only if the model has learnt it."""
LOW, HIGH = 25.0, 75.0
"""Percentiles up to which a response is called low, and from which on it is called high."""
MOST_TURNS, MOST_SIGNS = 100, 50_000

_SPOKEN = re.compile(r"\s*([^\s:][^:]{0,30}?)\s*:\s+(\S.*)")
_HEAD_WORDS = {
    "relevance": "is about the same things as the turns before",
    "fit": "answers the turns before",
    "fluency": "has its words in order",
    "specificity": "says something of its own",
    NOVELTY: "does not repeat what was just said",
    ACCEPTANCE: "is not what people ask back about",
}

TITLE = "Score a conversation"
DESCRIPTION = (
    "Paste a conversation, a turn a line, and see what a small model that learnt from dialogues between people, and from no "
    "rating, thinks of each response. It runs on a processor; nothing is sent anywhere. It knows nothing of facts, and of "
    "tone little more than insults."
)
EXAMPLES: dict[str, str] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class JudgedTurn:
    """A turn of the conversation and the model's judgement; the score is None if the turn is not, or cannot be, scored.

    Attributes:
        number: number of the turn, from 1.
        score: probability that the response is a good one.
        percentile: share of human responses with a lower score, in percent.
        heads: probability for each quality of `HEADS`.
        reason: explanation of a low score, as text; "" otherwise.
        out_of_scope: why the turn is outside the model's scope; "" if it is inside.
        unscored: why a turn that should be scored has no score.
    """

    number: int
    speaker: str | None
    text: str
    score: float | None = None
    percentile: float | None = None
    heads: Mapping[str, float] | None = None
    reason: str = ""
    out_of_scope: str = ""
    unscored: str = ""


def read_conversation(text: str, *, every_turn: bool = False) -> Conversation:
    """Read pasted text: chat messages as JSON, or one turn per line, with `speaker: ` in front of every line or of none.

    With `every_turn` all turns but the first are to be scored, otherwise the assistant's if one speaker is known to be one.

    Raises:
        InputError: it holds no turn to score, several conversations, or more than the page takes.
    """
    if len(text) > MOST_SIGNS:
        raise InputError(f"The conversation has {len(text):,} characters, more than {MOST_SIGNS:,}. Paste a part of it.")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if text.lstrip().startswith(("[", "{")):
        pasted = parse_json(text, "The pasted text")
        is_one = isinstance(pasted, dict) or all(isinstance(one, str) or is_message(one) for one in pasted)
        rows = [pasted] if is_one else pasted
    else:
        spoken = [_SPOKEN.fullmatch(line) for line in lines]
        # A colon in only some lines is part of the text.
        rows = [[{"speaker": match[1], "text": match[2]} for match in spoken if match] if all(spoken) else lines]
    conversations = conversations_from(rows, ReadingOptions(choice="all" if every_turn else None)) if lines else []
    conversation = conversations[0] if len(conversations) == 1 else None
    if not isinstance(conversation, Conversation):
        raise InputError("Paste one conversation: a turn a line, or its messages as JSON.")
    if len(conversation.turns) > MOST_TURNS:
        raise InputError(f"The conversation has {len(conversation.turns)} turns, more than {MOST_TURNS}. Paste a part of it.")
    if not conversation.examples():
        raise InputError("There is no response to score: a conversation needs two turns at least.")
    return conversation


@functools.cache
def _scorer() -> Scorer:
    """Return the general evaluator, loaded once: the bundled model, or the one that DIALEVAL_GENERAL names."""
    return load_scorer("general")


def judge(conversation: Conversation) -> list[JudgedTurn]:
    """Score the turns of a conversation that need a score, and explain each low score."""
    examples = conversation.examples()
    scores = _scorer().score(examples)
    percentiles = scores.columns.get(PERCENTILE, (None,) * len(examples))
    judged = {}
    for place, (number, example) in enumerate(zip(conversation.responses(), examples, strict=True)):
        percentile = percentiles[place]
        is_explained = scores.values[place] is not None and place not in scores.out_of_scope
        is_low = is_explained and (percentile is None or percentile < LOW)
        # The text in brackets holds the probabilities that the page draws.
        words = _scorer().explain([example])[0].partition(" (")[0] if is_low else NO_WEAKNESS
        judged[number] = _judged(conversation, number, scores, place, "" if words == NO_WEAKNESS else words)
    return [
        judged.get(number) or JudgedTurn(number + 1, turn.speaker, turn.text) for number, turn in enumerate(conversation.turns)
    ]


def _judged(conversation: Conversation, number: int, scores: Scores, place: int, reason: str) -> JudgedTurn:
    turn, missing = conversation.turns[number], scores.unscored.get(place)
    if missing is not None:
        return JudgedTurn(number + 1, turn.speaker, turn.text, unscored=missing.detail or missing.reason.value)
    values = {name: scores.columns[name][place] for name in HEADS if name in scores.columns}
    heads = {name: value for name, value in values.items() if value is not None and not math.isnan(value)}
    percentile = scores.columns[PERCENTILE][place] if PERCENTILE in scores.columns else None
    beyond = scores.out_of_scope.get(place, "")
    return JudgedTurn(number + 1, turn.speaker, turn.text, scores.values[place], percentile, heads, reason, beyond)


def drawn(turns: Sequence[JudgedTurn]) -> str:
    """Return the turns as HTML bubbles, scored ones with score, percentile, heads and, if the score is low, the reason."""
    scored = [(turn.score, turn) for turn in turns if turn.score is not None]
    mean = sum(score for score, _ in scored) / len(scored) if scored else None
    worst = min((turn for _, turn in scored), key=lambda turn: turn.score or 0.0, default=None)
    source = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
    template = jinja2.Template(source, autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    return str(template.render(turns=turns, scored=scored, mean=mean, worst=worst, words=_HEAD_WORDS, high=HIGH))


def answer(text: str, every_turn: bool) -> tuple[str, list[dict[str, Any]]]:
    """Return the page's answer to a pasted text, and the same as data; the page also shows errors of the text."""
    try:
        turns = judge(read_conversation(text, every_turn=every_turn))
    except DialevalError as error:
        return f'<div class="judged"><p class="why" role="alert">{html.escape(str(error))}</p></div>', []
    return drawn(turns), [asdict(turn) for turn in turns]


def conversation_page() -> gradio.Blocks:
    """Return the page; the caller installs gradio, which this package does not need."""
    import gradio

    style = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
    with gradio.Blocks(title=TITLE, analytics_enabled=False) as page:
        gradio.HTML(f"<style>{style}</style><h1>{TITLE}</h1><p>{DESCRIPTION}</p>", elem_classes="judged-head")
        with gradio.Row():
            with gradio.Column(scale=2, min_width=300):
                text = gradio.Textbox(label="Conversation, a turn a line (or chat messages as JSON)", lines=10, max_lines=24)
                every_turn = gradio.Checkbox(label="Score the user's turns too")
                button = gradio.Button("Score", elem_classes="judged-button")
                gradio.Examples([[one] for one in EXAMPLES.values()], [text], example_labels=[*EXAMPLES], label="Examples")
            with gradio.Column(scale=3, min_width=300):
                shown = gradio.HTML("<p>The scores appear here.</p>", label="Scores")
                with gradio.Accordion("As data", open=False):
                    data = gradio.JSON(label="A row a turn")
        gradio.on([button.click, text.submit], answer, [text, every_turn], [shown, data], api_name="score")
    return page
