"""Identity of an evaluator: taken from files and package, and unknown where neither says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.leaderboard.board import Cost, Identity
from dialeval_plugin.leaderboard.build import build
from dialeval_plugin.leaderboard.page import cost_in_words, identity_in_words
from dialeval_plugin.models.folders import PRETRAINED, model_identity
from tests.leaderboard_files import change_json, documents, noisy_scores, scorer_config, write_run
from tests.refusals import refused


def identity(folder: Path, config: dict[str, Any]) -> Identity:
    rows = documents(20)
    write_run(folder, config, {"dstc10_dialog_dgu": (rows, noisy_scores(rows, 0.1))})
    (found,) = build([folder], rank_rounds=0).board.identities.values()
    return found


def test_a_rule_needs_no_model_and_says_what_it_reads(tmp_path: Path) -> None:
    found = identity(tmp_path, {**scorer_config("bleu", n=4), "scorer_signature": "method:bleu|n:4|level:turn|version:0.2.0"})
    assert (found.method, found.reads_references, found.level, found.n_parameters) == ("rule", True, "turn", 0)
    assert (found.paper_url, found.model_card, found.licence) == ("https://aclanthology.org/P02-1040/", "", "")
    assert found.paper == "BLEU: a Method for Automatic Evaluation of Machine Translation"
    assert found.command == (
        "dialeval lm-eval run --model dialogue-metric --model_args scorer=bleu,n=4 --tasks dstc10_dialog_dgu "
        "--log_samples --output_path results"
    )
    assert identity_in_words(found) == {
        "method": "rule",
        "references": "read",
        "parameters": "none",
        "licence": "no model",
    }


@pytest.mark.parametrize("name", ["general", "slide"])
def test_a_model_in_the_box_is_known_by_its_hash(tmp_path: Path, name: str) -> None:
    signature = f"method:{name}|model:{model_identity(PRETRAINED / name)}|level:turn"
    found = identity(tmp_path, {**scorer_config(name), "scorer_signature": signature})
    assert (found.method, found.reads_references, found.model_card, found.card) == ("trained", False, name, name)
    # The packaged encoder has 22.7 million, and the heads add one or two.
    assert found.n_parameters is not None
    assert 22_700_000 < found.n_parameters < 26_000_000
    assert "CC BY-NC-SA 4.0" in found.licence
    assert found.commercial_use is False


def test_a_run_that_names_no_scorer_is_of_the_default_one(tmp_path: Path) -> None:
    named, unnamed = scorer_config("general"), {**scorer_config("general"), "model_args": {}}
    first, second = identity(tmp_path / "named", named), identity(tmp_path / "unnamed", unnamed)
    assert first == second
    assert second.method == "trained"


def test_of_a_model_of_ones_own_the_weights_are_unknown_and_its_folder_is_not_told(tmp_path: Path) -> None:
    config = {**scorer_config("slide", slm="/home/me/models/mine", variant="slm"), "scorer_signature": "method:slide|slm:0123"}
    found = identity(tmp_path, config)
    assert (found.method, found.n_parameters, found.licence, found.model_card) == ("trained", None, "", "")
    assert "scorer=slide,slm=mine,variant=slm" in found.command
    assert "/home" not in str(found)
    assert identity_in_words(found)["parameters"] == identity_in_words(found)["licence"] == "unknown"


def test_who_asks_a_model_is_prompted_and_who_looks_answers_up_is_replayed(tmp_path: Path) -> None:
    judge = {
        "model": "hf",
        "model_args": {"pretrained": "owner/judge", "api_key": "secret"},
        "model_num_parameters": 135_000_000,
    }
    found = identity(tmp_path / "1", {**judge, "model_sha": "abc"})
    assert (found.method, found.reads_references, found.n_parameters) == ("prompted", False, 135_000_000)
    assert found.model_url == "https://huggingface.co/owner/judge"
    assert "secret" not in str(found)
    found = identity(tmp_path / "0", {**judge, "model": "https://me:hunter2@host/v1", "model_sha": ""})
    assert found.command == (
        "dialeval lm-eval run --model https://host/v1 --model_args pretrained=owner/judge --tasks dstc10_dialog_dgu "
        "--log_samples --output_path results"
    )
    # A folder of this form, which the host did not find on the Hub, is no page there.
    assert identity(tmp_path / "2", {**judge, "model_sha": "", "model_num_parameters": -1}).model_url == ""
    fused = {**scorer_config("slide", llm="hf", llm_args="pretrained=owner/judge"), "scorer_signature": "method:slide"}
    assert identity(tmp_path / "3", fused).method == "prompted"
    replayed = [
        {"model": "replay-judge", "model_args": {"source": "gpt-4/g-eval"}},
        {**scorer_config("replay_judge", source="gpt-4/g-eval")},
        {**scorer_config("g_eval", llm="replay-judge", llm_args="source=gpt-4/g-eval")},
    ]
    for number, config in enumerate(replayed, start=4):
        found = identity(tmp_path / str(number), config)
        assert (found.method, found.reads_references, found.n_parameters) == ("replayed", None, None)


def test_a_scorer_that_this_installation_does_not_know_is_unknown(tmp_path: Path) -> None:
    found = identity(tmp_path, scorer_config("of_others"))
    assert identity_in_words(found) == dict.fromkeys(("method", "references", "parameters", "licence"), "unknown")
    assert (found.about, found.card, found.paper) == ("", "", "")


def test_a_run_of_a_part_is_run_again_as_a_part(tmp_path: Path) -> None:
    config = {**scorer_config("random"), "limit": 10.0}
    assert "--tasks dstc10_dialog_dgu --limit 10 --log_samples" in identity(tmp_path, config).command


def test_a_number_that_is_none_is_refused(tmp_path: Path) -> None:
    rows = documents(20)
    path = write_run(tmp_path, scorer_config("random"), {"dstc10_dialog_dgu": (rows, noisy_scores(rows, 0.1))})
    change_json(path, "config", "model_num_parameters", value="many")
    with refused(f"{path}: config.model_num_parameters: input should be a valid integer. Copy the file again."):
        build([tmp_path])


def test_only_what_asks_a_model_costs_requests() -> None:
    cost = Cost(seconds=75.2, n_requests=1200, n_prompt_characters=34_000)
    assert cost_in_words(cost, Identity(method="prompted")) == "75 s, 1,200 requests, 34,000 characters of prompts"
    assert cost_in_words(cost, Identity(method="rule")) == "75 s"
    assert cost_in_words(Cost(), Identity()) == "unknown"
