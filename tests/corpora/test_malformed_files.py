"""A file that is not in its reader's layout is one error that names the file, the line and the field."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.corpora.readers import cgdialog, conture, convai, dailydialog_pp, dstc10, fed, plain, usr
from dialeval_plugin.corpora.registry import read_dialogues, read_items
from tests import layouts
from tests.layouts import ANSWER, COMPARED, DIALOGUE, PREFERENCE, RESPONSE, array, convai1_rows, convai2_rows, fed_rows, lines
from tests.refusals import refused

Case = tuple[str, str]
"""A file's text, and what is said of it after its name."""

ELSE = "Is this another file's layout?"
NOT_TEXT = "Pass text."
NO_ANSWER = "Leave out what a rater did not answer."
NOT_RATED = "Leave out what was not rated."
REMOVED = object()
NO_TAG = f"expected 'User: ' or 'System: ' and a text, got 'Hello.'. {ELSE}"


def edits(rows: list[Any], *cases: tuple[str, Any, str], write: Callable[..., str] = array, item: str = "") -> list[Case]:
    """Files with one part of the rows replaced or removed: its path, as `row/field/index`, the new value, and what is said."""
    found = []
    for path, to, problem in cases:
        row, *keys = [int(key) if key.isdigit() else key for key in path.split("/")]
        edited = json.loads(json.dumps(rows))
        place = edited[row]
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to
        if to is REMOVED:
            del place[keys[-1]]
        where = f":{row + (2 if write is array else 1)}: {item.format(row)}"  # type: ignore[operator]
        found.append((write(*edited), where + problem))
    return found


FIELDS = "'dialogue_id', 'model', 'context',"
DSTC10 = [
    *edits(
        [RESPONSE, RESPONSE],
        ("1/response", REMOVED, f"has no 'response', only {FIELDS} 'reference', 'annotations'. {ELSE}"),
        ("1/context", ["a", "b"], f"context: expected a string, got ['a', 'b'] (list). {NOT_TEXT}"),
        ("1/response", "\ud800", "holds '\\ud800', half of a surrogate pair, which is not Unicode. Write the character whole."),
        ("1/reference", "a", "reference: expected a list of strings, got 'a' (str)."),
        ("1/dialogue_id", None, "dialogue_id: expected a string or an integer, got None."),
        ("1/annotations", REMOVED, f"has no 'annotations', only {FIELDS} 'response', 'reference'. {ELSE}"),
        ("1/annotations", [1], "annotations: expected an object of quality names and lists, got [1]."),
        ("1/annotations/Overall", 3, "annotations['Overall']: expected the list of the raters' numbers, got 3."),
        ("1/annotations/Overall/1", "4 ", f"annotations['Overall'][1]: expected a finite number, got '4 '. {NO_ANSWER}"),
        ("1/annotations/Overall/0", True, f"annotations['Overall'][0]: expected a finite number, got True. {NO_ANSWER}"),
        ("1/annotations/Overall/0", math.nan, "holds NaN, which is not JSON. Leave out what has no value, or write null."),
    ),
    *edits(
        [DIALOGUE, DIALOGUE],
        ("1/dialog", "Hi!", f"dialog: expected a list of objects, got 'Hi!'. {ELSE}"),
        ("1/dialog/0/text", REMOVED, f"dialog[0]: has no 'text', only 'speaker'. {ELSE}"),
    ),
    (array(RESPONSE, {}), f":3: has no 'context', only nothing. {ELSE}"),
    (array(DIALOGUE, RESPONSE), f":3: dialog: expected a list of objects, got None. {ELSE}"),
]

NO_NUMBER = "expected a whole number from 0 to {} or a text that starts with 'N/A', got {}."
FED = [
    *edits(
        fed_rows(2),
        ("1/annotations/Fluent", [2, "n/a"], f"annotations['Fluent'][1]: {NO_NUMBER.format(2, repr('n/a'))}"),
        ("0/annotations/Understandable", [1, 1, 2], f"annotations['Understandable'][2]: {NO_NUMBER.format(1, 2)}"),
        ("3/annotations/Overall", [True], f"annotations['Overall'][0]: {NO_NUMBER.format(4, True)}"),
        ("0/annotations/Correct", 2, "annotations['Correct']: expected the list of the raters' answers, got 2."),
        ("0/annotations", None, "annotations: expected an object of quality names and lists, got None."),
        (
            "0/annotations",
            {"Coherent": [1]},
            "annotations: has the qualities Coherent, but turn level has Interesting, Engaging, Specific, Relevant, Correct, "
            f"Semantically appropriate, Understandable, Fluent, Overall. {ELSE}",
        ),
        ("0/context", "User: Hi!\nHello.", f"context: turn 1: {NO_TAG}"),
        ("0/response", "Hello.", f"response: {NO_TAG}"),
        (
            "1/context",
            "User: Who\nSystem: is\nUser: this?",
            "its first turns are not those of item 3, the next whole dialogue. "
            "Put the responses right before their dialogue, as in the published file.",
        ),
        item="item {}: ",
    ),
    (
        array(*fed_rows(2)[:-1]),
        ":8: item 6: the file ends with 3 responses that no whole dialogue follows. Was the file cut off?",
    ),
]

USR_NUMBERS = {**layouts.USR, "responses": [{**ANSWER, "cola": 0.5, "rte": 0.1}] * 2}
OTHER_NUMBERS = "has the numbers {}, but the file's first response has {}. Give every response the same."
ZERO_OR_ONE = "expected a whole number from 0 to 1"
USR = [
    *edits(
        [layouts.USR, layouts.USR],
        ("1/annotators", REMOVED, f"annotators: expected a list, got None. {ELSE}"),
        ("1/responses", {}, f"responses: expected a list of objects, got {{}}. {ELSE}"),
        ("1/responses/1/Overall", [5, 6], "responses[1]: Overall[1]: expected a whole number from 1 to 5, got 6."),
        ("1/responses/1/Natural", [1, "N/A"], "responses[1]: Natural[1]: expected a whole number from 1 to 3, got 'N/A'."),
        ("1/responses/1/Understandable", [1, "N/A"], f"responses[1]: Understandable[1]: {ZERO_OR_ONE}, got 'N/A'."),
        ("1/responses/1/Natural", [3], "responses[1]: Natural: has 1 ratings, but 2 annotators are named."),
        ("1/responses/1/cola", 0.5, f"responses[1]: {OTHER_NUMBERS.format('cola', 'none')}"),
    ),
    *edits(
        [USR_NUMBERS],
        ("0/responses/1/cola", None, f"responses[1]: {OTHER_NUMBERS.format('rte', 'cola, rte')}"),
        ("0/responses/1/cola", "0.5", f"responses[1]: {OTHER_NUMBERS.format('rte', 'cola, rte')}"),
    ),
    (array(layouts.USR, {"context": "", "fact": ""}), f":3: annotators: expected a list, got None. {ELSE}"),
]

CONTURE = edits(
    [layouts.CONTURE],
    ("0/turns", {}, f"turns: expected a list of objects, got {{}}. {ELSE}"),
    ("0/turns/0/user", "Who?", "turns[0]: user: expected a text that begins with 'User:', got 'Who?'."),
    ("0/turns/0/overall impression", None, f"turns[0]: overall impression: expected a finite number, got None. {NOT_RATED}"),
    ("0/dialog_ratings/0/coherent", "3", f"dialog_ratings[0]: coherent: expected a finite number, got '3'. {NOT_RATED}"),
    ("0/dialog_id", None, "dialog_id: expected a string or an integer, got None."),
    ("0/dialog_id", REMOVED, f"has no 'dialog_id'. {ELSE}"),
)
CONVAI1 = edits(
    convai1_rows(1),
    ("0/thread", "Hi", f"thread: expected a list of objects, got 'Hi'. {ELSE}"),
    ("0/thread/1/userId", "Carol", "thread[1]: userId: 'Carol' is not among the users 'Alice', 'Bob'."),
    ("0/users/1/userType", "Cat", "users: 'Bob' has the type 'Cat', expected 'Bot' or 'Human'."),
    ("0/evaluation/1/quality", "4", "evaluation[1]: quality: expected a number from 0 to 5, got '4'."),
)
CONVAI2 = edits(
    convai2_rows(1),
    ("0/eval_score", REMOVED, f"has no 'eval_score'. {ELSE}"),
    ("0/eval_score", 6, "eval_score: expected a number from 1 to 5, got 6."),
    ("0/profile_match", True, "profile_match: expected a number from 0 to 1, got True."),
    ("0/dialog", None, f"dialog: expected a list of objects, got None. {ELSE}"),
)
CAUSES = edits(
    [{"history": ["a"], "response": "a", "entities": []}],
    ("0/history", REMOVED, f"has no 'history'. {ELSE}"),
    ("0/entities", REMOVED, f"has no 'entities'. {ELSE}"),
)
PREFERENCES = edits(
    [PREFERENCE],
    ("0/history", "Hi.", f"history: expected a list of objects, got 'Hi.'. {ELSE}"),
    ("0/x_response", "Hi.", "x_response: expected an object, got 'Hi.'."),
    (f"0/{COMPARED}", REMOVED, "has no comparison, a field named like 'x_response-vs-y_response'. Is this another file?"),
    ("0/human_response", REMOVED, f"{COMPARED}: there is no response of 'human'. It has: x."),
    (f"0/{COMPARED}", {}, f"{COMPARED}: has no 'human_evaluation_1'. {ELSE}"),
    (
        f"0/{COMPARED}/human_evaluation_1/empathy",
        "A.",
        f"{COMPARED}: human_evaluation_1: empathy: 'A.' is none of the four answers: "
        "A is better. B is better. Both are good. Both are bad.",
    ),
)
SET = {"context": ["Am I late ?"], "positive_responses": ["No ."]}
RENUMBER = "Predictions are keyed by id: renumber one."
RESPONSE_SETS = edits(
    [{"id": 12, **SET}, {"id": 13, **SET}],
    ("1/id", REMOVED, "has neither 'id' nor 'dialog_id'. Give each row an 'id' of its own."),
    ("1/context", REMOVED, f"has no 'context'. {ELSE}"),
    ("1/positive_responses", REMOVED, f"has no 'positive_responses'. {ELSE}"),
    ("1/context", "Hi.", "context: expected a list of strings, got 'Hi.' (str)."),
    ("1/id", "12", f"the id '12' is also that of {{path}}:1. {RENUMBER}"),
    write=lines,
)
CONTEXTS = [
    (lines({"turns": ["Hi."]}), ":1: has no 'context'. Give the turns as a list of strings."),
    (lines({"context": ["Hi."], "id": 1}, {"context": ["Ho."]}), f":2: the id '1' is also that of {{path}}:1. {RENUMBER}"),
]

MESSAGE = {"role": "user", "content": "hi"}
OURS = [
    (
        lines({"context": ["x"], "response": "y", "id": "a"}, {"context": ["x"], "response": "y", "id": "a"}),
        ":2: the id 'a' is also that of {path}:1. Give every example its own.",
    ),
    (
        "context,response\nHi.,Hello.\n",  # of a file that is no JSON this was "Was the file cut off?"
        ": begins with neither an object nor an array of JSON. Give one object a line, "
        '{"messages": [...]} or {"context": ["turn", ...], "response": "..."}, a table that is called .csv or .tsv, '
        "or a text whose messages begin with 'User:' and 'Assistant:', or with names (--layout names).",
    ),
    (
        lines({"context": [MESSAGE], "response": {"role": "system", "content": "hi"}}),
        ":1: Example '0': response: expected a response, got a message of the role 'system'. Pass the assistant's.",
    ),
    (
        lines({"context": ["x"], "response": "y"}, {"id": "k", "context": ["x", None], "response": "y"}),
        f":2: Example 'k': context[1]: expected a string, got None (NoneType). {NOT_TEXT}",
    ),
]
OUR_DIALOGUES = [
    (
        lines({"a": 1}),
        ":1: is no conversation of a known layout; it has 'a'. Say what its fields are by --columns: messages=NAME of a "
        "whole conversation; context=NAME,response=NAME of a response; conversation=NAME,speaker=NAME,text=NAME of a message. "
        "Or name its layout by --layout, or write each conversation as "
        '{"messages": [{"role": "user", "content": "..."}, ...]}.',
    ),
    ("", ": is empty, expected one JSON object a line."),
    ("[{", ":1: not valid JSON (Expecting property name enclosed in double quotes). Was the file cut off?"),
    ('{"turns": [\n', ":2: not valid JSON (Expecting value). Was the file cut off?"),
    (
        "Hi . __eou__\nHi . __eou__ How are",
        ":2: expected __eou__ after each utterance, found ' How are'. Was the file cut off?",
    ),
]

DREAM = [
    (json.dumps({}), f": expected a JSON array of dialogues. {ELSE}"),
    (json.dumps([{}]), f": dialogue 0: expected [turns, questions, id], got {{}}. {ELSE}"),
    (json.dumps([[[1], [], "a"]]), f": dialogue 0: turn 0: expected a string, got 1 (int). {NOT_TEXT}"),
]
ESCONV = [
    (lines({"a": 1}), f":1: dialog: expected a list of objects, got None. {ELSE}"),
    (lines({"dialog": [{"text": "a"}]}), f":1: dialog[0]: has no 'speaker', only 'text'. {ELSE}"),
]
TOPICAL_CHAT = [
    (json.dumps([]), f": expected a JSON object of conversations by id. {ELSE}"),
    (json.dumps({}), f": expected a JSON object of conversations by id. {ELSE}"),
    (json.dumps({"t_a": []}), ": t_a: expected an object, got []."),
    (json.dumps({"t_a": {"content": "x"}}), f": t_a: content: expected a list of objects, got 'x'. {ELSE}"),
    (json.dumps({"t_a": {"content": [{"message": "x"}]}}), f": t_a: content[0]: has no 'agent', only 'message'. {ELSE}"),
]
PERSONACHAT = [
    ("\n", ": is empty, expected numbered lines."),
    ("1 a\tb\nhi\tho\n", f":2: expected a number, a blank and a text, got 'hi\\tho'. {ELSE}"),
    ("1 a\tb\n3 c\td\n", ":2: expected a line numbered 2 or 1, got 3. Were lines taken out of the file?"),
    ("2 a\tb\n", ":1: expected a line numbered 1 or 1, got 2. Were lines taken out of the file?"),
    # FAULTS D13: int() refuses so many digits
    ("1 a\tb\n" + "2" * 5000 + " c\td\n", f":2: expected a number, a blank and a text, got '{'2' * 80}'. {ELSE}"),
    ("1 a\tb\n2 c d\n", ":2: expected a tab between the turns of the two speakers, got 'c d'. Was it lost?"),
]
FIRE = "Dialog_ID,Type,Actor,Text\na,situation,none,My car caught fire\na,utterance,speaker,My car caught fire!\n"
AN_UTTERANCE = "expected an utterance of speaker or listener, got the type"
EMPATHETIC_DIALOGUES = [
    ("Dialog_ID,Type,Text\na,situation,b\n", f":1: has no column 'Actor'. {ELSE}"),
    (f"{FIRE}b,utterance,speaker,Hi\n", ":4: the conversation 'b' begins without its situation. Were rows sorted or left out?"),
    (f"{FIRE}a,situation,none,Again\n", f":4: {AN_UTTERANCE} 'situation' and the actor 'none'."),
    (f"{FIRE}a,utterance,third,Hi\n", f":4: {AN_UTTERANCE} 'utterance' and the actor 'third'."),
]

READERS: dict[str, tuple[Callable[[Path], object], list[Case]]] = {
    "dstc10": (dstc10.read, DSTC10),
    "fed": (fed.read, FED),
    "usr": (usr.read_scored, USR),
    "conture": (conture.read, CONTURE),
    "convai1": (lambda path: convai.read_convai1([path]), CONVAI1),
    "convai2": (lambda path: convai.read_convai2([path]), CONVAI2),
    "causes": (cgdialog.read_causes, CAUSES),
    "preferences": (cgdialog.read_preferences, PREFERENCES),
    "response sets": (dailydialog_pp.read, RESPONSE_SETS),
    "contexts": (dailydialog_pp.read_contexts, CONTEXTS),
    "ours": (read_items, OURS),
    "our dialogues": (read_dialogues, OUR_DIALOGUES),
    "dailydialog": (plain.read_dailydialog, [("\n \n", ": is empty, expected one dialogue a line.")]),
    "dream": (plain.read_dream, DREAM),
    "esconv": (plain.read_esconv, ESCONV),
    "topical chat": (plain.read_topical_chat, TOPICAL_CHAT),
    "personachat": (plain.read_personachat, PERSONACHAT),
    "empathetic dialogues": (plain.read_empathetic_dialogues, EMPATHETIC_DIALOGUES),
}


@pytest.mark.parametrize(
    ("layout", "case"), [(layout, place) for layout, (_, cases) in READERS.items() for place in range(len(cases))]
)
def test_a_malformed_file_is_one_error_that_names_the_line(layout: str, case: int, tmp_path: Path) -> None:
    read, cases = READERS[layout]
    content, problem = cases[case]
    path = tmp_path / "x.json"
    path.write_text(content, encoding="utf-8")
    with refused(f"{path}{problem.replace('{path}', str(path))}"):
        read(path)
