"""The four networks against the equations, one word at a time, what training does that evaluation must not, and words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.distributions import kl_divergence as torch_kl

from dialeval_plugin.methods.reconstruction.layers import Architecture, GaussianLayer, LatentNoise
from dialeval_plugin.methods.reconstruction.model import NetworkKind, new_network
from dialeval_plugin.methods.reconstruction.vocabulary import (
    END,
    PAD,
    START,
    UNKNOWN,
    EncodedDialogue,
    Vocabulary,
    make_batch,
    words,
)
from tests.refusals import refusal
from tests.tiny.reconstruction import KINDS, SIZES, tiny_network

WITH_LATENTS = ("vhred", "vhcr")
DIALOGUES = [
    [[4, 5, 6, END], [7, END], [8, 9, 10, 11, 12, END], [END]],
    [[13, 14, END], [UNKNOWN, UNKNOWN, END]],
    [[6, 4, 4, 17, END], [5, 5, END], [19, 4, 8, END]],
]


def step(gru: nn.GRU, word: Tensor, state: Tensor, direction: str = "") -> Tensor:
    """One step of a gated recurrent unit (Cho et al. 2014), as torch's documentation has it."""
    weights = {name.removesuffix(direction): value for name, value in gru.named_parameters() if name.endswith("l0" + direction)}
    reset, update, new = (weights["weight_ih_l0"] @ word + weights["bias_ih_l0"]).chunk(3)
    reset_h, update_h, new_h = (weights["weight_hh_l0"] @ state + weights["bias_hh_l0"]).chunk(3)
    keep = torch.sigmoid(update + update_h)
    return (1 - keep) * torch.tanh(new + torch.sigmoid(reset + reset_h) * new_h) + keep * state


def run(gru: nn.GRU, vectors: Sequence[Tensor], direction: str = "") -> Tensor:
    state = torch.zeros(gru.hidden_size)
    for vector in reversed(vectors) if direction else vectors:
        state = step(gru, vector, state, direction)
    return state


def encode(network: Any, utterance: Sequence[int]) -> Tensor:
    vectors = [network.words.embedding.weight[token] for token in utterance]
    gru = network.encoder.gru
    states = [run(gru, vectors, direction) for direction in (("", "_reverse") if gru.bidirectional else ("",))]
    return torch.cat(states)


def distribution(layer: GaussianLayer, *vectors: Tensor) -> Normal:
    hidden = layer.hidden(torch.cat(vectors))
    return Normal(layer.mean(hidden), (1 + layer.deviation(hidden).exp()).log() + 1e-4)


def decode(network: Any, state: Tensor, response: Sequence[int]) -> list[float]:
    losses = []
    for read, said in zip([START, *response], response, strict=False):
        state = step(network.decoder.gru, network.words.embedding.weight[read], state)
        logits = network.words.embedding.weight @ network.decoder.answer(state) + network.words.bias
        losses.append(-math.log(logits.exp()[said] / logits.exp().sum()))
    return losses


def by_hand(
    network: Any, dialogue: Sequence[Sequence[int]], noise: Tensor | None = None
) -> tuple[list[list[float]], list[float]]:
    """Losses of each response, and the divergences, that of the dialogue first; `noise` has a row for each of them."""
    kind = type(network).__name__
    vectors = [encode(network, utterance) for utterance in dialogue]
    losses, kl = [], [0.0]
    whole: tuple[Tensor, ...] = ()
    state = torch.zeros(SIZES["context"])
    if kind == "VHCR":
        whole = (torch.zeros(SIZES["latent"]),)
        if noise is not None:
            ends = torch.cat([run(network.dialogue.gru, vectors, direction) for direction in ("", "_reverse")])
            posterior = distribution(network.dialogue_posterior, ends)
            whole = (posterior.mean + posterior.stddev * noise[0],)
            kl = [torch_kl(posterior, Normal(0.0, 1.0)).sum().item()]
        state = network.start(whole[0])
    for place, response in enumerate(dialogue[1:], start=1):
        if kind == "Seq2SeqNetwork":
            losses.append(decode(network, network.bridge(vectors[place - 1]), response))
            continue
        state = step(network.context.gru, torch.cat([vectors[place - 1], *whole]), state)
        latent: tuple[Tensor, ...] = ()
        if kind != "HRED":
            prior = distribution(network.prior, state, *whole)
            latent = (prior.mean,)
            if noise is not None:
                posterior = distribution(network.posterior, state, *whole, vectors[place])
                latent = (posterior.mean + posterior.stddev * noise[place],)
                kl.append(torch_kl(posterior, prior).sum().item())
        losses.append(decode(network, network.bridge(torch.cat([state, *latent, *whole])), response))
    return losses, kl


@torch.no_grad()
@pytest.mark.parametrize(
    ("kind", "is_drawn"), [*((kind, False) for kind in KINDS), *((kind, True) for kind in KINDS if kind in WITH_LATENTS)]
)
def test_losses_and_divergences_are_the_equations_worked_out_one_word_at_a_time(kind: NetworkKind, is_drawn: bool) -> None:
    network, batch = tiny_network(kind), make_batch(DIALOGUES)
    noise = LatentNoise.repeated(batch, SIZES["latent"], seed=3) if is_drawn else None
    found = network(batch, noise)
    rows = None if noise is None else torch.cat([noise.dialogues[:1], noise.responses[:3]])
    expected = [by_hand(network, dialogue, rows) for dialogue in DIALOGUES]
    assert found.losses.shape == (6, 6)
    losses = [one for losses, _ in expected for one in losses]
    for row, one in zip(found.losses.tolist(), losses, strict=True):
        assert row == pytest.approx(one + [0.0] * (6 - len(one)), abs=2e-5)
    response_kl, dialogue_kl = [one for _, kl in expected for one in kl[1:]], [kl[0] for _, kl in expected]
    assert found.response_kl.tolist() == (pytest.approx(response_kl, rel=1e-4) if is_drawn else [0.0] * 6)
    assert found.dialogue_kl.tolist() == (pytest.approx(dialogue_kl, rel=1e-4) if is_drawn else [0.0] * 3)


@torch.no_grad()
@pytest.mark.parametrize("is_drawn", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_dialogue_has_the_same_losses_whatever_it_is_batched_with(kind: NetworkKind, is_drawn: bool) -> None:
    network, draw = tiny_network(kind), np.random.default_rng(1)
    dialogues = [[[*draw.integers(4, 20, draw.integers(0, 20)).tolist(), END] for _ in range(2 + place)] for place in range(12)]

    def reconstruct(dialogues: Sequence[EncodedDialogue]) -> tuple[Tensor, Tensor, Tensor]:
        batch = make_batch(dialogues)
        losses, response_kl, dialogue_kl = network(
            batch, LatentNoise.repeated(batch, SIZES["latent"], seed=5) if is_drawn else None
        )
        return losses.sum(-1), response_kl, dialogue_kl

    alone = zip(*(reconstruct([dialogue]) for dialogue in dialogues), strict=True)
    for together, parts in zip(reconstruct(dialogues), alone, strict=True):
        assert torch.allclose(together, torch.cat(parts), atol=1e-5, rtol=1e-6)


def dropping(kind: NetworkKind, **drops: float) -> nn.Module:
    return tiny_network(kind, **{"dropout": 0.0, "word_drop": 0.0, "sentence_drop": 0.0, **drops})


@torch.no_grad()
@pytest.mark.parametrize(
    ("kind", "drop"), [*((kind, name) for kind in KINDS for name in ("dropout", "word_drop")), ("vhcr", "sentence_drop")]
)
def test_drops_move_losses_in_training_only(kind: NetworkKind, drop: str) -> None:
    network, batch = dropping(kind, **{drop: 0.5}), make_batch(DIALOGUES)
    trained = [network.train()(batch).losses for _ in range(3)]
    assert not torch.equal(trained[0], trained[1]) or not torch.equal(trained[1], trained[2])
    state = torch.get_rng_state()
    evaluated = [network.eval()(batch).losses for _ in range(2)]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(evaluated[0], evaluated[1])
    assert torch.equal(evaluated[0], dropping(kind).eval()(batch).losses)


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_without_drops_training_computes_what_evaluation_does(kind: NetworkKind) -> None:
    network, batch = dropping(kind), make_batch(DIALOGUES)
    assert torch.equal(network.train()(batch).losses, network.eval()(batch).losses)


def test_word_drop_replaces_words_by_unknown_ones_and_leaves_the_start() -> None:
    torch.manual_seed(0)
    inputs = torch.full((2000, 5), 7)
    inputs[:, 0] = START
    decoder = dropping("hred", word_drop=0.25).decoder
    dropped = decoder.train()._drop_words(inputs)
    assert dropped[:, 0].eq(START).all()
    assert set(dropped[:, 1:].unique().tolist()) == {UNKNOWN, 7}
    assert dropped[:, 1:].eq(UNKNOWN).float().mean().item() == pytest.approx(0.25, abs=0.02)
    assert torch.equal(decoder.eval()._drop_words(inputs), inputs)


def test_sentence_drop_hides_whole_utterances() -> None:
    torch.manual_seed(0)
    network = dropping("vhcr", sentence_drop=0.25)
    utterances = torch.randn(2000, network.encoder.size)
    is_hidden = (network.train()._drop_utterances(utterances) == network.hidden_utterance).all(-1)
    assert is_hidden.float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert torch.equal(network.eval()._drop_utterances(utterances), utterances)


def test_noise_is_the_same_for_every_dialogue_and_grows_without_changing() -> None:
    short, long = make_batch(DIALOGUES[1:2]), make_batch(DIALOGUES)
    for batch, first in ((short, 0), (long, 3)):
        noise = LatentNoise.repeated(batch, 3, seed=9)
        assert torch.equal(noise.responses[first], LatentNoise.repeated(short, 3, seed=9).responses[0])
        assert torch.equal(noise.dialogues[0], LatentNoise.repeated(short, 3, seed=9).dialogues[0])
    assert not torch.equal(LatentNoise.repeated(short, 3, seed=10).responses, LatentNoise.repeated(short, 3, seed=9).responses)


def test_a_batch_is_the_utterances_one_under_the_other() -> None:
    batch = make_batch(DIALOGUES[:2])
    assert batch.tokens.tolist()[:2] == [[4, 5, 6, END, PAD, PAD], [7, END, PAD, PAD, PAD, PAD]]
    assert batch.lengths.tolist() == [4, 2, 6, 1, 3, 3]
    assert batch.contexts.tolist() == [0, 1, 2, 4]
    assert batch.responses.tolist() == [1, 2, 3, 5]
    assert batch.owners.tolist() == [0, 0, 0, 1]
    assert (batch.n_utterances, batch.n_responses) == ((4, 2), (3, 1))


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (Vocabulary, [("hi", "hi")], "vocabulary: a word occurs twice. Give each word once."),
    ],
)
def test_what_there_cannot_be_is_refused(call: Callable[..., object], given: list[Any], message: str) -> None:
    assert refusal(call, *given) == message


def test_the_thesis_sizes_are_the_defaults() -> None:
    with torch.device("meta"):
        network = new_network("vhcr", Architecture(20_004))
    assert network.words.embedding.weight.shape == (20_004, 500)
    assert network.encoder.gru.bidirectional
    assert (network.encoder.gru.hidden_size, network.context.gru.hidden_size, network.decoder.gru.hidden_size) == (1000,) * 3
    assert network.latent_size == 100


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't know.", "i don ' t know ."),
        ("I don ’ t know .", "i don ' t know ."),
        ("“Well”, she said...", 'well " " , she said . . .'),
        ("<unk> </s>", "< unk > < / s >"),
        ("Ｆｕｌｌ width № 5", "full width no 5"),
        ("日本 🙂", "日本 🙂"),
        (" \t\n", ""),
    ],
)
def test_words_are_lower_case_and_punctuation_stands_alone(text: str, expected: str) -> None:
    assert sorted(words(text)) == sorted(expected.split())


def test_the_most_frequent_words_are_learnt_ties_in_the_order_of_the_alphabet() -> None:
    utterances = [["b", "a", "c"], ["b", "a", "d"], ["b", "e"]]
    assert Vocabulary.learn(utterances, max_words=10, min_count=2).words == ("b", "a")
    assert Vocabulary.learn(utterances, max_words=3, min_count=1).words == ("b", "a", "c")
    assert len(Vocabulary(("b", "a"))) == 6


def test_a_text_becomes_numbers_that_no_text_can_spell_besides_its_words() -> None:
    vocabulary = Vocabulary(("hi", "you", "unk", "s"))
    assert vocabulary.encode("Hi you stranger", max_tokens=30) == ((4, 5, UNKNOWN, END), False)
    assert vocabulary.encode("<unk>", max_tokens=30).ids == (UNKNOWN, 6, UNKNOWN, END)
    assert vocabulary.encode("", max_tokens=30) == ((END,), False)


@pytest.mark.parametrize(("n_words", "is_cut"), [(28, False), (29, False), (30, True), (1_000_000, True)])
def test_what_is_longer_than_the_window_is_cut_and_still_ends(n_words: int, is_cut: bool) -> None:
    found = Vocabulary(("hi",)).encode("hi " * n_words, max_tokens=30)
    assert found == ((4,) * min(29, n_words) + (END,), is_cut)
