"""`llm_judge`: the score that a prompted language model gives a response (Score_LLM of SLIDE and DRE)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dialeval_plugin.core.dialogue import Example, Item, is_blank
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.core.signature import Value
from dialeval_plugin.llm.language_model import LanguageModel, require_language_model

from .prompts import scoring_prompt

COLUMN = "llm"


class PromptedJudge(Scorer):
    """Asks a language model for a number with a paper's prompt, and maps the answer to [0, 1].

    An answer that cannot be read is unscored, with the reason. The papers' SLIDE asks on a scale of 0 to 1, DRE of 0 to 5.

    Args:
        llm: the model to ask.
        prompt: "slide" or "dre".

    Raises:
        InputError: `llm` is no language model, or there is no such prompt.
        MissingPrerequisite: there is no `llm`.
    """

    name: ClassVar[str] = "llm_judge"
    range = (0.0, 1.0)

    prompts_llm_itself: ClassVar[bool] = True

    def __init__(self, llm: LanguageModel | None = None, prompt: str = "slide") -> None:
        self.llm = require_language_model(llm, self.name)
        self.prompt = scoring_prompt(prompt)

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column, in [0, 1]."""
        return (COLUMN,)

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Ask for all items of the window in one call."""
        examples = [item for item in items if isinstance(item, Example)]
        rows: list[Row] = [Unscored(Reason.EMPTY_INPUT, "the response is blank")] * len(examples)
        asked = [index for index, example in enumerate(examples) if not is_blank(example.response.text)]
        prompts = [self.prompt.render(examples[index]) for index in asked]
        answers = self.llm.generate(prompts, max_tokens=self.prompt.max_tokens, stop=self.prompt.stop) if prompts else []
        for index, prompt, answer in zip(asked, prompts, answers, strict=True):
            rows[index] = answer if isinstance(answer, Unscored) else self._row(answer, prompt, examples[index])
        return rows

    def signature_fields(self) -> dict[str, Value]:
        """Prompt with its hash, model with its revision, and the scale of the answers."""
        low, high = self.prompt.scale
        return {"method": self.name, "prompt": self.prompt.id, "llm": self.llm.identity, "scale": f"{low:g}-{high:g}"}

    def _row(self, answer: str, prompt: str, example: Example) -> Row:
        rating = self.prompt.read(answer, prompt, example)
        if isinstance(rating, Unscored):
            return rating
        low, high = self.prompt.scale
        return {COLUMN: (rating - low) / (high - low)}
