"""Throughput and memory of the likelihood evaluators: `Scorer.score` against one turn at a time and the bare forward pass.

All figures of one run use the same weights and the same dialogues: those of ConvAI2 with about the average number of turns,
where DIALEVAL_DATA_DIR names them, else dialogues of the embedded corpus strung together to the same length. The last line is
one JSON object:

    vs_naive       tokens per second of `score` with the full context over those of a loop that asks for one turn at a time,
                   with all turns before it as the context
    vs_forward     the same over the bare forward pass of the model on the same tokens, tokenised and batched beforehand
    peak_mb        highest resident memory of a process that scores, above what it has after loading the model
    memory_growth  peak_mb with the largest number of dialogues over peak_mb with the smallest

Tokens are those of the dialogues: a token that is read again counts once. The model is a GPT-2 of four layers with random
weights and a vocabulary of 8,000, unless --model names a folder: speed does not depend on the weights. Times are processor
times of this process, so that what else the machine does counts for nobody.
"""

from __future__ import annotations

import functools
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from measuring import interleaved, memory_figures, options_of, peak_mb, resident_mb
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from dialeval_plugin.core.dialogue import Dialogue, Turn, is_blank
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers import convai
from dialeval_plugin.methods.likelihood.evaluators import CausalEvaluator
from dialeval_plugin.methods.likelihood.scorer import DialogueLikelihoodScorer
from dialeval_plugin.models.causal import padded_ids, turn_pieces
from dialeval_plugin.models.texts import length_batches

N_TURNS = 17
"""Turns of a scored ConvAI2 dialogue, on average."""
END = "<|endoftext|>"


def dialogues(number: int) -> list[Dialogue]:
    """Return dialogues of about the average length."""
    try:
        found = [dialogue for dialogue in convai.read_convai2() if not any(is_blank(turn.text) for turn in dialogue.turns)]
    except MissingPrerequisite:
        return made_dialogues(number)
    return sorted(found, key=lambda dialogue: (abs(len(dialogue.turns) - N_TURNS), dialogue.id))[:number]


def made_dialogues(number: int) -> list[Dialogue]:
    """String turns of the embedded corpus together, numbered so that no two dialogues begin alike."""
    turns = [text for item in mini.read_response_sets("train") for text in (*item.context, item.positive[0])]
    return [
        Dialogue(str(index), tuple(Turn(f"{turns[(index + place) % len(turns)]} {index}") for place in range(N_TURNS)))
        for index in range(number)
    ]


def write_random_model(folder: Path) -> Path:
    """Write an untrained GPT-2 whose tokenizer has read the embedded corpus."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=8000,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [text for item in mini.read_response_sets("train") for text in (*item.context, *item.positive, *item.adversarial)]
    tokenizer.train_from_iterator(texts, trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, bos_token=END, pad_token=END).save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=8000, n_positions=1024, n_embd=256, n_layer=4, n_head=4, bos_token_id=0, eos_token_id=0)
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def one_turn_at_a_time(evaluator: CausalEvaluator, pieces: Sequence[Sequence[Sequence[int]]]) -> Callable[[], None]:
    """Make the published way, for the full context: each turn is a forward pass over all turns up to it."""
    model = evaluator.opened.model

    def run() -> None:
        with torch.no_grad():
            for turns in pieces:
                for place in range(1, len(turns)):
                    before = [token for piece in turns[:place] for token in piece]
                    ids = torch.tensor([[*before, *turns[place]]])
                    logits = model(input_ids=ids, use_cache=False).logits[0, len(before) - 1 : -1]
                    chances = logits.softmax(-1)
                    chances[range(len(turns[place])), list(turns[place])].tolist()
                    chances.amax(-1).tolist()

    return run


def forward_only(evaluator: CausalEvaluator, pieces: Sequence[Sequence[Sequence[int]]]) -> Callable[[], None]:
    """Make a run of the model over the dialogues, tokenised and batched by length beforehand."""
    opened = evaluator.opened
    rows = [[token for piece in turns for token in piece] for turns in pieces]
    inputs = []
    for places in length_batches(list(map(len, rows)), opened.batch_tokens):
        inputs.append(padded_ids(opened, [rows[place] for place in places]))

    def run() -> None:
        with torch.inference_mode():
            for ids in inputs:
                opened.model(input_ids=ids, use_cache=False)

    return run


def measure_memory(model: str, sizes: Sequence[int]) -> list[float]:
    """Highest memory above the model's while so many dialogues are scored, for each size."""
    scorer = DialogueLikelihoodScorer(model, device="cpu")
    before = resident_mb("VmRSS")
    scorer.score(made_dialogues(16))
    return [peak_mb(functools.partial(scorer.score, made_dialogues(size))) - before for size in sizes]


def main() -> None:
    parser = options_of(__doc__, "under a minute, with fewer dialogues", model="folder of a causal language model", threads=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.measure_memory:
        print(*measure_memory(arguments.model, arguments.measure_memory))
        return
    with tempfile.TemporaryDirectory() as scratch:
        model = arguments.model or str(write_random_model(Path(scratch) / "model"))
        scorer = DialogueLikelihoodScorer(model, device="cpu")
        evaluator = scorer.evaluator
        if not isinstance(evaluator, CausalEvaluator):
            raise SystemExit(f"{model}: is no causal language model")
        n_dialogues, n_naive, rounds = (24, 3, 3) if arguments.quick else (480, 48, 5)
        found = dialogues(n_dialogues)
        end = evaluator.opened.tokenizer.eos_token_id
        pieces = turn_pieces(
            evaluator.opened, [[turn.text for turn in dialogue.turns] for dialogue in found], [end], last_only=False
        )
        lengths = [sum(map(len, turns)) for turns in pieces]
        work = {
            "score": (lambda: scorer.score(found), sum(lengths)),
            "forward": (forward_only(evaluator, pieces), sum(lengths)),
            # Every eighth or tenth dialogue, so that the loop has dialogues of all lengths.
            "naive": (
                one_turn_at_a_time(evaluator, pieces[:: n_dialogues // n_naive]),
                sum(lengths[:: n_dialogues // n_naive]),
            ),
        }
        times = interleaved({name: run for name, (run, _) in work.items()}, rounds, time.process_time)
        rate = {name: n_tokens / statistics.median(times[name]) for name, (_, n_tokens) in work.items()}
        sizes = (16, 48) if arguments.quick else (256, 4096)
        options = ("--model", model, "--threads", str(arguments.threads))
        memory = memory_figures(__file__, *options, sizes=sizes, what="dialogues")
    for name, value in rate.items():
        print(f"{name:8} {value:8.0f} tokens/s")
    result = {
        "vs_naive": round(rate["score"] / rate["naive"], 2),
        "vs_forward": round(rate["score"] / rate["forward"], 3),
        **memory,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
