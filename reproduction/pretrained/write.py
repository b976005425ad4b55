"""Computes the figures of the bundled models and writes the tables that show them, wherever these stand.

DIALEVAL_DATA_DIR names the folder with `dstc10`, `fed`, `usr` and `dailydialog_pp`.

    python -m reproduction.pretrained.write --work FOLDER                         # computes, and prints the tables
    python -m reproduction.pretrained.write --work FOLDER --everywhere            # writes figures.jsonl and all documents
    python -m reproduction.pretrained.write --work FOLDER --everywhere --full general=FULL    # next to the full model
    python -m reproduction.pretrained.write --work FOLDER --everywhere --only none            # documents again, no model is run
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import write_json_lines, write_text
from reproduction.documents import script_parser, write_tables

from . import first_screen
from .figures import FIGURES, KINDS, Question, figures_of, packaged_folders, read_figures
from .tables import ROOT, documents, tables


def named_folders(values: Iterable[str], option: str) -> dict[str, Path]:
    """Read NAME=FOLDER, several times.

    Example:
        >>> named_folders(["general=a/b"], "--model")["general"].as_posix()
        'a/b'
    """
    found = {}
    for value in values:
        name, is_pair, folder = value.partition("=")
        if not is_pair or name not in KINDS or not folder:
            raise InputError(f"{option} {value!r}: is not NAME=FOLDER with a name of {', '.join(KINDS)}. Write it so.")
        found[name] = Path(folder)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = script_parser(__doc__, work="the scores")
    parser.add_argument("--everywhere", action="store_true", help="write figures.jsonl and every document that has the markers")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FOLDER", help="default: the bundled ones")
    parser.add_argument("--full", action="append", default=[], metavar="NAME=FOLDER", help="what a model was packed from")
    parser.add_argument("--only", nargs="+", default=list(KINDS), metavar="NAME", help="compute these anew; none for no model")
    parser.add_argument("--sets", nargs="+", default=[], metavar="SET", help="these data sets only, to try things out")
    parser.add_argument("--rounds", type=int, default=1000, help="of the bootstrap")
    options = parser.parse_args(arguments)
    if options.everywhere and (options.model or options.sets):
        raise InputError("--everywhere: writes the figures of the bundled models on all sets. Leave --model and --sets out.")
    folders = named_folders(options.model, "--model") or packaged_folders()
    full = named_folders(options.full, "--full")
    question = Question(options.work, options.sets, options.rounds)
    computed = {
        name: figures_of(name, folder, question, full=full.get(name))
        for name, folder in folders.items()
        if name in options.only
    }
    kept = [] if options.model else [one for one in read_figures() if one.model in folders and one.model not in computed]
    figures = sorted([*kept, *(one for of in computed.values() for one in of)], key=lambda one: list(KINDS).index(one.model))
    if not options.everywhere:
        write_tables(options.document, {name: table for name, table in tables(figures).items() if table})
        return
    write_json_lines(FIGURES, map(asdict, figures))
    for path, text in documents(figures).items():
        write_text(path, text)
    write_tables(ROOT / "README.md", {first_screen.MARKER: first_screen.table()})
    write_tables(ROOT / "docs" / "chat_logs.md", {first_screen.CHAT_MARKER: (chat := first_screen.scored_chat())})
    write_tables(ROOT / "docs" / "index.md", {first_screen.SEEN_MARKER: first_screen.seen_chat(chat)})


if __name__ == "__main__":
    main()
