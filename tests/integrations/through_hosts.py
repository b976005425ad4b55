"""Gives conversations to each host with its real package, and returns what the host has recorded of them.

A host that keeps traces on a server has a stand-in on loopback, which is asked and answered by the host's own client.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.loopback import serving

# What hosts would send home.
os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "DEEPEVAL_TELEMETRY_OPT_OUT": "YES"}

Messages = Sequence[Mapping[str, str]]


class Record(NamedTuple):
    """Record that a host has of one conversation."""

    name: str
    value: float | None
    reason: str
    explanation: str
    signature: str


def chat(*texts: str) -> Messages:
    """A user and an assistant in turn."""
    return [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)]


def needed(package: str) -> Any:
    """Import a host's package; the test is skipped where it is not installed."""
    return pytest.importorskip(package, reason=f"{package} is not installed; `make integrations` runs this where it is")


@dataclass
class Server:
    """A stand-in on loopback: what is got from each path, and the bodies that were posted to each."""

    url: str = ""
    got: dict[str, Any] = field(default_factory=dict)
    posted: dict[str, list[Any]] = field(default_factory=dict)


@contextmanager
def standing_in(got: Mapping[str, Any], answer: Any) -> Iterator[Server]:
    """Serve the objects `got` by their paths, and `answer` to whatever is posted."""
    server = Server(got=dict(got))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(server.got.get(urlsplit(self.path).path))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.posted.setdefault(urlsplit(self.path).path, []).append(body)
            self._send(answer)

        def _send(self, found: Any) -> None:
            raw = json.dumps(found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    with serving(Handler) as server.url:
        yield server


def inspect_log(conversations: Sequence[Messages], folder: Path) -> Path:
    """Run a task whose samples end with these messages; return its log."""
    inspect_ai = needed("inspect_ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser
    from inspect_ai.solver import Generate, TaskState, solver

    kinds = {"user": ChatMessageUser, "assistant": ChatMessageAssistant}

    @solver
    def as_said() -> Any:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            said = conversations[int(state.sample_id)]
            state.messages = [kinds[one["role"]](content=one["content"]) for one in said]
            return state

        return solve

    samples = [Sample(input="Talk.", id=number) for number in range(len(conversations))]
    task = inspect_ai.Task(dataset=samples, solver=as_said(), name="chat")
    (log,) = inspect_ai.eval(task, model="mockllm/model", log_dir=str(folder), display="none")
    assert log.status == "success", log.error
    return Path(log.location.removeprefix("file://"))


def by_inspect_ai(conversations: Sequence[Messages], folder: Path, scorer: str, **options: Any) -> list[Record]:
    path = inspect_log(conversations, folder)
    from inspect_ai import score
    from inspect_ai.log import read_eval_log

    from dialeval_plugin.integrations.inspect_ai import dialeval_scorer

    log = score(read_eval_log(str(path)), dialeval_scorer(scorer, **options), display="none")
    found = [sample.scores for sample in sorted(log.samples or [], key=lambda sample: int(sample.id))]
    return [
        Record(
            name, None if math.isnan(one.as_float()) else one.as_float(), one.reason or "", one.explanation or "",
            one.metadata["signature"],
        )
        for ((name, one),) in (scores.items() for scores in found)
    ]  # fmt: skip


def by_mlflow(conversations: Sequence[Messages], folder: Path, scorer: str, **options: Any) -> list[Record]:
    mlflow = needed("mlflow")
    from dialeval_plugin.integrations.mlflow import dialeval_scorer

    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.set_experiment("chat")
    rows = [
        {"inputs": {"messages": list(said[:-1]), "place": place}, "outputs": said[-1]["content"]}
        for place, said in enumerate(conversations)
    ]
    mlflow.genai.evaluate(data=rows, scorers=[dialeval_scorer(scorer, **options)])
    traces = mlflow.search_traces(return_type="list")
    found = {json.loads(one.data.request)["place"]: one.info.assessments for one in traces}
    return [
        Record(
            one.name.removeprefix("dialeval_"), one.value, one.error.error_code if one.error else "", one.rationale,
            one.metadata["signature"],
        )
        for (one,) in (found[place] for place in range(len(conversations)))
    ]  # fmt: skip


def by_deepeval(conversations: Sequence[Messages], folder: Path, scorer: str, **options: Any) -> list[Record]:
    deepeval = needed("deepeval")
    from deepeval.evaluate.configs import DisplayConfig
    from deepeval.test_case import ConversationalTestCase, Turn

    from dialeval_plugin.integrations.deepeval import DialevalMetric

    cases = [
        ConversationalTestCase(turns=[Turn(**message) for message in said], name=str(place))
        for place, said in enumerate(conversations)
    ]
    shown = DisplayConfig(show_indicator=False, print_results=False)
    run = deepeval.evaluate(cases, [DialevalMetric(scorer, threshold=0.5, **options)], display_config=shown)
    found = [one.metrics_data for one in sorted(run.test_results, key=lambda one: int(one.name))]
    return [
        Record(
            one.name.removeprefix("dialeval "), one.score, (one.error or "").partition(":")[0],
            one.reason if one.error is None else one.error.partition(": ")[2], one.evaluation_model,
        )
        for (one,) in found
    ]  # fmt: skip


def by_opentelemetry(conversations: Sequence[Messages], folder: Path, scorer: str, **options: Any) -> list[Record]:
    needed("opentelemetry.sdk")
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from dialeval_plugin.integrations.opentelemetry import DialevalExporter

    events = InMemoryLogRecordExporter()
    logs = LoggerProvider()
    logs.add_log_record_processor(SimpleLogRecordProcessor(events))
    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(DialevalExporter(scorer, logger_provider=logs, **options)))
    spans = {}
    for place, said in enumerate(conversations):
        with tracers.get_tracer("chat").start_as_current_span("chat model") as span:
            span.set_attributes(
                {f"gen_ai.{name}.messages": parts(one) for name, one in (("input", said[:-1]), ("output", said[-1:]))}
            )
            spans[span.get_span_context().span_id] = place
        with tracers.get_tracer("chat").start_as_current_span("execute_tool clock") as tool:
            tool.set_attribute("gen_ai.tool.name", "clock")
    tracers.shutdown()
    found = {}
    for event in events.get_finished_logs():
        assert event.log_record.event_name == "gen_ai.evaluation.result"
        found[spans[event.log_record.span_id]] = event.log_record.attributes
    return [
        Record(
            one["gen_ai.evaluation.name"], one.get("gen_ai.evaluation.score.value"), one.get("error.type", ""),
            one["gen_ai.evaluation.explanation"], one["dialeval.signature"],
        )
        for one in (found[place] for place in range(len(conversations)))
    ]  # fmt: skip


def parts(messages: Messages) -> str:
    """Messages as OpenTelemetry's attributes have them."""
    return json.dumps([{"role": one["role"], "parts": [{"type": "text", "content": one["content"]}]} for one in messages])


OBSERVATIONS, SCORES = "/api/public/v2/observations", "/api/public/scores"


def observations(conversations: Sequence[Messages]) -> dict[str, Any]:
    """Answers of Langfuse: a generation a conversation, and a span without input and output."""
    core = {"startTime": "2026-11-01T10:00:00Z", "projectId": "chat", "traceId": "0" * 31 + "1"}
    found = [
        {**core, "id": f"{place:016x}", "type": "GENERATION", "input": json.dumps(said[:-1]), "output": json.dumps(said[-1])}
        for place, said in enumerate(conversations)
    ]
    return {"data": [*found, {**core, "id": "f" * 16, "type": "SPAN", "input": None, "output": None}], "meta": {}}


def by_langfuse(conversations: Sequence[Messages], folder: Path, scorer: str, **options: Any) -> list[Record]:
    langfuse = needed("langfuse")
    from dialeval_plugin.integrations.langfuse import score_observations

    with standing_in({OBSERVATIONS: observations(conversations)}, {"ids": []}) as server:
        client = langfuse.Langfuse(public_key=f"pk-{server.url}", secret_key="sk", base_url=server.url)  # noqa: S106
        score_observations(client, client.api.observations.get_many(fields="core,io").data, scorer, **options)
        client.shutdown()
    found = {one["observationId"]: one for body in server.posted[SCORES] for one in body}
    assert list(found) == [f"{place:016x}" for place in range(len(conversations))]
    return [
        Record(
            one["name"].removesuffix("_unscored"), one["value"] if one["dataType"] == "NUMERIC" else None,
            one["value"] if one["dataType"] == "CATEGORICAL" else "", one["comment"], one["metadata"]["signature"],
        )
        for one in found.values()
    ]  # fmt: skip


SPANS, ANNOTATIONS = "/v1/projects/default/spans", "/v1/span_annotations"


def phoenix_spans(conversations: Sequence[Messages]) -> dict[str, Any]:
    """Answers of Phoenix: a span of a model a conversation, and one of a tool."""
    about = {"span_kind": "LLM", "start_time": "2026-11-01T10:00:00Z", "end_time": "2026-11-01T10:00:01Z", "status_code": "OK"}
    found = []
    for place, said in enumerate(conversations):
        attributes = {"openinference.span.kind": "LLM"}
        for name, messages in (("input", said[:-1]), ("output", said[-1:])):
            for number, message in enumerate(messages):
                for field_name, value in message.items():
                    attributes[f"llm.{name}_messages.{number}.message.{field_name}"] = value
        ids = {"trace_id": "1" * 32, "span_id": f"{place:016x}"}
        found.append({**about, "name": "chat", "context": ids, "attributes": attributes})
    tool = {"openinference.span.kind": "TOOL", "input.value": "{}", "output.value": "noon"}
    ids = {"trace_id": "1" * 32, "span_id": "f" * 16}
    return {"data": [*found, {**about, "name": "clock", "context": ids, "attributes": tool}], "next_cursor": None}


def by_phoenix(conversations: Sequence[Messages], folder: Path, scorer: str, **options: Any) -> list[Record]:
    client = needed("phoenix.client")
    from dialeval_plugin.integrations.phoenix import annotate_spans

    with standing_in({SPANS: phoenix_spans(conversations)}, {"data": []}) as server:
        phoenix = client.Client(base_url=server.url)
        annotate_spans(phoenix, phoenix.spans.get_spans(project_identifier="default"), scorer, **options)
    (body,) = server.posted[ANNOTATIONS]
    assert [one["span_id"] for one in body["data"]] == [f"{place:016x}" for place in range(len(conversations))]
    return [
        Record(
            one["name"], one["result"].get("score"), one["result"].get("label", ""), one["result"]["explanation"],
            one["metadata"]["signature"],
        )
        for one in body["data"]
    ]  # fmt: skip


WHOLE = {"inspect-ai": by_inspect_ai, "deepeval": by_deepeval}
"""Hosts of whole conversations, all answers of which are scored."""
LAST = {
    "mlflow": by_mlflow, "opentelemetry-sdk": by_opentelemetry, "langfuse": by_langfuse, "arize-phoenix-client": by_phoenix,
}  # fmt: skip
"""Hosts of requests with their answer."""
