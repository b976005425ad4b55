"""SLIDE's classification of responses as positive or negative by a prompted language model (Zhao et al. 2024, appendix A.3).

The prompt and its five examples are as printed, with the stray quotation mark of example 4, and with examples 2 and 3, which
repeat a turn of the context and are labelled positive. The misprints of the published notebook ("Predicted：" and "wrrong") are
neither in the paper nor here. The paper does not print the end of the prompt: here the response has the form of an example that
ends at "Prediction:". Example 4 is a test context of DailyDialog++; prompts contain no example of the response's own dialogue.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, cast

from dialeval_plugin.core.dialogue import Example, Turn, is_blank
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.llm.language_model import LanguageModel, Request, label_form, reader
from dialeval_plugin.llm.neutralise import neutralise
from dialeval_plugin.llm.parsing import parse_label

from .prompts import BLOCK_END, content_of

Label: TypeAlias = Literal["positive", "negative"]

POSITIVE: Label = "positive"
NEGATIVE: Label = "negative"
LABELS: tuple[Label, ...] = (POSITIVE, NEGATIVE)
_ADVERSARIAL = "adversarial negative"
"""The prompt's name for a negative response."""

MAX_TOKENS = 16
STOP = ("\n\n", "\nContext:", "\nExample")
FORM = label_form("Prediction", [label.capitalize() for label in LABELS])

_SPEAKERS = ("FS", "SS")
_COUNTS = ("", "is one example", "are two examples", "are three examples", "are four examples", "are five examples")

RESPONSE_KINDS = (
    "Positive Response\n"
    "Positive response is valid for the conversation context.\n\n"
    "Adversarial Negative Response\n"
    "Adversarial negative responses have a significant word overlap with the conversation context but are still irrelevant "
    "response, which may not have any relation to the context. You need to choose some words (do not include stopwords such "
    'as "I", "you", "are", etc.) from the conversation context and use them directly or indirectly while writing the '
    "adversarial negative responses. Indirect usage here refers to using words closely related to the context words.\n\n"
    "For example, using synonyms, antonyms, homonyms, subwords, or other words that are known to frequently co-occur with the "
    'words in the context (e.g., the words "flexibility" and "injuries" co-occur with "acrobatics").'
)
"""Definitions of the two kinds of responses, the same in appendices A.2 and A.3."""

INSTRUCTION = (
    "You are a classifier. Given a conversation context, which includes 2 speakers[annotated as FS(FirstSpeaker) and "
    "SS(SecondSpeaker)], and a response. Your task is to classify this response whether is positive or negative.\n\n"
    f"{RESPONSE_KINDS}\n\n"
    'Your output format is only the "Positive" or "Negative".' + BLOCK_END
)


class LabelledExample(NamedTuple):
    """A response in the prompt with its label."""

    example: Example
    label: Label


SCHOOL = ("Is there something wrong?", "I enjoy having your daughter in my class.", "I'm glad to hear it.")
"""Dialogue of the printed examples; also in appendix A.2."""
_PARTY = (
    "We have to pick up Conrad before the party.",
    "Alright, no problem.",
    "We're supposed to meet him at Cal's Bar at 10",
)

PRINTED_EXAMPLES = tuple(
    LabelledExample(Example.from_texts(context, response, id=f"A.3 example {number}"), label)
    for number, (context, response, label) in enumerate(
        (
            (SCHOOL, "She is so brilliant.", POSITIVE),
            (SCHOOL, "I enjoy having your daughter in my class.", POSITIVE),
            (SCHOOL, "I'm glad to hear it.", POSITIVE),
            (_PARTY, 'I pushed the problem aside; at present it was insoluble."', NEGATIVE),
            (SCHOOL, "I think there was something wrong with the CCTV camera installed in the class.", NEGATIVE),
        ),
        start=1,
    )
)
"""The five examples, as printed."""


@dataclass(frozen=True, slots=True)
class ClassificationPrompt:
    """The prompt of appendix A.3."""

    examples: tuple[LabelledExample, ...] = PRINTED_EXAMPLES

    def render(self, example: Example) -> str:
        """Return the prompt for one response."""
        examples = self.shown_for(example)
        blocks = zip(example_texts(examples), examples, strict=True)
        answered = (f"{text} {item.label.capitalize()}{BLOCK_END}" for text, item in blocks)
        return INSTRUCTION + "".join(answered) + question(example)

    def shown_for(self, example: Example) -> tuple[LabelledExample, ...]:
        """Return the examples in the prompt for `example`: none of its own dialogue, which would reveal the answer."""
        return tuple(one for one in self.examples if not _same_dialogue(one.example, example))

    @property
    def id(self) -> str:
        """Name, version and hash of the text, for a signature."""
        probes = (Example.from_texts(["one", "two"], "three"), Example.from_texts([], "four"))
        return f"slide_classification-v1-{text_hash(*map(self.render, probes))}"


PROMPT = ClassificationPrompt()
"""The prompt with the printed examples."""


def question(example: Example) -> str:
    """Return the block of one response, from "Context:" to "Prediction:"."""
    return _question(example.context, example.response.text)


# Every prompt contains the same examples, and neutralising them is most of the work of rendering one.
@functools.lru_cache(maxsize=64)
def _question(context: tuple[Turn, ...], response: str) -> str:
    return "\n".join(["Context:", *context_lines(context), "Response:", neutralise(response), "Prediction:"])


def example_texts(examples: Sequence[LabelledExample]) -> list[str]:
    """Return the numbered blocks of the examples, up to "Prediction:", the first with the heading of all."""
    texts = [f"Example {number}:\n{question(item.example)}" for number, item in enumerate(examples, start=1)]
    if texts:
        count = _COUNTS[len(examples)] if len(examples) < len(_COUNTS) else f"are {len(examples)} examples"
        heading = f"The following {count} of a conversation context and response, and the corresponding prediction."
        texts[0] = f"Example{BLOCK_END}{heading}{BLOCK_END}{texts[0]}"
    return texts


def context_lines(turns: Sequence[Turn]) -> list[str]:
    """Return turns as "FS: ..." for the first speaker, "SS: ..." for others; they alternate if not all have speakers."""
    if all(turn.speaker is not None for turn in turns):
        tags = [_SPEAKERS[turn.speaker != turns[0].speaker] for turn in turns]
    else:
        tags = [_SPEAKERS[index % 2] for index in range(len(turns))]
    return [f"{tag}: {neutralise(turn.text)}" for tag, turn in zip(tags, turns, strict=True)]


def classify(model: LanguageModel, examples: Sequence[Example]) -> list[Label | Unscored]:
    """Return whether each response is positive or negative, from one call of `model`."""
    judged = [example for example in examples if not is_blank(example.response.text)]
    texts = [PROMPT.render(example) for example in judged]
    requests = [
        Request(text, MAX_TOKENS, STOP, form=FORM, read=reader(read_label, text, example))
        for text, example in zip(texts, judged, strict=True)
    ]
    answers = model.generate(requests) if requests else []
    labels = (request.read(answer) for request, answer in zip(requests, answers, strict=True))
    blank = Unscored(Reason.EMPTY_INPUT, "the response is blank")
    return [blank if is_blank(example.response.text) else next(labels) for example in examples]


def read_label(answer: str, prompt: str, example: Example, *, is_cut: bool = False) -> Label | Unscored:
    """Return the label in an answer about an example, or the reason why there is none."""
    label = parse_label(answer, (*LABELS, _ADVERSARIAL), prompt=prompt, content=content_of(example), is_cut=is_cut)
    return NEGATIVE if label == _ADVERSARIAL else cast("Label | Unscored", label)


def _same_dialogue(one: Example, other: Example) -> bool:
    # Whether one context is the beginning of the other.
    texts = [[" ".join(turn.text.split()).casefold() for turn in example.context] for example in (one, other)]
    length = min(map(len, texts))
    return length > 0 and texts[0][:length] == texts[1][:length]
