"""A custom task: the model under test answers a rubric about rated responses or dialogues."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dialeval_plugin.conversations.record import ReadingOptions
from dialeval_plugin.core.dialogue import Item, Level
from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.files import read_text, to_json, write_text
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.corpora.exports import user_rows
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.rated_items import read_rated_items
from dialeval_plugin.corpora.registry import identify, read_items, read_set
from dialeval_plugin.corpora.rows import is_table
from dialeval_plugin.corpora.scored_input import Source
from dialeval_plugin.hosts.lm_eval.run import task_data
from dialeval_plugin.methods.judging.prompts import level_of
from dialeval_plugin.methods.judging.rubric import RubricEntry, rubric_prompt

from .documents import Verdict, data_sets, item_columns, item_of, rater_columns, verdict_of
from .ratings import RATINGS, Judged, rated_items


@task_data()
def rubric_dataset(*, entry: RubricEntry, data: str, rated_quality: str | None = None) -> dict[str, Any]:
    """Build the data set of a task, one document per rated item.

    Args:
        entry: the rubric, as in a rubric file.
        data: file of responses with ratings, or name of a rated set.
        rated_quality: the quality to compare with; by default the only one.
    """
    prompt = rubric_prompt(entry)
    items = _rated(data, entry["level"])
    if wrong := next((item for item in items if level_of(item) != entry["level"]), None):
        raise InputError(f"{data}: is rated at {level_of(wrong)} level. Let the rubric be of that level.")
    names = list(dict.fromkeys(name for item in items for name in item.ratings))
    if rated_quality is None and len(names) != 1:
        raise InputError(f"{data}: has the qualities {', '.join(names) or 'none'}. Say which is compared with, by --quality.")
    quality = rated_quality or names[0]
    if quality not in names:
        raise unknown_name(f"{data}: has no quality {quality!r}", quality, names)
    rows = [
        {
            **item_columns(item),
            **rater_columns(item, quality),
            "rating": rating,
            "cluster": context_key(item),
            "prompt": prompt.render(item),
            "options": to_json(entry),
            "is_absent": False,
        }
        for item, rating in rated_items(items, quality)
    ]
    return data_sets(test=rows)


def _rated(data: str, level: Level) -> Sequence[Item]:
    if not (path := Path(data)).exists():
        return next(iter(read_set(data).values()))
    if not is_table(path) and identify(path) is not None:
        return read_items(path)
    ratings = {one.id: one.ratings for one in read_rated_items(data)}
    texts = ("context", "response")
    columns = {name: name for name in texts} if user_rows(path)[0].value.keys() >= set(texts) else {}
    if not columns and is_table(path):
        raise InputError(f"{data}: has no columns 'context' and 'response'. Give what is rated, with its ratings.")
    items = Source(data, ReadingOptions(columns=columns)).read(level)
    return [replace(item, ratings=ratings.get(item.id, {})) for item in items]


def process_results(doc: Mapping[str, Any], results: Sequence[str | None]) -> dict[str, Judged]:
    """Return by metric the tested model's answer, or a scorer's score, the rating and the cluster."""
    if (verdict := verdict_of(results)) is None:
        prompt, text = rubric_prompt(json.loads(doc["options"])), results[0]
        answer = Unscored(Reason.API_ERROR) if text is None else prompt.read(text, doc["prompt"], item_of(doc))
        verdict = Verdict(None, unscored=answer.reason.value) if isinstance(answer, Unscored) else Verdict(answer)
    return RATINGS.of_document(Judged(verdict.score, doc["rating"], doc["cluster"], verdict.unscored))


def write_task(rubric: RubricEntry, data: str, folder: Path, quality: str | None = None) -> Path:
    """Write the task of a rubric over rated data into a folder for lm-eval's `--include_path`; return its file.

    Raises:
        InputError: the data cannot be read, or is not rated at the rubric's level.
    """
    settings = {"entry": rubric, "data": data, "rated_quality": quality}
    (document, *_) = rubric_dataset(**settings)["test"]
    name = "_".join(dict.fromkeys(["rubric", rubric["name"], Path(data).stem]))
    about = {"method": rubric_prompt(rubric).id, "dataset": Path(data).stem, "level": rubric["level"]}
    about |= {"quality": document["quality"], "kind": "rating", "direction": "higher"}
    own = {"task": name, "dataset_kwargs": settings, "metadata": {"version": 1.0, "dialeval": about}}
    shared = read_text(Path(__file__).with_name("rubric_task.txt"))
    lines = [*(f"{key}: {to_json(value)}" for key, value in own.items()), shared]
    write_text(path := folder / f"{name}.yaml", "\n".join(lines))
    return path
