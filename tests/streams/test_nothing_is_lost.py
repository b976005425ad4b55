"""A file in the place of an output is never lost, and a command that was killed is finished by the same command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from filelock import FileLock
from typer.testing import Result

from dialeval_plugin.conversations.record import ReadingOptions
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import NothingToScore
from dialeval_plugin.core.files import read_json, remove_half_written, write_text
from dialeval_plugin.core.locks import lock_file
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import meta_file
from dialeval_plugin.core.signature import file_hash
from dialeval_plugin.corpora.scored_input import Shard, Source
from dialeval_plugin.corpora.verdicts import ItemKey
from dialeval_plugin.llm.language_model import Question
from dialeval_plugin.methods.judging.replay import Recorder, ReplayedJudge
from dialeval_plugin.models.folders import PRETRAINED, write_manifest
from dialeval_plugin.streams import run
from dialeval_plugin.streams.launch import ShardedRun, launch, score_own_shard
from dialeval_plugin.streams.output import merge, read_rows
from dialeval_plugin.streams.run import ScoreRun
from tests.cli.running import run as dialeval
from tests.cli.running import write_rows
from tests.refusals import refusal
from tests.streams.scored import killed, score_file

ROWS = [{"id": f"r{number}", "context": [f"Hi {number % 7}."], "response": "x " * (number % 9 + 1)} for number in range(60)]
LENGTH = load_scorer("response_length")
OTHER = "holds something else than the scores of this scorer, with these options, of this input. Choose another name, or "
OVERWRITE = "add --overwrite to replace it."


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "BLOCK", 20)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(str(write_rows(tmp_path / "rows.jsonl", ROWS)))


def shards_of(source: Source, folder: Path, n: int = 3) -> list[Path]:
    parts = [folder / f"part-{number}.jsonl" for number in range(1, n + 1)]
    for number, part in enumerate(parts, start=1):
        score_file(LENGTH, source, part, shard=Shard(number, n))
    return parts


def files(folder: Path, name: str) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if name in path.name or name in path.parent.name]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if path.is_file()}


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_the_scores_of_another_input_are_replaced_when_that_is_asked_for(tmp_path: Path, source: Source, suffix: str) -> None:
    output, another = tmp_path / f"out.{suffix}", Source(str(write_rows(tmp_path / "b.jsonl", ROWS[:5])))
    score_file(LENGTH, source, output)
    before = files(tmp_path, "out")
    assert refusal(score_file, LENGTH, another, output) == f"{output}: {OTHER}{OVERWRITE}"
    # Nor do blocks that a kill left make it the output of this run.
    (tmp_path / f"out.{suffix}.blocks").mkdir()
    assert refusal(score_file, LENGTH, another, output) == f"{output}: {OTHER}{OVERWRITE}"
    assert refusal(
        score_file, LENGTH, Source(source.name, ReadingOptions(columns={"context": "context", "response": "response"})), output
    )
    assert files(tmp_path, "out") == before
    score_file(LENGTH, source, output)
    assert files(tmp_path, "out") == before
    score_file(LENGTH, another, output, overwrite=True)
    assert len(list(read_rows(output))) == 5
    output.write_text("mine")
    assert refusal(score_file, LENGTH, another, output) == f"{output}: {OTHER}{OVERWRITE}"
    assert output.read_text() == "mine"


def test_an_output_may_be_there_whatever_kind_of_name_the_input_has(tmp_path: Path, source: Source) -> None:
    words = ("score", f"file://{source.name}", "--scorer", "response_length", "--worst", "0")
    for more in ((), (), ("--overwrite",)):
        assert dialeval(*words, "--output", tmp_path / "out.jsonl", *more).exit_code == 0
    for name in (f"file://{source.name}", f"local://{source.name}"):
        assert refusal(dialeval, "score", name, *words[2:], "--output", source.name, "--overwrite") == (
            f"{source.name}: is the input. Choose another name for the scores."
        )


def test_no_command_writes_to_a_file_that_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    write_rows(Path("log.jsonl"), ROWS)
    write_rows(Path("logs/log.jsonl"), [{"messages": [{"role": role, "content": "Hi."} for role in ("user", "assistant")]}])
    Path("labels.csv").write_text(
        "id,judge,anna\n" + "".join(f"a{n}:2,pass,{'pass' if n % 2 else 'fail'}\n" for n in range(20))
    )
    before = files(tmp_path, "l")
    for words, name in (
        (("compare", "log.jsonl", "log.jsonl", "--output", "log.jsonl"), "output"),
        (("bias", "log.jsonl", "--scorer", "response_length", "--output", "log.jsonl"), "output"),
        (("meta-eval", "labels.csv", "--raters", "anna", "--output", "labels.csv"), "output"),
        (("meta-eval", "x=labels.csv", "--raters", "anna", "--disagreements", "labels.csv"), "disagreements"),
        (
            ("estimate", "--scores", "labels.csv", "--labels", "labels.csv", "--raters", "anna", "--output", "labels.csv"),
            "output",
        ),
        (("train", "mixing", "--model", "logs", "--data", "labels.csv", "--output", "labels.csv"), "output"),
        (("label", "log.jsonl", "--labels", "labels.csv", "--output", "labels.csv"), "output"),
    ):
        assert refusal(dialeval, *words) == f"{words[-1]}: is the input. Choose another name for --{name}."
    words = ("score", "logs", "--scorer", "response_length", "--worst", "0", "--overwrite", "--output")
    assert refusal(dialeval, *words, "logs/log.jsonl") == "logs/log.jsonl: is the input. Choose another name for the scores."
    assert files(tmp_path, "l") == before
    # Scores next to the logs are none of them, and may be replaced.
    for _ in range(2):
        assert dialeval(*words, "logs/scores.jsonl").exit_code == 0


def test_scores_in_the_folder_that_is_scored_are_no_conversations(tmp_path: Path) -> None:
    """The number of each message in a CSV was scored as what was said, and a run that went on read its own blocks."""
    folder = tmp_path / "logs"
    folder.mkdir()
    rows = [{"messages": [{"role": role, "content": f"Hi, {n}."} for role in ("user", "assistant")]} for n in range(60)]
    write_rows(folder / "log.jsonl", rows)
    score_file(LENGTH, Source(str(folder)), whole := tmp_path / "whole.jsonl")
    for suffix in ("csv", "parquet", "jsonl"):
        output = folder / f"scores.{suffix}"
        assert killed("score", "replace", 2, "after", folder, output) == -9
        assert (folder / f"scores.{suffix}.blocks").is_dir()
        for _ in range(2):
            score_file(LENGTH, source := Source(str(folder)), output)
            assert source.n_items == 60
        assert read_json(meta_file(output)) == {**read_json(meta_file(whole)), "sha256": file_hash(output)}
        assert source.reading.passed_over.count(f"scores, left out: {output}") == 1
        assert refusal(Source(str(output)).read, "turn") == (
            f"{output}: is a file of scores. Give the conversations, or name the columns of its texts by --columns."
        )
    assert (folder / "scores.jsonl").read_bytes() == whole.read_bytes()


def test_everything_that_a_file_of_scores_is_of_is_compared(tmp_path: Path, source: Source) -> None:
    output = tmp_path / "out.jsonl"
    score_file(LENGTH, source, output)
    before = files(tmp_path, "out")
    write_rows(Path(source.name), [{**row, "response": "y" * len(str(row["response"]))} for row in ROWS])
    assert refusal(score_file, LENGTH, Source(source.name), output) == f"{output}: {OTHER}{OVERWRITE}"
    write_rows(Path(source.name), ROWS)
    assert refusal(score_file, load_scorer("random"), source, output) == f"{output}: {OTHER}{OVERWRITE}"
    assert refusal(score_file, LENGTH, source, output, shard=Shard(1, 2)) == f"{output}: {OTHER}{OVERWRITE}"
    assert files(tmp_path, "out") == before


def test_a_finished_block_is_of_these_texts(tmp_path: Path, source: Source) -> None:
    output = tmp_path / "out.jsonl"
    assert killed("score", "replace", 2, "before", source.name, output, "1/2") == -9
    write_rows(Path(source.name), [{**row, "response": f"{row['response']}y"} for row in ROWS])
    assert "this unfinished run has other inputs or settings" in refusal(score_file, LENGTH, source, output, shard=Shard(1, 2))


def test_two_processes_never_write_one_output(tmp_path: Path, source: Source) -> None:
    parts, output = shards_of(source, tmp_path), tmp_path / "out.jsonl"
    message = f"{output}: another process is at work on this run. Wait until it ends, or choose another output."
    with FileLock(lock_file(output)):
        assert refusal(merge, parts, output) == message
        assert refusal(score_file, LENGTH, source, output) == message
        words = ("score", source.name, "--scorer", "response_length", "--output", output)
        assert refusal(dialeval, *words) == message
    run = launched(source, output)
    run.folder.mkdir(parents=True)
    with FileLock(lock_file(run.folder)):
        assert refusal(launch, run, ScoreRun(LENGTH, source, output), "local", 2, {}) == message.replace(
            str(output), str(run.folder)
        )
    assert not output.exists()


def test_a_merged_file_is_complete_only_if_its_rows_are(tmp_path: Path) -> None:
    """Only one shard has rows without a score, half of all."""
    rows = [{"context": [f"Hi {n % 2}."], "response": "" if n % 2 else "Fine."} for n in range(8)]
    source = Source(str(write_rows(tmp_path / "rows.jsonl", rows)))
    parts = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    for number, part in enumerate(parts, start=1):
        ScoreRun(LENGTH, source, part, Shard(number, 2), max_unscored=0.3).score()
    of_parts = [json.loads(meta_file(part).read_text(encoding="utf-8"))["complete"] for part in parts]
    assert sorted(of_parts) == [False, True]
    assert merge(parts, tmp_path / "out.jsonl")["complete"] is False
    for share, is_complete in ((0.3, False), (0.5, True)):
        output = tmp_path / f"{share}.jsonl"
        together = [ScoreRun(LENGTH, source, output, max_unscored=share)] * 2
        assert score_own_shard(together[1], Shard(2, 2)) is None
        meta = score_own_shard(together[0], Shard(1, 2))
        assert meta is not None
        assert (meta["n_total"], meta["n_scored"], meta["complete"]) == (8, 4, is_complete)


def test_several_processes_overwrite_another_file(tmp_path: Path, source: Source) -> None:
    """They refused it, as without --overwrite."""
    output = write_rows(tmp_path / "out.jsonl", [{"id": "0", "score": 1}])
    run = ScoreRun(LENGTH, source, output)
    for shard in (Shard(1, 2), Shard(2, 2)):
        assert refusal(score_own_shard, run, shard).endswith("Choose another name, or delete it.")
    for _ in range(2):
        assert score_own_shard(replace(run, overwrite=True), Shard(2, 2)) is None
        assert score_own_shard(replace(run, overwrite=True), Shard(1, 2)) is not None
        assert run.stored() is not None
        assert not list(tmp_path.glob("out.jsonl.*s/*"))


def test_the_last_rows_of_a_shard_may_not_be_missing(tmp_path: Path, source: Source) -> None:
    parts = shards_of(source, tmp_path, 1)
    parts[0].write_text("".join(parts[0].read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")
    beside = tmp_path / "part-1.jsonl.meta.json"
    meta = {**json.loads(beside.read_text(encoding="utf-8")), "sha256": file_hash(parts[0])}
    beside.write_text(json.dumps(meta), encoding="utf-8")
    assert refusal(merge, parts, tmp_path / "m.jsonl") == (
        "shards: have 59 rows, and their source 60. Were files changed? Score the shards again."
    )


def test_a_place_in_parquet_holds_any_number_of_rows(tmp_path: Path, source: Source) -> None:
    score_file(LENGTH, source, part := tmp_path / "part.parquet", shard=Shard(1, 2))
    assert pyarrow.parquet.read_schema(part).field("place").type == pyarrow.int64()


@pytest.fixture
def tables(tmp_path: Path) -> list[Scorer]:
    """One model with its table of percentiles, with another, and without."""
    shutil.copytree(PRETRAINED / "general", model := tmp_path / "model")
    scorers = [load_scorer("general", model=str(model))]
    stored = json.loads((model / "percentiles.json").read_text(encoding="utf-8"))
    for table in stored["tables"]:
        table["quantiles"] = [value / 2 for value in table["quantiles"]]
    write_text(model / "percentiles.json", json.dumps(stored))
    write_manifest(model)
    scorers.append(load_scorer("general", model=str(model)))
    (model / "percentiles.json").unlink()
    write_manifest(model)
    return [*scorers, load_scorer("general", model=str(model))]


def test_percentiles_of_two_tables_are_never_one_column(
    tmp_path: Path, tables: list[Scorer], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(str(write_rows(tmp_path / "rows.jsonl", ROWS[:30])))
    output, parts = tmp_path / "out.jsonl", [tmp_path / f"part-{number}.jsonl" for number in (1, 2)]
    assert len({str(run.run_signature(scorer)) for scorer in tables}) == 1
    score_file(tables[0], source, parts[0], shard=Shard(1, 2))
    digests = ["none" if one.percentiles is None else one.percentiles.digest for one in tables]
    for scorer, digest in zip(tables[1:], digests[1:], strict=True):
        score_file(scorer, source, parts[1], shard=Shard(2, 2), overwrite=True)
        assert refusal(merge, parts, output) == (
            f"{parts[1]}: has percentiles of another table than {parts[0]} ({digest}, there {digests[0]}). Score it again."
        )
    score_block, scored = run.score_block, []

    def stopped(*arguments: object) -> object:
        if scored:
            raise KeyboardInterrupt
        scored.append(arguments)
        return score_block(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "score_block", stopped)
    with pytest.raises(KeyboardInterrupt):
        score_file(tables[0], source, output)
    monkeypatch.undo()
    monkeypatch.setattr(run, "BLOCK", 20)
    (block,) = (tmp_path / "out.jsonl.blocks").iterdir()
    assert refusal(score_file, tables[1], source, output) == (
        f"{block}: this unfinished run has other inputs or settings than the present one. "
        "Add --overwrite to start again, or repeat the first command to finish it."
    )
    score_file(tables[0], source, output)
    assert refusal(score_file, tables[1], source, output) == f"{output}: {OTHER}{OVERWRITE}"
    words = ["rows.jsonl"]
    folders = {ShardedRun.of(words, scorer, source.name, output, 2).folder for scorer in tables}
    assert len(folders) == 3


def test_a_whole_files_scores_with_percentiles_of_another_table_are_not_replaced(tmp_path: Path, tables: list[Scorer]) -> None:
    write_rows(tmp_path / "rows.jsonl", ROWS[:3])
    words = ("score", tmp_path / "rows.jsonl", "--option", f"model={tmp_path / 'model'}", "--output", tmp_path / "out.jsonl")
    assert dialeval(*words).exit_code == 0
    shutil.copy(PRETRAINED / "general" / "percentiles.json", tmp_path / "model")
    write_manifest(tmp_path / "model")
    assert refusal(dialeval, *words) == f"{tmp_path / 'out.jsonl'}: {OTHER}{OVERWRITE}"


def test_a_run_that_was_stopped_does_not_block_its_name(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (source.name, f"file://{source.name}"):
        output = tmp_path / "out.jsonl"
        words = ("score", name, "--output", output, "--worst", "0")
        score = type(LENGTH).score_batch
        monkeypatch.setattr(type(LENGTH), "window", 20)
        seen: list[int] = []

        def failing(
            self: Scorer, items: list[Example], score: Callable[..., list[object]] = score, seen: list[int] = seen
        ) -> list[object]:
            seen.append(len(items))
            if sum(seen) > 20:
                raise KeyboardInterrupt
            return score(self, items)

        monkeypatch.setattr(type(LENGTH), "score_batch", failing)
        dialeval(*words, "--scorer", "response_length")
        monkeypatch.setattr(type(LENGTH), "score_batch", score)
        assert not output.exists()
        assert "this unfinished run has other inputs or settings" in refusal(dialeval, *words, "--scorer", "random")
        assert dialeval(*words, "--scorer", "random", "--overwrite").exit_code == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "out.jsonl.meta.json", "rows.jsonl"]
        assert "random" in json.loads((tmp_path / "out.jsonl.meta.json").read_text(encoding="utf-8"))["signature"]
        output.unlink()


def verdicts(path: Path, score: float, item: Example, judge: str = "m") -> list[dict[str, object]]:
    key = ItemKey.of(item)
    rows = [{"judge": judge, "quality": "overall", "level": key.level, "scale": [0.0, 1.0], "item": key.text, "score": score}]
    write_rows(path, rows)
    return rows


def test_recorded_verdicts_of_another_run_are_not_replaced(tmp_path: Path) -> None:
    record, cats, tea = tmp_path / "v.jsonl", tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    write_rows(cats, [{"id": "a", "context": ["I like cats."], "response": "I like cats too."}])
    write_rows(tea, [{"id": "b", "context": ["I like tea."], "response": "Tea is fine."}])
    words = ("--scorer", "llm_chiang", "--llm", "scripted-judge", "--no-answers", "--worst", "0", "--max-unscored", "1")

    def score(path: Path, *more: str) -> Result:
        return dialeval("score", path, *words, "--record", record, *more)

    message = f"{record}: holds other verdicts than those of this run. Choose another name, or add --overwrite to replace them."
    assert score(cats).exit_code == 0
    before = record.read_bytes()
    assert refusal(score, tea) == message
    assert record.read_bytes() == before
    assert score(cats).exit_code == 0
    assert record.read_bytes() == before
    # The same judge about the same response, with another verdict: one of the two would be lost.
    record.write_bytes(before.replace(b'"score": ', b'"score": 1'))
    changed = record.read_bytes()
    assert refusal(score, cats) == message
    assert record.read_bytes() == changed
    assert score(tea, "--overwrite").exit_code == 0
    assert (
        json.loads(record.read_text(encoding="utf-8").splitlines()[0])["item"]
        == ItemKey.of(Example.from_texts(["I like tea."], "Tea is fine.")).text
    )
    record.write_text("not mine")
    assert refusal(score, tea) == f"{record}:1: not valid JSON (Expecting value). Was the file cut off?"


def test_a_command_writes_no_two_things_to_one_file(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "a.jsonl", ROWS[:2])
    for one, other in (("--output", "--record"), ("--record", "--by-conversation"), ("--output", "--by-conversation")):
        words = ("--scorer", "response_length", one, tmp_path / "x.json", other, tmp_path / "." / "x.json", "--overwrite")
        assert refusal(dialeval, "score", rows, *words) == (
            "--output, --record, --by-conversation: two of them name the same file. Give each its own."
        )
    assert not (tmp_path / "x.json").exists()


def test_verdicts_are_checked_before_anybody_is_asked(tmp_path: Path) -> None:
    item, other = (Example.from_texts(["Hi."], text) for text in ("Ho.", "Ha."))
    judge = Recorder(tmp_path / "v.jsonl", "m", {"score": Question("overall", (0.0, 1.0))})
    judge.refuse_others([item])
    verdicts(judge.path, 0.5, item)
    judge.refuse_others([item, other])
    assert "holds other verdicts" in refusal(judge.refuse_others, [other])
    verdicts(judge.path, 0.5, item, "another")
    assert "holds other verdicts" in refusal(judge.refuse_others, [item])


@pytest.mark.parametrize(("scale", "text"), [([1, 1], "1 to 1"), ([5, 1], "5 to 1")])
def test_verdicts_on_a_scale_that_cannot_be_are_refused(tmp_path: Path, scale: list[int], text: str) -> None:
    key = ItemKey.of(Example.from_texts(["Hi"], "Ho"))
    path = write_rows(
        tmp_path / "v.jsonl",
        [{"judge": "m", "quality": "overall", "level": "turn", "scale": scale, "item": key.text, "score": 1}],
    )
    assert refusal(ReplayedJudge, "m", verdicts=str(path)) == (
        f"{path}: has 'overall' on the scale {text}, which does not rise. Record it again."
    )


def test_a_scale_may_begin_below_zero(tmp_path: Path) -> None:
    item = Example.from_texts(["Hi"], "Ho")
    row = {"judge": "m", "quality": "overall", "level": "turn", "scale": [-5, 5], "item": ItemKey.of(item).text, "score": -3}
    judge = ReplayedJudge("m", verdicts=str(write_rows(tmp_path / "v.jsonl", [row])))
    assert (judge.range, judge.score([item]).values) == ((-5.0, 5.0), (-3.0,))


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_merge_that_was_killed_is_finished_by_the_same_command(
    tmp_path: Path, source: Source, suffix: str, number: int, moment: str
) -> None:
    """Killed at the rename of what belongs to all rows, and of the rows."""
    parts = shards_of(source, tmp_path)
    merge(parts, whole := tmp_path / f"whole.{suffix}")
    output = tmp_path / f"out.{suffix}"
    assert killed("merge", "replace", number, moment, output, *parts) == -9
    for _ in range(2):  # one that is finished stays as it is
        meta = merge(parts, output)
        assert (output.read_bytes(), meta["n_total"]) == (whole.read_bytes(), 60)
        assert sorted(path.name for path in tmp_path.iterdir() if "out" in path.name) == [
            output.name,
            f"{output.name}.meta.json",
        ]
    # Another file is never replaced, nor one that was changed.
    output.write_bytes(output.read_bytes() + b" ")
    assert refusal(merge, parts, output) == f"{output}: {OTHER}delete it."


@pytest.mark.parametrize(("function", "number"), [("replace", 1), ("replace", 4), ("rmtree", 1)])
def test_a_shard_that_was_killed_leaves_nothing_but_its_file(
    tmp_path: Path, source: Source, function: str, number: int
) -> None:
    score_file(LENGTH, source, whole := tmp_path / "whole.jsonl", shard=Shard(1, 2))
    output = tmp_path / "out.jsonl"
    assert killed("score", function, number, "before", source.name, output, "1/2") == -9
    assert files(tmp_path, "out")
    score_file(LENGTH, source, output, shard=Shard(1, 2))
    assert output.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if "out" in path.name) == ["out.jsonl", "out.jsonl.meta.json"]


def test_what_a_dead_process_left_half_written_is_removed_and_what_is_being_written_stays(tmp_path: Path) -> None:
    path, code = tmp_path / "scores.jsonl", "import os, sys; from dialeval_plugin.core.files import *; "
    dead = code + "context = atomic_path(Path(sys.argv[1])); context.__enter__(); os._exit(9)"
    alive = code + "context = atomic_path(Path(sys.argv[1])); context.__enter__(); print(flush=True); sys.stdin.read()"
    for name in ("scores.jsonl", "scores.json", "scores.jsonl.meta.json"):
        subprocess.run([sys.executable, "-c", dead, str(tmp_path / name)], check=False)
    assert len(list(tmp_path.iterdir())) == 3
    with subprocess.Popen([sys.executable, "-c", alive, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        write_text(path, "whole")
        # The files of others with a like name are theirs to remove.
        assert len([one for one in tmp_path.iterdir() if one.name.endswith(".part")]) == 3
        remove_half_written(tmp_path)
        assert len([one for one in tmp_path.iterdir() if one.name.endswith(".part")]) == 1
        assert other.stdin is not None
        other.stdin.close()
    assert path.read_text(encoding="utf-8") == "whole"


def launched(source: Source, output: Path, n_shards: int = 2) -> ShardedRun:
    return ShardedRun.of(["words"], LENGTH, source.name, output, n_shards)


def finished_parts(run: ShardedRun, source: Source) -> None:
    for number, part in enumerate(run.parts, start=1):
        score_file(LENGTH, source, part, shard=Shard(number, run.n_shards))


def test_a_launch_that_was_killed_just_after_its_merge_is_finished_by_the_same_command(tmp_path: Path, source: Source) -> None:
    output = tmp_path / "out.jsonl"
    first = launched(source, output)
    finished_parts(first, source)
    merge(first.parts, output)
    lock_file(first.folder).touch()  # as a process leaves it that is killed
    whole, meta = output.read_bytes(), launch(first, ScoreRun(LENGTH, source, output), "local", 2, {})
    assert meta is not None
    assert (output.read_bytes(), meta["n_total"], meta["complete"]) == (whole, 60, True)
    assert sorted(path.name for path in tmp_path.iterdir() if "out" in path.name) == ["out.jsonl", "out.jsonl.meta.json"]
    # So is one that was finished; whatever the number of its shards, the file would be the same.
    assert launch(launched(source, output, 5), ScoreRun(LENGTH, source, output), "local", 2, {}) == meta
    another = Source(str(write_rows(tmp_path / "b.jsonl", ROWS[:5])))
    assert (
        refusal(launch, launched(another, output), ScoreRun(LENGTH, another, output), "local", 2, {})
        == f"{output}: {OTHER}delete it."
    )
    assert output.read_bytes() == whole
    assert not (tmp_path / "out.jsonl.shards").exists()


def test_a_missing_input_leaves_no_folder(tmp_path: Path) -> None:
    words = ("--scorer", "response_length", "--output", tmp_path / "new" / "part.jsonl", "--shard", "1/2")
    assert refusal(dialeval, "score", tmp_path / "none.jsonl", *words) == f"{tmp_path / 'none.jsonl'}: there is no such file."
    assert not list(tmp_path.iterdir())


def test_where_nothing_is_scored_the_command_fails(tmp_path: Path) -> None:
    chat = {"messages": [{"role": "user", "content": "Hi."}]}
    path = write_rows(tmp_path / "in.jsonl", [chat])
    with pytest.raises(NothingToScore) as refused:
        dialeval("score", path, "--scorer", "response_length")
    assert (refused.value.exit_code, str(refused.value)) == (
        1,
        f"{path}: has nothing to score (without a turn to score: 1 of 1 conversations). "
        "Call the assistant 'assistant', or choose the turns by --turns all.",
    )
    # A shard may be empty: the others have the rows.
    one = write_rows(tmp_path / "one.jsonl", ROWS[:1])
    for number in range(1, 4):
        words = ("--shard", f"{number}/3", "--output", tmp_path / f"part-{number}.jsonl", "--scorer", "response_length")
        assert dialeval("score", one, *words).exit_code == 0
    assert merge([tmp_path / f"part-{number}.jsonl" for number in range(1, 4)], tmp_path / "m.jsonl")["n_total"] == 1
