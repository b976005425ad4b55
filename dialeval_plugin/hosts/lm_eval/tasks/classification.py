"""The tasks `dailydialog_pp`: is a response positive or negative (SLIDE's Table 1), by choice and by generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from lm_eval.api.samplers import ContextSampler

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers import dailydialog_pp
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.judgement_tasks.classification import Classified
from dialeval_plugin.judgement_tasks.documents import data_sets, item_columns, item_of, verdict_of
from dialeval_plugin.judgement_tasks.kinds import printed
from dialeval_plugin.methods.judging import classification
from dialeval_plugin.methods.judging.goodness import goodness, merge_forms

from .task_data import task_data

FORMS = ("Positive", "Negative", "positive", "negative")
"""Continuations that are asked for: the answer to a positive response, to a negative one, and their other spellings, whose
probabilities are added."""

Document = Mapping[str, Any]


@task_data()
def dailydialog_pp_dataset() -> dict[str, Any]:
    """Build the data set over DailyDialog++'s test contexts, one document a response."""
    path = dailydialog_pp.CORPUS.folder() / "test.json"
    if not path.is_file():
        raise MissingPrerequisite(
            f"{path.parent}: has no test.json. `dialeval data fetch dailydialog_pp` says where it is to be had; put it there."
        )
    return _dataset(dailydialog_pp.read(path))


@task_data()
def mini_dataset() -> dict[str, Any]:
    """Build the data set over the test split of the embedded corpus, whose labels are by construction."""
    return _dataset(mini.read_response_sets("test"))


def process_choice(doc: Document, results: Sequence[tuple[float, bool]]) -> dict[str, Classified]:
    """Return what became of a document whose choices were scored: the likelier label counts, positive where both are equal."""
    merged = merge_forms((form, value) for form, (value, _) in zip(doc["choices"], results, strict=True))
    share = goodness(merged["positive"], merged["negative"])
    return _result(doc, None if share is None else share >= 0.5, results)


def process_generation(doc: Document, results: Sequence[str]) -> dict[str, Classified]:
    """Return what became of a document that was answered with text."""
    item = cast("Example", item_of(doc))
    # The host keeps no prompt: it is put together again, so that its examples are not read as the answer where it is echoed.
    label = classification.read_label(results[0], classification.ClassificationPrompt().render(item), item)
    return _result(doc, None if isinstance(label, Unscored) else label == classification.POSITIVE, results)


class PrintedExamples(ContextSampler):  # type: ignore[misc]  # the host is not typed
    """The examples that the paper prints, in its order; those of the dialogue under test are left out."""

    def sample(
        self, n: int, eval_doc: Document | None = None, df: Sequence[Document] | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the first `n` printed examples, fewer where some of them are of the tested dialogue."""
        if n > len(classification.PRINTED_EXAMPLES):
            raise InputError(
                f"few-shot examples: {n} were asked for, but the paper prints {len(classification.PRINTED_EXAMPLES)}. "
                "Ask for fewer (--num_fewshot)."
            )
        shown = classification.PRINTED_EXAMPLES[:n]
        item = item_of(eval_doc) if eval_doc is not None else None
        if isinstance(item, Example):
            shown = classification.ClassificationPrompt(shown).shown_for(item)
        return [
            {
                **_document(one.example, classification.POSITIVE if one.label == classification.POSITIVE else "adversarial"),
                "example": text,
            }
            for one, text in zip(shown, classification.example_texts(shown), strict=True)
        ]


def _result(doc: Document, is_positive: bool | None, results: Sequence[Any]) -> dict[str, Classified]:
    hit = None if is_positive is None else float(is_positive == (doc["kind"] == classification.POSITIVE))
    unscored = verdict.unscored if (verdict := verdict_of(results)) else None
    return dict.fromkeys(printed("classification"), Classified(doc["kind"], hit, doc["cluster"], unscored))


def _dataset(sets: Sequence[ResponseSet]) -> dict[str, Any]:
    rows = (_document(example, kind) for item in sets for example, kind in zip(item.examples(), item.kinds, strict=True))
    return data_sets(test=list(rows))


def _document(example: Example, kind: str) -> dict[str, Any]:
    label = 0 if kind == classification.POSITIVE else 1
    return {
        **item_columns(example),
        "kind": kind,
        "cluster": context_key(example),
        "instruction": classification.INSTRUCTION,
        "question": classification.question(example),
        "example": "",
        "answer": FORMS[label],
        "choices": list(FORMS),
        "label": label,
    }
