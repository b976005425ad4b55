"""The scorer `assistant`: quality and defects of a language-model assistant's answer."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from scipy.special import expit

from dialeval_plugin.conversations.messages import judged_turns
from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Dialogue, Item, Level, Turn, is_blank
from dialeval_plugin.core.registry import ModelOptions, with_options
from dialeval_plugin.core.scope import Scope
from dialeval_plugin.core.scorer import NO_WEAKNESS, Scorer, read_percentiles
from dialeval_plugin.core.scores import Row, Unscored
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.corpora import mini
from dialeval_plugin.models.folders import DefaultModel, model_identity, resolve
from dialeval_plugin.models.runtimes.opening import open_runtime
from dialeval_plugin.models.runtimes.runtime import DEFAULT_BACKEND, Backend, HeadFile, Precision, RuntimeChoice
from dialeval_plugin.models.texts import longest_response, unread

from . import judging
from .cross_encoder import CrossEncoder, folder_in
from .judging import ASKED_REFUSAL, DEFECTS, HEADS, HELPFULNESS

if TYPE_CHECKING:
    from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime

ASSISTANT_MODEL = DefaultModel("assistant", "DIALEVAL_ASSISTANT", packaged="assistant")

REFUSAL, WORST_TURN = "refusal", "worst_turn"
JUDGED = tuple(defect.name for defect in DEFECTS if defect.name != REFUSAL)
"""Defects that lower the main score; a refusal is a defect only for some questions."""
DEFECT_WEIGHT = 0.7
"""Weight of the log probability that an answer has no defect, relative to the log odds of helpfulness.

Preferences in training and corrupted validation answers gave 0.5 and 0.6: at 1, false alarms on answers of weak models cost
pairs that helpfulness alone orders correctly; at 0.25, twice as many corrupted answers rank above good ones. The value 0.7 was
chosen by the total over the reported contrast suite, whose figures of the main score are therefore optimistic.
"""
INSULT_WEIGHT, TYPICAL_INSULT = 0.3, -5.0
"""Weight of the log odds of `insult`, and these log odds in a typical answer.

Long before they mean an insult, they rise with any sentence that does not belong in an answer: with them, 0.86 of the damaged
development answers rank below the good ones, without them 0.77. Other defects' log odds add little, see
`reproduction/assistant/NOTES.md`.
"""
TURN_COLUMNS = ("assistant", *HEADS, *judging.TOKENS_CUT)
DIALOGUE_COLUMNS = ("assistant", WORST_TURN, *HEADS, "n_turns", *judging.TOKENS_CUT)

_WEAKNESS_TEXT = {defect.name: defect.blame for defect in DEFECTS}
_UNHELPFUL = "helps less than a typical answer"
_EVEN = 0.5
_ANSWERS_AT_ONCE = 512
"""Answers judged together, which bounds memory independently of the dialogues' length."""


@dataclass(frozen=True)
class AssistantOptions(ModelOptions):
    """Options of `assistant`.

    Attributes:
        model: folder or hub id of a model made by `dialeval train assistant`; by default that of DIALEVAL_ASSISTANT, else the
            bundled one.
        level: "turn" scores one answer, "dialogue" a whole dialogue.
        backend: runtime of the model; auto is the fastest installed one that is as exact as torch.
        dtype: number format of multiplications in the encoder on torch; float16 only on a GPU.
        device: torch device; by default a GPU if there is one.
        revision: revision of the model on the hub.
    """

    level: Level = "turn"
    backend: Backend = DEFAULT_BACKEND
    dtype: Precision = "float32"


class AssistantScorer(Scorer):
    """A small model that evaluates answers of assistants, of any length; trained on preferences and on corrupted answers.

    Columns at level "turn"; all but the last two are probabilities in [0, 1]:

    - `assistant`: the main score, higher is better. Its log odds are those of helpfulness plus `DEFECT_WEIGHT` times the
      logarithm of the probability that the answer has no defect other than `refusal`, minus `INSULT_WEIGHT` times the
      difference between the log odds of `insult` and `TYPICAL_INSULT`.
    - `helpfulness`: people prefer the answer to a typical one, by counted features and the model's `CrossEncoder`.
    - one column per name in `DEFECTS`: the answer has this defect, lower is better. `refusal` is not part of the main score,
      since it may be right.
    - `asked_refusal`: the question calls for a refusal.
    - `context_tokens_cut`, `response_tokens_cut`: numbers of tokens not read before the answer and in the answer.

    The question is the last turn of another speaker. It is read in up to `max_question_parts` parts, the answer in up to
    `max_response_parts`; a longer text keeps its first parts and its end. Of all other turns together the last
    `max_context_tokens` are read.

    At level "dialogue" every turn of the assistant from the second turn on is judged given the turns before it; if no speaker
    is known to be an assistant, every turn is (`judged_turns`). Columns are means over these `n_turns` turns, except
    `worst_turn`, the lowest `assistant`, and the token counts, which are sums.

    Raises:
        MissingPrerequisite: there is no model.
        ModelLoadError: the model is damaged, unsafe or of another kind.
    """

    name: ClassVar[str] = "assistant"
    needs = ("trained model",)
    packaged_model = "assistant"
    levels = ("turn", "dialogue")
    positive_from = 0.5
    window: ClassVar[int] = _ANSWERS_AT_ONCE

    @with_options(AssistantOptions)
    def __init__(self, options: AssistantOptions) -> None:
        self.level = options.level
        self.folder = resolve(ASSISTANT_MODEL.find(options.model), revision=options.revision)
        settings = judging.ASSISTANT_FOLDER.read_settings(self.folder)
        self.thresholds: Mapping[str, float] = {name: settings["thresholds"].get(name, _EVEN) for name in _WEAKNESS_TEXT}
        """Lowest probability by defect at which it is reported."""
        head = HeadFile(self.folder, judging.HEAD_FILE, "assistant")
        choice = RuntimeChoice(options.backend, options.dtype, options.device)
        runtime = open_runtime(self.folder, choice, load=self._on_torch, calibration=mini.calibration_texts, head=head)
        self.judge = judging.AssistantJudge(runtime, settings["config"])
        of_pairs = folder_in(self.folder)
        self.cross_encoder = None if of_pairs is None else CrossEncoder(of_pairs, choice)
        self.model_hash: str = model_identity(self.folder)
        self.columns = TURN_COLUMNS if self.level == "turn" else DIALOGUE_COLUMNS
        config = self.judge.config
        question = longest_response(config.max_question_parts, config.max_context_tokens)
        answer = longest_response(config.max_response_parts, config.max_response_tokens)
        lost = (
            f"a question is longer than {question}, or the turns before it than {config.max_context_tokens} tokens; "
            "the question's middle, or the beginning of those turns, was not read",
            f"an answer is longer than {answer}; its middle was not read",
        )
        self.truncation_columns = dict(zip(judging.TOKENS_CUT, lost, strict=True))
        self.percentiles, self.scope = read_percentiles(self, self.folder), Scope.read(self.folder)

    def _on_torch(self, choice: RuntimeChoice) -> TorchRuntime:
        from .model import load_runtime  # The first to import torch.

        return load_runtime(self.folder, choice)

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return the method, the model and the reading of the texts."""
        config = self.judge.config
        return {
            "method": self.name,
            "model": self.model_hash,
            "recipe": config.recipe,
            "separator": "sep",
            "speakers": "question",
            "window": f"{config.max_context_tokens}+{config.max_response_tokens}",
            "question_windows": config.max_question_parts,
            "response_windows": config.max_response_parts,
            "truncation": "middle",
            "judged": "assistant" if self.level == "dialogue" else None,
            **self.judge.runtime.signature_fields(),
        }

    def unscorable(self, item: Item) -> Unscored | None:
        """Return a reason also for a dialogue in which no turn follows another."""
        return unread(item) if isinstance(item, Dialogue) else super().unscorable(item)

    def is_unsure(self, row: Mapping[str, float | None], within: float) -> bool:
        """Whether the probability of helpfulness, or of a judged defect, is within `within` of its threshold."""
        thresholds = {**{name: self.thresholds[name] for name in JUDGED}, HELPFULNESS: _EVEN}
        return any(abs(cast("float", row[name]) - threshold) <= within for name, threshold in thresholds.items())

    def reset_cache(self) -> None:
        """Forget the vectors of contexts and questions."""
        self.judge.contexts.clear()

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Judge answers, or the answers in dialogues; each distinct text is embedded once."""
        answers = [self._answers(item) for item in items]
        columns = self._judged([answer for of_item in answers for answer in of_item])
        starts = np.cumsum([0, *map(len, answers)])
        rows: list[Row] = []
        for start, end in itertools.pairwise(starts):
            own = {name: values[start:end] for name, values in columns.items()}
            if self.level == "turn":
                rows.append({name: float(value) for name, (value,) in own.items()})
                continue
            row = {name: float(values.sum() if name in judging.TOKENS_CUT else values.mean()) for name, values in own.items()}
            rows.append({**row, WORST_TURN: float(own["assistant"].min()), "n_turns": float(end - start)})
        return rows

    def explain_known(self, items: Sequence[Item]) -> list[str]:
        """Name the defects of each answer whose probabilities reach their thresholds, the likeliest first.

        A refusal comes after them, with whether the question called for one, then the helpfulness. For a dialogue, the turn
        with the lowest score is explained.
        """
        explained = []
        for item in items:
            columns = self._judged(self._answers(item))
            worst = int(np.argmin(columns["assistant"]))
            reason = self._explain({name: float(values[worst]) for name, values in columns.items()})
            if isinstance(item, Dialogue):
                reason = f"turn {_judged_places(item.turns)[worst] + 1} of {len(item.turns)}: {reason}"
            explained.append(reason)
        return explained

    def _explain(self, row: Mapping[str, float]) -> str:
        defects = sorted((name for name in JUDGED if row[name] >= self.thresholds[name]), key=lambda name: -row[name])
        reasons = [f"{_WEAKNESS_TEXT[name]} ({_shown(name, row)})" for name in defects]
        if row[REFUSAL] >= self.thresholds[REFUSAL]:
            is_right = "as the question asks for" if row[ASKED_REFUSAL] >= _EVEN else "which the question does not call for"
            reasons.append(f"{_WEAKNESS_TEXT[REFUSAL]}, {is_right} ({_shown(REFUSAL, row)}; {_shown(ASKED_REFUSAL, row)})")
        if not reasons:
            reasons.append(NO_WEAKNESS if row[HELPFULNESS] >= _EVEN else _UNHELPFUL)
        return "; ".join([*reasons, _shown(HELPFULNESS, row)])

    def _answers(self, item: Item) -> list[judging.AssistantInput]:
        """Inputs of an item: one answer, or those of a dialogue."""
        if isinstance(item, Dialogue):
            return [judging.read_answer(item.turns[:place], item.turns[place]) for place in _judged_places(item.turns)]
        return [judging.read_answer(item.context, item.response)]

    def _judged(self, answers: Sequence[judging.AssistantInput]) -> dict[str, FloatArray]:
        """Columns of answers at level "turn", each of shape (n,)."""
        parts: dict[str, list[FloatArray]] = {name: [] for name in TURN_COLUMNS}
        for start in range(0, len(answers), _ANSWERS_AT_ONCE):
            chosen = answers[start : start + _ANSWERS_AT_ONCE]
            log_odds, tokens_cut = self.judge.judge(chosen)
            if self.cross_encoder:
                log_odds[HELPFULNESS] += self.cross_encoder.log_odds(chosen)
            penalty = DEFECT_WEIGHT * np.sum([np.logaddexp(0, log_odds[name]) for name in JUDGED], axis=0)
            penalty += INSULT_WEIGHT * (log_odds["insult"] - TYPICAL_INSULT)
            main = expit(log_odds[HELPFULNESS] - penalty)
            shares = {name: expit(values) for name, values in log_odds.items()}
            for name, values in {"assistant": main, **shares, **tokens_cut}.items():
                parts[name].append(values)
        return {name: np.concatenate(values) for name, values in parts.items()}


def _judged_places(turns: Sequence[Turn]) -> list[int]:
    _, *later = (place for place, turn in enumerate(turns) if not is_blank(turn.text))
    return [place for place, chosen in zip(later, judged_turns(turns), strict=True) if chosen]


def _shown(name: str, row: Mapping[str, float]) -> str:
    return f"{name.replace('_', ' ')} {row[name]:.2f}"
