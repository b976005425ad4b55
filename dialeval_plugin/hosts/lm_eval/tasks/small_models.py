"""The tasks `slide` and `dre`: a small model judges the responses first, then the language model under test.

The small model runs once over all documents when the host requests them, and its numbers are columns of the documents. It is
named in `--metadata '{"slm": "FOLDER"}'`, like the methods' options.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from lm_eval.api.instance import Instance

from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import to_json
from dialeval_plugin.core.scorer import run_signature
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.hosts.lm_eval.run import read_set, task_data
from dialeval_plugin.hosts.lm_eval.versions import generation_task
from dialeval_plugin.llm.answers import DryRunLanguageModel
from dialeval_plugin.methods.judging.judge import SCORING_PROMPTS, PromptedJudge, read_interior
from dialeval_plugin.methods.slide.dre import INTERIOR_VARIANTS, PLAIN, DreScorer, rows_of_answers
from dialeval_plugin.methods.slide.dre import VARIANTS as DRE_VARIANTS
from dialeval_plugin.methods.slide.fusion import Fusion, FusionReading, Refinement
from dialeval_plugin.methods.slide.scorer import SlideScorer

from . import documents
from .ratings import FETCH, RATINGS, Judged, Variant, rated_items

HOST_MODEL_PLACEHOLDER = DryRunLanguageModel(identity="host")
"""Placeholder for the model under test, which the host runs and records."""

ColumnFunction = Callable[..., list[dict[str, Any]]]

_NUMBERS = ("slm_probability", "slm_distance", "slm")
_COLUMNS = (
    *("cluster", "prompt", "plain_prompt", "signature", "slm_unscored", "slm_detail", "options"),
    *("rating", *_NUMBERS, "is_absent", "max_gen_toks"),
)
"""Columns of the documents of both tasks; those of the other task are empty."""


def set_documents(
    task: str,
    columns: ColumnFunction,
    *,
    dataset: str,
    rated_quality: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Build the data set of a task over a turn-level DSTC10 set, or over the embedded corpus.

    Args:
        task: name of the task's group.
        columns: makes the task's own columns from examples and options, one dictionary per example.
        dataset: the set's code, for example "tu"; "mini" for the embedded corpus' test split, with ratings by construction.
        rated_quality: see `dstc10_dataset`.
        **options: options of the method.
    """
    items: Sequence[Item] | None
    if dataset == "mini":
        items, quality = mini.read_examples(split="test"), mini.QUALITY
    else:
        items = read_set(dstc10.read, dataset, group=task, advice=FETCH)
        if not all(isinstance(item, Example) for item in items):
            raise InputError(f"{task}: the set {dataset!r} holds whole dialogues, not responses. Use a turn-level set.")
        quality = rated_quality or dstc10.overall_quality(items, dstc10.find_set(dataset))
    rated = rated_items(items, quality)
    rows = [
        {
            **dict.fromkeys(_COLUMNS),
            **documents.item_columns(item),
            **documents.rater_columns(item, quality),
            **{"rating": rating, "cluster": context_key(item), "is_absent": False},
            **own,
        }
        for (item, rating), own in zip(rated, columns([item for item, _ in rated], **options), strict=True)
    ]
    return documents.data_sets(test=rows)


def dre_columns(
    examples: Sequence[Example],
    *,
    slm: str | None = None,
    eq26: bool = False,
    clamp: bool | Sequence[float] | None = None,
    clip: bool = False,
) -> list[dict[str, Any]]:
    """Let the small model judge examples; return both prompts and the inputs of `dre_results`. Options as in `dre`."""
    scorer = DreScorer(HOST_MODEL_PLACEHOLDER, slm, ablation=True, eq26=eq26, clamp=clamp, clip=clip)
    rows = []
    for pending in scorer.prepare(examples):
        # A document without the small model's numbers is prompted too: the host has no way to leave it out.
        plain, interior = pending.requests or (PLAIN.request(pending.item),) * 2
        rows.append(
            {
                "prompt": interior.prompt,
                "plain_prompt": plain.prompt,
                "max_gen_toks": [interior.max_tokens, plain.max_tokens],
                **_small_model_columns(pending.row),
                "options": to_json(asdict(scorer.refinement)),
                "signature": str(run_signature(scorer)),
            }
        )
    return rows


def slide_columns(
    examples: Sequence[Example],
    *,
    slm: str | None = None,
    fusion: FusionReading = "first_match",
    slm_scale: float = 1.0,
    clip: bool = False,
    round3: bool = False,
    normalise: Literal["training"] = "training",
) -> list[dict[str, Any]]:
    """Let the small model judge examples; return SLIDE's prompt and the inputs of `slide_results`. Options as in `slide`."""
    if normalise != "training":
        raise InputError(
            f"slide: normalise={normalise!r} needs all scores of a run, and a task has one document's. "
            "Leave it out, or score a file with `dialeval score`."
        )
    judge = PromptedJudge(HOST_MODEL_PLACEHOLDER)
    scorer = SlideScorer(slm, llm=judge, fusion=fusion, slm_scale=slm_scale, clip=clip, round3=round3)
    prompts = [pending.requests[0] for pending in judge.prepare(examples)]
    return [
        {
            "prompt": request.prompt,
            **_small_model_columns(row),
            "options": to_json(asdict(scorer.fusion)),
            "signature": str(run_signature(scorer)),
        }
        for request, row in zip(prompts, scorer.small_model_rows(examples), strict=True)
    ]


@task_data(set_documents, dre_columns)
def dre_dataset(**settings: Any) -> dict[str, Any]:
    """Build the data set of a `dre` task: `set_documents` with the columns of `dre_columns`."""
    return set_documents("dre", dre_columns, **settings)


@task_data(set_documents, slide_columns)
def slide_dataset(**settings: Any) -> dict[str, Any]:
    """Build the data set of a `slide` task: `set_documents` with the columns of `slide_columns`."""
    return set_documents("slide", slide_columns, **settings)


class PromptTask(generation_task()):  # type: ignore[misc]  # the host is not typed
    """A task with stop strings for models that continue a text; a model with a chat template ends by itself."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config={name: value for name, value in config.items() if name != "class"})
        self._stop = self.config.generation_kwargs["until"]

    def construct_requests(self, doc: Mapping[str, Any], ctx: Any, **kwargs: Any) -> Any:
        """Return the host's request; other stop strings from the run's `--gen_kwargs` stay."""
        request = super().construct_requests(doc, ctx, **kwargs)
        if isinstance(request, list):
            (request,) = request
        text, settings = request.arguments
        if kwargs.get("apply_chat_template") and settings["until"] == self._stop:
            request.arguments = (text, {**settings, "until": []})
        return request


class DreTask(PromptTask):
    """A task with two prompts per document, the columns `prompt` and `plain_prompt`.

    The host's own tasks make one request per document. Two documents per example would count every example twice, and `--limit`
    could separate the two prompts.
    """

    def fewshot_context(self, doc: Mapping[str, Any], *args: Any, **kwargs: Any) -> list[str]:
        """Return the text of both prompts, in the run's chat template if it applies one."""
        build = super().fewshot_context
        return [build({**doc, "prompt": prompt}, *args, **kwargs) for prompt in (doc["prompt"], doc["plain_prompt"])]

    def construct_requests(self, doc: Mapping[str, Any], ctx: Sequence[str], **kwargs: Any) -> list[Instance]:
        """Return one request per prompt, with its token limit unless the run's `--gen_kwargs` give another."""
        requests = []
        for index, (prompt, max_tokens) in enumerate(zip(ctx, doc["max_gen_toks"], strict=True)):
            request = super().construct_requests(doc, prompt, **kwargs)
            text, settings = request.arguments
            request.arguments, request.idx = (text, {"max_gen_toks": max_tokens, **settings}), index
            requests.append(request)
        return requests


def dre_results(doc: Mapping[str, Any], results: Sequence[str | None]) -> dict[str, Any]:
    """Return, for every variant and metric, the score, the rating and the cluster of one document of `dre_dataset`.

    `results` are the answers to the interior and the plain prompt; None for a missing answer.
    """
    if doc["is_absent"]:
        return {}
    interior, plain = results
    example = documents.item_of(doc)
    read = {
        "interior": _read(interior, read_interior, doc["prompt"], example),
        "plain": _read(plain, PLAIN.read, doc["plain_prompt"], example),
    }
    refinement = Refinement(**json.loads(doc["options"]))
    small = _small_model_row(doc)
    rows = rows_of_answers(refinement, small, read)
    of_variants = {name: rows["interior" if name in INTERIOR_VARIANTS else "plain"] for name in DRE_VARIANTS}
    # A plain answer alone gives only `non_dre`: `ex_dre` lacks the small model's score.
    answers = {name: row if isinstance(row, Unscored) else small for name, row in of_variants.items()}
    return _judged(doc, {name: _value(row, name) for name, row in of_variants.items()}, answers)


def slide_results(doc: Mapping[str, Any], results: Sequence[str | None]) -> dict[str, Any]:
    """Return the same for a document of `slide_dataset` and the answer to SLIDE's prompt.

    The variant `llm` is Score_LLM alone, in [0, 1], or a scorer's score in its place; `slm` is Score_SLM alone.
    """
    if doc["is_absent"]:
        return {}
    small = _small_model_row(doc)
    llm = _read(results[0], SCORING_PROMPTS["slide"].read, doc["prompt"], documents.item_of(doc))
    if isinstance(small, Unscored) and small.reason is Reason.EMPTY_INPUT:
        llm = small
    verdict = documents.verdict_of(results)
    if verdict is not None and verdict.unscored is not None:
        llm = Unscored(Reason(verdict.unscored), "the scorer has no score")
    fused = Fusion(**json.loads(doc["options"])).rows(small, llm)
    scores = {
        "slide": _value(fused, "slide"),
        "slm": _value(small, "slm"),
        "llm": verdict.score if verdict is not None else None if isinstance(llm, Unscored) else llm,
    }
    return _judged(doc, scores, {"slide": fused, "slm": small, "llm": llm})


def _judged(doc: Mapping[str, Any], scores: Mapping[str, float | None], answers: Mapping[str, object]) -> dict[str, Judged]:
    """Return the first score by metric, the others as its variants; `answers` give reasons for missing scores."""

    def variant(name: str, score: float | None) -> Variant:
        if score is None and isinstance(failure := answers[name], Unscored):
            return Variant(name, None, failure.reason.value, failure.detail)
        return Variant(name, score)

    first, *others = (variant(*one) for one in scores.items())
    return RATINGS.of_document(Judged(first.score, doc["rating"], doc["cluster"], first.unscored, tuple(others)))


def _value(row: Row, name: str) -> float | None:
    return None if isinstance(row, Unscored) else row.get(name)


def _read(answer: str | None, read: Callable[..., Any], *prompt: object) -> Any:
    return Unscored(Reason.API_ERROR, "the model gave no answer") if answer is None else read(answer, *prompt)


def _small_model_columns(row: Row) -> dict[str, Any]:
    if isinstance(row, Unscored):
        return {**dict.fromkeys(_NUMBERS), "slm_unscored": row.reason.value, "slm_detail": row.detail}
    return {**{name: row[name] for name in _NUMBERS}, "slm_unscored": None, "slm_detail": None}


def _small_model_row(doc: Mapping[str, Any]) -> Row:
    if doc["slm_unscored"] is None:
        return {name: doc[name] for name in _NUMBERS}
    return Unscored(Reason(doc["slm_unscored"]), doc["slm_detail"])
