"""The tables of reproduction/reconstruction/results.md from tiny models and small ConvAI files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dialeval_plugin.core.dialogue import Dialogue, Turn, mean_rating
from dialeval_plugin.corpora.readers import convai
from dialeval_plugin.methods.reconstruction.scorer import DialogueReconstructionScorer
from dialeval_plugin.reports.tables import figure
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES
from dialeval_plugin.statistics.coefficients.pearson import pearson, spearman
from dialeval_plugin.statistics.correlation import partial_correlation
from dialeval_plugin.training.checkpoints import HistoryRow, write_history
from reproduction.documents import put_between
from reproduction.reconstruction import write
from reproduction.reconstruction.write import PAPER, agreement_table, training_table
from tests.layouts import write_convai
from tests.refusals import refused
from tests.tiny.reconstruction import KINDS, write_tiny_model

RESULTS = Path(write.__file__).with_name("results.md")
HISTORY = [
    HistoryRow("reconstruction", float(number), 10 * number, {"training_kl": 0.5 * number, "loss": loss})
    for number, loss in ((1, 6.0), (2, 5.5), (3, 5.625))
]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(write_convai(tmp_path / "data", 20)))
    folders = [
        write_tiny_model(tmp_path / kind, kind, training={"counts": {"n_training": 90}, "best_epoch": 2}) for kind in KINDS
    ]
    for folder in folders:
        write_history(folder, HISTORY)
    return [str(folder) for folder in folders]


def test_training_is_shown_epoch_by_epoch(models: list[str]) -> None:
    table = training_table([Path(models[KINDS.index("vhred")])])
    assert table.render("markdown").splitlines()[2] == ("| VHRED | tiny | 90 | 3 | 6.000 5.500 5.625 | 2 | 1.000 |")


def varied_dialogues(number: int = 40) -> list[Dialogue]:
    """Dialogues of many lengths, rated at random: no model's losses, and no ratings, follow from the lengths alone."""
    generator = np.random.default_rng(6)

    def turn(place: int) -> Turn:
        words = generator.choice(["hello", "do", "you", "like", "tea", "cake", "is", "fine", "bye"], generator.integers(1, 9))
        return Turn(" ".join(words), f"participant{1 + place % 2}")

    return [
        Dialogue(
            f"varied {index}",
            tuple(turn(place) for place in range(generator.integers(3, 9))),
            ratings={"eval_score": (float(generator.integers(1, 6)),)},
        )
        for index in range(number)
    ]


def test_where_the_length_says_all_the_table_says_undefined(models: list[str]) -> None:
    """In the small ConvAI files the length gives the rating; three rows are too few for two lengths besides."""
    table = agreement_table("convai2", varied_dialogues(3), models[:1], rounds=0)
    for row in table.rows[:3]:
        assert (row["pearson, length held"], row["spearman, length held"]) == ("undefined", "undefined")


def test_every_reading_stands_beside_the_thesis_and_the_length(models: list[str]) -> None:
    dialogues = [*convai.read_convai2(), *varied_dialogues()]
    table = agreement_table("convai2", dialogues, models, rounds=0)
    losses = ["mean of token means (4.1)", "sum", "as the thesis' code: sum, 10 utterances", "thesis, table 4.1"]
    assert [(row["model"], row["loss"]) for row in table.rows[:4]] == [("Seq2Seq", loss) for loss in losses]
    assert [row["loss"] for row in table.rows[16:]] == ["n_utterances", "n_tokens"]
    assert (table.rows[3]["pearson"], table.rows[3]["spearman"]) == ("0.344", "0.489")

    rated = [one for one in dialogues if len(one.turns) > 2 and one.ratings["eval_score"]]
    ratings = [mean_rating(one, "eval_score") for one in rated]
    scores = DialogueReconstructionScorer(models[1]).score(rated)
    lengths = {name: scores.columns[name] for name in ("n_utterances", "n_tokens")}
    expected = {"model": "HRED", "loss": "mean of token means (4.1)", "n": len(rated)}
    for name, coefficient in (("pearson", pearson), ("spearman", spearman)):
        expected[name] = figure(coefficient(scores.values, ratings))
        held = partial_correlation(scores.values, ratings, lengths, coefficient=name, bootstrap=NO_RESAMPLES)
        expected[f"{name}, length held"] = figure(held.value)
    assert table.rows[4] == expected
    assert table.rows[17]["pearson"] == figure(pearson(lengths["n_tokens"], ratings))
    posterior = DialogueReconstructionScorer(models[3], reduction="sum", max_utterances=10, latent="posterior").score(rated)
    assert table.rows[14]["pearson"] == figure(pearson(posterior.values, ratings))


def test_the_published_figures_are_those_of_table_4_1() -> None:
    assert {corpus: list(figures.values()) for corpus, figures in PAPER["table_4_1"].items()} == {
        "convai1": [[0.2150, 0.3006], [0.1869, 0.2832], [0.2210, 0.3009], [0.2249, 0.3037]],
        "convai2": [[0.3444, 0.4892], [0.3469, 0.4876], [0.3384, 0.4885], [0.3408, 0.4888]],
    }


def test_the_script_writes_between_the_markers_and_nowhere_else(
    models: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "reconstruction.md"
    original = RESULTS.read_text(encoding="utf-8")
    for name in ("training", "convai1", "convai2"):
        original = put_between(original, name, "")
    document.write_text(original, encoding="utf-8")
    arguments = [*models[1:3], "--document", str(document), "--rounds", "20"]
    write.main(arguments)
    written = document.read_text(encoding="utf-8")
    assert "\n| HRED | sum | " in written
    assert "\n| VHRED | thesis, table 4.1 | 0.301 |  |\n" in written
    assert "as the thesis' code" in written
    assert '\nVHRED,"thesis, table 4.1",,0.221,,,0.301,' in (tmp_path / "data" / "reconstruction" / "convai1.csv").read_text(
        "utf-8"
    )
    assert capsys.readouterr().out == ""
    write.main(arguments)
    assert document.read_text(encoding="utf-8") == written
    for name in ("training", "convai1", "convai2"):
        written = put_between(written, name, "")
    assert written == original


def test_dialogues_without_ratings_are_refused(models: list[str]) -> None:
    short = [one for one in convai.read_convai2() if len(one.turns) < 3]
    with refused(f"convai2: none of {len(short)} dialogues has three utterances and a rating."):
        agreement_table("convai2", short, models)
