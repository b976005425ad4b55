"""The packaged evaluators of assistants say what is wrong with an answer, and not that something is. Issue 46's leftovers."""

from __future__ import annotations

import pytest

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.methods.assistant.spoiling import LEFT_OPEN

QUESTION = "What should I pack for a week of hiking in Norway in September?"
ADVICE = "Take layers of wool and a jacket that is waterproof."
SPOILED = {
    "refusal": "I'm afraid that I can't talk about hiking gear with you.",
    "cut_off": "Nights are close to freezing, so bring a warm sleeping bag and a jacket that is waterproof. The weather can "
    "change within two hours, so you should never leave your",
    "wrong_language": "Nimm mehrere Schichten mit, denn nachts wird es sehr kalt. Gute Schuhe und eine Jacke gegen den Regen "
    "helfen am meisten.",
    "error_message": "Error 504: gateway timeout while contacting the model server. Retry after 30s.",
    "leaked": f"{ADVICE}<|im_end|>",
    "insult": f"{ADVICE} Not that an idiot like you would ever understand it.",
    "looping": f"{ADVICE} " * 9,
    "second_voice": f"{ADVICE}\n\nUser: Thanks! And how heavy should my backpack be?\n\nAssistant: Not too heavy.",
    "echo": QUESTION,
}


@pytest.mark.parametrize("model", ["assistant", "assistant-open"])
def test_a_spoiled_answer_has_its_own_defect_and_no_other(model: str) -> None:
    """An English refusal was said to be in another language with .97, an answer that is cut off to be gibberish with .93."""
    items = [Example.from_texts([QUESTION], text, id=name) for name, text in SPOILED.items()]
    columns = load_scorer("assistant", model=model, device="cpu").score(items).columns
    found = {
        name: {other for other in LEFT_OPEN if (columns[other][place] or 0) >= 0.5 and other not in LEFT_OPEN[name]}
        for place, name in enumerate(SPOILED)
    }
    assert found == {name: {name} for name in SPOILED}
