"""The scorer `general`: columns, independence of neighbours, both levels, and what it refuses, on random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit

from dialeval_plugin import load_metric
from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.percentiles import PercentileTable, write_table
from dialeval_plugin.core.scorer import NO_WEAKNESS, percentile_settings
from dialeval_plugin.methods.general.judging import (
    NOVELTY,
    NOVELTY_WEIGHT,
    TOKENS_CUT,
    GeneralConfig,
    GeneralJudge,
    GeneralJudgement,
)
from dialeval_plugin.methods.general.mixing import Mixing
from dialeval_plugin.methods.general.model import TrainedGeneral
from dialeval_plugin.methods.general.scorer import WEAKNESS_TEXT, GeneralScorer
from dialeval_plugin.methods.general.signals import QUALITIES
from tests.refusals import refused
from tests.tiny.models import write_tiny_general

TURNS = ["Where were you?", "At the market, they had plums.", "Did you buy any?", "A whole bag of them!"]


def examples(number: int = 12) -> list[Example]:
    return [
        Example.from_texts(
            TURNS[: 1 + index % 4],
            f"Plums make good jam, {'really ' * (index % 5)}number {index}.",
            id=str(index),
            facts=[f"I have {index} plums."] * (index % 3),
        )
        for index in range(number)
    ]


def dialogues() -> list[Dialogue]:
    return [Dialogue(str(n), tuple(Turn(f"{text} {n}") for text in (*TURNS, *TURNS)[: 2 + n])) for n in range(6)]


@pytest.fixture(scope="module")
def scorer(tiny_general: Path) -> GeneralScorer:
    return GeneralScorer(str(tiny_general), device="cpu")


@pytest.fixture(scope="module")
def of_dialogues(tiny_general: Path) -> GeneralScorer:
    return GeneralScorer(str(tiny_general), level="dialogue", device="cpu")


def test_the_main_score_mixes_the_heads_by_the_weights_of_the_folder(scorer: GeneralScorer, tiny_general: Path) -> None:
    scores = scorer.score(examples())
    assert list(scores.columns) == [
        *("general", "relevance", "fit", "fluency", "specificity", "knowledge", "novelty", "cosine"),
        *("context_tokens_cut", "response_tokens_cut", "fact_tokens_cut"),
    ]
    assert scores.n_scored == 12
    mixing = TrainedGeneral.load(str(tiny_general)).mixing
    for row, example in zip(scores.rows(), examples(), strict=True):
        assert (row["knowledge"] is None) == (not example.facts)
        weights = mixing.with_facts if example.facts else mixing.plain
        assert weights is not None
        mixed = sum(weight * logit(row[name]) for name, weight in weights.items() if name != "offset") + weights["offset"]
        assert row["general"] == pytest.approx(expit(mixed + NOVELTY_WEIGHT * (row[NOVELTY] - 1)))
        assert -1 <= row["cosine"] <= 1


def test_facts_change_what_reads_them_and_nothing_else(scorer: GeneralScorer) -> None:
    with_facts, without = (
        scorer.score([Example.from_texts(TURNS[:2], "I have two plums.", facts=facts)]).columns for facts in (["Plums."], [])
    )
    assert with_facts["knowledge"][0] is not None
    assert without["knowledge"][0] is None
    for name in ("relevance", "fit", "fluency", "specificity", "cosine"):
        assert with_facts[name] == pytest.approx(without[name], abs=1e-6)
    assert with_facts["general"] != without["general"]


def test_a_single_fact_may_be_given_to_the_metric_as_a_text(tiny_general: Path) -> None:
    metric = load_metric("general", model=str(tiny_general), device="cpu")
    texts = {"predictions": ["Long, but worth it.", "Two streets.", "None yet."], "contexts": [["Hi."], [], ["Any plans?"]]}
    result = metric.compute(**texts, facts=[["I travel a lot."], [], "I never plan."])
    assert result == metric.compute(**texts, facts=[["I travel a lot."], [], ["I never plan."]])
    assert [value is None for value in result["knowledge"]] == [False, True, False]


@pytest.mark.parametrize("context", [[], [""], [" ", "\u200b"]])
def test_to_an_empty_context_nothing_fits_and_nothing_does_not(scorer: GeneralScorer, context: list[str]) -> None:
    (row,) = scorer.score([Example.from_texts(context, "Plums make good jam.")]).rows()
    assert (row["relevance"], row["fit"], row["cosine"]) == (None, None, None)
    even = -0.1 + 0.3 * logit(row["fluency"]) + 0.2 * logit(row["specificity"])
    assert row["general"] == pytest.approx(expit(even))


CUT = {
    "context": "general: in 1 of 2 examples a context is longer than 80 tokens; its beginning was not read",
    "response": "general: in 1 of 2 examples a response is longer than 40 tokens; its end was not read",
    "facts": "general: in 1 of 2 examples the facts are longer than 80 tokens; their beginning was not read",
}


def test_long_contexts_lose_their_oldest_tokens(scorer: GeneralScorer, caplog: pytest.LogCaptureFixture) -> None:
    scores = scorer.score([Example.from_texts(["x" * 1000, "Hi."], "Hello."), Example.from_texts(["Hi."], "Hello.")])
    assert scores.columns["context_tokens_cut"] == (1005 - 79, 0)
    assert caplog.messages == [CUT["context"]]


def test_long_responses_and_facts_are_counted(scorer: GeneralScorer, caplog: pytest.LogCaptureFixture) -> None:
    """TRIAL section 2, S1: what is cut is counted, of responses and facts as of contexts."""
    scores = scorer.score(
        [Example.from_texts(["Hi."], "x" * 60, facts=["y" * 100, "no"]), Example.from_texts(["Hi."], "x" * 38)]
    )
    assert scores.columns["context_tokens_cut"] == (0, 0)
    assert scores.columns["response_tokens_cut"] == (60 - 38, 0)
    assert scores.columns["fact_tokens_cut"] == (104 - 79, None)
    assert caplog.messages == [CUT["response"], CUT["facts"]]


def test_what_is_cut_of_a_dialogue_is_summed_over_its_turns(
    of_dialogues: GeneralScorer, caplog: pytest.LogCaptureFixture
) -> None:
    dialogues = [Dialogue("long", (Turn("x" * 80), Turn("y" * 50), Turn("z"))), Dialogue("short", (Turn("x"), Turn("y")))]
    scores = of_dialogues.score(dialogues)
    # The first turn stands in two contexts, of 81 and 81 + 51 tokens with their ends, of which 79 fit.
    assert scores.columns["context_tokens_cut"] == (2 + 53, 0)
    assert scores.columns["response_tokens_cut"] == (50 - 38, 0)
    assert caplog.messages == [CUT["context"], CUT["response"]]


def test_a_dialogue_is_the_mean_of_its_turns_and_of_four_qualities(
    of_dialogues: GeneralScorer, scorer: GeneralScorer, tiny_general: Path
) -> None:
    scores = of_dialogues.score(dialogues())
    assert list(scores.columns) == [
        *("general", "coherence", "novelty", "relevance", "fit", "fluency", "specificity", "cosine"),
        *("n_turns", "context_tokens_cut", "response_tokens_cut"),
    ]
    coherence = TrainedGeneral.load(str(tiny_general)).coherence
    for row, dialogue in zip(scores.rows(), dialogues(), strict=True):
        places = range(1, len(dialogue.turns))
        of_turns = scorer.score([Example(str(place), dialogue.turns[:place], dialogue.turns[place]) for place in places])
        fits = logit(np.array(of_turns.columns["fit"], dtype=float))
        weighed = coherence.mean * fits.mean() + coherence.lowest * fits.min() + coherence.last * fits[-1]
        expected = expit(weighed + coherence.offset)
        assert row["coherence"] == pytest.approx(expected, abs=1e-5)
        assert row[NOVELTY] == pytest.approx(of_turns.mean(NOVELTY))
        parts = [of_turns.mean(), of_turns.mean("fluency"), of_turns.mean("specificity"), expected, row[NOVELTY]]
        assert row["general"] == pytest.approx(np.mean(parts), abs=1e-5)  # type: ignore[arg-type]
        for name in ("relevance", "fluency"):
            assert row[name] == pytest.approx(of_turns.mean(name), abs=1e-5)
        assert row["n_turns"] == len(places)


def test_of_a_dialogue_with_an_assistant_its_turns_are_judged(of_dialogues: GeneralScorer, scorer: GeneralScorer) -> None:
    texts = ["Where were you?", "At the market.", "Did you buy any?", "A whole bag of them!"]
    plain, named = (
        Dialogue("d", tuple(Turn(text, speakers[place % 2]) for place, text in enumerate(texts)))
        for speakers in ((None, None), ("user", "assistant"))
    )
    everybody, assistant = of_dialogues.score([plain, named]).rows()
    answers = scorer.score([Example.from_texts(texts[:place], texts[place]) for place in (1, 3)])
    assert assistant["coherence"] == pytest.approx(everybody["coherence"], abs=1e-6)
    assert (assistant["n_turns"], everybody["n_turns"]) == (2, 3)
    for name in ("relevance", "fit", "fluency", "specificity", "cosine"):
        assert assistant[name] == pytest.approx(answers.mean(name), abs=1e-5)
    assert assistant["general"] != everybody["general"]
    assert assistant["context_tokens_cut"] == everybody["context_tokens_cut"]


def test_the_signature_pins_model_window_and_mixing(scorer: GeneralScorer, tiny_general: Path, tmp_path: Path) -> None:
    signature = str(scorer.score(examples(1)).signature)
    assert signature.startswith(
        f"method:general|model:{scorer.model_hash}|recipe:general|separator:sep|speakers:none|window:80+40|turn_windows:8|"
    )
    assert "|mixing:validation|level:turn|version:" in signature
    other = write_tiny_general(tmp_path, GeneralConfig("general", 70, 40))
    assert GeneralScorer(str(other), device="cpu").model_hash != scorer.model_hash


def test_a_model_that_has_learnt_nothing_of_facts_says_nothing_of_them(tmp_path: Path) -> None:
    folder = write_tiny_general(tmp_path, GeneralConfig("general", 80, 40, has_knowledge=False))
    scores = GeneralScorer(str(folder), device="cpu").score(examples(3))
    assert scores.columns["knowledge"] == (None, None, None)
    assert scores.n_scored == 3


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with refused(
        f"{tmp_path / 'empty'}: has no general.json, so it is not a trained general evaluator (or its training did not end). "
        "Train one with `dialeval train general`.",
        ModelLoadError,
    ):
        GeneralScorer(str(tmp_path / "empty"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"leave_out": "tu"}, "general: leave_out and score_fitted say how to use a mixing. Give mixing='FILE'."),
        ({"level": "dialogue", "mixing": "x"}, "general: a mixing is fitted on responses. Leave it out at level='dialogue'."),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str, tiny_general: Path) -> None:
    with refused(message):
        GeneralScorer(str(tiny_general), **options)  # type: ignore[arg-type]


# Explanations


def with_weights(folder: Path, tmp_path: Path, **plain: float) -> GeneralScorer:
    """The evaluator with another mixture."""
    trained = TrainedGeneral.load(str(folder), device="cpu")
    zero = {"relevance": 0.0, "fit": 0.0, "fluency": 0.0, "specificity": 0.0, "offset": 0.0, **plain}
    mixing = Mixing(zero, {**zero, "knowledge": 0.0})  # type: ignore[typeddict-item]
    TrainedGeneral(trained.model, mixing, trained.coherence, frozenset()).save(tmp_path / "weighted")
    return GeneralScorer(str(tmp_path / "weighted"), device="cpu")


def test_an_explanation_shows_the_columns_of_the_score(scorer: GeneralScorer) -> None:
    example = examples()[1]
    (row,) = scorer.score([example]).rows()
    (said,) = scorer.explain([example])
    shown = ", ".join(f"{name} {row[name]:.2f}" for name in (*QUALITIES, NOVELTY))
    assert said.removesuffix(f" ({shown})") in {*WEAKNESS_TEXT.values(), NO_WEAKNESS}


def judge_as(monkeypatch: pytest.MonkeyPatch, **log_odds: float) -> str:
    """Let the model find these log odds of one new response, 3 of each quality that is not named, and no facts.

    Returns what an explanation shows of them.
    """
    found = {**dict.fromkeys(QUALITIES, 3.0), "knowledge": np.nan, **log_odds}
    zeros = np.zeros(1)
    judgement = GeneralJudgement(
        {}, {name: np.array([value]) for name, value in found.items()}, zeros, np.ones(1), dict.fromkeys(TOKENS_CUT, zeros)
    )
    monkeypatch.setattr(GeneralJudge, "judge", lambda self, triples: judgement)
    shares = {**{name: expit(value) for name, value in found.items() if name != "knowledge"}, NOVELTY: 1.0}
    return ", ".join(f"{name} {share:.2f}" for name, share in shares.items())


@pytest.mark.parametrize("head", list(WEAKNESS_TEXT)[:4])
@pytest.mark.parametrize(("weight", "log_odds", "is_blamed"), [(1.0, -2.0, True), (1.0, 2.0, False), (-1.0, 2.0, False)])
def test_what_pulls_down_most_is_blamed_if_it_is_below_even(
    head: str,
    weight: float,
    log_odds: float,
    is_blamed: bool,
    tiny_general: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One head alone has a weight; a high one that pulls down by a weight below 0 is not blamed."""
    scorer = with_weights(tiny_general, tmp_path, **{head: weight})
    shown = judge_as(monkeypatch, **{head: log_odds})
    assert scorer.explain([examples()[0]]) == [f"{WEAKNESS_TEXT[head] if is_blamed else NO_WEAKNESS} ({shown})"]


def test_a_repetition_is_blamed_where_nothing_pulls_down_more(tiny_general: Path, tmp_path: Path) -> None:
    (said,) = with_weights(tiny_general, tmp_path).explain([Example.from_texts(["At the market."], "At the market.")])
    assert said.startswith(f"{WEAKNESS_TEXT[NOVELTY]} (")
    assert said.endswith(f", {NOVELTY} 0.00)")


@pytest.mark.parametrize(
    ("fit", "of_people", "blamed"),
    [(-0.5, 0.999999, WEAKNESS_TEXT["fit"]), (-0.5, 1e-6, NO_WEAKNESS), (0.5, 0.999999, NO_WEAKNESS)],
)
def test_a_head_is_blamed_for_what_it_says_less_than_of_people(
    fit: float, of_people: float, blamed: str, tiny_general: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = with_weights(tiny_general, tmp_path, fit=1.0)
    columns = {name: [0.5] for name in ("general", "relevance", "fluency", "specificity")} | {"fit": [of_people]}
    settings = percentile_settings(scorer)
    write_table(
        scorer.folder,
        PercentileTable.of_scores(columns, column="general", level="turn", orientation="higher", settings=settings, sources={}),
    )
    shown = judge_as(monkeypatch, fit=fit)
    assert GeneralScorer(str(scorer.folder), device="cpu").explain([examples()[0]]) == [f"{blamed} ({shown})"]


def test_what_is_not_there_is_not_blamed(tiny_general: Path, tmp_path: Path) -> None:
    scorer = with_weights(tiny_general, tmp_path, fit=5.0, fluency=-0.001)
    alone, blank = Example.from_texts([], "At the market."), Example.from_texts(["Hi."], " ")
    said, missing = scorer.explain([alone, blank])
    assert "fit" not in said
    assert "relevance" not in said
    assert "knowledge" not in said
    assert missing == "the response has no visible character"
    assert scorer.explain([]) == []


def test_of_a_dialogue_the_worst_judged_turn_is_explained(of_dialogues: GeneralScorer, scorer: GeneralScorer) -> None:
    texts = ["Where were you?", " ", "At the market.", "Did you buy any?", "A whole bag of them!"]
    dialogue = Dialogue("d", tuple(map(Turn, texts)))
    seen = [text for text in texts if text.strip()]
    after = [Example.from_texts(seen[:place], seen[place]) for place in range(1, len(seen))]
    scores = scorer.score(after).values
    worst = min(range(len(after)), key=lambda place: scores[place] or 0)
    (expected,) = scorer.explain([after[worst]])
    assert of_dialogues.explain([dialogue, Dialogue("e", (Turn("Hi."),))]) == [
        f"turn {worst + 3} of 5: {expected}",
        "fewer than two turns have a visible character",
    ]
    other = 2 if worst == 0 else 0
    speakers = ["user", "user", *("assistant" if place == other else "user" for place in range(3))]
    (expected,) = scorer.explain([after[other]])
    said = of_dialogues.explain([Dialogue("f", tuple(map(Turn, texts, speakers)))])
    assert said == [f"turn {other + 3} of 5: {expected}"]
