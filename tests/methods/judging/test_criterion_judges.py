"""`g_eval` and `llm_chiang`: their prompts, ratings that are drawn or weighted, and answers that cannot be read."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.methods.judging.criterion_judges import (
    CHIANG_PROMPTS,
    CRITERIA,
    G_EVAL_PROMPTS,
    CriterionJudge,
    CriterionRating,
    GEval,
    LlmChiang,
    sampled_rating,
    weighted_rating,
)
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel
from dialeval_plugin.version import __version__
from tests.refusals import refusal

EXAMPLE = Example.from_texts(["Shall we walk?", "It rains."], "Then let us stay in.", facts=["It rains in June."])
WITHOUT_FACT = Example.from_texts(["Shall we walk?", "It rains."], "Then let us stay in.")

G_EVAL_PRINTED = """\
You will be given a conversation between two individuals. You will then be given one potential response for the next turn in \
the conversation. The response concerns an interesting fact, which will be provided as well.

Your task is to rate the responses on one metric.

Please make sure you read and understand these instructions carefully. Please keep this document open while reviewing, and \
refer to it as needed.

Evaluation Criteria:

Engagingness (1-3) Is the response dull/interesting?
- A score of 1 (dull) means that the response is generic and dull.
- A score of 2 (somewhat interesting) means the response is somewhat interesting and could engage you in the conversation \
(e.g., an opinion, thought)
- A score of 3 (interesting) means the response is very interesting or presents an interesting fact

Evaluation Steps:

1. Read the conversation, the corresponding fact and the response carefully.
2. Rate the response on a scale of 1-3 for engagingness, according to the criteria above.
3. Provide a brief explanation for your rating, referring to specific aspects of the response and the conversation.

Example:

Conversation History:

Shall we walk?
It rains.

Corresponding Fact:

It rains in June.

Response:

Then let us stay in.

Evaluation Form (scores ONLY):

- Engagingness:"""

CHIANG_ENGAGINGNESS = """\
Please rate the dialogue response.

The goal of this task is to rate dialogue responses.

Note: Please take the time to fully read and understand the dialogue response. We will reject submissions from workers that \
are clearly spamming the task.

Conversation History:

Shall we walk?
It rains.

Dialogue Response:

Then let us stay in.

How engaging is the text of the dialogue response? (on a scale of 1-5, with 1 being the lowest)

Rating:"""


def always(*answers: str | Unscored) -> ScriptedLanguageModel:
    """Gives the answers in turn, whatever it is asked."""
    turns = itertools.cycle(answers)
    return ScriptedLanguageModel(lambda prompt: next(turns))


def likely(shares: dict[int, float]) -> Callable[[str, str], float]:
    """Half of the probability of a rating for the spelling with a space before it, half for that without."""
    return lambda _, form: math.log(share / 2) if (share := shares.get(int(form), 0.0)) else -math.inf


def columns_of(judge: CriterionJudge) -> dict[str, float | None]:
    return {name: values[0] for name, values in judge.score([EXAMPLE]).columns.items()}


def test_the_prompt_for_engagingness_is_the_printed_one_and_announces_no_fact_without_one() -> None:
    assert G_EVAL_PROMPTS["engagingness"].render(EXAMPLE) == G_EVAL_PRINTED
    without = G_EVAL_PRINTED.replace(" The response concerns an interesting fact, which will be provided as well.", "")
    without = without.replace(", the corresponding fact", "").replace("Corresponding Fact:\n\nIt rains in June.\n\n", "")
    assert G_EVAL_PROMPTS["engagingness"].render(WITHOUT_FACT) == without


def test_chiangs_prompt_speaks_of_a_response() -> None:
    assert CHIANG_PROMPTS["engagingness"].render(WITHOUT_FACT) == CHIANG_ENGAGINGNESS
    assert "Facts:\n\nIt rains in June.\n\nConversation History:" in CHIANG_PROMPTS["groundedness"].render(EXAMPLE)


HASHES = {
    "g_eval": ("580a93ad766be60c", "ac0c4f91487c5bcd", "77ffd727b2cc7198", "282392fc0219b7a6"),
    "llm_chiang": ("bf793b05ddc2d3f3", "2b19724326e6cc8e", "c6c1aff96a2eaf48", "e08266d6b2a7fa32"),
}


@pytest.mark.parametrize(("judge", "scale"), [(GEval, (1, 3)), (LlmChiang, (1, 5))])
def test_each_criterion_has_a_prompt_with_a_pinned_hash_on_one_scale(judge: type[CriterionJudge], scale: object) -> None:
    # A change of wording changes scores: raise the version, and these hashes with it.
    assert tuple(judge.prompts) == CRITERIA == ("naturalness", "coherence", "engagingness", "groundedness")
    ids = [f"{judge.name}_{name}-v1-{hash}" for name, hash in zip(CRITERIA, HASHES[judge.name], strict=True)]
    assert [prompt.id for prompt in judge.prompts.values()] == ids
    assert {prompt.scale for prompt in judge.prompts.values()} == {scale}


def test_the_score_is_the_mean_of_the_criteria() -> None:
    model = ScriptedLanguageModel(lambda prompt: "3" if prompt.endswith("- Coherence:") else "1")
    assert columns_of(GEval(model, n_samples=2)) == {
        "g_eval": 1.5,
        **{"naturalness": 1.0, "coherence": 3.0, "engagingness": 1.0, "groundedness": 1.0},
        **{f"{name}_{rest}": 0.0 for name in CRITERIA for rest in ("variance", "unread")},
    }


def test_drawn_answers_are_kept_and_their_variance_reported() -> None:
    judge = LlmChiang(always("4", "I would rate it as a 2.", "hm"), n_samples=3, criteria="coherence", keep_samples=True)
    assert columns_of(judge) == {
        **{"llm_chiang": 3.0, "coherence": 3.0, "coherence_variance": 2.0, "coherence_unread": 1.0},
        **{"coherence_1": 4.0, "coherence_2": 2.0, "coherence_3": None},
    }


def test_an_unreadable_answer_counts_as_zero_where_the_published_code_is_asked_for() -> None:
    def judge(*answers: str | Unscored, unparsed: float | None) -> GEval:
        return GEval(always(*answers), n_samples=4, criteria=["coherence"], unparsed=unparsed)

    answers = ("3", "hm", "2", Unscored(Reason.API_ERROR, "503"))
    assert judge(*answers, unparsed=0).score([EXAMPLE]).values == (pytest.approx(5 / 3),)  # a request that failed is no answer
    assert judge(*answers, unparsed=None).score([EXAMPLE]).values == (2.5,)
    assert judge("hm", unparsed=0).score([EXAMPLE]).values == (0.0,)
    assert judge("hm", unparsed=0).range == (0.0, 3.0)


@pytest.mark.parametrize(("n_read", "score"), [(1, None), (9, None), (10, 3.0)])
def test_a_rating_needs_half_of_the_answers_that_were_drawn(n_read: int, score: float | None) -> None:
    judge = GEval(always(*["3"] * n_read, *["hm"] * (20 - n_read)), criteria="coherence")
    scores = judge.score([EXAMPLE])
    assert scores.values == (score,)
    if score is None:
        assert scores.unscored[0].reason is Reason.PARSE_FAILURE
        why = f"coherence: {n_read} of 20 answers have a rating, fewer than half: the answer has no"
        assert scores.unscored[0].detail.startswith(why)


def test_a_criterion_without_a_rating_leaves_the_row_unscored() -> None:
    model = ScriptedLanguageModel(lambda prompt: "I'm sorry." if "Groundedness (1-3)" in prompt else "2")
    assert GEval(model, n_samples=3).score([EXAMPLE]).unscored == {
        0: Unscored(
            Reason.REFUSAL, 'groundedness: 0 of 3 answers have a rating, fewer than half: the model refused: "I\'m sorry."'
        )
    }


def test_weighted_ratings_are_the_mean_under_the_models_probabilities() -> None:
    model = ScriptedLanguageModel(lambda _: "", likely({1: 0.1, 2: 0.3, 3: 0.4}))
    scores = GEval(model, mode="weighted").score([EXAMPLE])
    assert scores.values == (pytest.approx((0.1 + 0.6 + 1.2) / 0.8),)
    assert "naturalness_unread" not in scores.columns
    assert scores.columns["coherence_variance"] == (pytest.approx((0.1 + 1.2 + 3.6) / 0.8 - (1.9 / 0.8) ** 2),)
    assert model.asked[0] == G_EVAL_PROMPTS["naturalness"].render(EXAMPLE) + " 1"
    assert model.batches == [4 * 6]


def test_a_missing_log_probability_leaves_its_row_unscored_and_never_draws() -> None:
    def log_probability(context: str, form: str) -> float | Unscored:
        return Unscored(Reason.API_ERROR, "503") if "June" in context and form == "2" else math.log(0.2)

    model = ScriptedLanguageModel(lambda _: "never asked", log_probability)
    scores = LlmChiang(model, mode="weighted").score([EXAMPLE, WITHOUT_FACT])
    assert scores.unscored == {0: Unscored(Reason.API_ERROR, "naturalness: 503")}
    assert scores.values[1] == pytest.approx(3.0)
    assert len(model.batches) == 1


def test_the_signature_says_how_a_rating_is_made() -> None:
    ids = ",".join(G_EVAL_PROMPTS[name].id for name in ("coherence", "naturalness"))
    judge = GEval(always("2"), criteria="coherence, naturalness", n_samples=5, temperature=2, unparsed=0)
    assert str(judge.score([EXAMPLE]).signature) == (
        f"method:g_eval|prompt:{ids}|llm:scripted@1|mode:sampled|n_samples:5|temperature:2.0|unparsed:0.0|scale:1-3|"
        f"level:turn|version:{__version__}"
    )
    weighted = GEval(ScriptedLanguageModel(lambda _: "", likely({2: 1.0})), mode="weighted", criteria="coherence")
    assert str(weighted.score([EXAMPLE]).signature) == (
        f"method:g_eval|prompt:{G_EVAL_PROMPTS['coherence'].id}|llm:scripted@1|mode:weighted|scale:1-3|level:turn|version:{__version__}"
    )


@pytest.mark.parametrize(
    ("option", "value", "advice"),
    [
        ("mode", "argmax", "one of sampled, weighted"),
        *(("n_samples", value, "a whole number from 1") for value in (0, True)),
        *(("temperature", value, "a number above 0") for value in (0, math.inf)),
        ("unparsed", "zero", "a number"),
        *(("criteria", value, f"some of {', '.join(CRITERIA)}") for value in ("coherence,humour", [])),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(option: str, value: object, advice: str) -> None:
    assert refusal(GEval, always("2"), **{option: value}) == f"g_eval: {option} is {value!r}. Give {advice}."


@pytest.mark.parametrize("options", [{"unparsed": 0}, {"keep_samples": True}])
def test_weighted_draws_no_answers(options: dict[str, object]) -> None:
    assert refusal(GEval, always("2"), mode="weighted", **options) == (
        "g_eval: mode 'weighted' draws no answers, so unparsed and keep_samples have no meaning. "
        "Leave them out, or choose mode 'sampled'."
    )


RATINGS = st.lists(st.one_of(st.integers(1, 5).map(float), st.just(Unscored(Reason.REFUSAL, "no"))), min_size=1, max_size=20)


@given(RATINGS)
def test_a_sampled_rating_is_the_mean_of_what_was_read(ratings: list[float | Unscored]) -> None:
    found = sampled_rating(ratings)
    known = [rating for rating in ratings if not isinstance(rating, Unscored)]
    if len(known) < len(ratings) / 2:
        why = f"{len(known)} of {len(ratings)} answers have a rating, fewer than half: no"
        assert found == Unscored(Reason.REFUSAL, why)
        return
    assert isinstance(found, CriterionRating)
    assert found.mean == pytest.approx(statistics.fmean(known))
    assert found.variance == (pytest.approx(statistics.variance(known)) if len(known) > 1 else None)
    assert found.n_unread == len(ratings) - len(known)
    assert len(found.samples) == len(ratings)


@given(st.lists(st.floats(-50, 0), min_size=3, max_size=3))
def test_a_weighted_rating_is_on_the_scale(logs: list[float]) -> None:
    found = weighted_rating(dict(zip("123", logs, strict=True)), range(1, 4))
    assert isinstance(found, CriterionRating)
    assert 1 <= found.mean <= 3
    assert found.variance is not None
    assert 0 <= found.variance <= 1


def test_the_commonest_reason_is_the_rows() -> None:
    refused, cut = Unscored(Reason.REFUSAL, "no"), Unscored(Reason.TRUNCATED, "cut")
    assert sampled_rating([cut, refused, refused]) == Unscored(
        Reason.REFUSAL, "0 of 3 answers have a rating, fewer than half: no"
    )
