"""Agreement of an evaluator with human ratings from the response alone, and from the context alone (Perrella et al. 2024).

`python -m reproduction.sentinels SCORER` prints a table. An evaluator of coherence that agrees with people as well when it is
shown other contexts judges how responses are written; one that does with fixed responses judges which conversations are easy.
In each case the score is the mean over three fixed texts, which are no part of any data set.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import Scorer, run
from dialeval_plugin.corpora.rated_items import RatedItem
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from dialeval_plugin.statistics.correlation import correlate
from reproduction.intervals import percentile_bootstrap

SETS = ("tu", "pu", "ft")
CONTEXTS = ("Hello, how are you today?", "What did you do last weekend?", "Can you tell me something about your job?")
RESPONSES = ("I see, that is interesting.", "I am not sure about that.", "Yes, I think so too.")


def of_response(example: Example) -> list[Example]:
    """Return the response after contexts that it does not answer."""
    return [replace(example, context=(Turn(text=text),)) for text in CONTEXTS]


def of_context(example: Example) -> list[Example]:
    """Return the context before responses that answer nothing."""
    return [replace(example, response=replace(example.response, text=text)) for text in RESPONSES]


def whole(example: Example) -> list[Example]:
    """Return the example as it is."""
    return [example]


SHOWN: dict[str, Callable[[Example], list[Example]]] = {
    "whole": whole,
    "response only": of_response,
    "context only": of_context,
}


def scores(scorer: Scorer, examples: Sequence[Example], n: int) -> list[float | None]:
    """Return the mean score of each `n` examples that follow each other; None where one has none."""
    found = np.array([np.nan if one is None else one for one in run(scorer, examples).values], dtype=np.float64)
    return [None if np.isnan(mean) else float(mean) for mean in found.reshape(-1, n).mean(axis=1)]


def main() -> None:
    """Print Spearman's correlations with people of the evaluator and of what it knows from either side alone."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scorer", nargs="?", default="general")
    scorer = load_scorer(parser.parse_args().scorer)
    rows: list[TableRow] = []
    for code in SETS:
        items = dstc10.read(code)
        quality = dstc10.overall_quality(items, dstc10.SETS[code])
        examples = [item for item in items if isinstance(item, Example)]
        rated = [RatedItem.of(one) for one in examples]
        ratings = [float(np.mean(one.ratings[quality])) if one.ratings.get(quality) else None for one in rated]
        clusters = [one.cluster or one.id for one in rated]
        for name, made in SHOWN.items():
            shown = [changed for one in examples for changed in made(one)]
            found = correlate(
                scores(scorer, shown, len(shown) // len(examples)),
                ratings,
                coefficient="spearman",
                clusters=clusters,
                bootstrap=percentile_bootstrap(),
            )
            rows.append({"set": code, "shown": name, "spearman": found.text(), "scored": found.n_scored})
    columns = [named_column(name, is_number=False) for name in ("set", "shown", "spearman")]
    print(Table(rows, [*columns, named_column("scored", 0)]).render("markdown"))


if __name__ == "__main__":
    main()
