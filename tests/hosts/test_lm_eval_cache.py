"""TRIAL S1, FAULTS R60: the host's `--use_cache` never serves one model's answers to another, however the host is started."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from lm_eval.api.model import LM, CachingLM, hash_args
from lm_eval.models.huggingface import HFLM
from sqlitedict import SqliteDict

from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.hosts.lm_eval.run import guard_cache
from dialeval_plugin.hosts.lm_eval.versions import request
from tests.hosts.through_lm_eval import evaluate, samples_of
from tests.tiny.language_models import write_random_language_model

Run = Callable[..., CompletedProcess[str]]
TASK = "dstc10_dialog_mini"


@pytest.fixture(scope="module")
def other_lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model with other weights."""
    return write_random_language_model(tmp_path_factory.mktemp("other-lm"), chat_template=None, seed=1, n_positions=1024)


def scores(model: Any, model_args: Any = None, *, cache: Path | None = None) -> list[float | None]:
    """Return the scores of the first responses."""
    use_cache = None if cache is None else str(cache)
    found = evaluate(model, TASK, model_args=model_args, limit=6, device="cpu", use_cache=use_cache)
    return [sample["spearman"].score for sample in found["samples"][TASK]]


def n_rows(cache: Path) -> int:
    with SqliteDict(f"{cache}_rank0.db", flag="r") as rows:
        return len(rows)


@pytest.mark.long
def test_a_scorer_is_answered_by_no_cache_and_leaves_nothing_in_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = tmp_path / "cache"
    with caplog.at_level(logging.WARNING):
        first = scores("dialogue-metric", "scorer=response_length", cache=cache)
    said = [message for message in caplog.messages if "use_cache" in message]
    assert said == ["--use_cache has no effect on dialogue-metric: a scorer's answers are cheap to have again."]
    second = scores("dialogue-metric", "scorer=random", cache=cache)
    assert first == scores("dialogue-metric", "scorer=response_length") != second == scores("dialogue-metric", "scorer=random")
    assert scores("dialogue-metric", "scorer=random,seed=3", cache=cache) != second
    assert n_rows(cache) == 0


@pytest.mark.long
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


@pytest.mark.long
def test_the_hosts_own_command_without_our_names_is_guarded_as_well(
    clean_run: Run, tiny_lm: Path, other_lm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, one, two = tmp_path / "cache", *({"pretrained": str(model), "dtype": "float32"} for model in (tiny_lm, other_lm))
    guard_cache()
    with monkeypatch.context() as unguarded:  # the host's keys, as nothing of ours has changed them
        unguarded.setattr(CachingLM, "__getattr__", CachingLM.__getattr__.__wrapped__)
        first = scores("hf", one, cache=cache)
    assert n_rows(cache) == 24
    done = clean_run(
        *("-m", "lm_eval", "run", "--model", "hf", "--model_args", f"pretrained={other_lm},dtype=float32", "--device", "cpu"),
        *("--tasks", TASK, "--include_path", str(tasks_path()), "--limit", "6", "--use_cache", str(cache)),
        *("--output_path", str(tmp_path / "out"), "--log_samples"),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = [sample["spearman"][0] for sample in samples_of(tmp_path / "out", TASK)]
    assert found != pytest.approx(first)
    assert found == pytest.approx(scores("hf", two))


class Constant(LM):  # type: ignore[misc]  # the host is not typed
    def loglikelihood(self, requests: Any) -> list[tuple[float, bool]]:
        return [(-1.0, False) for _ in requests]

    loglikelihood_rolling = generate_until = loglikelihood


def test_other_tasks_keep_the_hosts_key(tmp_path: Path) -> None:
    guard_cache()
    guard_cache()
    cache = CachingLM(Constant(), str(tmp_path / "cache.db"))
    requests = [request("loglikelihood", {"query": "?"}, ("context", word), task="boolq", place=0) for word in ("a", "b")]
    assert cache.loglikelihood(requests) == [(-1.0, False)] * 2
    assert cache.dbdict[hash_args("loglikelihood", ("context", "b"))] == (-1.0, False)
    assert len(cache.dbdict) == 2
