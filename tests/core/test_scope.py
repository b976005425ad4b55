"""A trained model says what it does not know: other languages, code, data, lists, emoji, and longer texts than it learnt from.

FAULTS_FOUND_2 F9; UniEval#6, bleurt#11.
"""

from __future__ import annotations

import ast
import csv
import functools
import io
import json
import logging
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.files import to_json
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scope import Scope, language_name, out_of_scope_text
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import kind_of
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.models.folders import PRETRAINED
from tests.cli.running import run, write_rows
from tests.refusals import refused

FLIGHT = "My flight was cancelled and I am stuck at the airport."
ANSWERS = {
    "German": (
        "Oh nein, das tut mir leid. Hat man dich auf einen anderen Flug gebucht?",
        "Wir waren in den Bergen, es war schön.",
    ),
    "French": (
        "Je suis désolé de l'apprendre, as-tu trouvé un autre vol?",
        "Nous avons mangé dans un restaurant de la gare.",
    ),
    "Spanish": (
        "Lo siento mucho, ¿hay otro vuelo mañana?",
        "No me gusta el té, pero me encanta el café con leche.",
    ),
    "Italian": ("Mi dispiace molto, ti hanno messo su un altro volo?", "Non mi piace il tè, ma bevo il caffè con il latte."),
    "Dutch": ("Wat vervelend, is er nog een andere vlucht?", "Ik denk dat we morgen in de trein over de brug gaan."),
    "Portuguese": (
        "Sinto muito, vocês conseguiram outro voo hoje?",
        "No fim de semana fomos à praia com a nossa tia.",
    ),
    "Swedish": ("Vad tråkigt, har de bokat om dig till ett annat flyg?", "Vi åkte till stugan i helgen och det var så skönt."),
    "Polish": ("Bardzo mi przykro, czy dostałeś miejsce w innym samolocie?", "Nie lubię herbaty, ale piję kawę z mlekiem."),
    "Turkish": ("Çok üzüldüm, seni başka bir uçuşa aldılar mı?", "Hafta sonu ailemle dağlara gittik ve çok güzeldi."),
    "Indonesian": (
        "Saya ikut sedih, apakah kamu dipindahkan?",
        "Saya tidak suka kopi, tetapi dia suka susu setiap hari.",
    ),
    "Chinese": ("很抱歉听到这个消息，他们给你改签了吗？", "我不喜欢茶。"),
    "Japanese": ("それは残念でしたね。別の便に変更できましたか？", "はい。"),
    "Korean": ("안타깝네요. 다른 항공편으로 바꿔 주었나요?", "저는 차를 좋아하지 않아요."),
    "Russian": ("Мне очень жаль, вас пересадили на другой рейс?", "Я не люблю чай, но мне нравится кофе."),
    "Arabic": ("أنا آسف لسماع ذلك، هل نقلوك إلى رحلة أخرى؟", "لا أحب الشاي."),
    "Hindi": ("मुझे यह सुनकर दुख हुआ, क्या उन्होंने दूसरी उड़ान दी?", "मुझे चाय पसंद नहीं है।"),
}
SCOPES = {folder.name: scope for folder in sorted(PRETRAINED.iterdir()) if (scope := Scope.read(folder)) is not None}
CHATS = SCOPES["general"]


def beyond(context: list[str], response: str) -> str | None:
    return CHATS.beyond(Example.from_texts(context, response))


def test_every_packaged_model_knows_its_scope() -> None:
    packaged = {folder.name for folder in PRETRAINED.iterdir() if (folder / "manifest.json").is_file()}
    assert set(SCOPES) == packaged
    chats = {name: scope for name, scope in SCOPES.items() if not name.startswith("assistant")}
    assert {scope.digest for scope in chats.values()} == {CHATS.digest}


@pytest.mark.parametrize("language", ANSWERS)
def test_another_language_is_named_also_after_an_english_context(language: str) -> None:
    for text in ANSWERS[language]:
        assert beyond([FLIGHT], text) == f"not English ({language})"
        assert CHATS.beyond(Dialogue("a", (Turn(text), Turn(text)))) == "not English (1 of 1 turns)"


@pytest.mark.parametrize("language", ANSWERS)
def test_an_english_answer_after_another_language_is_out_of_scope_too(language: str) -> None:
    assert beyond([ANSWERS[language][0]], "Yes, that is quite right.") == f"after not English ({language})"


def test_short_english_is_in_scope() -> None:
    short = (
        "Ok.",
        "42!",
        "Eastern Airlines?",
        "café",
        "haha :) 😀",
        "No way, José.",
        "Yes.",
        "No.",
        "B.",
        "Option A it is.",
    )
    for text in (
        *short,
        "Confirmed, option A it is.",
        "I love π and Σ.",
        "Paris",
        "$ 20",
        "Hi :)",
        "See https://a.org/b_c?d=1",
        "Dog = canine!",
        "My name is star_gazer.",
    ):
        assert beyond([FLIGHT], text) is None
        assert text == "No way, José." or beyond([], text) is None
    # What is too short by itself is looked at with what was said before.
    assert beyond(["Hast du auch Hunger?"], "Ja, sehr.") == "not English (German)"
    assert beyond(["Hast du auch Hunger?"], "B.") == "after not English (German)"
    assert not any(map(CHATS.beyond, mini.read_examples("test")))


def test_texts_of_several_languages_are_not_english() -> None:
    assert beyond([], "I think 我非常喜欢这个城市，因为它很漂亮。") == "not English (Chinese)"
    assert beyond([], "Well, это очень хорошая идея, thank you!") == "not English (Russian)"
    assert beyond([], "Asdkjf qwzx lkjvbn xcvqq") == "not English"
    assert language_name("日本の人") == "Japanese"
    assert language_name("Бид маргааш явна") == "Cyrillic letters"


POEM = "The sea is calm,\nThe moon is high,\nA boat goes home\nBeneath the sky."
PROGRAM = "def add(a, b):\n    return a + b\n\nprint(add(1, 2))"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PROGRAM, "code or data"),
        ("function add(a, b) {\n  return a + b;\n}", "code or data"),
        ("SELECT name FROM users WHERE id = 3;", "code or data"),
        ("$ pip install numpy", "code or data"),
        ('{"city": "Paris", "temperature": 21}', "code or data"),
        ("2026-01-02 12:00:01,003 ERROR worker: could not connect", "code or data"),
        ("id,name,price\n1,tea,2.5\n2,milk,3.25", "code or data"),
        ("Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nKeyError: 'x'", "code or data"),
        ("HTTP/1.1 404 Not Found\nContent-Type: text/html", "code or data"),
        ("| tea | 2 |\n|---|---|\n| milk | 3 |", "lists or markup"),
        ("You need:\n- eggs\n- milk", "lists or markup"),
        ("# Tea\n\n**Boil** the water.", "lists or markup"),
        ("<p>Boil the <b>water</b>.</p>", "lists or markup"),
        (POEM, "many lines"),
        ("👍🎉", "mostly signs"),
        ("Nice 🎉🎉🎉🎉🎉", "mostly signs"),
        ("I see. " * 100, "very long (200 words, the longest that it knows have 86)"),
    ],
)
def test_what_is_no_chat_is_named(text: str, reason: str) -> None:
    assert beyond([FLIGHT], text) == reason
    # A last turn of any length is read whole.
    assert beyond([text], "That is very nice of you.") == (None if reason.startswith("very long") else f"after {reason}")


def test_a_dialogue_is_out_of_scope_where_most_of_its_turns_are() -> None:
    said = [Turn(text) for text in (FLIGHT, "Oh no, I am sorry.", *ANSWERS["German"], "Yes, me too.")]
    assert CHATS.beyond(Dialogue("a", tuple(said))) == "not English (2 of 4 turns)"
    assert CHATS.beyond(Dialogue("a", (*said[:3], said[1], said[4]))) is None


def sources_of(package: Path, at_once: int) -> list[str]:
    """Functions and classes of Python's own library."""
    found = []
    for path in sorted(package.glob("*.py"))[:at_once]:
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and (node.end_lineno or 0) - node.lineno > 2:
                found.append(textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))[:2000])
    return found


def test_of_code_and_tool_output_95_in_a_hundred_are_out_of_scope() -> None:
    library = Path(ast.__file__).parent
    rows = [{"id": n, "name": name, "tags": [name[:2], n / 7]} for n, name in enumerate(("tea", "black coffee", "milk"))]
    table = io.StringIO()
    csv.DictWriter(table, rows[0], lineterminator="\n").writerows(rows)
    output = [
        to_json(rows),
        to_json(rows[0], indent=1),
        table.getvalue(),
        json.dumps({"error": {"code": 404, "message": "No"}}),
    ]
    record = logging.LogRecord("worker", logging.ERROR, "a.py", 1, "no answer in %d s", (3,), None)
    for layout in (logging.BASIC_FORMAT, "%(asctime)s %(levelname)s %(message)s", "[%(levelname)s] %(message)s"):
        output.append("\n".join([logging.Formatter(layout).format(record)] * 2))
    for texts in (sources_of(library, 40), output):
        assert len(texts) > 6
        assert sum(beyond([FLIGHT], text) is not None for text in texts) >= 0.95 * len(texts)


def test_a_long_text_of_any_kind_is_looked_at_to_its_end() -> None:
    """By no expression that looks at a sign again and again: a quadratic one would not end."""
    for text in (",a" * 200_000, "<a" * 200_000, "= " * 200_000, "\n- a" * 100_000, "x y" * 200_000, "我" * 400_000):
        assert beyond([text], text) is not None


@pytest.mark.real_data
@pytest.mark.parametrize("code", ["tu", "pu", "dz", "pz", "dgu", "eg", "cg", "ft", "fd", "d7"])
def test_of_english_sets_fewer_than_one_in_fifty_are_out_of_scope(code: str, data_dir: Path) -> None:
    items = dstc10.read(code)
    # DSTC7's are posts of Reddit, with links, names of films and other languages.
    most = 0.07 if code == "d7" else 0.02
    assert sum(CHATS.beyond(item) is not None for item in items) <= most * len(items)


def test_a_damaged_or_later_scope_is_refused(tmp_path: Path) -> None:
    stored = json.loads((PRETRAINED / "general" / "scope.json").read_text(encoding="utf-8"))
    path = tmp_path / "scope.json"
    again = "Update dialeval-plugin, or copy the model folder again."
    for change, problem in (
        ({"format_version": 2}, f"{path}: format_version is 2, this release reads 1. {again}"),
        ({"responses": {"colour": 1}}, f"{path}: responses: there is no statistic 'colour'. {again}"),
        ({"responses": {"words": "9"}}, f"{path}: responses.words: input should be a valid number. Copy the folder again."),
    ):
        path.write_text(json.dumps({**stored, **change}))
        with refused(problem, ModelLoadError):
            Scope.read(tmp_path)


ENGLISH = Example.from_texts([FLIGHT], "Oh no, I am sorry. Did they book you on another flight?", id="english")
GERMAN = Example.from_texts(["Mein Flug wurde gestrichen."], ANSWERS["German"][0], id="german")
SAID = "{}: {} % of these responses are unlike anything this model was measured on: {} % not English"


PACKAGED: dict[str, dict[str, Any]] = {
    "general": {},
    "slide": {"variant": "slm"},
    "causalscore": {},
    "dialogue_breakdown": {"method": "max_probability"},
    "dialogue_likelihood": {"level": "turn", "aggregation": None},
}


@functools.cache
def packaged(name: str) -> Scorer:
    return load_scorer(name, **PACKAGED[name])


@pytest.mark.parametrize("name", [*list(PACKAGED)[:4], pytest.param("dialogue_likelihood", marks=pytest.mark.long)])
def test_a_packaged_model_says_what_it_does_not_know(name: str, caplog: pytest.LogCaptureFixture) -> None:
    scorer = packaged(name)
    many = [Example.from_texts([FLIGHT], ENGLISH.response.text, id=str(n)) for n in range(50)]
    blank = Example.from_texts([FLIGHT], " ", id="blank")
    with caplog.at_level(logging.WARNING):
        scorer.score(many)
        # One in 51 is what a file has of typing errors and names.
        scorer.score([*many, GERMAN])
        assert not [said for said in caplog.messages if "unlike" in said]
        scores = scorer.score([*many[:2], GERMAN, blank])
    assert SAID.format(name, 33, 33) in caplog.messages
    assert scores.columns["in_scope"] == (1.0, 1.0, 0.0, None)
    assert scores.out_of_scope == {2: "not English (German)"}
    assert scores.values[2] is not None
    rows = list(scores.rows())
    assert [row.get("out_of_scope") for row in rows] == [None, None, "not English (German)", None]
    assert ["out_of_scope" in row for row in rows] == [False, False, True, False]
    if "percentile" in scores.columns:
        assert [value is None for value in scores.columns["percentile"]] == [False, False, True, True]
    assert scores.to_pandas()["out_of_scope"].tolist()[2] == "not English (German)"


@pytest.mark.parametrize("text", [ANSWERS["Arabic"][0], "| tea | 2 |\n|---|---|", "🎉🎉🎉"])
@pytest.mark.parametrize("name", ["general", "slide", "causalscore"])
def test_an_explanation_of_what_is_out_of_scope_is_the_reason(name: str, text: str) -> None:
    scorer, item = packaged(name), Example.from_texts([FLIGHT], text)
    (known,) = scorer.explain([ENGLISH])
    assert scorer.explain([item, ENGLISH]) == [f"out of scope: {CHATS.beyond(item)}", known]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_a_file_of_scores_its_page_and_what_is_printed_say_it(suffix: str, tmp_path: Path) -> None:
    said = [*(ANSWERS["German"][n % 2] for n in range(2)), PROGRAM, *[ENGLISH.response.text] * 3]
    rows = [{"context": [FLIGHT], "response": text, "id": str(n)} for n, text in enumerate(said)]
    source, output = write_rows(tmp_path / "in.jsonl", rows), tmp_path / f"out{suffix}"
    printed = run("score", source, "--output", output).stdout
    text = "50 % of these responses are unlike anything this model was measured on: 33 % not English, 17 % code or data"
    assert printed.splitlines()[1] == text
    meta = json.loads(Path(f"{output}.meta.json").read_text())
    assert meta["out_of_scope"] == {"code or data": 1, "not English": 2}
    assert meta["columns"][-2:] == ["percentile", "in_scope"]
    run("report", output, "--output", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<dt>Out of scope</dt><dd><b>3</b><small>not English 2, code or data 1</small></dd>" in page
    assert page.count("not English (German)") == 2


def test_shards_say_it_together(tmp_path: Path) -> None:
    rows = [{"context": [FLIGHT], "response": text, "id": text} for text in (*ANSWERS["German"], ENGLISH.response.text)]
    source = write_rows(tmp_path / "in.jsonl", rows)
    shards = [tmp_path / f"{n}.jsonl" for n in (1, 2)]
    for n, shard in enumerate(shards, start=1):
        run("score", source, "--shard", f"{n}/2", "--output", shard)
    printed = run("merge", tmp_path / "all.jsonl", *shards).stdout
    text = "67 % of these responses are unlike anything this model was measured on: 67 % not English"
    assert printed.splitlines()[1] == text


def test_a_model_of_ones_own_without_a_scope_says_nothing(tiny_general: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        scores = load_scorer("general", model=str(tiny_general)).score([GERMAN])
    assert not [said for said in caplog.messages if "unlike" in said]
    assert "in_scope" not in scores.columns


def test_the_sentence_counts_rows_by_kind() -> None:
    assert out_of_scope_text({}, 3) == ""
    assert out_of_scope_text(Counter(map(kind_of, ["very long (9 words)", "very long (8 words)", "not English"])), 1000) == (
        "under 1 % of these responses are unlike anything this model was measured on: "
        "under 1 % very long, under 1 % not English"
    )
