"""FAULTS R67, D17: whatever stands in a result file, a samples file or a leaderboard, it is read or refused by name."""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.leaderboard.board import Leaderboard
from dialeval_plugin.leaderboard.build import build
from dialeval_plugin.leaderboard.rescoring import newest, rescore
from dialeval_plugin.leaderboard.result_files import read_runs
from dialeval_plugin.reports.correlation_report import ReportOptions
from dialeval_plugin.statistics.bootstrap import Bootstrap
from tests.leaderboard_files import write_runs

HISTORIC = Path(__file__).parents[1] / "historic_results" / "0.1.0"
DATE = "2026-11-20T16-37-41.528475"
ODD = (None, True, False, -1, 0, 7, 1e18, 1e308, -1.5, "", "x", "nan", "1e999", "9", [], [1, 2], ["x", None], {}, {"a": 1})
QUESTION = ReportOptions(bootstrap=Bootstrap(0), permutations=0)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of everything in a JSON value but itself."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in entries:
        yield (*path, name)
        yield from places(inner, (*path, name))


def mutated(value: Any, drawn: random.Random) -> Any:
    """One node, near the top as often as deep down, is another value or is not there."""
    found = copy.deepcopy(value)
    by_depth: dict[int, list[tuple[Any, ...]]] = {}
    for path in places(found):
        by_depth.setdefault(len(path), []).append(path)
    *way, last = drawn.choice(by_depth[drawn.choice(sorted(by_depth))])
    holder = found
    for step in way:
        holder = holder[step]
    if drawn.random() < 0.2:
        del holder[last]
    else:
        holder[last] = copy.deepcopy(drawn.choice(ODD))
    return found


def read_and_use(folder: Path) -> None:
    rescore(newest(read_runs([folder])), QUESTION)
    build([folder], rank_rounds=0)


def refusal(action: Callable[[], object]) -> str | None:
    """The message of an `InputError`, the one error that may come; None where there is none."""
    try:
        action()
    except InputError as error:
        return str(error)
    return None


def count_accepted(refusals: Sequence[str | None], name: str) -> int:
    """Refusals begin with the name of the file."""
    assert [said for said in refusals if said and not said.startswith((name, "rescore: no run with samples"))] == []
    return refusals.count(None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in HISTORIC.glob("*_*"):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_a_mutated_result_file_is_read_or_refused(folder: Path) -> None:
    drawn = random.Random(0)
    path = folder / f"judge_{DATE}.json"
    good = json.loads(path.read_text(encoding="utf-8"))
    said = []
    for _ in range(90):
        path.write_text(json.dumps(mutated(good, drawn)), encoding="utf-8")
        said.append(refusal(lambda: read_and_use(folder)))
    assert 20 < count_accepted(said, str(folder)) < 85


@pytest.mark.parametrize("task", ["dstc10_dialog_mini", "slide_mini", "dailydialog_pp_mini"])
def test_a_mutated_samples_file_is_read_or_refused(task: str, folder: Path) -> None:
    drawn = random.Random(1)
    path = folder / f"samples_{task}_{DATE}.jsonl"
    good = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    said = []
    for _ in range(40):
        changed = [mutated(sample, drawn) if place == 2 else sample for place, sample in enumerate(good)]
        path.write_text("".join(json.dumps(sample) + "\n" for sample in changed), encoding="utf-8")
        said.append(refusal(lambda: read_and_use(folder)))
    assert 5 < count_accepted(said, str(folder)) < 39


def test_a_mutated_leaderboard_is_read_or_refused(tmp_path: Path) -> None:
    write_runs(tmp_path)
    good = build([tmp_path], rank_rounds=0).board.to_dict()
    drawn = random.Random(2)

    def use(data: Any) -> None:
        board = Leaderboard.from_dict(data, where="board.json")
        board.to_csv()
        board.to_markdown()

    said = []
    for _ in range(150):
        data = mutated(good, drawn)
        said.append(refusal(lambda data=data: use(data)))  # type: ignore[misc]
    assert 10 < count_accepted(said, "board.json") < 140


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"date": 1e18}, "date: input should be less than or equal to 253402300799. Copy the file again."),
        (
            {"n-samples": {"slide_mini": {"original": -1}}},
            "n-samples.slide_mini.original: input should be greater than or equal to 0",
        ),
        ({"config": {"model": "hf", "model_args": [1, 2]}}, "config.model_args"),
        ({"versions": [1]}, "versions: input should be an object. Copy the file again."),
        ({"results": {"slide_mini": []}}, "results.slide_mini: input should be an object. Copy the file again."),
    ],
)
def test_the_field_is_named(change: dict[str, Any], message: str, folder: Path) -> None:
    path = folder / f"judge_{DATE}.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **change}), encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_runs([folder])
    assert str(refused.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1.5", "is 1.5, expected a number from -1 to 1. Copy the file again."),
        ("1e308", "is 1e+308, expected a number from -1 to 1. Copy the file again."),
        ("true", "is True, which is no number. Copy the file again."),
    ],
)
def test_a_coefficient_that_cannot_be_is_refused(value: str, message: str, folder: Path) -> None:
    path = folder / f"judge_{DATE}.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"llm_spearman,none": -0.4409585518440985', f'"llm_spearman,none": {value}'), encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_runs([folder])
    assert str(refused.value) == f"{path}: results.slide_mini.llm_spearman: {message}"


def test_a_count_below_0_and_a_number_of_400_digits_are_refused(folder: Path) -> None:
    path = folder / f"judge_{DATE}.json"
    good = json.loads(path.read_text(encoding="utf-8"))
    file = copy.deepcopy(good)
    file["results"]["dstc10_dialog_mini"]["n_scored,none"] = -1
    path.write_text(json.dumps(file), encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_runs([folder])
    assert str(refused.value) == (
        f"{path}: results.dstc10_dialog_mini.n_scored: is -1, expected a number from 0. Copy the file again."
    )
    # R78: what the host writes where it has no number is none, but this is no number of the host's.
    file["results"]["dstc10_dialog_mini"]["n_scored,none"] = 10**400
    path.write_text(json.dumps(file), encoding="utf-8")
    with pytest.raises(InputError, match=r"has a number that cannot be read"):
        read_runs([folder])


def test_scores_without_their_scorers_signature_are_refused(tmp_path: Path) -> None:
    # TRIAL S1: what `--use_cache` of an older release left behind, another scorer's answers under this one's name.
    write_runs(tmp_path)
    path = tmp_path / "run-1" / "results_2026-05-01T12-00-01.000000.json"
    file = json.loads(path.read_text(encoding="utf-8"))
    file["config"]["scorer_signature"] = None
    path.write_text(json.dumps(file), encoding="utf-8")
    for action in (lambda: rescore(read_runs([tmp_path]), QUESTION), lambda: build([tmp_path], rank_rounds=0)):
        with pytest.raises(InputError) as refused:
            action()
        assert str(refused.value) == (
            f"{path}: dstc10_dialog_dgu: has scores, but not the signature of the scorer that gave them: they may be "
            "another's, out of a cache of the host. Run the task again."
        )


def test_two_scorers_under_one_name_are_refused(tmp_path: Path) -> None:
    write_runs(tmp_path)
    one, two = (tmp_path / f"run-{n}" / f"results_2026-05-01T12-00-0{n}.000000.json" for n in (1, 2))
    file = json.loads(two.read_text(encoding="utf-8"))
    file["config"] = {**json.loads(one.read_text(encoding="utf-8"))["config"], "scorer_signature": "method:sharp|slm:other"}
    del file["configs"]["dstc10_dialog_dgu"]
    two.write_text(json.dumps(file), encoding="utf-8")
    for action in (lambda: newest(read_runs([tmp_path])), lambda: build([tmp_path], rank_rounds=0)):
        with pytest.raises(InputError) as refused:
            action()
        assert str(refused.value) == (
            f"{one}: 'sharp' is another scorer than in {two}: its signature is 'method:sharp', and there it is "
            "'method:sharp|slm:other'. Leave one of the files out, or run its tasks again."
        )


def test_samples_of_two_small_models_in_one_file_are_refused(folder: Path) -> None:
    path = folder / f"samples_slide_mini_{DATE}.jsonl"
    first, *others = path.read_text(encoding="utf-8").splitlines()
    sample = json.loads(first)
    sample["doc"]["signature"] = "method:slide|slm:other"
    path.write_text("\n".join([json.dumps(sample), *others]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r": slide_mini: mixes samples of 'method:slide.*' and 'method:slide.*'\. Run"):
        read_runs([folder])
