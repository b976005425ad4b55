"""`cascade` and `dialeval score --cascade`: who is asked about what, what it costs, and what a row says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.percentiles import PercentileTable
from dialeval_plugin.core.scope import Scope
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.methods.assistant.scorer import JUDGED, AssistantScorer
from dialeval_plugin.methods.slide.cascade import CascadeScorer
from tests.cli.running import run, write_rows
from tests.loopback import Reply, prompt_of, serve, text_reply
from tests.refusals import refusal, refused

SHARES = (0.1, 0.39, 0.41, 0.5, 0.6, 0.95)
EXAMPLES = [Example.from_texts(["Do you like plums?"], str(share), id=f"of {share}") for share in SHARES]
TABLE = PercentileTable("sure", "turn", "higher", {}, 2, {}, (1.0, 5.0), {})


class Sure(Scorer):
    """The number that a response is, of a scale of 1 to 5."""

    name = "sure"
    columns = ("sure",)
    range = (1.0, 5.0)
    positive_from = 3.0
    percentiles = TABLE

    def __init__(self, level: Any = "turn") -> None:
        self.level = level

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        return [{"sure": 1 + 4 * float((one.response if isinstance(one, Example) else one.turns[-1]).text)} for one in items]

    def signature_fields(self) -> dict[str, str]:
        return {"method": self.name}


class Judge(Scorer):
    """Says 8 on a scale of 0 to 10, fails on what has a 5, and keeps what it was asked about."""

    name = "judge"
    columns = ("said",)
    range = (0.0, 10.0)

    def __init__(self, fails: str = "nowhere", level: Any = "turn") -> None:
        self.fails, self.level = fails, level
        self.asked: list[str] = []

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        self.asked += [item.id for item in items]
        return [Unscored(Reason.API_ERROR, "503") if item.id == self.fails else {"said": 8.0} for item in items]

    def signature_fields(self) -> dict[str, str]:
        return {"method": self.name}


def test_the_judge_is_asked_where_the_small_scorer_is_unsure_and_its_share_stands_there() -> None:
    judge = Judge()
    scores = CascadeScorer(Sure(), llm=judge).score(EXAMPLES)
    assert judge.asked == ["of 0.41", "of 0.5", "of 0.6"]
    assert scores.columns["llm"] == (None, None, 0.8, 0.8, 0.8, None)
    assert scores.values == pytest.approx((0.1, 0.39, 0.8, 0.8, 0.8, 0.95))
    assert scores.columns["sure"] == pytest.approx([1 + 4 * share for share in SHARES])
    assert [row["judged_by"] for row in scores.rows()] == ["sure", "sure", "llm", "llm", "llm", "sure"]
    assert scores.columns["percentile"] == pytest.approx((10.0, 39.0, None, None, None, 95.0))
    assert str(scores.signature).startswith("method:cascade|cascade:0.1|small_method:sure|llm_method:judge|level:turn|")
    assert list(scores.columns) == ["cascade", "sure", "llm", "percentile"]


@pytest.mark.parametrize(("within", "asked"), [(0, ["of 0.5"]), (0.11, ["of 0.39", "of 0.41", "of 0.5", "of 0.6"])])
def test_how_unsure_is_an_option(within: float, asked: list[str]) -> None:
    judge = Judge()
    CascadeScorer(Sure(), llm=judge, cascade=within).score(EXAMPLES)
    assert judge.asked == asked


def test_what_is_out_of_scope_is_asked_however_sure_the_small_scorer_is() -> None:
    class Knowing(Sure):
        scope = Scope({}, {}, 1, {})

        def scope_of(self, items: Sequence[Item]) -> list[str | None]:
            return ["not English" if item.id == "of 0.95" else None for item in items]

    judge = Judge()
    scores = CascadeScorer(Knowing(), llm=judge, cascade=0).score(EXAMPLES)
    assert judge.asked == ["of 0.5", "of 0.95"]
    assert scores.columns["in_scope"] == (1.0,) * 5 + (0.0,)
    assert scores.out_of_scope == {5: "not English"}


def test_a_judge_that_fails_leaves_the_row_unscored_and_a_blank_response_is_never_asked() -> None:
    judge = Judge(fails="of 0.5")
    scores = CascadeScorer(Sure(), llm=judge).score([*EXAMPLES, Example.from_texts(["Hi."], " ", id="blank")])
    assert {place: row.reason.value for place, row in scores.unscored.items()} == {3: "api_error", 6: "empty_input"}
    assert "blank" not in judge.asked


def test_whole_dialogues_cascade_too() -> None:
    chats = [Dialogue(str(share), (Turn("Hi."), Turn(str(share)))) for share in (0.2, 0.5)]
    scores = CascadeScorer(Sure("dialogue"), llm=Judge(level="dialogue"), level="dialogue").score(chats)
    assert scores.values == pytest.approx((0.2, 0.8))


def test_any_head_of_the_evaluator_of_assistants_may_be_unsure(tiny_assistant: Path) -> None:
    scorer = AssistantScorer(str(tiny_assistant), device="cpu")
    sure = {**dict.fromkeys(JUDGED, 0.0), "assistant": 0.5, "helpfulness": 0.9, "refusal": 0.5, "asked_refusal": 0.5}
    assert not scorer.is_unsure(sure, 0.1)
    assert scorer.is_unsure({**sure, "helpfulness": 0.41}, 0.1)
    assert scorer.is_unsure({**sure, "cut_off": 0.69}, 0.1)  # whose threshold is 0.6
    assert not scorer.is_unsure({**sure, "cut_off": 0.49}, 0.1)


def test_scorers_that_cannot_cascade_are_refused_with_the_way_out() -> None:
    assert refusal(CascadeScorer, Sure(), error=MissingPrerequisite) == (
        "cascade: asks a large language model where the small one is unsure, and no llm is given. "
        "Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model), or use the small scorer alone."
    )
    assert refusal(CascadeScorer, "random", llm=Judge()) == (
        "cascade: random has no threshold near which it is unsure. Name another scorer, as assistant or general."
    )
    assert refusal(CascadeScorer, Sure("dialogue"), llm=Judge()) == (
        "cascade: sure scores at level 'dialogue' from 1 to 5. "
        "Name one that scores at level 'turn', and whose range has two ends."
    )
    assert refusal(CascadeScorer, Sure(), llm=Judge(), cascade=-1) == "cascade: cascade is -1. Give a number from 0 to 1."


# The command.

ROWS = [
    {"id": str(number), "context": ["Do you like tea?"], "response": response}
    for number, response in enumerate(
        ["I like black tea.", "Cats sleep.", "No.", "Tea tea tea tea.", "I prefer coffee, do you?", "The train is late again."]
    )
]


@pytest.fixture
def words(tmp_path: Path) -> list[Any]:
    """A run of which some rows are unsure, and others are not."""
    log = write_rows(tmp_path / "in.jsonl", ROWS)
    return ["score", log, "--worst", 0, "--cascade", "--option", "cascade=0.2", "--answers", tmp_path / "answers.sqlite"]


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_served_judge_is_asked_about_the_unsure_rows_alone_after_its_cost_is_said(words: list[Any], tmp_path: Path) -> None:
    with serve(lambda body: text_reply(body, "4")) as server:
        llm = ["--llm", "local-chat-completions", "--llm-args", f"model=m,base_url={server.chat}"]
        rehearsed = run(*words, *llm, "--dry-run")
        assert server.asked == []
        done = run(*words, *llm, "--output", tmp_path / "out.jsonl", "--record", tmp_path / "kept.jsonl")
        rows = rows_of(tmp_path / "out.jsonl")
        unsure = [row for row in rows if abs(row["general"] - 0.5) <= 0.2]
        assert 0 < len(unsure) < len(rows)
        assert [row["id"] for row in rows if row["llm"] == 0.8] == [row["id"] for row in unsure]
        assert {row["cascade"] for row in unsure} == {0.8}
        assert {row["judged_by"] for row in unsure} == {"llm"}
        certain = [row for row in rows if row not in unsure]
        assert [row["cascade"] for row in certain] == [row["general"] for row in certain]
        asked = [next(row for row in ROWS if row["response"] in prompt) for prompt in server.prompts()]
        assert sorted(row["id"] for row in asked) == [row["id"] for row in unsure]
        n_tokens = -(-sum(map(len, server.prompts())) // 4)
        cost = f"{len(unsure)} calls, about {n_tokens} prompt tokens (at 4 characters a token), 0 of {len(unsure)} requests"
        assert rehearsed.stdout == f"dry run: {cost} from the cache (0 %)\n"
        assert f"cascade: 6 to score; the llm: {cost} from the cache (0 %)\n" in done.stderr
        assert f"llm: {cost} from the cache (0 %), 0 failed\n" in done.stderr
        mean = sum(row["cascade"] for row in rows) / 6
        of_small = sum(row["cascade"] for row in certain) / len(certain)
        assert done.stdout.splitlines()[:3] == [
            f"cascade: mean {mean:.4f}, 6 of 6 scored",
            f"  judged by llm: mean 0.8000, {len(unsure)} scored",
            f"  judged by general: mean {of_small:.4f}, {len(certain)} scored",
        ]
        # The same command asks nothing more, and writes the same bytes.
        again = run(*words, *llm, "--output", tmp_path / "again.jsonl")
        assert len(server.asked) == len(unsure)
        assert (
            f"cascade: 6 to score; the llm: 0 calls, 0 prompt tokens, {len(unsure)} of {len(unsure)} requests" in again.stderr
        )
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    # What was recorded stands in for the judge.
    kept = rows_of(tmp_path / "kept.jsonl")
    assert len(kept) == len(unsure)
    replay = ["--llm", "replay-judge", "--llm-args", f"source={kept[0]['judge']},verdicts={tmp_path / 'kept.jsonl'}"]
    run(*words, *replay, "--output", tmp_path / "replayed.jsonl")
    assert [row["cascade"] for row in rows_of(tmp_path / "replayed.jsonl")] == [row["cascade"] for row in rows]


def test_a_server_that_failed_is_asked_again_about_what_it_owes(
    words: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialeval_plugin.hosts.lm_eval.asking.time.sleep", lambda seconds: None)
    is_up = [False]

    def reply(body: dict[str, Any]) -> Reply:
        return text_reply(body, "5") if is_up[0] or len(prompt_of(body)) % 2 else Reply({}, 400)

    with serve(reply) as server:
        llm = [
            "--llm",
            "local-chat-completions",
            "--llm-args",
            f"model=m,base_url={server.chat}",
            "--output",
            tmp_path / "out.jsonl",
        ]
        words[words.index("cascade=0.2")] = "cascade=0.5"
        broken = run(*words, *llm)
        n_failed = sum(row.get("unscored") == "api_error" for row in rows_of(tmp_path / "out.jsonl"))
        assert 0 < n_failed < 6
        assert broken.exit_code == 1
        is_up[0], n_asked = True, len(server.asked)
        assert run(*words, *llm).exit_code == 0
        assert len(server.asked) - n_asked == n_failed
    assert {row["cascade"] for row in rows_of(tmp_path / "out.jsonl")} == {1.0}


def test_options_that_do_not_go_with_a_cascade_are_refused_with_the_way_out(words: list[Any]) -> None:
    with refused("--cascade: asks a language model where the scorer is unsure, and none is named. Name one with --llm."):
        run(*words)
    with refused(
        "--cascade: llm_judge asks a language model itself. Leave it out, or name a scorer that asks none, as assistant."
    ):
        run("score", words[1], "--scorer", "llm_judge", "--cascade", "--llm", "scripted-judge")
    with refused(
        "cascade: response_length has no threshold near which it is unsure. Name another scorer, as assistant or general."
    ):
        run("score", words[1], "--scorer", "response_length", "--cascade", "--llm", "scripted-judge")
