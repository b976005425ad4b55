"""SLIDE for HuggingFace `evaluate`. The method is in `dialeval_plugin`; this file only gives it a name here.

The host loads the first metric class that it finds in this module, so the base class is reached through its module.
"""

import dialeval_plugin.hosts.evaluate.metric as host


class Slide(host.DialogueMetric):
    """Appropriateness of a response to its dialogue context, from a small model and, if given, a large one."""

    scorer_name = "slide"
