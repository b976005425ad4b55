"""Scoring of one input by many processes, each with its shards.

The processes are tasks of datatrove's executors, on this machine, on Slurm or on Ray, or were started by `accelerate launch`.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dialeval_plugin.conversations.files import files_of, reading
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.locks import lock_file, sole_process
from dialeval_plugin.core.registry import check_names, option_kinds, pairs_from_text
from dialeval_plugin.core.resources import optional
from dialeval_plugin.core.scorer import Scorer, refuse_parts
from dialeval_plugin.core.scores import meta_file
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.corpora.scored_input import Shard, files_below
from dialeval_plugin.terminal import say

from .output import DELETE_IT, check_suffix, merge, part_suffix
from .run import ScoreRun, run_identity

logger = logging.getLogger(__name__)

Executor: TypeAlias = Literal["local", "slurm", "ray"]
_EXECUTORS = {
    "local": ("datatrove.executor.local", "LocalPipelineExecutor"),
    "slurm": ("datatrove.executor.slurm", "SlurmPipelineExecutor"),
    "ray": ("datatrove.executor.ray", "RayPipelineExecutor"),
}
_OURS = frozenset(
    {"pipeline", "tasks", "workers", "logging_dir", "skip_completed", "depends", "local_tasks", "local_rank_offset"}
)
"""Arguments of an executor that are not options: they follow from the run."""
_COMMAND = "import sys; sys.path[:] = filter(None, sys.path); from dialeval_plugin.cli.entry import main; main()"
"""`dialeval`, without the working directory on Python's path: the data's folder may hold a tqdm.py."""


@dataclass(frozen=True)
class ShardedRun:
    """A run in several parts, and their folder until they are one file.

    Attributes:
        words: words after `dialeval score`, except `--shard` and `--output`.
        output: file of the whole run.
        n_shards: number of parts, one task each.
        folder: folder of the parts and the executor's logs, visible to every machine.
    """

    words: tuple[str, ...]
    output: Path
    n_shards: int
    folder: Path

    @classmethod
    def of(cls, words: Sequence[str], scorer: Scorer, source: str, output: Path, n_shards: int) -> ShardedRun:
        """Return a run whose folder is specific to the scorer, options, version of the source and number of shards.

        Raises:
            InputError: the source does not exist, or the scorer needs all rows at once.
        """
        refuse_parts(scorer)
        check_suffix(output)
        identity = text_hash(*words, run_identity(scorer), _version(source, output), str(n_shards))
        return cls(tuple(words), output.absolute(), n_shards, (output.parent / f"{output.name}.shards" / identity).resolve())

    @property
    def parts(self) -> list[Path]:
        """Files of the shards."""
        return [self.folder / f"part-{number:05d}{part_suffix(self.output)}" for number in range(1, self.n_shards + 1)]

    @property
    def unfinished(self) -> list[int]:
        """Ranks, from 0, of the shards that are not completely scored."""
        return [rank for rank, part in enumerate(self.parts) if not part.is_file()]

    def finished(self, whole: ScoreRun) -> Mapping[str, Any] | None:
        """Return the metadata of a complete output that is to stay, and remove the folder that a killed run left.

        Raises:
            InputError: the output is another file.
        """
        if whole.overwrite:
            return None
        if (meta := whole.stored(DELETE_IT)) is not None:
            self._remove()
        return meta

    def finish(self, max_unscored: float, *, overwrite: bool = False) -> Mapping[str, Any]:
        """Merge the parts, see `merge`, remove their folder with the logs, and return the metadata of all rows."""
        meta = merge(self.parts, self.output, max_unscored, overwrite=overwrite)
        self._remove()
        return meta

    def _remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):  # the folder still holds another run's folder, or the lock of this one
            self.folder.parent.rmdir()
        if any(path.is_dir() for path in self.folder.parent.glob("*")):
            say(f"{self.folder.parent}: has shards of other inputs or settings. Delete it if no run is at work on them.")


@dataclass(frozen=True)
class ScoreShard:
    """Scores the shard of a task's rank with `dialeval score`: a step of a datatrove pipeline.

    It runs in a separate process, so that a process killed by the system fails its task; a pool would wait forever for its own
    process. Each has `n_threads`. Tasks take the `n_gpus` of this machine in turn; 0 if each task is assigned its own.
    """

    run: ShardedRun
    n_threads: int
    n_gpus: int

    def __call__(self, data: object, rank: int, world_size: int) -> None:
        """Score shard `rank + 1`; a finished one stays unchanged.

        Raises:
            InputError: the process failed; not on this machine, where datatrove's pool would end the other tasks with this one:
                existing parts are counted at the end instead.
        """
        from filelock import FileLock

        part, shard = self.run.parts[rank], Shard(rank + 1, world_size)
        log = part.with_name(part.stem + ".log")
        words = [sys.executable, "-c", _COMMAND, "score", *self.run.words]
        words += ["--shard", str(shard), "--output", str(part), "--worst", "0", "--max-unscored", "1"]
        with FileLock(part.with_name(part.name + ".task")):
            # A process that outlived its node may still be scoring this shard: its result is used.
            with FileLock(lock_file(part)):
                pass
            if part.is_file():
                return
            with log.open("ab") as file:
                environment = {"OMP_NUM_THREADS": str(self.n_threads), **os.environ, **self._own_gpu(rank)}
                ended = subprocess.run(words, check=False, stdout=file, stderr=file, env=environment)  # noqa: S603 - our command
        if ended.returncode and os.environ.get("DATATROVE_EXECUTOR") != "LOCAL":
            raise InputError(f"shard {shard}: ended with {ended.returncode}. Its output is in {log}.")

    def _own_gpu(self, rank: int) -> dict[str, str]:
        """Return the variable that restricts a task to one GPU if there are several."""
        if self.n_gpus < 2:
            return {}
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = visible.split(",") if visible else [str(place) for place in range(self.n_gpus)]
        return {"CUDA_VISIBLE_DEVICES": names[rank % self.n_gpus]}


@dataclass(frozen=True)
class MergeShards:
    """Merges all shards into one file: the last task's step if no process waits for the others, as on Slurm."""

    run: ShardedRun
    max_unscored: float

    def __call__(self, data: object, rank: int, world_size: int) -> None:
        """Merge the parts; raises as `merge`."""
        merge(self.run.parts, self.run.output, self.max_unscored)
        for part in self.run.parts:
            part.unlink()
            meta_file(part).unlink()


def _version(source: str, output: Path) -> str:
    """Return a text that changes when the source does, according to its file system."""
    with reading(source):
        files, path = files_of(source)
        if not (folder := Path(source)).is_dir():
            return str(files.checksum(path))
        # A folder's own entry stays the same when a file in it changes. The run's files may be in it.
        own = str(output.resolve())
        below = [file for file in files_below(folder) if not str(file.resolve()).startswith(own)]
        return text_hash(*(f"{file} {files.checksum(str(file))}" for file in below))


def executor_options(executor: Executor, pairs: Sequence[str]) -> dict[str, Any]:
    """Read an executor's arguments, each as `name=value`.

    Raises:
        InputError: there is no such argument, or on Slurm `time` or `partition` is missing.
        MissingPrerequisite: datatrove, ray or sbatch is not installed.
    """
    kinds = option_kinds(_executor(executor)) or {}
    known = sorted(kinds.keys() - _OURS)
    options = pairs_from_text(pairs, "--executor-option", kinds)
    check_names(f"--executor {executor}", options, known)
    if executor == "slurm" and (missing := [name for name in ("time", "partition") if name not in options]):
        raise InputError(f"--executor slurm: needs {' and '.join(missing)}. Add --executor-option {missing[0]}=VALUE.")
    return options


def launch(
    run: ShardedRun, whole: ScoreRun, executor: Executor, workers: int, options: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Score the unfinished shards, `workers` of them at once, and merge all; a finished run stays unchanged.

    Returns:
        Metadata of all rows; None on Slurm, where the jobs, with a final one that merges, are only queued.

    Raises:
        InputError: shards could not be scored (the message names them, and finished ones are kept), another process is working
            on this run, or the output is another file.
    """
    try:
        with sole_process(run.folder):
            return run.finished(whole) or _launch(run, whole.max_unscored, executor, workers, options)
    finally:
        with suppress(OSError):
            run.folder.parent.rmdir()


def _launch(
    run: ShardedRun, max_unscored: float, executor: Executor, workers: int, options: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    logs = run.folder / "logs"
    # datatrove never repeats a task that it marked as complete, whether or not its file exists.
    for mark in (*(logs / f"completions/{rank:05d}" for rank in run.unfinished), run.folder / "merge/completions/00000"):
        mark.unlink(missing_ok=True)
    at_once = min(workers, run.n_shards)
    cores = max(1, n_cores() // at_once) if executor == "local" else int(options.get("cpus_per_task", 1))
    kind = _executor(executor)
    n_gpus = _n_gpus() if executor == "local" else 0
    tasks = kind([ScoreShard(run, cores, n_gpus)], tasks=run.n_shards, workers=at_once, logging_dir=str(logs), **options)
    if executor == "slurm":
        last = {**options, "job_name": f"{options.get('job_name', 'dialeval')}-merge"}
        kind([MergeShards(run, max_unscored)], tasks=1, logging_dir=str(run.folder / "merge"), depends=tasks, **last).run()
        return None
    if executor == "ray":
        import ray

        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # otherwise Ray sends usage statistics to a server
        if not ray.is_initialized():
            ray.init()  # the cluster of RAY_ADDRESS, or a local one, or a new one
    if run.unfinished:
        with _signals_interrupt(), _killed_workers_interrupt():
            tasks.run()
    if unfinished := run.unfinished:
        named = ", ".join(str(Shard(rank + 1, run.n_shards)) for rank in unfinished[:10])
        raise InputError(
            f"{len(unfinished)} of {run.n_shards} shards are not finished: {named}. Their output is in {run.folder}, in "
            f"part-*.log; the last: {_last_words(run, unfinished[0])} Finished shards are kept; the same command goes on."
        )
    return run.finish(max_unscored)


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Take SIGTERM and SIGHUP for Ctrl-C, at which datatrove ends its workers; otherwise they would wait for this process."""
    numbers = [number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
    changed = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _killed_workers_interrupt() -> Iterator[None]:
    """Interrupt this process when one of its workers is killed, for whose task datatrove's pool would wait for ever."""
    active_children = optional("multiprocess", "--executor local").active_children
    is_over = threading.Event()

    def watch() -> None:
        workers = set()
        while not is_over.wait(1.0):
            workers.update(active_children())
            if any(worker.exitcode not in {None, 0, -signal.SIGTERM} for worker in workers):
                say("a worker of this run was killed, perhaps because memory ran out. Fewer --workers need less.")
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    if hasattr(signal, "pthread_kill"):  # not on Windows
        watcher.start()
    try:
        yield
    finally:
        is_over.set()


def score_own_shard(whole: ScoreRun, shard: Shard) -> Mapping[str, Any] | None:
    """Score one part of a run that is shared with other processes; a finished part stays unchanged.

    Returns:
        In the first process, which waits for the others and merges, the metadata of all rows; None in the others.

    Raises:
        InputError: as `ScoreRun` and `merge`; the run has no output; or its source was changed, so that the parts of other
            processes may be of another version.
    """
    if whole.output is None:
        raise InputError("--output: a part of the input is scored into a file. Name one.")
    source = whole.source
    words = [str(source.options), str(whole.with_text)]
    present = functools.partial(ShardedRun.of, words, whole.scorer, source.name, whole.output, shard.of)
    run = present()

    def check_source() -> None:
        if present() != run:
            raise InputError(f"{source.name}: was changed while it was scored. Repeat the command when nothing writes to it.")

    part, is_first = run.parts[shard.number - 1], shard.number == 1
    if (meta := run.finished(whole)) is not None:
        return meta if is_first else None
    if not part.is_file():
        replace(whole, output=part, shard=shard, overwrite=False, max_unscored=1.0).score(progress=is_first)
    if not is_first:
        check_source()
        return None
    if run.unfinished:
        say(f"{run.folder}: waiting for the other processes, {len(run.unfinished)} of {shard.of} are at work")
    while run.unfinished:  # the launcher ends all processes when one fails
        time.sleep(1.0)
        check_source()
    return run.finish(whole.max_unscored, overwrite=whole.overwrite)


def n_cores() -> int:
    """Return the number of processors that this process may use, by affinity and control group."""
    import joblib

    return int(joblib.cpu_count())


def _n_gpus() -> int:
    if importlib.util.find_spec("torch") is None:
        return 0
    import torch

    return torch.cuda.device_count()


def _executor(name: Executor) -> Any:
    if name == "slurm" and shutil.which("sbatch") is None:
        raise MissingPrerequisite("--executor slurm: there is no sbatch here. Run this where jobs are submitted.")
    module, attribute = _EXECUTORS[name]
    if name == "ray":
        optional("ray", "--executor ray")
    return getattr(optional(module, f"--executor {name}"), attribute)


def _last_words(run: ShardedRun, rank: int) -> str:
    part = run.parts[rank]
    log = part.with_name(part.stem + ".log")
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
    return repr(next((line for line in reversed(lines) if line.strip()), "nothing"))
