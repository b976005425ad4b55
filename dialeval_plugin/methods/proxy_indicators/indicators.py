"""The indicators of responses: outputs of GLUE classifiers, whose labels are identified by name."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import torch
from transformers import AutoModelForSequenceClassification

from dialeval_plugin.core.dialogue import Example, is_blank, mean_rating, visible_texts
from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.corpora.readers import usr
from dialeval_plugin.corpora.registry import read_items
from dialeval_plugin.models.folders import resolve
from dialeval_plugin.models.language_models import longest_input, open_transformer
from dialeval_plugin.models.tensors import tokens_at_once
from dialeval_plugin.models.texts import length_batches

from .tasks import FACT, TASKS, Choice, IndicatorSettings, Truncate, task_of

Texts: TypeAlias = tuple[str, str | None]
"""Input of a classifier: the response alone, or a context or fact and the response."""


class GlueClassifier:
    """An opened classifier of one task."""

    def __init__(self, model: Any, tokenizer: Any, place: int | None, truncate: Truncate) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.place = place
        """Position of the label in the output; None for a regression."""
        self.tokenizer.truncation_side = truncate
        self.max_tokens = longest_input(model, tokenizer) or 10**9

    def indicate(self, texts: Sequence[Texts]) -> list[tuple[float, bool]]:
        """Return the probability of the label, or a regression's output, and whether the text was truncated, for each text."""
        distinct = list(dict.fromkeys(texts))
        encoded = [self._encode(text) for text in distinct]
        answers: dict[Texts, tuple[float, bool]] = {}
        with torch.inference_mode():
            lengths = [len(row["input_ids"]) for row, _ in encoded]
            for batch in length_batches(lengths, tokens_at_once(self.model.device)):
                outputs = self._outputs([encoded[index][0] for index in batch])
                answers |= {distinct[index]: (value, encoded[index][1]) for index, value in zip(batch, outputs, strict=True)}
        return [answers[text] for text in texts]

    def _encode(self, texts: Texts) -> tuple[dict[str, list[int]], bool]:
        # A "[SEP]" in a turn is read as letters, so that no turn can end a text.
        row = self.tokenizer(*texts, truncation=False, split_special_tokens=True, verbose=False)
        is_cut = len(row["input_ids"]) > self.max_tokens
        if is_cut:
            cut = {"truncation": "longest_first", "max_length": self.max_tokens}
            row = self.tokenizer(*texts, split_special_tokens=True, **cut)
        return dict(row), is_cut

    def _outputs(self, rows: Sequence[dict[str, list[int]]]) -> list[float]:
        batch = self.tokenizer.pad({name: [row[name] for row in rows] for name in rows[0]}, return_tensors="pt")
        logits = self.model(**batch.to(self.model.device)).logits.double()
        outputs: list[float] = (logits[:, 0] if self.place is None else logits.softmax(-1)[:, self.place]).tolist()
        return outputs


def find_folder(choice: Choice) -> Path:
    """Return the folder of a classifier, downloaded from the hub if needed."""
    name, mark, revision = choice.model.rpartition("@")
    if not mark or Path(choice.model).expanduser().is_dir():
        return resolve(choice.model)
    return resolve(name, revision=revision)


def load_classifier(task: str, settings: IndicatorSettings, *, device: str | None = None) -> GlueClassifier:
    """Open the classifier of a task."""
    choice = settings.classifiers[task]
    model, tokenizer = open_transformer(
        AutoModelForSequenceClassification,
        find_folder(choice),
        "a classifier",
        device=device,
        lacking=f", or name a classifier that is fine-tuned on {task}",
    )
    if tokenizer.pad_token_id is None:
        raise ModelLoadError(f"{choice.model}: its tokenizer has no padding token, which batches need. Add one to the folder.")
    return GlueClassifier(model, tokenizer, label_place(task, model.config, settings), settings.truncate)


def label_place(task: str, config: Any, settings: IndicatorSettings) -> int | None:
    """Return the place of the wanted label in a classifier's output; None for a regression.

    Label names, in any case, are the user's, else those of config.json, else, for the published classifiers, those of GLUE.
    """
    choice, wanted = settings.classifiers[task], settings.wanted_label(task)
    n_outputs = int(config.num_labels)
    if wanted is None:
        if n_outputs != 1:
            raise ModelLoadError(
                f"{choice.model}: has {n_outputs} outputs, but {task} is a regression with one. Name a model fine-tuned on it."
            )
        return None
    names = choice.labels or _own_names(config) or (TASKS[task].labels if choice.model == TASKS[task].model else ())
    known = [_plain(name) for name in names]
    remedy = f"Say what its classes mean, in their order: labels={{{task!r}: {list(TASKS[task].labels)!r}}}."
    if not names:
        raise ModelLoadError(f"{choice.model}: its config.json names no labels. {remedy}")
    if len(names) != n_outputs:
        raise ModelLoadError(f"{choice.model}: has {n_outputs} outputs, but the labels {', '.join(names)}. {remedy}")
    if known.count(wanted) != 1:
        raise ModelLoadError(f"{choice.model}: has the labels {', '.join(names)}, of which none is {wanted!r}. {remedy}")
    return known.index(wanted)


def _own_names(config: Any) -> tuple[str, ...]:
    # The placeholders of transformers are not names.
    names = tuple(str(config.id2label[place]) for place in sorted(config.id2label))
    return () if all(re.fullmatch(r"LABEL_\d+", name) for name in names) else names


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().casefold())


class Indicators(NamedTuple):
    """One value per example in each column, and the number of its truncated texts."""

    columns: Mapping[str, tuple[float | Unscored, ...]]
    n_cut: tuple[int, ...]


class IndicatorModels:
    """The classifiers of the columns, each opened when it is first needed and then kept."""

    def __init__(self, settings: IndicatorSettings, *, device: str | None = None) -> None:
        self.settings = settings
        self._device = device
        self._opened: dict[str, GlueClassifier] = {}

    @functools.cached_property
    def hashes(self) -> dict[str, str]:
        """Hash of each task's classifier."""
        return {task: content_hash(find_folder(self.settings.classifiers[task])) for task in self.settings.tasks}

    def indicate(self, examples: Sequence[Example]) -> Indicators:
        """Return all columns of the settings for the examples; a missing value is an `Unscored` with the reason."""
        columns: dict[str, tuple[float | Unscored, ...]] = {}
        n_cut = [0] * len(examples)
        for feature in self.settings.features:
            rows = [texts_of(example, feature, self.settings.absent_fact) for example in examples]
            column: list[float | Unscored] = [row if isinstance(row, Unscored) else 0.0 for row in rows]
            readable = [(place, row) for place, row in enumerate(rows) if not isinstance(row, Unscored)]
            if readable:
                answers = self._classifier(task_of(feature).name).indicate([texts for _, texts in readable])
                for (place, _), (value, is_cut) in zip(readable, answers, strict=True):
                    column[place] = value
                    n_cut[place] += is_cut
            columns[feature] = tuple(column)
        return Indicators(columns, tuple(n_cut))

    def _classifier(self, task: str) -> GlueClassifier:
        if task not in self._opened:
            self._opened[task] = load_classifier(task, self.settings, device=self._device)
        return self._opened[task]


def texts_of(example: Example, feature: str, absent_fact: str | None = None) -> Texts | Unscored:
    """Return a column's input: the response, alone or after all visible turns or facts, joined by line breaks."""
    if not task_of(feature).is_pair:
        return example.response.text, None
    if not feature.startswith(FACT):
        turns = visible_texts(example.context)
        return ("\n".join(turns), example.response.text) if turns else _absent(feature, "context")
    facts = [fact for fact in example.facts if not is_blank(fact)] or ([absent_fact] if absent_fact else [])
    return ("\n".join(facts), example.response.text) if facts else _absent(feature, "fact")


def _absent(feature: str, what: str) -> Unscored:
    return Unscored(Reason.EMPTY_INPUT, f"there is no {what}, which {feature} reads")


# Training data of the regression: rated responses with their indicators, computed here or published.


class IndicatedRows(NamedTuple):
    """The responses of a file that are rated and have all indicators, and the number of others."""

    examples: list[Example]
    table: list[list[float]]
    """One row per response, one column per indicator."""
    ratings: list[float]
    n_left_out: int


def indicated_rows(data: Path, indicators: IndicatorModels, quality: str) -> IndicatedRows:
    """Return rows with the classifiers' outputs for a file's responses; `InputError` if none is rated."""
    examples = [item for item in read_items(data) if isinstance(item, Example)]
    if not any(example.ratings for example in examples):
        raise InputError(f"{data}: has no rated responses. Give a file in the layout of USR or of a DSTC10 set.")
    return _complete(examples, indicators.indicate(examples).columns, quality)


def published_rows(data: Path, settings: IndicatorSettings, quality: str) -> IndicatedRows:
    """Return rows with the published indicators of a USR file; `InputError` if one is missing."""
    scored = usr.read_scored(data)
    if missing := [name for name in settings.features if name not in scored.scores]:
        raise InputError(f"{data}: has no scores {missing[0]!r}. Leave --published-scores out to run the classifiers.")
    return _complete(scored.examples, {name: scored.scores[name] for name in settings.features}, quality)


def _complete(examples: Sequence[Example], columns: Mapping[str, Sequence[object]], quality: str) -> IndicatedRows:
    rows = IndicatedRows([], [], [], 0)
    for place, example in enumerate(examples):
        rating = mean_rating(example, quality)
        numbers = [value for column in columns.values() if isinstance(value := column[place], float)]
        # A blank response is never scored.
        if rating is not None and len(numbers) == len(columns) and not is_blank(example.response.text):
            rows.examples.append(example)
            rows.table.append(numbers)
            rows.ratings.append(rating)
    return rows._replace(n_left_out=len(examples) - len(rows.examples))
