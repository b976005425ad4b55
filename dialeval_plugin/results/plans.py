"""Before a run: how many conversations show which difference, by simulation from the scores of a pilot."""

from __future__ import annotations

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.score_files import ScoredRows
from dialeval_plugin.reports.plans import plan_table
from dialeval_plugin.reports.tables import Table
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, MIN_CLUSTERS, Bootstrap, Resampled
from dialeval_plugin.statistics.means import difference_of_means

from .comparison import Comparison


def plan(pilot: ScoredRows | Comparison, difference: float = 0.0, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> Table:
    """Return how small a difference of two versions so many conversations show four times in five.

    Args:
        pilot: a comparison of two versions, paired or not, on few conversations; or the scores of one of them, where the other
            one is taken to answer other conversations and to be as even.
        difference: how many conversations show it is said as well; 0 for none.
        bootstrap: how the intervals will be made.

    Raises:
        InputError: the pilot has too few conversations, or scores that are all the same.
    """
    if isinstance(pilot, Comparison):
        name, is_paired, computed = " and ".join(pilot.names), pilot.matched_by is not None, pilot.pilot
        n, how = pilot.difference.n_clusters, ", paired" if is_paired else ", unpaired"
    else:
        scores, clusters = [row.score for row in pilot.rows], [row.conversation for row in pilot.rows]
        others = [("other", one) for one in clusters]
        found, counts = difference_of_means(scores, scores, clusters_a=clusters, clusters_b=others)
        name, is_paired, computed = pilot.name, False, None if isinstance(found, str) else found[1]
        n, how = counts.n_clusters, ""
    each = 1 if is_paired else 2
    pilots: dict[tuple[str, ...], Resampled] = {} if computed is None or n < MIN_CLUSTERS else {(): computed}
    table = plan_table(pilots, difference, "conversations", clusters_of_unit=each, bootstrap=bootstrap)
    if table is None:
        raise InputError(
            f"{name}: a plan needs a pilot of {MIN_CLUSTERS} conversations whose scores differ. Score more of them."
        )
    notes = [f"pilot: {name}{how}, {n} conversations"]
    if not is_paired:
        notes.append("conversations of each version, different ones; a pilot of both on the same ones tells how many fewer do")
    return Table(table.rows, table.columns, [*notes, *table.notes], table.settings)
