"""Logistic regression with a few weights that stay near their initial values."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from dialeval_plugin.core.arrays import FloatArray


def logistic_regression(
    columns: FloatArray, labels: FloatArray, *, start: FloatArray, row_weights: FloatArray | None = None
) -> FloatArray:
    """Return the weights that minimise the logistic loss plus the squared distance to `start`, of shape (n_columns,).

    The penalty keeps the weights finite for few or easily separated rows. `columns`, of shape (n, n_columns), includes a
    column of ones if there is to be an offset; `row_weights` are the weights of the rows.
    """
    counted = np.ones(len(labels)) if row_weights is None else row_weights
    sign = 2 * labels - 1

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        margin = sign * (columns @ weights)
        value = (counted * np.logaddexp(0, -margin)).sum() + ((weights - start) ** 2).sum()
        return float(value), columns.T @ (-sign * counted * expit(-margin)) + 2 * (weights - start)

    fitted: FloatArray = minimize(loss, start, jac=True, method="L-BFGS-B").x
    return fitted
