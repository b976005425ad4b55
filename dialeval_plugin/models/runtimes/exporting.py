"""Export of the graphs that `ExportedRuntime` runs."""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import shutil
import warnings
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from dialeval_plugin.core.files import to_json, write_text
from dialeval_plugin.core.locks import sole_process
from dialeval_plugin.core.signature import content_hash, file_hashes, text_hash
from dialeval_plugin.models.encoders import Encoder
from dialeval_plugin.models.folders import unfinished, without_warnings
from dialeval_plugin.models.texts import SPECIAL_TOKENS, TextEncoder, padded

from .runtime import (
    ENCODER,
    EXPORT_FILE,
    FORMAT_VERSION,
    GRAPH_SUFFIXES,
    TOKENIZER_FILE,
    Export,
    ExportedBackend,
    import_openvino,
    is_current,
    require,
)
from .torch_runtime import Head, TorchRuntime

logger = logging.getLogger(__name__)

CALIBRATION_TOKENS = 128
"""Length of the longest text in the calibration of int8."""

_NEEDED: dict[ExportedBackend, tuple[str, ...]] = {
    "onnx": ("onnx", "onnxruntime"),
    "openvino": ("onnx", "openvino"),
    "openvino-int8": ("onnx", "openvino", "nncf"),
}


def write_export(
    runtime: TorchRuntime, model: Path, target: Path, backend: ExportedBackend, calibration: Sequence[Sequence[str]]
) -> None:
    """Write the export of an opened model; if another process is writing it, wait and keep that process's export.

    Args:
        runtime: the opened model.
        model: its folder.
        target: folder to write.
        backend: backend of the graphs.
        calibration: texts, each a sequence of turns, that determine the ranges of int8.

    Raises:
        InputError: `target` cannot be written.
        MissingPrerequisite: a package is not installed.
    """
    require(backend, *_NEEDED[backend])
    with sole_process(target, waits=True):
        if is_current(target):
            return
        shutil.rmtree(target, ignore_errors=True)
        logger.info("%s: exporting the model to %s, once", model, target)
        with unfinished(target) as made:
            _export(runtime, model, made, backend, calibration)


def _export(
    runtime: TorchRuntime, model: Path, made: Path, backend: ExportedBackend, calibration: Sequence[Sequence[str]]
) -> None:
    functions = {} if runtime.head is None else cast("Head", runtime.head).functions
    reader = TextEncoder(runtime.tokenizer, "plain", CALIBRATION_TOKENS, CALIBRATION_TOKENS)
    texts = [text.ids for text in reader.contexts(calibration)] if backend == "openvino-int8" else []
    # The converters warn, and print progress bars.
    with without_warnings(), warnings.catch_warnings(), contextlib.redirect_stdout(None), torch.inference_mode():
        warnings.simplefilter("ignore")
        graph = Traced(Vectors(runtime.encoder), (torch.int64, torch.int64), (0, 0))
        _write(graph, made / ENCODER, backend, [padded([text], runtime.tokenizer.pad_token_id) for text in texts])
        for name, widths in functions.items():
            graph = Traced(HeadFunction(runtime.head, name), (torch.float32,) * len(widths), widths)
            # Heads are small, so 32 bits cost little there.
            _write(graph, made / name, "openvino" if backend == "openvino-int8" else backend, [])
    runtime.tokenizer.tokenizer.save(str(made / TOKENIZER_FILE))
    export = Export(
        format_version=FORMAT_VERSION,
        backend=backend,
        weights=content_hash(model),
        files=file_hashes(made),
        functions=list(functions),
        longest=runtime.longest,
        special_tokens={name: getattr(runtime.tokenizer, name) for name in SPECIAL_TOKENS},
        calibration={"texts": len(texts), "hash": text_hash(repr(texts))} if texts else {},
        made_with={name: importlib.metadata.version(name) for name in ("torch", *_NEEDED[backend])},
    )
    write_text(made / EXPORT_FILE, to_json(export, indent=1) + "\n")


class Traced:
    """A module with the widths of its inputs, which are rows of numbers; 0 means any width."""

    def __init__(self, module: nn.Module, dtypes: Sequence[torch.dtype], widths: Sequence[int]) -> None:
        self.module, self.dtypes, self.widths = module.eval(), dtypes, widths
        self.names = [f"input_{place}" for place in range(len(widths))]

    def examples(self) -> tuple[Tensor, ...]:
        """Return inputs of two rows for tracing the module."""
        return tuple(torch.ones(2, width or 3, dtype=dtype) for dtype, width in zip(self.dtypes, self.widths, strict=True))

    def export(self, path: str | BytesIO, **options: Any) -> None:
        """Write the module as ONNX, with options of `torch.onnx.export`."""
        inputs = zip(self.names, self.widths, strict=True)
        sizes = {name: {0: "rows"} if width else {0: "rows", 1: "tokens"} for name, width in inputs}
        arguments = {"input_names": self.names, "dynamic_axes": sizes, "dynamo": False}
        torch.onnx.export(self.module, self.examples(), path, **arguments, **options)  # type: ignore[arg-type]


class Vectors(nn.Module):
    """An encoder as a function of token ids and their mask."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Embed texts, both of shape (n, tokens); (n, hidden)."""
        vectors: Tensor = self.encoder({"input_ids": ids, "attention_mask": mask})["sentence_embedding"]
        return vectors


class HeadFunction(nn.Module):
    """One function of a head as a module."""

    def __init__(self, head: nn.Module | None, name: str) -> None:
        super().__init__()
        self.head, self.name = head, name

    def forward(self, *tensors: Tensor) -> Any:
        """Call the function."""
        return getattr(self.head, self.name)(*tensors)


def _write(graph: Traced, path: Path, backend: ExportedBackend, calibration: Sequence[Any]) -> None:
    """Write one graph; `calibration` has inputs for int8."""
    onnx = path.with_name(path.name + GRAPH_SUFFIXES["onnx"])
    graph.export(str(onnx))
    if backend == "onnx":
        return
    openvino = import_openvino()
    converted = openvino.convert_model(str(onnx))
    if calibration:
        import nncf

        converted = nncf.quantize(
            converted,
            nncf.Dataset([list(inputs) for inputs in calibration]),
            model_type=nncf.ModelType.TRANSFORMER,
            subset_size=len(calibration),
        )
    openvino.save_model(converted, str(path.with_name(path.name + GRAPH_SUFFIXES[backend])), compress_to_fp16=False)
    onnx.unlink()
