"""Parts of the score of a whole dialogue: how far its parts agree with ratings of dialogues outside the reported sets.

Figures are Spearman's rho with the rating and its interval, which resamples dialogues. DIALEVAL_DATA_DIR names the folder with
`convai1`, `dstc9`, `ieval` and `reliable_eval`; of each some dialogues are read, evenly spread.

    python -m reproduction.general.dialogues MODEL --document reproduction/general/results.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean

import numpy as np
from scipy.special import expit

from dialeval_plugin.conversations.messages import judged_turns
from dialeval_plugin.core.dialogue import Dialogue, Example, mean_rating, visible_texts
from dialeval_plugin.corpora.readers import convai
from dialeval_plugin.methods.general.judging import ACCEPTANCE, NOVELTY, novelty
from dialeval_plugin.methods.general.mixing import weighted_sum
from dialeval_plugin.methods.general.model import TrainedGeneral
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.reports.tables import Table
from dialeval_plugin.statistics.correlation import correlate
from reproduction.data import data_folder
from reproduction.documents import script_parser, write_tables
from reproduction.fusion.sets import RATING, development_sets
from reproduction.general.development import candidate_table, counts_of
from reproduction.intervals import percentile_bootstrap

FEWEST = 4
"""Visible turns of a dialogue that is read."""
EVERY: Mapping[str, int] = {"convai1": 2, "dstc9": 1, "ieval": 2, "reliable": 8}
"""Of how many dialogues of a set one is read; of DSTC9 `development_sets` has every fifth."""
ScoredRatings = Sequence[tuple[Dialogue, float]]


def rated_dialogues() -> dict[str, ScoredRatings]:
    """Return dialogues with their rating, by the name of the set; ConvAI1's are with a chatbot or between people."""
    first = [(one, mean_rating(one, "quality")) for one in convai.read_convai1()]
    sets: dict[str, list[tuple[Dialogue, float | None]]] = {
        "ConvAI1, with a chatbot": [(one, rating) for one, rating in first if one.system == convai.BOT],
        "ConvAI1, between people": [(one, rating) for one, rating in first if one.system != convai.BOT],
    }
    for name, rated in development_sets(data_folder()).items():
        sets[name] = [(one, mean_rating(one, RATING)) for one in rated.items if isinstance(one, Dialogue)]
    found: dict[str, ScoredRatings] = {}
    for name, pairs in sets.items():
        usable = [(one, rating) for one, rating in pairs if rating is not None and len(visible_texts(one.turns)) >= FEWEST]
        found[name] = usable[:: EVERY.get(name, EVERY["convai1"])]
    return found


def parts(scorer: GeneralScorer, trained: TrainedGeneral, dialogue: Dialogue) -> dict[str, float]:
    """Return what could be the score of a dialogue, or a part of it, by its name in the table."""
    texts = visible_texts(dialogue.turns)
    log_odds = scorer.log_odds([Example.from_texts(texts[:place], texts[place]) for place in range(1, len(texts))])
    new = novelty((texts[:place], texts[place]) for place in range(1, len(texts)))
    of_turns = {name: expit(values) for name, values in log_odds.items()}
    of_turns |= {"general": scorer.main_score(log_odds, new), NOVELTY: new}
    fit = log_odds["fit"]
    uncut = {"mean": fit[None].mean(1), "lowest": fit[None].min(1), "last": fit[None, -1]}
    coherence = float(trained.coherence.probability([fit])[0])
    before = float(expit(weighted_sum(uncut, asdict(trained.coherence)))[0])

    def mean(judged: np.ndarray, *names: str) -> float:
        return fmean(coherence if name == "coherence" else float(of_turns[name][judged].mean()) for name in names)

    everybody, judged = np.ones(len(fit), dtype=bool), judged_turns(dialogue.turns)
    five = ("general", "fluency", "specificity", "coherence", NOVELTY)
    alone = [*five, "relevance", "fit", *(name for name in (ACCEPTANCE,) if name in log_odds)]
    return {
        "turns' scores, and coherence by the lowest fit of all turns": fmean([mean(everybody, "general"), before]),
        "turns' scores, coherence": mean(everybody, "general", "coherence"),
        "turns' scores": mean(everybody, "general"),
        "turns' scores, fluency, specificity, coherence": mean(everybody, *five[:-1]),
        "turns' scores, fluency, specificity, coherence, novelty": mean(everybody, *five),
        "the same five of the assistant's turns": mean(judged, *five),
        **{f"{name} alone, of the assistant's turns": mean(judged, name) for name in alone},
    }


def dialogue_table(model: str, sets: Mapping[str, ScoredRatings], *, rounds: int = 1000, device: str | None = None) -> Table:
    """Return a row a candidate and a column a set, with the mean over the sets in front."""
    scorer, trained = GeneralScorer(model, device=device), TrainedGeneral.load(model, device=device)
    found = {}
    for name, rated in sets.items():
        columns = [parts(scorer, trained, dialogue) for dialogue, _ in rated]
        ratings = [rating for _, rating in rated]
        found[name] = {
            candidate: correlate(
                [row[candidate] for row in columns], ratings, coefficient="spearman", bootstrap=percentile_bootstrap(rounds)
            )
            for candidate in columns[0]
        }
    return candidate_table("score of a dialogue", found, f"Dialogues: {counts_of(sets)}.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = script_parser(__doc__)
    parser.add_argument("model", help="folder of a trained model, or the name of a bundled one")
    parser.add_argument("--rounds", type=int, default=1000, help="of the bootstrap")
    options = parser.parse_args(arguments)
    write_tables(options.document, {"dialogues": dialogue_table(options.model, rated_dialogues(), rounds=options.rounds)})


if __name__ == "__main__":
    main()
