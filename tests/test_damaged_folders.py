"""Folders of every kind of model, damaged at random: a clear error or a finite score, never a traceback. FAULTS D16."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin import load_scorer
from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn
from dialeval_plugin.core.errors import InputError, MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.signature import MANIFEST_FILE
from dialeval_plugin.methods.proxy_indicators.regression import Feature, FeatureRange, LinearRegression, ProxyModel
from dialeval_plugin.methods.proxy_indicators.tasks import Choice, IndicatorSettings
from dialeval_plugin.models.folders import write_manifest
from tests.tiny.classifiers import write_classifier
from tests.tiny.reconstruction import write_tiny_model

N_DAMAGED = 40
EXAMPLE = Example.from_texts(["Do you like jazz?", "I do."], "Where is the station?")
REFERRED = Example.from_texts(["Hi."], "Hello.", references=["Hello there."])
DIALOGUE = Dialogue("1", tuple(Turn(text) for text in ("do you like jazz ?", "i do not .", "where is the station ?")))
ODD: list[Any] = [None, True, 0, -1, 3, 0.5, 1e300, "", "x", [], ["x"], {}, {"x": 1}]


@pytest.fixture
def proxy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A regression over one indicator, and its classifier beside it."""
    folder = tmp_path_factory.mktemp("proxy")
    write_classifier(folder / "cola", ("unacceptable", "acceptable"))
    settings = IndicatorSettings(("cola",), {"cola": Choice("cola")})
    regression = LinearRegression((Feature(0.0, 1.0, "cola", 0.5),), 0.1, FeatureRange(1.0, 5.0), 9)
    ProxyModel(settings, regression, "overall", {}).save(folder / "proxy.json")
    return folder


@pytest.fixture
def reconstruction_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("rec") / "model", "vhcr")


KINDS: dict[str, tuple[Callable[[str], Any], Item]] = {
    "tiny_slm": (lambda folder: load_scorer("slide", slm=folder, variant="slm"), EXAMPLE),
    "tiny_assistant": (lambda folder: load_scorer("assistant", model=folder), EXAMPLE),
    "tiny_general": (lambda folder: load_scorer("general", model=folder), EXAMPLE),
    "tiny_causal_model": (lambda folder: load_scorer("causalscore", model=folder), EXAMPLE),
    "tiny_breakdown_models.lm": (lambda folder: load_scorer("dialogue_likelihood", model=folder), DIALOGUE),
    "tiny_breakdown_models.odin": (lambda folder: load_scorer("dialogue_breakdown", model=folder, method="odin_g"), EXAMPLE),
    "reconstruction_folder": (lambda folder: load_scorer("dialogue_reconstruction", model=folder), DIALOGUE),
    "proxy_folder": (
        lambda folder: load_scorer("glue_proxy", regression=f"{folder}/proxy.json", models={"cola": f"{folder}/cola"}),
        EXAMPLE,
    ),
    "tiny_encoder": (lambda folder: load_scorer("sentence_similarity", encoder=folder), REFERRED),
}
"""By the fixture that has the folder: the scorer over a copy of it, and what it scores."""


def damage(path: Path, rng: random.Random) -> str:
    """Change one file; return what was done."""
    how = rng.choice(["delete", "cut", "garbage", *["node"] * 7]) if path.suffix == ".json" else rng.choice(["delete", "cut"])
    if how == "delete":
        path.unlink()
    elif how == "cut":
        path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])
    elif how == "garbage":
        path.write_text(rng.choice(["null", "[]", "3", '"x"', "{", "", "[[1]]", '{"a": NaN}', "[" * 100_000]))
    else:
        value = json.loads(path.read_text(encoding="utf-8"))
        place: list[Any] = []
        changed = _changed(value, rng, place)
        path.write_text(json.dumps(changed), encoding="utf-8")
        how = f"node {place}"
    return f"{path.name}: {how}"


def _changed(value: Any, rng: random.Random, place: list[Any]) -> Any:
    """Walk down to some node and replace or drop it."""
    if isinstance(value, (dict, list)) and value and (not place or rng.random() < 0.7):
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        place.append(key)
        copy = value.copy()
        if rng.random() < 0.15:
            del copy[key]
        else:
            copy[key] = _changed(value[key], rng, place)
        return copy
    odd = rng.choice(ODD)
    place.append(odd)
    return odd


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_d16_a_damaged_folder_is_a_clear_error_or_a_score(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rng = random.Random(16)
    fixture, _, objective = kind.partition(".")
    found = request.getfixturevalue(fixture)
    whole: Path = getattr(found, objective) if objective else found
    scorer, item = KINDS[kind]
    assert scorer(str(whole)).score([item]).n_scored == 1
    failures, n_refused = [], 0
    for number in range(N_DAMAGED):
        folder = shutil.copytree(whole, tmp_path / str(number))
        path = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".safetensors"))
        done = damage(path, rng)
        if path.name != MANIFEST_FILE and (folder / MANIFEST_FILE).exists():
            # As of a folder that was published so: what reads the files has to say it.
            write_manifest(folder)
        try:
            (score,) = scorer(str(folder)).score([item]).values
        except (InputError, MissingPrerequisite, ModelLoadError) as error:
            n_refused += 1
            if not str(error) or "\n" in str(error):
                failures.append(f"{number} {done}: {error}")
        except Exception as error:
            failures.append(f"{number} {done}: {type(error).__name__}: {str(error)[:200]}")
        else:
            if score is not None and not math.isfinite(score):
                failures.append(f"{number} {done}: {score}")
        shutil.rmtree(folder)
    assert failures == []
    assert n_refused > 5
