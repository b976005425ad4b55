"""The golden table of answers to the generation prompt. FAULTS R50-R53."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.methods.augmentation.prompts import ResponseLists, generation_prompt, read_responses, same_text

P5, A5 = tuple(f"Good {word}." for word in "abcde"), tuple(f"Bad {word}." for word in "vwxyz")


def numbered(texts: tuple[str, ...], start: int = 1, style: str = "{}. {}") -> str:
    return "\n".join(style.format(number, text) for number, text in enumerate(texts, start=start))


def under_headings(positive: str, adversarial: str) -> str:
    return f"Positive:\n{positive}\nAdversarial:\n{adversarial}"


def few(positive: int, adversarial: int) -> ResponseLists:
    return ResponseLists(P5[:positive], A5[:adversarial])


P5_LINES, A5_LINES = numbered(P5), numbered(A5)
BOTH = few(5, 5)
TABLE: dict[str, tuple[str, ResponseLists | Reason]] = {
    "as asked for": (f"Positive response:\n{P5_LINES}\n\nAdversarial Negative Responses:\n{A5_LINES}", BOTH),
    "continues the prompt": (f"\n{P5_LINES}\n\nAdversarial Negative Responses:\n{A5_LINES}", BOTH),
    "one list through ten": (f"{P5_LINES}\n{numbered(A5, 6)}", BOTH),
    "numbers begin again": (f"{numbered(P5[:3])}\n\n{A5_LINES}", few(3, 5)),
    "a third run of numbers": (f"{P5_LINES}\n{A5_LINES}\n{numbered(('No.', 'More.'))}", BOTH),
    "goes on counting below the second heading": (f"Positive:\n{P5_LINES}\nNegative:\n{numbered(A5, 6)}", BOTH),
    "parentheses": (under_headings(numbered(P5, 1, "{}) {}"), numbered(A5, 1, "({}) {}")), BOTH),
    "no blank behind the number": (under_headings(numbered(P5, 1, "{}.{}"), numbered(A5, 1, "{}: {}")), BOTH),
    "dashes": (under_headings("- Good a.\n* Good b.", "• Bad v."), few(2, 1)),
    "no numbers, as the example is printed": (
        "Positive response: Good a.\nGood b.\n\nAdversarial Negative Responses:\nBad v.\nBad w.",
        few(2, 2),
    ),
    "number on the heading's line": ("Positive response: 1. Good a.\n2. Good b.\nAdversarial: 1. Bad v.", few(2, 1)),
    "markdown": (
        f"## Positive Responses\n\n{numbered(P5, 1, '**{}.** {}')}\n\n### **Adversarial Negative Responses:**\n\n{A5_LINES}",
        BOTH,
    ),
    "numbered headings": (
        f"1. Positive Responses:\n{P5_LINES}\n2. Adversarial Negative Responses (share words):\n{A5_LINES}",
        BOTH,
    ),
    "headings in sentences": (
        f"Sure! Here are five diverse positive responses:\n{P5_LINES}\n"
        f"And here are the five adversarial negative responses:\n{A5_LINES}\nI hope this helps!",
        BOTH,
    ),
    "headings that nobody expects": (f"Group one:\n{P5_LINES}\nGroup two:\n{A5_LINES}", BOTH),
    "the second list first": (f"Adversarial responses:\n{A5_LINES}\nPositive responses:\n{P5_LINES}", BOTH),
    "items with titles": (
        "Positive Response 1: Good a.\nPositive Response 2: Good b.\nAdversarial Negative Response 1: Bad v.",
        few(2, 1),
    ),
    "quotation marks": (under_headings('1. "Good a."\n2. “Good b.”', "1. 'Bad v.'"), few(2, 1)),
    "quotation marks that belong to the text": (
        under_headings('1. "Go" is what she said, "now".\n2. She said "go".', "1. Bad v."),
        ResponseLists(('"Go" is what she said, "now".', 'She said "go".'), A5[:1]),
    ),
    "speaker tags": (under_headings("1. SS: Good a.\n2. FS: Good b.", "1. Response: Bad v."), few(2, 1)),
    "comments between the items": (under_headings("1. Good a.\n   (fits the question)\n2. Good b.", A5_LINES), few(2, 5)),
    "fewer": (under_headings(numbered(P5[:2]), numbered(A5[:4])), few(2, 4)),
    "more": (under_headings(numbered((*P5, "Six.", "Seven.")), numbered((*A5, "Six too."))), BOTH),
    "a list that was cut off": (under_headings(P5_LINES, "1. Bad v.\n2."), few(5, 1)),
    "only one list": (f"Positive:\n{P5_LINES}\nAdversarial:", few(5, 0)),
    "a repetition": (under_headings("1. Good a.\n2. good  A!\n3. Good b.", "1. Good a.\n2. Bad v."), few(2, 1)),
    "a copy of the last turn": (under_headings("1. It rains.\n2. Good a.", "1. it rains\n2. Bad v."), few(1, 1)),
    "an example that goes on": (
        under_headings(P5_LINES, f"{A5_LINES}\n\nContext:\nFS: Made up.\nPositive response:\n1. No."),
        BOTH,
    ),
    "numbers in the text": (
        under_headings("1. 3 is enough.\n2. 3.5 pounds, 10:30 sharp.", "1. In 1990. It was 5."),
        ResponseLists(("3 is enough.", "3.5 pounds, 10:30 sharp."), ("In 1990. It was 5.",)),
    ),
    "the words of the headings in the text": (
        under_headings("1. I got a positive response\n2. Positive.", "1. The test was negative: no cold."),
        ResponseLists(("I got a positive response", "Positive."), ("The test was negative: no cold.",)),
    ),
    "windows line ends and a full-width colon": ("Positive：\r\n1. Good a.\r\nAdversarial：\r\n1. Bad v.", few(1, 1)),
    "refusal": ("I'm sorry, but I cannot generate responses that mislead.", Reason.REFUSAL),
    "refusal of another kind": ("As an AI, I would rather not.", Reason.REFUSAL),
    "reasoning with drafts": (
        f"<think>\nDrafts:\nPositive response:\n1. Draft.\n</think>\n{under_headings(P5_LINES, A5_LINES)}",
        BOTH,
    ),
    "reasoning that was cut off": ("<think>\nPositive response:\n1. Draft.", Reason.TRUNCATED),
    "prose": ("She might say that it rains, or ask for tea.", Reason.PARSE_FAILURE),
    "nothing": (" \n", Reason.PARSE_FAILURE),
    "nothing new": (under_headings("1. It rains.", "1. It rains!"), Reason.PARSE_FAILURE),
    "headings alone": ("Positive response:\nAdversarial Negative Responses:", Reason.PARSE_FAILURE),
    "an apology as a response is no refusal": (
        under_headings("1. I'm sorry, I cannot come.", "1. Bad v."),
        ResponseLists(("I'm sorry, I cannot come.",), A5[:1]),
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_lists_of_an_answer(name: str) -> None:
    answer, expected = TABLE[name]
    found = read_responses(answer, known=["Shall we walk?", "It rains."])
    assert (found.reason if isinstance(found, Unscored) else found) == expected


def test_reasons_quote_the_answer() -> None:
    assert read_responses("I cannot do that.") == Unscored(Reason.REFUSAL, "the model refused: 'I cannot do that.'")
    assert read_responses("x" * 100) == Unscored(Reason.PARSE_FAILURE, f"the answer has no new response: '{'x' * 77}...'")


def test_an_echo_of_the_prompt_is_no_list() -> None:
    prompt = generation_prompt(["Shall we walk?", "It rains."])
    found = read_responses(prompt, prompt=prompt)
    assert isinstance(found, Unscored)
    assert read_responses(f"{prompt}\n{numbered(P5)}\nAdversarial:\n{numbered(A5)}", prompt=prompt) == BOTH


def test_the_limit_is_that_of_each_list() -> None:
    assert read_responses(f"{numbered(P5[:2])}\n{numbered(A5[:2], 3)}", limit=2) == ResponseLists(P5[:2], A5[:2])


@given(answer=st.text(st.sampled_from("12. )-:\nPositive response Adversarial\"'*#I'm sorry\u2028x"), max_size=200))
def test_whatever_a_model_writes_is_read_without_an_error(answer: str) -> None:
    found = read_responses(answer, known=["x"])
    if isinstance(found, Unscored):
        assert found.reason in {Reason.REFUSAL, Reason.PARSE_FAILURE}
        return
    texts = [*found.positive, *found.adversarial]
    assert texts
    assert all(text == " ".join(text.split()) for text in texts)
    assert len({same_text(text) for text in texts}) == len(texts)
    assert max(map(len, found)) <= 5
