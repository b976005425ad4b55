"""`dialogue_rating` for HuggingFace `evaluate`. The method is in `dialeval_plugin`; this file only gives it a name here.

The host loads the first metric class that it finds in this module, so the base class is reached through its module.
"""

import dialeval_plugin.hosts.evaluate.metric as host


class DialogueRating(host.DialogueMetric):
    """A language model's rating of a response, or of a whole dialogue, for FED's qualities."""

    scorer_name = "dialogue_rating"
