"""Algorithm 1 of DRE for one context: write responses, check each, write anew what fails.

The algorithm repeats until everything is right, and filters with the small model at the end. Here the rounds have a limit, a
response that passed is kept while the others are written anew (as SLIDE does, section 4.1), and what the small model rejects
is written anew too: as a filter behind the loop it would cost the context with every response that it rejects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dialeval_plugin.core.dialogue import Example, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.core.signature import Signature, Value, text_hash
from dialeval_plugin.llm.language_model import LanguageModel, Request
from dialeval_plugin.methods.judging.classification import NEGATIVE, POSITIVE, ClassificationPrompt, classify

from .numbered_lists import KINDS, Kind, read_responses
from .prompts import EXAMPLE_ADVERSARIAL, EXAMPLE_POSITIVE, MAX_TOKENS, STOP, TEMPERATURE, generation_prompt, prompt_id

N_RESPONSES = 5
"""Of each kind, for each context."""
EXPECTED = {"positive": POSITIVE, "adversarial": NEGATIVE}
FIELDS: dict[Kind, str] = {"positive": "positive_responses", "adversarial": "adversarial_negative_responses"}
"""Names in DailyDialog++'s layout."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A response that was written, and what became of it."""

    kind: Kind
    text: str
    round: int
    """From 1."""
    llm_verdict: str
    """The label that the language model gave it, or the reason why there is none."""
    slm_score: float | None = None
    """Of the small model; None where it was not asked or has no score."""
    is_accepted: bool = False


@dataclass(frozen=True, slots=True)
class AugmentedContext:
    """A context with everything that was written for it."""

    id: str
    context: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    reason: str | None = None
    """Why it has fewer than five accepted responses of each kind; None where it has them."""

    def responses(self, kind: Kind) -> list[str]:
        """The accepted responses of a kind, in the order in which they were written."""
        return [candidate.text for candidate in self.candidates if candidate.kind == kind and candidate.is_accepted]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able object that `from_dict` reads back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AugmentedContext:
        """Read what `to_dict` gave."""
        candidates = tuple(Candidate(**candidate) for candidate in data["candidates"])
        return cls(data["id"], tuple(data["context"]), candidates, data["reason"])

    def row(self, provenance: Mapping[str, Value]) -> dict[str, Any]:
        """A row in DailyDialog++'s layout; its further field `provenance` says where each response is from."""
        return {
            "id": self.id,
            "context": list(self.context),
            **{FIELDS[kind]: self.responses(kind) for kind in KINDS},
            "provenance": {**provenance, "responses": [asdict(candidate) for candidate in self.candidates]},
        }


class ResponseWriter:
    """Has a language model write five positive and five adversarial responses to a context, and check them.

    Args:
        model: writes and checks.
        slm: a scorer that has the last word on what the language model let through.
        rounds: how often at most responses are asked for.
        seed: of the draws, for a model that takes one.
        reseed: seeds the generators of a model in this process; called with another number before each draw, which depends
            on seed, context and round alone, so that a run that goes on draws what an uninterrupted one would.

    Raises:
        InputError: `rounds` or `seed` is out of its range, or `slm` has no threshold.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        slm: Scorer | None = None,
        rounds: int = 3,
        seed: int = 0,
        reseed: Callable[[int], object] | None = None,
    ) -> None:
        for name, value, least in (("rounds", rounds, 1), ("seed", seed, 0)):
            if value < least:
                raise InputError(f"augment: {name} is {value}. Give {least} or more.")
        if slm is not None and slm.positive_from is None:
            raise InputError(f"augment: the scorer {slm.name!r} has no threshold to classify with. Use a small model of SLIDE.")
        self.model = model
        self.slm = slm
        self.rounds = rounds
        self.seed = seed
        self._reseed = reseed

    @property
    def provenance(self) -> dict[str, Value]:
        """Everything that can move a response: models, prompts, rounds, seed."""
        return {
            "llm": self.model.identity,
            "generation_prompt": prompt_id(),
            "classification_prompt": ClassificationPrompt().id,
            "temperature": TEMPERATURE,
            "rounds": self.rounds,
            "seed": self.seed,
            "slm": None if self.slm is None else str(Signature(self.slm.signature_fields())),
            "slm_positive_from": None if self.slm is None else self.slm.positive_from,
        }

    def write(self, id: str, context: Sequence[str]) -> AugmentedContext | Unscored:
        """The context with the responses that were accepted, or why the model gave no answer; it may when asked again."""
        if all(map(is_blank, context)):
            return AugmentedContext(id, tuple(context), (), "the context has no text")
        prompt = generation_prompt(context)
        candidates: list[Candidate] = []
        unread: Counter[str] = Counter()
        for round in range(1, self.rounds + 1):
            open_kinds = [kind for kind in KINDS if _n_missing(candidates, kind)]
            if not open_kinds:
                break
            answer = self._draw(prompt, id, round)
            if isinstance(answer, Unscored):
                return answer
            known = [*context, *EXAMPLE_POSITIVE, *EXAMPLE_ADVERSARIAL, *(candidate.text for candidate in candidates)]
            lists = read_responses(answer, known=known, limit=N_RESPONSES, prompt=prompt)
            if isinstance(lists, Unscored):
                unread[lists.reason.value] += 1
                continue
            written = [(kind, text) for kind in open_kinds for text in getattr(lists, kind)]
            checked = self._check(context, written, round)
            if isinstance(checked, Unscored):
                return checked
            for candidate in checked:
                # What passes beyond the fifth is left out: it was neither used nor rejected.
                if not candidate.is_accepted or _n_missing(candidates, candidate.kind):
                    candidates.append(candidate)
        return AugmentedContext(id, tuple(context), tuple(candidates), self._reason(candidates, unread))

    def _draw(self, prompt: str, id: str, round: int) -> str | Unscored:
        if self._reseed is not None:
            self._reseed(int(text_hash(str(self.seed), id, str(round))[:8], 16))
        number = self.seed * self.rounds + round - 1
        (answer,) = self.model.generate([Request(prompt, MAX_TOKENS, STOP, TEMPERATURE, number)])
        return answer

    def _check(self, context: Sequence[str], written: Sequence[tuple[Kind, str]], round: int) -> list[Candidate] | Unscored:
        examples = [Example.from_texts(context, text) for _, text in written]
        verdicts = classify(self.model, examples)
        if failed := [item for item in verdicts if isinstance(item, Unscored) and item.reason is Reason.API_ERROR]:
            return failed[0]
        candidates = [
            Candidate(kind, text, round, verdict.reason.value if isinstance(verdict, Unscored) else verdict)
            for (kind, text), verdict in zip(written, verdicts, strict=True)
        ]
        passed = [index for index, candidate in enumerate(candidates) if candidate.llm_verdict == EXPECTED[candidate.kind]]
        scores = self.slm.score([examples[index] for index in passed]).values if self.slm and passed else [None] * len(passed)
        for index, score in zip(passed, scores, strict=True):
            is_accepted = self.slm is None or self._agrees(candidates[index].kind, score)
            candidates[index] = replace(candidates[index], slm_score=score, is_accepted=is_accepted)
        return candidates

    def _agrees(self, kind: Kind, score: float | None) -> bool:
        """Whether the small model takes a response for what it is meant to be."""
        if self.slm is None or self.slm.positive_from is None or score is None:
            return False
        is_positive = score <= self.slm.positive_from if self.slm.orientation == "lower" else score >= self.slm.positive_from
        return is_positive == (kind == "positive")

    def _reason(self, candidates: Sequence[Candidate], unread: Mapping[str, int]) -> str | None:
        n_accepted = {kind: N_RESPONSES - _n_missing(candidates, kind) for kind in KINDS}
        if all(n == N_RESPONSES for n in n_accepted.values()):
            return None
        parts = [" and ".join(f"{n} of {N_RESPONSES} {kind}" for kind, n in n_accepted.items())]
        parts[0] += f" responses in {self.rounds} round{'s' * (self.rounds > 1)}"
        rejected = Counter(
            "other label" if candidate.llm_verdict in EXPECTED.values() else candidate.llm_verdict
            for candidate in candidates
            if candidate.llm_verdict != EXPECTED[candidate.kind]
        )
        if by_slm := sum(c.llm_verdict == EXPECTED[c.kind] and not c.is_accepted for c in candidates):
            rejected["small model"] = by_slm
        if rejected:
            parts.append("rejected: " + ", ".join(f"{n} {why}" for why, n in sorted(rejected.items())))
        if unread:
            parts.append("answers without responses: " + ", ".join(f"{n} {why}" for why, n in sorted(unread.items())))
        return "; ".join(parts)


def _n_missing(candidates: Sequence[Candidate], kind: Kind) -> int:
    return N_RESPONSES - sum(candidate.is_accepted for candidate in candidates if candidate.kind == kind)
