"""Algorithm 1 of DRE, which writes responses to a context, checks them and replaces those that fail, and its files.

The algorithm repeats until all responses pass, and filters with the small model at the end. Here the number of rounds is
limited, and accepted responses are kept while the others are replaced (as in SLIDE, section 4.1), including those that the
small model rejects: as a filter at the end it would lose a context with each of them.
"""

from __future__ import annotations

import csv
import io
import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Example, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import write_json_lines, write_text
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.core.signature import Signature, SignatureValue, text_hash
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.llm.language_model import CutAnswer, LanguageModel, Request, Text, text_of
from dialeval_plugin.methods.judging.classification import NEGATIVE, POSITIVE, PROMPT, classify
from dialeval_plugin.terminal import Progress, for_spreadsheet
from dialeval_plugin.version import __version__

from .prompts import KINDS, MAX_TOKENS, SHOWN, STOP, TEMPERATURE, ResponseKind, generation_prompt, prompt_id, read_responses

logger = logging.getLogger(__name__)

N_RESPONSES = 5
"""Responses of each kind per context."""
EXPECTED = {"positive": POSITIVE, "adversarial": NEGATIVE}
FIELDS: dict[ResponseKind, str] = {"positive": "positive_responses", "adversarial": "adversarial_negative_responses"}
"""Names in DailyDialog++'s layout."""


@dataclass(frozen=True, slots=True)
class GeneratedResponse:
    """A response of the language model with its verdicts."""

    kind: ResponseKind
    text: str
    round: int
    """Number of the round, from 1."""
    llm_verdict: str
    """Label from the language model, or the reason why there is none."""
    slm_score: float | None = None
    """Score from the small model, if it was used and has one."""
    is_accepted: bool = False


@dataclass(frozen=True, slots=True)
class AugmentedContext:
    """A context with all responses written for it."""

    id: str
    context: tuple[str, ...]
    candidates: tuple[GeneratedResponse, ...]
    reason: str | None = None
    """Reason why accepted responses are missing; None if there are five of each kind."""

    def responses(self, kind: ResponseKind) -> list[str]:
        """Return the accepted responses of a kind, in the order in which they were written."""
        return [candidate.text for candidate in self.candidates if candidate.kind == kind and candidate.is_accepted]

    def row(self, provenance: Mapping[str, SignatureValue]) -> dict[str, Any]:
        """Return a row in DailyDialog++'s layout with an additional field `provenance`."""
        return {
            "id": self.id,
            "context": list(self.context),
            **{FIELDS[kind]: self.responses(kind) for kind in KINDS},
            "provenance": {**provenance, "responses": [asdict(candidate) for candidate in self.candidates]},
        }


class ResponseWriter:
    """Writer and checker of five positive and five adversarial responses to a context.

    Args:
        model: language model that writes and checks.
        slm: scorer that checks the responses accepted by the language model.
        rounds: maximum number of requests for responses.
        seed: seed of the samples, for a model that takes one.
        reseed: function that seeds the generators of a model in this process; called before each sample with a number that
            depends on seed, context and round only, so that a resumed run has the samples of an uninterrupted one.

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
    def provenance(self) -> dict[str, SignatureValue]:
        """Everything that can change a response: models, prompts, rounds, seed."""
        return {
            "llm": self.model.identity,
            "generation_prompt": prompt_id(),
            "classification_prompt": PROMPT.id,
            "temperature": TEMPERATURE,
            "rounds": self.rounds,
            "seed": self.seed,
            "slm": None if self.slm is None else str(Signature(self.slm.signature_fields())),
            "slm_positive_from": None if self.slm is None else self.slm.positive_from,
        }

    def write(self, id: str, context: Sequence[str]) -> AugmentedContext | Unscored:
        """Return the context with its responses, or why the model gave no answer; a repeated call may succeed."""
        if all(map(is_blank, context)):
            return AugmentedContext(id, tuple(context), (), "the context has no text")
        prompt = generation_prompt(context)
        candidates: list[GeneratedResponse] = []
        unread: Counter[str] = Counter()
        for round in range(1, self.rounds + 1):
            open_kinds = [kind for kind in KINDS if _n_missing(candidates, kind)]
            if not open_kinds:
                break
            answer = self._draw(prompt, id, round)
            if isinstance(answer, Unscored):
                return answer
            known = [*context, *SHOWN.positive, *SHOWN.adversarial, *(candidate.text for candidate in candidates)]
            is_cut = isinstance(answer, CutAnswer)
            lists = read_responses(text_of(answer), known=known, limit=N_RESPONSES, prompt=prompt, is_cut=is_cut)
            if isinstance(lists, Unscored):
                unread[lists.reason.value] += 1
                continue
            written = [(kind, text) for kind in open_kinds for text in getattr(lists, kind)]
            checked = self._check(context, written, round)
            if isinstance(checked, Unscored):
                return checked
            for candidate in checked:
                # Responses that pass after the fifth are neither used nor rejected.
                if not candidate.is_accepted or _n_missing(candidates, candidate.kind):
                    candidates.append(candidate)
        return AugmentedContext(id, tuple(context), tuple(candidates), self._reason(candidates, unread))

    def _draw(self, prompt: str, id: str, round: int) -> Text | Unscored:
        if self._reseed is not None:
            self._reseed(int(text_hash(str(self.seed), id, str(round))[:8], 16))
        number = self.seed * self.rounds + round - 1
        (answer,) = self.model.generate([Request(prompt, MAX_TOKENS, STOP, TEMPERATURE, number)])
        return answer

    def _check(
        self, context: Sequence[str], written: Sequence[tuple[ResponseKind, str]], round: int
    ) -> list[GeneratedResponse] | Unscored:
        examples = [Example.from_texts(context, text) for _, text in written]
        verdicts = classify(self.model, examples)
        if failed := [item for item in verdicts if isinstance(item, Unscored) and item.reason is Reason.API_ERROR]:
            return failed[0]
        candidates = [
            GeneratedResponse(kind, text, round, verdict.reason.value if isinstance(verdict, Unscored) else verdict)
            for (kind, text), verdict in zip(written, verdicts, strict=True)
        ]
        passed = [index for index, candidate in enumerate(candidates) if candidate.llm_verdict == EXPECTED[candidate.kind]]
        scores = self.slm.score([examples[index] for index in passed]).values if self.slm and passed else [None] * len(passed)
        for index, score in zip(passed, scores, strict=True):
            is_accepted = self.slm is None or _agrees(self.slm, candidates[index].kind, score)
            candidates[index] = replace(candidates[index], slm_score=score, is_accepted=is_accepted)
        return candidates

    def _reason(self, candidates: Sequence[GeneratedResponse], unread: Mapping[str, int]) -> str | None:
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


def _agrees(slm: Scorer, kind: ResponseKind, score: float | None) -> bool:
    if score is None or slm.positive_from is None:
        return False
    is_positive = score <= slm.positive_from if slm.orientation == "lower" else score >= slm.positive_from
    return is_positive == (kind == "positive")


def _n_missing(candidates: Sequence[GeneratedResponse], kind: ResponseKind) -> int:
    return N_RESPONSES - sum(candidate.is_accepted for candidate in candidates if candidate.kind == kind)


SHEET_HEADER = ("context_id", "context", "response", "intended_label", "verdict")


class Augmented(NamedTuple):
    """Contexts by outcome, each list in the original order."""

    complete: list[AugmentedContext]
    incomplete: list[AugmentedContext]
    """Contexts that lack responses after all rounds, with a `reason`."""
    failed: list[tuple[ResponseSet, Unscored]]
    """Contexts without an answer of the model."""


def augment(contexts: Sequence[ResponseSet], writer: ResponseWriter, *, progress: bool = False) -> Augmented:
    """Return the contexts with responses; the same answers, such as those of a cache, give the same result."""
    augmented = Augmented([], [], [])
    for item in Progress(contexts, "augment", disable=not progress, unit="context"):
        written = writer.write(item.id, item.context)
        if isinstance(written, Unscored):
            augmented.failed.append((item, written))
        else:
            (augmented.complete if written.reason is None else augmented.incomplete).append(written)
    if augmented.failed:
        logger.warning("augment: the model gave no answer for %d of %d contexts", len(augmented.failed), len(contexts))
    return augmented


def incomplete_path(output: Path) -> Path:
    """Return the file for the contexts that `write_augmented` does not put into `output`."""
    return output.with_name(output.name + ".incomplete.jsonl")


def write_augmented(augmented: Augmented, output: Path, provenance: dict[str, SignatureValue]) -> None:
    """Write complete contexts to `output`, others with reasons to `<output>.incomplete.jsonl`; remove a file without rows."""
    shared = {**provenance, "version": __version__}
    rest: list[dict[str, Any]] = [{**item.row(shared), "reason": item.reason} for item in augmented.incomplete]
    for item, why in augmented.failed:
        nothing: dict[str, list[str]] = {field: [] for field in FIELDS.values()}
        reason = f"{why.reason.value}: {why.detail}"
        rest.append({"id": item.id, "context": list(item.context), **nothing, "reason": reason})
    for path, rows in ((output, [item.row(shared) for item in augmented.complete]), (incomplete_path(output), rest)):
        if rows:
            write_json_lines(path, rows)
        else:
            path.unlink(missing_ok=True)


def write_spot_check(path: Path, contexts: Sequence[AugmentedContext], *, n: int, seed: int) -> int:
    """Write a CSV file with `n` accepted responses, each with a blank cell for a person's verdict; return their number.

    They are a random sample, or all if there are fewer. Cells are quoted and never formulas. Excel needs the byte order mark.
    """
    rows = [
        (item.id, "\n".join(f"{('FS', 'SS')[place % 2]}: {turn}" for place, turn in enumerate(item.context)), text, kind)
        for item in contexts
        for kind in KINDS
        for text in item.responses(kind)
    ]
    chosen = random.Random(seed).sample(rows, min(n, len(rows)))
    sheet = io.StringIO()
    writer = csv.writer(sheet, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(SHEET_HEADER)
    writer.writerows([*map(for_spreadsheet, row), ""] for row in chosen)
    write_text(path, "\ufeff" + sheet.getvalue())
    return len(chosen)
