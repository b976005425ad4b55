"""Trainings in two processes end with a folder like that of one process; `training.run` says why its weights may differ."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dialeval_plugin.core.files import write_json_lines
from dialeval_plugin.corpora import mini
from dialeval_plugin.training.checkpoints import read_history
from tests import forked
from tests.cli.running import environment
from tests.training_processes import ROOT, files_of

SETS = mini.read_response_sets("train")[:12]
SLM = ["slm", "--data", "sets.jsonl", "--epochs", 2, "--validation-fraction", 0.3]
INDEPENDENCE = ["independence", "--data", "causes.json", "--unlabelled", "talk.jsonl", "--epochs", 2, "--rounds", 1]
LANGUAGE_MODEL = ["language-model", "--data", "talk.jsonl", "--layers", 1, "--width", 16, "--vocabulary", 300, "--block", 64]


def launch(*arguments: object, n_processes: int, is_torchrun: bool = False) -> list[subprocess.CompletedProcess[str]]:
    """Run `dialeval` in processes that train together, as `accelerate launch` starts them on GPUs; return how each ended.

    On processors accelerate leaves the start to MPI; torchrun, which it uses itself for GPUs, sets the same environment.
    """
    command = [Path(sys.executable).with_name("dialeval"), *arguments]
    env = environment(Path.home(), OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    start = partial(forked.run, cwd=ROOT, timeout=540)
    if n_processes == 1:
        return [start(command, env=env)]
    if is_torchrun:
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n_processes}", "--no-python"]
        with forked.stand_in(command[0], env) as programs:
            return [start([sys.executable, *launcher, programs / "dialeval", *arguments], env=env)]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(n_processes)}
    own = [{**env, **group, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(n_processes)]
    with ThreadPoolExecutor(n_processes) as pool:
        return list(pool.map(lambda variables: start(command, env=variables), own))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    sets, causes, talk = [], [], []
    for item in SETS:
        responses = {"positive_responses": list(item.positive), "adversarial_negative_responses": list(item.adversarial)}
        sets.append({"id": item.id, "context": list(item.context), **responses, "random_negative_responses": []})
        causes.append({"history": list(item.context), "response": item.positive[0], "entities": [item.context[-1]]})
        talk.append({"turns": [*item.context, item.positive[0]]})
    write_json_lines(folder / "sets.jsonl", sets)
    (folder / "causes.json").write_text(json.dumps(causes))
    write_json_lines(folder / "talk.jsonl", talk)
    return folder


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [
        [*LANGUAGE_MODEL, "--batch-size", 4, "--objective", "odin"],
        [*SLM, "--recipe", "default"],
        pytest.param([*SLM, "--recipe", "code"], marks=pytest.mark.exhaustive),
        [*INDEPENDENCE, "--validation-fraction", 0.3, "--max-tokens", 128],
    ],
    ids=["odin", "default", "code", "independence"],
)
def test_two_processes_end_with_the_folder_of_one(
    arguments: list[object], data: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [data / part if str(part).endswith((".json", ".jsonl")) else part for part in arguments]
    if arguments[0] != "language-model":
        given += ["--backbone", tiny_encoder]
    for n_processes in (1, 2):
        output = tmp_path / str(n_processes)
        words = ("train", *given, "--precision", "float32", "--output", output)
        ended = launch(*words, n_processes=n_processes, is_torchrun="odin" in arguments)
        assert {done.returncode for done in ended} == {0}, [done.stderr for done in ended]
        assert "".join(done.stdout for done in ended).count(f"{output}: trained on") == 1
    one, two = tmp_path / "1", tmp_path / "2"
    assert files_of(one).keys() == files_of(two).keys()
    for alone, together in zip(read_history(one), read_history(two), strict=True):
        assert (alone.stage, alone.epoch, alone.figures.keys()) == (together.stage, together.epoch, together.figures.keys())
        # A batch is that of both processes; sentence-transformers leaves out an epoch's last one where it is not full.
        assert 0 <= alone.step - together.step <= (alone.epoch or 0)
    for path in one.rglob("*.safetensors"):
        weights, others = load_file(path), load_file(two / path.relative_to(one))
        assert all(torch.allclose(weights[name], others[name], atol=0.05) for name in weights)


@pytest.mark.long
@pytest.mark.parametrize("command", ["general", "reconstruction"])
def test_where_one_process_takes_the_steps_two_end_with_the_files_of_one(
    command: str, tiny_encoder: Path, tmp_path: Path
) -> None:
    path, sets = tmp_path / "talk.jsonl", mini.read_response_sets("train")[:40]
    write_json_lines(path, ({"turns": [*item.context, item.positive[0]]} for item in sets))
    words = ["--corpus", path, "--backbone", tiny_encoder] if command == "general" else ["--data", path, "--epochs", 2]
    found = []
    for n_processes in (1, 2):
        output = tmp_path / "model"
        ended = launch("train", command, *words, "--validation-fraction", 0.4, "--output", output, n_processes=n_processes)
        stderr = "".join(done.stderr for done in ended)
        assert {done.returncode for done in ended} == {0}, stderr
        assert ("2 processes: this training takes its steps in the first one alone" in stderr) == (n_processes == 2)
        found.append(files_of(output))
        shutil.rmtree(output)
    assert found[0] == found[1]
