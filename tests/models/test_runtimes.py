"""Every backend says what torch says, without torch; an export says whose weights it has."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError, MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.corpora import mini
from dialeval_plugin.models.folders import PRETRAINED, write_manifest
from dialeval_plugin.models.runtimes.opening import open_runtime
from dialeval_plugin.models.runtimes.runtime import (
    EXPORTS_VARIABLE,
    RuntimeChoice,
    VectorCache,
    cached_export,
    import_openvino,
    instructions,
    is_current,
)
from dialeval_plugin.pretrained.catalogue import export, open_scorer
from tests import forked
from tests.cli.running import DIALEVAL, environment, names, write_rows
from tests.refusals import refusal

EXACT = ("onnx", "openvino")
EXAMPLES = mini.read_examples("test")
LONG = Example.from_texts(["Where to?", "Home. " * 60], "I would walk. The bus is late, as always. " * 20, facts=["I walk."])
"""Example of many parts, after a context that is cut."""


def values(scorer_name: str, *, examples: list[Example] = EXAMPLES, **options: object) -> np.ndarray:
    return np.array(load_scorer(scorer_name, **options).score(examples).values)


@pytest.mark.long
@pytest.mark.parametrize("backend", EXACT)
@pytest.mark.parametrize("name", ["general", "slide", "causalscore"])
def test_an_exact_backend_says_what_torch_says(name: str, backend: str) -> None:
    expected, found = (values(name, backend=one, device="cpu", examples=[*EXAMPLES[:40], LONG]) for one in ("torch", backend))
    assert np.abs(found - expected).max() < 1e-5
    assert (np.argsort(found.round(5)) == np.argsort(expected.round(5))).all()


@pytest.mark.long
@pytest.mark.parametrize("backend", EXACT)
def test_every_column_is_the_same_with_facts_and_over_whole_dialogues(tiny_general: Path, backend: str) -> None:
    for options in ({}, {"level": "dialogue"}):
        expected, other = (
            load_scorer("general", model=str(tiny_general), backend=one, **options).score(
                [mini_dialogue() if options else LONG]
            )
            for one in ("torch", backend)
        )
        assert {name: found[0] for name, found in other.columns.items()} == {
            name: pytest.approx(found[0], abs=1e-5) for name, found in expected.columns.items()
        }


def mini_dialogue() -> object:
    from dialeval_plugin.pretrained.catalogue import golden_items

    return golden_items("dialogue")[0]


@pytest.mark.long
@pytest.mark.parametrize("backend", EXACT)
def test_the_similarity_of_sentences_is_the_same(backend: str) -> None:
    pairs = [
        Example.from_texts(["Hi."], text, references=["A dog barks.", "[SEP] is a token."]) for text in ("A cat.", "[SEP]")
    ]
    expected, found = (values("sentence_similarity", backend=one, examples=pairs) for one in ("torch", backend))
    assert np.abs(found - expected).max() < 1e-5


@pytest.mark.long
def test_int8_ranks_nearly_as_torch_does_and_no_neighbour_moves_a_score() -> None:
    scorer = load_scorer("general", backend="openvino-int8")
    found = np.array(scorer.score(EXAMPLES).values)
    assert spearmanr(found, values("general", backend="torch")).statistic > 0.99
    alone = [scorer.score([example]).values[0] for example in EXAMPLES[:20]]
    assert np.abs(np.array(alone) - found[:20]).max() < 1e-5


HAS_BFLOAT16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()


@pytest.mark.skipif(HAS_BFLOAT16, reason="this processor has the instructions")
@pytest.mark.parametrize("backend", ["torch", "openvino"])
def test_bfloat16_is_refused_where_it_would_be_emulated_or_left_out(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EXPORTS_VARIABLE, str(tmp_path / "exports"))
    assert refusal(values, "general", backend=backend, dtype="bfloat16", device="cpu") == (
        "dtype='bfloat16': this processor has no such instructions. Leave it out."
    )
    # Before an export is made.
    assert not (tmp_path / "exports").exists()


@pytest.mark.skipif(not HAS_BFLOAT16, reason="this processor has no such instructions")
def test_bfloat16_ranks_nearly_as_float32_does() -> None:
    expected = values("general")
    for backend in ("torch", "openvino"):
        scorer = load_scorer("general", backend=backend, dtype="bfloat16", device="cpu")
        assert spearmanr(scorer.score(EXAMPLES).values, expected).statistic > 0.99
        assert "dtype:bfloat16" in str(scorer.score(EXAMPLES[:1]).signature)


@pytest.mark.long
def test_the_signature_says_what_ran_and_that_of_torch_is_as_it_was() -> None:
    def fields(backend: str) -> dict[str, object]:
        own = load_scorer("general", backend=backend).signature_fields()
        return {name: own[name] for name in ("backend", "instructions", "dtype") if name in own}

    assert fields("torch") == {}
    assert fields("onnx") == {"backend": "onnx"}
    assert fields("openvino-int8") == {"backend": "openvino-int8", "instructions": instructions()}
    assert fields("auto") == {"backend": "openvino"}
    assert load_scorer("causalscore", backend="onnx").signature_fields()["backend"] == "onnx"


@pytest.mark.long
def test_people_s_percentiles_are_those_of_torch_where_the_scores_are() -> None:
    assert load_scorer("general", backend="onnx").percentiles == load_scorer("general", backend="torch").percentiles
    assert load_scorer("general", backend="openvino-int8").percentiles is None


def test_auto_takes_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    found, hidden = importlib.util.find_spec, {"openvino"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in hidden else found(name))
    assert load_scorer("general", backend="auto").signature_fields()["backend"] == "onnx"
    hidden.add("onnxruntime")
    assert "backend" not in load_scorer("general", backend="auto").signature_fields()
    assert refusal(load_scorer, "general", backend="openvino", error=MissingPrerequisite) == (
        "backend='openvino': the package openvino is not installed. Run `pip install 'dialeval-plugin[openvino]'`."
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "onnx", "device": "cuda"}, "device='cuda': only backend='torch' runs on it. Leave one of them out."),
        (
            {"backend": "onnx", "dtype": "bfloat16"},
            "dtype='bfloat16': backend='onnx' does not compute in it. Leave one of them out.",
        ),
        ({"dtype": "float16", "device": "cpu"}, "dtype='float16': is for a GPU. Give dtype='bfloat16', or leave it out."),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, str], message: str) -> None:
    assert refusal(load_scorer, "general", error=InputError, **options) == message


@pytest.mark.long
def test_a_model_is_exported_with_its_folder_and_is_the_same_model(tmp_path: Path, tiny_general: Path) -> None:
    folder = tmp_path / "model"
    export(str(tiny_general), folder, ["onnx", "openvino"])
    assert sorted(path.name for path in (folder / "exported").iterdir()) == ["onnx", "openvino"]
    whole = tmp_path / "whole"
    export(str(tiny_general), whole)
    assert content_hash(folder) == content_hash(whole)
    assert open_scorer(str(folder), backend="onnx").score([LONG]).values == pytest.approx(
        open_scorer(str(whole), backend="torch").score([LONG]).values, abs=1e-5
    )


def test_an_export_of_other_weights_is_refused(tmp_path: Path, tiny_general: Path) -> None:
    folder = tmp_path / "model"
    export(str(tiny_general), folder, ["onnx"])
    own = content_hash(folder)
    (folder / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    write_manifest(folder)
    assert refusal(open_scorer, str(folder), backend="onnx", error=ModelLoadError) == (
        f"{folder / 'exported' / 'onnx'}: was exported from weights whose hash is {own}, and the model's is "
        f"{content_hash(folder)}. Delete the folder."
    )


@pytest.mark.long
@pytest.mark.parametrize("backend", ["onnx", "openvino"])
def test_a_changed_export_is_refused_and_named(
    tmp_path: Path, tiny_general: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C05, C06: a changed graph gave other scores under the same signature, and flipped bits other scores in silence."""
    monkeypatch.setenv("DIALEVAL_EXPORTS", str(tmp_path))
    generator = random.Random(backend)
    expected = open_scorer(str(tiny_general), backend=backend).score([LONG]).values
    (record,) = tmp_path.rglob("export.json")
    for path in sorted(record.parent.iterdir()):
        if path == record:
            continue
        whole = path.read_bytes()
        for _ in range(5):
            flipped = bytearray(whole)
            flipped[generator.randrange(len(whole))] ^= 1 << generator.randrange(8)
            path.write_bytes(flipped)
            assert refusal(open_scorer, str(tiny_general), backend=backend, error=ModelLoadError) == (
                f"{path}: is damaged or was changed. Delete the folder and export the model again."
            )
        path.unlink()
        assert refusal(open_scorer, str(tiny_general), backend=backend, error=ModelLoadError) == (
            f"{path}: there is no such file. Delete the folder and export the model again."
        )
        path.write_bytes(whole)
    assert open_scorer(str(tiny_general), backend=backend).score([LONG]).values == expected


@pytest.mark.long
def test_two_processes_that_need_one_export_make_it_once_and_both_score(tmp_path: Path, tiny_general: Path) -> None:
    """B05: the second ended at once, with exit code 2."""
    rows = write_rows(tmp_path / "in.jsonl", [{"context": ["Hi."], "response": "Hello there."}])
    words = [DIALEVAL, "score", rows, "--worst", "0", "--option", f"model={tiny_general}", "--option", "backend=onnx"]
    variables = environment(tmp_path, DIALEVAL_EXPORTS=str(tmp_path / "exports"))
    run = partial(forked.run, cwd=tmp_path, env=variables)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(run, [[*words, "--output", tmp_path / f"{number}.jsonl"] for number in range(2)]))
    assert [done.returncode for done in both] == [0, 0], [done.stderr for done in both]
    assert (tmp_path / "0.jsonl").read_bytes() == (tmp_path / "1.jsonl").read_bytes()
    (of_model,) = (tmp_path / "exports").iterdir()
    assert names(of_model) == ["onnx"]


def test_an_export_in_the_cache_of_an_earlier_release_is_made_anew(
    tmp_path: Path, tiny_general: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EXPORTS_VARIABLE, str(tmp_path / "exports"))
    cached = cached_export(tiny_general, "onnx")
    cached.mkdir(parents=True)
    (cached / "export.json").write_text('{"format_version": 1, "backend": "onnx"}')
    (cached / "old.onnx").write_text("old")
    values("general", model=str(tiny_general), backend="onnx", examples=[LONG])
    assert "old.onnx" not in names(cached)
    assert is_current(cached)


def test_models_of_one_name_have_exports_of_their_own(tmp_path: Path, tiny_general: Path) -> None:
    other = shutil.copytree(tiny_general, tmp_path / tiny_general.name)
    assert cached_export(other, "onnx") == cached_export(tiny_general, "onnx")
    (other / "config.json").write_text("{}")
    assert cached_export(other, "onnx") != cached_export(tiny_general, "onnx")


@pytest.mark.parametrize("choice", [RuntimeChoice("auto", device="cuda"), RuntimeChoice("auto", dtype="bfloat16")])
def test_auto_is_torch_where_another_device_or_precision_is_asked_for(choice: RuntimeChoice, tiny_general: Path) -> None:
    opened = object()
    found = open_runtime(tiny_general, choice, load=lambda given: (opened, given), calibration=list)  # type: ignore[arg-type, return-value]
    assert found == (opened, choice)


def test_openvino_multiplies_in_32_bits_unless_asked_and_int8_names_the_instructions(
    tmp_path: Path, tiny_general: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openvino = import_openvino()
    compile_model, given = openvino.Core.compile_model, []

    def compiled(core: Any, model: Any, device: str, settings: dict[str, Any]) -> Any:
        given.append(settings["INFERENCE_PRECISION_HINT"])
        return compile_model(core, model, device, settings)

    monkeypatch.setattr(openvino.Core, "compile_model", compiled)
    runtime = load_scorer("general", model=str(tiny_general), backend="openvino")._model.runtime  # type: ignore[attr-defined]
    assert set(given) == {"f32"}
    assert runtime.signature_fields() == {"backend": "openvino"}
    runtime._backend = "openvino-int8"
    assert runtime.signature_fields() == {"backend": "openvino-int8", "instructions": instructions()}


def test_the_cache_of_vectors_stays_as_small_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lengths:
        def embed(self, ids: list[tuple[int, ...]]) -> np.ndarray:
            return np.array([[len(row)] for row in ids], dtype=np.float32)

    monkeypatch.setattr(VectorCache, "SIZE", 3)
    cache = VectorCache(Lengths())  # type: ignore[arg-type]
    for start in range(0, 12, 2):
        texts = [[start] * (start + 1), [start + 1] * (start + 2), [0]]
        found, _ = cache.embed(texts, [])
        assert found[:, 0].tolist() == [start + 1, start + 2, 1]
        assert len(cache._vectors) <= 5


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "backends"),
    [
        ("general", ("onnx", "openvino", "openvino-int8")),
        ("slide", ("onnx",)),
        pytest.param("slide", ("openvino", "openvino-int8"), marks=pytest.mark.exhaustive),
    ],
)
def test_exported_models_score_without_torch_in_500_mb(name: str, backends: tuple[str, ...]) -> None:
    # Made by the tests above, or here.
    for backend in backends:
        load_scorer(name, backend=backend)
        program = (
            "import os, sys, threading, time\n"
            "from dialeval_plugin.core.registry import load_scorer\n"
            "from dialeval_plugin.corpora import mini\n"
            f"scorer = load_scorer({name!r}, backend={backend!r})\n"
            "seen = {len(os.sched_getaffinity(0))}\n"
            "def watch(thread):\n"
            "    while True:\n"
            "        seen.add(len(os.sched_getaffinity(thread)))\n"
            "        time.sleep(0.01)\n"
            "threading.Thread(target=watch, args=[threading.get_native_id()], daemon=True).start()\n"
            # With the longest contexts: the memory is that of all 1,080, in a quarter of the time.
            "scorer.score(sorted(mini.read_examples(), key=lambda item: len(str(item.context)))[-180:])\n"
            "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
            "print('torch' in sys.modules, 'transformers' in sys.modules, int(status['VmHWM'].split()[0]) / 1024)\n"
            "print(*seen)\n"
        )
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment)
        printed = ended.stdout.split()
        assert printed[:2] == ["False", "False"]
        assert float(printed[2]) <= 500, backend
        assert len(printed[3:]) == 1, f"{backend}: binds its thread to a processor, which other processes may have to share"


def test_a_folder_of_ours_may_hold_what_openvino_calls_bin(tmp_path: Path) -> None:
    folder = tmp_path / "general"
    shutil.copytree(PRETRAINED / "general", folder)
    (folder / "exported" / "openvino").mkdir(parents=True)
    (folder / "exported" / "openvino" / "encoder.bin").write_bytes(b"weights")
    load_scorer("general", model=str(folder))
    (folder / "pytorch_model.bin").write_bytes(b"weights")
    assert "pickled weights" in refusal(load_scorer, "general", model=str(folder), error=ModelLoadError)
