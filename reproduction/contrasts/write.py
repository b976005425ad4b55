"""The tables of results.md: the share of pairs that each bundled model orders as anybody would, by what is wrong.

DIALEVAL_DATA_DIR names the folder with `robustness`.

    python -m reproduction.contrasts.write --document reproduction/contrasts/results.md --document docs/results.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from dialeval_plugin.core.dialogue import Example, Item, Level
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.reports.tables import Table
from reproduction.contrasts.measures import (
    OVERALL,
    ContrastPair,
    OrderedPair,
    contrast_table,
    order_pairs,
    pairs_of,
    read_contrasts,
    shares_of_right_pairs,
)
from reproduction.documents import script_parser, write_tables
from reproduction.pretrained.figures import packaged_folders, rows_of

from .pairs import LONG, RESPONSES, dialogue_pairs, turn_pairs

AIM = 0.9
"""Least share of right pairs of a kind that a table does not name below itself."""
COSINE = "cosine"
"""Column of the baseline: the cosine of the response and the turn before it, by the encoder as it was before any training."""

N_READ, READ = 12, "insulting, read before"
"""Contexts, the first ones, whose insults were known to whoever wrote `signals.INSULTS`."""


class PairSet(NamedTuple):
    """The pairs of one table."""

    pairs: Sequence[ContrastPair]
    level: Level = "turn"


def pair_sets() -> dict[str, PairSet]:
    """Read the pairs of every table, by the name of its markers."""
    return {
        "written by hand": PairSet(_insults_apart(pairs_of(read_contrasts(RESPONSES)))),
        "long responses": PairSet(pairs_of(read_contrasts(LONG))),
        "perturbed responses": PairSet(turn_pairs()),
        "perturbed dialogues": PairSet(dialogue_pairs(), "dialogue"),
    }


def _insults_apart(pairs: Sequence[ContrastPair]) -> list[ContrastPair]:
    """Let the insults that had been read before those of training were written be a kind of their own."""
    read = set(list(dict.fromkeys(pair.id for pair in pairs))[:N_READ])
    return [pair._replace(kind=READ) if pair.kind == "insulting" and pair.id in read else pair for pair in pairs]


def scorers(level: Level) -> dict[str, Scorer]:
    """Open, by bundled model, the first of its evaluators that is of a level and takes minutes; not every model has one."""
    found = {}
    for model, folder in packaged_folders().items():
        rows = [row for row in rows_of(model, folder) if row.level == level and row.cost == "minutes"]
        if rows:
            found[model] = load_scorer(rows[0].scorer, **rows[0].options)
    return found


def ordered_by_all(of: PairSet) -> dict[str, list[OrderedPair]]:
    """Order pairs by each model; those of responses by the baseline as well."""
    found = {model: order_pairs(scorer, of.pairs) for model, scorer in scorers(of.level).items()}
    return {**found, COSINE: ordered_by_cosine(of.pairs)} if of.level == "turn" else found


def ordered_by_cosine(pairs: Sequence[ContrastPair]) -> list[OrderedPair]:
    """Order pairs of responses by the baseline."""

    def beside_last_turn(item: Item) -> Example:
        example = cast("Example", item)
        return replace(example, references=(example.context[-1].text,))

    beside = [ContrastPair(id, kind, *map(beside_last_turn, items)) for id, kind, *items in pairs]
    return order_pairs(load_scorer("sentence_similarity"), beside)


def table(ordered: Mapping[str, Sequence[OrderedPair]]) -> Table:
    """Return the shares, and below them the kinds of which a model has less than `AIM`."""
    notes = []
    for model, pairs in ordered.items():
        shares = shares_of_right_pairs(pairs)
        below = [kind for kind, share in shares.items() if kind != OVERALL and share.value < AIM]
        notes.append(f"Below {AIM}, {model}: {', '.join(below) or 'none'}.")
    return replace(contrast_table(ordered), notes=notes)


def summary(tables: Mapping[str, Table]) -> Table:
    """Return one table: the rows of each kind written by hand, and of each other set of pairs its row of all kinds."""
    (_, of_kinds), *others = tables.items()
    rows = [row for row in of_kinds.rows if row["kind"] != OVERALL]
    rows += [{**row, "kind": name} for name, table in others for row in table.rows if row["kind"] == OVERALL]
    return Table(rows, of_kinds.columns)


def main(arguments: Sequence[str] | None = None) -> None:
    options = script_parser(__doc__).parse_args(arguments)
    tables = {name: table(ordered_by_all(of)) for name, of in pair_sets().items()}
    write_tables(options.document, {**tables, "contrasts": summary(tables)})


if __name__ == "__main__":
    main()
