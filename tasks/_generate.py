"""Writes every task file and README below this folder, which a test compares with what is committed.

    python tasks/_generate.py

A file that holds what several tasks share has no suffix, so that the host does not take it for a task.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.hosts.lm_eval.tasks.breakdown import LOWER_IS_BETTER
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS, TaskKind
from dialeval_plugin.methods.judging.dialogue_rating import rating_prompts

VERSION = "2.0"
HOSTS = "dialeval_plugin.hosts.lm_eval"

SET_NAMES = {
    "tu": "TopicalChat-USR",
    "pu": "PersonaChat-USR",
    "dz": "DailyDialog-Zhao",
    "pz": "PersonaChat-Zhao",
    "dgu": "DailyDialog-Gupta",
    "dgr": "DailyDialog-GRADE",
    "eg": "Empathetic-GRADE",
    "cg": "ConvAI2-GRADE",
    "ft": "FED-Turn",
    "fd": "FED-Dial",
    "d6": "DSTC6",
    "d7": "DSTC7",
    "hu": "HUMOD",
    "ps": "PersonaChat-See",
}
OF_THE_PAPER = ("tu", "dz", "pu", "dgu", "dgr", "ft", "eg", "fd")
"""The eight sets of Huynh et al. 2023, in the order of its tables."""
TURN_LEVEL = tuple(code for code in SET_NAMES if dstc10.SETS[code].level == "turn")
BM25 = {
    "bm25_c": ("Context", "context"),
    "bm25_r": ("Response", "response"),
    "bm25_cr": ("ContextResponse", "context and response"),
}
MANUAL = {
    "turn": {
        "interesting": "006 050 020",
        "engaging": "114 078 020",
        "specific": "002 076 099",
        "relevant": "038 071 034",
        "correct": "114 071 034",
        "semantically_appropriate": "083 071 034",
        "understandable": "090 074 101",
        "fluent": "083 017 034",
        "overall": "114 074 123",
    },
    "dialogue": {
        "coherent": "002 022 034",
        "error_recovery": "101 045 034",
        "consistent": "107 087 101",
        "diverse": "101 050 120",
        "depth": "035 024 083",
        "likeable": "087 063 034",
        "understanding": "074 045 034",
        "flexible": "024 022 049",
        "informative": "051 045 006",
        "inquisitive": "051 022 034",
        "overall": "040 045 083",
    },
}
"""The FED dialogues that are shown by hand, see `_manual_yaml`."""
COLUMNS_NOT_TEMPLATES = "# Names of columns, not templates: braces in a dialogue stay braces."
LABELLED_QUESTION = f"""{COLUMNS_NOT_TEMPLATES}
description: instruction
doc_to_text: question
doc_to_choice: choices
doc_to_target: label
fewshot_config:
  sampler: !function {HOSTS}.samplers.RandomSampler
  doc_to_text: example"""
NO_SUFFIX = "Without the suffix .yaml, so that the host does not take this file for a task."
SKIPPED = "A set that is not on this machine is left out with a warning, and the mean is taken over the others."
MINI = "The embedded corpus: nothing to download. {} are by construction, not by people."


class Folder(NamedTuple):
    """A folder of tasks, with what its README says."""

    name: str
    title: str
    about: str
    homepage: str
    papers: Sequence[str]
    """Their keys in `papers.bib`."""
    options: Mapping[str, str]
    files: dict[str, str]


def metrics(kind: TaskKind) -> str:
    """The metric list of a template: at most four lines of the host's table a task."""
    module = KINDS[kind].record.__module__
    lines = ["metric_list:"]
    for name in KINDS[kind].printed:
        is_deviation = name.endswith("_deviation")
        function = f"{name}_over_seeds" if kind == "rating_over_seeds" and not is_deviation else name
        lines += [
            f"  - metric: {name}",
            f"    aggregation: !function {module}.{function}",
            f"    higher_is_better: {str(not is_deviation).lower()}",
        ]
    return "\n".join(lines)


def template(about: str, keys: str, kind: TaskKind | None = None) -> str:
    """What several tasks share."""
    lines = [*textwrap.wrap(about, 128, initial_indent="# ", subsequent_indent="# "), keys.strip()]
    return "\n".join([*lines, *([metrics(kind)] if kind else []), ""])


def task(
    name: str, include: str, method: str, dataset: str, *, alias: str = "", about: str = "", data: str = "", **described: Any
) -> dict[str, str]:
    """One task: its names, the function that builds its data set, and in its metadata what its result file is to tell of it.

    The direction is that of the main metric.
    """
    usual = {"level": "turn", "quality": None, "kind": "rating", "direction": "higher"}
    told = {"method": method, "dataset": dataset, **usual, **described}
    tags = ("dialogue_evaluation", *(["dialogue_evaluation_mini"] if dataset == "mini" else []))
    lines = [f"# {about}"] if about else []
    lines += [f"include: {include}", f"task: {name}", f"task_alias: {alias or f'{method} {dataset}'}"]
    lines += ["tag:", *(f"  - {tag}" for tag in tags)]
    lines += [f"custom_dataset: !function {HOSTS}.tasks.{data}"] if data else []
    lines += ["metadata:", f"  version: {VERSION}", "  dialeval:"]
    lines += [f"    {key}: {_inline(value)}" for key, value in told.items() if value is not None]
    return {name: "\n".join([*lines, ""])}


def group(name: str, about: str, tasks: Iterable[str], metric: str, sets: Sequence[str] = ()) -> dict[str, str]:
    """A group, in whose mean each task counts the same."""
    lines = [f"# {line}" for line in about.splitlines()]
    lines += [f"group: {name}", "task:"]
    if sets:
        # lm-eval 0.5 hands down to its tasks nothing that stands in a group beside them.
        first = f"&data {{when_absent: skip, group_sets: {_inline(sets)}}}"
        names = tuple(tasks)
        lines += [f"  - task: {one}\n    dataset_kwargs: {first if one == names[0] else '*data'}" for one in names]
    else:
        lines += [f"  - {one}" for one in tasks]
    lines += [
        "aggregate_metric_list:",
        f"  - metric: {metric}",
        "    weight_by_size: false",
        "metadata:",
        f"  version: {VERSION}",
    ]
    return {name: "\n".join([*lines, ""])}


def _inline(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(str, value))}]"
    return str(value)


def dstc10_dialog() -> Folder:
    """Yes or no to the DSTC10 prompt, over the development sets."""
    rated_mini, read_mini = MINI.format("Ratings"), "ratings.mini_dataset"
    files = {
        "_judgement_yaml": template(
            "What all dialogue tasks share: the DSTC10 prompt of Huynh et al. 2023 (Appendix C), answered by Yes or No.\n"
            + NO_SUFFIX,
            f"""
output_type: multiple_choice
test_split: test
fewshot_split: test
{LABELLED_QUESTION}
process_results: !function {HOSTS}.tasks.ratings.process_results
""",
            "rating",
        ),
        "_dstc10_yaml": template(
            "A task over one development set of DSTC10 Track 5; the file that includes this one names the set.",
            f"include: _judgement_yaml\ncustom_dataset: !function {HOSTS}.tasks.ratings.dstc10_dataset",
        ),
        **{
            f"_{name}_yaml": template(
                "The same task with the examples nearest by BM25; the paper shows 4, 8 and 12.",
                _fewshot("_dstc10_yaml", 4, f"samplers.{kind}BM25Sampler"),
            )
            for name, (kind, _) in BM25.items()
        },
        **_set_tasks("dstc10_dialog", "_dstc10_yaml", SET_NAMES),
        **task(
            "dstc10_dialog_mini", "_judgement_yaml", "dstc10_dialog", "mini", about=rated_mini, data=read_mini, quality="fits"
        ),
        **_set_group(
            "dstc10_dialog",
            f"The eight sets of Huynh et al. 2023, in the order of its tables; each counts the same.\n{SKIPPED}",
            OF_THE_PAPER,
        ),
        **_set_group("dstc10_dialog_all", f"All 14 sets; each counts the same.\n{SKIPPED}", SET_NAMES, of="dstc10_dialog"),
    }
    for name, (_, nearest) in BM25.items():
        whole = f"dstc10_dialog_{name}"
        about = f"The eight sets of Huynh et al. 2023 with examples nearest by {nearest}.\n{SKIPPED}"
        made = _set_tasks(whole, f"../_{name}_yaml", SET_NAMES) | _set_group(whole, about, OF_THE_PAPER)
        files |= {f"{name}/{file}": text for file, text in made.items()}
    return Folder(
        "dstc10_dialog",
        "DSTC10 dialogue evaluation by yes and no",
        "A language model is asked whether a response, or a dialogue, is good, and g is the probability of "
        "yes as a share of that of yes and no (Huynh et al. 2023, Appendix C). Its Spearman correlation with "
        "people's ratings is taken over the development sets of DSTC10 Track 5. `bm25_*` shows the nearest "
        "examples of other dialogues.",
        "https://chateval.org/dstc10",
        ("huynh2023understanding", "zhang2021automatic"),
        {
            "rated_quality": "another quality than that which stands for overall quality",
            "literal_log": "`true` reads g off log probabilities, as the paper prints it",
        },
        files,
    )


def _set_tasks(whole: str, include: str, codes: Iterable[str], **more: Any) -> dict[str, str]:
    files: dict[str, str] = {}
    for code in codes:
        one, alias = dstc10.SETS[code], f"{whole} {SET_NAMES[code]}"
        files |= task(f"{whole}_{code}", include, whole, code, alias=alias, level=one.level, quality=one.overall, **more)
    return files


def _set_group(name: str, about: str, codes: Iterable[str], of: str = "") -> dict[str, str]:
    codes = tuple(codes)
    return group(name, about, (f"{of or name}_{code}" for code in codes), "spearman", codes)


def _fewshot(include: str, number: int, sampler: str, more: str = "") -> str:
    return (
        f"include: {include}\nnum_fewshot: {number}\nfewshot_config:\n"
        f"  sampler: !function {HOSTS}.{sampler}\n  doc_to_text: example{more}"
    )


def fed_dialog() -> Folder:
    """A whole number for each quality of FED."""
    # An example shows its rating as "1/2", which is none of the choices.
    spaced = '\n  doc_to_choice: "{{[answer]}}"\n  doc_to_target: 0\n  target_delimiter: " "'
    files = {
        "_rating_yaml": template(
            "What all FED tasks share: the FED prompt of Huynh et al. 2023 (Appendix B), answered by a whole "
            "number of the quality's scale. The metrics are those of the DSTC10 tasks; the file that includes "
            "this one names level and quality.",
            f"""
include: ../dstc10_dialog/_judgement_yaml
custom_dataset: !function {HOSTS}.tasks.fed.fed_dataset
doc_to_target: label
# Each form brings its own space, or none.
target_delimiter: ""
fewshot_config:
  sampler: !function {HOSTS}.samplers.RandomThreadSampler
  doc_to_text: example{spaced}
process_results: !function {HOSTS}.tasks.fed.process_ratings
""",
        ),
        **{
            f"_{name}_yaml": template(
                "The same task with the dialogues nearest by BM25 as examples; the paper shows 3.",
                _fewshot("_rating_yaml", 3, f"samplers.{kind}BM25ThreadSampler", spaced),
            )
            for name, (kind, _) in BM25.items()
        },
        "_manual_yaml": template(
            "The same task with the three dialogues that the file names as examples for every item; they are not "
            "scored. Chosen by their ratings among the dialogues of at most 1000 characters, the shortest where "
            "several are equal. Turn level: the dialogue whose responses differ most, the one with the lowest "
            "mean, the one with the highest; interesting begins with the paper's printed example (fed_006). "
            "Dialogue level: nearest to the middle of the scale, lowest, highest.",
            "include: _rating_yaml\nfewshot_split: examples\nnum_fewshot: 3\nfewshot_config:\n"
            "  sampler: first_n\n  doc_to_text: example" + spaced,
        ),
        "_random_yaml": template(
            "The same task with random dialogues as examples, once for every seed in `seeds`: each item is a "
            "document for every seed. The coefficient is the mean over the runs, with its standard deviation "
            "beside it; the host's own seeds do not count.",
            _fewshot("_rating_yaml", 3, "samplers.SeededThreadSampler", spaced)
            + f"\nprocess_results: !function {HOSTS}.tasks.fed.process_seeded_ratings",
            "rating_over_seeds",
        ),
    }
    shown = "the three dialogues nearest by {}"
    how = {
        "": "without examples (or with random ones, --num_fewshot)",
        **{name: f"with {shown.format(nearest)}" for name, (_, nearest) in BM25.items()},
        "manual": "with the same three hand-picked dialogues as examples for every item",
        "random": "with three random dialogues as examples, mean over three seeds",
    }
    for shots, words in how.items():
        whole = f"fed_dialog_{shots}" if shots else "fed_dialog"
        made: dict[str, str] = {}
        for level, short, number in (("turn", "turn", "nine turn-level"), ("dialogue", "dial", "eleven dialogue-level")):
            qualities = list(rating_prompts(level))  # type: ignore[arg-type]
            for quality in qualities:
                own: dict[str, Any] = {"level": level, "quality": quality, "alias": f"{whole} {level} {quality}"}
                if shots == "manual":
                    own["shown_dialogues"] = [f"fed_{dialogue}" for dialogue in MANUAL[level][quality].split()]
                if shots == "random":
                    own |= {"kind": "rating_over_seeds", "seeds": [1, 2, 3]}
                include = f"../_{shots}_yaml" if shots else "_rating_yaml"
                made |= task(f"{whole}_{short}_{quality}", include, whole, "fed", **own)
            about = f"FED's {number} qualities {words}; each counts the same."
            made |= group(f"{whole}_{short}", about, (f"{whole}_{short}_{quality}" for quality in qualities), "spearman")
        about = f"FED's twenty qualities {words}; each counts the same."
        made |= group(whole, about, (f"{whole}_turn", f"{whole}_dial"), "spearman")
        files |= {f"{shots}/{name}" if shots else name: text for name, text in made.items()}
    return Folder(
        "fed_dialog",
        "FED's twenty qualities by K-top rating",
        "A language model is asked for a whole number on a quality's scale, and the mean of the K likeliest "
        "numbers, weighted by their probabilities, is compared with people's ratings (Huynh et al. 2023, "
        "Appendix B). Examples are none, hand-picked, random (three runs) or the nearest by BM25.",
        "https://github.com/Shikib/fed",
        ("huynh2023understanding", "mehri-eskenazi-2020-unsupervised"),
        {
            "k": "how many ratings count; 3",
            "literal_log": "`true` weights ratings by log probabilities, as the paper prints it",
        },
        files,
    )


def slide() -> Folder:
    """The fusion of a small model and the language model under test."""
    files = {
        "_slide_yaml": template(
            "What all SLIDE tasks share (Zhao et al. 2024): the model under test is asked the prompt of appendix "
            "A.1, and its score is fused with the small model's by equation 9. The small model is named in "
            '--metadata \'{"slm": "FOLDER"}\'; "fusion", "slm_scale" and "clip" are options. ' + NO_SUFFIX,
            f"""
class: !function {HOSTS}.tasks.small_models.PromptTask
custom_dataset: !function {HOSTS}.tasks.small_models.slide_dataset
output_type: generate_until
test_split: test
{COLUMNS_NOT_TEMPLATES}
doc_to_text: prompt
doc_to_target: rating
# The prompt has its own example.
num_fewshot: 0
generation_kwargs:
  until: ["\\n"]
  do_sample: false
  temperature: 0.0
  max_gen_toks: 32
process_results: !function {HOSTS}.tasks.small_models.slide_results
""",
            "rating",
        ),
        **_small_model_tasks("slide"),
    }
    return Folder(
        "slide",
        "SLIDE: a small and a large language model together",
        "A small model judges each response first; the language model under test is asked for a score, and "
        "both are fused. The variants `slm` and `llm` (each alone) are in the logged samples: `dialeval "
        "rescore` and `dialeval leaderboard` show them.",
        "https://arxiv.org/abs/2405.15924",
        ("zhao-etal-2024-slide", "zhang2021automatic"),
        {
            "slm": "folder or hub id of the small model",
            "fusion": "reading of equation 9",
            "slm_scale": "factor of the small model's score",
            "clip": "keep the normalised distance in [0, 1]",
            "rated_quality": "another quality than that which stands for overall quality",
        },
        files,
    )


def dre() -> Folder:
    """The large model reads the small one's findings."""
    files = {
        "_dre_yaml": template(
            "What all DRE tasks share (Zhao et al. 2025): the small model's findings are in the interior prompt; "
            "the plain prompt is asked as well, for the ablations. The small model is named in --metadata "
            '\'{"slm": "FOLDER"}\'; "eq26", "clamp" and "clip" are options. ' + NO_SUFFIX,
            f"""
class: !function {HOSTS}.tasks.small_models.DreTask
custom_dataset: !function {HOSTS}.tasks.small_models.dre_dataset
output_type: generate_until
test_split: test
{COLUMNS_NOT_TEMPLATES}
doc_to_text: prompt
doc_to_target: rating
# The prompts are the papers' own and take no examples.
num_fewshot: 0
generation_kwargs:
  until: []
  do_sample: false
  temperature: 0.0
process_results: !function {HOSTS}.tasks.small_models.dre_results
""",
            "rating",
        ),
        **_small_model_tasks("dre"),
    }
    return Folder(
        "dre",
        "DRE: dual refinement by a small model",
        "The small model's findings stand in the prompt (interior refinement), and the language model's "
        "scores are refined by them (exterior refinement). The ablations `in_dre`, `ex_dre` and `non_dre` are "
        "in the logged samples: `dialeval rescore` and `dialeval leaderboard` show them.",
        "https://arxiv.org/abs/2506.04516",
        ("zhao-etal-2025-dre", "zhang2021automatic"),
        {
            "slm": "folder or hub id of the small model",
            "eq26": "refine as equation 26 is printed",
            "clamp": "range that the refined score is kept in",
            "clip": "keep the normalised distance in [0, 1]",
            "rated_quality": "another quality than that which stands for overall quality",
        },
        files,
    )


def _small_model_tasks(method: str) -> dict[str, str]:
    about = f"The turn-level sets of DSTC10 Track 5; each counts the same.\n{SKIPPED}"
    include, rated = f"_{method}_yaml", MINI.format("Ratings")
    mini = task(f"{method}_mini", include, method, "mini", about=rated, quality="fits", variant=method)
    tasks = _set_tasks(method, include, TURN_LEVEL, variant=method)
    return tasks | mini | _set_group(method, about, TURN_LEVEL)


def dailydialog_pp() -> Folder:
    """Positive or negative, by choice and by generation."""
    files = {
        "_classification_yaml": template(
            "What the four tasks share: SLIDE's classification prompt (Zhao et al. 2024, appendix A.3) with its "
            "five printed examples. Overall accuracy is the mean of those on positive and adversarial responses, "
            "as in the paper's Table 1. An answer that cannot be read is unscored: in no accuracy, and counted. " + NO_SUFFIX,
            f"""
test_split: test
# The examples are the printed ones, not this split's; it is named because the host tells a sampler the tested document, whose
# own dialogue must not be shown, only where both splits are one.
fewshot_split: test
num_fewshot: 5
{COLUMNS_NOT_TEMPLATES}
description: instruction
doc_to_text: question
fewshot_config:
  sampler: !function {HOSTS}.samplers.PrintedExamples
  doc_to_text: example
""",
            "classification",
        ),
        "_choice_yaml": template(
            "By the likelier label.",
            "include: _classification_yaml\noutput_type: multiple_choice\ndoc_to_choice: choices\ndoc_to_target: label\n"
            f"process_results: !function {HOSTS}.tasks.classification.process_choice",
        ),
        "_generate_yaml": template(
            "By what the model writes.",
            f"""
include: _classification_yaml
class: !function {HOSTS}.tasks.small_models.PromptTask
output_type: generate_until
doc_to_target: answer
generation_kwargs:
  until: ["\\n\\n", "\\nContext:", "\\nExample"]
  max_gen_toks: 16
  do_sample: false
  temperature: 0.0
process_results: !function {HOSTS}.tasks.classification.process_generation
""",
        ),
    }
    files["dailydialog_pp_answer_mini"] = template(
        "The model under test answers the contexts of the embedded corpus, and `general` scores that. Needs lm-eval 0.5.",
        f"""
task: dailydialog_pp_answer_mini
task_alias: dailydialog_pp_answer mini
output_type: generate_until
test_split: test
custom_dataset: !function {HOSTS}.tasks.answers.mini_dataset
doc_to_text: prompt
generation_kwargs:
  until: ["\\n"]
  max_gen_toks: 64
  do_sample: false
  temperature: 0.0
scorer:
  type: dialeval
  kwargs:
    method: general
    contexts: history
metadata:
  version: {VERSION}
""",
    )
    for method, include in (("dailydialog_pp", "_choice_yaml"), ("dailydialog_pp_generate", "_generate_yaml")):
        for dataset, end, about in (
            ("dailydialog_pp", "", "DailyDialog++ test contexts, five responses of each kind"),
            ("mini", "_mini", MINI.format("Labels")),
        ):
            own = {"alias": "" if end else method, "about": about, "data": f"classification.{dataset}_dataset"}
            files |= task(f"{method}{end}", include, method, dataset, **own, quality="appropriate", kind="classification")
    return Folder(
        "dailydialog_pp",
        "DailyDialog++: positive or negative",
        "Is a response a good answer to its context? Adversarial responses share words with the context, "
        "random ones are of other contexts. The prompt and its five examples are SLIDE's (appendix A.3). The "
        "accuracies by kind of response are in the logged samples: `dialeval rescore` and `dialeval "
        "leaderboard` show them.",
        "https://iitmnlp.github.io/DailyDialog-plusplus/",
        ("zhao-etal-2024-slide", "sai-etal-2020-improving"),
        {},
        files,
    )


def convai_opinion() -> Folder:
    """How likely the turns of a rated dialogue are."""
    files = {
        "_opinion_yaml": template(
            "EDiSON (Nedelchev 2022, chapter 8): how likely the model under test finds the turns of dialogues "
            "that people rated as a whole. A document is one turn; the file that includes this one names the "
            'challenge. --metadata \'{"context": "pair"}\' shows the turn before it only.',
            f"""
output_type: loglikelihood
test_split: test
custom_dataset: !function {HOSTS}.tasks.opinions.opinion_dataset
# Functions, not templates: braces in a dialogue stay braces.
doc_to_text: !function {HOSTS}.tasks.opinions.prompt
doc_to_target: !function {HOSTS}.tasks.opinions.continuation
process_results: !function {HOSTS}.tasks.opinions.process_opinion
""",
            "opinion",
        ),
    }
    challenges = {
        "convai1": ("quality", "ConvAI 2017", "ConvAI 2017: 2,154 dialogues of more than two utterances"),
        "convai2": (
            "eval_score",
            "ConvAI 2018",
            "ConvAI 2018, the four exports: 2,095 rated dialogues of more than two utterances",
        ),
    }
    for name, (quality, title, about) in challenges.items():
        own = {"alias": f"opinion {title}", "about": about, "quality": quality, "level": "dialogue", "kind": "opinion"}
        files |= task(f"{name}_opinion", "_opinion_yaml", "opinion", name, **own)
    about = "Both challenges; one whose files are not on this machine is left out with a warning."
    files |= group("convai_opinion", about, [f"{name}_opinion" for name in challenges], "spearman", list(challenges))
    return Folder(
        "convai_opinion",
        "EDiSON: a model's opinion of dialogues with people",
        "The log probability that a language model gives the turns of a dialogue, as a sum of means (equation "
        "5.4), is compared with the dialogue's human score. The variants `mean_of_means`, `product` and the "
        "baseline `length` are computed from the logged samples by `dialeval rescore` and `dialeval "
        "leaderboard`.",
        "http://convai.io",
        ("nedelchev2023automatic",),
        {
            "context": "`full` for all turns before a turn, `pair` for the last one",
            "rated_quality": "another quality than the challenge's score",
            "bot_ratings": "what becomes of ratings that bots gave (ConvAI 2017)",
        },
        files,
    )


def dbdc() -> Folder:
    """Breakdown, a possible one, or none."""
    systems = {
        "cic": "Conversational Intelligence Challenge",
        "iris": "IRIS",
        "tktk": "TickTock",
        "yi": "YI, a chatbot of the Moscow Institute of Physics and Technology",
    }
    files = {
        "_dbdc_yaml": template(
            "A task over the annotated turns of one system of DBDC3, English evaluation data: is the turn a "
            "breakdown (X), a possible one (T) or none (O)? The metrics are the organisers'. The file that "
            'includes this one names the system. --metadata \'{"answers": "words"}\' asks for No, Possibly or Yes, '
            '\'{"annotations": "original"}\' compares with the annotations of the challenge. ' + NO_SUFFIX,
            f"""
output_type: multiple_choice
test_split: test
# Examples come from the development data of the same system.
fewshot_split: dev
custom_dataset: !function {HOSTS}.tasks.breakdown.dbdc_dataset
{LABELLED_QUESTION}
process_results: !function {HOSTS}.tasks.breakdown.process_breakdown
""",
            "breakdown",
        ),
    }
    for name, title in systems.items():
        about = f"{title}: 50 dialogues, 500 turns, 30 annotators each"
        own = {"quality": "breakdown", "kind": "breakdown", "lower_is_better": LOWER_IS_BETTER}
        files |= task(f"dbdc_{name}", "_dbdc_yaml", "dbdc", name, about=about, **own)
    about = "The four systems of DBDC3's English evaluation data; each counts the same."
    files |= group("dbdc", about, [f"dbdc_{name}" for name in systems], "f1_b")
    return Folder(
        "dbdc",
        "DBDC3: dialogue breakdown detection",
        "After which turn of a system does the conversation break down? F1 of the class breakdown is printed; "
        "accuracy, F1 of both kinds of breakdown, divergences and squared errors, and what calling every turn "
        "a breakdown earns, are computed from the logged samples by `dialeval rescore` and `dialeval "
        "leaderboard`.",
        "https://dbd-challenge.github.io/dbdc3/",
        ("higashinaka2017dialogue",),
        {
            "answers": "`letters` (O, T, X) or `words` (No, Possibly, Yes)",
            "annotations": "`revised`, or `original` for those of the challenge",
        },
        files,
    )


def cgdialog_preference() -> Folder:
    """Which of two responses people prefer."""
    whole = "cgdialog_preference"
    corpora = {"dream": "DREAM", "esconv": "ESConv", "msc": "MSC"}
    files = {
        "_preference_yaml": template(
            "A task over the human preferences on one corpus (Feng et al. 2024): the DSTC10 prompt for each "
            "response, and agreement with people who compared the responses in pairs, on five criteria. The file "
            "that includes this one names the corpus.",
            f"""
include: ../dstc10_dialog/_judgement_yaml
custom_dataset: !function {HOSTS}.tasks.preference.preference_dataset
process_results: !function {HOSTS}.tasks.preference.process_preferences
""",
            "preference",
        ),
    }
    for name, title in corpora.items():
        alias, about = f"{whole} {title}", f"{title}: 100 dialogues, 6 comparisons of 4 responses each"
        own = {"quality": "relevance", "kind": "preference"}
        files |= task(f"{whole}_{name}", "_preference_yaml", whole, name, alias=alias, about=about, **own)
    about = "The human preferences of CausalScore. A corpus whose file is not on this machine is left out with a warning."
    names = [f"{whole}_{name}" for name in corpora]
    files |= group(whole, about, names, KINDS["preference"].main, list(corpora))
    return Folder(
        whole,
        "CGDIALOG+: human preferences between responses",
        "A language model judges each response alone by the DSTC10 prompt, and its scores are compared with "
        "the votes of people who compared the responses in pairs. Printed is the voting scheme's Spearman "
        "correlation for relevance; the other criteria, schemes, floors and ceilings are computed from the "
        "logged samples by `dialeval rescore` and `dialeval leaderboard`.",
        "https://github.com/WilliamsToTo/causalscore_dialogue",
        ("feng2024causalscore",),
        {"literal_log": "`true` reads g off log probabilities"},
        files,
    )


FOLDERS = (cgdialog_preference, convai_opinion, dailydialog_pp, dbdc, dre, dstc10_dialog, fed_dialog, slide)
README = """# {title}

Written by `tasks/_generate.py`.

### Paper

{about}

Homepage: {homepage}

### Citation

```bibtex
{citations}
```

### Groups and Tasks

#### Groups

{groups}

#### Tasks

{tasks}

### Options

{options}

### Checklist

For adding novel benchmarks/datasets to the library:
* [x] Is the task an existing benchmark in the literature?
  * [x] Have you referenced the original paper that introduced the task?
  * [x] If yes, does the original paper provide a reference implementation? If so, have you checked against the reference
    implementation and documented how to run such a test? What was checked, and what differs, stands in `docs/` of the package.

If other tasks on this dataset are already supported:
* [x] Is the "Main" variant of this task clearly denoted?
* [x] Have you provided a short sentence in a README on what each new variant adds / evaluates?
* [x] Have you noted which, if any, published evaluation setups are matched by this variant?
"""


def readme(folder: Folder) -> str:
    """The README of a folder, as the host's own tasks have it."""
    about: dict[str, dict[str, str]] = {"group": {}, "task": {}}
    for name, text in folder.files.items():
        first = text.partition("\n")[0]
        if not name.endswith("_yaml"):
            kind = "group" if "\ngroup:" in f"\n{text}" else "task"
            about[kind][name.rpartition("/")[2]] = first.removeprefix("# ") if first.startswith("#") else ""
    groups = [f"* `{name}`: {words}" for name, words in about["group"].items()]
    tasks = [f"* `{name}`: {words}" if words else f"* `{name}`" for name, words in about["task"].items()]
    options = [f"* `{name}`: {words}" for name, words in folder.options.items()]
    if options:
        options = ["Given as `--metadata '{\"NAME\": VALUE}'`:", "", *options]
    return README.format(
        title=folder.title,
        about=textwrap.fill(folder.about, 120),
        homepage=folder.homepage,
        citations="\n".join(map(bibtex, folder.papers)),
        groups="\n".join(groups) or "* Not part of a group.",
        tasks="\n".join(tasks),
        options="\n".join(options) or "None.",
    )


def generated() -> dict[str, str]:
    """Every file below this folder but this script, by its path."""
    files: dict[str, str] = {}
    for make in FOLDERS:
        folder = make()
        for name, text in folder.files.items():
            files[f"{folder.name}/{name}{'' if name.endswith('_yaml') else '.yaml'}"] = text
        files[f"{folder.name}/README.md"] = readme(folder)
    return files


def main() -> None:
    """Write the files, and delete those that are no longer made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent)
    folder: Path = parser.parse_args().folder
    files = generated()
    for path in folder.rglob("*"):
        is_ours = path.suffix in {".yaml", ".md"} or path.name.endswith("_yaml")
        if is_ours and path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
