"""Every scorer gives one number and one signature in Python, through `evaluate`, the command line, lm-eval and the leaderboard.

TRIAL S1, issue G 2.
"""

from __future__ import annotations

import hashlib
import html
import inspect
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.core.dialogue import Dialogue, Example, Turn, mean_rating
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.registry import load_scorer, option_kinds, scorer_factory, scorer_names
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Scores
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.hosts.evaluate.metric import DialogueMetric, load_metric, metric_names
from dialeval_plugin.hosts.lm_eval.model import DialogueMetricLM
from dialeval_plugin.leaderboard.exports import FORMATS
from dialeval_plugin.methods.baselines.overlap import Bleu, Rouge
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.methods.proxy_indicators.tasks import TASKS
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.correlation import correlations
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel, overlap_answer, overlap_log_probability
from tests.hosts.through_lm_eval import evaluate, everywhere, metrics
from tests.refusals import refusal
from tests.tiny.classifiers import write_classifier
from tests.tiny.likelihood import write_likelihood_model
from tests.tiny.reconstruction import write_tiny_model
from tests.tiny.seq2seq import write_tiny_bart, write_tiny_t5

COEFFICIENTS = {"spearman": "spearman", "pearson": "pearson", "kendall": "kendall_b"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rated set of responses with references and facts, and one of dialogues, of the embedded corpus's texts."""
    root = tmp_path_factory.mktemp("data")
    (root / "dstc10").mkdir()
    sets = mini.read_response_sets("test")[:12]
    turns, dialogues = [], []
    for number, one in enumerate(sets):
        reference, fact = one.positive[1], one.positive[2]
        for place, response in enumerate((one.positive[0], one.adversarial[0], one.random[0])):
            ratings = [1 + (3 * number + 2 * place) % 5, 1 + (number + 4 - place) % 5]
            row = {"dialogue_id": f"{number}-{place}", "model": f"system {place}", "context": "\n".join(one.context)}
            row |= {"response": response, "reference": [reference], "fact": fact, "annotations": {"Overall": ratings}}
            turns.append(row)
        said = [*one.context, one.positive[0]]
        dialog = [{"speaker": "human" if i % 2 else "model", "text": text} for i, text in enumerate(said)]
        dialogues.append({"dialogue_id": f"fd-{number}", "model": "bot", "dialog": dialog})
        dialogues[-1]["annotations"] = {"Overall": [number % 5, (number * 3 + 1) % 5]}
    (root / "dstc10" / "topical-usr_eval.json").write_text(json.dumps(turns), encoding="utf-8")
    (root / "dstc10" / "fed-dial_eval.json").write_text(json.dumps(dialogues), encoding="utf-8")
    return root


class Models:
    """Tiny models, written when somebody asks."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.request = request
        self.folder: Path = request.getfixturevalue("tmp_path")
        self.llm = ScriptedLanguageModel(overlap_answer, overlap_log_probability)
        self.by_hash = ScriptedLanguageModel(_rating_by_hash, _by_hash)

    def __getitem__(self, name: str) -> str:
        return str(self.request.getfixturevalue(f"tiny_{name}"))

    def breakdown(self, kind: str) -> str:
        return str(getattr(self.request.getfixturevalue("tiny_breakdown_models"), kind))

    def write(self, write: Callable[..., Path], kind: str = "", **options: int) -> str:
        return str(write(self.folder / kind, kind, **options) if kind else write(self.folder))

    def classifiers(self, *names: str) -> dict[str, str]:
        return {name: str(write_classifier(self.folder / name, TASKS[name].labels, seed=1)) for name in names}


def _slm(models: Models, **options: Any) -> dict[str, Any]:
    return {"slm": models["slm"], **options}


def _rated(models: Models, **options: Any) -> dict[str, Any]:
    return {"llm": models.by_hash, **options}


def _likelihood(models: Models, **options: Any) -> dict[str, Any]:
    return {"model": models.write(write_likelihood_model, "gpt2", n_positions=512), **options}


def _reconstruction(models: Models, kind: str = "seq2seq", **options: Any) -> dict[str, Any]:
    return {"model": models.write(write_tiny_model, kind), **options}


Options = Callable[[Models], dict[str, Any]]
SCORERS: dict[str, Options] = {
    **dict.fromkeys(("bleu", "chrf", "rouge", "response_length", "random"), lambda models: {}),
    "meteor": lambda models: {"synonyms": False},
    "embedding_overlap": lambda models: {"encoder": models["encoder"]},
    "sentence_similarity": lambda models: {"encoder": models["encoder"]},
    "bertscore": lambda models: {"model": models["encoder"], "num_layers": 1},
    "bartscore": lambda models: {"model": models.write(write_tiny_bart)},
    "unieval": lambda models: {"model": models.write(write_tiny_t5)},
    "unieval engagingness": lambda models: {"dimension": "engagingness", "model": models.write(write_tiny_t5)},
    **{f"slide {name}": partial(_slm, variant=name) for name in ("slm", "slm_probability", "slm_distance")},
    "slide": lambda models: _slm(models, llm=PromptedJudge(models.llm)),
    "dre": lambda models: _slm(models, llm=models.llm),
    "dre ablation": lambda models: _slm(models, llm=models.llm, ablation=True),
    "dialogue_rating": _rated,
    "dialogue_rating overall": partial(_rated, quality="overall,fluent"),
    "dialogue_rating dialogue": partial(_rated, quality="overall", level="dialogue"),
    "llm_judge": lambda models: {"llm": models.llm},
    "rubric": lambda models: {"llm": models.llm, "rubric": "How well does it fit?", "scale": "1-5"},
    **dict.fromkeys(("g_eval", "llm_chiang"), lambda models: {"llm": models.llm, "mode": "weighted"}),
    **dict.fromkeys(("g_eval sampled", "llm_chiang sampled"), partial(_rated, mode="sampled", n_samples=2)),
    "causalscore": lambda models: {"model": models["causal_model"]},
    "assistant": lambda models: {"model": models["assistant"]},
    "auto": lambda models: {"general": models["general"], "assistant": models["assistant"]},
    "cascade": lambda models: {
        "small": GeneralScorer(models["general"]),
        "llm": PromptedJudge(models.llm),
        "cascade": 0.2,
    },
    "assistant dialogue": lambda models: {"model": models["assistant"], "level": "dialogue"},
    "general": lambda models: {"model": models["general"]},
    "general references": lambda models: {"model": models["general"], "with_references": True},
    "general dialogue": lambda models: {"model": models["general"], "level": "dialogue"},
    "glue_proxy": lambda models: {"variant": "mrpc", "models": models.classifiers("mrpc")},
    "glue_proxy all": lambda models: {"variant": "cola", "features": "all", "models": models.classifiers(*TASKS)},
    "dialogue_breakdown": lambda models: {"model": models.breakdown("lm"), "method": "max_probability"},
    "dialogue_breakdown likelihood_ratio": lambda models: {
        "model": models.breakdown("lm"),
        "background": models.breakdown("background"),
        "method": "likelihood_ratio",
    },
    "dialogue_likelihood turn": partial(_likelihood, level="turn", aggregation=None),
    "dialogue_likelihood sum_of_sums": partial(_likelihood, level="dialogue", aggregation="sum_of_sums"),
    "dialogue_likelihood product_of_products": partial(_likelihood, level="dialogue", aggregation="product_of_products"),
    "dialogue_reconstruction turn": partial(_reconstruction, level="turn"),
    "dialogue_reconstruction dialogue": partial(_reconstruction, level="dialogue"),
    "dialogue_reconstruction sum": partial(_reconstruction, kind="vhcr", reduction="sum"),
    "dialogue_reconstruction posterior": partial(_reconstruction, kind="vhcr", latent="posterior", seed=3),
}

QUICK = ("response_length", "slide", "general", "general dialogue", "llm_judge")
"""One of each kind; the others take minutes together."""


def options_of(name: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Those of the table; a scorer that takes a device works on the CPU."""
    device = {"device": "cpu"} if "device" in (option_kinds(scorer_factory(name.partition(" ")[0])) or ()) else {}
    return {**SCORERS[name](Models(request)), **device}


def _rating_by_hash(prompt: str) -> str:
    return str(1 + hashlib.sha256(prompt.encode()).digest()[0] % 3)


def _by_hash(prompt: str, form: str) -> float:
    """A log probability that differs from prompt to prompt."""
    return -1 - int(hashlib.sha256(f"{prompt}{form}".encode()).hexdigest()[:4], 16) / 16**4


def test_every_scorer_of_the_package_is_here() -> None:
    # `replay_judge` knows the items that are stored and no others; it has tests of its own.
    ours = {name for name in scorer_names() if scorer_factory(name).__module__.startswith("dialeval_plugin.")} - {
        "replay_judge"
    }
    assert {name.partition(" ")[0] for name in SCORERS} == ours


@pytest.mark.any_lm_eval
@pytest.mark.parametrize("name", list(SCORERS))
def test_every_door_gives_the_scores_and_the_signature(
    name: str, request: pytest.FixtureRequest, data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(data))
    scorer_name, options = name.partition(" ")[0], options_of(name, request)
    scorer: Scorer = load_scorer(scorer_name, **options)
    examples = [*rows_without_names(), Example("blank", (Turn("Hello."),), Turn(" "), ("Hi.",), ("I like tea.",))]
    is_dialogue = scorer.level == "dialogue"
    direct = scorer.score([Dialogue(one.id, (*one.context, one.response)) if is_dialogue else one for one in examples])
    # `load_metric` takes the packaged shim; a scorer without one has the same class behind it.
    own = type("Own", (DialogueMetric,), {"scorer_name": scorer_name})
    kind = type(load_metric(scorer_name)) if scorer_name in metric_names() else own
    metric = kind(**options)
    result = metric.compute(
        predictions=[one.response.text for one in examples],
        contexts=[[turn.text for turn in one.context] for one in examples],
        references=[list(one.references) for one in examples],
        facts=[list(one.facts) for one in examples],
    )
    if scorer_name in metric_names():
        the_card_names_every_option_and_entry(metric, result)
    assert result.pop("signature") == str(direct.signature)
    assert result.pop("scores") == list(direct.values)
    mean = result.pop(scorer_name)
    assert mean == direct.mean()
    columns = {column: list(values) for column, values in direct.columns.items() if not column == direct.main == scorer_name}
    assert {column: result.pop(column) for column in columns} == columns
    counts = {name: getattr(direct, name) for name in ("n_total", "n_scored", "n_unscored")}
    assert result == {**counts, "unscored": direct.unscored_by_reason}
    if not is_dialogue and all(isinstance(value, (str, int)) for value in options.values()):
        through_command_line(scorer_name, options, examples, direct, tmp_path)


def the_card_names_every_option_and_entry(metric: DialogueMetric, result: dict[str, Any]) -> None:
    card = (metrics_path() / metric.scorer_name / "README.md").read_text(encoding="utf-8")
    options = metric.inputs_description.split("of the scorer: ")[1].split(".")[0].split(", ")
    assert set(options) >= set(inspect.signature(scorer_factory(metric.scorer_name)).parameters)
    # Of a family of columns the card names the first, `naturalness_variance`, ..., or says how they are named: `max_...`.
    entries = [re.sub("^(coherence|engagingness|groundedness)_", "naturalness_", name) for name in result]
    entries = [name for name in entries if not name.startswith("max_")]
    assert [name for name in (*options, *entries) if f"`{name}`" not in card] == []


NO_MODEL = " asks a large language model, and no llm is given. Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model)."
NO_LLM = (
    " the variant 'slide' fuses the small model with a large one, and no llm is given. "
    "Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model), or variant='slm' for the small model alone."
)
MISSING: list[tuple[str, dict[str, Any], str]] = [
    ("slide", {"variant": "slide", "slm": "tiny_slm"}, NO_LLM),
    ("dialogue_reconstruction", {}, " no model is named. "),
    ("dialogue_rating", {}, " asks a large language model, and no llm is given. "),
    ("g_eval", {}, NO_MODEL),
]


@pytest.mark.any_lm_eval
@pytest.mark.parametrize(("name", "options", "text"), MISSING)
def test_a_metric_without_its_model_says_how_to_name_one(
    name: str, options: dict[str, Any], text: str, tiny_slm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("DIALEVAL_SLM", "DIALEVAL_LANGUAGE_MODEL", "DIALEVAL_RECONSTRUCTION"):
        monkeypatch.delenv(variable, raising=False)
    if "slm" in options:
        options = {**options, "slm": str(tiny_slm)}
    row = {"predictions": ["a"], "contexts": [["b"]]}
    said = refusal(load_metric(name).compute, error=MissingPrerequisite, **row, **options)
    assert said.startswith(f"{name}:{text}") if text.endswith(" ") else said == f"{name}:{text}"


def rows_without_names() -> list[Example]:
    """Items with what `evaluate` and a file of responses can say of them: no speaker, no system, no rating."""
    return [
        Example(str(number), tuple(Turn(turn.text) for turn in one.context), Turn(one.response.text), one.references, one.facts)
        for number, one in enumerate(dstc10.read("tu")[:9])
    ]


def through_command_line(name: str, options: dict[str, Any], examples: list[Example], direct: Scores, folder: Path) -> None:
    lines = [{"id": one.id, "context": [turn.text for turn in one.context], "response": one.response.text} for one in examples]
    for line, one in zip(lines, examples, strict=True):
        line |= {"references": list(one.references), "facts": list(one.facts)}
    (folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    files = [str(folder / "in.jsonl"), "--output", str(folder / "out.jsonl"), "--max-unscored", "1"]
    given = [part for option, value in options.items() for part in ("--option", f"{option}={value}")]
    done = CliRunner().invoke(app, ["score", *files, "--scorer", name, *given])
    assert done.exit_code == 0, done.output
    written = [json.loads(line) for line in (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line[direct.main] for line in written] == pytest.approx(list(direct.values), abs=1e-9)


# All take the way through lm-eval that those of QUICK take.
LONG = (pytest.mark.long, pytest.mark.any_lm_eval)


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=LONG) for name in SCORERS])
def test_every_coefficient_is_that_of_the_scores(
    name: str, request: pytest.FixtureRequest, data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(data))
    scorer: Scorer = load_scorer(name.partition(" ")[0], **options_of(name, request))
    code = "fd" if scorer.level == "dialogue" else "tu"
    task, items = f"dstc10_dialog_{code}", dstc10.read(code)
    sign = -1 if scorer.orientation == "lower" else 1
    values = [None if value is None else sign * value for value in scorer.score(items).values]
    assert len({value for value in values if value is not None}) > 2
    ratings, clusters = [mean_rating(item, "Overall") for item in items], [context_key(item) for item in items]
    statistics = tuple(COEFFICIENTS.values())
    expected = correlations(values, ratings, coefficients=statistics, clusters=clusters, bootstrap=Bootstrap(rounds=0))
    found = evaluate(DialogueMetricLM(scorer), task, output=tmp_path / "out")
    computed = metrics(found, task)
    made = everywhere(tmp_path / "out", tmp_path / "board")
    (run,), (cell,), (findings,) = made.runs, made.board.cells, made.findings
    again = {one.statistic: one.value for one in findings}
    assert html.escape(run.evaluator) in made.page
    assert made.exported == {name: {run.evaluator} for name in FORMATS}
    assert run.rows is not None
    assert {row.id: row.score for row in run.rows} == {item.id: value for item, value in zip(items, values, strict=True)}
    for printed, coefficient in COEFFICIENTS.items():
        direct = expected[coefficient].value
        assert direct is not None
        for figure in (computed[printed], again[coefficient], cell.figures[printed].value):
            assert figure == pytest.approx(direct, abs=1e-9)


# Baselines on published sets


@pytest.mark.real_data
@pytest.mark.parametrize(("code", "n_equal"), [("tu", 61), ("pu", 60), ("dz", 100), ("pz", 150), ("dgu", 2)])
def test_ground_truth_systems_are_counted(code: str, n_equal: int, data_dir: Path) -> None:
    scores = Rouge().score(dstc10.read(code))
    counts = [value for value in scores.columns["n_references_equal"] if value is not None]
    assert sum(count > 0 for count in counts) == n_equal
    assert len(counts) == scores.n_scored


@pytest.mark.real_data
def test_a_set_without_references_has_no_bleu(data_dir: Path) -> None:
    assert Bleu().score(dstc10.read("ft")).unscored_by_reason == {"needs_references": 375}
    found = metrics(evaluate(DialogueMetricLM("bleu"), "dstc10_dialog_ft"), "dstc10_dialog_ft")
    assert (found["n_scored"], found["n_unscored"]) == (0, 375)
    assert not isinstance(found["spearman"], float)
