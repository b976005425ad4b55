"""Fifty hand-written contexts: a fitting response stands above an off-topic, a generic, a repeated and a scrambled one.

`responses.jsonl` was written for this test, without a look at what any model says of it. What a response is worse by, and for a
repeated one what is repeated (`repetition`), stands in it. Of two worse responses neither is said to be the better one.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from dialeval_plugin import Scorer, load_scorer
from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.files import read_json_lines
from dialeval_plugin.core.scores import Row
from dialeval_plugin.reports.contrast import ContrastSet, contrast_table, order_pairs, read_contrasts
from tests.refusals import refusal

RESPONSES = Path(__file__).with_name("responses.jsonl")
KINDS = ("off_topic", "generic", "repeated", "scrambled")
REPETITIONS = ("word", "phrase", "twice", "thrice", "context")
TWO = [
    ContrastSet("tea", ("Tea or coffee?",), "Tea, please.", {"generic": "Hm.", "scrambled": "please. Tea,"}),
    ContrastSet("rain", ("Rain again.",), "Then take the bus.", {"generic": "I take it you know.", "scrambled": " "}),
]


class Length(Scorer):
    """As many points as the response has characters."""

    name = "length_here"
    columns = ("characters",)
    range = (0.0, 1000.0)

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        return [{"characters": float(len(item.response.text))} for item in items]  # type: ignore[union-attr]

    def signature_fields(self) -> dict[str, str]:  # type: ignore[override]
        return {"method": self.name}


class Shortness(Length):
    """The same, where lower is better."""

    orientation = "lower"


def words(text: str) -> list[str]:
    return re.findall(r"[\w'-]+", text.lower())


def once(text: str) -> list[str]:
    """The words of a text without those that follow themselves, be they one or many."""
    return re.sub(r"\b(.+?)(?: \1)+(?= |$)", r"\1", " ".join(words(text))).split()


def test_there_are_fifty_contexts_of_one_to_six_turns_and_no_response_stands_twice_for_one_kind() -> None:
    sets = read_contrasts(RESPONSES)
    assert len(sets) == len({item.context for item in sets}) == 50
    assert Counter(len(item.context) for item in sets) == {1: 9, 2: 8, 3: 21, 4: 5, 5: 4, 6: 3}
    assert {tuple(item.worse) for item in sets} == {KINDS}
    for kind in KINDS:
        assert len({item.worse[kind] for item in sets}) == 50
    assert len({item.fitting for item in sets}) == 50


@pytest.mark.parametrize("line", read_json_lines(RESPONSES), ids=lambda line: str(line.value["id"]))
def test_a_response_is_worse_in_the_way_that_is_said(line: object) -> None:
    row = line.value  # type: ignore[attr-defined]
    fitting, worse = row["fitting"], row["worse"]
    assert Counter(words(worse["scrambled"])) == Counter(words(fitting))
    assert words(worse["scrambled"]) != words(fitting)
    assert row["repetition"] in REPETITIONS
    if row["repetition"] == "context":
        assert worse["repeated"] == row["context"][-1]
    else:
        assert len(words(worse["repeated"])) > len(words(fitting))
        assert once(worse["repeated"]) == once(fitting)
    if row["repetition"] in {"twice", "thrice"}:
        assert worse["repeated"] == " ".join([fitting] * (2 if row["repetition"] == "twice" else 3))
    assert len(words(worse["generic"])) <= 8
    assert worse["off_topic"] != fitting


def test_a_pair_is_right_where_the_fitting_response_is_strictly_better_and_both_have_a_score() -> None:
    pairs = order_pairs(Length(), TWO)
    assert pairs == [
        ("tea", "generic", True),
        ("tea", "scrambled", False),
        ("rain", "generic", False),
        ("rain", "scrambled", False),
    ]
    assert [pair.is_right for pair in order_pairs(Shortness(), TWO)] == [False, False, True, False]


def test_the_table_has_a_row_a_kind_and_one_for_all() -> None:
    sets = [
        ContrastSet(f"s{n}", ("Hm?",), "Yes.", {"generic": "Ah." if n else "Right.", "repeated": "Yes. Yes."})
        for n in range(40)
    ]
    assert contrast_table(order_pairs(Shortness(), sets)).render("text").splitlines() == [
        "worse response  right  of                 share",
        "--------------  -----  --  --------------------",
        "generic             1  40  0.025 [0.004, 0.129]",
        "repeated           40  40  1.000 [0.912, 1.000]",
        "all                41  80  0.512 [0.500, 0.537]",
    ]


def test_a_line_of_another_shape_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": "a", "context": "Hm?", "fitting": "Yes.", "worse": {}}\n', encoding="utf-8")
    assert refusal(read_contrasts, path) == (
        f"{path}:1: context: input should be a valid array. Give id, context, fitting and worse."
    )


def test_a_scorer_with_a_model_orders_them_alike_whatever_stands_beside(tiny_general: Path) -> None:
    sets = read_contrasts(RESPONSES)[:6]
    general = load_scorer("general", model=str(tiny_general))
    assert order_pairs(general, sets) == [pair for item in sets for pair in order_pairs(general, [item])]


def test_the_packaged_general_orders_nine_pairs_of_ten_as_a_person_would(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = order_pairs(load_scorer("general"), read_contrasts(RESPONSES))
    with capsys.disabled():
        sys.stdout.write("\n" + contrast_table(pairs).render("text"))
    assert len(pairs) == 200
    assert sum(pair.is_right for pair in pairs) >= 180
