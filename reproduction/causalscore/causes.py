"""Accuracy of the bundled classifiers in telling causes of a response from other utterances, on CGDIALOG+'s test files.

Rows are those of training (`methods/causalscore/data.py`): of the unconditional classifier the marked causes and the turn
before the response, next to the same turns with the response of another dialogue; of the conditional one the marked causes
next to turns of the same dialogue that are none.

    python -m reproduction.causalscore.causes --document reproduction/causalscore/results.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sklearn.metrics import f1_score

from dialeval_plugin.corpora.readers.cgdialog import CausePair, read_causes
from dialeval_plugin.methods.causalscore.data import (
    LabelledRow,
    OtherUtterances,
    conditional_rows,
    pair_hash,
    unconditional_rows,
)
from dialeval_plugin.methods.causalscore.model import CausalModel, DependenceClassifier, row_probabilities, turn_probabilities
from dialeval_plugin.models.folders import PRETRAINED
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from dialeval_plugin.statistics.correlation import correlate
from reproduction.data import data_folder
from reproduction.documents import estimate, script_parser, write_tables
from reproduction.intervals import percentile_bootstrap

from .interventions import FILES

COLUMNS = (
    named_column("classifier", is_number=False),
    *(named_column(name) for name in ("rows", "dialogues", "AUROC", "F1")),
)


def cause_table(model: CausalModel, folder: Path) -> Table:
    """Area under the ROC curve, with a 95 % interval over dialogues, and F1 at 0.5 of both classifiers on each file."""
    rows = []
    for corpus, file in FILES.items():
        pairs = read_causes(folder / file)
        others = OtherUtterances(pairs)
        single = [unconditional_rows([pair], others, seed=number) for number, pair in enumerate(pairs)]
        rows.append(_measured(f"{corpus}, unconditional", model.unconditional, pairs, single))
        contexts = [([turn.text for turn in pair.context], pair.response.text) for pair in pairs]
        chances = turn_probabilities(model.unconditional, contexts)
        double = [
            conditional_rows([pair], [found], others, seed=number)
            for number, (pair, found) in enumerate(zip(pairs, chances, strict=True))
        ]
        rows.append(_measured(f"{corpus}, conditional", model.conditional, pairs, double))
    return Table(rows, COLUMNS)


def _measured(
    name: str, classifier: DependenceClassifier, pairs: Sequence[CausePair], rows: Sequence[Sequence[LabelledRow]]
) -> TableRow:
    labelled = list(_flat(pairs, rows))
    chances = row_probabilities(classifier, [row.texts for _, row in labelled])
    labels = [row.label for _, row in labelled]
    clusters = [dialogue for dialogue, _ in labelled]
    found = correlate(chances.tolist(), labels, coefficient="auroc", clusters=clusters, bootstrap=percentile_bootstrap())
    f1 = float(f1_score(labels, chances > 0.5))
    counts = {"rows": str(len(labelled)), "dialogues": str(len(set(clusters)))}
    return {"classifier": name, **counts, "AUROC": estimate(found), "F1": f1}


def _flat(pairs: Sequence[CausePair], rows: Sequence[Sequence[LabelledRow]]) -> Iterator[tuple[str, LabelledRow]]:
    for pair, found in zip(pairs, rows, strict=True):
        for row in found:
            yield pair_hash(pair), row


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = script_parser(__doc__).parse_args(arguments)
    model = CausalModel.load(str(PRETRAINED / "causalscore"))
    write_tables(options.document, {"causes": cause_table(model, data_folder())})


if __name__ == "__main__":
    main()
