"""How consistent a scorer is, and how far it moves where nothing that matters has changed: an effect with an interval each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.resources import optional
from dialeval_plugin.core.scorer import BLOCK, Scorer, block_size, run_signature, score_block, scores_of
from dialeval_plugin.core.scores import Row, conversation_id
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.hosts.registration import replaced
from dialeval_plugin.labels.table import LabelTable
from dialeval_plugin.llm.answers import CachedLanguageModel
from dialeval_plugin.llm.language_model import judge_of
from dialeval_plugin.methods.assistant.rules import language_of
from dialeval_plugin.methods.judging.rubric import RubricJudge, rubric_prompt
from dialeval_plugin.reports.tables import Table, TableRow, figure, interval_column, named_column
from dialeval_plugin.statistics.bootstrap import EXPANDED, Bootstrap, Computed, Counts, Estimate, Resampled
from dialeval_plugin.statistics.means import difference_of_means_interval
from dialeval_plugin.statistics.reliability import intraclass_correlation

from .changes import ANSWER_CHANGES, PROMPT_CHANGES, AskedOtherwise, changed_item, judged_text

if TYPE_CHECKING:
    import pandas

MIN_GROUP = 10
"""Answers on either side that a comparison of groups needs."""
_ALONE = 100
"""Answers that are scored one by one at most."""
_FEWEST_WORDS = 8
"""Fewest words of an answer whose language is determined."""
_STORED = "stored verdicts are the same whatever is asked"
_SAME = "same to the bit"
_INTERVALS = (
    interval_column("shift (SD)", "shift", "shift_", missing=""),
    interval_column("flips", "flips", "flips_", missing=""),
)
_FIELDS = {"": "value", "_ci_low": "ci_low", "_ci_high": "ci_high", "_reason": "reason"}


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The effect of one change on the scores of the same answers.

    Attributes:
        test: what is tested, as "verbosity"; change: how.
        shift: mean change of the score, as a share of its standard deviation between answers; above 0 it gets better.
        flips: share of pairs whose scores lie on different sides of the report's `line`; None where groups are compared.
        n_equal: pairs whose scores are the same to the bit; None likewise.
    """

    test: str
    change: str
    shift: Estimate
    flips: Estimate | None = None
    n_equal: int | None = None


@dataclass(frozen=True, kw_only=True)
class BiasReport:
    """The effects on a scorer, and the tests that were not made.

    Attributes:
        spread: standard deviation of the score between answers, in its own units; None where no two answers differ.
        line: score from which on an answer counts as good; None where no answer has a score.
        reliability: share of the variance of single scores that lies between the answers, of repeated runs: ICC(1,1).
        untested: by test why there is no effect.
    """

    scorer: str
    signature: str
    n_answers: int
    n_scored: int
    spread: float | None
    line: float | None
    reliability: Estimate | None
    effects: tuple[Effect, ...]
    untested: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object."""
        return asdict(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a row an effect."""
        return optional("pandas", "to_pandas").DataFrame(self.table().rows)

    def table(self) -> Table:
        """Return a row an effect, and below what was not tested."""
        columns = [named_column(name, is_number=False) for name in ("test", "change")]
        columns += [named_column("pairs"), *_INTERVALS, named_column(_SAME)]
        spread = "no two of them differ" if self.spread is None else f"their standard deviation is {self.spread:.4g}"
        notes = [f"{self.scorer}: {self.n_scored} of {self.n_answers} answers have a score; {spread}."]
        if self.line is not None:
            notes.append(f"A pair flips where one score is below {self.line:.4g} and the other is not.")
        if (icc := self.reliability) is not None:
            notes.append(f"ICC of repeated runs: {icc.text() if icc.value is not None else icc.reason}")
        notes += [f"not tested: {test}: {reason}." for test, reason in self.untested.items()]
        return Table([_row(effect) for effect in self.effects], columns, notes, {"signature": self.signature})


def _row(effect: Effect) -> TableRow:
    row: dict[str, Any] = {"test": effect.test, "change": effect.change, "pairs": str(effect.shift.n_scored)}
    for name, estimate in (("shift", effect.shift), ("flips", effect.flips)):
        row |= {f"{name}{end}": None if estimate is None else getattr(estimate, key) for end, key in _FIELDS.items()}
    return {**row, _SAME: "all" if effect.n_equal == effect.shift.n_scored else figure(effect.n_equal, 0)}


def run(
    scorer: Scorer,
    items: Sequence[Item],
    *,
    labels: LabelTable | None = None,
    own: str | None = None,
    repeats: int = 3,
    bootstrap: Bootstrap = EXPANDED,
) -> BiasReport:
    """Test a scorer on answers, or dialogues; a language model is asked about a dozen times as much as for their scores.

    Args:
        scorer: one of the items' level.
        items: what is scored and changed.
        labels: what people said of the items, by their ids; for the comparisons of groups, which else are not made.
        own: the system that is the judge's own model, as the labels or the items call it.
        repeats: runs of the same, two at least.
        bootstrap: of the intervals, which resample whole conversations.
    """
    battery = _Battery(scorer, items, bootstrap)
    reliability = battery.repeat(max(2, repeats))
    battery.ask_otherwise()
    for test, changes in ANSWER_CHANGES.items():
        for what, change in changes.items():
            changed = {place: one for place, item in enumerate(items) if (one := changed_item(item, change)) is not None}
            battery.compare(test, what, battery.scores(list(changed.values())), np.array(list(changed), dtype=np.int64))
    battery.compare_groups(labels, own)
    tested = {effect.test for effect in battery.effects}
    return BiasReport(
        scorer=scorer.name,
        signature=str(run_signature(scorer)),
        n_answers=len(items),
        n_scored=int((~np.isnan(battery.before)).sum()),
        spread=battery.spread or None,
        line=battery.line,
        reliability=reliability,
        effects=tuple(battery.effects),
        untested={test: why for test, why in battery.untested.items() if test not in tested},
    )


class _Battery:
    """The scores of the answers as they are, and the effects found so far; of all scores higher is better, and NaN is none."""

    def __init__(self, scorer: Scorer, items: Sequence[Item], bootstrap: Bootstrap) -> None:
        self.scorer, self.items, self._bootstrap = scorer, items, bootstrap
        self.judge = judge_of(scorer)
        self._is_replayed = self.judge is not None and self.judge.llm.identity.startswith("replayed:")
        self.effects: list[Effect] = []
        self.untested: dict[str, str] = {}
        self._clusters = np.array([conversation_id(item) or context_key(item) for item in items])
        self._codes = np.unique(self._clusters, return_inverse=True)[1]
        self._places = np.arange(len(items))
        self.before = self.scores(items)
        scored = self.before[~np.isnan(self.before)]
        self._centre, self.spread = (float(scored.mean()), float(scored.std())) if len(scored) else (0.0, 0.0)
        sign = -1 if scorer.orientation == "lower" else 1
        line = sum(scorer.range) / 2 if scorer.positive_from is None else scorer.positive_from
        self._line = sign * line if np.isfinite(line) else float(np.median(scored)) if len(scored) else 0.0
        self.line = sign * self._line if len(scored) else None

    def scores(self, items: Sequence[Item]) -> FloatArray:
        """Score items without a word on those that have no score, which the effects count."""
        size = block_size(self.scorer, BLOCK)
        rows: list[Row] = []
        for start in range(0, len(items), size):
            rows += score_block(self.scorer, items[start : start + size])
        result = scores_of(self.scorer, items, self.scorer.normalise_rows(rows))
        self._unscored = result.unscored_by_reason
        values = np.array([np.nan if value is None else value for value in result.values], dtype=np.float64)
        return -values if self.scorer.orientation == "lower" else values

    @contextmanager
    def _asked(self, **otherwise: Any) -> Iterator[None]:
        """Let the judge's model be asked otherwise; `again`, no answer that is kept counts."""
        with ExitStack() as stack:
            if self.judge is not None:
                model = self.judge.llm
                if isinstance(model, CachedLanguageModel) and "again" in otherwise:
                    stack.enter_context(replaced(model, "cache", None))
                stack.enter_context(replaced(self.judge, "llm", AskedOtherwise(model, **otherwise)))
            yield

    def repeat(self, n_runs: int) -> Estimate | None:
        """Score the same again, and in another order; return the reliability of single scores."""
        if self._is_replayed:
            self.untested |= dict.fromkeys(("repeated runs", "order of rows"), _STORED)
            return None
        runs = [self.before]
        for number in range(1, n_runs):
            with self._asked(again=number):
                runs.append(self.scores(self.items))
        self.compare("repeated runs", f"{n_runs} runs", np.concatenate(runs[1:]), np.tile(self._places, n_runs - 1))
        with self._asked(again=n_runs):
            self.compare("order of rows", "from the last to the first", self.scores(self.items[::-1])[::-1], self._places)
        if self.judge is None:
            alone = [float(self.scores([item])[0]) for item in self.items[:_ALONE]]
            self.compare("order of rows", "each alone", np.array(alone), self._places[:_ALONE])
        ratings = [[None if np.isnan(value) else float(value) for value in row] for row in np.stack(runs, axis=1)]
        return intraclass_correlation(ratings, clusters=self._clusters.tolist(), bootstrap=self._bootstrap).of_one

    def ask_otherwise(self) -> None:
        """Ask the same in other words, and with the choices in the other order."""
        if self._is_replayed:
            self.untested |= dict.fromkeys(("prompt wording", "order of options"), _STORED)
            return
        for what, change in PROMPT_CHANGES.items():
            if self.judge is None:
                self.untested["prompt wording"] = "it asks no language model with a prompt of ours"
            else:
                with self._asked(change=change):
                    self.compare("prompt wording", what, self.scores(self.items), self._places)
        if isinstance(self.judge, RubricJudge) and self.judge.prompts[0].words:
            turned = [rubric_prompt(one, is_reversed=True) for one in self.judge.rubrics]
            with replaced(self.judge, "prompts", turned):
                self.compare("order of options", "from the last to the first", self.scores(self.items), self._places)
        else:
            self.untested["order of options"] = "it has no rubric with words to choose from"

    def compare(self, test: str, change: str, after: FloatArray, places: IntArray) -> None:
        """Add the effect on the answers at these places."""
        before = self.before[places]
        known = ~np.isnan(before) & ~np.isnan(after)
        if not known.any():
            why = ", ".join(f"{reason} {n}" for reason, n in self._unscored.items())
            self.untested[test] = f"no answer has a score as it is and changed ({why or 'the changes fit none'})"
            return
        moved, pairs_of = (after - before)[known], self._codes[places[known]]
        flipped = ((after < self._line) != (before < self._line))[known]
        centred = np.where(np.isnan(self.before), 0, self.before - self._centre)
        sums = np.zeros((len(set(self._codes)), 6))
        np.add.at(sums[:, :3], pairs_of, np.column_stack([np.ones(len(moved)), moved, flipped]))
        np.add.at(sums[:, 3:], self._codes, np.column_stack([~np.isnan(self.before), centred, centred**2]))
        sums = sums[np.lexsort(sums.T)]  # which conversation is the k-th moves no digit
        computed: dict[str, Computed] = {"shift": "all answers have the same score. Test it on others."}
        for name, statistic in (("shift", _shift), ("flips", _flips)):
            resampled = Resampled(statistic, sums)
            if name == "flips" or self.spread:
                computed[name] = resampled.value, resampled
        counts = Counts(len(places), len(moved), len(set(pairs_of)), len(places) - len(moved))
        estimates = self._bootstrap.estimates(computed, counts)
        self.effects.append(Effect(test=test, change=change, **estimates, n_equal=int((moved == 0).sum())))

    def compare_groups(self, labels: LabelTable | None, own: str | None) -> None:
        """Add by how much more than people the scorer likes the judge's own system, and answers in other languages."""
        texts = [judged_text(item) for item in self.items]
        languages = np.array([language_of(text) if len(text.split()) >= _FEWEST_WORDS else "" for text in texts])
        names, n_each = np.unique(languages[languages != ""], return_counts=True)
        most = str(names[np.argmax(n_each)]) if len(names) else "en"
        is_other = (languages != most) & (languages != "")
        needs = "it needs labels of people that have an order (--labels)"
        self.untested["self-preference"] = f"{needs}, and the name of the judge's own system (--own)"
        self.untested["language"] = f"{needs}; {is_other.sum()} of {len(texts)} answers are not in {most!r}"
        if labels is None or labels.scale.kind == "nominal":
            return
        of_id = {id: place for place, id in enumerate(labels.ids)}
        places = [of_id.get(item.id) for item in self.items]
        means = np.ma.masked_invalid(labels.labels).mean(axis=1).filled(np.nan)
        ratings = np.array([np.nan if place is None else means[place] for place in places])
        systems = [None if place is None or labels.systems is None else labels.systems[place] for place in places]
        is_own = np.array([own in (system, item.system) for system, item in zip(systems, self.items, strict=True)])
        groups = {"language": (f"other languages beside {most!r}", is_other)}
        if own is not None:
            groups["self-preference"] = f"{own} beside the other systems", is_own
        gap = _standardised(self.before) - _standardised(ratings)
        for test, (change, is_one) in groups.items():
            sides = [np.flatnonzero(side & ~np.isnan(gap)) for side in (is_one, ~is_one)]
            if min(map(len, sides)) < MIN_GROUP:
                sizes = f"{len(sides[0])} and {len(sides[1])} answers have a score and a label"
                self.untested[test] = f"{change}: {sizes}, and each side needs {MIN_GROUP}"
                continue
            values, of = ([column[side].tolist() for side in sides] for column in (gap, self._clusters))
            shift = difference_of_means_interval(
                values[0], values[1], clusters_a=of[0], clusters_b=of[1], bootstrap=self._bootstrap
            )
            self.effects.append(Effect(test=test, change=change, shift=replace(shift, name="shift")))


@np.errstate(invalid="ignore", divide="ignore")
def _shift(sums: FloatArray) -> FloatArray:
    n_pairs, moved, _, n, total, squares = sums.T
    spread = np.sqrt(np.maximum(0, squares / n - (total / n) ** 2))
    return np.where(spread > 0, moved / n_pairs / spread, np.nan)


@np.errstate(invalid="ignore")
def _flips(sums: FloatArray) -> FloatArray:
    return np.asarray(sums[:, 2] / sums[:, 0])


def _standardised(values: FloatArray) -> FloatArray:
    known = values[~np.isnan(values)]
    spread = known.std() if len(known) else 0.0
    return (values - known.mean()) / spread if spread > 0 else np.full(len(values), np.nan)
