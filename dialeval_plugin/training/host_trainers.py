"""Training stages run by a host's trainer, with validation, checkpoint and report every epoch, and resuming after a kill."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback, TrainerCallback

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.terminal import Progress

from . import checkpoints
from .run import TrainingRun

_SPEEDS = ("runtime", "samples_per_second", "steps_per_second")


def fit(
    run: TrainingRun,
    stage: str,
    settings: dict[str, Any],
    *,
    batch_size: int,
    trainer: type[Trainer] = Trainer,
    arguments: type[TrainingArguments] = TrainingArguments,
    **parts: Any,
) -> None:
    """Train a stage of a run, or resume it from its last complete checkpoint.

    Args:
        run: gives seed, precision and processes, and records the figures of each epoch in its history.
        stage: name of the stage.
        settings: arguments by the host's names; at least `num_train_epochs`, `learning_rate`, and `metric_for_best_model`, the
            validation figure that selects the epoch to keep, with `greater_is_better` unless it is a loss.
        batch_size: examples per step over all processes, whose number divides it.
        trainer: trainer class of the host.
        arguments: class of its arguments.
        **parts: arguments of the trainer: model, data, loss, callbacks, ...

    Raises:
        InputError: the number of processes does not divide `batch_size`.
    """
    if batch_size % run.n_processes:
        raise InputError(
            f"training: {run.n_processes} processes cannot share a batch of {batch_size}. Start a number that divides it."
        )
    folder = run.checkpoint_dir / stage
    if run.is_main_process:
        checkpoints.remove_broken(folder)
    run.barrier()
    last = checkpoints.find_last(folder)
    part = batch_size // run.n_processes
    common = {
        "output_dir": str(folder),
        "per_device_train_batch_size": part,
        "per_device_eval_batch_size": part,
        "bf16": run.options.precision == "bfloat16",
        "use_cpu": not torch.cuda.is_available(),
        "seed": run.options.seed,
        "data_seed": run.options.seed,
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "logging_strategy": "epoch",
        # Early stopping counts the epochs without gain, including those before a kill.
        "restore_callback_states_from_checkpoint": True,
        "load_best_model_at_end": True,
        "remove_unused_columns": False,
        "disable_tqdm": not run.progress,
        "report_to": "none",
    }
    host = trainer(args=arguments(**{**common, **settings}), **parts)
    _validate_on_all(host)
    host.remove_callback(PrinterCallback)
    host.remove_callback(ProgressCallback)
    if run.progress:
        host.add_callback(_Bars(stage))
    host.add_callback(_Epochs(run, stage, None if last is None else last.best))
    if last is not None and last.is_end:
        # The host does not recognise an early end: without this it would train for one more epoch.
        host.args.max_steps = last.step
    host.train(resume_from_checkpoint=None if last is None else str(last.folder))
    # In bfloat16 the trainer leaves autocast around the model's forward pass, which would affect scoring.
    host.accelerator.unwrap_model(host.model, keep_fp32_wrapper=False)


def _validate_on_all(host: Trainer) -> None:
    """Validate on the last batch too: with several processes sentence-transformers drops it if it is not full."""
    get_loader = host.get_eval_dataloader

    def get_whole_loader(*arguments: Any, **named: Any) -> Any:
        dropped, host.args.dataloader_drop_last = host.args.dataloader_drop_last, False
        try:
            return get_loader(*arguments, **named)
        finally:
            host.args.dataloader_drop_last = dropped

    host.get_eval_dataloader = get_whole_loader


class _Bars(TrainerCallback):  # type: ignore[misc] # the host is not typed
    """Our progress bars of a stage and its validations; the host's also print dictionaries to stdout."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._steps = self._batches = Progress(disable=True)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._steps = Progress(desc=self._stage, total=state.max_steps, initial=state.global_step, unit="step")

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._steps.update()

    def on_prediction_step(self, args: Any, state: Any, control: Any, *, eval_dataloader: Any, **kwargs: Any) -> None:
        if self._batches.disable:
            self._batches = Progress(desc=f"{self._stage}, validation", total=len(eval_dataloader), unit="step")
        self._batches.update()

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._batches.close()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._steps.close()


class _Epochs(TrainerCallback):  # type: ignore[misc]
    """Records the figures of each epoch in the run's history, seals the epoch's checkpoint, and removes the oldest ones.

    The host's own limit would remove older ones before the next one is complete.
    """

    def __init__(self, run: TrainingRun, stage: str, best: str | None) -> None:
        self._run, self._stage, self._best = run, stage, best

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._run.rewind(self._stage, state.global_step)
        if state.global_step:
            self._run.log_progress(f"{self._stage}: resuming from step {state.global_step} of {state.max_steps}")
        # The host drops its stored path if that no longer exists, because it was relative or the folder was moved.
        if self._best is not None:
            state.best_model_checkpoint = str(Path(args.output_dir) / self._best)

    def on_evaluate(self, args: Any, state: Any, control: Any, *, metrics: Mapping[str, float], **kwargs: Any) -> None:
        logged = [entry for entry in state.log_history if "loss" in entry and entry["step"] == state.global_step]
        figures = {"training_loss": logged[-1]["loss"]} if logged else {}
        measured = {name.removeprefix("eval_"): value for name, value in metrics.items() if name.startswith("eval_")}
        figures |= {name: value for name, value in measured.items() if name not in _SPEEDS}
        self._run.report(self._stage, figures, step=state.global_step, epoch=state.epoch, n_epochs=args.num_train_epochs)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # Every process has written the state of its random generator.
        self._run.barrier()
        if self._run.is_main_process:
            folder = Path(args.output_dir)
            checkpoints.seal(folder / f"checkpoint-{state.global_step}")
            checkpoints.remove_old(folder)
