"""Contrasts of assistants: each kind spoils what it says, neutral changes spoil nothing, and tables count what is missed."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Example, Turn
from reproduction.assistant.data import RatedAnswer, spoken
from reproduction.contrasts.assistant import (
    N_PAIRS,
    ScoredAnswers,
    alarm_table,
    good_answers,
    kind_table,
    neutral_table,
    spoiled_pairs,
)
from reproduction.contrasts.measures import ContrastPair
from reproduction.contrasts.spoiled_answers import KINDS, NEUTRAL, OWN_TEXTS, Others, SpoiledKind, sentences

EARLIER = "You can find good coffee in most of the small cafes around the old harbour."
ANSWER = """Sure, these are the main steps of descaling a kettle from Siemens in Berlin:

1. Fill it with 500 ml of water and add 2 spoons of citric acid.
2. Boil the water and wait for 30 minutes. The limescale is dissolved by then.
3. Pour it out and rinse the kettle twice.
4. Boil fresh water once and pour it away.

This is safe for every kettle that people use in Europe. You should not breathe the steam, "hot" as it is.

```sh
one
two
three
four
```

The kettle is clean after that. It can be used at once, and it does not need any soap."""
EXAMPLE = Example(
    "e",
    spoken(["Where is good coffee?", EARLIER, "I have an old kettle. How do I take the limescale out of it, please?"]),
    Turn(ANSWER, "assistant"),
)
OTHERS = Others(
    [
        f"Anna Miller and Peter Brown visited Rome, number {n}. They saw much. It rained. All was well in Old Town."
        for n in range(50)
    ],
    [f"What is the weather in place {n}?" for n in range(50)],
    {"e": ["Try the roastery next to the town hall, it opens early in the morning."]},
)
BY_NAME = {kind.name: kind for kind in (*KINDS, *NEUTRAL)}


def spoiled(name: str, example: Example = EXAMPLE, seed: int = 0) -> str:
    text = BY_NAME[name].spoil(example, OTHERS, random.Random(seed))
    assert text is not None
    return text


def with_answer(text: str) -> Example:
    return Example.from_texts(["How do I do that?"], text)


@pytest.mark.parametrize("kind", [*KINDS, *NEUTRAL], ids=lambda kind: kind.name)
def test_each_kind_changes_the_answer_and_the_same_draw_gives_the_same_text(kind: SpoiledKind) -> None:
    example = with_answer("**Descaling** is not hard. It is done with acid.") if kind.name == "markdown removed" else EXAMPLE
    for seed in range(5):
        text = kind.spoil(example, OTHERS, random.Random(seed))
        assert text
        assert text != example.response.text
        assert kind.spoil(example, OTHERS, random.Random(seed)) == text


@pytest.mark.parametrize("seed", range(5))
def test_an_answer_that_is_cut_off_is_a_beginning_that_ends_where_the_kind_says(seed: int) -> None:
    ends = {}
    for kind in KINDS:
        if kind.columns == ("cut_off",):
            text = spoiled(kind.name, seed=seed)
            assert ANSWER.startswith(text)
            ends[kind.name] = ANSWER[len(text) :], text
    assert ends["cut in a word"][0][:1].isalpha()
    assert ends["cut in a word"][1][-3:].isalpha()
    assert ends["cut in a sentence"][0].startswith(" ")
    assert ends["last words missing"][0].endswith("soap.")
    assert ends["cut in a list"][1][-2:] in {"3.", "4."}
    assert ends["cut in code"][1].count("```") == 1
    assert ends["announced, not given"][1].endswith("Berlin:")
    assert ends["list stops early"][1].endswith("dissolved by then.")


def test_what_loops_has_its_words_again() -> None:
    assert spoiled("last sentence loops").count("It can be used at once") >= 6
    assert spoiled("said twice") == f"{ANSWER}\n\n{ANSWER}"
    assert spoiled("each sentence twice", with_answer("One is here. Two is there.")) == (
        "One is here. One is here. Two is there. Two is there."
    )
    last = spoiled("words loop").split()[-60:]
    assert len(set(last)) <= 8


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name in OWN_TEXTS], ids=lambda kind: kind.name)
def test_a_text_that_is_put_in_stands_before_behind_or_instead_of_the_answer(kind: SpoiledKind) -> None:
    start = {text.partition("{}")[0].strip() for text in OWN_TEXTS[kind.name]}
    for seed in range(5):
        assert any(own in spoiled(kind.name, seed=seed) for own in start)


def test_kinds_about_the_prompt_quote_it_and_those_of_other_questions_do_not_answer_it() -> None:
    assert "I have an old kettle" in spoiled("refusal of the topic")
    assert "I have an old kettle" in spoiled("boilerplate of the topic")
    assert spoiled("echo") == EXAMPLE.context[-1].text
    assert EXAMPLE.context[-1].text in spoiled("echo with a prefix")
    assert "I have an old kettle" in spoiled("tool call")
    assert spoiled("stale") == EARLIER
    assert spoiled("stale, other words") == OTHERS.to_earlier_prompts["e"][0]
    assert spoiled("off-topic") in OTHERS.answers


def test_contradictions_deny_what_was_said() -> None:
    assert spoiled("contradicts itself", with_answer("The kettle of the neighbour is clean.")).endswith(
        "he kettle of the neighbour is not clean."
    )
    said = spoiled("contradicts the user")
    assert "you do not have an old kettle" in said
    assert said.endswith(ANSWER)
    asked = Example("asked", spoken(["How do I descale my kettle?"]), Turn("With acid.", "assistant"))
    assert "you do not want to descale your kettle" in spoiled("contradicts the user", asked)


def test_content_that_is_changed_keeps_its_form() -> None:
    numbers = spoiled("other numbers")
    assert [line[:3] for line in numbers.splitlines() if line[:1].isdigit()] == ["1. ", "2. ", "3. ", "4. "]
    assert "500 ml" not in numbers
    assert len(numbers) == len(ANSWER)
    names = spoiled("other names")
    assert not {"Siemens", "Berlin", "Europe"} & set(names.replace(".", " ").replace(":", " ").split())
    assert "2. Boil" not in spoiled("steps dropped")
    assert "4. Boil fresh water" in spoiled("steps dropped")
    assert Counter(spoiled("words shuffled").split()) == Counter(ANSWER.split())
    assert sorted(sentences(spoiled("sentences shuffled"))) != sentences(ANSWER)
    letters = spoiled("letters scrambled")
    assert Counter(letters) == Counter(ANSWER)


@pytest.mark.parametrize(
    "name", ["cut in a list", "cut in code", "announced, not given", "stale", "steps dropped", "other names"]
)
def test_a_kind_that_does_not_fit_spoils_nothing(name: str) -> None:
    assert BY_NAME[name].spoil(with_answer("It is fine."), OTHERS, random.Random(0)) is None


def test_neutral_changes_keep_the_words() -> None:
    assert spoiled("other bullets").startswith(
        "Sure, these are the main steps of descaling a kettle from Siemens in Berlin:\n\n1) Fill"
    )
    assert spoiled("white space").split() == ANSWER.split()
    assert spoiled("no last full stop") == ANSWER[:-1]
    assert "it doesn't need any soap" in spoiled("contractions")
    assert "“hot”" in spoiled("curly quotes")
    assert spoiled("markdown removed", with_answer("## So\n**Yes**, `ls`.")) == "So\nYes, ls."
    assert spoiled("bold type", with_answer("Yes, it is.")) == "**Yes**, it is."


def rated(number: int) -> RatedAnswer:
    text = f"Answer {number} is here. It is long enough for a test, I hope. There are more sentences in it. That is all."
    return RatedAnswer(f"c{number}", Example.from_texts([f"What is {number}, if I may ask?"], text, id=str(number)), "dpo")


def test_of_a_kind_there_are_at_most_so_many_pairs_and_each_has_its_own_conversation() -> None:
    pairs = spoiled_pairs([BY_NAME["refusal"], BY_NAME["off-topic"]], [rated(number) for number in range(N_PAIRS + 5)])
    assert Counter(pair.kind for pair in pairs) == {"refusal": N_PAIRS, "off-topic": N_PAIRS}
    assert len({pair.worse.id for pair in pairs}) == 2 * N_PAIRS
    for pair in pairs:
        assert isinstance(pair.better, Example)
        assert isinstance(pair.worse, Example)
        assert pair.better.context == pair.worse.context
        assert pair.better.response != pair.worse.response


def pair_answer(id: str) -> Example:
    return Example.from_texts(["Hi."], "Yes.", id=id)


def pairs_and_scores() -> tuple[list[ContrastPair], ScoredAnswers]:
    """The main score misses one refusal of two, and no end token; the column sees every refusal, and no end token."""
    pairs = [
        ContrastPair(
            str(n),
            kind,
            pair_answer(f"{n}"),
            pair_answer(f"{n}/{kind}"),
        )
        for kind in ("refusal", "end token")
        for n in range(2)
    ]
    main = {"0": 0.6, "1": 0.6, "0/refusal": 0.5, "1/refusal": 0.7, "0/end token": 0.1, "1/end token": 0.2}
    refusal = {**dict.fromkeys(main, 0.1), "1": 0.5, "0/refusal": 0.9, "1/refusal": 0.9}
    return pairs, ScoredAnswers("one", "main", {"main": main, "refusal": refusal})


def test_the_table_has_the_main_score_the_column_of_the_defect_and_what_falls_short() -> None:
    pairs, scored = pairs_and_scores()
    table = kind_table([scored], pairs, {"1"})
    rows = {str(row["worse by"]): row for row in table.rows}
    assert rows["refusal"]["one"] == "0.500 [0.095, 0.905]"
    assert rows["refusal"]["one, its column"] == "1.000 [0.342, 1.000]"
    assert rows["refusal"]["one, seen"] == "1.000"
    assert rows["end token"]["one"] == "1.000 [0.342, 1.000]"
    assert rows["end token"].get("one, its column", "") == ""
    assert str(rows["all"]["one"]).startswith("0.750")
    assert (rows["all, new answers"]["pairs"], rows["all, new answers"]["one"]) == (2, "0.500")
    assert table.notes == ["Below 0.95, one: refusal.", "Below 0.95, the columns of one: none."]


def test_false_alarms_are_counted_on_the_good_answers() -> None:
    _, scored = pairs_and_scores()
    good = [RatedAnswer(f"c{id}", pair_answer(id)) for id in ("0", "1")]
    table = alarm_table([scored], good, {"c0"})
    assert table.rows == [
        {"defect": "refusal", "one (2 answers)": "0.500 [0.095, 0.905]", "one (1 new answers)": "0.000 [0.000, 0.793]"}
    ]
    assert table.notes == ["Above 0.02, one (2 answers): refusal.", "Above 0.02, one (1 new answers): none."]
    (row,) = alarm_table([replace(scored, thresholds={"refusal": 0.6})], good, {"c0"}).rows
    assert str(row["one (2 answers)"]).startswith("0.000")


def test_a_neutral_change_is_named_where_it_moves_the_score() -> None:
    pairs = [
        ContrastPair(str(n), kind.name, pair_answer(str(n)), pair_answer(f"{n}/{kind.name}"))
        for kind in NEUTRAL
        for n in range(3)
    ]
    main = {pair.better.id: 0.5 for pair in pairs}
    main |= {pair.worse.id: 0.5 - 0.03 * (pair.kind == "polite start") + 0.001 * int(pair.id) for pair in pairs}
    table = neutral_table([ScoredAnswers("one", "main", {"main": main})], pairs)
    rows = {str(row["change"]): row["one"] for row in table.rows}
    assert (rows["polite start"], rows["white space"]) == ("0.029 (-0.029)", "0.001 (+0.001)")
    assert table.notes == ["Not below 0.02, one: polite start."]


def test_texts_that_are_put_in_are_in_twelve_languages_and_none_is_there_twice() -> None:
    path = Path(__file__).resolve().parents[2] / "reproduction" / "contrasts" / "own_texts.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len({row["text"] for row in rows}) == len(rows) == sum(map(len, OWN_TEXTS.values()))
    assert len(OWN_TEXTS["other language"]) >= 12


@pytest.mark.real_data
def test_of_thirty_kinds_and_more_there_are_a_hundred_pairs(data_dir: Path) -> None:
    assert data_dir.is_dir()
    counts = Counter(pair.kind for pair in spoiled_pairs(KINDS, good_answers()))
    assert {kind: n for kind, n in counts.items() if n < N_PAIRS} == {"cut in code": 21, "stale, other words": 59}
    assert len(counts) == len(KINDS) == 55
