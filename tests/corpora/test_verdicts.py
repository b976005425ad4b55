"""Stored verdicts: both layouts, how judges are named, what is refused, and the published figures on the real collection."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.files import to_json, write_json_lines, write_text
from dialeval_plugin.corpora import verdicts
from dialeval_plugin.corpora.verdicts import ItemKey, find_judge, read_collection
from dialeval_plugin.methods.judging.replay import ReplayedJudge
from dialeval_plugin.statistics.coefficients.pearson import spearman
from reproduction.fusion.sets import REPORTED, reported_set
from tests.refusals import refusal, refused

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

    def write(*columns: Mapping[str, Any]) -> Path:
        path = tmp_path / "data" / "judgements" / "all.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        files = [{"path": "paper/a.json", "commit": "0123456789abcdef"}]
        write_text(tmp_path / "data" / "MANIFEST.json", to_json({"files": files}))
        known = {"tea": (3, "tea.json"), "chat": (1, "chat.json"), "elsewhere": (1, "x.json")}
        described = {name: {"rows": rows, "file": file} for name, (rows, file) in known.items()}
        write_text(path, to_json({"sets": described, "columns": list(columns)}))
        return path

    return write


def test_a_collection_gives_verdicts_by_text_and_level(collect: Callable[..., Path]) -> None:
    path = collect(column([4, 2, None]), column([5], set="chat", level="dialogue"), column([1], set="elsewhere"))
    judge = find_judge("gpt-9/PAPER", path)
    assert (judge.name, judge.origin, list(judge.readers)) == ("GPT-9/paper", "0123456789ab", ["overall"])
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
    ],
)
def test_a_damaged_column_is_named(collect: Callable[..., Path], changes: dict[str, Any], problem: str) -> None:
    path = collect({**column([4, 2, 1]), **changes})
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


def test_without_a_file_and_without_the_data_it_says_what_to_give(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DIALEVAL_DATA_DIR", raising=False)
    with pytest.raises(MissingPrerequisite, match=r"no file is named, and DIALEVAL_DATA_DIR is not set\. Pass verdicts='FILE'"):
        find_judge("gpt-4/g-eval")
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    with pytest.raises(MissingPrerequisite, match=r"replay\.json: is not there\. Pass verdicts='FILE'"):
        find_judge("gpt-4/g-eval")


def agreement(scores: Sequence[float | None], ratings: Sequence[float | None]) -> float:
    pairs = [(x, y) for x, y in zip(scores, ratings, strict=True) if x is not None and y is not None]
    return spearman(*zip(*pairs, strict=True))


@pytest.mark.real_data
def test_the_published_coefficients_come_out_on_every_set() -> None:
    """Of each column the figure that its collectors computed, against the set's mean rating, and that of `replay_judge`.

    A text that was judged twice has the mean of both verdicts there; blank responses and verdicts off the scale are left out.
    """
    published = json.loads(verdicts._collection().read_text(encoding="utf-8"))["columns"]
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
