"""The tables beside CausalScore's, and the script that makes them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from dialeval_plugin.corpora.readers import cgdialog
from dialeval_plugin.corpora.readers.cgdialog import CRITERIA, OPTIONS, PreferenceDialogue
from dialeval_plugin.hosts.lm_eval.tasks.preference import JudgedResponse, agreements, compared_with
from dialeval_plugin.methods.causalscore.model import CausalModelConfig
from dialeval_plugin.statistics import preferences as agreement
from dialeval_plugin.statistics.bootstrap import Bootstrap
from reproduction import kept_results
from reproduction.causalscore import tables, write
from reproduction.causalscore.tables import PaperRow, ScoresById
from reproduction.documents import published
from tests.small_corpora import write_preferences
from tests.tiny.likelihood import write_likelihood_model
from tests.tiny.models import write_tiny_causal_model

SYSTEMS = ("human", "alpaca_lora", "Blenderbot_ft")
BEGIN, END = "<!-- causalscore tables -->\n", "<!-- end of causalscore tables -->\n"
PAPER = published("causalscore")


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = {name: partial(statistic, bootstrap=Bootstrap(rounds=20)) for name, statistic in tables.STATISTICS.items()}
    monkeypatch.setattr(tables, "STATISTICS", quick)
    monkeypatch.setattr(agreement, "N_FLIPS", 4)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path / "data"))
    return write_preferences(tmp_path / "data", "dream", "msc", systems=SYSTEMS)


def scores_of(dialogues: list[PreferenceDialogue], score: Callable[[str], float]) -> ScoresById:
    return {example.id: score(example.response.text) for dialogue in dialogues for example in dialogue.examples()}


def cells(table: str, label: str) -> list[str]:
    (line,) = (line for line in table.splitlines() if line.startswith(f"| {label} |"))
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_the_papers_tables_are_whole_and_agree_where_the_paper_repeats_itself() -> None:
    assert PAPER["statistics"] == list(tables.TITLES)
    values = []
    for part, n_rows in (("ablation", 6), ("metrics", 12)):
        assert list(PAPER[part]) == list(CRITERIA)
        for rows in PAPER[part].values():
            assert len(rows) == n_rows
            values += [value for corpora in rows.values() for name in tables.NAMES for value in corpora[name]]
    for corpora in PAPER["out_of_domain"].values():
        values += [value for name in tables.NAMES for value in corpora[name]]
    assert len(values) == 12 * (5 * 6 + 5 * 12 + 10)
    assert all(re.fullmatch(r"-?0\.\d{3}\*?", value) for value in values)

    def bare(corpora: dict[str, list[str]]) -> list[str]:
        return [value.rstrip("*") for name in tables.NAMES for value in corpora[name]]

    for criterion in CRITERIA:
        assert bare(PAPER["ablation"][criterion]["CausalScore"]) == bare(PAPER["metrics"][criterion]["CausalScore"])
    for name in ("PPL", "GRADE", "DEAM", "DEnsity", "ChatGPT", "GPT4", "CausalScore"):
        assert PAPER["out_of_domain"][name] == PAPER["metrics"]["relevance"][name]
    # What the abstract of the reproduction asks for.
    found = PAPER["metrics"]
    assert [found["relevance"]["CausalScore"][name][1] for name in ("dream", "msc")] == ["0.334*", "0.308*"]
    assert [found["overall"]["CausalScore"][name][1] for name in ("dream", "msc")] == ["0.422*", "0.401*"]


def test_the_figures_are_those_of_the_lm_eval_task(data: Path) -> None:
    dialogues = cgdialog.read_preferences("dream")
    scores = scores_of(dialogues, len)
    found = tables.figures_of(dialogues, scores, CRITERIA)
    judged = []
    for dialogue in dialogues:
        for system in dialogue.responses:
            compared = tuple((other, tuple(map(tuple, votes))) for other, votes in compared_with(dialogue, system))
            judged.append(JudgedResponse(dialogue.id, system, scores[f"{dialogue.id}/{system}"], compared))
    hosted = agreements(judged)
    assert set(found) == set(hosted)
    for key, value in found.items():
        assert value.value == pytest.approx(hosted[key].value, abs=1e-12)
        assert (value.n_scored, value.n_total) == (36, 36)
    alone = tables.figures_of(dialogues, scores, ["overall"], with_human=False)
    assert {name for name, _ in alone} == {"overall"}
    assert alone["overall", "cont2cat"].n_total == 12


def test_a_table_sets_ours_beside_the_papers_with_floor_and_ceiling(data: Path) -> None:
    dialogues = cgdialog.read_preferences("msc")
    scores = scores_of(dialogues, len)
    of_metrics = {"length": {**scores, "0/human": None}, "letters": scores}
    figures = {name: tables.figures_of(dialogues, found, ["overall"]) for name, found in of_metrics.items()}
    rows = (PaperRow("length", "BLEU"), PaperRow("letters"), PaperRow("SLM"), PaperRow(None, "GRADE"))
    table = tables.metrics_table(figures, rows, "msc", "overall", "metrics")
    head, _, *lines = table.splitlines()
    assert head == (
        "| MSC, overall | Voting, Pearson | paper | Voting, Spearman | paper | IgnoreEqual | paper | Cont2Cat | paper "
        "| scored |"
    )
    names = ["length", "letters", "GRADE (not run here)", "coin flip", "human majority"]
    assert [line.split(" |")[0] for line in lines] == [f"| {name}" for name in names]
    assert [len(line.split(" | ")) for line in (head, *lines[:3])] == [10] * 4
    assert cells(table, "length")[1::2] == ["0.019", "-0.019", "0.007", "0.422"]
    assert cells(table, "length")[-1] == "34 of 36"
    value = figures["letters"]["overall", "voting_spearman"]
    assert cells(table, "letters")[2] == f"{value.value:.3f} [{value.ci_low:.3f}, {value.ci_high:.3f}, rough]"
    assert cells(table, "GRADE (not run here)") == ["", "0.088", "", "0.050", "", "0.105", "", "0.442", ""]
    assert cells(table, "coin flip")[6] == f"{figures['letters']['overall', 'cont2cat'].floor:.3f}"
    assert cells(table, "human majority")[6] == f"{figures['letters']['overall', 'cont2cat'].ceiling:.3f}"


def test_differences_are_tested_together_where_both_have_scores(data: Path) -> None:
    dialogues = cgdialog.read_preferences("dream")
    one, other = scores_of(dialogues, len), scores_of(dialogues, lambda text: sum(map(ord, text)) % 7)

    def difference_table(first: ScoresById, second: ScoresById) -> str:
        return tables.difference_table({"dream": dialogues}, {"dream": first}, {"dream": second}, ["relevance"])

    # Equal scores on what both score: no difference, and no interval where all resamples give the same.
    table = difference_table({**one, "1/human": None}, one)
    assert cells(table, "DREAM, relevance") == ["0.000"] * 4
    assert table.endswith("\n\n0 of 4 intervals exclude 0.")
    table = difference_table(one, other)
    differences, p_values = 0, []
    for cell in cells(table, "DREAM, relevance"):
        value, low, high = map(float, re.findall(r"-?[\d.]+", cell))
        differences += low > 0 or high < 0
        p_values.append(math.erfc(abs(value) * 1.96 / (high - low) * 2**0.5))
    lowest = min(1.0, 4 * min(p_values))
    found = re.search(r"(\d) of 4 intervals exclude 0 \(smallest p-value after Holm's correction: ([\d.]+)\)\.$", table)
    assert found is not None
    assert int(found[1]) == differences
    assert float(found[2]) == pytest.approx(lowest, abs=0.02)


def test_circular_triads_are_counted_with_their_interval(data: Path) -> None:
    dialogues = cgdialog.read_preferences("dream")
    table = tables.triads_table({"dream": dialogues}).splitlines()
    assert table[0] == "|  | decided triads | circular | share (coin flips: 0.250) |"
    assert [line.split(" | ")[0] for line in table[2:]] == [f"| DREAM, {criterion}" for criterion in CRITERIA]
    for line, criterion in zip(table[2:], CRITERIA, strict=True):
        found = [circular for dialogue in dialogues for circular in circles(dialogue, criterion)]
        assert line.split(" | ")[1:3] == [str(len(found)), str(sum(found))]


def circles(dialogue: PreferenceDialogue, criterion: str) -> list[bool]:
    """Whether nobody wins twice, if three systems have every two decided. The fixture has three systems, so one triad."""
    wins = dict.fromkeys(SYSTEMS, 0)
    for row in dialogue.comparisons:
        votes = row.votes[criterion]
        first, second = votes.count(OPTIONS[0]), votes.count(OPTIONS[1])
        if first == second:
            return []
        wins[row.first if first > second else row.second] += 1
    return [max(wins.values()) == 1]


def test_the_training_figures_stand_before_and_after_each_round() -> None:
    figures = {"auroc": 0.9, "f1": 0.8, "accuracy": 0.7}
    rounds = [
        {"round": 0, "n_rows": 8, "n_pseudo": 0, "validation": figures},
        {"round": 1, "n_rows": 12, "n_pseudo": 4, "validation": {**figures, "f1": 0.85}},
    ]
    unconditional = {"n_rows": 10, "validation": figures, "evaluation": {**figures, "auroc": 0.95}}
    record = {"unconditional": unconditional, "rounds": rounds, "best_round": 1}
    assert tables.training_table({"dream": record}).splitlines() == [
        "| corpus | classifier | rows | new pseudo-labels | validation AUROC | validation F1 | test AUROC | test F1 |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        "| DREAM | unconditional | 10 |  | 0.900 | 0.800 | 0.950 | 0.800 |",
        "| DREAM | conditional, round 0 | 8 | 0 | 0.900 | 0.800 |  |  |",
        "| DREAM | conditional, round 1, kept | 12 | 4 | 0.900 | 0.850 |  |  |",
    ]


@pytest.mark.long
def test_the_script_makes_all_tables_and_scores_nothing_twice(
    data: Path, tmp_path: Path, tiny_slm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = {
        name: write_tiny_causal_model(tmp_path / name, CausalModelConfig("paper", labels, max_tokens=128))
        for name, labels in (("dream", "annotated"), ("esconv", "annotated"), ("preceding", "preceding_2"))
    }
    output = tmp_path / "reproduction.md"
    output.write_text(f"# Title\n\n{BEGIN}old\n{END}\nAfter.\n", encoding="utf-8")
    arguments = [
        *("--work", str(tmp_path / "work"), "--document", str(output), "--slm", str(tiny_slm), "--conditions", "1"),
        *("--model", f"dream={models['dream']}", "--model", f"esconv={models['esconv']}"),
        *("--preceding-2", f"dream={models['preceding']}", "--without-self-training", f"dream={models['dream']}"),
        *("--language-model", str(write_likelihood_model(tmp_path / "lm", "gpt2"))),
    ]
    monkeypatch.setattr(write, "CRITERIA", ("relevance", "overall"))
    write.main(arguments)
    text = output.read_text(encoding="utf-8")
    assert text.startswith(f"# Title\n\n{BEGIN}\n### Ablation")
    assert text.endswith(f"\n{END}\nAfter.\n")
    found = {block.splitlines()[0].split(" |")[0]: block for block in text.split("\n\n") if block.startswith("|")}
    dream, msc = (text.split(f"| {name}, relevance |") for name in ("DREAM", "MSC"))
    # Ablation, metrics, out of domain, circular triads; and on DREAM, whose model is given, the fast mode.
    assert (len(dream), len(msc)) == (6, 5)
    metrics = f"| DREAM, relevance |{dream[2]}".split("\n\n")[0]
    assert cells(metrics, "BLEU-4")[-1] == "36 of 36"
    # The human's response is its own reference: no other has a higher score.
    for label in ("BLEU-1", "ROUGE-L", "BERTScore (MiniLM)", "perplexity", "SLM", "response length", "random", "CausalScore"):
        assert re.fullmatch(r"-?\d\.\d{3}( \[.+\])?", cells(metrics, label)[0]), label
    assert cells(metrics, "BLEURT (not run here)")[1] == "-0.022"
    ablation = f"| DREAM, relevance |{dream[1]}".split("\n\n")[0]
    assert cells(ablation, "Preced2")[1] == "0.150"
    assert cells(ablation, "-self-training")[0] == cells(ablation, "CausalScore")[0]
    # No model of MSC was given.
    assert cells(f"| MSC, relevance |{msc[1]}".split("\n\n")[0], "CausalScore (not run here)")[1] == "0.257*"
    other = f"| MSC, relevance |{msc[3]}".split("\n\n")[0]
    assert cells(other, "CausalScore-DREAM")[1] == "0.107"
    assert cells(other, "CausalScore-DREAM")[0] != ""
    assert "| difference" in found
    assert "| corpus" in found
    monkeypatch.setattr(kept_results, "run", None)
    monkeypatch.setattr(tables, "figures_of", None)
    write.main(arguments)
    assert output.read_text(encoding="utf-8") == text


def test_a_corpus_without_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        write.parse(["--work", "w", "--model", "dreams=folder"])
    assert "'dreams=folder': expected corpus=FOLDER with one of dream, esconv, msc" in capsys.readouterr().err
