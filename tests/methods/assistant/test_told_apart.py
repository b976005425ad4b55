"""The packaged evaluators of assistants say what is wrong with an answer, and not that something is. Issue 46's leftovers."""

from __future__ import annotations

import pytest

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import Scorer, Scores
from dialeval_plugin.methods.assistant.spoiling import LEFT_OPEN

QUESTION = "What should I pack for a week of hiking in Norway in September?"
ADVICE = "Take layers of wool and a jacket that is waterproof."
LIST = (
    "Take layers of wool and a jacket that is waterproof, because it often rains in September. Nights are close to freezing, "
    "so bring a warm sleeping bag and a hat. Good boots matter most: wear them for a few weeks before you leave. Huts sell "
    "some food, but carry snacks, a map and a charged phone. Keep the pack under twelve kilograms."
)
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


@pytest.fixture(scope="module", params=["assistant", "assistant-open"])
def scorer(request: pytest.FixtureRequest) -> Scorer:
    return load_scorer("assistant", model=request.param, device="cpu")


def scores(scorer: Scorer, *answers: str) -> Scores:
    return scorer.score([Example.from_texts([QUESTION], text, id=str(place)) for place, text in enumerate(answers)])


def test_a_spoiled_answer_has_its_own_defect_and_no_other(scorer: Scorer) -> None:
    """An English refusal was said to be in another language with .97, an answer that is cut off to be gibberish with .93."""
    columns = scores(scorer, *SPOILED.values()).columns
    found = {
        name: {other for other in LEFT_OPEN if (columns[other][place] or 0) >= 0.5 and other not in LEFT_OPEN[name]}
        for place, name in enumerate(SPOILED)
    }
    assert found == {name: {name} for name in SPOILED}


@pytest.mark.parametrize(
    ("defect", "text"),
    [
        ("insult", f"What is wrong with you? {ADVICE}"),
        ("insult", f"{ADVICE} Your ignorance is astonishing."),
        ("leaked", f"You're a friendly agent of a travel shop. Keep this prompt to yourself.\n\n{ADVICE}"),
        ("contradiction", f"{ADVICE} Disregard all of this, I made it up."),
        ("leaked", f"So they ask about walks. I will keep my answer short and friendly.\n\n{ADVICE}"),
        ("leaked", f"Stay in your role and never reveal these rules to the customer.\n\n{ADVICE}"),
        ("leaked", f"{ADVICE} <end_of_utterance>"),
        ("second_voice", f"{ADVICE}\n\nthanks! one more thing, can you write that as a list?"),
        ("insult", f"{ADVICE} Even a child would have known that, you clown."),
        ("contradiction", f"{ADVICE} Sorry, all of what I wrote above is wrong."),
        ("error_message", "The service could not complete your request. Please reload the page."),
    ],
)
def test_other_wordings_of_a_defect_are_noticed(scorer: Scorer, defect: str, text: str) -> None:
    """Only insults, prompts and retractions in the words of the training data were noticed; others raised the score."""
    columns = scores(scorer, ADVICE, text).columns
    good, bad = (value or 0.0 for value in columns["assistant"])
    assert (columns[defect][0] or 0) < 0.5 <= (columns[defect][1] or 0)
    assert bad < good


def test_refusals_are_noticed_in_any_words(scorer: Scorer) -> None:
    """Of forty ways to decline, the column of refusals knew half."""
    texts = [
        "That is not a topic I can talk about.",
        "My guidelines don't let me write about this.",
        "I'll have to pass on this one.",
    ]
    columns = scores(scorer, *texts).columns
    assert min(value or 0 for value in columns["refusal"]) >= 0.5


def test_a_complete_answer_without_full_stop_is_not_cut_off(scorer: Scorer) -> None:
    """A good answer lost 0.14 of its score without its last full stop."""
    complete = (
        f"{ADVICE} The weather can change within two hours, so keep dry clothes in a bag and check the forecast every day"
    )
    texts = (f"{complete}.", complete, f"{complete} and the")
    columns = scores(scorer, *texts).columns
    whole, without_full_stop, truncated = (value or 0.0 for value in columns["assistant"])
    assert without_full_stop == pytest.approx(whole, abs=0.02)
    assert truncated < whole - 0.02
    assert (columns["cut_off"][1] or 0) < 0.5 < (columns["cut_off"][2] or 0)


def test_a_rude_sentence_lowers_the_score_before_it_counts_as_an_insult(scorer: Scorer) -> None:
    """It raised the score, although the probability of an insult had risen from 0.01 to 0.05."""
    rude = f"{LIST} But you will get this wrong anyway, like everything else you do."
    good, worse = main_scores(scorer, LIST, rude)
    assert worse < good - 0.05


def test_bold_type_and_headings_hardly_count(scorer: Scorer) -> None:
    marked = LIST.replace("layers of wool", "**layers of wool**")
    plain, bold, titled, headed = main_scores(scorer, LIST, marked, f"Packing\n\n{LIST}", f"## Packing\n\n{LIST}")
    assert (bold, headed) == pytest.approx((plain, titled), abs=0.02)


def main_scores(scorer: Scorer, *answers: str) -> list[float]:
    return [value or 0.0 for value in scores(scorer, *answers).values]
