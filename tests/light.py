"""Commands of an installed dialeval-core, without torch, a host or any package of an extra.

    python tests/light.py   # after pip install dialeval-core

Every door that the light installation promises, with the bundled models; and doors that need more, each of which says in one
line which extra it needs. `make light` calls this with the wheel. It needs no pytest. `--forked` is that of smoke.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import smoke

ABSENT = (
    *("accelerate", "datasets", "evaluate", "krippendorff", "lm_eval", "matplotlib", "nltk", "openvino", "pandas", "pyarrow"),
    *("rouge_score", "sacrebleu", "sentence_transformers", "sklearn", "tenacity", "torch", "transformers"),
)
"""Not installed: beside these packages the checks would prove nothing."""
MODELS = (
    *(("general", {}), ("general", {"model": "general-open"}), ("assistant", {}), ("assistant", {"model": "assistant-open"})),
    *(("auto", {}), ("slide", {"variant": "slm"}), ("causalscore", {}), ("response_length", {}), ("random", {})),
)
"""Scorers that need nothing else, and their options."""
RESULTS = str(Path(__file__).resolve().parent / "lm_eval_files" / "scorer")
DOORS = (
    ("dialeval 0.", "--version"),
    ("tasks", "tasks-path"),
    ("packaged model general", "scorers"),
    ("DIALEVAL_GENERAL", "models", "list"),
    ("# general", "models", "show", "general"),
    ("14 files", "demo", "--files", "."),
    ("conversations", "inspect", "logs/"),
    ("worst 4 of 4", "score", "chat.jsonl", "--explain"),
    ("scored", "score", "logs/", "--output", "turns.jsonl", "--by-conversation", "conversations.csv"),
    ("scored", "score", "export.csv", "--columns", "conversation=thread_id,speaker=author,text=body", "--scorer", "auto"),
    ("scored", "score", "responses.jsonl", "--output", "to_label.jsonl", "--with-text"),
    ("", "label", "to_label.jsonl", "--next", "2", "--output", "to_do.csv"),
    ("scored", "score", "before.jsonl", "--output", "before_scores.jsonl"),
    ("scored", "score", "after.jsonl", "--output", "after_scores.jsonl"),
    ("is better than", "compare", "before_scores.jsonl", "after_scores.jsonl"),
    ("", "report", "turns.jsonl", "--output", "report.html"),
    ("spearman", "meta-eval", "rated.csv", "--rating-column", "rating", "--coefficient", "spearman"),
    ("mean", "estimate", "--scores", "rated.csv", "--labels", "rated.csv", "--quality", "rating"),
    ("passport.html", "certify", "rated.csv", "--labels", "rated.csv", "--quality", "rating", "--output", "passport.html"),
    ("spearman", "rescore", RESULTS, "--coefficient", "spearman"),
    ("index.html", "leaderboard", "build", RESULTS, "--output", "board", "--rank-rounds", "0"),
)
"""A text of what each says, and its words, in an order that makes the files which the next read."""
LLM = ("--llm", "hf", "--llm-args", "pretrained=gpt2", "--no-answers")
REFUSALS = (
    ("datasets", "score", "saved", "--output", "x.jsonl"),
    ("lm-eval", "lm-eval", "ls", "groups"),
    ("lm-eval", "score", "responses.jsonl", "--scorer", "llm_judge", *LLM),
    ("parquet", "score", "responses.jsonl", "--output", "x.parquet"),
    ("parquet", "score", "rows.parquet"),
    ("reports", "compare", "before_scores.jsonl", "--by", "role", "--plot", "x.png"),
    ("baselines", "score", "responses.jsonl", "--scorer", "chrf"),
    ("torch", "score", "responses.jsonl", "--scorer", "dialogue_likelihood"),
    ("torch", "score", "responses.jsonl", "--option", "backend=torch"),
    ("torch", "models", "export", "general", "exported"),
    ("train", "train", "slm", "--data", "test.json", "--output", "named"),
)
"""The extra that each names, and its words."""


def all_checks(folder: Path) -> list[tuple[str, Callable[[], object]]]:
    """Every check with its name."""
    folder = folder / "files"
    folder.mkdir()
    return [
        ("the installation", partial(smoke.installation, ABSENT)),
        ("names", names),
        *((f"scorer {name} {given}", partial(smoke.scorer, name, given)) for name, given in MODELS),
        *((f"dialeval {' '.join(words)}", partial(smoke.ran, folder, 0, text, words)) for text, *words in DOORS),
        *((f"dialeval {' '.join(words)}", partial(refused, folder, extra, words)) for extra, *words in REFUSALS),
        ("dialeval demo, as far as it goes without a host", partial(smoke.ran, folder, 3, needs("evaluate"), ("demo",))),
        ("frames", frames),
    ]


def names() -> None:
    """Every public name is there but one, which says what it needs."""
    import dialeval_plugin
    from dialeval_plugin.core.errors import MissingPrerequisite

    for name in dialeval_plugin.__all__:
        said = ""
        try:
            getattr(dialeval_plugin, name)
        except MissingPrerequisite as error:
            said = str(error)
        assert said == (says("a metric of evaluate", "evaluate", "evaluate") if name == "load_metric" else ""), said


def frames() -> None:
    """Scores are shown without pandas, and say what a frame needs."""
    import dialeval_plugin
    from dialeval_plugin.core.errors import MissingPrerequisite

    scores = dialeval_plugin.load_scorer("random").score([dialeval_plugin.Example.from_texts(["Hi."], "Hello.")])
    assert scores._repr_html_().startswith("<p>Scores("), scores
    said = ""
    try:
        scores.to_pandas()
    except MissingPrerequisite as error:
        said = str(error)
    assert said == says("to_pandas", "pandas", "pandas"), said


def refused(folder: Path, extra: str, words: list[str]) -> None:
    """The command writes nothing, and says in one line which extra it needs."""
    (folder / "saved").mkdir(exist_ok=True)
    for name in ("rows.parquet", "saved/state.json"):
        (folder / name).write_bytes(b"{}")
    before = sorted(folder.rglob("*"))
    smoke.ran(folder, 3, needs(extra), tuple(words))
    assert sorted(folder.rglob("*")) == before, set(folder.rglob("*")) - set(before)


def needs(extra: str) -> str:
    """Return the command to be typed, at the end of a line."""
    return f"Run `pip install 'dialeval-core[{extra}]'`.\n"


def says(what: str, package: str, extra: str) -> str:
    """The whole message."""
    return f"{what} needs {package}, which cannot be imported (No module named {package!r}). {needs(extra)}".rstrip()


if __name__ == "__main__":
    sys.exit(smoke.main(all_checks))
