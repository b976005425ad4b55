"""Reader of stored verdicts of language models: a judge's scores of items, which are identified by their text.

There are two layouts. `dialeval score --record FILE.jsonl` writes one verdict per line (`RecordedVerdict`), those of one item
in the order of the runs. A collection is one JSON object: `sets` gives each rated set's number of rows by name, `columns` one
judge's scores of a set's rows in order, null without a readable number, with `judge`, `source`, `criterion`, `level`, `range`
("1-5"), and the `file` of origin. A criterion is a quality and, if one source prompted for it in several ways, the way:
"coherence, prompt geval".

`published_verdicts.json` is a collection whose columns give, instead of `scores`, their location in the published files that
`dialeval data fetch llm_judgements` downloads: the `fields`, one per run, and one of the `orders`.

A judge is named by `judge/source` or `judge/source/way`, in any case: `gpt-4/g-eval_persona-chat`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from typing_extensions import NotRequired, TypedDict

from dialeval_plugin.core.dialogue import Dialogue, Item, Level
from dialeval_plugin.core.errors import InputError, MissingPrerequisite, unknown_name
from dialeval_plugin.core.files import checked, read_json, read_json_lines
from dialeval_plugin.core.signature import file_hash

from .corpus import DATA_DIR_VARIABLE, Corpus
from .items import text_key
from .readers import conture, convai, dstc10

CORPUS = Corpus(name="llm_judgements", layout="verdicts of language models on some of these sets")
PROBABILITY = "P(yes)"
"""A prompting method that is not part of names: the number's range shows it."""

SET_READERS: Mapping[str, Callable[[], Sequence[Item]]] = {
    **{name: partial(dstc10.read, name) for name in ("topical-usr", "persona-usr", "dailydialog-zhao", "persona-zhao")},
    **{name: partial(dstc10.read, name) for name in ("fed-turn", "fed-dial")},
    "conture-turn": conture.read_examples,
    "conture-dial": conture.read_dialogues,
    "convai2": lambda: convai.read_convai2([convai.CONVAI2.file("export_2018-07-07_train.json")]),
}
"""Items of a collection's sets in the order of its rows; columns of other sets are skipped."""
_CRITERION = re.compile(r"(?P<quality>[^:,]+?)(?:[:,] | (?=with ))(?P<way>.+)")
_DIGITS = 12
"""Length of a commit or a hash in a signature."""
_ADVICE = "Is it a file of `dialeval score --record`, or a collection of published verdicts?"


class RecordedVerdict(TypedDict):
    """One line of a recording."""

    judge: str
    quality: str
    level: Level
    scale: tuple[float, float]
    item: str
    """`text_key` of the item."""
    score: float


class _Set(TypedDict):
    rows: int


class _Column(TypedDict):
    judge: str
    source: str
    set: str
    level: Level
    criterion: str
    range: str
    file: NotRequired[str]
    scores: NotRequired[list[float | None]]
    fields: NotRequired[list[str]]
    order: NotRequired[str]


class ItemKey(NamedTuple):
    """The item of a verdict."""

    level: Level
    text: str

    @classmethod
    def of(cls, item: Item) -> ItemKey:
        """Return the key of an item."""
        return cls("dialogue" if isinstance(item, Dialogue) else "turn", text_key(item))


@dataclass(frozen=True, slots=True)
class StoredVerdicts:
    """A judge's answers about one quality, by item, with the lowest and highest possible answer.

    An item has several answers if the judge was run more than once, or if items share a text.
    """

    scale: tuple[float, float]
    by_item: Mapping[ItemKey, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A judge's scores of one quality for the rows of one set, in order; None without a readable number."""

    judge: str
    """Name as in `StoredJudge`."""
    quality: str
    set: str
    level: Level
    scale: tuple[float, float]
    scores: tuple[float | None, ...]
    origin: str


@dataclass(frozen=True, slots=True)
class StoredJudge:
    """A judge whose verdicts are stored.

    Attributes:
        name: the judge, the source of its verdicts, and the prompting method.
        origin: commits of the published files of verdicts, or a hash of the recording.
        readers: readers of the verdicts about each quality, with their sets.
    """

    name: str
    origin: str
    readers: Mapping[str, Callable[[], StoredVerdicts]]

    def about(self, quality: str) -> StoredVerdicts:
        """Return the verdicts about a quality.

        Raises:
            InputError: there are none; the message lists the qualities.
            MissingPrerequisite: none of their sets is on this machine.
        """
        if quality not in self.readers:
            raise unknown_name(f"{self.name}: was not asked about {quality!r}", quality, self.readers)
        return self.readers[quality]()


def find_judge(source: str, path: Path | None = None) -> StoredJudge:
    """Return the judge `source` of a file; by default of the files that `dialeval data fetch llm_judgements` downloaded.

    Raises:
        InputError: the file holds no stored verdicts, or does not have that judge; the message lists its judges.
        MissingPrerequisite: there is no file.
    """
    path = _collection() if path is None else path
    judges = _of_recording(path) if path.suffix == ".jsonl" else _of_collection(path)
    for judge in judges:
        if judge.name.casefold() == source.casefold():
            return judge
    raise unknown_name(f"{path}: has no verdicts of {source!r}", source, sorted(judge.name for judge in judges))


def _collection() -> Path:
    """Return the path of the collection: in the corpus' folder, or the packaged index of its published files."""
    own = CORPUS.folder() / "replay.json"
    return own if own.is_file() else Path(__file__).with_name("published_verdicts.json")


def _of_recording(path: Path) -> list[StoredJudge]:
    lines = [line.value for line in read_json_lines(path)]
    by_judge: dict[str, dict[str, list[RecordedVerdict]]] = {}
    for verdict in checked(lines, list[RecordedVerdict], str(path), advice=_ADVICE):
        by_judge.setdefault(verdict["judge"], {}).setdefault(verdict["quality"], []).append(verdict)
    origin, judges = file_hash(path)[:_DIGITS], []
    for name, about in by_judge.items():
        readers = {quality: cache(partial(_recorded, path, quality, own)) for quality, own in about.items()}
        judges.append(StoredJudge(name, origin, readers))
    return judges


def _recorded(path: Path, quality: str, verdicts: Sequence[RecordedVerdict]) -> StoredVerdicts:
    scales = {verdict["scale"] for verdict in verdicts}
    if len(scales) > 1:
        raise InputError(f"{path}: has {quality!r} on {len(scales)} scales. Record each in a file of its own.")
    low, high = scales.pop()
    if not low < high:
        raise InputError(f"{path}: has {quality!r} on the scale {low:g} to {high:g}, which does not rise. Record it again.")
    answers = ((ItemKey(verdict["level"], verdict["item"]), verdict["score"]) for verdict in verdicts)
    return StoredVerdicts((low, high), _by_item(answers))


def read_collection(path: Path | None = None) -> list[StoredColumn]:
    """Read the columns of a collection; raises as `find_judge`."""
    path = _collection() if path is None else path
    content = read_json(path)
    if not isinstance(content, dict) or not {"sets", "columns"} <= content.keys():
        raise InputError(f"{path}: has no stored verdicts. {_ADVICE}")
    sets = checked(content["sets"], dict[str, _Set], f"{path}: sets", advice=_ADVICE)
    orders = checked(content.get("orders", {}), dict[str, list[int | None]], f"{path}: orders", advice=_ADVICE)
    commits = {file.path: file.url.split("/")[5] for file in CORPUS.published.files}
    own_hash, read = file_hash(path), []
    for number, column in enumerate(checked(content["columns"], list[_Column], f"{path}: columns", advice=_ADVICE)):
        where = f"{path}: columns[{number}]"
        file = column.get("file", "").removeprefix(f"{CORPUS.name}/")
        n_rows = sets[column["set"]]["rows"] if column["set"] in sets else 0
        if "scores" not in column and ("fields" not in column or column.get("order") not in orders):
            raise InputError(f"{where}: has neither scores nor a place where they stand. {_ADVICE}")
        scores = column["scores"] if "scores" in column else _published(file, column, orders[column["order"]], n_rows)
        if not n_rows or len(scores) != n_rows:
            raise InputError(f"{where}: has {len(scores)} verdicts, which are not those of a set. {_ADVICE}")
        match = _CRITERION.fullmatch(column["criterion"])
        quality, way = (match["quality"], match["way"]) if match else (column["criterion"], "")
        way = way.removeprefix(PROBABILITY).removeprefix("prompt").strip(" ,")
        name = "/".join(filter(None, (column["judge"].partition(" (")[0], column["source"], way)))
        scale, origin = _scale(column["range"], where), commits.get(file, own_hash)[:_DIGITS]
        read.append(StoredColumn(name, quality, column["set"], column["level"], scale, tuple(scores), origin))
    return read


def _published(name: str, column: _Column, order: Sequence[int | None], n_rows: int) -> list[float | None]:
    """Return published verdicts, the mean of the runs, in the order of the set's rows.

    `order` gives each row's position in the file. If shorter than the set, it repeats, with positions shifted by its length.
    """
    content = read_json(path := CORPUS.file(name))
    try:
        runs = [_entries(content, field) for field in column["fields"]]
        verdicts = [[number for answer in answers for number in _numbers(answer)] for answers in zip(*runs, strict=True)]
        # The last digits of a mean depend on the order of the runs, and would separate ties.
        means = [None if not given else given[0] if len(given) == 1 else round(fmean(given), 11) for given in verdicts]
        places = [place if place is None else start + place for start in range(0, n_rows, len(order)) for place in order]
        return [place if place is None else means[place] for place in places]
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{path}: is not as it was published. Type `dialeval data fetch {CORPUS.name}`.") from error


def _entries(content: Any, field: str) -> list[Any]:
    """Return the values of a field of a published file, by item."""
    if isinstance(content, dict) and field in content:
        return list(content[field])
    parts = [part for part in content.values() if isinstance(part, list)] if isinstance(content, dict) else [content]
    return [entry[field] for part in parts for entry in part]


def _numbers(answer: Any) -> list[float]:
    """Return the first number of each of a judge's answers; some have none."""
    matches = (re.search(r"\d+(\.\d+)?(e-?\d+)?", str(one)) for one in (answer if isinstance(answer, list) else [answer]))
    return [float(match[0]) for match in matches if match]


def _of_collection(path: Path) -> list[StoredJudge]:
    by_judge: dict[str, dict[str, list[StoredColumn]]] = {}
    for column in read_collection(path):
        by_judge.setdefault(column.judge, {}).setdefault(column.quality, []).append(column)
    judges = []
    for name, about in by_judge.items():
        origin = ",".join(sorted({column.origin for own in about.values() for column in own}))
        readers = {quality: cache(partial(_joined, path, own)) for quality, own in about.items()}
        judges.append(StoredJudge(name, origin, readers))
    return judges


def _joined(path: Path, columns: Sequence[StoredColumn]) -> StoredVerdicts:
    """Join the columns of one judge about several sets; only sets that can be read here count."""
    answers: list[tuple[ItemKey, float]] = []
    scales = []
    for column in columns:
        try:
            items = SET_READERS.get(column.set, tuple)()
        except MissingPrerequisite:
            continue
        if not items:
            continue
        if len(items) != len(column.scores):
            raise InputError(
                f"{path}: {column.judge} has {len(column.scores)} verdicts about {column.set}, and that set has {len(items)} "
                "rows here. Use the file that was judged."
            )
        answers += [(ItemKey.of(item), score) for item, score in zip(items, column.scores, strict=True) if score is not None]
        scales.append(column.scale)
    if not scales:
        named = ", ".join(column.set for column in columns)
        raise MissingPrerequisite(
            f"{path}: the verdicts of {columns[0].judge} about {columns[0].quality} are about {named}, which cannot be read "
            f"here. Put the sets into the folder that {DATA_DIR_VARIABLE} names."
        )
    return StoredVerdicts((min(low for low, _ in scales), max(high for _, high in scales)), _by_item(answers))


def _by_item(answers: Iterable[tuple[ItemKey, float]]) -> dict[ItemKey, tuple[float, ...]]:
    by_item: dict[ItemKey, list[float]] = {}
    for key, answer in answers:
        by_item.setdefault(key, []).append(answer)
    return {key: tuple(values) for key, values in by_item.items()}


def _scale(text: str, where: str) -> tuple[float, float]:
    """Return the ends of "1-5", or of "1-5 (seen 0-9)": the scale given in the prompt."""
    match = re.match(r"(\d+)-(\d+)", text)
    if match is None or not int(match[1]) < int(match[2]):
        raise InputError(f"{where}: the range is {text!r}, expected two numbers as '1-5'.")
    return float(match[1]), float(match[2])
