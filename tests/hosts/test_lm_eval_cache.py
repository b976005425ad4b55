"""TRIAL S1, FAULTS R60: the host's `--use_cache` never serves one model's answers to another, however the host is started."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM, CachingLM, hash_args
from lm_eval.models.huggingface import HFLM

from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.hosts.lm_eval.cache import guard_cache
from tests.hosts.through_lm_eval import evaluate

Run = Callable[..., CompletedProcess[str]]
TASK = "dstc10_dialog_mini"


@pytest.fixture(scope="module")
def other_lm(tiny_lm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model with other weights."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tmp_path_factory.mktemp("other-lm")
    AutoTokenizer.from_pretrained(tiny_lm).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(tiny_lm)
    torch.manual_seed(1)
    model.apply(model._init_weights)
    model.transformer.wte.weight.data.normal_()
    model.save_pretrained(folder)
    return folder


def scores(model: Any, model_args: Any = None, *, cache: Path | None = None) -> list[float | None]:
    """Of the first responses."""
    use_cache = None if cache is None else str(cache)
    found = evaluate(model, TASK, model_args=model_args, limit=6, device="cpu", use_cache=use_cache)
    return [sample["spearman"].score for sample in found["samples"][TASK]]


def n_rows(cache: Path) -> int:
    from sqlitedict import SqliteDict

    with SqliteDict(f"{cache}_rank0.db", flag="r") as rows:
        return len(rows)


def test_a_scorer_is_answered_by_no_cache_and_leaves_nothing_in_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = tmp_path / "cache"
    with caplog.at_level(logging.WARNING):
        first = scores("dialogue-metric", "scorer=response_length", cache=cache)
    said = [record.getMessage() for record in caplog.records if "use_cache" in record.getMessage()]
    assert said == ["--use_cache has no effect on dialogue-metric: a scorer's answers are cheap to have again."]
    second = scores("dialogue-metric", "scorer=random", cache=cache)
    assert first == scores("dialogue-metric", "scorer=response_length") != second == scores("dialogue-metric", "scorer=random")
    assert scores("dialogue-metric", "scorer=random,seed=3", cache=cache) != second
    assert n_rows(cache) == 0


def test_a_language_model_is_answered_by_its_own_rows_alone(
    tiny_lm: Path, other_lm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    asked: list[int] = []
    loglikelihood = HFLM.loglikelihood

    def counted(self: Any, requests: Any, disable_tqdm: bool = False) -> Any:
        asked.append(len(requests))
        return loglikelihood(self, requests, disable_tqdm)

    monkeypatch.setattr(HFLM, "loglikelihood", counted)
    one = {"pretrained": str(tiny_lm), "dtype": "float32"}
    first = scores("hf", one, cache=cache)
    assert asked == [24]
    assert scores("hf", f"pretrained={tiny_lm},dtype=float32", cache=cache) == first
    assert asked == [24]
    # The model writes its answers beside the cache while it gives them: these rows are its own as well.
    assert n_rows(cache) == 24
    assert scores("hf", {"pretrained": str(other_lm), "dtype": "float32"}, cache=cache) != first
    assert asked == [24, 24]
    scores("hf", {**one, "truncation": True}, cache=cache)
    scores("hf", {**one, "dtype": "bfloat16"}, cache=cache)
    assert asked == [24] * 4
    monkeypatch.setattr("dialeval_plugin.hosts.lm_eval.backend.version", lambda package: "9")
    scores("hf", one, cache=cache)
    assert asked == [24] * 5
    # What is handed over as an object has no name: it is asked, and nothing is kept.
    before = n_rows(cache)
    assert scores(HFLM(pretrained=str(other_lm), device="cpu", dtype="float32"), cache=cache) != first
    assert len(asked) == 6
    assert n_rows(cache) == before
    assert scores("dialogue-metric", "scorer=random", cache=cache) == scores("dialogue-metric", "scorer=random")


def test_the_hosts_own_command_without_our_names_is_guarded_as_well(
    clean_run: Run, result_of: Callable[[Path], Any], tiny_lm: Path, other_lm: Path, tmp_path: Path
) -> None:
    found = []
    for name, model in (("one", tiny_lm), ("two", other_lm)):
        done = clean_run(
            *("-m", "lm_eval", "run", "--model", "hf", "--model_args", f"pretrained={model},dtype=float32", "--device", "cpu"),
            *("--tasks", TASK, "--include_path", str(tasks_path()), "--limit", "6", "--use_cache", str(tmp_path / "cache")),
            *("--output_path", str(tmp_path / name), "--log_samples"),
        )
        assert done.returncode == 0, done.stderr[-3000:]
        (path,) = (tmp_path / name).glob("*/samples_*.jsonl")
        found.append([json.loads(line)["spearman"][0] for line in path.read_text().splitlines()])
    assert found[0] != found[1]
    assert found[1] == pytest.approx(scores("hf", {"pretrained": str(other_lm), "dtype": "float32"}))


class Constant(LM):  # type: ignore[misc]  # the host is not typed
    def loglikelihood(self, requests: Any) -> list[tuple[float, bool]]:
        return [(-1.0, False) for _ in requests]

    loglikelihood_rolling = generate_until = loglikelihood


def test_other_tasks_keep_the_hosts_key(tmp_path: Path) -> None:
    guard_cache()
    guard_cache()
    cache = CachingLM(Constant(), str(tmp_path / "cache.db"))
    requests = [
        Instance("loglikelihood", {"query": "?"}, ("context", word), 0, metadata=("boolq", 0, 1)) for word in ("a", "b")
    ]
    assert cache.loglikelihood(requests) == [(-1.0, False)] * 2
    assert cache.dbdict[hash_args("loglikelihood", ("context", "b"))] == (-1.0, False)
    assert len(cache.dbdict) == 2
