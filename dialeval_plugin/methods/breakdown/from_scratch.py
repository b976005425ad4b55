"""A GPT-2 with random weights, and a tokenizer of the training data."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from dialeval_plugin.training.run import TrainingRun

from .recipes import LanguageModelRecipe

END = "<|endoftext|>"


def write_new_model(run: TrainingRun, dialogues: Sequence[Sequence[str]], recipe: LanguageModelRecipe) -> Path:
    """Write a model into the run's checkpoints, unless the run that it goes on with has; return its folder."""
    folder = run.checkpoint_dir / "start"
    if run.is_main_process and not folder.exists():
        partial = folder.with_suffix(".part")
        shutil.rmtree(partial, ignore_errors=True)
        tokenizer = train_tokenizer((text for turns in dialogues for text in turns), recipe.vocabulary)
        tokenizer.model_max_length = recipe.block
        tokenizer.save_pretrained(partial)
        GPT2LMHeadModel(_config(tokenizer, recipe)).save_pretrained(partial)
        partial.replace(folder)
    run.wait()
    return folder


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Learn a byte-level BPE, which leaves no text without tokens; the end of text is its only special token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=[END], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, bos_token=END, pad_token=END)


def _config(tokenizer: PreTrainedTokenizerFast, recipe: LanguageModelRecipe) -> GPT2Config:
    end = tokenizer.eos_token_id
    return GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=recipe.block,
        n_embd=recipe.width,
        n_layer=recipe.n_layers,
        n_head=recipe.n_heads,
        # The same curve as GPT-2's own name for it, in one fused operation.
        activation_function="gelu_pytorch_tanh",
        # A few passes over a small corpus do not overfit a small model.
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=end,
        eos_token_id=end,
    )
