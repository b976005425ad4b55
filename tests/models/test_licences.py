"""Weights whose terms forbid commercial use are not used in silence, and not at all where somebody says so."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from dialeval_plugin import load_metric, load_scorer
from dialeval_plugin.core.files import read_json
from dialeval_plugin.core.scorer import run_signature
from dialeval_plugin.hosts.lm_eval.model import DialogueMetricLM
from dialeval_plugin.models.folders import PRETRAINED, chosen, is_commercial, licence_of, pretrained_names, resolve
from tests import forked
from tests.cli.running import environment, run
from tests.refusals import refused

CHAT = PRETRAINED.parent / "corpora" / "examples" / "chat.jsonl"
TERMS = {name: read_json(PRETRAINED / name / "provenance.json") for name in pretrained_names()}

SPDX = {
    **{"CC BY 4.0": "CC-BY-4.0", "CC BY-NC 4.0": "CC-BY-NC-4.0", "CC BY-NC-SA 4.0": "CC-BY-NC-SA-4.0"},
    **{"GPL-3.0": "GPL-3.0-only", "CDLA-Sharing-1.0": "CDLA-Sharing-1.0", "Apache-2.0": "Apache-2.0", "MIT": "MIT"},
    **dict.fromkeys(["non-commercial research only", "none found"], "LicenseRef-dialeval-weights"),
}
"""By the words of `provenance.json`."""


@pytest.fixture
def commercial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_COMMERCIAL", "1")


def refusal(name: str, instead: str, terms: str) -> str:
    return (
        f"{name}: its training data ({terms}) forbid commercial use, and --commercial or DIALEVAL_COMMERCIAL=1 asks for open "
        f"weights. Take {instead}, or a model trained on data of yours."
    )


def test_the_metadata_name_the_terms_of_code_and_weights() -> None:
    """A scanner read Apache-2.0 of weights that nobody may use commercially."""
    settings = configparser.ConfigParser()
    settings.read(Path(__file__).parents[2] / "setup.cfg", encoding="utf-8")
    rest, found = "; ".join([*(said["licence"] for said in TERMS.values()), "Apache-2.0"]), set()
    for words, name in SPDX.items():
        found |= {name} if words in rest else set()
        rest = rest.replace(words, "")
    assert settings["metadata"]["license_expression"] == " AND ".join(sorted(found))
    # Corpora that the terms are of.
    assert set(re.findall(r"[A-Z]\w+", rest)) == {"DREAM", "ESConv", "MSC"}


def test_every_model_in_the_box_has_a_licence_and_those_called_open_are() -> None:
    found = {name: licence_of(PRETRAINED / name) for name in pretrained_names()}
    assert {name: licence and licence.terms for name, licence in found.items()} == {n: t["licence"] for n, t in TERMS.items()}
    assert {name for name, licence in found.items() if licence and licence.is_open} == {"assistant-open", "general-open"}


@pytest.mark.parametrize(("value", "expected"), [(None, None), ("", None), ("0", False), ("1", True)])
def test_the_variable_is_1_or_0(value: str | None, expected: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIALEVAL_COMMERCIAL")
    if value is not None:
        monkeypatch.setenv("DIALEVAL_COMMERCIAL", value)
    assert is_commercial() is expected


def test_another_value_of_the_variable_is_no_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_COMMERCIAL", "yes")
    with refused("DIALEVAL_COMMERCIAL='yes': is neither 1 nor 0. Set it to 1 for weights that allow commercial use."):
        load_scorer("general")


@pytest.mark.usefixtures("commercial")
def test_general_assistant_and_auto_take_the_open_weights_and_their_signatures_say_so() -> None:
    for name in ("general", "assistant"):
        assert chosen(name) == f"{name}-open"
        assert f"|model:{name}-open@" in str(run_signature(load_scorer(name)))
    both = str(run_signature(load_scorer("auto")))
    assert "general-open@" in both
    assert "assistant-open@" in both


@pytest.mark.usefixtures("commercial")
def test_evaluate_and_lm_eval_take_the_open_weights() -> None:
    result = load_metric("general").compute(predictions=["We could have a picnic."], contexts=[["Any plans for Sunday?"]])
    assert "|model:general-open@" in result["signature"]
    assert "|model:general-open@" in str(run_signature(DialogueMetricLM(scorer="general").scorer))


@pytest.mark.usefixtures("commercial")
@pytest.mark.parametrize(
    ("scorer", "name"),
    [("slide", "slide"), ("causalscore", "causalscore"), ("dialogue_likelihood", "language-model")],
)
def test_what_has_no_open_weights_is_refused_and_the_open_models_are_named(scorer: str, name: str) -> None:
    with refused(refusal(name, "assistant-open or general-open", TERMS[name]["licence"])):
        load_scorer(scorer)


@pytest.mark.usefixtures("commercial")
def test_a_model_that_is_named_is_refused_in_the_box_and_as_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for named in ("general", str(PRETRAINED / "general")):
        with refused(refusal("general", "general-open", TERMS["general"]["licence"])):
            load_scorer("general", model=named)
    copy = shutil.copytree(PRETRAINED / "general", tmp_path / "mine")
    with refused(refusal(str(copy), "assistant-open or general-open", TERMS["general"]["licence"])):
        load_scorer("general", model=str(copy))
    with refused(refusal("assistant", "assistant-open", TERMS["assistant"]["licence"])):
        load_scorer("auto", assistant="assistant")
    monkeypatch.setenv("DIALEVAL_GENERAL", "general")
    with refused(refusal("general", "general-open", TERMS["general"]["licence"])):
        load_scorer("general")


@pytest.mark.usefixtures("commercial")
def test_a_model_of_which_no_licence_is_recorded_is_the_users_own_matter(tmp_path: Path) -> None:
    (tmp_path / "provenance.json").write_text('["of another kind"]', encoding="utf-8")
    assert resolve(str(tmp_path)) == tmp_path


@pytest.mark.usefixtures("commercial")
def test_cards_are_shown_and_the_list_names_what_is_taken() -> None:
    assert run("models", "show", "general").exit_code == 0
    shown = [line.split() for line in run("models", "list").stdout.splitlines()]
    assert ["general", "general-open", "DIALEVAL_GENERAL"] in shown
    assert [line[:2] + line[3:4] for line in shown if line[:1] in (["slide"], ["general-open"])][:2] == [
        ["general-open", "general", "yes"],
        ["slide", "slide", "no"],
    ]


def test_the_option_takes_open_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "scores.jsonl"
    monkeypatch.setenv("DIALEVAL_COMMERCIAL", "")  # what the option sets is undone when the test ends
    assert run("score", str(CHAT), "--output", str(output), "--commercial").exit_code == 0
    assert os.environ["DIALEVAL_COMMERCIAL"] == "1"
    assert "|model:general-open@" in read_json(Path(f"{output}.meta.json"))["signature"]
    with refused(refusal("slide", "assistant-open or general-open", TERMS["slide"]["licence"])):
        run("score", str(CHAT), "--scorer", "slide", "--commercial")


def test_the_first_use_says_so_in_one_line_and_no_more(tmp_path: Path) -> None:
    code = "from dialeval_plugin import load_scorer\nfor name in ('general', 'general', 'assistant'): load_scorer(name)\n"
    own = environment(tmp_path)
    del own["DIALEVAL_COMMERCIAL"]
    command = [sys.executable, "-c", code]
    given = ({}, {"DIALEVAL_COMMERCIAL": "0"}, {"DIALEVAL_COMMERCIAL": "1"})
    ended = [forked.run(command, cwd=tmp_path, env={**own, **variables}) for variables in given]
    assert [one.returncode for one in ended] == [0, 0, 0]
    assert [one.stderr for one in ended] == [
        "general: its training data forbid commercial use; those of general-open allow it. --commercial or "
        "DIALEVAL_COMMERCIAL=1 takes open weights alone, DIALEVAL_COMMERCIAL=0 hides this line.\n",
        *("", ""),
    ]
