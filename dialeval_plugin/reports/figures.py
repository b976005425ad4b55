"""What all plots share: matplotlib imported where it is used, and files that are the same bytes each time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
DOTS_PER_INCH = 150
BLUE, ORANGE, GREEN, GREY = "#4477aa", "#ee7733", "#228833", "#777777"


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches that no window will show; MissingPrerequisite without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPrerequisite(
            f"plots need matplotlib, which cannot be imported ({error}). Run `pip install 'dialeval-plugin[reports]'`."
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def check_format(path: Path) -> str:
    """Return the format that the suffix of `path` names; InputError where it names none."""
    format = path.suffix.removeprefix(".").lower()
    if format not in FORMATS:
        raise InputError(f"{path}: plots are written as PNG or SVG. End the name in .png or .svg.")
    return format


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the suffix names, the same bytes each time, whole or not at all."""
    from matplotlib import rc_context

    format = check_format(path)
    metadata: dict[str, Any] = {"Date": None} if format == "svg" else {"Software": None}
    with rc_context({"svg.hashsalt": "dialeval", "svg.fonttype": "none"}), atomic_path(path) as temporary:
        figure.savefig(temporary, format=format, dpi=DOTS_PER_INCH, metadata=metadata)
