"""The tables of results.md about answers of assistants: how often a scorer prefers what people, or a large model, prefer.

Figures have 95 % intervals that resample prompts, trees of answers or conversations. DIALEVAL_DATA_DIR names the folder with
`assistant`. A scorer is a bundled model or a folder. Of sets that the packaged models have learned from in part stand here
the answers that they have not seen (`sources.is_reported`); what a model has learned from whole is marked. `--out-of-fold`
names a file with scores of folds that had left the answer out, JSON: {"scorer": {"id of an answer": score}}. On each set that
has one of them they take the place of the model's own scores, and answers without one are left out.

    python -m reproduction.assistant.write --scorer general --work FOLDER \
        --document reproduction/assistant/results.md --document docs/results.md
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, median
from typing import TypeAlias

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.files import checked, read_json
from dialeval_plugin.core.percentiles import PERCENTILE
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.methods.assistant.scorer import AssistantScorer
from dialeval_plugin.pretrained.catalogue import open_scorer
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from dialeval_plugin.statistics.correlation import correlate
from dialeval_plugin.statistics.estimates import number_text
from dialeval_plugin.statistics.means import mean_interval
from reproduction.assistant.data import (
    CLOSE,
    LONG,
    RATED,
    AnswerPair,
    RatedAnswer,
    alpaca_eval_pairs,
    halie_conversations,
    length_variant_pairs,
    null_model_pairs,
    oasst_pairs,
    pandalm_pairs,
    words_of,
)
from reproduction.assistant.leaks import overlap_table
from reproduction.assistant.sources import is_reported
from reproduction.contrasts.assistant import ALARM, good_answers
from reproduction.documents import estimate, script_parser, write_tables
from reproduction.intervals import percentile_bootstrap
from reproduction.kept_results import kept_scores

LENGTH, COSINE, CHANCE = BASELINES = ("response length", "cosine", "chance")
"""The number of words; of response and last message by the packaged encoder as it is; and numbers drawn at random."""
BUCKETS: Mapping[str, Callable[[AnswerPair], bool]] = {
    "all": lambda pair: True,
    f"within {CLOSE:.0%} of length": lambda pair: pair.is_close,
    f"{LONG} words and more each": lambda pair: pair.is_long,
}
IN_PART = ("halie", "taskmaster")
"""Rated sets of which a half was learned from."""
ALPACA_EVAL = ("AI: ", "GPT-3.5 ")
"""Beginnings of the names of sets that `assistant` has learned from, and `assistant-open` has not."""
OUT_OF_FOLD, LEARNED = " †", " ‡"
"""Marks of figures."""
PEOPLE = ("PandaLM", "OpenAssistant")
"""The sets of pairs that people ordered."""
ABOVE_NULL_MODEL = "GPT-3.5 above NullModel"
QUALITIES = {
    "halie": "overall",
    "taskmaster": "reward",
    **dict.fromkeys(("uss redial", "uss ccpe", "uss mwoz", "uss sgd"), "satisfaction"),
    "begin": "attributable",
    "diasafety val": "safe",
}
"""Rating that the main score is compared with, by set."""
SAFETY, REFUSALS = "diasafety val", ("refusal", "asked_refusal", "insult")
SIDES = {"safe": 1.0, "unsafe": 0.0}
_OUT_OF_FOLD = Path(__file__).with_name("out_of_fold.json")

Values: TypeAlias = Mapping[str, "float | None"]
"""Scores by id."""


def pair_sets() -> dict[str, list[AnswerPair]]:
    """Read the pairs of each row of the table: people's, and what GPT-4 turbo prefers among AlpacaEval's answers.

    Of AlpacaEval one pair of every second instruction is drawn, of any length and of close length, and a fourth of the others.
    """
    return {
        "PandaLM": [pair for pair in pandalm_pairs() if is_reported(pair.cluster)],
        "OpenAssistant": [pair for pair in oasst_pairs() if is_reported(pair.cluster)],
        "AI: AlpacaEval": alpaca_eval_pairs(1)[::2],
        "AI: AlpacaEval, close lengths": alpaca_eval_pairs(1, close=True)[::2],
        "AI: one model, asked for short or long": length_variant_pairs()[::4],
        ABOVE_NULL_MODEL: null_model_pairs()[::4],
    }


@dataclass(frozen=True)
class Evaluator:
    """Sources of the answers' scores, and which of them are from folds that had left the answer out."""

    name: str
    columns_of: Callable[[str, Sequence[Example]], Mapping[str, Values]]
    """Takes the name of a set and its answers; the main score comes first."""
    out_of_fold: Values
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """Probability from which on a column counts as seen; of others `ALARM`."""

    def columns(self, of: str, answers: Sequence[Example]) -> dict[str, Values]:
        """Return the scores of a set by column, the main one first."""
        distinct = list({answer.id: answer for answer in answers}.values())
        found = dict(self.columns_of(of, distinct))
        if self.is_out_of_fold(distinct):
            found[next(iter(found))] = {answer.id: self.out_of_fold.get(answer.id) for answer in distinct}
        return found

    def main(self, of: str, answers: Sequence[Example]) -> Values:
        """Return the main scores of a set."""
        return next(iter(self.columns(of, answers).values()))

    def is_out_of_fold(self, answers: Sequence[Example]) -> bool:
        """Whether the main scores of these answers come from folds."""
        return any(answer.id in self.out_of_fold for answer in answers)

    def mark(self, of: str, answers: Sequence[Example]) -> str:
        """Return what is put behind a figure of a set."""
        if self.is_out_of_fold(answers):
            return OUT_OF_FOLD
        return LEARNED if Path(self.name).name == "assistant" and of.startswith(ALPACA_EVAL) else ""


def trained(name: str, scorer: Scorer, work: Path, out_of_fold: Values) -> Evaluator:
    """Return the evaluator of a model, whose scores are kept in the folder `work`."""

    def columns(of: str, answers: Sequence[Example]) -> dict[str, Values]:
        scores = kept_scores(scorer, answers, work, f"{Path(name).name} {of}".replace(":", ""))
        names = [scores.main, *(column for column in scores.columns if column != scores.main)]
        return {column: dict(zip(scores.ids, scores.columns[column], strict=True)) for column in names}

    return Evaluator(name, columns, out_of_fold, scorer.thresholds if isinstance(scorer, AssistantScorer) else {})


def baselines(work: Path) -> list[Evaluator]:
    """Return what every evaluator has to beat."""
    similarity = load_scorer("sentence_similarity", backend="auto")

    def cosines(of: str, answers: Sequence[Example]) -> dict[str, Values]:
        beside = [replace(answer, references=tuple(turn.text for turn in answer.context[-1:])) for answer in answers]
        scores = kept_scores(similarity, beside, work, f"{COSINE} {of}".replace(":", ""))
        return {COSINE: dict(zip(scores.ids, scores.values, strict=True))}

    return [
        Evaluator(LENGTH, lambda of, answers: {LENGTH: {answer.id: float(words_of(answer)) for answer in answers}}, {}),
        Evaluator(COSINE, cosines, {}),
        Evaluator(
            CHANCE, lambda of, answers: {CHANCE: {answer.id: random.Random(answer.id).random() for answer in answers}}, {}
        ),
    ]


def rated_sets() -> dict[str, list[RatedAnswer]]:
    """Read the rated sets of `QUALITIES`, of those of `IN_PART` what is reported."""
    sets = {name: RATED[name]() for name in QUALITIES}
    return {name: [one for one in of if name not in IN_PART or is_reported(one.cluster)] for name, of in sets.items()}


def preference_table(evaluators: Sequence[Evaluator], sets: Mapping[str, Sequence[AnswerPair]]) -> Table:
    """Return a row a set and a bucket of lengths, and a column an evaluator: in which share it prefers what was preferred.

    The first rows are of all sets of `PEOPLE` together. A tie counts as half, and a pair of which an answer has no score is
    left out.
    """
    rows: list[TableRow] = []
    answers = {name: [one for pair in pairs for one in (pair.preferred, pair.other)] for name, pairs in sets.items()}
    of_sets = {name: {one.name: one.main(name, of) for one in evaluators} for name, of in answers.items()}
    together = {"people, all": [name for name in PEOPLE if name in sets]}
    for title, names in {**together, **{name: [name] for name in sets}}.items():
        pairs = [pair for name in names for pair in sets[name]]
        marks = {one.name: one.mark(title, [answer for name in names for answer in answers[name]]) for one in evaluators}
        scores = {one.name: {id: of for name in names for id, of in of_sets[name][one.name].items()} for one in evaluators}
        for bucket, holds in BUCKETS.items():
            of = [pair for pair in pairs if holds(pair)]
            shares = {
                evaluator: estimate(
                    mean_interval(
                        [_points(values, pair) for pair in of],
                        clusters=[pair.cluster for pair in of],
                        bootstrap=percentile_bootstrap(),
                    )
                )
                for evaluator, values in scores.items()
            }
            if of:
                cells = {evaluator: f"{share}{marks[evaluator]}" for evaluator, share in shares.items()}
                rows.append({"pairs of": title, "which": bucket, "n": len(of), **cells})
    return _table(rows, ("pairs of", "which"), _fold_notes(rows))


def rated_table(evaluators: Sequence[Evaluator], sets: Mapping[str, Sequence[RatedAnswer]]) -> Table:
    """Return a row a rated set and a column an evaluator: Spearman's coefficient of its main score with the rating."""
    rows: list[TableRow] = []
    for name, rated in sets.items():
        answers = [one.answer for one in rated]
        quality, clusters = QUALITIES[name], [one.cluster for one in rated]
        ratings = [answer.ratings[quality][0] for answer in answers]
        row: dict[str, str | int] = {"set": name, "rating": quality, "n": len(rated)}
        for one in evaluators:
            values = one.main(name, answers)
            found = correlate(
                [values[answer.id] for answer in answers],
                ratings,
                coefficient="spearman",
                clusters=clusters,
                bootstrap=percentile_bootstrap(),
            )
            row[one.name] = f"{estimate(found)}{one.mark(name, answers)}"
        rows.append(row)
        if name == "halie":
            rows.append(_reuse_row(evaluators, rated))
    return _table(rows, ("set", "rating"), _fold_notes(rows))


def _reuse_row(evaluators: Sequence[Evaluator], turns: Sequence[RatedAnswer]) -> TableRow:
    """HALIE's whole chats: the mean score of a chat's turns and whether the person would talk to it again."""
    chosen = {turn.cluster for turn in turns}
    reuse = {one.cluster: one.dialogue.ratings["reuse"][0] for one in halie_conversations() if one.cluster in chosen}
    row: dict[str, str | int] = {"set": "halie, chats (mean of the turns)", "rating": "reuse", "n": len(reuse)}
    for one in evaluators:
        of_chat: defaultdict[str, list[float]] = defaultdict(list)
        values = one.main("halie", [turn.answer for turn in turns])
        for turn in turns:
            if (value := values[turn.answer.id]) is not None:
                of_chat[turn.cluster].append(value)
        chats = [chat for chat in reuse if of_chat[chat]]
        found = correlate(
            [mean(of_chat[chat]) for chat in chats],
            [reuse[chat] for chat in chats],
            coefficient="spearman",
            bootstrap=percentile_bootstrap(),
        )
        row[one.name] = estimate(found)
    return row


def safety_table(evaluators: Sequence[Evaluator], rated: Sequence[RatedAnswer]) -> Table:
    """Return a row a column about refusals: in which share of safe and of unsafe responses the model sees it."""
    answers = [one.answer for one in rated]
    sides = {side: [answer for answer in answers if answer.ratings["safe"] == (rating,)] for side, rating in SIDES.items()}
    clusters = {one.answer.id: one.cluster for one in rated}
    rows: list[TableRow] = []
    for one in evaluators:
        columns = one.columns(SAFETY, answers)
        for column in (name for name in REFUSALS if name in columns):
            row: dict[str, str | int] = {"column": f"{one.name}: {column}"}
            threshold = one.thresholds.get(column, ALARM)
            for side, of in sides.items():
                seen = [float((columns[column][answer.id] or 0.0) >= threshold) for answer in of]
                row[f"seen in {len(of)} {side} ones"] = estimate(
                    mean_interval(seen, clusters=[clusters[answer.id] for answer in of], bootstrap=percentile_bootstrap())
                )
            rows.append(row)
    return _table(rows, ("column",), [])


def percentile_table(evaluators: Sequence[Evaluator], good: Sequence[Example]) -> Table:
    """Return a row an evaluator with percentiles: those of good answers of assistants."""
    rows: list[TableRow] = []
    for one in evaluators:
        found = one.columns("good answers", good)
        values = [value for value in found.get(PERCENTILE, {}).values() if value is not None]
        if values:
            rows.append(
                {
                    "evaluator": one.name,
                    "good answers": len(good),
                    "with a percentile": len(values),
                    "mean": number_text(mean(values), 1),
                    "median": number_text(median(values), 1),
                    "below 10": number_text(mean(float(value < 10) for value in values)),
                }
            )
    return _table(rows, ("evaluator",), [])


def _points(values: Values, pair: AnswerPair) -> float | None:
    preferred, other = values[pair.preferred.id], values[pair.other.id]
    if preferred is None or other is None:
        return None
    return 0.5 if preferred == other else float(preferred > other)


def _fold_notes(rows: Sequence[TableRow]) -> list[str]:
    cells = [str(cell) for row in rows for cell in row.values()]
    said = {
        OUT_OF_FOLD: "by models that had left out the answers to these prompts.",
        LEARNED: "the model has learned from these answers: no test of it.",
    }
    return [f"{mark.strip()} {text}" for mark, text in said.items() if any(cell.endswith(mark) for cell in cells)]


def _table(rows: Sequence[TableRow], texts: Sequence[str], notes: Sequence[str]) -> Table:
    names = dict.fromkeys(name for row in rows for name in row)
    return Table(rows, [named_column(name, 0, is_number=name not in texts) for name in names], notes)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = script_parser(__doc__, work="the scores")
    parser.add_argument("--scorer", action="append", required=True, help="bundled model or folder of one; may be repeated")
    parser.add_argument("--out-of-fold", type=Path, help="by default the file next to the script, if it exists")
    options = parser.parse_args(arguments)
    file = options.out_of_fold or (_OUT_OF_FOLD if _OUT_OF_FOLD.exists() else None)
    folds: dict[str, dict[str, float]] = {}
    if file is not None:
        folds = checked(read_json(file), dict[str, dict[str, float]], str(file), advice="Give scores by scorer and id.")
    models = [
        trained(name, open_scorer(name, backend="auto"), options.work, folds.get(Path(name).name, {}))
        for name in options.scorer
    ]
    every = [*models, *baselines(options.work)]
    tables = {
        "preferences": preference_table(every, pair_sets()),
        "rated answers": rated_table(every, rated_sets()),
        "refusals": safety_table(models, RATED[SAFETY]()),
        "good answers": percentile_table(models, [one.answer for one in good_answers()]),
        "overlaps": overlap_table(),
    }
    write_tables(options.document, tables)


if __name__ == "__main__":
    main()
