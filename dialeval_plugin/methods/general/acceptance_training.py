"""Acceptance, learnt from unrated logs of chats: a turn that is answered with a repair was not understood.

"What?", "That makes no sense" and "I just told you that" are repairs (Schegloff, Jefferson & Sacks 1977), free feedback in
every log (Hancock et al. 2019). A logistic regression predicts from the vector of the chatbot's turn alone whether a repair
follows.
"""

from __future__ import annotations

import itertools
import logging
import random
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dialeval_plugin.conversations.messages import ASSISTANT, USER
from dialeval_plugin.conversations.record import Conversation
from dialeval_plugin.core.dialogue import Item, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.locks import sole_process
from dialeval_plugin.core.signature import EXPORTS, METADATA_FILES
from dialeval_plugin.corpora.identity import LeakIndex, leave_out_leaks, opening_key
from dialeval_plugin.corpora.scored_input import Source
from dialeval_plugin.models.folders import unfinished, write_manifest
from dialeval_plugin.models.runtimes.runtime import VectorArray, unit

from .judging import GENERAL_FOLDER, Acceptance
from .scorer import GeneralScorer

logger = logging.getLogger(__name__)

N_ACCEPTED = 3
"""Number of accepted responses per response that is answered with a repair."""
MIN_REPAIRS = 20
STRENGTH = 3e-4
"""Inverse of the penalty of squared weights, on standardised vectors. Chosen on ratings of other responses, where 1e-4 to 3e-2
make little difference (reproduction/general/results.md)."""
N_FOLDS = 5
"""Number of parts of the conversations, each held out once for the recorded area under the ROC curve."""

_REPAIR = re.compile(
    "|".join(
        (
            # A question word alone.
            r"^\W*(?:what|huh|pardon|sorry|wut|eh|hm+|excuse me|who|why)\s*[?!.]*$",
            # The turn is not understood, or makes no sense.
            r"\bhuh\b|what do (?:you|u) mean|what are (?:you|u) (?:talking|saying)|confus",
            r"do(?:n['’]?t| not) (?:understand|get it|follow)",
            r"mak(?:e|es|ing) (?:no|any|little) sense|n['’]?t make (?:any )?sense|nonsense|weird|strange",
            # It repeats an earlier turn, or ignores the request.
            r"(?:you|u|i) (?:already|just) (?:said|told|asked|answered|did)|repeat|again\?",
            r"not what|n['’]?t answer|answer (?:my|the|me)|did(?:n['’]?t| not) ask",
            r"(?:any|no|some)thing to do with|random|off.?topic|chang(?:e|ing) the (?:subject|topic)",
            # It is wrong, or contradicts an earlier turn.
            r"not true|that['’]?s not|you['’]?re wrong|contradict|you said|(?:thought|but) you (?:said|were|are)",
            # The speaker is called a machine, or insulted.
            r"(?:are (?:you|u)|you['’]?re) (?:an? )?(?:real|human|bot|robot|drunk|ok|okay|stupid|dumb|crazy|broken)\b",
            r"\bwtf\b|stupid|idiot|dumb",
        )
    ),
    re.IGNORECASE,
)


class AnsweredTurn(NamedTuple):
    """A chatbot's turn that a person answered."""

    response: str
    is_accepted: bool
    """Whether the answer is not a repair."""
    conversation: str
    """Names of the log and of the conversation."""


def is_clarification_request(text: str) -> bool:
    """Whether a person's turn asks back, complains, or calls the turn before it repeated, wrong or off the topic.

    English phrases decide. Precision and recall are low, so that only averages over thousands of turns are useful.

    Example:
        >>> [is_clarification_request(text) for text in ("What?", "I just told you that.", "What a nice day!")]
        [True, True, False]
    """
    return _REPAIR.search(text) is not None


def answered_turns(log: str, conversations: Sequence[Conversation]) -> list[AnsweredTurn]:
    """Return every turn of an assistant that a user's turn follows, without blank turns."""
    return [
        AnsweredTurn(turn.text, not is_clarification_request(answer.text), f"{log} {one.id}")
        for one in conversations
        for turn, answer in itertools.pairwise(turn for turn in one.turns if not is_blank(turn.text))
        if turn.speaker == ASSISTANT and answer.speaker == USER
    ]


def sampled(answered: Sequence[AnsweredTurn], seed: str) -> list[AnsweredTurn]:
    """Return all turns answered with a repair, and `N_ACCEPTED` times as many others, in a seeded order."""
    repaired = [one for one in answered if not one.is_accepted]
    accepted = [one for one in answered if one.is_accepted]
    generator = random.Random(seed)
    turns = repaired + generator.sample(accepted, min(len(accepted), N_ACCEPTED * len(repaired)))
    generator.shuffle(turns)
    return turns


def learn(
    logs: Mapping[str, Sequence[Conversation]], embed: Callable[[Sequence[str]], VectorArray], *, seed: int = 13
) -> Acceptance:
    """Fit the regression on the turns of logs by name; `embed` returns the encoder's vectors of responses, (n, width).

    Raises:
        InputError: fewer than `MIN_REPAIRS` turns of an assistant are answered with a repair, or fewer with another turn, or
        the
            repairs are in fewer than `N_FOLDS` conversations.
    """
    answered = {name: answered_turns(name, conversations) for name, conversations in logs.items()}
    turns = [one for name, of_log in answered.items() for one in sampled(of_log, f"{seed} {name}")]
    accepted = np.array([one.is_accepted for one in turns], dtype=bool)
    n_repairs, n_conversations = int((~accepted).sum()), len({one.conversation for one in turns if not one.is_accepted})
    if n_repairs < MIN_REPAIRS or n_conversations < N_FOLDS or accepted.sum() < MIN_REPAIRS:
        raise InputError(
            f"{', '.join(logs)}: of {sum(map(len, answered.values()))} turns of an assistant that a user answers, {n_repairs} "
            f"in {n_conversations} conversations got an answer that asks back or complains. Give logs in English that say who "
            f"is user and assistant, with {MIN_REPAIRS} such turns in {N_FOLDS} conversations, and as many others."
        )
    vectors = unit(embed([one.response for one in turns])).astype(np.float64)
    regression = make_pipeline(StandardScaler(), LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=1000))
    held_out = cross_val_predict(
        regression,
        vectors,
        accepted,
        groups=[one.conversation for one in turns],
        cv=StratifiedGroupKFold(N_FOLDS),
        method="decision_function",
    )
    scaler, fitted = (step for _, step in regression.fit(vectors, accepted).steps)
    weights = fitted.coef_[0] / scaler.scale_
    record = {
        "turns": {
            name: {"answered": len(of_log), "repairs": sum(not one.is_accepted for one in of_log)}
            for name, of_log in answered.items()
        },
        "learnt_from": len(turns),
        "auroc": float(roc_auc_score(accepted, held_out)),
        "seed": seed,
    }
    return Acceptance(tuple(map(float, weights)), float(fitted.intercept_[0] - scaler.mean_ @ weights), record)


def read_logs(paths: Sequence[Path], reported: Mapping[str, Sequence[Item]]) -> dict[str, list[Conversation]]:
    """Read the conversations of files or folders, by name, without those that are reported on.

    Raises:
        InputError: a file is malformed, or two have one name.
    """
    index = LeakIndex(reported)
    logs: dict[str, list[Conversation]] = {}
    for path in paths:
        if (name := path.name.partition(".")[0]) in logs:
            raise InputError(f"{path}: there are two logs named {name}. Rename one.")
        source = Source(str(path))
        chats = [one for one in source.conversations() if isinstance(one, Conversation)]
        for problem in source.reading.malformed:
            logger.warning("malformed, left out: %s", problem)
        logs[name] = leave_out_leaks(chats, index, lambda one: [[turn.text for turn in one.turns]], f"{name} conversations")
    return logs


def teach_acceptance(
    model: str | None,
    logs: Mapping[str, Sequence[Conversation]],
    output: Path,
    *,
    seed: int = 13,
    device: str | None = None,
) -> Acceptance:
    """Write a copy of a general evaluator with acceptance learnt from logs by name.

    The copy has no table of percentiles, golden scores or card, since its scores differ.

    Raises:
        InputError: `output` is something else, or `learn` has too little data; nothing is written.
    """
    ignored = shutil.ignore_patterns(".*", "README*", EXPORTS, *METADATA_FILES)
    with sole_process(output), unfinished(output) as copy:
        scorer = GeneralScorer(model, device=device)
        learnt = learn(logs, scorer.embedded_responses, seed=seed)
        shutil.copytree(scorer.folder, copy, ignore=ignored, dirs_exist_ok=True)
        learnt.save(copy)
        openings = (opening_key(turn.text for turn in one.turns) for conversations in logs.values() for one in conversations)
        GENERAL_FOLDER.write_training_dialogues(copy, {*GENERAL_FOLDER.training_dialogues(copy), *openings})
        write_manifest(copy)
    return learnt
