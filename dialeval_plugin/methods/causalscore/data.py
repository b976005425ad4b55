"""Training rows of the independence classifiers, from responses with marked causes: labels and negatives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from sklearn.metrics import f1_score, roc_auc_score

from dialeval_plugin.core.dialogue import Turn
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.identity import turns_key

from .aggregation import FloatArray, dependent_turns
from .model import Labels


class CausePairLike(Protocol):
    """A response with the turns that caused it, as `corpora.cgdialog` reads it."""

    @property
    def context(self) -> tuple[Turn, ...]:
        """Turns before the response, oldest first."""

    @property
    def response(self) -> Turn:
        """The response."""

    @property
    def causes(self) -> tuple[int, ...]:
        """Indices into `context`."""


class LabelledRow(NamedTuple):
    """One text of a classifier with its label."""

    texts: tuple[str, ...]
    """Utterance and response; or candidate cause, condition and response."""
    label: int
    """1 dependent, 0 independent."""


def pair_hash(pair: CausePairLike) -> str:
    """The key of a pair's dialogue, of which a corpus publishes several responses, each with the turns up to it."""
    return turns_key((*pair.context, pair.response))


class OtherUtterances:
    """Draws utterances of other dialogues than the one in question."""

    def __init__(self, pairs: Sequence[CausePairLike]) -> None:
        by_text: dict[str, set[str]] = {}
        for pair in pairs:
            for turn in (*pair.context, pair.response):
                by_text.setdefault(turn.text, set()).add(pair_hash(pair))
        self._texts = list(by_text)
        self._owners = list(by_text.values())
        if len(set().union(*self._owners)) < 2:
            raise InputError("training data: all responses come from one dialogue, so there are no negatives. Add a file.")

    def draw(self, hash: str, generator: random.Random) -> str:
        """Return an utterance that does not occur in the dialogue with this hash."""
        while hash in self._owners[drawn := generator.randrange(len(self._texts))]:
            pass
        return self._texts[drawn]


def unconditional_rows(pairs: Sequence[CausePairLike], others: OtherUtterances, *, seed: int) -> list[LabelledRow]:
    """Return rows (utterance, response), as many of each label.

    Positive: the marked causes and the preceding utterance. Negative: the same utterances, with an utterance of another
    dialogue as the response (section 3.2).
    """
    rows = []
    for number, pair in enumerate(pairs):
        generator = random.Random(f"{seed} unconditional {number}")
        positive = sorted({*pair.causes, *([len(pair.context) - 1] if pair.context else [])})
        for place in positive:
            utterance = pair.context[place].text
            rows += [
                LabelledRow((utterance, pair.response.text), 1),
                LabelledRow((utterance, others.draw(pair_hash(pair), generator)), 0),
            ]
    return rows


def conditional_rows(
    pairs: Sequence[CausePairLike],
    probabilities: Sequence[FloatArray],
    others: OtherUtterances,
    *,
    labels: Labels = "annotated",
    seed: int,
) -> list[LabelledRow]:
    """Return rows (candidate cause, condition, response), as many of each label.

    Positive: each marked cause. Negative: for each of them an utterance of the same dialogue that is no cause, or of another
    dialogue where there is none. The condition is one of the other utterances that are dependent by `probabilities`, drawn by
    chance. With labels "preceding_2" the two turns before the response stand for causes, and all negatives come from others.
    """
    rows = []
    for number, (pair, chances) in enumerate(zip(pairs, probabilities, strict=True)):
        generator = random.Random(f"{seed} conditional {number}")
        n_turns = len(pair.context)
        causes = pair.causes if labels == "annotated" else tuple(range(max(0, n_turns - 2), n_turns))
        innocent = [place for place in range(n_turns) if place not in causes] if labels == "annotated" else []
        for cause in causes:
            condition = _condition(cause, chances, generator)
            if condition is None:
                continue
            rows.append(LabelledRow((pair.context[cause].text, pair.context[condition].text, pair.response.text), 1))
            choices = [place for place in innocent if place != condition]
            candidate = pair.context[generator.choice(choices)].text if choices else others.draw(pair_hash(pair), generator)
            rows.append(LabelledRow((candidate, pair.context[condition].text, pair.response.text), 0))
    return rows


def _condition(cause: int, chances: FloatArray, generator: random.Random) -> int | None:
    """One of the other dependent turns; the likeliest other turn where none is dependent; None where there is no other."""
    dependent: list[int] = [place for place in dependent_turns(chances).tolist() if place != cause]
    if dependent:
        return generator.choice(dependent)
    rest = [place for place in range(len(chances)) if place != cause]
    return strongest(rest, chances) if rest else None


def strongest(places: Sequence[int], chances: FloatArray) -> int:
    """Return the likeliest of some turns, of equals the later one."""
    return max(places, key=lambda place: (chances[place], place))


def classification_figures(probabilities: FloatArray, labels: FloatArray) -> dict[str, float]:
    """Return area under the ROC curve, F1 of label 1 and accuracy, the last two at p > 0.5; all in [0, 1]."""
    if not np.isfinite(probabilities).all():
        raise InputError(
            "classifier: gives probabilities that are not finite, so its training diverged. Train again with a lower rate."
        )
    is_positive = labels == 1
    n_positive, n_negative = int(is_positive.sum()), int((~is_positive).sum())
    if not n_positive or not n_negative:
        raise InputError(
            f"validation data: {n_positive} positive and {n_negative} negative rows, at least one of each is needed. "
            "Add a file."
        )
    said = probabilities > 0.5
    return {
        "auroc": float(roc_auc_score(is_positive, probabilities)),
        "f1": float(f1_score(is_positive, said)),
        "accuracy": float((said == is_positive).mean()),
    }
