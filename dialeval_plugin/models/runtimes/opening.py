"""From a user's choice to what runs a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import EXPORTS

from .exported import ExportedRuntime, HeadFile, cached_export, check_choice, find_export, require
from .packaged import open_packaged
from .runtime import Runtime, RuntimeChoice, fastest_exact

if TYPE_CHECKING:
    # torch is imported only where it runs the model, or writes an export.
    from .torch_runtime import TorchRuntime


def open_runtime(
    folder: Path,
    choice: RuntimeChoice,
    *,
    load: Callable[[RuntimeChoice], TorchRuntime],
    calibration: Callable[[], Sequence[Sequence[str]]],
    head: HeadFile | None = None,
) -> Runtime:
    """Open what runs the model in a folder; the first time that a backend needs an export, it is made in the user's cache.

    Models over the bundled encoder need none, see `packaged`.

    Args:
        folder: of the model.
        choice: what the user wants.
        load: opens the model with torch.
        calibration: gives what `write_export` takes.
        head: where the head's tensors are, and what kind of head it is; None for a bare encoder.

    Raises:
        InputError: device or dtype do not go with the backend.
        MissingPrerequisite: a package that the backend needs is not installed.
        ModelLoadError: an export is damaged, or was made of other weights.
    """
    backend = choice.backend
    if backend == "auto":
        backend = (choice.device in (None, "cpu") and choice.dtype == "float32" and fastest_exact()) or "torch"
    if backend == "torch":
        require(backend)
        return load(choice)
    if choice.device not in (None, "cpu"):
        raise InputError(f"device={choice.device!r}: only backend='torch' runs on it. Leave one of them out.")
    check_choice(backend, choice.dtype)
    # An export in the model's own folder was put there on purpose.
    has_own = (folder / EXPORTS / backend).is_dir()
    if not has_own and (opened := open_packaged(folder, backend, choice.dtype, head)) is not None:
        return opened
    if (export := find_export(folder, backend)) is None:
        require(backend, "torch")
        from .exporting import write_export

        export = cached_export(folder, backend)
        write_export(load(RuntimeChoice(device="cpu")), folder, export, backend, calibration())
    return ExportedRuntime.read(export, head, choice.dtype)
