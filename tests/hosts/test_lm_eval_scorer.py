"""Every scorer as a scorer of lm-eval 0.5, and the sentence that 0.4.13 has instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lm_eval
import pytest
import yaml
from lm_eval.api.instance import Instance
from lm_eval.tasks import TaskManager

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.corpora import mini
from dialeval_plugin.hosts.lm_eval import versions
from dialeval_plugin.hosts.lm_eval.validation import validate_tasks
from dialeval_plugin.hosts.registration import register
from tests.hosts.through_lm_eval import LikelihoodLM, evaluate, samples_of
from tests.refusals import refused

TASK = "dailydialog_pp_answer_mini"
scorers_needed = pytest.mark.skipif(not versions.has_scorers(), reason="lm-eval has scorers from 0.5 on")
SETTINGS = {
    "task": "own_answers",
    "output_type": "generate_until",
    "test_split": "test",
    "dataset_path": "json",
    "doc_to_text": "{{question}}",
    "doc_to_target": "{{gold}}",
    "generation_kwargs": {"until": ["\n"]},
}
DOCUMENTS = [
    {"question": "Shall we walk to the lake?", "gold": "Yes, let us walk.", "history": ["Hi.", "Shall we walk to the lake?"]},
    {"question": "What is for dinner tonight?", "gold": "Soup.", "history": ["What is for dinner tonight?"]},
    {"question": "Say nothing.", "gold": "", "history": ["Say nothing."]},
]


class Echo(LikelihoodLM):
    """Answers with the last line of the prompt, and with nothing where it is told to say nothing."""

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        lines = [request.args[0].strip().splitlines()[-1] for request in requests]
        return ["" if line == "Say nothing." else f"You said: {line}" for line in lines]


def own_task(folder: Path, **settings: Any) -> Path:
    """A user's own task, whose documents have answers, questions and the turns before."""
    (folder / "data.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in DOCUMENTS), encoding="utf-8")
    task = {**SETTINGS, "dataset_kwargs": {"data_files": {"test": str(folder / "data.jsonl")}}, **settings}
    (folder / "own_answers.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")
    return folder


def run_tasks(folder: Path, **options: Any) -> dict[str, Any]:
    """Run the task as the host's own command does, with its resamples."""
    register()
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    found: dict[str, Any] = lm_eval.simple_evaluate(Echo(), tasks=["own_answers"], task_manager=manager, **options)
    return found


def run_own(
    folder: Path, kwargs: dict[str, Any], **settings: Any
) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    own_task(folder, scorer={"type": "dialeval", "kwargs": kwargs}, **settings)
    found = run_tasks(folder)
    return found["results"]["own_answers"], found["samples"]["own_answers"], found["config"].get("dialeval_scorers", {})


def answered(turns: list[list[str]]) -> list[Example]:
    return [
        Example.from_texts(texts, "" if one["question"] == "Say nothing." else f"You said: {one['question']}", id=str(place))
        for place, (texts, one) in enumerate(zip(turns, DOCUMENTS, strict=True))
    ]


@scorers_needed
def test_the_example_task_gives_the_scores_of_the_method_and_its_signature(tmp_path: Path) -> None:
    found = evaluate(Echo(), TASK, limit=5, output=tmp_path)
    contexts = [one.context for one in mini.read_response_sets("test")[:5]]
    expected = load_scorer("general").score([Example.from_texts(one, f"You said: {one[-1]}") for one in contexts])
    assert [sample["dialeval"] for sample in found["samples"][TASK]] == pytest.approx(list(expected.values))
    result = found["results"][TASK]
    assert result["dialeval,none"] == pytest.approx(expected.mean())
    assert result["n_unscored,none"] == 0
    assert found["config"]["dialeval_scorers"] == {TASK: {"signature": str(expected.signature), "unscored": {}}}
    assert [sample["dialeval"] for sample in samples_of(tmp_path, TASK)] == pytest.approx(list(expected.values))


@scorers_needed
def test_an_answer_without_a_score_is_counted_and_is_in_no_mean(tmp_path: Path) -> None:
    result, samples, notes = run_own(tmp_path, {"method": "response_length"})
    assert [sample["dialeval"] for sample in samples] == [8.0, 7.0, None]
    assert (result["dialeval,none"], result["n_unscored,none"]) == (7.5, 1)
    # With resamples on, as on the host's command line: the mean has the standard error of a mean, a count has none.
    assert result["dialeval_stderr,none"] == pytest.approx(0.5)
    assert result["n_unscored_stderr,none"] == "N/A"
    assert notes["own_answers"]["unscored"] == {"empty_input": 1}


@scorers_needed
def test_the_turns_are_those_of_a_column_or_else_the_prompt(tmp_path: Path) -> None:
    for name, kwargs, turns in (
        ("column", {"contexts": "history"}, [one["history"] for one in DOCUMENTS]),
        ("prompt", {}, [[one["question"]] for one in DOCUMENTS]),
    ):
        (tmp_path / name).mkdir()
        _, samples, _ = run_own(tmp_path / name, kwargs)
        expected = load_scorer("general").score(answered(turns)).values
        assert [sample["dialeval"] for sample in samples] == pytest.approx(list(expected))


@scorers_needed
def test_the_tasks_own_metrics_stay_and_its_target_is_the_reference(tmp_path: Path) -> None:
    result, samples, _ = run_own(tmp_path, {"method": "chrf"}, metric_list=[{"metric": "exact_match"}])
    assert result["exact_match,none"] == pytest.approx(1 / 3)  # nothing was to be said, and nothing was
    examples = answered([[one["question"]] for one in DOCUMENTS])[:2]
    with_references = [
        Example(one.id, one.context, one.response, (document["gold"],))
        for one, document in zip(examples, DOCUMENTS, strict=False)
    ]
    expected = load_scorer("chrf").score(with_references).values
    assert [sample["dialeval"] for sample in samples][:2] == pytest.approx(list(expected))


@scorers_needed
def test_several_answers_of_a_document_are_averaged(tmp_path: Path) -> None:
    result, samples, _ = run_own(tmp_path, {"method": "response_length"}, repeats=2)
    assert [sample["dialeval"] for sample in samples] == [8.0, 7.0, None]
    assert samples[0]["scores_per_repeat"]["dialeval"] == [8.0, 8.0]
    assert (result["dialeval,none"], result["n_unscored,none"]) == (7.5, 2)


@scorers_needed
@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"method": "general", "dtyp": "auto"}, "general: there is no option 'dtyp'. Did you mean 'dtype'? Known are: "),
        (
            {"method": "response_length", "contxts": "history"},
            "response_length: there is no option 'contxts'. Did you mean 'contexts'? Known are: method, contexts.",
        ),
        ({"method": "genera"}, "there is no scorer 'genera'. Did you mean 'general'?"),
        (
            {"contexts": "turns"},
            "scorer: the documents of own_answers have no column 'turns'. Columns: question, gold, history. "
            "Name one of them under contexts.",
        ),
        (
            {"contexts": "question"},
            "own_answers: question: expected a list of turns, got 'Shall we walk to the lake?' (str). "
            "Wrap a single string in a list.",
        ),
    ],
)
def test_what_a_task_file_says_wrong_is_refused_before_the_first_answer(
    kwargs: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Echo, "generate_until", lambda *_: pytest.fail("the model was asked"))
    with pytest.raises(InputError) as caught:
        run_own(tmp_path, kwargs)
    assert message in str(caught.value)


@scorers_needed
def test_with_a_chat_template_the_column_has_to_be_named(tmp_path: Path) -> None:
    own_task(tmp_path, scorer="dialeval")
    with refused(
        "scorer: with a chat template the prompt is more than the turn before the answer. "
        "Name under contexts the column of the documents that has the turns."
    ):
        run_tasks(tmp_path, apply_chat_template=True)


@pytest.mark.skipif(versions.has_scorers(), reason="lm-eval has scorers")
def test_a_host_without_scorers_says_what_to_install() -> None:
    message = "scorer: lm-eval 0.4.13 has no scorers. Install 0.5: pip install --pre 'lm-eval[hf]>=0.5.0.dev1'."
    with refused(message, error=MissingPrerequisite):
        evaluate(Echo(), TASK)
    (found,) = (one for one in validate_tasks(tasks_path() / "dailydialog_pp") if one.name == TASK)
    assert (found.state, found.detail) == ("absent", message)
