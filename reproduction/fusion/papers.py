"""The rows of SLIDE's Table 2, DRE's Table 4 and Huynh et al.'s Table 6 that ask large models, as far as stored verdicts go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from reproduction.documents import published
from reproduction.fusion.judged import STRONG, Judged
from reproduction.results.write import FIGURES, SLIDE_SETS

KIN = (*STRONG, "ChatGPT", "claude-3-haiku-20240307")
"""Judges of the families that SLIDE and DRE ask."""
PAPER_LLMS = ("GPT-3.5", "Claude3", "Gemini", "GPT-4")
ALONE, SLIDE, EX_DRE = "LLM alone", "SLIDE", "Ex-DRE"
_LABELS = ("corpus", "judge", "asked", "set", "items")


def slide_twin(found: Sequence[Judged]) -> Table:
    """Large models alone, fused by equation 9 and refined by DRE's exterior coefficient, next to the papers' rows."""
    rows: list[TableRow] = []
    for place, (corpus, codes) in enumerate(SLIDE_SETS.items()):
        rows += [{**dict.fromkeys(_LABELS, ""), "corpus": corpus, **row} for row in _paper_rows(place)]
        sets = [dstc10.SETS[code].name for code in codes]
        rows += [{"corpus": corpus, **_row(one)} for one in found if one.column.set in sets and _is_kin(one)]
    names = [f"{what}, {figure}" for what in (ALONE, SLIDE, EX_DRE) for figure in FIGURES.values()]
    labels = [named_column(name, 0, is_number=name == "items") for name in _LABELS]
    return Table([{**dict.fromkeys(names), **row} for row in rows], [*labels, *map(named_column, names)])


def huynh_twin(found: Sequence[Judged]) -> Table:
    """Each judge on Huynh et al.'s sets, alone and with `general` mixed in, with the number of items."""
    codes = published("huynh")["dstc10_sets"]
    sets = {dstc10.SETS[code].name: code.upper() for code in codes}
    by_judge: dict[tuple[str, str], dict[str, Judged]] = {}
    for one in found:
        if one.column.set in sets:
            by_judge.setdefault((one.judge, one.column.quality), {})[sets[one.column.set]] = one
    rows: list[TableRow] = []
    for (judge, asked), own in by_judge.items():
        label = {"judge": judge, "asked": asked}
        rows.append({**label, **{code: f"{one.estimate(one.llm)} ({len(one.ratings)})" for code, one in own.items()}})
        rows.append({"judge": judge, "asked": "with `general`", **{code: one.marked(one.fused) for code, one in own.items()}})
    shown = [code for code in sets.values() if any(code in own for own in by_judge.values())]
    labels = [named_column(name, is_number=False) for name in ("judge", "asked")]
    return Table([{**dict.fromkeys(shown), **row} for row in rows], [*labels, *map(named_column, shown)])


def _is_kin(one: Judged) -> bool:
    return one.judge.split("/")[0] in KIN and not one.is_twice_shown


def _paper_rows(place: int) -> Iterator[TableRow]:
    """The papers' own figures on the corpus at a place of their columns."""
    slide, dre = published("results")["table_2"], published("fusion")["table_4"]
    columns = slice(2 * place, 2 * place + 2)
    for llm in PAPER_LLMS:
        for paper, rows, named in (
            ("SLIDE", slide, {ALONE: f"Ours (LLMs-only ({llm}))", SLIDE: f"SLIDE ({llm})"}),
            ("DRE", dre, {ALONE: f"Non-DRE({llm})", EX_DRE: f"Ex-DRE({llm})"}),
        ):
            if found := {what: rows[label][columns] for what, label in named.items() if label in rows}:
                figures = {
                    f"{what}, {figure}": f"{value:.3f}"
                    for what, values in found.items()
                    for figure, value in zip(FIGURES.values(), values, strict=True)
                }
                yield {"judge": f"{paper}'s {llm}", **figures}


def _row(one: Judged) -> TableRow:
    fused = one.own_fusions()
    marked = {SLIDE: fused["SLIDE, first_match"], EX_DRE: fused["ex_dre"]}
    return {
        "judge": one.judge,
        "asked": one.column.quality,
        "set": one.column.set,
        "items": len(one.ratings),
        **{f"{ALONE}, {title}": one.estimate(one.llm, name) for name, title in FIGURES.items()},
        **{f"{what}, {title}": one.marked(scores, name) for what, scores in marked.items() for name, title in FIGURES.items()},
    }
