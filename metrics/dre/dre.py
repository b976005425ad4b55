"""DRE for HuggingFace `evaluate`. The method is in `dialeval_plugin`; this file only gives it a name here.

The host loads the first metric class that it finds in this module, so the base class is reached through its module.
"""

import dialeval_plugin.hosts.evaluate.metric as host


class Dre(host.DialogueMetric):
    """Overall quality of a response in its dialogue context, from a large model that a small one refines."""

    scorer_name = "dre"
