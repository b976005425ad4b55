"""`dialeval data leaks`: its table, its examples and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dialeval_plugin.cli.data import app

MEAL = ["Did your meal meet with your approval ?", "Our meal was absolutely perfect !"]
KEYS = ["Where do you keep the spare keys now?", "Under the old flower pot."]


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["leaks", *map(str, arguments)])
    return result.exit_code, result.output


def test_leaks_are_counted_shown_and_exit_with_1(tmp_path: Path) -> None:
    training = write(tmp_path / "train.jsonl", {"turns": MEAL}, {"turns": ["So"]}, {"turns": [*MEAL, *KEYS]}, {"turns": KEYS})
    clean = write(tmp_path / "b.jsonl", {"turns": ["Hi!", "How are you?"]})
    rated = write(
        tmp_path / "r.jsonl",
        *({"id": f"m{number}", "context": MEAL, "response": f"{number}"} for number in range(2)),
        {"id": "k", "context": [KEYS[0].upper()], "response": KEYS[1]},
        {"id": "short", "context": ["Hi!"], "response": "How are you?"},
    )
    other = write(tmp_path / "other.jsonl", {"context": ["Tea?"], "response": "No, I would rather have a cup of coffee."})
    code, output = run(training, clean, "--against", rated, "--against", other, "--show", 1)
    head = f"{'file':{len(str(training))}}"
    assert output == (
        f"reported dialogues in {rated}: 3, too short to be told by context and reference: 2\n"
        f"reported dialogues in {other}: 1, too short to be told by context and reference: 1\n"
        "\n"
        "training dialogues with a reported one in them / reported dialogues found\n"
        f"{head}  dialogues  {rated}  {other}\n"
        f"{training}          4{'3/2':>{len(str(rated)) + 2}}{'0':>{len(str(other)) + 2}}\n"
        f"{clean!s:{len(str(training))}}          1{'0':>{len(str(rated)) + 2}}{'0':>{len(str(other)) + 2}}\n"
        "\n"
        f"{training}: train_00000 has {rated} m0: {MEAL[0]} | {MEAL[1]}\n"
        "3 of 5 training dialogues have a reported dialogue in them\n"
    )
    assert code == 1


def test_no_leak_exits_with_0_and_absent_sets_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    (tmp_path / "dstc10").mkdir()
    row = {"model": "m", "context": "\n".join(MEAL), "response": "Ho.", "annotations": {"overall": [3]}}
    (tmp_path / "dstc10" / "dailydialog-gupta_eval.json").write_text(json.dumps([row]), encoding="utf-8")
    training = write(tmp_path / "train.jsonl", {"turns": ["Hi!", "How are you?"]})
    code, output = run(training, "--against", "dstc10")
    assert code == 0
    assert output == (
        "reported dialogues in dgu: 1\n"
        "not on this machine, so not looked for: tu, pu, dz, pz, dgr, eg, cg, ft, fd, d6, d7, hu, ps\n"
        "\n"
        "training dialogues with a reported one in them / reported dialogues found\n"
        f"{'file':{len(str(training))}}  dialogues      dgu\n"
        f"{training}          1        0\n"
        "\n"
        "0 of 1 training dialogues have a reported dialogue in them\n"
    )
