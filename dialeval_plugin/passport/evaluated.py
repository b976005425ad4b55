"""An evaluator's scores with human labels, from which findings are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from typing_extensions import TypedDict

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked, read_json
from dialeval_plugin.labels.table import JudgedLabels, LabelTable, ScoreTable
from dialeval_plugin.statistics.annotators.raters import MIN_RATERS, InPlaceOfRaters, by_place, in_place_of_raters
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Computed, Counts, Estimate, Resampled
from dialeval_plugin.statistics.categories import evaluator_cells, label_counts, label_statistics, people_cells
from dialeval_plugin.statistics.rows import canonical_rows, cluster_codes


class BiasEffect(TypedDict):
    """Effect of one change on the scores, as a share of their standard deviation between answers."""

    test: str
    change: str
    shift: Estimate


class BiasFile(TypedDict):
    """Fields of a bias report that a passport reads."""

    signature: str
    effects: list[BiasEffect]


def read_bias(paths: Sequence[str | Path], signatures: Sequence[str | None]) -> dict[str, list[BiasEffect]]:
    """Return the effects by signature; raises InputError if a report is malformed or belongs to none of the evaluators."""
    effects: dict[str, list[BiasEffect]] = {}
    for path in map(Path, paths):
        advice = "Give what `dialeval bias --output FILE.json` wrote."
        report = checked(read_json(path), BiasFile, str(path), advice=advice)
        if report["signature"] not in signatures:
            raise InputError(
                f"{path}: is of {report['signature']}, which none of the results is of. Run `dialeval bias` with the scorer "
                "and the options that gave the results."
            )
        effects.setdefault(report["signature"], []).extend(report["effects"])
    return effects


AnyEstimate = TypeVar("AnyEstimate", bound=Estimate)


class LabelledRows(NamedTuple):
    """Labels of an evaluator and of people, row by row; `counts` are the numbers of people who gave each label."""

    said: FloatArray
    counts: FloatArray
    clusters: IntArray
    of: Counts


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluated:
    """An evaluator's scores with human labels.

    `runs` have the same rows; the first is used where one is needed. `whole` is the first run on all rows, labelled or not.
    `bias` has the effects reported by `dialeval bias`.
    """

    runs: Sequence[JudgedLabels]
    whole: ScoreTable
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
    bias: Sequence[BiasEffect] = ()

    @property
    def judged(self) -> JudgedLabels:
        """First run."""
        return self.runs[0]

    @property
    def labels(self) -> LabelTable:
        """Human labels."""
        return self.judged.labels

    @cached_property
    def human(self) -> FloatArray:
        """Mean label of each row, NaN without labels."""
        n = self.labels.n_labels
        return np.where(n > 0, np.nansum(self.labels.labels, axis=1) / np.maximum(n, 1), np.nan)

    @cached_property
    def used(self) -> IntArray:
        """Rows with both a score and a label, called used rows."""
        return np.flatnonzero(~np.isnan(self.judged.scores) & ~np.isnan(self.human))

    @cached_property
    def scores(self) -> FloatArray:
        """Scores of the used rows."""
        return self.judged.scores[self.used]

    @cached_property
    def ratings(self) -> FloatArray:
        """Mean labels of the used rows."""
        return self.human[self.used]

    @cached_property
    def all_clusters(self) -> IntArray:
        """Number of the conversation of each row; each row is its own if conversations are unknown."""
        return cluster_codes(self.labels.source, self.labels.clusters, len(self.labels.ids))

    @property
    def clusters(self) -> IntArray:
        """Conversations of the used rows."""
        return self.all_clusters[self.used]

    @cached_property
    def words(self) -> FloatArray | None:
        """Number of words of each used response or dialogue; None without texts."""
        if self.labels.texts is None:
            return None
        first = 0 if self.labels.is_of_dialogues else 1
        return np.array([float(len(" ".join(self.labels.texts[row][first:]).split())) for row in self.used])

    @property
    def categories(self) -> int:
        """Number of labels that the evaluator chooses from; 0 if it gives numbers."""
        return len(self.judged.scale.categories) if self.judged.scale is not None else 0

    @property
    def kappa(self) -> str:
        """Name of the kappa for the scale of the labels."""
        return "quadratic_kappa" if self.labels.scale.kind == "ordinal" else "kappa"

    def labelled(self, rows: IntArray) -> LabelledRows:
        """Return labels of the evaluator and of people for some of the used rows, in an order set by their values only."""
        counts = label_counts(self.labels.labels, self.categories)
        ordered = canonical_rows("certify", [self.judged.scores, *counts.T], rows, self.all_clusters)
        n, n_rated = len(counts), int((self.labels.n_labels > 0).sum())
        of = Counts(n, len(rows), ordered.n_clusters, n_rated - len(rows), n - n_rated)
        return LabelledRows(self.judged.scores[ordered.order], counts[ordered.order], ordered.clusters, of)

    @cached_property
    def second_person(self) -> InPlaceOfRaters:
        """Agreement of the evaluator with people and of people with each other; for labels, kappa with one random person."""
        if not self.categories:
            return self._in_place_of_raters()
        answers, counts, clusters, of = self.labelled(self.used[self.labels.n_labels[self.used] >= MIN_RATERS])
        why = f"{self.kappa}: undefined on {len(answers)} rows with two labels and a score. Have more rows labelled."
        computed: dict[str, Computed] = dict.fromkeys(("evaluator", "person", "difference"), why)
        pilot = None
        if len(answers):
            kappa = label_statistics(self.labels.scale)[self.kappa]
            evaluator = Resampled(kappa, evaluator_cells(answers, counts, clusters))
            person = Resampled(kappa, people_cells(counts, clusters))
            difference = evaluator - person
            if not np.isnan(difference.value):
                computed, pilot = {"evaluator": evaluator, "person": person, "difference": difference}, difference
        return InPlaceOfRaters(**self.bootstrap.estimates(computed, of), pilot=pilot)

    def _in_place_of_raters(self) -> InPlaceOfRaters:
        labels = by_place(self.labels.labels)
        return in_place_of_raters(self.judged.scores, labels, clusters=self.all_clusters, bootstrap=self.bootstrap)

    def counted(self, estimate: AnyEstimate) -> AnyEstimate:
        """Return an estimate on the used rows with the counts of all rows."""
        n_rated = int((self.labels.n_labels > 0).sum())
        n_rows = len(self.labels.ids)
        return replace(estimate, n_total=n_rows, n_unscored=n_rated - estimate.n_scored, n_unrated=n_rows - n_rated)
