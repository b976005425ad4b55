"""The evaluator of assistants for HuggingFace `evaluate`. The method is in `dialeval_plugin`; this file only gives it a name.

The host loads the first metric class that it finds in this module, so the base class is reached through its module.
"""

import dialeval_plugin.hosts.evaluate.metric as host


class Assistant(host.DialogueMetric):
    """Quality of an assistant's answer and the defects that it has, by a small model."""

    scorer_name = "assistant"
