"""Files that the evaluator of assistants is trained on."""

from __future__ import annotations

from pathlib import Path

from dialeval_plugin.core.files import to_json, write_text
from dialeval_plugin.methods.assistant.defects import DEFECTS
from dialeval_plugin.methods.assistant.training import AssistantSources, KnownAnswer
from tests.refusals import refused


def test_an_unknown_defect_is_refused_with_its_line(tmp_path: Path) -> None:
    answers, rows = tmp_path / "answers.jsonl", [{"context": ["Hi."], "response": "Go away.", "defects": {"insult": 1}}]
    write_text(answers, to_json(rows[0]) + "\n")
    assert AssistantSources.read([], [answers]).answers == (KnownAnswer(("Hi.",), "Go away.", {"insult": 1.0}),)
    rows.append({"context": ["Hi."], "response": "Go away.", "defects": {"rude": 1}})
    write_text(answers, "".join(to_json(row) + "\n" for row in rows))
    names = ", ".join(defect.name for defect in DEFECTS)
    with refused(f"{answers}:2: there is no defect 'rude'. Choose one of {names}."):
        AssistantSources.read([], [answers])
