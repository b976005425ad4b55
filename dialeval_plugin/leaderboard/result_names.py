"""What an lm-eval result file says of a task and of what ran: method, data, level, quality, evaluator, settings.

A task says it in its metadata. Files of 0.1.0 say it by the task's name alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from typing_extensions import Required, TypedDict

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked
from dialeval_plugin.core.redaction import redacted, without_secrets
from dialeval_plugin.core.signature import Signature, SignatureValue
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.judgement_tasks.breakdown import LOWER_IS_BETTER
from dialeval_plugin.judgement_tasks.documents import DEFAULT_SCORER, SCORER_MODEL
from dialeval_plugin.judgement_tasks.kinds import TaskKind

MODEL_NAMES = ("peft", "delta", "pretrained", "model", "path", "engine")

TECHNICAL = {
    *("answers", "base_url", "batch_size", "device", "device_map", "gpu_memory_utilization", "max_batch_size", "max_retries"),
    *("num_concurrent", "parallelize", "tensor_parallel_size", "timeout", "tokenized_requests", "trust_remote_code"),
    "verify_certificate",
}
"""Arguments that say where and how fast a model runs, not what it says."""
_SETTINGS = ("model_sha", "model_revision", "model_dtype", "gen_kwargs", "limit", "random_seed", "fewshot_seed")
_NUMBER = re.compile(r"[-+]?[\d.]+(?:e[-+]?\d+)?")

_SHOTS = r"(?:(?:manual|random|bm25_c|bm25_cr|bm25_r)_)?"
_TASKS: tuple[tuple[re.Pattern[str], str | None], ...] = (
    (re.compile(rf"(?P<method>fed_dialog)_(?P<shots>{_SHOTS})(?P<level>turn|dial)_(?P<quality>\w+)"), "fed"),
    (re.compile(r"(?P<method>dailydialog_pp(?:_generate)?)_mini"), "mini"),
    (re.compile(r"(?P<method>dailydialog_pp(?:_generate)?)"), "dailydialog_pp"),
    (re.compile(r"(?P<dataset>convai[12])_(?P<method>opinion)"), None),
    (re.compile(rf"(?P<method>dstc10_dialog)_(?P<shots>{_SHOTS})(?P<dataset>\w+)"), None),
    (re.compile(r"(?P<method>slide|dre|dbdc|cgdialog_preference)_(?P<dataset>\w+)"), None),
)


class _Described(TypedDict, total=False):
    """A task's own words: see `tasks/_generate.py`."""

    method: Required[str]
    dataset: Required[str]
    level: Required[str]
    kind: Required[TaskKind]
    quality: str | None
    variant: str
    lower_is_better: list[str]


class TaskDescription(NamedTuple):
    """What a task is; "" where nothing says it."""

    method: str
    """How the model's answers become scores: the task's group, with its choice of examples."""
    dataset: str
    level: str
    quality: str
    kind: TaskKind | None = None
    """None in files of 0.1.0."""
    variant: str = ""
    """Name of the main score, where the task has others besides."""
    lower_is_better: tuple[str, ...] = ()


def describe_task(task: str, metadata: Any, where: str) -> TaskDescription:
    """Return what a task's metadata says of it; of a task of 0.1.0, what its name says."""
    if not isinstance(metadata, Mapping) or "dialeval" not in metadata:
        return task_name(task)
    found = checked(
        metadata["dialeval"], _Described, f"{where}: configs.{task}.metadata.dialeval", advice="Copy the file again."
    )
    return TaskDescription(
        method=found["method"],
        dataset=found["dataset"],
        level=found["level"],
        quality=found.get("quality") or "",
        kind=found["kind"],
        variant=found.get("variant", ""),
        lower_is_better=tuple(found.get("lower_is_better", ())),
    )


def task_name(task: str) -> TaskDescription:
    """Take the name of a task of 0.1.0 apart; that of a task of others stands for both method and data.

    Example:
        >>> task_name("dstc10_dialog_bm25_c_tu")[:4]
        ('dstc10_dialog_bm25_c', 'tu', 'turn', 'Overall')
        >>> task_name("fed_dialog_random_dial_coherent")[:4]
        ('fed_dialog_random', 'fed', 'dialogue', 'coherent')
    """
    for pattern, fixed in _TASKS:
        match = pattern.fullmatch(task)
        if match is None:
            continue
        found = match.groupdict()
        dataset = fixed or found["dataset"]
        method = "_".join(filter(None, (found["method"], (found.get("shots") or "").rstrip("_"))))
        level, quality = _known(dataset)
        if found.get("level"):
            level, quality = ("dialogue" if found["level"] == "dial" else "turn"), found["quality"]
        quality = {"dailydialog_pp": "appropriate", "dailydialog_pp_generate": "appropriate", "dbdc": "breakdown"}.get(
            method, quality
        )
        return TaskDescription(method, dataset, level, quality, lower_is_better=LOWER_IS_BETTER if method == "dbdc" else ())
    return TaskDescription(task, task, "", "")


def model_arguments(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model's arguments of a result file, which older hosts wrote as one string; secrets are left out.

    Of the model that is a scorer the scorer is always one of them.

    Example:
        >>> model_arguments({"model_args": "pretrained=gpt2,dtype=float32,api_key=x"})
        {'pretrained': 'gpt2', 'dtype': 'float32'}
    """
    given = config.get("model_args") or {}
    if isinstance(given, str):
        given = dict(pair.partition("=")[::2] for pair in given.split(",") if pair)
    arguments = without_secrets(given)
    if config.get("model") == SCORER_MODEL:
        arguments.setdefault("scorer", DEFAULT_SCORER)
    if asked := arguments.get("llm_args"):
        # Those of the language model that a scorer asks, which may have a key of their own.
        shown = model_arguments({"model_args": asked})
        arguments["llm_args"] = ",".join(f"{name}={value}" for name, value in shown.items())
    return arguments


def evaluator_name(config: Mapping[str, Any]) -> str:
    """Return what ran: a scorer behind `dialogue-metric`, or a language model, with the arguments that can move a score.

    Folders are named by their last part, so that the name is the same wherever they lie. Of a scorer's arguments those that
    are words stand without their name, and what would be said twice is said once.

    Example:
        >>> evaluator_name({"model": "dialogue-metric", "model_args": {"scorer": "slide", "slm": "/models/code"}})
        'slide (code)'
        >>> evaluator_name({"model": "dialogue-metric", "model_args": "scorer=causalscore,model=./dream,conditions=4"})
        'causalscore (conditions=4, dream)'
        >>> evaluator_name({"model": "dialogue-metric", "model_args": "scorer=bleu,n=1"})
        'bleu-1'
        >>> evaluator_name({"model": "dialogue-metric"})
        'general'
        >>> evaluator_name({"model": "hf", "model_args": {"pretrained": "openai-community/gpt2"}})
        'openai-community/gpt2'
        >>> evaluator_name({"model_args": {"scorer": "g_eval", "llm": "hf", "llm_args": "pretrained=/models/gpt2,device=cpu"}})
        'g_eval (gpt2)'
    """
    arguments = model_arguments(config)
    if "llm" in arguments:
        arguments["llm"] = evaluator_name({"model": arguments["llm"], "model_args": arguments.pop("llm_args", "")})
    named = next((name for name in ("scorer", *MODEL_NAMES) if name in arguments), None)
    name = shortened(arguments.pop(named)) if named else redacted(str(config.get("model") or "unknown"))
    given = {key: shortened(value) for key, value in sorted(arguments.items()) if key not in TECHNICAL}
    if named != "scorer":
        return _with_options(name, [f"{key}={value}" for key, value in given.items()])
    if order := given.pop("n", None):
        name = f"{name}-{order}"
    return _with_options(name, [_option(key, value) for key, value in given.items() if value != name])


def evaluator_of_run(file: Mapping[str, Any], task: str, about: TaskDescription, variant: str) -> str:
    """Return who ran a task of a result file, with everything that tells it from others.

    A scorer does not see the prompt, so its own name is all that tells it from others.
    """
    model = evaluator_name(file["config"])
    shots = file.get("n-shot", {}).get(task) or 0
    of_prompt = [
        about.method,
        variant if variant != about.method else "",
        f"{shots} examples" if shots else "",
        "chat template" if file.get("chat_template_sha") else "",
        "system instruction" if file.get("system_instruction_sha") else "",
    ]
    return ", ".join(filter(None, [model, *([variant] if file["config"].get("model") == SCORER_MODEL else of_prompt)]))


def run_signature(file: Mapping[str, Any], task: str, variant: str, quality: str, inner: str) -> str:
    """Return everything in a result file that can move a number of a task, and the scorer's own signature, `inner`."""
    config = file["config"]
    settings = {
        "model": config.get("model"),
        **model_arguments(config),
        "variant": variant or None,
        "n_shot": file.get("n-shot", {}).get(task),
        **{name: config.get(name) for name in _SETTINGS},
        **{name: file.get(name) for name in ("chat_template_sha", "system_instruction_sha", "fewshot_as_multiturn")},
        "task_hash": file.get("task_hashes", {}).get(task),
        **{name: file.get(name) for name in ("lm_eval_version", "transformers_version")},
    }
    fields: dict[str, SignatureValue] = {
        "task": task,
        "version": file.get("versions", {}).get(task),
        "quality": quality or None,
    }
    fields |= {name: value if value is None else str(value) for name, value in settings.items() if value != {}}
    return str(Signature(fields)) + (f"|[{inner}]" if inner else "")


def shortened(value: Any) -> str:
    """Return an argument as text, of a folder its last part.

    Example:
        >>> shortened("/home/me/models/mine/"), shortened("openai-community/gpt2"), shortened(4)
        ('mine', 'openai-community/gpt2', '4')
    """
    text = str(value)
    return text.rstrip("/").rpartition("/")[2] if text.startswith(("/", "./", "../", "~")) else text


def _with_options(name: str, options: Iterable[str]) -> str:
    shown = ", ".join(dict.fromkeys(options))
    return f"{name} ({shown})" if shown else name


def _option(key: str, value: str) -> str:
    if value.lower() in {"true", "false"}:
        return f"{'with' if value.lower() == 'true' else 'without'} {key}"
    return f"{key}={value}" if _NUMBER.fullmatch(value) else value


def _known(dataset: str) -> tuple[str, str]:
    try:
        entry = dstc10.find_set(dataset)
    except InputError:
        return "dialogue" if dataset.startswith("convai") else "turn", ""
    return entry.level, entry.overall or ""
