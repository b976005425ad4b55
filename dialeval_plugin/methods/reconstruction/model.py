"""The four models of the probability of responses given the turns before them, and the folder of a trained one.

The folder has `reconstruction.json` (settings and record), `vocabulary.json` (words) and `model.safetensors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.distributions import Normal
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import checked_model_file, to_json, write_text
from dialeval_plugin.models.folders import ModelFolder, opening, resolve
from dialeval_plugin.models.tensors import choose_device, load_weights, save_weights

from . import layers
from .layers import Architecture
from .vocabulary import TOKENIZER, Batch, Vocabulary

NetworkKind: TypeAlias = Literal["seq2seq", "hred", "vhred", "vhcr"]


class DialogueNetwork(nn.Module):
    """Base of the four networks: `words`, an `encoder` of utterances, a `bridge` to the decoder's first state, `decoder`."""

    bridge: nn.Sequential
    decoder: layers.Decoder
    latent_size = 0
    """Size of each latent variable; 0 without latent variables."""

    def __init__(self, architecture: layers.Architecture, *, bidirectional: bool = True) -> None:
        super().__init__()
        self.words = layers.WordTable(architecture)
        self.encoder = layers.UtteranceEncoder(architecture, bidirectional=bidirectional)

    def forward(self, batch: Batch, noise: layers.LatentNoise | None = None) -> layers.Reconstruction:
        """Return the losses on the responses of a batch.

        With `noise` latent variables are samples of their posteriors, which depend on the response or the whole dialogue.
        Without it they are the means of their priors, which depend on the context only, and divergences are 0.
        """
        raise NotImplementedError

    def _contexts(self, batch: Batch) -> Tensor:
        vectors: Tensor = self.encoder(self.words(batch.tokens[batch.contexts]), batch.lengths[batch.contexts])
        return vectors

    def _decode(
        self, states: Tensor, batch: Batch, response_kl: Tensor | None = None, dialogue_kl: Tensor | None = None
    ) -> layers.Reconstruction:
        losses = self.decoder(self.bridge(states), batch.tokens[batch.responses], batch.lengths[batch.responses], self.words)
        return layers.Reconstruction(
            losses,
            losses.new_zeros(len(losses)) if response_kl is None else response_kl,
            losses.new_zeros(len(batch.n_responses)) if dialogue_kl is None else dialogue_kl,
        )


class Seq2SeqNetwork(DialogueNetwork):
    """Seq2Seq (Vinyals and Le 2015): a response depends on the utterance before it only."""

    def __init__(self, architecture: layers.Architecture) -> None:
        super().__init__(architecture, bidirectional=False)
        self.bridge = layers.feed_forward(self.encoder.size, architecture.decoder)
        self.decoder = layers.Decoder(architecture)

    def forward(self, batch: Batch, noise: layers.LatentNoise | None = None) -> layers.Reconstruction:
        """Return the losses; there is no latent variable for `noise`."""
        return self._decode(self._contexts(batch), batch)


class HRED(DialogueNetwork):
    """HRED (Serban et al. 2016): an encoder of utterances, and one of the dialogue up to each utterance."""

    def __init__(self, architecture: layers.Architecture) -> None:
        super().__init__(architecture)
        self.context = layers.ContextEncoder(self.encoder.size, architecture.context)
        self.bridge = layers.feed_forward(architecture.context, architecture.decoder)
        self.decoder = layers.Decoder(architecture)

    def forward(self, batch: Batch, noise: layers.LatentNoise | None = None) -> layers.Reconstruction:
        """Return the losses; there is no latent variable for `noise`."""
        return self._decode(self.context(self._contexts(batch), batch.n_responses), batch)


class VHRED(DialogueNetwork):
    """VHRED (Serban et al. 2017): HRED with a latent variable for each response."""

    def __init__(self, architecture: layers.Architecture) -> None:
        super().__init__(architecture)
        context, latent = architecture.context, architecture.latent
        self.latent_size = latent
        self.context = layers.ContextEncoder(self.encoder.size, context)
        self.prior = layers.GaussianLayer(context, context, context, latent=latent)
        self.posterior = layers.GaussianLayer(context + self.encoder.size, context, context, latent=latent)
        self.bridge = layers.feed_forward(context + latent, architecture.decoder)
        self.decoder = layers.Decoder(architecture)

    def forward(self, batch: Batch, noise: layers.LatentNoise | None = None) -> layers.Reconstruction:
        """Return the losses; see `DialogueNetwork`."""
        utterances = self.encoder(self.words(batch.tokens), batch.lengths)
        contexts = self.context(utterances[batch.contexts], batch.n_responses)
        prior = self.prior(contexts)
        if noise is None:
            return self._decode(torch.cat([contexts, prior.mean], dim=-1), batch)
        posterior = self.posterior(contexts, utterances[batch.responses])
        latents, kl = layers.draw(posterior, noise.responses, prior)
        return self._decode(torch.cat([contexts, latents], dim=-1), batch, kl)


class VHCR(DialogueNetwork):
    """VHCR (Park et al. 2018): a latent variable for the whole dialogue, and one for each response that depends on it."""

    def __init__(self, architecture: layers.Architecture) -> None:
        super().__init__(architecture)
        context, latent = architecture.context, architecture.latent
        self.latent_size = latent
        self.dialogue = layers.DialogueEncoder(self.encoder.size, context)
        self.dialogue_posterior = layers.GaussianLayer(self.dialogue.size, context, context, latent=latent)
        self.start = layers.feed_forward(latent, context)
        self.context = layers.ContextEncoder(self.encoder.size + latent, context)
        self.prior = layers.GaussianLayer(context + latent, context, latent=latent)
        self.posterior = layers.GaussianLayer(context + latent + self.encoder.size, context, context, latent=latent)
        self.bridge = layers.feed_forward(context + 2 * latent, architecture.decoder)
        self.decoder = layers.Decoder(architecture)
        self.hidden_utterance = nn.Parameter(torch.zeros(self.encoder.size))
        self.sentence_drop = architecture.sentence_drop

    def forward(self, batch: Batch, noise: layers.LatentNoise | None = None) -> layers.Reconstruction:
        """Return the losses; see `DialogueNetwork`."""
        utterances = self.encoder(self.words(batch.tokens), batch.lengths)
        dialogue_kl, response_kl = None, None
        if noise is None:
            dialogues = utterances.new_zeros(len(batch.n_responses), self.latent_size)
        else:
            whole = self.dialogue_posterior(self.dialogue(utterances, batch.n_utterances))
            dialogues, dialogue_kl = layers.draw(whole, noise.dialogues, Normal(0.0, 1.0))
        owners = batch.owners
        read = torch.cat([self._drop_utterances(utterances[batch.contexts]), dialogues[owners]], dim=-1)
        contexts = self.context(read, batch.n_responses, self.start(dialogues))
        prior = self.prior(contexts, dialogues[owners])
        if noise is None:
            latents = prior.mean
        else:
            posterior = self.posterior(contexts, dialogues[owners], utterances[batch.responses])
            latents, response_kl = layers.draw(posterior, noise.responses, prior)
        return self._decode(torch.cat([contexts, latents, dialogues[owners]], dim=-1), batch, response_kl, dialogue_kl)

    def _drop_utterances(self, utterances: Tensor) -> Tensor:
        # In training only, so that the dialogue's latent variable has to represent them.
        if not self.training:
            return utterances
        is_dropped = torch.rand(len(utterances), 1, device=utterances.device) < self.sentence_drop
        return torch.where(is_dropped, self.hidden_utterance, utterances)


_NETWORKS: Mapping[NetworkKind, type[DialogueNetwork]] = {"seq2seq": Seq2SeqNetwork, "hred": HRED, "vhred": VHRED, "vhcr": VHCR}


def new_network(kind: NetworkKind, architecture: layers.Architecture) -> DialogueNetwork:
    """Return a network with random weights from torch's global generator."""
    return _NETWORKS[kind](architecture)


VOCABULARY_FILE, WEIGHTS_FILE = "vocabulary.json", "model.safetensors"


class _Settings(TypedDict):
    model: NetworkKind
    recipe: str
    tokenizer: str
    max_tokens: int
    architecture: Architecture


RECONSTRUCTION_FOLDER = ModelFolder(
    "reconstruction.json", _Settings, 2, "a trained model of dialogues", "dialeval train reconstruction"
)


@dataclass(frozen=True, slots=True)
class TrainedReconstruction:
    """A model with everything that its losses depend on."""

    kind: NetworkKind
    recipe: str
    architecture: Architecture
    max_tokens: int
    """Maximum tokens of an utterance, its end included; the rest is cut."""
    vocabulary: Vocabulary
    model: DialogueNetwork

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.model.parameters()).device

    def save(self, folder: Path, training: Mapping[str, Any]) -> None:
        """Write the folder, each file atomically, with the record of the training in reconstruction.json."""
        write_text(folder / VOCABULARY_FILE, to_json(self.vocabulary.words, indent=0) + "\n")
        save_weights(folder / WEIGHTS_FILE, self.model.state_dict())
        fields = _Settings(
            model=self.kind, recipe=self.recipe, tokenizer=TOKENIZER, max_tokens=self.max_tokens, architecture=self.architecture
        )
        RECONSTRUCTION_FOLDER.publish(folder, {**fields, "architecture": asdict(self.architecture)}, training)

    @classmethod
    def load(cls, name: str, *, device: str | None = None) -> TrainedReconstruction:
        """Open a model folder or a model of the hub in evaluation mode, by default on a GPU if there is one.

        Raises:
            InputError: there is no such device.
            ModelLoadError: the folder is damaged, unsafe or no such model; the message names the file.
            MissingPrerequisite: the model is neither a folder nor available from the hub.
        """
        folder = resolve(name)
        settings = RECONSTRUCTION_FOLDER.read_settings(folder)
        if settings["tokenizer"] != TOKENIZER:
            raise ModelLoadError(
                f"{folder / RECONSTRUCTION_FOLDER.settings_file}: tokenizer is {settings['tokenizer']!r}, this release has "
                f"{TOKENIZER!r}. Update dialeval-plugin or train again."
            )
        place = choose_device(device)
        words, path = checked_model_file(folder / VOCABULARY_FILE, list[str]), folder / VOCABULARY_FILE
        try:
            vocabulary = Vocabulary(words)
        except InputError as error:
            raise ModelLoadError(f"{path}: {error}") from None
        architecture = settings["architecture"]
        if len(vocabulary) != architecture.n_tokens:
            raise ModelLoadError(
                f"{path}: has {len(vocabulary)} entries, the weights {architecture.n_tokens}. Copy the folder again."
            )
        with opening(folder, RECONSTRUCTION_FOLDER.kind):
            network = new_network(settings["model"], architecture)
        load_weights(network, folder / WEIGHTS_FILE)
        network.to(place).eval()
        return cls(settings["model"], settings["recipe"], architecture, settings["max_tokens"], vocabulary, network)
