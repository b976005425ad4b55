"""The tables of docs/reconstruction.md: how models trained, and how far their losses agree with ConvAI's ratings.

Table 4.1 of Nedelchev's thesis stands beside ours, and every loss beside the length of the dialogue: alone, and held constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Dialogue
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scores import Scores
from dialeval_plugin.corpora.items import mean_rating
from dialeval_plugin.methods.reconstruction.model import RECONSTRUCTION_FOLDER
from dialeval_plugin.methods.reconstruction.scorer import DialogueReconstructionScorer
from dialeval_plugin.reports.tables import Column, Row, Table, estimate, figure
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.correlation import correlations
from dialeval_plugin.statistics.partial import partial_correlation
from dialeval_plugin.training.history import read_history

QUALITIES: Mapping[str, str] = MappingProxyType({"convai1": "quality", "convai2": "eval_score"})
FEWEST_UTTERANCES = 3
"""The thesis considers dialogues of three and more utterances."""

NAMES: Mapping[str, str] = MappingProxyType({"seq2seq": "Seq2Seq", "hred": "HRED", "vhred": "VHRED", "vhcr": "VHCR"})

THESIS: Mapping[str, Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "convai1": {
            "seq2seq": (0.2150, 0.3006),
            "hred": (0.1869, 0.2832),
            "vhred": (0.2210, 0.3009),
            "vhcr": (0.2249, 0.3037),
        },
        "convai2": {
            "seq2seq": (0.3444, 0.4892),
            "hred": (0.3469, 0.4876),
            "vhred": (0.3384, 0.4885),
            "vhcr": (0.3408, 0.4888),
        },
    }
)
"""Table 4.1: Pearson's and Spearman's coefficients."""

LENGTHS = ("n_utterances", "n_tokens")
_COEFFICIENTS = ("pearson", "spearman")


class Reading(NamedTuple):
    """One way to make a loss a score."""

    name: str
    options: Mapping[str, Any]
    variational_options: Mapping[str, Any] = MappingProxyType({})
    """Of VHRED and VHCR on top."""


READINGS = (
    Reading("mean of token means (4.1)", {}),
    Reading("sum", {"reduction": "sum"}),
    Reading("as the thesis' code: sum, 10 utterances", {"reduction": "sum", "max_utterances": 10}, {"latent": "posterior"}),
)


def training_table(folders: Sequence[Path]) -> Table:
    """How models trained, from their folders."""
    rows: list[Row] = []
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
    decimals = {"dialogues": 0, "epochs": 0, "best epoch": 0}
    names = list(rows[0]) if rows else []
    return Table(rows, [_column(name, decimals.get(name, 3), name not in ("model", "recipe")) for name in names])


def agreement_table(corpus: str, dialogues: Sequence[Dialogue], models: Sequence[str], *, rounds: int = 1000) -> Table:
    """Agreement of models' losses with the ratings of a challenge's dialogues.

    Args:
        corpus: "convai1" or "convai2".
        dialogues: as read; short and unrated ones are left out.
        models: folders.
        rounds: of the bootstrap; 0 for no intervals.

    Raises:
        InputError: no dialogue is rated.
    """
    quality = QUALITIES[corpus]
    rated = [one for one in dialogues if len(one.turns) >= FEWEST_UTTERANCES and mean_rating(one, quality) is not None]
    if not rated:
        raise InputError(f"{corpus}: none of {len(dialogues)} dialogues has three utterances and a rating.")
    ratings = [mean_rating(one, quality) for one in rated]
    rows: list[Row] = []
    for folder in models:
        for reading in READINGS:
            scorer = _scorer(folder, reading)
            scores = scorer.score(rated, progress=True)
            rows.append(_row(NAMES[scorer.trained.kind], reading.name, scores, ratings, rounds))
        pearson, spearman = THESIS[corpus][scorer.trained.kind]
        published = {"pearson": f"{pearson:.3f}", "spearman": f"{spearman:.3f}", "n": None}
        rows.append({**dict.fromkeys(rows[0], ""), "model": rows[-1]["model"], "loss": "thesis, table 4.1", **published})
    rows += [_length_row(name, _scorer(models[0], READINGS[0]).score(rated), ratings, rounds) for name in LENGTHS]
    return Table(rows, [_column(name, 0, name not in ("model", "loss")) for name in rows[0]])


def _scorer(folder: str, reading: Reading) -> DialogueReconstructionScorer:
    scorer = DialogueReconstructionScorer(folder, **reading.options)
    if scorer.latent is not None and reading.variational_options:
        scorer = DialogueReconstructionScorer(folder, **reading.options, **reading.variational_options)
    return scorer


def _row(model: str, loss: str, scores: Scores, ratings: Sequence[float | None], rounds: int) -> Row:
    plain = correlations(scores.values, ratings, coefficients=_COEFFICIENTS, bootstrap=Bootstrap(rounds))
    lengths = {name: scores.columns[name] for name in LENGTHS}
    held = {
        name: partial_correlation(scores.values, ratings, lengths, coefficient=name, bootstrap=Bootstrap(rounds))
        for name in _COEFFICIENTS
    }
    return {
        "model": model,
        "loss": loss,
        "n": plain["pearson"].n_scored,
        **{name: estimate(found) for name, found in plain.items()},
        **{f"{name}, length held": estimate(found) for name, found in held.items()},
    }


def _length_row(name: str, scores: Scores, ratings: Sequence[float | None], rounds: int) -> Row:
    plain = correlations(scores.columns[name], ratings, coefficients=_COEFFICIENTS, bootstrap=Bootstrap(rounds))
    return {
        "model": "length alone",
        "loss": name,
        "n": plain["pearson"].n_scored,
        **{coefficient: estimate(found) for coefficient, found in plain.items()},
        **{f"{coefficient}, length held": "" for coefficient in _COEFFICIENTS},
    }


def _column(name: str, decimals: int, is_number: bool) -> Column:
    return Column(name, lambda row: figure(row[name], decimals), is_number)
