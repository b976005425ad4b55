"""Similarity with references in `general`: its weight, chosen on fitting and wrong responses that nobody has rated.

The contexts are 400 of DailyDialog++'s development file, without those of reported sets. `general` was trained on them, so
that its own score looks better there than it is; `general-open` was not. A fitting response has the other fitting ones as its
references, a wrong one, which shares words or is random, as many of them; or one of them, drawn by chance. Next to these is
Spearman's rho with the mean rating of the rebuilt DSTC7, which has one reference a response and is none of the nine reported
sets; nothing was chosen on it. DIALEVAL_DATA_DIR names the folder.

    python -m reproduction.general.references general general-open --document reproduction/general/results.md
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import logit
from sklearn.metrics import roc_auc_score

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Example, mean_rating
from dialeval_plugin.corpora.identity import LeakIndex, leave_out_leaks
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers import dailydialog_pp, dstc10
from dialeval_plugin.corpora.readers.dailydialog_pp import QUALITY, ResponseSet
from dialeval_plugin.corpora.registry import read_reported
from dialeval_plugin.methods.general.judging import REFERENCE_SIMILARITY, REFERENCE_WEIGHT, reference_log_odds
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from dialeval_plugin.statistics.correlation import correlate
from reproduction.data import data_folder
from reproduction.documents import estimate, script_parser, write_tables
from reproduction.intervals import percentile_bootstrap
from reproduction.pretrained.build import REPORTED

TRIED = (0.0, 1.0, 2.0, 4.0, REFERENCE_WEIGHT, 8.0, 12.0)
RATED = "d7"
N_CONTEXTS = 400
"""Of DailyDialog++, drawn by chance: the whole file takes an hour."""


def with_references(sets: Sequence[ResponseSet], number: int | None, seed: int = 13) -> list[Example]:
    """Return their responses, each with so many of the fitting ones as references, by default all others or as many."""
    generator = random.Random(seed)
    found = []
    for item in sets:
        for example in item.examples():
            others = [text for text in item.positive if text != example.response.text]
            n_references = len(item.positive) - 1 if number is None else number
            found.append(replace(example, references=tuple(generator.sample(others, min(n_references, len(others))))))
    return found


def columns_of(model: str, examples: Sequence[Example]) -> tuple[FloatArray, FloatArray]:
    """Return the log odds of the main score without references and the similarities, each (n,)."""
    scores = GeneralScorer(model, with_references=True).score(examples)
    main, similarity = (np.array(scores.columns[name], dtype=np.float64) for name in (scores.main, REFERENCE_SIMILARITY))
    return logit(main) - reference_log_odds(similarity), similarity


def weight_table(models: Sequence[str], sets: Mapping[str, Sequence[Example]], rated: Sequence[Example]) -> Table:
    """Return a row a weight: for each model areas under the ROC curve of the sets of responses, and agreement with ratings."""
    read = {(model, name): columns_of(model, examples) for model in models for name, examples in sets.items()}
    of_rated = {model: columns_of(model, rated) for model in models}
    fits = {name: [example.ratings[QUALITY][0] for example in examples] for name, examples in sets.items()}
    quality = dstc10.overall_quality(rated, dstc10.SETS[RATED])
    ratings, clusters = [mean_rating(item, quality) for item in rated], [context_key(item) for item in rated]
    rows: list[TableRow] = []
    for weight in TRIED:
        row: dict[str, str] = {"weight": f"{weight:g}"}
        for model in models:
            for name in sets:
                mixed, like = read[model, name]
                row[f"{model}, {name}"] = f"{roc_auc_score(fits[name], mixed + weight * like):.3f}"
            mixed, like = of_rated[model]
            agreement = correlate(
                (mixed + weight * like).tolist(),
                ratings,
                coefficient="spearman",
                clusters=clusters,
                bootstrap=percentile_bootstrap(),
            )
            row[f"{model}, {RATED.upper()}"] = estimate(agreement)
        rows.append(row)
    counts = ", ".join(f"{name} {len(examples)}" for name, examples in {**sets, RATED.upper(): rated}.items())
    return Table(rows, [named_column(name, is_number=name != "weight") for name in rows[0]], [f"Responses: {counts}."])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = script_parser(__doc__)
    parser.add_argument("models", nargs="+", help="folders of trained models, or names of bundled ones")
    options = parser.parse_args(arguments)
    reported = read_reported(REPORTED).sets
    everything = dailydialog_pp.read(data_folder() / "dailydialog_pp" / "dev.json")
    sets = leave_out_leaks(
        everything,
        LeakIndex(reported),
        lambda item: [(*item.context, text) for text in item.positive],
        "DailyDialog++ contexts",
    )
    drawn = random.Random(13).sample(sets, min(N_CONTEXTS, len(sets)))
    rated = [item for item in reported[RATED] if isinstance(item, Example) and item.references]
    found = weight_table(
        options.models,
        {"one reference": with_references(drawn, 1), "all others": with_references(drawn, None)},
        rated,
    )
    write_tables(options.document, {"references": found})


if __name__ == "__main__":
    main()
