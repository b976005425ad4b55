"""Conversion of option strings that name a language model into the judge or language model that a scorer takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias, cast

from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import check_names, load_scorer, option_kinds, scorer_factory
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.llm.answers import AnswerCache, CachedLanguageModel, DryRunLanguageModel, open_default
from dialeval_plugin.llm.language_model import LanguageModel

from .registration import importing

REPLAY_JUDGE = "replay-judge"
"""Name that selects stored verdicts in place of a language model."""

Answers: TypeAlias = str | Path | bool | None
"""File that keeps answers: a path, the user's default file (None and True), or none (False)."""


@dataclass(frozen=True)
class JudgeOptions:
    """Options that name the language model of a scorer, in every interface.

    Attributes:
        llm: any lm-eval model by its name: hf, vllm, local-chat-completions, ...; in Python also one that is loaded.
        llm_args: its arguments as lm-eval writes them, for example pretrained=gpt2,dtype=float32.
        answers: file that keeps its answers; by default the user's own, and false keeps none.
    """

    llm: str | None = None
    llm_args: str = ""
    answers: str | bool | None = None


_PROMPTS = {"cascade": "dre"}
"""Name of another scorer, for some scorers, whose prompt rates more than engagingness."""
_LLM_OPTIONS = tuple(field.name for field in fields(JudgeOptions) if field.name != "llm")


def judge_from_options(
    llm: object, llm_args: str = "", *, prompt: str, answers: Answers = None, level: Level = "turn"
) -> Scorer:
    """Return a judge that prompts `llm` with one of our prompts; a judge is returned unchanged.

    Whole dialogues are judged by `dialogue_rating`: the papers' other prompts are about responses.
    """
    if isinstance(llm, Scorer):
        _refuse_options(llm_args, answers, "the judge given as llm is loaded already. Leave {} out.")
        return llm
    from dialeval_plugin.methods.judging.judge import PromptedJudge, PromptName

    model = language_model_from_options(llm, llm_args, answers=answers, otherwise="a judge")
    if level == "dialogue":
        from dialeval_plugin.methods.judging.dialogue_rating import DialogueRatingScorer

        return DialogueRatingScorer(model, level=level)
    return PromptedJudge(model, prompt=cast("PromptName", prompt))


def language_model_from_options(
    llm: object, llm_args: str = "", *, answers: Answers = None, otherwise: str = "a language model"
) -> LanguageModel:
    """Return the lm-eval model that `llm` names (`hf`, `vllm`, `local-chat-completions`, ...), or `llm` if it is a model.

    `llm_args` are in lm-eval's syntax, for example `pretrained=gpt2,dtype=float32`; `otherwise` is the alternative in errors.
    """
    if callable(getattr(llm, "generate", None)):
        _refuse_options(llm_args, answers, "the model given as llm is loaded already. Leave {} out.")
        return cast("LanguageModel", llm)
    if not isinstance(llm, str) or not llm:
        raise InputError(
            f"llm: expected the name of an lm-eval model or {otherwise}, got {llm!r} ({type(llm).__name__}). "
            "Pass for example llm='hf', llm_args='pretrained=...'."
        )
    return load_cached_model(llm, llm_args, answers=answers)


def load_cached_model(llm: str, llm_args: str = "", *, answers: Answers = None, dry_run: bool = False) -> CachedLanguageModel:
    """Load an lm-eval model whose answers are kept and whose usage is counted; a dry run sends no requests."""
    if llm == REPLAY_JUDGE:
        return CachedLanguageModel(_replayed(llm_args), None)
    # Before the model, which may take minutes to load.
    cache = None if answers is False else AnswerCache(Path(answers)) if isinstance(answers, (str, Path)) else open_default()
    with importing("lm_eval"):
        from dialeval_plugin.hosts.lm_eval.backend import load_language_model

    model: LanguageModel = load_language_model(llm, llm_args)
    return CachedLanguageModel(DryRunLanguageModel(model) if dry_run else model, cache)


def _replayed(llm_args: str) -> LanguageModel:
    """Return the model of stored verdicts, from the arguments of the lm-eval model of the same name."""
    from dialeval_plugin.methods.judging.replay import ReplayedLanguageModel

    with importing("lm_eval"):
        from lm_eval.utils import simple_parse_args_string
    arguments = simple_parse_args_string(llm_args)
    check_names(REPLAY_JUDGE, arguments, option_kinds(ReplayedLanguageModel))
    if "source" not in arguments:
        raise InputError(f"{REPLAY_JUDGE}: whose verdicts are meant? Pass llm_args='source=gpt-4/comp-analysis'.")
    return ReplayedLanguageModel(**arguments)


def _refuse_options(llm_args: str, answers: Answers, problem: str, where: str = "") -> None:
    for name, value in (("llm_args", llm_args or None), ("answers", answers)):
        if value is not None:
            raise InputError(f"{where}{name} is {value!r}, but {problem.format(name)}")


def scorer_options(name: str) -> list[str] | None:
    """Return the names of the options that `load_scorer_with_judge` takes for the scorer `name`; None if it takes any."""
    known = option_kinds(scorer_factory(name))
    return known if known is None else [*known, *(_LLM_OPTIONS if "llm" in known else ())]


def load_scorer_with_judge(name: str, options: Mapping[str, Any]) -> Scorer:
    """Make the scorer `name`; strings under `llm` and `llm_args` become the language model that they name.

    A scorer that does not prompt the model itself gets a judge, with the prompt of the scorer's name or the one in `_PROMPTS`.
    Answers are kept in the file `answers`; the user's own is the default, and False keeps none.
    """
    # Before the language model, which may take minutes to load.
    check_names(name, options, scorer_options(name))
    options = dict(options)
    llm_args = options.pop("llm_args", None) or ""
    answers = options.pop("answers", None)
    if (llm := options.get("llm")) is None:
        _refuse_options(llm_args, answers, "no llm was named. Pass for example llm='hf' as well.", f"{name}: ")
    elif getattr(scorer_factory(name), "prompts_llm_itself", False):
        options["llm"] = language_model_from_options(llm, llm_args, answers=answers)
    else:
        prompt, level = _PROMPTS.get(name, name), options.get("level", "turn")
        options["llm"] = judge_from_options(llm, llm_args, prompt=prompt, answers=answers, level=level)
    return load_scorer(name, **options)
