"""The bundled models: that each is whole, says where it is from, and computes what it did where it was made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from sentence_transformers import SentenceTransformer
from typing_extensions import NotRequired, TypedDict

from dialeval_plugin import load_metric, load_scorer
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.files import checked, read_json, to_json, write_text
from dialeval_plugin.core.signature import PROVENANCE_FILE, file_hashes
from dialeval_plugin.corpora import mini
from dialeval_plugin.methods.general.judging import ACCEPTANCE, ACCEPTANCE_FILE
from dialeval_plugin.models.compact import DELTA_FILE
from dialeval_plugin.models.folders import PRETRAINED, pretrained_names, write_manifest
from dialeval_plugin.pretrained.catalogue import (
    GOLDEN_FILE,
    KINDS,
    TOLERANCE,
    Verification,
    export,
    golden_items,
    open_scorer,
    settings_file,
    verify,
)
from reproduction.pretrained import build, first_screen
from reproduction.pretrained.build import CORPORA, RECIPES, acceptance_command, check_files, command, pack_again
from tests import forked
from tests.cli.running import environment, run, run_installed
from tests.hub_stand_in import hub_stand_in
from tests.refusals import refused

NAMES = pretrained_names()
ROOT = Path(__file__).resolve().parents[1]


class Provenance(TypedDict):
    """Record of where a model comes from."""

    licence: str
    commercial_use: bool
    command: str
    acceptance_command: NotRequired[str]
    seed: int
    commit: str
    kept_out: list[str]
    leak_rule: str | int
    encoder: str | None
    data: list[dict[str, object]]
    machine: dict[str, str | int]


def test_the_box_holds_models_of_our_recipes_and_none_is_large() -> None:
    assert {"general"} <= set(NAMES) <= set(RECIPES)
    assert set(RECIPES) >= {kind.default.packaged for kind in KINDS.values()}
    sizes = {name: sum(path.stat().st_size for path in (PRETRAINED / name).rglob("*") if path.is_file()) for name in NAMES}
    assert {name: size for name, size in sizes.items() if size > 13e6} == {}


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_whole_and_computes_what_it_did_where_it_was_made(name: str) -> None:
    found = verify(name)
    assert found.is_equal, found
    assert found.n_scores == len(golden_items(open_scorer(name).level))


@pytest.mark.parametrize("name", NAMES)
def test_a_model_says_where_it_is_from(name: str) -> None:
    said = checked(read_json(PRETRAINED / name / "provenance.json"), Provenance, name, advice="Build it again.")
    words, _, precision = said["command"].partition(" --precision ")
    assert (words, precision in {"float32", "bfloat16"}) == (" ".join(["dialeval", *command(RECIPES[name])]), True)
    assert set(said["kept_out"]) >= {"dstc10", "fed", "usr", "conture"}
    logs = [f"{log}.jsonl" for log in RECIPES[name].logs]
    taught = " ".join(["dialeval", *acceptance_command(logs, "MODEL")]) if logs else None
    assert said.get("acceptance_command") == taught
    assert (PRETRAINED / name / ACCEPTANCE_FILE).exists() == bool(logs)
    assert {corpus["corpus"] for corpus in said["data"]} >= set(RECIPES[name].logs)
    known = read_json(CORPORA)
    for corpus in said["data"]:
        listed = known[corpus["corpus"]]
        assert (corpus["licence"], corpus["title"]) == (listed["licence"], listed["title"])
        assert corpus["files"].items() <= listed["files"].items()  # type: ignore[attr-defined]
        assert said["commercial_use"] <= listed["commercial"]
    card = (PRETRAINED / name / "README.md").read_text(encoding="utf-8")
    assert f"`{said['commit'][:7]}`" in card
    assert all(f"[{corpus['title']}]({corpus['source']})" in card for corpus in said["data"])


def test_the_terms_of_every_corpus_are_stated() -> None:
    terms = (ROOT / "LICENSES" / "WEIGHTS.md").read_text(encoding="utf-8")
    for corpus in read_json(CORPORA).values():
        answer = "yes" if corpus["commercial"] else "no"
        assert f"| {corpus['title']} | {corpus['licence']} | {answer} | {corpus['why']} |" in terms


@pytest.mark.long
@pytest.mark.parametrize("names", [["general"], pytest.param(NAMES, marks=pytest.mark.exhaustive)], ids=["one", "all"])
def test_other_instructions_change_no_score_by_more_than_is_said(names: list[str]) -> None:
    """Done-when 4: verified with the instructions of twenty years ago, in a process of its own."""
    code = (
        "from dialeval_plugin.pretrained.catalogue import verify\n"
        f"for name in {names!r}: v = verify(name); print(name, v.instruction_set, v.is_equal)"
    )
    plain = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **plain}, capture_output=True, text=True, check=False
    )
    expected = [f"{name} DEFAULT, ONEDNN_MAX_CPU_ISA=SSE41 True" for name in names]
    assert done.stdout.splitlines() == expected, done.stderr


def test_without_any_option_a_response_that_fits_is_above_one_that_does_not() -> None:
    contexts = [["Do you have plans for Sunday?", "Not yet. Why?"]] * 2
    responses = ["I thought we could have a picnic by the river.", "The plans of the new house show four rooms on each floor."]
    for name in ("general", "slide"):
        found = load_metric(name).compute(predictions=responses, contexts=contexts)
        assert found["scores"][0] > found["scores"][1] + 0.1, name
        assert f":{name}@" in found["signature"]


@pytest.mark.parametrize("name", ["causalscore", "dialogue_breakdown", "dialogue_likelihood"])
def test_the_other_metrics_with_a_model_in_the_box_need_no_option_either(name: str) -> None:
    contexts = [["Do you have plans for Sunday?", "Not yet. Why?"]]
    found = load_metric(name).compute(predictions=["I thought we could have a picnic by the river."], contexts=contexts)
    assert (found["n_scored"], found["n_total"]) == (1, 1)


def test_the_first_screen_of_the_readme_is_what_the_general_evaluator_says() -> None:
    assert f"<!-- {first_screen.MARKER} -->\n\n{first_screen.table().strip()}\n" in (ROOT / "README.md").read_text("utf-8")


def test_the_conversation_of_the_first_page_has_the_scores_that_the_command_prints() -> None:
    """`test_documentation` compares what docs/chat_logs.md prints with what runs."""
    printed = (ROOT / "docs" / "chat_logs.md").read_text("utf-8").partition(f"<!-- {first_screen.CHAT_MARKER} -->")[2]
    seen = first_screen.seen_chat(printed)
    assert seen.count("percentile") == 4
    assert f"<!-- {first_screen.SEEN_MARKER} -->\n\n{seen}\n" in (ROOT / "docs" / "index.md").read_text("utf-8")


def test_an_explanation_claims_no_more_than_what_was_measured() -> None:
    """Flawless Arabic, a table and emoji have no words out of order, and "I don't know." is about nothing else."""
    said = [
        ("ما هي عاصمة فرنسا؟", "عاصمة فرنسا هي باريس، وهي مدينة جميلة جدا."),
        ("Which plans are there?", "| plan | price |\n|---|---|\n| basic | 5 |\n| pro | 20 |"),
        ("My cat died.", "🎉🎉🎉"),
        ("Have you been up to anything? We went hiking.", "I don't know."),
    ]
    found = load_scorer("general").explain([Example.from_texts([asked], answer) for asked, answer in said])
    assert [text.partition(" (")[0] for text in found] == [
        "out of scope: not English",
        "out of scope: lists or markup",
        "out of scope: mostly signs",
        "has little to do with the context",
    ]


def test_a_model_of_the_box_is_named_like_any_other() -> None:
    examples = mini.read_examples("test")[:2]
    default, named = load_scorer("general"), load_scorer("general", model="general")
    assert default.score(examples) == named.score(examples)


def test_an_exported_model_is_one_that_others_open_and_scores_the_same(tmp_path: Path) -> None:
    export("general", tmp_path / "whole")
    assert SentenceTransformer(str(tmp_path / "whole"), device="cpu").encode(["Hello."]).shape == (1, 384)
    assert not list((tmp_path / "whole").rglob(DELTA_FILE))
    examples = mini.read_examples("test")[:4]
    small, whole = (load_scorer("general", model=str(place), device="cpu") for place in ("general", tmp_path / "whole"))
    assert small.score(examples).values == pytest.approx(whole.score(examples).values, abs=1e-6)
    with refused(f"{tmp_path / 'whole'}: exists already. Choose another folder, or delete this one."):
        export("general-open", tmp_path / "whole")


@pytest.mark.long
def test_a_score_that_is_off_is_said_and_so_is_what_is_no_model(tmp_path: Path) -> None:
    export("general", tmp_path / "model")
    golden = read_json(tmp_path / "model" / GOLDEN_FILE)
    first = next(iter(golden["scores"]))
    golden["scores"][first] += 0.01
    write_text(tmp_path / "model" / GOLDEN_FILE, to_json(golden))
    write_manifest(tmp_path / "model")
    done = run("models", "verify", tmp_path / "model")
    assert done.exit_code == 1
    assert "model: differs by more than 0.0001; hashes match the folder's own manifest, " in done.stdout
    assert "largest difference 1.0e-02" in done.stdout
    (tmp_path / "model" / GOLDEN_FILE).unlink()
    with refused(f"{tmp_path / 'model' / GOLDEN_FILE}: there is no such file. Copy the folder again.", ModelLoadError):
        verify(str(tmp_path / "model"))
    write_manifest(tmp_path / "model")  # as a trainer does, which makes no golden scores
    assert "no golden scores to compare with" in run("models", "verify", tmp_path / "model").stdout
    (tmp_path / "empty").mkdir()
    with refused(f"{tmp_path / 'empty'}: holds no trained model: it has none of {', '.join(KINDS)}. Give the folder of one."):
        settings_file(tmp_path / "empty")


def test_a_score_may_be_off_by_a_ten_thousandth_and_no_more() -> None:
    assert TOLERANCE == 1e-4
    assert Verification(1, 1e-4, "AVX2", "AVX2", "").is_equal
    assert not Verification(1, 1.1e-4, "AVX2", "AVX2", "").is_equal


def test_the_commands(tmp_path: Path) -> None:
    listed = run("models", "list").stdout.splitlines()
    assert [line.split()[0] for line in listed[2 : 2 + len(NAMES)]] == NAMES
    assert listed[-len(KINDS) - 2] == "scorer               where none is named  environment variable"
    for line, kind in zip(listed[-len(KINDS) :], KINDS.values(), strict=True):
        default = kind.default
        shown = default.packaged if default.packaged in NAMES else "none"
        assert line.split()[:3] == [default.scorer, shown, default.variable]
    assert run("models", "show", "general").stdout.startswith("# general")
    done = run("models", "verify", "general")
    assert (done.exit_code, done.stdout[:12]) == (0, "general: ok;")
    assert run("models", "export", "general", tmp_path / "whole").stdout == f"{tmp_path / 'whole'}: 100 MB\n"


@pytest.mark.long
def test_a_model_goes_to_the_hub_and_comes_back(tmp_path: Path) -> None:
    with hub_stand_in() as hub:
        online = {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_secret", "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
        pushed = run_installed(tmp_path, "models", "push", "general", "me/judge", "--private", **online)
        assert (pushed.returncode, pushed.stdout) == (0, "me/judge: general\n"), pushed.stderr
        assert hub.created == [{"name": "judge", "organization": "me", "visibility": "private", "type": "model"}]
        assert "Bearer hf_secret" in hub.tokens
        assert set(hub.files["models/me/judge"]) >= {"README.md", "provenance.json", "general.json", "general_head.safetensors"}
        pulled = run_installed(tmp_path, "models", "pull", "me/judge", "mine", **online)
        assert (pulled.returncode, pulled.stdout) == (0, "mine: me/judge\n"), pulled.stderr
        hub.files["models/me/judge"]["general_head.safetensors"] += b"x"
        damaged = run_installed(tmp_path, "models", "pull", "me/judge", "other", "--revision", "changed", **online)
        assert damaged.returncode == 2
        assert "general_head.safetensors: is damaged" in damaged.stderr
        assert not (tmp_path / "other").exists()
    assert file_hashes(tmp_path / "mine") == file_hashes(PRETRAINED / "general")
    assert (tmp_path / "mine" / "README.md").exists()
    assert run_installed(tmp_path, "models", "verify", "mine").returncode == 0
    refused_name = run_installed(tmp_path, "models", "push", "general", "judge")
    assert refused_name.stderr == "dialeval: 'judge': is not the name of a repository of the Hub. Give OWNER/NAME.\n"


@pytest.mark.real_data
@pytest.mark.parametrize("name", NAMES)
def test_the_training_files_are_those_that_were_used(name: str, data_dir: Path) -> None:
    check_files(name, data_dir)


@pytest.mark.real_data
@pytest.mark.long
def test_a_packed_model_learns_acceptance_and_keeps_where_it_was_trained(
    tiny_general: Path, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The shorter of its two logs, and the percentiles of responses without those of dialogues.
    recipe = replace(RECIPES["general-open"], logs=("convai1",), scales=RECIPES["general-open"].scales[:1])
    monkeypatch.setitem(RECIPES, "general-open", recipe)
    # One file for the percentiles and two for what it knows, instead of ten; the command that it types is forked.
    monkeypatch.setattr(build, "HUMAN", ("esconv/valid.txt",))
    monkeypatch.setattr(build, "write_percentiles", partial(build.write_percentiles, n=400))
    monkeypatch.setattr(build, "CHATS", ("esconv/valid.txt", "empathetic_dialogues/afraid.csv"))
    environ = environment(tmp_path, DIALEVAL_DATA_DIR=str(data_dir))
    fork = SimpleNamespace(run=lambda words, env, check: forked.run(words, cwd=tmp_path, env=environ))
    monkeypatch.setattr(build, "subprocess", fork)
    target = tmp_path / "general-open"
    shutil.copytree(tiny_general, target)
    record = {"options": {"seed": 13, "precision": "float32"}, "leak_rule": 1}
    write_text(target / "general.json", to_json({**read_json(target / "general.json"), "training": record}))
    trained = {"commit": "0" * 40, "machine": {"instruction_set": "none", "torch": "0", "threads": 1}}
    write_text(target / PROVENANCE_FILE, to_json(trained))
    write_manifest(target)
    before = open_scorer(str(target))
    hashes = pack_again("general-open", target)
    assert not {path.name for path in tmp_path.iterdir()} - {"general-open"}
    said = read_json(target / PROVENANCE_FILE)
    assert (said["commit"], said["machine"]) == tuple(trained.values())
    assert set(said["data"][-1]["files"]) <= set(RECIPES["general-open"].training_files)
    assert "`python -m reproduction.general.logs FOLDER`" in (target / "README.md").read_text("utf-8")
    assert {ACCEPTANCE_FILE, GOLDEN_FILE, "percentiles.json"} <= set(hashes)
    assert verify(str(target)).is_equal
    after = open_scorer(str(target))
    assert (ACCEPTANCE in after.columns, ACCEPTANCE in before.columns) == (True, False)
