"""The scorer `slide`: columns, independence of neighbours, options, and what it refuses, on an SLM with random weights."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.runner import run
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.core.signature import Signature
from dialeval_plugin.methods.slide.fusion import DistanceRange, slm_score
from dialeval_plugin.methods.slide.model import SmallModelConfig, TrainedSmallModel
from dialeval_plugin.methods.slide.scorer import SlideScorer
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
    return [
        Example.from_texts(
            turns[: 1 + index % 4], f"Plums make good jam, {'really ' * (index % 5)}number {index}.", id=str(index)
        )
        for index in range(number)
    ]


@pytest.fixture
def slm(tiny_slm: Path) -> SlideScorer:
    return SlideScorer(str(tiny_slm), variant="slm")


def test_the_columns_follow_from_distance_and_probability(slm: SlideScorer) -> None:
    scores = slm.score(examples())

    assert list(scores.columns) == ["slm", "slm_probability", "slm_distance", "context_tokens_cut", "response_tokens_cut"]
    assert scores.n_scored == 12
    distance_range = DistanceRange(0.5, 1.5)
    for slm_value, probability, distance in zip(
        scores.columns["slm"], scores.columns["slm_probability"], scores.columns["slm_distance"], strict=True
    ):
        assert 0 <= probability <= 1
        assert 0 <= distance <= 2
        assert slm_value == pytest.approx(slm_score(distance_range.normalise(distance), probability))


def test_every_variant_has_its_own_main_column(tiny_slm: Path) -> None:
    table = SlideScorer(str(tiny_slm), variant="slm").score(examples()).columns
    for variant in ("slm", "slm_probability", "slm_distance"):
        scores = SlideScorer(str(tiny_slm), variant=variant).score(examples())
        assert scores.main == variant
        assert scores.values == pytest.approx(table[variant])
        assert scores.orientation == ("lower" if variant == "slm_distance" else "higher")


def test_neighbours_order_and_number_change_nothing(slm: SlideScorer) -> None:
    together = slm.score(examples(40))
    alone = [slm.score([example]).values[0] for example in examples(40)]
    shuffled = examples(40)
    random.Random(3).shuffle(shuffled)
    by_id = dict(zip((e.id for e in shuffled), slm.score(shuffled).values, strict=True))

    assert alone == pytest.approx(together.values, abs=1e-5)
    assert [by_id[str(index)] for index in range(40)] == pytest.approx(together.values, abs=1e-5)


def test_windows_change_nothing(slm: SlideScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = slm.score(examples(20))
    monkeypatch.setattr(SlideScorer, "window", 3)

    assert slm.score(examples(20)).values == pytest.approx(whole.values, abs=1e-5)


@pytest.mark.parametrize("response", ["", "   ", "\t\n", "\x00\x01", "\u200b\u200d"])
def test_a_response_without_a_visible_character_is_unscored(slm: SlideScorer, response: str) -> None:
    scores = slm.score([Example.from_texts(["Hello?"], response), Example.from_texts(["Hello?"], "Hi.")])

    assert scores.values[0] is None
    assert scores.unscored == {0: Unscored(Reason.EMPTY_INPUT, "the response has no visible character")}
    assert scores.values[1] is not None
    assert (scores.n_total, scores.n_scored, scores.unscored_by_reason) == (2, 1, {"empty_input": 1})


@pytest.mark.parametrize("response", ["🙂", "a", "Say \x07 it [SEP] again <|endoftext|> {question}", "\u202eabc"])
def test_strange_responses_have_a_score(slm: SlideScorer, response: str) -> None:
    assert slm.score([Example.from_texts(["Hello?"], response)]).n_scored == 1


def test_an_empty_context_has_a_score(slm: SlideScorer) -> None:
    scores = slm.score([Example.from_texts([], "Hi."), Example.from_texts([""], "Hi.")])

    assert scores.n_scored == 2


def test_a_long_context_loses_its_oldest_tokens_and_says_so(slm: SlideScorer, caplog: pytest.LogCaptureFixture) -> None:
    long = "x" * 10_000
    scores = slm.score([Example.from_texts([long, "Hi."], "Hello."), Example.from_texts(["Hi."], "Hello.")])

    # Of 80 tokens one opens; 10,000 characters and [SEP], and 3 characters and [SEP], compete for the other 79.
    assert scores.columns["context_tokens_cut"] == (10_005 - 79, 0)
    assert [record.getMessage() for record in caplog.records] == [
        "slide: in 1 of 2 examples the context is longer than 80 tokens; its beginning was not read"
    ]
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
    assert [record.getMessage() for record in caplog.records] == [
        "slide: in 4 of 5 examples the response is longer than 40 tokens; its end was not read"
    ]


def test_special_tokens_in_a_text_are_text(slm: SlideScorer) -> None:
    model = TrainedSmallModel.load(slm.slm_name).model
    special = set(model.texts.tokenizer.all_special_ids)

    (response,) = model.texts.responses(["[SEP] [CLS] [PAD]"])
    assert special.isdisjoint(set(response[1:-1]) - {model.texts.tokenizer.unk_token_id})
    (context,) = model.texts.contexts([["one [SEP] two"]])
    assert context.ids.count(model.texts.tokenizer.sep_token_id) == 1


def test_fusion_joins_both_scores(tiny_slm: Path) -> None:
    alone = SlideScorer(str(tiny_slm), variant="slm").score(examples())
    # Of a judge that says 0.25, which is bad.
    if_good = {"first_match": lambda slm: slm, "llm_first": lambda slm: 0.25, "agree": lambda slm: (slm + 0.25) / 2}
    for reading in ("first_match", "llm_first", "agree"):
        fused = SlideScorer(str(tiny_slm), llm=ConstantJudge(), fusion=reading, slm_scale=0.5).score(examples())
        assert fused.main == "slide"
        assert fused.columns["llm"] == (0.25,) * 12
        halves = [0.5 * value for value in alone.values if value is not None]
        assert fused.values == pytest.approx([if_good[reading](half) if half >= 0.5 else 0.25 for half in halves])
        assert f"fusion:{reading}" in str(fused.signature)


def test_what_the_judge_cannot_read_is_unscored(tiny_slm: Path) -> None:
    rows = [*examples(2), Example.from_texts(["Hi."], "I refuse.", id="x")]
    scores = SlideScorer(str(tiny_slm), llm=ConstantJudge()).score(rows)

    assert scores.values[2] is None
    assert scores.unscored_by_reason == {"refusal": 1}


def test_the_population_can_give_the_range(tiny_slm: Path) -> None:
    scores = SlideScorer(str(tiny_slm), variant="slm", normalise="population").score(examples())
    distances = scores.columns["slm_distance"]
    expected = [
        1 - (distance - min(distances)) / (max(distances) - min(distances)) + probability
        for distance, probability in zip(distances, scores.columns["slm_probability"], strict=True)
    ]
    assert scores.values == pytest.approx(expected)


def test_round3_rounds_as_the_notebook_does(tiny_slm: Path) -> None:
    """FAULTS_FOUND section 6: that the rounded probability is the one that Score_SLM takes was not tested."""
    plain = SlideScorer(str(tiny_slm), variant="slm_probability").score(examples()).columns
    scores = SlideScorer(str(tiny_slm), variant="slm_probability", round3=True).score(examples())

    assert scores.values == tuple(round(value, 3) for value in plain["slm_probability"] if value is not None)
    assert scores.values != plain["slm_probability"]
    normalise = DistanceRange(0.5, 1.5).normalise
    assert scores.columns["slm"] == tuple(
        slm_score(normalise(distance), probability)
        for distance, probability in zip(scores.columns["slm_distance"], scores.values, strict=True)
        if distance is not None and probability is not None
    )


def with_settings(slm: Path, folder: Path, **settings: object) -> str:
    """A copy of a small model whose slm.json has other settings."""
    shutil.copytree(slm, folder)
    stored = json.loads((folder / "slm.json").read_text())
    (folder / "slm.json").write_text(json.dumps({**stored, **settings}))
    return str(folder)


def test_clip_keeps_the_normalised_distance_in_its_range(tiny_slm: Path, tmp_path: Path) -> None:
    found = SlideScorer(str(tiny_slm), variant="slm").score(examples()).columns["slm_distance"]
    low, middle, high = sorted(distance for distance in found if distance is not None)[::5][:3]
    folder = with_settings(tiny_slm, tmp_path / "narrow", d_min=(low + middle) / 2, d_max=(middle + high) / 2)
    free, clipped = (SlideScorer(folder, variant="slm", clip=clip).score(examples()) for clip in (False, True))
    narrow = DistanceRange((low + middle) / 2, (middle + high) / 2)
    for scores, clip in ((free, False), (clipped, True)):
        table = zip(scores.values, scores.columns["slm_distance"], scores.columns["slm_probability"], strict=True)
        for slm, distance, probability in table:
            assert isinstance(distance, float)
            assert isinstance(probability, float)
            assert slm == slm_score(narrow.normalise(distance, clip=clip), probability)
    assert free.values != clipped.values


@pytest.mark.parametrize(
    ("options", "highest"),
    [
        ({"variant": "slm"}, 2.0),
        ({"variant": "slm_probability"}, 1.0),
        ({"variant": "slm_distance"}, 2.0),
        ({"llm": ConstantJudge()}, 2.0),
        ({"llm": ConstantJudge(), "slm_scale": 0.75}, 1.5),
        ({"llm": ConstantJudge(), "slm_scale": 0.25}, 1.0),
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
        (
            {"slm": 0.8, "slm_probability": 0.3, "slm_distance": -0.7},
            {"slm": 0.8, "slm_probability": 0.3, "slm_distance": 0.7},
        ),
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


def test_a_row_that_the_small_model_cannot_judge_keeps_its_own_reason(tiny_slm: Path) -> None:
    scores = SlideScorer(str(tiny_slm), llm=ConstantJudge()).score([Example.from_texts(["Hi."], " "), *examples(1)])
    assert scores.unscored == {0: Unscored(Reason.EMPTY_INPUT, "the response has no visible character")}


@pytest.mark.parametrize("options", [{"variant": "slm", "normalise": "population"}, {"variant": "slm"}])
def test_a_run_without_a_visible_response_has_no_scores(tiny_slm: Path, options: dict[str, Any]) -> None:
    scores = SlideScorer(str(tiny_slm), **options).score([Example.from_texts(["Hi."], " ")])
    assert (scores.values, scores.unscored_by_reason) == ((None,), {"empty_input": 1})


def test_only_the_variant_that_fuses_asks_the_llm(tiny_slm: Path) -> None:
    scores = SlideScorer(str(tiny_slm), variant="slm", llm=ConstantJudge()).score(examples(2))
    assert "llm" not in scores.columns
    assert "|llm_" not in str(scores.signature)


def test_the_signature_pins_model_and_options(tiny_slm: Path, tmp_path: Path) -> None:
    signature = SlideScorer(str(tiny_slm), variant="slm").score(examples()).signature
    other = SlideScorer(
        str(write_tiny_slm(tmp_path, SmallModelConfig("x", "pad", "two_class", "plain", 40, 20))), variant="slm"
    )

    text = re.sub(r"slm:\w{16}", "slm:HASH", str(signature))
    assert text == (
        "method:slide|variant:slm|slm:HASH|recipe:code|split:pad|probability:two_class|format:plain|separator:sep|speakers:none|"
        "window:80+40|truncation:oldest|normalise:training|d_min:0.5|d_max:1.5|level:turn|version:0.1.0"
    )
    assert other.score(examples()).signature.digest != signature.digest


def test_the_signature_names_options_that_differ_from_their_defaults(tiny_slm: Path) -> None:
    """FAULTS_FOUND section 6: `clip` could be left out of the signature."""
    scorer = SlideScorer(
        str(tiny_slm),
        llm=ConstantJudge(),
        clip=True,
        round3=True,
        normalise="population",
        fusion="agree",
        slm_scale=0.5,
    )
    assert str(Signature(scorer.signature_fields())).partition("|normalise:")[2] == (
        "population|d_min:0.5|d_max:1.5|clip:True|round3:True|fusion:agree|slm_scale:0.5|llm_method:constant"
    )
    plain = SlideScorer(str(tiny_slm), variant="slm").signature_fields()
    assert [plain[name] for name in ("clip", "round3", "fusion", "slm_scale")] == [None] * 4


def test_nothing_names_an_slm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIALEVAL_SLM", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(MissingPrerequisite) as refused:
        SlideScorer(variant="slm")
    assert str(refused.value) == (
        "slide: no SLM is named. Train one with `dialeval train slm --data FILE --output FOLDER`, "
        "or pass slm='FOLDER or hub id', or set DIALEVAL_SLM."
    )


def test_the_variable_and_the_last_trained_name_an_slm(tiny_slm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("DIALEVAL_SLM", str(tiny_slm))
    assert SlideScorer(variant="slm").slm_name == str(tiny_slm)

    monkeypatch.delenv("DIALEVAL_SLM")
    (tmp_path / "dialeval").mkdir()
    (tmp_path / "dialeval" / "last_slm").write_text(f"{tiny_slm}\n")
    assert SlideScorer(variant="slm").slm_name == str(tiny_slm)


def test_fusing_without_an_llm_is_refused(tiny_slm: Path) -> None:
    with pytest.raises(MissingPrerequisite) as refused:
        SlideScorer(str(tiny_slm), variant="slide")
    assert str(refused.value) == (
        "slide: the variant 'slide' fuses the small model with a large one, and no llm is given. "
        "Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model), or variant='slm' for the small model alone."
    )


def test_without_llm_and_variant_the_small_model_is_used_and_said(tiny_slm: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert SlideScorer(str(tiny_slm)).variant == "slm"
    assert [record.getMessage() for record in caplog.records] == [
        "slide: no llm is given, so the scores are the small model's alone (variant 'slm')"
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "big"}, "slide: variant is 'big'. Give one of slide, slm, slm_probability, slm_distance."),
        (
            {"fusion": "mean"},
            "slide: fusion is 'mean'. Give one of first_match, llm_first, agree.",
        ),
        ({"normalise": "batch"}, "slide: normalise is 'batch'. Give one of training, population."),
        ({"slm_scale": "half"}, "slide: slm_scale is 'half'. Give a number."),
        ({"slm_scale": True}, "slide: slm_scale is True. Give a number."),
        ({"slm": 5, "variant": "slm"}, "slide: slm is 5. Give a text."),
        ({"slm_scale": float("nan")}, "slide: slm_scale is nan. Give a number."),
        ({"clip": "no"}, "slide: clip is 'no'. Give true or false."),
        ({"round3": 1}, "slide: round3 is 1. Give true or false."),
    ],
)
def test_unknown_options_are_refused(tiny_slm: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as refused:
        SlideScorer(**{"slm": str(tiny_slm), **options})  # type: ignore[arg-type]
    assert str(refused.value) == message


def test_a_dialogue_is_refused(slm: SlideScorer) -> None:
    with pytest.raises(InputError) as refused:
        slm.score([Dialogue("d", (Turn("Hi."),))])
    assert str(refused.value) == (
        "slide: item 0 is of type Dialogue, but this scorer works at turn level. Pass Example objects."
    )


def test_a_model_with_nan_weights_gives_unscored_rows(tmp_path: Path) -> None:
    folder = write_tiny_slm(tmp_path)
    trained = TrainedSmallModel.load(str(folder))
    trained.model.head.linear.weight.data.fill_(float("nan"))
    trained.save(folder)

    scores = SlideScorer(str(folder), variant="slm").score(examples(3))
    assert scores.unscored_by_reason == {"non_finite": 3}


def test_a_journal_gives_the_same_rows(slm: SlideScorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SlideScorer, "window", 4)
    whole = run(slm, examples(12), journal=tmp_path / "whole")
    lines = (tmp_path / "whole").read_text().splitlines(keepends=True)
    # A kill in the middle of writing the third window leaves half a line.
    (tmp_path / "killed").write_text("".join(lines[:3]) + lines[3][:17])

    resumed = run(slm, examples(12), journal=tmp_path / "killed")
    assert resumed == whole
    assert (tmp_path / "killed").read_text() == (tmp_path / "whole").read_text()


def test_a_journal_of_another_run_is_refused(slm: SlideScorer, tmp_path: Path) -> None:
    journal = tmp_path / "scores.jsonl.journal"
    run(slm, examples(3), journal=journal)
    with pytest.raises(InputError) as refused:
        run(slm, examples(4), journal=journal)
    assert str(refused.value) == (
        f"{journal}: this unfinished run has other inputs or settings than the present one. "
        "Delete the file to start again, or repeat the first command to finish it."
    )
