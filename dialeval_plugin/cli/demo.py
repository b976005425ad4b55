"""`dialeval demo`: the main jobs end to end, as a user types them, on the embedded corpus and without a network."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from dialeval_plugin.terminal import say

from .options import step

TASK = "dstc10_dialog_mini"
LABELS = "the labels of the corpus (by construction, not by people)"
CONTEXT = ("Do you have plans for Sunday?", "Not yet. Why?")
RESPONSES = ("I thought we could have a picnic by the river.", "The train to Leeds was late again.")
NEXT = (
    ("dialeval score YOUR.jsonl --output scores.jsonl", "your own responses"),
    ("dialeval meta-eval scores.jsonl --ratings YOUR_RATINGS.csv", "are the scores right? ask people about some"),
    ("dialeval enable", 'evaluate.load("general") and plain lm_eval know the names'),
    ("dialeval data list", "public rated data, to try evaluators on"),
    ("dialeval demo --train", "how small evaluators are trained on dialogues of your own"),
)
"""Commands to try next, and why."""


def demo(
    context: typer.Context,
    output: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo_output"),
    train: Annotated[bool, typer.Option("--train", help="Train small models first, and use those.")] = False,
    files: Annotated[
        Path | None,
        typer.Option(help="Only write the example files of the documentation into this folder."),
    ] = None,
) -> None:
    """Show the main commands on example data, in about a minute.

    Each step is a command that is printed before it runs. With --train the models are trained on 72 dialogues: those numbers
    show that the parts work together, not how good the methods are.
    """
    if files is not None:
        _write_files(files)
        return
    # Every model here is a folder; without this the hub is asked about each, which takes long without a network.
    os.environ["HF_HUB_OFFLINE"] = "1"
    if not train:
        # Work so small gains nothing by threads, which on a busy machine wait for each other. Read when the hosts import torch.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    start = time.monotonic()
    steps = _Steps(context, output)
    output.mkdir(parents=True, exist_ok=True)
    if train:
        _check_hosts()
        _train(steps)
    else:
        _use(steps)
    typer.echo(f"{time.monotonic() - start:.0f} s")


def _write_files(folder: Path) -> None:
    from dialeval_plugin.core.errors import InputError
    from dialeval_plugin.core.files import write_text
    from dialeval_plugin.corpora import mini

    examples = mini.folder().with_name("examples")
    texts = {path.relative_to(examples): path.read_text("utf-8") for path in examples.rglob("*") if path.is_file()}
    texts[Path("test.json")] = (mini.folder() / "dailydialog_pp.jsonl").read_text("utf-8")
    for name, text in texts.items():
        if (path := folder / name).exists() and path.read_bytes() != text.encode():
            raise InputError(f"{path}: exists already and is another file. Choose another folder.")
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_text(folder / name, text)
    say(f"{len(texts)} files in {folder}: {', '.join(sorted(str(name) for name in texts))}")


def _check_hosts() -> None:
    """Raise MissingPrerequisite where a host is missing."""
    from dialeval_plugin.hosts.registration import importing

    with importing("evaluate"), importing("lm_eval"):
        pass


def _heading(text: str) -> None:
    typer.echo(f"\n== {text}")


class _Steps(NamedTuple):
    """Commands run in this process, and the folder of their results."""

    context: typer.Context
    output: Path

    def run(self, *words: str | Path) -> None:
        """Print a command as it is typed, and run it."""
        arguments = [str(word) for word in words]
        typer.echo(f"$ dialeval {shlex.join(arguments)}")
        # Importing `main` would be a circle.
        command: Any = self.context.find_root().command
        with step():
            code = command.main(args=arguments, prog_name="dialeval", standalone_mode=False)
        if code:
            raise typer.Exit(code=code)


def _use(steps: _Steps) -> None:
    """Show what somebody does who has responses and trains nothing."""
    from dialeval_plugin.core.files import write_json_lines
    from dialeval_plugin.corpora import mini
    from dialeval_plugin.models.folders import is_commercial

    responses, general, slide = (steps.output / f"{name}.jsonl" for name in ("responses", "general", "slide"))
    _heading("1. Score a file of responses: a line each, with its context")
    write_json_lines(
        responses,
        (
            {"id": one.id, "context": [turn.text for turn in one.context], "response": one.response.text}
            for one in mini.read_examples("test")
        ),
    )
    steps.run("score", responses, "--output", general, "--overwrite")
    # No model of the method slide is open.
    only_open = is_commercial()
    if not only_open:
        steps.run("score", responses, "--scorer", "slide", "--variant", "slm", "--output", slide, "--overwrite")
    _heading(f"2. How far the scores agree with {LABELS}")
    steps.run("meta-eval", general, *([] if only_open else [slide]), "--ratings", mini.CORPUS.name, "--coefficient", "spearman")
    _check_hosts()
    _heading('3. In Python: evaluate.load("general")')
    _compute()
    _heading("4. The same evaluators as models of lm-eval")
    results = steps.output / "lm_eval"
    for scorer in ("general", *([] if only_open else ["slide,variant=slm"]), "response_length"):
        steps.run("lm-eval", *_lm_eval_words("dialogue-metric", f"scorer={scorer}", results))
    _heading("5. A leaderboard of them")
    steps.run("leaderboard", "build", results, "--output", steps.output / "board")
    _heading("What to type next")
    for words, what in NEXT:
        typer.echo(f"  {words:62} {what}")
    typer.echo(f"\nscores, lm-eval's result files and board/index.html: {steps.output.resolve()}")


def _compute() -> None:
    """Score two responses to one context as a script does."""
    import evaluate  # `dialeval enable` does for every script what find_metrics does here

    from dialeval_plugin.hosts.registration import find_metrics

    find_metrics()
    typer.echo(
        f'>>> general = evaluate.load("general")\n>>> predictions = {list(RESPONSES)}\n>>> contexts = {[list(CONTEXT)] * 2}'
    )
    general = evaluate.load("general")
    typer.echo('>>> general.compute(predictions=predictions, contexts=contexts)["scores"]')
    scores = general.compute(predictions=list(RESPONSES), contexts=[list(CONTEXT)] * 2)["scores"]
    typer.echo([round(score, 3) for score in scores])


def _train(steps: _Steps) -> None:
    """Show what somebody does who trains on dialogues of their own."""
    from dialeval_plugin.core.files import read_json_lines, write_json_lines
    from dialeval_plugin.corpora import mini
    from dialeval_plugin.methods.slide.judging import SLM_FOLDER
    from dialeval_plugin.testing.tiny_language_model import train_tiny_language_model

    slm, results = steps.output / "slm", steps.output / "lm_eval"
    data = {name: steps.output / f"{name}.json" for name in ("train", "test")}
    rows = [line.value for line in read_json_lines(mini.folder() / "dailydialog_pp.jsonl")]
    for name, path in data.items():
        write_json_lines(path, (row for row in rows if (row["split"] == "test") == (name == "test")))
    _heading("1. Train the small model (SLM) on the embedded corpus")
    if SLM_FOLDER.is_finished(slm):
        typer.echo(f"{slm} is trained already; delete it to train again")
    else:
        # So few contexts need more epochs than a corpus does.
        steps.run("train", "slm", "--data", data["train"], "--output", slm, "--epochs", "10", "--validation-fraction", "0.2")
    _heading("2. How well it tells fitting from misleading responses")
    steps.run("accuracy", data["test"], "--slm", slm)
    _heading(f"3. lm-eval's task {TASK}: a tiny language model and the SLM as judges of the same responses")
    examples = [(item, item.ratings[mini.QUALITY][0] == 1) for item in mini.read_examples("train")]
    language_model = train_tiny_language_model(examples, steps.output / "language_model")
    for model, arguments in (
        ("hf", f"pretrained={language_model},dtype=float32"),
        ("dialogue-metric", f"scorer=slide,variant=slm,slm={slm}"),
    ):
        steps.run("lm-eval", *_lm_eval_words(model, arguments, results))
    _heading(f"Agreement with {LABELS}")
    steps.run("rescore", results)
    typer.echo(f"\nmodels and lm-eval's result files: {steps.output.resolve()}")
    typer.echo(f"Use the model on your own file: dialeval score YOUR.jsonl --scorer slide --slm {slm} --variant slm")


def _lm_eval_words(model: str, arguments: str, folder: Path) -> list[str]:
    words = ["run", "--model", model, "--model_args", arguments, "--tasks", TASK, "--output_path", str(folder)]
    return [*words, "--log_samples", "--device", "cpu"]
