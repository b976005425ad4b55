"""TRIAL S1, issue G 2: of every scorer lm-eval, rescore and the leaderboard give the coefficients of its own scores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lm_eval
import pytest
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

from dialeval_plugin.core.registry import load_scorer, scorer_factory, scorer_names
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key, mean_rating
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.hosts.lm_eval.model import DialogueMetricLM
from dialeval_plugin.leaderboard.build import build
from dialeval_plugin.leaderboard.rescoring import rescore
from dialeval_plugin.leaderboard.result_files import read_runs
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.reports.correlation_report import ReportOptions
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.correlation import correlations
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel
from dialeval_plugin.testing.scripted_rules import overlap_answer, overlap_log_probability
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
        for variant in ("slm", "slm_distance")
    },
    "slide": lambda models: {"slm": str(models.fixture("tiny_slm")), "llm": PromptedJudge(models.llm), "device": "cpu"},
    "dre": lambda models: {"slm": str(models.fixture("tiny_slm")), "llm": models.llm},
    "dialogue_rating": lambda models: {"llm": ScriptedLanguageModel(overlap_answer, _by_hash)},
    "llm_judge": lambda models: {"llm": models.llm},
    **{name: lambda models: {"llm": models.llm, "mode": "weighted"} for name in ("g_eval", "llm_chiang")},
    "causalscore": lambda models: {"model": str(models.fixture("tiny_causal_model")), "device": "cpu"},
    "general": lambda models: {"model": str(models.fixture("tiny_general")), "device": "cpu"},
    "glue_proxy": lambda models: {"variant": "mrpc", "models": {"mrpc": str(_mrpc(models.folder))}},
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
}


def _by_hash(prompt: str, form: str) -> float:
    """A log probability that differs from prompt to prompt."""
    return -1 - int(hashlib.sha256(f"{prompt}{form}".encode()).hexdigest()[:4], 16) / 16**4


def _mrpc(folder: Path) -> Path:
    from dialeval_plugin.methods.proxy_indicators.tasks import TASKS

    return write_classifier(folder / "mrpc", TASKS["mrpc"].labels, seed=1)


def test_every_scorer_of_the_package_is_here() -> None:
    ours = {name for name in scorer_names() if scorer_factory(name).__module__.startswith("dialeval_plugin.")}
    assert {name.partition(" ")[0] for name in SCORERS} == ours


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

    tracker = EvaluationTracker(output_path=str(tmp_path / "out"))
    manager = TaskManager(include_path=str(tasks_path()), include_defaults=False)
    found: dict[str, Any] = lm_eval.simple_evaluate(
        DialogueMetricLM(scorer), tasks=[task], task_manager=manager, bootstrap_iters=0, evaluation_tracker=tracker
    )
    samples = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=samples)
    tracker.save_results_samples(task_name=task, samples=samples[task])
    (run,) = read_runs([tmp_path / "out"])
    again = {one.statistic: one.value for one in rescore([run], ReportOptions(coefficients=tuple(COEFFICIENTS.values())))}
    (cell,) = build([tmp_path / "out"], rank_rounds=0).board.cells
    assert run.rows is not None
    assert {row.id: row.score for row in run.rows} == {item.id: value for item, value in zip(items, values, strict=True)}
    for printed, coefficient in COEFFICIENTS.items():
        direct = expected[coefficient].value
        assert direct is not None
        assert found["results"][task][f"{printed},none"] == pytest.approx(direct, abs=1e-9)
        assert again[coefficient] == pytest.approx(direct, abs=1e-9)
        assert cell.figures[printed].value == pytest.approx(direct, abs=1e-9)
