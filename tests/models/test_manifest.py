"""Model folders are whole or no models: every file is known by its hash, and killed commands leave nothing that opens."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin import load_scorer
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.core.signature import MANIFEST_FILE, content_hash, file_hash
from dialeval_plugin.models.folders import (
    PRETRAINED,
    RECORDED,
    check_files,
    check_weights,
    listed,
    model_identity,
    of_model,
    pretrained_names,
    recorded,
    write_manifest,
)
from dialeval_plugin.pretrained.catalogue import export, golden_items, pull, settings_file, verify, write_golden
from dialeval_plugin.training.people import write_percentiles
from tests.cli.running import names, run, run_installed
from tests.hub_stand_in import hub_stand_in
from tests.models.test_model_folders import Kind, kind, tiny_reconstruction  # noqa: F401 - fixtures
from tests.refusals import refused

EXAMPLE = Example.from_texts(["My flight was cancelled and I am stuck at the airport."], "I see.", id="1")
GONE = "{}: there is no such file. Copy the folder again."
CHANGED = "{}: is damaged or was changed. Copy the folder again."


def score(folder: Path, **options: Any) -> float | None:
    return load_scorer("general", model=str(folder), **options).score([EXAMPLE]).values[0]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the bundled model."""
    return shutil.copytree(PRETRAINED / "general", tmp_path / "copied")


def change(path: Path, edit: Callable[[Any], object]) -> None:
    value = read_json(path)
    edit(value)
    write_text(path, to_json(value))


def test_the_manifests_of_the_models_in_the_box_are_recorded() -> None:
    assert sorted(RECORDED) == pretrained_names()
    for name, expected in RECORDED.items():
        folder = PRETRAINED / name
        assert file_hash(folder / MANIFEST_FILE) == expected, f"{name}: write its manifest anew, and its hash into RECORDED"
        in_it = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert in_it == {*of_model(folder)}
        assert recorded(folder / settings_file(folder)) == expected
        check_files(folder / settings_file(folder))


def test_half_a_copy_of_a_model_in_the_box_is_no_model(copied: Path, tmp_path: Path) -> None:
    """C03: a pull that was killed left folders that scored without percentiles, or without acceptance."""
    whole = score(copied)
    for name in of_model(copied):
        half = shutil.copytree(copied, tmp_path / "half")
        (half / name).unlink()
        if name == "README.md":
            assert score(half) == whole
        elif name == "general.json":
            with refused(
                f"{half}: has no general.json, so it is not a trained general evaluator (or its training did not end). "
                "Train one with `dialeval train general`.",
                ModelLoadError,
            ):
                score(half)
        else:
            with refused(GONE.format(half / name), ModelLoadError):
                score(half)
        shutil.rmtree(half)


def test_every_file_of_every_kind_of_model_is_known_by_its_hash(kind: Kind) -> None:  # noqa: F811
    files = listed(kind.folder)
    assert files is not None
    assert set(files) == {path.relative_to(kind.folder).as_posix() for path in kind.folder.rglob("*") if path.is_file()} - {
        MANIFEST_FILE
    }
    for name in files:
        path, content = kind.folder / name, (kind.folder / name).read_bytes()
        path.write_bytes(content.replace(b"{", b"{ ", 1) if path.suffix == ".json" else content[:-1] + b"?")
        if path.read_bytes() != content:
            with refused(CHANGED.format(path), ModelLoadError):
                kind.open(str(kind.folder))
        path.write_bytes(content)
    (kind.folder / MANIFEST_FILE).unlink()
    with refused(GONE.format(kind.folder / MANIFEST_FILE), ModelLoadError):
        kind.open(str(kind.folder))


def test_what_is_said_of_a_model_later_is_in_its_manifest_and_moves_no_identity(tiny_general: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_general, tmp_path / "model")
    before = content_hash(folder)
    assert verify(str(folder)).n_scores == 0  # as the trainer leaves it
    write_golden(folder)
    dialogues = [item for item in golden_items("dialogue") if not isinstance(item, Example)]
    write_percentiles(load_scorer("general", model=str(folder)), folder, dialogues, {})
    found = listed(folder) or {}
    assert {name: found[name] for name in ("golden.json", "percentiles.json")} == {
        name: file_hash(folder / name) for name in ("golden.json", "percentiles.json")
    }
    assert content_hash(folder) == before
    assert verify(str(folder)).is_equal
    (folder / "percentiles.json").unlink()
    with refused(GONE.format(folder / "percentiles.json"), ModelLoadError):
        score(folder)


CHANGES: dict[str, tuple[str, Callable[[Any], object]]] = {
    "percentiles halved": ("percentiles.json", lambda said: said["tables"][0].update(quantiles=[0.5])),
    "acceptance doubled": ("acceptance.json", lambda said: said.update(weights=[2 * one for one in said["weights"]])),
    "mixing moved": ("general.json", lambda said: said["mixing"]["plain"].update(offset=3.0)),
    "no training dialogues": ("training_dialogues.json", lambda said: said.clear()),
    "no golden scores": ("golden.json", lambda said: said.update(scores={})),
    "another licence": ("provenance.json", lambda said: said.update(licence="MIT")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_verify_sees_each_change_even_one_that_the_manifest_hides(name: str, copied: Path) -> None:
    """C04: `models verify` compared the folder with what stands in the folder alone."""
    file, edit = CHANGES[name]
    change(copied / file, edit)
    for opens in (verify, score):
        with refused(CHANGED.format(copied / file), ModelLoadError):
            opens(str(copied))  # type: ignore[arg-type]
    write_manifest(copied)
    if file == "general.json":
        # It is another model then, and says so: nothing is left of the name.
        assert model_identity(copied) != model_identity(PRETRAINED / "general").partition("@")[2]
    else:
        with refused(
            f"{copied / MANIFEST_FILE}: names other files than this release has recorded of the model. Copy the folder again.",
            ModelLoadError,
        ):
            verify(str(copied))


def test_verify_says_what_it_compares_with_and_refuses_golden_scores_of_others(copied: Path, tiny_general: Path) -> None:
    assert verify(str(copied)).record == verify("general").record == "this release's record"
    assert "general: ok; hashes match this release's record, 180 golden scores" in run("models", "verify", "general").stdout
    own = shutil.copytree(tiny_general, copied.with_name("own"))
    write_golden(own)
    assert verify(str(own)).record == "the folder's own manifest"
    for edit in (
        lambda said: said.update(scores={}),
        lambda said: said["scores"].update(nobody=0.5),
        lambda said: said.update(scores=dict(list(said["scores"].items())[:1])),
    ):
        change(own / "golden.json", edit)
        write_manifest(own)
        with refused(
            f"{own / 'golden.json'}: has scores of other items than are verified. Copy the folder again.", ModelLoadError
        ):
            verify(str(own))
        write_golden(own)


KILLER = """
import os, signal, sys
event, number, folder = os.environ["KILL_AT"].split(",")
count = 0
def kill(name, args):
    global count
    if name == event and folder in str(args):
        count += 1
        if count == int(number):
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(kill)
"""
"""Kills the process where it is about to do something for the so manieth time."""
AFTER_RENAME = "shutil.rmtree,{},.out."
"""The next thing that is done with the folder of the other name: it is looked for, to be removed."""


def killed(folder: Path, moment: str, *words: object, **variables: str) -> None:
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "sitecustomize.py").write_text(KILLER)
    done = run_installed(folder, *words, KILL_AT=moment, PYTHONPATH=str(folder / "site"), **variables)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("moment", ["shutil.copyfile,1,out", "shutil.copyfile,9,out", "os.rename,1,.part"])
def test_a_pull_that_was_killed_leaves_no_model_and_the_same_command_ends_as_ever(moment: str, tmp_path: Path) -> None:
    words, home = ("models", "pull", "me/general", "out"), hub_cache(tmp_path)
    killed(tmp_path, moment, *words, **home)
    assert not (tmp_path / "out").exists()
    done = run_installed(tmp_path, *words, **home)
    assert (done.returncode, done.stdout) == (0, "out: me/general\n"), done.stderr
    assert [name for name in names(tmp_path) if "out" in name] == ["out"]
    assert same_files(tmp_path / "out", PRETRAINED / "general")


def hub_cache(folder: Path) -> dict[str, str]:
    """Lay a model of the Hub into a cache; the variables that name it."""
    commit = "a" * 40
    place = folder / "hub" / "models--me--general"
    shutil.copytree(PRETRAINED / "general", place / "snapshots" / commit)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit)
    return {"HF_HUB_CACHE": str(folder / "hub")}


def test_a_pull_that_was_killed_just_after_its_end_is_finished_by_the_same_command(tmp_path: Path) -> None:
    words, home = ("models", "pull", "me/general", "out"), hub_cache(tmp_path)
    killed(tmp_path, AFTER_RENAME.format(1), *words, **home)
    assert same_files(tmp_path / "out", PRETRAINED / "general")
    before = modification_times(tmp_path / "out")
    done = run_installed(tmp_path, *words, **home)
    assert (done.returncode, done.stdout) == (0, "out: me/general, which exists and is complete\n"), done.stderr
    assert [name for name in names(tmp_path) if "out" in name] == ["out"]
    assert same_files(tmp_path / "out", PRETRAINED / "general")
    assert modification_times(tmp_path / "out") == before


def test_a_pull_without_room_names_what_cannot_be_written_and_leaves_nothing(tmp_path: Path) -> None:
    """B12: it named the file that was read."""
    words, home = ("models", "pull", "me/general", "out"), hub_cache(tmp_path)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (2_000_000,) * 2)")
    done = run_installed(tmp_path, *words, PYTHONPATH=str(tmp_path / "site"), **home)
    assert done.returncode == 2
    message = r"dialeval: \.out\.[0-9a-f]{16}\.part/delta\.safetensors: File too large\. Make room, and repeat the command\.\n"
    assert re.fullmatch(message, done.stderr), done.stderr
    assert names(tmp_path) == ["hub", "site"]
    assert run_installed(tmp_path, *words, **home).returncode == 0


CHANGED_OUTPUTS: dict[str, Callable[[Path], object]] = {
    "one file more": lambda folder: (folder / "more.json").write_text("{}"),
    "a hidden file more": lambda folder: (folder / ".env").write_text("KEY=1"),
    "no card": lambda folder: (folder / "README.md").unlink(),
    "another card": lambda folder: (folder / "README.md").write_text("# Mine\n"),
    "one file less": lambda folder: (folder / "percentiles.json").unlink(),
    "another file": lambda folder: (folder / "percentiles.json").write_text("{}"),
    "another file, and a manifest that says so": lambda folder: (
        (folder / "percentiles.json").write_text("{}"),
        write_manifest(folder),
    ),
    "no manifest": lambda folder: (folder / MANIFEST_FILE).unlink(),
    "another model": lambda folder: (shutil.rmtree(folder), shutil.copytree(PRETRAINED / "slide", folder)),
    "an empty folder": lambda folder: (shutil.rmtree(folder), folder.mkdir()),
    "a file": lambda folder: (shutil.rmtree(folder), folder.write_text("")),
}


@pytest.mark.parametrize("change", CHANGED_OUTPUTS.values(), ids=CHANGED_OUTPUTS)
def test_a_pull_is_not_finished_where_anything_else_stands(
    change: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    for name, value in hub_cache(tmp_path).items():
        monkeypatch.setattr("huggingface_hub.constants." + name, value)
    pull("me/general", out)
    pull("me/general", out)
    change(out)
    before = modification_times(tmp_path)
    with refused(f"{out}: exists already. Choose another folder, or delete this one."):
        pull("me/general", out)
    assert modification_times(tmp_path) == before


def modification_times(folder: Path) -> dict[str, int]:
    return {path.relative_to(folder).as_posix(): path.stat().st_mtime_ns for path in folder.rglob("*")}


def same_files(one: Path, other: Path) -> bool:
    def files(folder: Path) -> dict[str, bytes]:
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    return files(one) == files(other)


@pytest.mark.long
@pytest.mark.parametrize("moment", ["shutil.copyfile,1,out", "os.rename,2,.part"])
def test_an_export_that_was_killed_leaves_no_model_and_the_same_command_ends_as_ever(
    moment: str, tiny_general: Path, tmp_path: Path
) -> None:
    model = shutil.copytree(tiny_general, tmp_path / "model")
    (model / "README.md").write_text("# Card\n")
    # By the same command, with the variables of the one that is killed.
    assert run_installed(tmp_path, "models", "export", "model", "expected").returncode == 0
    words = ("models", "export", "model", "out")
    killed(tmp_path, moment, *words)
    assert not (tmp_path / "out").exists()
    assert run_installed(tmp_path, *words).returncode == 0
    assert [name for name in names(tmp_path) if "out" in name] == ["out"]
    assert same_files(tmp_path / "out", tmp_path / "expected")
    assert (tmp_path / "out" / "README.md").read_text() == "# Card\n"


@pytest.mark.long
@pytest.mark.parametrize(("backends", "removals"), [((), 1), (("--backend", "openvino"), 3)], ids=["torch", "openvino"])
def test_an_export_that_was_killed_just_after_its_end_is_finished_by_the_same_command(
    backends: tuple[str, ...], removals: int, tiny_general: Path, tmp_path: Path
) -> None:
    """Two graphs of one model differ in bytes, so that one that is there is not made again."""
    words = ("models", "export", tiny_general, "out", *backends)
    killed(tmp_path, AFTER_RENAME.format(removals), *words)
    before = modification_times(tmp_path / "out")
    done = run_installed(tmp_path, *words)
    assert (done.returncode, done.stdout) == (0, "out: 0 MB, which exists and is complete\n"), done.stderr
    assert [name for name in names(tmp_path) if "out" in name] == ["out"]
    assert modification_times(tmp_path / "out") == before
    refusal = "dialeval: out: exists already. Choose another folder, or delete this one.\n"
    for others in [(tiny_general, "--backend", "onnx"), ("general", *backends)]:
        assert run_installed(tmp_path, "models", "export", others[0], "out", *others[1:]).stderr == refusal
    if backends:
        with (tmp_path / "out" / "exported" / "openvino" / "encoder.bin").open("r+b") as file:
            file.write(b"?")
        assert run_installed(tmp_path, *words).stderr == refusal


@pytest.mark.long
def test_a_first_export_that_was_killed_leaves_nothing_behind_the_next(tiny_general: Path, tmp_path: Path) -> None:
    model = shutil.copytree(tiny_general, tmp_path / "model")
    (tmp_path / "in.jsonl").write_text('{"context": ["Hi."], "response": "Hello."}\n')
    words = ("score", "in.jsonl", "--worst", "0", "--option", f"model={model}", "--option", "backend=onnx")
    exports = {"DIALEVAL_EXPORTS": str(tmp_path / "exports")}
    killed(tmp_path, "os.rename,1,.onnx.", *words, **exports)
    (of_model,) = (tmp_path / "exports").iterdir()
    assert any(name.startswith(".onnx.") for name in names(of_model))
    assert run_installed(tmp_path, *words, **exports).returncode == 0
    assert names(of_model) == ["onnx"]


def with_secrets(folder: Path) -> None:
    """Lay what is no part of the model beside it."""
    outside = folder.with_name("outside")
    outside.mkdir()
    (outside / "key.pem").write_text("PRIVATE KEY")
    (folder / "notes.txt").symlink_to(outside / "key.pem")
    (folder / "sub").symlink_to(outside)
    (folder / ".env").write_text("API_KEY=1")
    (folder / ".training").mkdir()
    (folder / ".training" / "run.json").write_text("{}")
    (folder / "my_logs.jsonl").write_text("private chats")
    (folder / "chats.json").write_text("[]")


@pytest.mark.long
def test_only_what_the_manifest_names_is_uploaded_exported_and_pulled(copied: Path, tmp_path: Path) -> None:
    """C01: symbolic links, `.env`, `.training` and logs of chats were uploaded."""
    expected = set(of_model(copied))
    with_secrets(copied)
    with hub_stand_in() as hub:
        online = {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_secret", "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
        done = run_installed(tmp_path, "models", "push", "copied", "me/judge", **online)
        assert (done.returncode, done.stdout) == (0, "me/judge: copied\n"), done.stderr
        assert set(hub.files["models/me/judge"]) == expected
        hub.files["models/me/judge"] |= {"evil.json": b"{}", "sub/other.txt": b"x"}
        done = run_installed(tmp_path, "models", "pull", "me/judge", "pulled", **online)
        assert done.returncode == 0, done.stderr
    assert same_files(tmp_path / "pulled", PRETRAINED / "general")
    export(str(copied), tmp_path / "whole")
    assert not {path.name for path in (tmp_path / "whole").rglob("*")} & {"notes.txt", "sub", "my_logs.jsonl", "chats.json"}


@pytest.mark.long
def test_exported_graphs_go_to_the_hub_and_come_back(tiny_general: Path, tmp_path: Path) -> None:
    """C02: they were uploaded and never downloaded, and the record beside them was."""
    export(str(tiny_general), tmp_path / "out", ["onnx", "openvino"])
    with hub_stand_in() as hub:
        online = {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_secret", "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
        assert run_installed(tmp_path, "models", "push", "out", "me/judge", **online).returncode == 0
        assert run_installed(tmp_path, "models", "pull", "me/judge", "pulled", **online).returncode == 0
    assert same_files(tmp_path / "pulled", tmp_path / "out")
    graphs = {path.suffix for path in (tmp_path / "pulled" / "exported").rglob("*")}
    assert {".onnx", ".xml", ".bin"} <= graphs
    for backend in ("onnx", "openvino"):
        assert score(tmp_path / "pulled", backend=backend) == pytest.approx(score(tiny_general), abs=1e-6)


def test_weights_that_the_manifest_does_not_name_are_refused_but_hidden_ones_are_of_no_model(
    tiny_general: Path, tmp_path: Path
) -> None:
    """A host would read those that are not hidden; what a training keeps for itself is."""
    folder, before = shutil.copytree(tiny_general, tmp_path / "model"), score(tiny_general)
    (folder / ".training" / "step-1").mkdir(parents=True)
    for name in (".weights.safetensors", ".training/checkpoint.safetensors", ".training/step-1/model.safetensors"):
        shutil.copyfile(folder / "model.safetensors", folder / name)
    assert score(folder) == before
    more = shutil.copyfile(folder / "model.safetensors", folder / "more.safetensors")
    with refused(CHANGED.format(more), ModelLoadError):
        score(folder)


@pytest.mark.parametrize("name", ["../evil.json", "/evil.json", "sub/../../evil.json", ".env.json", "notes.txt", "evil.py"])
def test_a_manifest_of_a_stranger_names_nothing_but_files_of_a_model(name: str, copied: Path) -> None:
    """Files that it names are copied by pull, and uploaded by push."""
    change(copied / MANIFEST_FILE, lambda said: said["files"].update({name: "0" * 64}))
    with refused(
        f"{copied / MANIFEST_FILE}: names {name!r}, which is no file of a model. Copy the folder again.", ModelLoadError
    ):
        score(copied)


def test_a_card_of_a_stranger_has_no_power_over_the_terminal(copied: Path) -> None:
    (copied / "README.md").write_text("---\nx: y\n---\n\x1b]0;pwned\x07\x1b[2J# hi\n\nText\n")
    assert run("models", "show", copied).stdout == " ]0;pwned [2J# hi\n\nText\n"


def test_a_model_that_was_pushed_over_one_of_another_kind_is_said_to_be(copied: Path) -> None:
    shutil.copytree(PRETRAINED / "slide", copied, dirs_exist_ok=True)
    why = "has models of several kinds, by general.json and slm.json: one was pushed over the other."
    with refused(f"{copied}: {why} Delete one, or push to a new place.", ModelLoadError):
        check_weights(copied)
