"""CausalScore and the baselines on the human preferences of Feng et al. 2024, next to the paper's Tables 2, 3 and 7.

DIALEVAL_DATA_DIR names the folder with `cgdialog_plus`. Every metric reads the dialogue before a response; the reference of a
reference-based one is the human's response, as in the paper, so that it gives the human's response itself the highest score.

    python -m reproduction.causalscore.write --work FOLDER --model dream=FOLDER --model msc=FOLDER --model esconv=FOLDER \
        --slm FOLDER --language-model FOLDER --document reproduction/causalscore/results.md

Scores are kept in the work folder, one file a metric and corpus, under the signature of what made them: a second call scores
only what is missing or was made by something else.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.corpora.readers import cgdialog
from dialeval_plugin.corpora.readers.cgdialog import CRITERIA, PreferenceDialogue
from dialeval_plugin.methods.causalscore.model import CAUSAL_FOLDER
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.preferences import PreferenceAgreement
from dialeval_plugin.version import __version__
from reproduction.causalscore import tables
from reproduction.causalscore.tables import Figures, PaperRow, ScoresById
from reproduction.documents import script_parser, write_tables
from reproduction.kept_results import kept_json, kept_scores

CORPORA = ("dream", "msc")
"""Those whose preferences are at hand; a folder that has ESConv's too gives its tables as well."""

RELEVANCE = ("relevance",)
CAUSALSCORE = "CausalScore"
ABLATION = (
    PaperRow(CAUSALSCORE, CAUSALSCORE),
    PaperRow("-p(ci,cj,rt)", "-p(ci,cj,rt)"),
    PaperRow("-p(ci,rt)", "-p(ci,rt)"),
    PaperRow("-self-training", "-self-training"),
    PaperRow("MaxCI", "MaxCI"),
    PaperRow("Preced2", "Preced2"),
)
METRICS = (
    PaperRow("BLEU-4", "BLEU"),
    PaperRow("BLEU-1"),
    PaperRow("ROUGE-L", "ROUGE"),
    PaperRow("METEOR", "METEOR"),
    PaperRow("METEOR without synonyms"),
    PaperRow("BERTScore (MiniLM)", "BERTScore"),
    PaperRow("sentence similarity (MiniLM)"),
    PaperRow("embedding greedy (MiniLM)"),
    PaperRow(None, "BLEURT"),
    PaperRow("perplexity", "PPL"),
    PaperRow("SLM"),
    *(PaperRow(None, name) for name in ("GRADE", "DEAM", "DEnsity", "ChatGPT", "GPT4")),
    PaperRow("response length"),
    PaperRow("random"),
    PaperRow(CAUSALSCORE, CAUSALSCORE),
)
OUT_OF_DOMAIN = tuple(PaperRow(f"CausalScore-{name}", f"CausalScore-{name}") for name in tables.NAMES.values())


@dataclass(frozen=True, slots=True)
class ScoredMetric:
    """A metric: a scorer, its options, and which of its columns is the score."""

    label: str
    scorer: str
    options: Mapping[str, Any] = field(default_factory=dict)
    column: str | None = None
    higher_is_better: Callable[[float], float] = float
    """Turns a value into one that is higher where the response is better."""


def minus_perplexity(geometric_mean: float) -> float:
    return -1 / geometric_mean if geometric_mean else -math.inf


def baselines(slm: str | None, language_model: str | None) -> list[ScoredMetric]:
    encoder = str(resolve(PACKAGED_ENCODER))
    found = [
        ScoredMetric("BLEU-4", "bleu", column="bleu_4"),
        ScoredMetric("BLEU-1", "bleu", column="bleu_1"),
        ScoredMetric("ROUGE-L", "rouge"),
        meteor(),
        # The last layer but one, as the package takes of six-layer encoders (distilbert-base-uncased).
        ScoredMetric("BERTScore (MiniLM)", "bertscore", {"model": encoder, "num_layers": 5}),
        ScoredMetric("sentence similarity (MiniLM)", "sentence_similarity"),
        ScoredMetric("embedding greedy (MiniLM)", "embedding_overlap"),
        ScoredMetric("response length", "response_length"),
        ScoredMetric("random", "random"),
    ]
    if language_model:
        options = {"model": language_model, "level": "turn", "aggregation": "geometric_mean"}
        found.append(ScoredMetric("perplexity", "dialogue_likelihood", options, higher_is_better=minus_perplexity))
    if slm:
        found.append(ScoredMetric("SLM", "slide", {"slm": slm, "variant": "slm"}))
    return found


def meteor() -> ScoredMetric:
    try:
        load_scorer("meteor")
    except MissingPrerequisite:
        return ScoredMetric("METEOR without synonyms", "meteor", {"synonyms": False})
    return ScoredMetric("METEOR", "meteor")


def ablation(options: argparse.Namespace, corpus: str) -> list[ScoredMetric]:
    """CausalScore and its variants with the models that were trained on the corpus; one run gives all columns of a model."""
    found = []
    if model := options.model.get(corpus):
        columns = {CAUSALSCORE: "causalscore", "-p(ci,cj,rt)": "unconditional", "-p(ci,rt)": "conditional", "MaxCI": "max_ci"}
        found += [ScoredMetric(label, "causalscore", {"model": model}, column) for label, column in columns.items()]
    if model := options.without_self_training.get(corpus):
        found.append(ScoredMetric("-self-training", "causalscore", {"model": model}))
    if model := options.preceding_2.get(corpus):
        found.append(ScoredMetric("Preced2", "causalscore", {"model": model, "variant": "preceding_2"}))
    return found


def out_of_domain(models: Mapping[str, str]) -> list[ScoredMetric]:
    return [
        ScoredMetric(f"CausalScore-{name}", "causalscore", {"model": models[corpus]})
        for corpus, name in tables.NAMES.items()
        if corpus in models
    ]


def score(metric: ScoredMetric, corpus: str, dialogues: Sequence[PreferenceDialogue], work: Path) -> ScoresById:
    """The metric's scores, the higher the better."""
    items = [example for dialogue in dialogues for example in dialogue.examples()]
    scores = kept_scores(load_scorer(metric.scorer, **metric.options), items, work, corpus)
    values = scores.values if metric.column is None else scores.columns[metric.column]
    oriented = [None if value is None else metric.higher_is_better(value) for value in values]
    return dict(zip(scores.ids, oriented, strict=True))


def figures_of(
    dialogues: Sequence[PreferenceDialogue], work: Path, scores: ScoresById, criteria: Sequence[str], *, with_human: bool = True
) -> Figures:
    """The metric's agreement, which is kept as scores are: its intervals take longer than most of them."""

    def compute() -> list[list[Any]]:
        found = tables.figures_of(dialogues, scores, criteria, with_human=with_human)
        return [[criterion, name, agreement.to_dict()] for (criterion, name), agreement in found.items()]

    digest = text_hash(repr(dialogues), repr(scores), repr(criteria), repr(with_human), __version__)
    rows = kept_json(work / "agreement" / f"{digest}.json", compute)
    return {
        (criterion, name): PreferenceAgreement(**{**fields, "bootstrap": Bootstrap(**fields["bootstrap"])})
        for criterion, name, fields in rows
    }


def report(options: argparse.Namespace, preferences: Mapping[str, Sequence[PreferenceDialogue]]) -> str:
    """All tables, in Markdown."""
    shared = baselines(options.slm, options.language_model)
    figures: dict[str, dict[str, Figures]] = {}
    without_human: dict[str, dict[str, Figures]] = {}
    exact: dict[str, ScoresById] = {}
    fast: dict[str, ScoresById] = {}
    for corpus, dialogues in preferences.items():
        agreement = partial(figures_of, dialogues, options.work)
        own = [*ablation(options, corpus), *shared]
        scores = {metric.label: score(metric, corpus, dialogues, options.work) for metric in own}
        figures[corpus] = {label: agreement(found, CRITERIA) for label, found in scores.items()}
        without_human[corpus] = {label: agreement(found, RELEVANCE, with_human=False) for label, found in scores.items()}
        for metric in out_of_domain(options.model):
            figures[corpus][metric.label] = agreement(score(metric, corpus, dialogues, options.work), RELEVANCE)
        if CAUSALSCORE in scores:
            exact[corpus] = scores[CAUSALSCORE]
            pruned = ScoredMetric("fast", "causalscore", {"model": options.model[corpus], "conditions": options.conditions})
            fast[corpus] = score(pruned, corpus, dialogues, options.work)
    parts = ["### Ablation (the paper's Tables 2 and 5)"]
    parts += _tables(figures, ABLATION, "ablation", CRITERIA)
    parts += ["### All metrics (Tables 3 and 6)", *_tables(figures, METRICS, "metrics", CRITERIA)]
    parts += ["### Trained on one corpus, scored on another (Table 7)"]
    parts += _tables(figures, OUT_OF_DOMAIN, "out_of_domain", RELEVANCE)
    parts += ["### Without the human's response", tables.without_human_table(without_human, METRICS, "relevance")]
    if exact:
        parts += [
            f"### Fast (conditions={options.conditions}) less exact",
            tables.difference_table({corpus: preferences[corpus] for corpus in exact}, fast, exact, CRITERIA),
        ]
    parts += ["### Circular triads in the preferences", tables.triads_table(preferences)]
    if options.model:
        records = {corpus: CAUSAL_FOLDER.read_settings(Path(folder))["training"] for corpus, folder in options.model.items()}
        parts += ["### Classifiers", tables.training_table({corpus: found for corpus, found in records.items() if found})]
    return "\n\n".join(parts)


def _tables(
    figures: Mapping[str, Mapping[str, Figures]], rows: Sequence[PaperRow], part: str, criteria: Sequence[str]
) -> list[str]:
    labels = {row.label for row in rows}
    return [
        tables.metrics_table({label: value for label, value in found.items() if label in labels}, rows, corpus, criterion, part)
        for criterion in criteria
        for corpus, found in figures.items()
    ]


def available() -> dict[str, list[PreferenceDialogue]]:
    """The preferences at hand, by corpus."""
    found = {}
    for corpus in cgdialog.PREFERENCE_FILES:
        try:
            found[corpus] = cgdialog.read_preferences(corpus)
        except MissingPrerequisite:
            if corpus in CORPORA:
                raise
    return found


def pair(text: str) -> tuple[str, str]:
    corpus, equals, folder = text.partition("=")
    if not equals or corpus not in tables.NAMES:
        raise argparse.ArgumentTypeError(f"{text!r}: expected corpus=FOLDER with one of {', '.join(tables.NAMES)}")
    return corpus, folder


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = script_parser(__doc__, work="the scores")
    for name, what in (
        ("--model", "trained on the corpus"),
        ("--without-self-training", "trained on it with --rounds 0"),
        ("--preceding-2", "trained on it with --labels preceding_2"),
    ):
        parser.add_argument(name, type=pair, action="append", default=[], metavar="CORPUS=FOLDER", help=what)
    parser.add_argument("--slm", help="folder of SLIDE's small model")
    parser.add_argument("--language-model", help="folder of a causal language model, for the perplexity")
    parser.add_argument("--conditions", type=int, default=4, help="conditions of the fast mode")
    options = parser.parse_args(arguments)
    for name in ("model", "without_self_training", "preceding_2"):
        setattr(options, name, dict(getattr(options, name)))
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    write_tables(options.document, {"causalscore tables": report(options, available())})


if __name__ == "__main__":
    main()
