"""The errors raised on purpose, whose messages, for who did not write this code, are *where: what was wrong. What to do.*."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DialevalError(Exception):
    """Base of all errors raised on purpose; the command line prints it without a traceback."""

    exit_code = 2


class InputError(DialevalError):
    """Data or an argument handed in by the user is wrong."""


class NothingToScore(InputError):
    """An input was read, and no turn of it is one to score."""

    exit_code = 1


class StatisticUndefined(DialevalError):
    """A coefficient has no value on this data (constant scores, too few items)."""


class ModelLoadError(DialevalError):
    """A model folder is damaged, unsafe or does not fit together."""


class MissingPrerequisite(DialevalError):
    """Something that the user has to provide first is not there: a model, a dataset, a package."""

    exit_code = 3


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The question after a name that there is not, with a blank before it: the nearest of `known`; empty where none is near.

    Capitals and hyphens count for nothing.

    Example:
        >>> did_you_mean("DSTC10", ["fed", "dstc10_dialog"]), did_you_mean("x", ["fed"])
        (" Did you mean 'dstc10_dialog'?", '')
    """
    plain = {one.casefold().replace("-", "_"): one for one in known}
    near = difflib.get_close_matches(str(name).casefold().replace("-", "_"), plain, 1)
    return f" Did you mean {plain[near[0]]!r}?" if near else ""


def unknown_name(problem: str, name: object, known: Iterable[str], advice: str = "") -> InputError:
    """The error of a name that there is not: the `problem` in words, the nearest name, all that are known, and what to do.

    Example:
        >>> print(unknown_name("there is no split 'tset'", "tset", ["train", "test"]))
        there is no split 'tset'. Did you mean 'test'? Known are: train, test.
    """
    known = tuple(known)
    message = f"{problem}.{did_you_mean(name, known)} Known are: {', '.join(known) or 'none'}."
    return InputError(f"{message} {advice}".rstrip())
