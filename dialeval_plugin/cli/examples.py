"""What one types: an example of use for each command, which its help ends with, and what comes after a command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

import typer

from dialeval_plugin.terminal.progress import say

EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "scorers": "dialeval scorers general",
        "score": "dialeval score responses.jsonl --output scores.jsonl --explain",
        "merge": "dialeval merge scores.jsonl part-1.jsonl part-2.jsonl",
        "launch": "dialeval launch responses.parquet --output scores.parquet --shards 64 --workers 8",
        "accuracy": "dialeval accuracy test.json --slm my-slm",
        "demo": "dialeval demo --output demo_output",
        "meta-eval": "dialeval meta-eval scores.jsonl --ratings tu",
        "rescore": "dialeval rescore results --coefficient pairwise_accuracy",
        "augment": "dialeval augment contexts.jsonl --llm hf --llm-args pretrained=MODEL --output augmented.jsonl",
        "enable": "dialeval enable",
        "disable": "dialeval disable",
        "status": "dialeval status",
        "validate": "dialeval validate --metrics my-metrics",
        "tasks-path": 'lm_eval --include_path "$(dialeval tasks-path)" --tasks dstc10_dialog --model hf',
        "metrics-path": 'ls "$(dialeval metrics-path)"',
        "models list": "dialeval models list",
        "models show": "dialeval models show general",
        "models verify": "dialeval models verify",
        "models percentiles": "dialeval models percentiles my-general dailydialog/dialogues_validation.txt",
        "models export": "dialeval models export general my-general --backend openvino-int8",
        "models push": "dialeval models push my-general OWNER/NAME --private",
        "models pull": "dialeval models pull OWNER/NAME my-general",
        "data list": "dialeval data list",
        "data fetch": "dialeval data fetch dstc10",
        "data leaks": "dialeval data leaks training.jsonl --against dstc10 --show 2",
        "train slm": "dialeval train slm --data train.json --evaluation test.json --output my-slm",
        "train general": "dialeval train general --corpus dailydialog.txt --evaluation dstc10 --output my-general",
        "train mixing": "dialeval train mixing --model my-general --data tu --data fed.json:Overall --output mixing.json",
        "train independence": "dialeval train independence --data causes.json --output my-causalscore",
        "train language-model": "dialeval train language-model --data train.txt --validation validation.txt --output lm",
        "train acceptance": "dialeval train acceptance --data logs.jsonl --model general --output my-general",
        "train breakdown": "dialeval train breakdown --model lm --calibration dev.zip --output calibration.json",
        "train proxy": "dialeval train proxy --data usr_topical_chat.json --output proxy.json",
        "train reconstruction": "dialeval train reconstruction --model hred --data train.txt --output hred",
        "leaderboard build": "dialeval leaderboard build results --output board",
        "leaderboard export": "dialeval leaderboard export board --format model-index --output exported",
        "leaderboard space": "dialeval leaderboard space board --output space",
        "leaderboard push": "dialeval leaderboard push OWNER/NAME --folder board --dry-run",
        "plot forest": "dialeval plot forest agreement.json --output forest.svg",
        "plot disentangling": "dialeval plot disentangling test.json --slm my-slm --output disentangling.svg",
        "plot training": "dialeval plot training my-slm --output training.svg",
        "plot thresholds": "dialeval plot thresholds test.json --slm my-slm --output thresholds.svg",
        "plot distribution": "dialeval plot distribution tu --scores scores.jsonl --output distribution.svg",
        "plot cascade": "dialeval plot cascade tu fused.jsonl --output cascade.svg",
        "plot weights": "dialeval plot weights proxy.json --output weights.svg",
    }
)
"""By the words that call a command."""


def add_examples(app: typer.Typer, *words: str) -> None:
    """Let the help of each command of `app`, which is called by `words`, end with its example."""
    for command in app.registered_commands:
        name = command.name or (command.callback.__name__.replace("_", "-") if command.callback is not None else "")
        if (example := EXAMPLES.get(" ".join([*words, name]))) is not None:
            # Lines below a \b keep their breaks.
            command.epilog = f"\b\nExample:\n  {example}"
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_examples(group.typer_instance, *words, *([group.name] if isinstance(group.name, str) else []))


_is_step = ContextVar("_is_step", default=False)


@contextmanager
def step() -> Iterator[None]:
    """Run commands as steps of another one, which itself says what comes next."""
    token = _is_step.set(True)
    try:
        yield
    finally:
        _is_step.reset(token)


def say_next(words: str, why: str) -> None:
    """Say on stderr what one types after the command that has ended, and why."""
    if not _is_step.get():
        say(f"next: {words}  ({why})")
