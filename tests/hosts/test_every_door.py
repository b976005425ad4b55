"""Every scorer gives one number and one signature in Python, through `evaluate`, the command line, lm-eval and the leaderboard.

TRIAL S1, issue G 2.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.core.scorer import Scorer, load_scorer, scorer_factory, scorer_names
from dialeval_plugin.core.scores import Scores
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key, mean_rating
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.hosts.evaluate.metric import DialogueMetric, load_metric, metric_names
from dialeval_plugin.hosts.lm_eval.model import DialogueMetricLM
from dialeval_plugin.leaderboard.build import build
from dialeval_plugin.leaderboard.rescoring import rescore
from dialeval_plugin.leaderboard.result_files import read_runs
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.methods.proxy_indicators.tasks import TASKS
from dialeval_plugin.reports.correlation_report import ReportOptions
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.correlation import correlations
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel
from dialeval_plugin.testing.scripted_rules import overlap_answer, overlap_log_probability
from tests.hosts.through_lm_eval import evaluate, metrics
from tests.tiny.breakdown import TinyModels
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
    """Folders of tiny models, written when somebody asks."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.fixture = request.getfixturevalue
        self.folder: Path = request.getfixturevalue("tmp_path")
        self.llm = ScriptedLanguageModel(overlap_answer, overlap_log_probability)

    @property
    def breakdown(self) -> TinyModels:
        found: TinyModels = self.fixture("tiny_breakdown_models")
        return found


Options = Callable[[Models], dict[str, Any]]
NONE: Options = lambda models: {}  # noqa: E731 - one of many
SCORERS: dict[str, Options] = {
    **dict.fromkeys(("bleu", "chrf", "rouge", "response_length", "random"), NONE),
    "meteor": lambda models: {"synonyms": False},
    "embedding_overlap": lambda models: {"encoder": str(models.fixture("tiny_encoder"))},
    "sentence_similarity": lambda models: {"encoder": str(models.fixture("tiny_encoder")), "device": "cpu"},
    "bertscore": lambda models: {"model": str(models.fixture("tiny_encoder")), "num_layers": 1, "device": "cpu"},
    "bartscore": lambda models: {"model": str(write_tiny_bart(models.folder)), "device": "cpu"},
    "unieval": lambda models: {"model": str(write_tiny_t5(models.folder)), "device": "cpu"},
    "unieval engagingness": lambda models: {
        "dimension": "engagingness",
        "model": str(write_tiny_t5(models.folder)),
        "device": "cpu",
    },
    **{
        f"slide {variant}": lambda models, variant=variant: {
            "slm": str(models.fixture("tiny_slm")),
            "variant": variant,
            "device": "cpu",
        }
        for variant in ("slm", "slm_probability", "slm_distance")
    },
    "slide": lambda models: {"slm": str(models.fixture("tiny_slm")), "llm": PromptedJudge(models.llm), "device": "cpu"},
    "dre": lambda models: {"slm": str(models.fixture("tiny_slm")), "llm": models.llm},
    "dre ablation": lambda models: {"slm": str(models.fixture("tiny_slm")), "llm": models.llm, "ablation": True},
    "dialogue_rating": lambda models: {"llm": ScriptedLanguageModel(overlap_answer, _by_hash)},
    "dialogue_rating overall": lambda models: {
        "llm": ScriptedLanguageModel(overlap_answer, _by_hash),
        "quality": "overall,fluent",
    },
    "dialogue_rating dialogue": lambda models: {
        "llm": ScriptedLanguageModel(overlap_answer, _by_hash),
        "quality": "overall",
        "level": "dialogue",
    },
    "llm_judge": lambda models: {"llm": models.llm},
    **{name: lambda models: {"llm": models.llm, "mode": "weighted"} for name in ("g_eval", "llm_chiang")},
    **{
        f"{name} sampled": lambda models: {"llm": ScriptedLanguageModel(_rating_by_hash), "mode": "sampled", "n_samples": 2}
        for name in ("g_eval", "llm_chiang")
    },
    "causalscore": lambda models: {"model": str(models.fixture("tiny_causal_model")), "device": "cpu"},
    "general": lambda models: {"model": str(models.fixture("tiny_general")), "device": "cpu"},
    "glue_proxy": lambda models: {"variant": "mrpc", "models": _classifiers(models.folder, "mrpc")},
    "glue_proxy all": lambda models: {"variant": "cola", "features": "all", "models": _classifiers(models.folder, *TASKS)},
    "dialogue_breakdown": lambda models: {"model": str(models.breakdown.lm), "method": "max_probability", "device": "cpu"},
    **{
        f"dialogue_likelihood {level} {aggregation}": lambda models, level=level, aggregation=aggregation: {
            "model": str(write_likelihood_model(models.folder / "gpt2", "gpt2", n_positions=512)),
            "level": level,
            "aggregation": aggregation,
            "device": "cpu",
        }
        for level, aggregation in (("turn", None), ("dialogue", "sum_of_sums"), ("dialogue", "product_of_products"))
    },
    **{
        f"dialogue_reconstruction {level}": lambda models, level=level: {
            "model": str(write_tiny_model(models.folder / "seq2seq", "seq2seq")),
            "level": level,
            "device": "cpu",
        }
        for level in ("turn", "dialogue")
    },
    **{
        f"dialogue_reconstruction {name}": lambda models, options=options: {
            "model": str(write_tiny_model(models.folder / "vhcr", "vhcr")),
            "device": "cpu",
            **options,
        }
        for name, options in (("sum", {"reduction": "sum"}), ("posterior", {"latent": "posterior", "seed": 3}))
    },
    "general dialogue": lambda models: {"model": str(models.fixture("tiny_general")), "level": "dialogue", "device": "cpu"},
    "dialogue_breakdown likelihood_ratio": lambda models: {
        "model": str(models.breakdown.lm),
        "background": str(models.breakdown.background),
        "method": "likelihood_ratio",
        "device": "cpu",
    },
}


def _rating_by_hash(prompt: str) -> str:
    return str(1 + hashlib.sha256(prompt.encode()).digest()[0] % 3)


def _by_hash(prompt: str, form: str) -> float:
    """A log probability that differs from prompt to prompt."""
    return -1 - int(hashlib.sha256(f"{prompt}{form}".encode()).hexdigest()[:4], 16) / 16**4


def _classifiers(folder: Path, *names: str) -> dict[str, str]:
    return {name: str(write_classifier(folder / name, TASKS[name].labels, seed=1)) for name in names}


def test_every_scorer_of_the_package_is_here() -> None:
    ours = {name for name in scorer_names() if scorer_factory(name).__module__.startswith("dialeval_plugin.")}
    assert {name.partition(" ")[0] for name in SCORERS} == ours


@pytest.mark.parametrize("name", list(SCORERS))
def test_every_door_gives_the_scores_and_the_signature(
    name: str, request: pytest.FixtureRequest, data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(data))
    scorer_name, options = name.partition(" ")[0], SCORERS[name](Models(request))
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
    assert result == {
        "n_total": direct.n_total,
        "n_scored": direct.n_scored,
        "n_unscored": direct.n_unscored,
        "unscored": direct.unscored_by_reason,
    }
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
MISSING: list[tuple[str, dict[str, Any], str]] = [
    (
        "slide",
        {"variant": "slm"},
        " no SLM is named. Train one with `dialeval train slm --data FILE --output FOLDER`, "
        "or pass slm='FOLDER or hub id', or set DIALEVAL_SLM.",
    ),
    (
        "slide",
        {"variant": "slide", "slm": "tiny_slm"},
        " the variant 'slide' fuses the small model with a large one, and no llm is given. "
        "Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model), or variant='slm' for the small model alone.",
    ),
    ("dialogue_likelihood", {}, " no model is named. "),
    ("dialogue_reconstruction", {}, " no model is named. "),
    ("dialogue_rating", {}, " asks a large language model, and no llm is given. "),
    ("g_eval", {}, NO_MODEL),
]


@pytest.mark.parametrize(("name", "options", "text"), MISSING)
def test_a_metric_without_its_model_says_how_to_name_one(
    name: str, options: dict[str, Any], text: str, tiny_slm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("DIALEVAL_SLM", "DIALEVAL_LANGUAGE_MODEL", "DIALEVAL_RECONSTRUCTION"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    if "slm" in options:
        options = {**options, "slm": str(tiny_slm)}
    with pytest.raises(MissingPrerequisite) as caught:
        load_metric(name).compute(predictions=["a"], contexts=[["b"]], **options)
    said = str(caught.value)
    assert said.startswith(f"{name}:{text}") if text.endswith(" ") else said == f"{name}:{text}"


def rows_without_names() -> list[Example]:
    """What `evaluate` and a file of responses can say of the responses: no speaker, no system, no rating."""
    return [
        Example(str(number), tuple(Turn(turn.text) for turn in one.context), Turn(one.response.text), one.references, one.facts)
        for number, one in enumerate(dstc10.read_examples("tu")[:9])
    ]


def through_command_line(name: str, options: dict[str, Any], examples: list[Example], direct: Scores, folder: Path) -> None:
    lines = [
        {
            "id": one.id,
            "context": [turn.text for turn in one.context],
            "response": one.response.text,
            "references": list(one.references),
            "facts": list(one.facts),
        }
        for one in examples
    ]
    (folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    files = [str(folder / "in.jsonl"), "--output", str(folder / "out.jsonl"), "--max-unscored", "1"]
    given = [part for option, value in options.items() for part in ("--option", f"{option}={value}")]
    done = CliRunner().invoke(app, ["score", *files, "--scorer", name, *given])
    assert done.exit_code == 0, done.output
    written = [json.loads(line) for line in (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line[direct.main] for line in written] == pytest.approx(list(direct.values), abs=1e-9)


@pytest.mark.parametrize("name", list(SCORERS))
def test_every_coefficient_is_that_of_the_scores(
    name: str, request: pytest.FixtureRequest, data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(data))
    scorer: Scorer = load_scorer(name.partition(" ")[0], **SCORERS[name](Models(request)))
    code = "fd" if scorer.level == "dialogue" else "tu"
    task, items = f"dstc10_dialog_{code}", dstc10.read(code)
    sign = -1 if scorer.orientation == "lower" else 1
    values = [None if value is None else sign * value for value in scorer.score(items).values]
    assert len({value for value in values if value is not None}) > 2
    ratings, clusters = [mean_rating(item, "Overall") for item in items], [context_key(item) for item in items]
    expected = correlations(
        values, ratings, coefficients=tuple(COEFFICIENTS.values()), clusters=clusters, bootstrap=Bootstrap(rounds=0)
    )

    found = evaluate(DialogueMetricLM(scorer), task, output=tmp_path / "out")
    computed = metrics(found, task)
    (run,) = read_runs([tmp_path / "out"])
    again = {one.statistic: one.value for one in rescore([run], ReportOptions(coefficients=tuple(COEFFICIENTS.values())))}
    (cell,) = build([tmp_path / "out"], rank_rounds=0).board.cells
    assert run.rows is not None
    assert {row.id: row.score for row in run.rows} == {item.id: value for item, value in zip(items, values, strict=True)}
    for printed, coefficient in COEFFICIENTS.items():
        direct = expected[coefficient].value
        assert direct is not None
        assert computed[printed] == pytest.approx(direct, abs=1e-9)
        assert again[coefficient] == pytest.approx(direct, abs=1e-9)
        assert cell.figures[printed].value == pytest.approx(direct, abs=1e-9)
