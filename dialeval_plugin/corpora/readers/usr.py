"""Reader of the USR ratings (Mehri and Eskenazi 2020): responses on TopicalChat and PersonaChat, in the published layout.

The file is a JSON array of `{context, fact, annotators, responses: [{response, model, <quality>: [numbers]}]}`: several systems
answer one context, and the raters named in `annotators` rate each answer. Nedelchev et al. (2021) published the same with one
number per response from every GLUE classifier (`eval_usr_topical_chat.json`), which `read_scored` returns as well. DSTC10's
topical-usr and persona-usr hold the same ratings in another layout (`dstc10.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.files import Line
from dialeval_plugin.corpora.corpus import Corpus
from dialeval_plugin.corpora.rows import as_path, context_lines, facts_of, objects_field, read_array, text_field

FILES = {
    "topical_chat": "usr_topical_chat.json",
    "persona_chat": "usr_percona_chat.json",
    "topical_chat_glue": "eval_usr_topical_chat.json",
}
"""The published files by name; the second file's name is misspelt by its publishers."""
SCALES = {
    "Understandable": (0, 1),
    **dict.fromkeys(("Natural", "Maintains Context", "Engaging"), (1, 3)),
    "Uses Knowledge": (0, 1),
    "Overall": (1, 5),
}
"""Qualities with the ends of their scales. The thesis of Nedelchev calls "Engaging" "Interesting"."""


class ScoredExamples(NamedTuple):
    """Rated responses, and the scores published with them: by name, one per example."""

    examples: tuple[Example, ...]
    scores: Mapping[str, tuple[float, ...]]


def read_examples(source: str | Path) -> list[Example]:
    """Read the rated responses of a file; see `read_scored`."""
    return list(read_scored(source).examples)


def read_scored(source: str | Path) -> ScoredExamples:
    """Read the rated responses of a file, by its path or a name of `FILES`, in its order, with the numbers of each.

    Changes by the reader: the context is split into turns at its line ends, and turns and responses lose the white space around
    them; persona lines become one fact each, without `your persona:`; `_nofact` is no fact. The file has no ids: the responses
    to its first context are named after the file `..._000_1`, `..._000_2`, ...
    """
    path = as_path(source)
    if path is None:
        if source not in FILES:
            raise unknown_name(f"{source!r}: is neither a file nor a USR set", source, FILES)
        path = CORPUS.file(FILES[str(source)])
    stem = path.name.partition(".")[0]
    examples: list[Example] = []
    scores: list[dict[str, float]] = []
    for number, row in enumerate(read_array(path)):
        n_raters = len(_list(row, "annotators"))
        context = tuple(map(Turn, context_lines(text_field(row, "context"))))
        facts = facts_of(text_field(row, "fact"))
        for index, response in enumerate(objects_field(row, "responses")):
            examples.append(
                Example(
                    id=f"{stem}_{number:03d}_{index + 1}",
                    context=context,
                    response=Turn(text_field(response, "response").strip()),
                    facts=facts,
                    system=text_field(response, "model"),
                    ratings={quality: _ratings(response, quality, n_raters) for quality in SCALES},
                )
            )
            scores.append(_scores(response, scores[0] if scores else None))
    columns = {name: tuple(row[name] for row in scores) for name in (scores[0] if scores else ())}
    return ScoredExamples(tuple(examples), columns)


def _list(row: Line, name: str) -> list[Any]:
    values = row.value.get(name)
    if not isinstance(values, list):
        raise InputError(f"{row.where}: {name}: expected a list, got {values!r:.80}. Is this another file's layout?")
    return values


def _ratings(response: Line, quality: str, n_raters: int) -> tuple[float, ...]:
    values = _list(response, quality)
    low, high = SCALES[quality]
    for rater, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InputError(
                f"{response.where}: {quality}[{rater}]: expected a whole number from {low} to {high}, got {value!r}."
            )
    if len(values) != n_raters:
        raise InputError(f"{response.where}: {quality}: has {len(values)} ratings, but {n_raters} annotators are named.")
    return tuple(float(value) for value in values)


def _scores(response: Line, first: Mapping[str, float] | None) -> dict[str, float]:
    found = {
        name: float(value)
        for name, value in response.value.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    }
    if first is not None and set(found) != set(first):
        raise InputError(
            f"{response.where}: has the numbers {', '.join(found) or 'none'}, but the file's first response has "
            f"{', '.join(first) or 'none'}. Give every response the same."
        )
    return found


CORPUS = Corpus(
    name="usr",
    layout="JSON array with `context`, `fact`, `responses`",
    recognises=lambda file: file.is_array and file.has("responses", "context"),
    qualities={"turn": tuple(SCALES)},
    overall={"turn": "Overall"},
    read_items=read_examples,
    sets={"usr": lambda: [*read_examples("topical_chat"), *read_examples("persona_chat")]},
)
