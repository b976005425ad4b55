"""Causal language models that answer at random, or always alike."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

END = "<|endoftext|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
_TEXT = " 0 1 2 3 4 5 Yes No the a I you is it do like that what to of and . , ? ! Person A: Person B: Response: Context:"


def write_random_language_model(
    folder: Path, *, words: str = _TEXT, chat_template: str | None = CHAT_TEMPLATE, seed: int = 0, **settings: int
) -> Path:
    """Write a GPT-2 of two small layers with random weights: its texts are noise, and always the same."""
    tokenizer = _write_tokenizer(folder, words, chat_template)
    torch.manual_seed(seed)
    GPT2LMHeadModel(_config(tokenizer, **settings)).save_pretrained(folder)
    return folder


def write_rating_language_model(folder: Path, answer: str = " 4") -> Path:
    """Write a GPT-2 that continues every prompt by `answer`, which becomes one token where it is none, and ends.

    Its layers add nothing to the embeddings: the last token alone decides. `answer` has an embedding that calls for the end,
    every other token one that calls for `answer`.
    """
    tokenizer = _write_tokenizer(folder)
    if len(tokenizer.encode(answer)) > 1:
        tokenizer.add_tokens([answer])
        tokenizer.save_pretrained(folder)
    (token,) = tokenizer.encode(answer)
    config = _config(tokenizer, tie_word_embeddings=False)
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.transformer.ln_f.weight.fill_(1.0)
        model.transformer.wte.weight[:, 0] = 1.0
        model.transformer.wte.weight[token] = torch.eye(config.n_embd)[1]
        model.lm_head.weight[token, 0] = 10.0
        model.lm_head.weight[tokenizer.eos_token_id, 1] = 10.0
    model.save_pretrained(folder)
    return folder


def _write_tokenizer(folder: Path, words: str = _TEXT, chat_template: str | None = CHAT_TEMPLATE) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=[END], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([words] * 50, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, bos_token=END, pad_token=END)
    fast.chat_template = chat_template
    fast.save_pretrained(folder)
    return fast


def _config(tokenizer: PreTrainedTokenizerFast, **settings: int) -> GPT2Config:
    end = tokenizer.eos_token_id
    sizes = {"vocab_size": len(tokenizer), "n_positions": 4096, "n_embd": 16, "n_layer": 2, "n_head": 2}
    return GPT2Config(**{**sizes, **settings}, bos_token_id=end, eos_token_id=end)
