"""Commands, scorers and metrics of an installed dialeval-plugin, without the developers' packages.

    python tests/smoke.py   # after pip install dialeval-plugin

Every scorer and every metric gives a score with a tiny model, and with no model named a score or the one line that says what
is missing; every command shows its help, and real runs end as they should. `make installed` calls this with the wheel. It
needs no pytest. Python puts this folder on the path and not the checkout, so the package is the one that is installed.
With `--forked` commands but the first are forked from one process, which imports torch and the hosts once; a metric,
a command that scores and the help start from nothing all the same.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

DEVELOPERS = ("pytest", "hypothesis", "mypy", "bert_score", "matplotlib")
"""Packages of extras, which are not installed here: next to them the checks would prove nothing."""

NO_MODEL = {
    "bartscore": "facebook/bart-large-cnn: is no folder here",
    "bertscore": "scorer 'bertscore' needs bert_score, which cannot be imported",
    "cascade": "cascade: asks a large language model where the small one is unsure, and no llm is given.",
    "dialogue_rating": "dialogue_rating: asks a large language model, and no llm is given.",
    "dialogue_reconstruction": "dialogue_reconstruction: no model is named.",
    "dre": "dre: asks a large language model, and no llm is given.",
    "g_eval": "g_eval: asks a large language model, and no llm is given.",
    "glue_proxy": "glue_proxy: no regression is named.",
    "llm_chiang": "llm_chiang: asks a large language model, and no llm is given.",
    "llm_judge": "llm_judge: asks a large language model, and no llm is given.",
    "meteor": "meteor: nltk's WordNet is not on this machine.",
    "rubric": "rubric: asks a large language model, and no llm is given.",
    "replay_judge": "replay_judge: no judge is named.",
    "unieval": "MingZhong/unieval-dialog: is no folder here",
}
"""Refusals of scorers that are made without options and need one; the others give a score."""

DIALEVAL = str(Path(sys.executable).parent / "dialeval")
"""The command that the installation brings."""
COLD = 15.0
"""Seconds of processor time from the start of a process to the scores of a packaged model, at most."""
GENERAL = """
import dialeval_plugin
context = ["Do you have plans for Sunday?", "Not yet. Why?"]
predictions = ["We could have a picnic by the river.", "By river a we the have could picnic."]
result = dialeval_plugin.load_metric("general").compute(predictions=predictions, contexts=[context, context])
fitting, scrambled = result["scores"]
assert 0 <= scrambled < fitting <= 1, result["scores"]
"""
HELP = """
import contextlib, functools, io, sys, typer.main
from dialeval_plugin.cli.entry import main
typer.main.get_command = functools.cache(typer.main.get_command)  # reads the options of every command
for words in sys.argv[1:]:
    sys.argv = ["dialeval", *words.split(), "--help"]
    try:
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            main()
    except SystemExit as ended:
        assert not ended.code, (words, ended.code)
    print(shown.getvalue().split()[0].lower())
"""
CHAT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where is the station?"},
        {"role": "assistant", "content": "Straight on, then left at the bank."},
        {"role": "user", "content": "Is it far?"},
        {"role": "assistant", "content": "No, five minutes on foot."},
    ]
}
ROWS = [
    {"context": ["Do you like jazz?"], "response": "I do like jazz, a lot.", "references": ["Yes, I like jazz."]},
    {"context": ["Where is the station?", "Hi there."], "response": "Not there.", "references": ["The station is there."]},
]
COMMANDS = (
    *("", "scorers", "demo", "score", "accuracy", "meta-eval", "rescore", "augment", "enable", "disable", "status", "validate"),
    *("tasks-path", "metrics-path", "lm-eval", "data", "data leaks", "data list", "data fetch"),
    *("train", "train language-model", "train breakdown", "train acceptance"),
    *("train assistant", "train mixing", "train proxy", "train reconstruction"),
    *("train general", "train slm", "train independence", "leaderboard", "leaderboard build", "leaderboard export"),
    *("leaderboard space", "leaderboard push"),
    *("plot", "plot disentangling", "plot training", "plot thresholds", "plot distribution", "plot cascade", "plot weights"),
    *("models", "models list", "models show", "models verify", "models percentiles", "models export", "models push"),
    *("models pull", "merge", "launch", "plot forest", "compare", "report", "inspect", "rubric", "bias", "estimate", "label"),
    "certify",
)


def main(all_checks: Callable[[Path], list[tuple[str, Callable[[], object]]]]) -> int:
    """Run every check, print a line for each, and return the exit code."""
    n_failed = n_passed = 0
    with tempfile.TemporaryDirectory(prefix="dialeval-smoke-") as name:
        folder = Path(name)
        isolate(folder)
        rows = [{"id": str(number), **row} for number, row in enumerate([*ROWS, ROWS[0]])]
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        (folder / "rated.csv").write_text("id,score,rating\na,0.1,1\nb,0.5,3\nc,0.6,2\nd,0.9,5\n", encoding="utf-8")
        for what, check in all_checks(folder):
            start = time.monotonic()
            try:
                check()
            except Exception:
                n_failed += 1
                print(f"FAILED {what}\n{traceback.format_exc()}", flush=True)
            else:
                n_passed += 1
                print(f"ok {what} ({time.monotonic() - start:.1f} s)", flush=True)
    print(f"{n_passed} passed, {n_failed} failed")
    return 1 if n_failed else 0


def isolate(folder: Path) -> None:
    """Use neither the user's models, data, answers and settings nor the hub, in this process and those that it starts."""
    for variable in [name for name in os.environ if name.startswith(("DIALEVAL_", "HF_", "PYTHON", "NLTK_"))]:
        del os.environ[variable]
    os.environ |= {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}


def all_checks(folder: Path) -> list[tuple[str, Callable[[], object]]]:
    """Every check with its name."""
    import dialeval_plugin
    from dialeval_plugin.hosts.evaluate.metric import metric_names

    given = options(folder / "models")
    scorers = dialeval_plugin.scorer_names()
    metrics = [name for name in metric_names() if name != "dbdc"]
    contexts = _mini().read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "few.jsonl").write_text("".join(contexts[::3]), encoding="utf-8")
    return [
        ("the installation", partial(installation, DEVELOPERS)),
        *((f"scorer {name}", partial(scorer_without_options, name, NO_MODEL.get(name))) for name in scorers),
        # bert-score is an extra of its own.
        *((f"scorer {name} {given[name]}", partial(scorer, name, given[name])) for name in scorers if name != "bertscore"),
        *((f"metric {name}", partial(metric, name, given[name])) for name in metrics),
        ("metric dbdc", dbdc),
        ("general scores two responses at once", scored_at_once),
        ("dialeval score chat.jsonl", partial(chat_scored, folder)),
        ("dialeval --help, and that of every command", helped),
        *((f"dialeval {' '.join(words)}", partial(ran, folder, code, text, words)) for code, text, words in runs(given)),
    ]


def options(folder: Path) -> Mapping[str, dict[str, Any]]:
    """Options of every scorer that name tiny models, which are made in `folder`."""
    from tiny.breakdown import write_tiny_breakdown_models
    from tiny.classifiers import write_classifier
    from tiny.language_models import write_rating_language_model
    from tiny.likelihood import write_likelihood_model
    from tiny.models import (
        write_tiny_assistant,
        write_tiny_causal_model,
        write_tiny_encoder,
        write_tiny_general,
        write_tiny_slm,
    )
    from tiny.reconstruction import write_tiny_model
    from tiny.seq2seq import write_tiny_bart, write_tiny_t5

    from dialeval_plugin import scorer_names
    from dialeval_plugin.methods.proxy_indicators.tasks import TASKS

    encoder = str(write_tiny_encoder(folder / "encoder"))
    slm = str(write_tiny_slm(folder / "slm"))
    judge, dre_judge = (
        {"llm": "hf", "llm_args": f"pretrained={write_rating_language_model(folder / name, answer)},dtype=float32"}
        for name, answer in (("judge", " 1"), ("dre_judge", " 4\n2. Influence degree: 0.3"))
    )
    classifier = write_classifier(folder / "classifier", TASKS["cola"].labels)
    general, assistant = str(write_tiny_general(folder / "general")), str(write_tiny_assistant(folder / "assistant"))
    given: dict[str, dict[str, Any]] = {
        "assistant": {"model": assistant},
        "auto": {"general": general, "assistant": assistant},
        "bartscore": {"model": str(write_tiny_bart(folder / "bart"))},
        "cascade": {**judge, "small": "general"},
        "causalscore": {"model": str(write_tiny_causal_model(folder / "causal"))},
        "dialogue_breakdown": {"model": str(write_tiny_breakdown_models(folder / "breakdown").lm), "method": "max_probability"},
        "dialogue_likelihood": {"model": str(write_likelihood_model(folder / "likelihood", "gpt2"))},
        "dialogue_rating": judge,
        "dialogue_reconstruction": {"model": str(write_tiny_model(folder / "hred", "hred"))},
        "dre": {**dre_judge, "slm": slm},
        "embedding_overlap": {"encoder": encoder},
        "g_eval": judge,
        "general": {"model": general},
        "glue_proxy": {"variant": "cola", "models": f"cola={classifier}"},
        "llm_chiang": judge,
        "llm_judge": {**judge, "prompt": "dre"},
        "meteor": {"synonyms": False},
        "replay_judge": {"source": "scripted", "verdicts": str(write_verdicts(folder / "verdicts.jsonl"))},
        "rubric": {**judge, "rubric": "How well does it fit?", "scale": "1-5"},
        "sentence_similarity": {"encoder": encoder},
        "slide": {**judge, "slm": slm},
        "unieval": {"model": str(write_tiny_t5(folder / "t5"))},
    }
    return {name: given.get(name, {}) for name in scorer_names()}


def write_verdicts(path: Path) -> Path:
    """Write what a judge said of the rows."""
    from dialeval_plugin import Example
    from dialeval_plugin.corpora.verdicts import ItemKey

    keys = [ItemKey.of(Example.from_texts(row["context"], row["response"])) for row in ROWS]
    said = {"judge": "scripted", "quality": "overall", "scale": [1, 5], "score": 4}
    path.write_text(
        "".join(json.dumps({**said, "level": key.level, "item": key.text}) + "\n" for key in keys), encoding="utf-8"
    )
    return path


def runs(given: Mapping[str, Mapping[str, Any]]) -> list[tuple[int, str, tuple[str, ...]]]:
    """Exit code, a text of the output, and the words of each real run, in an order that makes the files which the next read."""
    mini = str(_mini())
    slm, judge = given["slide"]["slm"], given["slide"]
    llm = ("--llm", judge["llm"], "--llm-args", judge["llm_args"])
    slide = ("--scorer", "slide", "--slm", slm)
    asked = ("score", "rows.jsonl", "--output", "x", *slide, "--llm")
    # For one epoch instead of the ten of `demo --train`, which goes on with the model that it sees.
    trained = ("--output", "trained/slm", "--epochs", "1")
    after_demo: list[tuple[int, str, tuple[str, ...]]] = [
        (0, "What to type next", ("demo",)),
        (0, "Agreement with the labels of the corpus", ("demo", "--train", "--output", "trained")),
        (0, "spearman", ("rescore", "demo_output/lm_eval", "--coefficient", "spearman")),
        (0, "index.html", ("leaderboard", "build", "demo_output/lm_eval", "--output", "board", "--rank-rounds", "0")),
        (0, "space", ("leaderboard", "space", "board", "--output", "space")),
    ]
    return [
        (0, "dialeval 0.", ("--version",)),
        (0, "3 of 3", ("score", "rows.jsonl", "--output", "chrf.jsonl", "--scorer", "chrf")),
        (0, "3 of 3", ("score", "rows.jsonl", "--output", "slide.jsonl", *slide)),
        (0, "3 of 3", ("score", "rows.jsonl", "--output", "judged.jsonl", *slide, *llm)),
        (2, "llm 'local-completions': llm_args lacks model and base_url", (*asked, "local-completions")),
        (3, "Run pip install 'vllm'", (*asked, "vllm", "--llm-args", "pretrained=x")),
        (0, "pearson", ("meta-eval", "rated.csv", "--rating-column", "rating", "--coefficient", "pearson")),
        (0, "", ("train", "slm", "--data", "few.jsonl", *trained)),
        (0, "72 contexts", ("accuracy", mini, "--slm", "trained/slm")),
        (0, "dry run:", ("augment", mini, "--output", "augmented.jsonl", "--dry-run", *llm)),
        (0, "written", ("enable",)),
        (0, "enabled", ("status",)),
        (0, "", ("disable",)),
        (0, "tasks", ("tasks-path",)),
        (0, "metrics", ("metrics-path",)),
        (0, "0 error", ("validate",)),
        (0, "dstc10_dialog", ("lm-eval", "ls", "groups")),
        (0, "dstc10", ("data", "list")),
        (1, "", ("data", "leaks", mini, "--against", mini)),
        (3, "dialeval-plugin[reports]", ("plot", "distribution", mini, "--slm", slm, "--output", "x.png")),
        *after_demo,
    ]


def _mini() -> Path:
    """The embedded corpus, of 72 contexts."""
    import dialeval_plugin

    return Path(dialeval_plugin.__file__).parent / "corpora" / "mini" / "dailydialog_pp.jsonl"


def installation(others: Sequence[str]) -> None:
    """The package is the installed one, and none of the other packages is there."""
    import dialeval_plugin

    here, checkout = Path(dialeval_plugin.__file__).resolve(), Path(__file__).resolve().parent.parent
    assert checkout not in here.parents or Path(sys.prefix).resolve() in here.parents, f"{here} is the checkout's"
    present = [name for name in others if importlib.util.find_spec(name) is not None]
    assert present == [], f"the environment has {present}"


def scorer_without_options(name: str, missing: str | None) -> None:
    """A scorer that needs nothing gives scores; another says in one line what it needs."""
    from dialeval_plugin.core.errors import MissingPrerequisite

    said = None
    try:
        scorer(name, {})
    except MissingPrerequisite as error:
        said = str(error)
    assert (said is None) == (missing is None), said
    assert said is None or (said.startswith(missing or "") and "\n" not in said), said


def scorer(name: str, given: Mapping[str, Any]) -> None:
    """A scorer gives every row a score."""
    from dialeval_plugin import Dialogue, Example, Turn
    from dialeval_plugin.hosts.judges import load_scorer_with_judge

    method = load_scorer_with_judge(name, given)
    if method.level == "dialogue":
        items = [Dialogue(row["response"], tuple(map(Turn, [*row["context"], row["response"]]))) for row in ROWS]
    else:
        items = [Example.from_texts(row["context"], row["response"], references=row["references"]) for row in ROWS]
    scores = method.score(items)
    assert scores.n_scored == len(ROWS), dict(scores.unscored)


def metric(name: str, given: Mapping[str, Any]) -> None:
    """A metric gives every row a score, through `evaluate`."""
    import dialeval_plugin

    columns = {"predictions": "response", "contexts": "context", "references": "references"}
    result = dialeval_plugin.load_metric(name, **given).compute(
        **{column: [row[key] for row in ROWS] for column, key in columns.items()}
    )
    assert result["n_scored"] == len(ROWS), result


def dbdc() -> None:
    """The metric of breakdown detectors gives its numbers."""
    import dialeval_plugin

    result = dialeval_plugin.load_metric("dbdc").compute(
        predictions=[[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], references=[[5, 1, 0], [0, 1, 5]]
    )
    assert result["accuracy"] == 1.0, result


def scored_at_once() -> None:
    """A new process has the packaged model's scores of two responses soon, and the fitting one above the scrambled one."""
    _soon([sys.executable, "-c", GENERAL], None)


def chat_scored(folder: Path) -> None:
    """The command has scores of a chat log's two assistant turns soon, without an option."""
    (folder / "chat.jsonl").write_text(json.dumps(CHAT) + "\n", encoding="utf-8")
    said = _soon([DIALEVAL, "score", "chat.jsonl"], folder)
    assert "2 of 2 scored" in said, said


def _soon(command: list[str], folder: Path | None) -> str:
    before = _of_children()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    seconds = _of_children() - before
    assert done.returncode == 0, done.stderr
    assert seconds < COLD, f"{seconds:.1f} s"
    return done.stdout


def _of_children() -> float:
    """Processor time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def helped() -> None:
    """Every command shows its help: `dialeval` in a process of its own, the others in one, as each takes a second to start."""
    alone = dialeval("--help")
    assert (alone.returncode, alone.stdout.split()[0]) == (0, "Usage:"), alone.stderr
    command = [sys.executable, "-c", HELP, *COMMANDS]
    others = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert (others.returncode, others.stdout.split()) == (0, ["usage:"] * len(COMMANDS)), others.stderr


def ran(folder: Path, code: int, text: str, words: tuple[str, ...]) -> None:
    """The command ends with the exit code, says the text, and shows no traceback."""
    done = dialeval(*words, folder=folder)
    said = done.stdout + done.stderr
    assert done.returncode == code, f"exit code {done.returncode}\n{said}"
    assert text in said, said
    assert "Traceback" not in said, said


def dialeval(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command that the installation brings, forked where `--forked` says that this installation can be."""
    command = [DIALEVAL, *words]
    if "--forked" in sys.argv:
        import forked

        return forked.run(command, cwd=folder or Path.cwd(), env=os.environ, timeout=600)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)


if __name__ == "__main__":
    sys.exit(main(all_checks))
