"""CausalScore through `evaluate` and lm-eval, and the tasks over human preferences: the numbers are the scorer's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.corpora.readers import cgdialog
from dialeval_plugin.corpora.readers.cgdialog import CRITERIA, OPTIONS
from dialeval_plugin.hosts.lm_eval.tasks.preference import preference_dataset
from dialeval_plugin.methods.causalscore.scorer import CausalScorer
from dialeval_plugin.statistics.preferences import cont2cat, ignore_equal, preferences, voting
from tests.hosts.through_lm_eval import evaluate, metrics
from tests.small_corpora import write_preferences

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def two_corpora(own_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("dialeval_plugin.statistics.preferences.N_FLIPS", 4)
    return write_preferences(own_data, "dream", "msc")


@pytest.fixture
def run(two_corpora: Path, tiny_causal_model: Path) -> Callable[..., dict[str, Any]]:
    return lambda task, **options: evaluate(
        "dialogue-metric", task, model_args=f"scorer=causalscore,model={tiny_causal_model}", **options
    )


@pytest.mark.long
def test_preferences_through_lm_eval_equal_those_computed_directly(run: Run, tiny_causal_model: Path) -> None:
    found = metrics(run("cgdialog_preference_dream"), "cgdialog_preference_dream")
    dialogues = cgdialog.read_preferences("dream")
    examples = [example for dialogue in dialogues for example in dialogue.examples()]
    values = CausalScorer(str(tiny_causal_model)).score(examples).values
    said = [(dialogue.id, system) for dialogue in dialogues for system in dialogue.responses]
    scores = dict(zip(said, values, strict=True))
    rows = [(dialogue.id, row) for dialogue in dialogues for row in dialogue.comparisons]
    for criterion in CRITERIA:
        compared = preferences(
            [scores[id, row.first] for id, row in rows],
            [scores[id, row.second] for id, row in rows],
            [[OPTIONS.index(vote) for vote in row.votes[criterion]] for _, row in rows],
            clusters=[id for id, _ in rows],
        )
        expected = {
            "voting_pearson": voting(compared, coefficient="pearson"),
            "voting_spearman": voting(compared),
            "ignore_equal": ignore_equal(compared),
            "cont2cat": cont2cat(compared),
        }
        for name, agreement in expected.items():
            assert found[f"{criterion}_{name}"] == pytest.approx(agreement.value, abs=1e-9)
            assert found[f"{criterion}_{name}_ci_low"] == pytest.approx(agreement.ci_low, abs=1e-9)
        assert found[f"{criterion}_cont2cat_ceiling"] == pytest.approx(expected["cont2cat"].ceiling, abs=1e-9)
        assert found[f"{criterion}_cont2cat_floor"] == pytest.approx(expected["cont2cat"].floor, abs=1e-9)
    # The blank response takes part in three comparisons, which have no score.
    assert (found["n_scored"], found["n_unscored"]) == (69, 3)
    json.dumps(found, allow_nan=False)


def test_a_group_leaves_out_what_is_absent(run: Run) -> None:
    results = run("cgdialog_preference")
    parts = [results["results"][f"cgdialog_preference_{name}"] for name in ("dream", "msc")]
    assert "n_scored,none" not in results["results"]["cgdialog_preference_esconv"]
    group = results["groups"]["cgdialog_preference"]
    values = [part["relevance_voting_spearman,none"] for part in parts]
    assert group["relevance_voting_spearman,none"] == pytest.approx(sum(values) / 2)


def test_a_part_of_the_documents_counts_the_comparisons_within_it(run: Run) -> None:
    found = metrics(run("cgdialog_preference_msc", limit=7), "cgdialog_preference_msc")
    # Of the first dialogue all four responses, of the second three; the blank one belongs to the first.
    assert (found["n_scored"], found["n_unscored"]) == (6, 3)


def test_examples_for_a_judge_are_labelled_by_relevance(two_corpora: Path) -> None:
    documents = list(preference_dataset(dataset="dream")["test"])
    (dialogue, *_) = cgdialog.read_preferences("dream")
    points = 0
    for row in dialogue.comparisons:
        good = {"first": (OPTIONS[0], OPTIONS[2]), "second": (OPTIONS[1], OPTIONS[2])}
        points += sum(vote in good[side] for side in good if getattr(row, side) == "human" for vote in row.votes["relevance"])
    assert documents[0]["rating"] == pytest.approx(points / 9)
    assert documents[0]["question"].startswith("Background info: none\nConversation:\nPerson ")


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["dream", "msc"])
def test_the_published_preferences_make_four_hundred_documents(name: str, data_dir: Path) -> None:
    documents = list(preference_dataset(dataset=name)["test"])
    assert len(documents) == 400
    assert sum(len(json.loads(document["compared"])) for document in documents) == 600
