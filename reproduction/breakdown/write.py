"""The out-of-distribution detectors on DBDC3's English evaluation turns, next to the rows of table 7.2 of Nedelchev's thesis.

Scores become probabilities by the extremes of the development turns of the same system, whose labels that step does not read.
The labels of the development turns choose the cut of the rows "cut of dev". Nothing is learned from the evaluation turns.
DIALEVAL_DATA_DIR names the folder with `dbdc3`; the models are those of `dialeval train language-model`.

    python -m reproduction.breakdown.write --model LM --odin ODIN --background BACKGROUND --work FOLDER \
        --document reproduction/breakdown/results.md

Scores are kept in the folder, one file a method: a second call scores only what is missing and writes the tables again.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.corpora.readers import dbdc
from dialeval_plugin.methods.breakdown.calibration import learn_range
from dialeval_plugin.methods.breakdown.scorer import DialogueBreakdownScorer
from dialeval_plugin.reports.tables import markdown_table
from dialeval_plugin.statistics.bootstrap import Estimate
from dialeval_plugin.statistics.breakdown import (
    ALWAYS_BREAKDOWN,
    best_cut,
    breakdown_differences,
    breakdown_metrics,
    detections,
)
from dialeval_plugin.statistics.correlation import correlate
from reproduction.documents import estimate, published, script_parser, write_tables
from reproduction.intervals import percentile_bootstrap
from reproduction.kept_results import kept_scores

METHODS = ("max_probability", "odin_h", "odin_g", "likelihood_ratio")
HEADINGS = {
    "f1_b": "F1(B)",
    "f1_pb_b": "F1(PB+B)",
    "jsd_nb_pbb": "JSD(NB, PB+B)",
    "jsd_nbpb_b": "JSD(NB+PB, B)",
    "mse_nb_pbb": "MSE(NB, PB+B)",
    "mse_nbpb_b": "MSE(NB+PB, B)",
}
COLUMNS = tuple(HEADINGS)
TUNED = ("f1_b", "f1_pb_b")
THESIS = published("breakdown")["table_7_2"]


class Turns(NamedTuple):
    """Annotated system turns of one split, all systems together."""

    responses: list[Example]
    dialogues: list[str]

    @property
    def systems(self) -> list[str]:
        """System of each turn."""
        return [response.system or "" for response in self.responses]

    @property
    def counts(self) -> list[tuple[int, int, int]]:
        """How many annotators said O, T and X of each turn."""
        return [dbdc.counts(response) for response in self.responses]

    def of(self, system: str | None) -> list[int]:
        """Places of one system's turns, or of all."""
        return [place for place, name in enumerate(self.systems) if system is None or name == system]


SplitScores = dict[str, list[float | None]]
"""Split to raw scores, the higher the more at home."""


def read(split: Any, annotations: Any, limit: int | None) -> Turns:
    found = [
        (response, one.whole.id)
        for system in dbdc.SYSTEMS
        for one in dbdc.read(system, split=split, annotations=annotations)[:limit]
        for response in one.responses
    ]
    return Turns([response for response, _ in found], [dialogue for _, dialogue in found])


def raw_scores(method: str, options: dict[str, str], turns: dict[str, Turns], work: Path) -> SplitScores:
    """Scores of both splits; the annotations do not move them."""
    scorer = DialogueBreakdownScorer(method=method, transductive=True, **options)  # type: ignore[arg-type]
    return {
        split: list(kept_scores(scorer, found.responses, work, f"{split}.{method}").columns["score"])
        for split, found in turns.items()
    }


def lengths(turns: dict[str, Turns], sign: int) -> SplitScores:
    """Number of words of a response as its score: with sign 1 short responses are breakdowns, with -1 long ones."""
    return {
        split: [float(sign * len(one.response.text.split())) if one.response.text.strip() else None for one in found.responses]
        for split, found in turns.items()
    }


def calibrated(scores: SplitScores, turns: dict[str, Turns]) -> SplitScores:
    """Breakdown probabilities by the extremes of each system's development turns."""
    result: SplitScores = {split: [None] * len(values) for split, values in scores.items()}
    for system in set(turns["dev"].systems):
        values = [scores["dev"][place] for place in turns["dev"].of(system)]
        extremes = learn_range(value for value in values if value is not None)
        for split, found in turns.items():
            for place in found.of(system):
                if (score := scores[split][place]) is not None:
                    result[split][place] = extremes.breakdown(score)
    return result


def metric_cells(found: Mapping[str, Estimate], names: Sequence[str] = COLUMNS) -> list[str]:
    return [estimate(found[name]) if name in found else "-" for name in names]


def cuts(scores: Sequence[float | None], turns: Turns, places: Sequence[int]) -> dict[str, float]:
    """The best cut of the F measures on development turns."""
    counts = turns.counts
    return {name: best_cut([scores[p] for p in places], [counts[p] for p in places], metric=name) for name in TUNED}


def group_table(probabilities: dict[str, SplitScores], turns: dict[str, Turns], system: str | None, rounds: int) -> str:
    evaluated, developed = turns["eval"].of(system), turns["dev"].of(system)
    all_counts, dialogues = turns["eval"].counts, turns["eval"].dialogues
    counts, clusters = [all_counts[p] for p in evaluated], [dialogues[p] for p in evaluated]
    bootstrap = percentile_bootstrap(rounds)
    ratings = [sum(label * n for label, n in enumerate(row)) / sum(row) for row in counts]
    rows = []
    for name, scores in probabilities.items():
        chosen = [scores["eval"][p] for p in evaluated]
        said = detections(chosen)
        found = breakdown_metrics(said.distributions, counts, labels=said.labels, clusters=clusters, bootstrap=bootstrap)
        rank = correlate(chosen, ratings, coefficient="spearman", clusters=clusters, bootstrap=bootstrap)
        rows.append([name, "0.5", *metric_cells(found), estimate(rank)])
        tuned = []
        for metric, cut in cuts(scores["dev"], turns["dev"], developed).items():
            labels = detections(chosen, cut=cut).labels
            at_cut = breakdown_metrics(said.distributions, counts, labels=labels, clusters=clusters, bootstrap=bootstrap)
            tuned += metric_cells(at_cut, [metric])
        rows.append([name, "of dev", *tuned, *[""] * (len(COLUMNS) - len(tuned) + 1)])
    always = breakdown_metrics([ALWAYS_BREAKDOWN] * len(counts), counts, clusters=clusters, bootstrap=bootstrap)
    rows.append(["always breakdown", "", *metric_cells(always), ""])
    shares = mean_shares([turns["dev"].counts[p] for p in developed])
    constant = breakdown_metrics([shares] * len(counts), counts, clusters=clusters, bootstrap=bootstrap)
    rows.append(["always the shares of dev", "", *metric_cells(constant), ""])
    return markdown_table(["", "cut", *HEADINGS.values(), "Spearman with the mean label"], rows)


def mean_shares(counts: Sequence[tuple[int, int, int]]) -> list[float]:
    """How often the annotators said O, T and X of a development turn, on average: an answer that looks at no turn."""
    shares = [[n / sum(row) for n in row] for row in counts if sum(row)]
    return [sum(column) / len(shares) for column in zip(*shares, strict=True)]


def comparison_table(probabilities: dict[str, SplitScores], turns: dict[str, Turns], rounds: int) -> str:
    """Paired differences of the methods, with hard labels at the cut of the development turns for F1(B)."""
    developed = turns["dev"].of(None)
    detected = {}
    for name, scores in probabilities.items():
        cut = cuts(scores["dev"], turns["dev"], developed)["f1_b"]
        detected[name] = detections(scores["eval"], cut=cut)
    rows = []
    for one, other in itertools.combinations(detected, 2):
        found = breakdown_differences(
            detected[one],
            detected[other],
            turns["eval"].counts,
            clusters=turns["eval"].dialogues,
            bootstrap=percentile_bootstrap(rounds),
        )
        rows.append([f"{one} - {other}", *metric_cells(found)])
    return markdown_table(["", *HEADINGS.values()], rows)


def thesis_table() -> str:
    rows = [[name, *(f"{value:.4f}" for value in values)] for name, values in THESIS["rows"].items()]
    return markdown_table(["thesis, table 7.2, DBDC4", *(HEADINGS[name] for name in THESIS["columns"])], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = script_parser(__doc__, work="the scores")
    for name in ("model", "odin", "background"):
        parser.add_argument(f"--{name}", required=True, help="folder that `dialeval train language-model` wrote")
    parser.add_argument("--context", default="full", help="full or pair")
    parser.add_argument("--rounds", type=int, default=1000, help="resamples of the intervals")
    parser.add_argument("--limit", type=int, help="dialogues of each system at most, to try the script")
    options = parser.parse_args(arguments)
    os.environ["HF_HUB_OFFLINE"] = "1"
    parts = []
    for kind in ("revised", "original"):
        turns = {split: read(split, kind, options.limit) for split in ("dev", "eval")}
        probabilities = {}
        for method in METHODS:
            models = {"model": options.odin if method.startswith("odin") else options.model}
            if method == "likelihood_ratio":
                models["background"] = options.background
            scores = raw_scores(method, {**models, "context": options.context}, turns, options.work)
            probabilities[method] = calibrated(scores, turns)
        baselines = {name: calibrated(lengths(turns, sign), turns) for name, sign in (("short", 1), ("long", -1))}
        rows = {**probabilities, **{f"{name} response": scores for name, scores in baselines.items()}}
        parts.append(f"### DBDC3, {kind} annotations\n")
        # Two of the four systems have the same annotations in both kinds.
        for system in (None, *(sorted(set(turns["eval"].systems)) if kind == "revised" else ())):
            n = len(turns["eval"].of(system))
            parts.append(f"#### {system or 'All systems'}, {n} turns\n\n{group_table(rows, turns, system, options.rounds)}\n")
        parts.append("#### Paired differences, all systems, F measures at the development turns' best cut for F1(B)\n")
        parts.append(f"{comparison_table(probabilities, turns, options.rounds)}\n")
    parts.append(f"### The thesis\n\n{thesis_table()}\n")
    write_tables(options.document, {"results": "\n".join(parts)})


if __name__ == "__main__":
    main()
