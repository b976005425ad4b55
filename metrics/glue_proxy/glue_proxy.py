"""Proxy indicators for HuggingFace `evaluate`. The method is in `dialeval_plugin`; this file only gives it a name here.

The host loads the first metric class that it finds in this module, so the base class is reached through its module.
"""

import dialeval_plugin.hosts.evaluate.metric as host


class GlueProxy(host.DialogueMetric):
    """Quality of a response from classifiers that were trained on GLUE."""

    scorer_name = "glue_proxy"
