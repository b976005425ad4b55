"""Making the table of percentiles that lies beside a trained model."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, is_blank
from dialeval_plugin.core.percentiles import PERCENTILE, PercentileTable, write_table
from dialeval_plugin.core.scorer import Scorer, percentile_settings
from dialeval_plugin.core.scores import IN_SCOPE
from dialeval_plugin.core.signature import PERCENTILES_FILE
from dialeval_plugin.models.manifest import changing

N_ITEMS = 4000
"""The standard error of a percentile is then below one."""


def write_percentiles(
    scorer: Scorer,
    folder: Path,
    dialogues: Sequence[Dialogue] | Sequence[Example],
    sources: Mapping[str, str],
    *,
    n: int = N_ITEMS,
    seed: int = 0,
) -> PercentileTable:
    """Score what people said and write where a score stands among theirs into the model's folder.

    At level "turn" every visible turn from the second on is scored after those before it, or the examples are, at level
    "dialogue" the dialogues. A file that is there keeps its tables of other columns, levels and settings: call this once for
    each.

    Args:
        scorer: with the model and the options that the table is for.
        folder: of the model.
        dialogues: of people, or responses, which the model was not trained on.
        sources: name and SHA-256 of each file that they are from.
        n: at most so many are scored, a seeded sample.
        seed: of the sample.

    Returns:
        The table that was written.

    Raises:
        InputError: none of them has a score.
        ModelLoadError: the file that is there is damaged.
    """
    scores = scorer.score(_sample(scorer, dialogues, n, random.Random(f"{seed} percentiles")))
    table = PercentileTable.of_scores(
        {name: values for name, values in scores.columns.items() if name not in {PERCENTILE, IN_SCOPE}},
        column=scores.main,
        level=scorer.level,
        orientation=scorer.orientation,
        settings=percentile_settings(scorer),
        sources=sources,
    )
    with changing(folder, PERCENTILES_FILE):
        write_table(folder, table)
    return table


def _sample(scorer: Scorer, given: Sequence[Dialogue] | Sequence[Example], n: int, generator: random.Random) -> Sequence[Item]:
    dialogues = [one for one in given if isinstance(one, Dialogue)]
    if scorer.level == "dialogue" or not dialogues:
        return [given[place] for place in _places(len(given), n, generator)]
    return sampled_responses(dialogues, n, generator)


def sampled_responses(dialogues: Sequence[Dialogue], n: int, generator: random.Random) -> list[Example]:
    """Return a sample of at most n visible turns, from the second of each dialogue on, with those before them, in order."""
    visible = [tuple(turn for turn in dialogue.turns if not is_blank(turn.text)) for dialogue in dialogues]
    pairs = [(number, place) for number, turns in enumerate(visible) for place in range(1, len(turns))]
    return [
        Example(f"{dialogues[number].id} {place}", visible[number][:place], visible[number][place])
        for number, place in (pairs[chosen] for chosen in _places(len(pairs), n, generator))
    ]


def _places(n_all: int, n: int, generator: random.Random) -> list[int]:
    return sorted(generator.sample(range(n_all), min(n, n_all)))
