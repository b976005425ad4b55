"""Descriptions of evaluators, from result files, scorers and bundled models; unknown fields stay empty."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from os.path import relpath
from pathlib import Path
from typing import NamedTuple, cast
from urllib.parse import quote

from safetensors import safe_open
from typing_extensions import TypedDict

from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked, read_json
from dialeval_plugin.core.resources import DISTRIBUTIONS, metrics_path
from dialeval_plugin.hosts.lm_eval.tasks.documents import SCORER_MODEL
from dialeval_plugin.models.compact import DELTA_FILE, SCALES
from dialeval_plugin.models.folders import PACKAGED_ENCODER, PRETRAINED, model_identity, pretrained_names, resolve
from dialeval_plugin.models.manifest import Licence, licence_of
from dialeval_plugin.reports.scorer_cards import ScorerCard, scorer_card

from .board import Identity, Method
from .result_names import TECHNICAL, shortened
from .task_runs import Setup, TaskRun

_REPLAYED = {"replay-judge", "replay_judge"}
_LEVEL = re.compile(r"(?:^|\|)level:(turn|dialogue)(?=\||$)")
_FIELD = r"\b{}\s*=\s*[{{\"](.*?)[}}\"]\s*(?:,\s*\w+\s*=|,?\s*\}}?\s*$)"


def identity_of(runs: Sequence[TaskRun]) -> Identity:
    """Return the description of an evaluator, from the runs of its cells, at least one."""
    newest = max(runs, key=lambda run: run.date)
    setup, card = newest.setup, _card(newest.setup)
    method, level = _method(setup, card), _LEVEL.search(newest.scorer_signature)
    model = next((name for name in pretrained_names() if _packaged_model(name).identity in newest.scorer_signature), "")
    packaged = _packaged_model(model) if model else None
    n_parameters = setup.n_parameters or (packaged.n_parameters if packaged else _of_encoder(setup, card))
    named = str(setup.arguments.get("pretrained", ""))
    paper, paper_url = _paper(card.citation if card else "")
    return Identity(
        method=method,
        reads_references=_reads_references(setup, card, method),
        level=cast("Level", level[1]) if level and setup.model == SCORER_MODEL else None,
        n_parameters=0 if method == "rule" else n_parameters,
        licence=packaged.licence.terms if packaged and packaged.licence else "",
        commercial_use=packaged.licence.is_open if packaged and packaged.licence else None,
        about=card.summary if card else "",
        card=card.name if card and (metrics_path() / card.name / "README.md").is_file() else "",
        model_card=model,
        model_url=f"https://huggingface.co/{named}" if setup.is_on_hub and re.fullmatch(r"[\w.-]+/[\w.-]+", named) else "",
        paper=paper,
        paper_url=paper_url,
        command=command([run.task for run in runs], setup),
    )


class _Passport(TypedDict):
    evaluators: list[_PassportEvaluator]


class _PassportEvaluator(TypedDict):
    signature: str | None


def with_passports(
    identities: Mapping[str, Identity], signatures: Mapping[str, str], files: Sequence[Path], folder: Path
) -> dict[str, Identity]:
    """Return identities with the addresses, relative to `folder`, of available passports; `signatures` are by evaluator.

    `files` are JSON files of `dialeval certify` next to their pages; InputError if one is invalid or belongs to no evaluator.
    """
    linked = dict(identities)
    for file in files:
        advice = "Give what `dialeval certify --output NAME.html --output NAME.json` wrote."
        of = checked(read_json(file), _Passport, str(file), advice=advice)["evaluators"]
        if not (page := file.with_suffix(".html")).is_file():
            raise InputError(f"{page}: there is no such page. {advice}")
        own = {one["signature"] for one in of}
        if not (names := [name for name, signature in signatures.items() if signature and signature in own]):
            raise InputError(f"{file}: no evaluator of the leaderboard has its signature. Certify what the leaderboard shows.")
        linked |= {name: replace(linked[name], passport=quote(relpath(page, folder))) for name in names}
    return linked


def command(tasks: Sequence[str], setup: Setup) -> str:
    """Return the command that repeats a run, with the last part of folder names, and without arguments on device or speed.

    Example:
        >>> print(command(["dbdc_yi"], Setup(model="hf", arguments={"pretrained": "/my/gpt2", "device": "cpu"})))
        dialeval lm-eval run --model hf --model_args pretrained=gpt2 --tasks dbdc_yi --log_samples --output_path results
    """
    arguments = ",".join(f"{name}={shortened(value)}" for name, value in setup.arguments.items() if name not in TECHNICAL)
    words = ["dialeval", "lm-eval", "run", "--model", setup.model, *(["--model_args", arguments] if arguments else [])]
    words += ["--tasks", ",".join(sorted(set(tasks)))]
    words += ["--apply_chat_template"] if setup.has_chat_template else []
    words += [] if setup.limit is None else ["--limit", f"{setup.limit:g}"]
    return shlex.join([*words, "--log_samples", "--output_path", "results"])


def _card(setup: Setup) -> ScorerCard | None:
    try:
        return scorer_card(str(setup.arguments["scorer"]))
    except (KeyError, InputError):
        # A language model, or a scorer of a package that is not installed.
        return None


def _method(setup: Setup, card: ScorerCard | None) -> Method | None:
    if _REPLAYED.intersection([setup.model, *map(str, (setup.arguments.get("llm"), setup.arguments.get("scorer")))]):
        return "replayed"
    if setup.model != SCORER_MODEL or "llm" in setup.arguments:
        return "prompted"
    if card is None or not (card.needs or card.declared_by in DISTRIBUTIONS):
        return None
    if "llm" in card.needs:
        return "prompted"
    has_weights = any(word in need for need in card.needs for word in ("model", "regression", "encoder"))
    return "trained" if has_weights or card.packaged_model else "rule"


def _reads_references(setup: Setup, card: ScorerCard | None, method: Method | None) -> bool | None:
    if method == "replayed":
        return None  # The prompt of a published judge is in its paper.
    if card is None:
        return False if method == "prompted" else None  # Prompts of our tasks never show references.
    if "references" in card.needs or setup.arguments.get("direction", "context_to_response") != "context_to_response":
        return True
    return False if card.declared_by in DISTRIBUTIONS else None


class _PackagedModel(NamedTuple):
    identity: str
    """Name and hash, as in signatures."""
    n_parameters: int | None
    licence: Licence | None


@cache
def _packaged_model(name: str) -> _PackagedModel:
    folder = PRETRAINED / name
    return _PackagedModel(model_identity(folder), _n_parameters(folder), licence_of(folder))


def _n_parameters(folder: Path) -> int | None:
    """Return the number of weights in a folder; weights stored as changes of the packaged encoder count with the encoder's."""
    paths = sorted(folder.glob("*.safetensors"))
    own = sum(_of_file(path) for path in paths if path.name != DELTA_FILE)
    base = _n_parameters(resolve(PACKAGED_ENCODER)) or 0 if any(path.name == DELTA_FILE for path in paths) else 0
    return own + base or None


def _of_file(path: Path) -> int:
    with safe_open(str(path), framework="np") as file:
        names = [name for name in file.keys() if not name.endswith(SCALES)]  # noqa: SIM118 - not iterable
        return sum(math.prod(file.get_slice(name).get_shape()) for name in names)


def _of_encoder(setup: Setup, card: ScorerCard | None) -> int | None:
    is_default = card is not None and "encoder" in card.needs and not {"encoder", "vectors"} & setup.arguments.keys()
    return _n_parameters(resolve(PACKAGED_ENCODER)) if is_default else None


def _paper(citation: str) -> tuple[str, str]:
    title, url = (re.search(_FIELD.format(name), citation, re.DOTALL | re.MULTILINE) for name in ("title", "url"))
    return " ".join(re.sub(r"[{}]", "", title[1]).split()) if title else "", url[1] if url else ""
