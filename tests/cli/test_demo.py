"""`dialeval demo` goes its steps by the commands that it shows, trains nothing, and ends with what to type next."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import typer

from dialeval_plugin.cli.demo import NEXT
from dialeval_plugin.cli.main import app
from tests.cli.running import names, run, run_installed
from tests.refusals import refusal

STEPS = [
    "score demo_output/responses.jsonl --output demo_output/general.jsonl --overwrite",
    "score demo_output/responses.jsonl --scorer slide --variant slm --output demo_output/slide.jsonl --overwrite",
    "meta-eval demo_output/general.jsonl demo_output/slide.jsonl --ratings mini --coefficient spearman",
    *(
        f"lm-eval run --model dialogue-metric --model_args scorer={scorer} --tasks dstc10_dialog_mini "
        "--output_path demo_output/lm_eval --log_samples --device cpu"
        for scorer in ("general", "slide,variant=slm", "response_length")
    ),
    "leaderboard build demo_output/lm_eval --output demo_output/board",
]


@pytest.mark.long
def test_the_demo_shows_each_command_and_runs_it_and_trains_nothing(tmp_path: Path, tiny_general: Path, tiny_slm: Path) -> None:
    models = {"DIALEVAL_GENERAL": str(tiny_general), "DIALEVAL_SLM": str(tiny_slm)}
    (tmp_path / "demo_output").mkdir()
    (tmp_path / "demo_output" / "general.jsonl").write_text("scores of an earlier demo\n", encoding="utf-8")
    done = run_installed(tmp_path, "demo", **models)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^\$ dialeval (.*)$", done.stdout, re.MULTILINE) == STEPS
    assert re.findall(r"^== (\d)\.", done.stdout, re.MULTILINE) == list("12345")
    assert re.search(r"\[\"scores\"\]\n\[\d\.\d+, \d\.\d+\]\n", done.stdout)
    assert done.stdout.count("180 of 180 scored") == 2
    assert "3 evaluators, 1 columns, 3 cells" in done.stdout
    # What comes next is said once, not by each step.
    assert "next: " not in done.stderr
    told = done.stdout.split("== What to type next\n")[1]
    assert [told.index(words) for words, _ in NEXT] == sorted(told.index(words) for words, _ in NEXT)
    assert re.search(r"^\d+ s$", told.splitlines()[-1])
    output = tmp_path / "demo_output"
    assert set(names(output)) >= {"board", "general.jsonl", "lm_eval", "responses.jsonl", "slide.jsonl"}
    assert (output / "board" / "index.html").is_file()
    assert not list(output.rglob("*.safetensors"))
    rows = [json.loads(line) for line in (output / "responses.jsonl").read_text(encoding="utf-8").splitlines()]
    assert (len(rows), set(rows[0])) == (180, {"id", "context", "response"})


@pytest.mark.parametrize("words", [words for words, _ in NEXT])
def test_what_to_type_next_is_a_command_with_these_options(words: str) -> None:
    first, *rest = shlex.split(words)
    assert first == "dialeval"
    command = typer.main.get_command(app)
    with command.make_context(first, rest) as context:
        name, found, left = command.resolve_command(context, rest)  # type: ignore[attr-defined]
        with found.make_context(name, left, parent=context):
            pass


def test_the_files_of_the_documentation_are_written_and_no_other_file_is_replaced(tmp_path: Path) -> None:
    done = run("demo", "--files", tmp_path / "here")
    written = {path.relative_to(tmp_path / "here").as_posix() for path in (tmp_path / "here").rglob("*") if path.is_file()}
    assert done.exit_code == 0
    assert done.stderr == f"{len(written)} files in {tmp_path / 'here'}: {', '.join(sorted(written))}\n"
    assert {"chat.jsonl", "logs/monday.jsonl", "rated.csv", "test.json"} <= written
    assert run("demo", "--files", tmp_path / "here").exit_code == 0
    (tmp_path / "other" / "logs").mkdir(parents=True)
    (own := tmp_path / "other" / "logs" / "monday.jsonl").write_text("mine\n", encoding="utf-8")
    message = f"{own}: exists already and is another file. Choose another folder."
    assert refusal(run, "demo", "--files", tmp_path / "other") == message
    assert [path for path in (tmp_path / "other").rglob("*") if path.is_file()] == [own]
