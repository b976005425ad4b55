"""BARTScore (Yuan et al. 2021): the probability of one text after another by a sequence-to-sequence model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple, TypeAlias, cast

from dialeval_plugin.core.dialogue import Example, Item, is_blank, visible_texts
from dialeval_plugin.core.registry import Positive, checked_init
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.scores import NO_TURN, Row, Unscored
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.models.causal import MaxTokens
from dialeval_plugin.models.texts import length_batches

from .references import NO_REFERENCE
from .seq2seq import Seq2SeqScorer

Direction: TypeAlias = Literal["context_to_response", "reference_to_response", "response_to_reference", "f_score"]

DEFAULT_MODEL = "facebook/bart-large-cnn"
"""Model of the published code."""


class _Pair(NamedTuple):
    source: str
    target: str


class BartScore(Seq2SeqScorer[_Pair, tuple[float, int]]):
    """BARTScore (Yuan et al. 2021, equation 2 with equal weights): mean log probability of a text's tokens given another.

    `context_to_response` is the paper's faithfulness and needs no reference, `reference_to_response` its precision,
    `response_to_reference` its recall, `f_score` the arithmetic mean of the last two. As in the published code, several
    references are averaged and the ends of a text count as tokens. Scores are at most 0. Turns are joined by line breaks. A
    context that is too long loses its beginning, other texts their end; `n_cut` counts truncated texts.

    Args:
        model: folder or hub id of a sequence-to-sequence model.
        direction: "A_to_B" is the log probability of B given A; "f_score" is the mean of the two directions between reference
            and response.
        max_tokens: maximum number of tokens of a text; by default the model's, 1024 at most.
        batch_size: number of text pairs per forward pass.

    Raises:
        InputError: the window is longer than the model's.
        MissingPrerequisite: there is no such model.
        ModelLoadError: the model is damaged, unsafe or of another kind.
    """

    name: ClassVar[str] = "bartscore"
    needs = ("hub model",)
    citation: ClassVar[str] = bibtex("yuan2021bartscore")
    range = (-math.inf, 0.0)
    columns = ("bartscore", "n_cut")

    @checked_init
    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        direction: Direction = "context_to_response",
        max_tokens: MaxTokens | None = None,
        batch_size: Positive = 8,
        device: str | None = None,
        revision: str | None = None,
    ) -> None:
        self.direction = direction
        self._reads_context = direction == "context_to_response"
        self._open(model, max_tokens, batch_size, device, revision)
        self.truncation_columns = {"n_cut": f"texts are longer than {self.opened.max_tokens} tokens and were cut"}

    def unscorable(self, item: Item) -> Unscored | None:
        """Return a reason also for a response without a text to compare it with."""
        nothing = NO_TURN if self._reads_context else NO_REFERENCE
        return super().unscorable(item) or (None if self.questions(cast("Example", item)) else nothing)

    def questions(self, example: Example) -> list[_Pair]:
        """Return the pairs of texts whose log probabilities the score averages."""
        response = example.response.text
        if self._reads_context:
            context = visible_texts(example.context)
            return [_Pair("\n".join(context), response)] if context else []
        references = [reference for reference in example.references if not is_blank(reference)]
        precision = [_Pair(reference, response) for reference in references]
        recall = [_Pair(response, reference) for reference in references]
        return {"reference_to_response": precision, "response_to_reference": recall}.get(self.direction, precision + recall)

    def answers(self, questions: Sequence[_Pair]) -> list[tuple[float, int]]:
        """Return the mean log probability of each target, and the number of its pair's truncated texts."""
        sources, targets = (self.opened.pieces([pair[place] for pair in questions]) for place in (0, 1))
        room = self.opened.max_tokens - self.opened.n_ends
        window = slice(-room, None) if self._reads_context else slice(room)
        read = [self.opened.with_ends(source[window]) for source in sources]
        targets_read = [self.opened.with_ends(target[:room]) for target in targets]
        cuts = [(len(source) > room) + (len(target) > room) for source, target in zip(sources, targets, strict=True)]
        results = [(0.0, n_cut) for n_cut in cuts]
        lengths = [len(source) + len(target) for source, target in zip(read, targets_read, strict=True)]
        for places in length_batches(lengths, rows=self.batch_size):
            logs_of = self.opened.log_probabilities(
                [read[place] for place in places], [targets_read[place] for place in places]
            )
            for place, logs in zip(places, logs_of, strict=True):
                results[place] = (float(logs.double().mean()), cuts[place])
        return results

    def row(self, answers: Sequence[tuple[float, int]]) -> Row:
        """Return the mean over the pairs."""
        means, cuts = zip(*answers, strict=True)
        return {"bartscore": math.fsum(means) / len(means), "n_cut": float(sum(cuts))}

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method, direction, model and handling of texts."""
        of_context: dict[str, SignatureValue] = {"separator": "newline", "speakers": "none"} if self._reads_context else {}
        return {
            "method": self.name,
            "direction": self.direction,
            "model": self.model_hash,
            **of_context,
            "window": self.opened.max_tokens,
            "truncation": "left" if self._reads_context else "right",
        }
