"""A causal language model behind transformers' own OpenAI-compatible server, and the same model in this process.

What transformers' server does not give: log probabilities of a prompt (its /v1/completions ignores `echo` and `logprobs`)
and samples (it reads the temperature, and draws only where the model's own settings say so). The loopback server below does
echo log probabilities.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from dialeval_plugin.core.scores import Scores
from dialeval_plugin.corpora import mini
from dialeval_plugin.hosts.lm_eval.backend import LmEvalLanguageModel, load_language_model
from dialeval_plugin.llm.answers import AnswerCache, CachedLanguageModel, Usage
from dialeval_plugin.llm.language_model import Request
from dialeval_plugin.methods.judging.judge import SCORING_PROMPTS, PromptedJudge
from dialeval_plugin.methods.judging.prompts import goodness_prompt
from dialeval_plugin.methods.judging.rubric import RubricJudge
from dialeval_plugin.methods.slide.cascade import CascadeScorer
from tests import forked
from tests.cli.running import environment
from tests.loopback import Reply, serve
from tests.refusals import refused
from tests.requests_for import requests_for
from tests.tiny.language_models import write_random_language_model, write_rating_language_model

pytestmark = pytest.mark.long

SERVE = "import sys; from transformers.cli.serve import Serve; Serve(host='127.0.0.1', port=int(sys.argv[1]), device='cpu')"
UNTOKENIZED = {"tokenizer_backend": "none", "tokenized_requests": False}
EXAMPLES = mini.read_examples("test")[:8]
PROMPTS = [SCORING_PROMPTS["dre"].render(example) for example in EXAMPLES]


class Server:
    """transformers' server in a process of its own; it loads the model that a request names."""

    def __init__(self, folder: Path, host: Path) -> None:
        self._folder, self._host = folder, host
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-c", SERVE, self.port]
        env = environment(self._folder, OMP_NUM_THREADS="1", PYTHONPATH=str(self._host))
        self._number, self._ended = forked.start(command, cwd=self._folder, env=env, timeout=3600)
        for _ in range(1800):
            assert not self._ended.done(), self._ended.result().stderr
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.1)
        raise AssertionError("the server did not start in three minutes")

    def kill(self) -> None:
        os.kill(self._number, signal.SIGKILL)
        self._ended.result()

    def model(self, folder: Path, kind: str = "local-completions", **arguments: object) -> LmEvalLanguageModel:
        path = "chat/completions" if "chat" in kind else "completions"
        given = {"model": folder, "base_url": f"http://127.0.0.1:{self.port}/v1/{path}", **UNTOKENIZED, **arguments}
        return load_language_model(kind, ",".join(f"{name}={value}" for name, value in given.items()))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, small_host: Path) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("server"), small_host)
    yield running
    running.kill()


@pytest.fixture(scope="module")
def random_lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_random_language_model(tmp_path_factory.mktemp("random-lm"))


@pytest.fixture(scope="module")
def rating_lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rating_language_model(tmp_path_factory.mktemp("rating-lm"))


@pytest.mark.parametrize(("kind", "concurrent"), [("local-completions", 1), ("local-chat-completions", 4)])
def test_the_same_prompts_get_the_same_texts_over_http_and_in_process(
    kind: str, concurrent: int, server: Server, random_lm: Path
) -> None:
    requests = requests_for(PROMPTS, max_tokens=12, stop=["\n\n"])
    in_process = load_language_model("hf", f"pretrained={random_lm}", device="cpu", as_chat="chat" in kind)
    expected = in_process.generate(requests)
    assert len(set(expected)) > 4
    assert server.model(random_lm, kind, num_concurrent=concurrent).generate(requests) == expected


@pytest.mark.parametrize("kind", ["local-completions", "local-chat-completions"])
def test_a_judge_gives_the_same_scores_over_http_and_in_process(kind: str, server: Server, rating_lm: Path) -> None:
    served = PromptedJudge(server.model(rating_lm, kind), prompt="dre").score(EXAMPLES)
    in_process = load_language_model("hf", f"pretrained={rating_lm}", device="cpu", as_chat="chat" in kind)
    local = PromptedJudge(in_process, prompt="dre").score(EXAMPLES)
    assert served.values == local.values == (0.8,) * len(EXAMPLES)


def test_a_served_model_answers_a_rubric(server: Server, rating_lm: Path) -> None:
    served = RubricJudge(server.model(rating_lm, "local-chat-completions"), "How well does it fit?", "1-5")
    assert served.score(EXAMPLES).values == (4.0,) * len(EXAMPLES)


def test_a_cascade_asks_a_served_model_about_the_unsure_alone(server: Server, rating_lm: Path) -> None:
    model = CachedLanguageModel(server.model(rating_lm, "local-chat-completions"), None)
    scores = CascadeScorer("general", llm=PromptedJudge(model, prompt="dre"), cascade=0.3).score(EXAMPLES)
    unsure = [abs(value - 0.5) <= 0.3 for value in scores.columns["general"] if value is not None]
    assert 0 < sum(unsure) < len(EXAMPLES)
    assert scores.columns["llm"] == tuple(0.8 if one else None for one in unsure)
    assert model.usage.n_asked == sum(unsure)


@pytest.mark.parametrize("kind", ["local-completions", "local-chat-completions"])
def test_a_server_without_log_probabilities_is_refused(kind: str, server: Server, random_lm: Path) -> None:
    judge = server.model(random_lm, kind, tokenizer_backend="huggingface", tokenizer=random_lm)
    with refused(
        f"llm {judge.identity}: gives no log probabilities of a prompt's text. Use a prompt that asks for words, or a model "
        "that gives them: hf, vllm, or local-completions where the server echoes the prompt and llm_args names a tokenizer."
    ):
        judge.loglikelihood([(PROMPTS[0], " Yes")])


class Watched:
    """A served model that calls `then` when it has answered so many prompts; it notes the prompts that were answered."""

    def __init__(self, model: LmEvalLanguageModel, n_answers: int, then: Callable[[], None]) -> None:
        self.model = model
        self.identity = model.identity
        self.answered: list[str] = []
        self._n_answers = n_answers
        self._then = then

    def generate(self, requests: Sequence[Request], *, on_answer: Any) -> Any:
        def heard(place: int, answer: str) -> None:
            on_answer(place, answer)
            self.answered.append(requests[place].prompt)
            if len(self.answered) == self._n_answers:
                self._then()

        return self.model.generate(requests, on_answer=heard)


def test_a_server_killed_half_way_costs_what_it_had_not_answered(server: Server, rating_lm: Path, tmp_path: Path) -> None:
    concurrent = 2

    def score(then: Callable[[], None], n_answers: int) -> tuple[Scores, Usage, list[str]]:
        watched = Watched(server.model(rating_lm, num_concurrent=concurrent, max_retries=1), n_answers, then)
        model = CachedLanguageModel(watched, AnswerCache(tmp_path / "answers.sqlite"))  # type: ignore[arg-type]
        return PromptedJudge(model, prompt="dre").score(EXAMPLES), model.usage, watched.answered

    broken, usage, first = score(server.kill, 3)
    n_left = len(EXAMPLES) - len(first)
    assert 3 <= len(first) < 3 + concurrent
    assert (broken.n_scored, broken.unscored_by_reason, usage.n_failed) == (len(first), {"api_error": n_left}, n_left)
    server.start()
    whole, usage, second = score(lambda: None, 0)
    assert whole.values == (0.8,) * len(EXAMPLES)
    assert (usage.n_cached, usage.n_asked, usage.n_failed) == (len(first), n_left, 0)
    assert Counter(first + second) == dict.fromkeys(PROMPTS, 1)


# Log probabilities, from a server that echoes the prompt


def echoed(folder: Path) -> Callable[[dict[str, Any]], Reply]:
    """The rule of a /v1/completions with `echo` and `logprobs`: one choice a prompt, as token ids."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder).eval()

    def rule(body: dict[str, Any]) -> Reply:
        assert body["echo"]
        prompts = body["prompt"] if isinstance(body["prompt"][0], list) else [body["prompt"]]
        choices = []
        for index, ids in enumerate(prompts):
            with torch.inference_mode():
                logs = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), dim=-1)
            of_prompt = [None, *(float(logs[place, token]) for place, token in enumerate(ids[1:]))]
            best = [None, *({"best": float(row.max())} for row in logs[:-1])]
            # The host drops the last one, which stands for the token that is generated.
            choices.append({"index": index, "logprobs": {"token_logprobs": [*of_prompt, 0.0], "top_logprobs": [*best, {}]}})
        return Reply({"choices": choices})

    return rule


@pytest.mark.parametrize(("concurrent", "batch_size"), [(1, 1), (4, 3)])
def test_log_probabilities_are_the_same_over_http_and_in_process(concurrent: int, batch_size: int, random_lm: Path) -> None:
    pairs = [(goodness_prompt(example), form) for example in EXAMPLES[:4] for form in (" Yes", " No", "yes")]
    expected = load_language_model("hf", f"pretrained={random_lm},max_length=4096", device="cpu").loglikelihood(pairs)
    with serve(echoed(random_lm)) as loopback:
        arguments = f"model=any,base_url={loopback.completions},tokenizer={random_lm},tokenizer_backend=huggingface"
        limits = f"max_length=4096,num_concurrent={concurrent},batch_size={batch_size}"
        served = load_language_model("local-completions", f"{arguments},{limits}").loglikelihood(pairs)
    assert len(set(expected)) == len(pairs)
    assert served == pytest.approx(expected, abs=1e-4)
