"""BARTScore (Yuan et al. 2021): how likely a sequence-to-sequence model finds one text after another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple, TypeAlias, cast

from dialeval_plugin.core.dialogue import Example, Item, is_blank
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.core.signature import Value, content_hash

from .references import BLANK_RESPONSE, NO_REFERENCE, check_choice
from .seq2seq import batches_by_length, open_seq2seq

Direction: TypeAlias = Literal["context_to_response", "reference_to_response", "response_to_reference", "f_score"]

DEFAULT_MODEL = "facebook/bart-large-cnn"
"""What the published code takes."""

NO_TURN = Unscored(Reason.EMPTY_INPUT, "no visible turn stands before the response")


class _Pair(NamedTuple):
    """A text that is read and one whose likelihood after it is asked for."""

    source: str
    target: str


class BartScore(Scorer):
    """BARTScore (Yuan et al. 2021, equation 2 with equal weights): the mean log probability of a text's tokens after another.

    `context_to_response` is the paper's faithfulness and needs no reference, `reference_to_response` its precision,
    `response_to_reference` its recall, `f_score` the arithmetic mean of the last two. With several references
    the mean over them, as in the published code. At most 0; the ends of a text count as tokens, as in that code. Turns are
    joined by line breaks; of a context that does not fit the beginning is cut, of other texts the end. `n_cut` counts texts
    that were cut.

    Args:
        model: folder or hub id of a sequence-to-sequence model.
        direction: see above.
        max_tokens: window; by default the model's, 1024 at most.
        batch_size: pairs a forward pass.
        device: a torch device.
        revision: of a hub model.

    Raises:
        InputError: an option is unknown, or the window is longer than the model's.
        MissingPrerequisite: there is no such model.
        ModelLoadError: the model is damaged, unsafe or of another kind.
    """

    name: ClassVar[str] = "bartscore"
    citation: ClassVar[str] = """\
@inproceedings{yuan2021bartscore,
  title     = {{BARTScore}: Evaluating Generated Text as Text Generation},
  author    = {Yuan, Weizhe and Neubig, Graham and Liu, Pengfei},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2021}
}"""
    range = (-math.inf, 0.0)
    columns = ("bartscore", "n_cut")
    window: ClassVar[int] = 256

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        direction: Direction = "context_to_response",
        max_tokens: int | None = None,
        batch_size: int = 8,
        device: str | None = None,
        revision: str | None = None,
    ) -> None:
        check_choice("bartscore", "direction", direction, Direction)
        self.direction = direction
        self.opened = open_seq2seq(model, max_tokens=max_tokens, device=device, revision=revision)
        self._batch_size = batch_size
        self._hash = content_hash(self.opened.folder)

    @property
    def cuts(self) -> dict[str, str]:
        """Texts that were not read whole."""
        return {"n_cut": f"texts are longer than {self.opened.max_tokens} tokens and were cut"}

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score the pairs of texts of all items together; each distinct pair once."""
        asked = [self._pairs(cast("Example", item)) for item in items]
        pairs = list(dict.fromkeys(pair for found in asked if not isinstance(found, Unscored) for pair in found))
        scores = dict(zip(pairs, self._scores(pairs), strict=True))
        rows: list[Row] = []
        for found in asked:
            if isinstance(found, Unscored):
                rows.append(found)
                continue
            values, cuts = zip(*(scores[pair] for pair in found), strict=True)
            rows.append({"bartscore": math.fsum(values) / len(values), "n_cut": float(sum(cuts))})
        return rows

    def _pairs(self, example: Example) -> list[_Pair] | Unscored:
        response = example.response.text
        if is_blank(response):
            return BLANK_RESPONSE
        if self.direction == "context_to_response":
            context = [turn.text for turn in example.context if not is_blank(turn.text)]
            return [_Pair("\n".join(context), response)] if context else NO_TURN
        references = [reference for reference in example.references if not is_blank(reference)]
        precision = [_Pair(reference, response) for reference in references]
        recall = [_Pair(response, reference) for reference in references]
        chosen = {"reference_to_response": precision, "response_to_reference": recall, "f_score": [*precision, *recall]}
        return chosen[self.direction] or NO_REFERENCE

    def _scores(self, pairs: Sequence[_Pair]) -> list[tuple[float, int]]:
        """Mean log probability of each target, and how many of its two texts were cut."""
        sources, targets = (self.opened.pieces([pair[place] for pair in pairs]) if pairs else [] for place in (0, 1))
        room = self.opened.max_tokens - self.opened.n_ends
        keeps_end = self.direction == "context_to_response"
        rows = [
            (self.opened.with_ends(source[-room:] if keeps_end else source[:room]), self.opened.with_ends(target[:room]))
            for source, target in zip(sources, targets, strict=True)
        ]
        found = [0.0] * len(rows)
        for places in batches_by_length([len(source) + len(target) for source, target in rows], self._batch_size):
            chosen = [rows[place] for place in places]
            logs_of = self.opened.log_probabilities([source for source, _ in chosen], [target for _, target in chosen])
            for place, logs in zip(places, logs_of, strict=True):
                found[place] = float(logs.double().mean())
        cuts = [(len(source) > room) + (len(target) > room) for source, target in zip(sources, targets, strict=True)]
        return list(zip(found, cuts, strict=True))

    def signature_fields(self) -> dict[str, Value]:
        """Method, direction, model and how texts are read."""
        keeps_end = self.direction == "context_to_response"
        return {
            "method": self.name,
            "direction": self.direction,
            "model": self._hash,
            "separator": "newline" if keeps_end else None,
            "speakers": "none" if keeps_end else None,
            "window": self.opened.max_tokens,
            "truncation": "left" if keeps_end else "right",
        }
