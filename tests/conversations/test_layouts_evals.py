"""Every layout of evaluation harnesses: a small file of our own text after the public schema, and what a person would score."""

import gzip
import json
import zipfile

import pytest

from dialeval_plugin.conversations.record import ReadingOptions
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.scored_input import Source

from .reading_back import ANSWER, ASKED, CHAT, FIRST, LATER, MORE, SAID, TEA, read_back

CHATML = f"<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n{FIRST}<|im_end|>\n<|im_start|>assistant\n"
LLAMA = (
    f"<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n{FIRST}<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n"
)
INSPECT_SAMPLE = {
    "id": "c", "epoch": 1, "input": FIRST, "target": "", "messages": [{"id": "m1", "source": "input", **ASKED},
                                                                    {"id": "m2", "source": "generate", **ANSWER}],
    "output": {"model": "m", "choices": [{"message": ANSWER, "stop_reason": "stop"}]}, "scores": {},
}  # fmt: skip
PROMPTFOO = {"prompt": {"raw": FIRST, "label": "p"}, "vars": {}, "response": {"output": SAID}, "provider": {"id": "m"}}
RAGAS = {"user_input": FIRST, "response": SAID, "retrieved_contexts": ["Tea is a plant."], "reference": "Yes."}
DEEPEVAL = {"input": FIRST, "actual_output": SAID, "expected_output": None, "retrieval_context": ["Tea is a plant."]}


def sample(arguments, answer=SAID):
    """A row of lm-eval's `--log_samples`."""
    return {
        "doc_id": 0, "doc": {"question": FIRST}, "target": "", "arguments": arguments, "resps": [[answer]],
        "filtered_resps": [answer], "filter": "none", "metrics": ["acc"], "doc_hash": "h",
    }  # fmt: skip


def arguments(prompt):
    """Arguments of a request as lm-eval writes them today."""
    return {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": []}}}


READ_AS_THEY_ARE = {
    "inspect, log": {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [INSPECT_SAMPLE]},
    "promptfoo, results": {"evalId": "e", "results": {"version": 3, "prompts": [], "results": [PROMPTFOO], "stats": {}}},
    "promptfoo, row": PROMPTFOO,
    "promptfoo, chat": {**PROMPTFOO, "prompt": {"raw": json.dumps([{"role": "system", "content": "Be kind."}, ASKED])}},
    "helm": {"request_states": [{"instance": {"id": "i", "input": {"text": FIRST}}, "request": {"prompt": FIRST},
                                "result": {"completions": [{"text": SAID}]}}]},
}  # fmt: skip
READ_BY_NAME = {
    "lm-eval, text": ("lm-eval-samples", sample(arguments(FIRST))),
    "lm-eval, list": ("lm-eval-samples", sample([[FIRST, {"until": []}]])),
    "lm-eval, messages in a list": ("lm-eval-samples", sample(arguments([json.dumps([ASKED])]))),
    "lm-eval, ChatML": ("lm-eval-samples", sample(arguments(CHATML))),
    "lm-eval, Llama": ("lm-eval-samples", sample(arguments(LLAMA))),
    "ragas": ("question-answer", RAGAS),
    "deepeval": ("question-answer", DEEPEVAL),
    "deepeval, run": ("question-answer", {"testCases": [{"name": "t", "input": FIRST, "actualOutput": SAID}]}),
    "alpaca-eval": ("question-answer", {"instruction": FIRST, "output": SAID, "generator": "m", "dataset": "d"}),
}


@pytest.mark.parametrize("name", READ_AS_THEY_ARE)
def test_logs_that_leave_nothing_open(name):
    turns, scored = read_back([READ_AS_THEY_ARE[name]])[0]
    assert (turns, scored) == (TEA[:2], [1])


@pytest.mark.parametrize("name", READ_BY_NAME)
def test_logs_that_are_read_by_name(name):
    layout, row = READ_BY_NAME[name]
    with pytest.raises(InputError, match=f"--layout {layout}"):
        read_back([row])
    assert read_back([row], layout=layout) == [(TEA[:2], [1])]


def test_a_few_shot_prompt_of_messages_is_context_alone():
    row = sample(arguments(json.dumps(CHAT[:3])), LATER)
    assert read_back([row], layout="lm-eval-samples") == [(TEA, [3])]


def test_likelihoods_are_no_answers():
    row = {**sample([[FIRST, " yes"]]), "resps": [[[-1.5, True]]], "filtered_resps": [[-1.5, True]]}
    with pytest.raises(InputError) as caught:
        read_back([row], layout="lm-eval-samples")
    assert str(caught.value) == (
        "conversations[0]: holds likelihoods of given answers, and nothing that a model said. "
        "Log a task whose output_type is generate_until."
    )


def test_answers_and_questions_of_mt_bench_are_one_file(tmp_path):
    question = {"question_id": 81, "category": "writing", "turns": [FIRST, MORE]}
    answer = {"question_id": 81, "answer_id": "a", "model_id": "m", "choices": [{"turns": [SAID, LATER]}]}
    for row in (question, answer):
        with pytest.raises(InputError, match="--layout mt-bench"):
            read_back([row])
    assert read_back([question, answer], layout="mt-bench") == [(TEA, [1, 3])]
    other = {**answer, "answer_id": "b", "model_id": "n"}
    with pytest.raises(InputError) as caught:
        read_back([question, answer, other], layout="mt-bench")
    assert str(caught.value) == (
        "conversations[2]: has another 'answer_id' than what it belongs to (conversations[0]). Keep one of the two."
    )


def test_an_archive_of_inspect_is_its_samples(tmp_path):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": {}}))
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": {}, "plan": {}}))
        archive.writestr("summaries.json", json.dumps([{"id": "c", "epoch": 1, "input": FIRST}]))
        archive.writestr("samples/c_epoch_1.json", json.dumps(INSPECT_SAMPLE))
        archive.writestr("samples/d_epoch_1.json", json.dumps({**INSPECT_SAMPLE, "id": "d"}))
    source = Source(str(path), ReadingOptions())
    assert [placed.item.id for placed in source.items("turn")] == ["c:2", "d:2"]
    assert source.reading.remarks() == ""
    in_folder = Source(str(tmp_path), ReadingOptions())
    assert [placed.item.id for placed in in_folder.items("turn")] == ["log.eval/c:2", "log.eval/d:2"]


def test_a_packed_file_is_known_by_its_bytes_and_not_by_its_name(tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_bytes(gzip.compress(json.dumps({"id": "c", "messages": [ASKED, ANSWER]}).encode()))
    assert [placed.item.id for placed in Source(str(path)).items("turn")] == ["c:2"]
