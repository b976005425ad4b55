"""What `general` is developed on: how far its qualities and mixtures agree with ratings of responses outside the reported sets.

Figures are Spearman's rho with the mean rating and its interval, which resamples contexts. DIALEVAL_DATA_DIR names the folder
with `dstc10_test`, `holistic_eval` and `predictive_engagement`; contexts that a reported set has too are left out.

    python -m reproduction.general.development MODEL --document docs/general_recipes.md
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence, Sized
from dataclasses import replace
from pathlib import Path
from statistics import mean, median

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Example, is_blank
from dialeval_plugin.core.files import read_json
from dialeval_plugin.corpora.items import context_key, mean_rating
from dialeval_plugin.methods.general.calibration import RELEVANCE_WEIGHT
from dialeval_plugin.methods.general.mixing import Mixing
from dialeval_plugin.methods.general.model import TrainedGeneral
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.methods.general.signals import QUALITIES
from dialeval_plugin.reports.tables import Table, TableRow, estimate, named_column
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate
from dialeval_plugin.statistics.correlation import correlate
from dialeval_plugin.statistics.estimates import interval_text, mean_over_sets
from reproduction.documents import script_parser, write_tables
from reproduction.pretrained.build import data_folder

RATING = "rating"
TRIED = (0.0, 0.2, 0.4, RELEVANCE_WEIGHT, 0.8, 1.6)
"""Weights of relevance in the main score."""
MAIN = "general"


def development_sets(data: Path) -> dict[str, list[Example]]:
    """Return the rated responses of each set, by its name; what they are rated in is `RATING`."""
    return {
        "DSTC10 test, persona": _dstc10_test(data, "persona"),
        "DSTC10 test, topical": _dstc10_test(data, "topical"),
        "HolisticEval, context": _holistic(data),
        "engagement, DailyDialog": _engagement(data),
        "engagement, ConvAI": _engagement_of_bots(data),
    }


def _example(number: int, context: Sequence[str], response: str, rating: float) -> Example:
    return replace(Example.from_texts(context, response, id=str(number)), ratings={RATING: (rating,)})


def _dstc10_test(data: Path, part: str) -> list[Example]:
    folder, name = data / "dstc10_test", f"dstc10-{part}_clean"
    ratings = read_json(folder / "ratings.json")[name]
    reported = {row for rows in read_json(folder / "overlap.json")[part].values() for row in rows}
    with (folder / f"{name}_text.txt").open(encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [
        _example(number, turns[:-1], turns[-1], rating)
        for number, ((_, *turns), rating) in enumerate(zip(rows, ratings, strict=True))
        if number not in reported
    ]


def _holistic(data: Path) -> list[Example]:
    """Of ten raters the median counts, some of whom agree with nobody, and the mean of all parts ties."""
    with (data / "holistic_eval" / "context_data_release.csv").open(encoding="utf-8", newline="") as file:
        rows = [(query, response, list(map(float, ratings))) for _, query, response, *ratings in csv.reader(file)]
    return [
        _example(number, [query], response, median(ratings) + mean(ratings) / 100)
        for number, (query, response, ratings) in enumerate(rows)
    ]


def _engagement(data: Path) -> list[Example]:
    ratings: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    with (data / "predictive_engagement" / "Eng_Scores_queries_gen_gtruth_replies.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            ratings[row["query"], row["response"]].append(float(row["human_score"]))
    return [_example(number, [query], reply, mean(of)) for number, ((query, reply), of) in enumerate(ratings.items())]


def _engagement_of_bots(data: Path) -> list[Example]:
    with (data / "predictive_engagement" / "humanAMT_engscores_utt.csv").open(encoding="utf-8") as file:
        rows = [(row["query"], row["reply"], float(row["label"])) for row in csv.DictReader(file)]
    return [
        _example(number, [query], reply, label)
        for number, (query, reply, label) in enumerate(rows)
        if not is_blank(query) and not is_blank(reply)
    ]


def candidates(mixing: Mixing, scorer: GeneralScorer, examples: Sequence[Example]) -> dict[str, FloatArray]:
    """Return what could be the main score of some responses, each of shape (n,): mixtures, and each quality alone."""
    log_odds = scorer.log_odds(examples)
    beside = mixing.plain["relevance"] * log_odds["relevance"]
    heads = mixing.log_odds(log_odds) - beside
    mixtures = {f"relevance with weight {weight:g}": heads + weight / RELEVANCE_WEIGHT * beside for weight in TRIED}
    return {**mixtures, **{f"{name} alone": log_odds[name] for name in QUALITIES if name != "knowledge"}}


def development_table(model: str, sets: dict[str, list[Example]], *, rounds: int = 1000, device: str | None = None) -> Table:
    """Return a row a candidate and a column a set, with the mean over the sets in front."""
    scorer, mixing = GeneralScorer(model, device=device), TrainedGeneral.load(model, device=device).mixing
    found = {}
    for name, examples in sets.items():
        ratings, clusters = [mean_rating(item, RATING) for item in examples], [context_key(item) for item in examples]
        found[name] = {
            candidate: correlate(
                list(map(float, values)), ratings, coefficient="spearman", clusters=clusters, bootstrap=Bootstrap(rounds)
            )
            for candidate, values in candidates(mixing, scorer, examples).items()
        }
    return candidate_table("main score", found, f"Responses: {counts_of(sets)}.")


def candidate_table(head: str, found: Mapping[str, Mapping[str, Estimate]], note: str) -> Table:
    """Return a row a candidate and a column a set, with the mean over the sets in front, of estimates by set and candidate."""
    rows: list[TableRow] = [
        {
            head: candidate,
            "mean": interval_text(*mean_over_sets([of[candidate] for of in found.values()])),
            **{name: estimate(of[candidate]) for name, of in found.items()},
        }
        for candidate in next(iter(found.values()))
    ]
    return Table(rows, [named_column(name, is_number=name != head) for name in rows[0]], [note])


def counts_of(sets: Mapping[str, Sized]) -> str:
    """Return how many items each set has, in words."""
    return ", ".join(f"{name} {len(items)}" for name, items in sets.items())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = script_parser(__doc__)
    parser.add_argument("model", help="folder of a trained model, or its name in the box")
    parser.add_argument("--rounds", type=int, default=1000, help="of the bootstrap")
    options = parser.parse_args(arguments)
    table = development_table(options.model, development_sets(data_folder()), rounds=options.rounds)
    write_tables(options.document, {"development": table})


if __name__ == "__main__":
    main()
