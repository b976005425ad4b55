"""Scoring of batches of rows for any engine that keeps an object per worker: Ray Data's `map_batches`, or a loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialeval_plugin.conversations.files import Rows
from dialeval_plugin.conversations.reading import read_rows
from dialeval_plugin.conversations.record import Conversation, Reading, ReadingOptions, TurnChoice
from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import refuse_parts, score_block, scores_of
from dialeval_plugin.core.scores import OUT_OF_SCOPE, WHY_UNSCORED

UNSCORED, SIGNATURE = WHY_UNSCORED[0], "signature"


class ScoreBatches:
    """Adds the columns of a scorer to batches of rows; the scorer is loaded once.

    A row is a response with its `context`, or a conversation under `messages` of which one response is scored: `turns="last"`,
    or a scorer of whole dialogues.

    Args:
        scorer: name of the scorer.
        turns: which turns of a conversation are scored.
        columns: maps our field names to the rows' own.
        options: options of the scorer.

    Raises:
        InputError: the scorer needs all rows at once.

    Example:
        >>> score = ScoreBatches("response_length")
        >>> batch = {"context": np.array([["Hi."]], dtype=object), "response": np.array(["How are you?"])}
        >>> {name: values.tolist() for name, values in score(batch).items() if name not in batch and name != "signature"}
        {'words': [3.0], 'characters': [12.0], 'unscored': [None]}

        With Ray: `rows.map_batches(ScoreBatches, fn_constructor_args=("general",), batch_size=1024, concurrency=4)`.
    """

    def __init__(
        self, scorer: str, *, turns: TurnChoice | None = None, columns: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        self._scorer = load_scorer(scorer, **options)
        refuse_parts(self._scorer)
        self._options = ReadingOptions(choice=turns, columns=columns or {})

    def __call__(self, batch: Mapping[str, NDArray[Any] | list[Any]]) -> dict[str, NDArray[Any] | list[Any]]:
        """Score a batch, given as one column per field: an array, or a list, as `datasets.map(batched=True)` gives it.

        Returns:
            The batch's columns and the scorer's, NaN if a row has no score; `unscored`, the reason or None, and likewise
            `out_of_scope` if the scorer knows its scope; `signature`.

        Raises:
            InputError: a row is malformed or has several responses to score, or a column has a name that a score needs.
        """
        items = self._items(batch)
        scores = scores_of(self._scorer, items, score_block(self._scorer, items))
        added = {name: np.array(values, dtype=np.float64) for name, values in scores.columns.items()}
        for name in (UNSCORED, *([] if self._scorer.scope is None else [OUT_OF_SCOPE])):
            added[name] = np.array([row.get(name) for row in scores], dtype=object)
        added[SIGNATURE] = np.array([str(scores.signature)] * scores.n_total, dtype=object)
        if taken := sorted(added.keys() & batch.keys()):
            raise InputError(f"column {taken[0]!r}: is there already, and {self._scorer.name} writes one. Rename it.")
        return {**batch, **added}

    def _items(self, batch: Mapping[str, NDArray[Any] | list[Any]]) -> list[Item]:
        columns = [column if isinstance(column, list) else column.tolist() for column in batch.values()]
        rows = [
            Line(f"row {number} of a batch", dict(zip(batch, values, strict=True)))
            for number, values in enumerate(zip(*columns, strict=True), start=1)
        ]
        read = read_rows(Rows(iter(rows), is_table=True), Reading(self._options))
        items = [one.items(self._scorer.level) if isinstance(one, Conversation) else [one] for one in read if one is not None]
        if len(items) != len(rows):
            raise InputError("a batch: its rows are turns of conversations. Give a response, or a whole conversation, a row.")
        for row, of_row in zip(rows, items, strict=True):
            if len(of_row) != 1:
                raise InputError(f"{row.where}: has {len(of_row)} responses to score, and gets one score. Choose turns='last'.")
        return [item for of_row in items for item in of_row]
