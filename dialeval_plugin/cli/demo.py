"""`dialeval demo`: the main job end to end on the embedded corpus, without a network."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dialeval_plugin.leaderboard.task_runs import TaskRun

TASK = "dstc10_dialog_mini"


def demo(output: Annotated[Path, typer.Option(help="Folder for the models and results.")] = Path("demo_output")) -> None:
    """Train the small model on the embedded corpus, score with it, and compare it with a language model through lm-eval.

    Everything is made on the spot: the numbers show that the parts work together, not how well the methods do.
    """
    from dialeval_plugin.hosts.registration import importing

    # Every model here is a folder; without this the hub is asked about each of them, and waited for where there is none.
    os.environ["HF_HUB_OFFLINE"] = "1"
    start = time.monotonic()
    with importing("evaluate"), importing("lm_eval"):
        pass  # an absent host is said before a minute of training
    slm = output / "slm"
    _heading("1. Train the small model (SLM) on the embedded corpus")
    _train_slm(slm)
    _heading('2. evaluate.load("slide")')
    _score(slm)
    _heading(f"3. lm_eval --tasks {TASK}: a tiny language model and the SLM as judges of the same responses")
    from dialeval_plugin.corpora import mini
    from dialeval_plugin.testing.tiny_language_model import train_tiny_language_model

    examples = [(item, item.ratings[mini.QUALITY][0] == 1) for item in mini.read_examples("train")]
    language_model = train_tiny_language_model(examples, output / "language_model")
    judges = {
        "tiny language model": ("hf", f"pretrained={language_model},dtype=float32"),
        "SLM": ("dialogue-metric", f"scorer=slide,variant=slm,slm={slm}"),
    }
    results = {name: _lm_eval(model, arguments, output / "lm_eval") for name, (model, arguments) in judges.items()}
    _heading("Agreement with the labels of the corpus (by construction, not by people), 95 % intervals over contexts")
    typer.echo(comparison(results))
    typer.echo(f"\nmodels and lm-eval's result files: {output.resolve()}")
    typer.echo(f"{time.monotonic() - start:.0f} s")


def _heading(text: str) -> None:
    typer.echo(f"\n== {text}")


def _train_slm(folder: Path) -> None:
    from dialeval_plugin.corpora import mini
    from dialeval_plugin.methods.slide.model import SLM_FOLDER
    from dialeval_plugin.methods.slide.training import SlideTrainingOptions, train

    if SLM_FOLDER.is_finished(folder):
        typer.echo(f"{folder} is trained already; delete it to train anew")
        return
    sets = [*mini.read_response_sets("train"), *mini.read_response_sets("validation")]
    # So few contexts need more passes than a corpus does; and this model is not to become the user's default.
    options = SlideTrainingOptions(n_epochs=10, validation_fraction=0.2)
    record = train(sets, folder, options, progress=True).record
    accuracy, n_contexts = record["validation"]["slm_overall"], record["counts"]["n_validation_contexts"]
    typer.echo(f"validation accuracy: {accuracy:.1f} % on {n_contexts} contexts")


def _score(slm: Path) -> None:
    import evaluate  # as in a user's script; `dialeval enable` does for every script what find_metrics does here

    from dialeval_plugin.corpora import mini
    from dialeval_plugin.hosts.registration import find_metrics

    find_metrics()
    sets = mini.read_response_sets("test")
    kinds = {"fitting": [item.positive for item in sets], "misleading": [item.adversarial for item in sets]}
    slide = evaluate.load("slide", slm=str(slm), variant="slm")
    for kind, responses in kinds.items():
        result = slide.compute(
            predictions=[response for of_context in responses for response in of_context],
            contexts=[list(item.context) for item, of_context in zip(sets, responses, strict=True) for _ in of_context],
        )
        typer.echo(f"mean of {result['n_scored']} {kind} responses: {result['slide']:.3f}")
    typer.echo(result["signature"])


def _lm_eval(model: str, arguments: str, folder: Path) -> TaskRun:
    """Run the host's own command line in this process and return what it wrote."""
    from dialeval_plugin.hosts.lm_eval.cli import main as lm_eval
    from dialeval_plugin.leaderboard.result_files import read_runs

    words = ["run", "--model", model, "--model_args", arguments, "--tasks", TASK, "--output_path", str(folder)]
    known = set(folder.rglob("results_*.json"))
    lm_eval([*words, "--log_samples", "--device", "cpu"])
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
