"""G-Eval for HuggingFace `evaluate`. The method is in `dialeval_plugin`; this file only gives it a name here.

The host loads the first metric class that it finds in this module, so the base class is reached through its module.
"""

import dialeval_plugin.hosts.evaluate.metric as host


class GEval(host.DialogueMetric):
    """Naturalness, coherence, engagingness and groundedness of a response, as a large model fills in G-EVAL's forms."""

    scorer_name = "g_eval"
