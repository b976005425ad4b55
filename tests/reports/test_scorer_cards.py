"""Cards of `dialeval scorers`: a kept list says what the classes say, and a broken scorer hurts itself only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core import registry, resources
from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.core.registry import checked_init, load_scorer, option_kinds, register_scorer, scorer_factory, scorer_names
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Row
from dialeval_plugin.methods.baselines.controls import RandomScore
from dialeval_plugin.methods.baselines.references import ReferenceScorer
from dialeval_plugin.reports import scorer_cards as cards
from dialeval_plugin.reports.scorer_cards import OptionCard, ScorerCard, option_cards, scorer_card

NAMES = scorer_names()


class Polite(Scorer):
    """Counts thanks.

    More of it.
    """

    name = "polite"
    columns = ("polite",)
    range = (0.0, float("inf"))
    needs = ("references", "facts")

    @checked_init
    def __init__(self, word: str, *, times: int = 2, anything: object = (1, 2)) -> None:
        """Take words.

        Args:
            word: what counts,
                in any case.
        """

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        return [{"polite": 0.0} for _ in items]

    def signature_fields(self) -> dict[str, Any]:
        return {"method": self.name}


def kept() -> dict[str, Any]:
    """Return the contents of `scorers.json`; `python -m tests.reports.test_scorer_cards` writes it."""
    found: dict[str, Any] = json.loads(to_json({name: cards.of_class(scorer_factory(name)) for name in NAMES}))
    return found


def test_a_list_says_what_the_classes_say_and_imports_none() -> None:
    script = (
        "import sys; from dialeval_plugin.reports.scorer_cards import scorer_cards\n"
        "print(len(scorer_cards())); print({'torch', 'sacrebleu', 'nltk'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(len(NAMES)), "set()"]
    assert read_json(cards.KEPT) == kept()


@pytest.mark.parametrize("name", NAMES)
def test_every_scorer_of_ours_says_what_it_is_and_what_each_option_is(name: str) -> None:
    card = scorer_card(name)
    assert (card.declared_by, card.problem) == ("dialeval-plugin", None)
    assert card.summary.endswith(".")
    options = option_cards(scorer_factory(name))
    assert options is not None
    assert [option.name for option in options] == list(option_kinds(scorer_factory(name)) or ())
    assert [option for option in options if not (option.description and option.type) and option.name != "clamp"] == []
    assert [option.name for option in options if option.is_required] == []
    # A name of the code says nothing to a reader of the printed card.
    assert [option.name for option in options if "see `" in option.description] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_a_scorer_needs_is_so(name: str) -> None:
    factory, needs = scorer_factory(name), scorer_card(name).needs
    assert isinstance(factory, type)
    assert ("references" in needs) == issubclass(factory, ReferenceScorer)
    if set(needs) <= {"references"}:
        assert load_scorer(name).name == name
    assert "llm" not in needs or "llm" in (option_kinds(factory) or ())


def test_a_card_of_a_scorer_that_was_registered_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_factories", {})
    register_scorer("polite")(Polite)
    card = scorer_card("polite")
    assert card == ScorerCard("polite", "Counts thanks.", ("references", "facts"), range=(0.0, None))
    assert card.lines() == ["Counts thanks.", "turn level; from 0, higher is better; needs references and facts"]
    assert option_cards(Polite) == [
        OptionCard("word", "str", None, True, (), {}, "what counts, in any case."),
        OptionCard("times", "int", 2, False, (), {}, ""),
        OptionCard("anything", "", "1,2", False, (), {}, ""),
    ]
    assert option_cards(Polite)[0].lines() == ["    word: str; required", "        what counts, in any case."]  # type: ignore[index]
    register_scorer("by_function")(lambda **options: Polite("thanks"))
    assert scorer_card("by_function").lines() == ["turn level; 0 to 1, higher is better; needs nothing else"]
    assert option_cards(scorer_factory("by_function")) is None


def test_a_packaged_model_is_named_where_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "pretrained_path", lambda: tmp_path)
    assert scorer_card("dre").packaged_model is None
    assert scorer_card("dre").lines()[-1].endswith("; needs llm and trained model")
    (tmp_path / "slide").mkdir()
    (tmp_path / "slide" / "provenance.json").touch()
    assert scorer_card("dre").packaged_model == "slide"
    assert scorer_card("dre").lines()[-1].endswith("; needs llm; packaged model slide")
    assert resources.pretrained_path() == Path(resources.__file__).parents[1] / "pretrained"


def test_a_scorer_of_others_is_imported_and_one_that_cannot_be_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"theirs": "no_such_module:Theirs", "well": "dialeval_plugin.methods.baselines.controls:RandomScore"}
    found = [metadata.EntryPoint(name, value, registry.ENTRY_POINT_GROUP) for name, value in points.items()]
    entry_points: Callable[..., list[metadata.EntryPoint]] = lambda group: found  # noqa: E731
    monkeypatch.setattr(registry, "_declared", registry._declared.__wrapped__)
    monkeypatch.setattr(metadata, "entry_points", entry_points)
    theirs, well = cards.scorer_cards()
    problem = (
        "scorer 'theirs' (no_such_module:Theirs) cannot be imported: No module named 'no_such_module'. "
        "Repair or uninstall the package that declares it."
    )
    assert theirs == ScorerCard("theirs", "", problem=problem)
    assert theirs.lines() == [problem]
    assert (well.summary, well.problem) == (cards.of_class(RandomScore)["summary"], None)


if __name__ == "__main__":
    write_text(cards.KEPT, to_json(kept(), indent=2) + "\n")
