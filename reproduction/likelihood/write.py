"""A trained language model as evaluator, next to the rows of tables 5.2, 5.4 and 8.2 of Nedelchev's thesis and the length.

Dialogue level: ConvAI1 and ConvAI2 (dialogues of more than two utterances), FED and fed-dial; turn level: FED and the other
sets of DSTC10 Track 5 that are there. DIALEVAL_DATA_DIR names the folder with `convai1`, `convai2`, `fed` and `dstc10`.

    python -m reproduction.likelihood.write --model LM --work FOLDER --document reproduction/likelihood/results.md

Scores are kept in the folder, one file a corpus and context: a second call scores only what is missing and writes the tables
again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from dialeval_plugin.core.dialogue import Dialogue, Item, Level, mean_rating
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers import convai, dstc10, fed
from dialeval_plugin.methods.likelihood.scorer import DialogueLikelihoodScorer
from dialeval_plugin.reports.tables import markdown_table
from dialeval_plugin.statistics.correlation import correlations
from reproduction.documents import estimate, published, script_parser, write_tables
from reproduction.intervals import percentile_bootstrap
from reproduction.kept_results import kept_scores

TurnContext: TypeAlias = Literal["pair", "full"]

THESIS = published("likelihood")
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


class RatedCorpus(NamedTuple):
    """Rated items and the quality that stands for overall quality."""

    name: str
    level: Level
    items: Sequence[Item]
    quality: str


def corpora(limit: int | None) -> list[RatedCorpus]:
    """Whatever of the corpora is there; a missing one is logged."""
    found: list[RatedCorpus] = []
    makers: list[Callable[[], RatedCorpus]] = [
        lambda: RatedCorpus("convai1", "dialogue", convai.read_convai1(), "quality"),
        lambda: RatedCorpus("convai2", "dialogue", convai.read_convai2(), "eval_score"),
        lambda: RatedCorpus("fed", "dialogue", [one.whole for one in fed.read()], "Overall"),
        lambda: RatedCorpus("fed", "turn", [response for one in fed.read() for response in one.responses], "Overall"),
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


def dstc10_corpus(code: str) -> RatedCorpus:
    entry = dstc10.SETS[code]
    items = dstc10.read(code)
    return RatedCorpus(f"dstc10-{code}", entry.level, items, dstc10.overall_quality(items, entry))


def is_long(item: Item, corpus: RatedCorpus) -> bool:
    """The thesis leaves dialogues of ConvAI of two utterances and fewer out."""
    return not (corpus.name.startswith("convai") and isinstance(item, Dialogue) and len(item.turns) < FEWEST_UTTERANCES)


def row(name: str, values: Sequence[float | None], corpus: RatedCorpus, rounds: int) -> list[str]:
    ratings = [mean_rating(item, corpus.quality) for item in corpus.items]
    # Dialogues of ConvAI are independent; several responses of FED and DSTC10 belong to one dialogue.
    clusters = None if corpus.name.startswith("convai") else [context_key(item) for item in corpus.items]
    found = correlations(
        values, ratings, coefficients=("pearson", "spearman"), clusters=clusters, bootstrap=percentile_bootstrap(rounds)
    )
    return [name, *map(estimate, found.values()), f"{found['pearson'].n_scored} of {len(ratings)}"]


def corpus_table(corpus: RatedCorpus, model: str, work: Path, rounds: int) -> str:
    rows = []
    contexts: tuple[TurnContext, ...] = ("pair", "full")
    for context in contexts:
        scorer = DialogueLikelihoodScorer(model, level=corpus.level, context=context)
        columns = kept_scores(scorer, corpus.items, work, f"{corpus.name}_{corpus.level}_{context}").columns
        for name, equation in EQUATIONS[corpus.level].items():
            rows.append(row(f"ours ({context}), {equation}", columns[name], corpus, rounds))
    rows += [row(f"{name} alone", columns[name], corpus, rounds) for name in LENGTHS[corpus.level]]
    for number in ("5_2", "5_4", "8_2"):
        for name, figures in THESIS[f"table_{number}"].items():
            if corpus.name in figures:
                # As many decimals as the table has.
                cells = [f"{value:.{4 if number == '8_2' else 3}f}" for value in figures[corpus.name]]
                rows.append([f"thesis, table {number.replace('_', '.')}: {name}", *cells, ""])
    title = f"### {corpus.name}, {corpus.level} level, {corpus.quality}, {len(corpus.items)} items"
    return f"{title}\n\n{markdown_table(['', 'Pearson', 'Spearman', 'scored'], rows)}\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = script_parser(__doc__, work="the scores")
    parser.add_argument("--model", required=True, help="folder or hub id of a causal language model")
    parser.add_argument("--rounds", type=int, default=1000, help="resamples of the intervals")
    parser.add_argument("--limit", type=int, help="items of each corpus at most, to try the script")
    options = parser.parse_args(arguments)
    os.environ["HF_HUB_OFFLINE"] = "1"
    parts = [corpus_table(corpus, options.model, options.work, options.rounds) for corpus in corpora(options.limit)]
    write_tables(options.document, {"results": "\n".join(parts)})


if __name__ == "__main__":
    main()
