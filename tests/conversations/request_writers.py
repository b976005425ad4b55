"""Writers of a conversation in each layout of traces, evaluation logs and data sets, as those who make such files write it.

A conversation is a list of (role, text) in which the user and the assistant take turns; it begins with the user and ends with
an answer. A writer returns rows, or a text. Where a file has a request with its answer, the answer alone is scored.
"""

from __future__ import annotations

import json
from typing import Any

from tests.conversations.writers import Turns, Writer, Written, pairs


def chat(turns: Turns) -> list[dict[str, Any]]:
    """Messages as OpenAI has them."""
    return [{"role": role, "content": text} for role, text in turns]


def choices(turns: Turns) -> dict[str, Any]:
    """The last answer as OpenAI has it."""
    return {"object": "chat.completion", "choices": [{"index": 0, "message": chat(turns)[-1]}]}


def lang(turns: Turns) -> list[dict[str, Any]]:
    """Messages as LangChain's `model_dump` has them."""
    return [{"type": {"user": "human", "assistant": "ai"}[role], "content": text, "id": None} for role, text in turns]


def constructed(turns: Turns) -> list[dict[str, Any]]:
    """Messages as LangChain's `dumpd` has them."""
    kinds = {"user": "HumanMessage", "assistant": "AIMessage"}
    return [
        {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kinds[role]], "kwargs": {"content": text}}
        for role, text in turns
    ]


def parts(turns: Turns) -> list[dict[str, Any]]:
    """Messages as OpenTelemetry has them."""
    return [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in turns]


def otlp(attributes: dict[str, str]) -> list[dict[str, Any]]:
    """Attributes as OTLP has them."""
    return [{"key": name, "value": {"stringValue": value}} for name, value in attributes.items()]


def flat(prefix: str, turns: Turns) -> dict[str, str]:
    """Attributes of OpenInference."""
    return {
        f"{prefix}.{n}.message.{name}": value
        for n, (role, text) in enumerate(turns)
        for name, value in (("role", role), ("content", text))
    }


def oasst(turns: Turns, id: str) -> Written:
    node: dict[str, Any] | None = None
    for n, (role, text) in reversed(list(enumerate(turns))):
        own = {"message_id": str(n), "role": "prompter" if role == "user" else role, "text": text}
        node = {**own, "replies": [node] if node else []}
    return [{"message_tree_id": id, "tree_state": "ready_for_export", "prompt": node}]


def parlai(turns: Turns, _id: str) -> Written:
    lines = [f"text:{asked}\tlabels:{said}" for asked, said in pairs(turns)]
    return "\n".join([*lines[:-1], f"{lines[-1]}\tepisode_done:True"]) + "\n"


def otlp_events(turns: Turns, id: str) -> Written:
    records = [
        {"spanId": id, "eventName": f"gen_ai.{role}.message", "body": {"kvlistValue": {"values": otlp({"content": text})}}}
        for role, text in turns[:-1]
    ]
    records.append({"spanId": id, "eventName": "gen_ai.choice", "body": {"kvlistValue": {"values": otlp({
        "message": json.dumps(chat(turns)[-1])})}}})  # fmt: skip
    return [{"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}]


def events(turns: Turns, id: str) -> Written:
    found = [{"name": f"gen_ai.{role}.message", "attributes": {"content": text}} for role, text in turns[:-1]]
    found.append({"name": "gen_ai.choice", "attributes": {"message": chat(turns)[-1]}})
    return [{"name": "chat m", "span_id": id, "attributes": {"gen_ai.system": "openai"}, "events": found}]


def batch(turns: Turns, id: str) -> Written:
    return [
        {"custom_id": id, "method": "POST", "url": "u", "body": {"model": "m", "messages": chat(turns[:-1])}},
        {"id": "b", "custom_id": id, "response": {"status_code": 200, "body": choices(turns)}, "error": None},
    ]


def mt_bench(turns: Turns, id: str) -> Written:
    asked, said = ([pair[side] for pair in pairs(turns)] for side in (0, 1))
    return [
        {"question_id": id, "category": "c", "turns": asked},
        {"question_id": id, "answer_id": id, "model_id": "m", "choices": [{"index": 0, "turns": said}]},
    ]


def template(turns: Turns) -> str:
    """A prompt as ChatML writes it."""
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns)


REQUESTS: dict[str, Writer] = {
    "langsmith": lambda turns, id: [{
        "id": id, "run_type": "llm", "inputs": {"messages": [constructed(turns[:-1])]},
        "outputs": {"generations": [[{"text": turns[-1][1], "message": constructed(turns)[-1]}]]}}],
    "langsmith of an agent": lambda turns, id: [
        {"id": id, "run_type": "chain", "inputs": {"messages": lang(turns[:-1])}, "outputs": {"messages": lang(turns)}}],
    "langsmith of examples": lambda turns, id: [
        {"id": id, "dataset_id": "d", "inputs": {"messages": chat(turns[:-1])}, "outputs": {"message": chat(turns)[-1]}}],
    "langfuse": lambda turns, id: [
        {"id": id, "name": "n", "input": chat(turns[:-1]), "output": turns[-1][1], "observations": [], "scores": []}],
    "langfuse of a table": lambda turns, id: [
        {"id": id, "traceId": "t", "type": "GENERATION", "input": {"messages": chat(turns[:-1])}, "output": chat(turns)[-1]}],
    "weave": lambda turns, id: [
        {"id": id, "op_name": "o", "trace_id": "t", "inputs": {"self": "s", "messages": chat(turns[:-1])},
         "output": choices(turns)}],
    "helicone": lambda turns, id: [
        {"id": id, "request_body": json.dumps({"messages": chat(turns[:-1])}), "response_body": json.dumps(choices(turns))}],
    "litellm": lambda turns, id: [{"id": id, "call_type": "acompletion", "messages": {}, "response": choices(turns),
                                   "proxy_server_request": {"messages": chat(turns[:-1])}}],
    "bodies": lambda turns, id: [
        {"id": id, "request": {"body": {"messages": chat(turns[:-1])}}, "response": {"status": 200, "body": choices(turns)}}],
    "bedrock": lambda turns, id: [{
        "id": id, "input": {"inputBodyJson": {"messages": [
            {"role": role, "content": [{"text": text}]} for role, text in turns[:-1]]}},
        "output": {"outputBodyJson": {"output": {"message": {"role": "assistant", "content": [{"text": turns[-1][1]}]}}}}}],
    "mlflow-table": lambda turns, id: [{"trace_id": id, "state": "OK", "request": json.dumps({"messages": chat(turns[:-1])}),
                                        "response": json.dumps(choices(turns))}],
    "mlflow": lambda turns, id: [{"info": {"trace_id": id}, "data": {"spans": [{"parent_id": None, "attributes": {
        "mlflow.spanInputs": json.dumps({"messages": chat(turns[:-1])}), "mlflow.spanOutputs": json.dumps(choices(turns))}}]}}],
    "adot": lambda turns, id: [{"traceId": id, "body": {"input": {"messages": chat(turns[:-1])},
                                                        "output": {"messages": chat(turns)}}}],
    "otlp": lambda turns, id: [{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": id, "attributes": otlp({
        "gen_ai.input.messages": json.dumps(parts(turns[:-1])),
        "gen_ai.output.messages": json.dumps(parts(turns[-1:]))})}]}]}]}],
    "otlp-events": otlp_events,
    "spans": lambda turns, id: [{"context.trace_id": id, "context.span_id": "s", **{
        f"attributes.{name}": value for name, value in {
            **flat("llm.input_messages", turns[:-1]), **flat("llm.output_messages", turns[-1:])}.items()}}],
    "spans in cells": lambda turns, id: [{"context.trace_id": id, "context.span_id": "s",
        "attributes.llm.input_messages": [{"message.role": role, "message.content": text} for role, text in turns[:-1]],
        "attributes.llm.output_messages": [{"message.role": "assistant", "message.content": turns[-1][1]}]}],
    "spans of OpenLLMetry": lambda turns, id: [{"trace_id": id, "attributes": {
        **{f"gen_ai.prompt.{n}.{name}": value for n, one in enumerate(chat(turns[:-1])) for name, value in one.items()},
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": turns[-1][1]}}],
    "spans with events": events,
    "lm-eval-samples": lambda turns, id: [{"doc_id": id, "doc": {}, "arguments": {"gen_args_0": {
        "arg_0": json.dumps(chat(turns[:-1]))}}, "resps": [[turns[-1][1]]], "filtered_resps": [turns[-1][1]]}],
    "lm-eval-samples of a template": lambda turns, id: [{"doc_id": id, "doc": {}, "arguments": [
        [template(turns[:-1]) + "<|im_start|>assistant\n", {}]], "resps": [[turns[-1][1]]], "filtered_resps": [turns[-1][1]]}],
    "promptfoo": lambda turns, id: [{"results": {"results": [{"vars": {},
        "id": id, "prompt": {"raw": json.dumps(chat(turns[:-1]))}, "response": {"output": turns[-1][1]}}]}}],
    "openai-evals": lambda turns, id: [{"event_id": 0, "sample_id": id, "type": "sampling",
                                        "data": {"prompt": chat(turns[:-1]), "sampled": [turns[-1][1]]}}],
    "openai-eval-items": lambda turns, id: [{"id": id, "sample": {"input": chat(turns[:-1]), "output": chat(turns[-1:])}}],
    "simple-evals": lambda turns, _id: [{"score": 1, "convos": [chat(turns)]}],
    "lighteval": lambda turns, id: [{"doc": {"id": id, "query": "q"}, "metric": {}, "model_response": {
        "input": chat(turns[:-1]), "text": [turns[-1][1]]}}],
    "helm": lambda turns, id: [{"request_states": [{"instance": {"id": id}, "request": {"messages": chat(turns[:-1])},
                                                    "result": {"completions": [{"text": turns[-1][1]}]}}]}],
    "opencompass": lambda turns, id: [{id: {"origin_prompt": [
        {"role": {"user": "HUMAN", "assistant": "BOT"}[role], "prompt": text} for role, text in turns[:-1]],
        "prediction": turns[-1][1]}}],
    "preferred": lambda turns, id: [
        {"id": id, "prompt": chat(turns[:-1]), "chosen": chat(turns[-1:]), "rejected": chat([("assistant", "No.")])}],
    "preferred of whole conversations": lambda turns, id: [
        {"id": id, "chosen": chat(turns), "rejected": chat([*turns[:-1], ("assistant", "No.")])}],
    "preferred of texts": lambda turns, id: [{
        "id": id, "rejected": "No.",
        "chosen": "".join(f"\n\n{'Human' if role == 'user' else 'Assistant'}: {text}" for role, text in turns)}],
    "completions": lambda turns, id: [{"id": id, "instruction": chat(turns[:-1]), "completions": [{"response": turns[-1][1]}]}],
    "batch": batch,
    "garak": lambda turns, id: [{"id": id, "entry_type": "attempt", "prompt": {"turns": [
        {"role": role, "content": {"text": text}} for role, text in turns[:-1]]}, "outputs": [{"text": turns[-1][1]}]}],
    "wildbench": lambda turns, id: [{"id": id, "conversation_input": chat(turns[:-1]), "output": [turns[-1][1]]}],
    "posthog": lambda turns, id: [{"uuid": id, "event": "$ai_generation", "properties": {
        "$ai_input": chat(turns[:-1]), "$ai_output_choices": chat(turns[-1:])}}],
    "datadog": lambda turns, id: [
        {"id": id, "meta": {"input": {"messages": chat(turns[:-1])}, "output": {"messages": chat(turns[-1:])}}}],
    "question-answer of Alpaca": lambda turns, id: [{"id": id, "instruction": turns[-2][1], "input": "", "output": turns[-1][1],
                                  "history": [list(pair) for pair in pairs(turns[:-2])]}],
    "exchange of LiteLLM": lambda turns, id: [{"id": id, "messages": chat(turns[:-1]), "response": choices(turns)}],
}  # fmt: skip
"""By the name of the layout, and, after a space, of its shape: files whose last answer is scored."""

CONVERSATIONS: dict[str, Writer] = {
    "langgraph": lambda turns, id: [{"thread_id": id, "values": {"messages": lang(turns)}}],
    "messages of LangChain": lambda turns, id: [{"id": id, "messages": constructed(turns)}],
    "openrouter": lambda turns, id: [{
        "id": id, "version": "orpg.3.0", "messages": {
            str(n): {"type": role, "createdAt": f"2026-01-01T00:00:{n:02d}Z", "items": [{"id": str(n)}]}
            for n, (role, _) in enumerate(turns)},
        "items": {str(n): {"data": {"role": role, "content": [{"type": "output_text", "text": text}]}}
                  for n, (role, text) in enumerate(turns)}}],
    "openai-items": lambda turns, id: [{"id": id, "first_id": "2", "data": chat(turns)[::-1]}],
    "tau-bench": lambda turns, id: [{"task_id": id, "reward": 1.0, "traj": chat(turns)}],
    "messages of Azure": lambda turns, id: [{"id": id, "conversation": {"messages": chat(turns)}}],
    "other-name of Gemini's requests": lambda turns, id: [{"id": id, "contents": [
        {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]} for role, text in turns]}],
    "inspect": lambda turns, id: [
        {"id": id, "epoch": 1, "input": turns[0][1], "messages": chat(turns), "output": choices(turns)}],
    "mt-bench": mt_bench,
    "arena-hard": lambda turns, id: [{"uid": id, "messages": [
        {"role": role, "content": {"answer": text} if role == "assistant" else text} for role, text in turns]}],
    "messages of deepeval": lambda turns, id: [{"conversationalTestCases": [{"id": id, "turns": chat(turns)}]}],
    "other-name of ragas": lambda turns, id: [{"id": id, "user_input": lang(turns)}],
    "multiwoz": lambda turns, id: [{id: {"goal": {}, "log": [{"text": text, "metadata": {}} for _, text in turns]}}],
    "exchanges of DialogStudio": lambda turns, id: [{id: {"log": [
        {"user utterance": asked, "system response": said, "dialog history": ""} for asked, said in pairs(turns)]}}],
    "fastchat": lambda turns, id: [{"tstamp": 1.0, "type": "chat", "model": "m", "state": {"roles": ["USER", "ASSISTANT"],
        "messages": [[role.upper(), text] for role, text in turns], "offset": 0, "conv_id": id}}],
    "promptlayer": lambda turns, id: [{"id": id, "prompt_blueprint": {"prompt_template": {"messages": chat(turns)}}}],
    "camrest": lambda turns, id: [{"dialogue_id": id, "dial": [
        {"turn": n, "usr": {"transcript": asked}, "sys": {"sent": answer}} for n, (asked, answer) in enumerate(pairs(turns))]}],
    "kvret": lambda turns, id: [{"id": id, "dialogue": [
        {"turn": role, "data": {"utterance": text}} for role, text in turns]}],
    "woz": lambda turns, id: [{"dialogue_idx": id, "dialogue": [
        {"system_transcript": said, "transcript": asked}
        for said, asked in zip(["", *(text for role, text in turns if role == "assistant")],
                               [*(text for role, text in turns if role == "user"), ""], strict=True)]}],
    "tweetsumm": lambda turns, id: [{"dialog": {"dialog_id": id, "turns": [
        {"is_agent": role == "assistant", "sentences": [text]} for role, text in turns]}, "summaries": {}}],
    "other-name": lambda turns, id: [{"id": id, "talk": {"log": chat(turns)}}],
    "persona-candidates": lambda turns, id: [{"id": id, "personality": ["I like tea."], "utterances": [
        {"candidates": ["No.", answer[1]], "history": [text for _, text in turns[:n]]}
        for n, answer in enumerate(turns) if n % 2]}],
    "numbered": lambda turns, id: [{"id": id, **{f"{role}_{n // 2}": text for n, (role, text) in enumerate(turns, start=2)}}],
    "numbered-turns": lambda turns, id: [{"id": id, **{f"turn_{n}": text for n, (_, text) in enumerate(turns, start=1)}}],
    "wizard-of-wikipedia": lambda turns, id: [{"id": id, "chosen_topic": "Tea", "dialog": [
        {"speaker": "1_Apprentice" if role == "user" else "0_Wizard", "text": text} for role, text in turns]}],
    "parlai-conversations": lambda turns, id: [{"id": id, "dialog": [
        [{"id": "human", "text": asked}, {"id": "model", "text": said}] for asked, said in pairs(turns)]}],
    "acute": lambda turns, id: [{"speakers_to_eval": ["m"], "dialogue_dicts": [{"conversation_id": id, "dialogue": [
        {"id": "h" if role == "user" else "m", "text": text} for role, text in turns]}]}],
    "coqa": lambda turns, id: [{"id": id, "story": "s", "questions": [{"input_text": asked} for asked, _ in pairs(turns)],
                                "answers": [{"input_text": said} for _, said in pairs(turns)]}],
    "quac": lambda turns, id: [{"data": [{"paragraphs": [{"id": id, "qas": [
        {"question": asked, "orig_answer": {"text": said}} for asked, said in pairs(turns)]}]}]}],
    "ultrachat": lambda turns, id: [{"id": id, "data": [text for _, text in turns]}],
    "oasst": oasst,
    "messages of PRISM": lambda turns, id: [{"conversation_id": id, "conversation_history": [
        {"turn": n // 2, "role": "model" if role == "assistant" else role, "content": text}
        for n, (role, text) in enumerate(turns)]}],
    "marked-text of ChatML": lambda turns, id: [{"id": id, "text": template(turns)}],
    "marked-text of Baize": lambda turns, id: [{"id": id, "input": "A conversation.\n" + "".join(
        f"[|{'Human' if role == 'user' else 'AI'}|] {text}\n" for role, text in turns) + "[|Human|] "}],
    "marked-text of Llama 2": lambda turns, id: [{"id": id, "text": "".join(
        f"<s>[INST] {asked} [/INST] {said} </s>" for asked, said in pairs(turns))}],
    "marked-text of Guanaco": lambda turns, id: [{"id": id, "text": "".join(
        f"### {'Human' if role == 'user' else 'Assistant'}: {text}\n" for role, text in turns)}],
    "exchanges": lambda turns, id: [
        {"conversation_id": id, "conversation": [{"human": asked, "assistant": said} for asked, said in pairs(turns)]}],
    "messages under dialog": lambda turns, id: [
        {"id": id, "dialog": [{"speaker": role, "text": text} for role, text in turns]}],
    "messages of Taskmaster": lambda turns, id: [{"conversation_id": id, "utterances": [
        {"index": n, "speaker": role.upper(), "text": text} for n, (role, text) in enumerate(turns)]}],
    "messages of ShareGPT": lambda turns, id: [{"id": id, "conversations": [
        {"from": "human" if role == "user" else "gpt", "value": text} for role, text in turns]}],
    "parlai": parlai,
}  # fmt: skip
"""The same of files whose answers are all scored."""
