"""`llm_judge`: the score that a prompted language model gives a response (Score_LLM of SLIDE and DRE)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.options import checked_init
from dialeval_plugin.core.scores import Row, Unscored
from dialeval_plugin.core.signature import Value
from dialeval_plugin.llm.language_model import LanguageModel, Request, require_language_model
from dialeval_plugin.llm.prompting import Pending, PromptingScorer

from .prompts import SCORING_PROMPTS, PromptName

COLUMN = "llm"


class PromptedJudge(PromptingScorer):
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
    columns = (COLUMN,)
    range = (0.0, 1.0)

    @checked_init
    def __init__(self, llm: LanguageModel | None = None, prompt: PromptName = "slide") -> None:
        self.llm = require_language_model(llm, self.name)
        self.prompt = SCORING_PROMPTS[prompt]

    def prepare(self, items: Sequence[Item]) -> list[Pending]:
        """One question a response."""
        return [Pending(item, (self.prompt.request(cast("Example", item)),)) for item in items]

    def finish(self, pending: Pending, answers: Sequence[str | Unscored]) -> Row:
        """The answer's share of the prompt's scale."""
        (request,) = cast("Sequence[Request]", pending.requests)
        share = self.prompt.share(answers[0], request.prompt, cast("Example", pending.item))
        return share if isinstance(share, Unscored) else {COLUMN: share}

    def signature_fields(self) -> dict[str, Value]:
        """Prompt with its hash, model with its revision, and the scale of the answers."""
        low, high = self.prompt.scale
        return {"method": self.name, "prompt": self.prompt.id, "llm": self.llm.identity, "scale": f"{low:g}-{high:g}"}
