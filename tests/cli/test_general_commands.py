"""`dialeval train general` and `dialeval train mixing`, on small files and a tiny encoder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dialeval_plugin.cli.main import app
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import write_json_lines
from dialeval_plugin.corpora import mini

REPORTED = "dialogue number 7"


@pytest.fixture(autouse=True)
def own_last_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))


def run(*words: object) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


def write_dialogues(path: Path, number: int = 24) -> Path:
    things = ["harbour", "violin", "glacier", "orchid", "kettle", "quarry"]
    write_json_lines(
        path,
        (
            {
                "turns": [
                    f"This is dialogue number {place} about the old {things[place % 6]} we both saw.",
                    f"Indeed, number {place}, the {things[place % 6]} was a lovely sight for everybody there.",
                    "Shall we go and look at it again?",
                    f"Yes, tomorrow at {place} in the morning.",
                ]
            }
            for place in range(number)
        ),
    )
    return path


def write_reported(path: Path) -> Path:
    """A rated set whose context is cut from the corpus' eighth dialogue, spelt otherwise."""
    context = [
        "this is dialogue number 7 about the old violin we both saw",
        "Indeed , number 7 , the violin was a lovely sight for everybody there .",
    ]
    write_json_lines(path, [{"context": context, "response": "No, thanks."}])
    return path


def test_it_trains_keeps_reported_dialogues_out_and_shows_validation(tiny_encoder: Path, tmp_path: Path) -> None:
    corpus, reported = write_dialogues(tmp_path / "talk.jsonl"), write_reported(tmp_path / "rated.jsonl")
    done = run(
        *("train", "general", "--output", tmp_path / "general", "--backbone", tiny_encoder),
        *("--corpus", f"toy={corpus}", "--corpus", f"toy={write_dialogues(tmp_path / 'more.jsonl', 30)}"),
        *("--evaluation", reported, "--validation-fraction", 0.4, "--epochs", 1, "--max-pairs", 30),
        *("--precision", "float32"),
    )
    assert done.exit_code == 0, done.output
    shown = done.stdout.splitlines()
    settings = json.loads((tmp_path / "general" / "general.json").read_text())
    counts = settings["training"]["counts"]
    # Both files have the reported dialogue, and the second has all of the first.
    assert counts["left_out_as_leaks"] == {"toy": 2}
    assert sum((counts["training_dialogues"]["toy"], counts["validation_dialogues"]["toy"])) == 24 + 30 - 2
    assert counts["pairs_per_epoch"] == {"toy": 30}
    assert shown[0] == f"{tmp_path / 'general'}: 1 steps; dialogues and responses by corpus:"
    assert shown[1].split()[:3] == ["toy", str(counts["training_dialogues"]["toy"]), "dialogues"]
    assert shown[1].endswith("30 an epoch, 2 dialogues left out as reported")
    assert [line.split()[0] for line in shown[5:11]] == ["fit", "fluency", "specificity", "knowledge", "cosine", "general"]
    assert shown[11].startswith("coherence of whole dialogues: shuffled_turns ")


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("general",), "Missing option '--corpus'"),
        (("slm",), "Missing option '--data'"),
        (("slm", "--data", "x", "--recipe", "general"), "Invalid value for '--recipe'"),
        (("slm", "--data", "x", "--corpus", "y"), "No such option: --corpus"),
    ],
)
def test_the_two_commands_have_options_of_their_own(words: tuple[str, ...], wrong: str, tmp_path: Path) -> None:
    done = run("train", *words, "--output", tmp_path / "general")
    assert done.exit_code == 2
    assert wrong in done.stderr


def test_mixing_is_fitted_on_rated_sets_and_refuses_to_score_them(tiny_general: Path, tmp_path: Path) -> None:
    examples = mini.read_examples("train")[:60]
    rows = [
        {
            "dialogue_id": example.id,
            "model": example.system,
            "context": "\n".join(turn.text for turn in example.context),
            "response": example.response.text,
            "annotations": {"overall": [example.ratings[mini.QUALITY][0] + 1]},
        }
        for example in examples
    ]
    (tmp_path / "other_eval.json").write_text(json.dumps(rows))
    done = run(
        *("train", "mixing", "--model", tiny_general, "--device", "cpu", "--output", tmp_path / "mixing.json"),
        *("--data", "mini", "--data", f"{tmp_path / 'other_eval.json'}:overall"),
    )
    assert done.exit_code == 0, done.output
    shown = done.stdout.splitlines()
    other = str(tmp_path / "other_eval.json")
    assert shown[0] == f"{tmp_path / 'mixing.json'}: fitted on mini (fits), {other} (overall)"
    assert [line.split()[0] for line in shown[1:]] == ["without", "(nothing)", "mini", other]
    assert set(json.loads((tmp_path / "mixing.json").read_text())["responses"]) == {"mini", other}

    line = {"context": [turn.text for turn in examples[0].context], "response": examples[0].response.text}
    write_json_lines(tmp_path / "in.jsonl", [line])
    score = ["score", tmp_path / "in.jsonl", "--scorer", "general"]
    score += ["--option", f"model={tiny_general}", "--option", f"mixing={tmp_path / 'mixing.json'}"]
    refused = run(*score, "--output", tmp_path / "seen.jsonl")
    assert isinstance(refused.exception, InputError)
    assert f"which is in its set {other!r}" in str(refused.exception)
    assert run(*score, "--output", tmp_path / "unseen.jsonl", "--option", f"leave_out={other}").exit_code == 0


def test_a_quality_that_nobody_rated_is_refused(tiny_general: Path, tmp_path: Path) -> None:
    done = run("train", "mixing", "--model", tiny_general, "--output", tmp_path / "m.json", "--data", "mini:charm")
    assert isinstance(done.exception, InputError)
    assert str(done.exception) == ("--data mini: has no response that is rated in 'charm'. Name another quality or set.")
