"""Damaged files of every layout: each is read or refused in one error that names it. FAULTS R09, D13, D23.

The seed is fixed, so that a failure comes back; `DIALEVAL_FUZZ` sets another number of mutants a layout.
"""

from __future__ import annotations

import io
import json
import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.rated_items import read_rated_items
from dialeval_plugin.corpora.readers import cgdialog, conture, convai, dailydialog_pp, dbdc, dstc10, fed, usr
from dialeval_plugin.corpora.registry import read_grounded, read_items
from dialeval_plugin.corpora.score_files import read_score_file
from tests import layouts
from tests.layouts import convai1_rows, convai2_rows, fed_rows, lines

N_MUTANTS = int(os.environ.get("DIALEVAL_FUZZ", "20"))

Reader = Callable[[Path], object]

OURS = [
    {"id": "a", "context": ["Hi.", "Hello."], "response": "Bye.", "references": ["So long."], "facts": ["tea"]},
    {"id": 7, "context": [], "response": "Hi."},
]
SETS = [
    {"id": 1, "context": ["Hi."], "positive_responses": ["Hello."], "random_negative_responses": ["4"]},
    {"dialog_id": "b", "context": ["Hi.", "Oh."], "positive_responses": ["Yes."], "adversarial_negative_responses": ["Hi."]},
]
DSTC10 = [
    {**layouts.RESPONSE, "context": "User: x\nSystem: y", "response": "User: z", "fact": "your persona: tea",
     "annotations": {"Overall": [4, 5], "Natural": []}},
]  # fmt: skip
USR = [{**layouts.USR, "fact": "_nofact\n", "responses": [{**layouts.ANSWER, "cola": 0.5}]}]
CONTURE = [{**layouts.CONTURE, "dialog_ratings": [{"coherent": 3, "error recovery": "N/A"}]}]
CAUSES = [{"history": ["W: Hi.", "M: Why so late?", ""], "response": "W: The bus.", "entities": ["Why so"]}]
DREAM = [[["M: Hi.", "W: Ho."], [{"question": "Who?"}], "1-1"]]
TOPICAL = {"t": {"content": [{"message": "Hi.", "agent": "agent_1"}, {"message": "Ho.", "agent": "agent_2"}]}}
CHAT = [{"role": "system", "content": "x"}, {"role": "user", "content": [{"type": "text", "text": "Hi."}]},
        {"role": "assistant", "content": "Ho.", "tool_calls": []}]  # fmt: skip
SHAREGPT = [{"from": "human", "value": "Hi."}, {"from": "gpt", "value": "Ho."}]
TURNS = 'conversation,speaker,text\na,user,"Hi, you"\nb,A,Ho\na,bot,x\n'
ESCONV = [{"dialog": [{"text": "Hi ", "speaker": "sys"}, {"text": "Ho", "speaker": "usr"}]}]
EMPATHETIC = 'Dialog_ID,Type,Actor,Text\na,situation,none,"A ""car"""\na,utterance,speaker,Oh\n'
PROBABILITIES = {"dialogues": [{"dialogue_id": 0, "human_annotation": 3.5, "predicted_annotation": 0.25}]}
UNIEVAL = [{"source": "x", "system_id": "s", "system_output": "y", "scores": {"a": 1.5}, "predict_scores": {"a": 0.5}}]
ANNOTATED = {"speaker": "S", "utterance": "Ho.", "annotations": [{"breakdown": "O"}, {"breakdown": "X"}]}
LOG = {"dialogue-id": "x", "turns": [{"speaker": "U", "utterance": "Hi.", "annotations": []}, ANNOTATED]}


def rated(path: Path) -> object:
    return read_rated_items(str(path))


def zipped(method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("en/YI_50/a.log.json", json.dumps(LOG))
        archive.writestr("en/YI_50/b.log.json", json.dumps({**LOG, "dialogue-id": "y"}))
    return buffer.getvalue()


LAYOUTS: dict[str, tuple[Reader, str, str | bytes]] = {
    "ours": (read_items, "in.jsonl", lines(*OURS)),
    "chat messages": (read_items, "in.jsonl", lines({"id": 7, "messages": CHAT}, {"messages": CHAT[1:]})),
    "chat messages of a file": (read_items, "in.json", json.dumps(CHAT, indent=1)),
    "sharegpt": (read_items, "in.json", json.dumps([{"id": "a", "conversations": SHAREGPT}])),
    "turns in csv": (read_items, "in.csv", TURNS),
    "responses in tsv": (read_items, "in.tsv", 'context\tresponse\nHi.\tHo.\n"[""a""]"\tb\n'),
    "dialogues: chat": (read_grounded, "in.json", json.dumps({"messages": CHAT}, indent=1)),
    "response sets": (dailydialog_pp.read, "in.jsonl", lines(*SETS)),
    "contexts": (dailydialog_pp.read_contexts, "in.jsonl", lines(*SETS)),
    "dstc10": (dstc10.read, "x_eval.json", json.dumps(DSTC10)),
    "dstc10 dialogues": (dstc10.read, "x_eval.json", json.dumps([layouts.DIALOGUE])),
    "usr": (usr.read_scored, "usr.json", json.dumps(USR)),
    "fed": (fed.read, "fed.json", json.dumps(fed_rows(1))),
    "conture": (conture.read, "x.json", json.dumps(CONTURE)),
    "convai1": (lambda path: convai.read_convai1([path]), "x.json", json.dumps(convai1_rows(2))),
    "convai2": (lambda path: convai.read_convai2([path]), "x.json", json.dumps(convai2_rows(2))),
    "causes": (cgdialog.read_causes, "x_response_cause_train.json", json.dumps(CAUSES)),
    "preferences": (cgdialog.read_preferences, "x_responses_pairwise.json", json.dumps([{"id": 3, **layouts.PREFERENCE}])),
    "dialogues: ours": (read_grounded, "in.jsonl", lines({"turns": ["Hi.", "Ho."]}, {"turns": []})),
    "dialogues: dream": (read_grounded, "x.json", json.dumps(DREAM)),
    "dialogues: topical chat": (read_grounded, "x.json", json.dumps(TOPICAL)),
    "dialogues: esconv": (read_grounded, "x.txt", lines(*ESCONV)),
    "dialogues: dailydialog": (read_grounded, "x.txt", "Hi . __eou__ Ho . __eou__\nHi . __eou__\n"),
    "dialogues: personachat": (read_grounded, "x.txt", "1 your persona: tea\n2 hi\tho\n3 a\tb\n1 your persona: x\n2 c\td\n"),
    "dialogues: empathetic": (read_grounded, "x.csv", EMPATHETIC),
    "ratings": (rated, "r.jsonl", lines({"id": "a", "ratings": {"q": [1, 2]}, "cluster": 0}, {"id": 2, "rating": 1.5})),
    "ratings of examples": (rated, "r.json", json.dumps(DSTC10)),
    "ratings in csv": (rated, "r.csv", "id,q,system\na,4,s\nb,,t\n"),
    "scores": (read_score_file, "s.jsonl", lines({"id": "a", "x": 1.5}, {"id": "b", "x": None, "unscored": "refusal"})),
    "scores in csv": (read_score_file, "s.csv", "id,x\na,1e-3\nb,\n"),
    "scores by id": (read_score_file, "s.json", json.dumps({"a": 0.5, "b": None})),
    "scores in file order": (read_score_file, "s.json", json.dumps({"q": [0.5, 2], "p": [1, 3]})),
    "probabilities": (read_score_file, "s.json", json.dumps(PROBABILITIES)),
    "unieval": (read_score_file, "s.json", json.dumps(UNIEVAL)),
    "dailydialog++ scores": (read_score_file, "s.json", json.dumps({"0p0": 1, "0r0": 0.5, "0a1": 0})),
    "glue": (read_score_file, "s.json", json.dumps(USR)),
    "dbdc": (dbdc.read_logs, "x.zip", zipped(zipfile.ZIP_DEFLATED)),
    "dbdc stored": (dbdc.read_logs, "x.zip", zipped(zipfile.ZIP_STORED)),
}

PIECES = (
    *("[" * 5_000, "]" * 200, '{"a":' * 2_000, "1" * 5_000, "1" * 400, "-1e999", "1e-999", "NaN", "-Infinity", "-1", "0.5"),
    *('"\\ud800"', '"\\udc00\\ud800"', "\\u0000", "\x00", "\ufeff", "\u2028", "\u202e", "\U0001f600", "\xff"),
    *('{"id": "a", "id": "b"}', "null", "true", "[]", "{}", '""', "\r", "\t", "\n", ",", '"', "\\"),
)


def mutant(original: bytes, generator: random.Random) -> bytes:
    raw = bytearray(original)
    for _ in range(generator.choice((1, 1, 1, 2, 5))):
        place = generator.randrange(len(raw) + 1)
        kind = generator.randrange(6)
        if kind == 0 and raw:
            raw[min(place, len(raw) - 1)] = generator.randrange(256)
        elif kind == 1:
            del raw[place:]
        elif kind == 2:
            del raw[place : place + generator.randrange(1, 30)]
        elif kind == 3:
            raw[place:place] = raw[: generator.randrange(len(raw) + 1)]
        else:
            raw[place : place + generator.choice((0, 1, 4))] = generator.choice(PIECES).encode()
    return bytes(raw)


def replaced(value: Any, generator: random.Random) -> Any:
    """The JSON value with one of its parts, drawn at random, replaced."""
    if isinstance(value, (list, dict)) and value and generator.random() < 0.8:
        changed = value.copy()
        key = generator.choice(list(value) if isinstance(value, dict) else range(len(value)))
        changed[key] = replaced(value[key], generator)
        return changed
    return generator.choice(
        (None, True, "", "x", [], {}, [[]], {"a": {}}, -1, 1e300, 10**400, 10**30, ["x"], "\ud800", 0.5, [None])
    )


def mutants(content: str | bytes, generator: random.Random) -> list[bytes]:
    raw = content if isinstance(content, bytes) else content.encode()
    found = [mutant(raw, generator) for _ in range(N_MUTANTS)]
    if isinstance(content, str) and content[0] in "[{":
        is_lines = content[0] == "{" and content.endswith("\n")
        values = [json.loads(line) for line in content.splitlines()] if is_lines else json.loads(content)
        for _ in range(N_MUTANTS):
            changed = replaced(values, generator)
            rows = changed if is_lines and isinstance(changed, list) else None
            found.append((lines(*rows) if rows is not None else json.dumps(changed)).encode())
    return found


def refusal(read: Reader, path: Path, raw: bytes) -> list[str]:
    """The message of the error, if the file is refused."""
    path.write_bytes(raw)
    try:
        read(path)
    except InputError as error:
        return [str(error)]
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} on {raw[:300]!r}") from error
    return []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_d13_r09_a_damaged_file_is_read_or_refused(layout: str, tmp_path: Path) -> None:
    read, name, content = LAYOUTS[layout]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    read(path)

    refusals = [message for raw in mutants(content, random.Random(layout)) for message in refusal(read, path, raw)]
    assert refusals
    for message in refusals:
        assert str(path) in message
        message.encode()
