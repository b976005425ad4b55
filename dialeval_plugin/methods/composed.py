"""A scorer made of other scorers."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.locks import one_at_a_time
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Scores, Unscored
from dialeval_plugin.core.signature import SignatureValue

Found = TypeVar("Found")


class ComposedScorer(Scorer):
    """A combination of scorers; everything about an item but its score comes from one of its parts."""

    parts: Mapping[str, Scorer]
    """Parts by their names in the signature."""
    settings: Mapping[str, SignatureValue]
    """Other settings that can change a score."""

    @abstractmethod
    def part_of(self, item: Item) -> Scorer:
        """Return the part that decides whether an item can be scored, names its scope, and explains its score."""

    def all_truncation_columns(self) -> dict[str, str]:
        """Return the columns of truncated texts of all parts, and their descriptions."""
        notes = defaultdict(list)
        for part in self.parts.values():
            for name, words in part.truncation_columns.items():
                notes[name].append(words)
        return {name: ", or ".join(words) for name, words in notes.items()}

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method, settings, and all fields of each part."""
        of_parts = {
            f"{which}_{name}": value for which, part in self.parts.items() for name, value in part.signature_fields().items()
        }
        return {"method": self.name, **self.settings, **of_parts}

    def unscorable(self, item: Item) -> Unscored | None:
        """Return the reason of the item's part."""
        return self.part_of(item).unscorable(item)

    def reset_cache(self) -> None:
        """Reset the parts."""
        for part in self.parts.values():
            part.reset_cache()

    def percentiles_of(self, scores: Scores) -> tuple[float | None, ...]:
        """Return each score's percentile among its part's scores of people's responses; None if the part has no table."""
        by_column = {
            part.columns[0]: part.percentiles_of(scores) for part in self.parts.values() if part.percentiles is not None
        }
        judges = map(scores.judged_by, range(scores.n_total))
        return tuple(by_column[judge][place] if judge in by_column else None for place, judge in enumerate(judges))

    def scope_of(self, items: Sequence[Item]) -> list[str | None]:
        """Return the scopes that the items' parts name."""
        return self.by_part(items, lambda part, own: part.scope_of(own))

    @one_at_a_time
    def explain(self, items: Sequence[Item]) -> list[str]:
        """Return the explanations of the items' parts."""
        return self.by_part(items, lambda part, own: part.explain(own))

    def by_part(self, items: Sequence[Item], find: Callable[[Scorer, list[Item]], Sequence[Found]]) -> list[Found]:
        """Return what `find` returns for the items of each part, in the order of the items."""
        parts = list(map(self.part_of, items))
        results: dict[int, Found] = {}
        for part in self.parts.values():
            places = [place for place, one in enumerate(parts) if one is part]
            results |= zip(places, find(part, [items[place] for place in places]) if places else (), strict=True)
        return [results[place] for place in range(len(items))]
