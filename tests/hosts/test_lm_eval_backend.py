"""lm-eval models as language models for our methods (R46, R55)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from dialeval_plugin.dialogue import Example
from dialeval_plugin.errors import InputError, MissingPrerequisite
from dialeval_plugin.hosts.lm_eval_backend import LmEvalLanguageModel, load_language_model
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.scoring import Reason, Unscored


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


def test_a_model_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingPrerequisite) as caught:
        load_language_model("hf", "pretrained=nobody/nothing", device="cpu")
    assert str(caught.value) == (
        "llm 'hf': the model 'nobody/nothing' is neither a folder, nor in the Hugging Face cache, nor can it be fetched "
        "from the hub. Check the name, or fetch it on a machine with a network (`hf download nobody/nothing`)."
    )


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("hf", "garbage", "llm 'hf': the argument 'pretrained' is missing. Give it as llm_args='pretrained=...'."),
        (
            "hf",
            "pretrained={lm},nonsense=5",
            "llm 'hf': there is no argument 'nonsense'. Known are: pretrained, backend, revision, ",
        ),
        (
            "local-chat-completions",
            "model=m,base_url=http://localhost:1/v1,max_retires=9",
            "llm 'local-chat-completions': there is no argument 'max_retires'. Known are: ",
        ),
    ],
)
def test_d18_an_argument_that_a_model_does_not_take_is_named(kind: str, arguments: str, message: str, tiny_lm: Path) -> None:
    """Issue item 7: what a served model does not know it swallows, and `hf` ends in a traceback."""
    with pytest.raises(InputError) as caught:
        load_language_model(kind, arguments.format(lm=tiny_lm), device="cpu")
    assert str(caught.value).startswith(message)
    if kind == "local-chat-completions":
        assert {"max_retries", "num_concurrent", "base_url"} <= set(str(caught.value).rstrip(".").split(": ")[2].split(", "))


def test_a_type_error_from_inside_a_model_is_not_the_users_argument(tiny_lm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise TypeError("f() got an unexpected keyword argument 'inner'")

    monkeypatch.setattr("lm_eval.models.huggingface.HFLM._create_model", broken)
    with pytest.raises(TypeError, match=r"^f\(\) got an unexpected keyword argument 'inner'$"):
        load_language_model("hf", f"pretrained={tiny_lm}", device="cpu")


def test_a_missing_key_stops_at_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """TRIAL section 2: ten rows were ten attempts and 23 seconds."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    lm = load_language_model("openai-chat-completions", "model=gpt-4o")
    with pytest.raises(MissingPrerequisite) as caught:
        lm.generate(["a"] * 10, max_tokens=5, stop=[])
    assert str(caught.value) == (f"llm {lm.identity}: API key not found. Please set the `OPENAI_API_KEY` environment variable.")


def test_missing_packages_are_named_where_only_the_hosts_message_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """TRIAL section 2: without lm-eval[api] the message was "needs the package None"."""
    monkeypatch.setattr("lm_eval.models.api_models.find_spec", lambda package: None if package == "tenacity" else object())
    with pytest.raises(MissingPrerequisite) as caught:
        load_language_model("openai-chat-completions", "model=gpt-4o")
    assert str(caught.value) == (
        "llm 'openai-chat-completions': Attempted to use an API model, but the required packages ['tenacity'] are not "
        "installed. Run `pip install 'lm-eval[api]'`, or choose another model."
    )


def test_a_kind_of_model_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        load_language_model("gpt17", "api_key=hidden")
    assert str(caught.value).startswith(
        "llm 'gpt17': Attempted to load model 'gpt17', but no model for this name found! Supported model names: "
    )
    assert "hidden" not in str(caught.value)
