"""Layouts of evaluation harnesses' logs: samples with the prompt and the model's answer.

Schemas: EleutherAI/lm-evaluation-harness (--log_samples), UKGovernmentBEIS/inspect_ai (log_formats.json), promptfoo/promptfoo,
confident-ai/deepeval, explodinggradients/ragas, openai/evals, openai/simple-evals, lm-sys/FastChat (llm_judge),
lmarena/arena-hard-auto, allenai/WildBench, stanford-crfm/helm (scenario_state.json), open-compass/opencompass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dialeval_plugin.conversations.messages import alternating, at
from dialeval_plugin.core.errors import InputError

from .layout import Layout, Logged, Value, elements, exchange, exchange_at, has, listed, messages_at, plain, said, shape


def _lm_eval(value: Value) -> Iterator[Logged]:
    arguments = value["arguments"]
    first = next(iter(arguments.values())) if isinstance(arguments, Mapping) else arguments[0]
    prompt = first["arg_0"] if isinstance(first, Mapping) else elements(first)[0]
    for answer in elements(value["resps"][0]):
        if not isinstance(answer, str):
            raise InputError(
                "holds likelihoods of given answers, and nothing that a model said. "
                "Log a task whose output_type is generate_until."
            )
        # The log has one row per filter, each with the same answer.
        yield exchange(prompt, answer, value["doc_id"])[0]._replace(once=("doc", value["doc_id"]))


def _openai_event(value: Value) -> list[Logged]:
    if value.get("type") != "sampling":
        return [Logged([], left_out=f"{value.get('type') or 'summary'} event")]
    prompt, sampled = value["data"]["prompt"], value["data"]["sampled"]
    return [exchange(prompt, one, value.get("sample_id"))[0] for one in (sampled if isinstance(sampled, list) else [sampled])]


def _mt_bench(value: Value) -> list[Logged]:
    asked, choices = value.get("turns"), value.get("choices")
    if not asked or not choices:
        raise InputError(
            f"is {'an answer' if choices else 'a question'} alone, and the other half is not in this file. "
            "Put both files together: cat question.jsonl MODEL.jsonl > both.jsonl"
        )
    conversations = []
    for choice in choices:
        pairs = zip(elements(asked), elements(choice["turns"]), strict=False)
        said = (one["content"] if isinstance(one, Mapping) else one for pair in pairs for one in pair)
        conversations.append(Logged(alternating(said), value.get("answer_id") or value["question_id"]))
    return conversations


def _is_mt_bench(value: Value) -> bool:
    turns = value.get("turns")
    questions = isinstance(turns, list) and all(isinstance(one, str) for one in turns)
    return "question_id" in value and (questions or any("turns" in one for one in listed(value.get("choices")) or ()))


def _opencompass(value: Value) -> list[Logged]:
    prompt = value["origin_prompt"]
    asked = prompt if isinstance(prompt, str) else [{"role": part["role"], "content": part["prompt"]} for part in prompt]
    return exchange(asked, value["prediction"], None)


_OF_A_PROMPT = (
    "is of {about}, whose prompt may hold examples and instructions next to the question. Read it by --layout {name}: the "
    "answer is scored after the prompt"
)

LAYOUTS = [
    Layout("lm-eval-samples", "samples of lm-evaluation-harness", "doc_id arguments resps", _lm_eval,
           open_question=_OF_A_PROMPT),
    Layout("lighteval", "details of LightEval", "doc{query} model_response{text}",
           lambda value: (exchange(at(value, "model_response.input | doc.query"), answer, at(value, "doc.id"))[0]
                          for answer in elements(value["model_response"]["text"])),
           open_question=_OF_A_PROMPT),
    Layout("inspect", "samples of inspect_ai", "epoch messages input", messages_at("messages")),
    plain("tau-bench", "trajectories of tau-bench", "traj", id="task_id"),
    exchange_at("promptfoo", "results of promptfoo", "prompt.raw", "response.output", "vars"),
    Layout(name="openai-evals", about="logs of OpenAI's evals", read=_openai_event,
           recognises=lambda value: has(value, "event_id", "type", "data") or {*value} in ({"spec"}, {"final_report"})),
    exchange_at("garak", "attempts of garak", "prompt.turns", "outputs", "entry_type"),
    Layout("pyrit", "memory of PyRIT, a message a row", "role conversation_id converted_value",
           message=said("role", "converted_value", conversation="conversation_id", turn_index="sequence")),
    exchange_at("wildbench", "answers of WildBench", "conversation_input", "output"),
    exchange_at("openai-eval-items", "items of OpenAI's hosted evals", "sample.input", "sample.output"),
    Layout("simple-evals", "results of simple-evals", "convos[]",
           lambda value: [Logged(one, None, len(one) - 1) for one in value["convos"]]),
    Layout(name="mt-bench", about="questions and answers of MT-Bench", recognises=_is_mt_bench, read=_mt_bench,
           joined_by="question_id",
           open_question="is of MT-Bench, whose questions and answers are files of their own. Put those of one model together, "
           "cat question.jsonl MODEL.jsonl > both.jsonl, and read both.jsonl by --layout mt-bench"),
    Layout("arena-hard", "answers of Arena-Hard",
           lambda value: isinstance(value["messages"], list) and any(map(shape('content.answer""'), value["messages"])),
           messages_at("messages", id="uid", each=lambda one: {**one, "content": at(one, "content.answer | content")})),
    Layout("helm", "scenario_state.json of HELM", "instance request{} result.completions[]",
           lambda state: (exchange(at(state, "request.messages | request.prompt"), one["text"], at(state, "instance.id"))[0]
                          for one in state["result"]["completions"])),
    Layout("opencompass", "predictions of OpenCompass", "origin_prompt prediction", _opencompass),
]  # fmt: skip
