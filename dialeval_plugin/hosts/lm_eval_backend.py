"""Makes any lm-eval model (`hf`, `vllm`, `local-chat-completions`, ...) a `LanguageModel` for our methods."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dialeval_plugin.errors import InputError, MissingPrerequisite
from dialeval_plugin.methods.judging.language_model import NumberListener, TextListener, cut_at_stop
from dialeval_plugin.scoring import Unscored
from dialeval_plugin.signature import content_hash, text_hash

from .lm_eval_asking import (
    NEVER_REPEATED,
    NEVER_REPEATED_LOCALLY,
    Answer,
    Asking,
    NoLogProbabilities,
    Patience,
    is_served,
    take_over_retries,
)

logger = logging.getLogger(__name__)

_SECRET_WORDS = ("key", "token", "auth", "header", "secret", "password", "url")
_NAME_ARGUMENTS = ("pretrained", "model", "path", "engine")
LOCAL_BATCH_SIZE = 8
"""Few enough for the memory that a judge's prompts of some thousand tokens need, and most of the gain of a batch."""
NEVER_SAID = "<|endoftext|>"
"""Stop string of a request that has none."""
HOST_DEVICE = "cuda:0"
"""The host's command line asks for it, and `hf` then does without where there is no GPU; its own default insists on one."""
_SPEED_ARGUMENTS = ("batch_size", "max_batch_size", "num_concurrent", "max_retries", "timeout", "verify_certificate")
"""Arguments that change how fast or how patiently a model is asked, and not what it is."""


class LmEvalLanguageModel:
    """An lm-eval model behind the protocol that our methods know.

    Args:
        lm: the host's model.
        identity: model and revision.
        as_chat: put each prompt into a user message and the model's chat template.
        retries: how often a failed request is repeated; a served model's argument `max_retries` counts instead.
        wait: seconds before the first repetition; each further one waits about twice as long.
    """

    def __init__(self, lm: Any, identity: str, *, as_chat: bool = False, retries: int = 2, wait: float = 1.0) -> None:
        self.lm = lm
        self.identity = identity + ("+chat" if as_chat else "")
        self._as_chat = as_chat
        self._is_served = is_served(lm)
        if self._is_served:
            self._patience = Patience(lm.max_retries, wait, NEVER_REPEATED)
            take_over_retries(lm, self._patience)
        else:
            self._patience = Patience(retries + 1, wait, NEVER_REPEATED_LOCALLY)

    def generate(
        self, prompts: Sequence[str], *, max_tokens: int, stop: Sequence[str], on_answer: TextListener | None = None
    ) -> list[str | Unscored]:
        """Continue each prompt greedily. What a prompt is answered depends neither on the others nor on their order."""
        settings = {"max_gen_toks": max_tokens, "do_sample": False, "temperature": 0.0}
        return self._generate(prompts, stop, settings, on_answer)

    def sample(
        self,
        prompts: Sequence[str],
        *,
        n_samples: int,
        temperature: float,
        max_tokens: int,
        stop: Sequence[str],
        first_sample: int = 0,
        on_answer: TextListener | None = None,
    ) -> list[list[str | Unscored]]:
        """Draw continuations of each prompt. Only a served model takes a seed: those of others differ from run to run."""
        settings = {"max_gen_toks": max_tokens, "do_sample": True, "temperature": temperature}
        if not hasattr(self.lm, "_seed"):
            repeated = [prompt for prompt in prompts for _ in range(n_samples)]
            answers = self._generate(repeated, stop, settings, on_answer)
            return [answers[start : start + n_samples] for start in range(0, len(answers), n_samples)]
        # The host sends one seed with every request, which makes all samples of a prompt equal.
        seed = self.lm._seed
        columns = []
        try:
            for sample in range(n_samples):
                self.lm._seed = seed + first_sample + sample
                columns.append(self._generate(prompts, stop, settings, _at_stride(on_answer, n_samples, sample)))
        finally:
            self.lm._seed = seed
        return [list(samples) for samples in zip(*columns, strict=True)]

    def loglikelihood(
        self, pairs: Sequence[tuple[str, str]], *, on_answer: NumberListener | None = None
    ) -> list[float | Unscored]:
        """Log probability of each continuation after its context.

        Raises:
            InputError: the model generates only.
        """
        arguments = [(self._prompt(context), continuation) for context, continuation in pairs]
        try:
            return self._ask("loglikelihood", arguments, lambda answer: float(answer[0]), on_answer)
        except NoLogProbabilities as error:
            raise InputError(
                f"llm {self.identity}: gives no log probabilities of a prompt's text. "
                "Use a prompt that asks for words, or a model that gives them: hf, vllm, or local-completions where the server "
                "echoes the prompt and llm_args names a tokenizer."
            ) from error

    def count_tokens(self, prompts: Sequence[str]) -> int | None:
        """Tokens of all prompts as they are sent; None where the model's tokenizer is not at hand."""
        # Not getattr: a property may fetch a tokenizer from the hub, as that of the host's dummy does.
        tokenizer = vars(self.lm).get("tokenizer")
        sent = [self._prompt(prompt) for prompt in prompts]
        texts = [text if isinstance(text, str) else prompt for text, prompt in zip(sent, prompts, strict=True)]
        if not texts:
            return 0
        if callable(tokenizer):
            return sum(map(len, tokenizer(texts, add_special_tokens=False)["input_ids"]))
        return None

    def _generate(
        self, prompts: Sequence[str], stop: Sequence[str], settings: dict[str, Any], on_answer: TextListener | None
    ) -> list[str | Unscored]:
        # A server may refuse an empty list; the host has the same default for its chat models.
        until = list(stop) or ([NEVER_SAID] if self._is_served else [])
        # Some backends change the dictionary that they are given: each request has its own.
        arguments = [(self._prompt(prompt), {**settings, "until": list(until)}) for prompt in prompts]
        return self._ask("generate_until", arguments, lambda answer: cut_at_stop(str(answer), stop), on_answer)

    def _prompt(self, text: str) -> Any:
        return self.lm.apply_chat_template([{"role": "user", "content": text}]) if self._as_chat else text

    def _ask(
        self,
        kind: str,
        arguments: Sequence[tuple[Any, Any]],
        read: Callable[[Any], Answer],
        on_answer: Callable[[int, Answer], None] | None,
    ) -> list[Answer | Unscored]:
        asking = Asking(self.lm, kind, arguments, self._patience, read, on_answer)
        # A served model that is asked one batch after the other is handed one at a time: it is known then which one failed.
        one_by_one = self._is_served and self.lm._concurrent <= 1
        return asking.run(self.lm._batch_size if one_by_one else len(arguments))


def _at_stride(on_answer: TextListener | None, n_samples: int, sample: int) -> TextListener | None:
    """Map the place of a prompt to that of its sample."""
    if on_answer is None:
        return None
    return lambda place, answer: on_answer(place * n_samples + sample, answer)


def load_language_model(
    model: str = "hf",
    model_args: str = "",
    *,
    batch_size: int | str | None = None,
    device: str | None = None,
    as_chat: bool | None = None,
) -> LmEvalLanguageModel:
    """Load a model as lm-eval does.

    Args:
        model: lm-eval's name of the kind of model.
        model_args: its arguments as lm-eval writes them, as "pretrained=gpt2,dtype=float32".
        batch_size: prompts at once, also an argument of the model; 8 for `hf`, and otherwise the host's default, which is 1.
        device: as "cpu" or "cuda:1", also an argument of the model; by default a GPU where there is one.
        as_chat: put prompts into the model's chat template; by default where the model is a chat API, which takes no other.

    Raises:
        InputError: there is no such kind of model, or an argument is not understood.
        MissingPrerequisite: the model or a package that it needs is not there.
    """
    from lm_eval.api.registry import get_model
    from lm_eval.utils import simple_parse_args_string

    from .registration import register_models

    try:
        arguments = simple_parse_args_string(model_args)
        register_models()
        kind = get_model(model)
    except (ModuleNotFoundError, NameError) as error:
        raise _missing_package(model, error) from error
    except ValueError as error:
        raise InputError(f"llm {model!r}: {str(error).splitlines()[0]}") from error
    if batch_size is None and model == "hf" and "batch_size" not in arguments:
        batch_size = LOCAL_BATCH_SIZE
    if device is None and "device" not in arguments:
        device = HOST_DEVICE
    name = next((str(arguments[key]) for key in _NAME_ARGUMENTS if key in arguments), "")
    try:
        lm = kind.create_from_arg_string(model_args, {"batch_size": batch_size, "device": device})
    except ModuleNotFoundError as error:
        raise _missing_package(model, error) from error
    except OSError as error:
        raise MissingPrerequisite(
            f"llm {model!r}: the model {name!r} is neither a folder, nor in the Hugging Face cache, nor can it be fetched "
            "from the hub. Check the name, or fetch it on a machine with a network (`hf download " + name + "`)."
        ) from error
    chat = as_chat if as_chat is not None else "chat" in model or model == "litellm"
    return LmEvalLanguageModel(lm, _identity(model, arguments, name, lm), as_chat=chat)


def _missing_package(model: str, error: ModuleNotFoundError | NameError) -> MissingPrerequisite:
    """Say what to install: a package by its name, or the host's extra, which an error of the host's own names in its text."""
    if isinstance(error, NameError):  # the host's API models go on without aiohttp, up to the first use of a name from it
        needed: str | None = "lm-eval[api]"
    elif extra := re.search(r"lm-eval\[\w+\]", str(error)):
        needed = extra[0]
    else:
        needed = error.name
    if not needed:
        return MissingPrerequisite(f"llm {model!r}: {' '.join(str(error).split())}")
    return MissingPrerequisite(
        f"llm {model!r}: needs packages that are not installed. Run pip install '{needed}', or choose another model."
    )


def _identity(model: str, arguments: dict[str, Any], name: str, lm: Any) -> str:
    """Kind, name and revision of the model, and a hash of the arguments that may move an answer; no path and no secret."""
    folder = Path(name)
    if name and folder.is_dir():
        shown, revision = folder.name, content_hash(folder)
    else:
        config = getattr(getattr(lm, "_model", None), "config", None)
        shown, revision = name, str(getattr(config, "_commit_hash", None) or arguments.get("revision") or "unknown")
    others = sorted(
        f"{key}={value}"
        for key, value in arguments.items()
        if key not in {*_NAME_ARGUMENTS, *_SPEED_ARGUMENTS, "revision"} and not any(word in key for word in _SECRET_WORDS)
    )
    return f"{model}:{shown}@{revision}" + (f"#{text_hash(*others)[:8]}" if others else "")
