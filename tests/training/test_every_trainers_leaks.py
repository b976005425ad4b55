"""Every trainer leaves out the dialogue that a reported context was cut from, whatever its spelling (R48)."""

from __future__ import annotations

import json
import logging
import tempfile
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn
from dialeval_plugin.core.files import write_json_lines
from dialeval_plugin.corpora.identity import LEAK_RULE, LeakIndex
from dialeval_plugin.corpora.readers.cgdialog import CausePair
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.methods.breakdown import data as breakdown
from dialeval_plugin.methods.causalscore import data as causalscore
from dialeval_plugin.methods.general.conversations import read_conversations
from dialeval_plugin.methods.reconstruction import training as reconstruction
from dialeval_plugin.methods.reconstruction.training import RECIPES
from dialeval_plugin.methods.slide.data import without_leaks
from tests.tiny.breakdown import SIZES

Texts = Sequence[str]

OTHERS: list[Texts] = [
    [f"Where did you put the {thing}?", f"I left the {thing} beside the old kettle, I think.", "Then look again, please."]
    for thing in ("ladder", "hammer", "bucket", "candle", "carpet", "mirror")
]
"""Training dialogues that have nothing in common with what is generated."""


def dialogues(training: Sequence[Texts]) -> list[Dialogue]:
    return [Dialogue(str(number), tuple(map(Turn, texts))) for number, texts in enumerate(training)]


def pairs(training: Sequence[Texts]) -> list[CausePair]:
    return [CausePair(one.id, one.turns[:-1], one.turns[-1], (0,)) for one in dialogues(training)]


def left_out_of_slm(training: Sequence[Texts], item: Item) -> int:
    sets = [ResponseSet(str(number), tuple(texts[:-1]), (texts[-1],)) for number, texts in enumerate(training)]
    return len(sets) - len(without_leaks(sets, [item]))


def left_out_of_general(training: Sequence[Texts], item: Item) -> int:
    left_out: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "talk.jsonl"
        write_json_lines(path, ({"turns": list(texts)} for texts in training))
        read_conversations([str(path)], LeakIndex({"reported": [item]}), left_out)
    return left_out["talk"]


def left_out_of_independence(training: Sequence[Texts], item: Item) -> int:
    unlabelled = [one.turns for one in dialogues(training)]
    counts = causalscore.prepare(causalscore.CausalSources(pairs(training), unlabelled=unlabelled, held_out=[item])).counts
    assert counts["n_leaking_unlabelled_dialogues"] >= counts["n_leaking_training_pairs"]
    return counts["n_leaking_training_pairs"]


def left_out_of_independence_as_measured(training: Sequence[Texts], item: Item) -> int:
    """The same where the reported response has causes, which are measured."""
    assert isinstance(item, Example)
    measured = CausePair("measured", item.context, item.response, (0,))
    return causalscore.prepare(causalscore.CausalSources(pairs(training), evaluation=[measured])).counts[
        "n_leaking_training_pairs"
    ]


def left_out_of_language_model(training: Sequence[Texts], item: Item) -> int:
    sources = breakdown.LanguageModelSources(dialogues(training), evaluation=[item])
    return breakdown.prepare(sources, validation_fraction=0.2, seed=1, spacing="natural").n_left_out


def left_out_of_language_models_validation(training: Sequence[Texts], item: Item) -> int:
    sources = breakdown.LanguageModelSources([Dialogue("t", (Turn("Well?"), Turn("No.")))], dialogues(training), [item])
    data = breakdown.prepare(sources, validation_fraction=0.2, seed=1, spacing="natural")
    return len(training) - len(data.validation)


def left_out_of_reconstruction(training: Sequence[Texts], item: Item) -> int:
    sources = reconstruction.ReconstructionSources([one.turns for one in dialogues(training)], evaluation=[item])
    prepared = reconstruction.prepare(sources, RECIPES["small"], validation_fraction=0.2, seed=1)
    return prepared.counts["n_training_in_evaluation"]


TRAINERS: Mapping[str, Callable[[Sequence[Texts], Item], int]] = {
    "slm": left_out_of_slm,
    "general": left_out_of_general,
    "independence": left_out_of_independence,
    "independence, measured": left_out_of_independence_as_measured,
    "language_model": left_out_of_language_model,
    "language_model, validation": left_out_of_language_models_validation,
    "reconstruction": left_out_of_reconstruction,
}

DISGUISES: Mapping[str, Callable[[str], str]] = {
    "as it is": str,
    "re-spaced": lambda text: " " + "\u00a0 ".join(text.split()) + "\t",
    "upper case": str.upper,
    "punctuated": lambda text: f"{' , '.join(text.split())} ... !",
    "combining accents": lambda text: unicodedata.normalize("NFD", text),
    "zero-width": "\u200b".join,
}

WORDS = st.lists(st.text("bcdfgéüñao", min_size=3, max_size=7), min_size=4, max_size=7, unique=True)


@pytest.mark.parametrize("name", TRAINERS)
@settings(max_examples=25)
@given(dialogue=st.lists(WORDS, min_size=4, max_size=6, unique_by=tuple), draw=st.data())
def test_a_context_cut_out_of_a_training_dialogue_is_found(name: str, dialogue: list[list[str]], draw: st.DataObject) -> None:
    texts = [" ".join(words) for words in dialogue]
    # Of whatever length a run is: the rule wants two utterances with eight different words, or a common opening.
    first = draw.draw(st.integers(0, len(texts) - 3))
    last = draw.draw(st.integers(first + 2, len(texts) - 1))
    disguised = [DISGUISES[draw.draw(st.sampled_from(sorted(DISGUISES)))](text) for text in texts[first : last + 1]]
    is_long = len({word for words in dialogue[first : last + 1] for word in words}) >= 8
    item = Example.from_texts(disguised, "Nothing that anybody else has said so far, I hope.", id="reported")
    assert TRAINERS[name]([*OTHERS[:3], texts, *OTHERS[3:]], item) == int(is_long or first == 0)


@pytest.mark.parametrize("name", TRAINERS)
def test_what_shares_nothing_is_kept(name: str) -> None:
    item = Example.from_texts(["Where did you put the violin?", "Under the bed, as I told you yesterday."], "Oh.")
    assert TRAINERS[name](OTHERS, item) == 0


@pytest.fixture
def reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rated set whose context is the end of the first of the others, spelt otherwise."""
    context = [f" {text.upper()}" for text in OTHERS[0][1:]]
    write_json_lines(tmp_path / "rated.jsonl", [{"context": context, "response": "No, thanks."}])
    return tmp_path / "rated.jsonl"


def arguments(trainer: str, folder: Path, encoder: Path) -> list[object]:
    """Writes what a trainer reads, the others in its layout, and returns its options."""
    if trainer == "slm":
        wrong = {"adversarial_negative_responses": ["It is not old."], "random_negative_responses": []}
        sets = [{"id": n, "context": texts[:-1], "positive_responses": texts[-1:], **wrong} for n, texts in enumerate(OTHERS)]
        write_json_lines(folder / "sets.jsonl", sets)
        fast: list[object] = ["--backbone", encoder, "--epochs", 1, "--validation-fraction", 0.4]
        return ["--data", folder / "sets.jsonl", *fast, "--precision", "float32"]
    if trainer == "independence":
        causes = [{"history": texts[:-1], "response": texts[-1], "entities": [texts[1]]} for texts in OTHERS]
        (folder / "causes.json").write_text(json.dumps(causes))
        fast = ["--backbone", encoder, "--epochs", 1, "--rounds", 0, "--validation-fraction", 0.4, "--max-tokens", 128]
        return ["--data", folder / "causes.json", *fast, "--precision", "float32"]
    write_json_lines(folder / "talk.jsonl", ({"turns": texts} for texts in OTHERS))
    if trainer == "language-model":
        sizes = [f"--{name.removeprefix('n_')}={value}" for name, value in SIZES.items() if name != "batch_size"]
        return ["--data", folder / "talk.jsonl", *sizes, "--precision", "float32"]
    return ["--data", folder / "talk.jsonl", "--epochs", 1, "--device", "cpu"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("trainer", "record", "name"),
    [
        ("slm", "slm.json", "training contexts"),
        ("independence", "causalscore.json", "training pairs"),
        ("language-model", "language_model.json", "training dialogues"),
        ("reconstruction", "reconstruction.json", "training dialogues"),
    ],
)
def test_every_command_reads_rated_sets_and_records_the_rule(
    trainer: str, record: str, name: str, reported: Path, tmp_path: Path, tiny_encoder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "model"
    words = ["train", trainer, "--output", output, "--evaluation", reported, *arguments(trainer, tmp_path, tiny_encoder)]
    with caplog.at_level(logging.WARNING):
        done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    said = f"1 of 6 {name} are in the evaluation data too, or have a part of it, and are left out"
    assert caplog.messages[0].startswith(said)
    read = json.loads((output / record).read_text())
    assert read.get("training", read)["leak_rule"] == LEAK_RULE
