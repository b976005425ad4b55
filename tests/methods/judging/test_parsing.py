"""Reading a number or a label out of an answer (R50, R51): a golden table of answers, and what holds for any text."""

from __future__ import annotations

import time
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.llm.parsing import parse_label, parse_rating
from dialeval_plugin.methods.judging.prompts import SCORING_PROMPTS

PARSE, RANGE, REFUSAL, CUT = Reason.PARSE_FAILURE, Reason.OUT_OF_RANGE, Reason.REFUSAL, Reason.TRUNCATED


class Scale(NamedTuple):
    low: float
    high: float
    label: str | None = None


FIVE = Scale(1, 5)
SLIDE = Scale(0, 1, "Engagingness")
DRE = Scale(0, 5, "LLM Overall Score")
FED = Scale(-1, 1)
HUNDRED = Scale(0, 100)

RATINGS: list[tuple[str, Scale, float | Reason]] = [
    # A number and nothing else.
    ("4", FIVE, 4),
    (" 4\n", FIVE, 4),
    ("4.", FIVE, 4),
    ("4.5", FIVE, 4.5),
    ("4,5", FIVE, 4.5),
    ("+4", FIVE, 4),
    ("(4)", FIVE, 4),
    ("[[4]]", FIVE, 4),
    ("<score>4</score>", FIVE, 4),
    ("- 4", FIVE, 4),
    (" 0.8", SLIDE, 0.8),
    (".8", SLIDE, 0.8),
    ("1", SLIDE, 1),
    ("0", SLIDE, 0),
    ("0,125", SLIDE, 0.125),
    ("-1", FED, -1),
    ("−1", FED, -1),
    # Emphasis, fences and marks of a chat template.
    ("**4**", FIVE, 4),
    ("__4__", FIVE, 4),
    ("`4`", FIVE, 4),
    ("**4**/5", FIVE, 4),
    ("**Score:** 4", FIVE, 4),
    ("4<|im_end|>\n<|im_start|>user\n2", FIVE, 4),
    ("4</s>", FIVE, 4),
    ("[/INST] 4", FIVE, 4),
    ("<think>Turn 2 and 3 fit.</think>\n4", FIVE, 4),
    ("Turn 2 and 3 fit.</think>4", FIVE, 4),
    ("<think>Turn 2 fits, so 4", FIVE, CUT),
    # With its scale.
    ("4/5", FIVE, 4),
    ("4 / 5.0", FIVE, 4),
    ("4 out of 5", FIVE, 4),
    ("4 stars out of 5", FIVE, 4),
    ("I'd say 4 of 5.", FIVE, 4),
    ("4 stars", FIVE, 4),
    ("Score: 4 (out of 5)", FIVE, 4),
    ("80%", SLIDE, 0.8),
    ("80 percent", SLIDE, 0.8),
    ("80%", HUNDRED, RANGE),
    ("On a scale of 1 to 5, I rate it 4.", FIVE, 4),
    ("4 (on a scale from 1-5)", FIVE, 4),
    ("4, where 1 is the lowest and 5 is the highest", FIVE, 4),
    ("Between 1 and 5 I would choose 4", FIVE, 4),
    ("LLM Overall Score (0.0-5.0): 4.2", DRE, 4.2),
    # On another scale.
    ("10 out of 10", FIVE, RANGE),
    ("8/10", FIVE, RANGE),
    ("3/4", SLIDE, RANGE),
    ("80%", FIVE, RANGE),
    ("On a scale of 1 to 10, I rate it 4.", FIVE, RANGE),
    ("On a scale of 1 to 10: 4", FIVE, RANGE),
    ("Score (1-10): 4", FIVE, RANGE),
    ("Score: 4 (out of 10)", FIVE, RANGE),
    # Off the scale.
    ("6", FIVE, RANGE),
    ("5.5", FIVE, RANGE),
    ("0.5", FIVE, RANGE),
    ("1.01", SLIDE, RANGE),
    ("0", FIVE, RANGE),
    ("-1", FIVE, RANGE),
    ("−4", FIVE, RANGE),
    ("seven", FIVE, RANGE),
    ("Engagingness: 4", SLIDE, RANGE),
    ("1,000", FIVE, RANGE),
    ("4,000.5", FIVE, RANGE),
    ('{"score": 9}', FIVE, RANGE),
    ("9" * 400, FIVE, RANGE),
    # In words.
    ("four", FIVE, 4),
    ("Four.", FIVE, 4),
    ("one", FIVE, 1),
    ("Score: four", FIVE, 4),
    ("four out of five", FIVE, 4),
    ("four point five", FIVE, 4.5),
    ("four and a half", FIVE, 4.5),
    ("I'd say four", FIVE, 4),
    ("I would give this one a four", FIVE, 4),
    ("The two speakers are polite", FIVE, PARSE),
    ("this one is not bad at all I think", FIVE, PARSE),
    ("three or four", FIVE, PARSE),
    # Digits of other scripts.
    ("４", FIVE, 4),
    ("٤", FIVE, 4),
    ("Ｓcore： ４／５", FIVE, 4),
    ("४.५", FIVE, 4.5),
    ("4\u200b", FIVE, 4),
    ("Sc\u200bore: 4, of 2 turns", FIVE, 4),
    ("4²", FIVE, PARSE),
    ("fıve", FIVE, PARSE),
    ("★★★★☆", FIVE, PARSE),
    # Behind a heading.
    ("Score: 4", FIVE, 4),
    ("Rating = 4", FIVE, 4),
    ("Score:\n4", FIVE, 4),
    ("Overall: 4", FIVE, 4),
    ("Score: 4 because 2 of 3 turns fit", FIVE, 4),
    ("Score: 4\nExplanation: 2 of 3 turns fit", FIVE, 4),
    ("Score: about 4", FIVE, 4),
    ('Score: "4"', FIVE, 4),
    ("Engagingness: 0.8", SLIDE, 0.8),
    ("Engagingness (0-1): 0.8", SLIDE, 0.8),
    ("engagingness = 1", SLIDE, 1),
    ("1. LLM Overall Score: 4.0", DRE, 4),
    ("LLM Overall Score: 4.2/5", DRE, 4.2),
    ("(1)Naturalness: 3\n(2)Coherence: 5\nLLM Overall Score: 4.2", DRE, 4.2),
    ("Naturalness score: 3\nFinal score: 4", FIVE, 4),
    ("1. The response fits.\nScore: 4", FIVE, 4),
    ('The response says "give it a score of 5". Score: 2', FIVE, 2),
    ("downscore: 3. Score: 4", FIVE, 4),
    ('It says "on a scale of 1 to 10". Score: 4', FIVE, 4),
    ("Rat**ing: 5. Score: 4", FIVE, 4),
    ("Score: high, with 3 good points", FIVE, PARSE),
    ("Score: N/A. The 3 turns do not fit.", FIVE, PARSE),
    # JSON, whole or cut.
    ('```json\n{"score": 4}\n```', FIVE, 4),
    ('{"reason": "good, 3 points", "rating": 4}', FIVE, 4),
    ('{"score": "4/5"}', FIVE, 4),
    ("{'score': 4}", FIVE, 4),
    ('{"overall": 4.5}', FIVE, 4.5),
    ('{"engagingness": 0.8, "score": 0.1}', SLIDE, 0.8),
    ('{"score": 4, "reason": "it menti', FIVE, 4),
    ('{"score": null, "turns": 3}', FIVE, PARSE),
    ('{"score": NaN}', FIVE, PARSE),
    ('{"score": true}', FIVE, PARSE),
    ('{"score": 1, "score": 5}', FIVE, PARSE),
    ('{"score":', FIVE, CUT),
    # In running text.
    ("The score is 4 because it mentions 3 things", FIVE, 4),
    ("I would assign a rating of 4, given 3 good turns", FIVE, 4),
    ("4 because it mentions 3 things", FIVE, 4),
    ("4\n\nThe response mentions 3 things.", FIVE, 4),
    ("The response mentions 3 things.\n\n4", FIVE, 4),
    ("4. It fits the context.", FIVE, 4),
    ("4\n4", FIVE, 4),
    # Two verdicts, or none.
    ("3 or 4", FIVE, PARSE),
    ("3-4", FIVE, PARSE),
    ("3–4", FIVE, PARSE),
    ("3 to 4", FIVE, PARSE),
    ("between 3 and 4", FIVE, PARSE),
    ("Score: 3-4", FIVE, PARSE),
    ("4\n2", FIVE, PARSE),
    ("Score: 4. Score: 2.", FIVE, PARSE),
    ("4\nScore: 2", FIVE, PARSE),
    ("Naturalness: 3, Coherence: 5", FIVE, PARSE),
    ("1. It fits.\n2. It is kind.", FIVE, PARSE),
    ("4/5/5", FIVE, PARSE),
    ("I read GPT4's v1.2.3 notes", FIVE, PARSE),
    ("GPT-4 would know", FIVE, PARSE),
    ("The 4th turn is #2 and costs $3", FIVE, PARSE),
    ("1e-1", SLIDE, PARSE),
    ("good", FIVE, PARSE),
    ("nan", FIVE, PARSE),
    ("", FIVE, PARSE),
    ("  \n ", FIVE, PARSE),
    ("```\n```", FIVE, PARSE),
    ("<|im_end|>", FIVE, PARSE),
    # Refused.
    ("I'm sorry, I can't rate this response.", FIVE, REFUSAL),
    ("I’m sorry, but this is about 2 crimes.", FIVE, REFUSAL),
    ("As an AI, I have no opinion about the 2 turns.", FIVE, REFUSAL),
    ("I cannot assist with that.", SLIDE, REFUSAL),
    ("I am unable to provide a rating.", FIVE, REFUSAL),
    ("I don't feel comfortable, and it is not appropriate to rate 1 person.", FIVE, REFUSAL),
    ("I must decline to answer. Score: N/A", FIVE, REFUSAL),
    ("I'm sorry to say that it is a 2", FIVE, 2),
    ("I cannot fault it: 5", FIVE, 5),
    ("I'm sorry, my answer is late. Score: 4", FIVE, 4),
    # Cut before the number.
    ("Engagingness:", SLIDE, CUT),
    ("1. LLM Overall Score: ", DRE, CUT),
    ("It fits.\nScore:", FIVE, CUT),
    ("Score: 4\nScore:", FIVE, CUT),
    ('Score: "', FIVE, CUT),
]


@pytest.mark.parametrize(("answer", "scale", "expected"), RATINGS)
def test_ratings(answer: str, scale: Scale, expected: float | Reason) -> None:
    found = parse_rating(answer, (scale.low, scale.high), label=scale.label)
    if isinstance(expected, Reason):
        assert isinstance(found, Unscored), found
        assert found.reason is expected, found
    else:
        assert found == pytest.approx(expected)


YES_NO = ("yes", "no")
CLASSES = ("positive", "negative")
LABELS: list[tuple[str, tuple[str, ...], str | Reason]] = [
    ("Positive", CLASSES, "positive"),
    ("negative.", CLASSES, "negative"),
    (" **Negative** ", CLASSES, "negative"),
    ('"Positive"', CLASSES, "positive"),
    ("Predicted: positive", CLASSES, "positive"),
    ("Prediction: Negative\nThe words are positive.", CLASSES, "negative"),
    ("The words are positive.\nPrediction: Negative", CLASSES, "negative"),
    ('{"label": "positive"}', CLASSES, "positive"),
    ("Prediction: This response is positive.", CLASSES, "positive"),
    ("Positive. It does not sound negative.", CLASSES, "positive"),
    ("Positive\n\nIt answers the question, which is not a negative sign.", CLASSES, "positive"),
    ("The response is a positive response.", CLASSES, "positive"),
    ("It is not positive but negative.", CLASSES, "negative"),
    ("Adversarial negative", CLASSES, "negative"),
    ("Adversarial  negative", ("positive", "negative", "adversarial negative"), "adversarial negative"),
    ("<think>positive?</think>negative", CLASSES, "negative"),
    ("It is not positive.", CLASSES, PARSE),
    ("It isn't a positive one", CLASSES, PARSE),
    ("non-positive", CLASSES, PARSE),
    ("positively", CLASSES, PARSE),
    ("Positive or negative", CLASSES, PARSE),
    ("Positive\nNegative", CLASSES, PARSE),
    ("Prediction: neutral, though the words are positive", CLASSES, "positive"),
    ("Prediction: neutral.\nThe words are positive.", CLASSES, PARSE),
    ("neutral", CLASSES, PARSE),
    ("", CLASSES, PARSE),
    ("Prediction:", CLASSES, CUT),
    ("I'm sorry, I cannot classify this as positive.", CLASSES, REFUSAL),
    ("Yes", YES_NO, "yes"),
    ("no", YES_NO, "no"),
    ("No, because the user said yes.", YES_NO, "no"),
    ("Yes - it fits", YES_NO, "yes"),
    ("Answer: No", YES_NO, "no"),
    ("It has no relation to the context.", YES_NO, PARSE),
    ("There is no doubt: yes", YES_NO, "yes"),
    ("Yes and no", YES_NO, PARSE),
    ("Yes. Answer: No", YES_NO, PARSE),
    ("Ｙes", ("yes", "no"), PARSE),
    ("B", ("A", "B"), "B"),
    ("A good response, I think", ("A", "B"), PARSE),
    ("posıtive", CLASSES, PARSE),
    ("POSITIVE", ("Positive", "Negative"), "Positive"),
]


@pytest.mark.parametrize(("answer", "labels", "expected"), LABELS)
def test_labels(answer: str, labels: tuple[str, ...], expected: str | Reason) -> None:
    found = parse_label(answer, labels)
    if isinstance(expected, Reason):
        assert isinstance(found, Unscored), found
        assert found.reason is expected, found
    else:
        assert found == expected


@pytest.mark.parametrize("name", sorted(SCORING_PROMPTS))
@pytest.mark.parametrize("answer", ["0.4", "Score: 0.4", "I'm sorry, I cannot rate this.", "no idea"])
def test_an_echo_of_the_prompt_changes_nothing(name: str, answer: str) -> None:
    prompt = SCORING_PROMPTS[name]
    text = prompt.render(Example.from_texts(["hi", "Answer: 5", "score of 3"], "I have 3 cats"))
    plain = parse_rating(answer, prompt.scale, label=prompt.label, prompt=text)
    lines = text.splitlines()
    for echo in (text, text + "\n", "\n".join(lines[-3:]), "\n".join(lines[len(lines) // 2 :])):
        found = parse_rating(f"{echo} {answer}", prompt.scale, label=prompt.label, prompt=text)
        if isinstance(plain, Unscored):
            assert isinstance(found, Unscored)
            assert found.reason is plain.reason
        else:
            assert found == plain


def test_an_echo_is_no_label() -> None:
    prompt = "Say Positive or Negative.\nResponse:\nIt is positive\nPrediction:"
    assert parse_label(f"{prompt} Negative", ("positive", "negative"), prompt=prompt) == "negative"
    assert parse_label(prompt, ("positive", "negative"), prompt=prompt) == Unscored(PARSE, "the answer is empty")


def test_the_detail_quotes_the_answer() -> None:
    assert parse_rating("3 or 4", (1, 5)) == Unscored(PARSE, "the answer has 2 different numbers: '3 or 4'")
    assert parse_rating("good", (1, 5)) == Unscored(PARSE, "the answer has no number: 'good'")
    assert parse_rating("", (1, 5)) == Unscored(PARSE, "the answer is empty")
    assert parse_rating("6", (1, 5)) == Unscored(RANGE, "6 is not on the scale 1 to 5: '6'")
    assert parse_rating("8/10", (1, 5)) == Unscored(RANGE, "the answer is on another scale than 1 to 5: '8/10'")
    assert parse_rating("I cannot rate it", (1, 5)) == Unscored(REFUSAL, "the model refused: 'I cannot rate it'")
    assert parse_rating("Score:", (1, 5)) == Unscored(CUT, "the answer ends before the number: 'Score:'")
    assert parse_rating("<think>so", (1, 5)) == Unscored(CUT, "the answer ends within its reasoning: '<think>so'")
    assert parse_label("maybe", YES_NO) == Unscored(PARSE, "the answer names none of yes, no: 'maybe'")
    assert parse_label("Yes\nNo", YES_NO) == Unscored(PARSE, "the answer names 2 labels: 'Yes\\nNo'")
    assert parse_label("I cannot answer", YES_NO) == Unscored(REFUSAL, "the model refused: 'I cannot answer'")
    assert parse_label("Answer:", YES_NO) == Unscored(CUT, "the answer ends before the label: 'Answer:'")


PIECES = st.lists(st.one_of(st.sampled_from([row[0] for row in RATINGS]), st.text(max_size=8)), max_size=5)


@given(PIECES.map(" ".join), st.sampled_from([FIVE, SLIDE, DRE, FED]))
def test_any_answer_is_a_rating_on_the_scale_or_a_reason(answer: str, scale: Scale) -> None:
    found = parse_rating(answer, (scale.low, scale.high), label=scale.label, prompt="Rate it.\nScore:")
    assert isinstance(found, Unscored) or scale.low <= found <= scale.high


@given(PIECES.map(" ".join))
def test_any_answer_is_a_label_or_a_reason(answer: str) -> None:
    found = parse_label(answer, CLASSES, prompt="Say which.\nPrediction:")
    assert isinstance(found, Unscored) or found in CLASSES


def test_a_short_line_of_the_prompt_may_be_the_answer() -> None:
    """FAULTS_FOUND 6: only a long line is an echo wherever it stands."""
    prompt = "Example:\nEngagingness: 1\nInput:\nEngagingness:"
    assert parse_rating("Engagingness: 1", (0, 1), label="Engagingness", prompt=prompt) == 1
    line = "Rate 5 of the dialogue response that is shown:"
    assert parse_rating(f"{line}\n4", (1, 5), prompt=f"{line}\nScore:") == 4


def test_an_answer_of_many_pages_is_not_read() -> None:
    page = "The response fits. " * 2000
    assert parse_rating("Score: 4\n" + page, (1, 5)) == Unscored(
        PARSE, "the answer has 38008 characters beside its reasoning: " + repr(("Score: 4\n" + page)[:77] + "...")
    )
    assert parse_rating(f"<think>{page}</think>Score: 4", (1, 5)) == 4


PIECES_OF_TIME = [
    "1,",
    "1 of ",
    "( ",
    "score (",
    "\n",
    "<think>",
    "4 4",
    "Score: 4 ",
    '{"score": ',
    "not comfortable ",
    "a*",
    "'a ",
    '"',
]


@pytest.mark.parametrize("piece", PIECES_OF_TIME)
def test_time_grows_with_the_length_and_not_faster(piece: str) -> None:
    """FAULTS D15: four times the length took sixteen times the time. A pattern that is quadratic is far beyond the factor."""
    lengths = (4000, 16000)

    def seconds(length: int) -> float:
        answer = (piece * length)[:length]
        best = float("inf")
        for _ in range(5):
            started = time.process_time()
            parse_rating(answer, (1, 5), prompt="Rate it.\nScore:", content=["rate this 5 stars please"])
            parse_label(answer, YES_NO, content=["rate this 5 stars please"])
            best = min(best, time.process_time() - started)
        return best

    short, long = map(seconds, lengths)
    assert long < 12 * short + 0.05
