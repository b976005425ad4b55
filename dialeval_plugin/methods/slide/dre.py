"""The scorer `dre`: a large model's score, refined by a small model in the prompt and afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias, cast

from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked
from dialeval_plugin.core.registry import with_options
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.scorer import score_rows
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.llm import language_model
from dialeval_plugin.methods.judging import judge
from dialeval_plugin.models.runtimes.runtime import DEFAULT_BACKEND, Backend, Precision

from .fusion import LLM_SCALE, Refinement, read_clamp
from .judging import SLM_FOLDER
from .scorer import SlideOptions, SlmScorer

DreVariant: TypeAlias = Literal["dre", "in_dre", "ex_dre", "non_dre"]

# Variants by prompt.
INTERIOR_VARIANTS: tuple[str, ...] = ("dre", "in_dre")
PLAIN_VARIANTS: tuple[str, ...] = ("ex_dre", "non_dre")
VARIANTS = (*INTERIOR_VARIANTS, *PLAIN_VARIANTS)

PLAIN = judge.SCORING_PROMPTS["dre"]


def measured_accuracy(folder: Path) -> judge.MeasuredAccuracy | None:
    """The accuracies in a model folder's validation record; None if it has none."""
    settings = SLM_FOLDER.read_settings(folder)
    threshold = settings["thresholds"].get("slm")
    figures = checked(
        settings.get("training", {}).get("validation", {}),
        dict[str, float],
        f"{folder / SLM_FOLDER.settings_file}: training.validation",
        advice="Copy the folder again.",
    )
    names = [f"slm_{kind}" for kind in ("positive", "adversarial", "overall")]
    if threshold is None or any(name not in figures for name in names):
        return None
    return judge.MeasuredAccuracy(threshold, *(figures[name] for name in names))


def rows_of_answers(
    refinement: Refinement, small: Row, answers: Mapping[str, float | judge.InteriorAnswer | Unscored]
) -> dict[str, Row]:
    """Return by prompt the scores that follow from its answer, with their components, or the reason why there are none.

    `answers` has the parsed answers to the prompts that were sent, "plain" or "interior" or both. Without the small model's
    columns, the plain prompt gives only `non_dre`; a blank response has no scores.
    """
    slm = None if isinstance(small, Unscored) else small.get("slm")
    rows: dict[str, Row] = {}
    for name, answer in answers.items():
        if isinstance(small, Unscored) and (name == "interior" or small.reason is Reason.EMPTY_INPUT):
            rows[name] = small
        elif isinstance(answer, Unscored):
            rows[name] = answer
        elif isinstance(answer, judge.InteriorAnswer):
            numbers = answer._asdict()
            rows[name] = {**refinement.interior(cast("float", slm), **numbers), **numbers}
        else:
            rows[name] = {**refinement.plain(slm, llm=answer), "llm": answer}
    return rows


@dataclass(frozen=True)
class DreOptions:
    """Options of `dre`.

    Attributes:
        llm: the large model; it scores each example once per prompt that is needed.
        slm: folder or hub id of the small model; by default that of DIALEVAL_SLM, else the bundled one.
        variant: score: "dre" puts the small model's findings into the prompt and multiplies by its coefficient, "in_dre" omits
            the coefficient, "ex_dre" the findings, "non_dre" both.
        ablation: add the other variants as columns. This needs both prompts; if the answer to the plain prompt is unreadable,
            the columns that need it are None.
        eq26: multiply in "dre" by s_c alone, as printed in equation 26, and not by c, as in the text above it.
        clamp: limit the products of "dre" and "ex_dre" to [0, 5] (true) or to the two numbers given.
        clip: limit the normalised distance to [0, 1].
        backend: runtime of the small model; auto is the fastest installed one that is as exact as torch.
        dtype: number format of multiplications in the encoder on torch; float16 only on a GPU.
        device: torch device for the small model; by default a GPU if there is one.
        revision: revision of the small model on the hub.
    """

    llm: language_model.LanguageModel | None = None
    slm: str | None = None
    _: KW_ONLY
    variant: DreVariant = "dre"
    ablation: bool = False
    eq26: bool = False
    clamp: object = None
    clip: bool = False
    backend: Backend = DEFAULT_BACKEND
    dtype: Precision = "float32"
    device: str | None = None
    revision: str | None = None


class DreScorer(language_model.PromptingScorer):
    """DRE (Zhao et al. 2025): a large model's score, refined by a small model in the prompt and afterwards; and its ablations.

    `dre` puts the small model's findings into the large model's prompt and multiplies its score by c = s_c * s_Inf; `in_dre`
    omits the coefficient, `ex_dre` the findings (it multiplies by s_c), `non_dre` both, and needs no small model.

    Columns: the variant's score, on the large model's scale of 0 to 5, products up to 10; then `llm` (the large model's own
    score, in [0, 5]); `influence` (s_Inf in [0, 1]) and `coefficient` (c) if the interior prompt is used; and
    `slm_probability`, `slm_distance`, `slm` (s_c), `context_tokens_cut` and `response_tokens_cut` of the small model as in
    `slide`.

    Raises:
        InputError: an option is unknown.
        MissingPrerequisite: there is no `llm`, or no SLM for a variant that needs one.
        ModelLoadError: the SLM is damaged or unsafe.
    """

    name: ClassVar[str] = "dre"
    needs = ("llm", "trained model")
    packaged_model = "slide"
    range = (0.0, 10.0)
    citation: ClassVar[str] = bibtex("zhao-etal-2025-dre")

    @with_options(DreOptions)
    def __init__(self, options: DreOptions) -> None:
        if options.ablation and options.variant != "dre":
            raise InputError(
                f"dre: ablation adds every variant to 'dre', and variant is {options.variant!r}. Leave one of them out."
            )
        self.refinement = Refinement(options.eq26, read_clamp(options.clamp))
        self.llm = language_model.require_language_model(options.llm, self.name)
        self.variants: tuple[str, ...] = VARIANTS if options.ablation else (options.variant,)
        self.range = LLM_SCALE if options.variant in {"in_dre", "non_dre"} else self.refinement.clamp or (0.0, 2 * LLM_SCALE[1])
        self._slm = self._interior = None
        if self.variants != ("non_dre",):
            shared = ("slm", "clip", "backend", "dtype", "device", "revision")
            self._slm = SlmScorer(SlideOptions(**{name: getattr(options, name) for name in shared}))
            if not {*INTERIOR_VARIANTS}.isdisjoint(self.variants):
                self._interior = judge.InteriorPrompt(measured_accuracy(self._slm.folder))
        asks_plain = not {*PLAIN_VARIANTS}.isdisjoint(self.variants)
        self.prompts = (*(["plain"] if asks_plain else []), *(["interior"] if self._interior else []))
        """Names of the prompts that are used; the last is the variant's own."""
        self.verdicts = {"llm": language_model.Question(judge.OVERALL_QUALITY, LLM_SCALE)}
        # The interior prompt has no question, since one of its two numbers rates no response.
        self.questions = [self.verdicts["llm"] if name == "plain" else None for name in self.prompts]
        self.truncation_columns = self._slm.truncation_columns if self._slm else {}
        answered = ("llm", "influence", "coefficient") if self._interior else ("llm",)
        self.columns = (*self.variants, *answered, *(self._slm.columns if self._slm else ()))

    def reset_cache(self) -> None:
        """Clear the small model's cache."""
        if self._slm is not None:
            self._slm.reset_cache()

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method, variant, prompts with their hashes, options, and both models."""
        fields: dict[str, SignatureValue] = {
            "method": self.name,
            "variant": "+".join(self.variants),
            "prompt": PLAIN.id if "plain" in self.prompts else None,
            "llm": self.llm.identity,
            "scale": f"{LLM_SCALE[0]:g}-{LLM_SCALE[1]:g}",
        }
        if self._slm is None:
            return fields
        interior = self._interior.id if self._interior else None
        return {**fields, "interior_prompt": interior, **self.refinement.signature_fields(), **self._slm.signature_fields()}

    def prepare(self, items: Sequence[Item]) -> list[language_model.Pending]:
        """Compute the small model's columns and the prompts of each response; one without the columns has no prompts."""
        rows = score_rows(self._slm, items) if self._slm else [{} for _ in items]
        return [
            language_model.Pending(item, () if isinstance(row, Unscored) else self._requests(cast("Example", item), row), row)
            for item, row in zip(items, rows, strict=True)
        ]

    def finish(self, pending: language_model.Pending, answers: Sequence[float | judge.InteriorAnswer | Unscored]) -> Row:
        """Return all columns of a response, or the reason why the variant's own prompt, the last one, gave none."""
        rows_of_prompts = rows_of_answers(self.refinement, pending.row, dict(zip(self.prompts, answers, strict=True)))
        own = rows_of_prompts[self.prompts[-1]]
        if isinstance(own, Unscored):
            return own
        rows = [row for row in (pending.row, *rows_of_prompts.values()) if not isinstance(row, Unscored)]
        return {name: value for row in rows for name, value in row.items()}

    def _requests(self, example: Example, row: Mapping[str, float | None]) -> tuple[language_model.Request, ...]:
        requests = [PLAIN.request(example)] if "plain" in self.prompts else []
        if self._interior is not None:
            probability, slm = cast("float", row["slm_probability"]), cast("float", row["slm"])
            requests.append(self._interior.request(example, probability, slm - probability))
        return tuple(requests)
