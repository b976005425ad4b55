"""`llm_judge`: a prompted language model's score of a response (Score_LLM of SLIDE and DRE), and its prompts.

A signature names a prompt's version and the hash of its text on a fixed example. DRE's interior prompt shows a large language
model the results of a small one. The paper describes it (section 3.4.2, figure 2) but does not print it; the wording is this
project's (docs/data/prompts).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, cast

from dialeval_plugin.core.dialogue import Example, Item, Turn
from dialeval_plugin.core.registry import checked_init
from dialeval_plugin.core.scores import Reason, Row, Unscored, share_of
from dialeval_plugin.core.signature import SignatureValue, text_hash
from dialeval_plugin.llm import language_model
from dialeval_plugin.llm.neutralise import neutralise
from dialeval_plugin.llm.parsing import parse_label, parse_rating, readable, shortened

from .prompts import content_of, speaker_letters

COLUMN = "llm"
OVERALL_QUALITY = "overall"
"""Quality of a prompt that names none; SLIDE's heading "Engagingness" has no criterion."""


@dataclass(frozen=True, slots=True)
class ScoringPrompt:
    """A prompt for a number, or for one of several labels in the order of their scale, the first of which is 0."""

    name: str
    version: int
    scale: tuple[float, float]
    """Lowest and highest answer."""
    label: str
    """Possible heading of the answer."""
    render: Callable[[Any], str]
    stop: tuple[str, ...] = ()
    max_tokens: int = 32
    words: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Name, version and hash of fixed examples, for a signature."""
        context = (Turn("one", "x"), Turn("two", "y"))
        probes = (Example("0", context, Turn("three"), facts=("fact",)), Example("1", (), Turn("four")))
        return f"{self.name}-v{self.version}-{text_hash(*map(self.render, probes))}"

    def request(self, item: Item, *, is_whole: bool = False) -> language_model.Request:
        """Return the request for an item's rating: a label, a number or (`is_whole`) an integer."""
        text = self.render(item)
        form = language_model.rating_form({self.label: self.scale}, is_whole=is_whole)
        if self.words:
            form = language_model.label_form(self.label, self.words)
        read = language_model.reader(self.read, text, item)
        return language_model.Request(text, self.max_tokens, self.stop, form=form, read=read)

    def read(self, answer: str, text: str, item: Item, *, is_cut: bool = False) -> float | Unscored:
        """Return the number, or the label's place, in an answer to the prompt `text`, or the reason why there is none."""
        content = content_of(item)
        if not self.words:
            return parse_rating(answer, self.scale, label=self.label, prompt=text, content=content, is_cut=is_cut)
        word = parse_label(answer, self.words, prompt=text, content=content, is_cut=is_cut)
        return word if isinstance(word, Unscored) else float(self.words.index(word))


def _slide(example: Example) -> str:
    history = "\n\n".join(neutralise(turn.text) for turn in example.context)
    return "\n\n".join(
        [
            "Engagingness",
            "Please rate the dialogue response.",
            "The goal of this task is to rate dialogue response.",
            "Note: Please take the time to fully read and understand the dialogue response. We will reject submissions from "
            "workers that are clearly spamming the task.",
            "How engaging is the text of the dialogue response? (on a scale of 0-1, with 0 being the lowest)",
            "Example:",
            "Conversation History:",
            "Is there something wrong?",
            "I enjoy having your daughter in my class.",
            "I'm glad to hear it.",
            "Dialogue Response:",
            "I enjoy listening jazz music in my free time.",
            "Evaluation Form (scores ONLY):",
            "Engagingness: 1",
            "Input:",
            "Conversation History:",
            *([history] if history else []),
            "Response:",
            neutralise(example.response.text),
            "Evaluation Form (scores ONLY):",
            "Engagingness:",
        ]
    )


def dre_exchange(example: Example) -> str:
    """Return the part of DRE's prompts with context and response, speakers as FS and SS."""
    # Letters count from the last turn, FS and SS from the first.
    letters = speaker_letters(example.context)
    tags = {letter: tag for tag, letter in zip(("FS", "SS"), dict.fromkeys(letters), strict=False)}
    named = zip(letters, example.context, strict=True)
    turns = "".join(f"{tags.get(letter, letter)}: {neutralise(turn.text)}\n" for letter, turn in named)
    return (
        "Given a conversation context, which includes 2 speakers[annotated as FS(First Speaker) and SS(Second Speaker)], "
        f"and a response.\nContext:\n{turns}\nResponse:\n{neutralise(example.response.text)}"
    )


DRE_OVERALL_TASK = (
    "1. LLM Overall Score: On a continuous scale from 0.0 to 5.0, according to the following criteria to score the "
    "context and response.\n"
    "(1)Naturalness: The degree to which a response is naturally written;\n"
    "(2)Coherence: The extent to which the content of the output is well-structured, logical, and meaningful;\n"
    "(3)Engagingness: The degree to which the response is engaging;\n"
    "(4)Groundedness: The extent to which a response is grounded in facts present in the context."
)
"""First task of DRE's plain and interior prompts (section 3.4.1)."""


def _dre(example: Example) -> str:
    task = f"Please finish the following task, do not need to explain it:\n{DRE_OVERALL_TASK}"
    return "\n\n".join([dre_exchange(example), task, "1. LLM Overall Score:"])


PromptName: TypeAlias = Literal["slide", "dre"]

SCORING_PROMPTS: dict[PromptName, ScoringPrompt] = {
    # SLIDE, appendix A.1, with the printed example, although appendix A.2 lists its response as an adversarial negative.
    "slide": ScoringPrompt("slide", 1, (0.0, 1.0), "Engagingness", _slide, stop=("\n",)),
    # DRE, section 3.4.1. The printed prompt ends with the criteria; the last line is added as the place of the answer.
    "dre": ScoringPrompt("dre", 1, (0.0, 5.0), "LLM Overall Score", _dre),
}


class PromptedJudge(language_model.PromptingScorer):
    """Asks a language model for a numeric score with the prompt of SLIDE or DRE, and maps it to [0, 1].

    An answer without a readable number is unscored. SLIDE's prompt has a scale of 0 to 1, DRE's of 0 to 5.

    Args:
        llm: language model that gives the scores.
        prompt: paper whose prompt is used: "slide" or "dre".

    Raises:
        InputError: `llm` is no language model, or there is no such prompt.
        MissingPrerequisite: there is no `llm`.
    """

    name: ClassVar[str] = "llm_judge"
    columns = (COLUMN,)

    @checked_init
    def __init__(self, llm: language_model.LanguageModel | None = None, prompt: PromptName = "slide") -> None:
        self.llm = language_model.require_language_model(llm, self.name)
        self.prompt = SCORING_PROMPTS[prompt]
        self.questions = [language_model.Question(OVERALL_QUALITY, self.prompt.scale)]
        self.verdicts = {COLUMN: language_model.Question(OVERALL_QUALITY, self.range)}

    def prepare(self, items: Sequence[Item]) -> list[language_model.Pending]:
        """Return one request per response."""
        return [language_model.Pending(item, (self.prompt.request(cast("Example", item)),)) for item in items]

    def finish(self, pending: language_model.Pending, answers: Sequence[float | Unscored]) -> Row:
        """Return the answer as a share of the prompt's scale."""
        (rating,) = answers
        return rating if isinstance(rating, Unscored) else {COLUMN: share_of(rating, self.prompt.scale)}

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return prompt with hash, model with revision, and the scale of the answers."""
        low, high = self.prompt.scale
        return {"method": self.name, "prompt": self.prompt.id, "llm": self.llm.identity, "scale": f"{low:g}-{high:g}"}


# DRE's interior prompt.

OVERALL, INFLUENCE = "LLM Overall Score", "Influence degree"
OVERALL_SCALE, INFLUENCE_SCALE = (0.0, 5.0), (0.0, 1.0)

_LABEL = re.compile(
    rf"(?:^[ \t]*\W{{0,4}}[12][.)]\W{{0,4}})?\b({OVERALL}|{INFLUENCE})(?=\"? ?(?:\([^()\n]*\))? ?[:=])",
    re.IGNORECASE | re.MULTILINE,
)
_ENUMERATOR = re.compile(r"^\W{0,4}[12][.)]\s+")


class MeasuredAccuracy(NamedTuple):
    """Validation accuracy of the small model, which classifies responses as positive or adversarial, in percent."""

    threshold: float
    """Minimum sum of probability and similarity of a response classified as positive."""
    positive: float
    """Share of the positive responses that were classified correctly."""
    negative: float
    overall: float


class InteriorAnswer(NamedTuple):
    """The large model's Score_LLM, in [0, 5], and s_Inf, in [0, 1], in its answer to the interior prompt."""

    llm: float
    influence: float


@dataclass(frozen=True, slots=True)
class InteriorPrompt:
    """The prompt for one small model."""

    accuracy: MeasuredAccuracy | None = None

    @property
    def id(self) -> str:
        """Name, version and hash of the text on a fixed example, for a signature."""
        probe = Example("0", (Turn("one", "x"), Turn("two", "y")), Turn("three"))
        return f"dre_interior-v2-{text_hash(self.render(probe, 0.25, 0.5))}"

    def request(self, example: Example, probability: float, similarity: float) -> language_model.Request:
        """Return the request for a response; see `render`."""
        text = self.render(example, probability, similarity)
        form = language_model.rating_form({OVERALL: OVERALL_SCALE, INFLUENCE: INFLUENCE_SCALE})
        return language_model.Request(text, max_tokens=64, form=form, read=language_model.reader(read_interior, text, example))

    def render(self, example: Example, probability: float, similarity: float) -> str:
        """Return the prompt's text.

        Numbers have two decimals, because the small model's last bits depend on a response's batch.

        Args:
            example: the response.
            probability: the small model's s_p, in [0, 1].
            similarity: 1 - s_d, 1 for the closest pair of the training data, 0 for the farthest; other pairs may exceed these.
        """
        probability, similarity = round(probability, 2), round(similarity, 2)
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
                # The paper shows these figures to every large model (Table 3, test set of DailyDialog++).
                "Classification accuracy of GPT-4: 80.43 % of positive responses, 97.40 % of negative ones, 88.91 % overall.",
                "The SLM can be wrong. Judge the response yourself, and use this information as far as it convinces you.",
                "",
                "Please finish the following tasks, do not need to explain them:",
                DRE_OVERALL_TASK,
                "2. Influence degree: On a continuous scale from 0.0 to 1.0, how far the information from the SLM influenced "
                "your score. 0.0 is not at all, 1.0 is completely.",
                "Answer with two lines, one a task: its number, its name, a colon, and nothing but your number.",
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


def read_interior(answer: str, prompt: str, example: Example, *, is_cut: bool = False) -> InteriorAnswer | Unscored:
    r"""Return both numbers in an answer to `prompt` about `example`, or the reason why there are none.

    The prompt ends with the first label, so the first number may have none. Two numbers without labels need separate lines.

    Example:
        >>> read_interior(" 4.5\n2. Influence degree: 0.3", "", Example.from_texts(["Hi."], "Hello."))
        InteriorAnswer(llm=4.5, influence=0.3)
    """
    text = readable(answer, prompt, is_cut=is_cut)
    if isinstance(text, Unscored):
        return text
    overall, influence = _parts(text)
    content = content_of(example)
    llm = parse_rating(overall, OVERALL_SCALE, label=OVERALL, label_only=True, content=content)
    if isinstance(llm, Unscored):
        return llm
    if influence is None:
        reason = Reason.TRUNCATED if is_cut else Reason.PARSE_FAILURE
        return Unscored(reason, f"the answer has no influence degree: {shortened(answer)}")
    degree = parse_rating(influence, INFLUENCE_SCALE, label=INFLUENCE, label_only=True, content=content, is_cut=is_cut)
    return degree if isinstance(degree, Unscored) else InteriorAnswer(llm, degree)


def _parts(answer: str) -> tuple[str, str | None]:
    """Return the parts of an answer to the first and to the second task; None if there is no second."""
    # Each number is read from its own part only: an influence degree of 0.8 is also on the score's scale.
    labels = list(_LABEL.finditer(answer))
    if all(match[1].casefold() == OVERALL.casefold() for match in labels):
        lines = [_ENUMERATOR.sub("", line) for line in answer.splitlines() if line.strip()]
        return (lines[0], lines[1]) if len(lines) == 2 else (answer, None)
    parts = {OVERALL.casefold(): answer[: labels[0].start()], INFLUENCE.casefold(): ""}
    for match, following in zip(labels, [*labels[1:], None], strict=True):
        parts[match[1].casefold()] += answer[match.start() : following.start() if following else len(answer)]
    return parts[OVERALL.casefold()], parts[INFLUENCE.casefold()]


def _shown(value: float) -> str:
    # Adding 0.0 turns -0.0 into 0.0.
    return f"{round(value, 2) + 0.0:.2f}"
