"""Sequence-to-sequence language models as evaluators, and the base class of scorers that use one."""

from __future__ import annotations

import itertools
import re
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, cast

import torch
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM

from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Row
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.models.folders import opening, resolve
from dialeval_plugin.models.language_models import check_window, open_transformer
from dialeval_plugin.models.tensors import padded_tensors

Ids: TypeAlias = list[int]
Question = TypeVar("Question", bound=Hashable)
Answer = TypeVar("Answer")

LONGEST = 1024
"""Maximum tokens in the published code of BARTScore and UniEval."""

_WHAT = "a sequence-to-sequence model"


@dataclass(frozen=True, slots=True)
class Seq2SeqModel:
    """A model in evaluation mode with its tokenizer."""

    model: Any
    tokenizer: Any
    max_tokens: int
    special: re.Pattern[str]
    """Strings that the tokenizer reads as special tokens."""
    ends: tuple[Ids, Ids]
    """Tokens that the tokenizer adds before and after a text."""

    def pieces(self, texts: Sequence[str]) -> list[Ids]:
        """Return the token ids of texts, whose special tokens are read as text."""
        # transformers' split_special_tokens does not suffice: T5's vocabulary contains "</s>". So each is broken in two.
        parts = [self._broken(text) for text in texts]
        flat = [part for pieces in parts for part in pieces]
        ids = iter(self.tokenizer(flat, add_special_tokens=False, verbose=False)["input_ids"] if flat else [])
        return [[id for _ in pieces for id in next(ids)] for pieces in parts]

    def _broken(self, text: str) -> list[str]:
        cuts = [match.start() + 1 for match in self.special.finditer(text)]
        return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    def with_ends(self, piece: Ids) -> Ids:
        """Return the ids with the tokens at the ends of a text."""
        return [*self.ends[0], *piece, *self.ends[1]]

    @property
    def n_ends(self) -> int:
        """Number of tokens that `with_ends` adds."""
        return sum(map(len, self.ends))

    def log_probabilities(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Tensor]:
        """Return for each pair the log probability of each target token after the source, of shape (target tokens,)."""
        labels, _ = self._padded(targets)
        shifted = self.model.prepare_decoder_input_ids_from_labels(labels)
        logs = self._logits(sources, shifted).log_softmax(-1).gather(-1, labels[..., None])[..., 0].cpu()
        return [row[: len(target)] for row, target in zip(logs, targets, strict=True)]

    def first_logits(self, sources: Sequence[Ids]) -> Tensor:
        """Return the logits of the first token of the answer to each source, of shape (sources, vocabulary)."""
        start = torch.full((len(sources), 1), self.model.config.decoder_start_token_id, device=self.model.device)
        return self._logits(sources, start)[:, 0].cpu()

    def _logits(self, sources: Sequence[Ids], decoder_ids: Tensor) -> Tensor:
        ids, mask = self._padded(sources)
        with torch.inference_mode():
            answer = self.model(input_ids=ids, attention_mask=mask, decoder_input_ids=decoder_ids, use_cache=False)
        logits: Tensor = answer.logits.float()
        return logits

    def _padded(self, rows: Sequence[Ids]) -> tuple[Tensor, Tensor]:
        return padded_tensors(rows, self.model.config.pad_token_id, self.model.device)


def _ends(tokenizer: Any) -> tuple[Ids, Ids]:
    probe: Ids = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole: Ids = tokenizer("a")["input_ids"]
    start = next(place for place in range(len(whole)) if whole[place : place + len(probe)] == probe)
    return whole[:start], whole[start + len(probe) :]


class Seq2SeqScorer(Scorer, Generic[Question, Answer]):
    """A scorer that asks a sequence-to-sequence model questions about a response, each distinct one of a window once."""

    window: ClassVar[int] = 256

    def _open(self, model: str, max_tokens: int | None, batch_size: int, device: str | None, revision: str | None) -> None:
        """Open a model; its window is `max_tokens`, or by default its own, `LONGEST` tokens at most."""
        folder = resolve(model, revision=revision)
        opened, tokenizer = open_transformer(AutoModelForSeq2SeqLM, folder, _WHAT, device=device)
        limit = getattr(opened.config, "max_position_embeddings", None)
        window = min(limit or LONGEST, LONGEST) if max_tokens is None else check_window(self.name, max_tokens, limit)
        with opening(folder, _WHAT), torch.inference_mode():
            # A first answer shows whether the parts of the model fit together.
            first = torch.zeros(1, 1, dtype=torch.long, device=opened.device)
            opened(input_ids=first, decoder_input_ids=first)
        special = re.compile("|".join(map(re.escape, tokenizer.all_special_tokens)))
        self.opened = Seq2SeqModel(opened, tokenizer, window, special, _ends(tokenizer))
        self.batch_size = batch_size
        self.model_hash = content_hash(folder)

    @abstractmethod
    def questions(self, example: Example) -> list[Question]:
        """Return the questions about an example, at least one."""

    @abstractmethod
    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """Return the answers to distinct questions."""

    @abstractmethod
    def row(self, answers: Sequence[Answer]) -> Row:
        """Return an example's row from the answers to its questions."""

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Ask all questions together."""
        by_example = [self.questions(example) for example in cast("Sequence[Example]", items)]
        distinct = list(dict.fromkeys(itertools.chain.from_iterable(by_example)))
        answers = dict(zip(distinct, self.answers(distinct), strict=True))
        return [self.row([answers[question] for question in questions]) for questions in by_example]
