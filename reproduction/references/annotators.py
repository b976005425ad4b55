"""Golden values of tests/statistics/test_annotators.py: the authors' alternative annotator test, and statsmodels' REML.

    pip install statsmodels==0.15.0
    jupyter nbconvert --to script alt_test_example.ipynb --output alt_test    # of github.com/nitaytech/AltTest, commit 13eada2
    PYTHONPATH=. python reproduction/references/annotators.py

Keep the part of the notebook before its example. The data is drawn here with a seed, as in the test.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

Numbers = npt.NDArray[np.float64]


def drawn_labels(seed: int, n_levels: int, spread: float) -> tuple[Numbers, Numbers]:
    """Return the labels of five raters, a tenth of them missing, and an evaluator's: levels of a common truth with noise."""
    generator = np.random.default_rng(seed)
    truth = generator.normal(size=(120, 1))
    noisy = truth + np.array([0.4, 0.6, 0.8, 1.0, 1.4, spread]) * generator.normal(size=(120, 6))
    levels = np.digitize(noisy, np.linspace(-1.5, 1.5, n_levels + 1)[1:-1]).astype(np.float64)
    return np.where(generator.random((120, 5)) < 0.1, np.nan, levels[:, :5]), levels[:, 5]


def crossed_ratings(seed: int) -> Numbers:
    """Return ratings of 4 systems in 12 conversations each of 3 responses by 5 raters, of shape (4, 12, 3, 5)."""
    generator = np.random.default_rng(seed)
    effects = {(4, 1, 1, 1): 0.8, (4, 12, 1, 1): 0.6, (4, 12, 3, 1): 0.5, (1, 1, 1, 5): 0.4, (4, 12, 3, 5): 0.7}
    return np.asarray(sum(generator.normal(scale=sd, size=shape) for shape, sd in effects.items()), dtype=np.float64)


def print_alternative_annotator_tests() -> None:
    """Print winning rate, advantage probability and p-values by the authors' code."""
    import alt_test as authors  # type: ignore[import-not-found]

    for n_levels, scoring, spread, epsilon in CASES:
        labels, scores = drawn_labels(1, n_levels, spread)
        humans = {h: dict(enumerate(column)) for h, column in enumerate(labels.T)}
        humans = {h: {i: x for i, x in given.items() if not np.isnan(x)} for h, given in humans.items()}
        p_values: list[float] = []

        def kept(*given: Any, p_values: list[float] = p_values, **options: Any) -> Any:
            found = stats.ttest_1samp(*given, **options)
            p_values.append(float(found.pvalue))
            return found

        authors.ttest_1samp = kept
        rate, advantage = authors.alt_test(dict(enumerate(scores)), humans, scoring, epsilon)
        print((n_levels, spread, epsilon), (rate, round(advantage, 9), [float(f"{p:.9g}") for p in p_values]))


def print_components() -> None:
    """Print REML's components, which of balanced data are those of the analysis of variance; systems are drawn, as all are."""
    import pandas as pd
    import statsmodels.api as sm

    ratings = crossed_ratings(2)
    system, conversation, response, rater = (codes.ravel() for codes in np.indices(ratings.shape))
    data = pd.DataFrame({"y": ratings.ravel(), "system": system, "rater": rater})
    data["conversation"] = system * 12 + conversation
    data["response"] = data["conversation"] * 3 + response
    names = ["system", "conversation", "response", "rater"]
    parts = {name: f"0 + C({name})" for name in names}
    fitted = sm.MixedLM.from_formula("y ~ 1", groups=np.ones(len(data)), vc_formula=parts, data=data).fit(reml=True)
    print({**dict(zip(fitted.model.exog_vc.names, map(float, fitted.vcomp), strict=True)), "residual": float(fitted.scale)})


CASES = [(2, "accuracy", 0.6, 0.2), (4, "accuracy", 0.5, 0.1), (5, "neg_rmse", 0.6, 0.15)]

if __name__ == "__main__":
    print_alternative_annotator_tests()
    print_components()
