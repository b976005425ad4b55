"""Names that tell evaluators apart: where two that differ have one short name, both get what differs besides.

Of folders of one name more of the path is shown, `runA/checkpoint-500` and `runB/checkpoint-500`. What else differs stands in
brackets: settings of the generation, `--metadata`, the server's address, the revision, the hash of a template. A scorer is
known by its signature, which holds the contents of its model: it has one name wherever its folder lies.
"""

from __future__ import annotations

import functools
import posixpath
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dialeval_plugin.core.redaction import redacted
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.judgement_tasks.documents import SCORER_MODEL

from .result_names import evaluator_name, is_folder, model_arguments, shortened
from .task_runs import TaskRun

_LONGEST = 60


def tell_apart(runs: Sequence[TaskRun]) -> list[TaskRun]:
    """Return the runs, newest first as they came, with longer names where different evaluators would have the same one."""
    return _by_settings(_by_folders(runs))


def _by_folders(runs: Sequence[TaskRun]) -> list[TaskRun]:
    told = list(runs)
    for places in _grouped(runs, lambda run: run.model):
        folders = {place: _folders(runs[place]) for place in places}
        # Of a scorer with one signature the newest run's folders stand for all.
        known: dict[Hashable, tuple[str, ...]] = {}
        of_model = {place: known.setdefault(_signature(runs[place]) or folders[place], folders[place]) for place in places}
        if len(set(of_model.values())) > 1:
            tails = _tails({folder for own in of_model.values() for folder in own})
            for place in places:
                shown = {own: tails[folder] for own, folder in zip(folders[place], of_model[place], strict=True)}
                config = {"model": runs[place].setup.model, "model_args": runs[place].setup.arguments}
                told[place] = _renamed(runs[place], evaluator_name(config, functools.partial(_shown, shown)))
    return told


def _by_settings(runs: Sequence[TaskRun]) -> list[TaskRun]:
    told = list(runs)
    for places in _grouped(runs, lambda run: run.evaluator):
        if len({_signature(runs[place]) or place for place in places}) == 1:
            continue
        settings = {place: _settings(runs[place]) for place in places}
        names = sorted({name for own in settings.values() for name in own})
        differing = [name for name in names if len({own.get(name) for own in settings.values()}) > 1]
        folders = {own[name] for own in settings.values() for name in differing if is_folder(own.get(name, ""))}
        tails = _tails(set(map(posixpath.normpath, folders)))
        for place, own in settings.items():
            if shown := ", ".join(f"{name}={_brief(own[name], tails)}" for name in differing if name in own):
                model = runs[place].model
                told[place] = _renamed(runs[place], f"{model[:-1]}, {shown})" if model.endswith(")") else f"{model} ({shown})")
    return told


def _grouped(runs: Sequence[TaskRun], name: Callable[[TaskRun], str]) -> Iterable[list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, run in enumerate(runs):
        places[name(run)].append(place)
    return [group for group in places.values() if len(group) > 1]


def _signature(run: TaskRun) -> str:
    """Of a scorer: what its task's own small model signs is no part of a language model."""
    return run.scorer_signature if run.setup.model == SCORER_MODEL else ""


def _arguments(run: TaskRun) -> dict[str, Any]:
    """Also those of the language model that a scorer asks."""
    given = run.setup.arguments
    return {**model_arguments({"model_args": given.get("llm_args")}), **given}


def _folders(run: TaskRun) -> tuple[str, ...]:
    """By their last part, which those of runs of one name share."""
    found = [posixpath.normpath(str(value)) for value in _arguments(run).values() if is_folder(value)]
    return tuple(sorted(found, key=lambda folder: (shortened(folder), folder)))


def _shown(tails: Mapping[str, str], value: Any) -> str:
    return tails.get(posixpath.normpath(str(value))) or shortened(value)


def _settings(run: TaskRun) -> Mapping[str, str]:
    """What tells evaluators of one name apart, as text by name."""
    given = {"host": run.setup.model, "base_url": _arguments(run).get("base_url"), **run.setup.others}
    return {name: redacted(str(value)) for name, value in given.items() if value not in (None, "")}


def _tails(folders: set[str]) -> dict[str, str]:
    """Of each folder as much of its end as tells it from the others of its last part.

    Example:
        >>> sorted(_tails({"/a/runA/checkpoint-500", "/b/runB/checkpoint-500", "/b/general"}).values())
        ['general', 'runA/checkpoint-500', 'runB/checkpoint-500']
    """
    parts = {folder: folder.split("/") for folder in folders}
    tails = {}
    for folder, own in parts.items():
        rivals = [other for other in parts.values() if other != own]
        n = next(n for n in range(1, len(own) + 1) if n == len(own) or all(other[-n:] != own[-n:] for other in rivals))
        tails[folder] = "/".join(own[-n:])
    return tails


def _brief(text: str, tails: Mapping[str, str]) -> str:
    text = tails.get(posixpath.normpath(text), text.partition("://")[2] or text)
    return text if len(text) <= _LONGEST else text_hash(text)[:8]


def _renamed(run: TaskRun, name: str) -> TaskRun:
    return replace(run, model=name, evaluator=name + run.evaluator.removeprefix(run.model))
