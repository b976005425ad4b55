"""Development data of `general`: how far its qualities and mixtures agree with ratings of responses outside the reported sets.

Figures are Spearman's rho with the mean rating and its interval, which resamples contexts. DIALEVAL_DATA_DIR names the folder
with `dstc10_test`, `holistic_eval`, `predictive_engagement`, `dbdc3` and `abceval`; contexts that a reported set has too are
left out.

    python -m reproduction.general.development MODEL --document reproduction/general/results.md
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence, Sized
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from typing import get_args

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Example, is_blank, mean_rating, visible_texts
from dialeval_plugin.core.files import read_json
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers import dbdc
from dialeval_plugin.methods.general.judging import ACCEPTANCE, NOVELTY, NOVELTY_WEIGHT, novelty
from dialeval_plugin.methods.general.mixing import Mixing
from dialeval_plugin.methods.general.model import TrainedGeneral
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.methods.general.training import RELEVANCE_WEIGHT
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from dialeval_plugin.statistics.bootstrap import Estimate
from dialeval_plugin.statistics.correlation import correlate
from dialeval_plugin.statistics.estimates import interval_text, mean_over_sets
from reproduction.data import data_folder
from reproduction.documents import estimate, script_parser, write_tables
from reproduction.intervals import percentile_bootstrap

RATING = "rating"
TRIED = (0.0, 0.2, 0.4, RELEVANCE_WEIGHT, 0.8, 1.6)
"""Weights of relevance in the main score."""
TRIED_ACCEPTANCE = (0.5, 1.0, 1.5, 2.0)
"""Weights of acceptance in the main score, next to relevance with its own."""
TRIED_NOVELTY = (0.5, NOVELTY_WEIGHT, 1.5, 2.0)
"""Weights of novelty in the main score, next to relevance and acceptance with theirs."""
NO_FAULT = "empathetic"
"""Of ABC-Eval's behaviours the one that is none."""
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


def chat_sets(data: Path) -> dict[str, list[Example]]:
    """Return rated turns of chatbots in whole chats: of DBDC3 how few raters saw a breakdown, of ABC-Eval how few faults."""
    return {
        **{f"DBDC3, {system}": _dbdc(data, system) for system in dbdc.SYSTEMS},
        "ABC-Eval": _abc_eval(data),
    }


def _dbdc(data: Path, system: str) -> list[Example]:
    dialogues = [
        one for split in get_args(dbdc.DbdcSplit) for one in dbdc.read(system, split=split, path=data / "dbdc3" / dbdc.FILE)
    ]
    return [
        replace(item, ratings={RATING: (-mean(item.ratings[dbdc.QUALITY]),)})
        for one in dialogues
        for item in one.responses
        if not is_blank(item.response.text)
    ]


def _abc_eval(data: Path) -> list[Example]:
    """Two people looked for eight faults in each turn."""
    chats = read_json(data / "abceval" / "behavior-classification-results.json")
    found: list[Example] = []
    for chat in chats.values():
        said: list[str] = []
        for turn in chat:
            faults = [label for name, of in turn["behaviors"].items() if name != NO_FAULT for label in of["human"]]
            said.append(turn["user"])
            if not is_blank(turn["system"]):
                found.append(_example(len(found), said, turn["system"], -float(sum(faults))))
            said.append(turn["system"])
    return found


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
    """Return what could be the main score of some responses, each of shape (n,): mixtures, and each quality alone.

    Without acceptance where the model has not learnt it.
    """
    log_odds = scorer.log_odds(examples)
    beside = mixing.plain["relevance"] * log_odds["relevance"]
    mixed = mixing.log_odds(log_odds)
    found = {f"relevance with weight {weight:g}": mixed + (weight / RELEVANCE_WEIGHT - 1) * beside for weight in TRIED}
    if ACCEPTANCE in log_odds:
        found |= {
            f"and acceptance with weight {weight:g}": mixed + weight * log_odds[ACCEPTANCE] for weight in TRIED_ACCEPTANCE
        }
    new = novelty((visible_texts(example.context), example.response.text) for example in examples)
    taught = mixed + log_odds.get(ACCEPTANCE, 0.0)
    found |= {f"and novelty with weight {weight:g}": taught + weight * new for weight in TRIED_NOVELTY}
    alone = {name: values for name, values in {**log_odds, NOVELTY: new}.items() if name != "knowledge"}
    return {**found, **{f"{name} alone": values for name, values in alone.items()}}


def development_table(model: str, sets: dict[str, list[Example]], *, rounds: int = 1000, device: str | None = None) -> Table:
    """Return a row a candidate and a column a set, with the mean over the sets in front."""
    scorer, mixing = GeneralScorer(model, device=device), TrainedGeneral.load(model, device=device).mixing
    found = {}
    for name, examples in sets.items():
        ratings, clusters = [mean_rating(item, RATING) for item in examples], [context_key(item) for item in examples]
        found[name] = {
            candidate: correlate(
                list(map(float, values)),
                ratings,
                coefficient="spearman",
                clusters=clusters,
                bootstrap=percentile_bootstrap(rounds),
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
    parser.add_argument("model", help="folder of a trained model, or the name of a bundled one")
    parser.add_argument("--rounds", type=int, default=1000, help="of the bootstrap")
    options = parser.parse_args(arguments)
    data = data_folder()
    tables = {
        name: development_table(options.model, sets, rounds=options.rounds)
        for name, sets in {"development": development_sets(data), "development-chats": chat_sets(data)}.items()
    }
    write_tables(options.document, tables)


if __name__ == "__main__":
    main()
