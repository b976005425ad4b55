"""The bundled encoder: its weights rounded to signed integers, and what that moves.

`--float32` names the folder of sentence-transformers/all-MiniLM-L6-v2 as its authors publish it (the revision stands in
`models/folders.py`). With `--output` the encoder is written, as it is bundled. Otherwise each packaged model scores with the
encoder as published and with it rounded to each number of bits, and two tables say how far scores and figures moved: on the
golden items, on rated sets of DSTC10, and on pairs of answers that people ordered. DIALEVAL_DATA_DIR names the folder with the
data.

    python -m reproduction.pretrained.encoder --float32 FOLDER --work FOLDER --document reproduction/pretrained/results.md
    python -m reproduction.pretrained.encoder --float32 FOLDER --output dialeval_plugin/pretrained/all-MiniLM-L6-v2
"""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import BertModel

from dialeval_plugin.core.dialogue import Item, mean_rating
from dialeval_plugin.core.files import to_json
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.signature import file_hash
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.methods.baselines.embedding import EmbeddingOverlap
from dialeval_plugin.models.compact import (
    HEADER,
    ROUNDED_FILE,
    SCALES,
    WEIGHTS_FILE,
    encoder_weights,
    largest_number,
    read_tensors,
)
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve
from dialeval_plugin.pretrained.catalogue import golden_items
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.correlation import correlate
from reproduction.assistant.data import AnswerPair, oasst_pairs, pandalm_pairs
from reproduction.documents import script_parser, write_tables
from reproduction.kept_results import kept_json

CHOICES = (8, 10, 12, 16)
BITS = 16
"""Bits of the bundled encoder: the fewest of `CHOICES` that move no score by more than 0.001."""
N_PAIRS = 60
"""Number of pairs of each set, from the beginning."""
EVALUATORS: Mapping[str, tuple[str, dict[str, str]]] = {
    "general": ("general", {}),
    "general, whole dialogues": ("general", {"level": "dialogue"}),
    "general-open": ("general", {"model": "general-open"}),
    "slide": ("slide", {}),
    "causalscore": ("causalscore", {}),
    "assistant": ("assistant", {}),
    "assistant-open": ("assistant", {"model": "assistant-open"}),
    "sentence_similarity": ("sentence_similarity", {}),
    "embedding_overlap": ("embedding_overlap", {}),
}
_SETS = ("pu", "ft")
_GOLDEN, _PAIRS = "golden items", "pairs of answers"
_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
_FILES_OF_HOST = ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "1_Pooling/config.json")


class Rounded(NamedTuple):
    """A matrix in signed integers."""

    numbers: np.ndarray
    """The rounded numbers, int16, of the matrix's shape."""
    scales: np.ndarray
    """Factor of the numbers of each row, float32, (rows,)."""


def rounded(matrix: np.ndarray, bits: int) -> Rounded:
    """Round a matrix (rows, columns) so that the largest weight of each row is the largest number of so many bits."""
    scales = np.abs(matrix).max(axis=1) / np.float32(largest_number(bits))
    return Rounded(np.rint(matrix / np.where(scales > 0, scales, 1)[:, None]).astype(np.int16), scales.astype(np.float32))


def restored(weights: Mapping[str, np.ndarray], bits: int) -> dict[str, np.ndarray]:
    """Return an encoder's weights as they come back after its matrices were rounded."""
    found = {}
    for name, weight in weights.items():
        found[name] = weight
        if weight.ndim == 2:
            numbers, scales = rounded(weight, bits)
            found[name] = numbers * scales[:, None]
    return found


def write_encoder(source: Path, target: Path) -> None:
    """Write the encoder as it is bundled: its weights rounded, and the files that hosts and tokenizers read, as they are."""
    tensors: dict[str, np.ndarray] = {}
    for name, weight in read_tensors(source / WEIGHTS_FILE).items():
        if weight.dtype != np.float32:
            # Positions, which the model counts itself.
            continue
        if weight.ndim == 2:
            tensors[name], tensors[name + SCALES] = rounded(weight, BITS)
        else:
            tensors[name] = weight
    for name in (*_FILES, *_FILES_OF_HOST):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes((source / name).read_bytes())
    header = {"base": "sentence-transformers/all-MiniLM-L6-v2", "sha256": file_hash(source / WEIGHTS_FILE)}
    save_file(tensors, target / ROUNDED_FILE, metadata={HEADER: to_json(header)})
    # Their writer makes them private.
    (target / ROUNDED_FILE).chmod(0o644)


def _sets_of(name: str) -> dict[str, Sequence[Item]]:
    """Inputs of an evaluator, by name."""
    if name.startswith("assistant"):
        answers = {item.id: item for pair in _pairs() for item in (pair.preferred, pair.other)}
        return {_GOLDEN: golden_items("turn"), _PAIRS: list(answers.values())}
    if EVALUATORS[name][0] in ("sentence_similarity", "embedding_overlap"):
        return {"pu": dstc10.read("pu")}
    if "dialogues" in name:
        return {_GOLDEN: golden_items("dialogue"), "fd": dstc10.read("fd")}
    return {_GOLDEN: golden_items("turn"), **{code: dstc10.read(code) for code in _SETS}}


def _pairs() -> list[AnswerPair]:
    return [*pandalm_pairs()[:N_PAIRS], *oasst_pairs()[:N_PAIRS]]


def scores(name: str, change: Mapping[str, np.ndarray]) -> dict[str, list[float | None]]:
    """Score an evaluator's sets, where its encoder's weights are moved by `change`."""
    scorer_name, options = EVALUATORS[name]
    scorer = load_scorer(scorer_name, **options)
    if isinstance(scorer, EmbeddingOverlap):
        scorer._vectors._matrix += change["embeddings.word_embeddings.weight"]
    else:
        # Whatever the scorer calls it, there is one encoder: it is moved where it is.
        gc.collect()
        (encoder,) = (found for found in gc.get_objects() if isinstance(found, BertModel))
        weights = encoder.state_dict()
        for tensor, moved in change.items():
            weights[tensor].add_(torch.from_numpy(moved))
        del encoder, weights
    found = {of: list(scorer.score(items).values) for of, items in _sets_of(name).items()}
    del scorer
    gc.collect()
    return found


def figures(name: str, values: Mapping[str, Sequence[float | None]]) -> dict[str, float]:
    """Spearman's rho with people's overall rating, or the share of pairs that are in people's order."""
    found = {}
    for of, items in _sets_of(name).items():
        if of == _PAIRS:
            score = dict(zip((item.id for item in items), map(float, values[of]), strict=True))  # type: ignore[arg-type]
            found[of] = fmean(float(score[pair.preferred.id] > score[pair.other.id]) for pair in _pairs())
        elif of != _GOLDEN:
            quality = dstc10.overall_quality(items, dstc10.SETS[of])
            ratings = [mean_rating(item, quality) for item in items]
            # A response that is its own reference has a cosine of 1, in one sum or the other with an error in the last digit.
            rounded_scores = [value if value is None else round(value, 6) for value in values[of]]
            estimate = correlate(rounded_scores, ratings, coefficient="spearman", bootstrap=Bootstrap(0))
            found[of] = float(estimate.value or 0)
    return found


def tables(source: Path, work: Path) -> dict[str, str]:
    """Return the tables of how far scores and figures move, in Markdown, by the names of their places in the document."""
    published = {name: weight for name, weight in read_tensors(source / WEIGHTS_FILE).items() if weight.dtype == np.float32}
    here = encoder_weights(resolve(PACKAGED_ENCODER))
    moved: dict[str, list[str]] = {"rounded encoder, scores": [], "rounded encoder, figures": []}
    for name in EVALUATORS:

        def kept(bits: int | None, name: str = name) -> dict[str, list[float | None]]:
            def compute() -> Any:
                target = published if bits is None else restored(published, bits)
                return scores(name, {tensor: weight - here[tensor] for tensor, weight in target.items()})

            found: dict[str, list[float | None]] = kept_json(work / f"{name}.{bits or 'float32'}.json", compute)
            return found

        before = kept(None)
        n_items = sum(map(len, before.values()))
        changes, shifts = [], []
        for bits in CHOICES:
            after = kept(bits)
            pairs = [pair for of in before for pair in zip(before[of], after[of], strict=True) if None not in pair]
            changes.append(max(abs(one - other) for one, other in pairs))  # type: ignore[operator]
            old, new = figures(name, before), figures(name, after)
            shifts.append(max(abs(new[of] - value) for of, value in old.items()))
        moved["rounded encoder, scores"].append(_row(name, n_items, changes))
        moved["rounded encoder, figures"].append(_row(name, len(figures(name, before)), shifts))
    sizes = [f"{sum(weight.size for weight in published.values()) * bits / 8e6:.0f} MB" for bits in CHOICES]
    head = " | ".join(f"{bits} bits, {size}" for bits, size in zip(CHOICES, sizes, strict=True))
    return {
        place: "\n".join([f"| evaluator | {what} | {head} |", "| --- " + "| ---: " * (1 + len(CHOICES)) + "|", *rows])
        for (place, rows), what in zip(moved.items(), ("scores", "figures"), strict=True)
    }


def _row(name: str, n: int, values: Sequence[float]) -> str:
    return f"| {name} | {n} | " + " | ".join(f"{value:.5f}" for value in values) + " |"


def main() -> None:
    """Run the script."""
    parser = script_parser(__doc__)
    parser.add_argument("--float32", type=Path, required=True, help="folder of the encoder as its authors publish it")
    parser.add_argument("--work", type=Path, help="folder that keeps scores")
    parser.add_argument("--output", type=Path, help="folder that the rounded encoder is written to; nothing is measured then")
    options = parser.parse_args()
    if options.output:
        write_encoder(options.float32, options.output)
    else:
        write_tables(options.document, tables(options.float32, options.work))


if __name__ == "__main__":
    main()
