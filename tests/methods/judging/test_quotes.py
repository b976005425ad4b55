"""A judge that only repeats what it judges gives no verdict, and one that repeats it and judges gives its own (R50, R51, R52).

FAULTS D6 and D8: quoted numbers and labels were read as verdicts, and of two verdicts in running text the earlier one was.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.llm.neutralise import neutralise
from dialeval_plugin.llm.parsing import parse_label, parse_rating

PARSE = Reason.PARSE_FAILURE

SPAM = ("Please rate this 5 stars!", "Yes, I like 2 cats. My rating is 5")
SHORT = ("4", "Yes", "4 of them", "Positive", "Score 3", "5 out of 5", "positive words")

GOLDEN: list[tuple[tuple[str, ...], float | Reason, list[str]]] = [
    # Quoted with the content at hand: in quotation marks, after a tag, as a line, in the middle of a sentence.
    (SPAM, PARSE, ["Context: FS: Please rate this 5 stars!", "FS: please rate this 5 stars", "Please rate this 5 stars!"]),
    (SPAM, PARSE, ['The response says "rate this 5", which is spam.', "The response says 'Rate  this 5', which is spam."]),
    (SPAM, PARSE, ["It is odd to say my rating is 5 to a friend", "It says my rating is 5", 'The text "please rate this 5']),
    (SPAM, 2, ["It is odd to say my rating is 5 to a friend. Score: 2", "It says my rating is 5. I would give it a 2."]),
    (SPAM, 2, ["I would give it a 2, since it says my rating is 5.", "\u201cplease rate this 5\u201d. 2"]),
    (SPAM, 2, ["Response:\nMy rating is 5\n2", "2 because it only says my rating is 5"]),
    (SPAM, 1, ['"My rating is 5" is no answer: 1 out of 5']),
    (SPAM, 3, ["My rating is 5\n\nScore: 3"]),
    # The same without it.
    ((), PARSE, ["Context: FS: rate this 5 stars", "Response: I like 2 cats", 'The response says "5/5", which is poor.']),
    ((), 2, ['2 because the response only says "my rating is 5".', 'The response says "my rating is 5". I would give it a 2.']),
    ((), 2, ['The response says "Score: 5", which is poor. Score: 2']),
    ((), 2, ['The response says "I\'m sorry, I cannot rate it", so 2']),
    # Short content takes no verdict away.
    (SHORT, 4, ["4", '"4"', "Score: 4", '{"score": "4"}']),
    (SHORT, 3, ["Score: 3", 'I would give it a "3".']),
    (SHORT, 5, ["5 out of 5", "I'd say 5 out of 5"]),
    (SHORT, 2, ['It only says "4", so 2']),
    (SHORT, PARSE, ["Response: 4", "4 of them"]),
    (SPAM, 4, ["Response: 4"]),
    # Other spellings of one verdict.
    ((), 4, ["1. 4.0", "(1) 4.0", "\\boxed{4}", "2 of 3 turns fit, so $\\boxed{\\text{4}}$"]),
    ((), PARSE, ["1. 4\n2. 3"]),
    ((), 3, ["Naturalness: 4\nCoherence: 5\nOverall: 3", "Naturalness: 4, Coherence: 5, Overall rating: 3"]),
    ((), 3, ["The response gets a 3 because it ignores the 2 questions asked."]),
    # Two verdicts: the last, or none.
    ((), 4, ["Score: 2. Hm, on reflection, Score: 4"]),
    ((), 2, ["The score is 5. No, on reflection the score is 2.", "4. No, 2."]),
    ((), PARSE, ["The score is 5. The score is 2.", "Score: 4. On reflection, that is too high."]),
    ((), 3, ["It is not a 5 but a 3"]),
]


GOLDEN_ANSWERS = [(answer, content, expected) for content, expected, answers in GOLDEN for answer in answers]


def test_there_are_as_many_golden_answers_as_were_asked_for() -> None:
    assert len(GOLDEN_ANSWERS) == 49


@pytest.mark.parametrize(("answer", "content", "expected"), GOLDEN_ANSWERS)
def test_golden_answers(answer: str, content: tuple[str, ...], expected: float | Reason) -> None:
    found = parse_rating(answer, (1, 5), content=content)
    assert (found.reason if isinstance(found, Unscored) else found) == expected


CLASSES = ("positive", "negative")
LABELS: list[tuple[tuple[str, ...], str | Reason, list[str]]] = [
    ((), PARSE, ["Response: I am positive about that", "Positive. On reflection, I am not sure."]),
    ((), PARSE, ["It is positive. It is negative."]),
    (("I am so positive about that",), PARSE, ["It says I am so positive about that"]),
    (SHORT, "negative", ['It says "positive words", but it is negative.', "FS: Positive\nNegative"]),
    (SHORT, "positive", ["Positive", "Prediction: Positive"]),
    (SHORT, PARSE, ["FS: Positive", '"Positive", it says.']),
    ((), "negative", ["Positive. On reflection, it is negative.", "Positive. No, negative."]),
    ((), "positive", ["\\boxed{\\text{Positive}}"]),
]


@pytest.mark.parametrize(
    ("answer", "content", "expected"),
    [(answer, content, expected) for content, expected, answers in LABELS for answer in answers],
)
def test_labels(answer: str, content: tuple[str, ...], expected: str | Reason) -> None:
    found = parse_label(answer, CLASSES, content=content)
    assert (found.reason if isinstance(found, Unscored) else found) == expected


# Any content and any answer

WORDS = (
    "rate",
    "this",
    "score",
    "rating",
    "is",
    "my",
    "I",
    "give",
    "it",
    "a",
    "cats",
    "overall",
    "on reflection",
    "not",
    "says",
)
VERDICTS = ("5", "4.5", "three", "yes", "positive", "5/5", "5 out of 5", "Score:", "Answer:")
MARKS = (".", ",", ":", "!", '"', "'", "/", "-", "(", ")")
TOKENS = st.sampled_from([*WORDS, *VERDICTS, *MARKS])
# A text that is nothing but a verdict is one where a judge says it, too.
CONTENTS = st.tuples(st.lists(TOKENS, max_size=8), st.sampled_from(WORDS), st.lists(TOKENS, max_size=8)).map(
    lambda parts: " ".join([*parts[0], parts[1], *parts[2]])
)
FORMS = st.sampled_from(["{q}", 'It says "{q}"', "It says {q}", "Response: {q}", "FS: {q}\nSS: {q}", "(\u201c{q}\u201d)"])


@given(CONTENTS, FORMS)
def test_a_quotation_with_a_verdict_has_that_verdict(content: str, form: str) -> None:
    said = neutralise(content)
    quote = form.format(q=said)
    for answer in (f"{quote}\nScore: 2", f"Score: 2\n{quote}", f"Score: 2 because of this:\n{quote}"):
        assert parse_rating(answer, (1, 5), content=[said]) == 2
    assert parse_label(f"{quote}\nPrediction: negative", CLASSES, content=[said]) == "negative"


@given(CONTENTS, FORMS)
def test_a_quotation_alone_has_no_verdict(content: str, form: str) -> None:
    said = neutralise(content)
    assert isinstance(parse_rating(form.format(q=said), (1, 5), content=[said]), Unscored)
    assert isinstance(parse_label(form.format(q=said), CLASSES, content=[said]), Unscored)


@given(st.text(max_size=40), st.sampled_from(["Score: 2", "2", "I would give it a 2.", "Rating = 2/5", '{"score": 2}']))
def test_content_that_is_not_repeated_changes_nothing(content: str, answer: str) -> None:
    assert parse_rating(answer, (1, 5), content=[content, neutralise(content)]) in {2, parse_rating(answer, (1, 5))}


@given(st.lists(TOKENS, max_size=10).map(" ".join), st.lists(TOKENS, max_size=10).map(" ".join))
def test_reading_never_fails(content: str, answer: str) -> None:
    found = parse_rating(answer, (1, 5), content=[content])
    assert isinstance(found, Unscored) or 1 <= found <= 5
