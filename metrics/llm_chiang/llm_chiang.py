"""LLM-Chiang for HuggingFace `evaluate`. The method is in `dialeval_plugin`; this file only gives it a name here.

The host loads the first metric class that it finds in this module, so the base class is reached through its module.
"""

import dialeval_plugin.hosts.evaluate.metric as host


class LlmChiang(host.DialogueMetric):
    """Naturalness, coherence, engagingness and groundedness of a response, as a large model rates it like a crowd worker."""

    scorer_name = "llm_chiang"
