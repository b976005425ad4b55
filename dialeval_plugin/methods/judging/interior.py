"""DRE's interior prompt, which shows a large language model what a small one found, and the reading of its two answers.

The paper describes the prompt (section 3.4.2, figure 2) and does not print it, so this wording is this project's own. It is
printed in docs/judges.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.llm.language_model import Request
from dialeval_plugin.llm.parsing import parse_rating, unquoted

from .prompts import DRE_OVERALL_TASK, content_of, dre_exchange

VERSION = 1
OVERALL, INFLUENCE = "LLM Overall Score", "Influence degree"
OVERALL_SCALE, INFLUENCE_SCALE = (0.0, 5.0), (0.0, 1.0)

_LABEL = re.compile(rf"(?:^[ \t]*\W{{0,4}}[12][.)]\W{{0,4}})?\b({OVERALL}|{INFLUENCE})\b", re.IGNORECASE | re.MULTILINE)
_ENUMERATOR = re.compile(r"^\W{0,4}[12][.)]\s+")


class Evidence(NamedTuple):
    """What the small model says of one response."""

    probability: float
    """s_p, in [0, 1]."""
    similarity: float
    """1 - s_d, 1 for the closest of the training pairs and 0 for the farthest, and beyond for what lies beyond."""


class MeasuredAccuracy(NamedTuple):
    """How well the small model told positive from adversarial responses when it was validated."""

    threshold: float
    """Sum of probability and similarity from which on a response counted as positive."""
    positive: float
    """Share of the positive responses that were classified correctly, in percent."""
    negative: float
    overall: float


class InteriorAnswer(NamedTuple):
    """What the large model answers to the interior prompt."""

    llm: float
    """Score_LLM, in [0, 5]."""
    influence: float
    """s_Inf, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class InteriorPrompt:
    """The prompt for one small model."""

    accuracy: MeasuredAccuracy | None = None
    stop: tuple[str, ...] = ()
    max_tokens: int = 64

    @property
    def id(self) -> str:
        """Name, version and hash of the text on a fixed example, for a signature."""
        probe = Example("0", (Turn("one", "x"), Turn("two", "y")), Turn("three"))
        return f"dre_interior-v{VERSION}-{text_hash(self.render(probe, Evidence(0.25, 0.5)))}"

    def request(self, example: Example, evidence: Evidence) -> Request:
        """The question about a response."""
        return Request(self.render(example, evidence), self.max_tokens, self.stop)

    def render(self, example: Example, evidence: Evidence) -> str:
        """The prompt's text.

        Numbers have two decimals: the small model's last bits, which depend on a response's batch, would change the prompt.
        """
        probability, similarity = (round(value, 2) for value in evidence)
        return "\n".join(
            [
                dre_exchange(example),
                "",
                "Auxiliary information from a small language model (SLM), which is trained to tell whether a response fits its "
                "context:",
                f"Probability that the response is positive (0 to 1): {_shown(probability)}",
                "Cosine similarity of context and response, rescaled (0 is the most distant pair that the SLM was trained on, "
                f"1 the closest): {_shown(similarity)}",
                f"Sum of both: {_shown(probability + similarity)}",
                "",
                "Interpretation:",
                "A positive response is valid for the conversation context.",
                "A negative response is irrelevant to the conversation context, although it may share many words with it.",
                "The higher the sum, the more the SLM takes the response for positive.",
                self._slm_accuracy(),
                # The figures that the paper shows every large model (Table 3, test set of DailyDialog++).
                "Classification accuracy of GPT-4: 80.43 % of positive responses, 97.40 % of negative ones, 88.91 % overall.",
                "The SLM can be wrong. Judge the response yourself, and use this information as far as it convinces you.",
                "",
                "Please finish the following tasks, do not need to explain them:",
                DRE_OVERALL_TASK,
                "2. Influence degree: On a continuous scale from 0.0 to 1.0, how far the information from the SLM influenced "
                "your score. 0.0 is not at all, 1.0 is completely.",
                "",
                "1. LLM Overall Score:",
            ]
        )

    def _slm_accuracy(self) -> str:
        if self.accuracy is None:
            return "The classification accuracy of the SLM is not known."
        threshold, positive, negative, overall = self.accuracy
        return (
            f"Classification accuracy of the SLM, which takes a response for positive from a sum of {_shown(threshold)} on: "
            f"{_shown(positive)} % of positive responses, {_shown(negative)} % of negative ones, {_shown(overall)} % overall."
        )


def read_interior(answer: str | Unscored, prompt: str, example: Example) -> InteriorAnswer | Unscored:
    r"""Read both numbers out of an answer to `prompt` about `example`, or say why there are none.

    The prompt ends with the first label, so the first number may come without one. Two numbers without any label count
    where each has a line of its own.

    Example:
        >>> read_interior(" 4.5\n2. Influence degree: 0.3", "", Example.from_texts(["Hi."], "Hello."))
        InteriorAnswer(llm=4.5, influence=0.3)
    """
    if isinstance(answer, Unscored):
        return answer
    content = content_of(example)
    text = unquoted(answer, OVERALL_SCALE, prompt=prompt, content=content)
    if isinstance(text, Unscored):
        return text
    overall, influence = _parts(text)
    llm = parse_rating(overall, OVERALL_SCALE, label=OVERALL, content=content)
    if isinstance(llm, Unscored):
        return llm
    if influence is None:
        return Unscored(Reason.PARSE_FAILURE, f"the answer has no influence degree: {answer[:80]!r}")
    degree = parse_rating(influence, INFLUENCE_SCALE, label=INFLUENCE, content=content)
    return degree if isinstance(degree, Unscored) else InteriorAnswer(llm, degree)


def _parts(answer: str) -> tuple[str, str | None]:
    """What the answer says to the first and to the second task; None where nothing is to the second.

    Each number is looked for in its own part alone: an influence degree of 0.8 is on the score's scale too.
    """
    labels = list(_LABEL.finditer(answer))
    if all(match[1].casefold() == OVERALL.casefold() for match in labels):
        lines = [_ENUMERATOR.sub("", line) for line in answer.splitlines() if line.strip()]
        return (lines[0], lines[1]) if len(lines) == 2 else (answer, None)
    parts = {OVERALL.casefold(): answer[: labels[0].start()], INFLUENCE.casefold(): ""}
    for match, following in zip(labels, [*labels[1:], None], strict=True):
        parts[match[1].casefold()] += answer[match.start() : following.start() if following else len(answer)]
    return parts[OVERALL.casefold()], parts[INFLUENCE.casefold()]


def _shown(value: float) -> str:
    # Adding 0.0 keeps a value that rounds to zero from being shown with a minus sign.
    return f"{round(value, 2) + 0.0:.2f}"
