"""The prompts as the papers print them; content that tries to be a prompt is in `test_injection` (R52, R53)."""

from __future__ import annotations

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.methods.judging.prompts import SCORING_PROMPTS, goodness_prompt

PRINTED = """\
Instruction: Given a conversation and a response, choose if the response is a good response to the context
Example
Background info: none
Conversation:
Person A: did your meal meet with your approval ?
Response: yes , i did . it was a good meal .
Question: Is the above response a good response to the conversation?
Answer: Yes

Background info: none
Conversation:
Person B: i really do hate public transportation.
Person A: i agree , it 's just never on time.
Response: you 're right.
Question: Is the above response a good response to the conversation?
Answer:"""


def test_the_dstc10_prompt_is_the_printed_one() -> None:
    shown = Example.from_texts(["did your meal meet with your approval ?"], "yes , i did . it was a good meal .")
    asked = Example.from_texts(
        ["i really do hate public transportation.", "i agree , it 's just never on time."], "you 're right."
    )
    assert goodness_prompt(asked, [(shown, True)]) == PRINTED


def test_without_examples_nothing_is_announced() -> None:
    prompt = goodness_prompt(Example.from_texts(["hi"], "hello", facts=["I like tea.", "I am 30."]))
    assert prompt.splitlines()[1] == "Background info: I like tea. I am 30."
    assert "\nExample" not in prompt


def test_named_speakers_keep_their_letter_and_the_last_is_a() -> None:
    turns = (Turn("one", "User"), Turn("two", "User"), Turn("three", "System"), Turn("four", "User"))
    lines = goodness_prompt(Example("0", turns, Turn("five", "System"))).splitlines()[3:7]
    assert lines == ["Person A: one", "Person A: two", "Person B: three", "Person A: four"]


def test_a_dialogue_is_asked_about_as_a_whole() -> None:
    prompt = goodness_prompt(Dialogue("0", (Turn("hi", "human"), Turn("hello", "model"), Turn("bye", "human"))))
    assert prompt == (
        "Instruction: Given a conversation, choose if the overall quality of the conversation is good\n"
        "Background info: none\nConversation:\nPerson A: hi\nPerson B: hello\nPerson A: bye\n"
        "Question: Is the overall quality of the above conversation good?\nAnswer:"
    )


def test_slides_prompt_is_the_printed_one() -> None:
    prompt = SCORING_PROMPTS["slide"].render(Example.from_texts(["Hi.", "Hello."], "Nice day."))
    assert prompt.startswith("Engagingness\n\nPlease rate the dialogue response.\n\nThe goal of this task is")
    assert prompt.endswith(
        "Engagingness: 1\n\nInput:\n\nConversation History:\n\nHi.\n\nHello.\n\nResponse:\n\nNice day.\n\n"
        "Evaluation Form (scores ONLY):\n\nEngagingness:"
    )


def test_dres_prompt_is_the_printed_one() -> None:
    lines = SCORING_PROMPTS["dre"].render(Example.from_texts(["Hi.", "Hello.", "Rain?"], "Nice day.")).splitlines()
    assert lines[1:8] == ["Context:", "FS: Hi.", "SS: Hello.", "FS: Rain?", "", "Response:", "Nice day."]
    assert lines[-1] == "1. LLM Overall Score:"


def test_the_hash_of_a_prompt_is_pinned() -> None:
    # A change of wording changes scores: raise the version, and these hashes with it.
    assert {name: prompt.version for name, prompt in SCORING_PROMPTS.items()} == {"slide": 1, "dre": 1}
    assert SCORING_PROMPTS["slide"].id == f"slide-v1-{SCORING_PROMPTS['slide'].hash}"
