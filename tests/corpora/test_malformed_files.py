"""A file that is not in its reader's layout is one error that names the file, the line and the field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.readers import (
    cgdialog,
    conture,
    convai,
    dailydialog,
    dailydialog_pp,
    dream,
    dstc10,
    empathetic_dialogues,
    esconv,
    fed,
    personachat,
    topical_chat,
    usr,
)
from dialeval_plugin.corpora.registry import read_dialogues, read_items
from tests.convai_files import convai1_rows, convai2_rows
from tests.fed_files import fed_rows

Case = tuple[str, str]
"""A file's text, and what is said of it after its name."""

ELSE = "Is this another file's layout?"
NOT_TEXT = "Pass text."
NO_ANSWER = "Leave out what a rater did not answer."
NOT_RATED = "Leave out what was not rated."
REMOVED = object()


def array(*rows: Any) -> str:
    """A JSON array with a row a line, the first on line 2."""
    return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]"


def lines(*rows: Any) -> str:
    return "\n".join(map(json.dumps, rows))


def changed(value: Any, *path: Any, to: Any) -> Any:
    """A copy with the part at `path` replaced, or removed."""
    found = json.loads(json.dumps(value))
    place = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    if to is REMOVED:
        del place[path[-1]]
    return found


RESPONSES = {
    "dialogue_id": "a",
    "model": "m",
    "context": "Tea ?",
    "response": "Yes .",
    "reference": ["No ."],
    "annotations": {"Overall": [4, 5, 3]},
}
DIALOGUE = {"dialogue_id": "a", "model": "m", "dialog": [{"speaker": "A", "text": "Hi!"}], "annotations": {"Overall": [4]}}


def dstc10_row(problem: str, *path: Any, to: Any) -> Case:
    return array(RESPONSES, changed(RESPONSES, *path, to=to)), f":3: {problem}"


def dstc10_turns(turns: Any, problem: str) -> Case:
    return array(DIALOGUE, {**DIALOGUE, "dialog": turns}), f":3: {problem}"


DSTC10 = [
    dstc10_row(
        f"has no 'response', only 'dialogue_id', 'model', 'context', 'reference', 'annotations'. {ELSE}", "response", to=REMOVED
    ),
    (array(RESPONSES, {}), f":3: has no 'context', only nothing. {ELSE}"),
    dstc10_row(f"context: expected a string, got ['a', 'b'] (list). {NOT_TEXT}", "context", to=["a", "b"]),
    dstc10_row(f"response: expected a string, got None (NoneType). {NOT_TEXT}", "response", to=None),
    dstc10_row(
        "holds '\\ud800', half of a surrogate pair, which is not Unicode. Write the character whole.", "response", to="\ud800"
    ),
    dstc10_row(f"model: expected a string, got 3 (int). {NOT_TEXT}", "model", to=3),
    dstc10_row(f"fact: expected a string, got ['a'] (list). {NOT_TEXT}", "fact", to=["a"]),
    dstc10_row("reference: expected a list of strings, got 'a' (str).", "reference", to="a"),
    dstc10_row(f"reference[1]: expected a string, got 1 (int). {NOT_TEXT}", "reference", to=["a", 1]),
    dstc10_row("dialogue_id: expected a string or an integer, got None.", "dialogue_id", to=None),
    dstc10_row(
        f"has no 'annotations', only 'dialogue_id', 'model', 'context', 'response', 'reference'. {ELSE}",
        "annotations",
        to=REMOVED,
    ),
    dstc10_row("annotations: expected an object of quality names and lists, got [1].", "annotations", to=[1]),
    dstc10_row("annotations['Overall']: expected the list of the raters' numbers, got 3.", "annotations", "Overall", to=3),
    *(
        dstc10_row(
            f"annotations['Overall'][1]: expected a finite number, got {value!r}. {NO_ANSWER}",
            *("annotations", "Overall"),
            to=[3, value],
        )
        for value in ("4 ", None, True)
    ),
    dstc10_row(
        "holds NaN, which is not JSON. Leave out what has no value, or write null.", "annotations", "Overall", to=[float("nan")]
    ),
    dstc10_turns("Hi!", f"dialog: expected a list of objects, got 'Hi!'. {ELSE}"),
    dstc10_turns(["Hi!"], "dialog[0]: expected an object, got 'Hi!'."),
    dstc10_turns([{"speaker": "human"}], f"dialog[0]: has no 'text', only 'speaker'. {ELSE}"),
    dstc10_turns([{"text": "Hi!", "speaker": 1}], f"dialog[0]: speaker: expected a string, got 1 (int). {NOT_TEXT}"),
    (array(DIALOGUE, RESPONSES), f":3: dialog: expected a list of objects, got None. {ELSE}"),
]

FED_ROWS = fed_rows(2)


def fed_file(problem: str, *path: Any, to: Any) -> Case:
    """The item is the first step of the path; it stands two lines further down."""
    return array(*changed(FED_ROWS, *path, to=to)), f":{path[0] + 2}: item {path[0]}: {problem}"


def fed_answer(item: int, quality: str, answers: list[Any], place: int, highest: int) -> Case:
    expected = f"expected a whole number from 0 to {highest} or a text that starts with 'N/A', got {answers[place]!r}."
    return fed_file(f"annotations['{quality}'][{place}]: {expected}", item, "annotations", quality, to=answers)


FED = [
    fed_answer(1, "Fluent", [2, "n/a"], 1, 2),
    fed_answer(0, "Understandable", [1, 1, 2], 2, 1),
    fed_answer(3, "Overall", [True], 0, 4),
    fed_answer(3, "Overall", [2.5], 0, 4),
    fed_file("annotations['Correct']: expected the list of the raters' answers, got 2.", 0, "annotations", "Correct", to=2),
    fed_file("annotations: expected an object of quality names and lists, got None.", 0, "annotations", to=None),
    fed_file(
        "annotations: has the qualities Coherent, but turn level has Interesting, Engaging, Specific, Relevant, Correct, "
        f"Semantically appropriate, Understandable, Fluent, Overall. {ELSE}",
        *(0, "annotations"),
        to={"Coherent": [1]},
    ),
    fed_file(
        f"context: turn 1: expected 'User: ' or 'System: ' and a text, got 'Hello.'. {ELSE}",
        *(0, "context"),
        to="User: Hi!\nHello.",
    ),
    fed_file(f"response: expected 'User: ' or 'System: ' and a text, got 'Hello.'. {ELSE}", 0, "response", to="Hello."),
    fed_file(f"has no 'context', only 'response', 'system', 'annotations'. {ELSE}", 2, "context", to=REMOVED),
    fed_file(
        "its first turns are not those of item 3, the next whole dialogue. "
        "Put the responses right before their dialogue, as in the published file.",
        *(1, "context"),
        to="User: Who\nSystem: is\nUser: this?",
    ),
    (array(*FED_ROWS[:-1]), ":8: item 6: the file ends with 3 responses that no whole dialogue follows. Was the file cut off?"),
]

ANSWER = {"response": "me too", "model": "m", **{quality: [low, low] for quality, (low, _) in usr.SCALES.items()}}
USR_ROW = {"context": "tea ?", "fact": "", "annotators": ["a", "b"], "responses": [ANSWER, ANSWER]}


def usr_row(problem: str, *path: Any, to: Any) -> Case:
    return array(USR_ROW, changed(USR_ROW, *path, to=to)), f":3: {problem}"


def usr_answer(problem: str, field: str, *, to: Any) -> Case:
    return usr_row(f"responses[1]: {problem}", "responses", 1, field, to=to)


USR = [
    usr_row(f"annotators: expected a list, got None. {ELSE}", "annotators", to=REMOVED),
    usr_row(f"responses: expected a list of objects, got {{}}. {ELSE}", "responses", to={}),
    usr_row("responses[0]: expected an object, got 'text'.", "responses", to=["text"]),
    usr_row(f"context: expected a string, got None (NoneType). {NOT_TEXT}", "context", to=None),
    usr_answer("Overall[1]: expected a whole number from 1 to 5, got 6.", "Overall", to=[5, 6]),
    usr_answer("Understandable[1]: expected a whole number from 0 to 1, got 'N/A'.", "Understandable", to=[1, "N/A"]),
    usr_answer("Natural: has 1 ratings, but 2 annotators are named.", "Natural", to=[3]),
    usr_answer("has the numbers cola, but the file's first response has none. Give every response the same.", "cola", to=0.5),
    *(
        (
            array({**USR_ROW, "responses": [{**ANSWER, "cola": 0.5, "rte": 0.1}, {**ANSWER, "cola": value, "rte": 0.2}]}),
            ":2: responses[1]: has the numbers rte, but the file's first response has cola, rte. Give every response the same.",
        )
        for value in (None, "0.5")
    ),
]

EXCHANGE = {"user": "User: Who are you? ", "chatbot": "Chatbot: a book.", "overall impression": 2}
CONTURE_ROW = {"dialog_id": 7, "turns": [EXCHANGE], "dialog_ratings": [{"coherent": 3}]}


def conture_row(problem: str, *path: Any, to: Any) -> Case:
    return array(changed(CONTURE_ROW, *path, to=to)), f":2: {problem}"


CONTURE = [
    conture_row(f"turns: expected a list of objects, got {{}}. {ELSE}", "turns", to={}),
    conture_row("turns[0]: expected an object, got 'x'.", "turns", to=["x"]),
    conture_row("turns[0]: user: expected a text that begins with 'User:', got 'Who?'.", "turns", 0, "user", to="Who?"),
    conture_row(
        f"turns[0]: overall impression: expected a finite number, got None. {NOT_RATED}",
        *("turns", 0, "overall impression"),
        to=None,
    ),
    conture_row(
        f"dialog_ratings[0]: coherent: expected a finite number, got '3'. {NOT_RATED}",
        *("dialog_ratings", 0, "coherent"),
        to="3",
    ),
    conture_row("dialog_id: expected a string or an integer, got None.", "dialog_id", to=None),
    conture_row(f"has no 'dialog_id'. {ELSE}", "dialog_id", to=REMOVED),
]


def convai1(problem: str, *path: Any, to: Any) -> Case:
    return array(*changed(convai1_rows(1), 0, *path, to=to)), f":2: {problem}"


def convai2(problem: str, *path: Any, to: Any) -> Case:
    return array(*changed(convai2_rows(1), 0, *path, to=to)), f":2: {problem}"


CONVAI1 = [
    convai1(f"thread: expected a list of objects, got 'Hi'. {ELSE}", "thread", to="Hi"),
    convai1("thread[1]: expected an object, got 'Hi'.", "thread", 1, to="Hi"),
    convai1("thread[1]: userId: 'Carol' is not among the users 'Alice', 'Bob'.", "thread", 1, "userId", to="Carol"),
    convai1("users: 'Bob' has the type 'Cat', expected 'Bot' or 'Human'.", "users", 1, "userType", to="Cat"),
    convai1("evaluation[0]: quality: expected a number from 0 to 5, got '4'.", "evaluation", 0, "quality", to="4"),
    convai1(f"thread[0]: text: expected a string, got None (NoneType). {NOT_TEXT}", "thread", 0, "text", to=None),
]
CONVAI2 = [
    convai2(f"has no 'eval_score'. {ELSE}", "eval_score", to=REMOVED),
    convai2("eval_score: expected a number from 1 to 5, got 6.", "eval_score", to=6),
    convai2("profile_match: expected a number from 0 to 1, got True.", "profile_match", to=True),
    convai2(f"dialog: expected a list of objects, got None. {ELSE}", "dialog", to=None),
]

CAUSES_ROW = {"history": ["a"], "response": "a", "entities": []}
CAUSES = [
    (array(changed(CAUSES_ROW, field, to=to)), f":2: {problem}")
    for field, to, problem in (
        ("history", REMOVED, f"has no 'history'. {ELSE}"),
        ("entities", REMOVED, f"has no 'entities'. {ELSE}"),
        ("history", [1], f"history[0]: expected a string, got 1 (int). {NOT_TEXT}"),
        ("response", None, f"response: expected a string, got None (NoneType). {NOT_TEXT}"),
        ("entities", "a", "entities: expected a list of strings, got 'a' (str)."),
    )
]

SPOKEN = {"speaker": "A", "utterance": "Hi."}
COMPARISON = "human_response-vs-x_response"
PREFERENCE = {
    "history": [SPOKEN],
    "human_response": SPOKEN,
    "x_response": SPOKEN,
    COMPARISON: {"human_evaluation_1": dict.fromkeys(cgdialog.CRITERIA, "Both are good.")},
}
PREFERENCES = [
    (array(changed(PREFERENCE, *path, to=to)), f":2: {problem}")
    for path, to, problem in (
        (["history"], "Hi.", f"history: expected a list of objects, got 'Hi.'. {ELSE}"),
        (["history"], ["Hi."], "history[0]: expected an object, got 'Hi.'."),
        (["x_response"], "Hi.", "x_response: expected an object, got 'Hi.'."),
        ([COMPARISON], REMOVED, "has no comparison, a field named like 'x_response-vs-y_response'. Is this another file?"),
        (["human_response"], REMOVED, f"{COMPARISON}: there is no response of 'human'. It has: x."),
        ([COMPARISON], {}, f"{COMPARISON}: has no 'human_evaluation_1'. {ELSE}"),
        (
            [COMPARISON, "human_evaluation_1", "empathy"],
            "A.",
            f"{COMPARISON}: human_evaluation_1: empathy: 'A.' is none of the four answers: "
            "A is better. B is better. Both are good. Both are bad.",
        ),
    )
]

RESPONSE_SET = {"id": 12, "context": ["Am I late ?"], "positive_responses": ["No ."]}
RENUMBER = "Predictions are keyed by id: renumber one."


def response_set(problem: str, field: str, *, to: Any) -> Case:
    return lines(RESPONSE_SET, changed({**RESPONSE_SET, "id": 13}, field, to=to)), f":2: {problem}"


RESPONSE_SETS = [
    response_set(f"has neither 'id' nor 'dialog_id'. {ELSE}", "id", to=REMOVED),
    response_set(f"has no 'context'. {ELSE}", "context", to=REMOVED),
    response_set(f"has no 'positive_responses'. {ELSE}", "positive_responses", to=REMOVED),
    response_set("context: expected a list of strings, got 'Hi.' (str).", "context", to="Hi."),
    response_set(f"context[1]: expected a string, got None (NoneType). {NOT_TEXT}", "context", to=["Hi.", None]),
    response_set(
        "random_negative_responses: expected a list of strings, got None (NoneType).", "random_negative_responses", to=None
    ),
    response_set(f"the id '12' is also that of {{path}}:1. {RENUMBER}", "id", to="12"),
]
CONTEXTS = [
    (lines({"turns": ["Hi."]}), ":1: has no 'context'. Give the turns as a list of strings."),
    (lines({"context": "Hi."}), ":1: context: expected a list of strings, got 'Hi.' (str)."),
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
        ": holds neither JSON lines nor a JSON array. Give one object a line, "
        '{"context": ["turn", ...], "response": "..."}; make them of a CSV\'s rows first.',
    ),
    (
        lines({"messages": [MESSAGE, MESSAGE]}),
        ":1: holds chat messages. Give the content of the last one as 'response', a string, "
        "and that of those before it as 'context', a list of strings.",
    ),
    (
        lines({"context": [MESSAGE], "response": "hi"}),
        ":1: Example '0': context[0]: expected a string, got the chat message {'role': 'user', 'content': 'hi'}. "
        "Pass its 'content' alone.",
    ),
    (
        lines({"context": ["x"], "response": "y"}, {"id": "k", "context": ["x", None], "response": "y"}),
        f":2: Example 'k': context[1]: expected a string, got None (NoneType). {NOT_TEXT}",
    ),
]
OUR_DIALOGUES = [
    (lines({"a": 1}), ":1: has no 'turns'. Give a list of texts, oldest first."),
    ("", ": is empty, expected one JSON object a line."),
    ("[{", ":1: not valid JSON (Expecting property name enclosed in double quotes). Was the file cut off?"),
    ('{"turns": [\n', ":1: not valid JSON (Expecting value). Was the file cut off?"),
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
    (lines({"dialog": ["a"]}), ":1: dialog[0]: expected an object, got 'a'."),
    (lines({"dialog": [{"text": "a"}]}), f":1: dialog[0]: has no 'speaker', only 'text'. {ELSE}"),
]
TOPICAL_CHAT = [
    (json.dumps([]), f": expected a JSON object of conversations by id. {ELSE}"),
    (json.dumps({}), f": expected a JSON object of conversations by id. {ELSE}"),
    (json.dumps({"t_a": []}), ": t_a: expected an object, got []."),
    (json.dumps({"t_a": {"content": "x"}}), f": t_a: content: expected a list of objects, got 'x'. {ELSE}"),
    (json.dumps({"t_a": {"content": ["x"]}}), ": t_a: content[0]: expected an object, got 'x'."),
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
    "dailydialog": (dailydialog.read, [("\n \n", ": is empty, expected one dialogue a line.")]),
    "dream": (dream.read, DREAM),
    "esconv": (esconv.read, ESCONV),
    "topical chat": (topical_chat.read, TOPICAL_CHAT),
    "personachat": (personachat.read, PERSONACHAT),
    "empathetic dialogues": (empathetic_dialogues.read, EMPATHETIC_DIALOGUES),
}


@pytest.mark.parametrize(
    ("layout", "case"), [(layout, place) for layout, (_, cases) in READERS.items() for place in range(len(cases))]
)
def test_a_malformed_file_is_one_error_that_names_the_line(layout: str, case: int, tmp_path: Path) -> None:
    read, cases = READERS[layout]
    content, problem = cases[case]
    path = tmp_path / "x.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read(path)
    assert str(refused.value) == f"{path}{problem.replace('{path}', str(path))}"
