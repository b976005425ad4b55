"""Facts about the host, changes of it in this process, and differences between lm-eval 0.4.13 and 0.5.

No other module checks which of the two is installed.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.redaction import redacted

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance

logger = logging.getLogger(__name__)

SCORER = "dialeval"
TRANSPORTS = ("requests", "urllib3", "aiohttp", "httpx")
"""Packages by which the host sends requests."""
_LOGGERS = ("lm_eval", "asyncio", *TRANSPORTS)
"""Loggers of the host and of its transports; asyncio logs errors of requests that nobody awaited."""
BY_TASK = ("results", "configs", "versions", "n-shot", "n-samples", "samples", "task_hashes")
"""Entries of a host's result with one value per task."""


def request(kind: str, doc: dict[str, Any], arguments: Any, *, task: str, place: int, idx: int = 0) -> Instance:
    """Make a request: 0.4.13 reads the task and the document's number from the metadata, 0.5 wants both by name."""
    from lm_eval.api.instance import Instance

    return Instance(kind, doc, arguments, idx=idx, task_name=task, doc_id=place, metadata=(task, place, 1))


def is_a(kind: type[Any], name: str) -> bool:
    """Whether a class is, or is derived from, the host's class of this name; all served models derive from `TemplateAPI`."""
    # By name: the module of the host's class cannot be imported without the packages of served models.
    return any(base.__name__ == name for base in kind.__mro__)


def generation_task() -> Any:
    """Return the host's class of generation tasks. It makes one request per document; 0.5 puts it in a list."""
    tasks = importlib.import_module("lm_eval.api.task")
    return getattr(tasks, "GenerateTask", tasks.ConfigurableTask)


def missing_tasks(error: Exception) -> list[str]:
    """Return the tasks that the host reports as missing: 0.4.13 names all of them, 0.5 the first; none for another error."""
    message = str(error.args[0]) if error.args else ""
    if isinstance(error, ValueError) and message.startswith("Tasks not found: "):
        return message.partition(": ")[2].split(", ")
    match = re.match(r"Spec '(.*)' is not a registered task", message) if isinstance(error, KeyError) else None
    return [match[1]] if match else []


def is_predicted_only(config: Mapping[str, Any]) -> bool:
    """Whether the task of this config ran with `--predict_only`: it has answers and no scores."""
    return bool(config.get("metric_list") == [{"metric": "bypass"}])


def by_plain_names(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's result with tasks under their own names: lm-eval 0.5 calls a group's task `group::task`."""
    return {
        name: {task.rpartition("::")[2]: one for task, one in value.items()} if name in BY_TASK and value else value
        for name, value in result.items()
    }


def plain_messages(payload: dict[str, Any]) -> dict[str, Any]:
    """Remove the `type` that 0.5 adds to the messages to a chat API: no API needs it, and some refuse it."""
    for message in payload.get("messages", ()):
        message.pop("type", None)
    return payload


@functools.cache
def leave_out_standard_errors() -> None:
    """Stop the host, in this process, from resampling our aggregations, which come with their own intervals.

    0.4.13 does not resample. 0.5 resamples each aggregation 100,000 times, in other processes, unless it has `standard_error`.
    """
    metrics: Any = importlib.import_module("lm_eval.api.metrics")
    original = metrics.stderr_for_metric

    @functools.wraps(original)
    def of_others(metric: Any, bootstrap_iters: int) -> Any:
        return getattr(metric, "standard_error", None) if _is_ours(metric) else original(metric, bootstrap_iters)

    metrics.stderr_for_metric = of_others


@functools.cache
def score_nothing_when_predicting() -> None:
    """Let `--predict_only`, in this process, keep the answers of our tasks alone.

    0.4.13 does so. 0.5 computes a task's results all the same and takes their mean, which for ours is an error after the last
    answer.
    """
    if not has_scorers():
        return
    task: Any = importlib.import_module("lm_eval.api.task").Task
    original = task._try_process_results

    @functools.wraps(original)
    def computed(self: Any, *args: Any) -> Any:
        if not (self._has_metric("bypass") and _is_ours(self.config.process_results)):
            return original(self, *args)
        # As 0.4.13 writes it into the result, and `is_predicted_only` reads it.
        self.config.metric_list = [{"metric": "bypass"}]
        return None

    task._try_process_results = computed


def _is_ours(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("dialeval_plugin.")


@functools.cache
def watch_requests() -> None:
    """Let the host, in this process, always build our tasks' requests, and our scorer see those of its task before answers.

    The key of the host's cache (`--cache_requests`) holds neither a task's options (`--metadata`) nor its data, so old prompts
    would be sent. A scorer of the host knows neither its task nor the documents until the model has given every answer.
    """
    task: Any = importlib.import_module("lm_eval.api.task").Task
    original = task.build_all_requests

    @functools.wraps(original)
    def built(self: Any, **settings: Any) -> Any:
        if settings.get("cache_requests") and _is_ours(getattr(self.config, "custom_dataset", None)):
            text = "%s: --cache_requests has no effect: it would send old prompts after a change of --metadata or of the data"
            logger.warning(text, self.config.task)
            settings["cache_requests"] = False
        requests = original(self, **settings)
        for scorer in getattr(self, "scorers", ()):
            if hasattr(scorer, "check_requests"):
                scorer.check_requests(requests)
        return requests

    task.build_all_requests = built


def scorers() -> Any:
    """Return the host's module of scorers, available from 0.5 on.

    Raises:
        MissingPrerequisite: the host has none.
    """
    if not has_scorers():
        raise MissingPrerequisite(
            f"scorer: lm-eval {version('lm_eval')} has no scorers. Install 0.5: pip install --pre 'lm-eval[hf]>=0.5.0.dev1'."
        )
    return importlib.import_module("lm_eval.scorers")


def has_scorers() -> bool:
    """Whether the host has scorers."""
    return importlib.util.find_spec("lm_eval.scorers") is not None


def register_scorer() -> None:
    """Let task files name our scorer, which is imported when one does; no effect if the host has no scorers."""
    if has_scorers():
        scorers()  # fill the host's registry first; it would not fill itself once our scorer is in it
        registry = importlib.import_module("lm_eval.api.registry").scorer_registry
        if SCORER not in registry:
            registry.register(SCORER, target="dialeval_plugin.hosts.lm_eval.tasks.answers:DialevalScorer")


@functools.cache
def redact_host_logs() -> None:
    """Hide secrets in the log records of the host and its transports until the process ends.

    The host logs a failed request with its headers. A logger's filter misses its child loggers, so the record factory filters.
    """
    make = logging.getLogRecordFactory()

    def record(*arguments: Any, **options: Any) -> logging.LogRecord:
        made = make(*arguments, **options)
        if made.name.partition(".")[0] in _LOGGERS:
            try:
                text = made.getMessage()
            except (TypeError, ValueError):  # logging reports a message that does not fit its arguments, and goes on
                text = f"{made.msg} {made.args}"
            made.msg, made.args = redacted(text), ()
            if made.exc_info:
                # A formatter does not format again a record that already has its text.
                made.exc_text = redacted(logging.Formatter().formatException(made.exc_info))
        return made

    logging.setLogRecordFactory(record)
