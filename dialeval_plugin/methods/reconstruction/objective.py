"""What training lowers: cross-entropy of the responses' tokens, and the divergence of latent variables with a rising weight."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from dialeval_plugin.models.batching import length_batches
from dialeval_plugin.training.loop import TrainingLoop

from .batches import EncodedDialogue, make_batch
from .latent import Noise
from .networks import DialogueNetwork
from .recipes import ReconstructionRecipe
from .scorer import TOKENS_PER_BATCH


def train_epoch(
    loop: TrainingLoop,
    network: DialogueNetwork,
    recipe: ReconstructionRecipe,
    dialogues: Sequence[EncodedDialogue],
    *,
    bfloat16: bool,
) -> tuple[float, float]:
    """Cross-entropy and divergence in nats a token, with words dropped and latent variables drawn."""
    network.train()
    device = next(network.parameters()).device
    order = torch.randperm(len(dialogues)).tolist()
    total_loss, total_kl, total_tokens = 0.0, 0.0, 0
    for start in range(0, len(order), recipe.batch_size):
        batch = make_batch([dialogues[place] for place in order[start : start + recipe.batch_size]]).to(device)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bfloat16):
            found = network(batch, Noise.random(batch, network.latent_size))
        loss, kl = found.losses.sum(), found.response_kl.sum() + found.dialogue_kl.sum()
        n_tokens = int(batch.lengths[batch.responses].sum())
        loop.step((loss + kl_weight(network, recipe, loop.n_steps + 1) * kl) / n_tokens)
        total_loss, total_kl, total_tokens = total_loss + loss.item(), total_kl + kl.item(), total_tokens + n_tokens
    return total_loss / total_tokens, total_kl / total_tokens


@torch.no_grad()
def validation_loss(network: DialogueNetwork, dialogues: Sequence[EncodedDialogue]) -> float:
    """Cross-entropy in nats a token as the scorer computes it: nothing dropped, latent variables at their priors' means."""
    network.eval()
    device = next(network.parameters()).device
    total, n_tokens = 0.0, 0
    for places in length_batches([sum(map(len, dialogue)) for dialogue in dialogues], TOKENS_PER_BATCH):
        batch = make_batch([dialogues[place] for place in places]).to(device)
        total += network(batch).losses.sum().item()
        n_tokens += int(batch.lengths[batch.responses].sum())
    return total / n_tokens


def kl_weight(network: DialogueNetwork, recipe: ReconstructionRecipe, n_steps: int) -> float:
    """Rises from 0 to 1 (Bowman et al. 2016): at first a latent variable costs nothing, so that the decoder uses it."""
    return min(1.0, n_steps / recipe.annealing_steps) if network.latent_size else 0.0
