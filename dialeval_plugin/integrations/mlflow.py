"""A scorer of MLflow: `mlflow.genai.evaluate(data=..., scorers=[dialeval_scorer("general")])`."""

from __future__ import annotations

from typing import Any

from mlflow.entities import AssessmentError, AssessmentSource, Feedback
from mlflow.genai.scorers import Scorer, scorer

from .evaluation import Evaluator


def dialeval_scorer(name: str = "general", *, label: str | None = None, **options: Any) -> Scorer:
    """Return a scorer of the outputs of a data set or of traces, with their inputs as context; see `Evaluator`."""
    evaluator = Evaluator(name, options, label=label)

    def evaluate(inputs: Any, outputs: Any) -> Feedback:
        (result,) = evaluator([{"input": inputs, "output": outputs}], "exchange")
        error = AssessmentError(result.reason, result.explanation) if result.value is None else None
        about = {"rationale": result.explanation, "metadata": {field: str(value) for field, value in result.details.items()}}
        kept_as = f"dialeval_{result.name}"
        return Feedback(kept_as, result.value, error, AssessmentSource("CODE", kept_as), **about)

    return scorer(evaluate, name=f"dialeval_{label or name}")
