"""What a language model reads of a response: the texts of its turns, without speakers' names."""

from __future__ import annotations

from dialeval_plugin.core.dialogue import Example, is_blank
from dialeval_plugin.core.scores import Reason, Unscored

NO_TURN = Unscored(Reason.EMPTY_INPUT, "no visible turn stands before the response")
BLANK_RESPONSE = Unscored(Reason.EMPTY_INPUT, "the response has no visible character")


def response_texts(example: Example) -> list[str] | Unscored:
    """Return the texts of the turns that have a visible character, the response last; two at least."""
    if is_blank(example.response.text):
        return BLANK_RESPONSE
    texts = [turn.text for turn in example.context if not is_blank(turn.text)]
    return [*texts, example.response.text] if texts else NO_TURN
