"""A tiny language model on the tasks of Huynh et al. 2023, next to Tables 1 to 4 and 6 of the paper.

Figures are Spearman's rho with people's mean ratings; `published.json` holds the paper's, in the order of its tables.

The model is a two-layer GPT-2 that has read the first 2,000 training dialogues of DailyDialog once. It shows that the whole
chain runs on the real data, not what a language model can do. DIALEVAL_DATA_DIR names the folder with `dailydialog`, `fed` and
`dstc10`.

    python -m reproduction.huynh.write --work FOLDER

Results are kept in the folder, one file a task: a second call runs only what is missing.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import lm_eval
import torch
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed

from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.corpora.corpus import DATA_DIR_VARIABLE
from dialeval_plugin.methods.judging.dialogue_rating import rating_prompts
from dialeval_plugin.reports.tables import markdown_table
from dialeval_plugin.statistics.estimates import interval_text
from reproduction.documents import published, script_parser, write_tables
from reproduction.kept_results import kept_json

Results: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Task name to the task's entry in the host's `results`."""

END = "<|endoftext|>"
ANSWERS = (" Yes", " No", " yes", " no", *(f" {rating}" for rating in range(5)))
BLOCK = 1024
N_DIALOGUES = 2000
QUALITIES: dict[Level, tuple[str, ...]] = {"turn": ("interesting", "overall"), "dialogue": ("coherent", "overall")}
SETS = ("tu", "pu", "ft", "fd")
TRAINING_FILE = Path("dailydialog", "train", "dialogues_train.txt")
LEVELS: dict[Level, str] = {"turn": "turn", "dialogue": "dial"}
"""Level to its part of a task's name."""
FED_VARIANTS: dict[Level, dict[str, str]] = {
    "turn": {"": "no example", "manual": "3 hand-picked", "random": "3 random", "bm25_cr": "3 BM25_C+R"},
    "dialogue": {"": "no example", "manual": "3 hand-picked", "random": "3 random", "bm25_c": "3 BM25_C"},
}
"""Variants of the FED tasks that Tables 1 and 2 have, by their part of a task's name."""
DSTC10_VARIANTS = {"": "no example", "bm25_c": "4 BM25_C"}


def fed_task(variant: str, level: Level, quality: str) -> str:
    """Name of the task of one quality."""
    return "_".join(filter(None, ("fed_dialog", variant, LEVELS[level], quality)))


def dstc10_task(variant: str, code: str) -> str:
    """Name of the task of one DSTC10 set."""
    return "_".join(filter(None, ("dstc10_dialog", variant, code)))


def huynh_tables(results: Results, model: str) -> str:
    """The tables in Markdown; a quality or set that `results` has no figure of is left out."""
    paper = published("huynh")
    tables = []
    for level in LEVELS:
        tasks = {name: [fed_task(variant, level, name) for variant in FED_VARIANTS[level]] for name in rating_prompts(level)}
        head = [f"FED, {level} level", *(f"{model}, {how}" for how in FED_VARIANTS[level].values())]
        tables.append(_table(head, tasks, results, paper[level]))
    tasks = {code: [dstc10_task(variant, code) for variant in DSTC10_VARIANTS] for code in paper["dstc10_sets"]}
    head = ["DSTC10, overall", *(f"{model}, {how}" for how in DSTC10_VARIANTS.values())]
    return "\n\n".join([*tables, _table(head, tasks, results, paper["dstc10"])])


def _table(
    head: Sequence[str], tasks: Mapping[str, Sequence[str]], results: Results, paper: Mapping[str, Sequence[float]]
) -> str:
    """The figures of each row's tasks, and those that the paper prints in the same order of rows."""
    rows = []
    for place, (name, of_row) in enumerate(tasks.items()):
        ours = [_cell(results.get(task)) for task in of_row]
        if any(ours):
            rows.append([name, *ours, *(f"{figures[place]:.3f}" for figures in paper.values())])
    return markdown_table([*head, *paper], rows)


def _cell(found: Mapping[str, Any] | None) -> str:
    """A coefficient with its interval, or with its deviation over runs; nothing where there is none."""
    if found is None:
        return ""
    # The host's file holds text where a figure is undefined.
    numbers = {name.removesuffix(",none"): value for name, value in found.items() if isinstance(value, float)}
    value, low, high, deviation = (numbers.get(f"spearman{end}") for end in ("", "_ci_low", "_ci_high", "_deviation"))
    shown = interval_text(value, low, high)
    return shown if value is None or deviation is None else f"{shown} ± {deviation:.3f}"


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


def run(judge: Any, task: str) -> Any:
    manager = TaskManager(include_path=str(tasks_path()), include_defaults=False)
    return lm_eval.simple_evaluate(judge, tasks=[task], task_manager=manager, bootstrap_iters=0, log_samples=False)["results"][
        task
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = script_parser(__doc__, work="the model and the results")
    parser.add_argument("--batch_size", type=int, default=8)
    options = parser.parse_args(arguments)
    os.environ["HF_HUB_OFFLINE"] = "1"
    model = options.work / "language_model"
    if not model.exists():
        train(Path(os.environ[DATA_DIR_VARIABLE]) / TRAINING_FILE, model)
    judge = HFLM(pretrained=str(model), device="cpu", dtype="float32", batch_size=options.batch_size)
    tasks = [
        fed_task(variant, level, name)
        for level, names in QUALITIES.items()
        for variant in FED_VARIANTS[level]
        for name in names
    ]
    tasks += [dstc10_task(variant, code) for variant in DSTC10_VARIANTS for code in SETS]
    results = {task: kept_json(options.work / "results" / f"{task}.json", lambda task=task: run(judge, task)) for task in tasks}  # type: ignore[misc]
    write_tables(options.document, {"huynh": huynh_tables(results, "tiny GPT-2")})


if __name__ == "__main__":
    main()
