"""Errors raised on purpose; their messages say where something is wrong, what is wrong, and what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


class DialevalError(Exception):
    """Base of all errors raised on purpose, which the command line prints without a traceback."""

    exit_code = 2

    def __str__(self) -> str:
        # A cell may hold an image.
        return _LONG_WORD.sub(r"\1...", super().__str__())


_LONG_WORD = re.compile(r"([\w+/=%-]{100})[\w+/=%-]{900,}")


class InputError(DialevalError):
    """Wrong data or a wrong argument from the user."""


class NothingToScore(InputError):
    """The input has no turn to score."""

    exit_code = 1


class StatisticUndefined(DialevalError):
    """A coefficient is undefined on these data (constant scores, too few items)."""


class ModelLoadError(DialevalError):
    """A model folder is damaged, unsafe or inconsistent."""


class MissingPrerequisite(DialevalError):
    """A model, data set or package that the user has to provide is missing."""

    exit_code = 3


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return " Did you mean ...?" with the nearest of `known`, or "" if none is near; ignores capitals and hyphens.

    Example:
        >>> did_you_mean("DSTC10", ["fed", "dstc10_dialog"]), did_you_mean("x", ["fed"])
        (" Did you mean 'dstc10_dialog'?", '')
    """
    plain = {one.casefold().replace("-", "_"): one for one in known}
    near = difflib.get_close_matches(str(name).casefold().replace("-", "_"), plain, 1)
    return f" Did you mean {plain[near[0]]!r}?" if near else ""


def unknown_name(problem: str, name: object, known: Iterable[str], advice: str = "") -> InputError:
    """Return the error for an unknown name: the problem, the nearest name, all known names, and advice.

    Example:
        >>> print(unknown_name("there is no split 'tset'", "tset", ["train", "test"]))
        there is no split 'tset'. Did you mean 'test'? Known are: train, test.
    """
    known = tuple(known)
    message = f"{problem}.{did_you_mean(name, known)} Known are: {', '.join(known) or 'none'}."
    return InputError(f"{message} {advice}".rstrip())
