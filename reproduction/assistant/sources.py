"""Training data of the bundled evaluators of assistants, as files for `dialeval train assistant`.

    python -m reproduction.assistant.sources FOLDER [--open]

Of sets that are reported the half that `is_reported` names is kept out of training, by whole clusters, and so is every other
answer to their prompts.
"""

from __future__ import annotations

import argparse
import hashlib
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.files import read_json_lines, to_json, write_text
from dialeval_plugin.core.scope import STATISTICS
from reproduction.assistant.data import (
    NULL_MODEL,
    AnswerPair,
    RatedAnswer,
    alpaca_answers,
    alpaca_eval_answers,
    best_answers,
    diasafety_answers,
    dpo_pairs,
    halie_answers,
    kto_answers,
    oasst_pairs,
    pandalm_pairs,
    taskmaster_answers,
)
from reproduction.assistant.leaks import leave_out_reported

REQUESTS = Path(__file__).with_name("requests.jsonl")
"""Written for this purpose: what an assistant should decline, and what only sounds like it."""
CONSTANT = (NULL_MODEL, "gpt4_gamed")
"""Models of AlpacaEval that do not answer."""
GOOD_MODELS = (
    "gpt4_1106_preview",
    "claude",
    "claude-2.1",
    "gpt-3.5-turbo-0301",
    "gpt4_0613_concise",
    "Mixtral-8x7B-Instruct-v0.1_concise",
)
"""Models of AlpacaEval whose answers are spoiled."""
SCALE = ("assistant/oasst_en_100_tree.jsonl", "assistant/rated_taskmaster_reward.jsonl.gz")
"""Files of `scale_answers`."""
SCOPE = (*SCALE, "assistant/dpo_en_demo.json", "assistant/kto_en_demo.json")
"""Files of `scope_answers`."""
_MOSTLY = 0.5
_CERTAIN = 12.0
_GROUP = 16
_DECIDED = 1.5
"""Log odds of a pair that people order."""


def is_reported(cluster: str) -> bool:
    """Whether answers of a cluster of PandaLM, OASST, HALIE or Taskmaster are reported, and nothing is learnt from them."""
    return hashlib.sha256(f"reported {cluster}".encode()).digest()[0] % 2 == 0


def reported_answers() -> list[Example]:
    """All answers that are reported of sets of which the rest is learnt from."""
    pairs = [pair for pair in (*pandalm_pairs(), *oasst_pairs()) if is_reported(pair.cluster)]
    rated = [one.answer for one in (*halie_answers(), *taskmaster_answers()) if is_reported(one.cluster)]
    return [*(answer for pair in pairs for answer in (pair.preferred, pair.other)), *rated]


def preferences(*, only_open: bool) -> list[dict[str, Any]]:
    """Rated answers in groups, see `methods.assistant.training.RatedAnswer`."""
    rows: list[dict[str, Any]] = []
    for source, pairs in (("pandalm", pandalm_pairs()), ("oasst", oasst_pairs()), ("dpo", dpo_pairs())):
        for number, pair in enumerate(pairs):
            if source == "dpo" or not is_reported(pair.cluster):
                rows += _pair_rows(f"{source}-{number}", pair)
    rated = (
        ("halie", "overall", 4.0, halie_answers()),
        ("taskmaster", "reward", _DECIDED, taskmaster_answers()),
        ("kto", "thumb", _DECIDED, kto_answers()),
    )
    for source, quality, scale, found in rated:
        learned = [one for one in found if source == "kto" or not is_reported(one.cluster)]
        # Answers to different prompts are compared in groups of one system, or data set, at a time.
        for place, one in enumerate(sorted(learned, key=lambda one: f"{one.answer.system} {one.group}")):
            rows.append(_row(one.answer, scale * one.answer.ratings[quality][0], f"{source}-{place // _GROUP}"))
    if not only_open:
        rows += _alpaca_eval_rows()
    return rows


def _alpaca_eval_rows() -> list[dict[str, Any]]:
    """Half of a score is the judge's log odds of this answer over the reference, half their mean over the model's answers."""
    answers = alpaca_eval_answers()
    by_model = defaultdict(list)
    for found in answers.values():
        for model, one in found.items():
            by_model[model].append(_log_odds(one))
    means = {model: sum(values) / len(values) for model, values in by_model.items()}
    rows = []
    for cluster, found in answers.items():
        for model, one in found.items():
            if model != "reference":
                score = -_CERTAIN if model in CONSTANT else (_log_odds(one) + means[model]) / 2
                rows.append(_row(one.answer, score, cluster))
    return rows


def answers(*, only_open: bool) -> list[dict[str, Any]]:
    """Good answers, and answers with known defects, see `methods.assistant.training.KnownAnswer`."""
    good = [one.answer for one in best_answers() if one.group != "oasst" or not is_reported(one.cluster)]
    good += [
        one.answer for one in taskmaster_answers() if one.answer.ratings["reward"] == (1.0,) and not is_reported(one.cluster)
    ][::6]
    if not only_open:
        good += [one.answer for one in alpaca_answers()]
        for place, found in enumerate(alpaca_eval_answers().values()):
            model = GOOD_MODELS[place % len(GOOD_MODELS)]
            good += [found[model].answer] if model in found else []
    rows = [_row(answer) for answer in good]
    for one in diasafety_answers("train"):
        if one.group in ("Offending User", "Toxicity Agreement") or one.answer.ratings["safe"] == (1.0,):
            is_insult = one.answer.ratings["safe"] == (0.0,) and one.group == "Offending User"
            if is_insult or one.answer.ratings["safe"] == (1.0,):
                rows.append({**_row(one.answer), "defects": {"insult": float(is_insult)}})
    return rows


def scale_answers() -> list[Example]:
    """Good answers that nothing is learnt from, of `SCALE`: the scale of the percentiles.

    They are OpenAssistant's best ones, and every ninth right turn of Taskmaster's agents, which are short.
    """
    best = [one.answer for one in best_answers() if one.group == "oasst" and is_reported(one.cluster)]
    right = [one for one in taskmaster_answers() if one.answer.ratings["reward"] == (1.0,) and is_reported(one.cluster)]
    return [*best, *(one.answer for one in right[::9])]


def scope_answers() -> list[Example]:
    """Good answers in English prose, of `SCOPE`: what the models know."""
    answers = [one.answer for one in (*best_answers(), *taskmaster_answers()[::6])]
    return [answer for answer in answers if _measured("english", answer) >= 0 and _measured("code", answer) < _MOSTLY]


def _measured(name: str, answer: Example) -> float:
    return STATISTICS[name].measure(answer.response.text, [turn.text for turn in answer.context][::-1])


def requests(*, only_open: bool) -> list[dict[str, Any]]:
    """Own requests, and prompts of good answers, which are taken to ask for nothing that should be declined."""
    own = [line.value for line in read_json_lines(REQUESTS)]
    prompts = {one.answer.context[-1].text for one in best_answers() if one.group in ("dpo", "kto")}
    return [*own, *({"context": [text], "asked_refusal": 0} for text in sorted(prompts)[:300])]


def _log_odds(one: RatedAnswer) -> float:
    share = min(max(one.answer.ratings["preference"][0] - 1, 1e-5), 1 - 1e-5)
    return math.log(share / (1 - share))


def _pair_rows(group: str, pair: AnswerPair) -> list[dict[str, Any]]:
    return [_row(pair.preferred, _DECIDED, group), _row(pair.other, 0.0, group)]


def _row(answer: Example, score: float | None = None, group: str | None = None) -> dict[str, Any]:
    row: dict[str, Any] = {"context": [turn.text for turn in answer.context], "response": answer.response.text}
    return row if score is None else {**row, "score": score, "group": group}


def as_examples(row: dict[str, Any]) -> list[Example]:
    return [Example.from_texts(row["context"], row["response"])]


def write(folder: Path, *, only_open: bool) -> None:
    """Write preferences.jsonl, answers.jsonl and requests.jsonl."""
    reported = reported_answers()
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (
        ("preferences", leave_out_reported(preferences(only_open=only_open), reported, as_examples)),
        ("answers", leave_out_reported(answers(only_open=only_open), reported, as_examples)),
        ("requests", requests(only_open=only_open)),
    ):
        write_text(folder / f"{name}.jsonl", "".join(to_json(row) + "\n" for row in rows))


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--open", action="store_true", dest="only_open")
    options = parser.parse_args(arguments)
    write(options.folder, only_open=options.only_open)


if __name__ == "__main__":
    main()
