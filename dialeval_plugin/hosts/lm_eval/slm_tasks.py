"""The tasks `slide` and `dre`: a small model judges the responses first, the language model under test after it.

The small model runs once over all documents of a task, when the host asks for them, and its numbers are columns of the
documents. It is named in `--metadata '{"slm": "FOLDER"}'`, like the methods' options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from datasets import Dataset, Features, List, Value
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.scoring import Reason, Row, Unscored
from dialeval_plugin.core.signature import Signature
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.judgement_tasks.documents import (
    absent_item,
    item_columns,
    item_features,
    item_of,
    rater_columns,
    rater_features,
)
from dialeval_plugin.judgement_tasks.kinds import printed
from dialeval_plugin.judgement_tasks.ratings import Judged, Variant
from dialeval_plugin.judgement_tasks.scorer_answers import verdict_of
from dialeval_plugin.methods.judging.interior import read_interior
from dialeval_plugin.methods.judging.prompts import ScoringPrompt, scoring_prompt
from dialeval_plugin.methods.slide.dre import INTERIOR_VARIANTS, PLAIN_PROMPT, SmallModelEvidence
from dialeval_plugin.methods.slide.dre import VARIANTS as DRE_VARIANTS
from dialeval_plugin.methods.slide.fusion import check_reading, fuse
from dialeval_plugin.methods.slide.refinement import Refinement, read_clamp
from dialeval_plugin.methods.slide.scorer import SLM
from dialeval_plugin.version import __version__

from .tasks.responses import rated_items, read_unless_absent
from .tasks.task_data import n_processes, task_data

SLIDE_VARIANTS = ("slide", "slm", "llm")

Columns = Callable[..., list[dict[str, Any]]]

_NUMBERS = ("slm_probability", "slm_distance", "slm")
_FEATURES = {
    **dict.fromkeys(
        ("cluster", "prompt", "plain_prompt", "signature", "slm_unscored", "slm_detail", "fusion"), Value("string")
    ),
    **dict.fromkeys(("rating", *_NUMBERS, "slm_scale"), Value("float64")),
    **dict.fromkeys(("is_absent", "eq26"), Value("bool")),
    "max_gen_toks": List(Value("int64")),
    "clamp": List(Value("float64")),
}


def set_documents(
    task: str,
    columns: Columns,
    *,
    dataset: str,
    rated_quality: str | None = None,
    when_absent: str = "fail",
    group_sets: Sequence[str] = (),
    **options: Any,
) -> dict[str, Any]:
    """Build the data set of a task over a turn-level DSTC10 set, or over the embedded corpus.

    Args:
        task: name of the task's group.
        columns: makes the task's own columns of examples and options, one dictionary an example.
        dataset: the set's code, as "tu"; "mini" for the test split of the embedded corpus, whose ratings are by
            construction.
        rated_quality: the quality to compare with; without it the one that stands for overall quality in the set.
        when_absent: "fail" or "skip", see `read_unless_absent`.
        group_sets: codes of the group's sets.
        **options: the method's.

    Raises:
        InputError: an option is unknown, or the set holds whole dialogues.
        MissingPrerequisite: the set is not there and may not be left out, or there is no small model.
    """
    if dataset == "mini":
        return _split(mini.read_examples(split="test"), mini.QUALITY, lambda examples: columns(examples, **options))
    items = read_unless_absent(dataset, when_absent=when_absent, group_sets=group_sets, group=task)
    if items is None:
        return _placeholder(dataset)
    examples = [item for item in items if isinstance(item, Example)]
    if len(examples) < len(items):
        raise InputError(f"{task}: the set {dataset!r} holds whole dialogues, not responses. Use a turn-level set.")
    quality = rated_quality or dstc10.overall_quality(examples, dstc10.find_set(dataset))
    return _split(examples, quality, lambda chosen: columns(chosen, **options))


def dre_columns(
    examples: Sequence[Example],
    *,
    slm: str | None = None,
    eq26: bool | str = False,
    clamp: bool | Sequence[float] | None = None,
    clip: bool | str = False,
) -> list[dict[str, Any]]:
    """Let the small model judge examples, and return both prompts and what `dre_results` needs.

    Args:
        examples: the responses.
        slm: folder or hub id of the small model; see `DefaultModel`.
        eq26: as in the scorer `dre`, like the next two.
        clamp: see there.
        clip: see there.

    Raises:
        InputError: an option has a wrong value.
        MissingPrerequisite: there is no small model.
    """
    refinement = Refinement(_switch("dre", "eq26", eq26), read_clamp(clamp))
    evidence = _evidence("dre", slm, clip)
    plain = scoring_prompt(PLAIN_PROMPT)
    signature = _signature("dre", evidence, plain, interior_prompt=evidence.prompt.id, **refinement.signature_fields())
    rows = []
    for example, row in zip(examples, evidence.rows(examples), strict=True):
        plain_prompt = plain.render(example)
        rows.append(
            {
                # A document without the small model's numbers is asked all the same: the host has no way to leave it out.
                "prompt": plain_prompt if isinstance(row, Unscored) else evidence.render(example, row),
                "plain_prompt": plain_prompt,
                "max_gen_toks": [evidence.prompt.max_tokens, plain.max_tokens],
                **_small_model_columns(row),
                "eq26": refinement.eq26,
                "clamp": list(refinement.clamp) if refinement.clamp else None,
                "signature": signature,
            }
        )
    return rows


def slide_columns(
    examples: Sequence[Example],
    *,
    slm: str | None = None,
    fusion: str = "first_match",
    slm_scale: float = 1.0,
    clip: bool | str = False,
) -> list[dict[str, Any]]:
    """Let the small model judge examples, and return SLIDE's prompt and what `slide_results` needs.

    Args:
        examples: the responses.
        slm: folder or hub id of the small model; see `DefaultModel`.
        fusion: as in the scorer `slide`, like the next two.
        slm_scale: see there.
        clip: see there.

    Raises:
        InputError: an option has a wrong value.
        MissingPrerequisite: there is no small model.
    """
    check_reading(fusion)
    if isinstance(slm_scale, bool) or not isinstance(slm_scale, (int, float)):
        raise InputError(f"slide: slm_scale is {slm_scale!r}. Give a finite number.")
    evidence = _evidence("slide", slm, clip)
    prompt = scoring_prompt("slide")
    signature = _signature("slide", evidence, prompt, fusion=fusion, slm_scale=slm_scale)
    return [
        {
            "prompt": prompt.render(example),
            **_small_model_columns(row),
            "fusion": fusion,
            "slm_scale": slm_scale,
            "signature": signature,
        }
        for example, row in zip(examples, evidence.rows(examples), strict=True)
    ]


@task_data(set_documents, dre_columns)
def dre_dataset(**settings: Any) -> dict[str, Any]:
    """Build the data set of a `dre` task: `set_documents` with the columns of `dre_columns`."""
    return set_documents("dre", dre_columns, **settings)


@task_data(set_documents, slide_columns)
def slide_dataset(**settings: Any) -> dict[str, Any]:
    """Build the data set of a `slide` task: `set_documents` with the columns of `slide_columns`."""
    return set_documents("slide", slide_columns, **settings)


class DreTask(ConfigurableTask):  # type: ignore[misc]  # the host is not typed
    """A task that asks two prompts about each document, the columns `prompt` and `plain_prompt`.

    The host's own tasks make one request of a document. Two documents an example would count every example twice, and
    `--limit` could ask one prompt without the other.

    Args:
        config: the task file.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config={name: value for name, value in config.items() if name != "class"})

    def fewshot_context(self, doc: Mapping[str, Any], *args: Any, **kwargs: Any) -> list[str]:
        """The text of both prompts, in the chat template where the run applies one."""
        build = super().fewshot_context
        return [build({**doc, "prompt": prompt}, *args, **kwargs) for prompt in (doc["prompt"], doc["plain_prompt"])]

    def construct_requests(self, doc: Mapping[str, Any], ctx: Sequence[str], **kwargs: Any) -> list[Instance]:
        """One request for each prompt, with the number of tokens that its answer may have."""
        requests = []
        for index, (prompt, max_tokens) in enumerate(zip(ctx, doc["max_gen_toks"], strict=True)):
            request = super().construct_requests(doc, prompt, **kwargs)
            text, settings = request.arguments
            request.arguments, request.idx = (text, {**settings, "max_gen_toks": max_tokens}), index
            requests.append(request)
        return requests


def dre_results(doc: Mapping[str, Any], results: Sequence[str | None]) -> dict[str, Any]:
    """Return, for every variant and metric, the score, the rating and the cluster of one document.

    Args:
        doc: a row of `dre_dataset`.
        results: the answers to the interior and the plain prompt; None where the model gave none.
    """
    if doc["is_absent"]:
        return {}
    refinement = Refinement(doc["eq26"], tuple(doc["clamp"]) if doc["clamp"] else None)
    interior_answer, plain_answer = results
    scores: dict[str, float] = {}
    interior = _small_model_failure(doc) or _read(read_interior, interior_answer, doc["prompt"], doc)
    if not isinstance(interior, Unscored):
        scores |= refinement.interior(doc["slm"], **interior._asdict())
    plain = _blank(doc) or _read(scoring_prompt(PLAIN_PROMPT).read, plain_answer, doc["plain_prompt"], doc)
    if not isinstance(plain, Unscored):
        scores |= refinement.plain(doc["slm"], llm=plain)
    answers = {name: interior if name in INTERIOR_VARIANTS else plain for name in DRE_VARIANTS}
    return _judged(doc, {name: scores.get(name) for name in DRE_VARIANTS}, answers)


def slide_results(doc: Mapping[str, Any], results: Sequence[str | None]) -> dict[str, Any]:
    """Return the same for a document of `slide_dataset` and the answer to SLIDE's prompt.

    The variant `llm` is Score_LLM alone, in [0, 1], or the score of a scorer that answers in its place, and `slm` Score_SLM
    alone.
    """
    if doc["is_absent"]:
        return {}
    (answer,) = results
    llm = _blank(doc) or _read(_share, answer, doc["prompt"], doc)
    verdict = verdict_of(results)
    if verdict is not None and verdict.unscored is not None:
        llm = Unscored(Reason(verdict.unscored), "the scorer has no score")
    scores: dict[str, float | None] = {"slm": doc["slm"], "llm": None if isinstance(llm, Unscored) else llm}
    if scores["slm"] is not None and scores["llm"] is not None:
        scores["slide"] = fuse(scores["slm"], scores["llm"], reading=doc["fusion"], slm_scale=doc["slm_scale"])
    if verdict is not None:
        scores["llm"] = verdict.score
    small = _small_model_failure(doc)
    answers = {"slide": llm if isinstance(llm, Unscored) else small, "slm": small, "llm": llm}
    return _judged(doc, {name: scores.get(name) for name in SLIDE_VARIANTS}, answers)


def _judged(doc: Mapping[str, Any], scores: Mapping[str, float | None], answers: Mapping[str, object]) -> dict[str, Judged]:
    """The first of the scores under the name of every metric, the others as its variants; `answers` say why one is missing."""
    variants = []
    for name, score in scores.items():
        failure = answers[name]
        why = (failure.reason.value, failure.detail) if score is None and isinstance(failure, Unscored) else (None, "")
        variants.append(Variant(name, score, *why))
    first, *others = variants
    judged = Judged(first.score, doc["rating"], doc["cluster"], first.unscored, tuple(others))
    return dict.fromkeys(printed("rating"), judged)


def _read(read: Callable[[str, str, Example], Any], answer: str | None, prompt: str, doc: Mapping[str, Any]) -> Any:
    if answer is None:
        return Unscored(Reason.API_ERROR, "the model gave no answer")
    return read(answer, prompt, cast("Example", item_of(doc)))


def _share(answer: str, prompt: str, example: Example) -> float | Unscored:
    """An answer's number as its share of the prompt's scale, which is the same number on SLIDE's scale of 0 to 1."""
    asked = scoring_prompt("slide")
    rating = asked.read(answer, prompt, example)
    low, high = asked.scale
    return rating if isinstance(rating, Unscored) else (rating - low) / (high - low)


def _blank(doc: Mapping[str, Any]) -> Unscored | None:
    """Why nobody is believed about this response: it has no visible character."""
    failure = _small_model_failure(doc)
    return failure if failure is not None and failure.reason is Reason.EMPTY_INPUT else None


def _small_model_failure(doc: Mapping[str, Any]) -> Unscored | None:
    return None if doc["slm_unscored"] is None else Unscored(Reason(doc["slm_unscored"]), doc["slm_detail"])


def _small_model_columns(row: Row) -> dict[str, Any]:
    if isinstance(row, Unscored):
        return {**dict.fromkeys(_NUMBERS), "slm_unscored": row.reason.value, "slm_detail": row.detail}
    return {**{name: row[name] for name in _NUMBERS}, "slm_unscored": None, "slm_detail": None}


def _evidence(task: str, slm: str | None, clip: bool | str) -> SmallModelEvidence:
    try:
        name = SLM.find(slm)
    except MissingPrerequisite:
        raise MissingPrerequisite(
            f"{task}: no SLM is named. Train one with `dialeval train slm --data FILE --output FOLDER`, "
            f'or type --metadata \'{{"slm": "FOLDER or hub id"}}\', or set {SLM.variable}.'
        ) from None
    return SmallModelEvidence(name, clip=_switch(task, "clip", clip))


def _signature(task: str, evidence: SmallModelEvidence, prompt: ScoringPrompt, **fields: Any) -> str:
    """What moves a number of the task, but for the language model, which the host names in its own records."""
    return str(
        Signature({"method": task, "prompt": prompt.id, **evidence.signature_fields(), **fields, "version": __version__})
    )


def _switch(task: str, name: str, value: object) -> bool:
    if str(value).lower() not in {"true", "false"}:
        raise InputError(f"{task}: {name} is {value!r}. Type --metadata '{{\"{name}\": true}}' or leave it out.")
    return str(value).lower() == "true"


def _split(
    examples: Sequence[Example], quality: str, columns: Callable[[Sequence[Example]], list[dict[str, Any]]]
) -> dict[str, Any]:
    rated = rated_items(examples, quality)
    own = columns([cast("Example", item) for item, _ in rated])
    rows = [
        {
            **item_columns(item),
            **rater_columns(item, quality),
            "rating": rating,
            "cluster": context_key(item),
            "is_absent": False,
            **extra,
        }
        for (item, rating), extra in zip(rated, own, strict=True)
    ]
    return _dataset(rows)


def _placeholder(dialogue_set: str) -> dict[str, Any]:
    """A set that is not on this machine: the host cannot build a task without a document, and asks about it."""
    empty = absent_item(dialogue_set)
    prompt = scoring_prompt(PLAIN_PROMPT)
    text = prompt.render(empty)
    row = {
        **dict.fromkeys(_FEATURES),
        **item_columns(empty),
        **rater_columns(empty, ""),
        "rating": 0.0,
        "is_absent": True,
        "prompt": text,
        "plain_prompt": text,
        "max_gen_toks": [prompt.max_tokens] * 2,
    }
    return _dataset([row] * n_processes())


def _dataset(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    # Columns of the other of the two tasks are there and empty.
    complete = [{**dict.fromkeys(_FEATURES), **row} for row in rows]
    return {"test": Dataset.from_list(complete, features=Features({**item_features(), **rater_features(), **_FEATURES}))}
