"""The lm-eval model `replay-judge`: stored verdicts of a language model, replayed on our tasks.

    dialeval lm-eval run --model replay-judge --model_args source=gpt-4/comp-analysis,quality=relevance --tasks dstc10_dialog

A document without a stored verdict is unscored (`no_verdict`) and counted. Otherwise it answers as the model `dialogue-metric`
does for a scorer: our tasks compare the stored number itself with human ratings.
"""

from __future__ import annotations

from typing import Any

from lm_eval.api.instance import Instance

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.methods.judging.goodness import format_decimal
from dialeval_plugin.methods.judging.judge import OVERALL_QUALITY, OVERALL_SCALE
from dialeval_plugin.methods.judging.prompts import level_of
from dialeval_plugin.methods.judging.replay import ReplayedJudge

from .model import DialogueMetricLM
from .tasks.documents import ScoredText, with_verdict

PLAIN_REQUEST = 1
"""Index of the plain prompt's request among the two that `DreTask` makes per document."""


class ReplayJudgeLM(DialogueMetricLM):
    """Stored verdicts as an lm-eval model, at both levels; `batch_size`, `max_batch_size` and `device` are the host's.

    Args:
        source: the judge, see `ReplayedJudge`.
        quality: the quality that the judge rated.
        verdicts: file of stored verdicts; by default the one that `dialeval data fetch llm_judgements` downloads.

    Raises:
        InputError: there are no such verdicts; the message lists those available.
        MissingPrerequisite: there is no file of them.
    """

    def __init__(
        self,
        source: str,
        quality: str = OVERALL_QUALITY,
        verdicts: str | None = None,
        batch_size: int | str | None = None,
        max_batch_size: int | None = None,
        device: str | None = None,
    ) -> None:
        self._by_level = {level: ReplayedJudge(source, quality, level, verdicts) for level in ReplayedJudge.levels}
        super().__init__(self._by_level["turn"])

    def scorer_of(self, item: Item) -> Scorer:
        """Return the verdicts of the item's level."""
        return self._by_level[level_of(item)]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Answer as a scorer does; of DRE's two prompts only the plain one, as the other requests more than a rating."""
        answers = super().generate_until(requests, disable_tqdm)
        return [
            _on_dre_scale(answer, request) if request.doc.get("plain_prompt") else answer
            for request, answer in zip(requests, answers, strict=True)
        ]


def _on_dre_scale(answer: Any, request: Instance) -> str:
    verdict = answer.verdict
    if verdict.share is None or request.idx != PLAIN_REQUEST:
        return with_verdict(ScoredText("unscored"), verdict)
    low, high = OVERALL_SCALE
    return with_verdict(ScoredText(format_decimal(low + verdict.share * (high - low))), verdict)
