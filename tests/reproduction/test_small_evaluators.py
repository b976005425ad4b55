"""The tables of small evaluators beside published ones and beside large models' verdicts."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Dialogue
from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.verdicts import read_collection
from dialeval_plugin.models.folders import write_manifest
from dialeval_plugin.reports.tables import Table
from dialeval_plugin.statistics.estimates import ValueInterval
from reproduction.fusion.judged import judged
from reproduction.fusion.sets import reported_set
from reproduction.general import comparison
from reproduction.general.comparison import (
    NINE,
    OPEN_CHAT_MODELS,
    SEVEN,
    SMALL,
    SmallEvaluator,
    agreements,
    aim,
    compared,
    counts,
    judge_table,
    small_table,
    spread,
    trained_again,
)
from reproduction.general.write import EvaluationSet, dstc10_set
from reproduction.pretrained.figures import read_figures
from tests.made_up_verdicts import N, made_up_verdicts


def dialogues() -> list[Dialogue]:
    return [
        Dialogue(str(number), (*example.context, example.response), ratings={"overall": (float(number % 4),)})
        for number, example in enumerate(mini.read_examples("validation"))
    ]


def test_other_trainings_are_named_by_their_seed_and_their_spread_is_said(tiny_general: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_general, tmp_path / "again")
    settings = read_json(folder / "general.json")
    write_text(folder / "general.json", to_json({**settings, "training": {"options": {"seed": 14}}}))
    write_manifest(folder)
    again = trained_again(folder)
    assert (again.name, again.options) == ("general, seed 14", {"model": str(folder)})

    def of(value: float) -> dict[str, ValueInterval]:
        return {code: ValueInterval(value, value - 0.1, value + 0.1) for code in SEVEN}

    assert spread({"general": of(0.4), again.name: of(0.3)}, [again]) == (
        "Trained by one command with 2 seeds, `general` has means of seven of 0.400, 0.300, the bundled one first: 0.350 "
        "on average, standard deviation 0.071."
    )
    assert spread({"general": of(0.4)}, []) == ""
    assert spread({"general": of(0.4), again.name: {}}, [again]) == ""


@pytest.fixture(scope="module")
def table(tiny_general: Path, tiny_slm: Path, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Figures of two small models on nine sets, all of one size but FD."""
    sets = [EvaluationSet(code, mini.QUALITY, mini.read_examples("test")) for code in NINE if code != "fd"]
    evaluators = [
        SmallEvaluator("general", "general", {"model": str(tiny_general)}),
        SmallEvaluator("cosine", "general", {"model": str(tiny_general)}, column="cosine"),
        SmallEvaluator("slide", "slide", {"slm": str(tiny_slm), "variant": "slm"}, levels=("turn",)),
    ]
    work = tmp_path_factory.mktemp("scores")
    return small_table(agreements([*sets, EvaluationSet("fd", "overall", dialogues())], evaluators, work))


@pytest.mark.long
def test_evaluators_here_stand_with_intervals_above_published_ones_without(table: Table) -> None:
    rows = {str(row["evaluator"]): row for row in table.rows}
    assert list(rows)[:5] == ["general", "cosine", "slide", "response length", "random"]
    titles = [column.title for column in table.columns]
    assert titles[:6] == ["evaluator", "mean of seven", "mean of nine", "mean of five with references", "TU", "PU"]
    shown = [float(str(rows["general"][code.upper()]).split()[0]) for code in NINE]
    for title, n in (("mean of seven", 7), ("mean of nine", 9)):
        value, low, high = map(float, re.findall(r"-?\d\.\d+", str(rows["general"][title])))
        assert low < value < high
        assert value == pytest.approx(sum(shown[:n]) / n, abs=1e-3)
    # What does not judge dialogues has no figure on FD, and so no mean.
    assert (rows["slide"]["FD"], rows["slide"]["mean of seven"], rows["slide"]["mean of nine"]) == ("", "", "")
    assert "[" in str(rows["slide"]["TU"])
    assert not any("[" in str(cell) for name in list(rows)[5:] for cell in rows[name].values())


def test_a_response_that_is_its_own_reference_can_be_left_out(tiny_general: Path, tmp_path: Path) -> None:
    items = mini.read_examples("test")
    own = [replace(item, references=(f" {item.response.text} ", "No.")) for item in items[:3]]
    entry = EvaluationSet("tu", mini.QUALITY, [*own, *(replace(item, references=("No.",)) for item in items[3:])])
    options = {"model": str(tiny_general), "with_references": True}
    everybody, others, elsewhere = (
        SmallEvaluator("general", "general", options, **more).scores(entry, tmp_path)
        for more in ({}, {"leaves_own_out": True}, {"sets": ("pu",)})
    )
    assert None not in everybody
    assert others == [None] * 3 + list(everybody[3:])
    assert elsewhere == [None] * len(items)


@pytest.mark.long
def test_a_published_row_has_a_mean_only_of_all_seven_and_its_other_rows_are_marked(table: Table) -> None:
    rows = {str(row["evaluator"]): row for row in table.rows}
    deb = rows["DEB (Huynh et al., Table 14)"]
    # reproduction/general/results.md has the same mean of it.
    assert (deb["mean of seven"], deb["mean of nine"], deb["PU"], deb["PZ"]) == ("0.303", "", "0.351", "")
    other = rows["USL-H (DialEvalMetrics, README of 2021-11)"]
    assert (other["TU"], other["PU"], other["DZ"], other["EG"], other["mean of seven"]) == ("0.340†", "0.523†", "", "0.235", "")
    fitted = next(row for name, row in rows.items() if name.startswith("MME-CRS, weights fitted on people's ratings"))
    assert (fitted["mean of seven"], fitted["mean of nine"]) == ("0.427", "0.465")
    (note,) = table.notes
    assert "USL-H, USR, GRADE, DEB, DynaEval: TU with 300 rows, without the real responses; " in note
    assert "| USL-H (DialEvalMetrics, README of 2021-11) |  |  |  | 0.340† |" in table.render("markdown")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.6, "the aim is reached, and is outside the confidence interval."),
        (0.5, "the aim is reached, and is inside the confidence interval."),
        (0.4, "the aim is not reached, and is inside the confidence interval."),
        (0.3, "the aim is not reached, and is outside the confidence interval."),
    ],
)
def test_the_aim_is_the_mean_of_the_best_baselines(value: float, said: str) -> None:
    # Of seven intervals of this width the mean has one of 0.2.
    half = 0.1 * 7**0.5
    text = aim(dict.fromkeys(SEVEN, ValueInterval(value, value - half, value + half)))
    assert text.startswith("The aim was a mean of seven of 0.448, that of the best of Huynh et al.'s baselines for each set. ")
    assert text.endswith(f"`general` has {value:.3f} [{value - 0.1:.3f}, {value + 0.1:.3f}]: {said}")


def test_each_judge_has_its_difference_to_general_and_outcomes_are_counted() -> None:
    found = [
        made_up_verdicts("GPT-4/g-eval_persona-chat", "persona-usr"),
        made_up_verdicts("GPT-4/g-eval", "topical-usr"),
        made_up_verdicts("GPT-4/comp-analysis", "convai2", level="dialogue"),
        made_up_verdicts("Qwen-14B/AutomaticDialogueEvaluation", "topical-usr"),
        made_up_verdicts("GPT-4/comp-analysis", "fed-dial", level="dialogue"),
    ]
    worse = made_up_verdicts("Llama2-13B/AutomaticDialogueEvaluation", "topical-usr")
    same = made_up_verdicts("ChatGPT/A-Closer-Look-To-LLM-Evaluation/geval", "topical-usr", quality="coherence")
    found += [replace(worse, general=worse.llm, llm=worse.general), replace(same, general=2 * same.llm)]
    pairs = compared(found)
    rows = judge_table(pairs).rows
    assert [(row["judge"], row["asked"], row["set"], row["items"]) for row in rows] == [
        ("ChatGPT/A-Closer-Look-To-LLM-Evaluation/geval", "coherence", "TU", N),
        ("Llama2-13B/AutomaticDialogueEvaluation", "overall", "TU", N),
        ("Qwen-14B/AutomaticDialogueEvaluation", "overall", "TU", N),
        ("GPT-4/g-eval_persona-chat", "overall", "PU", N),
        ("GPT-4/comp-analysis", "overall", "FD", N),
    ]
    of_qwen = rows[2]
    assert (of_qwen["judge alone"], of_qwen["general"]) == (
        found[3].estimate(found[3].llm),
        found[3].estimate(found[3].general),
    )
    difference = found[3].agreement(found[3].general) - found[3].agreement(found[3].llm)
    assert str(of_qwen["general less judge"]).startswith(f"{difference:.3f} [")
    assert [one.outcome for one in pairs] == ["undecided in", "lower in", "higher in", "higher in", "higher in"]
    assert counts(pairs).splitlines() == [
        "- GPT-4-class judges, asked for overall quality, 2 pairs of judge and data set: "
        "`general` is higher in 2, lower in 0, undecided in 0",
        "- open chat models of 6 to 14 billion parameters, asked for overall quality, 2 pairs of judge and data set: "
        "`general` is higher in 1, lower in 1, undecided in 0",
        "- ChatGPT and Claude 3 Haiku, asked for relevance or coherence, 1 pairs of judge and data set: "
        "`general` is higher in 0, lower in 0, undecided in 1",
    ]


def test_the_script_starts(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        comparison.main(["--help"])
    assert ended.value.code == 0
    assert "--document" in capsys.readouterr().out


@pytest.mark.real_data
def test_a_rated_set_has_the_figures_of_the_model_in_the_box(data_dir: Path, tmp_path: Path) -> None:
    assert (data_dir / "dstc10").is_dir()
    entry = dstc10_set("tu")
    found = agreements([entry], SMALL[:1], tmp_path)["general"]["tu"]
    (kept,) = [one for one in read_figures() if one.place == ("general", "general", "tu", entry.quality, "spearman")]
    assert found is not None
    assert (found.value, found.ci_low) == pytest.approx((kept.value, kept.ci_low), abs=1e-3)


@pytest.mark.real_data
def test_a_judge_has_the_coefficient_that_its_authors_printed(
    data_dir: Path, tiny_general: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The judge's figure is that of its verdicts, whatever small model scores the same dialogues.
    monkeypatch.setattr(
        "reproduction.fusion.judged.opened", lambda name, **options: load_scorer(name, model=str(tiny_general), **options)
    )
    (path,) = (data_dir / "llm_judgements" / "Vicuna13B" / "fed_data" / "dialogue_level").glob("*_metrics.json")
    name = ("Vicuna-13B-v1.5/AutomaticDialogueEvaluation", "fed-dial", "overall")
    (column,) = [one for one in read_collection() if (one.judge, one.set, one.quality) == name]
    (pair,) = compared([judged(column, reported_set("fed-dial"), tmp_path)])
    printed = read_json(path)["metrics"]["spearman_correlation"]
    assert pair.verdicts.agreement(pair.verdicts.llm) == pytest.approx(printed, abs=1e-9)
    assert pair.kind == OPEN_CHAT_MODELS
