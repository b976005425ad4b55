"""Every layout of published data sets: a small file of our own text after the public schema, and what a person would score."""

import json

import pytest

from dialeval_plugin import examples_from
from dialeval_plugin.conversations.record import ReadingOptions
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.scored_input import Source
from tests.refusals import refusal

from .reading_back import ANSWER, ASKED, CHAT, FIRST, LATER, MORE, SAID, TEA, read_back

NO = "No, never."
WORSE = [("user", FIRST), ("assistant", NO)]
BAD = {"role": "assistant", "content": NO}
PEOPLE = [(None, text) for _, text in TEA]
HH = f"\n\nHuman: {FIRST}\n\nAssistant: "
OASST = {"message_tree_id": "t", "tree_state": "ready", "prompt": {
    "message_id": "1", "role": "prompter", "text": FIRST, "replies": [{
        "message_id": "2", "parent_id": "1", "role": "assistant", "text": SAID, "replies": [{
            "message_id": "3", "parent_id": "2", "role": "prompter", "text": MORE, "replies": [{
                "message_id": "4", "parent_id": "3", "role": "assistant", "text": LATER, "replies": []}]}]}]}}  # fmt: skip

FOUR_TURNS = {
    "multi-if": {"key": "c", **{f"turn_{n // 2 + 1}_{('prompt', 'response')[n % 2]}": text for n, (_, text) in enumerate(TEA)}},
    "ultrachat, messages": {"prompt": FIRST, "prompt_id": "p", "messages": CHAT},
    "wildchat": {"conversation_hash": "c", "model": "m", "conversation": CHAT, "turn": 2, "language": "English"},
    "multiwoz 2.1, a dialogue": {"goal": {}, "log": [{"text": text, "metadata": {}} for _, text in TEA]},
    "multiwoz 2.2": {"dialogue_id": "c", "services": [], "turns": [
        {"turn_id": str(n), "speaker": ("USER", "SYSTEM")[n % 2], "utterance": text, "frames": []}
        for n, (_, text) in enumerate(TEA)]},
    "taskmaster": {"conversation_id": "c", "instruction_id": "i", "utterances": [
        {"index": n, "speaker": ("USER", "ASSISTANT")[n % 2], "text": text} for n, (_, text) in enumerate(TEA)]},
    "oasst, a tree without branches": OASST,
    "xtuner": {"conversation": [{"system": "Be kind.", "input": FIRST, "output": SAID}, {"input": MORE, "output": LATER}]},
    "red team attempts": {"transcript": HH + SAID + f"\n\nHuman: {MORE}\n\nAssistant: {LATER}", "rating": 1},
    "open-orca of conversations": {"id": "c", "conversations": [
        {"from": ("human", "gpt")[n % 2], "value": text, "weight": n % 2} for n, (_, text) in enumerate(TEA)]},
}  # fmt: skip
BY_NAME = {
    "ultrachat": ("ultrachat", {"id": "c", "data": [text for _, text in TEA]}, [(TEA, [1, 3])]),
    "alpaca": ("question-answer", {"instruction": FIRST, "input": "", "output": SAID}, [(TEA[:2], [1])]),
    "alpaca with input": (
        "question-answer", {"instruction": "Answer.", "input": FIRST, "output": SAID},
        [([("user", f"Answer.\n\n{FIRST}"), ("assistant", SAID)], [1])],
    ),
    "alpaca with history": (
        "question-answer", {"instruction": MORE, "input": "", "output": LATER, "system": "", "history": [[FIRST, SAID]]},
        [(TEA, [3])],
    ),
    "dolly": (
        "question-answer", {"instruction": FIRST, "context": "Tea is a plant.", "response": SAID, "category": "qa"},
        [(TEA[:2], [1])],
    ),
    "open-orca": ("question-answer", {"id": "c", "system_prompt": "", "question": FIRST, "response": SAID}, [(TEA[:2], [1])]),
    "prompt and completion": ("question-answer", {"prompt": FIRST, "completion": SAID}, [(TEA[:2], [1])]),
    "question and answer": ("question-answer", {"question": FIRST, "answer": SAID, "source": "s"}, [(TEA[:2], [1])]),
    "kto of texts": ("question-answer", {"prompt": FIRST, "completion": SAID, "label": True}, [(TEA[:2], [1])]),
    "dailydialog": ("dailydialog", {"dialog": [text for _, text in TEA], "act": [1], "emotion": [0]}, [(PEOPLE, [1, 2, 3])]),
    "persona-candidates": (
        "persona-candidates", {"personality": ["I like tea."], "utterances": [
            {"candidates": [NO, SAID], "history": [FIRST]}, {"candidates": [NO, LATER], "history": [FIRST, SAID, MORE]}]},
        [(TEA, [1, 3])],
    ),
    "numbered turns": (
        "numbered-turns", {"id": "c", **{f"Turn {n}": text for n, (_, text) in enumerate(TEA, start=1)}, "turn 5": None},
        [(TEA, [1, 3])],
    ),
    "numbered questions and answers": (
        "numbered-turns", {"id": "c", **{f"{'aq'[n % 2]}{(n + 1) // 2}": text for n, (_, text) in enumerate(TEA, start=1)}},
        [(TEA, [1, 3])],
    ),
    "topical-chat": (
        "topical-chat", {"t_1": {"article_url": "u", "config": "A", "content": [
            {"message": text, "agent": f"agent_{n % 2 + 1}", "sentiment": "Happy"} for n, (_, text) in enumerate(TEA)]}},
        [([(f"agent_{n % 2 + 1}", text) for n, (_, text) in enumerate(TEA)], [1, 2, 3])],
    ),
    "blended skill talk": (
        "blended-skill-talk", {"personas": [], "previous_utterance": [FIRST, SAID], "free_messages": [MORE],
                               "guided_messages": [LATER], "suggestions": []},
        [([("free", FIRST), ("guided", SAID), ("free", MORE), ("guided", LATER)], [1, 2, 3])],
    ),
    "soda": (
        "soda", {"head": "h", "dialogue": [text for _, text in TEA], "speakers": ["Ann", "Bob", "Ann", "Bob"]},
        [([(("Ann", "Bob")[n % 2], text) for n, (_, text) in enumerate(TEA)], [1, 2, 3])],
    ),
    "coqa": (
        "coqa", {"data": [{"id": "c", "story": "s", "questions": [{"input_text": FIRST}, {"input_text": MORE}],
                           "answers": [{"input_text": SAID}, {"input_text": LATER}]}]}, [(TEA, [1, 3])],
    ),
    "coqa on the hub": (
        "coqa", {"story": "s", "questions": [FIRST, MORE], "answers": {"input_text": [SAID, LATER], "answer_start": []}},
        [(TEA, [1, 3])],
    ),
    "quac": (
        "quac", {"data": [{"title": "t", "paragraphs": [{"id": "c", "context": "s", "qas": [
            {"question": FIRST, "orig_answer": {"text": SAID}}, {"question": MORE, "orig_answer": {"text": LATER}}]}]}]},
        [(TEA, [1, 3])],
    ),
    "ultrafeedback": (
        "completions", {"instruction": FIRST, "completions": [{"model": "m", "response": SAID}, {"response": NO}]},
        [(TEA[:2], [1]), (WORSE, [1])],
    ),
    "nectar": (
        "completions", {"prompt": HH, "answers": [{"answer": SAID, "rank": 1}, {"answer": NO, "rank": 2}]},
        [(TEA[:2], [1]), (WORSE, [1])],
    ),
    "acute": (
        "acute", {"speakers_to_eval": ["a", "b"], "dialogue_dicts": [
            {"speakers": ["h", "a"], "dialogue": [{"id": "h", "text": FIRST}, {"id": "a", "text": SAID}]},
            {"speakers": ["h", "b"], "dialogue": [{"speaker": "h", "text": FIRST}, {"speaker": "b", "text": NO}]}]},
        [(TEA[:2], [1]), (WORSE, [1])],
    ),
    "batch": (
        "batch", {"custom_id": "c", "method": "POST", "url": "u", "body": {"messages": [ASKED]},
                  "response": {"status_code": 200, "body": {"choices": [{"index": 0, "message": ANSWER}]}}}, [(TEA[:2], [1])],
    ),
    "anthropic's batch": (
        "batch", {"custom_id": "c", "params": {"model": "m", "messages": [ASKED]},
                  "result": {"type": "succeeded", "message": {
                      "role": "assistant", "content": [{"type": "text", "text": SAID}]}}},
        [(TEA[:2], [1])],
    ),
}  # fmt: skip
PREFERENCES = {
    "hh-rlhf": {"chosen": HH + SAID, "rejected": HH + NO},
    "trl, texts": {"prompt": FIRST, "chosen": SAID, "rejected": NO},
    "trl, texts of HH": {"prompt": HH, "chosen": SAID, "rejected": NO},
    "trl, conversational": {"prompt": [ASKED], "chosen": [ANSWER], "rejected": [BAD]},
    "trl, implicit prompt": {"chosen": [ASKED, ANSWER], "rejected": [ASKED, BAD]},
    "ultrafeedback, binarised": {"prompt": FIRST, "chosen": [ASKED, ANSWER], "rejected": [ASKED, BAD], "score_chosen": 8},
    "openai": {"input": {"messages": [ASKED], "tools": []}, "preferred_output": [ANSWER], "non_preferred_output": [BAD]},
    "llama-factory, sharegpt": {
        "conversations": [{"from": "human", "value": FIRST}], "chosen": {"from": "gpt", "value": SAID},
        "rejected": {"from": "gpt", "value": NO},
    },
    "llama-factory, alpaca": {"instruction": FIRST, "input": "", "chosen": SAID, "rejected": NO},
    "orca dpo": {"system": "Be kind.", "question": FIRST, "chosen": SAID, "rejected": NO},
    "arena": {"question_id": "q", "model_a": "m", "model_b": "n", "winner": "model_b", "conversation_a": [ASKED, BAD],
              "conversation_b": [ASKED, ANSWER]},
    "arena, 140k": {"id": "c", "model_a": "m", "model_b": "n", "winner": "model_a", "full_conversation": [
        {"user": ASKED, "model_side_a": ANSWER, "model_side_b": BAD}]},
    "arena, 55k": {"id": 1, "prompt": f'["{FIRST}"]', "response_a": f'["{SAID}"]', "response_b": f'["{NO}"]',
                   "winner_model_a": 1, "winner_model_b": 0, "winner_tie": 0},
    "safe-rlhf": {"prompt": FIRST, "response_0": NO, "response_1": SAID, "better_response_id": 1},
    "helpsteer 3": {"context": [ASKED], "response1": NO, "response2": SAID, "overall_preference": 2},
    "shp": {"history": FIRST, "human_ref_A": SAID, "human_ref_B": NO, "labels": 1},
    "webgpt": {"question": {"full_text": FIRST}, "answer_0": NO, "answer_1": SAID, "score_0": -1.0, "score_1": 1.0},
    "alpaca-eval": {"instruction": FIRST, "output_1": NO, "output_2": SAID, "generator_1": "m", "preference": 2.0},
}  # fmt: skip


@pytest.mark.parametrize("name", FOUR_TURNS)
def test_conversations_that_leave_nothing_open(name):
    assert read_back([FOUR_TURNS[name]]) == [(TEA, [1, 3])]


@pytest.mark.parametrize("name", BY_NAME)
def test_rows_that_are_read_by_name(name):
    layout, row, expected = BY_NAME[name]
    with pytest.raises(InputError, match=f"--layout {layout}"):
        read_back([row])
    assert read_back([row], layout=layout) == expected


@pytest.mark.parametrize("name", PREFERENCES)
def test_pairs_of_answers_are_read_by_side(name):
    with pytest.raises(InputError) as caught:
        read_back([PREFERENCES[name]])
    assert str(caught.value) == (
        "conversations[0]: each row has two answers, as 'chosen' and 'rejected' are. Score one of them by --layout preferred "
        "or --layout dispreferred; "
        "`dialeval compare FILE` says how often the preferred one scores higher."
    )
    assert read_back([PREFERENCES[name]], layout="preferred") == [(TEA[:2], [1])]
    assert read_back([PREFERENCES[name]], layout="dispreferred") == [(WORSE, [1])]


def test_letters_of_dstc10_are_the_user_and_the_system():
    turns = [{"speaker": "US"[n % 2], "text": text, "nbest": []} for n, (_, text) in enumerate(TEA)]
    assert read_back([{"turns": turns}]) == [([("US"[n % 2], text) for n, (_, text) in enumerate(TEA)], [1, 3])]


def test_a_battle_of_several_turns_has_the_answers_of_a_side_in_turn():
    row = {"prompt": f'["{FIRST}", "{MORE}"]', "response_a": f'["{SAID}", "{LATER}"]', "response_b": f'["{NO}", "{NO}"]'}
    row |= {"winner_model_a": 1, "winner_model_b": 0, "winner_tie": 0}
    assert read_back([row], layout="preferred") == [(TEA, [1, 3])]


def test_an_object_of_no_layout_names_the_nearest():
    with pytest.raises(InputError) as caught:
        read_back([{"instruction": FIRST, "result": SAID}])
    assert str(caught.value) == (
        "conversations[0]: is no conversation of a known layout; it has 'instruction', 'result'. "
        "Say what its fields are by --columns: messages=NAME of a whole "
        "conversation; context=NAME,response=NAME of a response; conversation=NAME,speaker=NAME,text=NAME of a message. "
        'Or name its layout by --layout, or write each conversation as {"messages": [{"role": "user", "content": "..."}, ...]}.'
    )


def test_a_tie_has_no_preferred_answer():
    row = {**PREFERENCES["arena"], "winner": "tie"}
    assert read_back([row], layout="preferred") == []


def test_a_tree_with_branches_names_the_option():
    branched = {**OASST, "prompt": {**OASST["prompt"], "replies": [
        *OASST["prompt"]["replies"], {"message_id": "5", "role": "assistant", "text": NO, "replies": []}]}}  # fmt: skip
    with pytest.raises(InputError) as caught:
        read_back([branched])
    assert str(caught.value) == (
        "conversations[0]: conversation 't': its messages have 2 branches, and nothing says which was shown. "
        "Read each answer once, after what led to it, by --branches all."
    )
    assert read_back([branched], branches="all") == [(TEA, [1, 3]), (WORSE, [1])]


def test_halves_of_a_batch_are_put_together(tmp_path):
    _, whole, expected = BY_NAME["batch"]
    halves = [{"custom_id": "c", "method": "POST", "body": whole["body"]}, {"custom_id": "c", "response": whole["response"]}]
    for half in halves:
        with pytest.raises(InputError, match="cat REQUESTS ANSWERS > both"):
            read_back([half])
    assert read_back(halves, layout="batch") == expected
    with pytest.raises(InputError) as caught:
        read_back(halves[1:], layout="batch")
    assert str(caught.value) == (
        "conversations[0]: is an answer alone, and the other half is not in this file. "
        "Put both files together: cat REQUESTS ANSWERS > both.jsonl"
    )


def test_rows_of_empathetic_dialogues_are_joined_by_name():
    texts = [text.replace(",", "_comma_") for _, text in TEA]
    rows = [{"conv_id": "hit:0", "utterance_idx": n + 1, "context": "afraid", "prompt": "p", "speaker_idx": n % 2,
             "utterance": text, "selfeval": "5", "tags": ""} for n, text in enumerate(texts)]  # fmt: skip
    with pytest.raises(InputError, match="--layout empathetic-dialogues"):
        read_back(rows)
    said = [(f"speaker {n % 2}", text) for n, (_, text) in enumerate(TEA)]
    assert read_back(rows, layout="empathetic-dialogues") == [(said, [1, 2, 3])]


EXCHANGES = [
    {"conv_id": "c", "turn": 2, "user": MORE, "assistant": LATER, "run": {"model": "new"}},
    {"conv_id": "c", "turn": 1, "user": FIRST, "assistant": SAID, "run": {"model": "old"}},
]


def test_rows_with_a_question_and_its_answer_are_one_conversation_by_their_id_and_number():
    later, first = sorted(examples_from(EXCHANGES, keep=["run.model"]), key=lambda one: one.origin.kept)
    assert [turn.text for turn in (*first.context, first.response)] == [FIRST, SAID]
    assert [turn.text for turn in (*later.context, later.response)] == [FIRST, SAID, MORE, LATER]
    assert (first.origin.kept, later.origin.kept) == ((("run.model", "old"),), (("run.model", "new"),))


def test_rows_whose_question_may_be_a_task_ask_how_to_join_them():
    tasks = [{"session_id": "s", "prompt": row["user"], "output": row["assistant"]} for row in EXCHANGES[::-1]]
    message = refusal(examples_from, tasks)
    assert "--layout exchange-rows, or each alone by --layout question-answer" in message
    assert [len(one.context) for one in examples_from(tasks, layout="exchange-rows")] == [1, 3]
    assert [len(one.context) for one in examples_from(tasks, layout="question-answer")] == [1, 1]


@pytest.mark.parametrize("layout", ["question-answer", "exchange-rows"])
def test_a_question_without_an_answer_is_counted_and_the_others_are_read(layout, tmp_path):
    (path := tmp_path / "log.jsonl").write_text(
        "".join(json.dumps({"session_id": "s", "question": text, "answer": answer}) + "\n"
                for text, answer in ((FIRST, SAID), (MORE, None))), encoding="utf-8",
    )  # fmt: skip
    source = Source(str(path), ReadingOptions(layout=layout))
    assert [placed.item.response.text for placed in source.items("turn")] == [SAID]
    assert sum(source.reading.left_out.values()) == 1


def test_a_name_of_a_user_is_no_question():
    for said in ("message", "body"):
        assert "is no conversation of a known layout" in refusal(
            examples_from, [{"session_id": "s", "user": "ann", said: SAID}]
        )
    asked = {**EXCHANGES[0], "question": FIRST}
    assert "--columns" in refusal(examples_from, [asked])


def test_parlai_text(tmp_path):
    path = tmp_path / "dialogues.txt"
    lines = [f"text:{FIRST}\tlabels:{SAID}", f"text:{MORE}\tlabels:{LATER}\tepisode_done:True"]
    path.write_text("\n".join([*lines, "", *lines]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="--layout parlai"):
        list(Source(str(path)).items("turn"))
    items = [placed.item for placed in Source(str(path), ReadingOptions(layout="parlai")).items("turn")]
    assert [([turn.text for turn in item.context], item.response.text) for item in items] == [
        ([FIRST], SAID), ([FIRST, SAID, MORE], LATER),
    ] * 2  # fmt: skip


def test_rows_of_alpaca_with_a_history_are_no_published_corpus(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([{"instruction": MORE, "input": "", "output": LATER, "history": [[FIRST, SAID]]}]))
    with pytest.raises(InputError, match="--layout question-answer"):
        list(Source(str(path)).items("turn"))
