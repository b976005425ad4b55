"""Every scorer of turns as a scorer of lm-eval 0.5: `scorer: {type: dialeval, kwargs: {method: general}}` in a generation task.

All answers of a task are judged in one call, after the model under test has given the last. The task's own metrics stay.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dialeval_plugin.conversations.layouts.layout import required_list
from dialeval_plugin.conversations.responses import context_and_response
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import check_names
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.corpora import mini
from dialeval_plugin.hosts.judges import load_scorer_with_judge, scorer_options
from dialeval_plugin.hosts.lm_eval import versions
from dialeval_plugin.hosts.lm_eval.run import current_run, task_data

from .corpus_metrics import Undefined, undefined

_host: Any = versions.scorers()


@task_data()
def mini_dataset() -> dict[str, Any]:
    """Build the data set of the example task: the contexts of the test split of the embedded corpus, without a response."""
    contexts = [list(one.context) for one in mini.read_response_sets("test")]
    return {"test": [{"history": context, "prompt": "\n".join([*context, ""])} for context in contexts]}


def _standing_for(metric: str) -> Any:
    """Return a metric whose values for all documents come from `score_instances`."""

    def computed(*_: Any) -> dict[str, Any]:
        return {}

    computed.__name__ = metric
    return computed


def _mean_of_answers(reference: Any, scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return statistics.fmean(known) if known else None


def _total(*counts: Any) -> int:
    """Sum over the documents, or over one document's answers, which follow its target."""
    return sum(counts[-1])


class Mean:
    """Mean over the documents with a score."""

    def __call__(self, scores: Sequence[float | None]) -> float | Undefined:
        """Return the mean."""
        mean = _mean_of_answers(None, scores)
        return undefined("no answer has a score") if mean is None else mean

    def standard_error(self, scores: Sequence[float | None]) -> float | str:
        """Return its standard error, or the host's text if there is none."""
        known = [score for score in scores if score is not None]
        return statistics.stdev(known) / math.sqrt(len(known)) if len(known) > 1 else "N/A"


@dataclass(kw_only=True)
class DialevalScorer(_host.GenScorer):  # type: ignore[misc]  # the host is not typed
    """The metrics `dialeval`, the mean score, and `n_unscored`, the number of answers without one.

    Attributes:
        judge: function that gives the scores.
        contexts: document column with the turns before the answer, a list of strings or of chat messages; None if the prompt is
            the only turn before it.
    """

    judge: Scorer
    contexts: str | None = None

    @classmethod
    def from_dict(cls, cfg: Mapping[str, Any], *, output_type: str | None = None, **settings: Any) -> Any:
        """Make the scorer of a task file, before the first answer.

        Args:
            cfg: filters and metrics of the task.
            output_type: output type of the task.
            **settings: `method`, by default general; `contexts`; and the options of the method.

        Raises:
            InputError: the method or an option is unknown, the method judges whole dialogues, or the run has a chat template
                and `contexts` is not given.
            MissingPrerequisite: something that the method needs is missing.
        """
        method, contexts = settings.pop("method", "general"), settings.pop("contexts", None)
        known = scorer_options(method)
        check_names(method, settings, None if known is None else [*known, "method", "contexts"])
        judge = load_scorer_with_judge(method, settings)
        if judge.level != "turn":
            raise InputError(f"scorer: {method} judges whole dialogues, and a task has answers. Choose another method.")
        run = current_run()
        if contexts is None and run is not None and run.has_chat_template:
            raise InputError(
                "scorer: with a chat template the prompt is more than the turn before the answer. "
                "Name under contexts the column of the documents that has the turns."
            )
        versions.leave_out_standard_errors()
        versions.watch_requests()
        direction = {"higher_is_better": judge.orientation == "higher"}
        metrics = [
            *(cfg.get("metric_list") or ()),
            {"metric": _standing_for("dialeval"), "aggregation": Mean(), "reduction": _mean_of_answers, **direction},
            {"metric": _standing_for("n_unscored"), "aggregation": _total, "reduction": _total, "higher_is_better": False},
        ]
        return super().from_dict({**cfg, "metric_list": metrics}, output_type=output_type, judge=judge, contexts=contexts)

    def check_requests(self, requests: Sequence[Any]) -> None:
        """Read the turns of every request, before the first answer.

        Raises:
            InputError: a document lacks the column `contexts`, or the column has no turns.
        """
        for request in requests:
            self._example("", request, "")

    def score_instances(self, instances: Mapping[int, list[Any]]) -> dict[int, Any]:
        """Judge all answers at once; the run's result gets the signature and the reasons of answers without a score."""
        inputs = {place: self._extract_inputs(requests) for place, requests in instances.items()}
        examples = [
            self._example(f"{place}.{number}", instances[place][0], answer)
            for place, (_, answers, _) in inputs.items()
            for number, answer in enumerate(answers, start=1)
        ]
        scores = self.judge.score(examples, progress=True)
        if (run := current_run()) and examples:
            task = next(iter(instances.values()))[0].task_name
            run.scorers[task] = {"signature": str(scores.signature), "unscored": scores.unscored_by_reason}
        values_left = iter(scores.values)
        results = {}
        for place, (target, answers, settings) in inputs.items():
            own = [next(values_left) for _ in answers]
            values = self.score(target, answers, metric_kwargs=settings)
            values |= {"dialeval": own, "n_unscored": [int(score is None) for score in own]}
            results[place] = _host.ScoredDoc(doc_id=place, reference=target, scores=values)
        return results

    def _example(self, name: str, request: Any, answer: str) -> Example:
        """Return the response to judge; the task's target becomes a reference if it is a text or a list of texts."""
        task = request.task_name
        if self.contexts is None:
            turns, column = [request.args[0]], "prompt"
        elif self.contexts in request.doc:
            turns, column = required_list(request.doc[self.contexts], f"{task}: {self.contexts}", "turns"), self.contexts
        else:
            raise InputError(
                f"scorer: the documents of {task} have no column {self.contexts!r}. Columns: {', '.join(request.doc)}. "
                "Name one of them under contexts."
            )
        context, response = context_and_response(turns, answer, (f"{task}: {column}", f"{task}: answer"), Counter())
        targets = request.target if isinstance(request.target, list) else [request.target]
        references = tuple(target for target in targets if isinstance(target, str) and target)
        return Example(name, context, response, references)


versions.register_scorer()
