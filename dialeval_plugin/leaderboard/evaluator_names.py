"""Names that tell evaluators apart: where two that differ have one short name, both get what differs besides.

Of folders of one name more of the path is shown, `runA/checkpoint-500` and `runB/checkpoint-500`; what else differs stands in
brackets. A scorer is known by its signature, which holds the contents of its model, so it has one name wherever that lies.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.hosts.lm_eval.tasks.documents import SCORER_MODEL

from .result_names import evaluator_name, is_folder, model_arguments, shortened
from .task_runs import TaskRun

_LONGEST = 60


def tell_apart(runs: Sequence[TaskRun]) -> list[TaskRun]:
    """Return the runs, with longer names where different evaluators would have the same one."""
    told = list(runs)
    for field, names_of in (("model", _by_folders), ("evaluator", _by_settings)):
        groups: dict[str, list[int]] = defaultdict(list)
        for place, run in enumerate(told):
            groups[getattr(run, field)].append(place)
        for places in groups.values():
            own = [told[place] for place in places]
            # What a task's own small model signs is no part of a language model.
            if len({(run.setup.model == SCORER_MODEL and run.scorer_signature) or place for place, run in enumerate(own)}) > 1:
                for place, run, name in zip(places, own, names_of(own), strict=True):
                    told[place] = replace(run, model=name, evaluator=name + run.evaluator.removeprefix(run.model))
    return told


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
        shown = ", ".join(f"{name}={text if len(text) <= _LONGEST else text_hash(text)[:8]}" for name, text in texts.items())
        name, bracket = (run.model[:-1] + ", ", ")") if run.model.endswith(")") else (f"{run.model} (", ")")
        yield name + shown + bracket if shown else run.model


def _arguments(run: TaskRun) -> dict[str, Any]:
    """Also those of the language model that a scorer asks."""
    return {**model_arguments({"model_args": run.setup.arguments.get("llm_args")}), **run.setup.arguments}


def _settings(run: TaskRun) -> Mapping[str, str]:
    given = {"host": run.setup.model, "base_url": _arguments(run).get("base_url"), **run.setup.others}
    return {name: str(value) for name, value in given.items() if value not in (None, "")}


def _tails(folders: set[str]) -> dict[str, str]:
    """Of each folder as much of its end as tells it from the others.

    Example:
        >>> sorted(_tails({"/a/runA/checkpoint-500", "/b/runB/checkpoint-500/", "/b/general"}).values())
        ['general', 'runA/checkpoint-500', 'runB/checkpoint-500']
    """
    parts = {folder: posixpath.normpath(folder).split("/") for folder in folders}
    tails = {}
    for folder, own in parts.items():
        rivals = [other for other in parts.values() if other != own]
        n = next((n for n in range(1, len(own)) if all(other[-n:] != own[-n:] for other in rivals)), len(own))
        tails[folder] = "/".join(own[-n:])
    return tails
