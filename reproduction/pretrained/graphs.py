"""Writes the graphs without weights that come with the package, see `dialeval_plugin.models.runtimes.opening`.

They are traced with torch from the bundled models, once: what they compute is the same for all weights of the same shapes.

    python -m reproduction.pretrained.graphs
"""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import onnx
import torch
from onnx import helper
from torch import nn

from dialeval_plugin.core.files import to_json, write_text
from dialeval_plugin.methods.assistant import model as assistant_model
from dialeval_plugin.methods.general import model as general_model
from dialeval_plugin.methods.slide import model as slide_model
from dialeval_plugin.models.folders import PRETRAINED
from dialeval_plugin.models.runtimes.exporting import HeadFunction, Traced, Vectors
from dialeval_plugin.models.runtimes.opening import GRAPHS, SUFFIXES, TRANSPOSED, WEIGHTS_FILE
from dialeval_plugin.models.runtimes.runtime import ENCODER, RuntimeChoice
from dialeval_plugin.models.runtimes.torch_runtime import Head

_LOADERS = {
    "general": general_model.load_runtime,
    "assistant": assistant_model.load_runtime,
    "slide": slide_model.load_runtime,
}
_ON_PROCESSOR = RuntimeChoice(device="cpu")


class Named(NamedTuple):
    """A module under the name of its graph; `prefix` is what the names of its weights have before those in a model's files."""

    name: str
    traced: Traced
    prefix: str


def modules() -> Iterator[Named]:
    """Yield the encoder and the functions of the heads."""
    encoder = general_model.load_runtime(PRETRAINED / "general", _ON_PROCESSOR).encoder
    yield Named(ENCODER, Traced(Vectors(encoder), (torch.int64, torch.int64), (0, 0)), "encoder.auto_model.")
    for model, load in _LOADERS.items():
        head = cast("nn.Module", load(PRETRAINED / model, _ON_PROCESSOR).head)
        kind = model
        if isinstance(head, slide_model.DisentanglingHead):
            kind = f"{model}-{head.split}-{head.probability_from}"
        for function, widths in cast("Head", head).functions.items():
            traced = Traced(HeadFunction(head, function), (torch.float32,) * len(widths), widths)
            yield Named(f"{kind}.{function}", traced, "head.")


def without_weights(module: Named) -> tuple[Any, dict[str, list[int]]]:
    """Return the graph of a module, and the shapes of the weights that it lacks by their names in it."""
    stream = io.BytesIO()
    with torch.inference_mode():
        module.traced.export(stream, do_constant_folding=False)
    model = onnx.load_from_string(stream.getvalue())
    shapes = {weight.name: list(weight.dims) for weight in model.graph.initializer}
    renamed = {name: name.removeprefix(module.prefix) for name in shapes}
    kept = []
    for node in model.graph.node:
        # Whoever hands a matrix over swaps its axes, so that no second copy of it is made.
        if node.op_type == "Transpose" and node.input[0] in shapes:
            renamed[node.output[0]] = node.input[0].removeprefix(module.prefix) + TRANSPOSED
            shapes[node.output[0]] = shapes[node.input[0]][::-1]
        else:
            kept.append(node)
    used = set()
    for node in kept:
        for place, name in enumerate(node.input):
            if name in renamed:
                node.input[place] = renamed[name]
                used.add(name)
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(kept)
    return model, {renamed[name]: shapes[name] for name in sorted(used, key=renamed.__getitem__)}


def write(folder: Path) -> None:
    """Write all graphs, each for onnxruntime and for OpenVINO, and the list of the weights that they take."""
    folder.mkdir(exist_ok=True)
    weights = {}
    for module in modules():
        model, shapes = without_weights(module)
        weights[module.name] = list(shapes)
        stored, given = (copy.deepcopy(model) for _ in range(2))
        path = folder / f"{module.name}{SUFFIXES['onnx']}"
        for name, shape in shapes.items():
            # onnxruntime looks whether the file is there, and reads nothing of it where the weight is handed over. It would
            # fail where it did: this is far behind the file's end.
            weight = onnx.TensorProto(
                name=name, dims=shape, data_type=onnx.TensorProto.FLOAT, data_location=onnx.TensorProto.EXTERNAL
            )
            weight.external_data.add(key="location", value=path.name)
            weight.external_data.add(key="offset", value=str(1 << 40))
            stored.graph.initializer.append(weight)
            given.graph.input.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))
        path.write_bytes(stored.SerializeToString(deterministic=True))
        (folder / f"{module.name}{SUFFIXES['openvino']}").write_bytes(given.SerializeToString(deterministic=True))
    write_text(folder / WEIGHTS_FILE, to_json(weights, indent=1) + "\n")


if __name__ == "__main__":
    write(GRAPHS)
