"""What is fitted on people's responses and lies beside a trained model: percentiles of scores, and limits of what it knows."""

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


def _sample(scorer: Scorer, items: Sequence[Dialogue] | Sequence[Example], n: int, generator: random.Random) -> Sequence[Item]:
    dialogues = [one for one in items if isinstance(one, Dialogue)]
    if scorer.level == "dialogue" or not dialogues:
        return [items[place] for place in _places(len(items), n, generator)]
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


BEYOND = 0.001
"""Share of the items that each limit is to leave out, at most."""
LEAST: Mapping[str, float] = {"code": 0.3, "signs": 0.5, "english": -0.3, "markup": 1.0, "lines": 3.0}
"""What no limit is narrower than, of `STATISTICS`: corpora that were cleaned say nothing of what people write."""


def write_scope(
    folder: Path, items: Sequence[Example], sources: Mapping[str, str], *, leave_out: Collection[str] = ()
) -> Scope:
    """Fit the limits of what a model knows and write them into its folder.

    Args:
        folder: of the model.
        items: responses like those that it was trained on, with their contexts, of no set that figures are reported on.
        sources: name and SHA-256 of each file that they are from.
        leave_out: statistics without a limit.

    Returns:
        What was written.

    Raises:
        InputError: there are no items.
    """
    if not items:
        raise InputError("scope: there are no responses to fit limits on. Give some.")
    texts = [(visible_texts(item.context)[::-1], item.response.text) for item in items]
    responses = _limits([(text, before) for before, text in texts], leave_out)
    # The last turn is read whole, however long it is.
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
