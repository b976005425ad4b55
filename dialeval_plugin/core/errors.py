"""The errors raised on purpose, whose messages, for who did not write this code, are *where: what was wrong. What to do.*."""

from __future__ import annotations


class DialevalError(Exception):
    """Base of all errors raised on purpose; the command line prints it without a traceback."""

    exit_code = 2


class InputError(DialevalError):
    """Data or an argument handed in by the user is wrong."""


class StatisticUndefined(DialevalError):
    """A coefficient has no value on this data (constant scores, too few items)."""


class ModelLoadError(DialevalError):
    """A model folder is damaged, unsafe or does not fit together."""


class MissingPrerequisite(DialevalError):
    """Something that the user has to provide first is not there: a model, a dataset, a package."""

    exit_code = 3
