"""Fit the head of `assistant` for a larger encoder, and write it with its percentiles into the model's folder.

    python -m reproduction.assistant.larger_encoder --encoder FOLDER --work FOLDER

`--work` keeps the encoder's vectors, whose computation takes some hours of one core in float32. Nothing is learnt from what is
reported (`sources.is_reported`). The forms that were tried stand in NOTES.md.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.files import to_json, write_text
from dialeval_plugin.core.signature import LARGER_ENCODER_FILE, file_hash
from dialeval_plugin.methods.assistant.features import HELPFULNESS
from dialeval_plugin.methods.assistant.judging import (
    LARGER_ENCODER,
    AnswerReader,
    AssistantInput,
    LargerEncoderSettings,
    ReadAnswers,
    find_encoder,
    open_encoder,
    read_answer,
)
from dialeval_plugin.methods.assistant.scorer import JUDGED, AssistantScorer
from dialeval_plugin.models.compact import original_hash
from dialeval_plugin.models.folders import PRETRAINED
from dialeval_plugin.models.manifest import changing
from dialeval_plugin.models.runtimes.runtime import RuntimeChoice
from dialeval_plugin.training.people import write_percentiles
from reproduction.assistant.data import best_answers
from reproduction.assistant.leaks import leave_out_reported
from reproduction.assistant.sources import SCALE, as_examples, is_reported, preferences, reported_answers
from reproduction.data import data_folder
from reproduction.pretrained.build import RECIPES, scale_of

SOURCES: Mapping[str, float] = {"pandalm": 1.0, "oasst": 1.0, "dpo": 0.5, "alpaca_eval": 1.0}
"""Weight of all pairs of a set together."""
BY_PEOPLE = ("pandalm", "oasst")
PER_INSTRUCTION = 3
"""Number of answers to each of AlpacaEval's instructions."""
CLEAR, SUREST = 0.5, 3.0
"""Lowest difference between scores of a pair, and log odds beyond which differences count alike."""
N_COMPONENTS, RIDGE, N_FOLDS = 128, 0.2, 5
OWN, DEFECT_WEIGHT, GOOD = 0.45, 0.3, 0.98
"""Weight of the model's own helpfulness, weight of defects, and the quantile of good answers from which on a defect counts:
chosen out of fold, with own heads trained without each fold."""
_ANSWERS_AT_ONCE = 256


class Pairs(NamedTuple):
    """Pairs of rated answers, as indices."""

    better: np.ndarray
    worse: np.ndarray
    margin: FloatArray
    weight: FloatArray
    is_by_people: np.ndarray
    fold: np.ndarray


def rated_answers() -> list[dict[str, Any]]:
    """Return the rated answers of `SOURCES` that may be learnt from, each with its group."""
    rows = [row for row in preferences(only_open=False) if _source(row) in SOURCES]
    groups = defaultdict(list)
    for row in sorted(rows, key=lambda row: _hash(f"{row['group']} {row['response']}")):
        groups[row["group"]].append(row)
    chosen = [row for of in groups.values() for row in (of[:PER_INSTRUCTION] if _source(of[0]) == "alpaca_eval" else of)]
    return leave_out_reported(chosen, reported_answers(), as_examples)


def pairs_of(rows: Sequence[Mapping[str, Any]]) -> Pairs:
    """Return the pairs of answers of one group that their scores tell apart."""
    groups = defaultdict(list)
    for place, row in enumerate(rows):
        groups[row["group"]].append(place)
    found = [
        (one, other, min(SUREST, rows[one]["score"] - rows[other]["score"]))
        for places in groups.values()
        for one in places
        for other in places
        if rows[one]["score"] - rows[other]["score"] > CLEAR
    ]
    better, worse, margin = (np.array(column) for column in zip(*found, strict=True))
    sources = np.array([_source(rows[place]) for place in better])
    weight = np.array([SOURCES[name] / (sources == name).sum() for name in sources])
    fold = np.array([int(_hash(rows[place]["context"][0]), 16) % N_FOLDS for place in better])
    return Pairs(better, worse, margin, weight, np.isin(sources, BY_PEOPLE), fold)


def fitted(read: ReadAnswers, pairs: Pairs) -> tuple[dict[str, FloatArray], float]:
    """Return the weights of each block, and the slope with which people's pairs follow its differences out of fold."""
    components = {name: _components(block) for name, block in read.blocks().items()}
    features = np.hstack([block @ components[name] for name, block in read.blocks().items()])
    differences = features[pairs.better] - features[pairs.worse]
    out_of_fold = np.zeros(len(differences))
    for number in range(N_FOLDS):
        out_of_fold[pairs.fold == number] = differences[pairs.fold == number] @ _ridge(differences, pairs, pairs.fold != number)
    slope = _slope(out_of_fold, pairs)
    parts = np.split(_ridge(differences, pairs, np.ones(len(differences), dtype=bool)), len(components))
    return {name: basis @ part for (name, basis), part in zip(components.items(), parts, strict=True)}, slope


def _components(block: np.ndarray) -> FloatArray:
    """Principal components of a block scaled to unit variance, the later ones less."""
    centred = block.astype(np.float64) - block.mean(0)
    basis, variances, _ = np.linalg.svd(centred.T @ centred / len(block))
    n = min(N_COMPONENTS, len(variances))
    scaled: FloatArray = basis[:, :n] / np.sqrt(variances[:n] * np.arange(1, n + 1))
    return scaled


def _ridge(differences: FloatArray, pairs: Pairs, rows: np.ndarray) -> FloatArray:
    chosen, target = differences[rows], expit(pairs.margin[rows])
    weight = pairs.weight[rows] / pairs.weight[rows].sum()

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        log_odds = chosen @ weights
        value = weight @ (np.logaddexp(0, log_odds) - target * log_odds) + RIDGE * weights @ weights
        return float(value), chosen.T @ (weight * (expit(log_odds) - target)) + 2 * RIDGE * weights

    found: FloatArray = minimize(loss, np.zeros(chosen.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 80}).x
    return found


def _slope(differences: FloatArray, pairs: Pairs) -> float:
    log_odds, target = differences[pairs.is_by_people], expit(pairs.margin[pairs.is_by_people])

    def loss(slope: FloatArray) -> float:
        return float((np.logaddexp(0, slope * log_odds) - target * slope * log_odds).mean())

    return float(minimize(loss, np.ones(1), method="Nelder-Mead").x[0])


def kept_vectors(reader: AnswerReader, answers: Sequence[AssistantInput], path: Path) -> ReadAnswers:
    """Return what the head reads of answers; what the file at `path` lacks is computed and kept there."""
    known: dict[str, np.ndarray] = {}
    if path.exists():
        with np.load(path) as kept:
            known = dict(zip(kept["keys"].tolist(), kept["read"], strict=True))
    by_key = {_hash(*before, question, answer): (before, question, answer) for before, question, answer in answers}
    missing = [key for key in by_key if key not in known]
    for start in range(0, len(missing), _ANSWERS_AT_ONCE):
        chosen = missing[start : start + _ANSWERS_AT_ONCE]
        read = ReadAnswers.of(reader.read([by_key[key] for key in chosen])[0])
        known |= zip(chosen, np.stack(read, axis=1), strict=True)
        np.savez(path, keys=np.array(list(known)), read=np.stack(list(known.values())))
        print(f"{start + len(chosen)} of {len(missing)} answers", flush=True)
    keys = [_hash(*before, question, answer) for before, question, answer in answers]
    return ReadAnswers(*np.stack([known[key] for key in keys], axis=1))


def _input(answer: Example) -> AssistantInput:
    return read_answer(answer.context, answer.response)


def _source(row: Mapping[str, Any]) -> str:
    return str(row["group"]).rpartition("-")[0]


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def head(scorer: AssistantScorer, encoder: Path, work: Path) -> LargerEncoderSettings:
    """Fit the head for the model of `scorer`."""
    judge = scorer.judge
    rows = rated_answers()
    answers = [_input(*as_examples(row)) for row in rows]
    reader = AnswerReader(open_encoder(encoder, RuntimeChoice()), judge.config)
    read, pairs = kept_vectors(reader, answers, work / "vectors.npz"), pairs_of(rows)
    weights, slope = fitted(read, pairs)
    print(f"{len(rows)} answers, {len(pairs.better)} pairs, slope {slope:.3f}")
    weights = {name: slope * values for name, values in weights.items()}
    by_people = [place for place, row in enumerate(rows) if _source(row) != "alpaca_eval"]
    own = judge.judge([answers[place] for place in by_people]).log_odds[HELPFULNESS]
    by_vectors = np.sum([block @ weights[name] for name, block in read.blocks().items()], axis=0)
    good = [one.answer for one in best_answers() if one.group != "oasst" or not is_reported(one.cluster)]
    log_odds = judge.judge(list(map(_input, good))).log_odds
    return LargerEncoderSettings(
        encoder=original_hash(encoder),
        vectors={name: [float(f"{value:.6g}") for value in values] for name, values in weights.items()},
        own=OWN,
        offset=-float(np.median(by_vectors[by_people] + OWN * own)),
        defects={name: float(np.quantile(log_odds[name], GOOD)) for name in JUDGED},
        defect_weight=DEFECT_WEIGHT,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default=LARGER_ENCODER, help="folder of the encoder (default: %(default)s from the hub)")
    parser.add_argument("--work", type=Path, required=True, help="folder for the vectors")
    parser.add_argument("--model", type=Path, default=PRETRAINED / "assistant", help="folder of the model (%(default)s)")
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    settings = head(AssistantScorer(str(options.model)), find_encoder(options.encoder), options.work)
    with changing(options.model, LARGER_ENCODER_FILE):
        write_text(options.model / LARGER_ENCODER_FILE, to_json(settings) + "\n")
    sources = {file: file_hash(data_folder() / file) for file in SCALE}
    for level in AssistantScorer.levels:
        scorer = AssistantScorer(str(options.model), level=level, encoder=options.encoder)
        write_percentiles(scorer, options.model, scale_of(RECIPES["assistant"], level, data_folder()), sources)


if __name__ == "__main__":
    main()
