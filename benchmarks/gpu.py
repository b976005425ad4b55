"""The general evaluator on a GPU: what of its speed scoring keeps, in each precision, and what processes gain that share it.

Columns of the first table, a row a precision that the device has, all on the responses of `slm.py`, no text twice:

    forward        tokens/s of the bare forward pass over the distinct texts, tokenised and on the device beforehand, in
                   length-sorted batches as large as those of `embed`
    embed          tokens/s of `TorchRuntime.embed` of the same texts: sorting, padding and both transfers included
    responses/s    of `Scorer.score` on the responses
    embed share    median over rounds of the ratio of `embed` to the forward pass
    score share    the same of `Scorer.score`, counted in tokens of the distinct texts
    rank           Spearman's rank correlation of scores with those in 32 bits
    alone          largest change of one of 200 scores between a response scored alone and in its batch
    GPU MB         highest memory of tensors on the GPU while it scores, above the weights

The second table has one row per number of processes that score at once, each as many responses, in bfloat16 on a GPU:

    responses/s    of all together: their responses over the seconds of the slowest
    vs one         the same over that of one process, median over rounds

The last line is one JSON object of the same, with the device, what was left out in the error's words, the distinct texts and
their tokens, and `process_mb`, the highest GPU memory that torch reserved in one of the processes, weights included. Padding is
no token. Times are wall times: a GPU's work is no processor time. torch has one thread; the tokenizer has one in the processes
of the second table, and in the first what it takes by itself.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before what reads it is imported

import argparse
import contextlib
import functools
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np
import torch
from backends import N_ALONE, distinct_texts, largest_change_alone
from measuring import interleaved, options_of, ratio, seconds
from scipy.stats import spearmanr
from slm import responses

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import DialevalError
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.methods.general.model import TrainedGeneral
from dialeval_plugin.models.encoders import Encoder
from dialeval_plugin.models.folders import resolve
from dialeval_plugin.models.runtimes.runtime import Precision
from dialeval_plugin.models.tensors import check_device, padded_tensors, tokens_at_once
from dialeval_plugin.models.texts import length_batches

torch.set_num_threads(1)

N_COMPARED = 2048
PROCESSES = (1, 2, 4, 8, 16)
ALWAYS = 8
"""So many processes are tried however few cores there are."""


def usable_scorers(model: str, device: str) -> tuple[dict[Precision, Scorer], dict[str, str]]:
    """The scorers of all precisions, and, of those that the device refuses, the error's words."""
    scorers: dict[Precision, Scorer] = {}
    refused = {}
    for dtype in get_args(Precision):
        try:
            scorers[dtype] = load_scorer("general", model=model, dtype=dtype, device=device)
        except DialevalError as error:
            print(f"{dtype}: left out. {error}")
            refused[dtype] = str(error)
    return scorers, refused


def batches_on_device(encoder: Encoder, ids: Sequence[Sequence[int]]) -> list[dict[str, torch.Tensor]]:
    """The batches of `embed`, on the device already."""
    found = []
    for batch in length_batches([len(row) for row in ids], tokens_at_once(encoder.device)):
        input_ids, mask = padded_tensors([ids[place] for place in batch], encoder.tokenizer.pad_token_id, encoder.device)
        found.append({"input_ids": input_ids, "attention_mask": mask})
    return found


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def forward_only(encoder: Encoder, batches: Sequence[dict[str, torch.Tensor]], dtype: Precision) -> Callable[[], None]:
    """Return the bare forward pass, over when the device is done with it."""
    device = encoder.device

    def run() -> None:
        synchronise(device)
        with torch.inference_mode(), torch.autocast(device.type, getattr(torch, dtype), enabled=dtype != "float32"):
            for batch in batches:
                encoder(batch)
        synchronise(device)

    return run


def scored(scorer: Scorer, examples: Sequence[Example], device: torch.device) -> tuple[np.ndarray, float | None]:
    """Scores, and the highest memory of tensors on the GPU meanwhile, above what is there before; None without a GPU."""
    if device.type != "cuda":
        return np.array(scorer.score(examples).values, dtype=float), None
    held = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    values = np.array(scorer.score(examples).values, dtype=float)
    return values, (torch.cuda.max_memory_allocated(device) - held) / 1e6


def precisions(
    scorers: dict[Precision, Scorer], model: str, device: torch.device, examples: Sequence[Example], rounds: int
) -> tuple[dict[str, int], dict[str, dict[str, Any]]]:
    """The texts that were read, and one row per precision."""
    trained = TrainedGeneral.load(model, device=str(device)).model
    ids = distinct_texts(trained, examples)
    n_tokens = sum(map(len, ids))
    batches = batches_on_device(trained.encoder, ids)
    work: dict[str, Callable[[], object]] = {}
    for dtype, scorer in scorers.items():
        work[f"{dtype} forward"] = forward_only(trained.encoder, batches, dtype)
        work[f"{dtype} embed"] = functools.partial(trained.runtime(dtype).embed, ids)
        work[f"{dtype} score"] = functools.partial(scorer.score, examples)
    times = interleaved(work, rounds)
    compared = {dtype: scored(scorer, examples[:N_COMPARED], device) for dtype, scorer in scorers.items()}
    table = {}
    for dtype, scorer in scorers.items():
        forward, embed, score = (times[f"{dtype} {part}"] for part in ("forward", "embed", "score"))
        values, megabytes = compared[dtype]
        table[str(dtype)] = {
            "forward_tokens_per_s": round(n_tokens / statistics.median(forward)),
            "embed_tokens_per_s": round(n_tokens / statistics.median(embed)),
            "responses_per_s": round(len(examples) / statistics.median(score), 1),
            "embed_vs_forward": round(ratio(forward, embed), 3),
            "score_vs_forward": round(ratio(forward, score), 3),
            "rank": float(spearmanr(values, compared["float32"][0]).statistic),
            "alone": largest_change_alone(scorer, examples[:N_ALONE]),
            "gpu_mb": None if megabytes is None else round(megabytes, 1),
        }
    return {"responses": len(examples), "texts": len(ids), "tokens": n_tokens}, table


def answer(arguments: argparse.Namespace) -> None:
    """Be one of the processes: load, warm up, say so, and score whenever a line comes; print seconds and megabytes."""
    device = torch.device(arguments.device)
    scorer = load_scorer("general", model=arguments.model, dtype=arguments.dtype, device=arguments.device)
    examples = responses(arguments.process)
    scorer.score(examples)
    print("ready", flush=True)
    for _ in sys.stdin:
        taken = seconds(lambda: scorer.score(examples))
        print(json.dumps([taken, torch.cuda.max_memory_reserved(device) / 1e6 if device.type == "cuda" else None]), flush=True)


def started(model: str, device: torch.device, dtype: Precision, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--process", str(number), "--model", model, "--device", str(device), "--dtype", dtype]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def read_line(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline()  # type: ignore[union-attr]
    if not line:
        raise SystemExit(process.wait() or 1)
    return line


def at_once(processes: Sequence[subprocess.Popen[str]]) -> tuple[float, float | None]:
    """Have processes score; the longest time, and the highest memory on the GPU."""
    for process in processes:
        process.stdin.write("\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
    times, megabytes = zip(*(json.loads(read_line(process)) for process in processes), strict=True)
    return max(times), None if None in megabytes else max(megabytes)


def shared(
    model: str, device: torch.device, dtype: Precision, counts: Sequence[int], number: int, rounds: int
) -> tuple[dict[str, dict[str, float]], float | None]:
    """A row a number of processes, ascending, that score `number` responses each, and the highest GPU memory of one."""
    taken: dict[int, list[float]] = {count: [] for count in counts}
    megabytes = None
    with contextlib.ExitStack() as stack:
        # Started once, not for each row: it takes longer than scoring. One that waits for its line leaves the GPU alone, and
        # ends with the block, when no line can come any more.
        processes = [stack.enter_context(started(model, device, dtype, number)) for _ in range(max(counts))]
        for process in processes:
            read_line(process)
        for _ in range(rounds):
            for count in counts:
                longest, megabytes = at_once(processes[:count])
                taken[count].append(longest)
    # Seconds of one response, so that `ratio` is that of the rates.
    times = {count: [value / (count * number) for value in values] for count, values in taken.items()}
    table = {
        str(count): {
            "responses_per_s": round(1 / statistics.median(values), 1),
            "vs_one": round(ratio(times[1], values), 2),
        }
        for count, values in times.items()
    }
    return table, megabytes


def print_tables(table: dict[str, dict[str, Any]], processes: dict[str, dict[str, float]]) -> None:
    heads = {"forward": 12, "embed": 12, "responses/s": 13, "embed share": 13, "score share": 13, "rank": 10, "alone": 10}
    print(" " * 12 + "".join(f"{head:>{width}}" for head, width in {**heads, "GPU MB": 9}.items()))
    for name, row in table.items():
        print(
            f"{name:12}{row['forward_tokens_per_s']:>12}{row['embed_tokens_per_s']:>12}{row['responses_per_s']:>13}"
            f"{row['embed_vs_forward']:>13}{row['score_vs_forward']:>13}{row['rank']:>10.6f}{row['alone']:>10.1e}"
            f"{'-' if row['gpu_mb'] is None else row['gpu_mb']:>9}"
        )
    print(f"{'processes':12}{'responses/s':>12}{'vs one':>9}")
    for count, figures in processes.items():
        print(f"{count:12}{figures['responses_per_s']:>12}{figures['vs_one']:>9}")


def main() -> None:
    parser = options_of(__doc__, "fewer responses and rounds, and no more than two processes")
    parser.add_argument("--device", default="cuda", help="of torch")
    parser.add_argument(
        "--model", default="general", help="folder of a trained general evaluator, or the name of a bundled one"
    )
    parser.add_argument("--responses", type=int, help="of the first table; 8,192, or 2,000 with --quick")
    parser.add_argument("--process", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--dtype", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.process:
        answer(arguments)
        return
    check_device(arguments.device)
    device, model = torch.device(arguments.device), str(resolve(arguments.model))
    cores = os.cpu_count() or 1
    usual, rounds, number = (2000, 1, 512) if arguments.quick else (8192, 3, 2048)
    examples = responses(arguments.responses or usual)
    counts = PROCESSES[:2] if arguments.quick else [count for count in PROCESSES if count <= max(ALWAYS, cores)]
    scorers, refused = usable_scorers(model, arguments.device)
    read, table = precisions(scorers, model, device, examples, rounds)
    dtype: Precision = "bfloat16" if device.type == "cuda" and "bfloat16" in scorers else "float32"
    processes, megabytes = shared(model, device, dtype, counts, number, rounds)
    print_tables(table, processes)
    result = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else str(device),
        "torch": torch.__version__,
        "cores": cores,
        **read,
        "dtypes": table,
        "left_out": refused,
        "processes": processes,
        "processes_dtype": dtype,
        "responses_of_a_process": number,
        "process_mb": None if megabytes is None else round(megabytes, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
