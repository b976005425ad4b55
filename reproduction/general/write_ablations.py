"""What every corpus and every head adds to the general evaluator: the tables of docs/general.md between their markers.

Trains one model on all corpora and one on all but each, all of the same small size and with the same validation dialogues,
and takes the heads out of the mixture of a model that is there. No rating is read. A model that is in the work folder is not
trained again; a training that was killed goes on.

    python -m reproduction.general.write_ablations --work FOLDER --model my-general --corpus NAME=FILE ... \
        --evaluation dstc10 ...
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dialeval_plugin.corpora.identity import LeakIndex
from dialeval_plugin.corpora.registry import read_reported
from dialeval_plugin.methods.general.conversations import Splits, read_conversations, split
from dialeval_plugin.methods.general.model import GENERAL_FOLDER, TrainedGeneral
from dialeval_plugin.methods.general.recipes import GeneralRecipe
from dialeval_plugin.methods.general.training import GeneralSources, GeneralTrainingOptions, train
from dialeval_plugin.models.folders import PACKAGED_ENCODER
from dialeval_plugin.reports.documents import write_tables
from dialeval_plugin.reports.tables import Table
from reproduction.general.ablations import areas_by_corpus, corpora_table, heads_table, rows_by_corpus

DOCUMENT = Path(__file__).with_name("general.md")
ALL = "all corpora"
N_DIALOGUES = 50
"""For the weights of coherence, of which no table here says anything."""


def trained_without(corpus: str | None, splits: Splits, folder: Path, options: GeneralTrainingOptions) -> TrainedGeneral:
    """The model that a corpus has no part in, from its folder where it is there."""
    if not GENERAL_FOLDER.is_finished(folder):
        kept = [item for item in splits.training if item.corpus != corpus]
        train(GeneralSources(kept, splits.validation), folder, options, progress=True, remember=False)
    return TrainedGeneral.load(str(folder))


def ablations(splits: Splits, options: argparse.Namespace) -> dict[str, Table]:
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps the models")
    parser.add_argument("--model", type=Path, help="folder of a trained model, of the same corpora, fraction and seed")
    parser.add_argument("--corpus", action="append", required=True, metavar="NAME=FILE", help="as in `dialeval train slm`")
    parser.add_argument("--evaluation", action="append", default=[], help="as in `dialeval train slm`")
    parser.add_argument("--backbone", default=PACKAGED_ENCODER, help="as in `dialeval train slm`")
    parser.add_argument("--max-pairs", type=int, default=3000, help="responses that each model is trained on")
    parser.add_argument("--max-validation-pairs", type=int, default=400, help="real responses that it is measured on")
    parser.add_argument("--validation-fraction", type=float, default=0.1, help="share of each corpus' dialogues for validation")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--document", type=Path, default=DOCUMENT, help="file with the markers")
    options = parser.parse_args(arguments)
    conversations = read_conversations(options.corpus, LeakIndex(read_reported(options.evaluation).sets), {})
    splits = split(conversations, (), fraction=options.validation_fraction, seed=options.seed)
    print(write_tables(options.document, ablations(splits, options)))


if __name__ == "__main__":
    main()
