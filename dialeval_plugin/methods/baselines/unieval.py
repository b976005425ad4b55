"""UniEval for dialogue (Zhong et al. 2022): a sequence-to-sequence model answers yes or no to a question about a response."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple, TypeAlias, cast

from nltk.tokenize.punkt import PunktSentenceTokenizer

from dialeval_plugin.core.dialogue import Example, Item, is_blank, visible_texts
from dialeval_plugin.core.registry import Positive, checked_init
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.scores import NO_TURN, Reason, Row, Unscored
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.models.causal import MaxTokens
from dialeval_plugin.models.texts import length_batches

from .seq2seq import Ids, Seq2SeqScorer

Dimension: TypeAlias = Literal["naturalness", "coherence", "engagingness", "groundedness", "understandability"]

DEFAULT_MODEL = "MingZhong/unieval-dialog"

NO_FACT = Unscored(Reason.EMPTY_INPUT, "the question reads the facts, and there is none with a visible character")


class Question(NamedTuple):
    """A question to the model, worded as in the published code."""

    text: str
    reads_history: bool
    reads_facts: bool


QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {
        "naturalness": Question("Is this a natural response in the dialogue?", False, False),
        "coherence": Question("Is this a coherent response given the dialogue history?", True, False),
        "engagingness": Question(
            "Is this an engaging and informative response according to the dialogue history and fact?", True, True
        ),
        "groundedness": Question("Is this response consistent with knowledge in the fact?", False, True),
        "understandability": Question("Is this an understandable response in the dialogue?", False, False),
    }
)


class _Asked(NamedTuple):
    # One question about a response or one of its sentences.
    response: str
    history: str
    facts: str


class UniEval(Seq2SeqScorer[_Asked, tuple[float, int] | Unscored]):
    """UniEval's dialogue evaluator: P(Yes) / (P(Yes) + P(No)) of the first token of the model's answer to a question.

    Scores are in [0, 1], but `engagingness` is the sum over the sentences of the response, as published, without an upper
    end. Sentences are split by nltk's Punkt without the trained data of the published code, so also after unknown
    abbreviations. Turns and facts are joined by line breaks. A history that does not fit into the window loses its beginning
    (`n_cut` tokens); if that is not enough, there is no score (`context_too_long`).

    Args:
        dimension: quality that the question is about.
        model: folder or hub id of the model.
        max_tokens: maximum number of tokens of an input; by default the model's, 1024 at most.
        batch_size: number of questions per forward pass.

    Raises:
        InputError: the window is longer than the model's.
        MissingPrerequisite: there is no such model.
        ModelLoadError: the model is damaged, unsafe or of another kind.
    """

    name: ClassVar[str] = "unieval"
    needs = ("hub model",)
    citation: ClassVar[str] = bibtex("zhong2022unieval")

    @checked_init
    def __init__(
        self,
        dimension: Dimension = "coherence",
        *,
        model: str = DEFAULT_MODEL,
        max_tokens: MaxTokens | None = None,
        batch_size: Positive = 8,
        device: str | None = None,
        revision: str | None = None,
    ) -> None:
        self.dimension = dimension
        self.range = (0.0, math.inf) if dimension == "engagingness" else (0.0, 1.0)
        self._open(model, max_tokens, batch_size, device, revision)
        self._yes, self._no = (ids[0] for ids in self.opened.pieces(["Yes", "No"]))
        self._sentences = PunktSentenceTokenizer()
        self.columns = (dimension, "n_cut")
        longest = self.opened.max_tokens
        lost = f"the question is longer than {longest} tokens; the beginning of the history was not read"
        self.truncation_columns = {"n_cut": lost}

    def unscorable(self, item: Item) -> Unscored | None:
        """Return a reason also for a response without the history or the facts that the question needs."""
        example, question = cast("Example", item), QUESTIONS[self.dimension]
        if reason := super().unscorable(item):
            return reason
        if question.reads_history and not visible_texts(example.context):
            return NO_TURN
        return NO_FACT if question.reads_facts and all(map(is_blank, example.facts)) else None

    def questions(self, example: Example) -> list[_Asked]:
        """Return the question about the response, or one about each of its sentences."""
        history = "\n".join(visible_texts(example.context))
        facts = "\n".join(fact for fact in example.facts if not is_blank(fact))
        response = example.response.text
        parts = self._sentences.tokenize(response) if self.dimension == "engagingness" else [response]
        return [_Asked(part, history, facts) for part in parts]

    def row(self, answers: Sequence[tuple[float, int] | Unscored]) -> Row:
        """Return the sum over the questions; most dimensions have one."""
        for answer in answers:
            if isinstance(answer, Unscored):
                return answer
        known = cast("Sequence[tuple[float, int]]", answers)
        return {self.dimension: math.fsum(value for value, _ in known), "n_cut": float(max(cut for _, cut in known))}

    def answers(self, questions: Sequence[_Asked]) -> list[tuple[float, int] | Unscored]:
        """Return the normalised probability of Yes and the number of cut tokens, or the reason why a question does not fit."""
        rows = [self.question_ids(one) for one in questions]
        results: list[tuple[float, int] | Unscored] = [row if isinstance(row, Unscored) else (0.0, row[1]) for row in rows]
        fitting = [(place, *row) for place, row in enumerate(rows) if not isinstance(row, Unscored)]
        for batch in length_batches([len(ids) for _, ids, _ in fitting], rows=self.batch_size):
            logits = self.opened.first_logits([fitting[number][1] for number in batch]).double()
            for number, value in zip(batch, (logits[:, self._yes] - logits[:, self._no]).sigmoid().tolist(), strict=True):
                place, _, n_cut = fitting[number]
                results[place] = (value, n_cut)
        return results

    def question_ids(self, asked: _Asked) -> tuple[Ids, int] | Unscored:
        """Return the ids of a question as in the published code, and the number of tokens cut from the history."""
        question = QUESTIONS[self.dimension]
        parts = [f"question: {question.text} ", f" response: {asked.response}"]
        for name, is_read, text in (
            ("dialogue history", question.reads_history, asked.history),
            ("fact", question.reads_facts, asked.facts),
        ):
            if is_read:
                parts[-1] += " "
                parts.append(f" {name}: {text}")
        pieces = self.opened.pieces(parts)
        n_tokens = sum(map(len, pieces)) + len(pieces) - 1 + self.opened.n_ends
        n_cut = max(0, n_tokens - self.opened.max_tokens)
        if n_cut:
            (label,) = self.opened.pieces([" dialogue history:"])
            if not question.reads_history or len(pieces[2]) - len(label) <= n_cut:
                return Unscored(
                    Reason.CONTEXT_TOO_LONG, f"the question has {n_cut} tokens more than the window of {self.opened.max_tokens}"
                )
            pieces[2] = [*label, *pieces[2][len(label) + n_cut :]]
        # The published code writes it as the string `</s>`; as a token, it differs from one in a response.
        end = self.opened.tokenizer.eos_token_id
        first, *others = pieces
        return self.opened.with_ends([*first, *(id for piece in others for id in (end, *piece))]), n_cut

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method, dimension, model and handling of texts."""
        return {
            "method": self.name,
            "dimension": self.dimension,
            "model": self.model_hash,
            "separator": "newline",
            "speakers": "none",
            "window": self.opened.max_tokens,
            "truncation": "left",
        }
