"""Runtimes of models, the user's choice of one, and those without torch: graphs of an encoder and of a head's functions.

An export is a folder with a graph for the encoder and one for each function of the head, the tokenizer, and `EXPORT_FILE`,
written last, which identifies the exported weights. It is in the folder `EXPORTS` of the model's folder, or in the user's
cache.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from safetensors import safe_open
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError, MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.files import checked_model_file
from dialeval_plugin.core.resources import install, user_cache
from dialeval_plugin.core.signature import EXPORTS, SignatureValue, content_hash
from dialeval_plugin.models.compact import base_of
from dialeval_plugin.models.folders import check_file
from dialeval_plugin.models.texts import CPU_TOKENS, JsonTokenizer, length_batches, padded

VectorArray: TypeAlias = npt.NDArray[np.float32]

ExportedBackend: TypeAlias = Literal["onnx", "openvino", "openvino-int8"]
Backend: TypeAlias = Literal["torch", "onnx", "openvino", "openvino-int8", "auto"]
"""Runtime of the encoder and the heads. All but "openvino-int8" agree to six digits; "auto" is the fastest of those that are
installed."""
Precision: TypeAlias = Literal["float32", "bfloat16", "float16"]
"""Precision of torch's multiplications in the encoder; float16 only on a GPU."""


PACKAGES: Mapping[Backend, str] = MappingProxyType(
    {"torch": "torch", "onnx": "onnxruntime", "openvino": "openvino", "openvino-int8": "openvino"}
)
"""Packages that run a backend."""
_EXACT: tuple[ExportedBackend, ...] = ("openvino", "onnx")
"""Backends that agree with torch, the faster first (benchmarks/backends.py)."""


def fastest_exact() -> ExportedBackend | None:
    """Return the fastest installed backend that agrees with torch; None if there is only torch."""
    return next((backend for backend in _EXACT if importlib.util.find_spec(PACKAGES[backend])), None)


DEFAULT_BACKEND: Backend = (None if importlib.util.find_spec("torch") else fastest_exact()) or "torch"
"""Default backend: torch if it is installed."""


@dataclass(frozen=True, slots=True)
class RuntimeChoice:
    """A user's choice of a runtime.

    Attributes:
        backend: see `Backend`.
        dtype: precision of torch, see `Precision`.
        device: device of torch; by default a GPU if there is one.
    """

    backend: Backend = "torch"
    dtype: Precision = "float32"
    device: str | None = None


ON_TORCH = RuntimeChoice()
"""The default choice."""


class Runtime(Protocol):
    """An encoder and the functions of a head on its vectors, as functions of arrays, independent of the library."""

    @property
    def tokenizer(self) -> JsonTokenizer:
        """Tokenizer for `TextEncoder`."""

    @property
    def longest(self) -> int:
        """Number of tokens of a text that the encoder reads."""

    def embed(self, ids: Sequence[Sequence[int]]) -> VectorArray:
        """Embed texts, given as token ids, in batches of one length; (n, hidden), in the order given."""

    def run(self, function: str, *arrays: np.ndarray) -> tuple[VectorArray, ...]:
        """Call one of the head's `functions` on arrays of n rows; its results have n rows too."""

    def table(self, name: str) -> np.ndarray:
        """Return a tensor of the head by its name."""

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return the fields that affect a score; none for torch in float32, the precision of training."""


class VectorCache:
    """A cache of at most `SIZE` vectors of texts that many rows share.

    The last digits of a vector depend on the texts in its batch, so a run that must be repeatable to the byte clears the cache
    wherever it may be interrupted.
    """

    SIZE = 16_384
    """25 MB of MiniLM's vectors."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._vectors: dict[tuple[int, ...], VectorArray] = {}

    def clear(self) -> None:
        """Forget all vectors."""
        self._vectors.clear()

    def embed(self, shared: Sequence[Sequence[int]], others: Sequence[Sequence[int]]) -> tuple[VectorArray, VectorArray]:
        """Embed texts in one pass; vectors of `shared` are cached."""
        keys = [tuple(ids) for ids in shared]
        fresh = [key for key in dict.fromkeys(keys) if key not in self._vectors]
        vectors = self._runtime.embed([*fresh, *others])
        if len(self._vectors) + len(fresh) > self.SIZE:
            self._vectors = {key: self._vectors[key] for key in keys if key in self._vectors}
        self._vectors |= zip(fresh, vectors, strict=False)
        return np.stack([self._vectors[key] for key in keys]), vectors[len(fresh) :]


def unit(vectors: VectorArray) -> VectorArray:
    """Return vectors (n, width) at unit length; zero vectors are unchanged."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: VectorArray = vectors / np.maximum(lengths, 1e-12)
    return scaled


EXPORT_FILE = "export.json"
EXPORTS_VARIABLE = "DIALEVAL_EXPORTS"
FORMAT_VERSION = 2
TOKENIZER_FILE = "tokenizer.json"
ENCODER = "encoder"
"""Name of the graph whose inputs are token ids and their mask."""

GRAPH_SUFFIXES: Mapping[ExportedBackend, str] = MappingProxyType({"onnx": ".onnx", "openvino": ".xml", "openvino-int8": ".xml"})
_SHARED_FROM = 65_536
"""Lowest size of a weight that onnxruntime does not copy. Graph optimisation does not see such weights, and need not: they are
only multiplied with, or looked up in."""

Graph: TypeAlias = Callable[[Sequence[np.ndarray]], tuple[VectorArray, ...]]


class Export(TypedDict):
    """Contents of `EXPORT_FILE`.

    Attributes:
        weights: `content_hash` of the model's folder.
        files: SHA-256 of each other file of the export.
        functions: functions of the head, each with a graph.
        longest: see `Runtime`.
        special_tokens: see `texts.SPECIAL_TOKENS`.
        calibration: record of the calibration of int8; empty otherwise.
        made_with: versions of the packages.
    """

    format_version: int
    backend: ExportedBackend
    weights: str
    files: dict[str, str]
    functions: list[str]
    longest: int
    special_tokens: dict[str, int | None]
    calibration: dict[str, str | int]
    made_with: dict[str, str]


class HeadFile(NamedTuple):
    """Location and kind of a head's tensors."""

    folder: Path
    name: str
    kind: str
    """Kind of the head among those with packaged graphs; see `open_packaged`."""


def require(backend: Backend, *packages: str) -> None:
    """Refuse a backend if packages are not installed, by default those that run it."""
    for package in packages or (PACKAGES[backend],):
        if importlib.util.find_spec(package) is None:
            extra = "torch" if package == "torch" else backend.partition("-")[0]
            raise MissingPrerequisite(f"backend={backend!r}: the package {package} is not installed. Run `{install(extra)}`.")


def check_choice(backend: ExportedBackend, dtype: Precision) -> None:
    """Refuse a backend that is not installed, and a precision that it would silently replace by another."""
    require(backend)
    if dtype != "float32" and (backend == "onnx" or dtype == "float16"):
        raise InputError(f"dtype={dtype!r}: backend={backend!r} does not compute in it. Leave one of them out.")
    if dtype == "bfloat16":
        openvino = import_openvino()
        # Without these instructions it would silently use 32 bits.
        if "BF16" not in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise InputError("dtype='bfloat16': this processor has no such instructions. Leave it out.")


def find_export(folder: Path, backend: ExportedBackend) -> Path | None:
    """Return the export of a model in its folder, else in the user's cache; None if there is none.

    A cached export of an earlier release is ignored; one in the folder made from other weights is an error.
    """
    own = folder / EXPORTS / backend
    if (own / EXPORT_FILE).is_file():
        weights = content_hash(folder)
        if (exported := _read(own)["weights"]) != weights:
            raise ModelLoadError(
                f"{own}: was exported from weights whose hash is {exported}, and the model's is {weights}. Delete the folder."
            )
        return own
    cached = cached_export(folder, backend)
    return cached if is_current(cached) else None


def is_current(folder: Path) -> bool:
    """Whether a folder has an export of this release."""
    path = folder / EXPORT_FILE
    return path.is_file() and checked_model_file(path, dict[str, Any]).get("format_version") == FORMAT_VERSION


def cached_export(folder: Path, backend: ExportedBackend) -> Path:
    """Return the cache folder of a model's export, which depends on its weights.

    It is in the folder that the environment variable `EXPORTS_VARIABLE` names, by default in the user's cache.
    """
    named, base = os.environ.get(EXPORTS_VARIABLE), base_of(folder)
    weights = "-".join(content_hash(part) for part in (folder, base) if part is not None)
    return (Path(named) if named else user_cache() / EXPORTS) / weights / backend


def _read(folder: Path) -> Export:
    path = folder / EXPORT_FILE
    if (version := checked_model_file(path, dict[str, Any]).get("format_version")) != FORMAT_VERSION:
        raise ModelLoadError(f"{path}: format_version is {version}, this release reads {FORMAT_VERSION}. Delete the folder.")
    return checked_model_file(path, Export)


class ExportedRuntime:
    """An encoder and a head as graphs.

    Args:
        graphs: the encoder's graph, `ENCODER`, and those of the head's functions, by name.
        tokenizer: tokenizer of the encoder.
        longest: see `Runtime`.
        head: file in which `table` looks up tensors; None for a bare encoder.
        backend: backend of the graphs.
        dtype: precision of OpenVINO's multiplications.
    """

    def __init__(
        self,
        graphs: Mapping[str, Graph],
        tokenizer: JsonTokenizer,
        longest: int,
        head: HeadFile | None,
        backend: ExportedBackend,
        dtype: Precision,
    ) -> None:
        self._graphs, self.tokenizer, self.longest = graphs, tokenizer, longest
        self._head, self._backend, self._dtype = head, backend, dtype

    @classmethod
    def read(cls, folder: Path, head: HeadFile | None, dtype: Precision = "float32") -> ExportedRuntime:
        """Open an export."""
        export = _read(folder)
        for name, expected in export["files"].items():
            check_file(folder / name, expected, "Delete the folder and export the model again.")
        backend = export["backend"]
        suffix = GRAPH_SUFFIXES[backend]
        tokenizer = JsonTokenizer.read(folder / TOKENIZER_FILE, export["special_tokens"])
        graphs = {name: open_graph(folder / f"{name}{suffix}", backend, dtype) for name in (ENCODER, *export["functions"])}
        return cls(graphs, tokenizer, export["longest"], head, backend, dtype)

    def embed(self, ids: Sequence[Sequence[int]]) -> VectorArray:
        """See `Runtime`."""
        if not ids:
            raise InputError("embed: there are no texts. Give one at least.")
        whole: VectorArray | None = None
        for batch in length_batches([len(row) for row in ids], CPU_TOKENS):
            (vectors,) = self._graphs[ENCODER](padded([ids[place] for place in batch], self.tokenizer.pad_token_id))
            whole = np.empty((len(ids), vectors.shape[1]), dtype=np.float32) if whole is None else whole
            whole[batch] = vectors
        return cast("VectorArray", whole)

    def run(self, function: str, *arrays: np.ndarray) -> tuple[VectorArray, ...]:
        """See `Runtime`."""
        return self._graphs[function]([np.ascontiguousarray(array, dtype=np.float32) for array in arrays])

    def table(self, name: str) -> np.ndarray:
        """See `Runtime`."""
        if self._head is None:
            raise KeyError(name)
        with safe_open(str(self._head.folder / self._head.name), framework="np") as file:
            array: np.ndarray = file.get_tensor(name)
        return array

    def signature_fields(self) -> dict[str, SignatureValue]:
        """See `Runtime`; the results of int8 depend on the processor's instructions."""
        fields: dict[str, SignatureValue] = {"backend": self._backend}
        if self._backend == "openvino-int8":
            fields["instructions"] = instructions()
        return fields if self._dtype == "float32" else {**fields, "dtype": self._dtype}


def instructions() -> str:
    """Return the name of the processor's instructions for 8-bit multiplication, or its architecture."""
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        flags = set()
    known = ("amx_int8", "avx512_vnni", "avx_vnni", "avx512bw", "avx2", "asimddp")
    return next((name for name in known if name in flags), platform.machine())


def n_threads() -> int:
    """Return the number of threads for a graph from OMP_NUM_THREADS, as torch and numpy do; 0 for all."""
    value = os.environ.get("OMP_NUM_THREADS", "")
    return int(value) if value.isdigit() else 0


def open_graph(
    path: Path, backend: ExportedBackend, dtype: Precision, weights: Mapping[str, np.ndarray] = MappingProxyType({})
) -> Graph:
    """Open a graph of an export, or a graph without weights, whose `weights` are then given by name."""
    try:
        return _onnx_graph(path, weights) if backend == "onnx" else _openvino_graph(path, weights, dtype)
    except Exception as error:  # both libraries raise errors of many kinds for a damaged file
        first = str(error).strip().partition("\n")[0]
        remedy = "Copy the model folder again." if weights else "Delete the folder and export the model again."
        raise ModelLoadError(f"{path}: cannot be opened ({first}). {remedy}") from error


def import_onnxruntime() -> Any:
    """Import onnxruntime with its telemetry disabled, which sends events and writes files into the home folder since 1.32."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    return onnxruntime


def _onnx_graph(path: Path, weights: Mapping[str, np.ndarray]) -> Graph:
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads()
    # With batches of many shapes, each shape would keep its own memory.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(weight) for name, weight in weights.items()}
    shared = {name: value for name, value in values.items() if weights[name].size >= _SHARED_FROM}
    if values:
        small = [name for name in values if name not in shared]
        options.add_external_initializers(small, [values[name] for name in small])
        # Large weights are read in place, so they must stay in memory as long as the session. Prepacking would copy them.
        options.add_session_config_entry("session.disable_prepacking", "1")
        for name, value in shared.items():
            options.add_initializer(name, value)
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [wanted.name for wanted in session.get_inputs()]

    def run(arrays: Sequence[np.ndarray], _: object = shared) -> tuple[VectorArray, ...]:
        return tuple(session.run(None, dict(zip(names, arrays, strict=True))))

    return run


def import_openvino() -> Any:
    """Import OpenVINO with its telemetry disabled, which would send conversion events and write files into the home folder."""
    with contextlib.suppress(ImportError):
        from openvino_telemetry.utils import opt_in_checker, sender

        opt_in_checker.OptInChecker.check = lambda *_, **__: opt_in_checker.ConsentCheckResult.DECLINED
        sender.TelemetrySender.send = lambda *_, **__: None
    import openvino

    return openvino


def _openvino_graph(path: Path, weights: Mapping[str, np.ndarray], dtype: Precision) -> Graph:
    openvino = import_openvino()
    settings: dict[str, Any] = {
        # On processors that support it, the default is 16 bits.
        "INFERENCE_PRECISION_HINT": "f32" if dtype == "float32" else "bf16",
        # Number of shapes whose compiled code is kept. The default, thousands at a megabyte each, is wasteful: batches seldom
        # repeat a shape after a long time, and this limit costs 3 % of the time.
        "CPU_RUNTIME_CACHE_CAPACITY": 64,
        # By default each process binds its threads to the first processors, which two shards would share while others are idle.
        "ENABLE_CPU_PINNING": False,
    }
    if threads := n_threads():
        settings["INFERENCE_NUM_THREADS"] = threads
    core = openvino.Core()
    model = core.read_model(str(path))
    # The constants share the arrays' memory, so the arrays must stay in memory.
    for parameter in model.get_parameters():
        if (weight := weights.get(parameter.output(0).get_any_name())) is not None:
            parameter.output(0).replace(openvino.op.Constant(weight, shared_memory=True).output(0))
            model.remove_parameter(parameter)
    request = core.compile_model(model, "CPU", settings).create_infer_request()

    def run(arrays: Sequence[np.ndarray], _: object = weights) -> tuple[VectorArray, ...]:
        results = request.infer(list(arrays), share_inputs=True)
        return tuple(results[place] for place in range(len(results)))

    return run
