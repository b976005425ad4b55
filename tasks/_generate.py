"""Writes the files of tasks and groups below this folder, and the lists of them in the READMEs; a test compares both.

    python tasks/_generate.py

Templates, which hold what several tasks share, and the rest of the READMEs are written by hand. A template is called
`_NAME_yaml`, without a suffix, so that the host does not take it for a task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.hosts.lm_eval.tasks.breakdown import LOWER_IS_BETTER
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS
from dialeval_plugin.methods.judging.dialogue_rating import rating_prompts

HERE = Path(__file__).parent
Files: TypeAlias = dict[str, str]
"""Texts of a folder's tasks and groups, by path without the suffix."""

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
BM25 = {"bm25_c": "context", "bm25_r": "response", "bm25_cr": "context and response"}
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
"""The FED dialogues that are shown by hand, see `fed_dialog/_manual_yaml`."""
SKIPPED = "A set that is not on this machine is left out with a warning, and the mean is taken over the others."
MINI = "The embedded corpus: nothing to download. {} are by construction, not by people."


def task(
    name: str, include: str, method: str, dataset: str, *, alias: str = "", about: str = "", data: str = "", **described: Any
) -> Files:
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


def group(name: str, about: str, tasks: Iterable[str], metric: str, sets: Sequence[str] = ()) -> Files:
    """A group, in whose mean each task counts the same."""
    lines = [f"# {line}" for line in about.splitlines()]
    lines += [f"group: {name}", "task:"]
    if sets:
        # In lm-eval 0.5 the tasks of a group inherit nothing that stands next to them in the group.
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


def dstc10_dialog() -> Files:
    """Yes or no to the DSTC10 prompt, over the development sets."""
    whole, rated = "dstc10_dialog", MINI.format("Ratings")
    eight = "The eight sets of Huynh et al. 2023"
    files = {
        **_set_tasks(whole, "_dstc10_yaml", SET_NAMES),
        **task(f"{whole}_mini", "_judgement_yaml", whole, "mini", about=rated, data="ratings.mini_dataset", quality="fits"),
        **_set_group(whole, f"{eight}, in the order of its tables; each counts the same.\n{SKIPPED}", OF_THE_PAPER),
        **_set_group(f"{whole}_all", f"All 14 sets; each counts the same.\n{SKIPPED}", SET_NAMES, of=whole),
    }
    for name, nearest in BM25.items():
        shown, about = f"{whole}_{name}", f"{eight} with examples nearest by {nearest}.\n{SKIPPED}"
        made = _set_tasks(shown, f"../_{name}_yaml", SET_NAMES) | _set_group(shown, about, OF_THE_PAPER)
        files |= {f"{name}/{file}": text for file, text in made.items()}
    return files


def _set_tasks(whole: str, include: str, codes: Iterable[str], **more: Any) -> Files:
    files: Files = {}
    for code in codes:
        one, alias = dstc10.SETS[code], f"{whole} {SET_NAMES[code]}"
        files |= task(f"{whole}_{code}", include, whole, code, alias=alias, level=one.level, quality=one.overall, **more)
    return files


def _set_group(name: str, about: str, codes: Iterable[str], of: str = "") -> Files:
    codes = tuple(codes)
    return group(name, about, (f"{of or name}_{code}" for code in codes), "spearman", codes)


def fed_dialog() -> Files:
    """A whole number for each quality of FED."""
    how = {
        "": "without examples (or with random ones, --num_fewshot)",
        **{name: f"with the three dialogues nearest by {nearest}" for name, nearest in BM25.items()},
        "manual": "with the same three hand-picked dialogues as examples for every item",
        "random": "with three random dialogues as examples, mean over three seeds",
    }
    files: Files = {}
    for shots, words in how.items():
        whole = f"fed_dialog_{shots}" if shots else "fed_dialog"
        made: Files = {}
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
    return files


def small_model_tasks(method: str) -> Files:
    """A small model and the language model under test, over the turn-level sets."""
    about = f"The turn-level sets of DSTC10 Track 5; each counts the same.\n{SKIPPED}"
    include, rated = f"_{method}_yaml", MINI.format("Ratings")
    mini = task(f"{method}_mini", include, method, "mini", about=rated, quality="fits", variant=method)
    return _set_tasks(method, include, TURN_LEVEL, variant=method) | mini | _set_group(method, about, TURN_LEVEL)


def dailydialog_pp() -> Files:
    """Positive or negative, by choice and by generation."""
    by_hand = "dailydialog_pp_answer_mini"
    files = {by_hand: (HERE / "dailydialog_pp" / f"{by_hand}.yaml").read_text(encoding="utf-8")}
    for method, include in (("dailydialog_pp", "_choice_yaml"), ("dailydialog_pp_generate", "_generate_yaml")):
        for dataset, end, about in (
            ("dailydialog_pp", "", "DailyDialog++ test contexts, five responses of each kind"),
            ("mini", "_mini", MINI.format("Labels")),
        ):
            own = {"alias": "" if end else method, "about": about, "data": f"classification.{dataset}_dataset"}
            files |= task(f"{method}{end}", include, method, dataset, **own, quality="appropriate", kind="classification")
    return files


def convai_opinion() -> Files:
    """How likely the turns of a rated dialogue are."""
    challenges = {
        "convai1": ("quality", "ConvAI 2017", "ConvAI 2017: 2,154 dialogues of more than two utterances"),
        "convai2": (
            "eval_score",
            "ConvAI 2018",
            "ConvAI 2018, the four exports: 2,095 rated dialogues of more than two utterances",
        ),
    }
    files: Files = {}
    for name, (quality, title, about) in challenges.items():
        own = {"alias": f"opinion {title}", "about": about, "quality": quality, "level": "dialogue", "kind": "opinion"}
        files |= task(f"{name}_opinion", "_opinion_yaml", "opinion", name, **own)
    about = "Both challenges; one whose files are not on this machine is left out with a warning."
    return files | group("convai_opinion", about, [f"{name}_opinion" for name in challenges], "spearman", list(challenges))


def dbdc() -> Files:
    """Breakdown, a possible one, or none."""
    systems = {
        "cic": "Conversational Intelligence Challenge",
        "iris": "IRIS",
        "tktk": "TickTock",
        "yi": "YI, a chatbot of the Moscow Institute of Physics and Technology",
    }
    files: Files = {}
    for name, title in systems.items():
        about = f"{title}: 50 dialogues, 500 turns, 30 annotators each"
        own = {"quality": "breakdown", "kind": "breakdown", "lower_is_better": LOWER_IS_BETTER}
        files |= task(f"dbdc_{name}", "_dbdc_yaml", "dbdc", name, about=about, **own)
    about = "The four systems of DBDC3's English evaluation data; each counts the same."
    return files | group("dbdc", about, [f"dbdc_{name}" for name in systems], "f1_b")


def cgdialog_preference() -> Files:
    """Which of two responses people prefer."""
    whole = "cgdialog_preference"
    corpora = {"dream": "DREAM", "esconv": "ESConv", "msc": "MSC"}
    files: Files = {}
    for name, title in corpora.items():
        alias, about = f"{whole} {title}", f"{title}: 100 dialogues, 6 comparisons of 4 responses each"
        own = {"quality": "relevance", "kind": "preference"}
        files |= task(f"{whole}_{name}", "_preference_yaml", whole, name, alias=alias, about=about, **own)
    about = "The human preferences of CausalScore. A corpus whose file is not on this machine is left out with a warning."
    names = [f"{whole}_{name}" for name in corpora]
    return files | group(whole, about, names, KINDS["preference"].main, list(corpora))


def folders() -> dict[str, Files]:
    """The files of each folder."""
    makers = (cgdialog_preference, convai_opinion, dailydialog_pp, dbdc, dstc10_dialog, fed_dialog)
    return {make.__name__: make() for make in makers} | {method: small_model_tasks(method) for method in ("dre", "slide")}


def with_lists(readme: str, files: Files) -> str:
    """A README with the lists of these groups and tasks, each with the first line of its file."""
    lists: dict[str, list[str]] = {"Groups": [], "Tasks": []}
    for name, text in files.items():
        about = text.partition("\n")[0] if text.startswith("#") else ""
        kind = "Groups" if "\ngroup:" in f"\n{text}" else "Tasks"
        lists[kind].append(f"* `{name.rpartition('/')[2]}`" + about.replace("# ", ": ", 1))
    head, end = readme.partition("#### ")[0], "### Options" + readme.partition("### Options")[2]
    parts = ["\n".join([f"#### {kind}", "", *(lines or ["* Not part of a group."]), "", ""]) for kind, lines in lists.items()]
    return "".join([head, *parts, end])


def generated() -> Files:
    """Every file that this script writes, by its path below this folder."""
    files: Files = {}
    for folder, own in folders().items():
        files |= {f"{folder}/{name}.yaml": text for name, text in own.items()}
        path = f"{folder}/README.md"
        files[path] = with_lists((HERE / path).read_text(encoding="utf-8"), own)
    return files


def main() -> None:
    """Write the files, and delete those of tasks and groups that are no longer made."""
    files = generated()
    for path in HERE.rglob("*.yaml"):
        if path.relative_to(HERE).as_posix() not in files:
            path.unlink()
    for name, text in files.items():
        (HERE / name).parent.mkdir(exist_ok=True)
        (HERE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
