"""SLIDE's prompt for writing responses (Zhao et al. 2024, appendix A.2), with its example.

As printed, oddities included ("a conversation context, , which", "five examples" over a single one, seven adversarial
responses where five are asked for), but for three things. The example's responses are numbered, since the published notebook
reads answers by line; "SSI enjoy having" is printed as "SS: I enjoy having"; and what follows the example, which the paper does
not print, has the form of the example. The notebook's presence and frequency penalties of 0.5 are not sent: lm-eval has no
argument for them that every backend takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from dialeval_plugin.core.dialogue import Turn
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.methods.judging.classification import RESPONSE_KINDS, context_lines

TEMPERATURE = 0.7
MAX_TOKENS = 512
"""Ten responses take about 200; lm-eval cuts the prompt where prompt and answer together exceed a model's window."""
STOP = ("\nContext:",)

_NAME, _VERSION = "slide_generation", 1

EXAMPLE_CONTEXT = ("Is there something wrong?", "I enjoy having your daughter in my class.", "I'm glad to hear it.")
EXAMPLE_POSITIVE = (
    "She is so brilliant.",
    "Her behavior is good in the class.",
    "I would love to hear that she knows every rules and regulation.",
    "I was shocked to know that she is your daughter.",
    "She answers all my questions.",
)
EXAMPLE_ADVERSARIAL = (
    "I enjoy listening jazz music in my free time.",
    "I need pin drop silence in the class.",
    "If I hear someone talking they will be sent out of the class.",
    "I am glad you enjoyed the magic show organised by our team.",
    "I think there was something wrong with the CCTV camera installed in the class.",
    "This is the wrong method to solve the problem.",
    "Please be attentive in the class.",
)

_POSITIVE_HEADING = "Positive response:"
_ADVERSARIAL_HEADING = "Adversarial Negative Responses:"


def generation_prompt(context: Sequence[str]) -> str:
    """The prompt that asks for five positive and five adversarial responses to `context`."""
    return "\n\n".join(
        [
            "You are a conversational dialogue generator. Given a conversation context, , which includes 2 speakers"
            "[annotated as FS(FirstSpeaker) and SS(SecondSpeaker)], and a response.",
            "Your task is to generate five diverse positive response and five adversarial negative response respectively.",
            RESPONSE_KINDS,
            "The following are five examples of a conversation context and response, and the corresponding prediction.",
            "Example",
            _context_block(EXAMPLE_CONTEXT),
            _numbered(_POSITIVE_HEADING, EXAMPLE_POSITIVE),
            _numbered(_ADVERSARIAL_HEADING, EXAMPLE_ADVERSARIAL),
            _context_block(context),
            _POSITIVE_HEADING,
        ]
    )


def prompt_id() -> str:
    """Name, version and hash of the text, for a signature."""
    return f"{_NAME}-v{_VERSION}-{text_hash(generation_prompt(['one', 'two']), str(TEMPERATURE))}"


def _context_block(context: Sequence[str]) -> str:
    return "\n".join(["Context:", *context_lines([Turn(text) for text in context])])


def _numbered(heading: str, responses: Sequence[str]) -> str:
    return "\n".join([heading, *(f"{number}. {response}" for number, response in enumerate(responses, start=1))])
