"""UniEval for dialogue (Zhong et al. 2022): a sequence-to-sequence model answers yes or no to a question about a response."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple, TypeAlias, cast

from nltk.tokenize.punkt import PunktSentenceTokenizer

from dialeval_plugin.core.dialogue import Example, Item, is_blank
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.core.signature import Value, content_hash

from .references import BLANK_RESPONSE, check_choice
from .seq2seq import Ids, batches_by_length, open_seq2seq

Dimension: TypeAlias = Literal["naturalness", "coherence", "engagingness", "groundedness", "understandability"]

DEFAULT_MODEL = "MingZhong/unieval-dialog"

NO_FACT = Unscored(Reason.EMPTY_INPUT, "the question reads the facts, and there is none with a visible character")
NO_TURN = Unscored(Reason.EMPTY_INPUT, "the question reads the history, and no visible turn stands before the response")


class Question(NamedTuple):
    """What the model is asked, as the published code words it."""

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
    """One question about one response or one of its sentences."""

    dimension: str
    response: str
    history: str
    facts: str


class UniEval(Scorer):
    """UniEval's dialogue evaluator: P(Yes) / (P(Yes) + P(No)) of the model's first token after a question.

    In [0, 1], but `engagingness` is the sum over the sentences of the response, as published, so it grows with their number
    and has no upper end. Sentences are cut by nltk's Punkt without trained data, which the published code has: it also ends
    one after an abbreviation that it does not know. Turns are joined by line breaks, and so are facts. A history that
    does not fit into the window loses its beginning (`n_cut` tokens); where that does not suffice there is no score
    (`context_too_long`).

    Args:
        dimension: what is asked, one of `QUESTIONS`.
        model: folder or hub id.
        max_tokens: window; by default the model's, 1024 at most.
        batch_size: questions a forward pass.
        device: a torch device.
        revision: of a hub model.

    Raises:
        InputError: an option is unknown, or the window is longer than the model's.
        MissingPrerequisite: there is no such model.
        ModelLoadError: the model is damaged, unsafe or of another kind.
    """

    name: ClassVar[str] = "unieval"
    citation: ClassVar[str] = """\
@inproceedings{zhong2022unieval,
  title     = {Towards a Unified Multi-Dimensional Evaluator for Text Generation},
  author    = {Zhong, Ming and Liu, Yang and Yin, Da and Mao, Yuning and Jiao, Yizhu and Liu, Pengfei and Zhu, Chenguang and
               Ji, Heng and Han, Jiawei},
  booktitle = {Proceedings of the 2022 Conference on Empirical Methods in Natural Language Processing},
  year      = {2022}
}"""
    window: ClassVar[int] = 256

    def __init__(
        self,
        dimension: Dimension = "coherence",
        *,
        model: str = DEFAULT_MODEL,
        max_tokens: int | None = None,
        batch_size: int = 8,
        device: str | None = None,
        revision: str | None = None,
    ) -> None:
        check_choice("unieval", "dimension", dimension, Dimension)
        self.dimension = dimension
        self.range = (0.0, math.inf) if dimension == "engagingness" else (0.0, 1.0)
        self.opened = open_seq2seq(model, max_tokens=max_tokens, device=device, revision=revision)
        self._yes, self._no = (ids[0] for ids in self.opened.pieces(["Yes", "No"]))
        self._sentences = PunktSentenceTokenizer()
        self._batch_size = batch_size
        self._hash = content_hash(self.opened.folder)

    @property
    def columns(self) -> tuple[str, ...]:
        """The dimension, and how many tokens of the history were cut."""
        return (self.dimension, "n_cut")

    @property
    def cuts(self) -> Mapping[str, str]:
        """Tokens of the history that were left out."""
        return {
            "n_cut": f"the question is longer than {self.opened.max_tokens} tokens; the beginning of the history was not read"
        }

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Ask all questions together; each distinct one once."""
        asked = [self._asked(cast("Example", item)) for item in items]
        questions = list(dict.fromkeys(one for found in asked if not isinstance(found, Unscored) for one in found))
        answers = dict(zip(questions, self._answers(questions), strict=True))
        return [found if isinstance(found, Unscored) else self._row([answers[one] for one in found]) for found in asked]

    def _asked(self, example: Example) -> list[_Asked] | Unscored:
        if is_blank(example.response.text):
            return BLANK_RESPONSE
        question = QUESTIONS[self.dimension]
        history = "\n".join(turn.text for turn in example.context if not is_blank(turn.text))
        facts = "\n".join(fact for fact in example.facts if not is_blank(fact))
        if question.reads_history and not history:
            return NO_TURN
        if question.reads_facts and not facts:
            return NO_FACT
        response = example.response.text
        parts = self._sentences.tokenize(response) if self.dimension == "engagingness" else [response]
        return [_Asked(self.dimension, part, history, facts) for part in parts]

    def _row(self, answers: Sequence[tuple[float, int] | Unscored]) -> Row:
        for answer in answers:
            if isinstance(answer, Unscored):
                return answer
        found = cast("Sequence[tuple[float, int]]", answers)
        return {self.dimension: math.fsum(value for value, _ in found), "n_cut": float(max(cut for _, cut in found))}

    def _answers(self, questions: Sequence[_Asked]) -> list[tuple[float, int] | Unscored]:
        rows = [self.question_ids(one) for one in questions]
        found: list[tuple[float, int] | Unscored] = [row if isinstance(row, Unscored) else (0.0, row[1]) for row in rows]
        fitting = {place: row for place, row in enumerate(rows) if not isinstance(row, Unscored)}
        places = list(fitting)
        for batch in batches_by_length([len(fitting[place][0]) for place in places], self._batch_size):
            chosen = [places[number] for number in batch]
            logits = self.opened.first_logits([fitting[place][0] for place in chosen]).double()
            for place, value in zip(chosen, (logits[:, self._yes] - logits[:, self._no]).sigmoid().tolist(), strict=True):
                found[place] = (value, fitting[place][1])
        return found

    def question_ids(self, asked: _Asked) -> tuple[Ids, int] | Unscored:
        """Return the ids of a question as the published code writes it, and how many tokens of the history were cut.

        The published string has `</s>` between its parts; here the token is put there, so that one in a response is text.
        """
        question = QUESTIONS[asked.dimension]
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
                    Reason.CONTEXT_TOO_LONG,
                    f"the question has {n_cut} tokens more than the window of {self.opened.max_tokens}",
                )
            pieces[2] = [*label, *pieces[2][len(label) + n_cut :]]
        end = self.opened.tokenizer.eos_token_id
        first, *others = pieces
        return self.opened.with_ends([*first, *(id for piece in others for id in (end, *piece))]), n_cut

    def signature_fields(self) -> dict[str, Value]:
        """Method, dimension, model and how texts are read."""
        return {
            "method": self.name,
            "dimension": self.dimension,
            "model": self._hash,
            "separator": "newline",
            "speakers": "none",
            "window": self.opened.max_tokens,
            "truncation": "left",
        }
