"""The tables of docs/results.md, from the result files that docs/results_runs.py left; no model is run.

python docs/results_tables.py --work FOLDER --write docs/results.md
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from dialeval_plugin.files import write_text
from dialeval_plugin.reports.causalscore_tables import replaced_between
from dialeval_plugin.reports.results_tables import read_results, report

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps the results")
    parser.add_argument("--write", type=Path, help="Markdown file with the markers; printed without it")
    options = parser.parse_args(arguments)
    found = report(read_results(options.work / "runs"))
    if options.write is None:
        print(found)
        return
    text = options.write.read_text(encoding="utf-8") if options.write.exists() else f"# Results\n\n{BEGIN}\n{END}\n"
    write_text(options.write, replaced_between(text, BEGIN, END, found))


if __name__ == "__main__":
    main()
