"""`dialogue_likelihood` for HuggingFace `evaluate`. The method is in `dialeval_plugin`; this file only gives it a name here.

The host loads the first metric class that it finds in this module, so the base class is reached through its module.
"""

import dialeval_plugin.hosts.evaluate.metric as host


class DialogueLikelihood(host.DialogueMetric):
    """Probability that a language model assigns to the turns of a dialogue or to a response, given the turns before."""

    scorer_name = "dialogue_likelihood"
