"""`dialeval plot` from files to a picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dialeval_plugin.training.checkpoints import HistoryRow, write_history
from tests.cli.running import run, write_rows
from tests.refusals import refused

SET = {
    "context": ["Do you have plans?", "Not yet."],
    "positive_responses": ["Come to the market!", "Why do you ask?", "Let us swim."],
    "adversarial_negative_responses": ["Plans of houses.", "The market fell.", "Not a number."],
    "random_negative_responses": ["My cat sleeps."],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [{"id": str(number), **SET, "context": [f"Question {number}?"]} for number in range(4)]
    return write_rows(tmp_path / "sets.json", rows)


@pytest.mark.long
@pytest.mark.parametrize("command", ["disentangling", "thresholds", "distribution"])
def test_a_small_model_is_drawn(command: str, data: Path, tiny_slm: Path, tmp_path: Path) -> None:
    output = tmp_path / "plot.svg"
    done = run("plot", command, data, "--slm", tiny_slm, "--output", output)
    assert "4 contexts, 0 of them were in training or validation\n" in done.stdout
    assert done.stdout.endswith(f"{output}\n")
    text = output.read_text()
    wanted = {"disentangling": "Disentangled", "thresholds": "minus distance", "distribution": "random (n=4)"}
    assert wanted[command] in text
    counted = {"disentangling": "4 of 4 contexts", "thresholds": "12 positive and 12 adversarial responses"}
    assert f"{tiny_slm.name}: {counted.get(command, '4 contexts')}" in text


def test_training_curves_come_from_a_folders_history(tmp_path: Path) -> None:
    write_history(tmp_path, [HistoryRow("joint", 1.0, 9, {"loss": 0.6, "accuracy": 88.0})])
    run("plot", "training", tmp_path, "--output", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_steps_of_all_stages_are_counted(tmp_path: Path) -> None:
    write_history(tmp_path, [HistoryRow(*row, {"loss": 0.6}) for row in (("a", 1.0, 9), ("a", 2.0, 18), ("b", 1.0, 5))])
    run("plot", "training", tmp_path, "--output", tmp_path / "curves.svg")
    assert f"{tmp_path.name}: 23 steps" in (tmp_path / "curves.svg").read_text(encoding="utf-8")


def write_rated(folder: Path, ratings: Callable[[int], dict[str, list[int]]]) -> tuple[Path, Path]:
    """Eight rated rows and the scores of all but the last."""
    data = write_rows(folder / "rated.jsonl", [{"id": str(n), "ratings": ratings(n)} for n in range(8)])
    scores = [{"id": str(n), "mine": None if n == 7 else n / 10} for n in range(8)]
    return data, write_rows(folder / "scores.jsonl", scores)


def test_scores_of_a_file_are_drawn_by_the_level_of_their_rating(tmp_path: Path) -> None:
    data, scores = write_rated(tmp_path, lambda n: {"overall": [1 + n % 2 * 3]})
    words = ("plot", "distribution", data, "--scores", scores, "--column", "mine", "--output", tmp_path / "plot.svg")
    run(*words)
    text = (tmp_path / "plot.svg").read_text()
    assert "overall 1 (n=4)" in text
    assert "overall 4 (n=3)" in text
    scores.write_text('{"id": "99", "mine": 1}')
    with refused(f"{scores}: no row of {data} has both a score and a rating of overall. Give the file that was scored."):
        run(*words)


def test_without_a_quality_it_is_the_overall_one_or_a_question(tmp_path: Path) -> None:
    """D32: the message read "--quality None"."""
    data, scores = write_rated(tmp_path, lambda n: {"style": [1], "Overall": [1 + n % 2 * 3]})
    run("plot", "distribution", data, "--scores", scores, "--output", tmp_path / "plot.svg")
    assert "Overall 4 (n=3)" in (tmp_path / "plot.svg").read_text()
    write_rated(tmp_path, lambda n: {"style": [1], "grace": [2]})
    with refused(f"{data}: several qualities are rated. Name one with --quality: style, grace."):
        run("plot", "distribution", data, "--scores", scores, "--output", tmp_path / "plot.svg")


def test_the_format_is_checked_before_a_model_is_run(data: Path, tmp_path: Path) -> None:
    with refused(f"{tmp_path}/plot.gif: plots are written as PNG, SVG or PDF. End the name in .png, .svg or .pdf."):
        run("plot", "thresholds", data, "--slm", "nowhere", "--output", tmp_path / "plot.gif")


def test_the_weights_of_a_regression_are_drawn(tmp_path: Path) -> None:
    from dialeval_plugin.methods.proxy_indicators.regression import Feature, FeatureRange, LinearRegression, ProxyModel
    from dialeval_plugin.methods.proxy_indicators.tasks import IndicatorSettings, subset

    features = subset("single")
    columns = tuple(Feature(0.0, 1.0, name, 0.5) for name in features)
    regression = LinearRegression(columns, 0.1, FeatureRange(0.0, 1.0), 20)
    ProxyModel(IndicatorSettings(features), regression, "Overall", {}).save(tmp_path / "proxy.json")
    run("plot", "weights", tmp_path / "proxy.json", "--output", tmp_path / "weights.svg")
    assert (tmp_path / "weights.svg").read_text().count("+0.50") == len(features)


def test_a_cascade_is_drawn_from_scores_of_a_fusion(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rated.jsonl", [{"id": str(n), "ratings": {"overall": [n % 5]}} for n in range(20)])
    rows = [{"id": str(n), "slide": n % 5 / 5, "small": (3 * n) % 20 / 20} for n in range(20)]
    scores = write_rows(tmp_path / "gpt.jsonl", [*rows[:-1], {"id": "19", "slide": None, "small": None}])
    done = run("plot", "cascade", data, scores, "--output", tmp_path / "plot.svg")
    first, path = done.stdout.splitlines()
    assert first.startswith("gpt: 0.")
    assert "1.000 with all; 95% of them keep 99% of it (cascade=0.45)" in first
    assert path == str(tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text()
    assert "responses about which the large model is asked (%)" in text
    assert "gpt" in text
    # Of two files called gpt.jsonl, or named NAME=FILE, the first one's curve was lost.
    (tmp_path / "b").mkdir()
    other = write_rows(tmp_path / "b" / "gpt.jsonl", rows)
    with refused(f"{other}: there is another evaluator 'gpt'. Rename one of the files."):
        run("plot", "cascade", data, scores, other, "--output", tmp_path / "plot.svg")
    both = run("plot", "cascade", data, f"a={scores}", f"b={other}", "--output", tmp_path / "plot.svg").stdout.splitlines()
    assert [line.partition(":")[0] for line in both[:2]] == ["a", "b"]
    write_rows(data, [{"id": str(n), "ratings": {"fit": [n % 5], "style": [n % 3]}} for n in range(20)])
    with refused(f"{data}: several qualities are rated. Name one with --quality: fit, style."):
        run("plot", "cascade", data, scores, "--output", tmp_path / "plot.svg")
