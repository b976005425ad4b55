"""What the host was started with, which it tells neither to its cache nor to a task.

Its cache knows the model object and not its name. A task's data set gets the user's `--metadata` and the model's arguments in
one dictionary, in which nobody can tell them apart. Both stand apart in the host's own calls, and are read there: that holds
however it was started, by a command line with or without our names, or from Python.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import FrameType, MappingProxyType
from typing import Any

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def model() -> tuple[str, Mapping[str, Any]] | None:
    """Name and arguments of the run's model; None where it was handed over as an object, and outside of a run."""
    for frame in _calls("lm_eval.evaluator", "simple_evaluate"):
        name = frame.f_locals.get("model")
        return (name, _arguments(frame)) if isinstance(name, str) else None
    return None


def metadata() -> Mapping[str, Any] | None:
    """What the user gave with `--metadata` to the run that builds a task; None where the host builds none."""
    for frame in _calls("lm_eval.tasks._factory", "_build_task", "_build_group_members"):
        given: Mapping[str, Any] = getattr(frame.f_locals["self"], "_meta", None) or _NOTHING
        of_model = {name for run in _calls("lm_eval.evaluator", "simple_evaluate") for name in _arguments(run)}
        return {name: value for name, value in given.items() if name not in of_model}
    return None


def _arguments(run: FrameType) -> Mapping[str, Any]:
    from lm_eval.utils import simple_parse_args_string

    given = run.f_locals.get("model_args")
    if isinstance(given, str):
        return dict(simple_parse_args_string(given))
    return given if isinstance(given, Mapping) else _NOTHING


def _calls(module: str, *functions: str) -> Iterator[FrameType]:
    """The calls of a module's functions that this one was made in, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in functions and frame.f_globals.get("__name__") == module:
            yield frame
        frame = frame.f_back
