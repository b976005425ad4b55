"""The indicators of responses: each column of a classifier, for the texts that it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dialeval_plugin.core.dialogue import Example, is_blank, visible_texts
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.core.signature import content_hash

from .classifiers import GlueClassifier, Texts, find_folder, load_classifier
from .tasks import FACT, IndicatorSettings, task_of


class Indicators(NamedTuple):
    """One value an example in every column."""

    columns: Mapping[str, tuple[float | Unscored, ...]]
    n_cut: tuple[int, ...]
    """How many of an example's texts did not fit into a classifier's window."""


class IndicatorModels:
    """The classifiers of some columns, each opened when it is first needed and then kept.

    Args:
        settings: see `IndicatorSettings`.
    """

    def __init__(self, settings: IndicatorSettings, *, device: str | None = None) -> None:
        self.settings = settings
        self._device = device
        self._opened: dict[str, GlueClassifier] = {}
        self._hashes: dict[str, str] = {}

    def hashes(self) -> dict[str, str]:
        """Return the hash of each task's classifier."""
        for task in self.settings.tasks:
            if task not in self._hashes:
                self._hashes[task] = content_hash(find_folder(self.settings.choices[task]))
        return dict(self._hashes)

    def indicate(self, examples: Sequence[Example]) -> Indicators:
        """Return every column of the settings for the examples; a value that cannot be had says why."""
        columns: dict[str, tuple[float | Unscored, ...]] = {}
        n_cut = [0] * len(examples)
        for feature in self.settings.features:
            rows = [texts_of(example, feature, self.settings.absent_fact) for example in examples]
            column: list[float | Unscored] = [row if isinstance(row, Unscored) else 0.0 for row in rows]
            asked = [(place, row) for place, row in enumerate(rows) if not isinstance(row, Unscored)]
            if asked:
                found = self._classifier(task_of(feature).name).indicate([texts for _, texts in asked])
                for (place, _), value, is_cut in zip(asked, found.values.tolist(), found.is_cut.tolist(), strict=True):
                    column[place] = value
                    n_cut[place] += is_cut
            columns[feature] = tuple(column)
        return Indicators(columns, tuple(n_cut))

    def _classifier(self, task: str) -> GlueClassifier:
        if task not in self._opened:
            self._opened[task] = load_classifier(task, self.settings, device=self._device)
        return self._opened[task]


def texts_of(example: Example, feature: str, absent_fact: str | None = None) -> Texts | Unscored:
    """Return what the classifier of a column reads: the response, alone or after the whole context or all facts.

    Turns and facts are joined by line ends, as in the published files; blank turns are left out. The response is not blank.
    """
    if not task_of(feature).is_pair:
        return example.response.text, None
    if not feature.startswith(FACT):
        turns = visible_texts(example.context)
        return ("\n".join(turns), example.response.text) if turns else _absent(feature, "context")
    facts = [fact for fact in example.facts if not is_blank(fact)] or ([absent_fact] if absent_fact else [])
    return ("\n".join(facts), example.response.text) if facts else _absent(feature, "fact")


def _absent(feature: str, what: str) -> Unscored:
    return Unscored(Reason.EMPTY_INPUT, f"there is no {what}, which {feature} reads")
