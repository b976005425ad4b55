"""Fifty contexts with a fitting response and nine worse ones each, and thirty long responses beside the same with a bad end.

`responses.jsonl` and `long.jsonl` were written for this test, without a look at what any model says of them. What a response is
worse by, and for a repeated one what is repeated (`repetition`), stands in them. Of two worse responses neither is said to be
the better one. `reproduction/contrasts/results.md` says what the kinds are, and what the bundled models make of them.
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
from reproduction.contrasts.measures import (
    OVERALL,
    ContrastSet,
    OrderedPair,
    contrast_table,
    order_pairs,
    pairs_of,
    read_contrasts,
    shares_of_right_pairs,
)
from reproduction.contrasts.pairs import LONG, RESPONSES
from tests.refusals import refusal

BY_HAND = ("off_topic", "generic", "insulting", "contradicting", "other_question")
KINDS = ("off_topic", "generic", "repeated", "scrambled", "cut_off", "insulting", "contradicting", "other_question", "copied")
IN_FIGURES = KINDS[:4]
"""Kinds of which the figures of the bundled models have the share."""
ENDINGS = ("ends_insulting", "ends_contradicting", "ends_garbled")
N_GARBLED = 12
"""Words of a response that garbage is made of."""
FEWEST_WORDS, MOST_WORDS = 65, 110
"""Length in words of a long response: its ending stands after word 60, where scorers that read a part of it have stopped."""
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

    name = "shortness_here"
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
    written = [item.worse[kind] for item in sets for kind in BY_HAND if kind != "off_topic"]
    assert len({*written, *(item.fitting for item in sets)}) == len(written) + 50


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
    assert fitting not in {worse[kind] for kind in BY_HAND}
    assert fitting.startswith(f"{worse['cut_off']} ")
    assert worse["cut_off"][-1] not in ".!?,"
    assert re.search("[.!?]", fitting[len(worse["cut_off"]) : -1]) is None
    assert worse["copied"] == row["context"][-1]


def test_a_long_response_ends_badly_after_its_last_word_and_in_nothing_else() -> None:
    sets = read_contrasts(LONG)
    contexts = {item.id: item.context for item in read_contrasts(RESPONSES)}
    assert len({item.fitting for item in sets}) == len(sets) == 30
    endings = set()
    for item in sets:
        assert item.context == contexts[item.id]
        assert FEWEST_WORDS <= len(item.fitting.split()) <= MOST_WORDS
        assert tuple(item.worse) == ENDINGS
        assert all(text.startswith(f"{item.fitting} ") for text in item.worse.values())
        ends = {kind: text.removeprefix(f"{item.fitting} ") for kind, text in item.worse.items()}
        assert ends["ends_garbled"] == " ".join(word[::-1] for word in item.fitting.split()[:N_GARBLED])
        endings |= set(ends.values())
    assert len(endings) == 30 * len(ENDINGS)


def test_a_pair_is_right_where_the_better_item_has_strictly_the_better_score_and_both_have_one() -> None:
    assert order_pairs(Length(), pairs_of(TWO)) == [
        ("tea", "generic", True),
        ("tea", "scrambled", False),
        ("rain", "generic", False),
        ("rain", "scrambled", False),
    ]
    assert [pair.is_right for pair in order_pairs(Shortness(), pairs_of(TWO))] == [False, False, True, False]


def test_the_table_has_a_row_a_kind_and_one_for_all_and_a_column_a_scorer() -> None:
    sets = [
        ContrastSet(f"s{n}", ("Hm?",), "Yes.", {"generic": "Ah." if n else "Right.", "repeated": "Yes. Yes."})
        for n in range(40)
    ]
    ordered = {scorer.name: order_pairs(scorer, pairs_of(sets)) for scorer in (Length(), Shortness())}
    assert contrast_table(ordered).render("text").splitlines() == [
        "worse by  pairs           length_here        shortness_here",
        "--------  -----  --------------------  --------------------",
        "generic      40  0.975 [0.871, 0.996]  0.025 [0.004, 0.129]",
        "repeated     40  0.000 [0.000, 0.088]  1.000 [0.912, 1.000]",
        "all          80  0.487 [0.463, 0.500]  0.512 [0.500, 0.537]",
    ]


def test_pairs_of_one_id_are_resampled_together_in_a_kind_too() -> None:
    pairs = [OrderedPair(f"d{n // 2}", "boring", n < 40) for n in range(80)]
    shares = shares_of_right_pairs(pairs)
    assert shares["boring"] == shares[OVERALL]
    assert (shares["boring"].n_total, shares["boring"].n_clusters) == (80, 40)
    apart = shares_of_right_pairs([pair._replace(id=str(n)) for n, pair in enumerate(pairs)])["boring"]
    assert (apart.ci_high or 0) - (apart.ci_low or 0) < (shares["boring"].ci_high or 0) - (shares["boring"].ci_low or 0)


def test_a_line_of_another_shape_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": "a", "context": "Hm?", "fitting": "Yes.", "worse": {}}\n', encoding="utf-8")
    assert refusal(read_contrasts, path) == (
        f"{path}:1: context: input should be a valid array. Give id, context, fitting and worse."
    )


def test_a_scorer_with_a_model_orders_them_alike_whatever_stands_beside(tiny_general: Path) -> None:
    pairs = pairs_of(read_contrasts(RESPONSES)[:3])
    general = load_scorer("general", model=str(tiny_general))
    assert order_pairs(general, pairs) == [ordered for pair in pairs for ordered in order_pairs(general, [pair])]


@pytest.mark.long
def test_the_packaged_general_orders_nine_pairs_of_ten_as_a_person_would(capsys: pytest.CaptureFixture[str]) -> None:
    ordered = order_pairs(load_scorer("general"), pairs_of(read_contrasts(RESPONSES)))
    with capsys.disabled():
        sys.stdout.write("\n" + contrast_table({"general": ordered}).render("text"))
    of = [pair for pair in ordered if pair.kind in IN_FIGURES]
    assert len(of) == 200
    assert sum(pair.is_right for pair in of) >= 180
