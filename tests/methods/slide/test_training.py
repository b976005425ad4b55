"""Training on the embedded corpus with a tiny encoder: every recipe, kills, leaks, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import expit
from sentence_transformers import SentenceTransformer

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.methods.slide.model import BLEND_BEFORE_FIT, TrainedSmallModel
from dialeval_plugin.methods.slide.training import TrainingOptions, best_threshold, train

SETS = [
    *mini.read_response_sets("train")[:10],
    *(ResponseSet(item.id, item.context, item.positive) for item in mini.read_response_sets("train")[10:24]),
]


@pytest.fixture(autouse=True)
def own_last_slm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))


def options(encoder: Path, recipe: str = "default", n_epochs: int = 2) -> TrainingOptions:
    return TrainingOptions(recipe, str(encoder), n_epochs, validation_fraction=0.3, precision="float32")


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("recipe", ["default", "paper", "code"])
def test_every_recipe_ends_with_a_folder_that_opens(recipe: str, tiny_encoder: Path, tmp_path: Path) -> None:
    trained = train(SETS, tmp_path / "slm", options(tiny_encoder, recipe, 1))

    assert (trained.n_training, trained.n_validation) == (21, 3)
    assert set(trained.validation) == {
        f"{variant}_{kind}"
        for variant in ("slm", "slm_probability", "slm_distance")
        for kind in ("positive", "adversarial", "overall")
    }
    assert all(0 <= value <= 100 for value in trained.validation.values())
    assert {path.suffix for path in (tmp_path / "slm").rglob("*") if path.is_file()} <= {".json", ".safetensors", ".txt"}
    assert SentenceTransformer(str(tmp_path / "slm")).encode(["Hello."]).shape == (1, 16)
    loaded = TrainedSmallModel.load(str(tmp_path / "slm"))
    assert loaded.model.config.recipe == recipe
    assert loaded.distance_range.low < loaded.distance_range.high
    assert (tmp_path / "xdg" / "dialeval" / "last_slm").read_text() == f"{(tmp_path / 'slm').resolve()}\n"


def test_the_probability_blends_vectors_and_words_by_fitted_weights(tiny_encoder: Path, tmp_path: Path) -> None:
    train(SETS, tmp_path / "slm", options(tiny_encoder, n_epochs=1))

    model = TrainedSmallModel.load(str(tmp_path / "slm")).model
    weights = model.head.blend.double().numpy()
    pairs = [(item.context, response) for item in SETS[:3] for response in item.positive]
    assert weights.tolist() != list(BLEND_BEFORE_FIT)
    np.testing.assert_allclose(
        model.judge(pairs).probability, expit(model.log_odds(pairs) @ weights[:2] + weights[2]), atol=1e-6
    )


def test_a_model_without_lexical_classifier_has_no_two_log_odds(tiny_slm: Path) -> None:
    with pytest.raises(InputError) as refused:
        TrainedSmallModel.load(str(tiny_slm)).model.log_odds([(("Hi.",), "Hello.")])
    assert str(refused.value) == (
        "DisentanglingHead: has no lexical classifier. Choose probability_from='interaction+lexical'."
    )


def test_a_lexical_model_never_scores_without_its_features(tiny_encoder: Path, tmp_path: Path) -> None:
    train(SETS, tmp_path / "slm", options(tiny_encoder, n_epochs=1))
    model = TrainedSmallModel.load(str(tmp_path / "slm")).model
    with pytest.raises(InputError) as refused:
        model.head(torch.zeros(1, 16), torch.zeros(1, 16))
    assert str(refused.value) == (
        "DisentanglingHead: no lexical features were given. Make them with SmallModel.lexical_features."
    )


def test_training_moves_encoder_and_head(tiny_encoder: Path, tmp_path: Path) -> None:
    train(SETS, tmp_path / "slm", options(tiny_encoder))
    before = SentenceTransformer(str(tiny_encoder), device="cpu")[0].auto_model.state_dict()
    after = TrainedSmallModel.load(str(tmp_path / "slm")).model.transformer.state_dict()

    name = "encoder.layer.0.output.dense.weight"
    assert not np.allclose(before[name].numpy(), after[name].numpy())
    frozen = "embeddings.word_embeddings.weight"
    assert np.array_equal(before[frozen].numpy(), after[frozen].numpy())


def test_the_same_seed_gives_the_same_files(tiny_encoder: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        train(SETS, tmp_path / name, options(tiny_encoder))

    assert files_of(tmp_path / "first") == files_of(tmp_path / "second")


TRAIN = """
import sys
from pathlib import Path
from dialeval_plugin.methods.slide.training import train
from tests.methods.slide.test_training import SETS, options

if __name__ == "__main__":
    train(SETS, Path(sys.argv[2]), options(Path(sys.argv[1]), n_epochs=4))
"""


def test_a_killed_training_goes_on_to_the_same_files(tiny_encoder: Path, tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]

    def start(folder: Path) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(root)}
        return subprocess.Popen(
            [sys.executable, "-c", TRAIN, str(tiny_encoder), str(folder)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    assert start(tmp_path / "whole").wait(timeout=300) == 0
    killed = start(tmp_path / "killed")
    # The second stage has written its first checkpoint: the first stage is finished, the second is half done.
    deadline = time.monotonic() + 300
    while not list((tmp_path / "killed" / ".training" / "joint").glob("checkpoint-*/trainer_state.json")):
        assert killed.poll() is None, "training ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "killed" / "slm.json").exists()

    assert start(tmp_path / "killed").wait(timeout=300) == 0
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "whole")


def test_an_unfinished_run_with_other_options_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    workplace = tmp_path / "slm" / ".training"
    workplace.mkdir(parents=True)
    (workplace / "run.json").write_text(json.dumps({"options": {}, "recipe": "", "data": "", "version": "0.1.0"}))
    (workplace / "finished.safetensors").touch()
    with pytest.raises(InputError) as refused:
        train(SETS, tmp_path / "slm", options(tiny_encoder))
    assert str(refused.value) == (
        f"{workplace}: holds an unfinished run with other options and recipe and data. "
        "Repeat that run's command to finish it, or delete the folder to start anew."
    )


def test_a_finished_model_is_not_overwritten(tiny_slm: Path, tiny_encoder: Path) -> None:
    with pytest.raises(InputError) as refused:
        train(SETS, tiny_slm, options(tiny_encoder))
    assert str(refused.value) == f"{tiny_slm}: holds a trained model already. Choose another folder, or delete this one."


def test_contexts_of_the_evaluation_are_left_out_and_counted(
    tiny_encoder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    planted = ResponseSet("other id", tuple(f" {turn} ".upper() for turn in SETS[0].context), ("Yes.",), ("No.",))
    trained = train(SETS, tmp_path / "slm", options(tiny_encoder, n_epochs=1), evaluation=list(planted.examples()))

    assert trained.n_training + trained.n_validation == len(SETS) - 1
    example = " / ".join(SETS[0].context)[:80]
    assert caplog.messages[0] == (
        f"1 of {len(SETS)} training contexts are in the evaluation data too, or have a part of it, and are left out, "
        f"for example {example!r}"
    )


def test_data_without_adversarial_responses_do_not_suffice(tiny_encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        train(SETS[10:], tmp_path / "slm", options(tiny_encoder))
    assert str(refused.value) == (
        "training data: 0 contexts have both positive and adversarial responses, at least 2 are needed. "
        "Add a file in DailyDialog++'s layout that has both."
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recipe": "best"}, "recipe: there is no 'best'. Choose one of paper, code, default."),
        ({"n_epochs": 0}, "epochs: expected at least 1, got 0."),
    ],
)
def test_unknown_recipes_are_refused(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        train(SETS, tmp_path / "slm", TrainingOptions(**changes))  # type: ignore[arg-type]
    assert str(refused.value) == message


def test_the_best_threshold_separates_what_can_be_separated() -> None:
    assert best_threshold(np.array([0.8, 0.9]), np.array([0.1, 0.2])) == pytest.approx(0.5)
    # 0.3 is on the wrong side whatever the threshold; between 0.3 and 0.6 only that one is lost.
    assert best_threshold(np.array([0.3, 0.6, 0.9]), np.array([0.1, 0.2, 0.35])) == pytest.approx(0.25)
    assert best_threshold(np.array([0.5]), np.array([0.5])) == 0.5
