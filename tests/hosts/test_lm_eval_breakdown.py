"""The tasks over DBDC3 in the real host: language models and scorers as detectors, and training one by the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.instance import Instance
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.corpora.readers import dbdc
from dialeval_plugin.hosts.lm_eval.model import DialogueMetricLM
from dialeval_plugin.hosts.lm_eval.tasks.breakdown import BREAKDOWNS, Detected, dbdc_dataset
from dialeval_plugin.methods.breakdown.calibration import Calibration
from dialeval_plugin.methods.breakdown.scorer import DialogueBreakdownScorer
from dialeval_plugin.methods.judging.prompts import BREAKDOWN_PROMPTS
from dialeval_plugin.statistics.breakdown import ALWAYS_BREAKDOWN, METRICS, breakdown_metrics, detections
from dialeval_plugin.training.checkpoints import read_history
from tests.hosts.through_lm_eval import LikelihoodLM, evaluate, metrics
from tests.refusals import refused
from tests.small_corpora import turns_of_mini, write_dbdc
from tests.tiny.breakdown import SIZES, TinyModels, mini_dialogues

SYSTEMS = dbdc.SYSTEMS


@pytest.fixture
def small_zip(own_data: Path) -> Path:
    return write_dbdc(own_data)


@pytest.fixture
def small_dbdc(own_data: Path) -> Path:
    return write_dbdc(own_data, ["cic"], 6, turns_of_mini)


class Detector(LikelihoodLM):
    """Answers every form with a probability that depends on the length of the response; none for a blank response."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []

    @staticmethod
    def distribution(response: str) -> tuple[float, float, float] | None:
        worse = min(len(response), 30) / 40
        return (0.8 - worse, 0.2, worse) if response else None

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        answers = []
        for request in requests:
            self.asked.append(request.args)
            forms = list(request.doc["choices"])
            place = forms.index(request.args[1].strip())
            found = self.distribution(request.doc["response"]["text"])
            # The model spreads its mass over spellings and other words.
            answers.append((-math.inf if found is None else math.log(0.5 * found[place % 3] / len(forms)), False))
        return answers


class Politeness(Scorer):
    """The shorter the better."""

    name = "politeness"
    columns = ("politeness",)
    range = (0.0, 2.0)
    positive_from = 0.5

    def score_batch(self, items: Any) -> list[Any]:
        lengths = [len(item.response.text) for item in items]
        return [{"politeness": 2 - min(n, 30) / 15} if n else Unscored(Reason.EMPTY_INPUT, "blank") for n in lengths]

    def signature_fields(self) -> dict[str, Any]:
        return {"method": "politeness"}


def run(model: Any, task: str, **options: Any) -> dict[str, Any]:
    return metrics(evaluate(model, task, **options), task)


def turns(system: str, **options: Any) -> list[tuple[str, Example]]:
    return [(found.whole.id, response) for found in dbdc.read(system, **options) for response in found.responses]


def test_a_language_model_is_judged_by_the_challenges_metrics(small_zip: Path) -> None:
    found, rated = run(Detector(), "dbdc_yi"), turns("yi")
    said = [Detector.distribution(response.response.text) for _, response in rated]
    counts, clusters = [dbdc.counts(response) for _, response in rated], [id for id, _ in rated]
    expected = breakdown_metrics(said, counts, clusters=clusters)
    always = breakdown_metrics([row and ALWAYS_BREAKDOWN for row in said], counts)
    assert 0 < (expected["f1_b"].value or 0) < 1
    for name in METRICS:
        assert found[name] == pytest.approx(expected[name].value, abs=1e-9)
        for bound in ("ci_low", "ci_high"):
            assert found[f"{name}_{bound}"] == pytest.approx(getattr(expected[name], bound), abs=1e-9)
        assert found[f"always_breakdown_{name}"] == pytest.approx(always[name].value, abs=1e-9)
    assert (found["n_scored"], found["n_unscored"]) == (71, 1)


def test_the_group_is_the_mean_of_the_systems(small_zip: Path) -> None:
    results = evaluate(Detector(), "dbdc")["results"]
    values = [results[f"dbdc_{system}"]["f1_b,none"] for system in SYSTEMS]
    assert results["dbdc"]["f1_b,none"] == pytest.approx(sum(values) / 4)


@pytest.mark.long
def test_answers_by_words_give_the_same_and_the_original_annotations_others(small_zip: Path) -> None:
    letters = run(Detector(), "dbdc_yi")
    model = Detector()
    words = run(model, "dbdc_yi", metadata={"answers": "words"})
    assert {continuation for _, continuation in model.asked} == {f" {form}" for form in BREAKDOWN_PROMPTS["words"].forms}
    assert words["jsd_nb_pb_b"] == pytest.approx(letters["jsd_nb_pb_b"])
    original = run(Detector(), "dbdc_yi", metadata={"annotations": "original"})
    assert original["always_breakdown_f1_b"] == 0.0 != letters["always_breakdown_f1_b"]


def test_a_scorer_is_a_detector_that_never_says_possibly(small_zip: Path) -> None:
    found = run(DialogueMetricLM(Politeness()), "dbdc_cic")
    rated = turns("cic")
    scores = Politeness().score([response for _, response in rated]).values
    # The range is 0 to 2 and a response is good from 0.5, which comes to P(NB) = 0.5.
    units = [None if score is None else score / 2 for score in scores]
    good = [None if unit is None else 2 * unit if unit < 0.25 else 0.5 + (unit - 0.25) / 1.5 for unit in units]
    said = detections([None if value is None else 1 - value for value in good])
    expected = breakdown_metrics(said.distributions, [dbdc.counts(response) for _, response in rated], labels=said.labels)
    for name in METRICS:
        assert found[name] == pytest.approx(expected[name].value, abs=1e-9)
    assert found["n_unscored"] == 1


def test_examples_come_from_the_development_data_with_their_labels(small_zip: Path) -> None:
    model = Detector()
    evaluate(model, "dbdc_iris", num_fewshot=3, limit=4)
    (prompt, *_) = {prompt for prompt, _ in model.asked}
    assert prompt.count("Example\nConversation:\n") == 3
    assert prompt.startswith(BREAKDOWN_PROMPTS["letters"].instruction)
    labels = {response.response.text: dbdc.counts(response) for _, response in turns("iris", split="dev")}
    assert len(labels) > 4
    assert all(block.rpartition(" ")[2] in {"O", "T", "X"} for block in prompt.split("\n\n")[:-1])


def test_the_result_does_not_depend_on_the_order_of_the_turns(small_zip: Path) -> None:
    items = [Detected(Detector.distribution(response.response.text), dbdc.counts(response), id) for id, response in turns("yi")]
    shuffled = [tuple(item) for item in items[::2] + items[1::2]]
    assert isinstance(BREAKDOWNS.values(items)["f1_b_ci_low"], float)
    assert BREAKDOWNS.values(shuffled)["f1_b_ci_low"] == BREAKDOWNS.values(items)["f1_b_ci_low"]
    assert BREAKDOWNS.counts(shuffled)[1] == 1
    nothing = [item._replace(distribution=None) for item in items]
    assert BREAKDOWNS.values(nothing)["accuracy"] == "undefined (no annotated turn has an answer)"


def test_unknown_annotations_are_refused(small_zip: Path) -> None:
    with refused("dbdc3: there is no annotations 'new'. Known are: revised, original."):
        dbdc_dataset(dataset="yi", annotations="new")


@pytest.mark.long
@pytest.mark.parametrize("cut", [0.5, 0.2])
def test_the_scorer_is_a_detector_on_the_tasks(tiny_breakdown_models: TinyModels, small_dbdc: Path, cut: float) -> None:
    options = {"model": str(tiny_breakdown_models.odin), "method": "odin_g", "cut": cut, "device": "cpu"}
    found = run(DialogueMetricLM("dialogue_breakdown", **options), "dbdc_cic")
    responses = [response for _, response in turns("cic")]
    scores = DialogueBreakdownScorer(**options).score(responses).values  # type: ignore[arg-type]
    # The host's answer is stretched so that the cut comes to 0.5, which is where the hard label changes.
    stretched = [score and (0.5 * score / cut if score < cut else 0.5 + 0.5 * (score - cut) / (1 - cut)) for score in scores]
    said = detections(stretched)
    expected = breakdown_metrics(said.distributions, [dbdc.counts(one) for one in responses], labels=said.labels)
    for name in METRICS:
        assert found[name] == pytest.approx(expected[name].value, abs=1e-9), name
    assert said.labels == [None if score is None else 2 if score > cut else 0 for score in scores]
    assert (found["n_unscored"], found["n_scored"]) == (6, len(responses) - 6)


def test_the_command_trains_calibrates_and_scores(
    tiny_breakdown_models: TinyModels, small_dbdc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [json.dumps({"turns": [said.text for said in one.turns]}) + "\n" for one in mini_dialogues("train", 12)]
    (tmp_path / "train.jsonl").write_text("".join(lines[:9]), encoding="utf-8")
    (tmp_path / "validation.jsonl").write_text("".join(lines[8:]), encoding="utf-8")
    sizes = {"layers": 1, "width": 16, "vocabulary": 300, "block": 64, "epochs": 2, "batch-size": 4}
    arguments = ["--data", str(tmp_path / "train.jsonl"), "--validation", str(tmp_path / "validation.jsonl")]
    arguments += [part for name, value in sizes.items() for part in (f"--{name}", str(value))]
    runner = CliRunner()
    trained = runner.invoke(app, ["train", "language-model", *arguments, "--output", str(tmp_path / "lm")])
    assert trained.exit_code == 0, trained.output
    shown = trained.stdout.splitlines()
    record = json.loads((tmp_path / "lm" / "language_model.json").read_text(encoding="utf-8"))
    n_tokens = record["training"]["counts"]["n_training_tokens"]
    assert shown[0] == f"{tmp_path / 'lm'}: trained on 8 dialogues ({n_tokens} tokens), validated on 4"
    assert shown[1].split("  ")[-1].strip() == "perplexity"
    assert [float(line.split()[-1]) for line in shown[2:]] == [
        round(row.figures["perplexity"], 2) for row in read_history(tmp_path / "lm")
    ]

    calibrated = runner.invoke(
        app,
        [
            *["train", "breakdown", "--calibration", str(small_dbdc), "--inside", "DBDC3/dbdc3_revised/en/dev/"],
            *["--model", str(tmp_path / "lm"), "--output", str(tmp_path / "own.json"), "--device", "cpu"],
        ],
    )
    assert calibrated.exit_code == 0, calibrated.output
    own = Calibration.load(tmp_path / "own.json")
    responses = [response for _, response in turns("cic", split="dev")]
    assert calibrated.stdout.splitlines()[0] == f"{tmp_path / 'own.json'}: max_probability over {len(responses) - 6} responses"
    settings = {"calibration": str(tmp_path / "own.json"), "device": "cpu", "context": "pair"}
    scored = DialogueBreakdownScorer(str(tmp_path / "lm"), **settings).score(responses)  # type: ignore[arg-type]
    raw = [value for value in scored.columns["score"] if value is not None]
    extremes = own.ranges["max_probability"]["pair"]["mean"]
    assert (min(raw), max(raw)) == pytest.approx((extremes.low, extremes.high))
    assert SIZES["block"] == own.max_tokens


@pytest.mark.real_data
def test_what_calling_every_turn_a_breakdown_earns(data_dir: Path) -> None:
    found = {}
    for system in SYSTEMS:
        counts = [dbdc.counts(response) for _, response in turns(system)]
        metrics = breakdown_metrics([ALWAYS_BREAKDOWN] * 500, counts)
        found[system] = tuple(round(metrics[name].value or 0, 3) for name in ("f1_b", "f1_pb_b"))
    assert found == {"cic": (0.636, 0.913), "iris": (0.597, 0.871), "tktk": (0.366, 0.75), "yi": (0.584, 0.895)}
