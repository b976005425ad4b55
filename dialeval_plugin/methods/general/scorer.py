"""The scorer `general`: a small model, trained without human ratings, that evaluates responses and whole dialogues."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from scipy.special import expit, logit

from dialeval_plugin.conversations.messages import judged_turns
from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, is_blank, visible_texts
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.locks import one_at_a_time
from dialeval_plugin.core.registry import ModelOptions, with_options
from dialeval_plugin.core.scope import Scope
from dialeval_plugin.core.scorer import NO_WEAKNESS, Scorer, read_percentiles
from dialeval_plugin.core.scores import Row, Unscored
from dialeval_plugin.core.signature import SignatureValue, text_hash
from dialeval_plugin.corpora import mini
from dialeval_plugin.models.folders import DefaultModel, model_identity, resolve
from dialeval_plugin.models.runtimes.opening import open_runtime
from dialeval_plugin.models.runtimes.runtime import DEFAULT_BACKEND, Backend, HeadFile, Precision, RuntimeChoice, VectorArray
from dialeval_plugin.models.texts import MAX_TURN_PARTS, EmbeddedTurns, longest_response, unread

from . import judging
from .judging import (
    ACCEPTANCE,
    NOVELTY,
    NOVELTY_WEIGHT,
    REFERENCE_SIMILARITY,
    REFERENCE_WEIGHT,
    Acceptance,
    nearest_similarity,
    reference_log_odds,
)
from .mixing import CoherenceWeights, Mixing, RatedMixing, rated_log_odds, response_hash
from .signals import QUALITIES

if TYPE_CHECKING:
    from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime

GENERAL_MODEL = DefaultModel("general", "DIALEVAL_GENERAL", packaged="general")

TURN_COLUMNS = ("general", *QUALITIES, ACCEPTANCE, NOVELTY, "cosine", *judging.TOKENS_CUT)
_OF_CONTEXT = ("relevance", "fit")
"""Qualities that compare a response with its context."""
_OF_TURNS = (*_OF_CONTEXT, "fluency", "specificity", ACCEPTANCE, "cosine")
_OF_DIALOGUES = ("fluency", "specificity", "coherence", NOVELTY)
"""Columns whose mean, together with the mean score of the turns, is the score of a dialogue."""
DIALOGUE_COLUMNS = ("general", "coherence", NOVELTY, *_OF_TURNS, "n_turns", *judging.TOKENS_CUT[:2])

WEAKNESS_TEXT = {
    "relevance": "has little to do with the context",
    "fit": "does not fit the context",
    "fluency": "reads unlike the dialogues it learnt from",
    "specificity": "says little",
    "knowledge": "does not use the facts",
    ACCEPTANCE: "makes people ask back",
    NOVELTY: "repeats what was said",
    REFERENCE_SIMILARITY: "unlike the references",
}
"""Phrase by the quality that lowers a response's score."""
_WEAKNESS_THRESHOLD = 0.5
"""A quality is named as a weakness only below this value: a probability, or for novelty a share."""

DIALOGUES_AT_ONCE = 128
"""Dialogues scored together. Each has many turns, so this bounds memory independently of `window`."""
_CLOSEST = 1e-9
"""Distance from 0 and 1 at which probabilities are clipped before their log odds are taken."""


@dataclass(frozen=True)
class GeneralOptions(ModelOptions):
    """Options of `general`.

    Attributes:
        model: folder or hub id of a model made by `dialeval train general`; by default that of DIALEVAL_GENERAL, else the
            bundled one.
        level: "turn" scores one response, "dialogue" a whole dialogue.
        mixing: file made by `dialeval train mixing`: weights fitted on human ratings, for level "turn". `general` is then the
            logistic function of the predicted standardised rating.
        leave_out: name of a set in that file; the weights used are those fitted without its ratings.
        score_fitted: also score responses whose ratings were used to fit the weights; by default they are refused.
        with_references: also compare a response with its references; for level "turn".
        backend: runtime of the model; auto is the fastest installed one that is as exact as torch.
        dtype: number format of multiplications in the encoder on torch; float16 only on a GPU.
        device: torch device; by default a GPU if there is one.
        revision: revision of the model on the hub.
    """

    level: Level = "turn"
    mixing: str | None = None
    leave_out: str | None = None
    score_fitted: bool = False
    with_references: bool = False
    backend: Backend = DEFAULT_BACKEND
    dtype: Precision = "float32"


class GeneralScorer(Scorer):
    """A small model that evaluates responses and dialogues; trained on dialogues of several corpora without human ratings.

    Columns at level "turn"; the first seven are probabilities in [0, 1], higher is better:

    - `general`: the main score, a mixture of the next six and `novelty`.
    - `relevance`: the response is about the topic of the context.
    - `fit`: the response is the next turn of this context.
    - `fluency`: its words are in order.
    - `specificity`: it is no stock reply.
    - `knowledge`: it uses the given facts; None without facts.
    - `acceptance`: the other speaker accepts it, without asking back or complaining; no column if the model has not learnt it.
    - `novelty`: share of its word pairs that do not occur in the four turns before it, in [0, 1].
    - `cosine` of the context and the response's robust part, in [-1, 1].
    - `context_tokens_cut`, `response_tokens_cut`, `fact_tokens_cut`: numbers of tokens not read at the beginning of the
      context, at the end of the response and at the beginning of the facts.

    A long response is judged in parts (`ResponseParts`), and a last turn that is too long is read in parts; the signature's
    `response_windows` and `turn_windows` are the largest numbers of parts. With an empty context `relevance`, `fit` and
    `cosine` are None, and `general` uses even chances for them.

    `with_references` adds `reference_similarity`: the cosine, in [-1, 1], of the encoder's vectors of the response and of the
    nearest reference (the first part of each); None without references. The log odds of the main score gain
    `REFERENCE_WEIGHT` times the excess of this cosine over `USUAL_SIMILARITY`.

    At level "dialogue" every turn of the assistant from the second turn on is judged given the turns before it; if no speaker
    is known to be an assistant, every turn is (`roles.judged_turns`). `relevance`, `fit`, `fluency`, `specificity`,
    `acceptance`, `novelty` and `cosine` are means over these `n_turns` turns. `coherence` is the probability that all turns are
    in their original order and words (from mean, lowest and last fit, see `mixing.turn_statistics`). `general` is the mean of
    the turns' `general`, `fluency`, `specificity`, `coherence` and `novelty`. Token counts are sums over all turns.

    The mixture's weights are fitted on validation dialogues without ratings, except that of relevance
    (`calibration.fit_mixing`). The log odds of `acceptance` are added unweighted, and repeated words subtract up to
    `NOVELTY_WEIGHT`. `mixing` replaces the weights and omits these two terms.

    Raises:
        InputError: `mixing` belongs to another model, or is combined with `with_references` or level "dialogue".
        MissingPrerequisite: there is no model.
        ModelLoadError: the model or `mixing` is damaged, unsafe or of another kind.
    """

    name: ClassVar[str] = "general"
    needs = ("trained model",)
    packaged_model = "general"
    levels = ("turn", "dialogue")
    positive_from = 0.5
    window: ClassVar[int] = 512
    """Smaller than usual: a script that imports `evaluate` holds 500 MB before it scores, and a window twice as large 700
    MB."""

    @with_options(GeneralOptions)
    def __init__(self, options: GeneralOptions) -> None:
        mixing, leave_out = options.mixing, options.leave_out
        if mixing is None and (leave_out is not None or options.score_fitted):
            raise InputError("general: leave_out and score_fitted say how to use a mixing. Give mixing='FILE'.")
        if mixing is not None and options.level == "dialogue":
            raise InputError("general: a mixing is fitted on responses. Leave it out at level='dialogue'.")
        if options.with_references and (mixing is not None or options.level == "dialogue"):
            raise InputError(
                "general: with_references is for single responses, and for the mixing that training fixed. "
                "Leave it out, or leave mixing and level out."
            )
        self.level = options.level
        self._with_references = options.with_references
        self.folder = resolve(GENERAL_MODEL.find(options.model), revision=options.revision)
        settings = judging.GENERAL_FOLDER.read_settings(self.folder)
        self._mixing: Mixing = settings["mixing"]
        self._coherence: CoherenceWeights = settings["coherence"]
        head = HeadFile(self.folder, judging.HEAD_FILE, "general")
        choice = RuntimeChoice(options.backend, options.dtype, options.device)
        runtime = open_runtime(self.folder, choice, load=self._on_torch, calibration=mini.calibration_texts, head=head)
        self._model = judging.GeneralJudge(runtime, settings["config"], Acceptance.load(self.folder))
        self.model_hash: str = model_identity(self.folder)
        self._leave_out = leave_out
        self._score_fitted = options.score_fitted
        self._rated = None if mixing is None else RatedMixing.load(Path(mixing))
        if self._rated is not None and self._rated.model != self.model_hash:
            raise InputError(
                f"{mixing}: was fitted with the model {self._rated.model}, and this one is {self.model_hash}. "
                "Fit it again with `dialeval train mixing`."
            )
        self._weights = None if self._rated is None else self._rated.weights_without(leave_out)
        self._seen = {} if self._rated is None or options.score_fitted else self._rated.seen(leave_out)
        of_level: tuple[str, ...] = TURN_COLUMNS if self.level == "turn" else DIALOGUE_COLUMNS
        of_references = (REFERENCE_SIMILARITY,) if options.with_references else ()
        has_acceptance = self._model.acceptance is not None
        self.columns = tuple(name for name in (*of_level, *of_references) if has_acceptance or name != ACCEPTANCE)
        config = self._model.config
        longest = longest_response(config.max_response_windows, config.max_response_tokens)
        lost = (
            f"a context is longer than {config.max_context_tokens} tokens; its beginning was not read",
            f"a response is longer than {longest}; its end was not read",
            f"the facts are longer than {config.max_context_tokens} tokens; their beginning was not read",
        )
        read = zip(judging.TOKENS_CUT, lost, strict=True)
        self.truncation_columns = {name: words for name, words in read if name in self.columns}
        self.percentiles, self.scope = read_percentiles(self, self.folder), Scope.read(self.folder)

    def _on_torch(self, choice: RuntimeChoice) -> TorchRuntime:
        from .model import load_runtime  # The first to import torch.

        return load_runtime(self.folder, choice)

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return the method, the model, the reading of texts, and the weights of the mixture."""
        config, rated = self._model.config, self._rated
        return {
            "method": self.name,
            "model": self.model_hash,
            "recipe": config.recipe,
            "separator": "sep",
            "speakers": "none",
            "window": f"{config.max_context_tokens}+{config.max_response_tokens}",
            "turn_windows": MAX_TURN_PARTS,
            "response_windows": config.max_response_windows if config.max_response_windows > 1 else None,
            "truncation": "oldest",
            "judged": "assistant" if self.level == "dialogue" else None,
            **self._model.runtime.signature_fields(),
            "novelty": None if rated else NOVELTY_WEIGHT,
            "references": REFERENCE_WEIGHT if self._with_references else None,
            "mixing": "validation" if rated is None else "ratings",
            "mixing_weights": None if self._weights is None else text_hash(repr(sorted(self._weights.items()))),
            "mixing_sets": None if rated is None else ",".join(name for name in rated.qualities if name != self._leave_out),
            "mixing_leave_out": self._leave_out,
            "score_fitted": self._score_fitted or None,
        }

    def unscorable(self, item: Item) -> Unscored | None:
        """Return a reason also for a dialogue in which no turn follows another."""
        return unread(item) if isinstance(item, Dialogue) else super().unscorable(item)

    def reset_cache(self) -> None:
        """Forget the contexts' vectors."""
        self._model.contexts.clear()

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Judge responses, or the turns of dialogues; each distinct text is embedded once."""
        if self.level == "dialogue":
            dialogues = cast("Sequence[Dialogue]", items)
            starts = range(0, len(dialogues), DIALOGUES_AT_ONCE)
            return [row for start in starts for row in self._dialogue_rows(dialogues[start : start + DIALOGUES_AT_ONCE])]
        examples = cast("Sequence[Example]", items)
        for example in examples if self._seen else ():
            if (name := self._seen.get(response_hash(example))) is not None:
                raise InputError(
                    f"general: the mixing has seen the rating of {example.id!r}, which is in its set {name!r}. "
                    f"Give leave_out={name!r} for weights of the other sets, or score_fitted=true."
                )
        return self._turn_rows(examples)

    def explain_known(self, items: Sequence[Item]) -> list[str]:
        """Name the quality that lowers each response's score most, and list the probabilities of all.

        A quality's effect is its weight times its log odds, minus the log odds of people's median response if the folder has a
        table of percentiles. None is named if all effects together raise the score, or if the quality with the lowest effect
        has at least even chances: a fluent reply is not blamed because people's replies are a little more fluent. For a
        dialogue, the turn with the lowest score is explained.
        """
        return list(map(self._explain, items))

    def _explain(self, item: Item) -> str:
        if not isinstance(item, Dialogue):
            triple, (similarity,) = _triple(item), self._reference_similarity([item])
            return self._explain_row(self._judge([triple]), 0, has_context=bool(triple[0]), similarity=float(similarity))
        judgement = self._judge(judging.triples_of_turns([visible_texts(item.turns)])[0])
        main = self.main_score(judgement.log_odds, judgement.novelty)
        worst = int(np.argmin(np.where(judged_turns(item.turns), main, np.inf)))
        numbers = [number for number, turn in enumerate(item.turns, start=1) if not is_blank(turn.text)]
        reason = self._explain_row(judgement, worst, has_context=True, similarity=math.nan)
        return f"turn {numbers[1 + worst]} of {len(item.turns)}: {reason}"

    def _explain_row(self, judgement: judging.GeneralJudgement, row: int, *, has_context: bool, similarity: float) -> str:
        """Explain one row of a judgement; `similarity` is NaN if references were not compared."""
        log_odds = {
            name: float(values[row])
            for name, values in judgement.log_odds.items()
            if not np.isnan(values[row]) and (has_context or name not in _OF_CONTEXT)
        }
        medians = {} if self.percentiles is None else self.percentiles.medians
        # Even chances if there is no table of percentiles.
        typical = {name: np.clip(medians.get(name, 0.5), _CLOSEST, 1 - _CLOSEST) for name in log_odds}
        of_mixing = self._mixing.with_facts if "knowledge" in log_odds else None
        weights: Mapping[str, Any] = self._weights or {**(of_mixing or self._mixing.plain), ACCEPTANCE: 1.0}
        pulls = {name: weights[name] * (log_odds[name] - float(logit(typical[name]))) for name in log_odds if name in weights}
        if self._weights is None:
            pulls[NOVELTY] = NOVELTY_WEIGHT * (float(judgement.novelty[row]) - 1)
        shares = {**{name: expit(value) for name, value in log_odds.items()}, NOVELTY: judgement.novelty[row]}
        if not math.isnan(similarity):
            pulls[REFERENCE_SIMILARITY] = float(reference_log_odds(np.array([similarity]))[0])
            shares[REFERENCE_SIMILARITY] = similarity
        worst = min(pulls, key=lambda name: pulls[name])
        all_shares = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
        is_weak = sum(pulls.values()) < 0 and shares[worst] < _WEAKNESS_THRESHOLD
        return f"{WEAKNESS_TEXT[worst] if is_weak else NO_WEAKNESS} ({all_shares})"

    @one_at_a_time
    def log_odds(self, examples: Sequence[Example]) -> dict[str, FloatArray]:
        """Return the qualities' calibrated log odds of responses, each of shape (n,); NaN in `knowledge` without facts.

        With an empty context those of relevance and fit are 0 (even chances).
        """
        windows: defaultdict[str, list[FloatArray]] = defaultdict(list)
        for start in range(0, len(examples), self.window):
            window = examples[start : start + self.window]
            judgement = self._judge([_triple(example) for example in window])
            for name, values in judgement.log_odds.items():
                windows[name].append(values)
        return {name: np.concatenate(values) for name, values in windows.items()}

    def main_score(
        self, log_odds: Mapping[str, FloatArray], novelty: FloatArray, similarity: FloatArray | None = None
    ) -> FloatArray:
        """Return the main score (n,) from log odds by quality, novelty and reference similarity, each (n,)."""
        if self._weights is not None:
            mixed = rated_log_odds(self._weights, log_odds)
        else:
            mixed = self._mixing.log_odds(log_odds) + log_odds.get(ACCEPTANCE, 0.0) + NOVELTY_WEIGHT * (novelty - 1)
        if similarity is not None:
            mixed = mixed + reference_log_odds(similarity)
        main: FloatArray = expit(mixed)
        return main

    @one_at_a_time
    def embedded_responses(self, texts: Sequence[str]) -> VectorArray:
        """Return the encoder's vectors of the responses' first parts, (n, width)."""
        return self._model.embedded_responses(texts)

    @one_at_a_time
    def embedded_turns(self, texts: Sequence[str]) -> EmbeddedTurns:
        """Return vectors of single turns, see `TurnEmbedder`."""
        return self._model.embedded_turns(texts)

    def _reference_similarity(self, examples: Sequence[Example]) -> FloatArray:
        """Cosines with the nearest references, (n,); NaN for an example without references or without `with_references`."""
        references = [[text for text in example.references if not is_blank(text)] for example in examples]
        texts = [text for of_one in references for text in of_one] if self._with_references else []
        if not texts:
            return np.full(len(examples), np.nan)
        owners = [number for number, of_one in enumerate(references) for _ in of_one]
        distinct = {text: place for place, text in enumerate(dict.fromkeys([*(one.response.text for one in examples), *texts]))}
        vectors = self.embedded_responses(list(distinct))
        responses = vectors[[distinct[example.response.text] for example in examples]]
        return nearest_similarity(responses, vectors[[distinct[text] for text in texts]], owners)

    def _judge(self, triples: Sequence[judging.GeneralInput]) -> judging.GeneralJudgement:
        judgement = self._model.judge(triples)
        without_context = np.array([not context for context, _, _ in triples], dtype=bool)
        for name in _OF_CONTEXT:
            judgement.log_odds[name][without_context] = 0.0
        return judgement

    def _turn_rows(self, examples: Sequence[Example]) -> list[Row]:
        triples = [_triple(example) for example in examples]
        judgement = self._judge(triples)
        similarity = self._reference_similarity(examples)
        main = self.main_score(judgement.log_odds, judgement.novelty, similarity)
        qualities = {name: expit(log_odds) for name, log_odds in judgement.log_odds.items()}
        columns = {"general": main, **qualities, NOVELTY: judgement.novelty, "cosine": judgement.cosine, **judgement.tokens_cut}
        if self._with_references:
            columns[REFERENCE_SIMILARITY] = similarity
        of_rows = zip(*(values.astype(np.float64).tolist() for values in columns.values()), strict=True)
        has_knowledge = self._model.config.has_knowledge
        rows: list[Row] = []
        for (context, _, facts), values, has_reference in zip(triples, of_rows, ~np.isnan(similarity), strict=True):
            row: dict[str, float | None] = dict(zip(columns, values, strict=True))
            if not context:
                row |= dict.fromkeys((*_OF_CONTEXT, "cosine"))
            if not (facts and has_knowledge):
                row |= {"knowledge": None, "fact_tokens_cut": None}
            if self._with_references and not has_reference:
                row[REFERENCE_SIMILARITY] = None
            rows.append(row)
        return rows

    def _dialogue_rows(self, dialogues: Sequence[Dialogue]) -> list[Row]:
        turns = [visible_texts(dialogue.turns) for dialogue in dialogues]
        triples, starts = judging.triples_of_turns(turns)
        judgement = self._judge(triples)
        of_turns = {
            "general": self.main_score(judgement.log_odds, judgement.novelty),
            **{name: expit(judgement.log_odds[name]) for name in _OF_TURNS if name in judgement.log_odds},
            "cosine": judgement.cosine,
            NOVELTY: judgement.novelty,
        }
        columns = {name: np.split(values, starts) for name, values in {**of_turns, **judgement.tokens_cut}.items()}
        coherence = self._coherence.probability(np.split(judgement.log_odds["fit"], starts))
        rows: list[Row] = []
        for number, dialogue in enumerate(dialogues):
            judged = judged_turns(dialogue.turns)
            row = {name: float(columns[name][number][judged].mean()) for name in of_turns}
            row |= {"coherence": float(coherence[number]), "n_turns": float(judged.sum())}
            row["general"] = fmean([row["general"], *(row[name] for name in _OF_DIALOGUES)])
            rows.append({**row, **{name: float(columns[name][number].sum()) for name in self.truncation_columns}})
        return rows


def _triple(example: Example) -> judging.GeneralInput:
    """Blank turns and facts are left out."""
    context = tuple(visible_texts(example.context))
    return context, example.response.text, tuple(fact for fact in example.facts if not is_blank(fact))
