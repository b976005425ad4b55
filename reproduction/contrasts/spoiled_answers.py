"""Good answers of assistants, spoiled by rule in one way each: what any evaluator should put below the good one.

Every kind is a function of an answer, of other conversations and of a random number generator, which returns the spoiled
answer, or None where the kind does not fit. They were written without a look at the generators that models are trained with.
The neutral kinds change what nobody minds. Texts that are put in stand in `own_texts.jsonl`, by kind.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

from dialeval_plugin.bias.battery import bold_type, markdown_removed
from dialeval_plugin.conversations.messages import ASSISTANT, USER
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.files import read_json_lines


class Others(NamedTuple):
    """Material from other conversations."""

    answers: Sequence[str]
    """Good answers to other prompts."""
    prompts: Sequence[str]
    to_earlier_prompts: Mapping[str, Sequence[str]]
    """By id of an answer: what other assistants answered to an earlier message of its conversation."""


Spoil: TypeAlias = Callable[[Example, Others, random.Random], "str | None"]


class SpoiledKind(NamedTuple):
    """A way in which an answer is spoiled."""

    name: str
    columns: tuple[str, ...]
    """Defects of which an evaluator should see one; () where none of its columns is about it."""
    means: str
    spoil: Spoil


OWN_TEXTS: Mapping[str, Sequence[str]] = {
    kind: [line.value["text"] for line in lines]
    for kind, lines in groupby(
        read_json_lines(Path(__file__).with_name("own_texts.jsonl")), key=lambda line: line.value["kind"]
    )
}
"""Texts that are put in, by kind; {} stands for words of the prompt."""
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=[\"'(*A-Z0-9])")
_LIST_ITEM = re.compile(r"(?m)^[ \t]*(?:[-*•]|\d+[.)])[ \t]+")
_CODE = re.compile(r"```.*?```", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.]*\w)")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*")
_AUXILIARY = re.compile(r"\b(is|are|was|were|can|will|should|must|may|could|would|has been|have been)\b(?! not\b|n't)")


# Parts of an answer.


def sentences(text: str) -> list[str]:
    """Split a text into sentences, roughly; line ends stay within them."""
    return [part.strip() for part in _pieces(text)]


def _pieces(text: str) -> list[str]:
    """Sentences with the white space behind each."""
    ends = [0, *(found.end() for found in _SENTENCE_END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(ends) if text[start:end].strip()]


def _question(answer: Example) -> str:
    return answer.context[-1].text.strip()


def _topic(answer: Example) -> str:
    """The first words of the prompt, without a full stop, to be quoted."""
    first = re.split(r"[.?!\n]", _question(answer), maxsplit=1)[0]
    words = re.sub(r"^(?:hi|hello|please|can you|could you|would you)\b[ ,]*", "", first, flags=re.IGNORECASE).split()
    return " ".join(words[:9]).rstrip(",;:")


def _place(text: str, rng: random.Random, low: float = 0.4, high: float = 0.8) -> int:
    return int(len(text) * rng.uniform(low, high))


def _inserted(text: str, what: str, rng: random.Random) -> str:
    """Put a sentence between two sentences in the middle of a text."""
    pieces = _pieces(text)
    place = max(1, round(len(pieces) * rng.uniform(0.3, 0.7)))
    return f"{''.join(pieces[:place]).rstrip()} {what} {''.join(pieces[place:])}"


def _own(kind: str, rng: random.Random) -> str:
    return rng.choice(OWN_TEXTS[kind])


def _instead(kind: str) -> Spoil:
    return lambda answer, others, rng: _own(kind, rng)


def _quoting(kind: str) -> Spoil:
    return lambda answer, others, rng: _own(kind, rng).format(_topic(answer))


def _before(kind: str) -> Spoil:
    return lambda answer, others, rng: _own(kind, rng) + answer.response.text


def _after(kind: str) -> Spoil:
    return lambda answer, others, rng: answer.response.text.rstrip() + _own(kind, rng)


# Cut off.


def _cut_in_word(answer: Example, others: Others, rng: random.Random) -> str | None:
    text = answer.response.text
    words = [found for found in re.finditer(r"[A-Za-z]{6,}", text) if 0.4 < found.start() / len(text) < 0.8]
    if not words:
        return None
    word = rng.choice(words)
    return text[: rng.randint(word.start() + 3, word.end() - 2)]


def _cut_in_sentence(answer: Example, others: Others, rng: random.Random) -> str | None:
    text = answer.response.text
    words = [found for found in re.finditer(r"[a-z]+(?= [a-z])", text) if 0.4 < found.start() / len(text) < 0.8]
    return text[: rng.choice(words).end()] if words else None


def _cut_last_words(answer: Example, others: Others, rng: random.Random) -> str | None:
    last = sentences(answer.response.text)[-1]
    words = last.split()
    if len(words) < 8 or "\n" in last:
        return None
    return answer.response.text.rstrip()[: -len(last)] + " ".join(words[: -rng.randint(2, 4)]).rstrip(".,;:!?")


def _cut_in_list(answer: Example, others: Others, rng: random.Random) -> str | None:
    items = list(_LIST_ITEM.finditer(answer.response.text))
    if len(items) < 3:
        return None
    return answer.response.text[: items[rng.randint(2, len(items) - 1)].end()].rstrip()


def _cut_in_code(answer: Example, others: Others, rng: random.Random) -> str | None:
    found = _CODE.search(answer.response.text)
    if found is None or len(found[0].splitlines()) < 5:
        return None
    lines = found[0].splitlines()
    kept = lines[: rng.randint(3, len(lines) - 2)]
    kept[-1] = kept[-1][: max(3, len(kept[-1]) * 2 // 3)]
    return answer.response.text[: found.start()] + "\n".join(kept)


def _only_announced(answer: Example, others: Others, rng: random.Random) -> str | None:
    start = answer.response.text.find(":\n")
    return answer.response.text[: start + 1] if start >= 20 else None


# Looping.


def _tail_repeats_sentence(answer: Example, others: Others, rng: random.Random) -> str | None:
    last = sentences(answer.response.text)[-1]
    return answer.response.text + (" " + last) * rng.randint(5, 9) if len(last.split()) >= 4 else None


def _tail_repeats_words(answer: Example, others: Others, rng: random.Random) -> str | None:
    words = answer.response.text.split()
    start = len(words) * 2 // 3
    phrase = " ".join(words[start : start + rng.randint(2, 4)])
    return " ".join(words[:start]) + (" " + phrase) * rng.randint(15, 30)


def _twice(answer: Example, others: Others, rng: random.Random) -> str | None:
    return f"{answer.response.text.strip()}\n\n{answer.response.text.strip()}"


def _paragraph_again(answer: Example, others: Others, rng: random.Random) -> str | None:
    paragraphs = [part for part in re.split(r"\n\s*\n", answer.response.text.strip()) if part.strip()]
    again = [part for part in paragraphs if len(part.split()) >= 15]
    return "\n\n".join([*paragraphs, rng.choice(again)]) if len(paragraphs) > 1 and again else None


def _sentences_twice(answer: Example, others: Others, rng: random.Random) -> str | None:
    pieces = _pieces(answer.response.text)
    return "".join(f"{piece.strip()} {piece}" for piece in pieces) if len(pieces) > 1 else None


# Leaked.


def _reasoning_in_tags(answer: Example, others: Others, rng: random.Random) -> str:
    start, end = rng.choice(
        [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>"), ("", "</think>")]
    )
    return f"{start}\n{_own('reasoning', rng)}\n{end}\n\n{answer.response.text}"


def _reasoning_bare(answer: Example, others: Others, rng: random.Random) -> str:
    return f'{_own("reasoning", rng)} The user wrote "{_topic(answer)}". Final answer: {answer.response.text}'


def _placeholders(answer: Example, others: Others, rng: random.Random) -> str | None:
    names = sorted(set(_NAME.findall(answer.response.text)))
    marks = rng.choice([("[insert {} here]", "name"), ("{{{{{}}}}}", "entity"), ("<{}>", "YOUR_TEXT"), ("[{}]", "PLACEHOLDER")])
    text = answer.response.text
    for name in names[:4]:
        text = re.sub(rf"\b{re.escape(name)}\b", marks[0].format(marks[1]), text)
    if text == answer.response.text:
        text = _inserted(text, f"{marks[0].format(marks[1])} TODO: add the details here.", rng)
    return text


# A second voice.


def _human_goes_on(answer: Example, others: Others, rng: random.Random) -> str:
    return f"{answer.response.text.rstrip()}\n\nHuman: {rng.choice(others.prompts)}"


def _next_instruction(answer: Example, others: Others, rng: random.Random) -> str:
    start = " ".join(rng.choice(others.answers).split()[:40])
    head = rng.choice(["### Instruction:\n{}\n\n### Response:\n{}", "Q: {}\nA: {}", "Question: {}\nAnswer: {}"])
    return f"{answer.response.text.rstrip()}\n\n{head.format(rng.choice(others.prompts), start)}"


# Refusals and boilerplate.


def _refusal_after_start(answer: Example, others: Others, rng: random.Random) -> str | None:
    parts = sentences(answer.response.text)
    return f"{parts[0]} {_own('refusal after a start', rng)}" if len(parts) > 2 else None


# Other languages.


def _switches_language(answer: Example, others: Others, rng: random.Random) -> str | None:
    parts = sentences(answer.response.text)
    return f"{' '.join(parts[: len(parts) // 2])} {_own('other language', rng)}" if len(parts) > 3 else None


# Output of a program.


def _tool_call(answer: Example, others: Others, rng: random.Random) -> str:
    question = _topic(answer)
    calls: list[str] = [
        json.dumps({"name": "web_search", "arguments": {"query": question, "top_k": 5}}),
        json.dumps(
            {"tool_calls": [{"id": "call_8Xq1", "type": "function", "function": {"name": "lookup", "arguments": question}}]}
        ),
        f"<tool_call>\n{json.dumps({'name': 'search', 'parameters': {'q': question}})}\n</tool_call>",
        f'Action: search\nAction Input: "{question}"',
        f'functions.browse({{"query": "{question}"}})',
    ]
    return rng.choice(calls)


# Of other questions.


def _off_topic(answer: Example, others: Others, rng: random.Random) -> str:
    """An answer to another prompt, of a length near this one's."""
    n = len(answer.response.text)
    return min(rng.sample(list(others.answers), 12), key=lambda text: abs(len(text) - n))


def _half_off_topic(answer: Example, others: Others, rng: random.Random) -> str | None:
    parts, other = sentences(answer.response.text), sentences(_off_topic(answer, others, rng))
    if len(parts) < 4 or len(other) < 4:
        return None
    return " ".join([*parts[: len(parts) // 2], *other[len(other) // 2 :]])


def _stale(answer: Example, others: Others, rng: random.Random) -> str | None:
    earlier = [turn.text for turn in answer.context if turn.speaker == ASSISTANT and len(turn.text.split()) >= 8]
    return rng.choice(earlier) if earlier else None


def _stale_in_other_words(answer: Example, others: Others, rng: random.Random) -> str | None:
    earlier = others.to_earlier_prompts.get(answer.id)
    return rng.choice(earlier) if earlier else None


def _echo(answer: Example, others: Others, rng: random.Random) -> str | None:
    return _question(answer) if len(_question(answer).split()) >= 4 else None


def _echo_with_prefix(answer: Example, others: Others, rng: random.Random) -> str | None:
    question = _question(answer)
    return _own("echo with a prefix", rng).format(question) if 4 <= len(question.split()) <= 60 else None


# Contradictions and changed content.


def _opposite(sentence: str) -> str | None:
    found = _AUXILIARY.search(sentence)
    return None if found is None else f"{sentence[: found.end()]} not{sentence[found.end() :]}"


def _plain_sentences(answer: Example) -> list[str]:
    """Sentences of one line that can be negated, without markup."""
    parts = [part.strip() for part in sentences(answer.response.text)]
    return [
        part for part in parts if "\n" not in part and 6 <= len(part.split()) <= 35 and part.endswith(".") and _opposite(part)
    ]


def _contradicts_itself(answer: Example, others: Others, rng: random.Random) -> str | None:
    plain = _plain_sentences(answer)
    if not plain:
        return None
    opposite = _opposite(rng.choice(plain)) or ""
    head = rng.choice(["", "", "In fact, ", "On the other hand, ", "Note that "])
    opposite = head + (opposite[:1].lower() + opposite[1:] if head and not opposite.startswith("I ") else opposite)
    return f"{answer.response.text.rstrip()} {opposite}"


_PREMISES = (
    (re.compile(r"\bI(?: am|'m) ([a-z][^.,;:?!\n]{3,60})"), "you are not {}"),
    (re.compile(r"\bI have (?!to\b|been\b|not\b)([a-z][^.,;:?!\n]{3,60})"), "you do not have {}"),
    (re.compile(r"\bI (?:want|need|would like|'d like) ([a-z][^.,;:?!\n]{3,60})"), "you do not want {}"),
    (re.compile(r"\bI (like|love|live|work|own|use|play) ([^.,;:?!\n]{3,60})"), "you do not {} {}"),
    (re.compile(r"(?i:\bhow (?:do|can|could|would|should) (?:I|you|we|one)) ([^.,;:?!\n]{5,60})"), "you do not want to {}"),
    (
        re.compile(r"(?i:^|please )(?i:(give|write|tell|list|explain|create)) ([^.;:?!\n]{5,60})"),
        "I should not {} {}",
    ),
)


def _contradicts_context(answer: Example, others: Others, rng: random.Random) -> str | None:
    for turn in reversed(answer.context):
        if turn.speaker == USER:
            for pattern, denial in _PREMISES:
                if found := pattern.search(turn.text):
                    first, *rest = (re.sub(r"\bmy\b", "your", re.sub(r"\bI\b", "you", part)) for part in found.groups())
                    denied = denial.format(first[:1].lower() + first[1:], *rest)
                    return _own("contradicts the user", rng).format(denied) + answer.response.text
    return None


def _changed_numbers(answer: Example, others: Others, rng: random.Random) -> str | None:
    def other_number(found: re.Match[str]) -> str:
        digits = [char for char in found[0] if char.isdigit()]
        changed = [str((int(digit) + rng.randint(1, 8)) % 10) for digit in digits]
        changed[0] = changed[0] if changed[0] != "0" else "7"
        return "".join(changed.pop(0) if char.isdigit() else char for char in found[0])

    # The numbers of a list stay.
    marks = {place for item in _LIST_ITEM.finditer(answer.response.text) for place in range(item.start(), item.end())}
    found = [one for one in _NUMBER.finditer(answer.response.text) if one.start() not in marks]
    if len(found) < 2:
        return None
    text = answer.response.text
    for one in reversed(found):
        text = text[: one.start()] + other_number(one) + text[one.end() :]
    return text


def _swapped_names(answer: Example, others: Others, rng: random.Random) -> str | None:
    names = sorted(set(_NAME.findall(answer.response.text)))
    strangers = sorted({name for text in rng.sample(list(others.answers), 40) for name in _NAME.findall(text)} - set(names))
    if len(names) < 2 or len(strangers) < len(names):
        return None
    swapped = dict(zip(names, rng.sample(strangers, len(names)), strict=True))
    longest_first = sorted(names, key=len, reverse=True)
    return re.sub(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b", lambda found: swapped[found[0]], answer.response.text)


def _dropped_steps(answer: Example, others: Others, rng: random.Random) -> str | None:
    """All items of a list but the first and the last."""
    items = list(_LIST_ITEM.finditer(answer.response.text))
    if len(items) < 4:
        return None
    return answer.response.text[: items[1].start()] + answer.response.text[items[-1].start() :]


def _unfinished_list(answer: Example, others: Others, rng: random.Random) -> str | None:
    items = list(_LIST_ITEM.finditer(answer.response.text))
    if len(items) < 4 or items[0].start() < 20:
        return None
    return answer.response.text[: items[2].start()].rstrip()


def _shuffled_sentences(answer: Example, others: Others, rng: random.Random) -> str | None:
    parts = sentences(answer.response.text)
    if len(parts) < 5:
        return None
    shuffled = parts[:]
    while shuffled[0] == parts[0]:
        rng.shuffle(shuffled)
    return " ".join(shuffled)


# Gibberish.


def _shuffled_words(answer: Example, others: Others, rng: random.Random) -> str:
    words = answer.response.text.split()
    rng.shuffle(words)
    return " ".join(words)


def _garbage_tail(answer: Example, others: Others, rng: random.Random) -> str:
    pieces = [
        "Ġthe",
        "://",
        "}{",
        "0x",
        "ization",
        "▁▁",
        "\\n\\n",
        "##ing",
        "(((",
        "âĢĻ",
        "_id",
        ";;",
        "%%",
        "unk",
        "ÂÂ",
        "][",
        "ently",
    ]
    return (
        answer.response.text[: _place(answer.response.text, rng)] + " " + " ".join(rng.choices(pieces, k=rng.randint(25, 45)))
    )


def _scrambled_letters(answer: Example, others: Others, rng: random.Random) -> str:
    def mixed(found: re.Match[str]) -> str:
        letters = list(found[0])
        rng.shuffle(letters)
        return "".join(letters)

    start = _place(answer.response.text, rng, 0.3, 0.5)
    return answer.response.text[:start] + re.sub(r"[A-Za-z]{3,}", mixed, answer.response.text[start:])


# Insults.


def _sneer_inside(answer: Example, others: Others, rng: random.Random) -> str:
    return _inserted(answer.response.text, _own("sneer inside", rng), rng)


KINDS: tuple[SpoiledKind, ...] = (
    SpoiledKind("cut in a word", ("cut_off",), "ends in the middle of a word", _cut_in_word),
    SpoiledKind("cut in a sentence", ("cut_off",), "ends in the middle of a sentence", _cut_in_sentence),
    SpoiledKind("last words missing", ("cut_off",), "lacks the last two to four words", _cut_last_words),
    SpoiledKind("cut in a list", ("cut_off",), "ends behind the mark of a list's item", _cut_in_list),
    SpoiledKind("cut in code", ("cut_off",), "ends in a line of a code block, which stays open", _cut_in_code),
    SpoiledKind("announced, not given", ("cut_off",), "ends behind the colon that announces what follows", _only_announced),
    SpoiledKind("list stops early", ("cut_off",), "two items of a longer list, and no end", _unfinished_list),
    SpoiledKind("last sentence loops", ("looping",), "the last sentence five to nine times more", _tail_repeats_sentence),
    SpoiledKind("words loop", ("looping",), "two to four words of it over and over at its end", _tail_repeats_words),
    SpoiledKind("said twice", ("looping",), "the whole answer twice", _twice),
    SpoiledKind("paragraph again", ("looping",), "one of its paragraphs again at its end", _paragraph_again),
    SpoiledKind("each sentence twice", ("looping",), "each of its sentences twice", _sentences_twice),
    SpoiledKind("end token", ("leaked",), "a model's end token behind it", _after("end token")),
    SpoiledKind("template", ("leaked",), "a part of a prompt's template before it", _before("template")),
    SpoiledKind("system prompt", ("leaked",), "instructions for the assistant before it", _before("system prompt")),
    SpoiledKind("reasoning in tags", ("leaked",), "thoughts about the prompt in tags before it", _reasoning_in_tags),
    SpoiledKind("reasoning without tags", ("leaked",), "thoughts about the prompt before it", _reasoning_bare),
    SpoiledKind(
        "role header", ("leaked", "second_voice"), "the assistant's name and a colon before it", _before("role header")
    ),
    SpoiledKind("placeholders", ("leaked", "boilerplate"), "marks for what should be filled in", _placeholders),
    SpoiledKind(
        "user goes on", ("second_voice",), "the user's next message and an answer to it behind it", _after("user goes on")
    ),
    SpoiledKind("human goes on", ("second_voice",), "“Human:” and another prompt behind it", _human_goes_on),
    SpoiledKind(
        "next instruction",
        ("second_voice", "leaked"),
        "another prompt and the start of its answer behind it",
        _next_instruction,
    ),
    SpoiledKind("refusal", ("refusal",), "a refusal in its place", _instead("refusal")),
    SpoiledKind("refusal of the topic", ("refusal",), "a refusal that quotes the prompt", _quoting("refusal of the topic")),
    SpoiledKind("refusal after a start", ("refusal",), "its first sentence, then a refusal", _refusal_after_start),
    SpoiledKind("boilerplate", ("boilerplate",), "sentences that fit any prompt", _instead("boilerplate")),
    SpoiledKind(
        "boilerplate of the topic", ("boilerplate",), "the same, quoting the prompt", _quoting("boilerplate of the topic")
    ),
    SpoiledKind("asks back", ("boilerplate",), "an offer to help, and a question what is wanted", _instead("asks back")),
    SpoiledKind("empty politeness", ("boilerplate", "off_topic"), "thanks and farewells", _instead("empty politeness")),
    SpoiledKind("a word", ("boilerplate",), "“Yes.”, “Okay.”, “It depends.”", _instead("a word")),
    SpoiledKind(
        "other language",
        ("wrong_language",),
        f"an answer in one of {len(OWN_TEXTS['other language'])} other languages",
        _instead("other language"),
    ),
    SpoiledKind("switches language", ("wrong_language",), "its second half in another language", _switches_language),
    SpoiledKind("error message", ("error_message",), "a service's error", _instead("error message")),
    SpoiledKind("error page", ("error_message",), "an error as HTML", _instead("error page")),
    SpoiledKind("tool call", ("error_message",), "a call of a tool that quotes the prompt", _tool_call),
    SpoiledKind("traceback", ("error_message",), "a program's traceback", _instead("traceback")),
    SpoiledKind("off-topic", ("off_topic",), "an answer to another prompt, of like length", _off_topic),
    SpoiledKind("second half off-topic", ("off_topic",), "its first half, and another answer's second half", _half_off_topic),
    SpoiledKind("stale", ("stale",), "what the assistant has answered before", _stale),
    SpoiledKind(
        "stale, other words", ("stale",), "what another assistant answered to an earlier message", _stale_in_other_words
    ),
    SpoiledKind("echo", ("echo",), "the user's message", _echo),
    SpoiledKind("echo with a prefix", ("echo",), "“You asked me this:” and the user's message", _echo_with_prefix),
    SpoiledKind(
        "contradicts itself", ("contradiction",), "one of its sentences again, negated, behind it", _contradicts_itself
    ),
    SpoiledKind("takes it back", ("contradiction",), "says at its end that all of it is false", _after("takes it back")),
    SpoiledKind("contradicts the user", ("contradiction",), "denies what the user said, before it", _contradicts_context),
    SpoiledKind("other numbers", (), "other digits in its numbers", _changed_numbers),
    SpoiledKind("other names", (), "names of other answers for its own", _swapped_names),
    SpoiledKind("steps dropped", (), "of a list the first and the last item alone", _dropped_steps),
    SpoiledKind("sentences shuffled", (), "its sentences in another order", _shuffled_sentences),
    SpoiledKind("words shuffled", ("gibberish",), "its words in another order", _shuffled_words),
    SpoiledKind("garbage at its end", ("gibberish",), "pieces of tokens for its second half", _garbage_tail),
    SpoiledKind("letters scrambled", ("gibberish",), "the letters of most words in another order", _scrambled_letters),
    SpoiledKind("insult at its end", ("insult",), "an insult behind it", _after("insult at its end")),
    SpoiledKind("insult at its start", ("insult",), "an insult before it", _before("insult at its start")),
    SpoiledKind("sneer inside", ("insult",), "a sneer between its sentences", _sneer_inside),
)
"""All ways to spoil an answer."""


# Neutral.

_CONTRACTIONS = {
    "do not": "don't",
    "does not": "doesn't",
    "is not": "isn't",
    "are not": "aren't",
    "cannot": "can't",
    "it is": "it's",
    "you are": "you're",
    "will not": "won't",
    "that is": "that's",
}


def _markdown_removed(answer: Example, others: Others, rng: random.Random) -> str | None:
    return markdown_removed(answer.response.text)


def _bold_type(answer: Example, others: Others, rng: random.Random) -> str:
    return bold_type(answer.response.text)


def _other_bullets(answer: Example, others: Others, rng: random.Random) -> str | None:
    text = re.sub(r"(?m)^([ \t]*)[-*][ \t]+", r"\1• ", answer.response.text)
    text = re.sub(r"(?m)^([ \t]*\d+)\.[ \t]+", r"\1) ", text)
    return text if text != answer.response.text else None


def _white_space(answer: Example, others: Others, rng: random.Random) -> str:
    return re.sub(r"(?<=[.!?]) (?=[A-Z])", "  ", answer.response.text.replace("\n", " \n")) + "\n"


def _last_stop(answer: Example, others: Others, rng: random.Random) -> str | None:
    text = answer.response.text.rstrip()
    return text[:-1] if text.endswith(".") else None


def _contractions(answer: Example, others: Others, rng: random.Random) -> str | None:
    text = answer.response.text
    for long, short in _CONTRACTIONS.items():
        text = re.sub(rf"\b{long}\b", short, text) if long in text else re.sub(rf"\b{short}\b", long, text)
    return text if text != answer.response.text else None


def _quotes(answer: Example, others: Others, rng: random.Random) -> str | None:
    text = re.sub(r'"([^"\n]+)"', r"“\1”", answer.response.text).replace("'", "’")
    return text if text != answer.response.text else None


NEUTRAL: tuple[SpoiledKind, ...] = (
    SpoiledKind(
        "polite ending",
        (),
        "a friendly sentence behind it",
        _after("polite ending"),
    ),
    SpoiledKind("polite start", (), "a friendly word before it", _before("polite start")),
    SpoiledKind("markdown removed", (), "without bold type, headings and code marks", _markdown_removed),
    SpoiledKind("bold type", (), "its first words in bold type", _bold_type),
    SpoiledKind("other bullets", (), "other marks before the items of its lists", _other_bullets),
    SpoiledKind("white space", (), "two spaces for one, and spaces before line ends", _white_space),
    SpoiledKind("no last full stop", (), "without its last full stop", _last_stop),
    SpoiledKind("contractions", (), "“don't” for “do not”, or the other way round", _contractions),
    SpoiledKind("curly quotes", (), "curly quotation marks for straight ones", _quotes),
)
"""Changes that nobody minds: the score should stay as it is."""
