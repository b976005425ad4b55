"""Answers of assistants with what people, or a large model, said of them: pairs, ratings and labels, each with its cluster.

The files are those of the folder `assistant` of DIALEVAL_DATA_DIR, whose README names sources and licences. Every answer is an
`Example` with an id of its own, which is what scores of it are kept by; speakers of its context are "user" and "assistant".
Instructions for the system are left out of contexts, as the package leaves them out of logs, and so are blank answers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from dialeval_plugin.conversations.messages import ASSISTANT, USER
from dialeval_plugin.core.dialogue import Dialogue, Example, Turn, is_blank
from dialeval_plugin.core.files import read_json, read_json_lines
from dialeval_plugin.corpora.identity import dialogue_key
from dialeval_plugin.results.preferences import read_pairs
from reproduction.data import data_folder

FOLDER = "assistant"
NULL_MODEL = "NullModel"
"""Of AlpacaEval's models the one that gives every instruction one constant text, which its judge takes for the best of all."""
UNDECIDED = 1.5
"""AlpacaEval's preference between its reference (1) and the response (2)."""
USS = ("redial", "ccpe", "mwoz", "sgd")
CLOSE, LONG = 0.1, 100
"""Answers are of close length where the longer one has at most so much more words than the shorter one; long ones have at least
so many words each."""


class AnswerPair(NamedTuple):
    """Two answers to one context, of which the first was preferred."""

    cluster: str
    """The prompt: pairs of one are resampled together."""
    preferred: Example
    other: Example
    margin: float = 1.0
    """How clearly it was preferred, from 0 to 1: the share of agreeing raters, or the distance of two preferences."""

    @property
    def words(self) -> tuple[int, int]:
        """Number of words of both answers."""
        return words_of(self.preferred), words_of(self.other)

    @property
    def is_close(self) -> bool:
        """Whether both are of close length."""
        low, high = sorted(self.words)
        return high <= (1 + CLOSE) * low

    @property
    def is_long(self) -> bool:
        """Whether both are long."""
        return min(self.words) >= LONG


class RatedAnswer(NamedTuple):
    """An answer with its ratings, by quality."""

    cluster: str
    """The conversation, or the context: answers of one are resampled together."""
    answer: Example
    group: str = ""
    """Name of the part in the source: a set, a category."""


class RatedConversation(NamedTuple):
    """A whole conversation with its ratings."""

    cluster: str
    dialogue: Dialogue


class CritiquedAnswer(NamedTuple):
    """An answer with what a person found wrong, or right, in it."""

    cluster: str
    answer: Example
    critique: str
    group: str


def pandalm_pairs() -> list[AnswerPair]:
    """Answers of 7B models of 2023 to instructions, as three people prefer them."""
    found = []
    for row in _lines("pairs_pandalm.jsonl.gz"):
        context = spoken(row["context"])
        better, worse = (
            Example(f"{row['id']}{sign}", context, Turn(row[side], ASSISTANT))
            for sign, side in (("+", "better"), ("-", "worse"))
        )
        if not is_blank(better.response.text) and not is_blank(worse.response.text):
            found.append(AnswerPair(row["cluster"], better, worse, row["votes"] / 3))
    return found


def oasst_pairs() -> list[AnswerPair]:
    """Sibling answers of OpenAssistant's trees, each pair that people's ranks order; the cluster is the tree."""
    found = []
    for tree, siblings in _oasst_siblings():
        ranked = sorted((answer for answer in siblings if answer.ratings), key=_rank)
        found += [
            AnswerPair(tree, better, worse, (_rank(worse) - _rank(better)) / (len(ranked) - 1))
            for better, worse in combinations(ranked, 2)
        ]
    return found


def dpo_pairs() -> list[AnswerPair]:
    """Chosen and rejected answers of LLaMA-Factory's excerpt, as published."""
    pairs = read_pairs(_file("dpo_en_demo.json"))
    return [AnswerPair(prompt_key(pair.preferred), *pair) for pair in pairs.pairs] if pairs is not None else []


def alpaca_eval_answers() -> dict[str, dict[str, RatedAnswer]]:
    """Return the answers to each instruction by model, rated by GPT-4 turbo: `preference` over the reference, 1 to 2.

    The references are answers too, of the model "reference"; their preference is that of the reference over itself, 1.5.
    """
    found: dict[str, dict[str, RatedAnswer]] = {}
    for number, row in enumerate(_lines("alpaca_eval_preferences.jsonl.gz")):
        context = spoken([row["instruction"]])
        cluster = f"alpaca_eval-{number}"
        reference = {"model": "reference", "response": row["reference"], "preference": UNDECIDED}
        found[cluster] = {
            one["model"]: RatedAnswer(
                cluster,
                Example(
                    f"{cluster}-{one['model']}",
                    context,
                    Turn(one["response"], ASSISTANT),
                    system=one["model"],
                    ratings={"preference": (float(one["preference"]),)},
                ),
                row["dataset"],
            )
            for one in [reference, *row["responses"]]
            if not is_blank(one["response"])
        }
    return found


def alpaca_eval_pairs(
    per_instruction: int = 20, *, least_margin: float = 0.3, close: bool = False, seed: int = 46
) -> list[AnswerPair]:
    """Draw pairs of AlpacaEval's answers that the judge tells apart, none of them of `NULL_MODEL`.

    Args:
        per_instruction: the most pairs of one instruction.
        least_margin: preferences differ by so much at least, of 1.
        close: whether both answers are of close length.
        seed: of the draw.
    """
    found = []
    for cluster, answers in alpaca_eval_answers().items():
        of = [answer.answer for name, answer in answers.items() if name != NULL_MODEL]
        pairs = [_by_preference(cluster, one, other) for one, other in combinations(of, 2)]
        pairs = [pair for pair in pairs if pair.margin >= least_margin and (pair.is_close or not close)]
        found += random.Random(f"{seed} {cluster}").sample(pairs, min(per_instruction, len(pairs)))
    return found


def alpaca_eval_reference_pairs(*, least_margin: float = 0.3) -> list[AnswerPair]:
    """Pairs of a response and the reference, none of them of `NULL_MODEL`, whose preference is so far from undecided."""
    found = []
    for cluster, answers in alpaca_eval_answers().items():
        reference = answers["reference"].answer
        pairs = [
            _by_preference(cluster, one.answer, reference)
            for name, one in answers.items()
            if name not in {NULL_MODEL, "reference"}
        ]
        found += [pair for pair in pairs if pair.margin >= least_margin]
    return found


def null_model_pairs(other: str = "gpt-3.5-turbo-0301") -> list[AnswerPair]:
    """To each instruction the answer of a middling model, which should be preferred, and the constant text of `NULL_MODEL`."""
    return [
        AnswerPair(cluster, answers[other].answer, answers[NULL_MODEL].answer)
        for cluster, answers in alpaca_eval_answers().items()
        if other in answers
    ]


def length_variant_pairs() -> list[AnswerPair]:
    """Pairs of one model that was asked for short or long answers: what the judge prefers, where it is not undecided."""
    found = []
    for cluster, answers in alpaca_eval_answers().items():
        for name in answers:
            base, _, variant = name.rpartition("_")
            if variant in {"concise", "verbose"} and base in answers:
                pair = _by_preference(cluster, answers[name].answer, answers[base].answer)
                found += [pair] if pair.margin else []
    return found


def halie_answers() -> list[RatedAnswer]:
    """Turns of four models in social chats, rated in seven qualities and `overall` by the person who chatted."""
    return _rated("rated_halie.jsonl.gz")


def halie_conversations() -> list[RatedConversation]:
    """The same chats whole: would you talk to it again (`reuse`), 1 to 5."""
    return [
        RatedConversation(
            row["cluster"],
            Dialogue(
                row["id"],
                tuple(map(Turn, row["turns"], row["roles"])),
                row["system"],
                {"reuse": (float(row["ratings"]["reuse"]),)},
            ),
        )
        for row in _lines("dialogues_halie.jsonl.gz")
    ]


def taskmaster_answers() -> list[RatedAnswer]:
    """Turns that a model generated in ticket chats: is it right, 1 or 0 (`reward`)."""
    return _rated("rated_taskmaster_reward.jsonl.gz")


def uss_answers(name: str) -> list[RatedAnswer]:
    """Turns of task-oriented assistants, one of `USS`: the user's satisfaction with it, 1 to 5."""
    return _rated(f"rated_uss_{name}.jsonl.gz")


def begin_answers() -> list[RatedAnswer]:
    """Knowledge-grounded responses: attributable to the given facts, 1 or 0."""
    return _rated("rated_begin.jsonl.gz")


def kto_answers() -> list[RatedAnswer]:
    """Answers with thumbs up or down (`thumb`, 1 or 0) of LLaMA-Factory's excerpt."""
    found = []
    for number, row in enumerate(read_json(_file("kto_en_demo.json"))):
        *context, answer = [turn["content"] for turn in row["messages"] if turn["role"] != "system"]
        example = Example(f"kto-{number}", spoken(context), Turn(answer, ASSISTANT), ratings={"thumb": (float(row["label"]),)})
        found.append(RatedAnswer(prompt_key(example), example))
    return found


def diasafety_answers(part: str) -> list[RatedAnswer]:
    """Responses that people called safe or not in their context (`safe`, 1 or 0), by `part`, "train" or "val"."""
    found = []
    for number, row in enumerate(read_json(_file(f"diasafety_{part}.json"))):
        if not is_blank(row["response"]):
            rating = float(row["label"] == "Safe")
            example = Example(
                f"diasafety_{part}-{number}",
                spoken([row["context"]]),
                Turn(row["response"], ASSISTANT),
                ratings={"safe": (rating,)},
            )
            found.append(RatedAnswer(prompt_key(example), example, row["category"]))
    return found


def shepherd_answers() -> list[CritiquedAnswer]:
    """Answers to questions of benchmarks with a person's critique."""
    found = []
    for row in _lines("shepherd_human.jsonl"):
        if not is_blank(row["answer"]):
            example = Example(f"shepherd-{row['id']}", spoken([row["question"]]), Turn(row["answer"], ASSISTANT))
            found.append(CritiquedAnswer(prompt_key(example), example, row["feedback"], row["dataset"]))
    return found


def alpaca_answers() -> list[RatedAnswer]:
    """Instructions with answers, of unknown raters: no ratings."""
    found = []
    for number, row in enumerate(read_json(_file("alpaca_en_demo.json"))):
        prompt = "\n\n".join(filter(None, (row["instruction"], row["input"])))
        if not is_blank(row["output"]):
            example = Example(f"alpaca-{number}", spoken([prompt]), Turn(row["output"], ASSISTANT))
            found.append(RatedAnswer(prompt_key(example), example))
    return found


def best_answers() -> list[RatedAnswer]:
    """Real good answers whose licences are open: OpenAssistant's best of each rank, chosen ones and those with thumbs up.

    The group names the file, and the cluster the prompt, or the tree, so that a prompt that is there twice counts once.
    """
    oasst = [
        RatedAnswer(tree, answer, "oasst")
        for tree, siblings in _oasst_siblings()
        for answer in siblings
        if answer.ratings and _rank(answer) == 0
    ]
    dpo = [RatedAnswer(pair.cluster, pair.preferred, "dpo") for pair in dpo_pairs()]
    kto = [one._replace(group="kto") for one in kto_answers() if one.answer.ratings["thumb"] == (1.0,)]
    return [*oasst, *dpo, *kto]


PAIRS: Mapping[str, Callable[[], list[AnswerPair]]] = {
    "pandalm": pandalm_pairs,
    "oasst": oasst_pairs,
    "dpo": dpo_pairs,
    "alpaca_eval": alpaca_eval_pairs,
    "alpaca_eval, reference": alpaca_eval_reference_pairs,
    "alpaca_eval, NullModel": null_model_pairs,
    "alpaca_eval, concise or verbose": length_variant_pairs,
}
"""Reader of each set of pairs."""
RATED: Mapping[str, Callable[[], list[RatedAnswer]]] = {
    "halie": halie_answers,
    "taskmaster": taskmaster_answers,
    **{f"uss {name}": lambda name=name: uss_answers(name) for name in USS},  # type: ignore[misc]
    "begin": begin_answers,
    "kto": kto_answers,
    "diasafety train": lambda: diasafety_answers("train"),
    "diasafety val": lambda: diasafety_answers("val"),
}
"""Reader of each set of rated answers."""


def words_of(answer: Example) -> int:
    """Return the number of words of an answer."""
    return len(answer.response.text.split())


def spoken(texts: Sequence[str]) -> tuple[Turn, ...]:
    """Return turns of which the last is the user's, and the others alternate."""
    speakers = [USER if (len(texts) - place) % 2 else ASSISTANT for place in range(len(texts))]
    return tuple(map(Turn, texts, speakers))


def prompt_key(answer: Example) -> str:
    """Return a hash of an answer's context that copies share, white space and case aside."""
    return dialogue_key(turn.text for turn in answer.context)


def _oasst_siblings() -> Iterator[tuple[str, list[Example]]]:
    """The answers to each prompt of each tree, and the tree's id; those that people ranked have a rating `rank`, 0 the best."""
    for row in _lines("oasst_en_100_tree.jsonl"):
        yield from ((row["message_tree_id"], siblings) for siblings in _siblings(row["prompt"], ()))


def _siblings(node: Mapping[str, Any], before: tuple[Turn, ...]) -> Iterator[list[Example]]:
    said = (*before, Turn(node["text"], USER if node["role"] == "prompter" else ASSISTANT))
    replies: Sequence[Mapping[str, Any]] = node["replies"]
    if node["role"] == "prompter":
        yield [
            Example(
                reply["message_id"],
                said,
                Turn(reply["text"], ASSISTANT),
                ratings={} if reply.get("rank") is None else {"rank": (float(reply["rank"]),)},
            )
            for reply in replies
            if not is_blank(reply["text"])
        ]
    for reply in replies:
        yield from _siblings(reply, said)


def _rank(answer: Example) -> float:
    return answer.ratings["rank"][0]


def _by_preference(cluster: str, one: Example, other: Example) -> AnswerPair:
    first, second = sorted((one, other), key=lambda answer: -answer.ratings["preference"][0])
    return AnswerPair(cluster, first, second, first.ratings["preference"][0] - second.ratings["preference"][0])


def _rated(name: str) -> list[RatedAnswer]:
    return [
        RatedAnswer(
            row["cluster"],
            Example(
                row["id"],
                spoken(row["context"]),
                Turn(row["response"], ASSISTANT),
                facts=tuple(row.get("facts", ())),
                system=row["system"] or None,
                ratings={quality: (float(value),) for quality, value in row["ratings"].items()},
            ),
            row.get("group", row["set"]),
        )
        for row in _lines(name)
        if not is_blank(row["response"])
    ]


def _lines(name: str) -> list[dict[str, Any]]:
    return [line.value for line in read_json_lines(_file(name))]


def _file(name: str) -> Path:
    return data_folder() / FOLDER / name
