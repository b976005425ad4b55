"""Adapter that makes any lm-eval model (`hf`, `vllm`, `local-chat-completions`, ...) a `LanguageModel` for our methods.

Its arguments, API key and packages are checked before the first request.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import Json

from dialeval_plugin.core.errors import InputError, MissingPrerequisite, ModelLoadError, unknown_name
from dialeval_plugin.core.files import checked, parse_json
from dialeval_plugin.core.redaction import redacted, without_secrets
from dialeval_plugin.core.registry import Positive, make_options
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.core.signature import content_hash, file_hash, text_hash
from dialeval_plugin.hosts.registration import register_models, replaced
from dialeval_plugin.llm import language_model
from dialeval_plugin.llm.parsing import unread
from dialeval_plugin.llm.reasoning import split_reasoning
from dialeval_plugin.methods.judging.goodness import format_decimal
from dialeval_plugin.models.folders import opening, refuse_pickles

from . import asking, versions

logger = logging.getLogger(__name__)

_NAME_ARGUMENTS = ("pretrained", "model", "path", "engine")
_WEIGHT_ARGUMENTS = ("pretrained", "model", "peft", "delta")
LOCAL_BATCH_SIZE = 8
"""Batch size for local models: small enough for judge prompts of some thousand tokens, with most of a batch's gain in speed."""
TOKENS_WHEN_CUT = 4096
"""Token limit of the second attempt after an answer was truncated before its verdict: enough for most reasoning models."""
_N_MARKS = 8
"""Tokens that a tokenizer may add to those of a text."""
NEVER_SAID = "<|endoftext|>"
HOST_DEVICE = "cuda:0"
"""Default device of the host's command line, where `hf` falls back to the CPU; the Python default insists on a GPU."""
_SPEED_ARGUMENTS = ("batch_size", "max_batch_size", "num_concurrent", "max_retries", "timeout", "verify_certificate")
"""Arguments that change the speed or patience of requests and not the model."""
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")
_EXTRA = re.compile(r"lm[-_]eval\[\w+\]")
_PATHS = {
    f"{server}-{path.replace('/', '-')}": path for server in ("local", "openai") for path in ("completions", "chat/completions")
}
"""Paths of servers by the models whose `base_url` is posted to as it is; the host completes those of other models."""


@dataclass(frozen=True)
class OwnArguments:
    """Arguments of `llm_args` that every kind of model takes and that say how to prompt it."""

    max_gen_toks: Positive | None = None
    apply_chat_template: bool | None = None
    chat_template_kwargs: str | None = None
    """A JSON object."""
    structured_output: bool = False
    """Whether to request each answer as JSON with a schema (`response_format`), which only chat servers support."""


_OWN = tuple(field.name for field in fields(OwnArguments))


class LmEvalLanguageModel:
    """An lm-eval model as a `LanguageModel` for our methods.

    Args:
        lm: the host's model.
        identity: model and revision.
        as_chat: put each prompt into a user message and the model's chat template.
        retries: how often a failed request is repeated; a served model's argument `max_retries` takes precedence.
        wait: seconds before the first repetition; each further one waits about twice as long.
        own: how to prompt the model. `max_gen_toks` overrides the limit of each request. Without it, a chat model whose answer
            was truncated before its verdict gets one more attempt, with `TOKENS_WHEN_CUT`; a model that only continues text
            does not. With `structured_output`, an answer must be JSON with the names of `Request.form` to be read.
    """

    def __init__(
        self,
        lm: Any,
        identity: str,
        *,
        as_chat: bool = False,
        retries: int = 2,
        wait: float = 1.0,
        own: OwnArguments | None = None,
    ) -> None:
        versions.redact_host_logs()
        self.lm, self._own = lm, own or OwnArguments()
        self.identity = identity + ("+chat" if as_chat else "") + ("+json" if self._own.structured_output else "")
        self._as_chat = as_chat
        self._is_served = versions.is_a(type(lm), "TemplateAPI")
        self._seed: int | None = getattr(lm, "_seed", None)
        if not self._is_served:
            asking.note_cut_answers(lm)
        self._budget = lm.budget if self._is_served else asking.RetryBudget(retries + 1, wait, asking.NEVER_REPEATED_LOCALLY)
        window = self._window()
        self._tokens_when_cut = TOKENS_WHEN_CUT if window is None else min(TOKENS_WHEN_CUT, window // 2)

    def generate(
        self, requests: Sequence[language_model.Request], *, on_answer: language_model.TextListener | None = None
    ) -> list[language_model.Text | Unscored]:
        """Continue each prompt. A greedy answer depends neither on the other prompts nor on their order.

        Sampled answers of a served model have a seed, made of the model's seed and the number of the sample; those of other
        models differ from run to run.
        """
        if self._own.structured_output and not all(request.form for request in requests):
            raise InputError(
                f"llm {self.identity}: structured_output asks for ratings and labels, and this prompt asks for a text. "
                "Leave structured_output out of llm_args."
            )

        def hear(place: int, answer: language_model.Text) -> None:
            if on_answer is not None and not self._is_asked_again(requests[place], answer):
                on_answer(place, answer)

        answers = self._generate(requests, hear)
        again = [place for place, answer in enumerate(answers) if self._is_asked_again(requests[place], answer)]
        if again:
            logger.warning(
                "%d of %d answers were cut before their verdict; they are asked for once more, with %d tokens. "
                "max_gen_toks=%d in llm_args asks with as many at once.",
                *(len(again), len(requests), self._tokens_when_cut, self._tokens_when_cut),
            )
            longer = [replace(requests[place], max_tokens=self._tokens_when_cut) for place in again]
            answers_again = self._generate(longer, _at(again, on_answer or (lambda *_: None)))
            for place, answer in zip(again, answers_again, strict=True):
                # A server whose context window is too small for so many tokens refuses: the first answer stays.
                if not isinstance(answer, Unscored) or answer.reason is not Reason.API_ERROR:
                    answers[place] = answer
        return answers

    def _is_asked_again(self, request: language_model.Request, answer: language_model.Text | Unscored) -> bool:
        is_cut = answer.reason is Reason.TRUNCATED if isinstance(answer, Unscored) else not isinstance(answer, str)
        return (
            is_cut
            and self._as_chat
            and self._own.max_gen_toks is None
            and request.max_tokens < self._tokens_when_cut
            and isinstance(request.read(answer), Unscored)
        )

    def _generate(
        self, requests: Sequence[language_model.Request], on_answer: language_model.TextListener
    ) -> list[language_model.Text | Unscored]:
        groups: dict[language_model.Request, list[int]] = {}
        for place, request in enumerate(requests):
            # The host sends one seed with all requests of a call, which would make all samples of a prompt equal.
            sample = request.sample if self._seed is not None and request.temperature > 0 else 0
            form = request.form if self._own.structured_output else ""
            groups.setdefault(replace(request, prompt="", sample=sample, form=form), []).append(place)
        answers: dict[int, language_model.Text | Unscored] = {}
        for settings, places in groups.items():
            # Stop strings end a text that is only continued; a chat model ends by itself, and may begin with an empty line.
            stop = () if self._as_chat else settings.stop
            # A server may refuse an empty list; this is the host's default for its chat models.
            until = list(stop) or ([NEVER_SAID] if self._is_served else [])
            drawn = {"do_sample": settings.temperature > 0, "temperature": settings.temperature}
            options: dict[str, Any] = {"max_gen_toks": self._own.max_gen_toks or settings.max_tokens, **drawn}
            read: Callable[[Any], Any] = functools.partial(_ended, stop=stop)
            if settings.form:
                properties = json.loads(settings.form)
                schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
                wanted = {"name": "verdict", "strict": True, "schema": schema}
                options["response_format"] = {"type": "json_schema", "json_schema": wanted}
                read = functools.partial(_from_json, form=settings.form)
            # Some backends change the dictionary that they receive, so each request has its own.
            arguments = [(self._prompt(requests[place].prompt), {**options, "until": list(until)}) for place in places]
            seed = None if self._seed is None else self._seed + settings.sample
            with replaced(self.lm, "_seed", seed):
                texts = self._ask("generate_until", arguments, read, _at(places, on_answer))
            answers.update(zip(places, texts, strict=True))
        return [answers[place] for place in range(len(requests))]

    def loglikelihood(
        self, pairs: Sequence[language_model.Continuation], *, on_answer: language_model.NumberListener | None = None
    ) -> list[float | Unscored]:
        """Return the log probability of each continuation after its context."""
        arguments = [(self._prompt(context), continuation) for context, continuation in pairs]
        try:
            return self._ask("loglikelihood", arguments, lambda answer: float(answer[0]), on_answer)
        except asking.NoLogProbabilities as error:
            raise InputError(
                f"llm {self.identity}: gives no log probabilities of a prompt's text. "
                "Use a prompt that asks for words, or a model that gives them: hf, vllm, or local-completions where the server "
                "echoes the prompt and llm_args names a tokenizer."
            ) from error

    def count_tokens(self, prompts: Sequence[str]) -> int | None:
        """Return the number of tokens in all prompts as they are sent; None if the model's tokenizer is not available."""
        # Not getattr: a property may fetch a tokenizer from the hub, as the one of the host's dummy model does.
        tokenizer = vars(self.lm).get("tokenizer")
        texts = [text if isinstance(text := self._prompt(prompt), str) else prompt for prompt in prompts]
        if not callable(tokenizer):
            return None
        return sum(map(len, tokenizer(texts, add_special_tokens=False)["input_ids"]))

    def _prompt(self, text: str) -> Any:
        return self.lm.apply_chat_template([{"role": "user", "content": text}]) if self._as_chat else text

    def _ask(
        self,
        kind: str,
        arguments: Sequence[tuple[Any, Any]],
        read: Callable[[Any], asking.Answer | Unscored],
        on_answer: Callable[[int, asking.Answer], None] | None,
    ) -> list[asking.Answer | Unscored]:
        try:
            # A missing key of a served model stops the run instead of every row.
            getattr(self.lm, "api_key", None)
        except ValueError as error:
            raise MissingPrerequisite(f"llm {self.identity}: {error}") from None
        overlong = self._overlong(arguments)
        places = [place for place in range(len(arguments)) if place not in overlong]
        handed = None if on_answer is None else _at(places, on_answer)
        fitting = [arguments[place] for place in places]
        answers = iter(asking.BatchedRequests(self.lm, kind, fitting, self._budget, read, handed).run())
        return [overlong[place] if place in overlong else next(answers) for place in range(len(arguments))]

    def _overlong(self, arguments: Sequence[tuple[Any, Any]]) -> dict[int, Unscored]:
        """Return the requests that the host would truncate at the start, where the question is, to fit the context window."""
        window = self._window()
        if window is None:
            return {}
        overlong = {}
        for place, (prompt, rest) in enumerate(arguments):
            room, text = (window - rest["max_gen_toks"], prompt) if isinstance(rest, dict) else (window, prompt + rest)
            # A token is at least one byte, except for the few that mark beginning and end.
            if len(text.encode("utf-8", "surrogatepass")) + _N_MARKS <= room:
                continue
            if (n_tokens := len(self.lm.tok_encode(text))) > room:
                detail = f"the prompt has {n_tokens} tokens, and the model's window of {window} has room for {max(0, room)}"
                overlong[place] = Unscored(Reason.CONTEXT_TOO_LONG, detail)
        if overlong:
            logger.warning(
                "%d of %d prompts are longer than the model's window of %d tokens; they are not asked, and their rows are "
                "unscored (context_too_long)",
                *(len(overlong), len(arguments), window),
            )
        return overlong

    def _window(self) -> int | None:
        """Return the host's limit on tokens of prompt and answer together; None if only the server enforces one."""
        if self._is_served and not self.lm.tokenized_requests:
            return None
        window = getattr(self.lm, "max_length", None)
        return window if isinstance(window, int) and callable(getattr(self.lm, "tok_encode", None)) else None


def _ended(answer: object, stop: Sequence[str]) -> language_model.Text:
    """Return an answer up to its first stop string; without one, it may have been truncated."""
    text = answer.text if isinstance(answer, language_model.CutAnswer) else str(answer)
    ended = language_model.cut_at_stop(text, stop)
    return answer if isinstance(answer, language_model.CutAnswer) and ended == text else ended


def _from_json(answer: language_model.Text, form: str) -> str | Unscored:
    """Return the lines that a prompt requests, such as "Rating: 4", from a JSON object with exactly the names of a form.

    Any other answer is unscored even if it could be read, because a server may ignore the requested format in silence.
    """
    text = language_model.text_of(answer)
    with contextlib.suppress(InputError):
        values = checked(parse_json(split_reasoning(text).text, ""), dict[str, float | str], "", advice="")
        if values.keys() == json.loads(form).keys():
            texts = {name: value if isinstance(value, str) else format_decimal(value) for name, value in values.items()}
            return "\n".join(f"{name.replace('_', ' ')}: {text}" for name, text in texts.items())
    if isinstance(answer, str):
        return unread(Reason.PARSE_FAILURE, "the answer is not the JSON that structured_output asks for", text)
    cut = unread(Reason.TRUNCATED, "the answer was cut off before its JSON was complete", text)
    return replace(cut, detail=f"{cut.detail}. {language_model.MORE_ROOM}")


def _at(places: Sequence[int], on_answer: Callable[[int, asking.Answer], None]) -> Callable[[int, asking.Answer], None]:
    return lambda index, answer: on_answer(places[index], answer)


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
        model_args: its arguments in lm-eval's syntax, for example "pretrained=gpt2,dtype=float32".
        batch_size: prompts per batch, also an argument of the model; default 8 for `hf`, otherwise the host's default, 1.
        device: for example "cpu" or "cuda:1", also an argument of the model; by default a GPU if there is one.
        as_chat: put prompts into the model's chat template; by default only for chat APIs, which accept nothing else.

    Raises:
        InputError: there is no such kind of model, or an argument is not understood.
        MissingPrerequisite: the model or a package that it needs is missing.
        ModelLoadError: the model's weights are pickled, and the arguments do not allow that.
    """
    from lm_eval.api.registry import get_model
    from lm_eval.utils import simple_parse_args_string

    try:
        arguments = simple_parse_args_string(model_args)
        register_models()
        kind = get_model(model)
    except (ImportError, NameError) as error:
        raise missing_package(model, error) from error
    except ValueError as error:
        raise InputError(f"llm {model!r}: {str(error).splitlines()[0]}") from error
    own, of_host, extra_fields = split_arguments(model, kind, arguments)
    check_arguments(model, kind, of_host)
    if batch_size is None and model == "hf" and "batch_size" not in arguments:
        batch_size = LOCAL_BATCH_SIZE
    if is_local := versions.is_a(kind, "HFLM"):
        # Served models work without torch.
        from dialeval_plugin.models.tensors import check_device

        check_device(arguments.get("device", device))
    if device is None and "device" not in arguments:
        device = HOST_DEVICE
    named = _name_argument(arguments)
    name = "" if named is None else redacted(str(arguments[named]))
    settings = {"batch_size": batch_size, "device": device, **_safe_weights(model, arguments, is_local=is_local)}
    extra = {key: value for key, value in settings.items() if value is not None}
    is_folder = named is not None and Path(str(arguments[named])).is_dir()
    with (
        opening(name, "a judge") if is_local and is_folder else contextlib.nullcontext(),
        _with_remedies(model, kind, of_host, None if is_folder else name),
    ):
        if versions.is_a(kind, "TemplateAPI"):
            from .served import served

            kind = served(kind, extra_fields)
        lm = kind.create_from_arg_obj(of_host, extra)
    chosen = own.apply_chat_template if as_chat is None else as_chat
    is_chat = chosen if chosen is not None else "chat" in model or model == "litellm"
    if chosen is None and not is_chat and getattr(vars(lm).get("tokenizer"), "chat_template", None):
        logger.warning(
            "llm %r: %s has a chat template, and prompts are sent without it. Give apply_chat_template=true in llm_args to ask "
            "in it, or apply_chat_template=false to leave it out.",
            *(model, name),
        )
    return LmEvalLanguageModel(lm, identity_of(model, arguments, lm), as_chat=is_chat, own=own)


@contextlib.contextmanager
def _with_remedies(model: str, kind: type[Any], arguments: Mapping[str, Any], name: str | None) -> Iterator[None]:
    """Say what to install, fetch or correct if a model cannot be made; `name` is None for a folder."""
    try:
        yield
    except ImportError as error:
        raise missing_package(model, error) from error
    except OSError as error:
        if name is None:
            raise
        raise MissingPrerequisite(
            f"llm {model!r}: the model {name!r} is neither a folder, nor in the Hugging Face cache, nor can it be fetched "
            f"from the hub. Check the name, or fetch it on a machine with a network (`hf download {name}`)."
        ) from error
    except TypeError as error:
        if (refused := refused_argument(model, kind, arguments, error)) is None:
            raise
        raise refused from error


def _safe_weights(model: str, arguments: Mapping[str, Any], *, is_local: bool) -> dict[str, Any]:
    """Return the argument that keeps transformers from opening a pickle, unless the user's arguments allow pickles."""
    if arguments.get("use_safetensors") is False or arguments.get("load_format") == "pt":
        return {}
    for key in _WEIGHT_ARGUMENTS:
        folder = Path(str(arguments.get(key, "")))
        if key in arguments and folder.is_dir():
            try:
                refuse_pickles(folder)
            except ModelLoadError as error:
                raise ModelLoadError(
                    f"llm {model!r}: {error} If you trust whoever made the file, llm_args can ask for it by name: "
                    "use_safetensors=False (vllm: load_format=pt)."
                ) from None
    return {"use_safetensors": True} if is_local and "use_safetensors" not in arguments else {}


def _name_argument(arguments: Mapping[str, Any]) -> str | None:
    return next((key for key in _NAME_ARGUMENTS if key in arguments), None)


def identity_of(model: str, arguments: Mapping[str, Any], lm: Any) -> str:
    """Return kind, name and revision of the model, a hash of the arguments that may change an answer, and the hosts' versions.

    It holds no path and no secret: folders and files count by their contents, an address without user and query.
    """
    named = _name_argument(arguments)
    folder = Path(str(arguments[named])) if named else None
    if folder is not None and folder.is_dir():
        name, revision = folder.resolve().name, content_hash(folder)
    else:
        config = getattr(getattr(lm, "_model", None), "config", None)
        name = redacted(str(arguments[named])) if named else ""
        revision = str(getattr(config, "_commit_hash", None) or arguments.get("revision") or "unknown")
    others = sorted(
        f"{key}={_content(value)}"
        for key, value in without_secrets(arguments).items()
        if key not in {named, *_SPEED_ARGUMENTS, "revision", "apply_chat_template", "structured_output"}
    )
    present = [package for package in ("lm_eval", "transformers") if importlib.util.find_spec(package)]
    hosts = "".join(f"+{package}-{version(package)}" for package in present)
    return f"{model}:{name}@{revision}" + (f"#{text_hash(*others)[:8]}" if others else "") + hosts


def _content(value: Any) -> str:
    """Return an argument's value; for a folder or file, such as a tokenizer or adapter, the hash of its contents."""
    path = Path(str(value))
    if isinstance(value, str) and path.is_dir():
        return content_hash(path)
    return file_hash(path) if isinstance(value, str) and path.is_file() else str(value)


def split_arguments(
    model: str, kind: type[Any], arguments: Mapping[str, Any]
) -> tuple[OwnArguments, dict[str, Any], dict[str, Any]]:
    """Split the arguments into our own, those of the host's model, and fields of every request to a server.

    A server reads the arguments of a chat template from the request, a model in this process from its own arguments.
    """
    of_host, where = dict(arguments), f"llm {model!r}"
    own = make_options(OwnArguments, where, **{name: of_host.pop(name) for name in _OWN if name in of_host})
    advice = 'Give a JSON object, as {"thinking": false}.'
    template = checked(own.chat_template_kwargs or "{}", Json[dict[str, Any]], f"{where}: chat_template_kwargs", advice=advice)
    if own.structured_output and not versions.is_a(kind, "LocalChatCompletion"):
        raise InputError(
            f"{where}: structured_output is for chat servers that take response_format. "
            "Leave it out, or choose llm='local-chat-completions' or 'openai-chat-completions'."
        )
    if not versions.is_a(kind, "TemplateAPI"):
        return own, of_host | ({"chat_template_args": template} if template else {}), {}
    if "enable_thinking" in of_host:
        template["enable_thinking"] = of_host.pop("enable_thinking")
    return own, of_host, {"chat_template_kwargs": template} if template else {}


def check_arguments(model: str, kind: type[Any], arguments: Mapping[str, Any]) -> None:
    """Raise an error for arguments that a kind of model does not know, required ones that are missing, and half an address.

    A served model ignores unknown arguments. Other models pass them to their library, which raises an error when the model is
    made; see `refused_argument`.
    """
    known = _known(kind)
    required = {name for name, parameter in known.items() if parameter.default is inspect.Parameter.empty}
    if versions.is_a(kind, "TemplateAPI"):
        for name in arguments:
            if name not in known:
                raise _unknown(model, name, known)
        # The host's default is None: it then looks for a tokenizer without a name and posts to no address.
        required |= {name for name in ("model", "base_url") if known[name].default is None}
        if "pretrained" in arguments:  # the host's other name of the model
            required.discard("model")
    if missing := [name for name in known if name in required and name not in arguments]:
        example = ",".join(f"{name}=..." for name in missing)
        raise InputError(f"llm {model!r}: llm_args lacks {' and '.join(missing)}. Give llm_args='{example}'.")
    if "base_url" in arguments and (path := _PATHS.get(model)):
        address = str(arguments["base_url"])
        url = urlsplit(address)
        if url.scheme not in ("http", "https") or url.path.rstrip("/") in ("", "/v1"):
            raise InputError(f"llm {model!r}: base_url is {redacted(address)!r}. Give all of it, as http://HOST/v1/{path}.")


def refused_argument(model: str, kind: type[Any], arguments: Iterable[str], error: TypeError) -> InputError | None:
    """Return the error for a user's argument that the model's library does not take; None for any other error."""
    match = _UNEXPECTED.search(str(error))
    return _unknown(model, match[1], _known(kind)) if match is not None and match[1] in arguments else None


def missing_package(model: str, error: ImportError | NameError) -> MissingPrerequisite:
    """Return an error with what to install: a package by its name, or the extra that the host's own error names in its text."""
    # Without aiohttp, 0.4.13's API models fail when they first use a name from it, and on 0.5 ours do, which import it.
    if isinstance(error, NameError) or error.name == "aiohttp":
        needed: str | None = "lm-eval[api]"
    elif extra := _EXTRA.search(str(error)):
        needed = extra[0]
    else:
        needed = error.name if isinstance(error, ModuleNotFoundError) else None
    if not needed:
        return MissingPrerequisite(f"llm {model!r}: {' '.join(str(error).split())}")
    return MissingPrerequisite(
        f"llm {model!r}: needs packages that are not installed. Run pip install '{needed}', or choose another model."
    )


def _known(kind: type[Any]) -> Mapping[str, inspect.Parameter]:
    """Parameters of a class and, if it passes on unknown ones, those of its base classes."""
    known: dict[str, inspect.Parameter] = {}
    for base in kind.__mro__:
        if "__init__" not in vars(base) or base is object:
            continue
        parameters = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
        known = {parameter.name: parameter for parameter in parameters if parameter.kind in _NAMED} | known
        if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
            break
    return known


def _unknown(model: str, name: str, known: Iterable[str]) -> InputError:
    return unknown_name(f"llm {model!r}: there is no argument {name!r}", name, [*known, *_OWN])
