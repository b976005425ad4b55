"""Folders of every kind of model, damaged at random: a clear error or a finite score, never a traceback. FAULTS D16."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dialeval_plugin import load_scorer
from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn
from dialeval_plugin.core.errors import InputError, MissingPrerequisite, ModelLoadError
from dialeval_plugin.methods.proxy_indicators.regression import LinearRegression, ProxyModel, Range
from dialeval_plugin.methods.proxy_indicators.tasks import Choice, IndicatorSettings
from tests.tiny.classifiers import write_classifier
from tests.tiny.reconstruction import write_tiny_model

N_DAMAGED = 40
EXAMPLE = Example.from_texts(["Do you like jazz?", "I do."], "Where is the station?")
DIALOGUE = Dialogue("1", tuple(Turn(text) for text in ("do you like jazz ?", "i do not .", "where is the station ?")))
ODD: list[Any] = [None, True, 0, -1, 3, 0.5, 1e300, "", "x", [], ["x"], {}, {"x": 1}]


class Kind(NamedTuple):
    """A folder, and the scorer over a copy of it."""

    folder: Path
    scorer: Callable[[Path], Any]
    item: Item = EXAMPLE


def _encoder(folder: Path) -> Any:
    return load_scorer("sentence_similarity", encoder=str(folder))


def write_proxy(folder: Path) -> Path:
    """A regression over one indicator, and its classifier beside it."""
    write_classifier(folder / "cola", ("unacceptable", "acceptable"))
    settings = IndicatorSettings(("cola",), {"cola": Choice("cola")})
    regression = LinearRegression(("cola",), (Range(0.0, 1.0),), (0.5,), 0.1, Range(1.0, 5.0), 9)
    ProxyModel(settings, regression, "overall", {}).save(folder / "proxy.json")
    return folder


@pytest.fixture(params=["slm", "general", "independence", "likelihood", "breakdown", "reconstruction", "proxy", "encoder"])
def kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kind:
    def given(name: str) -> Path:
        folder: Path = request.getfixturevalue(name)
        return folder

    match request.param:
        case "slm":
            return Kind(given("tiny_slm"), lambda folder: load_scorer("slide", slm=str(folder), variant="slm"))
        case "general":
            return Kind(given("tiny_general"), lambda folder: load_scorer("general", model=str(folder)))
        case "independence":
            return Kind(given("tiny_causal_model"), lambda folder: load_scorer("causalscore", model=str(folder)))
        case "likelihood":
            models = request.getfixturevalue("tiny_breakdown_models")
            return Kind(models.lm, lambda folder: load_scorer("dialogue_likelihood", model=str(folder)), DIALOGUE)
        case "breakdown":
            models = request.getfixturevalue("tiny_breakdown_models")
            return Kind(models.odin, lambda folder: load_scorer("dialogue_breakdown", model=str(folder), method="odin_g"))
        case "reconstruction":
            folder = write_tiny_model(tmp_path_factory.mktemp("rec") / "model", "vhcr")
            return Kind(folder, lambda folder: load_scorer("dialogue_reconstruction", model=str(folder)), DIALOGUE)
        case "proxy":
            return Kind(
                write_proxy(tmp_path_factory.mktemp("proxy")),
                lambda folder: load_scorer(
                    "glue_proxy", regression=str(folder / "proxy.json"), models={"cola": str(folder / "cola")}
                ),
            )
    example = Example.from_texts(["Hi."], "Hello.", references=["Hello there."])
    return Kind(given("tiny_encoder"), _encoder, example)


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


def test_d16_a_damaged_folder_is_a_clear_error_or_a_score(kind: Kind, tmp_path: Path) -> None:
    rng = random.Random(16)
    undamaged = kind.scorer(kind.folder).score([kind.item])
    assert undamaged.n_scored == 1
    failures, n_refused = [], 0
    for number in range(N_DAMAGED):
        folder = shutil.copytree(kind.folder, tmp_path / str(number))
        path = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".safetensors"))
        done = damage(path, rng)
        try:
            (found,) = kind.scorer(folder).score([kind.item]).values
        except (InputError, MissingPrerequisite, ModelLoadError) as error:
            n_refused += 1
            if not str(error) or "\n" in str(error):
                failures.append(f"{number} {done}: {error}")
        except Exception as error:
            failures.append(f"{number} {done}: {type(error).__name__}: {str(error)[:200]}")
        else:
            if found is not None and not math.isfinite(found):
                failures.append(f"{number} {done}: {found}")
        shutil.rmtree(folder)
    assert failures == []
    assert n_refused > 5
