"""A model of English that reads another language says so. FAULTS_FOUND_2 F9; UniEval#6, bleurt#11."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.language import WARNED_FROM, is_foreign
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers import dstc10
from tests.cli.running import run

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
    "Russian": ("Мне очень жаль, вас пересадили на другой рейс?", "Я не люблю чай."),
    "Arabic": ("أنا آسف لسماع ذلك، هل نقلوك إلى رحلة أخرى؟", "لا أحب الشاي."),
    "Hindi": ("मुझे यह सुनकर दुख हुआ, क्या उन्होंने दूसरी उड़ान दी?", "मुझे चाय पसंद नहीं है।"),
}
SAID = "{}: {} of {} examples do not look like English, the only language that its model was trained and measured on"


@pytest.mark.parametrize("language", ANSWERS)
def test_another_language_is_seen_also_after_an_english_context(language: str) -> None:
    for text in ANSWERS[language]:
        assert is_foreign(Example.from_texts([FLIGHT], text))
        assert is_foreign(Dialogue("a", (Turn(text), Turn(text))))


def test_short_english_is_not_foreign() -> None:
    for text in ("Ok.", "42!", "", "Eastern Airlines?", "café", "haha :) 😀", "No way, José."):
        assert not is_foreign(Example.from_texts([FLIGHT], text))
        assert not is_foreign(Example.from_texts([], text))
    # What is too short by itself is looked at with what was said before.
    assert is_foreign(Example.from_texts(["Hast du auch Hunger?"], "Ja, sehr."))
    assert not any(map(is_foreign, mini.read_examples("test")))


@pytest.mark.real_data
@pytest.mark.parametrize("code", ["tu", "pu", "dz", "pz", "dgu", "eg", "cg", "ft", "fd", "d7"])
def test_of_english_sets_fewer_than_one_in_a_hundred_look_foreign(code: str, data_dir: Path) -> None:
    items = dstc10.read(code)
    assert sum(map(is_foreign, items)) <= 0.01 * len(items) < WARNED_FROM * len(items)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("general", {}),
        ("slide", {"variant": "slm"}),
        ("causalscore", {}),
        ("dialogue_breakdown", {"method": "max_probability"}),
        pytest.param("dialogue_likelihood", {"level": "turn", "aggregation": None}, marks=pytest.mark.long),
    ],
)
def test_a_packaged_model_says_that_it_reads_another_language(
    name: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    scorer = load_scorer(name, **options)
    german = Example.from_texts(["Mein Flug wurde gestrichen."], ANSWERS["German"][0])
    english = [
        Example.from_texts([FLIGHT], "Oh no, I am sorry. Did they book you on another flight?", id=str(n)) for n in range(50)
    ]
    with caplog.at_level(logging.WARNING):
        scorer.score(english)
        # One in 51 is what a file has of typing errors and names.
        scorer.score([*english, german])
        assert not [said for said in caplog.messages if "English" in said]
        scorer.score([*english[:2], german])
    assert SAID.format(name, 1, 3) in caplog.messages


def test_a_stream_says_it_once_and_a_model_of_ones_own_does_not(
    tmp_path: Path, tiny_general: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [json.dumps({"context": ["Hallo."], "response": ANSWERS["German"][n % 2], "id": str(n)}) for n in range(4)]
    (tmp_path / "in.jsonl").write_text("\n".join(rows))
    with caplog.at_level(logging.WARNING):
        run("score", tmp_path / "in.jsonl", "--output", tmp_path / "out.parquet")
        assert [said for said in caplog.messages if "English" in said] == [SAID.format("general", 4, 4)]
        caplog.clear()
        load_scorer("general", model=str(tiny_general)).score([Example.from_texts(["Hallo."], ANSWERS["German"][0])])
    assert not [said for said in caplog.messages if "English" in said]
