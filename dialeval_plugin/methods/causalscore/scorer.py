"""The scorer `causalscore`: the dependence of a response on the turns before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.dialogue import Example, Item, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import ModelOptions, with_options
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.scope import Scope
from dialeval_plugin.core.scorer import Scorer, read_percentiles
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.models.folders import DefaultModel, model_identity, resolve
from dialeval_plugin.models.runtimes.runtime import DEFAULT_BACKEND, Backend, Precision, RuntimeChoice

from .aggregation import Aggregation, combine, conditional_pairs, dependent_turns, mean_of, score
from .classifiers import CausalWindow, PairLayout, PairTruncation, Probabilities
from .model import CausalModel, DependenceClassifier

_NO_PAIRS: IntArray = np.empty((0, 2), dtype=np.int64)

CAUSAL_MODEL = DefaultModel("causalscore", "DIALEVAL_CAUSALSCORE", packaged="causalscore")


MOST_PAIRS = 1_000_000
"""Maximum pairs of turns of one response (a thousand dependent turns), and of several responses in memory."""


class Dependence(NamedTuple):
    """The classifiers' results for one response."""

    turns: IntArray
    """Places in the context of the turns that are not blank."""
    unconditional: FloatArray
    pairs: IntArray
    """Pairs (candidate cause, condition), as places in `turns`, of shape (pairs, 2)."""
    conditional: FloatArray
    n_cut: int
    n_beyond: int = 0
    """Number of pairs if it exceeds `MOST_PAIRS`, so that none was classified; else 0."""

    def as_cause(self, place: int, options: Aggregation) -> float | None:
        """Return the mean conditional probability with this one of `turns` as the candidate cause; None without a pair."""
        own = self.conditional[self.pairs[:, 0] == place]
        return mean_of(own, options) if len(own) else None


@dataclass(frozen=True, kw_only=True)
class CausalScoreOptions(Aggregation, ModelOptions):
    """Options of `CausalScorer`.

    Attributes:
        layout: how two or three turns become one input of a classifier: "delimited" as in the paper, "literal" as in the
            published code; by default as stored with the model.
        truncate: truncation of a long input: "utterances" at the beginning of the utterances, "right" at the end, as in the
            published code; by default as stored with the model.
        max_tokens: maximum number of tokens of an input; by default as stored with the model.
        backend: runtime of the encoder; auto is the fastest installed one that is as exact as torch; cross-encoders run on
            torch only.
        dtype: number format of multiplications in the encoder on torch; float16 only on a GPU.
    """

    layout: PairLayout | None = None
    truncate: PairTruncation | None = None
    max_tokens: CausalWindow | None = None
    backend: Backend = DEFAULT_BACKEND
    dtype: Precision = "float32"


class CausalScorer(Scorer):
    """CausalScore (Feng et al. 2024): relevance of a response, measured by how strongly it depends on the turns before it.

    Columns: the variant's own, then `unconditional` (mean of the dependent turns' unconditional probabilities) and, except
    with the variant "unconditional", `conditional` (mean over pairs) and `max_ci` (their maximum), all in [0, 1];
    `n_dependent` and `n_turns`, numbers of dependent turns and of turns that are not blank; `n_cut`, number of truncated texts.
    The score is 0 if no turn is dependent.

    Args:
        model: folder or hub id of the trained classifiers; by default that of DIALEVAL_CAUSALSCORE, else the bundled one.
        conditions: "all" uses every dependent turn as a condition; a whole number k uses only the k turns with the largest
            unconditional probability, which makes the time linear in the length of the history.

    The other options are those of `Aggregation`, and those of `RowEncoder`, by default the model's own.

    Raises:
        InputError: the variant does not fit the model.
        MissingPrerequisite: there is no model.
        ModelLoadError: the model is damaged or unsafe.
    """

    name = "causalscore"
    needs = ("trained model",)
    packaged_model = "causalscore"
    citation = bibtex("feng2024causalscore")
    window = 64

    @with_options(CausalScoreOptions)
    def __init__(self, options: CausalScoreOptions) -> None:
        self.options = options
        self.model_name = CAUSAL_MODEL.find(options.model)
        folder = resolve(self.model_name, revision=options.revision)
        self.model = CausalModel.load(
            str(folder),
            runtime=RuntimeChoice(options.backend, options.dtype, options.device),
            layout=options.layout,
            truncate=options.truncate,
            max_tokens=options.max_tokens,
        )
        self.model_hash = model_identity(folder)
        if options.variant == "preceding_2" and self.model.config.labels != "preceding_2":
            raise InputError(
                "causalscore: the variant 'preceding_2' needs a model that was trained without annotated causes, and this one "
                "was not. Train one with `dialeval train independence --labels preceding_2`, or choose another variant."
            )
        parts = ["unconditional"] if options.variant == "unconditional" else ["unconditional", "conditional", "max_ci"]
        self.columns = tuple(dict.fromkeys((options.variant, *parts, "n_dependent", "n_turns", "n_cut")))
        self.truncation_columns = {"n_cut": self.model.unconditional.limit}
        self.percentiles, self.scope = read_percentiles(self, folder), Scope.read(folder)

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method, variant, model, conditions, choices about equation 1 and handling of texts."""
        options = self.options
        return {
            "method": "causalscore",
            "variant": options.variant,
            "model": self.model_hash,
            "recipe": self.model.config.recipe,
            "conditions": options.conditions,
            "pairs": options.pairs,
            "dedupe": options.dedupe,
            "single": options.single,
            "max_ci": options.max_ci if options.variant == "max_ci" else None,
            "average": options.average,
            **self.model.unconditional.reading,
        }

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score responses; the classifiers read the texts of all together."""
        return [self._row(dependence) for dependence in self.dependence(cast("Sequence[Example]", items))]

    def dependence(self, examples: Sequence[Example]) -> Iterator[Dependence]:
        """Yield the classifiers' results for each response, which must not be blank, in parts of at most `MOST_PAIRS` pairs."""
        numbers: dict[str, int] = {}
        turns = [np.flatnonzero([not is_blank(turn.text) for turn in example.context]) for example in examples]
        turn_rows = [_turn_rows(example, places, numbers) for example, places in zip(examples, turns, strict=True)]
        texts = list(numbers)
        unconditional = _judge(self.model.unconditional, texts, turn_rows)
        n_pairs = [self._n_pairs(single.dependent) for single in unconditional]
        for start, end in _shares(n_pairs):
            pairs = [
                conditional_pairs(single.dependent, [texts[number] for number in rows[:, 0]], self.options)
                if 0 < number <= MOST_PAIRS
                else _NO_PAIRS
                for number, single, rows in zip(n_pairs[start:end], unconditional[start:end], turn_rows[start:end], strict=True)
            ]
            triples = [
                np.column_stack([rows[chosen[:, 0], 0], rows[chosen[:, 1], 0], rows[chosen[:, 0], 1]])
                for rows, chosen in zip(turn_rows[start:end], pairs, strict=True)
            ]
            conditional = _judge(self.model.conditional, texts, triples)
            for place, (chosen, double) in enumerate(zip(pairs, conditional, strict=True), start):
                single = unconditional[place]
                n_cut = int(single.is_cut.sum() + double.is_cut.sum())
                n_beyond = n_pairs[place] if n_pairs[place] > MOST_PAIRS else 0
                yield Dependence(turns[place], single.dependent, chosen, double.dependent, n_cut, n_beyond)

    def explain_known(self, items: Sequence[Item]) -> list[str]:
        """Return each response's context as text, one line per turn, with the dependent turns marked by `*`.

        Lines have a turn's unconditional probability and, for a candidate cause, the mean of its conditional ones.
        """
        examples = cast("Sequence[Example]", items)
        return [_explanation(*of_one, self.options) for of_one in zip(examples, self.dependence(examples), strict=True)]

    def _n_pairs(self, probabilities: FloatArray) -> int:
        """Return an upper bound of the number of pairs that the score needs."""
        n_dependent = len(dependent_turns(probabilities))
        n_conditions = n_dependent if self.options.conditions == "all" else min(n_dependent, self.options.conditions)
        return 0 if self.options.variant == "unconditional" else n_dependent * n_conditions

    def _row(self, dependence: Dependence) -> Row:
        for probabilities in (dependence.unconditional, dependence.conditional):
            if not np.isfinite(probabilities).all():
                return Unscored(Reason.NON_FINITE, "a classifier's probability is not finite")
        if dependence.n_beyond:
            return Unscored(
                Reason.CONTEXT_TOO_LONG,
                f"{len(dependent_turns(dependence.unconditional))} dependent turns make up to {dependence.n_beyond} pairs, "
                f"more than the {MOST_PAIRS} that are asked about; with conditions=k they are k times as many as turns",
            )
        parts = combine(dependence.unconditional, dependence.pairs, dependence.conditional, self.options)
        columns: dict[str, float | None] = {
            **parts._asdict(),
            "n_dependent": float(len(dependent_turns(dependence.unconditional))),
            "n_turns": float(len(dependence.turns)),
            "n_cut": float(dependence.n_cut),
            self.options.variant: score(parts, self.options),
        }
        return {name: columns[name] for name in self.columns}


def _shares(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield start and end of parts of a sequence whose sizes sum to at most `MOST_PAIRS`."""
    start = total = 0
    for place, size in enumerate(sizes):
        if place > start and total + size > MOST_PAIRS:
            yield start, place
            start, total = place, 0
        total += size
    if sizes:
        yield start, len(sizes)


def _turn_rows(example: Example, places: IntArray, numbers: dict[str, int]) -> IntArray:
    """Return rows (turn, response) of one example as numbers of texts, and add new texts to `numbers`."""
    texts = [example.context[place].text for place in places.tolist()]
    response = numbers.setdefault(example.response.text, len(numbers))
    return np.array([[numbers.setdefault(text, len(numbers)), response] for text in texts], dtype=np.int64).reshape(-1, 2)


def _judge(classifier: DependenceClassifier, texts: Sequence[str], groups: Sequence[IntArray]) -> list[Probabilities]:
    if not groups:
        return []
    judged = classifier.probabilities(texts, np.concatenate(groups))
    ends = np.cumsum([len(rows) for rows in groups])[:-1]
    return [Probabilities(*parts) for parts in zip(*(np.split(values, ends) for values in judged), strict=True)]


def _explanation(example: Example, dependence: Dependence, options: Aggregation) -> str:
    dependent = set(dependent_turns(dependence.unconditional).tolist())
    lines = [f"{example.id}: {len(dependent)} of {len(dependence.turns)} turns are dependent"]
    for place, turn in enumerate(dependence.turns.tolist()):
        spoken = example.context[turn]
        as_cause = dependence.as_cause(place, options)
        mark = "*" if place in dependent else " "
        mean = "    " if as_cause is None else f"{as_cause:.2f}"
        lines.append(f"  {mark} {dependence.unconditional[place]:.2f} {mean}  {_line(spoken.speaker, spoken.text)}")
    lines.append(f"  >              {_line(example.response.speaker, example.response.text)}")
    return "\n".join(lines)


def _line(speaker: str | None, text: str) -> str:
    return " ".join(f"{speaker}: {text}".split()) if speaker else " ".join(text.split())
