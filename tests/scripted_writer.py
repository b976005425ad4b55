"""A scripted writer of responses. It imports neither torch nor a host, so that a process that is to be killed starts fast."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.methods.augmentation.augmentation import ResponseWriter, augment, write_augmented
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel


def lists(positive: Sequence[str], adversarial: Sequence[str]) -> str:
    parts = ["Positive response:", *(f"{number}. {text}" for number, text in enumerate(positive, start=1))]
    parts += ["", "Adversarial Negative Responses:", *(f"{number}. {text}" for number, text in enumerate(adversarial, start=1))]
    return "\n".join(parts)


def is_generation(prompt: str) -> bool:
    return prompt.startswith("You are a conversational dialogue generator.")


def judged(prompt: str) -> str:
    """The response that a classification prompt asks about."""
    return prompt.splitlines()[-2]


CONTEXTS = [ResponseSet(f"c{number}", (f"Is {number} odd?", "“Say” you\u2028so."), ()) for number in range(9)]


class NumberedScript:
    """Answers by the context's number: 3 refuses, 6 misses one in the first round, the others fit at once."""

    def __init__(self) -> None:
        self.model = ScriptedLanguageModel(self)
        self.drawn: dict[str, int] = {}

    def __call__(self, prompt: str) -> str | Unscored:
        if not is_generation(prompt):
            return "Positive" if judged(prompt).startswith("Fit") else "Negative"
        number = re.findall(r"FS: Is (\d+) odd\?", prompt)[-1]
        self.drawn[number] = self.drawn.get(number, 0) + 1
        if number == "3":
            return "I'm sorry, I cannot help with that."
        positive = [f"Fit {number}{letter}." for letter in "abcde"]
        if number == "6" and self.drawn[number] == 1:
            positive[2] = "Misses."
        return lists(positive, [f"Off {number}{letter}." for letter in "abcde"])


def finish(folder: Path, script: NumberedScript, contexts: list[ResponseSet] | None = None) -> Path:
    """Run to the end and write."""
    writer = ResponseWriter(script.model, rounds=2)
    output = folder / "out.jsonl"
    write_augmented(augment(contexts or CONTEXTS, writer), output, writer.provenance)
    return output
