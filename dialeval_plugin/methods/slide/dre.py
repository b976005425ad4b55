"""The scorer `dre`: a large model's score, refined by a small model before it is given and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias, cast

from dialeval_plugin.core.dialogue import Example, Item, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scoring import Reason, Row, Scorer, Unscored, finite_or_unscored
from dialeval_plugin.core.shapes import checked
from dialeval_plugin.core.signature import Value
from dialeval_plugin.llm.language_model import LanguageModel, require_language_model
from dialeval_plugin.methods.judging.interior import Evidence, InteriorPrompt, MeasuredAccuracy, read_interior
from dialeval_plugin.methods.judging.prompts import ScoringPrompt, scoring_prompt

from .model import SLM_FOLDER
from .refinement import LLM_SCALE, Refinement, read_clamp
from .scorer import SlideScorer

Variant: TypeAlias = Literal["dre", "in_dre", "ex_dre", "non_dre"]

INTERIOR_VARIANTS: tuple[str, ...] = ("dre", "in_dre")
"""Variants that ask the interior prompt."""
PLAIN_VARIANTS: tuple[str, ...] = ("ex_dre", "non_dre")
"""Variants that ask the plain prompt."""
VARIANTS = (*INTERIOR_VARIANTS, *PLAIN_VARIANTS)

PLAIN_PROMPT = "dre"
_EVIDENCE = ("slm_probability", "slm_distance", "slm")


class SmallModelEvidence:
    """The small model's part of DRE: what it says of responses, and the prompt that shows it to the large one.

    Args:
        slm: folder or hub id of the small model; see `DefaultModel`.
        clip: keep the normalised distance in [0, 1].
        device: a torch device.
        revision: of a hub model.

    Raises:
        MissingPrerequisite: there is no SLM.
        ModelLoadError: the SLM is damaged or unsafe.
    """

    def __init__(
        self, slm: str | None = None, *, clip: bool = False, device: str | None = None, revision: str | None = None
    ) -> None:
        self._scorer = SlideScorer(slm, variant="slm", clip=clip, device=device, revision=revision)
        self.prompt = InteriorPrompt(measured_accuracy(self._scorer.folder))

    @property
    def cuts(self) -> Mapping[str, str]:
        """What the small model did not read, see `Scorer.cuts`."""
        return self._scorer.cuts

    def rows(self, examples: Sequence[Example]) -> list[Row]:
        """Columns of SLIDE's small model; a row whose numbers are not finite is unscored, so that nobody is asked about it."""
        return [finite_or_unscored(row) for row in self._scorer.score_batch(examples)]

    def render(self, example: Example, row: Mapping[str, float | None]) -> str:
        """The interior prompt of a response and its row."""
        probability, slm = cast("float", row["slm_probability"]), cast("float", row["slm"])
        return self.prompt.render(example, Evidence(probability, slm - probability))

    def signature_fields(self) -> dict[str, Value]:
        """What pins the small model's numbers."""
        return {name: value for name, value in self._scorer.signature_fields().items() if name not in {"method", "variant"}}


def measured_accuracy(folder: Path) -> MeasuredAccuracy | None:
    """Return the accuracies that a model folder's validation gave; None where it has none."""
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
    return MeasuredAccuracy(threshold, *(figures[name] for name in names))


class DreScorer(Scorer):
    """DRE (Zhao et al. 2025) and its ablations.

    `dre` asks the large model with the small model's findings in the prompt and multiplies its score by c = s_c * s_Inf;
    `in_dre` leaves the coefficient out, `ex_dre` the findings (it multiplies by s_c), `non_dre` both, and needs no small model.

    Columns: the variant's own, on the large model's scale of 0 to 5, products up to 10; then `llm` (the large model's own
    score, in [0, 5]), `influence` (s_Inf in [0, 1]) and `coefficient` (c) where the interior prompt is asked, and
    `slm_probability`, `slm_distance`, `slm` (s_c), `context_tokens_cut` and `response_tokens_cut` of the small model as in
    `slide`.

    Args:
        llm: the large model; each example is asked once for each prompt that is needed.
        slm: folder or hub id of the small model; see `DefaultModel`.
        variant: "dre", "in_dre", "ex_dre" or "non_dre".
        ablation: give the other variants as columns beside `dre`. That asks both prompts; a row whose plain prompt could not
            be read has None in the columns that need it.
        eq26: multiply by s_c alone, as equation 26 is printed; see `Refinement`.
        clamp: keep products in [0, 5] (true) or in two bounds.
        clip: keep the normalised distance in [0, 1].
        device: a torch device for the small model.
        revision: of a small model on the hub.

    Raises:
        InputError: an option is unknown.
        MissingPrerequisite: there is no `llm`, or no SLM for a variant that needs one.
        ModelLoadError: the SLM is damaged or unsafe.
    """

    name: ClassVar[str] = "dre"
    prompts_llm_itself: ClassVar[bool] = True
    citation: ClassVar[str] = """@article{zhao-etal-2025-dre,
  title   = {{DRE}: An Effective Dual-Refined Method for Integrating Small and Large Language Models in Open-Domain Dialogue
             Evaluation},
  author  = {Zhao, Kun and Yang, Bohao and Tang, Chen and Dai, Siyuan and Tang, Haoteng and Lin, Chenghua and Zhan, Liang},
  year    = {2025}
}"""

    def __init__(  # noqa: PLR0913 - the papers' options, each one named in METHODS
        self,
        llm: LanguageModel | None = None,
        slm: str | None = None,
        *,
        variant: Variant = "dre",
        ablation: bool = False,
        eq26: bool = False,
        clamp: bool | Sequence[float] | None = None,
        clip: bool = False,
        device: str | None = None,
        revision: str | None = None,
    ) -> None:
        if variant not in VARIANTS:
            raise InputError(f"dre: there is no variant {variant!r}. Choose one of {', '.join(VARIANTS)}.")
        for option, value in (("ablation", ablation), ("eq26", eq26), ("clip", clip)):
            # A command line can have turned it into text, and the word "no" would count as true.
            if not isinstance(value, bool):
                raise InputError(f"dre: {option} is {value!r}. Give true or false.")
        if ablation and variant != "dre":
            raise InputError(
                f"dre: ablation gives every variant beside 'dre', and variant is {variant!r}. Leave one of them out."
            )
        self.llm = require_language_model(llm, self.name)
        self.variant: str = variant
        self.variants: tuple[str, ...] = VARIANTS if ablation else (variant,)
        self.refinement = Refinement(eq26, read_clamp(clamp))
        self.range = LLM_SCALE if variant in {"in_dre", "non_dre"} else self.refinement.clamp or (0.0, 2 * LLM_SCALE[1])
        self._asks_interior = any(name in INTERIOR_VARIANTS for name in self.variants)
        self._asks_plain = any(name in PLAIN_VARIANTS for name in self.variants)
        self._plain: ScoringPrompt = scoring_prompt(PLAIN_PROMPT)
        needs_slm = self.variants != ("non_dre",)
        self._evidence = SmallModelEvidence(slm, clip=clip, device=device, revision=revision) if needs_slm else None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, the variant's first."""
        interior = ("llm", "influence", "coefficient") if self._asks_interior else ("llm",)
        return (*self.variants, *interior, *(_EVIDENCE if self._evidence else ()), *self.cuts)

    @property
    def cuts(self) -> Mapping[str, str]:
        """Tokens that the small model did not read."""
        return self._evidence.cuts if self._evidence else {}

    def signature_fields(self) -> dict[str, Value]:
        """Method, variant, prompts with their hashes, options, and both models."""
        fields: dict[str, Value] = {
            "method": self.name,
            "variant": "+".join(self.variants),
            "prompt": self._plain.id if self._asks_plain else None,
            "llm": self.llm.identity,
            "scale": f"{LLM_SCALE[0]:g}-{LLM_SCALE[1]:g}",
        }
        if self._evidence is None:
            return fields
        return fields | {
            "interior_prompt": self._evidence.prompt.id if self._asks_interior else None,
            **self.refinement.signature_fields(),
            **self._evidence.signature_fields(),
        }

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Ask for all items of the window in one call for each prompt."""
        examples = cast("Sequence[Example]", items)
        rows = self._small_model_rows(examples)
        judged = [(index, row) for index, row in enumerate(rows) if not isinstance(row, Unscored)]
        shown, found = [examples[index] for index, _ in judged], [row for _, row in judged]
        answers = [self._plain_rows(shown, found)] if self._asks_plain else []
        answers += [self._interior_rows(shown, found)] if self._asks_interior else []
        for (index, row), *answered in zip(judged, *answers, strict=True):
            rows[index] = self._joined(row, answered)
        return rows

    def _small_model_rows(self, examples: Sequence[Example]) -> list[Row]:
        if self._evidence is not None:
            return self._evidence.rows(examples)
        blank = Unscored(Reason.EMPTY_INPUT, "the response has no visible character")
        return [blank if is_blank(example.response.text) else {} for example in examples]

    def _plain_rows(self, examples: Sequence[Example], found: Sequence[Mapping[str, float | None]]) -> list[Row]:
        prompts = [self._plain.render(example) for example in examples]
        rows: list[Row] = []
        for example, row, prompt, answer in zip(examples, found, prompts, self._answers(prompts, self._plain), strict=True):
            llm = answer if isinstance(answer, Unscored) else self._plain.read(answer, prompt, example)
            if isinstance(llm, Unscored):
                rows.append(llm)
            else:
                scores = self.refinement.plain(row.get("slm"), llm=llm)
                # Where both prompts are asked, `llm` is the interior one's; the plain one's is `non_dre`.
                rows.append(scores if self._asks_interior else {**scores, "llm": llm})
        return rows

    def _interior_rows(self, examples: Sequence[Example], found: Sequence[Mapping[str, float | None]]) -> list[Row]:
        evidence = cast("SmallModelEvidence", self._evidence)
        prompts = [evidence.render(example, row) for example, row in zip(examples, found, strict=True)]
        rows: list[Row] = []
        for example, row, prompt, answer in zip(examples, found, prompts, self._answers(prompts, evidence.prompt), strict=True):
            read = answer if isinstance(answer, Unscored) else read_interior(answer, prompt, example)
            if isinstance(read, Unscored):
                rows.append(read)
            else:
                rows.append({**self.refinement.interior(cast("float", row["slm"]), **read._asdict()), **read._asdict()})
        return rows

    def _answers(self, prompts: Sequence[str], prompt: ScoringPrompt | InteriorPrompt) -> list[str | Unscored]:
        return self.llm.generate(prompts, max_tokens=prompt.max_tokens, stop=prompt.stop) if prompts else []

    def _joined(self, row: Mapping[str, float | None], answered: Sequence[Row]) -> Row:
        """All columns of a row, or the reason why the variant's own prompt, the last one asked, gave none."""
        if isinstance(answered[-1], Unscored):
            return answered[-1]
        columns = dict(row)
        for answer in answered:
            columns |= {} if isinstance(answer, Unscored) else answer
        return columns
