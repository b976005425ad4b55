"""Rules for an assistant's answer: patterns, counts and shares in [0, 1], as inputs of the defect heads.

Every rule compares the answer with the user's turns, because JSON, German or a dialogue is no defect if it was requested.
All rules take linear time.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.llm.reasoning import split_reasoning

from .sentence_kinds import kind_of

LANGUAGES: Mapping[str, Mapping[str, list[str]]] = json.loads(
    Path(__file__).with_name("languages.json").read_text(encoding="utf-8")
)
"""Languages by code: their names, their frequent words if written in Latin letters, and sample sentences."""

_FREQUENT = {code: frozenset(one["words"]) for code, one in LANGUAGES.items() if one["words"]}
_LANGUAGES_OF: defaultdict[str, list[str]] = defaultdict(list)
for _code, _frequent in _FREQUENT.items():
    for _word in _frequent:
        _LANGUAGES_OF[_word].append(_code)

_SECTIONS = {
    name: lines.strip().split("\n")
    for name, lines in re.findall(
        r"^\[(\w+)\]\n(.*?)(?:\n\n|\Z)", Path(__file__).with_name("patterns.txt").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
}


def _pattern(name: str) -> re.Pattern[str]:
    # Of lines in a row that begin with \b, it is tested once at each place, which takes a third of the time.
    runs = groupby(_SECTIONS[name], lambda line: line.startswith(r"\b"))
    joined = "|".join(
        rf"\b(?:{'|'.join(line[2:] for line in lines)})" if is_word else "|".join(lines) for is_word, lines in runs
    )
    return re.compile(re.sub(r"@(\w+)@", lambda match: f"(?:{_pattern(match[1]).pattern})", joined), re.MULTILINE)


def _word_set(name: str) -> frozenset[str]:
    return frozenset(" ".join(_SECTIONS[name]).split())


_ENGLISH = _FREQUENT["en"] | _word_set("english")
_OPEN_WORDS = _word_set("open_words")
NAMED_LANGUAGE = re.compile(
    r"\b(?:translat\w*|languages?|traduc\w*|überset\w*|latin|tagalog|swahili|esperanto|klingon|"
    + "|".join(name for one in LANGUAGES.values() for name in one["names"])
    + r")\b"
)
_WORD = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+(?:'[^\W_]+)*")
_SENTENCE_END = re.compile(r"([.!?。！？][\"”’')\]*_]*)\s+|([。！？])")
_ITEM = re.compile(r"\A\s*(?:[-*•+]|\(?\d{1,3}[.):]|\(?[A-Za-z][.)])\s+")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
_LONGEST = 2000
"""Number of characters of a sentence by which its kind is told."""
_CLOSERS = " \t\r\n*_~`\"”’')]}>»"
_COUNTS = {word: count for count, word in enumerate(_SECTIONS["counts"], 2)}


def _lower(text: str) -> str:
    return text.lower().replace("’", "'")


def lower_words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(_lower(text))


def _content(words: Sequence[str]) -> frozenset[str]:
    """First six letters of each word that is not a function word."""
    return frozenset(word[:6] for word in words if len(word) > 2 and word not in _ENGLISH)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def split_sentences(text: str) -> list[str]:
    """Split a text at the ends of sentences and of lines.

    Example:
        >>> split_sentences("It is 3.5 m. Really?  Yes!")
        ['It is 3.5 m.', 'Really?', 'Yes!']
    """
    return [line.strip() for line in _SENTENCE_END.sub(r"\1\2\n", text).split("\n") if line.strip()]


def language_of(text: str) -> str:
    """Return the code of the language in `LANGUAGES` whose frequent words cover most of a text."""
    counts = _words_by_language(lower_words(text))
    return max(_FREQUENT, key=counts.__getitem__)


def topic_words(text: str, most: int) -> str:
    """Return at most `most` words from the beginning of a text's longest run without function words."""
    runs = groupby(_WORD.findall(text), lambda word: bool(_content([word.lower()])))
    return " ".join(max((list(run) for is_content, run in runs if is_content), key=len, default=[])[:most])


class _Reading:
    """An answer and its context, with values that several rules use."""

    def __init__(self, context: Sequence[str], response: str) -> None:
        self.response = response
        self.lower = _lower(response)
        self.words = lower_words(response)
        self.content = _content(self.words)
        self.lines = [line for line in response.split("\n") if line.strip()]
        self.last = self.lines[-1] if self.lines else ""
        self.sentences = split_sentences(response)
        self.sentence_words = [tuple(lower_words(_ITEM.sub("", one, count=1))) for one in self.sentences]
        self.question = context[-1] if context else ""
        self.question_words = lower_words(self.question)
        self.question_content = _content(self.question_words)
        self.earlier_questions, self.earlier_answers = context[-3::-2], context[-2::-2]
        self.asked = _lower("\n".join(context[-1::-2]))

    @cached_property
    def prose(self) -> str:
        """The answer without code blocks."""
        return "\n".join(_FENCE.split(self.response)[::2])

    @cached_property
    def numbers(self) -> list[int]:
        """Numbers of the items of numbered lists."""
        return [int(number) for number in re.findall(r"^[ \t]*\**(\d{1,3})[.)]\s", self.response, re.MULTILINE)]

    @cached_property
    def may_be_foreign(self) -> bool:
        """Whether the user mentions a language."""
        return self.asks(NAMED_LANGUAGE)

    @cached_property
    def user_language(self) -> str:
        """Code of the user's language; English if it is not recognised."""
        words = _WORD.findall(self.asked)
        counts = _words_by_language(words)
        language = max(_FREQUENT, key=counts.__getitem__)
        return language if _share(counts[language], len(words)) > 0.1 else "en"

    @cached_property
    def kinds(self) -> list[str | None]:
        """Kind of each of the first two and the last two sentences that does not belong in an answer; None of all others."""
        far, texts = len(self.sentences) - 3, [_lower(text[:_LONGEST]) for text in self.sentences]
        return [kind_of(text) if place < 2 or place > far else None for place, text in enumerate(texts)]

    def opens_with(self, kind: str) -> bool:
        """Whether one of the first two sentences is of a kind."""
        return kind in self.kinds[:2]

    def ends_with(self, kind: str) -> bool:
        """Whether one of the last two sentences, but not the first one of all, is of a kind."""
        return kind in self.kinds[1:][-2:]

    def has(self, pattern: re.Pattern[str]) -> bool:
        return pattern.search(self.lower) is not None

    def asks(self, pattern: re.Pattern[str]) -> bool:
        """Whether the user's turns match a pattern."""
        return pattern.search(self.asked) is not None

    def share_of_sentences(self, pattern: re.Pattern[str], kind: str = "") -> float:
        """Share of the words in sentences that match a pattern or are of a kind."""
        rows = zip(self.sentences, self.sentence_words, self.kinds, strict=True)
        n_words = sum(len(words) for text, words, own in rows if own == kind or pattern.search(_lower(text)))
        return _share(n_words, sum(map(len, self.sentence_words)))


# Cut off.


def _has_end(text: str) -> bool:
    """Whether a line ends like a sentence, table row, formula, address, hashtag, field or emoji."""
    if re.search(r"(?:#\w+|://\S+|=(?:[^a-z]|\b[a-z]\b)*)\Z", text.rstrip(_CLOSERS)[-200:]) or text.rstrip(" *_").endswith("]"):
        return True
    last = text.rstrip(_CLOSERS)[-1:]
    return not last or last in ".!?…|。！？؟।;" or unicodedata.category(last) in ("So", "Sm", "Sk", "Cs", "Mn")


_ENDINGS = json.loads(Path(__file__).with_name("endings.json").read_text(encoding="utf-8"))
_LOG_ODDS_OF_ENDING = {word: float(level) for level, words in _ENDINGS["log_odds"].items() for word in words.split()}
_LEAST_SENTENCE = 6
"""Lowest number of words of a sentence that may lack only its full stop; shorter ones tell too little."""
_SEEMS_COMPLETE = -1.25
"""Log odds of a truncation below which a sentence lacks only its full stop: on development data in 0.60 of the answers without
their last full stop, in 0.12 of those without their last words, and in 0.01 of those cut in a word."""
ONLY_FULL_STOP = 0.1
"""`no_end_mark` of such an answer: enough to put most truncated answers below the complete ones, while the score of a complete
one without full stop moves by less than 0.02."""


def ending_features(
    words: Sequence[str], known: Container[str], log_odds: Mapping[str, float] = _LOG_ODDS_OF_ENDING
) -> tuple[float, float, float, float]:
    """Return features of a sentence without end mark that tell a complete one from a truncated one.

    Args:
        words: words of the sentence.
        known: other words of the conversation.
        log_odds: log odds that a sentence ends with a word, by frequent word or by the name of a word class.

    Returns:
        The log odds of the last word, the length and its logarithm, and whether the last word may be a part of a word.
    """
    last = words[-1]
    of_class = log_odds.get(WORD_CLASSES[word_class(last)], log_odds["-"])
    may_be_part = last not in log_odds and last not in known
    return log_odds.get(last, of_class), len(words), math.log(len(words)), float(may_be_part)


def _no_end_mark(reading: _Reading) -> float:
    """Whether the last line has no end; `ONLY_FULL_STOP` if it lacks only the full stop."""
    if _has_end(reading.last):
        return 0.0
    return ONLY_FULL_STOP if _lacks_only_full_stop(reading) else 1.0


def lacks_only_full_stop(question: str, response: str) -> bool:
    """Whether an answer ends without a mark, although its last sentence seems to be complete."""
    return response.rstrip()[-1:].isalnum() and _no_end_mark(_Reading((question,), response)) == ONLY_FULL_STOP


def _lacks_only_full_stop(reading: _Reading) -> bool:
    """Whether the answer ends with a word, and its last sentence seems to be complete."""
    words = reading.sentence_words[-1] if reading.sentence_words else ()
    ends_with_word = reading.response.rstrip(" \t\r\n*_")[-1:].isalnum() and not _open_end(reading)
    if len(words) < _LEAST_SENTENCE or not ends_with_word or len(_FENCE.findall(reading.response)) % 2:
        return False
    features = ending_features(words, {*reading.words[:-1], *reading.question_words})
    return float(np.dot(_ENDINGS["weights"], (*features, 1.0))) < _SEEMS_COMPLETE


def _open_end(reading: _Reading) -> float:
    """Whether the answer ends in an ellipsis, or in a word or mark that needs a continuation."""
    text, last = reading.response.rstrip(" \t\r\n*_"), reading.last.strip(" .…")
    if text.endswith(("...", "…")) or (re.fullmatch(r"[-*•+#]+|\(?\d{1,3}[.)]?|[A-Za-z][.)]", last) and len(reading.lines) > 1):
        return 1.0
    is_open = text.endswith((*",:([{–—&", " /")) or (text[-1:].isalpha() and reading.words[-1] in _OPEN_WORDS)
    return float(is_open and len(reading.words) > 3)


def _prose_without_end(reading: _Reading) -> float:
    """Share of the lines like the last one that end with a mark, if the last one does not."""
    if _no_end_mark(reading) < 1:
        return 0.0
    is_item = bool(_ITEM.match(reading.last))
    peers = [line for line in reading.lines[-21:-1] if bool(_ITEM.match(line)) == is_item and (is_item or len(line) > 60)]
    n_words = len(lower_words(reading.last))
    if peers and (is_item or n_words > 3 or not _ENGLISH.isdisjoint(lower_words(reading.last))):
        return _share(sum(_has_end(line) or line.rstrip()[-1] == ":" for line in peers), len(peers))
    return 1.0 if re.search(r"[a-z]{2}[.!?][\"”)]? [A-Z]", reading.last) else n_words / 25


def _unlike_lines(reading: _Reading) -> float:
    """Share of the list items or table rows that have a colon, more cells or twice the length, unlike the last one."""
    last = reading.last
    items = [line for line in reading.lines[-21:-1] if (line[0] == "|" if last[:1] == "|" else _ITEM.match(line))]
    if len(items) < 2 or not (last[0] == "|" or _ITEM.match(last)):
        return 0.0
    shorter = sum(len(line) > 2 * len(last) for line in items)
    signs = "|" if ":" in last else "|:"
    return max(shorter, *(sum(line.count(sign) > last.count(sign) for line in items) for sign in signs)) / len(items)


def _unclosed(reading: _Reading) -> float:
    """Whether the last line has an unclosed bracket, quotation or bold text."""
    last = reading.last
    pairs = (("(", ")"), ("[", "]"), ("{", "}"), ("“", "”"))
    is_open = any(last.count(start) > last.count(end) and last.rfind(start) > last.rfind(end) for start, end in pairs)
    return float(is_open or last.count('"') % 2 == 1 or last.count("**") % 2 == 1)


_ANNOUNCED = re.compile(rf"\b(\d{{1,2}}|{'|'.join(_COUNTS)}) (?:\w+ ){{0,2}}(?:\w+s|people|criteria)\b")


def _missing_items(reading: _Reading) -> float:
    """Share of missing items of a numbered list whose length the user or the first sentence announces."""
    if reading.numbers.count(1) != 1:
        return 0.0
    text = _lower(f"{reading.question[-2000:]}\n{reading.sentences[0]}")
    announced = {_COUNTS.get(number) or int(number) for number in _ANNOUNCED.findall(text)}
    return 1 - max(reading.numbers) / max(1, *announced) if len(announced) == 1 else 0.0


# Looping.


def _looping_tail(reading: _Reading) -> float:
    """Length of an answer's end that repeats one phrase at least three times, with or without the last word."""
    lines = reading.response[-40_000:].split("\n")
    words = [word for line in lines for word in lower_words(_ITEM.sub("", line, count=1))][-4000:]
    return max(_periodic(words), _periodic(words[:-1])) / 30


def _periodic(words: list[str]) -> int:
    """Number of words in the longest end that repeats a phrase three times or more (Knuth-Morris-Pratt prefix function)."""
    words = words[::-1]
    border = [0] * (len(words) + 1)
    longest = length = 0
    for place in range(1, len(words)):
        while length and words[place] != words[length]:
            length = border[length]
        length += words[place] == words[length]
        border[place + 1] = length
        if 3 * (place + 1 - length) <= place + 1:
            longest = place + 1
    return longest if longest > 5 else 0


def _grams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return list(zip(*(words[start:] for start in range(n)), strict=False))


def _share_of_copies(texts: Sequence[tuple[str, ...]]) -> float:
    """Share of texts that occur earlier in the sequence."""
    return _share(len(texts) - len(set(texts)), len(texts))


def _compressible(reading: _Reading) -> float:
    """Share by which the compressed size of the last 8,000 bytes is below that of prose of the same length."""
    data = reading.response.encode("utf-8", "replace")[-8000:]
    prose = 1.75 * max(80, len(data)) ** -0.165
    return 1 - len(zlib.compress(data)) / len(data) / prose if len(data) > 80 else 0.0


def _longest_run(reading: _Reading) -> float:
    """Length of the longest run of one character, except lines and leaders, or of one word."""
    runs = re.finditer(r"([^\s\-=_.*#|~+─━═])\1{9,}", reading.response)
    n_characters = max((match.end() - match.start() for match in runs), default=0)
    n_words = max((len([*group]) for _, group in groupby(reading.words)), default=0)
    return max(n_characters / 60, (n_words - 3) / 12)


# Leaked.

_TOKENS, _PLACEHOLDER, _WANTS_TEMPLATE = map(_pattern, ("tokens", "placeholder", "wants_template"))
_SYSTEM, _ABOUT_MODELS = map(_pattern, ("system", "about_models"))
_SPOKEN_REASONING = _pattern("spoken_reasoning")


def _special_tokens(reading: _Reading) -> float:
    is_leaked = any(token.strip() not in reading.asked for token in _TOKENS.findall(reading.lower))
    has_placeholder = _PLACEHOLDER.search(_lower(reading.prose)) is not None
    return float(is_leaked or (has_placeholder and not reading.asks(_WANTS_TEMPLATE)))


# Second voice.

_SPEAKER, _ASKER, _DIALOGUE, _QUESTIONS, _USER_VOICE = map(
    _pattern, ("speaker", "asker", "dialogue", "questions", "user_voice")
)


def _speaker_labels(reading: _Reading) -> float:
    """Number of lines after the first with a speaker label, halved; 0 if the user's turns have such labels."""
    if reading.asks(_DIALOGUE) or reading.asks(_SPEAKER):
        return 0.0
    patterns = (_SPEAKER,) if reading.asks(_QUESTIONS) or reading.asks(_ASKER) else (_SPEAKER, _ASKER)
    prose = _lower(reading.prose)
    return sum(match.start() > 0 for pattern in patterns for match in pattern.finditer(prose)) / 2


def _user_voice(reading: _Reading) -> float:
    """Whether lines after the first, or the last sentences, sound like a user, and the user did not ask for such a text."""
    if reading.asks(_DIALOGUE) or reading.asks(_QUESTIONS):
        return 0.0
    if reading.ends_with("user"):
        return 1.0
    lines = (_SPEAKER.sub("", _lower(line), count=1).strip(' *"“-') for line in reading.lines[1:])
    spoken = [line for line in lines if _USER_VOICE.match(line)]
    return 0.5 * len(spoken) + 0.5 * any(line.endswith("?") for line in spoken)


# Refusal and boilerplate.

_REFUSAL, _SET_PHRASE = _pattern("refusal"), _pattern("set_phrase")
_GENERIC = frozenset(word[:6] for word in _word_set("generic"))


# Wrong language.


def _scripts(text: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for letter, count in Counter(text).items():
        if letter.isalpha():
            name = "LATIN" if letter < "\u0250" else unicodedata.name(letter, "?").split()[0]
            counts["CJK" if name in ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA") else name] += count
    return counts


def _other_script(reading: _Reading) -> float:
    """Twice the share of letters in scripts that the user does not write."""
    known, counts = _scripts(reading.asked), _scripts(reading.response)
    if not known or reading.may_be_foreign:
        return 0.0
    return 2 * _share(sum(count for script, count in counts.items() if script not in known), sum(counts.values()))


def _words_by_language(words: Sequence[str]) -> Counter[str]:
    """Number of frequent words by language code."""
    return Counter(code for word in words for code in _LANGUAGES_OF.get(word, ()))


def _foreign(reading: _Reading, words: Sequence[str]) -> float:
    """Excess of frequent words of another language over those of the user's."""
    if len(words) < 4 or reading.may_be_foreign:
        return 0.0
    is_english = reading.user_language == "en"
    counts = _words_by_language([word for word in words if len(word) > 1 and not (is_english and word in _ENGLISH)])
    own = (sum(word in _ENGLISH for word in words) if is_english else counts[reading.user_language]) / len(words)
    most = max((count for code, count in counts.items() if code != reading.user_language), default=0) / len(words)
    n_accented = sum(not word.isascii() for word in words) if is_english else 0
    return max(4 * (most - own) if most > 0.1 else 0.0, 3 * n_accented / len(words) - own)


# Error messages and raw data.

_ERROR, _CALL, _WANTS_DATA, _ABOUT_ERRORS = map(_pattern, ("error", "call", "wants_data", "about_errors"))
_BRACKETS = r"[\s\"'\[\](){}<>.?!…-]*"
_EMPTY = re.compile(rf"{_BRACKETS}(?:null|none|undefined|nan|object object|n/a|empty|error|no response|failed)?{_BRACKETS}")
_KEY = re.compile(r"[\"'][\w .-]{1,40}[\"']\s?:\s?(?:[\"'{\[\d-]|null|true|false)")


def _error_phrase(reading: _Reading) -> float:
    """Share of the answer that error messages cover; 1 for a program's empty output such as "null"."""
    if len(reading.words) < 3 and _EMPTY.fullmatch(reading.lower[:200]):
        return float(not reading.asks(_ABOUT_ERRORS))
    n_errors = len(_ERROR.findall(reading.lower)) + reading.opens_with("error")
    return min(1.0, 20 * n_errors / (len(reading.words) + 10)) * (0.3 if reading.asks(_ABOUT_ERRORS) else 1.0)


def _raw_data(reading: _Reading) -> float:
    """Share of the answer that JSON keys and calls cover, unless the user asks for them."""
    call = float(reading.has(_CALL))
    if reading.asks(_WANTS_DATA):
        return call / 2 if "tool" not in reading.asked and "```" not in reading.response else 0.0
    starts = 0.5 * (re.match(r"\s*(?:[\[{]\s*[\"'{\[]|<\w)", reading.response) is not None)
    return max(call, starts, 8 * len(_KEY.findall(reading.response)) / (len(reading.words) + 1))


# The user's words and earlier answers.


def _question_covered(reading: _Reading) -> float:
    """Share of the content words of the user's last turn that the answer contains."""
    return _share(len(reading.content & reading.question_content), len(reading.question_content))


def _earlier_covered(reading: _Reading) -> float:
    """Excess of the answer's coverage of an earlier user turn over that of the last one."""
    earlier = [_content(lower_words(turn)) - reading.question_content for turn in reading.earlier_questions]
    best = max((_share(len(reading.content & content), len(content)) for content in earlier), default=0.0)
    return best - _question_covered(reading)


def _copied(words: Sequence[str], source: Sequence[str], n: int = 5) -> float:
    """Share of a text's word n-grams that a source contains; for shorter texts, whether they equal the source."""
    grams, known = _grams(words, n), set(_grams(source, n))
    return _share(sum(gram in known for gram in grams), len(grams)) if grams else float(len(words) > 1 and words == source)


# Contradiction.

_NEGATION, _TAKES_BACK = _pattern("negation"), _pattern("takes_back")
_DISCOURSE = _content(["however", "actually", "fact", "said", "time", "truth", "reality", "contrary", "indeed", "never"])
_ABOUT_TRUTH = re.compile(r"\bopposites?\b|\bfalse\b|\btrue\b")


def _contradicting_twin(reading: _Reading) -> float:
    """Whether two sentences have the same content words, but different numbers or a negation in only one of them."""
    statements: dict[frozenset[str], tuple[bool, list[str]]] = {}
    for words in reading.sentence_words:
        negations = set(filter(_NEGATION.search, {*words}))
        key = frozenset(word for word in _content(words) - _DISCOURSE - negations if not word[0].isdigit())
        says = (bool(negations), [word for word in words if word[0].isdigit()])
        other = statements.setdefault(key, says) if len(key) > 2 else says
        if other[0] != says[0] or (other[1] != says[1] and len(key) > 3):
            return 1.0
    return 0.0


def _takes_back(reading: _Reading) -> float:
    """Whether a sentence retracts an earlier one: 1 in the last two sentences, 0.4 elsewhere; 0 if the user mentions truth."""
    if reading.asks(_ABOUT_TRUTH):
        return 0.0
    if reading.ends_with("retraction"):
        return 1.0
    if not reading.has(_TAKES_BACK):
        return 0.0
    return 1.0 if any(_TAKES_BACK.search(_lower(one)) for one in reading.sentences[1:][-2:]) else 0.4


# Gibberish.


def _pair_table(name: str) -> tuple[dict[str, int], FloatArray]:
    """Read class names, and the log ratio (base e) of each pair's frequency to chance."""
    rows = [line.split(" ") for line in Path(__file__).with_name(name).read_text("utf-8").splitlines()]
    values = np.array([[ord(sign) - 73 for sign in row] for _, row in rows]) / 10
    return {name: place for place, (name, _) in enumerate(rows)}, values


_CLASSES, _WORD_PAIRS = _pair_table("word_pairs.txt")
_LETTER_PAIRS = _pair_table("letter_pairs.txt")[1]
WORD_CLASSES: tuple[str, ...] = tuple(_CLASSES)
_SUFFIXES = [name[1:] for name in WORD_CLASSES if name[0] == "-" and len(name) > 1]


@lru_cache(maxsize=1 << 15)
def word_class(word: str) -> int:
    """Return the index of a word's class in word_pairs.txt: the word, a number, its suffix, or any other."""
    if word in _CLASSES and word != "-":
        return _CLASSES[word]
    if word[0].isdigit():
        return _CLASSES["0"]
    suffixes = (suffix for suffix in _SUFFIXES if len(word) > 4 and word.endswith(suffix))
    return _CLASSES["-" + next(suffixes, "")]


def word_classes(text: str) -> list[int]:
    """Return the word classes of all sentences of at least four words; 0 marks the ends of sentences."""
    return _classes_of(_Reading((), text).sentence_words)


def _classes_of(sentences: Sequence[Sequence[str]]) -> list[int]:
    return [0, *(place for words in sentences if len(words) > 3 for place in (*map(word_class, words), 0))]


def letter_classes(text: str) -> npt.NDArray[np.intp]:
    """Return the positions of a text's letters in the alphabet, from 1; 0 separates words."""
    letters = re.sub("[^a-z]+", "_", f"_{_lower(text)}_").encode()
    codes = np.frombuffer(letters, dtype=np.uint8).astype(np.intp) - 96
    return np.where(codes < 0, 0, codes)


def _unlikely(classes: Sequence[int] | npt.NDArray[np.intp], table: FloatArray, window: int) -> float:
    """Unlikeliness of the pairs in the least likely window; 0 for fewer than nine pairs."""
    values = table[classes[:-1], classes[1:]] if len(classes) > 9 else np.ones(1)
    sums = np.cumsum(np.r_[0.0, values])
    width = min(window, len(values))
    return float(0.6 - ((sums[width:] - sums[:-width]) / width).min()) / 1.2


def _odd_case(reading: _Reading) -> float:
    """Share of the sentences that begin with a lower-case letter."""
    starts = [_ITEM.sub("", one, count=1).lstrip(" *_\"“'([#>-")[:1] for one in reading.sentences]
    return _share(sum(start.islower() for start in starts), sum(start.isalpha() for start in starts))


def _symbols(reading: _Reading) -> float:
    """Share of the characters of the prose other than letters, digits, spaces and common marks."""
    counts = Counter("".join(reading.prose.split()))
    odd = sum(count for sign, count in counts.items() if not sign.isalnum() and sign not in ".,!?:;'\"-()*’“”#|")
    return _share(odd, sum(counts.values()))


def _list_disorder(reading: _Reading) -> float:
    """Share of the numbers in numbered lists that do not follow their predecessor."""
    pairs = list(zip(reading.numbers, reading.numbers[1:], strict=False))
    return _share(sum(after not in (before + 1, 1) for before, after in pairs), len(pairs))


# Insult.

_INSULT, _RUDE_WORD = _pattern("insult"), re.compile(rf"\b(?:{_pattern('rude').pattern})\b")
_ABOUT_RUDENESS = re.compile(rf"\binsult|\brude\b|\broast\b|\bsong\b|\blyrics\b|{_RUDE_WORD.pattern}")


_RULES: Mapping[str, Callable[[_Reading], float]] = MappingProxyType(
    {
        "no_end_mark": lambda reading: max(_open_end(reading), _no_end_mark(reading)),
        "open_end": _open_end,
        "prose_without_end": _prose_without_end,
        "unlike_lines": _unlike_lines,
        "unclosed_code": lambda reading: float(len(_FENCE.findall(reading.response)) % 2),
        "unclosed": _unclosed,
        "missing_items": _missing_items,
        "looping_tail": _looping_tail,
        "repeated_ngrams": lambda reading: _share_of_copies(
            _grams([word for words in reading.sentence_words for word in words], 6)
        ),
        "repeated_sentences": lambda reading: _share_of_copies([words for words in reading.sentence_words if len(words) > 3]),
        "compressible": _compressible,
        "longest_run": _longest_run,
        "special_tokens": _special_tokens,
        "reasoning": lambda reading: float(
            split_reasoning(reading.response).has_reasoning and not split_reasoning(reading.asked).has_reasoning
        ),
        "system_prompt": lambda reading: float(
            (reading.opens_with("system") or reading.has(_SYSTEM)) and not reading.asks(_ABOUT_MODELS)
        ),
        "spoken_reasoning": lambda reading: float(
            "user" not in reading.asked
            and (reading.opens_with("reasoning") or bool(_SPOKEN_REASONING.search(reading.lower[:600])))
        ),
        "speaker_labels": _speaker_labels,
        "user_voice": _user_voice,
        "refusal_opening": lambda reading: float(
            reading.opens_with("refusal") or _REFUSAL.search(reading.lower[:250]) is not None
        ),
        "refusal_anywhere": lambda reading: reading.share_of_sentences(_REFUSAL, "refusal"),
        "set_phrases": lambda reading: reading.share_of_sentences(_SET_PHRASE),
        # Generic words and the user's words.
        "generic_words": lambda reading: _share(
            len(reading.content & (_GENERIC | reading.question_content)), len(reading.content)
        ),
        "other_script": _other_script,
        "other_language": lambda reading: _foreign(reading, reading.words),
        "foreign_part": lambda reading: max(
            (_foreign(reading, words) for words in reading.sentence_words if len(words) > 6), default=0.0
        ),
        "error_phrase": _error_phrase,
        "raw_data": _raw_data,
        "question_covered": _question_covered,
        # Words that are not in the user's last turn.
        "own_words": lambda reading: _share(len(reading.content - reading.question_content), len(reading.content)),
        "earlier_covered": _earlier_covered,
        "repeated_answer": lambda reading: max(
            (_copied(reading.words, lower_words(turn)) for turn in reading.earlier_answers), default=0.0
        ),
        "copied_question": lambda reading: _copied(reading.words, reading.question_words),
        "whole_question": lambda reading: _copied(reading.question_words, reading.words, 4),
        "only_questions": lambda reading: _share(
            sum(one.rstrip(_CLOSERS).endswith("?") for one in reading.sentences), len(reading.sentences)
        ),
        "contradicting_twin": _contradicting_twin,
        "takes_back": _takes_back,
        "odd_letters": lambda reading: _unlikely(letter_classes(reading.prose), _LETTER_PAIRS, 160),
        "odd_order": lambda reading: _unlikely(_classes_of(reading.sentence_words), _WORD_PAIRS, 1 << 30),
        "odd_order_part": lambda reading: _unlikely(_classes_of(reading.sentence_words), _WORD_PAIRS, 24),
        "odd_case": _odd_case,
        "function_words": lambda reading: _share(sum(word in _ENGLISH for word in reading.words), len(reading.words)),
        "symbols": _symbols,
        "list_disorder": _list_disorder,
        "insult": lambda reading: float(
            ("insult" in reading.kinds or reading.has(_INSULT)) and not reading.asks(_ABOUT_RUDENESS)
        ),
        "rude_words": lambda reading: sum(word not in reading.asked for word in _RUDE_WORD.findall(reading.lower)) / 2,
    }
)

RULE_FEATURES: tuple[str, ...] = tuple(_RULES)
"""Names of the features, in the order of `rule_features`."""


def rule_features(context: Sequence[str], response: str) -> FloatArray:
    """Return the rule features of an answer.

    Args:
        context: texts of the turns before it, oldest first; the last one is the user's, and user and assistant alternate.
        response: the answer.

    Returns:
        Values in [0, 1], shape (len(RULE_FEATURES),).
    """
    reading = _Reading(context, response)
    return np.clip(np.array([rule(reading) for rule in _RULES.values()], dtype=np.float64), 0.0, 1.0)
