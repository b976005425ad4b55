"""Shards as tasks of datatrove's executors: whichever runs them, whatever is killed, the file is that of one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from filelock import FileLock

from dialeval_plugin import ScoreBatches
from dialeval_plugin.core.locks import lock_file
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.scored_input import Shard, Source
from dialeval_plugin.streams.launch import ScoreShard, ShardedRun, score_own_shard
from dialeval_plugin.streams.output import read_rows
from dialeval_plugin.streams.run import ScoreRun
from dialeval_plugin.version import __version__
from tests import forked
from tests.cli.running import environment
from tests.refusals import refusal
from tests.streams.scored import score_file

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
ROWS = [
    {"id": f"r{number}", "context": [turn.text for turn in example.context], "response": example.response.text}
    for number, example in enumerate(mini.read_examples("test"))
]
KILLER = """
import os, signal, sys
from pathlib import Path
is_second = "2/3" in sys.orig_argv or ("score" in sys.orig_argv and os.environ.get("RANK") == "1")
if is_second and not (mark := Path(os.environ["DIALEVAL_KILLED"])).exists():
    mark.touch()
    replace = os.replace
    def killed(*names):
        replace(*names)
        os.kill(os.getpid(), signal.SIGKILL)
    os.replace = killed
"""
"""Kills the process of the second of three shards, or of processes, once, when its first block is written."""
SBATCH = """#!/bin/bash
echo "$@" >> "$0.calls"
for word; do
  case $word in --export=ALL,*) export "${word#--export=ALL,}" ;; esac
  script=$word
done
last=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\).*/\\1/p' "$script")
cat "$script" >> "$0.scripts"
for task in $(seq 0 "${last:-0}"); do
  SLURM_ARRAY_TASK_ID=$task SLURM_NODELIST=here bash "$script" >> "$0.log" 2>&1 || exit 1
done
echo "Submitted batch job 17"
"""
"""Runs the tasks of a job at once, one after the other."""
SRUN = '#!/bin/bash\nwhile [[ $1 == -* || $1 == 1 ]]; do shift; done\nexec "$@"\n'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


@pytest.fixture
def whole(tmp_path: Path, source: Path) -> bytes:
    score_file(load_scorer("response_length"), Source(str(source)), path := tmp_path / "whole.jsonl")
    return path.read_bytes()


def launch(folder: Path, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [BIN / "dialeval", "launch", "rows.jsonl", "--scorer", "response_length", "--output", "scores.jsonl", *words]
    return forked.run(command, cwd=folder, env=environment(Path.home(), **variables))


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("scores"))


@pytest.mark.long
def test_no_python_file_of_the_working_directory_runs_in_a_shard(tmp_path: Path, source: Path, whole: bytes) -> None:
    """B16: `python -m` looks for modules there first, for tqdm's and for the standard library's own."""
    for name in ("tqdm", "queue", "statistics", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__)\n")
    done = launch(tmp_path, "--shards", 2, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "scores.jsonl").read_bytes() == whole


@pytest.mark.long
def test_workers_end_with_a_terminated_command(tmp_path: Path, source: Path, whole: bytes) -> None:
    """B18: they waited for it, with its standard error open."""
    words = ["rows.jsonl", "--scorer", "response_length", "--output", "scores.jsonl", "--shards", "2", "--workers", "2"]
    with subprocess.Popen(
        [BIN / "dialeval", "launch", *words], cwd=tmp_path, env=environment(Path.home()), stderr=subprocess.PIPE, text=True
    ) as started:
        while not any(tmp_path.glob("scores.jsonl.shards/*/part-*.log")):
            assert started.poll() is None
            time.sleep(0.05)
        started.send_signal(signal.SIGTERM)
        _, said = started.communicate(timeout=60)
    assert (started.returncode, said.splitlines()[-1]) == (
        130,
        "dialeval: interrupted; the same command resumes from finished parts, if there are any",
    )
    assert launch(tmp_path, "--shards", 2, "--workers", 2).returncode == 0
    assert (tmp_path / "scores.jsonl").read_bytes() == whole


@pytest.mark.long
def test_a_command_whose_worker_is_killed_ends_and_goes_on(tmp_path: Path, source: Path, whole: bytes) -> None:
    """The worker's pool waited for the task of the killed one for ever."""
    (tmp_path / "site").mkdir()
    killer = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "if '2/3' in sys.orig_argv and not (mark := Path(os.environ['DIALEVAL_KILLED'])).exists():\n"
        "    mark.touch()\n    os.kill(os.getppid(), signal.SIGKILL)\n"
    )
    (tmp_path / "site" / "sitecustomize.py").write_text(killer, encoding="utf-8")
    variables = {"PYTHONPATH": str(tmp_path / "site"), "DIALEVAL_KILLED": str(tmp_path / "killed")}
    first = launch(tmp_path, "--shards", 3, "--workers", 2, **variables)
    assert (first.returncode, first.stderr.splitlines()[-2:]) == (
        130,
        [
            "a worker of this run was killed, perhaps because memory ran out. Fewer --workers need less.",
            "dialeval: interrupted; the same command resumes from finished parts, if there are any",
        ],
    )
    assert launch(tmp_path, "--shards", 3, "--workers", 2, **variables).returncode == 0
    assert (tmp_path / "scores.jsonl").read_bytes() == whole


@pytest.mark.long
def test_too_many_rows_without_a_score_are_said_as_by_score(tmp_path: Path) -> None:
    rows = [{**row, "response": " "} if place % 10 == 0 else row for place, row in enumerate(ROWS)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    ended = launch(tmp_path, "--shards", 2, "--workers", 2)
    assert ended.returncode == 1
    assert "18 of 180 examples have no score, more than --max-unscored 0.05 allows" in ended.stderr
    assert json.loads((tmp_path / "scores.jsonl.meta.json").read_text(encoding="utf-8"))["complete"] is False
    assert launch(tmp_path, "--shards", 2).returncode == 1
    assert launch(tmp_path, "--shards", 2, "--max-unscored", 0.1).returncode == 0


@pytest.mark.long
def test_a_shard_that_is_killed_is_named_and_the_same_command_goes_on(tmp_path: Path, source: Path, whole: bytes) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(KILLER, encoding="utf-8")
    variables = {"PYTHONPATH": str(tmp_path / "site"), "DIALEVAL_KILLED": str(tmp_path / "killed")}
    first = launch(tmp_path, "--shards", 3, "--workers", 2, **variables)
    assert first.returncode == 2
    assert "dialeval: 1 of 3 shards are not finished: 2/3. Their output is in" in first.stderr
    assert not (tmp_path / "scores.jsonl").exists()
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.glob("scores.jsonl.shards/*/part-*.jsonl")}
    assert [path.name for path in sorted(finished)] == ["part-00001.jsonl", "part-00003.jsonl"]
    again = launch(tmp_path, "--shards", 3, "--workers", 2, **variables)
    assert again.returncode == 0, again.stderr
    assert "words: mean 10.2889, 180 of 180 scored" in again.stdout
    assert "Skipping 2 already completed tasks" in again.stderr
    assert (tmp_path / "scores.jsonl").read_bytes() == whole
    assert left(tmp_path) == ["scores.jsonl", "scores.jsonl.meta.json"]
    # What is finished stays as it is, and is never replaced by another run.
    once_more = launch(tmp_path, "--shards", 4)
    assert (once_more.returncode, once_more.stdout) == (0, again.stdout)
    refused = launch(tmp_path, "--shards", 3, "--scorer", "random")
    assert (refused.returncode, refused.stderr) == (
        2,
        "dialeval: scores.jsonl: holds something else than the scores of this scorer, with these options, of this input. "
        "Choose another name, or delete it.\n",
    )
    assert (tmp_path / "scores.jsonl").read_bytes() == whole
    assert left(tmp_path) == ["scores.jsonl", "scores.jsonl.meta.json"]


@pytest.mark.long
def test_processes_that_are_started_together_share_an_input(tmp_path: Path, source: Path, whole: bytes) -> None:
    """As `accelerate launch` starts them, by torchrun; one that is killed ends all, and the same command goes on."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(KILLER, encoding="utf-8")
    variables = {"PYTHONPATH": str(tmp_path / "site"), "DIALEVAL_KILLED": str(tmp_path / "killed")}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"]
    words = ["score", str(source), "--scorer", "response_length", "--output", "scores.jsonl"]

    def start() -> subprocess.CompletedProcess[str]:
        return forked.run([*torchrun, BIN / "dialeval", *words], cwd=tmp_path, env=environment(Path.home(), **variables))

    assert start().returncode
    assert (tmp_path / "killed").exists()
    assert left(tmp_path) == ["scores.jsonl.shards"]
    again = start()
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("words: mean 10.2889, 180 of 180 scored") == 1
    assert (tmp_path / "scores.jsonl").read_bytes() == whole
    assert left(tmp_path) == ["scores.jsonl", "scores.jsonl.meta.json"]
    once_more = start()
    assert (once_more.returncode, once_more.stdout) == (0, again.stdout)
    assert left(tmp_path) == ["scores.jsonl", "scores.jsonl.meta.json"]


def test_another_version_of_the_input_has_a_folder_of_its_own(tmp_path: Path, source: Path) -> None:
    words, scorer = ["rows.jsonl"], load_scorer("response_length")
    first = ShardedRun.of(words, scorer, str(source), tmp_path / "scores.jsonl", 3)
    assert ShardedRun.of(words, scorer, str(source), tmp_path / "scores.jsonl", 3) == first
    source.write_text(json.dumps(ROWS[0]) + "\n", encoding="utf-8")
    assert ShardedRun.of(words, scorer, str(source), tmp_path / "scores.jsonl", 3).folder != first.folder


def test_an_edited_file_of_a_folder_is_another_version_of_the_input(tmp_path: Path) -> None:
    """The finished shards of the old text were merged, or refused for ever next to those of the new one."""
    (folder := tmp_path / "logs").mkdir()
    (log := folder / "log.jsonl").write_text(json.dumps(ROWS[0]) + "\n", encoding="utf-8")
    output, scorer = folder / "scores.jsonl", load_scorer("response_length")
    first = ShardedRun.of(["logs"], scorer, str(folder), output, 2)
    first.folder.mkdir(parents=True)
    (first.folder / "part-00001.jsonl").touch()
    assert ShardedRun.of(["logs"], scorer, str(folder), output, 2) == first
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(ROWS[1]) + "\n")
    assert ShardedRun.of(["logs"], scorer, str(folder), output, 2).folder != first.folder


def test_processes_do_not_wait_for_parts_of_another_version_of_the_input(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started together on a folder that was being written, the first waited for ever for a part in another folder."""
    whole = ScoreRun(load_scorer("response_length"), Source(str(source)), tmp_path / "scores.jsonl")

    def write(*_: object, **__: object) -> None:
        with source.open("a", encoding="utf-8") as file:
            file.write(json.dumps(ROWS[0]) + "\n")

    changed = f"{source}: was changed while it was scored. Repeat the command when nothing writes to it."
    monkeypatch.setattr(time, "sleep", write)
    assert refusal(score_own_shard, whole, Shard(1, 2)) == changed
    monkeypatch.setattr(ScoreRun, "score", write)
    assert refusal(score_own_shard, whole, Shard(2, 2)) == changed


def test_a_task_takes_what_a_process_that_outlived_another_finishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ShardedRun((), tmp_path / "scores.jsonl", 1, tmp_path)
    monkeypatch.setattr(subprocess, "run", lambda *words, **options: pytest.fail("the shard is scored again"))
    lock = FileLock(lock_file(run.parts[0]))
    lock.acquire()

    def finish() -> None:
        run.parts[0].touch()
        lock.release(force=True)

    with ThreadPoolExecutor() as pool:
        task = pool.submit(ScoreShard(run, n_threads=1, n_gpus=0), None, 0, 1)
        with pytest.raises(TimeoutError):
            task.result(0.3)
        finish()
        task.result(60)


@pytest.mark.parametrize(
    ("number", "visible", "names"),
    [(0, None, [None, None, None]), (1, None, [None, None, None]), (2, None, ["0", "1", "0"]), (2, "4,7", ["4", "7", "4"])],
)
def test_tasks_take_the_gpus_in_turn(
    number: int, visible: str | None, names: list[str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    seen: list[str | None] = []

    def run(*words: object, env: dict[str, str], **options: object) -> SimpleNamespace:
        seen.append(env.get("CUDA_VISIBLE_DEVICES"))
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    task = ScoreShard(ShardedRun((), tmp_path / "scores.jsonl", 3, tmp_path), n_threads=1, n_gpus=number)
    for rank in range(3):
        task(None, rank, 3)
    assert seen == names


@pytest.mark.long
def test_an_input_that_cannot_be_read_is_said_in_the_words_of_the_shard(tmp_path: Path, source: Path) -> None:
    source.write_text('{"context": ["Hi."]}\n', encoding="utf-8")
    ended = launch(tmp_path, "--shards", 1)
    assert ended.returncode == 2
    assert f'the last: "dialeval: {source}:1: ' in ended.stderr.replace("'", '"')


@pytest.mark.long
def test_slurm_is_given_the_shards_and_behind_them_the_merge(tmp_path: Path, source: Path, whole: bytes) -> None:
    programs = {"sbatch": SBATCH, "srun": SRUN, "scontrol": "#!/bin/bash\necho here\n"}
    for name, text in programs.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    path = os.pathsep.join([str(tmp_path), str(BIN), os.environ["PATH"]])
    words = ["--executor", "slurm", "--shards", 3, "--executor-option", "partition=cpu", "--executor-option", "time=02:00:00"]
    ended = launch(tmp_path, *words, "--executor-option", "cpus_per_task=4", PATH=path)
    assert ended.returncode == 0, ended.stderr + (tmp_path / "sbatch.log").read_text(encoding="utf-8")
    assert ended.stdout.startswith("3 shards are queued, and behind them the job that writes scores.jsonl. Logs: ")
    scripts = (tmp_path / "sbatch.scripts").read_text(encoding="utf-8").split("#!/bin/bash\n")[1:]
    assert [script.count("launch_pickled_pipeline") for script in scripts] == [1, 0, 1, 0]
    for line in ("partition=cpu", "time=02:00:00", "cpus-per-task=4", "array=0-2%3"):
        assert f"#SBATCH --{line}\n" in scripts[0]
    calls = (tmp_path / "sbatch.calls").read_text(encoding="utf-8").splitlines()
    assert "--dependency=afterok:17" in calls[2]
    assert (tmp_path / "scores.jsonl").read_bytes() == whole


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--executor", "slurm"], "--executor slurm: there is no sbatch here."),
        (["--executor-option", "partition=cpu"], "--executor local: there is no option 'partition'"),
        (["--executor", "ray"], "--executor ray: needs the number of tasks. Add --shards N."),
        (["--option", "no=1"], "response_length: there is no option 'no'"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(tmp_path: Path, source: Path, words: list[str], message: str) -> None:
    ended = launch(tmp_path, *words)
    assert ended.returncode in {2, 3}
    assert ended.stderr.splitlines()[-1].startswith(f"dialeval: {message}")
    assert not left(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["batches", "launch"])
def test_a_node_of_ray_that_is_killed_loses_no_row_and_doubles_none(
    tmp_path: Path, source: Path, whole: bytes, mode: str
) -> None:
    (tmp_path / "marks").mkdir()
    ended = subprocess.run(
        [sys.executable, ROOT / "tests/streams/ray_cluster.py", mode, source, tmp_path / "scores.jsonl", tmp_path / "marks"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]
    assert "killed\n" in ended.stdout
    if mode == "launch":
        assert (tmp_path / "scores.jsonl").read_bytes() == whole
        return
    assert len({mark.name.partition("-")[0] for mark in (tmp_path / "marks").iterdir()}) == 2
    found = sorted(json.loads((tmp_path / "scores.jsonl").read_text(encoding="utf-8")), key=lambda row: int(row["id"][1:]))
    expected = [{name: row[name] for name in ("id", "words", "characters")} for row in read_rows(tmp_path / "whole.jsonl")]
    assert [{name: row[name] for name in expected[0]} for row in found] == expected
    assert {row["signature"] for row in found} == {f"method:response_length|level:turn|version:{__version__}"}
    assert [row["context"] for row in found] == [row["context"] for row in ROWS]


def batch(**columns: list[object]) -> dict[str, np.ndarray]:
    made = {name: np.empty(len(values), dtype=object) for name, values in columns.items()}
    for name, values in columns.items():
        made[name][:] = values
    return made


def test_a_batch_has_the_scores_of_a_list() -> None:
    items = mini.read_examples("test")[:20]
    scorer = load_scorer("general", backend="onnx")
    columns = batch(
        context=[np.array([turn.text for turn in item.context], dtype=object) for item in items],
        response=[item.response.text for item in items],
    )
    found = ScoreBatches("general", backend="onnx")(columns)
    assert found[(expected := scorer.score(items)).main].tolist() == pytest.approx(expected.values, abs=1e-6)
    assert found["response"] is columns["response"]
    # `datasets.map(batched=True)` gives lists.
    in_lists = ScoreBatches("general", backend="onnx")({name: column.tolist() for name, column in columns.items()})
    assert in_lists[expected.main].tolist() == found[expected.main].tolist()


def test_a_row_without_a_score_says_why() -> None:
    found = ScoreBatches("response_length")(batch(context=[["Hi."], ["Hi."]], response=[" ", "Hello."]))
    assert found["unscored"].tolist() == ["empty_input", None]
    assert np.isnan(found["words"]).tolist() == [True, False]


def test_what_is_no_batch_of_responses_is_refused() -> None:
    assert refusal(ScoreBatches("response_length"), batch(role=["user", "bot"], content=["Hi.", "Ho."])) == (
        "a batch: its rows are turns of conversations. Give a response, or a whole conversation, a row."
    )
    chat = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello!"}] * 2
    score = ScoreBatches("response_length")
    assert refusal(score, batch(messages=[chat])) == (
        "row 1 of a batch: has 2 responses to score, and gets one score. Choose turns='last'."
    )
    assert ScoreBatches("response_length", turns="last")(batch(messages=[chat]))["words"].tolist() == [1.0]
    assert refusal(score, batch(context=[["Hi."]], response=["Hello."], words=[1])) == (
        "column 'words': is there already, and response_length writes one. Rename it."
    )
    assert "looks at all examples at once" in refusal(ScoreBatches, "slide", normalise="population")


def test_shards_that_no_run_uses_are_named(tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scorer = load_scorer("response_length")
    runs = [ShardedRun.of(["rows.jsonl"], scorer, str(source), tmp_path / "out.jsonl", n) for n in (2, 3)]
    runs[0].folder.mkdir(parents=True)
    for number, part in enumerate(runs[1].parts, start=1):
        score_file(scorer, Source(str(source)), part, shard=Shard(number, 3))
    runs[1].finish(max_unscored=0.0)
    folder = tmp_path / "out.jsonl.shards"
    assert [path.name for path in folder.iterdir()] == [runs[0].folder.name]
    said = f"{folder}: has shards of other inputs or settings. Delete it if no run is at work on them.\n"
    assert capsys.readouterr().err == said
