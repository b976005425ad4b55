"""Results of other packages for the same labels: writes `tests/golden/estimation.json`, and with --show a table next to ours.

Run it where these packages are installed with this one, which needs none of them:

    pip install ppi-python==0.2.3 judgy==0.1.0 truescore==0.7.4 statsmodels==0.15.0
    python -m reproduction.references.estimation --show

`judge_reporting` are values of the authors' code of Lee et al. (ICML 2026; `calibration.py` of
github.com/UW-Madison-Lee-Lab/LLM-judge-reporting), which is no package of an index: they were computed with a transcription
of a public copy, not with the repository itself, and are only kept here.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from dialeval_plugin.core.files import write_text
from dialeval_plugin.statistics.estimation.sample import Sample
from dialeval_plugin.statistics.estimation.true_mean import true_mean

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden" / "estimation.json"
PACKAGES = ("ppi-python", "judgy", "truescore", "statsmodels")
JUDGE_REPORTING = [
    # p, specificity, sensitivity, n, m0, m1, and the ends of the 95 % interval
    [0.4, 0.7, 0.9, 1000, 200, 200, 0.05635072484160894, 0.2627330257859588],
    [0.81, 0.72, 0.95, 12400, 58, 142, 0.7341935607542414, 0.8518148865139337],
    [0.95, 0.6, 0.98, 500, 20, 80, 0.8852326497347893, 1.0],
    [0.2, 0.9, 0.6, 300, 40, 25, 0.0, 0.382600153561018],
]


def made_up() -> dict[str, list[float]]:
    """A judge of pass and fail that also has a score, of 600 rows in 120 conversations of five; 30 of these are labelled."""
    generator = np.random.default_rng(47)
    conversations = np.repeat(np.arange(120), 5)
    easy = generator.normal(size=120)[conversations] + generator.normal(size=600)
    passes = (easy > -0.8).astype(float)
    verdicts = np.where(generator.random(600) < np.where(passes == 1, 0.9, 0.25), 1.0, 0.0)
    ratings = np.clip(np.round(3 + 0.8 * easy), 1, 5)
    scores = np.round(ratings + 0.9 * generator.normal(size=600), 3)
    labelled = np.isin(conversations, generator.choice(120, 30, replace=False))
    columns = {"conversations": conversations, "passes": passes, "verdicts": verdicts, "ratings": ratings, "scores": scores}
    return {name: column.tolist() for name, column in {**columns, "labelled": labelled.astype(float)}.items()}


def of_packages(data: dict[str, list[float]]) -> dict[str, Any]:
    """Return each package's result for the rows, which all but truescore's clustered interval take for independent."""
    import judgy
    import ppi_py
    import truescore
    from statsmodels.api import OLS
    from statsmodels.stats.proportion import proportion_confint

    columns = {name: np.array(column) for name, column in data.items()}
    known = columns["labelled"] == 1
    rows, clusters = np.flatnonzero(known), columns["conversations"]
    found: dict[str, Any] = {"versions": {name: version(name) for name in PACKAGES}}
    for label, score in (("passes", "verdicts"), ("ratings", "scores")):
        y, f = columns[label][known], columns[score]
        low, high = ppi_py.ppi_mean_ci(y, f[known], f[~known], alpha=0.05)
        ours = truescore.ppi_estimate(f, y, rows)
        clustered = truescore.ppi_estimate(f, y, rows, clusters=clusters)
        fit = OLS(y, np.ones(len(y))).fit(cov_type="cluster", cov_kwds={"groups": clusters[known].astype(int)})
        found[label] = {
            "ppi_py": [ppi_py.ppi_mean_pointestimate(y, f[known], f[~known]).item(), low.item(), high.item()],
            "truescore": [ours.point, ours.low, ours.high],
            "truescore_slope": ours.lambda_,
            "truescore_clustered": [clustered.point, clustered.low, clustered.high],
            "statsmodels_clustered_error": float(fit.bse[0]),
        }
    y, f = columns["passes"][known], columns["verdicts"]
    rogan_gladen = truescore.rogan_gladen_estimate(f, y, rows)
    np.random.seed(0)  # noqa: NPY002 - what judgy draws from
    found["truescore_rogan_gladen"] = [rogan_gladen.point, rogan_gladen.low, rogan_gladen.high]
    found["judgy"] = list(map(float, judgy.estimate_success_rate(y, f[known], f)))
    found["statsmodels_wilson"] = [float(end) for end in proportion_confint(37, 50, alpha=0.05, method="wilson")]
    return found


def show(data: dict[str, list[float]], found: dict[str, Any]) -> None:
    """Print what each says of the same rows."""
    labels = [label if known else np.nan for label, known in zip(data["passes"], data["labelled"], strict=True)]
    print(f"truth: {np.mean(data['passes']):.3f}")
    for name in ("ppi_py", "truescore", "truescore_clustered"):
        print(f"{name:28}", *(f"{number:.4f}" for number in found["passes"][name]))
    for name in ("judgy", "truescore_rogan_gladen"):
        print(f"{name:28}", *(f"{number:.4f}" for number in found[name]))
    for clusters in (None, data["conversations"]):
        sample = Sample.of(data["verdicts"], labels, clusters=clusters, is_rate=True)
        for method in ("ppi", "rogan-gladen"):
            mean = true_mean(sample, method=method).mean
            how = f"ours, {method}, {'row-wise' if clusters is None else 'clustered'}"
            print(f"{how:28}", *(f"{number:.4f}" for number in (mean.value, mean.ci_low, mean.ci_high)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print a table, and write nothing")
    data = made_up()
    found = of_packages(data)
    if parser.parse_args().show:
        show(data, found)
        return
    golden = {"data": data, **found, "judge_reporting": JUDGE_REPORTING}
    write_text(GOLDEN, json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
