"""Operations on trained models, bundled or not: open their scorer, export them, and verify their scores."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, cast

from typing_extensions import TypedDict

from dialeval_plugin.core.dialogue import Dialogue, Item
from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import checked_model_file, read_json, to_json, write_text
from dialeval_plugin.core.locks import sole_process
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.signature import EXPORTS, GOLDEN_FILE, MANIFEST_FILE, file_hash
from dialeval_plugin.corpora import mini
from dialeval_plugin.models.folders import (
    PRETRAINED,
    DefaultModel,
    changing,
    check_weights,
    listed,
    of_model,
    recorded,
    resolve,
    unfinished,
    write_manifest,
)
from dialeval_plugin.models.runtimes.runtime import ExportedBackend, RuntimeChoice

TOLERANCE = 1e-4
"""Largest difference between a score and its golden score, relative for scores above 1."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The code for one kind of model folder.

    Attributes:
        method: name of its folder in `methods`.
        default_model: module, and the `DefaultModel` in it.
        option: the scorer's option that names the model.
        trained: class in the module `model` that opens a folder and writes it whole; empty if the folder is a transformers
            checkpoint. The module has a function `load_runtime` if other backends than torch can run the model.
    """

    method: str
    default_model: str
    option: str = "model"
    trained: str = ""

    @property
    def default(self) -> DefaultModel:
        """The scorer, and the model that it uses by default."""
        module, _, name = self.default_model.partition(":")
        default: DefaultModel = getattr(importlib.import_module(f"dialeval_plugin.methods.{self.method}.{module}"), name)
        return default

    def code(self) -> tuple[Any, Callable[[Path, RuntimeChoice], Any] | None]:
        """Import the class and the function, if they exist; they need torch."""
        if not self.trained:
            return None, None
        module = importlib.import_module(f"dialeval_plugin.methods.{self.method}.model")
        return getattr(module, self.trained), getattr(module, "load_runtime", None)


KINDS = {
    settings: kind
    for settings, kind in {
        "assistant.json": Kind("assistant", "scorer:ASSISTANT_MODEL", trained="TrainedAssistant"),
        "general.json": Kind("general", "scorer:GENERAL_MODEL", trained="TrainedGeneral"),
        "slm.json": Kind("slide", "scorer:SLM", "slm", "TrainedSmallModel"),
        "causalscore.json": Kind("causalscore", "scorer:CAUSAL_MODEL", trained="CausalModel"),
        "language_model.json": Kind("likelihood", "default_model:LANGUAGE_MODEL"),
    }.items()
    # The folder of a method can be deleted.
    if importlib.util.find_spec(f"dialeval_plugin.methods.{kind.method}") is not None
}
"""Kinds by settings file."""


class _Golden(TypedDict):
    """Golden scores of `golden_items` by their ids, computed when a model was packed."""

    instruction_set: str
    torch: str
    scores: dict[str, float]


class Verification(NamedTuple):
    """Differences of scores from the golden ones."""

    n_scores: int
    largest_difference: float
    instruction_set: str
    """Instruction set of this machine, as torch names it."""
    golden_instruction_set: str
    record: str
    """Description of the record that the hashes of its files are compared with."""

    @property
    def is_equal(self) -> bool:
        """Whether no score differs by more than `TOLERANCE`."""
        return self.largest_difference <= TOLERANCE


def settings_file(folder: Path) -> str:
    """Return the name of the settings file in a trained model's folder; raise InputError if there is none."""
    for name in KINDS:
        if (folder / name).is_file():
            return name
    raise InputError(f"{folder}: holds no trained model: it has none of {', '.join(KINDS)}. Give the folder of one.")


def open_scorer(name: str, **options: Any) -> Scorer:
    """Return a scorer with the model `name`: a bundled one, a folder, or a hub model."""
    folder = resolve(name)
    kind = KINDS[settings_file(folder)]
    return load_scorer(kind.default.scorer, **{kind.option: str(folder)}, **options)


def export(name: str, output: Path, backends: Sequence[ExportedBackend] = ()) -> None:
    """Write a model whole: a folder that sentence-transformers or transformers opens without this package.

    The folder also gets exports for `backends`. Only files of the model are copied.

    Raises:
        InputError: there is no such model, `output` is something else, or only torch runs this kind of model.
        MissingPrerequisite: a package that writes exports for a backend is not installed.
    """
    from dialeval_plugin.models.runtimes.exporting import write_export

    folder = resolve(name)
    settings = settings_file(folder)
    trained, load = KINDS[settings].code()
    if backends and load is None:
        raise InputError(f"{name}: only torch runs a model of {KINDS[settings].default.scorer!r}. Leave the backends out.")
    check_weights(folder)
    with sole_process(output), unfinished(output) as made:
        if trained is not None:
            trained.load(str(folder)).save(made, read_json(folder / settings)["training"])
        _copy(folder, made, without=() if trained is None else ("*.safetensors", f"{EXPORTS}/*/*"))
        for backend in backends:
            graphs = Path(EXPORTS, backend)
            if (output / graphs).is_dir():
                # OpenVINO does not write the same bytes twice.
                shutil.copytree(output / graphs, made / graphs)
            runtime = cast("Callable[..., Any]", load)(made, RuntimeChoice(device="cpu"))
            write_export(runtime, made, made / graphs, backend, mini.calibration_texts())
        write_manifest(made)


def pull(repository: str, output: Path, revision: str | None = None) -> None:
    """Copy the files of a hub model into a new folder; raises as `resolve`, `check_weights` and `unfinished`."""
    with sole_process(output), unfinished(output) as made:
        folder = resolve(repository, revision=revision)
        settings_file(folder)
        check_weights(folder)
        _copy(folder, made)


def _copy(folder: Path, target: Path, without: Sequence[str] = ()) -> None:
    """Copy the missing files of a model into the folder `target`."""
    for name in of_model(folder):
        if not (target / name).exists() and not any(map(PurePosixPath(name).match, without)):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / name, target / name)


def golden_items(level: str) -> Sequence[Item]:
    """Return the items on which every model is verified: test examples of the embedded corpus, or dialogues made of them."""
    examples = mini.read_examples("test")
    if level == "turn":
        return examples
    return [Dialogue(item.id, (*item.context, item.response)) for item in examples]


def write_golden(folder: Path) -> None:
    """Write the golden scores of a model, for `verify`."""
    import torch

    golden = _Golden(instruction_set=_instruction_set(), torch=torch.__version__, scores=_scores(str(folder)))
    with changing(folder, GOLDEN_FILE):
        write_text(folder / GOLDEN_FILE, to_json(golden, indent=1) + "\n")


def verify(name: str) -> Verification:
    """Check a model's files against their published hashes, then its scores against the golden ones, if it has any.

    The hashes of bundled models and their copies are also recorded in this package: changing the folder alone is not enough.

    Raises:
        ModelLoadError: a file is damaged or changed.
    """
    folder = resolve(name)
    settings = folder / settings_file(folder)
    check_weights(folder)
    expected = recorded(settings)
    if expected is None and folder.resolve().parent == PRETRAINED.resolve():
        raise ModelLoadError(f"{settings}: is not that of a model of this release. Install dialeval-plugin again.")
    if expected is not None and file_hash(folder / MANIFEST_FILE) != expected:
        raise ModelLoadError(
            f"{folder / MANIFEST_FILE}: names other files than this release has recorded of the model. Copy the folder again."
        )
    record = "this release's record" if expected else "the folder's own manifest"
    if GOLDEN_FILE not in (listed(folder) or (GOLDEN_FILE,)):  # of a folder of one's own, just trained
        return Verification(0, 0.0, _instruction_set(), _instruction_set(), record)
    golden, scores = checked_model_file(folder / GOLDEN_FILE, _Golden), _scores(str(folder))
    if not scores or scores.keys() != golden["scores"].keys():
        raise ModelLoadError(f"{folder / GOLDEN_FILE}: has scores of other items than are verified. Copy the folder again.")
    largest = max(abs(scores[id] - score) / max(1, abs(score)) for id, score in golden["scores"].items())
    return Verification(len(scores), largest, _instruction_set(), golden["instruction_set"], record)


def _scores(name: str) -> dict[str, float]:
    scorer = open_scorer(name)
    items = golden_items(scorer.level)
    values = scorer.score(items).values
    return {item.id: value for item, value in zip(items, values, strict=True) if value is not None}


def _instruction_set() -> str:
    import torch

    limit = os.environ.get("ONEDNN_MAX_CPU_ISA")
    return torch.backends.cpu.get_cpu_capability() + (f", ONEDNN_MAX_CPU_ISA={limit}" if limit else "")
