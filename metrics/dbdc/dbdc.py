"""DBDC's metrics for HuggingFace `evaluate`. They are computed in `dialeval_plugin`; this file only gives them a name here.

The host loads the first metric class that it finds in this module, so the base class is reached through its module.
"""

import dialeval_plugin.hosts.evaluate.breakdown_metric as host


class Dbdc(host.BreakdownMetric):
    """How well a dialogue breakdown detector agrees with annotators."""
