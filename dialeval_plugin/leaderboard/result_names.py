"""Method, data, level, quality, evaluator and settings of a task in an lm-eval result file.

If different evaluators share a short name, both names get longer: more of the path of folders, and other settings in brackets.
The signature identifies a scorer, so its name does not depend on the folder of its model.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dialeval_plugin.core.files import checked
from dialeval_plugin.core.redaction import redacted, without_secrets
from dialeval_plugin.core.signature import Signature, SignatureValue, text_hash
from dialeval_plugin.hosts.lm_eval.tasks.documents import DEFAULT_SCORER, SCORER_MODEL

from .task_runs import TaskDescription, TaskRun

MODEL_NAMES = ("peft", "delta", "pretrained", "model", "path", "engine")

TECHNICAL = {
    *("answers", "base_url", "batch_size", "device", "device_map", "gpu_memory_utilization", "max_batch_size", "max_retries"),
    *("num_concurrent", "parallelize", "tensor_parallel_size", "timeout", "tokenized_requests", "trust_remote_code"),
    "verify_certificate",
}
"""Arguments that affect where and how fast a model runs, but not its output."""
_SETTINGS = ("model_sha", "model_revision", "model_dtype", "gen_kwargs", "limit", "random_seed", "fewshot_seed")
_OF_TASKS = ("version", "config_source", "dialeval", "rated_quality")
"""Fields of a task's metadata that do not describe the evaluator."""
_OF_SMALL_MODELS = ("slm", "fusion", "slm_scale", "clip", "round3", "normalise", "eq26", "clamp")
"""Options of tasks that have a small model; they have no effect on others."""
_LONGEST_SETTING = 60
_NUMBER = re.compile(r"[-+]?[\d.]+(?:e[-+]?\d+)?")


def describe_task(task: str, metadata: Any, where: str) -> TaskDescription | None:
    """Return the description in a task's metadata; None for a task of another package."""
    if not isinstance(metadata, Mapping) or "dialeval" not in metadata:
        return None
    description = metadata["dialeval"]
    if isinstance(description, Mapping):
        description = {
            name: value for name, value in description.items() if name in TaskDescription._fields and value is not None
        }
    return checked(description, TaskDescription, f"{where}: configs.{task}.metadata.dialeval", advice="Copy the file again.")


def model_arguments(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model's arguments in a result file, which older hosts wrote as one string, without secrets.

    For a scorer they include `scorer`.

    Example:
        >>> model_arguments({"model_args": "pretrained=gpt2,dtype=float32,api_key=x"})
        {'pretrained': 'gpt2', 'dtype': 'float32'}
    """
    model_args = config.get("model_args") or {}
    if isinstance(model_args, str):
        model_args = dict(pair.partition("=")[::2] for pair in model_args.split(",") if pair)
    arguments = without_secrets(model_args)
    if config.get("model") == SCORER_MODEL:
        arguments.setdefault("scorer", DEFAULT_SCORER)
    if llm_args := arguments.get("llm_args"):
        # The language model prompted by a scorer may have its own API key.
        public = model_arguments({"model_args": llm_args})
        arguments["llm_args"] = ",".join(f"{name}={value}" for name, value in public.items())
    return arguments


def evaluator_name(config: Mapping[str, Any], shorten: Callable[[Any], str] | None = None) -> str:
    """Return the name of a scorer or language model, with the arguments that can change a score.

    `shorten` turns an argument into text; by default a folder becomes its last part. A scorer's text arguments appear without
    their name, and repeated text once.

    Example:
        >>> evaluator_name({"model": "dialogue-metric", "model_args": {"scorer": "slide", "slm": "/models/code"}})
        'slide (code)'
        >>> evaluator_name({"model_args": {"scorer": "g_eval", "llm": "hf", "llm_args": "pretrained=/models/gpt2,device=cpu"}})
        'g_eval (gpt2)'
    """
    arguments, shorten = model_arguments(config), shorten or shortened
    if "llm" in arguments:
        arguments["llm"] = evaluator_name({"model": arguments["llm"], "model_args": arguments.pop("llm_args", "")}, shorten)
    named = next((name for name in ("scorer", *MODEL_NAMES) if name in arguments), None)
    name = shorten(arguments.pop(named)) if named else redacted(str(config.get("model") or "unknown"))
    texts = {key: shorten(value) for key, value in sorted(arguments.items()) if key not in TECHNICAL}
    if named != "scorer":
        return _with_options(name, [f"{key}={value}" for key, value in texts.items()])
    if order := texts.pop("n", None):
        name = f"{name}-{order}"
    return _with_options(name, [_option(key, value) for key, value in texts.items() if value != name])


def evaluator_of_run(file: Mapping[str, Any], task: str, about: TaskDescription, variant: str) -> str:
    """Return the name of a task's evaluator with everything that distinguishes it; a scorer's has no prompt settings."""
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


def other_settings(file: Mapping[str, Any], task: str, method: str) -> dict[str, Any]:
    """Return the settings of a run, other than model arguments, that can change an answer."""
    config, metadata = file["config"], file["configs"][task]["metadata"]
    settings = config.get("gen_kwargs") or {}
    typed = {name: value for name, value in metadata.items() if name not in {*_OF_TASKS, *model_arguments(config)}}
    if method not in {"slide", "dre"}:
        typed = {name: value for name, value in typed.items() if name not in _OF_SMALL_MODELS}
    return without_secrets(
        {
            **(settings if isinstance(settings, Mapping) else {"gen_kwargs": settings}),
            **typed,
            "revision": config.get("model_sha"),
            **{name: file.get(f"{name}_sha") for name in ("chat_template", "system_instruction")},
        }
    )


def run_signature(file: Mapping[str, Any], task: str, variant: str, quality: str, inner: str) -> str:
    """Return everything in a result file that can change a number of a task, and the scorer's own signature, `inner`."""
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
    """Return an argument as text, a folder as its last part."""
    text = str(value)
    return text.rstrip("/").rpartition("/")[2] if is_folder(text) else text


def is_folder(value: Any) -> bool:
    """Return whether an argument looks like a path."""
    return str(value).startswith(("/", "./", "../", "~"))


def _with_options(name: str, options: Iterable[str]) -> str:
    text = ", ".join(dict.fromkeys(options))
    return f"{name} ({text})" if text else name


def _option(key: str, value: str) -> str:
    if value.lower() in {"true", "false"}:
        return f"{'with' if value.lower() == 'true' else 'without'} {key}"
    return f"{key}={value}" if _NUMBER.fullmatch(value) else value


def tell_apart(runs: Sequence[TaskRun]) -> list[TaskRun]:
    """Return the runs, with longer names if different evaluators would share one."""
    renamed = list(runs)
    for field, names_of in (("model", _by_folders), ("evaluator", _by_settings)):
        groups: dict[str, list[int]] = defaultdict(list)
        for place, run in enumerate(renamed):
            groups[getattr(run, field)].append(place)
        for places in groups.values():
            own = [renamed[place] for place in places]
            # The signature of a task's small model does not identify a language model.
            if len({(run.setup.model == SCORER_MODEL and run.scorer_signature) or place for place, run in enumerate(own)}) > 1:
                for place, run, name in zip(places, own, names_of(own), strict=True):
                    renamed[place] = replace(run, model=name, evaluator=name + run.evaluator.removeprefix(run.model))
    return renamed


def _by_folders(runs: Sequence[TaskRun]) -> Iterator[str]:
    tails = _tails({str(value) for run in runs for value in _arguments(run).values() if is_folder(value)})
    for run in runs:
        config = {"model": run.setup.model, "model_args": run.setup.arguments}
        yield evaluator_name(config, lambda value: tails.get(str(value)) or shortened(value))


def _by_settings(runs: Sequence[TaskRun]) -> Iterator[str]:
    settings = [_settings(run) for run in runs]
    differing = sorted({name for own in settings for name in own if len({other.get(name) for other in settings}) > 1})
    tails = _tails({own[name] for own in settings for name in differing if is_folder(own.get(name))})
    for run, own in zip(runs, settings, strict=True):
        texts = {name: tails.get(own[name]) or own[name].partition("://")[2] or own[name] for name in differing if name in own}
        text_of_settings = ", ".join(
            f"{name}={text if len(text) <= _LONGEST_SETTING else text_hash(text)[:8]}" for name, text in texts.items()
        )
        name, bracket = (run.model[:-1] + ", ", ")") if run.model.endswith(")") else (f"{run.model} (", ")")
        yield name + text_of_settings + bracket if text_of_settings else run.model


def _arguments(run: TaskRun) -> dict[str, Any]:
    return {**model_arguments({"model_args": run.setup.arguments.get("llm_args")}), **run.setup.arguments}


def _settings(run: TaskRun) -> Mapping[str, str]:
    settings = {"host": run.setup.model, "base_url": _arguments(run).get("base_url"), **run.setup.others}
    return {name: str(value) for name, value in settings.items() if value not in (None, "")}


def _tails(folders: set[str]) -> dict[str, str]:
    """Return the shortest path end of each folder that is unique."""
    parts = {folder: posixpath.normpath(folder).split("/") for folder in folders}
    tails = {}
    for folder, own in parts.items():
        rivals = [other for other in parts.values() if other != own]
        n = next((n for n in range(1, len(own)) if all(other[-n:] != own[-n:] for other in rivals)), len(own))
        tails[folder] = "/".join(own[-n:])
    return tails
