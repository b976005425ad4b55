"""`dialeval demo`: the main jobs end to end, as a user types them, on the embedded corpus and without a network."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dialeval_plugin.terminal.progress import say

from .examples import step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dialeval_plugin.leaderboard.task_runs import TaskRun

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
"""What one types, and why."""


def demo(
    context: typer.Context,
    output: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo_output"),
    train: Annotated[bool, typer.Option("--train", help="Train small models on the spot, and use those.")] = False,
    files: Annotated[
        Path | None,
        typer.Option(help="Write the files that the documentation's commands read into this folder, and do nothing else."),
    ] = None,
) -> None:
    """Score responses with the packaged models, compare the scores with labels, and build a leaderboard; in under a minute.

    Each step is a command that is shown before it runs. With --train the models are made on the spot from 72 dialogues: those
    numbers show that the parts work together, not how well the methods do.
    """
    if files is not None:
        _write_files(files)
        return
    # Every model here is a folder; without this the hub is asked about each of them, and waited for where there is none.
    os.environ["HF_HUB_OFFLINE"] = "1"
    if not train:
        # Work so small gains nothing by threads, which on a busy machine wait for each other. Read when the hosts import torch.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    start = time.monotonic()
    if train:
        _check_hosts()
        _train(output)
    else:
        _use(_Steps(context, output))
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
    """Say that a host is absent before what is after this begins; the other steps need none."""
    from dialeval_plugin.hosts.registration import importing

    with importing("evaluate"), importing("lm_eval"):
        pass


def _heading(text: str) -> None:
    typer.echo(f"\n== {text}")


class _Steps(NamedTuple):
    """The command line that runs each step, and the folder of the results."""

    context: typer.Context
    output: Path

    def run(self, *words: str | Path) -> None:
        """Show a command as it is typed, and run it in this process."""
        given = [str(word) for word in words]
        typer.echo(f"$ dialeval {shlex.join(given)}")
        # The command line that this one is of: to import it would be a circle.
        command: Any = self.context.find_root().command
        with step():
            code = command.main(args=given, prog_name="dialeval", standalone_mode=False)
        if code:
            raise typer.Exit(code=code)


def _use(steps: _Steps) -> None:
    """Go the way of somebody who has responses and trains nothing."""
    from dialeval_plugin.core.files import write_json_lines
    from dialeval_plugin.corpora import mini
    from dialeval_plugin.models.manifest import is_commercial

    responses, general, slide = (steps.output / f"{name}.jsonl" for name in ("responses", "general", "slide"))
    _heading("1. Score a file of responses: a line each, with its context")
    steps.output.mkdir(parents=True, exist_ok=True)
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
    typer.echo(
        f'>>> general = evaluate.load("general")\n>>> predictions = {list(RESPONSES)}\n>>> contexts = {[list(CONTEXT)] * 2}'
    )
    general = _evaluate_load("general")
    typer.echo('>>> general.compute(predictions=predictions, contexts=contexts)["scores"]')
    scores = general.compute(predictions=list(RESPONSES), contexts=[list(CONTEXT)] * 2)["scores"]
    typer.echo([round(score, 3) for score in scores])


def _train(output: Path) -> None:
    """Go the way of somebody who trains on dialogues of his own."""
    from dialeval_plugin.corpora import mini
    from dialeval_plugin.testing.tiny_language_model import train_tiny_language_model

    slm = output / "slm"
    _heading("1. Train the small model (SLM) on the embedded corpus")
    _train_slm(slm)
    _heading('2. evaluate.load("slide")')
    _score(slm)
    _heading(f"3. lm_eval --tasks {TASK}: a tiny language model and the SLM as judges of the same responses")
    examples = [(item, item.ratings[mini.QUALITY][0] == 1) for item in mini.read_examples("train")]
    language_model = train_tiny_language_model(examples, output / "language_model")
    judges = {
        "tiny language model": ("hf", f"pretrained={language_model},dtype=float32"),
        "SLM": ("dialogue-metric", f"scorer=slide,variant=slm,slm={slm}"),
    }
    results = {name: _lm_eval(model, arguments, output / "lm_eval") for name, (model, arguments) in judges.items()}
    _heading(f"Agreement with {LABELS}, 95 % intervals over contexts")
    typer.echo(comparison(results))
    typer.echo(f"\nmodels and lm-eval's result files: {output.resolve()}")
    typer.echo(
        f"Give the model to a scorer by its folder: dialeval score YOUR.jsonl --scorer slide --slm {slm} --variant slm ..."
    )


def _train_slm(folder: Path) -> None:
    from dialeval_plugin.corpora import mini
    from dialeval_plugin.methods.slide.judging import SLM_FOLDER
    from dialeval_plugin.methods.slide.training import SlideTrainingOptions, train

    if SLM_FOLDER.is_finished(folder):
        typer.echo(f"{folder} is trained already; delete it to train anew")
        return
    sets = [*mini.read_response_sets("train"), *mini.read_response_sets("validation")]
    # So few contexts need more passes than a corpus does.
    options = SlideTrainingOptions(n_epochs=10, validation_fraction=0.2)
    record = train(sets, folder, options, progress=True).record
    accuracy, n_contexts = record["validation"]["slm_overall"], record["counts"]["n_validation_contexts"]
    typer.echo(f"validation accuracy: {accuracy:.1f} % on {n_contexts} contexts")


def _score(slm: Path) -> None:
    from dialeval_plugin.corpora import mini

    sets = mini.read_response_sets("test")
    kinds = {"fitting": [item.positive for item in sets], "misleading": [item.adversarial for item in sets]}
    slide = _evaluate_load("slide", slm=str(slm), variant="slm")
    for kind, responses in kinds.items():
        result = slide.compute(
            predictions=[response for of_context in responses for response in of_context],
            contexts=[list(item.context) for item, of_context in zip(sets, responses, strict=True) for _ in of_context],
        )
        typer.echo(f"mean of {result['n_scored']} {kind} responses: {result['slide']:.3f}")
    typer.echo(result["signature"])


def _evaluate_load(name: str, **options: Any) -> Any:
    import evaluate  # as in a user's script; `dialeval enable` does for every script what find_metrics does here

    from dialeval_plugin.hosts.registration import find_metrics

    find_metrics()
    return evaluate.load(name, **options)


def _lm_eval_words(model: str, arguments: str, folder: Path) -> list[str]:
    words = ["run", "--model", model, "--model_args", arguments, "--tasks", TASK, "--output_path", str(folder)]
    return [*words, "--log_samples", "--device", "cpu"]


def _lm_eval(model: str, arguments: str, folder: Path) -> TaskRun:
    """Run the host's own command line in this process and return what it wrote."""
    from dialeval_plugin.hosts.lm_eval.cli import main as lm_eval
    from dialeval_plugin.leaderboard.result_files import read_runs

    known = set(folder.rglob("results_*.json"))
    lm_eval(_lm_eval_words(model, arguments, folder))
    (run,) = read_runs(set(folder.rglob("results_*.json")) - known)
    return run


def comparison(runs: Mapping[str, TaskRun]) -> str:
    """Judges by coefficient, each with its interval."""
    from dialeval_plugin.statistics.estimates import interval_text

    lines = [f"{'':22}{'Spearman':>26}{'Pearson':>26}{'Kendall':>26}{'scored':>10}"]
    for name, run in runs.items():
        cells = [
            interval_text(run.metrics[one], run.metrics[f"{one}_ci_low"], run.metrics[f"{one}_ci_high"])
            for one in ("spearman", "pearson", "kendall")
        ]
        scored = f"{run.n_scored}/{run.n_total}"
        lines.append(f"{name:22}{cells[0]:>26}{cells[1]:>26}{cells[2]:>26}{scored:>10}")
    return "\n".join(lines)
