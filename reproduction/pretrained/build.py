"""Train and pack the bundled models: `python -m reproduction.pretrained.build [MODEL ...]`, or `make models`.

For each model the files that it is trained on are compared with the SHA-256 in `corpora.json`, `dialeval train` runs with
one thread, in bfloat16 where the processor has instructions for it, and the folder is packed into
`dialeval_plugin/pretrained/MODEL`, with acceptance where the recipe names logs, percentiles of human responses, limits of what
it knows, golden scores, `provenance.json` and its card, README.md, whose figures `reproduction.pretrained.write` fills in. A
model that is trained already in the working folder is packed again and not trained again; with `--packed` the weights in the
box stay too, and what comes after packing is made anew. Two builds of one commit on one machine end with the same bytes.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from dialeval_plugin.core.dialogue import Dialogue, Example, Level
from dialeval_plugin.core.files import read_json, read_text, to_json, write_text
from dialeval_plugin.core.scope import Scope
from dialeval_plugin.core.signature import METADATA_FILES, PROVENANCE_FILE, file_hash, file_hashes
from dialeval_plugin.corpora.registry import read_dialogues
from dialeval_plugin.methods.assistant.training import WITHOUT_LIMIT
from dialeval_plugin.methods.breakdown.calibration import CALIBRATION_FILE, Calibration, weights_hash
from dialeval_plugin.models.compact import DELTA_FILE
from dialeval_plugin.models.folders import PACKAGED_ENCODER, PRETRAINED, write_manifest
from dialeval_plugin.pretrained.catalogue import open_scorer, settings_file, write_golden
from dialeval_plugin.training.people import sampled_responses, write_percentiles, write_scope
from reproduction.assistant.sources import SCALE, SCOPE, scale_answers, scope_answers
from reproduction.assistant.sources import write as write_answers
from reproduction.data import data_folder
from reproduction.documents import put_between
from reproduction.general.logs import write_logs
from reproduction.pretrained.packing import pack_model

CORPORA = Path(__file__).with_name("corpora.json")
REPORTED = ("dstc10", "fed", "usr", "conture")
"""Rated sets that no model may have seen a dialogue of."""
REPORTED_CHATS = (*REPORTED, "convai2")
"""The same of chats with chatbots."""
HUMAN = ("dailydialog/validation/dialogues_validation.txt", "dream/dev.json", "esconv/valid.txt")
"""Dialogues between people whose responses make the scale of the percentiles; no model is trained on them."""
CHATS = (
    *HUMAN,
    "dailydialog/train/dialogues_train.txt",
    "dream/train.json",
    "esconv/train.txt",
    "personachat/valid_self_original_no_cands.txt",
    "topical_chat/valid_freq.json",
    "empathetic_dialogues/afraid.csv",
    "empathetic_dialogues/caring.csv",
)
"""Dialogues that bound what all models of chats know: each was measured on chats of other kinds than it learnt from. Those with
chatbots are left out, since some are in other languages."""
RESPONSES_OF_A_FILE = 2000
CARDS = Path(__file__).with_name("cards")
"""Texts of each model's card, without computed figures."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one model is trained.

    Attributes:
        command: of `dialeval train`.
        files: by option, files below the data folder; `NAME=FILE` where a corpus has a name.
        words: further words of the command.
        reported: sets and files that are kept out of training, in addition to `REPORTED`.
        scales: options of the scorer, for each of which there is a table of percentiles.
        bits: of each weight of the packed encoder.
        logs: corpora of chats with chatbots, of which the packed model learns acceptance.
        answers: corpora of answers of assistants, of which `reproduction.assistant.sources` makes the files that are named.
    """

    command: str
    files: tuple[tuple[str, str], ...]
    words: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    scales: tuple[Mapping[str, str], ...] = ({},)
    bits: int = 6
    logs: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()

    @property
    def training_files(self) -> list[str]:
        """The files below the data folder that something is learnt from, in order."""
        known = read_json(CORPORA)
        talked = [file for corpus in (*self.logs, *self.answers) for file in known[corpus]["files"]]
        named = () if self.answers else (file.rpartition("=")[2] for _, file in self.files)
        return list(dict.fromkeys([*named, *talked]))


def _general(*corpora: str) -> tuple[tuple[str, str], ...]:
    known = read_json(CORPORA)
    return tuple(("--corpus", f"{corpus}={file}") for corpus in corpora for file in known[corpus]["files"] if file not in HUMAN)


def _assistant(*more: str) -> Recipe:
    """The recipe of an evaluator of assistants, of the open corpora and those that are named."""
    files = tuple((f"--{name}", f"{name}.jsonl") for name in ("preferences", "answers", "requests"))
    return Recipe(
        "assistant", files, ("--steps", "450", "--max-minutes", "20"), scales=_LEVELS, answers=(*_OPEN_ANSWERS, *more)
    )


_OPEN_ANSWERS = ("preferences", "pandalm", "oasst", "halie", "taskmaster", "diasafety")
_LEVELS = ({"level": "turn"}, {"level": "dialogue"})
_OPEN_LOGS = "convai1", "dstc9"
_CAUSES = ("DREAM", "msc", "ESConv")
_CAUSES_REPORTED = tuple(
    f"cgdialog_plus/{name}_{part}.json" for name in _CAUSES[:2] for part in ("response_cause_test", "responses_pairwise")
)
_DAILYDIALOG_PP = "dailydialog_pp/dev.json", "dailydialog_pp/data_with_contexts_and_positive_responses_only.json"

RECIPES = {
    "general": Recipe(
        "general",
        _general(
            *("dailydialog", "dailydialog_pp", "empathetic_dialogues", "personachat", "topical_chat", "dream", "esconv"),
            "convai1",
        ),
        ("--max-pairs", "70000"),
        reported=_CAUSES_REPORTED,
        scales=_LEVELS,
        logs=(*_OPEN_LOGS, "reliable_eval"),
    ),
    "general-open": Recipe(
        "general",
        _general("personachat", "topical_chat", "convai1"),
        ("--max-pairs", "70000"),
        scales=_LEVELS,
        logs=_OPEN_LOGS,
    ),
    "assistant": _assistant("alpaca_eval", "alpaca"),
    "assistant-open": _assistant(),
    "slide": Recipe(
        "slm",
        tuple(("--data", file) for file in _DAILYDIALOG_PP),
        ("--validation-fraction", "0.15"),  # a threshold of a hundred contexts does not carry over
        reported=("dailydialog_pp/test.json",),
        bits=4,
        scales=tuple({"variant": variant} for variant in ("slm", "slm_probability", "slm_distance")),
    ),
    "causalscore": Recipe(
        "independence",
        (
            *(("--data", f"cgdialog_plus/{name}_response_cause_train.json") for name in _CAUSES),
            *(("--validation", f"cgdialog_plus/{name}_response_cause_valid.json") for name in _CAUSES),
        ),
        ("--recipe", "vectors"),  # of the bundled `general`, which is to be built before
        reported=_CAUSES_REPORTED,
    ),
    "language-model": Recipe(
        "language-model",
        (
            ("--data", "dailydialog/train/dialogues_train.txt"),
            ("--validation", "dailydialog/validation/dialogues_validation.txt"),
        ),
        reported=("dailydialog/test/dialogues_test.txt",),
        scales=_LEVELS,
    ),
}
"""By the name of the bundled model."""


def main(words: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"default: {', '.join(RECIPES)}")
    parser.add_argument("--work", type=Path, default=Path("build", "models"), help="folder of the trainings (%(default)s)")
    parser.add_argument("--output", type=Path, default=PRETRAINED, help="folder of the packed models (the package's)")
    parser.add_argument("--packed", action="store_true", help="train nothing: the weights of the packed models stay")
    chosen = parser.parse_args(words)
    for name in chosen.models or RECIPES:
        check_files(name, data_folder())
        target = chosen.output / name
        hashes = pack_again(name, target) if chosen.packed else pack(name, train(name, chosen.work / name), target)
        for file, found in hashes.items():
            print(f"{found}  {name}/{file}", flush=True)


def train(name: str, folder: Path) -> Path:
    """Train a model into `folder`, unless it has one; the commit at which training began is written next to it."""
    if (folder.with_suffix(".commit")).exists() and any(folder.glob("*.json")):
        return folder
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout  # noqa: S607 - git is where the user has it
    write_text(folder.with_suffix(".commit"), commit)
    recipe, data = RECIPES[name], data_folder()
    if recipe.answers:
        data = folder.with_suffix(".data")
        write_answers(data, only_open="alpaca" not in recipe.answers)
    _dialeval(*command(recipe, data), "--output", str(folder))
    return folder


def _dialeval(*words: str) -> None:
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "dialeval_plugin", *words], env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False
    )
    if done.returncode:
        sys.exit(done.returncode)


def command(recipe: Recipe, data: Path | None = None) -> list[str]:
    """Return the words of the training's command; files below `data`, or below the folder of public data where it is None."""

    def place(file: str) -> str:
        corpus, _, path = file.rpartition("=")
        return f"{corpus}={data / path}" if data and corpus else str(data / path) if data else file

    files = [word for option, file in recipe.files for word in (option, place(file))]
    reported = [word for found in (*map(place, recipe.reported), *REPORTED) for word in ("--evaluation", found)]
    return ["train", recipe.command, *files, *reported, *recipe.words]


def acceptance_command(logs: Sequence[str], model: str) -> list[str]:
    """Return the words of the command by which a packed model learns acceptance, of the files that `write_logs` wrote."""
    files = [word for log in logs for word in ("--data", log)]
    reported = [word for name in REPORTED_CHATS for word in ("--evaluation", name)]
    return ["train", "acceptance", *files, "--model", model, *reported]


def check_files(name: str, data: Path) -> None:
    """End the program where a training file is not the one that the bundled model was trained on."""
    known = {file: found for corpus in read_json(CORPORA).values() for file, found in corpus["files"].items()}
    for file in [*RECIPES[name].training_files, *HUMAN]:
        if not (data / file).is_file() or file_hash(data / file) != known[file]:
            sys.exit(f"{data / file}: is not there, or not the file with SHA-256 {known[file]}.")


def pack(name: str, folder: Path, target: Path) -> dict[str, str]:
    """Pack a trained model into `target`, in place of what is there, and return the hashes of its files."""
    commit = folder.with_suffix(".commit").read_text(encoding="utf-8").strip()
    machine = {"instruction_set": torch.backends.cpu.get_cpu_capability(), "torch": torch.__version__, "threads": 1}
    with TemporaryDirectory(dir=target.parent, prefix=".") as unfinished:
        packed = Path(unfinished, name)
        pack_model(folder, packed, base=PACKAGED_ENCODER, bits=RECIPES[name].bits)
        keep_calibration(packed)
        return finish(name, packed, target, {"commit": commit, "machine": machine})


def pack_again(name: str, target: Path) -> dict[str, str]:
    """Write the files of a packed model other than its weights again, and return the hashes of all its files."""
    said = read_json(target / PROVENANCE_FILE)
    with TemporaryDirectory(dir=target.parent, prefix=".") as unfinished:
        ignored = shutil.ignore_patterns("README.md", *METADATA_FILES)
        packed = shutil.copytree(target, Path(unfinished, name), ignore=ignored)
        write_manifest(packed)
        return finish(name, packed, target, {field: said[field] for field in ("commit", "machine")})


def finish(name: str, packed: Path, target: Path, trained: Mapping[str, Any]) -> dict[str, str]:
    """Replace `target` by a packed model, with its files other than the weights.

    `trained` says at which commit and on which machine it was trained.
    """
    recipe, data = RECIPES[name], data_folder()
    if recipe.logs:
        logs = [str(log) for log in write_logs(packed.with_name("logs"), data, recipe.logs)]
        taught = packed.with_name("taught")
        _dialeval(*acceptance_command(logs, str(packed)), "--output", str(taught))
        packed = taught
    sources = {file: file_hash(data / file) for file in (SCALE if recipe.answers else HUMAN)}
    for options in recipe.scales:
        scorer = open_scorer(str(packed), **options)
        write_percentiles(scorer, packed, scale_of(recipe, scorer.level, data), sources)
    if recipe.answers:
        sources = {file: file_hash(data / file) for file in SCOPE}
        write_scope(packed, scope_answers(), sources, leave_out=WITHOUT_LIMIT)
    else:
        scope_of_chats(packed)
    write_golden(packed)
    said = provenance(name, packed, trained)
    write_text(packed / PROVENANCE_FILE, to_json(said, indent=1) + "\n")
    write_text(packed / "README.md", put_between(read_text(CARDS / f"{name}.md"), "origin", origin(said)))
    write_manifest(packed)
    shutil.rmtree(target, ignore_errors=True)
    packed.rename(target)
    return file_hashes(target)


def scope_of_chats(folder: Path) -> Scope:
    """Write what a model of chats knows into its folder."""
    data, generator = data_folder(), random.Random("scope")
    items = [item for file in CHATS for item in sampled_responses(read_dialogues(data / file), RESPONSES_OF_A_FILE, generator)]
    return write_scope(folder, items, {file: file_hash(data / file) for file in CHATS})


def scale_of(recipe: Recipe, level: Level, data: Path) -> Sequence[Dialogue] | Sequence[Example]:
    """Return what the scale of a model's percentiles is made of: what people said, or good answers of assistants."""
    if not recipe.answers:
        return [dialogue for file in HUMAN for dialogue in read_dialogues(data / file)]
    answers = scale_answers()
    return answers if level == "turn" else [Dialogue(one.id, (*one.context, one.response)) for one in answers]


def keep_calibration(folder: Path) -> None:
    """Let a language model's extremes, which training learnt, count for the same weights in half precision."""
    if (path := folder / CALIBRATION_FILE).exists():
        replace(Calibration.load(path), models=(weights_hash(folder),)).save(path)


def provenance(name: str, folder: Path, trained: Mapping[str, Any]) -> dict[str, Any]:
    """Where a model comes from: command, data with hashes and terms, what was kept out of training, and `trained`."""
    recipe, known = RECIPES[name], read_json(CORPORA)
    record = read_json(folder / settings_file(folder))["training"]
    files = recipe.training_files
    used = {corpus: found for corpus, found in known.items() if set(found["files"]) & set(files)}
    terms = sorted({found["licence"] for found in used.values()})
    logs = [f"{log}.jsonl" for log in recipe.logs]
    return {
        "licence": "; ".join(terms),
        "commercial_use": all(found["commercial"] for found in used.values()),
        "command": " ".join(["dialeval", *command(recipe), "--precision", record["options"]["precision"]]),
        **({"acceptance_command": " ".join(["dialeval", *acceptance_command(logs, "MODEL")])} if logs else {}),
        "seed": record["options"]["seed"],
        "kept_out": [*recipe.reported, *REPORTED],
        "leak_rule": record["leak_rule"],
        "encoder": PACKAGED_ENCODER if any(folder.rglob(DELTA_FILE)) else None,
        "data": [
            {
                "corpus": corpus,
                **{field: found[field] for field in ("title", "licence", "source")},
                "files": {file: found["files"][file] for file in files if file in found["files"]},
            }
            for corpus, found in used.items()
        ],
        **trained,
    }


def origin(said: Mapping[str, Any]) -> str:
    """Return the part of a card that says where the model is from, in Markdown."""
    corpora = [
        f"- [{corpus['title']}]({corpus['source']}), {corpus['licence']}: {', '.join(f'`{file}`' for file in corpus['files'])}"
        for corpus in said["data"]
    ]
    machine = said["machine"]
    taught = []
    if said["command"].startswith("dialeval train assistant "):
        is_open = " --open" if said["commercial_use"] else ""
        taught = [f"`python -m reproduction.assistant.sources FOLDER{is_open}` writes the files that it reads."]
    if found := said.get("acceptance_command"):
        taught = [
            "The packed model then learnt acceptance of logs that `python -m reproduction.general.logs FOLDER` writes:",
            f"```\n{found} --output FOLDER\n```",
        ]
    return "\n\n".join(
        [
            "\n".join(corpora),
            f"No dialogue of {', '.join(f'`{name}`' for name in said['kept_out'])} is among them: each that has turns in "
            f"common with one was left out (version {said['leak_rule']} of the rule in `corpora/identity.py`). The files' "
            "SHA-256 are in `provenance.json`. The command, in the folder of the public data:",
            f"```\n{said['command']} --output FOLDER\n```",
            *taught,
            f"Seed {said['seed']}, commit `{said['commit'][:7]}`, one thread, {machine['instruction_set']} "
            f"instructions, torch {machine['torch']}. `make models` repeats it.",
        ]
    )


if __name__ == "__main__":
    main()
