"""Development data of the general evaluator: reading the rated responses, and the figures of candidates for its main score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval_plugin.conversations.record import Conversation
from dialeval_plugin.core.dialogue import Dialogue, Example, Turn, visible_texts
from dialeval_plugin.corpora.readers import conture, dstc10
from dialeval_plugin.corpora.scored_input import Source
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.methods.general.training import RELEVANCE_WEIGHT
from dialeval_plugin.statistics.correlation import correlate
from reproduction.general.development import RATING, chat_sets, development_sets, development_table
from reproduction.general.dialogues import dialogue_table, rated_dialogues
from reproduction.general.leaks import leak_table
from reproduction.general.logs import write_logs


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Files in the layouts of the public ones, of a few rows each."""
    texts = [f"id{number}\tHi {number}.\tHello.\tHow are you?\tFine, {'very ' * (number % 4)}{number}." for number in range(12)]
    files = {
        "dstc10_test/ratings.json": json.dumps({f"dstc10-{part}_clean": [n % 5 for n in range(12)] for part in PARTS}),
        "dstc10_test/overlap.json": json.dumps({"persona": {"pu": [0, 3], "cg": [3]}, "topical": {"tu": [11]}}),
        **{f"dstc10_test/dstc10-{part}_clean_text.txt": "\n".join(texts) + "\n" for part in PARTS},
        "holistic_eval/context_data_release.csv": '0,"Hi, you",Hello.,1,2,5\n1,Any plans?,None.,3,3,4\n2,Why?,So.,1,1,2\n',
        "predictive_engagement/Eng_Scores_queries_gen_gtruth_replies.csv": (
            "query,response,human_score,Eng_Score_MaxPooling\nHi.,Hello.,2,1\nHi.,Hello.,4,1\nWhy?,So.,1,1\nHi.,No.,5,1\n"
        ),
        "predictive_engagement/humanAMT_engscores_utt.csv": "id,query,reply,label\n0,Hi,Ho,0\n1,Hey, ,1\n2,So,No,1\n3,A,B,0\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


PARTS = ("persona", "topical")


def test_what_a_reported_set_has_too_is_left_out_and_repeated_ratings_are_averaged(data: Path) -> None:
    sets = development_sets(data)
    assert [len(examples) for examples in sets.values()] == [10, 11, 3, 3, 3]
    assert [item.id for item in sets["DSTC10 test, persona"]][:3] == ["1", "2", "4"]
    first = sets["DSTC10 test, topical"][0]
    assert ([turn.text for turn in first.context], first.response.text) == (["Hi 0.", "Hello.", "How are you?"], "Fine, 0.")
    assert [item.ratings[RATING][0] for item in sets["HolisticEval, context"]] == pytest.approx(
        [2 + 8 / 300, 3 + 1 / 30, 1 + 4 / 300]
    )
    assert [item.ratings[RATING] for item in sets["engagement, DailyDialog"]] == [(3.0,), (1.0,), (5.0,)]
    assert [item.response.text for item in sets["engagement, ConvAI"]] == ["Ho", "No", "B"]


def test_the_weight_that_is_in_use_gives_the_main_score(data: Path, tiny_general: Path) -> None:
    sets = {name: examples for name, examples in development_sets(data).items() if name.startswith("DSTC10")}
    table = development_table(str(tiny_general), sets, rounds=50, device="cpu")
    rows = {str(row["main score"]): row for row in table.rows}
    scores = GeneralScorer(str(tiny_general), device="cpu").score(sets["DSTC10 test, persona"])
    ratings = [item.ratings[RATING][0] for item in sets["DSTC10 test, persona"]]
    for name, values in ((f"relevance with weight {RELEVANCE_WEIGHT:g}", scores.values), ("fit alone", scores.columns["fit"])):
        expected = correlate(values, ratings, coefficient="spearman").value
        assert float(str(rows[name]["DSTC10 test, persona"]).split()[0]) == pytest.approx(expected, abs=6e-4)
    assert table.notes == ["Responses: DSTC10 test, persona 10, DSTC10 test, topical 11."]


@pytest.mark.real_data
def test_the_public_files_are_read_whole_and_hold_no_reported_response(data_dir: Path) -> None:
    sets = development_sets(data_dir)
    assert [len(examples) for examples in sets.values()] == [4265, 4446, 200, 600, 294]
    reported = {
        tuple(turn.text.strip().lower() for turn in (*item.context[-1:], item.response))
        for code in ("tu", "pu", "pz", "cg", "ft")
        for item in dstc10.read(code)
    }
    shared = [
        item
        for examples in list(sets.values())[:2]
        for item in examples
        if tuple(turn.text.strip().lower() for turn in (*item.context[-1:], item.response)) in reported
    ]
    assert shared == []


@pytest.mark.real_data
def test_turns_of_whole_chats_are_those_that_people_judged(data_dir: Path) -> None:
    sets = chat_sets(data_dir)
    assert [len(examples) for examples in sets.values()] == [1650, 1500, 1500, 1472, 1634]
    assert {item.ratings[RATING] for item in sets["ABC-Eval"]} <= {(-float(faults),) for faults in range(17)}


@pytest.mark.real_data
def test_logs_have_chats_of_people_with_chatbots_and_none_of_conture(data_dir: Path, tmp_path: Path) -> None:
    logs = {path.stem: read_conversation_log(path) for path in write_logs(tmp_path, data_dir)}
    assert {name: len(found) for name, found in logs.items()} == {"convai1": 2337, "dstc9": 2081, "reliable_eval": 2925}
    speakers = {turn.speaker for found in logs.values() for one in found for turn in one.turns}
    assert speakers == {"user", "assistant"}
    reported = {tuple(text.strip().lower() for text in visible_texts(one.turns)) for one in conture.read_dialogues()}
    assert not [one for one in logs["dstc9"] if tuple(text.strip().lower() for text in visible_texts(one.turns)) in reported]


def read_conversation_log(path: Path) -> list[Conversation]:
    return [one for one in Source(str(path)).conversations() if isinstance(one, Conversation)]


def conversation(number: int) -> Dialogue:
    """Six turns of a person and a chatbot."""
    texts = [f"{'Very ' * (number + place % 3)}number {place}." for place in range(6)]
    return Dialogue(str(number), tuple(Turn(text, ("Human", "Chatbot")[place % 2]) for place, text in enumerate(texts)))


def test_the_score_that_is_in_use_is_among_those_of_whole_dialogues(tiny_general: Path) -> None:
    rated = [(conversation(number), float(number % 4)) for number in range(8)]
    table = dialogue_table(str(tiny_general), {"one": rated, "two": rated[:6]}, rounds=50, device="cpu")
    rows = {str(row["score of a dialogue"]): row for row in table.rows}
    scores = GeneralScorer(str(tiny_general), level="dialogue", device="cpu").score([one for one, _ in rated])
    expected = correlate(scores.values, [rating for _, rating in rated], coefficient="spearman").value
    assert float(str(rows["the same five of the assistant's turns"]["one"]).split()[0]) == pytest.approx(expected, abs=6e-4)
    for name in ("coherence", "novelty"):
        expected = correlate(scores.columns[name], [rating for _, rating in rated], coefficient="spearman").value
        shown = str(rows[f"{name} alone, of the assistant's turns"]["one"]).split()[0]
        assert float(shown) == pytest.approx(expected, abs=6e-4)
    assert table.notes == ["Dialogues: one 8, two 6."]


def test_items_that_have_a_reported_dialogue_in_them_are_counted() -> None:
    said = ["Where did you find those enormous plums?", "At the market by the river, early this morning.", "Lucky you!"]
    reported = {"one": [Example.from_texts(said[:1], said[1])], "two": [conversation(1)]}
    items = [Example.from_texts(said[:1], said[1]), Example.from_texts(said[:2], said[2]), Example.from_texts(["Hi."], "Ho.")]
    (row,) = leak_table({"own": items}, reported).rows
    assert row == {"development set": "own", "items": 3, "one": "2/1", "two": "0"}


@pytest.mark.real_data
def test_rated_dialogues_are_those_outside_the_reported_sets(data_dir: Path) -> None:
    sets = rated_dialogues()
    assert [len(rated) for rated in sets.values()] == [821, 181, 415, 960, 366]
    reported = {tuple(text.strip().lower() for text in visible_texts(one.turns)[:4]) for one in conture.read_dialogues()}
    assert not [one for one, _ in sets["dstc9"] if tuple(map(str.lower, visible_texts(one.turns)[:4])) in reported]
