"""The scorer `dre`: what is asked, how often, what comes of it, and what it refuses, on an SLM with random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.methods.judging.judge import MeasuredAccuracy
from dialeval_plugin.methods.slide.dre import DreScorer, DreVariant, measured_accuracy
from dialeval_plugin.methods.slide.fusion import Refinement
from dialeval_plugin.methods.slide.model import TrainedSmallModel
from dialeval_plugin.methods.slide.scorer import SlideScorer
from dialeval_plugin.models.folders import write_manifest
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel
from dialeval_plugin.version import __version__
from tests.refusals import refusal
from tests.tiny.models import write_tiny_slm

INTERIOR_MARK = "Influence degree"


def scripted_answer(prompt: str) -> str | Unscored:
    """Numbers that depend on the prompt alone; responses that say what shall go wrong."""
    if "refuse" in prompt:
        return "I'm sorry, but I cannot rate this."
    if "offline" in prompt:
        return Unscored(Reason.API_ERROR, "ConnectionError: gone")
    share = len(prompt) % 50 / 50
    if INTERIOR_MARK not in prompt:
        return "not a number" if "plain fails" in prompt else f"{5 * share:.1f}"
    if "halfway" in prompt:
        return " 4.0\n2. Influence degree:"
    if "forgets" in prompt:
        return "LLM Overall Score: 0.8"
    return f" {5 * share:.1f}\n2. Influence degree: {1 - share:.2f}"


@pytest.fixture
def llm() -> ScriptedLanguageModel:
    return ScriptedLanguageModel(scripted_answer)


def examples(*responses: str) -> list[Example]:
    turns = ["Where were you?", "At the market, they had plums.", "Did you buy any?"]
    responses = responses or tuple(f"Plums make good jam, {'really ' * (i % 5)}number {i}." for i in range(9))
    return [Example.from_texts(turns[: 1 + i % 3], response, id=str(i)) for i, response in enumerate(responses)]


@pytest.mark.parametrize("variant", ["dre", "in_dre", "ex_dre", "non_dre"])
def test_every_variant_asks_once_an_example_and_has_the_numbers_of_the_ablation(
    variant: DreVariant, tiny_slm: Path, llm: ScriptedLanguageModel
) -> None:
    scores = DreScorer(llm, str(tiny_slm), variant=variant).score(examples())
    assert scores.n_scored == 9
    assert scores.main == variant
    assert llm.batches == [9]
    assert all((INTERIOR_MARK in prompt) == (variant in {"dre", "in_dre"}) for prompt in llm.asked)
    together = DreScorer(llm, str(tiny_slm), ablation=True).score(examples())
    assert scores.values == pytest.approx(together.columns[variant])


@pytest.mark.parametrize("options", [{}, {"eq26": True}, {"clamp": True}, {"clamp": (1.0, 2.0)}, {"eq26": True, "clamp": True}])
def test_the_columns_follow_from_both_models_answers(
    options: dict[str, Any], tiny_slm: Path, llm: ScriptedLanguageModel
) -> None:
    scorer = DreScorer(llm, str(tiny_slm), ablation=True, **options)
    scores = scorer.score(examples())
    small = SlideScorer(str(tiny_slm), variant="slm").score(examples())
    assert llm.batches == [18]
    assert list(scores.columns) == [
        *("dre", "in_dre", "ex_dre", "non_dre", "llm", "influence", "coefficient"),
        *("slm_probability", "slm_distance", "slm", "context_tokens_cut", "response_tokens_cut"),
    ]
    for name in small.columns:
        assert scores.columns[name] == pytest.approx(small.columns[name], abs=1e-6)
    refinement: Refinement = scorer.refinement
    for row, plain_prompt in zip(scores.rows(), llm.asked[::2], strict=True):
        interior = refinement.interior(row["slm"], llm=row["llm"], influence=row["influence"])
        plain = refinement.plain(row["slm"], llm=float(str(scripted_answer(plain_prompt))))
        assert {name: row[name] for name in (*interior, *plain)} == pytest.approx({**interior, **plain})


def test_the_prompt_shows_the_small_models_numbers(tiny_slm: Path, llm: ScriptedLanguageModel) -> None:
    (row,) = DreScorer(llm, str(tiny_slm)).score(examples("A plum.")).rows()
    probability, slm = row["slm_probability"], row["slm"]
    assert f"Probability that the response is positive (0 to 1): {probability:.2f}\n" in llm.asked[0]
    assert f"1 the closest): {slm - probability:.2f}\n" in llm.asked[0]


def test_what_has_no_score_has_a_reason(tiny_slm: Path, llm: ScriptedLanguageModel) -> None:
    rows = examples("Fine.", "", "I refuse.", "We are offline.", "Only halfway.", "It forgets.", "plain fails")
    scores = DreScorer(llm, str(tiny_slm), ablation=True).score(rows)
    reasons = {index: item.reason.value for index, item in scores.unscored.items()}
    assert reasons == {1: "empty_input", 2: "refusal", 3: "api_error", 4: "truncated", 5: "parse_failure"}
    assert (scores.n_total, scores.n_scored) == (7, 2)
    assert scores.values[6] is not None
    assert (scores.columns["ex_dre"][6], scores.columns["non_dre"][6]) == (None, None)
    assert llm.batches == [12]  # nobody is asked about the blank response


def test_a_small_model_without_numbers_costs_no_call(tmp_path: Path, llm: ScriptedLanguageModel) -> None:
    folder = write_tiny_slm(tmp_path)
    trained = TrainedSmallModel.load(str(folder))
    trained.model.head.linear.weight.data.fill_(float("nan"))
    trained.save(folder)
    assert DreScorer(llm, str(folder)).score(examples()).unscored_by_reason == {"non_finite": 9}
    assert llm.asked == []


def test_non_dre_needs_no_small_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llm: ScriptedLanguageModel) -> None:
    monkeypatch.delenv("DIALEVAL_SLM", raising=False)
    scores = DreScorer(llm, variant="non_dre").score(examples("Fine.", " "))
    assert list(scores.columns) == ["non_dre", "llm"]
    assert scores.unscored_by_reason == {"empty_input": 1}


def test_the_measured_accuracy_is_shown(tmp_path: Path, llm: ScriptedLanguageModel) -> None:
    folder = write_tiny_slm(tmp_path)
    assert measured_accuracy(folder) is None
    settings = json.loads((folder / "slm.json").read_text())
    figures = {"slm_positive": 80.584, "slm_adversarial": 94.88, "slm_overall": 87.732}
    settings |= {"thresholds": {"slm": 1.18}, "training": {"validation": figures}}
    (folder / "slm.json").write_text(json.dumps(settings))
    write_manifest(folder)
    assert measured_accuracy(folder) == MeasuredAccuracy(1.18, 80.584, 94.88, 87.732)
    DreScorer(llm, str(folder)).score(examples("A plum."))
    assert (
        "\nClassification accuracy of the SLM, which takes a response for positive from a sum of 1.18 on: "
        "80.58 % of positive responses, 94.88 % of negative ones, 87.73 % overall.\n"
    ) in llm.asked[0]


def test_the_signature_pins_prompts_models_and_options(tiny_slm: Path, llm: ScriptedLanguageModel) -> None:
    scorer = DreScorer(llm, str(tiny_slm), ablation=True, eq26=True, clamp=True)
    signature = str(scorer.score(examples("A plum.")).signature)
    assert signature.startswith(
        "method:dre|variant:dre+in_dre+ex_dre+non_dre|prompt:dre-v1-190948d246bb7e85|llm:scripted@1|scale:0-5|"
        "interior_prompt:dre_interior-v2-63ea8f5d602f0530|eq26:True|clamp:0-5|slm:"
    )
    plain = str(DreScorer(llm, variant="non_dre").score(examples("A plum.")).signature)
    assert plain == (
        f"method:dre|variant:non_dre|prompt:dre-v1-190948d246bb7e85|llm:scripted@1|scale:0-5|level:turn|version:{__version__}"
    )


def test_the_range_is_that_of_the_products(tiny_slm: Path, llm: ScriptedLanguageModel) -> None:
    def found(**options: object) -> tuple[float, float]:
        return DreScorer(llm, str(tiny_slm), **options).range  # type: ignore[arg-type]

    assert found() == found(variant="ex_dre") == (0.0, 10.0)
    assert found(variant="in_dre") == found(variant="non_dre") == found(clamp=True) == (0.0, 5.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "big"}, "variant is 'big'. Give one of dre, in_dre, ex_dre, non_dre."),
        (
            {"ablation": True, "variant": "ex_dre"},
            "ablation adds every variant to 'dre', and variant is 'ex_dre'. Leave one of them out.",
        ),
        ({"clamp": 5}, "clamp is 5. Give true (0 to 5), false, or the lowest and the highest score."),
    ],
)
def test_wrong_options_are_refused(tiny_slm: Path, llm: ScriptedLanguageModel, options: dict[str, Any], message: str) -> None:
    assert refusal(DreScorer, llm, str(tiny_slm), **options) == f"dre: {message}"
