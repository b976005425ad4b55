"""From a user's choice to what runs a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval_plugin.core.errors import InputError

from .exported import ExportedRuntime, HeadFile, cached_export, check_choice, fastest_exact, find_export
from .runtime import Runtime, RuntimeChoice

if TYPE_CHECKING:
    # torch is imported only where it runs the model, or writes an export.
    from .torch_runtime import TorchRuntime


def open_runtime(
    folder: Path,
    choice: RuntimeChoice,
    *,
    load: Callable[[RuntimeChoice], TorchRuntime],
    calibration: Callable[[], Sequence[Sequence[str]]],
    head_file: str | None = None,
) -> Runtime:
    """Open what runs the model in a folder; the first time that a backend needs an export, it is made in the user's cache.

    Args:
        folder: of the model.
        choice: what the user wants.
        load: opens the model with torch.
        calibration: gives what `write_export` takes.
        head_file: where in the folder the head's tensors are; None for a bare encoder.

    Raises:
        InputError: device or dtype do not go with the backend.
        MissingPrerequisite: a package that the backend needs is not installed.
        ModelLoadError: an export is damaged, or was made of other weights.
    """
    backend = choice.backend
    if backend == "auto":
        backend = (choice.device in (None, "cpu") and choice.dtype == "float32" and fastest_exact()) or "torch"
    if backend == "torch":
        return load(choice)
    if choice.device not in (None, "cpu"):
        raise InputError(f"device={choice.device!r}: only backend='torch' runs on it. Leave one of them out.")
    check_choice(backend, choice.dtype)
    if (export := find_export(folder, backend)) is None:
        from .exporting import write_export

        export = cached_export(folder, backend)
        write_export(load(RuntimeChoice(device="cpu")), folder, export, backend, calibration())
    return ExportedRuntime(export, None if head_file is None else HeadFile(folder, head_file), choice.dtype)
