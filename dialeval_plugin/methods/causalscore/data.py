"""Training data of the independence classifiers: pairs without leaks, their labelled rows, and unlabelled responses."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Dialogue, Item, Turn, visible_texts
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.identity import LeakIndex, leave_out_leaks, leave_out_openings, split_by_dialogue, turns_key
from dialeval_plugin.corpora.readers.cgdialog import CausePair

from .aggregation import dependent_turns
from .model import CauseLabels

CANDIDATES = (2, 3)
"""A candidate cause is c_{t-2} or c_{t-3}."""
HORIZON = 8
"""Maximum turns of context: candidates, conditions and pseudo-negatives are near the response."""


class LabelledRow(NamedTuple):
    """Texts of a classifier with their label."""

    texts: tuple[str, ...]
    """Utterance and response; or candidate cause, condition and response."""
    label: int
    """1 dependent, 0 independent."""


def pair_hash(pair: CausePair) -> str:
    """Return the key of a pair's dialogue; a corpus may have several responses of one dialogue."""
    return turns_key((*pair.context, pair.response))


class OtherUtterances:
    """Utterances to sample from other dialogues than a given one."""

    def __init__(self, pairs: Sequence[CausePair]) -> None:
        by_text: dict[str, set[str]] = {}
        for pair in pairs:
            for turn in (*pair.context, pair.response):
                by_text.setdefault(turn.text, set()).add(pair_hash(pair))
        self._texts = list(by_text)
        self._owners = list(by_text.values())
        if not self._owners or set.intersection(*self._owners):
            raise InputError("training data: one dialogue has all utterances, so there are no negatives for it. Add a file.")

    def draw(self, hash: str, generator: random.Random) -> str:
        """Return an utterance that does not occur in the dialogue with this hash."""
        while hash in self._owners[drawn := generator.randrange(len(self._texts))]:
            pass
        return self._texts[drawn]


def unconditional_rows(pairs: Sequence[CausePair], others: OtherUtterances, *, seed: int) -> list[LabelledRow]:
    """Return rows (utterance, response), with equal numbers of both labels.

    Positive: the annotated causes and the preceding utterance. Negative: the same utterances, with an utterance of another
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
    pairs: Sequence[CausePair],
    probabilities: Sequence[FloatArray],
    others: OtherUtterances,
    *,
    labels: CauseLabels = "annotated",
    seed: int,
) -> list[LabelledRow]:
    """Return rows (candidate cause, condition, response), with equal numbers of both labels.

    Positive: each annotated cause. Negative: per cause an utterance of the same dialogue that is not a cause, or if there is
    none, of another dialogue. The condition is a random one of the other utterances that are dependent by `probabilities`.
    With labels "preceding_2" the causes are the two turns before the response, and all negatives are from other dialogues.
    """
    rows = []
    for number, (pair, chances) in enumerate(zip(pairs, probabilities, strict=True)):
        generator = random.Random(f"{seed} conditional {number}")
        n_turns = len(pair.context)
        causes = pair.causes if labels == "annotated" else tuple(range(max(0, n_turns - 2), n_turns))
        # A turn that says what a cause says is no other one.
        said = {pair.context[cause].text for cause in causes}
        innocent = [place for place in range(n_turns) if pair.context[place].text not in said] if labels == "annotated" else []
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
    """Return a random other dependent turn; if there is none, the likeliest other turn or None."""
    dependent: list[int] = [place for place in dependent_turns(chances).tolist() if place != cause]
    if dependent:
        return generator.choice(dependent)
    rest = [place for place in range(len(chances)) if place != cause]
    return strongest(rest, chances) if rest else None


def strongest(places: Sequence[int], chances: FloatArray) -> int:
    """Return the most probable of these turns, the later one of equals."""
    return max(places, key=lambda place: (chances[place], place))


@dataclass(frozen=True, slots=True)
class UnlabelledResponse:
    """A turn of an unlabelled dialogue with its context."""

    dialogue: str
    context: tuple[str, ...]
    """At most `HORIZON` turns, oldest first."""
    response: str


def unlabelled_responses(
    dialogues: Sequence[Sequence[Turn]], *, most: int | None = None, seed: int = 0
) -> list[UnlabelledResponse]:
    """Return every turn that has a candidate cause, with its context; if more than `most`, a seeded sample of them.

    Turns without a visible character are left out, as in scoring.
    """
    read = [(turns_key(turns), visible_texts(turns)) for turns in dialogues]
    responses = [
        UnlabelledResponse(key, tuple(texts[max(0, place - HORIZON) : place]), texts[place])
        for key, texts in read
        for place in range(min(CANDIDATES), len(texts))
    ]
    if most is None or most >= len(responses):
        return responses
    chosen = sorted(random.Random(seed).sample(range(len(responses)), most))
    return [responses[index] for index in chosen]


class CausalSources(NamedTuple):
    """Data of a training by their use."""

    pairs: Sequence[CausePair]
    validation: Sequence[CausePair] = ()
    """Pairs that select the best epoch and round; by default a share of `pairs`."""
    unlabelled: Sequence[Sequence[Turn]] = ()
    """Dialogues for self-training."""
    evaluation: Sequence[CausePair] = ()
    """Pairs for the reported figures only."""
    held_out: Sequence[Item] = ()
    """Further responses and dialogues for reported figures."""


class CausalData(NamedTuple):
    """All data for training and evaluation; no dialogue is in two sets."""

    training: list[CausePair]
    validation: list[CausePair]
    evaluation: list[CausePair]
    unlabelled: list[UnlabelledResponse]
    counts: dict[str, int]


def prepare(
    sources: CausalSources, *, validation_fraction: float = 0.1, max_unlabelled: int | None = None, seed: int = 13
) -> CausalData:
    """Return the data without leaks; dialogues of the evaluation are left out of all other sets and counted."""
    measured = [Dialogue(str(number), (*pair.context, pair.response)) for number, pair in enumerate(sources.evaluation)]
    index = LeakIndex({"measured": measured, "reported": sources.held_out})

    def clean(pairs: Sequence[CausePair], name: str) -> list[CausePair]:
        return leave_out_leaks(
            pairs, index, lambda pair: [[turn.text for turn in (*pair.context, pair.response)]], f"{name} pairs"
        )

    pairs, held_out = clean(sources.pairs, "training"), clean(sources.validation, "validation")
    training, validation = split_by_dialogue(
        pairs, held_out if sources.validation else None, pair_hash, fraction=validation_fraction, seed=seed
    )
    dialogues = leave_out_leaks(
        sources.unlabelled, index, lambda turns: [[turn.text for turn in turns]], "unlabelled dialogues"
    )
    unlabelled = leave_out_openings(dialogues, frozenset(map(pair_hash, validation)), turns_key, "unlabelled dialogues")
    responses = unlabelled_responses(unlabelled, most=max_unlabelled, seed=seed)
    counts = {
        "n_training_pairs": len(training),
        "n_validation_pairs": len(validation),
        "n_evaluation_pairs": len(sources.evaluation),
        "n_unlabelled_dialogues": len(unlabelled),
        "n_unlabelled_responses": len(responses),
        # Training pairs of the user's validation dialogues are left out too.
        "n_leaking_training_pairs": len(sources.pairs) - len(training if sources.validation else pairs),
        "n_leaking_validation_pairs": len(sources.validation) - len(held_out),
        "n_leaking_unlabelled_dialogues": len(sources.unlabelled) - len(unlabelled),
    }
    return CausalData(training, validation, list(sources.evaluation), responses, counts)
