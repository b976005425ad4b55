"""The tables of docs/reconstruction.md from trained models, written between the markers there.

DIALEVAL_DATA_DIR names the folder with `convai1` and `convai2`; the folders are those of `dialeval train reconstruction`.

    python -m reproduction.reconstruction.write seq2seq hred vhred vhcr
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dialeval_plugin.corpora.readers import convai
from dialeval_plugin.reports.documents import write_tables
from reproduction.reconstruction.tables import agreement_table, training_table

DOCUMENT = Path(__file__).with_name("reconstruction.md")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+", help="folders of trained models")
    parser.add_argument("--document", type=Path, default=DOCUMENT, help="file with the markers")
    parser.add_argument("--rounds", type=int, default=1000, help="of the bootstrap")
    options = parser.parse_args(arguments)
    tables = {"training": training_table(options.models)}
    for corpus, dialogues in (("convai1", convai.read_convai1()), ("convai2", convai.read_convai2())):
        folders = [str(folder) for folder in options.models]
        tables[corpus] = agreement_table(corpus, dialogues, folders, rounds=options.rounds)
    print(write_tables(options.document, tables))


if __name__ == "__main__":
    main()
