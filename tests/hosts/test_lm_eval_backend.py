"""lm-eval models as language models for our methods (R46, R55)."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dialeval_plugin.dialogue import Example
from dialeval_plugin.errors import InputError, MissingPrerequisite
from dialeval_plugin.hosts.lm_eval_backend import LmEvalLanguageModel, load_language_model
from dialeval_plugin.methods.judging.criterion_judges import GEval, LlmChiang
from dialeval_plugin.methods.judging.dialogue_rating import DialogueRatingScorer
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.methods.slide.dre import DreScorer
from dialeval_plugin.scoring import Reason, Scorer, Unscored
from tests.tiny_language_models import write_rating_language_model


class Flaky:
    """Fails on prompts that hold "bad", and once on those that hold "once"."""

    def __init__(self) -> None:
        self.calls = 0
        self.failed: set[str] = set()

    def generate_until(self, requests: list[Any]) -> list[str | None]:
        self.calls += 1
        for request in requests:
            prompt = request.args[0]
            if "bad" in prompt or ("once" in prompt and prompt not in self.failed and not self.failed.add(prompt)):
                raise ConnectionError("503")
        return [None if "none" in request.args[0] else f"re: {request.args[0]}" for request in requests]

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        raise AssertionError("this model takes no log probabilities")


def model(lm: Any, **options: Any) -> LmEvalLanguageModel:
    return LmEvalLanguageModel(lm, "flaky@1", wait=0.0, **options)


def test_a_failed_request_leaves_the_others_alone() -> None:
    prompts = ["a", "bad", "c", "once", "none", "f"]
    answers = model(Flaky()).generate(prompts, max_tokens=5, stop=["\n"])
    assert answers == [
        "re: a",
        Unscored(Reason.API_ERROR, "ConnectionError: 503"),
        "re: c",
        "re: once",
        Unscored(Reason.API_ERROR, "the model gave no answer"),
        "re: f",
    ]


def test_a_server_that_is_down_is_not_asked_for_ever() -> None:
    lm = Flaky()
    answers = model(lm, retries=1).generate(["bad"] * 1000, max_tokens=5, stop=[])
    assert {answer.reason for answer in answers if isinstance(answer, Unscored)} == {Reason.API_ERROR}
    assert len(answers) == 1000
    assert lm.calls < 50


def test_a_request_of_the_wrong_kind_is_not_a_documents_failure() -> None:
    with pytest.raises(AssertionError, match=r"^this model takes no log probabilities$"):
        model(Flaky()).loglikelihood([("a", "b")])


def test_a_tiny_model_generates_and_gives_log_probabilities(tiny_lm: Path) -> None:
    lm = load_language_model("hf", f"pretrained={tiny_lm}", device="cpu", batch_size=2)
    (text, other) = lm.generate(["Answer:", "Question:"], max_tokens=3, stop=["\n\n\n"])
    assert isinstance(text, str)
    assert isinstance(other, str)
    values = lm.loglikelihood([("Answer:", form) for form in (" Yes", " No")])
    assert all(isinstance(value, float) and math.isfinite(value) and value < 0 for value in values)
    assert lm.generate(["Question:"], max_tokens=3, stop=["\n\n\n"]) == [other]


def test_without_a_device_a_model_loads_where_there_is_no_gpu(tiny_lm: Path) -> None:
    lm = load_language_model("hf", f"pretrained={tiny_lm}")
    assert lm.lm.device.type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert load_language_model("hf", f"pretrained={tiny_lm},device=cpu").lm.device.type == "cpu"


def test_the_identity_is_the_content_and_not_the_path(tiny_lm: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / tiny_lm.name
    shutil.copytree(tiny_lm, copy)
    one = load_language_model("hf", f"pretrained={tiny_lm}", device="cpu").identity
    assert one == load_language_model("hf", f"pretrained={copy}", device="cpu").identity
    assert str(tmp_path) not in one
    assert one != load_language_model("hf", f"pretrained={copy},dtype=float32", device="cpu").identity
    config = copy / "generation_config.json"
    config.write_text(config.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert one != load_language_model("hf", f"pretrained={copy}", device="cpu").identity


def test_a_real_judge_on_a_tiny_model_reads_or_counts(tiny_lm: Path) -> None:
    judge = PromptedJudge(load_language_model("hf", f"pretrained={tiny_lm}", device="cpu", batch_size=2), prompt="dre")
    scores = judge.score([Example.from_texts(["hi"], "hello"), Example.from_texts(["hi"], "bye")])
    assert scores.n_scored + scores.n_unscored == 2


LONG = Example.from_texts(["tea and rain " * 2000], "hello", id="long")
SHORT = Example.from_texts(["hi"], "hello", id="short")


@pytest.mark.parametrize(
    "make",
    [
        lambda llm: PromptedJudge(llm, prompt="slide"),
        lambda llm: GEval(llm, n_samples=2),
        lambda llm: LlmChiang(llm, n_samples=2, unparsed=1),
        lambda llm: GEval(llm, mode="weighted"),
        DialogueRatingScorer,
        lambda llm: DreScorer(llm, variant="non_dre"),
    ],
    ids=["llm_judge", "g_eval", "llm_chiang", "g_eval weighted", "dialogue_rating", "dre"],
)
def test_d10_a_prompt_beyond_the_window_is_not_asked(make: Callable[[LmEvalLanguageModel], Scorer], tmp_path: Path) -> None:
    """R05: the host cut the instruction away and scored what was left."""
    folder = write_rating_language_model(tmp_path / "lm", " 1")
    llm = load_language_model("hf", f"pretrained={folder}", device="cpu", batch_size=2)
    long, short = make(llm).score_batch([LONG, SHORT])
    assert isinstance(long, Unscored)
    assert long.reason is Reason.CONTEXT_TOO_LONG
    assert not isinstance(short, Unscored), short


def test_d10_what_just_fits_is_asked_and_counted(tiny_lm: Path, caplog: pytest.LogCaptureFixture) -> None:
    llm = load_language_model("hf", f"pretrained={tiny_lm}", device="cpu", batch_size=2)
    fitting, window = " tea" * 1021, 1024
    n_tokens = len(llm.lm.tok_encode(fitting))
    assert n_tokens == 1021
    handed: dict[int, str] = {}
    answers = llm.generate([fitting + " tea", fitting, "tea"], max_tokens=3, stop=[], on_answer=handed.__setitem__)
    detail = f"the prompt has 1022 tokens, and the model's window of {window} has room for 1021"
    assert answers[0] == Unscored(Reason.CONTEXT_TOO_LONG, detail)
    assert handed == {1: answers[1], 2: answers[2]}
    assert (
        "1 of 3 prompts are longer than the model's window of 1024 tokens; they are not asked, and their rows are unscored "
        "(context_too_long)"
    ) in caplog.text
    (fits, cut) = llm.loglikelihood([(fitting + " tea tea", " Yes"), (fitting + " tea tea tea", " Yes")])
    assert isinstance(fits, float)
    assert cut == Unscored(
        Reason.CONTEXT_TOO_LONG, f"the prompt has 1025 tokens, and the model's window of {window} has room for 1024"
    )


def test_a_model_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingPrerequisite) as caught:
        load_language_model("hf", "pretrained=nobody/nothing", device="cpu")
    assert str(caught.value) == (
        "llm 'hf': the model 'nobody/nothing' is neither a folder, nor in the Hugging Face cache, nor can it be fetched "
        "from the hub. Check the name, or fetch it on a machine with a network (`hf download nobody/nothing`)."
    )


def test_a_kind_of_model_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        load_language_model("gpt17", "api_key=hidden")
    assert str(caught.value).startswith(
        "llm 'gpt17': Attempted to load model 'gpt17', but no model for this name found! Supported model names: "
    )
    assert "hidden" not in str(caught.value)
