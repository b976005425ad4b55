"""Contribution of every corpus and every head to the general evaluator: tables of results.md, on validation dialogues alone.

Figures are areas under the ROC curve: how often the main score of a real response is higher than that of a wrong text in its
place. Dialogues of the half that fits the weights of mixing are not counted, and no rating is read. Trains one model on all
corpora and one on all but each, all of the same small size and with the same validation dialogues, and takes the heads out of
the mixture of a model that is there. What is in the work folder is not trained again; a training that was killed goes on.

    python -m reproduction.general.ablations --work FOLDER --model my-general --corpus NAME=FILE ... \
        --evaluation dstc10 ... --document reproduction/general/results.md
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.corpora.identity import LeakIndex
from dialeval_plugin.corpora.registry import read_reported
from dialeval_plugin.methods.general.conversations import (
    Conversation,
    GeneralSources,
    by_corpus,
    read_conversations,
    split,
)
from dialeval_plugin.methods.general.judging import GENERAL_FOLDER
from dialeval_plugin.methods.general.model import GeneralRecipe, TrainedGeneral
from dialeval_plugin.methods.general.signals import NEGATIVES, QUALITIES
from dialeval_plugin.methods.general.training import (
    GeneralTrainingOptions,
    ValidationRow,
    areas,
    fit_mixing,
    judge,
    train,
    validation_rows,
)
from dialeval_plugin.models.folders import PACKAGED_ENCODER
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from reproduction.documents import script_parser, write_tables

MEAN = "mean"
ALL = "all corpora"
N_DIALOGUES = 50
"""For the weights of coherence, of which no table here says anything."""


class Judged(NamedTuple):
    """Validation rows and what a model's heads say of them."""

    log_odds: Mapping[str, FloatArray]
    kinds: np.ndarray
    is_fitted: np.ndarray


def rows_by_corpus(conversations: Sequence[Conversation], *, max_pairs: int, seed: int) -> dict[str, list[ValidationRow]]:
    """Draw validation rows of each corpus, the same for every model; `max_pairs` are real responses of all corpora together."""
    corpora = by_corpus(conversations)
    share = max(1, max_pairs // len(corpora))
    return {corpus: validation_rows({corpus: pairs}, max_pairs=share, seed=seed) for corpus, pairs in corpora.items()}


def areas_by_corpus(trained: TrainedGeneral, rows: Mapping[str, Sequence[ValidationRow]]) -> dict[str, float | None]:
    """The main score's area on each corpus, a mean over the kinds of wrong texts that it has; and the mean of all."""
    found: dict[str, float | None] = {}
    for corpus, drawn in rows.items():
        judged = _judged(trained, drawn)
        by_kind = areas(trained.mixing.log_odds(judged.log_odds), judged.kinds, ~judged.is_fitted)
        found[corpus] = _mean(list(by_kind.values()))
    return {MEAN: _mean(list(found.values())), **found}


def corpora_table(measured: Mapping[str, Mapping[str, float | None]]) -> Table:
    """A row a model and a column a corpus, of what `areas_by_corpus` gave."""
    rows: list[TableRow] = [{"trained on": name, **found} for name, found in measured.items()]
    return _table(rows, "trained on")


def heads_table(trained: TrainedGeneral, rows: Sequence[ValidationRow]) -> Table:
    """Return a row a mixture, of all qualities and of all but one, and a column for the wrong texts of each head.

    Each mixture has weights of its own, fitted as after training.
    """
    judged = _judged(trained, rows)
    mixtures = {
        "all": QUALITIES,
        **{f"without {left}": tuple(name for name in QUALITIES if name != left) for left in QUALITIES},
    }
    found: list[TableRow] = []
    for name, qualities in mixtures.items():
        mixing = fit_mixing(judged.log_odds, judged.kinds, judged.is_fitted, qualities)
        by_kind = areas(mixing.log_odds(judged.log_odds), judged.kinds, ~judged.is_fitted)
        groups = {f"wrong for {head}": _mean([by_kind[kind] for kind in kinds]) for head, kinds in NEGATIVES.items()}
        found.append({"main score": name, "all wrong texts": _mean(list(by_kind.values())), **groups})
    return _table(found, "main score")


def _judged(trained: TrainedGeneral, rows: Sequence[ValidationRow]) -> Judged:
    return Judged(
        judge(trained.model, [row.triple for row in rows]).log_odds,
        np.array([row.kind for row in rows]),
        np.array([row.is_fitted for row in rows], dtype=bool),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def _table(rows: Sequence[TableRow], label: str) -> Table:
    return Table(rows, [named_column(name, is_number=name != label) for name in rows[0]])


def trained_without(
    corpus: str | None, splits: GeneralSources, folder: Path, options: GeneralTrainingOptions
) -> TrainedGeneral:
    """The model that a corpus has no part in, from its folder where it is there."""
    if not GENERAL_FOLDER.is_finished(folder):
        kept = [item for item in splits.training if item.corpus != corpus]
        train(GeneralSources(kept, splits.validation), folder, options, progress=True)
    return TrainedGeneral.load(str(folder))


def ablations(splits: GeneralSources, options: argparse.Namespace) -> dict[str, Table]:
    training = GeneralTrainingOptions(
        backbone=options.backbone,
        recipe=replace(
            GeneralRecipe(),
            max_pairs=options.max_pairs,
            max_validation_pairs=options.max_validation_pairs,
            max_validation_dialogues=N_DIALOGUES,
        ),
        validation_fraction=options.validation_fraction,
        seed=options.seed,
    )
    rows = rows_by_corpus(splits.validation, max_pairs=options.max_validation_pairs, seed=options.seed)
    size = f"{options.max_pairs} responses"
    measured = {}
    for corpus in (None, *rows):
        trained = trained_without(corpus, splits, options.work / (corpus or "all"), training)
        measured[f"all but {corpus}, {size}" if corpus else f"{ALL}, {size}"] = areas_by_corpus(trained, rows)
    tables = {"corpora": corpora_table(measured)}
    if options.model is not None:
        reference = TrainedGeneral.load(str(options.model))
        tables["corpora"] = corpora_table({"the model of the other tables": areas_by_corpus(reference, rows), **measured})
        tables["heads"] = heads_table(reference, [row for drawn in rows.values() for row in drawn])
    return tables


def main(arguments: Sequence[str] | None = None) -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps the models")
    parser.add_argument("--model", type=Path, help="folder of a trained model, of the same corpora, fraction and seed")
    parser.add_argument("--corpus", action="append", required=True, metavar="NAME=FILE", help="as in `dialeval train general`")
    parser.add_argument("--evaluation", action="append", default=[], help="as in `dialeval train general`")
    parser.add_argument("--backbone", default=PACKAGED_ENCODER, help="as in `dialeval train general`")
    parser.add_argument("--max-pairs", type=int, default=3000, help="responses that each model is trained on")
    parser.add_argument("--max-validation-pairs", type=int, default=400, help="real responses that it is measured on")
    parser.add_argument("--validation-fraction", type=float, default=0.1, help="share of each corpus' dialogues for validation")
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args(arguments)
    conversations = read_conversations(options.corpus, LeakIndex(read_reported(options.evaluation).sets), {})
    splits = split(GeneralSources(conversations), fraction=options.validation_fraction, seed=options.seed)
    write_tables(options.document, ablations(splits, options))


if __name__ == "__main__":
    main()
