"""Tables of scores (R65: no NaN leaves; unscored is never 0) and the registry of scorers."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core import registry as scorers
from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.files import to_json
from dialeval_plugin.core.registry import ENTRY_POINT_GROUP, load_scorer, register_scorer, scorer_factory, scorer_names
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Scores, Unscored
from dialeval_plugin.core.signature import Signature
from reproduction.kept_results import json_of, scores_of
from tests.refusals import refused

SIGNATURE = Signature({"method": "length", "seed": 3, "clip": None, "scale": 0.5, "exact": True})
REFUSED = Unscored(Reason.REFUSAL, "I cannot answer that.")


class Length(Scorer):
    """Number of characters of the response."""

    name = "length"
    columns = ("length",)

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        return [{"length": self.scale * len(item.response.text)} for item in items if isinstance(item, Example)]

    def signature_fields(self) -> dict[str, str | int | float | bool | None]:
        return {"method": "length", "scale": self.scale}


def table(rows: Sequence[Row], columns: Sequence[str] = ("main", "part")) -> Scores:
    return Scores.from_rows(rows, [f"id{index}" for index in range(len(rows))], columns, SIGNATURE)


def test_rows_become_columns_in_order() -> None:
    scores = table([{"part": 2.0, "main": 1.0}, REFUSED, {"main": 3.0}])

    assert scores.main == "main"
    assert list(scores.columns) == ["main", "part"]
    assert scores.columns == {"main": (1.0, None, 3.0), "part": (2.0, None, None)}
    assert scores.values == (1.0, None, 3.0)
    assert scores.unscored == {1: REFUSED}
    assert (scores.n_total, scores.n_scored, scores.n_unscored) == (3, 2, 1)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("column", ["main", "part"])
def test_a_value_that_is_not_finite_makes_its_row_unscored(column: str, value: float) -> None:
    scores = table([{"main": 1.0, "part": 1.0}, {"main": 2.0, "part": 2.0, column: value}])
    assert scores.columns == {"main": (1.0, None), "part": (1.0, None)}
    assert scores.unscored == {1: Unscored(Reason.NON_FINITE, f"{column} is {value}")}


@pytest.mark.parametrize("row", [{"part": 1.0}, {"main": None, "part": 1.0}])
def test_a_scored_row_needs_its_main_column(row: dict[str, float | None]) -> None:
    expected = f"a scored row needs a value in its main column 'main', got {row!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        table([row])


def test_rows_and_ids_have_one_length() -> None:
    with pytest.raises(ValueError, match=r"^expected one row for each of 2 items, got 1$"):
        Scores.from_rows([{"main": 1.0}], ["a", "b"], ["main"], SIGNATURE)


@pytest.mark.parametrize(
    ("rows", "column", "mean"),
    [
        ([{"main": 1.0, "part": 5.0}, REFUSED, {"main": 2.0}], None, 1.5),
        ([{"main": 1.0, "part": 5.0}, REFUSED, {"main": 2.0}], "part", 5.0),
        ([], None, None),
        ([REFUSED], None, None),
        ([{"main": 1.0}], "part", None),
    ],
)
def test_the_mean_leaves_out_what_has_no_value(rows: list[Row], column: str | None, mean: float | None) -> None:
    assert table(rows).mean(column) == mean


def test_reasons_are_counted_in_alphabetical_order() -> None:
    scores = table([REFUSED, Unscored(Reason.EMPTY_INPUT), REFUSED, {"main": math.nan}])
    assert list(scores.unscored_by_reason.items()) == [("empty_input", 1), ("non_finite", 1), ("refusal", 2)]


def test_rows_for_a_file_say_why_a_score_is_absent() -> None:
    assert list(table([{"main": 1.0, "part": 2.0}, REFUSED]).rows()) == [
        {"id": "id0", "main": 1.0, "part": 2.0},
        {"id": "id1", "main": None, "part": None, "unscored": "refusal", "detail": "I cannot answer that."},
    ]


ROWS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"main": st.floats(), "part": st.none() | st.floats()}),
        st.builds(Unscored, st.sampled_from(Reason), st.text(st.characters(exclude_categories=["Cs"]))),
    ),
    max_size=8,
)


@given(ROWS)
def test_any_table_round_trips_through_strict_json(rows: list[Any]) -> None:
    scores = table(rows)
    written = json.dumps(json_of(scores), allow_nan=False)
    assert scores_of(json.loads(written)) == scores
    for row in scores.rows():
        assert json.loads(to_json(row)) == row


def test_level_and_orientation_round_trip() -> None:
    scores = Scores.from_rows([{"main": 1.0}], ["d"], ["main"], SIGNATURE, "dialogue", "lower")
    read = scores_of(json.loads(json.dumps(json_of(scores))))
    assert (read.level, read.orientation, str(read.signature)) == ("dialogue", "lower", str(SIGNATURE))


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_schema_version_is_refused(version: object) -> None:
    with refused(f"Scores: schema_version is {version!r}, this release reads 1. Update dialeval-plugin or score again."):
        scores_of({**json_of(table([])), "schema_version": version})


Declare = Callable[[str, str], None]


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Declare:
    """An empty registry, and what declares a scorer in it as an installed package does."""
    points: list[metadata.EntryPoint] = []
    monkeypatch.setattr(scorers, "_factories", {})
    monkeypatch.setattr(scorers, "_declared", scorers._declared.__wrapped__)
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: [point for point in points if point.group == group])
    return lambda name, value: points.append(metadata.EntryPoint(name, value, ENTRY_POINT_GROUP))


def test_a_registered_scorer_is_made_by_name_with_its_options(declare: Declare) -> None:
    register_scorer("length")(Length)
    register_scorer("any")(lambda **options: Length(options["scale"]))
    assert scorer_names() == ["any", "length"]
    for name in scorer_names():
        assert load_scorer(name, scale=2.0).score([Example.from_texts([], "four")]).values == (8.0,)


def test_r74_d29_one_file_under_two_module_names_is_no_duplicate(
    declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "own_scorer.py"
    file.write_text("from tests.core.test_scoring import Length\nclass Own(Length):\n    pass\n")
    found = []
    for name in ("own_scorer", "own_scorer_again"):
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        found.append(register_scorer("own")(module.Own))
    assert found[0] is not found[1]
    assert scorer_factory("own") is found[1]


def test_a_second_class_of_one_name_is_refused_with_both_origins(declare: Declare) -> None:
    class Other(Length):
        pass

    for _ in range(2):  # the same class again is none
        register_scorer("length")(Length)
    with refused(
        f"scorer 'length' is registered by {__name__}:Length and by {__name__}:{Other.__qualname__}. Rename one of them."
    ):
        register_scorer("length")(Other)
    assert scorer_factory("length") is Length


def test_two_packages_that_declare_one_name_are_refused_under_that_name_only(declare: Declare) -> None:
    """TRIAL section 5: one clash disabled every scorer and every command."""
    for name, value in (("length", f"{__name__}:Length"), ("length", "elsewhere:Length"), ("size", f"{__name__}:Length")):
        declare(name, value)
    with refused(f"scorer 'length' is declared by {__name__}:Length and by elsewhere:Length. Uninstall one of the packages."):
        load_scorer("length")
    assert scorer_names() == ["length", "size"]
    assert load_scorer("size", scale=2.0).signature_fields()["scale"] == 2.0


def install(folder: Path, name: str) -> None:
    """Write what pip writes of a package that declares the scorer `name`."""
    info = folder / "my_metric-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-metric\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{name} = my_metric:Length\n")


def test_packages_are_read_again_only_after_an_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    entry_points, read = metadata.entry_points, []
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: read.append(group) or entry_points(group=group))
    before = scorer_names()
    assert scorer_names() == before
    assert read == [ENTRY_POINT_GROUP]
    install(tmp_path, "sentences")
    assert scorer_names() == sorted([*before, "sentences"])


def test_an_installed_package_that_takes_a_name_of_ours_hurts_that_name_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "slide")
    monkeypatch.syspath_prepend(str(tmp_path))

    assert load_scorer("response_length").score([Example.from_texts([], "one two")]).values == (2.0,)
    both = r"^scorer 'slide' is declared by \S+ and by \S+\. Uninstall one of the packages\.$"
    with pytest.raises(InputError, match=both) as refused:
        scorer_factory("slide")
    for origin in ("my_metric:Length", "dialeval_plugin.methods.slide.scorer:SlideScorer"):
        assert f" by {origin}" in str(refused.value)


def test_a_package_that_is_found_twice_or_registered_here_is_no_duplicate(declare: Declare) -> None:
    for name, value in (("length", f"{__name__}:Length"), ("length", f"{__name__}:Length"), ("own", "elsewhere:Length")):
        declare(name, value)
    register_scorer("own")(Length)  # comes before a declared one
    assert scorer_names() == ["length", "own"]
    assert scorer_factory("length") is scorer_factory("own") is Length


def test_a_broken_package_stops_only_those_who_ask_for_it(declare: Declare) -> None:
    declare("broken", "no_such_package.scorers:Broken")
    declare("length", f"{__name__}:Length")
    assert scorer_names() == ["broken", "length"]
    assert load_scorer("length").name == "length"
    with pytest.raises(MissingPrerequisite) as refused:
        load_scorer("broken")
    assert str(refused.value) == (
        "scorer 'broken' (no_such_package.scorers:Broken) cannot be imported: No module named 'no_such_package'. "
        "Repair or uninstall the package that declares it."
    )
    assert isinstance(refused.value.__cause__, ModuleNotFoundError)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "lenght",
            {},
            "there is no scorer 'lenght'. Did you mean 'length'? Known are: declared, length, shifted. "
            "Type `dialeval scorers` for what each of them is and needs.",
        ),
        ("length", {"scale": 1.0, "size": 3}, "length: there is no option 'size'. Known are: scale."),
        ("shifted", {"shift": 1.0}, "shifted: missing a required argument: 'scale'. Give it."),
    ],
)
def test_a_wrong_name_or_option_is_answered_with_what_is_right(
    name: str, options: dict[str, float], message: str, declare: Declare
) -> None:
    declare("declared", "elsewhere:Scorer")
    register_scorer("length")(Length)
    register_scorer("shifted")(lambda scale, *, shift=0.0: Length(scale + shift))
    with refused(message):
        load_scorer(name, **options)


def test_a_type_error_from_inside_a_scorer_is_not_the_users_option(declare: Declare) -> None:
    """Issue item 7: the old check took any message that holds the word "argument" for a wrong option."""
    register_scorer("broken")(lambda scale=1.0: Length(scale, 3))  # type: ignore[call-arg]
    with refused("Length.__init__() takes from 1 to 2 positional arguments but 3 were given", TypeError):
        load_scorer("broken", scale=2.0)


def test_scores_are_counted_iterated_and_shown() -> None:
    scores = Scores.from_rows(
        [{"main": 0.25, "<b>": 1.0}, Unscored(Reason.REFUSAL, "no")], ["a<", "b"], ["main", "<b>"], SIGNATURE
    )
    assert (len(scores), repr(scores)) == (2, "Scores(main: mean 0.2500, 1 of 2 scored)")
    assert list(scores) == list(scores.rows())
    frame = scores.to_pandas()
    assert frame.columns.tolist() == ["id", "main", "<b>", "unscored", "detail"]
    assert frame["main"].tolist()[0] == 0.25
    assert frame["unscored"].tolist()[1] == "refusal"
    shown = scores._repr_html_()
    assert "<p>Scores(main: mean 0.2500, 1 of 2 scored)</p>" in shown
    assert "a&lt;" in shown
    assert "<b>" not in shown
    nothing = Scores.from_rows([], [], ["main"], SIGNATURE)
    assert (len(nothing), list(nothing.to_pandas().columns), repr(nothing)) == (
        0,
        ["id", "main"],
        "Scores(main: no score, 0 of 0 scored)",
    )
