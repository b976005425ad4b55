"""Fits on people's responses, stored in a trained model's folder: percentiles of scores, and the scope of the model."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, is_blank, visible_texts
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import to_json, write_text
from dialeval_plugin.core.percentiles import PERCENTILE, PercentileTable, write_table
from dialeval_plugin.core.scope import STATISTICS, Scope
from dialeval_plugin.core.scorer import Scorer, percentile_settings
from dialeval_plugin.core.scores import IN_SCOPE
from dialeval_plugin.core.signature import PERCENTILES_FILE, SCOPE_FILE
from dialeval_plugin.models.folders import changing

N_ITEMS = 4000
"""Number of scored items, with which the standard error of a percentile is below one."""


def write_percentiles(
    scorer: Scorer,
    folder: Path,
    dialogues: Sequence[Dialogue] | Sequence[Example],
    sources: Mapping[str, str],
    *,
    n: int = N_ITEMS,
    seed: int = 0,
) -> PercentileTable:
    """Score people's responses and write a table of percentiles into the model's folder.

    At level "turn" every visible turn from the second on is scored given the turns before it (or the examples are scored), at
    level "dialogue" the dialogues. An existing file keeps its tables of other columns, levels and settings: call this once for
    each.

    Args:
        scorer: scorer with the model and the options of the table.
        folder: folder of the model.
        dialogues: people's dialogues or responses, which the model was not trained on.
        sources: name and SHA-256 of each source file.
        n: largest number of items to score, a seeded sample.
        seed: seed of the sample.

    Returns:
        The table that was written.

    Raises:
        InputError: none of the items has a score.
        ModelLoadError: the existing file is damaged.
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


def _sample(scorer: Scorer, items: Sequence[Dialogue] | Sequence[Example], n: int, generator: random.Random) -> Sequence[Item]:
    dialogues = [one for one in items if isinstance(one, Dialogue)]
    if scorer.level == "dialogue" or not dialogues:
        return [items[place] for place in _places(len(items), n, generator)]
    return sampled_responses(dialogues, n, generator)


def sampled_responses(dialogues: Sequence[Dialogue], n: int, generator: random.Random) -> list[Example]:
    """Return a sample of at most n visible turns, from the second of each dialogue on, with the turns before, in order."""
    visible = [tuple(turn for turn in dialogue.turns if not is_blank(turn.text)) for dialogue in dialogues]
    pairs = [(number, place) for number, turns in enumerate(visible) for place in range(1, len(turns))]
    return [
        Example(f"{dialogues[number].id} {place}", visible[number][:place], visible[number][place])
        for number, place in (pairs[chosen] for chosen in _places(len(pairs), n, generator))
    ]


def _places(n_all: int, n: int, generator: random.Random) -> list[int]:
    return sorted(generator.sample(range(n_all), min(n, n_all)))


BEYOND = 0.001
"""Largest share of the items that each limit may exclude."""
LEAST: Mapping[str, float] = {"code": 0.3, "signs": 0.5, "english": -0.3, "markup": 1.0, "lines": 3.0}
"""Strictest limits allowed, by name in `STATISTICS`: cleaned corpora say little about how people write."""


def write_scope(
    folder: Path, items: Sequence[Example], sources: Mapping[str, str], *, leave_out: Collection[str] = ()
) -> Scope:
    """Fit the limits of a model's scope and write them into its folder.

    Args:
        folder: folder of the model.
        items: responses like those in training, with their contexts, from no set on which figures are reported.
        sources: name and SHA-256 of each source file.
        leave_out: statistics without a limit.

    Returns:
        The scope that was written.

    Raises:
        InputError: there are no items.
    """
    if not items:
        raise InputError("scope: there are no responses to fit limits on. Give some.")
    texts = [(visible_texts(item.context)[::-1], item.response.text) for item in items]
    responses = _limits([(text, before) for before, text in texts], leave_out)
    # The last turn is read whole, whatever its length.
    last_turns = _limits([(before[0], before[1:]) for before, _ in texts if before], {*leave_out, "words"})
    scope = Scope(responses, last_turns, len(items), dict(sorted(sources.items())))
    with changing(folder, SCOPE_FILE):
        write_text(folder / SCOPE_FILE, to_json(asdict(scope), indent=1) + "\n")
    return scope


def _limits(texts: Sequence[tuple[str, Sequence[str]]], leave_out: Collection[str]) -> dict[str, float]:
    limits = {}
    for name, statistic in STATISTICS.items():
        if name in leave_out:
            continue
        values = [statistic.measure(text, before) for text, before in texts]
        wider = min if statistic.is_least else max
        limit = float(np.quantile(values, BEYOND if statistic.is_least else 1 - BEYOND))
        limits[name] = round(wider(limit, LEAST.get(name, limit)), 4)
    return limits
