"""Passports of the packaged models, of judges whose verdicts are stored, of the response's length, and of chance.

    export DIALEVAL_DATA_DIR=/data
    python -m reproduction.passports.write --work FOLDER --document docs/reference/passports.md

The folder of the public data has to hold `dstc10`, `llm_judgements` and `assistant`. A page and a JSON file of each labelled
set are written to FOLDER/passports, where they are not there; what they say, a table and sentences, goes into the document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from dialeval_plugin.core.files import read_json, read_text
from dialeval_plugin.passport.certify import certify, write_passport
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from dialeval_plugin.statistics.estimates import interval_text, number_text
from reproduction.documents import script_parser, write_tables
from reproduction.passports.evaluators import SETS, evaluators, labels_of

Answers: TypeAlias = Mapping[str, Mapping[str, Any]]
"""By set and evaluator what its passport says, as in the JSON file."""


def kept_answers(name: str, work: Path) -> dict[str, Any]:
    """Return the passports of all evaluators on a set, by name, from the file that is written first where it is not there."""
    path = work / "passports" / f"{name}.json"
    if not path.exists():
        labels = labels_of(name)
        passport = certify(list(evaluators(name, labels, work)), labels)
        # The JSON file last: who is interrupted before it begins this set again.
        for ending in (".html", ".json"):
            write_passport(passport, path.with_suffix(ending), title=f"Evaluators on {name}")
    return {one["evaluator"]: one for one in read_json(path)["evaluators"]}


def figure(one: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Return a figure of an evaluator, None where there is none."""
    return next((of for finding in one["findings"] for of in finding["figures"] if of["name"] == name), None)


def shown(of: Mapping[str, Any]) -> str:
    """A figure with its interval."""
    return interval_text(of["value"], of["ci_low"], of["ci_high"], 2, is_rough=of["is_rough"])


def verdict_table(found: Answers) -> Table:
    """One row per evaluator: its verdict on each set, and its agreement next to a second person's."""
    names = dict.fromkeys(name for of_set in found.values() for name in of_set)
    rows: list[TableRow] = [{"evaluator": name, **{of: _cell(found[of].get(name)) for of in found}} for name in names]
    rows.append({"evaluator": "a second person", **{of: _person(of_set) for of, of_set in found.items()}})
    return Table(rows, [named_column(name, is_number=False) for name in rows[0]])


def _cell(one: Mapping[str, Any] | None) -> str:
    if one is None:
        return ""
    return f"{one['verdict']}, {number_text((figure(one, 'second_person') or figure(one, 'spearman') or {}).get('value'), 2)}"


def _person(of_set: Mapping[str, Any]) -> str:
    person = figure(next(iter(of_set.values())), "person")
    return "one rater" if person is None else number_text(person["value"], 2)


def answered(found: Answers, key: str, verdict: str) -> list[str]:
    """Return who has an answer where, as "GPT-4 on fed-turn"."""
    return [
        f"{name} on {of}"
        for of, of_set in found.items()
        for name, one in of_set.items()
        if any(finding["key"] == key and finding["verdict"] == verdict for finding in one["findings"])
    ]


def sentences(found: Answers) -> str:
    """Return what the passports say: `sentences.md` with the figures, or numbers of passports, that its braces name."""

    def filled(match: re.Match[str]) -> str:
        first, *rest = match[1].split("/")
        if first == "count":
            return str(len(answered(found, *rest)) if rest else sum(map(len, found.values())))
        return _person(found[first]) if rest == ["person"] else shown(figure(found[first][rest[0]], rest[1]) or {})

    return re.sub(r"\{([^{}]+)\}", filled, read_text(Path(__file__).with_name("sentences.md")))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the passports and the summary."""
    parser = script_parser(__doc__, work="scores and passports")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    asked = parser.parse_args(arguments)
    found = {name: kept_answers(name, asked.work) for name in asked.sets}
    write_tables(asked.document, {"passports": verdict_table(found), "what they say": sentences(found)})


if __name__ == "__main__":
    main()
