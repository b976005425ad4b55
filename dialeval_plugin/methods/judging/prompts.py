"""The prompts, as the papers print them. Content is neutralised first and put in by joining, so braces in it stay braces.

A prompt has a version and a hash of its text on a fixed example; both are part of a judge's signature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, Turn
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.llm.language_model import Request
from dialeval_plugin.llm.neutralise import neutralise
from dialeval_plugin.llm.parsing import parse_rating

NO_FACTS = "none"
EXAMPLE_HEADING = "Example\n"
BLOCK_END = "\n\n"

_INSTRUCTION: dict[Level, str] = {
    "turn": "Given a conversation and a response, choose if the response is a good response to the context",
    "dialogue": "Given a conversation, choose if the overall quality of the conversation is good",
}
_QUESTION: dict[Level, str] = {
    "turn": "Is the above response a good response to the conversation?",
    "dialogue": "Is the overall quality of the above conversation good?",
}


def level_of(item: Item) -> Level:
    """The level at which `item` is judged."""
    return "dialogue" if isinstance(item, Dialogue) else "turn"


def content_of(item: Item) -> tuple[str, ...]:
    """What an item's prompts show of it, text by text as it stands there, so that a quotation of it is told from a verdict."""
    turns = item.turns if isinstance(item, Dialogue) else (*item.context, item.response)
    facts = item.facts if isinstance(item, Example) else ()
    return tuple(filter(None, map(neutralise, (*(turn.text for turn in turns), *facts))))


def goodness_instruction(level: Level) -> str:
    """First line of the DSTC10 prompt (Huynh et al. 2023, Appendix C), with its line break.

    The paper prints the turn level only; the dialogue level (FED-Dial) is asked in the same form about overall quality.
    """
    return f"Instruction: {_INSTRUCTION[level]}\n"


def goodness_question(item: Item) -> str:
    """The block of the DSTC10 prompt for one item, from `Background info:` to `Answer:`.

    In both printed blocks the last turn before the response is Person A's, so speakers are named backwards from there. Where
    a file names its speakers, one speaker keeps one letter; where it does not, turns alternate.
    """
    turns = item.turns if isinstance(item, Dialogue) else item.context
    facts = item.facts if isinstance(item, Example) else ()
    background = " ".join(filter(None, map(neutralise, facts))) or NO_FACTS
    lines = [f"Background info: {background}", "Conversation:"]
    lines += [f"Person {letter}: {neutralise(turn.text)}" for letter, turn in zip(_letters(turns), turns, strict=True)]
    if isinstance(item, Example):
        lines.append(f"Response: {neutralise(item.response.text)}")
    lines += [f"Question: {_QUESTION[level_of(item)]}", "Answer:"]
    return "\n".join(lines)


def goodness_prompt(item: Item, examples: Iterable[tuple[Item, bool]] = ()) -> str:
    """The whole DSTC10 prompt: instruction, examples with their answers, and the item in question."""
    shown = "".join(
        f"{EXAMPLE_HEADING}{goodness_question(example)} {'Yes' if is_good else 'No'}{BLOCK_END}"
        for example, is_good in examples
    )
    return goodness_instruction(level_of(item)) + shown + goodness_question(item)


def _letters(turns: Sequence[Turn]) -> list[str]:
    """Letters of the speakers, A for the last turn."""
    if all(turn.speaker is not None for turn in turns):
        order = list(dict.fromkeys(turn.speaker for turn in reversed(turns)))
        # Past 26 speakers every further one is Z: a label has to stay a label.
        return [chr(ord("A") + min(order.index(turn.speaker), 25)) for turn in turns]
    return ["AB"[(len(turns) - 1 - index) % 2] for index in range(len(turns))]


@dataclass(frozen=True, slots=True)
class ScoringPrompt:
    """A prompt that asks for a number."""

    name: str
    version: int
    scale: tuple[float, float]
    """Lowest and highest answer."""
    label: str
    """What the answer may be headed by."""
    render: Callable[[Example], str]
    stop: tuple[str, ...] = ()
    max_tokens: int = 32

    @property
    def hash(self) -> str:
        """Hash of the rendered text of fixed examples, so that any change of wording shows."""
        context = (Turn("one", "x"), Turn("two", "y"))
        probes = (Example("0", context, Turn("three"), facts=("fact",)), Example("1", (), Turn("four")))
        return text_hash(*map(self.render, probes))

    @property
    def id(self) -> str:
        """Name, version and hash, for a signature."""
        return f"{self.name}-v{self.version}-{self.hash}"

    def request(self, example: Example) -> Request:
        """The question about a response."""
        return Request(self.render(example), self.max_tokens, self.stop)

    def read(self, answer: str | Unscored, text: str, example: Example) -> float | Unscored:
        """The number of an answer to the prompt `text` about an example, or why there is none."""
        if isinstance(answer, Unscored):
            return answer
        return parse_rating(answer, self.scale, label=self.label, prompt=text, content=content_of(example))

    def share(self, answer: str | Unscored, text: str, example: Example) -> float | Unscored:
        """The same as a share of the prompt's scale, in [0, 1]."""
        rating = self.read(answer, text, example)
        low, high = self.scale
        return rating if isinstance(rating, Unscored) else (rating - low) / (high - low)


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
    """The part of DRE's prompts that shows context and response, speakers as FS and SS."""
    # The last turn before the response is the first speaker's partner's; the tags only have to alternate as the turns do.
    letters = _letters(example.context)
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
"""DRE's first task (section 3.4.1), which the plain and the interior prompt share."""


def _dre(example: Example) -> str:
    task = f"Please finish the following task, do not need to explain it:\n{DRE_OVERALL_TASK}"
    return "\n\n".join([dre_exchange(example), task, "1. LLM Overall Score:"])


PromptName: TypeAlias = Literal["slide", "dre"]

SCORING_PROMPTS: dict[PromptName, ScoringPrompt] = {
    # SLIDE, appendix A.1. The printed example is kept, although appendix A.2 lists its response as an adversarial negative.
    "slide": ScoringPrompt("slide", 1, (0.0, 1.0), "Engagingness", _slide, stop=("\n",)),
    # DRE, section 3.4.1. The printed prompt ends with the criteria; the last line asks for the answer where it belongs.
    "dre": ScoringPrompt("dre", 1, (0.0, 5.0), "LLM Overall Score", _dre),
}
