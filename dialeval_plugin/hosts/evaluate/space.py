"""Pages of the metrics' Spaces: one context, one response and its score; or the turns judged by a detector."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dialeval_plugin.core.errors import InputError

from .metric import load_metric

if TYPE_CHECKING:
    import gradio


def response_score(name: str, **options: Any) -> Callable[[str, str], dict[str, Any]]:
    """Return a function that scores one response, given the context with one turn per line; blank lines are skipped.

    The metric, with the options of its scorer, is loaded once, with the first response.
    """
    metric = functools.cache(lambda: load_metric(name, **options))

    def score(context: str, response: str) -> dict[str, Any]:
        turns = [line.strip() for line in context.splitlines() if line.strip()]
        result = metric().compute(predictions=[response], contexts=[turns])
        if result["n_unscored"]:
            return {"score": None, "unscored": next(iter(result["unscored"]))}
        columns = {column: values[0] for column, values in result.items() if isinstance(values, list) and column != "scores"}
        return {"score": result["scores"][0], **columns, "signature": result["signature"]}

    return score


def response_page(name: str, *, title: str, description: str, **options: Any) -> gradio.Interface:
    """Return the page; the Space installs gradio, which this package does not need. `options` are for the scorer."""
    import gradio

    return gradio.Interface(
        fn=response_score(name, **options),
        inputs=[gradio.Textbox(label="Context, one turn a line, oldest first", lines=5), gradio.Textbox(label="Response")],
        outputs=gradio.JSON(label="Score"),
        title=title,
        description=description,
        examples=[["Do you have plans for Sunday?\nNot yet. Why?", "There is a market by the river. Come with me!"]],
        cache_examples=False,
        flagging_mode="never",
    )


def breakdown_values(text: str) -> dict[str, Any]:
    """Compute the metrics of breakdown detection from lines of three probabilities and three counts; skip blank lines."""
    rows = [line.replace(",", " ").split() for line in text.splitlines() if line.strip()]
    predictions, references = [], []
    for number, row in enumerate(rows, start=1):
        try:
            predictions.append([float(value) for value in row[:3]])
            references.append([int(value) for value in row[3:]])
        except ValueError as error:
            raise InputError(f"line {number}: {error}. Give three probabilities and three whole numbers.") from None
    result: dict[str, Any] = load_metric("dbdc").compute(predictions=predictions, references=references)
    return result


def breakdown_page() -> gradio.Interface:
    """Return the page of the metrics of breakdown detection."""
    import gradio

    return gradio.Interface(
        fn=breakdown_values,
        inputs=gradio.Textbox(label="A line a turn: P(NB) P(PB) P(B), and how many annotators said O, T, X", lines=8),
        outputs=gradio.JSON(label="Metrics"),
        title="DBDC",
        description="How well a dialogue breakdown detector agrees with annotators.",
        examples=[["0.7 0.2 0.1 20 5 5\n0.1 0.2 0.7 2 8 20"]],
        cache_examples=False,
        flagging_mode="never",
    )
