"""Reader of a row that is one response with its context, or that may have the last answer next to its turns."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dialeval_plugin.core.dialogue import Example, Origin, Turn, check_text
from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.files import Line

from .layouts.layout import ANSWERS, AS_IT_SHOULD_BE, PYTHON_LIST, listed, messages_of, required_list
from .messages import (
    ASSISTANT,
    OWN_TAG,
    PREFIX,
    SYSTEM,
    TEXTLESS,
    USER,
    columns_of,
    conversation_in,
    is_message,
    likely_columns,
    named_lines,
    numbered_turns,
    parsed_cell,
    sides_of,
    speaker_of,
    split_dialogue,
    tag_of,
    turn_of,
)
from .record import Reading, id_text, kept_fields

OF_AN_EXAMPLE = ("context", "response", "id", "references", "facts")
"""Fields of such a row."""
QUESTIONS = ("question", "query", "instruction", "prompt", "input", "user_input", "user", "request")
"""Fields next to a response that may be what was said before it."""


def response_of(
    row: Line,
    line: Line,
    number: int,
    reading: Reading,
    *,
    is_table: bool,
    is_wanted: Callable[[object], bool] | None = None,
) -> Example | None:
    """Return the response of a row; None if it is not wanted, by its context.

    `line` is the row before its columns were renamed, and `number` its id if it has none. See `read_rows` for the others.
    """
    options = reading.options
    may_be_cells = is_table or bool(options.columns)
    value, is_renamed = row.value, row is not line
    given: dict[str, object] = {"turns": options.choice, "branches": options.branches, "order": options.order}
    given["columns"] = options.columns if options.columns and not is_renamed else None
    if unused := next((name for name, one in given.items() if one is not None), None):
        raise InputError(f"{row.where}: is one response with its context, where --{unused} has no meaning. Leave it out.")
    if not is_renamed:
        _check_response(row)
    if may_be_cells:
        value = {"context": (), "response": "", **{name: value[name] for name in OF_AN_EXAMPLE if name in value}}
    own = value.get("id")
    id = str(number) if own is None or (isinstance(own, str) and not own) else id_text(own, f"{row.where}: id")
    if (other := reading.places.other(id, row.where)) is not None:
        raise InputError(f"{row.where}: the id {id!r} is also that of {other}. Give every example its own.")
    if is_wanted is not None and not is_wanted(value.get("context")):
        return None
    if unknown := sorted(set(value) - set(OF_AN_EXAMPLE)):
        raise InputError(
            f"{unknown_name(f'{row.where}: there is no field {unknown[0]!r}', unknown[0], sorted(OF_AN_EXAMPLE))} "
            "To leave other fields alone, name those to read by --columns context=NAME,response=NAME"
        )
    if missing := [name for name in ("context", "response") if name not in value]:
        raise InputError(f"{row.where}: has no {missing[0]!r}. Give a list of turns as context and a string as response.")
    where = f"{row.where}: Example {id!r}"

    def texts(name: str) -> list[Any]:
        values = value.get(name, ())
        if name == "context" and isinstance(values, str) and (messages := split_dialogue(values)) is not None:
            return messages
        if may_be_cells:
            values = parsed_cell(values)
            if name == "context" and isinstance(values, Mapping):
                values = messages_of(values, USER) or values
            if isinstance(values, str) and not PYTHON_LIST.match(values):
                lines = [one.strip() for one in values.strip().split("\n")] if is_table else [values]
                values = lines if values.strip() else []
        return required_list(values, f"{where}: {name}", "strings")

    answer, places = value["response"], (f"{where}: context", f"{where}: response")
    if may_be_cells or not isinstance(answer, str):
        answer = _last_answer(answer, places[1], reading.left_out)
    context, response = context_and_response(texts("context"), answer, places, reading.left_out)
    references, facts = (
        tuple(check_text(text, f"{where}: {name}[{index}]") for index, text in enumerate(texts(name)))
        for name in ("references", "facts")
    )
    reading.layouts["responses"] += 1
    origin = Origin(id, None, row.where, kept_fields({}, line.value, reading))
    return Example(id, context, response, references, facts, origin=origin)


def _check_response(row: Line) -> None:
    """Raise an error for a row that may have its response, or what was said before it, in another field."""
    value = row.value
    questions = [name for name in value if name in QUESTIONS or name.endswith("history")]
    texts = [name for name in ANSWERS if isinstance(value.get(name), str) and " " in value[name]]
    answer = "response" if "response" in value else next(iter(texts), None)
    if questions and answer:
        others = f",facts=context, or by --columns context=context,response={answer}" if "context" in value else ""
        raise InputError(
            f"{row.where}: has {questions[0]!r} next to {answer!r}, so that it is not known what was said before the response. "
            f"Say so by --columns context={questions[0]},response={answer}{others}."
        )
    if "context" in value and answer not in ("response", None):
        advice = f"If it is {answer!r}, say so by --columns context=context,response={answer}."
        raise InputError(f"{row.where}: has no 'response'. {advice}")


def likely_table(value: Mapping[str, Any]) -> str:
    """Return the option by which a row, or the list in it, may be read as messages or a question and its answer; or ""."""
    within = {f"{name}.{inner}": of for name, one in value.items() if isinstance(one, Mapping) for inner, of in one.items()}
    named = {**value, **within}.items()
    lists = [(name, elements) for name, one in named if (elements := listed(one)) and isinstance(elements[0], Mapping)]
    if of_messages := [name for name, elements in lists if is_message(elements[0])]:
        return f"--columns {shlex.quote(f'messages={of_messages[0]}')}"
    name, (message, *_) = next(iter(lists), ("", [value]))
    if not name and (text := next((name for name, one in value.items() if isinstance(one, str) and named_lines(one)), None)):
        return f"--columns {shlex.quote(f'messages={text}')}"
    likely = likely_columns(message, is_row=not name)
    for inner, one in value.items() if not (name or likely) else ():
        if isinstance(one, Mapping) and likely_columns(one, is_row=True).startswith("speaker="):
            return f"--columns {columns_of(one).replace('=', f'={inner}.')}"
    if not likely or not (name or likely.startswith("speaker=")):
        spoken = {name: one for name, one in value.items() if isinstance(one, str) and " " in one}
        question = _first_field(spoken, _QUESTION, ())
        answer = _first_field({name: one for name, one in spoken.items() if name != question}, _ANSWER, ())
        is_earlier = (re.search("(?i)context|history|previous", name) and listed(value[name]) is not None for name in value)
        is_known = question and answer and not any(is_earlier)
        return f"--columns {shlex.quote(f'context={question},response={answer}')}" if is_known else ""
    conversation = conversation_in(value)
    whose = f"messages={name}," if name else f"conversation={conversation}," if conversation else ""
    return f"--columns {shlex.quote(whose + likely)}"


def _last_answer(value: Any, where: str, left_out: Counter[str]) -> Any:
    """Return the answer shown to the user, from a response that is a list of messages, an API's object, or either as JSON."""
    cell, value = value, parsed_cell(value)
    if isinstance(value, str):
        messages = split_dialogue(value)
        return messages[0] if messages is not None and len(messages) == 1 else value
    if not isinstance(value, (list, Mapping)) or is_message(value):
        return value
    if isinstance(value, list) and len(value) > 1 and all(isinstance(one, str) for one in value):
        raise InputError(
            f"{where}: has {len(value)} texts, and nothing says which was shown. Keep one; of a table that is written by its "
            "columns, write each row as an object of its own."
        )
    messages = messages_of(value, ASSISTANT)
    if not messages:
        raise InputError(f"{where}: expected a string, got {cell!r:.80} ({type(cell).__name__}). Pass text, or a chat message.")
    spoken = [one for one in messages if turn_of(one, where, left_out) is not None]
    if len(spoken) > 1:
        left_out["earlier message of the response"] += len(spoken) - 1
    return spoken[-1] if spoken else messages[-1]


def context_and_response(
    context: Sequence[object], response: object, names: tuple[str, str], left_out: Counter[str]
) -> tuple[tuple[Turn, ...], Turn]:
    """Return the turns before a response, oldest first, and the response, each given as a string or a chat message.

    A plain response to chat messages is the assistant's. A message without text is a blank response, which has no score. If a
    plain response begins with `System: `, as in FED, it and the plain turns lose such tags; so do texts that all begin with
    roles. Errors call the two by their `names`; `left_out` counts messages and parts that are no turns.
    """
    if isinstance(response, str):
        tags = [tag for one in (*context, response) if isinstance(one, str) and (tag := tag_of(one))]
        tagged = [speaker_of(tag[1]) for tag in tags]
        if response.startswith("System: "):
            context, response = [_untagged(value, left_out) for value in context], _untagged(response, left_out)
        elif 1 < len(tags) == len(context) + 1 and (tagged[-1] == ASSISTANT or (USER in tagged and tagged[-1] in tagged[1:-1])):
            left_out["speaker tag"] += len(tags)
            *context, answered = [{"role": tag[1], "content": tag.string[tag.end() :]} for tag in tags]
            response = answered["content"]
        answer = turn_of({"role": ASSISTANT, "content": check_text(response, names[1])}, names[1], left_out)
        if answer is not None and (tag := OWN_TAG.match(answer.text)):
            left_out["speaker tag"] += 1
            answer = Turn(answer.text[tag.end() :])
        answer = Turn("" if answer is None else answer.text)
    else:
        without_text = left_out[TEXTLESS]
        answer = turn_of(response, names[1], left_out)
        if (answer is None and left_out[TEXTLESS] == without_text) or (answer is not None and answer.speaker == SYSTEM):
            role = next((response[name] for name in ("role", "from", "speaker") if name in response), None)  # type: ignore[index, operator]
            raise InputError(f"{names[1]}: expected a response, got a message of the role {role!r}. Pass the assistant's.")
    places = ((f"{names[0]}[{index}]", value) for index, value in enumerate(context))
    turns = tuple(turn for _, turn in numbered_turns(places, left_out))
    is_chat = any(turn.speaker in (USER, ASSISTANT) for turn in turns)
    if answer is None or (answer.speaker is None and is_chat):
        answer = Turn("" if answer is None else answer.text, ASSISTANT)
    return turns, answer


def _untagged(value: object, left_out: Counter[str]) -> object:
    if not isinstance(value, str) or (match := PREFIX.match(value)) is None:
        return value
    left_out["speaker tag"] += 1
    return value[match.end() :].strip()


_NOT_SAID = f"{AS_IT_SHOULD_BE}|correct|chosen|rejected|system"


def _named(last_words: str) -> re.Pattern[str]:
    """Return a pattern of names in snake case by their last words, without names of what should have been said."""
    return re.compile(
        rf"(?!.*(?:{_NOT_SAID}))(?:[a-z0-9]+_)*(?:{last_words})(?:_(?:text|message|content|turn|input|query|utterance))?"
    )


_ANSWER = _named(
    r"(?:answer|response|resp|res|reply|replie|output|completion|prediction|predicted|generation|generated|candidate|utterance|artifact)s?"
    r"|assistant|bot|ai|result|message"
)
_QUESTION = _named("question|query|prompt|input|request|message|turn|user|human|customer")
_GREETING = re.compile("(?:first|opening|welcome|initial)_(?:mes|message)|greeting")
_MAY_BE_NAMES = ("assistant", "bot", "ai", "user", "human", "customer", "input", "message", "result")
"""Names under which one word may be the name of a person or a model, or say how a request went."""


def answer_beside(row: Mapping[str, Any], messages: Sequence[object], turns: Sequence[Turn]) -> str | None:
    """Say which field of a row may have the answer to its turns, or to a question next to them; None without one."""
    if other := _other_list(row, messages, turns):
        return f"has other messages in {other!r}. Read these by --columns messages={shlex.quote(other)}."
    if (greeting := _first_field(row, _GREETING, turns)) is not None:
        return f"has {greeting!r} next to its turns, which may have been said before them. Add it to the turns."
    if (answer := _first_field(row, _ANSWER, turns)) is None:
        return None
    if turns[-1].speaker == USER:
        option = shlex.quote(f"context=NAME,response={answer}")
        return f"has {answer!r} next to its turns, which may be the last answer. Say so by --columns {option}."
    if (question := _first_field(row, _QUESTION, turns)) in (None, answer):
        return None
    return f"has {question!r} and {answer!r} next to its turns, which may be the last two. Add them to the turns."


def _other_list(row: Mapping[str, Any], messages: Sequence[object], turns: Sequence[Turn]) -> str | None:
    """Return the field of a list of other messages, with an answer that is no turn; None without one."""
    texts = {turn.text for turn in turns}
    for name, value in row.items():
        others = listed(value) or []
        if others not in ([], messages) and not re.search(_NOT_SAID, str(name)) and {USER, ASSISTANT} <= sides_of(others):
            with contextlib.suppress(InputError):
                read = [turn for _, turn in numbered_turns(((str(name), one) for one in others), Counter())]
                if any(turn.speaker == ASSISTANT and turn.text not in texts for turn in read):
                    return str(name)
    return None


def _first_field(row: Mapping[str, Any], names: re.Pattern[str], turns: Sequence[Turn]) -> str | None:
    """Return the first field of such a name with words that are no turn."""
    for name, value in row.items():
        spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[\s-]+", "_", str(name)).lower()
        if not names.fullmatch(spelled):
            continue
        texts = {" ".join(text.split()) for text in _texts_in(value)}
        if spelled in _MAY_BE_NAMES:
            texts = {text for text in texts if " " in text}
        if any(texts) and not texts & {" ".join(turn.text.split()) for turn in turns}:
            return str(name)
    return None


def _texts_in(value: object) -> Iterator[str]:
    """Yield the texts of a field, also those inside of it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple, Mapping)):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _texts_in(one)
