"""`dialogue_breakdown` for HuggingFace `evaluate`. The method is in `dialeval_plugin`; this file only gives it a name here.

The host loads the first metric class that it finds in this module, so the base class is reached through its module.
"""

import dialeval_plugin.hosts.evaluate.metric as host


class DialogueBreakdown(host.DialogueMetric):
    """Probability that a system's turn breaks the dialogue down, from language models that saw no labelled data."""

    scorer_name = "dialogue_breakdown"
