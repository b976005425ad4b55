"""`dialogue_reconstruction` for HuggingFace `evaluate`. The method is in `dialeval_plugin`; this file only gives it a name.

The host loads the first metric class that it finds in this module, so the base class is reached through its module.
"""

import dialeval_plugin.hosts.evaluate.metric as host


class DialogueReconstruction(host.DialogueMetric):
    """How much a trained dialogue model is surprised by the utterances of a dialogue, or by a response."""

    scorer_name = "dialogue_reconstruction"
