"""Reader of CGDIALOG+ and of the human preferences of CausalScore (Feng et al. 2024), in the published layout.

`<corpus>_response_cause_<split>.json` is a JSON array of `{history, response, entities}`; `entities` are the spans of the
history that an annotator marked as direct causes of the response. `<corpus>_responses_pairwise.json` is a JSON array of
dialogues, each with the responses of four systems, compared two at a time by three annotators on five criteria.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn, is_blank
from dialeval_plugin.core.errors import InputError, MissingPrerequisite, unknown_name
from dialeval_plugin.core.files import Line
from dialeval_plugin.corpora.corpus import Corpus, FileHead
from dialeval_plugin.corpora.rows import (
    as_object,
    as_path,
    objects_field,
    read_array,
    require,
    row_ids,
    spoken_turn,
    text_field,
    texts_field,
    visible_turns,
)

logger = logging.getLogger(__name__)

CRITERIA = ("relevance", "specificity", "consistency", "empathy", "overall")
"""Criteria of the annotators, in the order of the files."""
OPTIONS = ("A is better.", "B is better.", "Both are good.", "Both are bad.")
"""Possible answers. A is the first system of the comparison's name."""
_FINDS_GOOD = {"first": (OPTIONS[0], OPTIONS[2]), "second": (OPTIONS[1], OPTIONS[2])}
"""Answers that rate A, and B, good."""
HUMAN = "human"
"""System name of the human responses: the paper's reference-based metrics compare all four systems' with them."""
PREFERENCE_FILES = {
    "dream": "DREAM_responses_pairwise.json",
    "esconv": "ESConv_responses_pairwise.json",
    "msc": "msc_responses_pairwise.json",
}

_VERSUS = "-vs-"
_RESPONSE = "_response"
_EVALUATION = "human_evaluation_"


@dataclass(frozen=True, slots=True)
class CausePair:
    """A response with the visible turns before it, and the turns that an annotator marked as its direct causes."""

    id: str
    context: tuple[Turn, ...]
    response: Turn
    causes: tuple[int, ...]
    """Indices into `context`, ascending; empty if nothing was marked."""


@dataclass(frozen=True, slots=True)
class RatedComparison:
    """The responses of two systems, A and B, to one context, and each annotator's answers."""

    first: str
    second: str
    votes: Mapping[str, tuple[str, ...]]
    """One of `OPTIONS` per annotator by criterion, in the order of the file."""


@dataclass(frozen=True, slots=True)
class PreferenceDialogue:
    """A context, the responses of several systems to it, and the annotators' comparisons of them."""

    id: str
    context: tuple[Turn, ...]
    responses: Mapping[str, Turn]
    """Response by system; a response may be blank."""
    comparisons: tuple[RatedComparison, ...]

    def points(self, system: str, criterion: str) -> tuple[int, ...]:
        """Return the number of annotators who rated the system's response good, for each of its comparisons."""
        return tuple(
            sum(vote in good for vote in row.votes[criterion])
            for row in self.comparisons
            for side, good in _FINDS_GOOD.items()
            if getattr(row, side) == system
        )

    def examples(self) -> Iterator[Example]:
        """Yield one example per response, with the id `<dialogue>/<system>` and the human's response as its reference.

        Its ratings are its `points`: the votes on one comparison are not independent of each other, so their sum is one rating.
        """
        human = self.responses.get(HUMAN)
        references = () if human is None or is_blank(human.text) else (human.text,)
        for system, response in self.responses.items():
            ratings = {criterion: self.points(system, criterion) for criterion in CRITERIA}
            yield Example(f"{self.id}/{system}", self.context, response, references, system=system, ratings=ratings)


def read_causes(path: Path) -> list[CausePair]:
    """Read a file of responses with their causes.

    Changes by the reader: a turn `W: text` becomes speaker and text; blank turns, with which every published history ends, are
    left out; a response loses its speaker if all responses of the file have one (DREAM's do, ESConv's and MSC's do not) or if
    it begins with one that the file's histories know. A cause is every turn that contains the marked span, or all turns that it
    crosses, if an annotator marked more than one; white space is ignored. Spans that are nowhere in the history are counted and
    logged. Other fields (`HITId`, `WorkerId`) are ignored. A pair is named after the file and its position, for example
    `DREAM_train_00012`.
    """
    rows = read_array(path)
    for row in rows:
        require(row, "history", "entities")
    histories = [tuple(spoken_turn(text) for text in texts_field(row, "history") if not is_blank(text)) for row in rows]
    texts = [text_field(row, "response") for row in rows]
    replies = list(map(spoken_turn, texts))
    speakers = {turn.speaker for history in histories for turn in history}
    if not all(reply.speaker for reply in replies):
        replies = [
            reply if reply.speaker in speakers else Turn(text.strip()) for reply, text in zip(replies, texts, strict=True)
        ]
    stem = path.name.partition(".")[0].replace("_response_cause", "")
    pairs, n_lost, n_spans = [], 0, 0
    for index, (row, history, reply) in enumerate(zip(rows, histories, replies, strict=True)):
        spans = [span for span in texts_field(row, "entities") if not is_blank(span)]
        matches = [_find_span(span, history) for span in spans]
        n_spans, n_lost = n_spans + len(spans), n_lost + sum(not places for places in matches)
        causes = tuple(sorted({place for places in matches for place in places}))
        pairs.append(CausePair(f"{stem}_{index:05d}", history, reply, causes))
    if n_lost:
        logger.warning("%s: %d of %d marked causes are in no turn of their history and are left out", path, n_lost, n_spans)
    return pairs


def read_preferences(source: str | Path, *, folder: Path | None = None) -> list[PreferenceDialogue]:
    """Read the human preferences of a corpus by its name ("dream", "esconv" or "msc"), or any file of the layout by its path.

    Changes by the reader: texts lose the white space around them; blank turns are left out. `first` and `second` are the
    systems' names without `_response`. `folder` holds the named files; by default the corpus' own.
    """
    path = as_path(source)
    if path is None:
        path = _preference_file(str(source), folder)
    rows = read_array(path)
    return list(map(_preference_dialogue, rows, row_ids(rows, path.stem, "id")))


def _preference_file(name: str, folder: Path | None) -> Path:
    if name not in PREFERENCE_FILES:
        raise unknown_name(f"{name!r}: is neither a file nor a corpus with preferences", name, PREFERENCE_FILES)
    path = (folder if folder is not None else CORPUS.folder()) / PREFERENCE_FILES[name]
    if not path.is_file():
        raise MissingPrerequisite(
            f"{path.parent}: has no {path.name} (the human preferences on {name}). Nobody offers it for download any more: "
            "get it from whoever has it, for example the history of its repository, and put it there."
        )
    return path


def _find_span(span: str, history: Sequence[Turn]) -> list[int]:
    """Return indices of the turns that contain the span, or that it crosses."""
    sought = " ".join(span.split())
    texts = [" ".join(turn.text.split()) for turn in history]
    if inside := [index for index, text in enumerate(texts) if sought in text]:
        return inside
    lines = [f"{turn.speaker}: {text}" if turn.speaker else text for turn, text in zip(history, texts, strict=True)]
    start = " ".join(lines).find(sought)
    if start < 0:
        return []
    ends = list(accumulate(len(line) + 1 for line in lines))
    return [index for index, end in enumerate(ends) if start < end and end - len(lines[index]) - 1 < start + len(sought)]


def _preference_dialogue(row: Line, id: str) -> PreferenceDialogue:
    turns = [_spoken(turn) for turn in objects_field(row, "history")]
    responses = {
        name.removesuffix(_RESPONSE): _spoken(as_object(value, f"{row.where}: {name}"))
        for name, value in row.value.items()
        if name.endswith(_RESPONSE) and _VERSUS not in name
    }
    comparisons = [_comparison(row, name, responses) for name in row.value if _VERSUS in name]
    if not comparisons:
        raise InputError(
            f"{row.where}: has no comparison, a field named like 'x_response-vs-y_response'. Is this another file?"
        )
    return PreferenceDialogue(id, visible_turns(turns), responses, tuple(comparisons))


def _spoken(row: Line) -> Turn:
    return Turn(text_field(row, "utterance").strip(), text_field(row, "speaker") if row.value.get("speaker") else None)


def _comparison(row: Line, name: str, responses: Mapping[str, Turn]) -> RatedComparison:
    where = f"{row.where}: {name}"
    value = row.value[name]
    first, _, second = (part.removesuffix(_RESPONSE) for part in name.partition(_VERSUS))
    for system in (first, second):
        if system not in responses:
            raise InputError(f"{where}: there is no response of {system!r}. It has: {', '.join(responses)}.")
    annotators = [key for key in value if key.startswith(_EVALUATION)] if isinstance(value, dict) else []
    if not annotators:
        raise InputError(f"{where}: has no '{_EVALUATION}1'. Is this another file's layout?")
    votes = {criterion: tuple(_vote(value[key], criterion, f"{where}: {key}") for key in annotators) for criterion in CRITERIA}
    return RatedComparison(first, second, votes)


def _vote(answers: object, criterion: str, where: str) -> str:
    answer = answers.get(criterion) if isinstance(answers, dict) else None
    if answer not in OPTIONS:
        raise InputError(f"{where}: {criterion}: {answer!r} is none of the four answers: {' '.join(OPTIONS)}")
    return str(answer)


def _has_utterances(history: object) -> bool:
    """Whether a history is a list of utterances; other files' histories are not: Alpaca's has pairs, a chat's has roles."""
    return isinstance(history, list) and bool(history) and all(isinstance(one, dict) and "utterance" in one for one in history)


def has_causes(path: Path) -> bool:
    """Whether a file has responses with their causes; raises as `read_text`."""
    return (beginning := FileHead.of(path)).is_array and beginning.has("history", "entities")


def _read_items(path: Path) -> Sequence[Item]:
    """Return the compared responses; from a file of causes, each response with its context, as a dialogue."""
    if has_causes(path):
        return _read_dialogues(path)
    return [example for dialogue in read_preferences(path) for example in dialogue.examples()]


def _read_dialogues(path: Path) -> list[Dialogue]:
    return [Dialogue(pair.id, (*pair.context, pair.response)) for pair in read_causes(path)]


CORPUS = Corpus(
    name="cgdialog_plus",
    layout="JSON array with `history`, `response`",
    recognises=lambda file: (
        file.is_array and file.has("history") and (file.has("entities") or _has_utterances(file.value["history"]))
    ),
    read_items=_read_items,
    read_dialogues=_read_dialogues,
)
