"""lm-eval models as language models for our methods (R40, R46, R55, R60; FAULTS D2, D11, D16, D18, D20)."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError, MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.hosts.lm_eval.backend import LmEvalLanguageModel, load_language_model
from dialeval_plugin.hosts.lm_eval.versions import has_scorers
from dialeval_plugin.llm.language_model import CutAnswer
from dialeval_plugin.methods.judging.criterion_judges import GEval, LlmChiang
from dialeval_plugin.methods.judging.dialogue_rating import DialogueRatingScorer
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.methods.slide.dre import DreScorer
from tests.refusals import refusal, refused, write_pickle
from tests.requests_for import requests_for
from tests.tiny.language_models import write_rating_language_model


class Flaky:
    """Fails on prompts that hold "bad", and once on "once"."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def generate_until(self, requests: list[Any]) -> list[str | None]:
        prompts = [request.args[0] for request in requests]
        is_first = not any("once" in before for before in self.asked)
        self.asked.append(prompts)
        if "bad" in prompts or ("once" in prompts and is_first):
            raise ConnectionError("503")
        return [None if prompt == "none" else f"re: {prompt}" for prompt in prompts]

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        raise AssertionError("this model takes no log probabilities")


def model(lm: Any, **options: Any) -> LmEvalLanguageModel:
    return LmEvalLanguageModel(lm, "flaky@1", wait=0.0, **options)


def load(folder: Path, **arguments: object) -> LmEvalLanguageModel:
    given = {"pretrained": folder, "device": "cpu", **arguments}
    return load_language_model("hf", ",".join(f"{name}={value}" for name, value in given.items()))


def identity(folder: Path, **arguments: object) -> str:
    return load(folder, **arguments).identity


def test_a_failed_request_leaves_the_others_alone() -> None:
    prompts = ["a", "bad", "c", "once", "none", "f"]
    answers = model(Flaky()).generate(requests_for(prompts, stop=["\n"]))
    down, silent = (Unscored(Reason.API_ERROR, why) for why in ("ConnectionError: 503", "the model gave no answer"))
    assert answers == ["re: a", down, "re: c", "re: once", silent, "re: f"]
    with refused("this model takes no log probabilities", AssertionError):  # of the wrong kind, not a document's failure
        model(Flaky()).loglikelihood([("a", "b")])


def test_a_server_that_is_down_is_not_asked_for_ever() -> None:
    lm = Flaky()
    answers = model(lm, retries=1).generate(requests_for(["bad"] * 1000))
    assert {answer.reason for answer in answers if isinstance(answer, Unscored)} == {Reason.API_ERROR}
    assert len(answers) == 1000
    assert len(lm.asked) < 50


def test_a_tiny_model_generates_and_gives_log_probabilities(tiny_lm: Path) -> None:
    lm = load(tiny_lm, batch_size=2)
    (text, other) = lm.generate(requests_for(["Answer:", "Question:"], max_tokens=3, stop=["\n\n\n"]))
    assert isinstance(text, CutAnswer)
    assert isinstance(other, CutAnswer)
    values = lm.loglikelihood([("Answer:", form) for form in (" Yes", " No")])
    assert all(isinstance(value, float) and math.isfinite(value) and value < 0 for value in values)
    assert lm.generate(requests_for(["Question:"], max_tokens=3, stop=["\n\n\n"])) == [other]


def test_without_a_device_a_model_loads_where_there_is_no_gpu(tiny_lm: Path) -> None:
    lm = load_language_model("hf", f"pretrained={tiny_lm}")
    assert lm.lm.device.type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert load_language_model("hf", f"pretrained={tiny_lm},device=cpu").lm.device.type == "cpu"


def test_the_identity_is_the_content_and_not_the_path(tiny_lm: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_lm, tmp_path / tiny_lm.name)
    one = identity(tiny_lm)
    assert one == identity(copy) != identity(copy, dtype="float32")
    assert str(tmp_path) not in one
    with (copy / "generation_config.json").open("a") as config:
        config.write("\n")
    assert one != identity(copy)


LONG = Example.from_texts(["tea and rain " * 2000], "hello", id="long")
SHORT = Example.from_texts(["hi"], "hello", id="short")


JUDGES: dict[str, Callable[[LmEvalLanguageModel], Scorer]] = {
    "llm_judge": lambda llm: PromptedJudge(llm, prompt="slide"),
    "g_eval": lambda llm: GEval(llm, n_samples=2),
    "llm_chiang": lambda llm: LlmChiang(llm, n_samples=2, unparsed=1),
    "g_eval weighted": lambda llm: GEval(llm, mode="weighted"),
    "dialogue_rating": DialogueRatingScorer,
    "dre": lambda llm: DreScorer(llm, variant="non_dre"),
}


@pytest.mark.parametrize("name", JUDGES)
def test_d10_a_prompt_beyond_the_window_is_not_asked(name: str, tmp_path: Path) -> None:
    """R05: the host cut the instruction away and scored what was left."""
    llm = load(write_rating_language_model(tmp_path / "lm", " 1"), batch_size=2)
    long, short = JUDGES[name](llm).score_batch([LONG, SHORT])
    assert isinstance(long, Unscored)
    assert long.reason is Reason.CONTEXT_TOO_LONG
    assert not isinstance(short, Unscored), short


def test_d10_what_just_fits_is_asked_and_counted(tiny_lm: Path, caplog: pytest.LogCaptureFixture) -> None:
    llm = load(tiny_lm, batch_size=2)
    fitting = " tea" * 1021
    assert len(llm.lm.tok_encode(fitting)) == 1021
    detail = "the prompt has {} tokens, and the model's window of 1024 has room for {}"
    handed: dict[int, str] = {}
    answers = llm.generate(requests_for([fitting + " tea", fitting, "tea"], max_tokens=3), on_answer=handed.__setitem__)
    assert answers[0] == Unscored(Reason.CONTEXT_TOO_LONG, detail.format(1022, 1021))
    assert handed == {1: answers[1], 2: answers[2]}
    assert (
        "1 of 3 prompts are longer than the model's window of 1024 tokens; they are not asked, and their rows are unscored "
        "(context_too_long)"
    ) in caplog.text
    (fits, cut) = llm.loglikelihood([(fitting + " tea tea", " Yes"), (fitting + " tea tea tea", " Yes")])
    assert isinstance(fits, float)
    assert cut == Unscored(Reason.CONTEXT_TOO_LONG, detail.format(1025, 1024))


@pytest.mark.long
def test_a_model_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # Its variable is read when the hub's package is imported; without it a closed network is tried for 23 seconds.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with refused(
        "llm 'hf': the model 'nobody/nothing' is neither a folder, nor in the Hugging Face cache, nor can it be fetched "
        "from the hub. Check the name, or fetch it on a machine with a network (`hf download nobody/nothing`).",
        MissingPrerequisite,
    ):
        load_language_model("hf", "pretrained=nobody/nothing", device="cpu")


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("hf", "garbage", "llm 'hf': llm_args lacks pretrained. Give llm_args='pretrained=...'."),
        (
            "local-completions",
            "num_concurrent=4",
            "llm 'local-completions': llm_args lacks model and base_url. Give llm_args='model=...,base_url=...'.",
        ),
        (
            "local-completions",
            "pretrained=m",
            "llm 'local-completions': llm_args lacks base_url. Give llm_args='base_url=...'.",
        ),
        (
            "openai-chat-completions",
            "seed=1",
            "llm 'openai-chat-completions': llm_args lacks model. Give llm_args='model=...'.",
        ),
        (
            "hf",
            "pretrained={lm},nonsense=5",
            "llm 'hf': there is no argument 'nonsense'. Known are: pretrained, backend, revision, ",
        ),
        (
            "local-chat-completions",
            "model=m,base_url=http://localhost:1/v1,max_retires=9",
            "llm 'local-chat-completions': there is no argument 'max_retires'. Did you mean 'max_retries'? Known are: ",
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
    with refused(
        f"{tiny_lm}: cannot be opened as a judge (f() got an unexpected keyword argument 'inner'). Copy the folder again.",
        ModelLoadError,
    ):
        load_language_model("hf", f"pretrained={tiny_lm}", device="cpu")


def test_a_missing_key_stops_at_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """TRIAL section 2: ten rows were ten attempts and 23 seconds."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    lm = load_language_model("openai-chat-completions", "model=gpt-4o")
    with refused(
        f"llm {lm.identity}: API key not found. Please set the `OPENAI_API_KEY` environment variable.", MissingPrerequisite
    ):
        lm.generate(requests_for(["a"] * 10))


def test_missing_packages_are_named_where_only_the_hosts_message_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """TRIAL section 2: without lm-eval[api] the message was "needs the package None"."""
    monkeypatch.setattr("lm_eval.models.api_models.find_spec", lambda package: None if package == "tenacity" else object())
    with refused(
        "llm 'openai-chat-completions': needs packages that are not installed. Run pip install 'lm-eval[api]', or choose "
        "another model.",
        MissingPrerequisite,
    ):
        load_language_model("openai-chat-completions", "model=gpt-4o")


@pytest.mark.skipif(has_scorers(), reason="lm-eval 0.5.0.dev1 registers watsonx_llm twice, and stops there")
def test_the_extra_that_only_an_import_error_names_is_what_to_install() -> None:
    with refused(
        "llm 'watsonx_llm': needs packages that are not installed. Run pip install 'lm_eval[ibm_watsonx_ai]', or choose "
        "another model.",
        MissingPrerequisite,
    ):
        load_language_model("watsonx_llm", "model_id=m")


def test_a_kind_of_model_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        load_language_model("gpt17", "api_key=hidden")
    assert str(caught.value).startswith(
        "llm 'gpt17': Attempted to load model 'gpt17', but no model for this name found! Supported model names: "
    )
    assert "hidden" not in str(caught.value)


# Identity (R60)


MOVING = [{"add_bos_token": True}, {"prefix_token_id": 5}, {"think_end_token": "no"}]
MOVING += [{"use_fast_tokenizer": False}, {"max_length": 100}]


@pytest.mark.parametrize("argument", MOVING)
def test_r60_d2_every_argument_that_may_move_an_answer_is_in_the_identity(tiny_lm: Path, argument: dict[str, object]) -> None:
    assert identity(tiny_lm, **argument) != identity(tiny_lm)


def test_r60_d2_another_tokenizer_is_another_model_wherever_it_lies(tiny_lm: Path, tmp_path: Path) -> None:
    one, same = (shutil.copytree(tiny_lm, tmp_path / name) for name in ("one", "same"))
    plain, with_one = identity(tiny_lm), identity(tiny_lm, tokenizer=one)
    assert plain != with_one
    assert with_one == identity(tiny_lm, tokenizer=same)
    (same / "tokenizer_config.json").write_text((same / "tokenizer_config.json").read_text() + " ")
    assert with_one != identity(tiny_lm, tokenizer=same)
    assert str(tmp_path) not in with_one


@pytest.mark.parametrize("name", ["chat_template.jinja", "pytorch_model.bin"])
def test_r60_d2_a_template_and_pickled_weights_are_part_of_the_model(tiny_lm: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(tiny_lm, tmp_path / tiny_lm.name)
    assert identity(folder) == identity(tiny_lm)
    (folder / name).write_text("{{ messages }}")
    assert identity(folder) != identity(tiny_lm)


def test_r60_d2_the_versions_of_the_hosts_are_part_of_the_identity(tiny_lm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity(tiny_lm)
    assert before.endswith(f"+lm_eval-{version('lm_eval')}+transformers-{version('transformers')}")
    monkeypatch.setattr("dialeval_plugin.hosts.lm_eval.backend.version", lambda package: "99")
    assert identity(tiny_lm) == before.partition("+")[0] + "+lm_eval-99+transformers-99"


def served(**arguments: object) -> str:
    given = {"model": "m", "base_url": "http://127.0.0.1:1/v1/completions", "tokenizer_backend": "none", **arguments}
    return load_language_model("local-completions", ",".join(f"{name}={value}" for name, value in given.items())).identity


def test_r60_d2_another_server_is_another_model_and_no_secret_is_in_its_identity() -> None:
    plain = served()
    assert plain != served(base_url="http://127.0.0.1:2/v1/completions")
    for secret in ("auth_token", "header"):
        assert served(**{secret: "passw0rd"}) == plain
    assert served(base_url="http://me:passw0rd@127.0.0.1:1/v1/completions?api-key=passw0rd") == plain
    named = served(model="https://me:passw0rd@host/model")
    assert named.startswith("local-completions:https://host/model@unknown#")
    assert served(seed=7) != plain


# Pickles (R40)


@pytest.mark.parametrize("name", ["pretrained", "peft", "delta"])
def test_r40_d20_a_judges_pickle_is_refused_unopened(tiny_lm: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(tiny_lm, tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    write_pickle(folder / "pytorch_model.bin", tmp_path / "trace")
    with refused(
        f"llm 'hf': {folder / 'pytorch_model.bin'}: pickled weights run code when they are read, so they are never opened. "
        "Convert them to safetensors where you trust them: `safetensors.torch.save_file(state_dict, 'model.safetensors')`. "
        "If you trust whoever made the file, llm_args can ask for it by name: use_safetensors=False (vllm: load_format=pt).",
        ModelLoadError,
    ):
        load(tiny_lm, **{name: folder})
    assert not (tmp_path / "trace").exists()


def test_d20_a_judges_pickle_that_is_asked_for_by_name_is_opened(tiny_lm: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_lm, tmp_path / "pickled")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    pairs = [("Answer:", " Yes"), ("Answer:", " No")]
    assert load(folder, use_safetensors=False).loglikelihood(pairs) == load(tiny_lm).loglikelihood(pairs)


# Arguments and damage


@pytest.mark.parametrize("device", ["cuda:99", "nonsense"])
def test_d18_a_device_that_is_not_here_is_said_instead_of_another_one_taken(tiny_lm: Path, device: str) -> None:
    said = refusal(load, tiny_lm, device=device)
    assert said.startswith(f"device {device!r}: cannot be used here (")
    assert said.endswith("). Leave the option out, or give 'cpu'.")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_d16_a_damaged_judge_is_named(tiny_lm: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(tiny_lm, tmp_path / "damaged")
    os.truncate(folder / name, 50)
    said = refusal(load, folder, error=ModelLoadError)
    assert said.startswith(f"{folder}: cannot be opened as a judge (")
    assert said.endswith("). Copy the folder again.")
    assert "\n" not in said
