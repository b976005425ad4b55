"""Which rated items that `general` is developed on are in reported sets too, by the rule of `corpora/identity.py`.

DIALEVAL_DATA_DIR names the folder with the reported sets and with those of `development` and `dialogues`.

    python -m reproduction.general.leaks --document reproduction/general/results.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, context_turns
from dialeval_plugin.corpora.identity import LeakIndex
from dialeval_plugin.corpora.registry import read_reported
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from reproduction.data import data_folder
from reproduction.documents import script_parser, write_tables
from reproduction.general.development import development_sets
from reproduction.general.dialogues import rated_dialogues
from reproduction.pretrained.build import REPORTED


def leak_table(sets: Mapping[str, Sequence[Item]], reported: Mapping[str, Sequence[Item]]) -> Table:
    """Return a row a development set, a column a reported set: items with a reported dialogue in them, and such dialogues."""
    index = LeakIndex(reported)
    rows: list[TableRow] = []
    for name, items in sets.items():
        counts = index.count([index.find(_texts(item)) for item in items])
        cells = {of: f"{one.n_dialogues}/{one.n_reported}" if one.n_dialogues else "0" for of, one in counts.items()}
        rows.append({"development set": name, "items": len(items), **cells})
    return Table(rows, [named_column(name, 0, is_number=name != "development set") for name in rows[0]])


def _texts(item: Item) -> list[str]:
    response = [item.response.text] if isinstance(item, Example) else []
    return [*(turn.text for turn in context_turns(item)), *response]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = script_parser(__doc__).parse_args(arguments)
    dialogues: dict[str, Sequence[Dialogue]] = {name: [one for one, _ in rated] for name, rated in rated_dialogues().items()}
    table = leak_table({**development_sets(data_folder()), **dialogues}, read_reported(REPORTED).sets)
    write_tables(options.document, {"leaks": table})


if __name__ == "__main__":
    main()
