"""The tables of results.md: how far the general evaluator's heads, alone and mixed, agree with people on each rated set.

Figures are Spearman's rho with the mean rating and its interval, which resamples dialogues. Rows of Table 14 of Huynh et al.
2023 stand next to them. DIALEVAL_DATA_DIR names the folder with `dstc10`, `fed`, `usr` and `conture`; the ratings are read here
and nowhere in training.

    python -m reproduction.general.write MODEL --document reproduction/general/results.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from dialeval_plugin.core.dialogue import Example, Item, is_blank, mean_rating
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.rated_items import RatedItem
from dialeval_plugin.corpora.readers import conture, dstc10, fed, usr
from dialeval_plugin.methods.general.judging import GENERAL_FOLDER, TOKENS_CUT
from dialeval_plugin.methods.general.mixing import RatedSet, fit_on_ratings, rated_log_odds
from dialeval_plugin.methods.general.scorer import DIALOGUE_COLUMNS, TURN_COLUMNS, GeneralScorer
from dialeval_plugin.reports.tables import Table, TableRow, figure, named_column
from dialeval_plugin.statistics.correlation import Correlation, correlate
from dialeval_plugin.statistics.estimates import ValueInterval, interval_text, mean_over_sets
from reproduction.documents import estimate, published, script_parser, write_tables
from reproduction.intervals import percentile_bootstrap

EIGHT = ("tu", "dz", "pu", "dgu", "dgr", "ft", "eg", "fd")
"""The sets of Table 14, in its order."""
FURTHER = ("cg", "pz")
LEFT_OUT = "leave-one-set-out"
LENGTH, RANDOM = CONTROLS = ("response length", "random")
MACRO, MACRO_OF_TURNS = "macro mean", "mean of turn-level sets"
_SEED = 13
_COUNTS = {"n_turns", *TOKENS_CUT}
_EVALUATORS = tuple(name for name in dict.fromkeys((*TURN_COLUMNS, *DIALOGUE_COLUMNS)) if name not in _COUNTS)
"""The columns that judge; the last one of each level counts."""

Values: TypeAlias = Sequence[float | None]


class EvaluationSet(NamedTuple):
    """Responses or dialogues that people rated in one quality."""

    name: str
    quality: str
    items: Sequence[Item]

    @property
    def is_of_turns(self) -> bool:
        """Whether it has responses, not whole dialogues."""
        return isinstance(self.items[0], Example)

    def agreement(self, values: Values, rounds: int = 1000) -> Correlation | None:
        """How far scores agree with the ratings; None where there is no score."""
        if all(value is None for value in values):
            return None
        ratings = [_rating(item, self.quality) for item in self.items]
        clusters = [context_key(item) for item in self.items]
        return correlate(values, ratings, coefficient="spearman", clusters=clusters, bootstrap=percentile_bootstrap(rounds))


class SetsAtHand(NamedTuple):
    """Sets that can be reported on."""

    sets: list[EvaluationSet]
    absent: list[str]


def overall_sets() -> SetsAtHand:
    """Read the eight sets of Table 14, two further DSTC10 sets and ConTurE's turns and dialogues, as far as they are there."""
    readers: dict[str, Callable[[], EvaluationSet]] = {
        **{code: lambda code=code: dstc10_set(code) for code in (*EIGHT, *FURTHER)},  # type: ignore[misc]
        "conture, turns": lambda: EvaluationSet("conture, turns", conture.TURN_QUALITY, conture.read_examples()),
        "conture": lambda: EvaluationSet("conture", "human (overall)", conture.read_dialogues()),
    }
    found = SetsAtHand([], [])
    for name, read in readers.items():
        try:
            found.sets.append(read())
        except MissingPrerequisite:
            found.absent.append(name)
    return found


def dstc10_set(code: str) -> EvaluationSet:
    """Read a DSTC10 set with its overall quality."""
    items = dstc10.read(code)
    return EvaluationSet(code, dstc10.overall_quality(items, dstc10.SETS[code]), items)


def quality_sets() -> list[EvaluationSet]:
    """Read FED and USR, one set for each quality of each level."""
    found: list[EvaluationSet] = []
    sources: list[tuple[str, Sequence[Item]]] = [
        ("FED, turn", fed.read_examples()),
        ("FED, dialogue", fed.read_dialogues()),
        ("USR, TopicalChat", usr.read_examples("topical_chat")),
        ("USR, PersonaChat", usr.read_examples("persona_chat")),
    ]
    for name, items in sources:
        found += [EvaluationSet(f"{name}: {quality}", quality, items) for quality in items[0].ratings]
    return found


def controls(items: Sequence[Item]) -> dict[str, Values]:
    """Baselines: the number of words, and numbers drawn at random."""
    drawn = np.random.default_rng(_SEED).random(len(items))
    return {LENGTH: [float(RatedItem.of(item).words or 0) for item in items], RANDOM: drawn.tolist()}


class ModelCorrelations:
    """Coefficients of a model's columns, of controls and of left-out mixings, a set after the other."""

    def __init__(self, model: str, *, rounds: int = 1000, device: str | None = None) -> None:
        self._scorers = {
            True: GeneralScorer(model, device=device),
            False: GeneralScorer(model, level="dialogue", device=device),
        }
        self._rounds = rounds
        self._columns: list[tuple[tuple[Item, ...], dict[str, Values]]] = []

    def columns(self, items: Sequence[Item]) -> dict[str, Values]:
        """Return every evaluator's scores; those of the same items are computed once."""
        known = next((columns for of, columns in self._columns if of == tuple(items)), None)
        if known is None:
            scores = self._scorers[isinstance(items[0], Example)].score(items, progress=True)
            known = {**{name: scores.columns[name] for name in _EVALUATORS if name in scores.columns}, **controls(items)}
            self._columns.append((tuple(items), known))
        return known

    @property
    def evaluators(self) -> list[str]:
        """The columns that judge and that the model has."""
        columns = {name for scorer in self._scorers.values() for name in scorer.columns}
        return [name for name in _EVALUATORS if name in columns]

    def of_columns(self, entry: EvaluationSet) -> dict[str, Correlation | None]:
        """Agreement of every evaluator with the ratings of a set; None for one that has no score there."""
        return {name: entry.agreement(values, self._rounds) for name, values in self.columns(entry.items).items()}

    def of_left_out(self, sets: Sequence[EvaluationSet]) -> dict[str, Correlation | None]:
        """Agreement on each set of responses of the heads mixed by weights that were fitted on the others."""
        of_turns = [entry for entry in sets if entry.is_of_turns]
        if len(of_turns) < 2:
            return {}
        scorer = self._scorers[True]
        fitted = fit_on_ratings([_rated_set(entry, scorer) for entry in of_turns], scorer.model_hash)
        found = {}
        for entry in of_turns:
            examples = cast("Sequence[Example]", entry.items)
            values = rated_log_odds(fitted.weights_without(entry.name), scorer.log_odds(examples))
            blank = [is_blank(example.response.text) for example in examples]
            scores = [None if empty else float(value) for empty, value in zip(blank, values, strict=True)]
            found[entry.name] = entry.agreement(scores, self._rounds)
        return found


def _rating(item: Item, quality: str) -> float | None:
    return mean_rating(item, quality) if quality in item.ratings else None


def _rated_set(entry: EvaluationSet, scorer: GeneralScorer) -> RatedSet:
    rated = [
        (example, rating)
        for example in cast("Sequence[Example]", entry.items)
        if not is_blank(example.response.text) and (rating := _rating(example, entry.quality)) is not None
    ]
    examples = [example for example, _ in rated]
    return RatedSet(entry.name, entry.quality, examples, np.array([found for _, found in rated]), scorer.log_odds(examples))


def overall_table(model: ModelCorrelations, sets: Sequence[EvaluationSet], *, mean_over: Sequence[str] = EIGHT) -> Table:
    """Return a row an evaluator and a column a set, with the means over sets in front.

    Evaluators and published rows are averaged over the same ones of `mean_over`, those that are there; the second mean is over
    those of them that rate responses.
    """
    averaged = {
        MACRO: [entry.name for entry in sets if entry.name in mean_over],
        MACRO_OF_TURNS: [entry.name for entry in sets if entry.name in mean_over and entry.is_of_turns],
    }
    by_set = {entry.name: model.of_columns(entry) for entry in sets}
    left_out = model.of_left_out(sets)
    rows: list[TableRow] = []
    for name in (*model.evaluators, LEFT_OUT, *CONTROLS):
        found = {place: left_out.get(place) if name == LEFT_OUT else by_set[place].get(name) for place in by_set}
        figures = {
            place: None if one is None else ValueInterval(one.value, one.ci_low, one.ci_high) for place, one in found.items()
        }
        rows.append({"evaluator": name, **_means(figures, averaged), **{place: estimate(one) for place, one in found.items()}})
    for name, values in published("huynh")["dstc10_baselines"].items():
        printed = {place: ValueInterval(value, None, None) for place, value in zip(EIGHT, values, strict=True)}
        shown = {place: figure(printed[place].value) if place in printed else "" for place in by_set}
        rows.append({"evaluator": f"{name} (Table 14)", **_means(printed, averaged), **shown})
    names = averaged[MACRO]
    columns = [named_column(name, is_number=name != "evaluator") for name in rows[0]]
    return Table(rows, columns, [f"Macro mean over {len(names)} sets: {', '.join(names) or 'none'}."])


def quality_table(model: ModelCorrelations, sets: Sequence[EvaluationSet]) -> Table:
    """Return a row a quality and a column an evaluator."""
    rows: list[TableRow] = []
    for entry in sets:
        found = model.of_columns(entry)
        rows.append({"quality": entry.name, **{name: estimate(found.get(name)) for name in (*model.evaluators, *CONTROLS)}})
    return Table(rows, [named_column(name, is_number=name != "quality") for name in rows[0]])


def validation_table(settings: Mapping[str, Any]) -> Table:
    """How well each head tells a real response from each kind of wrong text; `settings` are a model's general.json."""
    areas = settings["validation"]["auroc"]
    counts = settings["validation"]["rows"]
    rows: list[TableRow] = [
        {"wrong text": kind, "n": counts[kind], **{head: found[kind] for head, found in areas.items() if head != "coherence"}}
        for kind in counts
        if kind != "real" and counts[kind]
    ]
    columns = [named_column(name, 0 if name == "n" else 3, is_number=name != "wrong text") for name in rows[0]]
    shown = ", ".join(f"{kind} {figure(value)}" for kind, value in areas["coherence"].items())
    return Table(rows, columns, [f"Coherence of whole dialogues: {shown}."])


def _means(figures: Mapping[str, ValueInterval | None], averaged: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The means over the sets of each title; nothing where a set has no figure."""
    means = {title: mean_over_sets([figures.get(name) for name in names]) for title, names in averaged.items()}
    return {title: "" if mean.value is None else interval_text(*mean) for title, mean in means.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = script_parser(__doc__)
    parser.add_argument("model", type=Path, help="folder of a trained model")
    parser.add_argument("--rounds", type=int, default=1000, help="of the bootstrap")
    options = parser.parse_args(arguments)
    model = ModelCorrelations(str(options.model), rounds=options.rounds)
    at_hand = overall_sets()
    if at_hand.absent:
        print(f"not on this machine: {', '.join(at_hand.absent)}")
    tables = {
        "validation": validation_table(GENERAL_FOLDER.read_settings(options.model)["training"]),
        "overall": overall_table(model, at_hand.sets),
        "qualities": quality_table(model, quality_sets()),
    }
    write_tables(options.document, tables)


if __name__ == "__main__":
    main()
