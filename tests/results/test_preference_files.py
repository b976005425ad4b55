"""Files of preferences: five layouts of the same pair, shares by length, ties, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.signature import short_form
from dialeval_plugin.results.preferences import preference_shares, read_pairs
from dialeval_plugin.statistics.means import mean_interval
from dialeval_plugin.version import __version__
from tests.cli.running import run, write_rows
from tests.refusals import refusal, refused

ASKED = [
    {"role": "user", "content": "Do you like tea?"},
    {"role": "assistant", "content": "I do."},
    {"role": "user", "content": "Which one?"},
]
GOOD, BAD = "Green tea, most of all.", "No."
SPOKEN = "\n\nHuman: Do you like tea?\n\nAssistant: I do.\n\nHuman: Which one?\n\nAssistant:"


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


LAYOUTS: dict[str, dict[str, Any]] = {
    "TRL, messages": {"prompt": ASKED, "chosen": [said(GOOD)], "rejected": [said(BAD)]},
    "TRL, implicit prompt": {"chosen": [*ASKED, said(GOOD)], "rejected": [*ASKED, said(BAD)]},
    "TRL, a transcript as prompt": {"prompt": SPOKEN, "chosen": f" {GOOD}", "rejected": BAD},
    "HH-RLHF": {"chosen": f"{SPOKEN} {GOOD}", "rejected": f"{SPOKEN} {BAD}"},
    "UltraFeedback": {
        "prompt": "Which one?",
        "chosen": [*ASKED, said(GOOD)],
        "rejected": [*ASKED, said(BAD)],
        "score_chosen": 8,
    },
    "OpenAI": {"input": {"messages": ASKED}, "preferred_output": [said(GOOD)], "non_preferred_output": [said(BAD)]},
    "arena, A": {"conversation_a": [*ASKED, said(GOOD)], "conversation_b": [*ASKED, said(BAD)], "winner": "model_a"},
    "arena, B": {"conversation_a": [*ASKED, said(BAD)], "conversation_b": [*ASKED, said(GOOD)], "winner": "model_b"},
    "ShareGPT": {
        "conversations": [
            {"from": {"user": "human", "assistant": "gpt"}[one["role"]], "value": one["content"]} for one in ASKED
        ],
        "chosen": {"from": "gpt", "value": GOOD},
        "rejected": {"from": "gpt", "value": BAD},
    },
    "messages in a cell": {
        "prompt": json.dumps(ASKED),
        "chosen": json.dumps([said(GOOD)]),
        "rejected": json.dumps([said(BAD)]),
    },
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_gives_the_same_pair(layout: str, tmp_path: Path) -> None:
    found = read_pairs(write_rows(tmp_path / "pairs.jsonl", [LAYOUTS[layout]]))
    assert found is not None
    (pair,) = found.pairs
    assert [[(turn.speaker, turn.text) for turn in (*one.context, one.response)] for one in pair] == [
        [*((turn["role"], turn["content"]) for turn in ASKED), ("assistant", answer)] for answer in (GOOD, BAD)
    ]


def test_a_text_alone_is_the_prompt_of_the_user(tmp_path: Path) -> None:
    rows = [{"prompt": "Tea?", "chosen": "Yes.", "rejected": "No.", "id": "x"}]
    for path in (write_rows(tmp_path / "pairs.jsonl", rows), tmp_path / "pairs.parquet", tmp_path / "pairs.csv"):
        if path.suffix != ".jsonl":
            import pandas

            frame = pandas.DataFrame(rows)
            (frame.to_parquet if path.suffix == ".parquet" else frame.to_csv)(path, index=False)
        found = read_pairs(path)
        assert found is not None
        assert [turn.speaker for turn in (*found.pairs[0].preferred.context, found.pairs[0].preferred.response)] == [
            "user",
            "assistant",
        ]


def rows(n: int) -> list[dict[str, Any]]:
    """Pairs of four kinds, two of each prompt: preferred is the longer one, the shorter one, and twice one of like length."""
    answers = [("one two three", "one"), ("one", "one two three"), ("one two", "three four"), ("a b c d e", "f g h i")]
    found = []
    for number in range(n):
        preferred, other = answers[number % 4]
        found.append({"prompt": f"Question {number // 2}?", "chosen": preferred, "rejected": other})
    return found


def test_shares_are_by_length_with_ties_as_half_and_intervals_over_prompts(tmp_path: Path) -> None:
    pairs = read_pairs(write_rows(tmp_path / "pairs.jsonl", rows(40)))
    assert pairs is not None
    found = preference_shares(pairs, load_scorer("response_length"))
    points = [1.0, 0.0, 0.5, 1.0] * 10
    assert found.shares["all"][0] == mean_interval(points, clusters=[number // 2 for number in range(40)])
    assert {name: (share.value, longer.value) for name, (share, longer) in found.shares.items()} == {
        "is shorter": (0.0, 0.0),
        "is of like length": (0.75, 0.75),
        "is longer": (1.0, 1.0),
        "all": (0.625, 0.625),
    }
    assert found.n_ties == 10
    assert found.verdict == (
        "The preferred answer scores higher in 0.625 [0.562, 0.688, rough] of 40 pairs; it is the longer one in "
        "0.625 [0.562, 0.688, rough]."
    )


def test_a_share_that_may_be_chance_says_which_one_would_not(tmp_path: Path) -> None:
    long, short = "a long answer", "short"
    given = [
        {"prompt": f"{number}?", "chosen": (long, short)[number % 2], "rejected": (short, long)[number % 2]}
        for number in range(40)
    ]
    pairs = read_pairs(write_rows(tmp_path / "pairs.jsonl", given))
    assert pairs is not None
    found = preference_shares(pairs, load_scorer("response_length"))
    assert found.detectable is not None
    assert found.verdict == (
        "The preferred answer scores higher in 0.500 [0.325, 0.669] of 40 pairs; it is the longer one in 0.500 [0.325, 0.669]. "
        "That may be chance: with these 40 prompts 0.728 would be shown four times in five."
    )


def test_what_is_no_preference_is_left_out_and_counted(tmp_path: Path) -> None:
    battle = LAYOUTS["arena, A"]
    blank = {**battle, "conversation_b": [*ASKED, said(" ")]}
    same = {**battle, "conversation_b": battle["conversation_a"]}
    ties = [{**battle, "winner": winner} for winner in ("tie", "tie (bothbad)", "both_bad")]
    named = {**battle, "question_id": 1}
    no_answer, no_turn = {**battle, "conversation_b": None}, {**battle, "conversation_a": [], "conversation_b": []}
    path = write_rows(tmp_path / "pairs.jsonl", [battle, blank, same, *ties, named, named, no_answer, no_turn])
    done = run("compare", path, "--scorer", "response_length")
    assert done.stdout == (
        "the preferred answer  scores higher  95 % interval  is longer  95 % interval  pairs  prompts\n"
        "--------------------  -------------  -------------  ---------  -------------  -----  -------\n"
        "is longer                     1.000                     1.000                     2        1\n"
        "all                           1.000                     1.000                     2        1\n"
        "\n"
        "The preferred answer scores higher in 1.000 of 2 pairs; it is the longer one in 1.000.\n"
        "equal scores, which count as half: 0 of 2 pairs\n"
        "left out, copies of earlier rows: 1 pairs\n"
        "left out, an answer that cannot be read: 2 pairs\n"
        "left out, equal answers: 1 pairs\n"
        "left out, ties of the raters: 3 pairs\n"
        "left out, an answer without a score: 1 pairs\n"
        f"{short_form(f'method:response_length|level:turn|version:{__version__}')}\n"
    )
    found = json.loads(run("compare", path, "--scorer", "response_length", "--format", "json").stdout)
    assert found["verdict"] == "The preferred answer scores higher in 1.000 of 2 pairs; it is the longer one in 1.000."
    assert [(row["preferred"], row["value"], row["longer_value"]) for row in found["rows"]] == [
        ("is longer", 1.0, 1.0),
        ("all", 1.0, 1.0),
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"chosen": ASKED, "rejected": [*ASKED, said("No.")]},
            "{path}: has no pair of which one answer is preferred. Give some.",
        ),
        (
            {**LAYOUTS["arena, A"], "winner": "me"},
            "{path}:1: winner is 'me'. Write model_a, model_b or tie.",
        ),
        (
            {**LAYOUTS["arena, A"], "winner": "tie"},
            "{path}: has no pair of which one answer is preferred. Give some.",
        ),
    ],
)
def test_what_is_no_pair_is_refused(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    path = write_rows(tmp_path / "pairs.jsonl", [row])
    assert refusal(read_pairs, path) == message.format(path=path)


def test_one_file_without_pairs_is_refused_with_what_else_can_be_meant(tmp_path: Path) -> None:
    for path in (write_rows(tmp_path / "a.jsonl", [{"id": "a", "score": 1}]), tmp_path):
        with refused(
            f"{path}: one file is given, and it holds no pairs of a preferred and another answer. Name a second file, B, or a "
            "field of its rows by --by."
        ):
            run("compare", path)
