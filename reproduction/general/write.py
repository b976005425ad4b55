"""The tables of docs/general.md from a trained general evaluator, written between the markers there.

DIALEVAL_DATA_DIR names the folder with `dstc10`, `fed`, `usr` and `conture`; the folder is one of `dialeval train slm --recipe
general`. The ratings are read here and nowhere in training.

    python -m reproduction.general.write my-general
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dialeval_plugin.methods.general.model import GENERAL_FOLDER
from dialeval_plugin.reports.documents import write_tables
from reproduction.general.tables import Agreement, overall_sets, overall_table, quality_sets, quality_table, validation_table

DOCUMENT = Path(__file__).with_name("general.md")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a trained model")
    parser.add_argument("--document", type=Path, default=DOCUMENT, help="file with the markers")
    parser.add_argument("--rounds", type=int, default=1000, help="of the bootstrap")
    options = parser.parse_args(arguments)
    agreement = Agreement(str(options.model), rounds=options.rounds)
    at_hand = overall_sets()
    if at_hand.absent:
        print(f"not on this machine: {', '.join(at_hand.absent)}")
    tables = {
        "validation": validation_table(GENERAL_FOLDER.read_settings(options.model)["training"]),
        "overall": overall_table(agreement, at_hand.sets),
        "qualities": quality_table(agreement, quality_sets()),
    }
    print(write_tables(options.document, tables))


if __name__ == "__main__":
    main()
