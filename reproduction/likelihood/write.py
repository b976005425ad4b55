"""A trained language model as evaluator, beside the rows of tables 5.2, 5.4 and 8.2 of Nedelchev's thesis and the length.

Dialogue level: ConvAI1 and ConvAI2 (dialogues of more than two utterances), FED and fed-dial; turn level: FED and the other
sets of DSTC10 Track 5 that are there. DIALEVAL_DATA_DIR names the folder with `convai1`, `convai2`, `fed` and `dstc10`.

    python -m reproduction.likelihood.write --model LM --work FOLDER --document docs/likelihood.md

Scores are kept in the folder, one file a corpus and context: a second call scores only what is missing and writes the tables
again.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Dialogue, Item, Level
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.files import read_text, to_json, write_text
from dialeval_plugin.corpora.items import context_key, mean_rating
from dialeval_plugin.corpora.readers import convai, dstc10, fed
from dialeval_plugin.methods.likelihood.scorer import DialogueLikelihoodScorer
from dialeval_plugin.reports.documents import put_between
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.correlation import correlations

THESIS = json.loads(Path(__file__).with_name("nedelchev_2023.json").read_text(encoding="utf-8"))
EQUATIONS: dict[Level, dict[str, str]] = {
    "dialogue": {
        "sum_of_means": "5.4",
        "mean_of_means": "5.6",
        "max_sum_of_means": "5.11",
        "max_mean_of_means": "5.11, mean over turns",
    },
    "turn": {"mean": "mean over tokens", "max_mean": "mean of maxima", "log_product": "log of the product"},
}
LENGTHS: dict[Level, tuple[str, ...]] = {"dialogue": ("n_turns", "n_tokens"), "turn": ("n_tokens",)}
FEWEST_UTTERANCES = 3

logger = logging.getLogger(__name__)


class Corpus(NamedTuple):
    """Rated items and the quality that stands for overall quality."""

    name: str
    level: Level
    items: Sequence[Item]
    quality: str


def corpora(limit: int | None) -> list[Corpus]:
    """Whatever of the corpora is there; a missing one is logged."""
    found: list[Corpus] = []
    makers: list[Callable[[], Corpus]] = [
        lambda: Corpus("convai1", "dialogue", convai.read_convai1(), "quality"),
        lambda: Corpus("convai2", "dialogue", convai.read_convai2(), "eval_score"),
        lambda: Corpus("fed", "dialogue", [one.whole for one in fed.read()], "Overall"),
        lambda: Corpus("fed", "turn", [response for one in fed.read() for response in one.responses], "Overall"),
        *(lambda code=code: dstc10_corpus(code) for code in dstc10.SETS),
    ]
    for make in makers:
        try:
            corpus = make()
        except MissingPrerequisite as missing:
            logger.warning("%s", missing)
        else:
            rated = [item for item in corpus.items if mean_rating(item, corpus.quality) is not None and is_long(item, corpus)]
            found.append(corpus._replace(items=rated[:limit]))
    return found


def dstc10_corpus(code: str) -> Corpus:
    entry = dstc10.SETS[code]
    items = dstc10.read(code)
    return Corpus(f"dstc10-{code}", entry.level, items, dstc10.overall_quality(items, entry))


def is_long(item: Item, corpus: Corpus) -> bool:
    """The thesis leaves dialogues of ConvAI of two utterances and fewer out."""
    return not (corpus.name.startswith("convai") and isinstance(item, Dialogue) and len(item.turns) < FEWEST_UTTERANCES)


def columns(corpus: Corpus, model: str, context: Any, folder: Path) -> dict[str, list[float | None]]:
    """Every column of the scorer, from the folder where they are there."""
    path = folder / f"{corpus.name}_{corpus.level}_{context}.json"
    scorer = DialogueLikelihoodScorer(model, level=corpus.level, context=context)
    identity = json.loads(to_json([scorer.signature_fields(), [item.id for item in corpus.items]]))
    if path.exists() and (stored := json.loads(path.read_text(encoding="utf-8")))["identity"] == identity:
        found: dict[str, list[float | None]] = stored["columns"]
        return found
    scores = scorer.score(corpus.items, progress=True)
    found = {name: list(values) for name, values in scores.columns.items()}
    write_text(path, to_json({"identity": identity, "columns": found}) + "\n")
    return found


def row(name: str, values: Sequence[float | None], corpus: Corpus, rounds: int) -> str:
    ratings = [mean_rating(item, corpus.quality) for item in corpus.items]
    # Dialogues of ConvAI are independent; several responses of FED and DSTC10 belong to one dialogue.
    clusters = None if corpus.name.startswith("convai") else [context_key(item) for item in corpus.items]
    found = correlations(values, ratings, coefficients=("pearson", "spearman"), clusters=clusters, bootstrap=Bootstrap(rounds))
    cells = [shown(entry.value, entry.ci_low, entry.ci_high) for entry in found.values()]
    return f"| {name} | {' | '.join(cells)} | {found['pearson'].n_scored} of {len(ratings)} |"


def shown(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "undefined"
    return f"{value:.3f}" if low is None or high is None else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def corpus_table(corpus: Corpus, model: str, folder: Path, rounds: int) -> str:
    lines = [
        f"### {corpus.name}, {corpus.level} level, {corpus.quality}, {len(corpus.items)} items\n",
        "| | Pearson | Spearman | scored |",
        "|---|---|---|---|",
    ]
    for context in ("pair", "full"):
        found = columns(corpus, model, context, folder)
        for name, equation in EQUATIONS[corpus.level].items():
            lines.append(row(f"ours ({context}), {equation}", found[name], corpus, rounds))
    lines += [row(f"{name} alone", found[name], corpus, rounds) for name in LENGTHS[corpus.level]]
    for number in ("5_2", "5_4", "8_2"):
        for name, rows in THESIS[f"table_{number}"].items():
            if corpus.name in rows:
                # As many decimals as the table has.
                cells = " | ".join(f"{value:.{4 if number == '8_2' else 3}f}" for value in rows[corpus.name])
                lines.append(f"| thesis, table {number.replace('_', '.')}: {name} | {cells} | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="folder or hub id of a causal language model")
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps the scores")
    parser.add_argument("--document", type=Path, help="Markdown file with the markers; printed without it")
    parser.add_argument("--rounds", type=int, default=1000, help="resamples of the intervals")
    parser.add_argument("--limit", type=int, help="items of each corpus at most, to try the script")
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    options.work.mkdir(parents=True, exist_ok=True)
    parts = [corpus_table(corpus, options.model, options.work, options.rounds) for corpus in corpora(options.limit)]
    text = "\n".join(parts)
    if options.document is None:
        print(text)
    else:
        write_text(options.document, put_between(read_text(options.document), "results", text))


if __name__ == "__main__":
    main()
