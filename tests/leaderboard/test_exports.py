"""The formats of others: what they ask for is there, and what has no value is left out. FAULTS D4, D19."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

from dialeval_plugin.leaderboard.board import Cell, Column, Figure, Leaderboard
from dialeval_plugin.leaderboard.exports import FORMATS, ExportOptions, export, slug
from tests.refusals import refused

OPTIONS = ExportOptions(
    dataset_id="me/ratings", source_url="https://example.org/board", created=datetime(2026, 5, 2, tzinfo=timezone.utc)
)
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
    assert record["schema_version"] == "0.2.2"
    required = {"schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library"}
    assert set(record) == required | {"evaluation_results", "evaluation_timestamp"}
    assert record["retrieved_timestamp"] == "1777680000.0"
    assert {"source_type", "source_organization_name", "evaluator_relationship"} <= set(record["source_metadata"])
    assert {"name", "version"} <= set(record["eval_library"])
    assert {"name", "id"} <= set(record["model_info"])
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
    assert first["score_details"]["uncertainty"]["confidence_interval"]["lower"] == -0.1
    assert "confidence_interval" not in second["score_details"]["uncertainty"]


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
    assert len(written[0].relative_to(output).parts) <= 3


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
