"""A scorer of MLflow: `mlflow.genai.evaluate(data=..., scorers=[dialeval_scorer("general")])`."""

from __future__ import annotations

from typing import Any

from mlflow.entities import AssessmentError, AssessmentSource, Feedback
from mlflow.genai.scorers import Scorer, scorer

from .evaluation import Evaluator


def dialeval_scorer(name: str = "general", **options: Any) -> Scorer:
    """Return a scorer of the outputs of a data set or of traces, each in the light of its inputs; see `Evaluator`."""
    evaluator = Evaluator(name, options)

    def evaluate(inputs: Any, outputs: Any) -> Feedback:
        (found,) = evaluator([{"input": inputs, "output": outputs}], "exchange")
        error = AssessmentError(found.reason, found.explanation) if found.value is None else None
        told = {"rationale": found.explanation, "metadata": {field: str(value) for field, value in found.details.items()}}
        label = f"dialeval_{found.name}"
        return Feedback(label, found.value, error, AssessmentSource("CODE", label), **told)

    return scorer(evaluate, name=f"dialeval_{name}")
