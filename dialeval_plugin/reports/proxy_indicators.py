"""The figure of a regression of proxy indicators: a bar for each weight (the thesis' figure 6.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval_plugin.methods.proxy_indicators.regression import LinearRegression
from dialeval_plugin.methods.proxy_indicators.tasks import FACT, task_of

from .plots import BLUE, GREY, PURPLE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {"response": BLUE, "context and response": PURPLE, "facts and response": GREY}


def weight_figure(regression: LinearRegression, *, title: str = "") -> Figure:
    """Draw the weights of a regression, one bar an indicator (figure 6.2).

    Columns and rating are on [0, 1], so weights can be compared; the sign of `qnli` and `rte` depends on the label whose
    probability they are.
    """
    figure = new_figure(7.0, 1.8 + 0.3 * len(regression.features), title or f"fitted on {regression.n_rows} responses")
    from matplotlib.patches import Patch

    names = regression.names
    axes = figure.subplots()
    kinds = [_kind(name) for name in names]
    bars = axes.barh(range(len(names)), regression.weights, color=[_COLOURS[kind] for kind in kinds])
    axes.bar_label(bars, fmt="%+.2f", padding=3, fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    # Room for the numbers beside the longest bars.
    axes.margins(x=0.15)
    axes.set_xlabel("weight, with indicators and rating on [0, 1]")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        handles=[Patch(color=colour, label=kind) for kind, colour in _COLOURS.items() if kind in kinds],
        loc="outside lower center",
        ncols=len(_COLOURS),
        frameon=False,
        fontsize=8,
    )
    return figure


def _kind(feature: str) -> str:
    if not task_of(feature).is_pair:
        return "response"
    return "facts and response" if feature.startswith(FACT) else "context and response"
