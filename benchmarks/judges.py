"""Cost of a judge in addition to its language model: batches sorted by length, through the file of answers.

A small GPT-2 with random weights gives the log probabilities of " Yes" and " No" after the few-shot prompt of the DSTC10
tasks, on the embedded corpus; the weights do not move the speed. Answers go into a new file. The last line is one JSON object:

    vs_naive       prompts per second in batches over one prompt a call
    vs_forward     prompts per second over those of the bare forward pass of the same model over the same tokens, in batches
                   of the same size, sorted by length, with the log probabilities of every position
    generate_vs_naive  as vs_naive, for 4 greedy tokens after each prompt
    rerun          prompts per second answered from the file over those that the model answered
    prompt_share   share of the time that making the prompts takes
    peak_mb        highest resident memory of the process
"""

from __future__ import annotations

import json
import resource
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from measuring import interleaved, options_of, padded_batches, seconds
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from dialeval_plugin.corpora import mini
from dialeval_plugin.hosts.lm_eval.backend import LmEvalLanguageModel, load_language_model
from dialeval_plugin.llm.answers import AnswerCache, CachedLanguageModel
from dialeval_plugin.llm.language_model import Request
from dialeval_plugin.methods.judging.prompts import goodness_prompt

END = "<|endoftext|>"
FORMS = (" Yes", " No")
BATCH_SIZE = 16
N_SHOTS = 3


def prompts(number: int) -> list[str]:
    """Prompts on the first `number` examples of the test split, each after the same shots; numbered where they repeat."""
    shots = [(item, item.ratings[mini.QUALITY][0] == 1) for item in mini.read_examples("train")[:N_SHOTS]]
    examples = mini.read_examples("test")
    made = []
    for position in range(number):
        round_, place = divmod(position, len(examples))
        prompt = goodness_prompt(examples[place], shots)
        made.append(prompt if not round_ else f"{round_}. {prompt}")
    return made


def write_language_model(folder: Path, texts: Sequence[str]) -> Path:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=[END], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([*texts, *("".join(FORMS) for _ in range(500))], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, bos_token=END, pad_token=END)
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=len(fast), n_positions=2048, n_embd=128, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def forward_only(model: LmEvalLanguageModel, texts: Sequence[str]) -> Callable[[], None]:
    """Return the bare forward pass over the prompts, tokenised beforehand, in batches of one length."""
    batches = padded_batches(model.lm.tokenizer(list(texts))["input_ids"], BATCH_SIZE)

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                torch.log_softmax(model.lm.model(batch["input_ids"]).logits, dim=-1)

    return run


def main() -> None:
    is_quick = options_of(__doc__, "under a minute, with fewer prompts").parse_args().quick
    n_prompts, n_naive, rounds = (32, 8, 3) if is_quick else (240, 60, 5)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        prompt_seconds = seconds(lambda: prompts(n_prompts))
        texts = prompts(n_prompts)
        write_language_model(folder / "model", texts)
        arguments = f"pretrained={folder / 'model'},dtype=float32"
        batched = load_language_model("hf", arguments, device="cpu", batch_size=BATCH_SIZE)
        single = load_language_model("hf", arguments, device="cpu", batch_size=1)
        files = iter(range(1000))

        def cached() -> CachedLanguageModel:
            return CachedLanguageModel(batched, AnswerCache(folder / f"{next(files)}.sqlite"))

        answered = cached()

        def judge(model: CachedLanguageModel) -> None:
            model.loglikelihood([(text, form) for text in texts for form in FORMS])

        def one_by_one() -> None:
            for text in texts[:n_naive]:
                single.loglikelihood([(text, form) for form in FORMS])

        def generate_one_by_one() -> None:
            for text in texts[:n_naive]:
                single.generate([Request(text, 4)])

        work: dict[str, tuple[Callable[[], None], int]] = {
            "judge": (lambda: judge(cached()), n_prompts),
            "forward": (forward_only(batched, texts), n_prompts),
            "one by one": (one_by_one, n_naive),
            "rerun": (lambda: judge(answered), n_prompts),
            "generate": (lambda: cached().generate([Request(text, 4) for text in texts]) and None, n_prompts),
            "generate one by one": (generate_one_by_one, n_naive),
        }
        judge(answered)
        batched.generate([Request(text, 4) for text in texts[:BATCH_SIZE]])
        times = interleaved({name: run for name, (run, _) in work.items()}, rounds)
    rate = {name: number / statistics.median(times[name]) for name, (_, number) in work.items()}
    for name, value in rate.items():
        print(f"{name:20} {value:8.1f} prompts/s")
    result = {
        "vs_naive": round(rate["judge"] / rate["one by one"], 2),
        "vs_forward": round(rate["judge"] / rate["forward"], 3),
        "generate_vs_naive": round(rate["generate"] / rate["generate one by one"], 2),
        "rerun": round(rate["rerun"] / rate["judge"], 1),
        "prompt_share": round(prompt_seconds / statistics.median(times["judge"]), 5),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
