"""What a language model is trained on: whole dialogues, each alone in its row, in batches of one length."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.methods.breakdown.data import (
    IGNORED,
    Key,
    Noise,
    PadRows,
    RowsByLength,
    Sources,
    TokenRows,
    natural_spacing,
    ordinary_tokens,
    prepare,
    token_blocks,
)
from dialeval_plugin.methods.breakdown.training import END
from dialeval_plugin.models.language_models import OpenedModel, open_model
from tests.refusals import refused
from tests.tiny.breakdown import TinyModels


def dialogue(*turns: str, id: str = "0") -> Dialogue:
    return Dialogue(id, tuple(map(Turn, turns)))


@pytest.fixture(scope="module")
def opened(tiny_breakdown_models: TinyModels) -> OpenedModel:
    return open_model(str(tiny_breakdown_models.lm), device="cpu")


def test_a_dialogue_is_its_turns_each_with_the_end_of_text(opened: OpenedModel) -> None:
    end, turns = opened.tokenizer.eos_token_id, ["Hello there.", f"Hi {END} you!"]
    one, two = opened.token_ids(turns)
    assert end not in two
    (row,) = token_blocks(opened, [turns], 200)
    assert row == [*one, end, *two, end]
    blocks = token_blocks(opened, [turns], 8)
    assert [token for block in blocks for token in block] == row[: sum(map(len, blocks))]
    assert len(row) - sum(map(len, blocks)) <= 1
    assert {len(block) for block in blocks[:-1]} == {8}


def test_noise_depends_on_epoch_and_row_alone_and_targets_are_clean(opened: OpenedModel) -> None:
    blocks = [list(range(1, 200)), list(range(1, 200)), [opened.tokenizer.eos_token_id] * 50]
    rows = TokenRows(blocks, Noise(0.5, ordinary_tokens(opened), seed=3))
    first, again, later, other, special = (list(rows[Key(*key)].inputs) for key in ((1, 0), (1, 0), (2, 0), (1, 1), (1, 2)))
    assert list(rows[Key(1, 0)].labels) == blocks[0]
    assert first == again
    assert all(first != differing for differing in (blocks[0], later, other))
    assert list(rows[0].inputs) == list(rows[Key(0, 0)].inputs)
    assert special == blocks[2]


def test_padding_is_neither_predicted_nor_perturbed(opened: OpenedModel) -> None:
    rows = TokenRows([[5, 6, 7, 8], [9, 10]], Noise(0.9, ordinary_tokens(opened), seed=1))
    batch = PadRows(opened.pad)([rows[0], rows[1]])
    assert batch["labels"].tolist() == [[5, 6, 7, 8], [9, 10, IGNORED, IGNORED]]
    assert batch["input_ids"][1, 2:].tolist() == [opened.pad] * 2


def test_batches_hold_rows_of_one_length_and_every_row_once() -> None:
    lengths = np.random.default_rng(0).integers(2, 250, size=1003).tolist()
    sampler = RowsByLength(lengths, 16, seed=5)
    orders = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        orders.append(list(sampler))
        assert {key.epoch for key in orders[-1]} == {epoch}
        assert sorted(key.row for key in orders[-1]) == list(range(1003))
    assert orders[0] == orders[2]
    assert [key.row for key in orders[0]] != [key.row for key in orders[1]]
    batches = [[lengths[key.row] for key in orders[0][start : start + 16]] for start in range(0, 1003, 16)]
    assert sum(max(batch) * len(batch) for batch in batches) < 1.06 * sum(lengths)


@pytest.mark.parametrize(
    ("published", "natural"),
    [
        ("Say , Jim , how about a beer ?", "Say, Jim, how about a beer?"),
        ("It ’ s late ; isn't it ? I 'll go .", "It's late; isn't it? I'll go."),
        ("right.But what", "right.But what"),
        ("a price of .5 and :) fine", "a price of .5 and :) fine"),
    ],
)
def test_natural_spacing_undoes_tokenisation_only(published: str, natural: str) -> None:
    assert natural_spacing(published) == natural
    assert natural_spacing(natural) == natural


def test_what_is_reported_on_is_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    same = [dialogue("Hello , you !", "Hi .", id="a"), dialogue("hello you", " ", "HI", id="b")]
    other = [dialogue(f"turn {n}", "answer") for n in range(20)]
    data = prepare(Sources([*same, *other], [other[3]], [same[0]]), validation_fraction=0.1, seed=0, spacing="published")
    assert data.n_left_out == 3
    assert [turns[0] for turns in data.training] == [f"turn {n}" for n in range(20) if n != 3]
    assert [message.partition(",")[0] for message in caplog.messages] == [
        "2 of 22 training dialogues are in the evaluation data too",
        "1 of 20 training dialogues open like a validation dialogue and are left out",
    ]


def test_copies_of_a_dialogue_are_validated_on_or_trained_on_not_both() -> None:
    dialogues = [dialogue(f"turn {n % 10}", "answer") for n in range(30)]
    data = prepare(Sources(dialogues), validation_fraction=0.2, seed=0, spacing="natural")
    assert (len(data.training), len(data.validation)) == (24, 6)
    assert not {turns[0] for turns in data.training} & {turns[0] for turns in data.validation}


def test_too_few_dialogues_are_refused() -> None:
    with refused(
        "training data: 1 dialogues to train on and 0 to validate on are left, at least 1 of each is needed. "
        "Give more dialogues."
    ):
        prepare(Sources([dialogue("only one turn"), dialogue("a", "b")]), validation_fraction=0.5, seed=0, spacing="natural")
