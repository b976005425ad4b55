"""GPT-4's stored verdicts as pass and fail next to two people's labels: our figures, and those of truescore and judgy.

    pip install truescore==0.7.4 judgy==0.1.0    # with this package, which needs neither
    python -m reproduction.passports.other_packages --work FOLDER --document reproduction/passports/NOTES.md

One file a set, `FOLDER/beside/SET.csv`, is read by all three: an answer passes above the middle of its scale, and people
labelled the answers of a third of the conversations, drawn at random. Needs `dstc10` and `llm_judgements` in DIALEVAL_DATA_DIR.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from dialeval_plugin import agreement, estimate
from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.corpora.verdicts import read_collection
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES
from dialeval_plugin.statistics.estimates import interval_text
from dialeval_plugin.statistics.estimation.true_mean import Method
from reproduction.documents import script_parser, write_tables
from reproduction.passports.evaluators import JUDGES, labels_of

SETS = ("fed-turn", "topical-usr", "persona-usr")
NUMBERS = {"pass": 1.0, "fail": 0.0, "": np.nan}


def passes(values: FloatArray) -> FloatArray:
    """Return 1 above the middle of the values' range, 0 below, NaN where there is none."""
    middle = (np.nanmin(values) + np.nanmax(values)) / 2
    return np.where(np.isnan(values), np.nan, values > middle)


def write_file(name: str, path: Path) -> Path:
    """Write a set's verdicts, and two people's labels of the answers in a third of the conversations."""
    labels = labels_of(name)
    columns = {(one.judge, one.set): one for one in read_collection() if one.quality == "overall"}
    found = next(columns[place, name] for place in JUDGES["GPT-4"] if (place, name) in columns)
    verdicts = passes(np.array([np.nan if score is None else score for score in found.scores]))
    people = passes(labels.labels[:, :2])
    clusters = list(labels.clusters or labels.ids)
    names = sorted(set(clusters))
    drawn = set(np.random.default_rng(0).choice(names, len(names) // 3, replace=False).tolist())
    word = {number: text for text, number in NUMBERS.items() if text}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "conversation", "judge", "ann", "bob"])
        for id, cluster, verdict, given in zip(labels.ids, clusters, verdicts.tolist(), people.tolist(), strict=True):
            is_labelled = cluster in drawn and not np.isnan(given).any()
            writer.writerow([id, cluster, word.get(verdict, ""), *(word[one] if is_labelled else "" for one in given)])
    return path


def compared(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield a statistic of the file by us, by truescore and by judgy."""
    import judgy
    import truescore

    with path.open(newline="", encoding="utf-8") as file:
        every = list(csv.DictReader(file))
    rows = [row for row in every if row["judge"]]
    judge, ann = (np.array([NUMBERS[row[name]] for row in rows]) for name in ("judge", "ann"))
    known = np.flatnonzero(~np.isnan(ann))
    of_one = agreement(path, path, column="judge", raters=["ann"], is_partial=True, bootstrap=NO_RESAMPLES).statistics
    of_two = agreement(path, path, column="judge", raters=["ann", "bob"], is_partial=True, bootstrap=NO_RESAMPLES).people
    y, f = ann[known].astype(int), judge[known].astype(int)
    yield "kappa of judge and Ann", f"{of_one['kappa'].value:.3f}", f"{truescore.cohen_kappa(f, y):.3f}", ""
    yield "AC1 of judge and Ann", f"{of_one['ac1'].value:.3f}", f"{truescore.gwet_ac1(f, y):.3f}", ""
    # People's own agreement does not depend on whether the judge gave a verdict.
    theirs = truescore.krippendorff_alpha([[NUMBERS[row[name]] for row in every] for name in ("ann", "bob")])
    yield "alpha of Ann and Bob", f"{of_two['alpha'].value:.3f}", f"{theirs:.3f}", ""
    methods: Mapping[Method, str] = {"ppi": "true rate, PPI++", "rogan-gladen": "true rate, Rogan-Gladen"}
    for method, name in methods.items():
        ours = estimate(path, path, column="judge", raters=["ann"], method=method)
        of_judgy = ""
        if method == "ppi":
            clusters = np.unique([row["conversation"] for row in rows], return_inverse=True)[1]
            by_row = truescore.ppi_estimate(judge, ann[known], known)
            by_cluster = truescore.ppi_estimate(judge, ann[known], known, clusters=clusters)
            of_truescore = f"{_shown(by_row)}; with clusters {_shown(by_cluster)}"
        else:
            of_truescore = _shown(truescore.rogan_gladen_estimate(judge, ann[known], known))
            np.random.seed(0)  # noqa: NPY002 - what judgy draws from
            value, low, high = judgy.estimate_success_rate(y, f, judge.astype(int), bootstrap_iterations=2000)
            of_judgy = interval_text(value, low, high, 3, is_rough=False)
        yield name, ours.estimates["true mean"].text(), of_truescore, of_judgy


def _shown(one: object) -> str:
    point, low, high = (float(getattr(one, name)) for name in ("point", "low", "high"))
    return interval_text(point, low, high, 3, is_rough=False)


def main() -> None:
    """Write the files and the table."""
    arguments = script_parser(__doc__, work="the files").parse_args()
    rows: list[TableRow] = []
    for name in SETS:
        path = write_file(name, arguments.work / "beside" / f"{name}.csv")
        for statistic, ours, of_truescore, of_judgy in compared(path):
            rows.append({"set": name, "statistic": statistic, "dialeval": ours, "truescore": of_truescore, "judgy": of_judgy})
    columns = [named_column(name, is_number=False) for name in rows[0]]
    write_tables(arguments.document, {"beside others": Table(rows, columns)})


if __name__ == "__main__":
    main()
