"""The scorer `dialogue_reconstruction`: how much a trained dialogue model is surprised by a dialogue, or by one response."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, cast, get_args

import torch

from dialeval_plugin.core.dialogue import Dialogue, Item, Level, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Orientation, Reason, Row, Unscored
from dialeval_plugin.core.signature import Value, content_hash
from dialeval_plugin.models.defaults import DefaultModel
from dialeval_plugin.models.folders import resolve

from .batches import EncodedDialogue, batches_by_length, make_batch
from .latent import Noise
from .layers import Reconstruction
from .model import TrainedReconstruction
from .vocabulary import TOKENIZER, UNKNOWN, Encoded

Reduction: TypeAlias = Literal["token_mean", "sum"]
Latent: TypeAlias = Literal["prior", "posterior"]

RECONSTRUCTION_MODEL = DefaultModel(
    "reconstruction",
    "DIALEVAL_RECONSTRUCTION",
    "dialogue_reconstruction: no model is named. Pass model='FOLDER', or set DIALEVAL_RECONSTRUCTION; "
    "`dialeval train reconstruction` makes one.",
)

TOKENS_PER_BATCH = 2048
"""Tokens of one forward pass: with a vocabulary of 20,000 their logits take 160 MB."""

NO_TURN = Unscored(Reason.EMPTY_INPUT, "no visible turn stands before the response")
BLANK_RESPONSE = Unscored(Reason.EMPTY_INPUT, "the response has no visible character")
TOO_FEW_TURNS = Unscored(Reason.EMPTY_INPUT, "fewer than two turns have a visible character")


class DialogueReconstructionScorer(Scorer):
    """Cross-entropy of a dialogue's utterances, given those before them, under a Seq2Seq, HRED, VHRED or VHCR.

    The loss serves as a score of how unusual the dialogue is: lower is more normal. The first utterance follows nothing and is
    not scored; turns without a visible character are left out, and speakers' names are not read. Nothing is drawn at random: no
    word and no utterance is dropped, and latent variables are at the means of their priors.

    Columns: `loss_token_mean` is equation 4.1, the mean over an utterance's tokens and then over the utterances; `loss_sum` the
    sum over all tokens, which the thesis' code stores; both in nats. `n_utterances` and `n_tokens` count what was scored: a sum
    grows with them. `unknown_share` is the share of words that the vocabulary lacks: they are easier to foresee than rare words
    are. `n_cut` counts utterances whose end was not read, those of the context too. `kl`, with `latent="posterior"` only, is
    the divergence of posteriors and priors.

    Args:
        model: folder or hub id of a model that `dialeval train reconstruction` made; see `DefaultModel`.
        level: "dialogue" scores whole dialogues, "turn" one response after its context.
        reduction: which loss is the score, "token_mean" or "sum".
        latent: of VHRED and VHCR, "prior", which has read the context only, or "posterior", which has read the response too, as
            in the thesis' code.
        max_utterances: of a dialogue only the first ones count; the thesis' code reads 10. None: all.
        seed: of the draws from posteriors; they are the same for every dialogue.
        device: a torch device.
        revision: of a hub model.

    Raises:
        InputError: an option is unknown, or does not go with the model or the level.
        MissingPrerequisite: there is no model.
        ModelLoadError: the model is damaged, unsafe, or of another kind.
    """

    name: ClassVar[str] = "dialogue_reconstruction"
    citation: ClassVar[str] = """\
@inproceedings{nedelchev2020treating,
  title     = {Treating Dialogue Quality Evaluation as an Anomaly Detection Problem},
  author    = {Nedelchev, Rostislav and Usbeck, Ricardo and Lehmann, Jens},
  booktitle = {Proceedings of the 12th Language Resources and Evaluation Conference},
  pages     = {508--512},
  year      = {2020}
}"""
    orientation: Orientation = "lower"
    range = (0.0, math.inf)
    window = 256

    def __init__(  # noqa: PLR0913 - the thesis' choices, each one named in METHODS
        self,
        model: str | None = None,
        *,
        level: Level = "dialogue",
        reduction: Reduction = "token_mean",
        latent: Latent | None = None,
        max_utterances: int | None = None,
        seed: int = 13,
        device: str | None = None,
        revision: str | None = None,
    ) -> None:
        for option, value, kind in (("level", level, Level), ("reduction", reduction, Reduction), ("latent", latent, Latent)):
            _check_choice(option, value, get_args(kind))
        if max_utterances is not None and (level == "turn" or max_utterances < 2):
            problem = "goes with level='dialogue' only" if level == "turn" else f"is {max_utterances!r}, expected 2 or more"
            raise InputError(f"dialogue_reconstruction: max_utterances {problem}. Leave it out to score all utterances.")
        self.level = level
        self.reduction = reduction
        self.max_utterances = max_utterances
        self.seed = seed
        folder = resolve(RECONSTRUCTION_MODEL.find(model), revision=revision)
        self.trained = TrainedReconstruction.load(str(folder), device=device)
        self._model_hash = content_hash(folder)
        has_latents = bool(self.trained.model.latent_size)
        if latent is not None and not has_latents:
            raise InputError(
                f"dialogue_reconstruction: {self.trained.kind} has no latent variables. Leave the option latent out."
            )
        self.latent: Latent | None = (latent or "prior") if has_latents else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The chosen loss, the other one, and what they rest on."""
        losses = sorted(("loss_token_mean", "loss_sum"), key=lambda name: name != f"loss_{self.reduction}")
        kl = ("kl",) if self.latent == "posterior" else ()
        return (*losses, *kl, "n_utterances", "n_tokens", "unknown_share", "n_cut")

    @property
    def cuts(self) -> dict[str, str]:
        """Utterances that were not read whole."""
        return {"n_cut": f"an utterance is longer than {self.trained.max_tokens} tokens; its end was not read"}

    def signature_fields(self) -> dict[str, Value]:
        """Method, model, how dialogues are read, and how losses become a score."""
        return {
            "method": self.name,
            "architecture": self.trained.kind,
            "recipe": self.trained.recipe,
            "model": self._model_hash,
            "tokenizer": TOKENIZER,
            "max_tokens": self.trained.max_tokens,
            "truncation": "right",
            "max_utterances": self.max_utterances,
            "reduction": self.reduction,
            "latent": self.latent,
            "seed": self.seed if self.latent == "posterior" else None,
            "speakers": "none",
        }

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score the dialogues; those of one length share batches."""
        encoded = [self._encode(item) for item in items]
        rows: list[Row] = [found if isinstance(found, Unscored) else TOO_FEW_TURNS for found in encoded]
        scored = [place for place, found in enumerate(encoded) if not isinstance(found, Unscored)]
        dialogues = [cast("list[Encoded]", encoded[place]) for place in scored]
        ids: list[EncodedDialogue] = [[utterance.ids for utterance in dialogue] for dialogue in dialogues]
        for batch in batches_by_length(ids, TOKENS_PER_BATCH):
            losses = self._losses([ids[place] for place in batch])
            for place, found in zip(batch, losses, strict=True):
                rows[scored[place]] = self._row(found, dialogues[place])
        return rows

    def _encode(self, item: Item) -> list[Encoded] | Unscored:
        texts = _visible_texts(item)
        if isinstance(texts, Unscored):
            return texts
        vocabulary, max_tokens = self.trained.vocabulary, self.trained.max_tokens
        return [vocabulary.encode(text, max_tokens=max_tokens) for text in texts[: self.max_utterances]]

    @torch.no_grad()
    def _losses(self, dialogues: Sequence[EncodedDialogue]) -> list[_Losses]:
        batch = make_batch(dialogues).to(self.trained.device)
        model = self.trained.model
        noise = Noise.repeated(batch, model.latent_size, self.seed) if self.latent == "posterior" else None
        return _by_dialogue(model(batch, noise), batch.n_responses)

    def _row(self, losses: _Losses, dialogue: Sequence[Encoded]) -> Row:
        """Of a dialogue all responses count, of a turn's context none."""
        first = len(losses.sums) - 1 if self.level == "turn" else 0
        responses = dialogue[1 + first :]
        lengths = [len(utterance.ids) for utterance in responses]
        sums = losses.sums[first:]
        n_words = sum(lengths) - len(lengths)
        n_unknown = sum(id == UNKNOWN for utterance in responses for id in utterance.ids)
        found: dict[str, float | None] = {
            "loss_token_mean": math.fsum(total / length for total, length in zip(sums, lengths, strict=True)) / len(sums),
            "loss_sum": math.fsum(sums),
            "kl": math.fsum(losses.response_kl[first:]) + losses.dialogue_kl,
            "n_utterances": float(len(sums)),
            "n_tokens": float(sum(lengths)),
            "unknown_share": n_unknown / max(1, n_words),
            "n_cut": float(sum(utterance.is_cut for utterance in dialogue)),
        }
        return {name: found[name] for name in self.columns}


class _Losses(NamedTuple):
    """What a model says of one dialogue, response by response."""

    sums: list[float]
    response_kl: list[float]
    dialogue_kl: float


def _by_dialogue(found: Reconstruction, n_responses: Sequence[int]) -> list[_Losses]:
    counts = list(n_responses)
    sums, response_kl = (torch.split(values.double().cpu(), counts) for values in (found.losses.sum(-1), found.response_kl))
    return [_Losses(a.tolist(), b.tolist(), c) for a, b, c in zip(sums, response_kl, found.dialogue_kl.tolist(), strict=True)]


def _check_choice(option: str, value: Any, choices: Sequence[str]) -> None:
    if value is not None and value not in choices:
        raise InputError(f"dialogue_reconstruction: there is no {option}={value!r}. Choose one of {', '.join(choices)}.")


def _visible_texts(item: Item) -> list[str] | Unscored:
    """Texts of the turns that have a visible character, the response last."""
    if isinstance(item, Dialogue):
        texts = [turn.text for turn in item.turns if not is_blank(turn.text)]
        return texts if len(texts) > 1 else TOO_FEW_TURNS
    if is_blank(item.response.text):
        return BLANK_RESPONSE
    texts = [turn.text for turn in item.context if not is_blank(turn.text)]
    return [*texts, item.response.text] if texts else NO_TURN
