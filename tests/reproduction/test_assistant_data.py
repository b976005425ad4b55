"""Files of answers are read into pairs and rated answers, each with its cluster, and no reported text is learned."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Example
from reproduction.assistant import data
from reproduction.assistant.leaks import leave_out_reported, overlap_table

PROMPT = "How do I take the limescale out of an old kettle without vinegar?"


def reply(id: str, text: str, rank: int | None, *replies: dict[str, Any], role: str = "assistant") -> dict[str, Any]:
    ranked = {} if rank is None else {"rank": rank}
    return {"message_id": id, "text": text, "role": role, "lang": "en", "replies": list(replies), **ranked}


def rated(id: str, context: Sequence[str], response: str, **ratings: float) -> dict[str, Any]:
    row = {"set": "one", "id": id, "cluster": "c", "context": context, "response": response, "ratings": ratings}
    return {**row, "system": "", "lang": "en"}


TREE = {
    "message_tree_id": "tree",
    "prompt": reply(
        "p",
        PROMPT,
        None,
        reply("b", "Boil it.", 1),
        reply("a", "Use citric acid.", 0, reply("q", "How much?", None, reply("d", "Two spoons.", None), role="prompter")),
        reply("c", "No idea.", 2),
        role="prompter",
    ),
}
ALPACA_EVAL = {
    "dataset": "koala",
    "instruction": PROMPT,
    "reference": "Citric acid dissolves limescale.",
    "responses": [
        {"model": "good", "response": "Citric acid.", "preference": "1.9"},
        {"model": "bad", "response": "Buy a new one.", "preference": "1.1"},
        {"model": "bad_verbose", "response": "You could buy a new one, as it were, and so on.", "preference": "1.25"},
        {"model": "NullModel", "response": "[[A]]", "preference": "2.0"},
        {"model": "silent", "response": " ", "preference": "1.0"},
    ],
}
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello."},
]
FILES: dict[str, list[Any]] = {
    "pairs_pandalm.jsonl.gz": [
        {
            "id": "p0",
            "cluster": "k",
            "context": [PROMPT],
            "better": "Citric acid.",
            "worse": "Dunno.",
            "group": "a_b",
            "votes": 2,
        },
        {"id": "p1", "cluster": "k", "context": [PROMPT], "better": "Citric acid.", "worse": "", "group": "a_b", "votes": 3},
    ],
    "oasst_en_100_tree.jsonl": [TREE],
    "alpaca_eval_preferences.jsonl.gz": [ALPACA_EVAL],
    "rated_halie.jsonl.gz": [rated("h", ["Hi.", "Hello.", "Why?"], "So.", overall=0.5), rated("i", ["Hi."], " ", overall=0)],
    "dialogues_halie.jsonl.gz": [
        {
            "id": "w",
            "cluster": "w",
            "turns": ["Hi.", "Ho."],
            "roles": ["user", "assistant"],
            "ratings": {"reuse": 4},
            "system": "J",
        }
    ],
    "rated_taskmaster_reward.jsonl.gz": [rated("t", ["Tickets"], "Which film?", reward=1)],
    "rated_begin.jsonl.gz": [{**rated("b", ["Cats?"], "Cats purr.", attributable=1), "facts": ["Cats purr."], "group": "wow"}],
    **{f"rated_uss_{name}.jsonl.gz": [rated(f"u{name}", ["Tea?"], "Yes.", satisfaction=3)] for name in data.USS},
    "shepherd_human.jsonl": [
        {"id": 7, "dataset": "PIQA", "question": "Why?", "answer": "So.", "feedback": "It gives no reason."}
    ],
    "dpo_en_demo.json": [
        {
            "conversations": [{"from": "system", "value": "Be brief."}, {"from": "human", "value": "Hi"}],
            "chosen": {"from": "gpt", "value": "Hello."},
            "rejected": {"from": "gpt", "value": "What?"},
        }
    ],
    "kto_en_demo.json": [{"messages": CHAT, "label": True}, {"messages": CHAT, "label": False}],
    "alpaca_en_demo.json": [{"instruction": "Translate.", "input": "Hallo", "output": "Hello"}],
    **{
        f"diasafety_{part}.json": [{"context": "I feel ill.", "response": "Rest.", "category": "Risk", "label": label}]
        for part, label in (("train", "Unsafe"), ("val", "Safe"))
    },
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row or two of each file, in its layout."""
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    (tmp_path / data.FOLDER).mkdir()
    for name, rows in FILES.items():
        text = json.dumps(rows) if name.endswith(".json") else "".join(json.dumps(row) + "\n" for row in rows)
        packed = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
        (tmp_path / data.FOLDER / name).write_bytes(packed)


def texts(pairs: Sequence[data.AnswerPair]) -> list[tuple[str, str]]:
    return [(pair.preferred.response.text, pair.other.response.text) for pair in pairs]


@pytest.mark.usefixtures("files")
def test_pairs_have_the_preferred_answer_first_and_no_blank_one() -> None:
    assert texts(data.pandalm_pairs()) == [("Citric acid.", "Dunno.")]
    assert [(pair.cluster, pair.preferred.id, pair.other.id, pair.margin) for pair in data.pandalm_pairs()] == [
        ("k", "p0+", "p0-", 2 / 3)
    ]
    (dpo,) = data.dpo_pairs()
    assert texts([dpo]) == [("Hello.", "What?")]
    assert [(turn.speaker, turn.text) for turn in dpo.preferred.context] == [("user", "Hi")]


@pytest.mark.usefixtures("files")
def test_ranked_siblings_of_a_tree_are_pairs_of_its_cluster() -> None:
    pairs = data.oasst_pairs()
    assert texts(pairs) == [("Use citric acid.", "Boil it."), ("Use citric acid.", "No idea."), ("Boil it.", "No idea.")]
    assert [(pair.cluster, pair.margin) for pair in pairs] == [("tree", 0.5), ("tree", 1.0), ("tree", 0.5)]


@pytest.mark.usefixtures("files")
def test_answers_of_alpaca_eval_are_compared_with_the_reference_and_with_each_other_but_for_the_one_that_games_it() -> None:
    assert texts(data.alpaca_eval_reference_pairs()) == [
        ("Citric acid.", "Citric acid dissolves limescale."),
        ("Citric acid dissolves limescale.", "Buy a new one."),
    ]
    drawn = data.alpaca_eval_pairs(least_margin=0.5)
    assert {pair.preferred.response.text for pair in drawn} == {"Citric acid."}
    assert sorted(round(pair.margin, 2) for pair in drawn) == [0.65, 0.8]
    assert texts(data.null_model_pairs("bad")) == [("Buy a new one.", "[[A]]")]
    assert texts(data.length_variant_pairs()) == [("You could buy a new one, as it were, and so on.", "Buy a new one.")]
    assert len(data.alpaca_eval_pairs(1)) == 1
    assert {pair.is_close for pair in data.alpaca_eval_pairs(close=True)} <= {True}


def test_pairs_are_close_within_a_tenth_of_their_length_and_long_from_a_hundred_words_each() -> None:
    def pair(n: int, m: int) -> data.AnswerPair:
        one, other = (Example.from_texts(["Hi."], "word " * words) for words in (n, m))
        return data.AnswerPair("c", one, other)

    assert [pair(*words).is_close for words in ((100, 110), (110, 100), (100, 111), (4, 5))] == [True, True, False, False]
    assert [pair(*words).is_long for words in ((100, 110), (99, 300))] == [True, False]


@pytest.mark.usefixtures("files")
def test_rated_answers_keep_their_ratings_clusters_and_who_spoke() -> None:
    (halie,) = data.halie_answers()
    assert (halie.cluster, halie.answer.ratings) == ("c", {"overall": (0.5,)})
    assert [turn.speaker for turn in halie.answer.context] == ["user", "assistant", "user"]
    assert [one.dialogue.ratings for one in data.halie_conversations()] == [{"reuse": (4.0,)}]
    assert [(one.group, one.answer.facts) for one in data.begin_answers()] == [("wow", ("Cats purr.",))]
    assert [one.answer.ratings["thumb"] for one in data.kto_answers()] == [(1.0,), (0.0,)]
    assert [[turn.text for turn in one.answer.context] for one in data.kto_answers()] == [["Hi"], ["Hi"]]
    assert [(one.answer.ratings["safe"], one.group) for one in data.RATED["diasafety val"]()] == [((1.0,), "Risk")]
    assert [one.critique for one in data.shepherd_answers()] == ["It gives no reason."]
    assert [[turn.text for turn in one.answer.context] for one in data.alpaca_answers()] == [["Translate.\n\nHallo"]]
    assert {name: len(read()) for name, read in data.RATED.items()} == {**dict.fromkeys(data.RATED, 1), "kto": 2}


@pytest.mark.usefixtures("files")
def test_good_answers_are_those_that_people_put_first() -> None:
    assert [(one.group, one.answer.response.text) for one in data.best_answers()] == [
        ("oasst", "Use citric acid."),
        ("dpo", "Hello."),
        ("kto", "Hello."),
    ]


def test_rows_with_a_reported_prompt_or_answer_are_left_out() -> None:
    reported = [Example.from_texts(["Hi!"], "Pour one spoon of citric acid into boiling water and wait half an hour.")]
    same_prompt = Example.from_texts(["hi"], "Hello.")
    same_answer = Example.from_texts(["Limescale?"], "Pour one spoon of citric acid into boiling water, and wait half an hour!")
    in_the_context = Example.from_texts(["Limescale?", reported[0].response.text, "And then?"], "Rinse it.")
    short_text = Example.from_texts(["Good evening, and where am I?", "In London.", "Hi!"], "Yes.")
    rows = [same_prompt, same_answer, in_the_context, short_text]
    assert leave_out_reported(rows, reported, lambda row: [row]) == [short_text]
    assert leave_out_reported([rows], reported, lambda row: row) == []


@pytest.mark.usefixtures("files")
def test_the_table_counts_prompts_of_what_is_learned_from_that_a_reported_set_has() -> None:
    rows = {row["learned from"]: row for row in overlap_table().rows}
    expected = {"learned from": "alpaca_eval", "answers": 5, "prompts": 1, "pandalm": "1", "oasst": "1", "halie": "0"}
    assert rows["alpaca_eval"] == expected
    assert (rows["pandalm"]["pandalm"], rows["pandalm"]["oasst"]) == ("", "1")


@pytest.mark.real_data
def test_the_public_files_are_read_whole(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "alpaca_eval_answers", cache(data.alpaca_eval_answers))  # four of the sets are drawn from them
    found = {name: len(read()) for name, read in data.PAIRS.items()}
    assert found == {
        "pandalm": 842,
        "oasst": 733,
        "dpo": 300,
        "alpaca_eval": 14640,
        "alpaca_eval, reference": 38836,
        "alpaca_eval, NullModel": 732,
        "alpaca_eval, concise or verbose": 1971,
    }
