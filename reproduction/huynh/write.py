"""A tiny language model on the tasks of Huynh et al. 2023, beside Tables 1 to 4 and 6 of the paper.

The model is a two-layer GPT-2 that has read the first 2,000 training dialogues of DailyDialog once. It shows that the whole
chain runs on the real data, not what a language model can do. DIALEVAL_DATA_DIR names the folder with `dailydialog`, `fed` and
`dstc10`.

    python -m reproduction.huynh.write --output FOLDER

Results are kept in the folder, one file a task: a second call runs only what is missing and prints the tables.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lm_eval
import torch
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed

from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.corpora.corpus import DATA_DIR_VARIABLE
from reproduction.huynh.tables import DSTC10_KINDS, KINDS, dstc10_task, fed_task, huynh_tables

END = "<|endoftext|>"
ANSWERS = (" Yes", " No", " yes", " no", *(f" {rating}" for rating in range(5)))
BLOCK = 1024
N_DIALOGUES = 2000
QUALITIES: dict[Level, tuple[str, ...]] = {"turn": ("interesting", "overall"), "dialogue": ("coherent", "overall")}
SETS = ("tu", "pu", "ft", "fd")
TRAINING_FILE = Path("dailydialog", "train", "dialogues_train.txt")


def dialogues(path: Path) -> list[str]:
    """The first dialogues of a DailyDialog file, each turn on a line of its own under a letter."""
    lines = path.read_text(encoding="utf-8").splitlines()[:N_DIALOGUES]
    turns = ([turn.strip() for turn in line.split("__eou__") if turn.strip()] for line in lines)
    return ["\n".join(f"{'AB'[place % 2]}: {turn}" for place, turn in enumerate(found)) for found in turns]


def train(path: Path, folder: Path, *, seed: int = 13) -> None:
    """One pass over the dialogues in blocks of the model's whole window."""
    set_seed(seed)
    texts = dialogues(path)
    tokenizer = train_tokenizer(texts)
    tokens = [token for ids in tokenizer(texts)["input_ids"] for token in (*ids, tokenizer.eos_token_id)]
    n_blocks = len(tokens) // BLOCK
    blocks = torch.tensor(tokens[: n_blocks * BLOCK]).reshape(n_blocks, BLOCK)
    end = tokenizer.eos_token_id
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=BLOCK, n_embd=64, n_layer=2, n_head=4, bos_token_id=end, eos_token_id=end
    )
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    n_steps = n_blocks // 2
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=n_steps, pct_start=0.1)
    started, losses = time.monotonic(), []
    for batch in batches(blocks, seed):
        loss = model(input_ids=batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    last = sum(losses[-50:]) / len(losses[-50:])
    seconds = time.monotonic() - started
    print(
        f"{model.num_parameters():,} parameters, {n_steps} steps, {seconds:.0f} s, perplexity at the end {math.exp(last):.1f}"
    )
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def train_tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=[END], initial_alphabet=alphabet, show_progress=False)
    # The answers often enough to become single tokens, so that one forward pass decides between them.
    tokenizer.train_from_iterator([*texts, *("".join(ANSWERS) for _ in range(500))], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, bos_token=END, pad_token=END)


def batches(blocks: torch.Tensor, seed: int) -> Iterator[torch.Tensor]:
    order = torch.randperm(len(blocks), generator=torch.Generator().manual_seed(seed))
    for start in range(0, len(blocks) - 1, 2):
        yield blocks[order[start : start + 2]]


def run(judge: Any, task: str, folder: Path) -> dict[str, Any]:
    """The results of one task, from the folder where they are there."""
    path = folder / f"{task}.json"
    if not path.exists():
        manager = TaskManager(include_path=str(tasks_path()), include_defaults=False)
        found = lm_eval.simple_evaluate(judge, tasks=[task], task_manager=manager, bootstrap_iters=0, log_samples=False)
        path.write_text(json.dumps(found["results"][task], allow_nan=False), encoding="utf-8")
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="folder for the model and the results")
    parser.add_argument("--batch_size", type=int, default=8)
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    model = options.output / "language_model"
    if not model.exists():
        train(Path(os.environ[DATA_DIR_VARIABLE]) / TRAINING_FILE, model)
    folder = options.output / "results"
    folder.mkdir(exist_ok=True)
    judge = HFLM(pretrained=str(model), device="cpu", dtype="float32", batch_size=options.batch_size)
    tasks = [fed_task(kind, level, name) for level, names in QUALITIES.items() for kind in KINDS[level] for name in names]
    tasks += [dstc10_task(kind, code) for kind in DSTC10_KINDS for code in SETS]
    results = {task: run(judge, task, folder) for task in tasks}
    print(huynh_tables(results, "tiny GPT-2"))


if __name__ == "__main__":
    main()
