"""Files of any length: each format is read and written, and a run that was killed, or had no room, ends with the same bytes."""

from __future__ import annotations

import gzip
import json
import subprocess
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from dialeval_plugin.conversations import files
from dialeval_plugin.conversations.record import ReadingOptions
from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Row, Unscored
from dialeval_plugin.core.signature import SignatureValue, file_hash
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.scored_input import Shard, Source, is_streamed
from dialeval_plugin.streams import run
from dialeval_plugin.streams.output import merge, read_rows
from tests.refusals import refusal
from tests.streams.scored import killed, score_file

ROWS = [
    {"id": f"r{number}", "context": [turn.text for turn in example.context], "response": example.response.text}
    for number, example in enumerate(mini.read_examples("test"))
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "BLOCK", 50)


def json_lines(path: Path, rows: Sequence[object] = ROWS) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def parquet(path: Path, rows: Sequence[object] = ROWS) -> Path:
    with path.open("wb") as file:  # which takes any name
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file, row_group_size=30)
    return path


def saved_data_set(path: Path) -> Path:
    datasets.Dataset.from_list(ROWS).save_to_disk(path)
    return path


def lengths(source: Path | str, output: Path, **options: object) -> list[dict[str, object]]:
    score_file(load_scorer("response_length"), Source(str(source)), output, **options)  # type: ignore[arg-type]
    return [{name: value for name, value in row.items() if name != "source"} for row in read_rows(output)]


EXPECTED = load_scorer("response_length").score(
    [Example.from_texts(row["context"], row["response"], id=row["id"]) for row in ROWS]
)  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@pytest.mark.parametrize("write", [json_lines, parquet, saved_data_set], ids=["jsonl", "parquet", "arrow"])
def test_each_format_is_read_and_written(tmp_path: Path, write: object, suffix: str) -> None:
    names = {json_lines: "rows.jsonl", parquet: "rows.parquet", saved_data_set: "rows"}
    source = write(tmp_path / names[write])  # type: ignore[operator,index]
    rows = lengths(source, tmp_path / f"scores.{suffix}")
    assert rows == [dict(row) for row in EXPECTED.rows()]
    assert not (tmp_path / f"scores.{suffix}.blocks").exists()
    meta = json.loads((tmp_path / f"scores.{suffix}.meta.json").read_text(encoding="utf-8"))
    assert (meta["n_total"], meta["complete"], meta["mean"]) == (180, True, pytest.approx(EXPECTED.mean()))
    assert meta["signature"] == str(EXPECTED.signature)
    if suffix == "parquet":
        found = pyarrow.parquet.ParquetFile(tmp_path / "scores.parquet").schema_arrow.metadata[b"dialeval"]
        assert json.loads(found)["signature"] == str(EXPECTED.signature)


def test_what_has_no_score_has_its_reason(tmp_path: Path) -> None:
    source = json_lines(tmp_path / "rows.jsonl", [*ROWS[:60], {"context": ["Hi."], "response": " "}])
    for name in ("scores.jsonl", "scores.parquet"):
        last = lengths(source, tmp_path / name)[-1]
        assert last["id"] == "60"
        assert (last["unscored"], last[EXPECTED.main]) == ("empty_input", None)


def test_a_url_is_read_through_fsspec(tmp_path: Path) -> None:
    import fsspec

    with fsspec.open("memory://rows.jsonl", "wt") as file:
        file.write(json_lines(tmp_path / "rows.jsonl").read_text(encoding="utf-8"))
    assert lengths("memory://rows.jsonl", tmp_path / "scores.jsonl") == [dict(row) for row in EXPECTED.rows()]


def test_conversations_are_streamed_turn_by_turn(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello!"}]
    source = json_lines(tmp_path / "chats.jsonl", [{"id": f"c{number}", "messages": chat * 2} for number in range(40)])
    assert [row["id"] for row in lengths(source, tmp_path / "scores.jsonl")][:4] == ["c0:2", "c0:4", "c1:2", "c1:4"]


@pytest.mark.parametrize(("suffix", "merged"), [("parquet", "jsonl"), ("jsonl", "parquet"), ("jsonl", "jsonl")])
@pytest.mark.parametrize("n_shards", [1, 3, 7])
def test_shards_are_merged_to_the_whole(tmp_path: Path, n_shards: int, suffix: str, merged: str) -> None:
    rows = [*ROWS, {"id": "r180", "context": ["Hi."], "response": " "}]
    source = {"parquet": parquet, "jsonl": json_lines}[suffix](tmp_path / f"rows.{suffix}", rows)
    parts = []
    for number in range(1, n_shards + 1):
        parts.append(tmp_path / f"part-{number}.{suffix}")
        lengths(source, parts[-1], shard=Shard(number, n_shards))
    output, whole = tmp_path / f"merged.{merged}", tmp_path / f"whole.{merged}"
    meta = merge(parts[::-1], output)
    *scored, blank = read_rows(output)
    assert [row["source"].split()[-1].rpartition(":")[2] for row in (scored[0], blank)] == ["1", "181"]
    assert [{name: value for name, value in row.items() if name != "source"} for row in scored] == list(EXPECTED.rows())
    assert (blank["id"], blank["unscored"], blank[EXPECTED.main]) == ("r180", "empty_input", None)
    assert (meta["n_total"], meta["n_scored"], meta["mean"]) == (181, 180, pytest.approx(EXPECTED.mean()))
    lengths(source, whole)
    assert merged == "parquet" or output.read_bytes() == whole.read_bytes()


_AGAIN = "Were files changed? Score the shards again."


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[:-9] + "\n",
        lambda line: line.replace('{"place": ', "{"),
        lambda line: "\n",
        lambda line: line.replace('"id": ', '"id" '),
        lambda line: line.replace(".0", ".5"),
        lambda line: line.replace("r4", "r\udcff"),
    ],
    ids=["cut off", "no place", "blank", "no JSON", "another score", "no UTF-8"],
)
@pytest.mark.parametrize("merged", ["merged.jsonl", "merged.parquet"])
def test_a_shard_that_was_changed_is_named(tmp_path: Path, damage: Callable[[str], str], merged: str) -> None:
    part = tmp_path / "part.jsonl"
    lengths(json_lines(tmp_path / "rows.jsonl"), part, shard=Shard(1, 1))
    rows = part.read_text(encoding="utf-8").splitlines(keepends=True)
    part.write_bytes("".join([*rows[:4], damage(rows[4]), *rows[5:]]).encode("utf-8", "surrogateescape"))
    assert refusal(merge, [part], tmp_path / merged) == (
        f"{part}: is not the file that was written when it was scored. {_AGAIN}"
    )
    assert not (tmp_path / merged).exists()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"n_scored": None}, "TypeError"),
        ({"shard": 1}, "AttributeError"),
        ({"unscored": {"empty_input": "x"}}, "TypeError"),
        ({"unscored": 1}, "TypeError"),
        ({"mean": "x"}, "TypeError"),
    ],
)
def test_what_belongs_to_a_shard_is_checked(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    lengths(json_lines(tmp_path / "rows.jsonl"), part := tmp_path / "part.jsonl", shard=Shard(1, 1))
    beside = tmp_path / "part.jsonl.meta.json"
    beside.write_text(json.dumps({**json.loads(beside.read_text(encoding="utf-8")), **change}), encoding="utf-8")
    message = refusal(merge, [part], tmp_path / "merged.jsonl")
    assert message.startswith(f"{beside}, or that of another shard: is damaged ({problem}(")
    assert message.endswith(f"). {_AGAIN}")
    assert not (tmp_path / "merged.jsonl").exists()


def test_responses_to_one_context_are_in_one_shard(tmp_path: Path) -> None:
    source = Source(str(json_lines(tmp_path / "rows.jsonl")))
    shards: dict[tuple[str, ...], set[int]] = {}
    for number in (1, 2, 3):
        for placed in source.items("turn", Shard(number, 3)):
            if isinstance(placed.item, Example):
                shards.setdefault(tuple(turn.text for turn in placed.item.context), set()).add(number)
    assert {len(found) for found in shards.values()} == {1}
    assert {number for found in shards.values() for number in found} == {1, 2, 3}


def test_of_a_response_of_another_shard_the_context_alone_is_read(tmp_path: Path) -> None:
    """Whose it is refuses it."""
    rows = [dict(row, response=7) if place == 3 else row for place, row in enumerate(ROWS)]
    source, refusals = json_lines(tmp_path / "rows.jsonl", rows), []
    for number in (1, 2):
        try:
            lengths(source, tmp_path / f"part-{number}.jsonl", shard=Shard(number, 2))
        except InputError as error:
            refusals.append(str(error))
    (message,) = refusals
    assert message.startswith(f"{source}:4: Example 'r3': response: expected a string, got 7 (int).")


def sealed(part: Path) -> None:
    """Say of a changed shard that it was written so."""
    beside = part.with_name(f"{part.name}.meta.json")
    beside.write_text(
        json.dumps({**json.loads(beside.read_text(encoding="utf-8")), "sha256": file_hash(part)}), encoding="utf-8"
    )


def test_shards_of_different_runs_are_not_merged(tmp_path: Path) -> None:
    source, other = json_lines(tmp_path / "rows.jsonl"), json_lines(tmp_path / "other.jsonl", ROWS[:100])
    one, two, strange, random = (tmp_path / f"{name}.jsonl" for name in ("one", "two", "strange", "random"))
    lengths(source, one, shard=Shard(1, 2))
    lengths(source, two, shard=Shard(2, 2))
    lengths(other, strange, shard=Shard(2, 2))
    score_file(load_scorer("random"), Source(str(source)), random, shard=Shard(2, 2))
    target = tmp_path / "merged.jsonl"
    assert refusal(merge, [one], target) == "shards: 2/2 missing. Score them, and give the files of all."
    assert refusal(merge, [one, two, two], target) == "shards: 2/2 twice, or of another number of shards. Give each once."
    assert refusal(merge, [one, strange], target).startswith(f"{strange}: is of another source than {one} (")
    assert refusal(merge, [one, random], target).startswith(f"{random}: was scored otherwise than {one} (")
    rows = two.read_text(encoding="utf-8").splitlines(keepends=True)
    place = json.loads(rows[3])["place"]
    two.write_text("".join(rows[:3] + rows[4:]), encoding="utf-8")
    sealed(two)
    assert refusal(merge, [one, two], target) == (
        f"shards: row {place} is missing. Were files changed? Score the shards again."
    )
    two.write_text("".join(rows[:4] + rows[3:]), encoding="utf-8")
    sealed(two)
    assert refusal(merge, [one, two], target) == (
        f"shards: row {place} is there twice. Were files changed? Score the shards again."
    )
    assert not target.exists()


KILLED_AT = {
    "before the second block is renamed": ("replace", 2, "before"),
    "after the second block": ("replace", 2, "after"),
    "before the file is renamed": ("replace", 5, "before"),
    "before what belongs to all rows": ("replace", 6, "before"),
    "before the blocks are removed": ("rmtree", 1, "before"),
}


@pytest.mark.parametrize("shard", ["", "1/1"], ids=["whole", "shard"])
@pytest.mark.parametrize("moment", KILLED_AT)
def test_a_run_that_was_killed_ends_with_the_same_bytes(tmp_path: Path, moment: str, shard: str) -> None:
    source = json_lines(tmp_path / "rows.jsonl")
    whole, output = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    lengths(source, whole, shard=Shard.parse(shard) if shard else None)
    assert killed("score", *KILLED_AT[moment], source, output, *filter(None, [shard]), block=50) == -9
    lengths(source, output, shard=Shard.parse(shard) if shard else None)
    for suffix in ("", ".meta.json"):
        one, other = (path.with_name(path.name + suffix).read_bytes() for path in (whole, output))
        assert one == other
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("killed")) == [
        "killed.jsonl",
        "killed.jsonl.meta.json",
    ]


def test_finished_blocks_are_not_scored_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, output = json_lines(tmp_path / "rows.jsonl"), tmp_path / "scores.jsonl"
    assert killed("score", "replace", 3, "after", source, output, block=50) == -9
    scored: list[int] = []
    score = type(load_scorer("response_length")).score_batch

    def counting(self: Scorer, items: Sequence[Item]) -> list[Row]:
        scored.append(len(items))
        return score(self, items)

    monkeypatch.setattr(type(load_scorer("response_length")), "score_batch", counting)
    assert lengths(source, output) == [dict(row) for row in EXPECTED.rows()]
    assert sum(scored) == 30


@pytest.mark.parametrize(
    "text", ["", "x\n", "{}\n", '{"id": "r0"}\n', '{"id": "r0", "words": 1.0, "characters": 1.0}\n', '{"id": 3}\n\xff']
)
def test_a_damaged_block_is_named(tmp_path: Path, text: str) -> None:
    source, output = json_lines(tmp_path / "rows.jsonl"), tmp_path / "scores.jsonl"
    assert killed("score", "replace", 3, "after", source, output, block=50) == -9
    block = min((tmp_path / "scores.jsonl.blocks").iterdir())
    block.write_bytes(text.encode("latin-1"))
    message = refusal(lengths, source, output)
    assert message.startswith(f"{block}: is damaged (")
    assert message.endswith("). Delete the file; its rows are then scored again.")
    block.unlink()
    assert lengths(source, output) == [dict(row) for row in EXPECTED.rows()]


def test_a_block_of_other_rows_is_damaged(tmp_path: Path) -> None:
    source, output = json_lines(tmp_path / "rows.jsonl"), tmp_path / "scores.jsonl"
    assert killed("score", "replace", 3, "after", source, output, block=50) == -9
    block = min((tmp_path / "scores.jsonl.blocks").iterdir())
    block.write_text("".join(reversed(block.read_text(encoding="utf-8").splitlines(keepends=True))), encoding="utf-8")
    assert refusal(lengths, source, output) == (
        f"{block}: is damaged (its rows are others). Delete the file; its rows are then scored again."
    )


def test_blocks_of_a_run_that_is_replaced_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, output = json_lines(tmp_path / "rows.jsonl"), tmp_path / "scores.jsonl"
    assert killed("score", "replace", 3, "after", source, output, block=50) == -9
    first = set((tmp_path / "scores.jsonl.blocks").iterdir())
    json_lines(source, [*ROWS[1:], ROWS[0]])

    def stopped(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("dialeval_plugin.streams.run.join_blocks", stopped)
        patched.setattr("dialeval_plugin.streams.run.BLOCK", 50)
        with pytest.raises(KeyboardInterrupt):
            lengths(source, output, overwrite=True)
    assert not first & set((tmp_path / "scores.jsonl.blocks").iterdir())
    # The command that was stopped goes on without the option.
    lengths(source, output)
    assert output.exists()


def test_another_input_does_not_go_on_with_the_blocks_of_the_first(tmp_path: Path) -> None:
    source, output = json_lines(tmp_path / "rows.jsonl"), tmp_path / "scores.jsonl"
    assert killed("score", "replace", 3, "after", source, output, block=50) == -9
    json_lines(source, [*ROWS[1:], ROWS[0]])
    assert "this unfinished run has other inputs or settings" in refusal(lengths, source, output)
    json_lines(source)
    assert lengths(source, output) == [dict(row) for row in EXPECTED.rows()]
    assert refusal(score_file, load_scorer("random"), Source(str(source)), output).startswith(
        f"{output}: holds something else than the scores of this scorer"
    )


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=36k", "tmpfs", folder], check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here ({mounted.stderr.decode().strip()})")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@pytest.mark.parametrize(("n_ballast", "n_whole"), [(12_000, 3), (4_000, 4)], ids=["in a block", "at the end"])
def test_a_full_disk_is_said_and_what_is_written_is_whole(
    tmp_path: Path, small_disk: Path, n_ballast: int, n_whole: int, suffix: str
) -> None:
    source, output = json_lines(tmp_path / "rows.jsonl"), small_disk / f"scores.{suffix}"
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * n_ballast)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\). Finished parts are kept; repeat"):
        lengths(source, output)
    assert not output.exists()
    blocks = sorted((small_disk / f"scores.{suffix}.blocks").glob("*.jsonl"))
    assert len(blocks) == n_whole
    for path in blocks:
        assert all(json.loads(line)["id"] for line in path.read_text(encoding="utf-8").splitlines())
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=256k", small_disk], check=True)
    assert lengths(source, output) == [dict(row) for row in EXPECTED.rows()]


@pytest.mark.long
def test_the_vectors_of_contexts_are_kept_within_a_block_and_resumed_runs_have_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Responses to one context far from each other.
    source = json_lines(tmp_path / "rows.jsonl", [*ROWS[::2], *ROWS[1::2]])
    scorer = load_scorer("general", backend="onnx")
    whole, resumed = tmp_path / "whole.jsonl", tmp_path / "resumed.jsonl"
    score_file(scorer, Source(str(source)), whole)
    score_block, blocks = run.score_block, []

    def failing(one: Scorer, items: Sequence[Item], advance: Callable[[int], object]) -> object:
        blocks.append(len(items))
        if len(blocks) == 3:
            raise KeyboardInterrupt
        return score_block(one, items, advance)

    monkeypatch.setattr(run, "score_block", failing)
    with pytest.raises(KeyboardInterrupt):
        score_file(scorer, Source(str(source)), resumed)
    assert len(blocks) == 3
    score_file(load_scorer("general", backend="onnx"), Source(str(source)), resumed)
    assert whole.read_bytes() == resumed.read_bytes()


def test_a_context_is_embedded_once_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = load_scorer("general", backend="onnx")
    monkeypatch.setattr(type(scorer), "window", 10)
    embedded: list[int] = []
    runtime = scorer._model.runtime  # type: ignore[attr-defined]
    embed = runtime.embed
    monkeypatch.setattr(runtime, "embed", lambda ids: embedded.append(len(ids)) or embed(ids))
    items = [Example.from_texts(["One context."], f"Response number {number}.") for number in range(40)]
    streamed = [value for scores in scorer.score_stream(items, block=20) for value in scores.values]
    assert sum(embedded) == 40 + 2
    assert streamed == pytest.approx(scorer.score(items).values, abs=1e-6)


def test_what_needs_the_whole_run_is_given_no_part_and_not_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = Relative()
    source = Source(str(json_lines(tmp_path / "rows.jsonl")))
    assert refusal(score_file, scorer, source, tmp_path / "scores.jsonl", shard=Shard(1, 2)) == (
        "relative: with these options it looks at all examples at once, and here it has a part of them. "
        "Score them as one list, or as one file without shards."
    )
    monkeypatch.setattr(run, "MOST_AT_ONCE", 120)
    assert refusal(score_file, scorer, source, tmp_path / "scores.jsonl") == (
        "relative: with these options it looks at all examples at once, and here are more than 120. "
        "Part the input, or choose other options."
    )
    assert scorer.scored == []


def test_what_needs_the_whole_run_has_all_blocks_also_when_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, output = Source(str(json_lines(tmp_path / "rows.jsonl"))), tmp_path / "scores.jsonl"
    score_file(Relative(), source, whole := tmp_path / "whole.jsonl")
    expected = Relative().score([placed.item for placed in source.items("turn")])
    assert [row["x"] for row in read_rows(whole)] == list(expected.values)
    assert max(expected.values, key=lambda value: value or 0.0) == 1.0
    with monkeypatch.context() as patched:
        patched.setattr(run, "join_blocks", interrupted)
        with pytest.raises(KeyboardInterrupt):
            score_file(Relative(), source, output)
    again = Relative()
    score_file(again, source, output)
    assert (again.scored, output.read_bytes()) == ([], whole.read_bytes())


def interrupted(*arguments: object) -> None:
    raise KeyboardInterrupt


NO_CONVERSATION = "expected a conversation, got 3 (int). Give a list of messages, or an object that has one under 'messages'."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"context": ["a"], "response": "b"}\n3\n', f":2: {NO_CONVERSATION}"),
        ('{"context": ["a"], "response": "b"}\n\n\n3\n', f":4: {NO_CONVERSATION}"),
        ('{"context": ["a"], "response": 3}\n', ":1: Example"),
        ("", ": is empty, expected one JSON object a line."),
        ('{"conversation": "a", "text": "b"}\n', ": has nothing to score (without a turn to score: 1 of 1 conversations)."),
        ('{"role": "user", "content": "b"}\n', ": has nothing to score (without a turn to score: 1 of 1 conversations)."),
    ],
)
def test_a_malformed_row_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text, encoding="utf-8")
    assert refusal(lengths, path, tmp_path / "scores.jsonl").startswith(f"{path}{message}")


def test_a_source_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 no")
    assert refusal(lengths, tmp_path / "rows.parquet", tmp_path / "scores.jsonl").startswith(
        f"{tmp_path / 'rows.parquet'}: cannot be read ("
    )
    assert refusal(lengths, tmp_path / "none.jsonl", tmp_path / "scores.jsonl") == (
        f"{tmp_path / 'none.jsonl'}: there is no such file."
    )


CHAT = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello!"}]


def test_json_lines_are_streamed_from_100_megabytes_on(tmp_path: Path) -> None:
    for n_bytes in (99_999_999, 100_000_000):
        with (tmp_path / "rows.jsonl").open("wb") as file:
            file.truncate(n_bytes)
        assert is_streamed(str(tmp_path / "rows.jsonl")) == (n_bytes == 100_000_000)


def test_what_is_left_out_is_counted_anew_by_each_iteration(tmp_path: Path) -> None:
    rows = [{"id": "a", "messages": [{"role": "system", "content": "x"}, *CHAT]}, {"id": "b", "messages": [{"role": "user"}]}]
    source = Source(str(json_lines(tmp_path / "chats.jsonl", rows)))
    for _ in range(2):
        assert len(list(source.items("turn"))) == 1
        assert source.reading.left_out == {"system message": 1, "malformed conversation": 1}
        assert len(source.reading.malformed) == 1


def test_conversations_with_the_same_turns_are_in_one_shard(tmp_path: Path) -> None:
    source = Source(str(json_lines(tmp_path / "chats.jsonl", [{"id": f"c{number}", "messages": CHAT} for number in range(20)])))
    assert sorted(len(list(source.items("turn", Shard(number, 2)))) for number in (1, 2)) == [0, 20]


def test_small_files_that_are_large_in_memory_are_read_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text of half a megabyte that 200 rows of a dictionary share; whatever they take, no part of them does."""
    monkeypatch.setattr(files, "_ROWS_UNPACKED", 4)
    monkeypatch.setattr(run, "_TEXT_IN_BLOCK", 4_000_000)
    response = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 200, pyarrow.int32()), pyarrow.array(["x" * 500_000]))
    table = pyarrow.table({"context": [["Hi."]] * 200, "response": response})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet", compression="zstd")
    assert (tmp_path / "rows.parquet").stat().st_size < 10_000
    tracemalloc.start()
    found = score_file(load_scorer("response_length"), Source(str(tmp_path / "rows.parquet")), tmp_path / "scores.jsonl")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.n_total == 200
    assert peak < 40_000_000


def test_a_row_without_end_is_refused_before_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST_ROW", 2_000_000)
    path = tmp_path / "rows.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(json.dumps(ROWS[0]) + '\n{"context": ["Hi."], "response": "' + "a" * 50_000_000)
    tracemalloc.start()
    assert refusal(lengths, path, tmp_path / "scores.jsonl") == f"{path}:2: holds more than 2 MB, the limit of a row. Split it."
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["b::c", "b*", "b[1]", "b#c?d", "b%20c", "~b"])
@pytest.mark.parametrize(("write", "suffix"), [(parquet, ".parquet"), (json_lines, ".jsonl")], ids=["parquet", "jsonl"])
def test_no_letter_of_a_files_name_is_a_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, write: Callable[[Path], Path], suffix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path(name + suffix))
    assert len(lengths(name + suffix, tmp_path / "scores.jsonl")) == 180


@pytest.mark.parametrize(("rank", "n"), [("x", "2"), ("0", "abc"), ("5", "2"), ("-1", "2"), ("0", "0")])
def test_a_process_that_is_none_of_those_it_is_of_is_refused(monkeypatch: pytest.MonkeyPatch, rank: str, n: str) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", n)
    assert refusal(Shard.of_process) == (
        f"RANK={rank}, WORLD_SIZE={n}: expected the number of this process, from 0, and how many there are. "
        "Unset both, or start the command by torchrun or accelerate launch, which set them."
    )
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert Shard.of_process() is None


class Relative(Scorer):
    """Gives the length of a response as a share of the longest of all."""

    name = "relative"
    columns = ("x",)

    def __init__(self) -> None:
        self.scored: list[str] = []

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        self.scored += [item.id for item in items]
        return [{"x": float(len(item.response.text))} for item in items if isinstance(item, Example)]

    def normalise_rows(self, rows: list[Row]) -> list[Row]:
        values = [row["x"] or 0.0 for row in rows if not isinstance(row, Unscored)]
        return [row if isinstance(row, Unscored) else {"x": (row["x"] or 0.0) / max(values)} for row in rows]

    def signature_fields(self) -> dict[str, SignatureValue]:
        return {"method": self.name}


class Lower(Scorer):
    """Scorer whose lower numbers are better."""

    name = "lower"
    columns = ("x",)
    orientation = "lower"
    range = (0.0, 10.0)

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        return [{"x": float(item.response.text)} for item in items if isinstance(item, Example)]

    def signature_fields(self) -> dict[str, SignatureValue]:
        return {"method": self.name}


def test_the_worst_of_a_stream_are_the_highest_where_lower_is_better(tmp_path: Path) -> None:
    rows = [{"context": ["Hi."], "response": str(place * 7 % 10)} for place in range(100)]
    found = score_file(Lower(), Source(str(json_lines(tmp_path / "rows.jsonl", rows))), tmp_path / "scores.jsonl", n_worst=11)
    assert [row.score for row in found.worst] == [9.0] * 10 + [8.0]
    assert [row.item.id for row in found.worst[:3]] == ["7", "17", "27"]


def test_two_rows_of_one_id_are_refused_however_far_apart(tmp_path: Path) -> None:
    rows = [*ROWS[:40], dict(ROWS[0], response="Another.")]
    source = json_lines(tmp_path / "rows.jsonl", rows)
    message = f"{source}:41: the id 'r0' is also that of {source}:1. Give every example its own."
    assert refusal(lengths, source, tmp_path / "scores.jsonl") == message
    # Each shard knows the ids of the others' rows.
    for number in (1, 2):
        assert refusal(lengths, source, tmp_path / "part.jsonl", shard=Shard(number, 2)) == message
    made_up = json_lines(tmp_path / "rows.jsonl", [dict(ROWS[0], id="35"), *({**row, "id": None} for row in ROWS[1:40])])
    assert refusal(lengths, made_up, tmp_path / "scores.jsonl") == (
        f"{source}:36: the id '35' is also that of {source}:1. Give every example its own."
    )
    assert lengths(json_lines(source, [dict(row, id=place) for place, row in enumerate(ROWS)]), tmp_path / "scores.jsonl")


def test_conversations_of_one_id_are_kept_apart_as_in_a_whole_file(tmp_path: Path) -> None:
    names = [("c0" if number % 20 == 0 else f"c{number}") for number in range(60)]
    source = json_lines(tmp_path / "chats.jsonl", [{"id": name, "messages": CHAT} for name in names])
    found = [row["id"] for row in lengths(source, tmp_path / "scores.jsonl")]
    assert found == [item.id for item in Source(str(source)).read("turn")]
    assert (found[0], found[20], found[40]) == ("c0:2", "c0#2:2", "c0#3:2")


def test_a_column_may_have_no_value_in_many_rows(tmp_path: Path) -> None:
    rows = [
        {"i": row["id"] if place > 90 else None, "c": row["context"], "r": row["response"], "ref": ["a"] if place < 9 else None}
        for place, row in enumerate(ROWS)
    ]
    columns = {"context": "c", "response": "r", "references": "ref", "id": "i"}
    source = Source(str(parquet(tmp_path / "rows.parquet", rows)), ReadingOptions(columns=columns))
    items = [placed.item for placed in source.items("turn")]
    assert [item.id for item in items][89:93] == ["89", "90", "r91", "r92"]
    assert [item.references for item in items if isinstance(item, Example)][8:10] == [("a",), ()]


def test_rows_of_several_kinds_are_read(tmp_path: Path) -> None:
    source = json_lines(tmp_path / "rows.jsonl", [*ROWS[:16], {"id": "c", "messages": CHAT}])
    assert [row["id"] for row in lengths(source, tmp_path / "scores.jsonl")] == [*(row["id"] for row in ROWS[:16]), "c:2"]


def test_a_malformed_message_costs_its_conversation_alone(tmp_path: Path) -> None:
    bad = [{"role": "user"}]
    rows = [{"id": f"c{number}", "messages": bad if number % 20 == 3 else CHAT} for number in range(60)]
    source = Source(str(json_lines(tmp_path / "chats.jsonl", rows)))
    ids = [placed.item.id for placed in source.items("turn")]
    assert ids == [f"c{number}:2" for number in range(60) if number % 20 != 3]
    problem = (
        "conversation 'c3', message 1: is no chat message, it has only 'role'. "
        "Name the field of its text by --columns text=NAME, or give 'role' and 'content', as OpenAI's have them."
    )
    assert (len(source.reading.malformed), source.reading.malformed[0]) == (3, f"{source.name}:4: {problem}")
    assert source.reading.left_out == {"malformed conversation": 3}
    # The same are left out of every shard, and nothing is left where no conversation can be read.
    places = [placed.place for number in (1, 2) for placed in source.items("turn", Shard(number, 2))]
    assert sorted(places) == list(range(57))
    nothing = json_lines(tmp_path / "chats.jsonl", [{"id": "c3", "messages": bad}])
    assert refusal(lengths, nothing, tmp_path / "scores.jsonl") == f"{nothing}:1: {problem}"


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0"])
def test_a_shard_is_a_number_of_how_many(text: str) -> None:
    assert refusal(Shard.parse, text) == (
        f"shard {text!r}: expected a number and how many there are, such as 1/4, the first of four."
    )
