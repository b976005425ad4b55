"""The formats of others: what they ask for is there, and what has no value is left out. FAULTS D4, D19."""

from __future__ import annotations

import csv
import io
import json
import sys
import uuid
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

from dialeval_plugin import examples_from
from dialeval_plugin.hosts.lm_eval.tasks.corpus_metrics import BOOTSTRAP
from dialeval_plugin.leaderboard.board import Cell, Column, Figure, Identity, Leaderboard
from dialeval_plugin.leaderboard.exports import FORMATS, ExportOptions, export, slug
from tests import forked
from tests.cli.running import environment
from tests.refusals import refused

OPTIONS = ExportOptions(
    dataset_id="me/ratings", source_url="https://example.org/board", created=datetime(2026, 5, 2, tzinfo=timezone.utc)
)
EVERY_EVAL_EVER = Path(__file__).parents[2] / "build" / "every_eval_ever"
"""The package of that name, which the Makefile fetches: it asks for Python 3.12, and its validator runs on older ones."""
GUPTA = Column("dailydialog-gupta", "turn", "overall")


def board() -> Leaderboard:
    figures = {
        "spearman": Figure(value=0.0, ci_low=-0.1, ci_high=0.1),
        "pearson": Figure(value=None, reason="undefined (all scores are 1)"),
        "jsd_nb_pb_b": Figure(value=0.4, higher_is_better=False),
    }
    told = {"signature": "method:x|seed:0", "date": "2026-05-01T12:00:00+00:00"}
    return Leaderboard((Cell(evaluator='judge "x": y', column=GUPTA, figures=figures, n_scored=9, n_total=10, **told),))


def hostile(name: str, evaluator: str | None = None) -> Leaderboard:
    """A board with one name in all places that a result file fills."""
    (cell,) = board().cells
    figures = {name: Figure(value=0.5)}
    return Leaderboard((replace(cell, evaluator=evaluator or name, figures=figures, column=Column(name, "turn", name)),))


def test_eval_results_are_what_the_hub_reads(tmp_path: Path) -> None:
    exported = export(board(), "eval-results", tmp_path, OPTIONS)
    names = [(".eval_results", f"dialeval_{name}.yaml") for name in ("spearman", "jsd_nb_pb_b")]
    assert [path.relative_to(tmp_path).parts[1:] for path in exported.paths] == names
    assert exported.n_left_out == 1
    (entry,) = parse_eval_result_entries(yaml.safe_load(exported.paths[0].read_text(encoding="utf-8")))
    # 0 is a value.
    assert (entry.dataset_id, entry.task_id, entry.value) == ("me/ratings", "dailydialog_gupta_turn_overall", 0.0)
    assert (entry.date, entry.source_url) == ("2026-05-01T12:00:00+00:00", "https://example.org/board")
    name = "Spearman's rho [-0.100, 0.100], overall, turn level"
    assert entry.notes == f"{name}, 9 of 10 rows scored; signature method:x|seed:0"


def test_the_model_card_loads_with_its_results(tmp_path: Path) -> None:
    (path,) = export(board(), "model-index", tmp_path, OPTIONS).paths
    card = ModelCard.load(path)
    assert card.data.model_name == 'judge "x": y'
    assert card.data.eval_results is not None
    found = {(result.metric_type, result.metric_value) for result in card.data.eval_results}
    assert found == {("spearmanr", 0.0), ("jsd_nb_pb_b", 0.4)}
    assert '| judge "x": y | 0.000 [-0.100, 0.100] | 0.000 [-0.100, 0.100] (9 of 10 scored) |' in card.text


def test_a_record_of_every_eval_ever_has_what_its_schema_requires(tmp_path: Path) -> None:
    (path,) = export(board(), "every-eval-ever", tmp_path, OPTIONS).paths
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["schema_version"] == "0.3.0"
    id = "dialeval/judge-x-y-712f8b"
    assert path.parent == tmp_path / "data" / "dialeval" / id
    assert uuid.UUID(path.stem).version == 4
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    assert record["model_info"] == {"name": 'judge "x": y', "id": id, "additional_details": unknown}
    assert record["evaluation_id"] == f"dialeval/{id}/1777680000.0"
    required = {"schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library"}
    assert set(record) == required | {"evaluation_results", "evaluation_timestamp"}
    assert record["retrieved_timestamp"] == "1777680000.0"
    assert {"source_type", "source_organization_name", "evaluator_relationship"} <= set(record["source_metadata"])
    assert {"name", "version"} <= set(record["eval_library"])
    first, second = record["evaluation_results"]
    for result in (first, second):
        assert {"evaluation_name", "source_data", "metric_config", "score_details"} <= set(result)
        assert {"dataset_name", "source_type"} == set(result["source_data"])
        assert all(isinstance(value, str) for value in result["score_details"]["details"].values())
        # Continuous scores need both ends.
        assert result["metric_config"]["score_type"] == "continuous"
    assert (first["metric_config"]["min_score"], first["metric_config"]["max_score"]) == (-1.0, 1.0)
    assert (second["metric_config"]["min_score"], second["metric_config"]["lower_is_better"]) == (0.0, True)
    assert first["score_details"]["score"] == 0.0
    interval = first["score_details"]["uncertainty"]["confidence_interval"]
    assert (interval["lower"], interval["method"]) == (-0.1, f"{BOOTSTRAP.interval} percentile bootstrap over dialogues")
    assert "confidence_interval" not in second["score_details"]["uncertainty"]


@pytest.mark.parametrize(
    ("identity", "deployment", "availability"),
    [
        (Identity(method="trained", model_card="general"), "self_deployed", "open_weights"),
        (Identity(method="rule"), "self_deployed", "unknown"),
        (Identity(method="prompted", model_url="https://huggingface.co/me/judge"), "self_deployed", "unknown"),
        (Identity(method="prompted"), "unknown", "unknown"),
    ],
)
def test_a_record_of_every_eval_ever_says_of_the_model_what_is_known(
    identity: Identity, deployment: str, availability: str, tmp_path: Path
) -> None:
    known = replace(board(), identities={'judge "x": y': identity})
    (path,) = export(known, "every-eval-ever", tmp_path, OPTIONS).paths
    details = json.loads(path.read_text(encoding="utf-8"))["model_info"]["additional_details"]
    assert details == {"deployment_type": deployment, "model_availability": availability}


@pytest.mark.skipif(not EVERY_EVAL_EVER.is_dir(), reason="`make` fetches the package every-eval-ever to check with")
@pytest.mark.parametrize("name", ["", "general", "zz/../../../../ELSEWHERE", "..", "CON", "a\\b", "x" * 300, "a\nb"])
def test_the_validator_of_every_eval_ever_passes_its_records(name: str, tmp_path: Path) -> None:
    """Three errors a file: the path, and two details of the model that 0.3.0 asks for."""
    (path,) = export(hostile(name) if name else board(), "every-eval-ever", tmp_path, OPTIONS).paths
    command = [sys.executable, "-m", "every_eval_ever", "validate", "--format", "json", path.relative_to(tmp_path)]
    done = forked.run(command, cwd=tmp_path, env=environment(Path.home(), PYTHONPATH=str(EVERY_EVAL_EVER)))
    (report,) = json.loads(done.stdout)
    assert (report["valid"], report["errors"], report["warnings"]) == (True, [], []), done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("version", ["0.2.2", "0.3.0"])
def test_samples_of_every_eval_ever_are_read_as_conversations(version: str) -> None:
    said = [("user", "Any plans?"), ("assistant", "The river."), ("user", "Good."), ("assistant", "Yes.")]
    messages = [{"turn_idx": place, "role": role, "content": text} for place, (role, text) in enumerate(said)]
    sample = {
        **{"schema_version": version, "evaluation_id": "me/chat/1", "model_id": "me/chat", "evaluation_name": "chat"},
        **{"sample_id": "1", "interaction_type": "multi_turn", "input": {"raw": "Any plans?", "reference": []}, "output": None},
        **{"messages": messages, "answer_attribution": [], "evaluation": {"score": 1.0, "is_correct": True, "num_turns": 4}},
    }
    found = [([turn.text for turn in one.context], one.response.text) for one in examples_from([sample])]
    assert found == [(["Any plans?"], "The river."), (["Any plans?", "The river.", "Good."], "Yes.")]


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_leaderboard_gives_the_same_bytes(format: str, tmp_path: Path) -> None:
    texts = [[path.read_bytes() for path in export(board(), format, tmp_path / name, OPTIONS).paths] for name in ("one", "two")]
    assert texts[0] == texts[1]


def test_another_format_and_one_that_lacks_a_name_are_refused(tmp_path: Path) -> None:
    with refused("--dataset-id None: the format names the Hub's data set of the human ratings. Give OWNER/NAME."):
        export(board(), "eval-results", tmp_path, ExportOptions(created=OPTIONS.created))
    with refused("--format 'xml': there is no such format. Known are: eval-results, model-index, every-eval-ever."):
        export(board(), "xml", tmp_path, OPTIONS)


def test_evaluators_whose_names_differ_in_signs_only_get_folders_of_their_own() -> None:
    assert slug("a/b") != slug("a b")
    assert "/" not in slug("../../etc")
    assert not slug("../../etc").startswith(".")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["zz/../../../../ELSEWHERE", "/etc/x", "..", "a\\b", "x" * 300, "a\nb", ""])
def test_d4_no_name_of_a_result_file_reaches_a_path(format: str, name: str, tmp_path: Path) -> None:
    output = tmp_path / "one" / "two" / "three" / "four" / "out"
    exported = export(hostile(name, name or "e"), format, output, OPTIONS)
    assert len(exported.paths) == 1
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written == [path.resolve() for path in exported.paths]
    assert written[0].is_relative_to(output)
    assert len(written[0].relative_to(output).parts) <= 5


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "https://a b", "https://a](javascript:b)", "x"])
@pytest.mark.parametrize("format", FORMATS)
def test_d4_an_address_that_is_none_of_the_web_is_refused(url: str, format: str, tmp_path: Path) -> None:
    with refused(f"--source-url {url!r}: is no address of a page. Give one that begins with https://."):
        export(board(), format, tmp_path, replace(OPTIONS, source_url=url))
    assert list(tmp_path.iterdir()) == []


def test_d4_a_name_is_no_link_image_or_heading_in_the_tables_of_card_and_board(tmp_path: Path) -> None:
    name = "![i](http://evil/p.png)\n# [x](javascript:y)"
    (path,) = export(hostile(name), "model-index", tmp_path, OPTIONS).paths
    for text in (ModelCard.load(path).text, hostile(name).to_markdown(name)):
        assert "](" not in text
        assert "http://" not in text
        assert not any(line.startswith("# ") for line in text.split("\n"))


def test_d19_no_cell_of_the_boards_csv_file_is_a_formula() -> None:
    (cell,) = board().cells
    formulas = replace(cell, evaluator="=HYPERLINK(1)", column=Column("@SUM(1)", "turn", "+1"), source="-2+3")
    (row, _, _) = csv.DictReader(io.StringIO(Leaderboard((formulas,)).to_csv(), newline=""))
    assert (row["evaluator"], row["dataset"], row["quality"], row["source"]) == ("'=HYPERLINK(1)", "'@SUM(1)", "'+1", "'-2+3")
    assert (row["value"], row["ci_low"]) == ("0.0", "-0.1")


def test_a_second_export_replaces_the_records_of_the_first(tmp_path: Path) -> None:
    (first,) = export(board(), "every-eval-ever", tmp_path, OPTIONS).paths
    later = replace(OPTIONS, created=datetime(2026, 5, 3, tzinfo=timezone.utc))
    assert export(board(), "every-eval-ever", tmp_path, later).paths == [first]
    assert json.loads(first.read_text(encoding="utf-8"))["retrieved_timestamp"] == "1777766400.0"
    (cell,) = board().cells
    assert export(Leaderboard((replace(cell, n_scored=8),)), "every-eval-ever", tmp_path, later).paths != [first]
