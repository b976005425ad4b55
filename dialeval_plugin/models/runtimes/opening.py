"""Opening of runtimes: torch, an export, or packaged graphs.

The packaged graphs are of the bundled encoder and of heads on it, without weights; they get the weights of the model's
safetensors, so that a model on that encoder needs neither torch nor an export. Each graph has two versions: onnxruntime
replaces stored weights, OpenVINO inputs; with weights as inputs, onnxruntime gives the same vectors, but took 3 to 5 % longer
for a single text. `reproduction/pretrained/graphs.py` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import NotRequired, TypedDict

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import checked_model_file
from dialeval_plugin.core.signature import EXPORTS
from dialeval_plugin.models.compact import ROUNDED_FILE, base_of, encoder_weights, read_tensors
from dialeval_plugin.models.folders import check_weights
from dialeval_plugin.models.texts import SPECIAL_TOKENS, JsonTokenizer

from .runtime import (
    ENCODER,
    TOKENIZER_FILE,
    ExportedBackend,
    ExportedRuntime,
    Graph,
    HeadFile,
    Precision,
    Runtime,
    RuntimeChoice,
    cached_export,
    check_choice,
    fastest_exact,
    find_export,
    open_graph,
    require,
)

if TYPE_CHECKING:
    # torch is imported only if it runs the model or writes an export.
    from .torch_runtime import TorchRuntime


def open_runtime(
    folder: Path,
    choice: RuntimeChoice,
    *,
    load: Callable[[RuntimeChoice], TorchRuntime],
    calibration: Callable[[], Sequence[Sequence[str]]],
    head: HeadFile | None = None,
) -> Runtime:
    """Open a runtime for the model in a folder; an export that a backend needs is written into the user's cache on first use.

    Models on the bundled encoder need no export, see `open_packaged`.

    Args:
        folder: folder of the model.
        choice: the user's choice.
        load: opens the model with torch, and is the first to import it.
        calibration: returns the calibration texts of `write_export`.
        head: location and kind of the head's tensors; None for a bare encoder.

    Raises:
        InputError: device or dtype is incompatible with the backend.
        MissingPrerequisite: a package that the backend needs is not installed.
        ModelLoadError: an export is damaged, or was made from other weights.
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
    # An export in the model's own folder was put there deliberately.
    has_own = (folder / EXPORTS / backend).is_dir()
    if not has_own and (opened := open_packaged(folder, backend, choice.dtype, head)) is not None:
        return opened
    if (export := find_export(folder, backend)) is None:
        require(backend, "torch")
        from .exporting import write_export

        export = cached_export(folder, backend)
        write_export(load(RuntimeChoice(device="cpu")), folder, export, backend, calibration())
    return ExportedRuntime.read(export, head, choice.dtype)


GRAPHS = Path(__file__).with_name("graphs")
WEIGHTS_FILE = "weights.json"
"""Names of the weights by graph; a weight whose name ends in `TRANSPOSED` is transposed."""
TRANSPOSED = ".T"
_WINDOW_FILE = "sentence_bert_config.json"
SUFFIXES: dict[ExportedBackend, str] = {"onnx": ".onnx", "openvino": ".inputs.onnx"}

_SPECIAL_TOKENS = {**dict.fromkeys(SPECIAL_TOKENS), "cls_token_id": 101, "sep_token_id": 102, "pad_token_id": 0}
"""Ids of the bundled encoder, whose `tokenizer.json` is checked by its hash."""


class _Lengths(TypedDict):
    """The fields of an encoder's files that limit its number of tokens."""

    max_seq_length: NotRequired[int]
    max_position_embeddings: NotRequired[int]


def open_packaged(folder: Path, backend: ExportedBackend, dtype: Precision, head: HeadFile | None) -> ExportedRuntime | None:
    """Open a model on the bundled encoder with packaged graphs; None if there is no graph of its encoder or its head."""
    encoder = base_of(folder) or folder
    if backend not in SUFFIXES or not (encoder / ROUNDED_FILE).exists():
        return None
    needed = checked_model_file(GRAPHS / WEIGHTS_FILE, dict[str, list[str]])
    functions = {} if head is None else {name.partition(".")[2]: name for name in needed if name.startswith(f"{head.kind}.")}
    if head is not None and not functions:
        return None
    check_weights(folder)

    def opened(name: str, path: Path, weight_of: Callable[[str], np.ndarray | None]) -> Graph:
        given_weights = {}
        for wanted in needed[name]:
            if (weight := weight_of(wanted.removesuffix(TRANSPOSED))) is None:
                raise ModelLoadError(f"{path}: the tensor {wanted!r} is missing. Copy the model folder again.")
            given_weights[wanted] = np.asarray(weight.T if wanted.endswith(TRANSPOSED) else weight, dtype=np.float32, order="C")
        return open_graph(GRAPHS / f"{name}{SUFFIXES[backend]}", backend, dtype, given_weights)

    weights = encoder_weights(folder)
    # Weights are removed when used, so that they are not kept in addition to their transposed copies.
    graphs = {ENCODER: opened(ENCODER, folder, lambda name: weights.pop(name, None))}
    if head is not None:
        path = head.folder / head.name
        tensors = read_tensors(path)
        graphs |= {function: opened(name, path, tensors.get) for function, name in functions.items()}
    window, config = (checked_model_file(folder / name, _Lengths) for name in (_WINDOW_FILE, "config.json"))
    longest = window.get("max_seq_length") or config["max_position_embeddings"]
    tokenizer = JsonTokenizer.read(encoder / TOKENIZER_FILE, _SPECIAL_TOKENS)
    return ExportedRuntime(graphs, tokenizer, longest, head, backend, dtype)
