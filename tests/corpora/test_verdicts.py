"""Stored verdicts: both layouts, how judges are named, what is refused, and the published figures on the real collection."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.files import to_json, write_json_lines, write_text
from dialeval_plugin.core.signature import file_hash
from dialeval_plugin.corpora import corpus, verdicts
from dialeval_plugin.corpora.corpus import RemoteFile, publications
from dialeval_plugin.corpora.items import text_key
from dialeval_plugin.corpora.registry import find_corpus
from dialeval_plugin.corpora.verdicts import SET_READERS, ItemKey, find_judge, read_collection
from dialeval_plugin.methods.judging.replay import ReplayedJudge
from dialeval_plugin.statistics.coefficients.pearson import spearman
from reproduction.fusion.sets import REPORTED, reported_set
from tests.loopback import serving_files
from tests.refusals import refusal, refused

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TEA = Example.from_texts(["Tea?"], "Yes, please.", id="0")
AGAIN = Example.from_texts(["Tea? "], "Yes,  please.", id="1")
TRAIN = Example.from_texts(["Where is the train?"], "It is late.", id="2")
CHAT = Dialogue("3", (Turn("Tea?"), Turn("Yes, please.")))


def column(scores: list[float | None], **changes: Any) -> dict[str, Any]:
    plain = {"judge": "GPT-9 (large)", "source": "paper", "set": "tea", "level": "turn", "criterion": "overall", "range": "1-5"}
    return {**plain, "scores": scores, "file": "paper/a.json", **changes}


@pytest.fixture
def collect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write a collection about two sets of which one can be read."""
    sets: Mapping[str, list[Item]] = {"tea": [TEA, AGAIN, TRAIN], "chat": [CHAT]}
    monkeypatch.setattr(verdicts, "SET_READERS", {name: lambda name=name: sets[name] for name in sets})

    def write(*columns: Mapping[str, Any], orders: Mapping[str, Any] | None = None) -> Path:
        path = tmp_path / "data" / "judgements" / "all.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        known = {"tea": (3, "tea.json"), "chat": (1, "chat.json"), "elsewhere": (1, "x.json"), "pair": (2, "y.json")}
        described = {name: {"rows": rows, "file": file} for name, (rows, file) in known.items()}
        write_text(path, to_json({"sets": described, "columns": list(columns), "orders": orders or {}}))
        return path

    return write


def test_a_collection_gives_verdicts_by_text_and_level(collect: Callable[..., Path]) -> None:
    path = collect(column([4, 2, None]), column([5], set="chat", level="dialogue"), column([1], set="elsewhere"))
    judge = find_judge("gpt-9/PAPER", path)
    assert (judge.name, judge.origin, list(judge.readers)) == ("GPT-9/paper", file_hash(path)[:12], ["overall"])
    stored = judge.about("overall")
    # One text was judged twice, and what the judge gave no number for is not there.
    assert stored.by_item == {ItemKey.of(TEA): (4.0, 2.0), ItemKey.of(CHAT): (5.0,)}
    assert ItemKey.of(TEA).text == ItemKey.of(CHAT).text  # told apart by their level alone
    assert stored.scale == (1.0, 5.0)


def test_a_criterion_is_a_quality_and_a_way_to_ask(collect: Callable[..., Path]) -> None:
    asked = ["overall", "overall: P(yes)", "overall: P(yes), run 1", "overall with explanation", "coherence, prompt geval"]
    path = collect(*(column([1, 1, 1], criterion=criterion) for criterion in asked))
    assert [(found.judge, found.quality) for found in read_collection(path)] == [
        ("GPT-9/paper", "overall"),
        ("GPT-9/paper", "overall"),
        ("GPT-9/paper/run 1", "overall"),
        ("GPT-9/paper/with explanation", "overall"),
        ("GPT-9/paper/geval", "coherence"),
    ]


def test_what_a_collection_does_not_have_is_refused_by_name(collect: Callable[..., Path], tmp_path: Path) -> None:
    path = collect(column([4, 2, None]), column([1], set="elsewhere", criterion="depth"))
    with refused(f"{path}: has no verdicts of 'gpt-9/papr'. Did you mean 'GPT-9/paper'? Known are: GPT-9/paper."):
        find_judge("gpt-9/papr", path)
    judge = find_judge("GPT-9/paper", path)
    with refused("GPT-9/paper: was not asked about 'fluency'. Known are: overall, depth."):
        judge.about("fluency")
    message = (
        f"{path}: the verdicts of GPT-9/paper about depth are about elsewhere, which cannot be read here. "
        "Put the sets into the folder that DIALEVAL_DATA_DIR names."
    )
    with refused(message, MissingPrerequisite):
        judge.about("depth")
    write_text(other := tmp_path / "other.json", "[]")
    advice = "Is it a file of `dialeval score --record`, or a collection of published verdicts?"
    assert refusal(find_judge, "x", other) == f"{other}: has no stored verdicts. {advice}"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"scores": [1, 2]}, "columns[0]: has 2 verdicts, which are not those of a set. Is it a file of"),
        ({"range": "low-high"}, "columns[0]: the range is 'low-high', expected two numbers as '1-5'."),
        ({"judge": 7}, "columns: 0.judge: input should be a valid string."),
        ({"scores": ...}, "columns[0]: has neither scores nor a place where they stand. Is it a file of"),
    ],
)
def test_a_damaged_column_is_named(collect: Callable[..., Path], changes: dict[str, Any], problem: str) -> None:
    changed = {name: value for name, value in {**column([4, 2, 1]), **changes}.items() if value is not ...}
    path = collect(changed)
    assert refusal(find_judge, "GPT-9/paper", path).startswith(f"{path}: {problem}")


def test_a_recording_keeps_runs_apart_and_refuses_two_scales(tmp_path: Path) -> None:
    row = {"judge": "hf:model", "quality": "overall", "level": "turn", "scale": [0, 1], "item": ItemKey.of(TEA).text}
    write_json_lines(path := tmp_path / "kept.jsonl", [{**row, "score": 0.25}, {**row, "score": 0.75}])
    assert find_judge("hf:model", path).about("overall").by_item == {ItemKey.of(TEA): (0.25, 0.75)}
    write_json_lines(path, [{**row, "score": 0.25}, {**row, "score": 4, "scale": [1, 5]}])
    with refused(f"{path}: has 'overall' on 2 scales. Record each in a file of its own."):
        find_judge("hf:model", path).about("overall")
    write_text(path, json.dumps({**row, "score": "high"}) + "\n")
    assert refusal(find_judge, "hf:model", path).startswith(f"{path}: 0.score: input should be a valid number.")


PUBLISHED = {
    "chats.json": {"Tea?": [{"response": "No.", "evaluation": ["2", "Score", "3"]}, {"evaluation": "Rating: 1\n\n2 words."}]},
    "more/runs.json": {"ovr_1": [1.0, 3.0], "ovr_2": [1.5, 4.0], "of_other": [5.0]},
    "list.json": [{"id": "b", "score": 1e-05}, {"id": "a", "score": "none"}],
    "dialogues.json": {"dialogues": [{"yes": 0.25}, {"yes": 0.75}], "pearson": 0.5},
}
"""Verdicts in the layouts in which they are published, about two rows."""


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of files of `llm_judgements` that were fetched from a server on this machine."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("DIALEVAL_DATA_DIR", raising=False)
    monkeypatch.setattr(corpus, "user_cache", lambda: tmp_path / "cache")
    below = Path("OWNER", "REPOSITORY", COMMIT)  # as on GitHub
    for name, content in PUBLISHED.items():
        (path := tmp_path / below / name).parent.mkdir(parents=True, exist_ok=True)
        write_text(path, to_json(content))
    with serving_files(tmp_path) as url:
        files = tuple(RemoteFile(name, f"{url}/{below}/{name}", file_hash(tmp_path / below / name)) for name in PUBLISHED)
        known = {"llm_judgements": replace(publications()["llm_judgements"], files=files)}
        monkeypatch.setattr(corpus, "publications", lambda: known)
        yield find_corpus("llm_judgements").fetch().folder


def test_verdicts_are_read_as_they_were_published(fetched: Path, collect: Callable[..., Path]) -> None:
    asked = [("chats.json", ["evaluation"], "turned"), ("more/runs.json", ["ovr_1", "ovr_2"], "as it is")]
    asked += [("list.json", ["score"], "by id"), ("dialogues.json", ["yes"], "as it is")]
    columns = [column([], file=file, fields=fields, order=order, set="pair") for file, fields, order in asked]
    for one in columns:
        del one["scores"]
    path = collect(*columns, orders={"as it is": [0], "turned": [1, 0], "by id": [None, 0]})
    found = read_collection(path)
    assert [one.scores for one in found] == [(1.0, 2.5), (1.25, 3.5), (None, 1e-05), (0.25, 0.75)]
    assert {one.origin for one in found} == {COMMIT[:12]}
    for changed in ("[]", '[{"score": 1}, {"id": "a"}]', "7"):
        write_text(fetched / "list.json", changed)
        with refused(f"{fetched / 'list.json'}: is not as it was published. Type `dialeval data fetch llm_judgements`."):
            read_collection(path)
    (fetched / "list.json").unlink()
    with refused(f"{fetched}: has no list.json. Type `dialeval data fetch llm_judgements`.", MissingPrerequisite):
        read_collection(path)


def test_every_published_column_is_of_a_file_that_can_be_fetched_and_of_a_set_that_can_be_read() -> None:
    index = json.loads(Path(verdicts.__file__).with_name("published_verdicts.json").read_text(encoding="utf-8"))
    assert {one["file"] for one in index["columns"]} == set(publications()["llm_judgements"].paths)
    assert {one["set"] for one in index["columns"]} == set(index["sets"]) == set(verdicts.SET_READERS)
    for one in index["columns"]:
        places = [place for place in index["orders"][one["order"]] if place is not None]
        assert len(set(places)) == len(places)
        assert index["sets"][one["set"]]["rows"] % len(index["orders"][one["order"]]) == 0


@pytest.mark.real_data
def test_published_files_say_what_the_collection_made_of_them_says(data_dir: Path) -> None:
    index = Path(verdicts.__file__).with_name("published_verdicts.json")
    collected = {(one.judge, one.quality, one.set): one for one in read_collection(data_dir / "llm_judgements" / "replay.json")}
    found = read_collection(index)
    assert len(found) == 63
    for one in found:
        other = collected[one.judge, one.quality, one.set]
        scores = [None if score is None else pytest.approx(score, abs=1e-11) for score in other.scores]
        assert (one.scale, one.level, one.origin, list(one.scores)) == (other.scale, other.level, other.origin, scores)


def test_without_a_file_and_without_the_data_it_says_what_to_type(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(corpus, "user_cache", lambda: tmp_path / "cache")
    monkeypatch.delenv("DIALEVAL_DATA_DIR", raising=False)
    message = (
        f"corpus 'llm_judgements': is not in the cache ({tmp_path / 'cache' / 'llm_judgements'}). Type `dialeval data fetch "
        "llm_judgements`, or set DIALEVAL_DATA_DIR to a folder that has it as 'llm_judgements'."
    )
    with refused(message, MissingPrerequisite):
        find_judge("gpt-4/g-eval")


def agreement(scores: Sequence[float | None], ratings: Sequence[float | None]) -> float:
    pairs = [(x, y) for x, y in zip(scores, ratings, strict=True) if x is not None and y is not None]
    return spearman(*zip(*pairs, strict=True))


@pytest.mark.real_data
def test_the_published_coefficients_come_out_on_every_set(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare each column's figure by its collectors, against the set's mean rating, with that of `replay_judge`.

    A text that was judged twice has the mean of both verdicts there; blank responses and verdicts off the scale are left out.
    """
    # Each judge opens the collection and its sets, and hashes their texts, which are the same for all of them.
    monkeypatch.setattr(verdicts, "read_collection", cache(read_collection))
    monkeypatch.setattr(verdicts, "SET_READERS", {name: cache(read) for name, read in SET_READERS.items()})
    keys: dict[int, tuple[Item, str]] = {}

    def key(item: Item) -> str:
        if id(item) not in keys:
            keys[id(item)] = item, text_key(item)
        return keys[id(item)][1]

    monkeypatch.setattr(verdicts, "text_key", key)
    published = json.loads((data_dir / "llm_judgements" / "replay.json").read_text(encoding="utf-8"))["columns"]
    rated = {name: reported_set(name) for name in REPORTED}
    replayed = left_out = 0
    for found, said in zip(read_collection(), published, strict=True):
        if found.set not in rated:
            continue
        items, ratings, *_ = rated[found.set]
        assert agreement(found.scores, ratings) == pytest.approx(said["spearman"], abs=0.0005), (found.judge, found.set)
        scores = ReplayedJudge(found.judge, found.quality, found.level).score(items)
        if {"empty_input", "out_of_range"}.isdisjoint(scores.unscored_by_reason):
            assert agreement(scores.values, ratings) == pytest.approx(said["spearman"], abs=0.003), (found.judge, found.set)
            replayed += 1
        else:
            left_out += 1
    assert (replayed, left_out) == (101, 7)
