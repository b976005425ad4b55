"""Duties of every scorer, at each level and with each kind of model: tiny models, one table, the same properties for all."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn
from dialeval_plugin.core.registry import load_scorer, option_kinds, scorer_factory, scorer_names
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import BLANK_RESPONSE, NO_TURN, TOO_FEW_TURNS, Reason, Unscored
from dialeval_plugin.corpora import mini
from dialeval_plugin.methods.baselines.references import NO_REFERENCE, ReferenceScorer
from dialeval_plugin.methods.breakdown.scorer import AGGREGATIONS
from dialeval_plugin.methods.general import scorer as general
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.methods.judging.dialogue_rating import DialogueRatingScorer
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.methods.proxy_indicators.tasks import TASKS
from dialeval_plugin.methods.reconstruction import scorer as reconstruction
from dialeval_plugin.models import tensors
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel, overlap_answer, overlap_log_probability
from tests.refusals import refusal
from tests.tiny.breakdown import TinyModels
from tests.tiny.classifiers import write_classifier
from tests.tiny.likelihood import write_likelihood_model
from tests.tiny.reconstruction import write_tiny_model
from tests.tiny.seq2seq import write_tiny_bart, write_tiny_t5

CLOSE = 1e-5


class Folders:
    """Folders of tiny models, each written when it is first asked for."""

    def __init__(self, base: Path, request: pytest.FixtureRequest) -> None:
        self._base, self._request = base, request

    @functools.cache  # noqa: B019 - one object a module
    def of(self, name: str) -> str:
        writers: dict[str, Callable[[Path], object]] = {
            "bart": write_tiny_bart,
            "t5": write_tiny_t5,
            "vhcr": lambda folder: write_tiny_model(folder, "vhcr"),
            **{task: lambda folder, task=task: write_classifier(folder, TASKS[task].labels) for task in TASKS},
            **{
                name: lambda folder, name=name: write_likelihood_model(folder, name)
                for name in ("gpt2", "bert", "roberta_decoder", "roberta_pairs", "xlnet")
            },
        }
        if name not in writers:
            return str(self._request.getfixturevalue(f"tiny_{name}"))
        writers[name](self._base / name)
        return str(self._base / name)

    @property
    def breakdown(self) -> TinyModels:
        models: TinyModels = self._request.getfixturevalue("tiny_breakdown_models")
        return models


Options = Callable[[Folders], dict[str, Any]]


def _breakdown(method: str) -> Options:
    def options(folders: Folders) -> dict[str, Any]:
        models = folders.breakdown
        model = models.odin if method.startswith("odin") else models.lm
        background = {"background": str(models.background)} if method == "likelihood_ratio" else {}
        return {"model": str(model), "method": method, "device": "cpu", **background}

    return options


def _both(folders: Folders) -> dict[str, Any]:
    return {"general": folders.of("general"), "assistant": folders.of("assistant"), "device": "cpu"}


def _judge() -> ScriptedLanguageModel:
    return ScriptedLanguageModel(overlap_answer, overlap_log_probability)


WITH_REFERENCES: dict[str, Options] = {
    "bleu": lambda folders: {},
    "chrf": lambda folders: {},
    "rouge": lambda folders: {},
    "meteor": lambda folders: {"synonyms": False},
    "embedding_overlap": lambda folders: {"encoder": folders.of("encoder")},
    "sentence_similarity": lambda folders: {"encoder": folders.of("encoder"), "device": "cpu"},
    "bertscore": lambda folders: {"model": folders.of("encoder"), "num_layers": 1, "device": "cpu"},
    "bartscore f_score": lambda folders: {"model": folders.of("bart"), "direction": "f_score", "device": "cpu"},
}
READS_TURNS_BEFORE: dict[str, Options] = {
    "bartscore": lambda folders: {"model": folders.of("bart"), "batch_size": 2, "device": "cpu"},
    "unieval": lambda folders: {"model": folders.of("t5"), "batch_size": 2, "device": "cpu"},
    "unieval engagingness": lambda folders: {"dimension": "engagingness", "model": folders.of("t5"), "device": "cpu"},
    **{
        f"dialogue_likelihood {name}": lambda folders, name=name, more=more: {
            "model": folders.of(name), "level": "turn", "device": "cpu", **more,
        }
        for name, more in {"gpt2": {}, "bert": {}, "roberta_decoder": {"layout": "plain"}, "xlnet": {},
                           "roberta_pairs": {"next_label": "follows"}}.items()
    },
    **{f"dialogue_breakdown {method}": _breakdown(method) for method in AGGREGATIONS},
    "dialogue_reconstruction": lambda folders: {"model": folders.of("vhcr"), "level": "turn", "device": "cpu"},
}  # fmt: skip
OTHERS: dict[str, Options] = {
    "auto": _both,
    "cascade": lambda folders: {
        "small": GeneralScorer(folders.of("general"), device="cpu"), "llm": PromptedJudge(_judge()), "cascade": 0.2,
    },
    "response_length": lambda folders: {},
    "random": lambda folders: {},
    "assistant": lambda folders: {"model": folders.of("assistant"), "device": "cpu"},
    "causalscore": lambda folders: {"model": folders.of("causal_model"), "device": "cpu"},
    "general": lambda folders: {"model": folders.of("general"), "device": "cpu"},
    "glue_proxy": lambda folders: {
        "variant": "fact_rte", "features": "all", "models": {task: folders.of(task) for task in TASKS}, "device": "cpu",
    },
    "slide": lambda folders: {"slm": folders.of("slm"), "variant": "slm", "device": "cpu"},
    "slide fused": lambda folders: {"slm": folders.of("slm"), "llm": PromptedJudge(_judge()), "device": "cpu"},
    "dre": lambda folders: {"slm": folders.of("slm"), "llm": _judge(), "device": "cpu"},
    "dialogue_rating": lambda folders: {"llm": _judge()},
    "llm_judge": lambda folders: {"llm": _judge()},
    "rubric": lambda folders: {"llm": _judge(), "rubric": "Does it fit?"},
    "g_eval": lambda folders: {"llm": _judge(), "n_samples": 2},
    "llm_chiang": lambda folders: {"llm": _judge(), "mode": "weighted"},
}  # fmt: skip
OF_DIALOGUES: dict[str, Options] = {
    "auto dialogue": lambda folders: {**_both(folders), "level": "dialogue"},
    "rubric dialogue": lambda folders: {"llm": _judge(), "rubric": "Does it fit?", "level": "dialogue"},
    "cascade dialogue": lambda folders: {
        "small": GeneralScorer(folders.of("general"), level="dialogue", device="cpu"),
        "llm": DialogueRatingScorer(_judge(), level="dialogue"),
        "level": "dialogue",
    },
    "dialogue_likelihood dialogue": lambda folders: {"model": folders.of("gpt2"), "device": "cpu"},
    "dialogue_likelihood dialogue pairs": lambda folders: {"model": folders.of("bert"), "device": "cpu"},
    "dialogue_reconstruction dialogue": lambda folders: {"model": folders.of("vhcr"), "device": "cpu"},
    "dialogue_reconstruction posterior": lambda folders: {"model": folders.of("vhcr"), "latent": "posterior", "device": "cpu"},
    "assistant dialogue": lambda folders: {"model": folders.of("assistant"), "level": "dialogue", "device": "cpu"},
    "general dialogue": lambda folders: {"model": folders.of("general"), "level": "dialogue", "device": "cpu"},
    "dialogue_rating dialogue": lambda folders: {"llm": _judge(), "level": "dialogue"},
}
OF_TURNS = {**WITH_REFERENCES, **READS_TURNS_BEFORE, **OTHERS}
ALL = {**OF_TURNS, **OF_DIALOGUES}
NAMES = sorted({name.partition(" ")[0] for name in ALL})


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Folders:
    return Folders(tmp_path_factory.mktemp("models"), request)


@pytest.fixture(scope="module")
def make(folders: Folders) -> Callable[[str], Scorer]:
    @functools.cache
    def made(name: str) -> Scorer:
        return load_scorer(name.partition(" ")[0], **ALL[name](folders))

    return made


def examples() -> list[Example]:
    """Dialogues of the embedded corpus with contexts, references and facts of several lengths."""
    return [
        Example.from_texts(
            item.context[number % 2 :] or item.context,
            item.positive[number % 3],
            id=str(number),
            references=item.positive[1 : 2 + number % 3],
            facts=[item.positive[-1]],
        )
        for number, item in enumerate(mini.read_response_sets("test")[:8])
    ]


def items_for(scorer: Scorer) -> list[Item]:
    if scorer.level == "turn":
        return list(examples())
    return [Dialogue(item.id, (*item.context, item.response, *item.context[: int(item.id) % 3])) for item in examples()]


def test_every_scorer_of_the_package_is_here() -> None:
    # `replay_judge` knows the items that are stored and no others; it has tests of its own.
    ours = {name for name in scorer_names() if scorer_factory(name).__module__.startswith("dialeval_plugin.")} - {
        "replay_judge"
    }
    assert {*NAMES} == ours


def _numbers(values: Iterable[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


@pytest.mark.parametrize("name", ALL)
def test_a_score_depends_on_its_item_alone(name: str, make: Callable[[str], Scorer], monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = make(name)
    items = items_for(scorer)
    if "xlnet" in name:  # which reads a text once a token of it
        items = [Example.from_texts(["Hi.", "Tea?"][n % 2 :], f"{n} cups", id=str(n)) for n in range(4)]
    together = scorer.score(items)
    assert together.n_unscored == 0
    copies = [replace(item, id=f"again {item.id}") for item in items]
    backwards = scorer.score([*items[::-1], *copies])
    alone = [scorer.score([item]) for item in items[:4]]
    # One text a forward pass, and two items a window.
    monkeypatch.setattr(tensors, "CPU_TOKENS", 1)
    monkeypatch.setattr(reconstruction, "TOKENS_PER_BATCH", 1)
    monkeypatch.setattr(general, "DIALOGUES_AT_ONCE", 1)
    monkeypatch.setattr(type(scorer), "window", 2)
    one_by_one = scorer.score(items)
    n = len(items)
    for column, values in together.columns.items():
        close = pytest.approx(_numbers(values), abs=CLOSE, rel=CLOSE, nan_ok=True)
        assert _numbers(backwards.columns[column][n - 1 :: -1]) == close, column
        assert _numbers(backwards.columns[column][n:]) == close, column
        assert _numbers(one_by_one.columns[column]) == close, column
        first = pytest.approx(_numbers(values)[:4], abs=CLOSE, rel=CLOSE, nan_ok=True)
        assert _numbers(scores.columns[column][0] for scores in alone) == first, column


@pytest.mark.parametrize("name", ALL)
def test_scores_are_within_their_range_and_say_what_they_are(name: str, make: Callable[[str], Scorer]) -> None:
    scorer = make(name)
    scores = scorer.score(items_for(scorer))
    low, high = scorer.range
    values = [value for value in scores.values if value is not None]
    assert all(low <= value <= high for value in values)
    # The rules of the scripted judge find no difference between these dialogues.
    assert len({round(value, 9) for value in values}) > 1 or scorer.name in {"dialogue_rating", "rubric"}
    assert list(scores.columns) == list(scorer.columns)
    assert scores.main == scorer.columns[0]
    assert set(scorer.truncation_columns) <= set(scorer.columns)
    assert str(scores.signature).startswith(f"method:{scorer.name}|")
    assert f"|level:{scorer.level}|version:" in str(scores.signature)
    json.dumps(list(scores.rows()), allow_nan=False)


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in NAMES if name in OF_TURNS and name not in {"dialogue_reconstruction", "glue_proxy"}),
        *("bartscore f_score", "dialogue_breakdown max_probability"),
        *("dialogue_likelihood dialogue", "dialogue_reconstruction dialogue"),
    ],
)
def test_a_class_says_the_level_range_and_direction_of_its_default(name: str, make: Callable[[str], Scorer]) -> None:
    scorer = make(name)
    of_class, made = ((one.level, one.range, one.orientation) for one in (type(scorer), scorer))
    assert of_class == made


@pytest.mark.parametrize("name", ALL)
def test_a_scorer_names_every_level_that_it_has(name: str, make: Callable[[str], Scorer]) -> None:
    scorer = make(name)
    assert scorer.level in (scorer.levels or (type(scorer).level,))
    assert bool(scorer.levels) == ("level" in (option_kinds(type(scorer)) or {}))


@pytest.mark.parametrize("name", OF_TURNS)
def test_a_blank_response_has_no_score(name: str, make: Callable[[str], Scorer]) -> None:
    given: dict[str, Any] = {"references": ["Fine, and you?"], "facts": ["They like tea."]}
    blanks = [Example.from_texts(["Hi."], text, id=repr(text), **given) for text in ("", " \n", "\u200b")]
    scores = make(name).score([*blanks, Example.from_texts(["Hi."], "a", id="short", **given)])
    assert dict(scores.unscored) == dict.fromkeys(range(3), BLANK_RESPONSE)
    assert all(value is None for values in scores.columns.values() for value in values[:3])


@pytest.mark.parametrize("name", OF_DIALOGUES)
def test_a_dialogue_without_two_turns_to_read_has_no_score(name: str, make: Callable[[str], Scorer]) -> None:
    texts = [[], [" "], ["Hi.", "\u200b"], ["Hi.", "Hello, how are you?"]]
    scores = make(name).score([Dialogue(str(number), tuple(map(Turn, turns))) for number, turns in enumerate(texts)])
    if name.startswith(("dialogue_rating", "rubric")):  # a judge has something to say of a single turn
        assert {place: row.reason for place, row in scores.unscored.items()} == dict.fromkeys(range(2), Reason.EMPTY_INPUT)
    else:
        assert dict(scores.unscored) == dict.fromkeys(range(3), TOO_FEW_TURNS)


@pytest.mark.parametrize("name", READS_TURNS_BEFORE)
def test_a_response_without_a_turn_before_it_has_no_score(name: str, make: Callable[[str], Scorer]) -> None:
    items = [Example.from_texts(context, "Hi.", facts=["Tea."]) for context in ([], [" ", "\u200b"], ["Hello."])]
    assert dict(make(name).score(items).unscored) == dict.fromkeys(range(2), NO_TURN)


@pytest.mark.parametrize("name", WITH_REFERENCES)
def test_without_a_reference_there_is_no_score_and_not_0(name: str, make: Callable[[str], Scorer]) -> None:
    scorer = make(name)
    items = [Example.from_texts(["Hi."], "Hello.", id="none"), Example.from_texts(["Hi."], "Hello.", references=["", " "])]
    scores = scorer.score(items)
    assert (dict(scores.unscored), scores.values) == (dict.fromkeys(range(2), NO_REFERENCE), (None, None))
    # A blank reference beside a real one is none.
    kept, alone = (
        scorer.score([Example.from_texts(["Hi."], "Hello.", references=references)]).values[0]
        for references in (["", "Hello there."], ["Hello there."])
    )
    assert kept == alone


@pytest.mark.parametrize("name", [name for name in WITH_REFERENCES if not name.startswith("bartscore")])
def test_a_response_that_is_its_reference_is_scored_and_counted(name: str, make: Callable[[str], Scorer]) -> None:
    scorer = make(name)
    assert isinstance(scorer, ReferenceScorer)
    references = ["Good to see you.", "Who are you?", "Good  to see you."]
    scores = scorer.score([Example.from_texts(["Hi."], "Good to see you. ", references=references)])
    assert scores.columns["n_references_equal"] == (2.0,)
    # METEOR's penalty leaves less than 1 even for equal texts.
    assert scores.values[0] == pytest.approx(scorer.range[1], rel=1e-2)


ODD = ["🙂", "\x00a", "\u05e9\u05dc\u05d5\u05dd", "\u202eabc", "a\u2028b", "[SEP] </s> <s> {question}", "\u00e9" * 150]


@pytest.mark.parametrize("name", ALL)
def test_control_characters_pictures_and_foreign_letters_raise_nothing(name: str, make: Callable[[str], Scorer]) -> None:
    scorer = make(name)
    items: Sequence[Item] = [
        Example.from_texts(["Hi."], text, id=str(number), references=[text, "b"], facts=["c"])
        for number, text in enumerate(ODD)
    ]
    if scorer.level == "dialogue":
        items = [Dialogue(str(number), (Turn("Hi."), Turn(text))) for number, text in enumerate(ODD)]
    scores = scorer.score(items)
    assert {row.reason for row in scores.unscored.values()} <= {Reason.EMPTY_INPUT, Reason.CONTEXT_TOO_LONG}
    assert scores.n_scored >= 4
    assert all(value is None or math.isfinite(value) for values in scores.columns.values() for value in values)


@pytest.mark.parametrize("name", NAMES)
def test_an_option_that_there_is_not_is_refused_before_a_model_is_opened(name: str) -> None:
    known = ", ".join(option_kinds(scorer_factory(name)) or ["none"])
    assert refusal(load_scorer, name, no_such_option=1) == f"{name}: there is no option 'no_such_option'. Known are: {known}."


TYPED = [
    (name, option, kind)
    for name in NAMES
    if hasattr(scorer_factory(name).__init__, "__wrapped__")  # type: ignore[misc]
    for option, kind in (option_kinds(scorer_factory(name)) or {}).items()
]


@pytest.mark.parametrize(("name", "option", "kind"), TYPED, ids=[f"{name} {option}" for name, option, _ in TYPED])
def test_a_value_of_another_type_is_refused_before_a_model_is_opened(name: str, option: str, kind: Any) -> None:
    assert kind is not Any
    wrong = object()
    # A judge says how a language model is made; `slide` and `cascade` take a scorer for their `llm`.
    is_model = option == "llm" and name not in {"slide", "cascade"}
    problem = f"llm: expected a language model, got {wrong!r} (object). Make " if is_model else f"{option} is {wrong!r}. Give "
    assert refusal(load_scorer, name, **{option: wrong}).startswith(f"{name}: {problem}")


def test_a_scorer_whose_hole_is_filled_gets_no_item_twice_and_none_that_it_refuses() -> None:
    class Recorder(Scorer):
        name = "recorder"
        columns = ("n",)
        seen: ClassVar[list[str]] = []

        def unscorable(self, item: Item) -> Unscored | None:
            return super().unscorable(item) or (Unscored(Reason.EMPTY_INPUT, "is odd") if len(item.id) % 2 else None)

        def score_batch(self, items: Sequence[Item]) -> list[Any]:
            self.seen += [item.id for item in items]
            return [{"n": 1.0} for _ in items]

        def signature_fields(self) -> dict[str, Any]:
            return {"method": "recorder"}

    texts = {"aa": "a", "b": "b", "cc": "a", "dd": "", "ee": "e"}
    scores = Recorder().score([Example.from_texts(["Hi."], text, id=id) for id, text in texts.items()])
    assert Recorder.seen == ["aa", "ee"]
    assert scores.values == (1.0, None, 1.0, None, 1.0)
    assert scores.unscored == {1: Unscored(Reason.EMPTY_INPUT, "is odd"), 3: BLANK_RESPONSE}
