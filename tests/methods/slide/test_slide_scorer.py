"""The scorer `slide`: columns, independence of neighbours, options, and what it refuses, on an SLM with random weights."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Scores, Unscored
from dialeval_plugin.core.signature import Signature
from dialeval_plugin.methods.slide.fusion import DistanceRange, slm_score
from dialeval_plugin.methods.slide.judging import SmallModelConfig
from dialeval_plugin.methods.slide.model import TrainedSmallModel
from dialeval_plugin.methods.slide.scorer import SlideScorer
from dialeval_plugin.models.folders import write_manifest
from dialeval_plugin.version import __version__
from tests.refusals import refusal
from tests.tiny.models import write_tiny_slm


class ConstantJudge(Scorer):
    """Answers 0.25 to every response but the ones that say "refuse"."""

    name = "constant"
    columns = ("llm",)

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        return [
            Unscored(Reason.REFUSAL, "no") if isinstance(item, Example) and "refuse" in item.response.text else {"llm": 0.25}
            for item in items
        ]

    def signature_fields(self) -> dict[str, str]:
        return {"method": "constant"}


def examples(number: int = 12) -> list[Example]:
    turns = ["Where were you?", "At the market, they had plums.", "Did you buy any?", "A whole bag of them!"]
    responses = [f"Plums make good jam, {'really ' * (index % 5)}number {index}." for index in range(number)]
    return [Example.from_texts(turns[: 1 + index % 4], text, id=str(index)) for index, text in enumerate(responses)]


def numbers(scores: Scores, column: str) -> list[float]:
    return [value for value in scores.columns[column] if value is not None]


def slm_scores(scores: Scores, distance_range: DistanceRange, *, clip: bool = False) -> list[float]:
    """Score_SLM of each row, from its distance and its probability."""
    pairs = zip(numbers(scores, "slm_distance"), numbers(scores, "slm_probability"), strict=True)
    return [slm_score(distance_range.normalise(distance, clip=clip), probability) for distance, probability in pairs]


@pytest.fixture(scope="module")
def slm(tiny_slm: Path) -> SlideScorer:
    return SlideScorer(str(tiny_slm), variant="slm")


@pytest.fixture(scope="module")
def scored(slm: SlideScorer) -> Scores:
    return slm.score(examples())


def test_the_columns_follow_from_distance_and_probability(scored: Scores) -> None:
    assert list(scored.columns) == ["slm", "slm_probability", "slm_distance", "context_tokens_cut", "response_tokens_cut"]
    assert scored.n_scored == 12
    assert scored.values == pytest.approx(slm_scores(scored, DistanceRange(0.5, 1.5)))
    assert all(0 <= probability <= 1 for probability in numbers(scored, "slm_probability"))
    assert all(0 <= distance <= 2 for distance in numbers(scored, "slm_distance"))


def test_every_variant_has_its_own_main_column(tiny_slm: Path, scored: Scores) -> None:
    for variant in ("slm", "slm_probability", "slm_distance"):
        scores = SlideScorer(str(tiny_slm), variant=variant).score(examples())
        assert scores.main == variant
        assert scores.values == pytest.approx(scored.columns[variant])
        assert scores.orientation == ("lower" if variant == "slm_distance" else "higher")


def test_an_empty_context_has_a_score(slm: SlideScorer) -> None:
    assert slm.score([Example.from_texts([], "Hi."), Example.from_texts([""], "Hi.")]).n_scored == 2


def test_a_long_context_loses_its_oldest_tokens_and_says_so(slm: SlideScorer, caplog: pytest.LogCaptureFixture) -> None:
    long = "x" * 10_000
    scores = slm.score([Example.from_texts([long, "Hi."], "Hello."), Example.from_texts(["Hi."], "Hello.")])
    # Of 80 tokens one opens; 10,000 characters and [SEP], and 3 characters and [SEP], compete for the other 79.
    assert scores.columns["context_tokens_cut"] == (10_005 - 79, 0)
    assert caplog.messages == ["slide: in 1 of 2 examples the context is longer than 80 tokens; its beginning was not read"]
    same_end = slm.score([Example.from_texts(["y" * 500 + "x" * 1000, "Hi."], "Hello.")])
    assert same_end.values[0] == pytest.approx(scores.values[0], abs=1e-5)


def test_a_long_response_loses_its_end_and_says_so_once_a_run(
    slm: SlideScorer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRIAL section 2, S1: three responses that differ after the window had one score, and nobody was told."""
    monkeypatch.setattr(SlideScorer, "window", 1)
    long = ["x" * 60 + end for end in ("nice", "bad", "")]
    scores = slm.score([Example.from_texts(["Hi."], response) for response in [*long, "x" * 38, "x" * 39]])
    # Of 40 tokens one opens and one closes.
    assert scores.columns["response_tokens_cut"] == (26, 25, 22, 0, 1)
    assert scores.columns["context_tokens_cut"] == (0, 0, 0, 0, 0)
    assert len(set(scores.values[:3])) == 1
    assert caplog.messages == ["slide: in 4 of 5 examples the response is longer than 40 tokens; its end was not read"]


def test_special_tokens_in_a_text_are_text(slm: SlideScorer) -> None:
    model = TrainedSmallModel.load(str(slm.folder)).model
    special = set(model.texts.tokenizer.all_special_ids)
    (response,) = model.texts.responses(["[SEP] [CLS] [PAD]"])
    assert special.isdisjoint(set(response[1:-1]) - {model.texts.tokenizer.unk_token_id})
    (context,) = model.texts.contexts([["one [SEP] two"]])
    assert context.ids.count(model.texts.tokenizer.sep_token_id) == 1


def test_fusion_joins_both_scores(tiny_slm: Path, scored: Scores) -> None:
    # Of a judge that says 0.25, which is bad.
    if_good = {"first_match": lambda slm: slm, "llm_first": lambda slm: 0.25, "agree": lambda slm: (slm + 0.25) / 2}
    halves = [0.5 * value for value in numbers(scored, "slm")]
    for reading, good in if_good.items():
        fused = SlideScorer(str(tiny_slm), llm=ConstantJudge(), fusion=reading, slm_scale=0.5).score(examples())
        assert fused.main == "slide"
        assert fused.columns["llm"] == (0.25,) * 12
        assert fused.values == pytest.approx([good(half) if half >= 0.5 else 0.25 for half in halves])
        assert f"fusion:{reading}" in str(fused.signature)


def test_what_a_model_cannot_judge_is_unscored_for_its_own_reason(tiny_slm: Path) -> None:
    rows = [*examples(2), *(Example.from_texts(["Hi."], response) for response in ("I refuse.", " "))]
    scores = SlideScorer(str(tiny_slm), llm=ConstantJudge()).score(rows)
    blank = Unscored(Reason.EMPTY_INPUT, "the response has no visible character")
    assert scores.unscored == {2: Unscored(Reason.REFUSAL, "no"), 3: blank}


def test_the_population_can_give_the_range(tiny_slm: Path) -> None:
    scorer = SlideScorer(str(tiny_slm), variant="slm", normalise="population")
    scores = scorer.score(examples())
    distances = numbers(scores, "slm_distance")
    assert scores.values == pytest.approx(slm_scores(scores, DistanceRange(min(distances), max(distances))))
    blank = scorer.score([Example.from_texts(["Hi."], " ")])
    assert (blank.values, blank.unscored_by_reason) == ((None,), {"empty_input": 1})


def test_round3_rounds_as_the_notebook_does(tiny_slm: Path, scored: Scores) -> None:
    """FAULTS_FOUND section 6: that the rounded probability is the one that Score_SLM takes was not tested."""
    scores = SlideScorer(str(tiny_slm), variant="slm_probability", round3=True).score(examples())
    assert list(scores.values) == [round(value, 3) for value in numbers(scored, "slm_probability")]
    assert scores.values != scored.columns["slm_probability"]
    assert numbers(scores, "slm") == slm_scores(scores, DistanceRange(0.5, 1.5))


def with_settings(slm: Path, folder: Path, **settings: object) -> str:
    """A copy of a small model whose slm.json has other settings."""
    shutil.copytree(slm, folder)
    stored = json.loads((folder / "slm.json").read_text())
    (folder / "slm.json").write_text(json.dumps({**stored, **settings}))
    write_manifest(folder)
    return str(folder)


def test_clip_keeps_the_normalised_distance_in_its_range(tiny_slm: Path, scored: Scores, tmp_path: Path) -> None:
    low, middle, high = sorted(numbers(scored, "slm_distance"))[::5][:3]
    narrow = DistanceRange((low + middle) / 2, (middle + high) / 2)
    folder = with_settings(tiny_slm, tmp_path / "narrow", d_min=narrow.low, d_max=narrow.high)
    free, clipped = (SlideScorer(folder, variant="slm", clip=clip).score(examples()) for clip in (False, True))
    assert list(free.values) == slm_scores(free, narrow)
    assert list(clipped.values) == slm_scores(clipped, narrow, clip=True)
    assert free.values != clipped.values


@pytest.mark.parametrize(
    ("options", "highest"),
    [
        *(({"variant": name}, end) for name, end in {"slm": 2.0, "slm_probability": 1.0, "slm_distance": 2.0}.items()),
        *(({"llm": ConstantJudge(), "slm_scale": scale}, end) for scale, end in {1.0: 2.0, 0.75: 1.5, 0.25: 1.0}.items()),
        ({"variant": "slm", "slm_scale": 3.0}, 2.0),
    ],
)
def test_the_range_is_that_of_the_variant(tiny_slm: Path, options: dict[str, Any], highest: float) -> None:
    """FAULTS_FOUND section 6: a host maps scores to [0, 1] by the range."""
    assert SlideScorer(str(tiny_slm), **options).range == (0.0, highest)


@pytest.mark.parametrize(
    ("thresholds", "expected"),
    [
        # Without thresholds the papers' rule, and of distances the one in the middle of 0.4 and 1.8, whose s_d is 0.5.
        ({}, {"slm": 0.5, "slm_probability": 0.5, "slm_distance": 1.1}),
        # Training turns distances round, so that higher is better there.
        ({"slm": 0.8, "slm_probability": 0.3, "slm_distance": -0.7}, {"slm": 0.8, "slm_probability": 0.3, "slm_distance": 0.7}),
    ],
)
def test_a_response_is_positive_from_the_models_threshold(
    tiny_slm: Path, tmp_path: Path, thresholds: dict[str, float], expected: dict[str, float]
) -> None:
    """FAULTS_FOUND section 6: the sign of the distance's threshold."""
    folder = with_settings(tiny_slm, tmp_path / "slm", thresholds=thresholds, d_min=0.4, d_max=1.8)
    found = {variant: SlideScorer(folder, variant=variant).positive_from for variant in expected}  # type: ignore[arg-type]
    assert found == pytest.approx(expected)
    assert SlideScorer(folder, llm=ConstantJudge()).positive_from == 0.5


def test_only_the_variant_that_fuses_asks_the_llm(tiny_slm: Path) -> None:
    scores = SlideScorer(str(tiny_slm), variant="slm", llm=ConstantJudge()).score(examples(2))
    assert "llm" not in scores.columns
    assert "|llm_" not in str(scores.signature)


def test_the_signature_pins_model_and_options(scored: Scores, tmp_path: Path) -> None:
    other = write_tiny_slm(tmp_path, SmallModelConfig("x", "pad", "two_class", "plain", 40, 20))
    assert SlideScorer(str(other), variant="slm").score(examples()).signature.digest != scored.signature.digest
    text = re.sub(r"slm:\w{16}", "slm:HASH", str(scored.signature))
    assert text == (
        "method:slide|variant:slm|slm:HASH|recipe:code|split:pad|probability:two_class|format:plain|separator:sep|speakers:none|"
        f"window:80+40|truncation:oldest|normalise:training|d_min:0.5|d_max:1.5|level:turn|version:{__version__}"
    )


def test_the_signature_names_options_that_differ_from_their_defaults(tiny_slm: Path, slm: SlideScorer) -> None:
    """FAULTS_FOUND section 6: `clip` could be left out of the signature."""
    options: dict[str, Any] = {"clip": True, "round3": True, "normalise": "population", "fusion": "agree", "slm_scale": 0.5}
    scorer = SlideScorer(str(tiny_slm), llm=ConstantJudge(), **options)
    assert str(Signature(scorer.signature_fields())).partition("|normalise:")[2] == (
        "population|d_min:0.5|d_max:1.5|clip:True|round3:True|fusion:agree|slm_scale:0.5|llm_method:constant"
    )
    plain = slm.signature_fields()
    assert [plain.get(name) for name in ("clip", "round3", "fusion", "slm_scale")] == [None] * 4


def test_the_variable_names_an_slm(tiny_slm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_SLM", str(tiny_slm))
    assert SlideScorer(variant="slm").folder == tiny_slm


def test_without_llm_and_variant_the_small_model_is_used_and_said(tiny_slm: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert SlideScorer(str(tiny_slm)).variant == "slm"
    assert caplog.messages == ["slide: no llm is given, so the scores are the small model's alone (variant 'slm')"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "big"}, "variant is 'big'. Give one of slide, slm, slm_probability, slm_distance."),
        ({"fusion": "mean"}, "fusion is 'mean'. Give one of first_match, llm_first, agree, mixture."),
        ({"normalise": "batch"}, "normalise is 'batch'. Give one of training, population."),
        *(({"slm_scale": scale}, f"slm_scale is {scale!r}. Give a number.") for scale in ("half", True, math.nan)),
    ],
)
def test_unknown_options_are_refused(tiny_slm: Path, options: dict[str, object], message: str) -> None:
    assert refusal(SlideScorer, **{"slm": str(tiny_slm), **options}) == f"slide: {message}"


def test_a_model_with_nan_weights_gives_unscored_rows(tmp_path: Path) -> None:
    folder = write_tiny_slm(tmp_path)
    trained = TrainedSmallModel.load(str(folder))
    trained.model.head.linear.weight.data.fill_(float("nan"))
    trained.save(folder)
    scores = SlideScorer(str(folder), variant="slm").score(examples(3))
    assert scores.unscored_by_reason == {"non_finite": 3}
