"""Common part of the adapters: conversations in a host's layout become evaluations, which the host records."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from dialeval_plugin.conversations.files import Rows
from dialeval_plugin.conversations.reading import read_rows
from dialeval_plugin.conversations.record import Conversation, Reading, ReadingOptions, check_choice
from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line
from dialeval_plugin.core.scorer import refuse_parts, score_block, scores_of
from dialeval_plugin.core.scores import JUDGED_BY, WHY_UNSCORED
from dialeval_plugin.hosts.judges import load_scorer_with_judge

logger = logging.getLogger(__name__)

_OPENED: dict[str, str] = {}
"""Scorers with their options, by the name under which hosts keep their scores."""


class Evaluation(NamedTuple):
    """A host's record of one conversation."""

    name: str
    """The label, or the name of the scorer; for a combined scorer, of the one that gave the score."""
    value: float | None
    """Mean score of the scored answers; None if no answer has a score."""
    reason: str
    """Reason of a missing value: a `Reason`, `no_answer` or `unreadable`; "" if there is one."""
    explanation: str
    """Explanation of the worst answer's score, or of a missing value; "" from a scorer without explanations."""
    details: dict[str, Any]
    """`signature`; `scored` and `unscored`, numbers of answers; the other columns of the worst answer."""


class Evaluator:
    """Makes evaluations; several threads may call one.

    Args:
        name: name of the scorer.
        options: options of the scorer; and `turns`, the turns of a conversation to score: "assistant", "all" (but the first) or
            "last"; by default the assistant's, or all in a conversation with neither a user nor an assistant.
        takes_mean: whether the host takes one mean over all conversations, and keeps scorers of the same name apart.
        label: name of the scores in the host, in the place of the scorer's; for several scorers of one name.

    Raises:
        InputError: there is no such scorer or option; the scorer needs all conversations at once; or the host takes a mean and
            the scores have no common scale.
    """

    def __init__(self, name: str, options: Mapping[str, Any], *, takes_mean: bool = False, label: str | None = None) -> None:
        self.label = label
        self._turns = check_choice("turns", options.get("turns"))
        self.scorer = load_scorer_with_judge(name, {option: options[option] for option in options if option != "turns"})
        self._name = label or self.scorer.name
        refuse_parts(self.scorer)
        if takes_mean and not self.scorer.has_one_scale:
            raise InputError(f"{name}: its scores have no common scale, so no mean. Choose {' or '.join(self.scorer.judges)}.")
        opened = repr((name, sorted(options.items())))
        if not takes_mean and _OPENED.setdefault(label or name, opened) != opened:
            text = "%r: was opened before with other options, and a host has one score of a name. Give each a label='...'."
            logger.warning(text, label or name)

    def __call__(self, conversations: Sequence[Mapping[str, Any]], layout: str) -> list[Evaluation]:
        """Return an evaluation for each conversation of a layout; all are scored in common batches."""
        read = [self._read(one, layout) for one in conversations]
        items = [item for one in read if not isinstance(one, Evaluation) for item in one]
        scores = scores_of(self.scorer, items, score_block(self.scorer, items))
        answers = zip(items, scores, strict=True)
        made = [one if isinstance(one, Evaluation) else self._evaluation(list(islice(answers, len(one)))) for one in read]
        return [one._replace(details={"signature": str(scores.signature), **one.details}) for one in made]

    def of_spans(self, spans: Sequence[Any], rows: Sequence[Mapping[str, Any]], layout: str) -> list[tuple[Any, Evaluation]]:
        """Return the spans with an answer, each with its evaluation; `rows` are the conversations of all spans."""
        evaluations = self(rows, layout)
        if unreadable := [one.explanation for one in evaluations if one.reason == "unreadable"]:
            text = "%d of %d spans hold no conversation and are left out; the first: %s"
            logger.warning(text, len(unreadable), len(evaluations), unreadable[0])
        pairs = zip(spans, evaluations, strict=True)
        return [(span, one) for span, one in pairs if one.reason not in {"no_answer", "unreadable"}]

    def _read(self, conversation: Mapping[str, Any], layout: str) -> list[Item] | Evaluation:
        """Return the answers of a conversation, or why it has none."""
        line, options = Line("input", dict(conversation)), ReadingOptions(choice=self._turns, layout=layout)
        try:
            rows = list(read_rows(Rows(iter([line])), Reading(options)))
            items = [item for one in rows if isinstance(one, Conversation) for item in one.items(self.scorer.level)]
        except InputError as error:
            return Evaluation(self._name, None, "unreadable", str(error), {})
        return items or Evaluation(self._name, None, "no_answer", "the conversation has no answer to score", {})

    def _evaluation(self, answers: list[tuple[Item, dict[str, Any]]]) -> Evaluation:
        name, column = self._name, self.scorer.columns[0]
        scored = [(item, row) for item, row in answers if row[column] is not None]
        counts = {"scored": len(scored), "unscored": len(answers) - len(scored)}
        if not scored:
            reason, detail = (answers[0][1][field] for field in WHY_UNSCORED)
            return Evaluation(name, None, reason, detail, counts)
        item, row = (min if self.scorer.orientation == "higher" else max)(scored, key=lambda answer: answer[1][column])
        explanation = ""
        with contextlib.suppress(InputError):  # from a scorer without explanations
            explanation = self.scorer.explain([item])[0]
        if len(answers) > 1:
            worst = f"the worst of {len(scored)} scored answers is message {row['message']} with {row[column]:.2f}"
            explanation = f"{worst}: {explanation}".removesuffix(": ")
        mean = sum(row[column] for _, row in scored) / len(scored)
        others = {field: value for field, value in row.items() if isinstance(value, float) and field != column}
        return Evaluation(self.label or row.get(JUDGED_BY, name), mean, "", explanation, {**counts, **others})
