"""The tasks over DBDC3 in the real host: a language model and a scorer as detectors, and the baseline beside them."""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.instance import Instance

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.corpora.readers import dbdc
from dialeval_plugin.hosts.lm_eval.model import DialogueMetricLM
from dialeval_plugin.hosts.lm_eval.tasks.breakdown import dbdc_dataset
from dialeval_plugin.hosts.lm_eval.validation import validate_tasks
from dialeval_plugin.judgement_tasks.breakdown import BREAKDOWNS, Detected
from dialeval_plugin.methods.judging.prompts import BREAKDOWN_PROMPTS
from dialeval_plugin.statistics.breakdown.detection import ALWAYS_BREAKDOWN, METRICS, breakdown_metrics, detections
from tests.hosts.through_lm_eval import LikelihoodLM, evaluate, metrics
from tests.refusals import refused

SYSTEMS = dbdc.SYSTEMS
WORDS = ("tea", "rain", "cats", "music", "trains", "bread")


def dialogue(system: str, split: str, number: int) -> dict[str, Any]:
    turns: list[dict[str, Any]] = [{"speaker": "S", "utterance": "Hello!", "annotations": []}]
    for place, word in enumerate(WORDS):
        turns.append({"speaker": "U", "utterance": f"Do you like {word}?", "annotations": []})
        said = "" if number == 1 and place == 3 else f"{word} " * (1 + (number + place) % 4)
        worse = (number * 7 + place * 5) % 30
        labels = "X" * worse + "T" * ((30 - worse) // 2) + "O" * (30 - worse - (30 - worse) // 2)
        turns.append({"speaker": "S", "utterance": said, "annotations": [{"breakdown": label} for label in labels]})
    return {"dialogue-id": f"{system}{split}{number}", "turns": turns}


@pytest.fixture
def small_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A zip of the published layout with twelve dialogues of every system, original annotations of yi only."""
    folder = tmp_path / "data" / dbdc.CORPUS.name
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / dbdc.FILE, "w") as archive:
        for system in SYSTEMS:
            for split in ("dev", "eval"):
                for number in range(12):
                    value = json.dumps(dialogue(system, split, number))
                    archive.writestr(f"DBDC3/dbdc3_revised/en/{split}/{system.upper()}_5/{number}.log.json", value)
                    if system == "yi":
                        archive.writestr(f"DBDC3/dbdc3/en/{split}/YI_5/{number}.log.json", value.replace('"X"', '"O"'))
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path / "data"))
    return folder / dbdc.FILE


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
        texts = [item.response.text for item in items]
        return [
            {"politeness": 2 - min(len(text), 30) / 15} if text else Unscored(Reason.EMPTY_INPUT, "blank") for text in texts
        ]

    def signature_fields(self) -> dict[str, Any]:
        return {"method": "politeness"}


def run(model: Any, task: str, **options: Any) -> dict[str, Any]:
    return metrics(evaluate(model, task, **options), task)


def turns(system: str, **options: Any) -> list[tuple[str, Example]]:
    return [(found.whole.id, response) for found in dbdc.read(system, **options) for response in found.responses]


def test_a_language_model_is_judged_by_the_challenges_metrics(small_zip: Path) -> None:
    model = Detector()
    found = run(model, "dbdc_yi")
    rated = turns("yi")
    said = [model.distribution(response.response.text) for _, response in rated]
    counts = [dbdc.counts(response) for _, response in rated]
    clusters = [id for id, _ in rated]
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
    assert isinstance(BREAKDOWNS.value(items, "f1_b_ci_low"), float)
    assert BREAKDOWNS.value(shuffled, "f1_b_ci_low") == BREAKDOWNS.value(items, "f1_b_ci_low")
    assert BREAKDOWNS.counts(shuffled)[1] == 1
    nothing = [item._replace(distribution=None) for item in items]
    assert BREAKDOWNS.value(nothing, "accuracy") == "undefined (no annotated turn has an answer)"


def test_without_the_data_it_is_said_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    with refused(
        f"corpus 'dbdc3': DIALEVAL_DATA_DIR is '{tmp_path}', which has no folder 'dbdc3'. "
        "Put the corpus there, or unset the variable to use the cache.",
        MissingPrerequisite,
    ):
        dbdc_dataset(dataset="yi")
    states = {found.name: found.state for found in validate_tasks(tasks_path() / "dbdc")}
    assert states == {"dbdc": "ok", **{f"dbdc_{system}": "absent" for system in SYSTEMS}}


def test_with_the_data_every_task_builds(small_zip: Path) -> None:
    found = list(validate_tasks(tasks_path() / "dbdc"))
    assert {entry.state for entry in found} == {"ok"}
    assert [entry.detail for entry in found if entry.name == "dbdc_yi"] == ["72 documents, 0 examples"]
    with pytest.raises(InputError, match=r"^dbdc3: there is no annotations 'new'. Known are: revised, original.$"):
        dbdc_dataset(dataset="yi", annotations="new")


@pytest.mark.real_data
def test_what_calling_every_turn_a_breakdown_earns(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(data_dir))
    found = {}
    for system in SYSTEMS:
        counts = [dbdc.counts(response) for _, response in turns(system)]
        metrics = breakdown_metrics([ALWAYS_BREAKDOWN] * 500, counts)
        found[system] = tuple(round(metrics[name].value or 0, 3) for name in ("f1_b", "f1_pb_b"))
    assert found == {"cic": (0.636, 0.913), "iris": (0.597, 0.871), "tktk": (0.366, 0.75), "yi": (0.584, 0.895)}
