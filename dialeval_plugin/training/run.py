"""The life of a training run: open or resume, stages, history, publish. A killed run resumes and ends with the same files.

    with TrainingRun.open(output, SLM_FOLDER, options, progress=progress) as run:
        data = prepare(...)
        run.start(recipe=asdict(recipe), data=data_hash(data.training, data.validation))
        model = ...
        for stage in recipe.stages:
            run.stage(stage.kind, model, lambda: fit_stage(model, stage, run))
        return run.publish(trained.save, {"counts": ...})

Under `accelerate launch` every process runs the same lines: the main one writes and prints, the others wait for it. A recipe's
batch is that of all processes together, so that their number changes neither steps nor learning rate. Weights still differ
slightly: by the order of sums, by dropout, and in losses that use the rows of a process' own batch as negatives.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import math
import os
import random
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import torch
from accelerate import PartialState
from torch import nn
from transformers import set_seed
from typing_extensions import Self

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_json, remove_half_written, to_json, write_text
from dialeval_plugin.core.locks import sole_process
from dialeval_plugin.core.registry import check_choice, check_fields
from dialeval_plugin.corpora.identity import LEAK_RULE
from dialeval_plugin.models.folders import ModelFolder
from dialeval_plugin.models.tensors import load_weights, save_weights
from dialeval_plugin.terminal import say
from dialeval_plugin.version import __version__

from .checkpoints import HISTORY_FILE, SEAL, HistoryRow, read_history, write_history
from .people import N_ITEMS, write_scope

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Any)
Precision: TypeAlias = Literal["auto", "float32", "bfloat16"]

CHECKPOINTS = ".training"
"""Folder in the model's folder for the results of finished parts of a run."""

_IDENTITY_FILE = "run.json"
_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
_ERROR_NUMBER = re.compile(r"\(os error (\d+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """Options of a training, in addition to its data; methods add their own.

    Attributes:
        validation_fraction: share of the dialogues that is set aside if no validation data are given.
        seed: seed of the split, the initial weights, the order and every draw.
        precision: precision of the forward passes of training; "auto" is bfloat16, which halves the time, if the GPU or the
            processor has instructions for it. Figures are measured in float32.
    """

    validation_fraction: float = 0.1
    seed: int = 13
    precision: Precision = "auto"

    def resolved(self) -> Self:
        """Return the checked options with "auto" resolved: a resumed run keeps the precision of the machine that began it."""
        check_fields(self, "training")
        return replace(self, precision=_fast_precision() if self.precision == "auto" else self.precision)


class TrainingResult(NamedTuple):
    """Folder of a trained model, and the record of its training."""

    folder: Path
    record: dict[str, Any]
    """Field `training` of the settings file: options, counts, figures."""
    history: list[HistoryRow]


class TrainingRun:
    """One training run into one folder; see `open`.

    Attributes:
        options: with "auto" resolved.
        checkpoint_dir: folder of finished parts; removed when the run ends.
        device: device of this process.
        progress: whether this process prints bars and lines.
        history: rows so far.
    """

    def __init__(self, output: Path, options: TrainingOptions, *, progress: bool) -> None:
        self.output = output
        self.options = options.resolved()
        self._may_choose_precision = options.precision == "auto"
        self.checkpoint_dir = output / CHECKPOINTS
        # By default accelerate does not recognise processes on machines without GPUs.
        self._state = PartialState(cpu=not torch.cuda.is_available())
        self.device = str(self._state.device)
        self.is_main_process: bool = self._state.is_main_process
        self.n_processes: int = self._state.num_processes
        self.progress = progress and self.is_main_process
        self.history: list[HistoryRow] = []
        self._data = ""

    @classmethod
    @contextlib.contextmanager
    def open(
        cls, output: Path, folder: ModelFolder, options: TrainingOptions, *, progress: bool = False
    ) -> Iterator[TrainingRun]:
        """Yield a run with exclusive use of its folder; its checkpoints are removed when the block succeeds.

        Raises:
            InputError: `output` holds a trained model, another process is using it, or it cannot be written.
        """
        # oneDNN caches compiled code for a thousand shapes, over a gigabyte in bfloat16, although a shape seldom recurs after
        # a long time: this limit is as fast. It is read once, before the first product.
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
        run = cls(output, options, progress=progress)
        is_new = not output.exists()
        try:
            with contextlib.ExitStack() as stack:
                if run.is_main_process:
                    stack.enter_context(sole_process(run.checkpoint_dir))
                    if folder.is_finished(output):
                        # A run that was killed after its last file left its checkpoints.
                        shutil.rmtree(run.checkpoint_dir, ignore_errors=True)
                        raise InputError(f"{output}: holds a trained model already. Choose another folder, or delete this one.")
                stack.enter_context(_clear_disk_errors(output))
                yield run
                run.barrier()
                if run.is_main_process:
                    shutil.rmtree(run.checkpoint_dir, ignore_errors=True)
        finally:
            if is_new and run.is_main_process:
                # Nothing was written: there were too few data, or an option was wrong.
                with contextlib.suppress(OSError):
                    output.rmdir()

    def start(self, **identity: Any) -> None:
        """Resume from existing checkpoints, or begin; then set the run's seed.

        Raises:
            InputError: there are checkpoints of a run with other options or another `identity`.
        """
        self._data = str(identity.get("data", ""))
        if self.is_main_process:
            stated = {"options": asdict(self.options), **identity, "version": __version__}
            self._check_identity(json.loads(to_json(stated)))
        self.barrier()
        self.options = replace(self.options, precision=read_json(self.checkpoint_dir / _IDENTITY_FILE)["options"]["precision"])
        if (self.checkpoint_dir / HISTORY_FILE).exists():
            self.history = read_history(self.checkpoint_dir)
        set_seed(self.options.seed)

    def stage(self, name: str, model: nn.Module, fit: Callable[[], object]) -> None:
        """Train one stage, or load it if it is finished; the model is in evaluation mode afterwards."""
        finished = self.stage_weights(name)
        if not finished.exists():
            # Each stage starts from the same random state, whether or not earlier stages ran in this process.
            set_seed(self.options.seed)
            model.train()
            fit()
            self.barrier()
            if self.is_main_process:
                # Copied separately, because tied weights share memory, as do those of a recurrent layer on a GPU.
                save_weights(finished, {name: tensor.to("cpu", copy=True) for name, tensor in model.state_dict().items()})
                shutil.rmtree(self.checkpoint_dir / name, ignore_errors=True)
            self.barrier()
        # The weights just written are read back: a resumed run starts the next stage from the same bytes.
        load_weights(model, finished)
        model.eval()

    def stage_weights(self, name: str) -> Path:
        """Return the file of a finished stage's weights."""
        return self.checkpoint_dir / f"{name}.safetensors"

    def compute_once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a JSON value that is computed once: resumed runs and all processes use the same value."""
        path = self.checkpoint_dir / f"{name}.json"
        if not path.exists():
            value = make()
            self.barrier()
            if self.is_main_process:
                write_text(path, to_json(value) + "\n")
            self.barrier()
        return read_json(path)

    def rewind(self, stage: str, step: int) -> None:
        """Drop the rows of a stage after a step, when it resumes from an older checkpoint."""
        self.history = [row for row in self.history if row.stage != stage or row.step <= step]

    def report(
        self, stage: str, figures: Mapping[str, float], *, step: int, epoch: float | None = None, n_epochs: float | None = None
    ) -> None:
        """Add a row to the history, see `history`, and print it."""
        if not self.is_main_process:
            return
        row = HistoryRow(stage, epoch, step, {name: float(value) for name, value in figures.items()})
        self.rewind(stage, step - 1)
        self.history.append(row)
        write_history(self.checkpoint_dir, self.history)
        place = f"step {step}" if epoch is None else f"epoch {epoch:.4g}"
        total = "" if epoch is None or n_epochs is None else f" of {n_epochs:g}"
        self.log_progress(
            f"{stage}, {place}{total}: " + ", ".join(f"{name} {value:.4g}" for name, value in row.figures.items())
        )

    def log_progress(self, line: str) -> None:
        """Print a line between the progress bars, or log it if there are none."""
        if self.progress:
            say(line)
        elif self.is_main_process:
            logger.info(line)

    def barrier(self) -> None:
        """Wait until all processes reach this call."""
        self._state.wait_for_everyone()

    def publish(
        self,
        save: Callable[[Path, dict[str, Any]], object],
        training: Mapping[str, Any],
        *,
        learnt: Sequence[tuple[Sequence[str], str]] = (),
        without_limit: Collection[str] = (),
    ) -> TrainingResult:
        """Write the model's folder, the settings file last; its field `training` is the record with the options.

        The folder also gets the model's scope, see `write_scope`: limits fitted on a sample of the `learnt` responses, each
        after its context, without those for the statistics `without_limit`.
        """
        record = {"options": asdict(self.options), **training, "leak_rule": LEAK_RULE, "version": __version__}
        if self.is_main_process:
            write_history(self.output, self.history)
            if learnt:
                sample = random.Random(f"{self.options.seed} scope").sample(learnt, min(N_ITEMS, len(learnt)))
                items = [Example.from_texts(context, response) for context, response in sample]
                write_scope(self.output, items, {"training data": self._data}, leave_out=without_limit)
            save(self.output, record)
        self.barrier()
        return TrainingResult(self.output, record, self.history)

    def _check_identity(self, identity: Mapping[str, Any]) -> None:
        path = self.checkpoint_dir / _IDENTITY_FILE
        remove_half_written(self.output)
        if path.exists():
            stored = read_json(path)
            options = identity["options"]
            if self._may_choose_precision:
                options = {**options, "precision": stored["options"].get("precision")}
            resumed = {**identity, "options": options}
            if differing := [name for name, value in resumed.items() if stored.get(name) != value]:
                # Something was learned: a finished stage, weights of one of our loops, or a host's checkpoint.
                if any(self.checkpoint_dir.glob("*.safetensors")) or any(self.checkpoint_dir.rglob(SEAL)):
                    raise InputError(
                        f"{self.checkpoint_dir}: holds an unfinished run with other {' and '.join(differing)}. "
                        "Repeat that run's command to finish it, or delete the folder to start anew."
                    )
                shutil.rmtree(self.checkpoint_dir)
            else:
                identity = resumed
                self.log_progress(f"{self.checkpoint_dir}: resuming an unfinished run")
        write_text(path, to_json(identity, indent=2) + "\n")


def choose_recipe(recipes: Mapping[str, R], name: str, *, may_be_zero: Sequence[str] = (), **numbers: float | None) -> R:
    """Return a recipe with the given numbers, positive or 0 if they `may_be_zero`; None keeps the recipe's number."""
    check_choice("training", "recipe", name, recipes)
    changes = {field: number for field, number in numbers.items() if number is not None}
    for field, number in changes.items():
        if field == "learning_rate" and not 0 < number < 1:
            raise InputError(f"{field}: expected a number between 0 and 1, got {number!r}.")
        if number < 0 or (number == 0 and field not in may_be_zero):
            expected = "0 or more" if field in may_be_zero else "a positive number"
            raise InputError(f"{field}: expected {expected}, got {number!r}.")
    return replace(recipes[name], **changes)


def check_at_least(lowest: int, **numbers: int) -> None:
    """Refuse numbers below `lowest`, by name."""
    for name, number in numbers.items():
        if number < lowest:
            raise InputError(f"{name}: expected at least {lowest}, got {number}.")


def adamw(*parts: tuple[nn.Module, float]) -> torch.optim.AdamW:
    """Return an optimizer with a learning rate for the trainable weights of each part."""
    groups = [{"params": [weight for weight in part.parameters() if weight.requires_grad], "lr": rate} for part, rate in parts]
    return torch.optim.AdamW(groups, weight_decay=0.01, fused=True)


def seconds_of(max_minutes: float | None) -> float:
    """Return the time limit of a training in seconds; infinity if there is none."""
    if max_minutes is not None and max_minutes <= 0:
        raise InputError(f"max_minutes: expected more than 0, got {max_minutes}.")
    return math.inf if max_minutes is None else 60 * max_minutes


def _fast_precision() -> Precision:
    if torch.cuda.is_available():
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    # Without these instructions bfloat16 is emulated, and slower than float32.
    probe = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    has_instructions = torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX512_BF16", "AMX") and probe and probe()
    return "bfloat16" if has_instructions else "float32"


def data_hash(*parts: Iterable[object]) -> str:
    """Return an identity of a run's data, for `TrainingRun.start`, from objects that differ by their `repr`."""
    digest = hashlib.sha256()
    for part in parts:
        for row in part:
            digest.update(repr(row).encode())
        digest.update(b"|")
    return digest.hexdigest()


@contextlib.contextmanager
def _clear_disk_errors(output: Path) -> Iterator[None]:
    """Report a full disk in one line. The hosts' writers raise their own errors, none of which is an OSError."""
    try:
        yield
    except Exception as error:
        reason = _disk_error(error)
        if reason is None:
            raise
        raise InputError(
            f"{output}: cannot be written ({reason}). What is finished is kept; repeat the command when there is room."
        ) from error


def _disk_error(error: Exception) -> str | None:
    """Description of a disk error; None for any other error."""
    if isinstance(error, OSError):
        return error.strerror if error.errno in _DISK_ERRORS else None
    # safetensors and tokenizers give the error number; PyTorch's writer only reports a file that is too short.
    if (number := _ERROR_NUMBER.search(str(error))) and int(number[1]) in _DISK_ERRORS:
        return os.strerror(int(number[1]))
    return "a file was cut short" if "inline_container.cc" in str(error) else None
