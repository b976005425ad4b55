"""Scoring in one line of Python."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dialeval_plugin.conversations.record import ReadingOptions, TurnChoice
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Scores
from dialeval_plugin.corpora.scored_input import Source
from dialeval_plugin.hosts.judges import load_scorer_with_judge
from dialeval_plugin.streams.run import ScoreRun

logger = logging.getLogger(__name__)


def score(
    data: Any,
    scorer: str | Scorer = "general",
    *,
    turns: TurnChoice | None = None,
    columns: Mapping[str, str] | None = None,
    keep: str | Sequence[str] = (),
    **options: Any,
) -> Scores:
    """Score conversations or responses, as `dialeval score` does.

    Args:
        data: a file, folder or URL, a list of conversations, a `pandas.DataFrame`, a `datasets.Dataset` or a
            `pyarrow.Table`.
        scorer: name of a scorer, or a scorer.
        turns: turns of a conversation to score: "assistant", "all" (but the first) or "last".
        columns: our names of fields to those of a table, as `{"context": "history", "response": "answer"}`.
        keep: fields of messages or conversations to keep in the rows.
        **options: `layout`, `branches`, `order` and `strict` as for `dialeval score`, and options of the named scorer, as
            `llm="hf", llm_args="pretrained=..."`.

    Returns:
        A row for each response or dialogue: `len(scores)`, `scores.mean()`, `for row in scores`, `scores.to_pandas()`. What
        was left out of the input is logged as warnings.

    Raises:
        InputError: the input cannot be read, or an option is unknown.

    Example:
        >>> chat = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Good day!"}]
        >>> score([chat], "response_length")
        Scores(words: mean 2.0000, 1 of 1 scored)
    """
    more = {name: options.pop(name) for name in ("layout", "branches", "order", "strict") if name in options}
    reading = ReadingOptions.from_arguments(turns, columns, keep, **more)
    level = scorer.level if isinstance(scorer, Scorer) else options.get("level")
    if data is None:
        raise InputError("data: is None. Give a list of conversations, a table of them, or the name of a file.")
    is_named = isinstance(data, (str, Path))
    source = Source(str(data) if is_named else "input", reading, None if is_named else data, level)
    run = ScoreRun(scorer if isinstance(scorer, Scorer) else load_scorer_with_judge(scorer, options), source)
    items = list(run.items())
    for remark in source.reading.remarks().splitlines():
        logger.warning("%s: %s", source.name, remark)
    return run.scorer.score(items, progress=True)
