"""The tables of results.md: how models trained, and how far their losses agree with ConvAI's ratings.

Table 4.1 of Nedelchev's thesis is next to ours, and the length of the dialogue next to every loss: alone, and held constant.
DIALEVAL_DATA_DIR names the folder with `convai1` and `convai2`; the models are folders of `dialeval train reconstruction`.

    python -m reproduction.reconstruction.write seq2seq hred vhred vhcr --document reproduction/reconstruction/results.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from dialeval_plugin.core.dialogue import Dialogue, mean_rating
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.readers import convai
from dialeval_plugin.methods.reconstruction.model import RECONSTRUCTION_FOLDER
from dialeval_plugin.methods.reconstruction.scorer import DialogueReconstructionScorer
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from dialeval_plugin.statistics.correlation import correlations, partial_correlation
from dialeval_plugin.training.checkpoints import read_history
from reproduction.documents import estimate, published, script_parser, write_tables
from reproduction.intervals import percentile_bootstrap

Values: TypeAlias = Sequence[float | None]

QUALITIES: Mapping[str, str] = MappingProxyType({"convai1": "quality", "convai2": "eval_score"})
FEWEST_UTTERANCES = 3
"""The thesis considers dialogues of three and more utterances."""

NAMES: Mapping[str, str] = MappingProxyType({"seq2seq": "Seq2Seq", "hred": "HRED", "vhred": "VHRED", "vhcr": "VHCR"})

PAPER = published("reconstruction")
LENGTHS = ("n_utterances", "n_tokens")
_COEFFICIENTS = tuple(PAPER["coefficients"])


class LossVariant(NamedTuple):
    """One way to make a loss a score."""

    name: str
    options: Mapping[str, Any]
    variational_options: Mapping[str, Any] = MappingProxyType({})
    """Options that VHRED and VHCR have on top of those."""


VARIANTS = (
    LossVariant("mean of token means (4.1)", {}),
    LossVariant("sum", {"reduction": "sum"}),
    LossVariant("as the thesis' code: sum, 10 utterances", {"reduction": "sum", "max_utterances": 10}, {"latent": "posterior"}),
)


def training_table(folders: Sequence[Path]) -> Table:
    """Return the course of each training, from the models' folders."""
    rows: list[TableRow] = []
    for folder in folders:
        settings, history = RECONSTRUCTION_FOLDER.read_settings(folder), read_history(folder)
        training = settings["training"]
        rows.append(
            {
                "model": NAMES[settings["model"]],
                "recipe": settings["recipe"],
                "dialogues": training["counts"]["n_training"],
                "epochs": len(history),
                "validation losses": " ".join(f"{epoch.figures['loss']:.3f}" for epoch in history),
                "best epoch": training["best_epoch"],
                "training KL": history[training["best_epoch"] - 1].figures["training_kl"],
            }
        )
    decimals = {"training KL": 3}
    return Table(
        rows, [named_column(name, decimals.get(name, 0), is_number=name not in ("model", "recipe")) for name in rows[0]]
    )


def agreement_table(corpus: str, dialogues: Sequence[Dialogue], models: Sequence[str], *, rounds: int = 1000) -> Table:
    """Agreement of models' losses with the ratings of a challenge's dialogues; short and unrated ones are left out."""
    quality = QUALITIES[corpus]
    rated = [one for one in dialogues if len(one.turns) >= FEWEST_UTTERANCES and mean_rating(one, quality) is not None]
    if not rated:
        raise InputError(f"{corpus}: none of {len(dialogues)} dialogues has three utterances and a rating.")
    ratings = [mean_rating(one, quality) for one in rated]
    rows: list[TableRow] = []
    alone: Mapping[str, Values] = {}
    for folder in models:
        for variant in VARIANTS:
            scorer = _scorer(folder, variant)
            scores = scorer.score(rated, progress=True)
            lengths = {name: scores.columns[name] for name in LENGTHS}
            alone, model = alone or lengths, NAMES[scorer.trained.kind]
            rows.append(_row(model, variant.name, scores.values, ratings, rounds, lengths))
        thesis = zip(_COEFFICIENTS, PAPER["table_4_1"][corpus][scorer.trained.kind], strict=True)
        printed = {name: f"{value:.3f}" for name, value in thesis}
        rows.append({**dict.fromkeys(rows[0], ""), "model": model, "loss": "thesis, table 4.1", **printed})
    rows += [_row("length alone", name, alone[name], ratings, rounds) for name in LENGTHS]
    return Table(rows, [named_column(name, 0, is_number=name not in ("model", "loss")) for name in rows[0]])


def _scorer(folder: str, variant: LossVariant) -> DialogueReconstructionScorer:
    scorer = DialogueReconstructionScorer(folder, **variant.options)
    if scorer.latent is not None and variant.variational_options:
        scorer = DialogueReconstructionScorer(folder, **variant.options, **variant.variational_options)
    return scorer


def _row(
    model: str, loss: str, values: Values, ratings: Values, rounds: int, lengths: Mapping[str, Values] | None = None
) -> TableRow:
    """Correlation of one score with the ratings: alone, and with the lengths held constant if they are given."""
    bootstrap = percentile_bootstrap(rounds)
    plain = correlations(values, ratings, coefficients=_COEFFICIENTS, bootstrap=bootstrap)
    held = {
        name: estimate(partial_correlation(values, ratings, lengths, coefficient=name, bootstrap=bootstrap)) if lengths else ""
        for name in _COEFFICIENTS
    }
    return {
        "model": model,
        "loss": loss,
        "n": plain["pearson"].n_scored,
        **{name: estimate(found) for name, found in plain.items()},
        **{f"{name}, length held": text for name, text in held.items()},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = script_parser(__doc__)
    parser.add_argument("models", type=Path, nargs="+", help="folders of trained models")
    parser.add_argument("--rounds", type=int, default=1000, help="of the bootstrap")
    options = parser.parse_args(arguments)
    tables = {"training": training_table(options.models)}
    for corpus, dialogues in (("convai1", convai.read_convai1()), ("convai2", convai.read_convai2())):
        tables[corpus] = agreement_table(corpus, dialogues, list(map(str, options.models)), rounds=options.rounds)
    write_tables(options.document, tables)


if __name__ == "__main__":
    main()
