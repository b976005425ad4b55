"""The rated corpora as published, those of DSTC10, CGDIALOG+ and DBDC3 aside: every irregularity of their files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn, mean_rating
from dialeval_plugin.corpora.readers import conture, convai, dailydialog_pp, dstc10, fed, usr
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.corpora.registry import read_items
from tests import layouts
from tests.layouts import NOT_APPLICABLE, convai1_rows, convai2_rows, fed_rows, write, write_convai, write_fed
from tests.refusals import refused

Rows = list[dict[str, Any]]


# ConTurE


def test_each_response_has_all_turns_before_it_and_answers_that_were_not_given_are_left_out(tmp_path: Path) -> None:
    exchanges = [*layouts.CONTURE["turns"], {"user": "User: What?", "chatbot": "Chatbot:", "overall impression": 0}]
    ratings = [{"coherent": 3, "error recovery": "N/A"}, {"coherent": 1, "error recovery": 2}]
    path = write(tmp_path / "data.json", {"dialog_id": 7, "turns": exchanges, "dialog_ratings": ratings})
    first, second = Turn("Who are you?", "User"), Turn("a book.", "Chatbot")
    third, last = Turn("What?", "User"), Turn("", "Chatbot")
    assert conture.read_examples(path) == [
        Example("conture_7_1", (first,), second, ratings={"overall impression": (2.0,)}),
        Example("conture_7_2", (first, second, third), last, ratings={"overall impression": (0.0,)}),
    ]
    assert conture.read_dialogues(path) == [
        Dialogue("conture_7", (first, second, third, last), ratings={"coherent": (3.0, 1.0), "error recovery": (2.0,)})
    ]


@pytest.mark.real_data
def test_conture_has_its_published_size(data_dir: Path) -> None:
    dialogues = conture.read(data_dir / "conture" / "data.json")
    examples = [example for dialogue in dialogues for example in dialogue.responses]
    assert (len(dialogues), len(examples)) == (119, 1066)
    assert Counter(example.ratings["overall impression"] for example in examples) == {(2.0,): 501, (0.0,): 328, (1.0,): 237}
    ratings = [dialogue.whole.ratings for dialogue in dialogues]
    # Nine dialogues have two raters only, and ten answers to "error recovery" are "N/A".
    assert sum(len(own["coherent"]) for own in ratings) == 3 * 110 + 2 * 9
    assert sum(len(own["error recovery"]) for own in ratings) == 3 * 110 + 2 * 9 - 10
    assert len({example.id for example in examples}) == len(examples)


# ConvAI1 and ConvAI2


def test_a_dialogue_of_convai1_has_its_turns_speakers_kind_and_human_ratings(tmp_path: Path) -> None:
    with_bot, people = convai.read_convai1([write(tmp_path / "x.json", *convai1_rows()[1:3])])
    assert (with_bot.id, with_bot.system, people.system) == ("-1001", "Bot", "Human")
    assert with_bot.turns[:2] == (Turn("Hi there. (1)", "Alice"), Turn("Hello, do you like tea? (1)", "Bob"))
    assert with_bot.ratings == {"quality": (1.0,), "breadth": (1.0,), "engagement": (1.0,)}
    assert people.ratings["quality"] == (2.0, 2.0)


def test_the_zero_of_a_bot_is_no_rating_unless_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", convai1_rows()[1])
    (as_published,) = convai.read_convai1([path], bot_ratings="as_zero")
    assert as_published.ratings["quality"] == (0.0, 1.0)
    assert mean_rating(as_published, "quality") == 0.5
    with refused("convai1: bot_ratings is 'both'. Give one of left_out, as_zero."):
        convai.read_convai1([path], bot_ratings="both")  # type: ignore[arg-type]


def test_blank_texts_and_empty_threads_stay(tmp_path: Path) -> None:
    rows = convai1_rows()[:2]
    rows[0]["thread"] = []
    rows[1]["thread"][0] |= {"text": " ", "time": 137000000}
    empty, blank = convai.read_convai1([write(tmp_path / "x.json", *rows)])
    assert empty.turns == ()
    assert blank.turns[0] == Turn(" ", "Alice")


def test_an_id_that_two_files_share_is_numbered(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{name}.json", convai1_rows()[0]) for name in "ab"]
    assert [dialogue.id for dialogue in convai.read_convai1(paths)] == ["-1000", "-1000#2"]


def test_a_dialogue_of_convai2_that_nobody_rated_has_no_rating(tmp_path: Path) -> None:
    rated, unrated = convai.read_convai2([write(tmp_path / "x.json", *convai2_rows(2, first=5))])
    assert (rated.id, rated.system) == ("0x5", None)
    assert rated.turns[1] == Turn("Hello, do you like tea? (5)", "participant2")
    assert rated.ratings == {"eval_score": (1.0,), "profile_match": (1.0,)}
    assert unrated.ratings == {"eval_score": (), "profile_match": ()}
    assert mean_rating(unrated, "eval_score") is None


def test_a_file_without_ids_gives_its_name_and_one_with_participants_the_bot(tmp_path: Path) -> None:
    rows = convai2_rows(2)
    for row in rows:
        del row["dialog_id"]
        row |= {"start_time": "2018-07-09 04:29:15", "end_time": "2018-07-09 04:29:15", "bot_profile": [], "user_profile": []}
        row["participant1_id"] = {"class": "User", "user_id": "User 00431"}
        row["participant2_id"] = {"class": "Bot", "user_id": "Bot 005"}
        for turn in row["dialog"]:
            turn |= {"evaluation_score": None, "sender_class": "Human"}
    first, second = convai.read_convai2([write(tmp_path / "data_intermediate.json", *rows)])
    assert (first.id, second.id) == ("data_intermediate_00000", "data_intermediate_00001")
    assert first.system == "Bot 005"


def test_without_a_path_the_catalogues_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_convai(tmp_path)
    write_fed(tmp_path, fed_rows(2))
    write(tmp_path / "conture" / "data.json", layouts.CONTURE)
    write(tmp_path / "usr" / usr.FILES["persona_chat"], layouts.USR)
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    assert len(convai.read_convai1()) == 12
    assert [dialogue.id for dialogue in convai.read_convai2()][:2] == ["0x0", "0x1"]
    assert (len(fed.read()), len(conture.read())) == (2, 1)
    ids = [example.id for example in usr.read_examples("persona_chat")]
    assert ids == ["usr_percona_chat_000_1", "usr_percona_chat_000_2"]
    with refused(
        "'topical': is neither a file nor a USR set. Did you mean 'topical_chat'? "
        "Known are: topical_chat, persona_chat, topical_chat_glue."
    ):
        usr.read_examples("topical")


@pytest.mark.real_data
def test_convai1_as_published(data_dir: Path) -> None:
    dialogues = convai.read_convai1([data_dir / "convai1" / name for name in convai.CONVAI1_FILES])
    assert len(dialogues) == 2501 + 277 == len({dialogue.id for dialogue in dialogues})
    assert sum(len(dialogue.turns) > 2 for dialogue in dialogues) == 2154
    assert sum(not dialogue.turns for dialogue in dialogues) == 119
    assert sum(not turn.text.strip() for dialogue in dialogues for turn in dialogue.turns) == 216
    assert Counter(dialogue.system for dialogue in dialogues) == {"Bot": 2337, "Human": 441}
    of_bots = Counter(dialogue.ratings["quality"] for dialogue in dialogues if dialogue.system == "Bot")
    assert of_bots == {(1.0,): 1231, (2.0,): 488, (3.0,): 347, (4.0,): 159, (5.0,): 112}


@pytest.mark.real_data
def test_convai2_as_published(data_dir: Path) -> None:
    folder = data_dir / "convai2"
    exports = [convai.read_convai2([folder / name]) for name in convai.CONVAI2_FILES]
    assert [len(dialogues) for dialogues in exports] == [427, 438, 723, 1417]
    assert exports[0][0].id == "0xab38710"
    others = [convai.read_convai2([folder / f"data_{name}.json"]) for name in ("intermediate", "volunteers")]
    assert [len(dialogues) for dialogues in others] == [291, 1111]
    assert {dialogue.system is None for dialogues in others for dialogue in dialogues} == {False}
    long = [dialogue for dialogues in [*exports, *others] for dialogue in dialogues if len(dialogue.turns) > 2]
    exported = [dialogue for dialogues in exports for dialogue in dialogues if len(dialogue.turns) > 2]
    assert (len(exported), sum(bool(dialogue.ratings["eval_score"]) for dialogue in exported)) == (2145, 2095)
    assert len(long) == 2145 + 170 + 712


# DailyDialog++

SET = {
    **{"id": 12, "context": ["Am I late ?", "No, come in."], "positive_responses": ["Thanks .", "Phew!"]},
    **{"adversarial_negative_responses": ["The late train came in."], "random_negative_responses": ["Two kilos, please."]},
}
CONTEXT = ("Am I late ?", "No, come in.")


def sets(path: Path, *rows: Any) -> Path:
    return write(path, "\n".join(json.dumps(row, ensure_ascii=False) for row in rows))


def test_a_line_becomes_a_response_set_with_its_texts_as_published(tmp_path: Path) -> None:
    further = {"dialog_id": 3, "context": ["Hi."], "positive_responses": ["Hello."]}
    added = {**SET, "id": 13, "positive_responses": ["one\u2028two"], "bm25_sampled": ["x"]}
    negatives = (("The late train came in.",), ("Two kilos, please.",))
    assert dailydialog_pp.read(sets(tmp_path / "dev.json", SET, further, added)) == [
        ResponseSet("12", CONTEXT, ("Thanks .", "Phew!"), *negatives),
        ResponseSet("3", ("Hi.",), ("Hello.",)),
        # The same context again stays a set of its own.
        ResponseSet("13", CONTEXT, ("one\u2028two",), *negatives),
    ]


def test_examples_have_the_keys_of_the_published_predictions() -> None:
    examples = list(ResponseSet("12", ("Am I late?",), ("p", "q"), ("a",), ("r",)).examples())
    assert [(example.id, example.response.text, example.ratings) for example in examples] == [
        ("12p0", "p", {"appropriate": (1.0,)}),
        ("12p1", "q", {"appropriate": (1.0,)}),
        ("12r0", "r", {"appropriate": (0.0,)}),
        ("12a0", "a", {"appropriate": (0.0,)}),
    ]
    assert {example.context for example in examples} == {(Turn("Am I late?"),)}


def test_contexts_may_come_without_responses_and_without_ids(tmp_path: Path) -> None:
    path = sets(tmp_path / "contexts.jsonl", {"context": ["Hi."]}, {"context": [], "dialog_id": 7}, SET)
    assert dailydialog_pp.read_contexts(path) == [
        ResponseSet("0", ("Hi.",), ()),
        ResponseSet("7", (), ()),
        *dailydialog_pp.read(sets(tmp_path / "dev.json", SET)),
    ]


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "n_negatives", "n_distinct_contexts"),
    [("dev.json", 10, 1027), ("train_first10.json", 10, 10), ("data_with_contexts_and_positive_responses_only.json", 0, 7638)],
)
def test_the_published_files_of_dailydialog_pp(data_dir: Path, name: str, n_negatives: int, n_distinct_contexts: int) -> None:
    path = data_dir / "dailydialog_pp" / name
    read = dailydialog_pp.read(path)
    raw = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    assert len(read) == len(raw)
    assert all(len(found.positive) == 5 for found in read)
    assert all(len(found.adversarial) + len(found.random) == n_negatives for found in read)
    assert len({found.context for found in read}) == n_distinct_contexts
    assert [list(found.positive) for found in read] == [row["positive_responses"] for row in raw]


@pytest.mark.real_data
@pytest.mark.parametrize(("negatives", "accuracy"), [("r", 0.853), ("a", 0.927)])
def test_published_predictions_separate_the_labels(data_dir: Path, negatives: str, accuracy: float) -> None:
    """The accuracy of DEB (random + adversarial) at 0.5 on all 1,142 test contexts, near enough on any large part of them."""
    folder = data_dir / "dailydialog_pp"
    predictions = json.loads((folder / "predictions" / "deb_rand_adv.json").read_text(encoding="utf-8"))
    examples = [example for found in dailydialog_pp.read(folder / "test.json") for example in found.examples()]
    assert {example.id for example in examples} <= set(predictions)
    chosen = [example for example in examples if example.id.lstrip("0123456789")[0] in f"p{negatives}"]
    right = sum((predictions[example.id] > 0.5) == (example.ratings["appropriate"] == (1.0,)) for example in chosen)
    assert right / len(chosen) == pytest.approx(accuracy, abs=0.02)


# FED


@pytest.fixture
def rows() -> Rows:
    return fed_rows(2)


def test_an_item_with_a_response_is_of_turn_level_and_one_without_of_dialogue_level(rows: Rows, tmp_path: Path) -> None:
    path = write_fed(tmp_path, rows)
    first, second = fed.read(path)
    assert [response.id for response in first.responses] == ["fed_000_1", "fed_000_2", "fed_000_3"]
    assert (first.whole.id, second.whole.id) == ("fed_000", "fed_001")
    assert first.responses[0].context == (Turn("Hi! (0)", "User"), Turn("Do you like tea?", "System"), Turn("Why?", "User"))
    assert first.responses[0].response == Turn("Because tea number 0 is here.", "System")
    assert first.whole.turns == first.responses[2].context
    assert {first.whole.system, *(response.system for response in first.responses)} == {"Meena"}
    assert fed.read_examples(path) == [*first.responses, *second.responses]
    assert fed.read_dialogues(path) == [first.whole, second.whole]
    # A dialogue may have any number of rated responses.
    assert [len(dialogue.responses) for dialogue in fed.read(write_fed(tmp_path, rows[1:4] + rows[7:]))] == [2, 0]


def test_what_a_rater_did_not_answer_is_left_out_before_averaging(rows: Rows, tmp_path: Path) -> None:
    rows[0]["annotations"]["Specific"] = [2, "N/A (it isn't specific)", 1, 2, "N/A"]
    rows[3]["annotations"]["Error recovery"] = [NOT_APPLICABLE] * 5
    (first, _) = fed.read(write_fed(tmp_path, rows))
    assert first.responses[0].ratings["Specific"] == (2.0, 1.0, 2.0)
    assert mean_rating(first.responses[0], "Specific") == pytest.approx(5 / 3)
    assert first.whole.ratings["Error recovery"] == ()
    assert mean_rating(first.whole, "Error recovery") is None


def test_white_space_around_texts_goes_and_a_turn_may_hold_a_tag_in_its_middle(rows: Rows, tmp_path: Path) -> None:
    rows[0]["context"] += " "
    rows[0]["response"] = " " + rows[0]["response"] + " \n"
    rows[1]["response"] = "System: He said: User: hello"
    rows[3]["context"] += " "
    (first, _) = fed.read(write_fed(tmp_path, rows))
    assert first.responses[0].context[-1].text == "Why?"
    assert first.responses[0].response.text == "Because tea number 0 is here."
    assert first.responses[1].response == Turn("He said: User: hello", "System")
    assert first.whole.turns[-1].text == "And tea 1?"


@pytest.mark.real_data
def test_fed_as_published(data_dir: Path) -> None:
    path = data_dir / "fed" / fed.FILE
    dialogues, ours, whole = fed.read(path), fed.read_examples(path), fed.read_dialogues(path)
    assert Counter(len(dialogue.responses) for dialogue in dialogues) == {3: 125}
    raw = json.loads(path.read_text(encoding="utf-8"))
    answers = [answer for row in raw for values in row["annotations"].values() for answer in values]
    kept = [value for item in (*ours, *whole) for values in item.ratings.values() for value in values]
    assert (len(answers), len(kept)) == (23750, 23750 - sum(isinstance(answer, str) for answer in answers))
    assert sum(not dialogue.whole.ratings["Error recovery"] for dialogue in dialogues) == 1
    # DSTC10 holds the same data.
    theirs = dstc10.read("ft", folder=data_dir / "dstc10")
    assert [(item.context, item.response, item.system) for item in ours] == [
        (item.context, item.response, item.system) for item in theirs
    ]
    assert [dict(item.ratings) for item in ours] == [dict(item.ratings) for item in theirs]
    their_dialogues = dstc10.read("fd", folder=data_dir / "dstc10")
    assert [[turn.text for turn in item.turns] for item in whole] == [[turn.text for turn in d.turns] for d in their_dialogues]
    assert [dict(item.ratings) for item in whole] == [dict(item.ratings) for item in their_dialogues]


# USR


RATINGS = {
    **{"Understandable": [1, 1, 0], "Natural": [3, 2, 3], "Maintains Context": [3, 1, 2]},
    **{"Engaging": [2, 2, 3], "Uses Knowledge": [0, 0, 1], "Overall": [5, 4, 1]},
}
RESPONSE = {"response": "me too . \n", "model": "Argmax Decoding", **RATINGS}
ROW = {
    "context": "do you like tea ? \n yes , green tea . \n\n",
    "fact": "green tea is not fermented .\n",
    "annotators": ["sm", "er", "fl"],
    "responses": [RESPONSE, {**RESPONSE, "response": "so i hear", "model": "New Human Generated"}],
}


def test_each_response_becomes_an_example_without_the_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "usr_topical_chat.json", ROW)
    first, second = usr.read_examples(path)
    assert first == Example(
        id="usr_topical_chat_000_1",
        context=(Turn("do you like tea ?"), Turn("yes , green tea .")),
        response=Turn("me too ."),
        facts=("green tea is not fermented .",),
        system="Argmax Decoding",
        ratings={quality: tuple(map(float, values)) for quality, values in RATINGS.items()},
    )
    assert (second.id, second.response.text, second.system) == ("usr_topical_chat_000_2", "so i hear", "New Human Generated")
    # A file that is scored is told from its rows.
    assert read_items(path) == [first, second]


def test_facts_are_persona_lines_a_text_or_none(tmp_path: Path) -> None:
    persona = "your persona: i've three dogs.\nyour persona: i walk.\n"
    rows = [{**ROW, "fact": fact} for fact in (persona, "_nofact\n", "\n", "one line .\nanother .\n")]
    facts = [example.facts for example in usr.read_examples(write(tmp_path / "x.json", *rows))[::2]]
    assert facts == [("i've three dogs.", "i walk."), (), (), ("one line .\nanother .",)]


def test_published_numbers_come_with_the_examples(tmp_path: Path) -> None:
    assert dict(usr.read_scored(write(tmp_path / "x.json", ROW)).scores) == {}
    scored = [{**RESPONSE, "cola": 0.9, "fact_stsb": -0.1}, {**RESPONSE, "fact_stsb": 4, "cola": 0.2}]
    found = usr.read_scored(write(tmp_path / "x.json", {**ROW, "responses": scored}))
    assert dict(found.scores) == {"cola": (0.9, 0.2), "fact_stsb": (-0.1, 4.0)}
    assert len(found.examples) == 2


@pytest.mark.real_data
def test_usr_as_published(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(data_dir))
    topical, persona = usr.read_examples("topical_chat"), usr.read_examples("persona_chat")
    scored = usr.read_scored("topical_chat_glue")
    assert (len(topical), len({example.context for example in topical})) == (360, 60)
    assert (len(persona), len({example.context for example in persona})) == (300, 60)
    assert sum(not example.facts for example in topical) == 8 * 6
    assert all(example.facts for example in persona)
    assert {len(values) for example in (*topical, *persona) for values in example.ratings.values()} == {3}
    for example in (*topical, *persona):
        texts = [example.response.text, *example.facts, *(turn.text for turn in example.context)]
        assert texts == [text.strip() for text in texts]
        assert "" not in texts
    assert [(e.context, e.response, e.facts, e.ratings) for e in scored.examples] == [
        (e.context, e.response, e.facts, e.ratings) for e in topical
    ]
    assert len(scored.scores) == 12
    assert min(scored.scores["stsb"] + scored.scores["fact_stsb"]) == pytest.approx(-0.13, abs=0.005)
    # DSTC10 holds the same responses and ratings.
    theirs = dstc10.read(data_dir / "dstc10" / "topical-usr_eval.json")
    ours = {(example.context, example.response.text): dict(example.ratings) for example in topical}
    assert sum((example.context, example.response.text) in ours for example in theirs) == 360
    assert set(usr.SCALES) == set(theirs[0].ratings)
