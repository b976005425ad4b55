"""Scoring in one line of Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dialeval_plugin.conversations.reading import ReadingOptions
from dialeval_plugin.conversations.record import TurnChoice, check_choice
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Scores
from dialeval_plugin.corpora.scored_input import Source
from dialeval_plugin.hosts.judges import load_scorer_with_judge
from dialeval_plugin.streams.run import ScoreRun


def score(
    data: Any,
    scorer: str | Scorer = "general",
    *,
    turns: TurnChoice | None = None,
    columns: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
    **options: Any,
) -> Scores:
    """Score conversations or responses, whatever holds them, as `dialeval score` does.

    Args:
        data: a file, a folder or a URL; a list of conversations; a `pandas.DataFrame`; a `datasets.Dataset`; a
            `pyarrow.Table`.
        scorer: its name, or a scorer.
        turns: which turns of a conversation are scored, "assistant", "all" (but the first) or "last".
        columns: our names of fields to the table's own, as `{"context": "history", "response": "answer"}`.
        keep: names of fields of the messages, or of the conversations, that the rows have too.
        **options: `layout`, `branches`, `order`, `strict` as for `dialeval score`, and those of the scorer that is named, as
            `llm="hf", llm_args="pretrained=..."`.

    Returns:
        A row a response, or a dialogue: `len(scores)`, `scores.mean()`, `for row in scores`, `scores.to_pandas()`.

    Raises:
        InputError: the input cannot be read, or an option is unknown; the message says where, and what to do.

    Example:
        >>> chat = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Good day!"}]
        >>> score([chat], "response_length")
        Scores(words: mean 2.0000, 1 of 1 scored)
    """
    of_input = {name: options.pop(name) for name in ("layout", "branches", "order", "strict") if name in options}
    reading = ReadingOptions(choice=check_choice("turns", turns), columns=columns or {}, keep=tuple(keep), **of_input)
    source = Source(str(data), reading) if isinstance(data, (str, Path)) else Source("input", reading, data)
    run = ScoreRun(scorer if isinstance(scorer, Scorer) else load_scorer_with_judge(scorer, options), source)
    return run.scorer.score(list(run.items()), progress=True)
