"""CausalScore's classifiers over a general evaluator's vectors: what they weigh, how they are trained, stored and opened."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from dialeval_plugin import load_scorer
from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.corpora.readers.cgdialog import CausePair
from dialeval_plugin.methods.causalscore.classifiers import TurnVectors, VectorClassifier, fit_on_vectors, vector_features
from dialeval_plugin.methods.causalscore.data import CausalSources
from dialeval_plugin.methods.causalscore.model import CausalModel
from dialeval_plugin.methods.causalscore.scorer import CausalScorer
from dialeval_plugin.methods.causalscore.training import CausalTrainingOptions, train
from dialeval_plugin.methods.general.model import TrainedGeneral
from dialeval_plugin.models.folders import PRETRAINED, write_manifest
from dialeval_plugin.models.runtimes import torch_runtime
from dialeval_plugin.models.runtimes.runtime import RuntimeChoice
from dialeval_plugin.training.run import TrainingResult
from tests.refusals import refusal

TOPICS = ("plums", "buses", "chess", "rain", "bread", "boats", "keys", "cats", "shoes", "maps", "tea", "glue")


def _pair(number: int) -> CausePair:
    topic, other = TOPICS[number % 12], TOPICS[(number + 5) % 12]
    turns = (f"I like {topic} a lot.", "Hm.", f"And {other}?", "Well, who knows.")
    return CausePair(f"{number}", tuple(map(Turn, turns)), Turn(f"{topic} are nice, {number} of them, {topic} indeed."), (0,))


PAIRS = [_pair(number) for number in range(36)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> TrainingResult:
    folder = tmp_path_factory.mktemp("vectors")
    # A copy is no bundled model.
    shutil.copytree(PRETRAINED / "general", folder / "own")
    options = CausalTrainingOptions("vectors", str(folder / "own"), validation_fraction=0.3)
    return train(CausalSources(PAIRS), folder / "model", options)


def test_features_are_cosines_without_what_all_texts_share_and_lengths(tiny_general: Path) -> None:
    vectors = TurnVectors(tiny_general, RuntimeChoice(device="cpu"))
    texts = ["I like plums.", "Hm.", "Plums are nice."]
    found = vector_features(vectors.of(texts), np.array([[0, 1, 2]]))[0]
    model = TrainedGeneral.load(str(tiny_general), device="cpu").model
    triples = [((texts[earlier],), texts[later], ()) for earlier, later in ((0, 2), (1, 2), (0, 1))]
    with torch.inference_mode():
        by_judge = [model.judge([triple]).experts["relevance"][0, 0] for triple in triples]
    assert found[[0, 5, 9]] == pytest.approx(by_judge, abs=1e-6)
    n_tokens = [len(ids) for ids in model.texts.responses(texts)]
    assert found[[3, 4, 8]] == pytest.approx(np.log1p([n_tokens[0], n_tokens[2], n_tokens[1]]))
    assert vector_features(vectors.of(texts), np.array([[0, 2]]))[0] == pytest.approx(found[:5])


@pytest.mark.long
def test_each_turn_is_embedded_once_whatever_is_asked_about_it(
    trained: TrainingResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded: list[int] = []

    def counting(encoder: object, ids: list[list[int]]) -> torch.Tensor:
        embedded.append(len(ids))
        return torch.ones(len(ids), 384)

    scorer = CausalScorer(str(trained.folder), device="cpu")
    monkeypatch.setattr(torch_runtime, "embed", counting)
    turns = [f"{topic} {number}" for number in range(3) for topic in TOPICS]
    (found,) = scorer.dependence([Example.from_texts(turns, "Tea.")])
    assert len(found.pairs) > 100
    assert embedded == [37]


@pytest.mark.long
def test_scores_do_not_depend_on_what_is_scored_beside_them(trained: TrainingResult) -> None:
    scorer = CausalScorer(str(trained.folder), device="cpu")
    examples = [Example(f"{number}", pair.context, pair.response) for number, pair in enumerate(PAIRS)]
    together = scorer.score(examples).columns["causalscore"]
    assert [scorer.score([example]).columns["causalscore"][0] for example in examples] == pytest.approx(together, abs=1e-6)
    assert len(set(together)) > 5


def test_training_finds_what_words_the_cause_and_the_response_share(trained: TrainingResult) -> None:
    record = trained.record
    assert record["unconditional"]["validation"]["auroc"] > 0.7
    assert record["rounds"][0]["validation"]["auroc"] > 0.7
    assert record["best_round"] == 0
    assert record["rounds"][0]["n_rows"] == 2 * record["counts"]["n_training_pairs"]


def test_a_fit_is_the_logistic_regression_of_its_features() -> None:
    vectors = TurnVectors(PRETRAINED / "general", RuntimeChoice(device="cpu"))
    rows = [(pair.context[0].text, other.response.text) for pair in PAIRS for other in PAIRS[:12]]
    labels = [int(earlier.split()[2] in later) for earlier, later in rows]
    found = fit_on_vectors(vectors, rows, labels)
    texts = [text for row in rows for text in row]
    said = found.probabilities(texts, np.arange(len(texts)).reshape(-1, 2)).dependent
    # A fit with an offset gives each label its share, but for the penalty.
    assert said.mean() == pytest.approx(np.mean(labels), abs=0.02)
    assert said[np.array(labels) == 1].mean() > said[np.array(labels) == 0].mean() + 0.2


@pytest.mark.long
def test_the_evaluator_is_copied_into_the_folder_unless_it_is_in_the_box(trained: TrainingResult, tmp_path: Path) -> None:
    stored = json.loads((trained.folder / "causalscore.json").read_text())["vectors"]
    assert stored["general"] is None
    shutil.copytree(trained.folder, tmp_path / "elsewhere")
    example = [Example.from_texts(["I like plums."], "Plums are nice.")]
    here, there = (CausalScorer(str(folder), device="cpu") for folder in (trained.folder, tmp_path / "elsewhere"))
    assert here.score(example).columns == there.score(example).columns
    assert here.model_hash == there.model_hash
    # A run that was killed while it copied the evaluator could not be resumed: the folder was there.
    (tmp_path / "killed" / "general").mkdir(parents=True)
    here.model.save(tmp_path / "killed")
    assert CausalScorer(str(tmp_path / "killed"), device="cpu").score(example).columns == here.score(example).columns

    weights = np.zeros(6)
    weights[0] = 3.0
    in_box = VectorClassifier(TurnVectors(PRETRAINED / "general", RuntimeChoice(device="cpu")), weights)
    model = CausalModel(here.model.config, in_box, VectorClassifier(in_box.vectors, np.zeros(13)), frozenset())
    model.save(tmp_path / "box")
    assert json.loads((tmp_path / "box" / "causalscore.json").read_text())["vectors"]["general"] == "general"
    assert not (tmp_path / "box" / "general").exists()
    scores = CausalScorer(str(tmp_path / "box"), variant="unconditional", device="cpu").score(example)
    relevance = load_scorer("general", device="cpu").score(example).columns["relevance"][0]
    assert relevance is not None
    assert scores.n_scored == 1


def test_another_evaluator_in_its_place_is_refused(trained: TrainingResult, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(trained.folder, folder)
    (folder / "general" / "general.json").write_text((folder / "general" / "general.json").read_text() + "\n")
    write_manifest(folder / "general")
    write_manifest(folder)
    assert refusal(CausalScorer, str(folder), error=ModelLoadError) == (
        f"{folder}: was trained on another model than the one in {folder / 'general'}. "
        "Install the release that it was trained with, or train it again with `dialeval train independence`."
    )
    settings = folder / "causalscore.json"
    settings.write_text(settings.read_text().replace('"general": null', '"general": "specific"'))
    write_manifest(folder)
    assert refusal(CausalScorer, str(folder), error=ModelLoadError) == (
        f"{folder}: needs the model 'specific', which is not bundled. Install the release that has it."
    )


def test_what_is_about_cross_encoders_is_refused(trained: TrainingResult, tiny_general: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"causalscore: layout is about cross-encoders, and .* has none\. Leave it out\."):
        CausalScorer(str(trained.folder), layout="literal", device="cpu")
    unlabelled = CausalSources(PAIRS, unlabelled=[PAIRS[0].context])
    assert refusal(train, unlabelled, tmp_path / "model", CausalTrainingOptions("vectors", str(tiny_general))) == (
        "unlabelled: the recipe 'vectors' has no self-training. Leave the unlabelled dialogues out."
    )
    options = CausalTrainingOptions("vectors", str(tiny_general), n_rounds=2)
    assert refusal(train, CausalSources(PAIRS), tmp_path / "model", options) == (
        "n_rounds: is about cross-encoders, and the recipe 'vectors' has none. Leave it out."
    )


def test_the_signature_says_how_turns_are_read_and_long_ones_are_counted(
    trained: TrainingResult, caplog: pytest.LogCaptureFixture
) -> None:
    scorer = CausalScorer(str(trained.folder), device="cpu")
    scores = scorer.score([Example.from_texts(["I like plums. " * 20, "Hm."], "Plums are nice.")])
    assert "recipe:vectors" in str(scores.signature)
    assert "layout:vectors|speakers:none|window:96+64|truncation:oldest" in str(scores.signature)
    assert scores.columns["n_cut"][0] > 0
    assert "a turn is longer than the window of 96+64 tokens, context and response, and was cut" in caplog.text
