"""The page of a passport in headless Chromium; skipped where the machine has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval_plugin.passport.certify import Passport, certify, write_passport
from tests.browser import CLIPPED, PALE, Page, axe_violations
from tests.leaderboard_files import HOSTILE
from tests.passport.conftest import MadeUp

pytestmark = pytest.mark.long

OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
TEXTS = "[...document.querySelectorAll('{}')].map((one) => one.textContent.trim())"


@pytest.fixture(scope="module")
def passport(made_up: MadeUp) -> Passport:
    tables = {name: made_up.table(name, noise) for name, noise in (("good", 0.3), ("poor", 4.0), (HOSTILE, 0.9))}
    return certify(tables, made_up.labels, require=["spearman>=0.5"])


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, passport: Passport) -> str:
    path = tmp_path_factory.mktemp("page") / "passport.html"
    write_passport(passport, path)
    return path.as_uri()


def test_each_evaluator_has_its_verdict_picture_and_reason(page: Page, passport: Passport) -> None:
    assert page.evaluate(TEXTS.format(".verdicts tbody th")) == ["good", "poor", HOSTILE]
    assert page.evaluate(TEXTS.format(".verdicts tbody .pill")) == ["yes", "no", "cannot tell"]
    assert page.evaluate(TEXTS.format(".verdicts .why")) == [one.headline.sentence for one in passport.evaluators]
    assert page.evaluate("document.querySelectorAll('.verdicts tbody svg circle').length") == 3
    questions = page.evaluate(TEXTS.format(".matrix tbody th"))
    assert questions == [finding.question for finding in passport.evaluators[0].findings]
    assert page.evaluate(TEXTS.format("#requirements li"))[1].startswith("no poor, spearman>=0.5: spearman 0.")


def test_a_link_opens_the_evidence_with_chats_of_the_disagreements(page: Page, passport: Passport) -> None:
    assert page.evaluate("document.querySelectorAll('details[open]').length") == 0
    page.evaluate("document.querySelectorAll('.verdicts tbody a')[1].click()")
    # The page hears of the new address after the click.
    page.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert page.evaluate("[...document.querySelectorAll('details[open]')].map((one) => one.id)") == ["evaluator-1"]
    first, chat = passport.evaluators[1].disagreements[0], "document.querySelector('#evaluator-1 .inner')"
    said = f"{first.id}: it says {first.said}, people {', '.join(first.people)}"
    assert page.evaluate(f"{chat}.querySelector('summary').textContent") == said
    turns = page.evaluate(f"[...{chat}.querySelectorAll('.turn')].map((turn) => turn.textContent)")
    assert turns == [*first.context.split("\n"), first.response]
    assert page.evaluate("document.querySelectorAll('main img, main script, main iframe').length") == 0


def test_every_figure_and_every_reason_stands_on_the_page(page: Page, passport: Passport) -> None:
    text = page.evaluate("document.body.textContent")
    for one in passport.evaluators:
        for finding in one.findings:
            assert finding.sentence in text
            assert all(figure.text().partition(" ")[0] in text for figure in finding.figures)
    assert "No repeated runs are given" in text
    assert "720 of 240 rows" in text


@pytest.mark.parametrize("width", [1280, 390, 320])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_on_every_screen(page: Page, width: int, scheme: str) -> None:
    page.resize(width, 800, scheme=scheme)
    page.evaluate(OPEN_ALL)
    assert page.evaluate(PALE) == []
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_and_would_find_one(page: Page, scheme: str) -> None:
    page.resize(390, 844, scheme=scheme)
    page.evaluate(OPEN_ALL)
    assert axe_violations(page) == []
    page.evaluate("document.documentElement.removeAttribute('lang')")
    assert [violation.partition(":")[0] for violation in axe_violations(page)] == ["html-has-lang"]


def test_it_is_one_file_that_holds_no_path_and_loads_nothing(address: str) -> None:
    html = Path(address.removeprefix("file://")).read_text(encoding="utf-8")
    assert "default-src 'none'" in html
    assert str(Path(address).parent.name) not in html
    assert "src=" not in html.replace("&lt;img src=x", "")
