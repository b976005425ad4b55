"""Training on the embedded corpus with a tiny encoder: every recipe, leaks, what it refuses, and what is measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from scipy.special import expit
from sentence_transformers import SentenceTransformer
from transformers import EvalPrediction

from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.methods.slide.data import UNRELATED
from dialeval_plugin.methods.slide.fusion import DistanceRange
from dialeval_plugin.methods.slide.judging import PairJudgement
from dialeval_plugin.methods.slide.losses import RANKING_SCALE
from dialeval_plugin.methods.slide.model import BLEND_BEFORE_FIT, DisentanglingHead, SmallModel, TrainedSmallModel
from dialeval_plugin.methods.slide.stages import NO_RESPONSE, RECIPES, measure
from dialeval_plugin.methods.slide.training import SlideTrainingOptions, best_threshold, fit_blend, train, validate
from dialeval_plugin.training.checkpoints import read_history
from tests.refusals import refused

SETS = [
    *mini.read_response_sets("train")[:10],
    *(ResponseSet(item.id, item.context, item.positive) for item in mini.read_response_sets("train")[10:24]),
]


def options(encoder: Path, recipe: str = "default", n_epochs: int = 2) -> SlideTrainingOptions:
    return SlideTrainingOptions(recipe, str(encoder), n_epochs, validation_fraction=0.3, precision="float32")


@pytest.mark.long
@pytest.mark.parametrize("recipe", ["default", "paper", "code"])
def test_every_recipe_ends_with_a_folder_that_opens(recipe: str, tiny_encoder: Path, tmp_path: Path) -> None:
    record = train(SETS, tmp_path / "slm", options(tiny_encoder, recipe, 1)).record
    assert record["counts"]["n_training_contexts"] == 21
    assert record["counts"]["n_validation_contexts"] == 3
    variants, kinds = ("slm", "slm_probability", "slm_distance"), ("positive", "adversarial", "random", "overall")
    assert set(record["validation"]) == {f"{variant}_{kind}" for variant in variants for kind in kinds}
    assert all(0 <= value <= 100 for value in record["validation"].values())
    assert {path.suffix for path in (tmp_path / "slm").rglob("*") if path.is_file()} <= {".json", ".safetensors", ".txt"}
    assert SentenceTransformer(str(tmp_path / "slm")).encode(["Hello."]).shape == (1, 16)
    loaded = TrainedSmallModel.load(str(tmp_path / "slm"))
    assert loaded.model.config.recipe == recipe
    assert loaded.distance_range.low < loaded.distance_range.high
    assert [row.stage for row in read_history(tmp_path / "slm")] == [stage.kind for stage in RECIPES[recipe].stages]


@pytest.mark.long
def test_the_default_recipe_moves_the_encoder_and_blends_vectors_words_and_cosine_by_fitted_weights(
    tiny_encoder: Path, tiny_slm: Path, tmp_path: Path
) -> None:
    train(SETS, tmp_path / "slm", options(tiny_encoder, n_epochs=1))
    model = TrainedSmallModel.load(str(tmp_path / "slm")).model
    weights = model.head.blend.double().numpy()
    # Of one part each: of several the blend is not that of the means.
    pairs = [(item.context, response) for item in SETS[:3] for response in item.positive if len(response) < 62]
    assert len(pairs) > 5
    assert 0 not in weights[2:]
    columns = model.log_odds(pairs)
    np.testing.assert_allclose(model.judge(pairs).probability, expit(columns @ weights[:3] + weights[3]), atol=1e-6)
    with torch.no_grad():
        texts = model.texts.contexts([context for context, _ in pairs]), model.texts.responses([text for _, text in pairs])
        vectors = model.embed([context.ids for context in texts[0]]), model.embed(texts[1])
    cosine = torch.nn.functional.cosine_similarity(*vectors).numpy()
    np.testing.assert_allclose(columns[:, 2], RANKING_SCALE * cosine, atol=1e-4)
    before = SentenceTransformer(str(tiny_encoder), device="cpu")[0].auto_model.state_dict()
    trained, frozen = "encoder.layer.0.output.dense.weight", "embeddings.word_embeddings.weight"
    assert not torch.allclose(before[trained], model.transformer.state_dict()[trained])
    assert before[frozen].equal(model.transformer.state_dict()[frozen])
    with refused("DisentanglingHead: no lexical features were given. Make them with head.lexical.features."):
        model.head(torch.zeros(1, 16), torch.zeros(1, 16))
    with refused("DisentanglingHead: has no lexical classifier. Choose probability_from='interaction+lexical'."):
        TrainedSmallModel.load(str(tiny_slm)).model.log_odds([(("Hi.",), "Hello.")])


@pytest.mark.long
def test_contexts_of_the_evaluation_are_left_out_and_counted(
    tiny_encoder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    planted = ResponseSet("other id", tuple(f" {turn} ".upper() for turn in SETS[0].context), ("Yes.",), ("No.",))
    record = train(SETS, tmp_path / "slm", options(tiny_encoder, n_epochs=1), evaluation=list(planted.examples())).record
    assert record["counts"]["n_training_contexts"] + record["counts"]["n_validation_contexts"] == len(SETS) - 1
    example = " / ".join(SETS[0].context)[:80]
    assert caplog.messages[0] == (
        f"1 of {len(SETS)} training contexts are in the evaluation data too, or have a part of it, and are left out, "
        f"for example {example!r}"
    )


@pytest.mark.parametrize(
    ("sets", "changes", "message"),
    [
        (SETS, {"recipe": "best"}, "training: recipe is 'best'. Give one of paper, code, default."),
        (SETS, {"n_epochs": 0}, "epochs: expected at least 1, got 0."),
        (
            SETS[10:],
            {},
            "training data: 0 contexts have both positive and adversarial responses, at least 2 are needed. "
            "Add a file in DailyDialog++'s layout that has both.",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused(
    sets: list[ResponseSet], changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with refused(message):
        train(sets, tmp_path / "slm", SlideTrainingOptions(**changes))


def test_the_best_threshold_separates_what_can_be_separated() -> None:
    assert best_threshold(np.array([0.8, 0.9]), np.array([0.1, 0.2])) == pytest.approx(0.5)
    # 0.3 is on the wrong side whatever the threshold; between 0.3 and 0.6 only that one is lost.
    assert best_threshold(np.array([0.3, 0.6, 0.9]), np.array([0.1, 0.2, 0.35])) == pytest.approx(0.25)
    assert best_threshold(np.array([0.5]), np.array([0.5])) == 0.5


class KnownJudgements:
    """Stands for a small model that gives each response a known probability, and words and vectors that say the same."""

    def __init__(self, of: dict[str, float], head: DisentanglingHead | None = None) -> None:
        self.of, self.head = of, head

    def judge(self, pairs: list[tuple[tuple[str, ...], str]]) -> PairJudgement:
        probability = np.array([self.of[response] for _, response in pairs])
        return PairJudgement(1 - probability, probability, np.zeros(len(pairs)), np.zeros(len(pairs)))

    def log_odds(self, pairs: list[tuple[tuple[str, ...], str]]) -> np.ndarray:
        return np.array([[self.of[response], 0.0, 0.0] for _, response in pairs])


KINDS = ResponseSet("a", ("Is it far?",), ("p1", "p2", "p3", "p4"), ("a1", "a2"), ("r1", "r2"))


@pytest.mark.parametrize(
    ("unrelated", "threshold", "positive", "random"), [(False, 0.3, 100.0, 0.0), (True, 0.508, 75.0, 50.0)]
)
def test_the_threshold_lets_a_share_of_the_positive_responses_pass_where_random_ones_count(
    unrelated: bool, threshold: float, positive: float, random: float
) -> None:
    known = {"p1": 0.4, "p2": 0.9, "p3": 0.8, "p4": 0.95, "a1": 0.1, "a2": 0.2, "r1": 0.5, "r2": 0.6}
    model = cast("SmallModel", KnownJudgements(known))
    figures, thresholds = validate(model, [KINDS], DistanceRange(0.0, 1.0), unrelated=unrelated)
    # The 9 % quantile of four responses is 27 % of the way from the lowest to the next.
    assert thresholds["slm_probability"] == pytest.approx(threshold)
    expected = {"positive": positive, "adversarial": 100.0, "random": random, "overall": (positive + 100) / 2}
    assert {name: figures[f"slm_probability_{name}"] for name in expected} == expected
    without = replace(KINDS, random=())
    assert "slm_random" not in validate(model, [without], DistanceRange(0.0, 1.0), unrelated=unrelated)[0]


def test_responses_that_do_not_fit_count_as_much_in_the_blend_as_those_that_do() -> None:
    head = DisentanglingHead(4, "full_width", "interaction+lexical+cosine", vocabulary_size=3)
    assert head.blend.tolist() == [*BLEND_BEFORE_FIT, 0.0, 0.0]
    # One positive among nine that are wrong, all alike: the balanced answer is even odds.
    sets = [replace(KINDS, positive=("p",), adversarial=("n",) * 4, random=("n",) * 5)] * 50
    fit_blend(cast("SmallModel", KnownJudgements({"p": 0.0, "n": 0.0}, head)), sets)
    assert head.blend.tolist() == pytest.approx([1.0, 0.5, 0.0, 0.0], abs=1e-4)


def test_a_triplet_counts_within_its_context_only() -> None:
    label = np.array([[1, 0, 0], [1, 0, NO_RESPONSE]])
    # The first positive is nearer than one of its two negatives, the second than its only one; the padding is no response.
    distance = np.array([[0.5, 0.9, 0.1], [0.2, 0.3, -100.0]])
    probability = np.array([[0.9, 0.2, 0.7], [0.4, 0.1, -100.0]])
    found = measure(EvalPrediction(np.stack([probability, distance], axis=-1), label))
    accuracies = {"accuracy_positive": 50.0, "accuracy_adversarial": 200 / 3, "accuracy": 175 / 3}
    assert found == pytest.approx({**accuracies, "auroc": 500 / 6, "triplet_accuracy": 200 / 3})
    label[0, 2] = UNRELATED
    found = measure(EvalPrediction(np.stack([probability, distance], axis=-1), label))
    kinds = {"accuracy_adversarial": 100.0, "accuracy": 75.0, "accuracy_random": 0.0, "triplet_accuracy": 100.0}
    assert {name: found[name] for name in (*kinds, "auroc")} == pytest.approx({**kinds, "auroc": 500 / 6})
    without_distances = measure(EvalPrediction(np.array([[0.9], [0.2]]), np.array([1, 0])))
    assert "triplet_accuracy" not in without_distances
