"""Tables of percentiles beside a model: what is scored for them, when they count, and the same numbers at every door."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval_plugin import load_metric, load_scorer
from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.percentiles import read_tables
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.signature import content_hash, file_hash
from dialeval_plugin.corpora import mini
from dialeval_plugin.methods.general.mixing import RatedSet, fit_on_ratings
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.models.folders import PRETRAINED
from dialeval_plugin.streams.run import run_identity
from dialeval_plugin.training.people import write_percentiles
from tests.cli.running import run as dialeval
from tests.cli.running import write_rows
from tests.hosts.through_lm_eval import evaluate
from tests.refusals import refused
from tests.tiny.likelihood import write_likelihood_model

SOURCES = {"people.jsonl": "0" * 64}


def people(n: int = 8) -> list[Dialogue]:
    sets = mini.read_response_sets("validation")[:n]
    return [Dialogue(one.id, tuple(map(Turn, (*one.context, one.positive[0])))) for one in sets]


@pytest.fixture
def folder(tiny_general: Path, tmp_path: Path) -> Path:
    """A general evaluator with tables for responses and for dialogues."""
    copy = shutil.copytree(tiny_general, tmp_path / "general")
    for level in ("turn", "dialogue"):
        write_percentiles(load_scorer("general", model=str(copy), level=level, device="cpu"), copy, people(), SOURCES)
    return copy


def general(folder: Path, **options: Any) -> Scorer:
    return load_scorer("general", model=str(folder), device="cpu", **options)


def responses() -> list[Example]:
    """As `evaluate` and a file of rows have them, the last one without a score."""
    found = [
        Example.from_texts([turn.text for turn in one.context], one.response.text, id=str(number))
        for number, one in enumerate(mini.read_examples(split="test")[:6])
    ]
    return [*found, Example.from_texts(["Hi."], " ", id="6")]


def test_every_turn_from_the_second_on_is_scored_after_those_before_it(tiny_general: Path, tmp_path: Path) -> None:
    scorer = general(tiny_general)
    dialogues = [Dialogue("d", (Turn("Hi."), Turn(" "), Turn("Plums?"), Turn("Two."))), Dialogue("e", (Turn("Alone."),))]
    table = write_percentiles(scorer, tmp_path, dialogues, SOURCES)
    values = scorer.score([Example.from_texts(["Hi."], "Plums?"), Example.from_texts(["Hi.", "Plums?"], "Two.")]).values
    assert (table.n, table.column, table.level, table.orientation) == (2, "general", "turn", "higher")
    ends = (table.quantiles[0], table.quantiles[-1])
    assert ends == (pytest.approx(min(map(float, values)), rel=1e-5), pytest.approx(max(map(float, values)), rel=1e-5))  # type: ignore[arg-type]
    assert read_tables(tmp_path) == [table]
    with refused("percentiles: none of 0 responses of people has a score. Give more of them."):
        write_percentiles(scorer, tmp_path, dialogues[1:], SOURCES)
    assert read_tables(tmp_path) == [table]


def test_a_sample_is_drawn_by_its_seed(tiny_general: Path, tmp_path: Path) -> None:
    tables = [
        write_percentiles(general(tiny_general), tmp_path, people(), SOURCES, n=5, seed=seed) for seed in (0, 0, 1)
    ]  # fmt: skip
    assert [table.n for table in tables] == [5, 5, 5]
    assert tables[0] == tables[1] != tables[2]


@pytest.mark.parametrize("level", ["turn", "dialogue"])
def test_the_column_comes_last_and_moves_nothing_else(level: str, folder: Path, tiny_general: Path) -> None:
    items = responses() if level == "turn" else people(4)
    with_table, without = general(folder, level=level), general(tiny_general, level=level)
    scores, plain = with_table.score(items), without.score(items)
    assert content_hash(folder) == content_hash(tiny_general)
    assert scores.signature == plain.signature
    assert run_identity(with_table) != run_identity(without)  # rows of the two never join
    assert list(scores.columns) == [*plain.columns, "percentile"]
    assert {name: scores.columns[name] for name in plain.columns} == plain.columns
    assert with_table.percentiles is not None
    assert scores.columns["percentile"] == with_table.percentiles.of(plain.values)
    for number, item in enumerate(items):
        assert with_table.score([item]).columns["percentile"] == (pytest.approx(scores.columns["percentile"][number], abs=0.1),)


def test_other_weights_have_no_percentiles(folder: Path, tmp_path: Path) -> None:
    scorer = general(folder)
    assert isinstance(scorer, GeneralScorer)
    sets = [rated_set(scorer, name, start) for name, start in (("a", 0), ("b", 12))]
    fit_on_ratings(sets, scorer.model_hash).save(tmp_path / "mixing.json")
    mixed = general(folder, mixing=str(tmp_path / "mixing.json"), score_fitted=True)
    assert mixed.percentiles is None
    assert "percentile" not in mixed.score(responses()).columns


def rated_set(scorer: GeneralScorer, name: str, start: int) -> RatedSet:
    examples = [Example.from_texts(["Hi."], f"Plum {number}.", id=str(number)) for number in range(start, start + 12)]
    return RatedSet(name, "overall", examples, np.arange(12.0), scorer.log_odds(examples))


def test_each_variant_of_slide_has_a_table_of_its_own(tiny_slm: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_slm, tmp_path / "slm")

    def slide(variant: str, **options: Any) -> Scorer:
        return load_scorer("slide", slm=str(copy), variant=variant, device="cpu", **options)

    for variant in ("slm", "slm_distance"):
        write_percentiles(slide(variant), copy, people(), SOURCES)
    assert slide("slm_probability").percentiles is None
    assert slide("slm", clip=True).percentiles is None
    assert slide("slm", normalise="population").percentiles is None
    farthest_first = sorted(responses()[:-1], key=lambda one: -float(slide("slm_distance").score([one]).values[0] or 0))
    percentiles = slide("slm_distance").score(farthest_first).columns["percentile"]
    assert list(percentiles) == sorted(percentiles)  # type: ignore[type-var]
    (said,) = slide("slm").explain(responses()[:1])
    assert said.startswith("probability 0.")
    assert said.count("(people's ") == 2


def test_the_classifiers_and_a_language_model_have_theirs(tiny_causal_model: Path, tmp_path: Path) -> None:
    causal, lm = shutil.copytree(tiny_causal_model, tmp_path / "causal"), write_likelihood_model(tmp_path / "gpt2", "gpt2")
    for name, folder, options in (
        ("causalscore", causal, {}),
        ("dialogue_likelihood", lm, {}),
        ("dialogue_likelihood", lm, {"level": "turn"}),
    ):
        made = {"model": str(folder), "device": "cpu", **options}
        table = write_percentiles(load_scorer(name, **made), folder, people(3), SOURCES)
        assert load_scorer(name, **made).percentiles == table
    assert len(read_tables(lm)) == 2
    assert load_scorer("causalscore", model=str(causal), variant="unconditional", device="cpu").percentiles is None


def test_every_door_gives_the_percentiles(folder: Path, tmp_path: Path) -> None:
    items = responses()
    expected = general(folder).score(items).columns["percentile"]
    assert expected[-1] is None
    result = load_metric("general", model=str(folder), device="cpu").compute(
        predictions=[item.response.text for item in items], contexts=[[turn.text for turn in item.context] for item in items]
    )
    assert result["percentile"] == list(expected)
    rows = write_rows(
        tmp_path / "in.jsonl",
        [{"id": one.id, "context": [turn.text for turn in one.context], "response": one.response.text} for one in items],
    )
    options = ("--option", f"model={folder}", "--option", "device=cpu")
    done = dialeval("score", rows, "--output", tmp_path / "out.jsonl", *options, "--max-unscored", "1")
    assert done.exit_code == 0, done.output
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["percentile"] for row in written] == list(expected)
    meta = json.loads((tmp_path / "out.jsonl.meta.json").read_text())
    (table,) = [one for one in read_tables(folder) if one.level == "turn"]
    assert meta["percentiles"] == table.digest


def test_lm_eval_logs_the_percentiles_with_its_samples(folder: Path) -> None:
    task = "dstc10_dialog_mini"
    found = evaluate("dialogue-metric", task, model_args=f"scorer=general,model={folder},device=cpu", limit=5)
    samples = found["samples"][task]
    items = [
        Example.from_texts([turn["text"] for turn in one["doc"]["context"]], one["doc"]["response"]["text"]) for one in samples
    ]
    expected = general(folder).score(items).columns["percentile"]
    assert [one["spearman"].percentile for one in samples] == [pytest.approx(value, abs=1e-3) for value in expected]


def test_the_command_writes_them_for_a_model_of_yours(tiny_general: Path, tmp_path: Path) -> None:
    file, folder = tmp_path / "people.jsonl", shutil.copytree(tiny_general, tmp_path / "mine")
    write_rows(file, ({"id": one.id, "turns": [turn.text for turn in one.turns]} for one in people()))
    done = dialeval("models", "percentiles", folder, file)
    n_turns = sum(len(one.turns) - 1 for one in people())
    assert done.stdout == f"{folder}: percentiles of `general` among {n_turns} turns of people\n", done.stderr
    assert dialeval("models", "percentiles", folder, file, "--option", "level=dialogue").exit_code == 0
    assert [(table.level, table.sources) for table in read_tables(folder)] == [
        (level, {"people.jsonl": file_hash(file)}) for level in ("dialogue", "turn")
    ]
    assert "percentile" in general(folder).score(responses()).columns
    packaged = PRETRAINED / "general"
    with refused(f"{packaged}: is a bundled model, which has its tables. Give the folder of your model."):
        dialeval("models", "percentiles", packaged, file)
