"""Sets of a group that are not on this machine: they are left out, as long as one of the group is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dialeval_plugin.core.errors import MissingPrerequisite


def check_any_present(
    group: str, group_sets: Sequence[str], read: Callable[[str], object], *, advice: str, error: MissingPrerequisite
) -> None:
    """Return where one of the group's sets can be read.

    Args:
        group: its name, for the message.
        group_sets: names of its sets.
        read: reads a set by name.
        advice: how to get one, a whole sentence.
        error: what was said of the first set that was looked for.

    Raises:
        MissingPrerequisite: none of the sets is there.
        InputError: a set is there and malformed.
    """
    for name in group_sets:
        try:
            read(name)
        except MissingPrerequisite:
            continue
        return
    raise MissingPrerequisite(
        f"{group}: none of the group's sets ({', '.join(group_sets)}) is on this machine. {advice} "
        f"The first that was looked for: {error}"
    ) from error
