"""A tiny language model that shows how a judge runs in lm-eval; it is not a good judge."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, set_seed

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.methods.judging.prompts import goodness_prompt
from dialeval_plugin.models.language_models import train_tokenizer

ANSWERS = (" Yes", " No", " yes", " no")


def train_tiny_language_model(
    examples: Sequence[tuple[Example, bool]], folder: Path, *, n_steps: int = 120, seed: int = 13
) -> Path:
    """Train a two-layer GPT-2 on `n_steps` batches of 8 answered prompts and write it as a transformers folder."""
    set_seed(seed)
    texts = [goodness_prompt(example) + (" Yes" if is_good else " No") for example, is_good in examples]
    # If they are frequent enough, the answers become single tokens, and one forward pass decides between them.
    tokenizer = train_tokenizer([*texts, *("".join(ANSWERS) for _ in range(500))], 1500, prefix_space=False)
    end = tokenizer.eos_token_id
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=512, n_embd=128, n_layer=2, n_head=4, bos_token_id=end, eos_token_id=end
    )
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    for batch in itertools.islice(_batches(texts, 8, seed), n_steps):
        inputs = tokenizer(batch, padding=True, truncation=True, max_length=512, return_tensors="pt")
        labels = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
        loss = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _batches(texts: Sequence[str], size: int, seed: int) -> Iterator[list[str]]:
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(texts), generator=generator).tolist()
        for start in range(0, len(order) - size + 1, size):
            yield [texts[index] for index in order[start : start + size]]
