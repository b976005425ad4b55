"""The scorer `dialogue_reconstruction`: the loss of a trained dialogue model on a dialogue or one response."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import torch
from annotated_types import Ge

from dialeval_plugin.core.dialogue import Item, Level
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import ModelOptions, with_options
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Orientation, Row
from dialeval_plugin.core.signature import SignatureValue, content_hash
from dialeval_plugin.models.folders import DefaultModel, resolve
from dialeval_plugin.models.texts import length_batches, turns_to_read, unread

from .layers import LatentNoise
from .model import TrainedReconstruction
from .vocabulary import TOKENIZER, UNKNOWN, Encoded, EncodedDialogue, make_batch

LossReduction: TypeAlias = Literal["token_mean", "sum"]
Latent: TypeAlias = Literal["prior", "posterior"]

RECONSTRUCTION_MODEL = DefaultModel(
    "dialogue_reconstruction",
    "DIALEVAL_RECONSTRUCTION",
    advice="dialogue_reconstruction: no model is named. Pass model='FOLDER', or set DIALEVAL_RECONSTRUCTION; "
    "`dialeval train reconstruction` makes one.",
)

TOKENS_PER_BATCH = 2048
"""Tokens of one forward pass: with a vocabulary of 20,000 their logits take 160 MB."""


@dataclass(frozen=True, kw_only=True)
class ReconstructionOptions(ModelOptions):
    """Options of `DialogueReconstructionScorer`."""

    level: Level = "dialogue"
    reduction: LossReduction = "token_mean"
    latent: Latent | None = None
    max_utterances: Annotated[int, Ge(2)] | None = None
    seed: int = 13


class DialogueReconstructionScorer(Scorer):
    """Cross-entropy of a dialogue's utterances, each given those before it, under a Seq2Seq, HRED, VHRED or VHCR model.

    Lower is more normal. The first utterance is not scored, turns without a visible character are left out, and speakers' names
    are not read. Nothing is random: no words or utterances are dropped, and latent variables are the means of their priors.

    Columns: `loss_token_mean` is equation 4.1, the mean over an utterance's tokens and then over the utterances; `loss_sum` the
    sum over all tokens, as in the thesis' code; both in nats. `n_utterances` and `n_tokens` count scored utterances and tokens,
    with which a sum grows. `unknown_share` is the share of words outside the vocabulary, which are easier to predict than rare
    words. `n_cut` counts truncated utterances, also in the context. `kl`, with `latent="posterior"` only, is the divergence of
    posteriors and priors.

    Args:
        model: folder or hub id of a model made by `dialeval train reconstruction`; by default that of DIALEVAL_RECONSTRUCTION.
        level: "dialogue" scores a whole dialogue, "turn" one response after its context.
        reduction: loss that is the score: "token_mean" or "sum".
        latent: distribution of the latent variables of VHRED and VHCR: "prior", given the context only, or "posterior", given
            the response too, as in the thesis' code.
        max_utterances: maximum number of utterances; later ones of a dialogue are not read. The thesis' code reads 10. None:
            all.
        seed: seed of draws from posteriors, which are the same for every dialogue.

    Raises:
        InputError: does not go with the model or the level.
        MissingPrerequisite: there is no model.
        ModelLoadError: the model is damaged, unsafe, or of another kind.
    """

    name: ClassVar[str] = "dialogue_reconstruction"
    needs = ("trained model",)
    levels = ("turn", "dialogue")
    citation: ClassVar[str] = bibtex("nedelchev2020treating")
    level: Level = "dialogue"
    orientation: Orientation = "lower"
    range = (0.0, math.inf)
    window = 256

    unscorable = staticmethod(unread)

    @with_options(ReconstructionOptions)
    def __init__(self, options: ReconstructionOptions) -> None:
        if options.max_utterances is not None and options.level == "turn":
            raise InputError(
                "dialogue_reconstruction: max_utterances goes with level='dialogue' only. Leave it out to score all utterances."
            )
        self.options = options
        self.level = options.level
        folder = resolve(RECONSTRUCTION_MODEL.find(options.model), revision=options.revision)
        self.trained = TrainedReconstruction.load(str(folder), device=options.device)
        self._model_hash = content_hash(folder)
        has_latents = bool(self.trained.model.latent_size)
        if options.latent is not None and not has_latents:
            raise InputError(
                f"dialogue_reconstruction: {self.trained.kind} has no latent variables. Leave the option latent out."
            )
        self.latent: Latent | None = (options.latent or "prior") if has_latents else None
        losses = dict.fromkeys((f"loss_{options.reduction}", "loss_token_mean", "loss_sum"))
        kl = ("kl",) if self.latent == "posterior" else ()
        self.columns = (*losses, *kl, "n_utterances", "n_tokens", "unknown_share", "n_cut")
        lost = f"an utterance is longer than {self.trained.max_tokens} tokens; its end was not read"
        self.truncation_columns = {"n_cut": lost}

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method, model, handling of dialogues, and reduction of losses."""
        return {
            "method": self.name,
            "architecture": self.trained.kind,
            "recipe": self.trained.recipe,
            "model": self._model_hash,
            "tokenizer": TOKENIZER,
            "max_tokens": self.trained.max_tokens,
            "truncation": "right",
            "max_utterances": self.options.max_utterances,
            "reduction": self.options.reduction,
            "latent": self.latent,
            "seed": self.options.seed if self.latent == "posterior" else None,
            "speakers": "none",
        }

    @torch.no_grad()
    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score dialogues; those of similar length share batches."""
        model, read = self.trained.model, self.trained.vocabulary.encode
        texts = [turns_to_read(item)[: self.options.max_utterances] for item in items]
        dialogues = [[read(text, max_tokens=self.trained.max_tokens) for text in turns] for turns in texts]
        ids: list[EncodedDialogue] = [[utterance.ids for utterance in dialogue] for dialogue in dialogues]
        rows: list[Row] = [{}] * len(items)
        for places in length_batches([sum(map(len, dialogue)) for dialogue in ids], TOKENS_PER_BATCH):
            batch = make_batch([ids[place] for place in places]).to(self.trained.device)
            noise = LatentNoise.repeated(batch, model.latent_size, self.options.seed) if self.latent == "posterior" else None
            result = model(batch, noise)
            sums, response_kl = (
                [own.tolist() for own in torch.split(values.double().cpu(), list(batch.n_responses))]
                for values in (result.losses.sum(-1), result.response_kl)
            )
            for place, own_sums, own_kl, dialogue_kl in zip(
                places, sums, response_kl, result.dialogue_kl.tolist(), strict=True
            ):
                rows[place] = self._row(dialogues[place], own_sums, own_kl, dialogue_kl)
        return rows

    def _row(self, dialogue: Sequence[Encoded], sums: list[float], response_kl: list[float], dialogue_kl: float) -> Row:
        # At turn level only the last response counts.
        first = len(sums) - 1 if self.level == "turn" else 0
        responses = dialogue[1 + first :]
        lengths = [len(utterance.ids) for utterance in responses]
        sums = sums[first:]
        n_words = sum(lengths) - len(lengths)
        n_unknown = sum(id == UNKNOWN for utterance in responses for id in utterance.ids)
        columns: dict[str, float | None] = {
            "loss_token_mean": math.fsum(total / length for total, length in zip(sums, lengths, strict=True)) / len(sums),
            "loss_sum": math.fsum(sums),
            "kl": math.fsum(response_kl[first:]) + dialogue_kl,
            "n_utterances": float(len(sums)),
            "n_tokens": float(sum(lengths)),
            "unknown_share": n_unknown / max(1, n_words),
            "n_cut": float(sum(utterance.is_cut for utterance in dialogue)),
        }
        return {name: columns[name] for name in self.columns}
