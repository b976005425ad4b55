"""The tables that set stored verdicts beside the papers' rows for large models, on a few made-up verdicts."""

from __future__ import annotations

import pytest

from reproduction.fusion.judged import Judged
from reproduction.fusion.papers import huynh_twin, slide_twin
from tests.made_up_verdicts import N, made_up_verdicts


@pytest.fixture(scope="module")
def found() -> list[Judged]:
    return [
        made_up_verdicts("GPT-4/g-eval_persona-chat", "topical-usr"),
        made_up_verdicts("GPT-4/g-eval", "topical-usr"),
        made_up_verdicts("Qwen-14B/AutomaticDialogueEvaluation", "topical-usr"),
        made_up_verdicts("GPT-4/comp-analysis", "persona-zhao", quality="relevance"),
        made_up_verdicts("GPT-4/comp-analysis", "fed-dial", level="dialogue"),
    ]


def test_judges_of_the_papers_families_stand_beside_the_papers_figures(found: list[Judged]) -> None:
    rows = slide_twin(found).rows
    assert list(dict.fromkeys(row["corpus"] for row in rows)) == ["DailyDialog++", "PersonaChat", "TopicalChat"]
    of = {(row["corpus"], row["judge"]): row for row in rows}
    gpt4, claude = of["TopicalChat", "SLIDE's GPT-4"], of["PersonaChat", "DRE's Claude3"]
    assert (gpt4["LLM alone, Pearson"], gpt4["SLIDE, Spearman"], gpt4["Ex-DRE, Spearman"]) == ("0.745", "0.722", None)
    assert (claude["LLM alone, Pearson"], claude["SLIDE, Pearson"], claude["Ex-DRE, Spearman"]) == ("0.629", None, "0.728")
    ours = [row for row in rows if row["items"]]
    assert [(row["judge"], row["set"], row["asked"], row["items"]) for row in ours] == [
        ("GPT-4/comp-analysis", "persona-zhao", "relevance", N),
        ("GPT-4/g-eval_persona-chat", "topical-usr", "overall", N),
    ]
    assert all(str(row["SLIDE, Spearman"]).endswith(" ▼") for row in ours)
    assert ours[1]["LLM alone, Pearson"] == found[0].estimate(found[0].llm, "pearson")


def test_each_judge_has_a_row_alone_and_one_with_general(found: list[Judged]) -> None:
    table = huynh_twin(found)
    assert [column.title for column in table.columns] == ["judge", "asked", "TU", "FD"]
    judges = ("GPT-4/g-eval_persona-chat", "GPT-4/g-eval", "Qwen-14B/AutomaticDialogueEvaluation", "GPT-4/comp-analysis")
    assert [row["judge"] for row in table.rows] == [name for judge in judges for name in (judge, judge)]
    alone, fused = table.rows[:2]
    assert alone["TU"] == f"{found[0].estimate(found[0].llm)} ({N})"
    assert (alone["FD"], fused["asked"]) == (None, "with `general`")
    assert fused["TU"] == f"{found[0].estimate(found[0].fused)} ▲"
