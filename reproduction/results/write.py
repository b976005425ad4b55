"""The tables of docs/results.md, from the result files that reproduction/results/runs.py left; no model is run.

python -m reproduction.results.write --work FOLDER --document docs/results.md
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from dialeval_plugin.core.files import read_text, write_text
from dialeval_plugin.reports.documents import put_between
from reproduction.results.tables import read_results, report

MARKER = "results"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps the results")
    parser.add_argument("--document", type=Path, help="Markdown file with the markers; printed without it")
    options = parser.parse_args(arguments)
    found = report(read_results(options.work / "runs"))
    if options.document is None:
        print(found)
        return
    write_text(options.document, put_between(read_text(options.document), MARKER, found))


if __name__ == "__main__":
    main()
