"""Tiny data in the published layout, and a tiny language model, for the tests of the lm-eval doors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

END = "<|endoftext|>"
WORDS = ("tea", "rain", "cats", "music", "trains", "bread", "snow", "books")
FILES = {
    "tu": "topical-usr",
    "dz": "dailydialog-zhao",
    "pu": "persona-usr",
    "dgu": "dailydialog-gupta",
    "ft": "fed-turn",
    "eg": "empathetic-grade",
}
QUALITIES = {"tu": "Overall", "pu": "Overall", "dz": "appropriateness", "dgu": "overall", "ft": "Overall", "eg": "relevance"}


def turn_rows(code: str, n_contexts: int = 6) -> list[dict[str, Any]]:
    """Two responses to each context, of which the first fits."""
    tag = ("User: ", "System: ") if code == "ft" else ("", "")
    rows = []
    for index in range(n_contexts):
        word = WORDS[index % len(WORDS)]
        context = f"{tag[0]}Do you like {word}? ({index})\n{tag[1]}I do like {word} ({code} {index})."
        for good in (True, False):
            response = f"Then let us talk about {word}." if good else f"My left shoe is {index} years old."
            row: dict[str, Any] = {
                "dialogue_id": f"{code}-{index}-{int(good)}",
                "model": "good" if good else "bad",
                "context": context,
                "response": f"{tag[1]}{response}",
                "annotations": {QUALITIES[code]: [4, 3] if good else [1, 2]},
            }
            if code in {"tu", "pu"}:
                row["fact"] = "your persona: I like tea."
            rows.append(row)
    return rows


def dialogue_rows(n: int = 6) -> list[dict[str, Any]]:
    return [
        {
            "dialogue_id": f"fd-{index}",
            "model": "bot",
            "dialog": [
                {"speaker": "human", "text": f"Do you like {WORDS[index]}?"},
                {"speaker": "model", "text": f"Number {index}."},
                {"speaker": "human", "text": "Bye."},
            ],
            "annotations": {"Overall": [index % 5, (index + 1) % 5]},
        }
        for index in range(n)
    ]


@pytest.fixture(scope="session")
def tiny_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with seven of the eight sets; DailyDialog-GRADE is absent, as on many machines."""
    root = tmp_path_factory.mktemp("data")
    folder = root / "dstc10"
    folder.mkdir()
    for code, name in FILES.items():
        (folder / f"{name}_eval.json").write_text(json.dumps(turn_rows(code)), encoding="utf-8")
    (folder / "fed-dial_eval.json").write_text(json.dumps(dialogue_rows()), encoding="utf-8")
    return root


@pytest.fixture
def use_tiny_data(tiny_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tiny_data))
    return tiny_data


@pytest.fixture(scope="session")
def tiny_lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 of two small layers with random weights, whose vocabulary has " Yes", " No", " yes" and " no" as tokens."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny-lm")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=[END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([" Yes No yes no Answer: Question: Response: Person A: tea rain"] * 50, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, bos_token=END, pad_token=END)
    assert all(len(fast.encode(form)) == 1 for form in (" Yes", " No", " yes", " no"))
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(fast), n_positions=1024, n_embd=16, n_layer=2, n_head=2, bos_token_id=fast.bos_token_id, eos_token_id=0
    )
    GPT2LMHeadModel(config).save_pretrained(folder, safe_serialization=True)
    return folder


@pytest.fixture
def clean_run(tmp_path: Path, tiny_data: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run Python in an empty folder, with an empty home and no network, and return what it did."""

    def run(*arguments: str, env: Mapping[str, str] | None = None, timeout: float = 240) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / "cwd"
        folder.mkdir(exist_ok=True)
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("HF_", "DIALEVAL_", "XDG_", "LMEVAL_", "PYTHON")) and key != "HOME"
        }
        settings = {"HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "DIALEVAL_DATA_DIR": str(tiny_data)}
        return subprocess.run(
            arguments if arguments[0].endswith("python") else (sys.executable, *arguments),
            cwd=folder,
            env={**kept, **settings, "COLUMNS": "200", **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run


def _strict_json(path: Path) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{path} holds {constant}, which is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


@pytest.fixture(scope="session")
def result_of() -> Callable[[Path], Any]:
    """Read the one result file of a run; NaN and infinity are errors."""

    def read(output: Path) -> Any:
        (path,) = output.glob("*/results_*.json")
        return _strict_json(path)

    return read
